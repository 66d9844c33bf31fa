"""One model behind a server: how it is asked through its vendor's SDK, and what an error means.

A call is bounded in time and size, retried while an error is transient, and fails with a `ProviderError` only.
Redirects are not followed, so a key is sent only to its server, and no error contains it. Needs the extra `models`;
import this module late.
"""

from __future__ import annotations

import asyncio
import ssl
import urllib.parse
import warnings
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

import httpx2
from pydantic_ai.embeddings import EmbeddingModel
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelQuotaExceededError,
    UserError,
)
from pydantic_ai.models import Model
from pydantic_ai.profiles.openai import OpenAIModelProfile

from ghost.errors import ConfigurationError, GhostError, ProviderError
from ghost.providers.bounded_transport import RefusedAnswer, bounded_client, proxy_for
from ghost.providers.retries import TRANSIENT_STATUS, retried, retry_after_seconds
from ghost.records import Clock, elapsed
from ghost.text import one_line

T = TypeVar("T")

warnings.filterwarnings("ignore", module="pydantic_ai")  # about what a server answered; they would go to the terminal

NO_KEY = "none"
"""Sent where a server wants no key; the SDKs demand one."""

_OLD_LIMIT = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False)
"""Servers other than OpenAI's know the token limit by its old name, `max_tokens`."""


