"""Selection of providers from the settings. Clients are imported on demand, so a missing extra matters only when
used.
"""

from __future__ import annotations

import random
import urllib.parse
from collections.abc import Callable
from typing import Literal, TypeVar

from ghost.config import SecretStr, Settings
from ghost.errors import ConfigurationError
from ghost.hosts import is_loopback
from ghost.providers.interfaces import EmbeddingsProvider, LLMProvider
from ghost.providers.outgoing_text import OutgoingEmbeddings, OutgoingModel
from ghost.providers.server_address import server_url
from ghost.providers.stub import StubEmbeddings, StubLLM
from ghost.records import Clock, SystemClock
from ghost.redaction import Placeholders

KNOWN = ("stub", "gemini", "openai", "ollama")

DEFAULT_URLS = {
    "gemini": "https://generativelanguage.googleapis.com",
    "openai": "https://api.openai.com/v1",
    "ollama": "http://127.0.0.1:11434",
}

T = TypeVar("T")


def language_model(settings: Settings, clock: Clock | None = None) -> LLMProvider:
    """Return the model named by `PROVIDER_LLM`, without contacting it. Raises `ConfigurationError`."""
    chosen = settings.provider_llm
    if chosen == "stub":
        return StubLLM()
    _check_known("PROVIDER_LLM", chosen)
    model = _with_extra(chosen, lambda: _language_client(settings, clock or SystemClock()))
    return model if _is_here(settings.llm_url or DEFAULT_URLS[chosen]) else OutgoingModel(model, Placeholders())


def embeddings(settings: Settings, clock: Clock | None = None) -> EmbeddingsProvider:
    """Return the provider named by `PROVIDER_EMBED`, with `VECTOR_DIM` numbers, without contacting it. Raises
    `ConfigurationError`.
    """
    chosen = settings.provider_embed
    if chosen == "stub":
        return StubEmbeddings(settings.vector_dim)
    _check_known("PROVIDER_EMBED", chosen)
    model = _with_extra(chosen, lambda: _embedding_client(settings, clock or SystemClock()))
    return model if _is_here(settings.embed_url or DEFAULT_URLS[chosen]) else OutgoingEmbeddings(model, Placeholders())


def system_clock(settings: Settings) -> Clock:
    """Return the clock named by `PROVIDER_CLOCK`. Raises `ConfigurationError`."""
    if settings.provider_clock != "system":
        raise ConfigurationError(
            f"PROVIDER_CLOCK is {settings.provider_clock[:40]!r}: set it to `system`, the only supported value."
        )
    return SystemClock()


def _language_client(settings: Settings, clock: Clock) -> LLMProvider:
    from ghost.providers.model_server import Access

    use = _Use("LLM", settings.provider_llm, settings.llm_url, settings.llm_model, settings.llm_key, settings)
    access = Access(use.url(), use.url_variable, use.key(), use.key_variable, use.seconds, clock, _random())
    if settings.provider_llm == "gemini":
        from ghost.providers.gemini import DEFAULT_MODEL, GeminiModel

        return GeminiModel(access, use.model(DEFAULT_MODEL))
    if settings.provider_llm == "openai":
        from ghost.providers.openai import OpenAIModel

        return OpenAIModel(access, use.model())
    from ghost.providers.ollama import OllamaModel

    return OllamaModel(access, use.model())


def _embedding_client(settings: Settings, clock: Clock) -> EmbeddingsProvider:
    from ghost.providers.model_server import Access

    use = _Use("EMBED", settings.provider_embed, settings.embed_url, settings.embed_model, settings.embed_key, settings)
    access = Access(use.url(), use.url_variable, use.key(), use.key_variable, use.seconds, clock, _random())
    if settings.provider_embed == "gemini":
        from ghost.providers.gemini import DEFAULT_EMBEDDING_MODEL, GeminiEmbeddings

        return GeminiEmbeddings(access, use.model(DEFAULT_EMBEDDING_MODEL), settings.vector_dim)
    if settings.provider_embed == "openai":
        from ghost.providers.openai import OpenAIEmbeddings

        return OpenAIEmbeddings(access, use.model(), settings.vector_dim)
    from ghost.providers.ollama import OllamaEmbeddings

    return OllamaEmbeddings(access, use.model(), settings.vector_dim)


class _Use:
    """The settings of one of the two uses of a provider."""

    def __init__(
        self,
        use: Literal["LLM", "EMBED"],
        provider: str,
        url: str | None,
        model: str | None,
        key: SecretStr | None,
        settings: Settings,
    ) -> None:
        self.url_variable = f"GHOST_{use}_URL"
        self.key_variable = "GEMINI_API_KEY" if provider == "gemini" else f"GHOST_{use}_KEY"
        self.seconds = settings.provider_timeout_seconds
        self._model_variable = f"GHOST_{use}_MODEL"
        self._chosen_by = f"PROVIDER_{use}={provider}"
        self._provider = provider
        self._url = url
        self._model = model
        self._key = settings.gemini_api_key if provider == "gemini" else key

    def url(self) -> str:
        url = server_url(self.url_variable, self._url or DEFAULT_URLS[self._provider])
        bare = url.count("/") == 2
        return url + "/v1" if self._provider == "openai" and bare else url

    def key(self) -> str:
        key = self._key.get_secret_value().strip() if self._key is not None else ""
        needed = self._provider == "gemini" or (self._provider == "openai" and self._url is None)
        if needed and not key:
            raise ConfigurationError(f"{self._chosen_by} needs a key: set {self.key_variable}.")
        return key

    def model(self, default: str | None = None) -> str:
        model = self._model or default
        if model is None:
            raise ConfigurationError(f"{self._chosen_by} needs a model's name: set {self._model_variable}.")
        return model


def _with_extra(provider: str, build: Callable[[], T]) -> T:
    """Return `build()`; if a library is missing, raise an error that names the extra."""
    extra = "gemini" if provider == "gemini" else "mind"
    try:
        return build()
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"The provider {provider!r} needs {error.name}: pip install 'ghost-investigator[{extra}]'."
        ) from None


def _is_here(url: str) -> bool:
    """Whether a server is on this machine, which text does not leave then."""
    return is_loopback(urllib.parse.urlsplit(url).hostname or "")


def _check_known(variable: str, value: str) -> None:
    if value not in KNOWN:
        raise ConfigurationError(f"{variable} is {value[:40]!r}: set it to one of {', '.join(KNOWN)}.")


def _random() -> random.Random:
    return random.Random()  # noqa: S311 -- spreads retries, keeps nothing secret