@dataclass(frozen=True)
class ModelServer:
    """A model, its server's address and credentials. The variables are named in errors. Thread-safe."""

    provider: str
    """`gemini`, `openai`, `anthropic` or `ollama`."""
    model: str
    url: str
    url_variable: str
    key: str = field(repr=False)
    key_variable: str
    seconds: float
    """Seconds for one call, including retries and waits."""
    clock: Clock
    random: Random
    seconds_variable: str = "GHOST_PROVIDER_TIMEOUT"

    def __post_init__(self) -> None:
        if any(not "!" <= character <= "~" for character in self.key):
            raise ConfigurationError(f"{self.key_variable} contains a blank or an invalid character: copy it again.")
        proxy_for(httpx2.URL(self.url))

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"

    @property
    def host(self) -> str:
        return urllib.parse.urlsplit(self.url).hostname or ""

    def call(self, ask: Callable[[httpx2.AsyncClient], Awaitable[T]]) -> T:
        """Return what `ask` makes of the server's answer. Raises `ProviderError`."""

        async def exchange(seconds_left: float) -> T:
            async with asyncio.timeout(seconds_left), bounded_client(self.url, seconds_left) as http:
                return await ask(http)

        def once(seconds_left: float) -> T:
            try:
                return asyncio.run(exchange(max(seconds_left, 0.001)))
            except GhostError:
                raise
            except Exception as error:  # noqa: BLE001 -- the SDKs read an answer without a check of its shape
                raise self._failure(error) from None

        return retried(once, seconds=self.seconds, clock=self.clock, random=self.random)

    def chat_model(self, http: httpx2.AsyncClient) -> Model[Any]:
        """Return the model as the SDK of its vendor asks it."""
        key = self.key or NO_KEY
        if self.provider == "gemini":
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            return GoogleModel(self.model, provider=GoogleProvider(api_key=key, base_url=self.url, http_client=http))
        if self.provider == "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            return AnthropicModel(
                self.model, provider=AnthropicProvider(api_key=key, base_url=self.url, http_client=http)
            )
        if self.provider == "ollama":
            from pydantic_ai.models.ollama import OllamaModel
            from pydantic_ai.providers.ollama import OllamaProvider

            return OllamaModel(
                self.model,
                provider=OllamaProvider(api_key=key, base_url=self.url, http_client=http),
                profile=_OLD_LIMIT,
            )
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        profile = None if self.host.endswith((".openai.com", ".azure.com")) else _OLD_LIMIT
        return OpenAIChatModel(
            self.model, provider=OpenAIProvider(api_key=key, base_url=self.url, http_client=http), profile=profile
        )

    def embedding_model(self, http: httpx2.AsyncClient) -> EmbeddingModel:
        key = self.key or NO_KEY
        if self.provider == "gemini":
            from pydantic_ai.embeddings.google import GoogleEmbeddingModel
            from pydantic_ai.providers.google import GoogleProvider

            return GoogleEmbeddingModel(
                self.model, provider=GoogleProvider(api_key=key, base_url=self.url, http_client=http)
            )
        from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
        from pydantic_ai.providers.openai import OpenAIProvider

        return OpenAIEmbeddingModel(
            self.model, provider=OpenAIProvider(api_key=key, base_url=self.url, http_client=http)
        )

    def _failure(self, error: Exception) -> ProviderError:
        refused = _cause(error, RefusedAnswer)
        if refused is not None:
            hint = f": set {self.url_variable} to its address" if "redirects" in str(refused) else ""
            hint = hint or ": is it the server of a model? See " + self.url_variable
            return ProviderError(f"{self.url} {refused}{hint}.")
        if isinstance(error, ModelHTTPError):
            return self._answered(error)
        if isinstance(error, TimeoutError) or _cause(error, httpx2.TimeoutException) is not None:
            return ProviderError(
                f"{self.url} gave no complete response within the {self.seconds:g} seconds of {self.seconds_variable}.",
                transient=True,
            )
        if (untrusted := _cause(error, ssl.SSLCertVerificationError)) is not None:
            return ProviderError(f"{self.url} shows a certificate that is not trusted ({untrusted.verify_message}).")
        if _cause(error, httpx2.ConnectError) is not None:
            return ProviderError(
                f"{self.url} cannot be reached: is this machine online, the server running, {self.url_variable} right?",
                transient=True,
            )
        if (broken := _cause(error, httpx2.TransportError)) is not None:
            closed = f"{self.url} closed the connection ({type(broken).__name__}): try again later"
            return ProviderError(f"{closed}, or check {self.url_variable}.", transient=True)
        if isinstance(error, ContentFilterError):
            return ProviderError(f"{self.name} refused to answer (content filter): choose another model.")
        if isinstance(error, UserError):
            return ProviderError(f"{self.name}: {self._without_key(str(error))}.")
        what = type(error).__name__ if not isinstance(error, AgentRunError) else "its shape is not that of the API"
        unusable = f"{self.url} gave a response that is not usable ({what})"
        return ProviderError(f"{unusable}: try again later, or choose another model.", transient=True)

    def _answered(self, error: ModelHTTPError) -> ProviderError:
        status, where = error.status_code, self.url
        message = self._without_key(_message(error.body))
        if status in (401, 403) or "API_KEY_INVALID" in str(error.body):  # what it says may repeat the key
            what = f"rejected the key (status {status}): check" if self.key else f"needs a key (status {status}): set"
            return ProviderError(f"{where} {what} {self.key_variable}.")
        headers = error.headers or {}
        wait = retry_after_seconds(headers.get("retry-after"), self.clock)
        if wait is None and error.retry_after is not None:
            wait = retry_after_seconds(str(error.retry_after), self.clock)
        hint = ""
        if status == 404:
            hint = f" Check the model's name ({self.model}) and {self.url_variable}."
        elif status in (400, 422):
            hint = " The server does not accept the request: choose another model or server."
        if isinstance(error, ModelContextWindowExceededError):
            hint = " The conversation is too long for this model: lower GHOST_CONTEXT_TOKENS."
        elif isinstance(error, ModelQuotaExceededError):
            hint = " The quota of this key is used up: raise it with the provider, or choose another model."
        elif status in TRANSIENT_STATUS:
            hint = f" Try again {f'in {elapsed(wait)}' if wait else 'later'}."
        return ProviderError(
            f"{where} answered with status {status}{f': {message}' if message else ''}.{hint}",
            transient=status in TRANSIENT_STATUS and not isinstance(error, ModelQuotaExceededError),
            retry_after_seconds=wait,
        )

    def _without_key(self, message: str) -> str:
        return one_line(message.replace(self.key, "(key)") if self.key else message, 200).rstrip(".")


Found = TypeVar("Found", bound=BaseException)


def _cause(error: BaseException, kind: type[Found]) -> Found | None:
    """Return the first error of this kind among `error` and its causes."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, kind):
            return seen
        seen = seen.__cause__ or seen.__context__
    return None


def _message(body: object) -> str:
    """Return the message of a server's error body."""
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        message = inner.get("message", "") if isinstance(inner, Mapping) else inner
        return message if isinstance(message, str) else ""
    return ""
