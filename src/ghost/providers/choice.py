"""Which provider the settings name. Clients are imported when they are asked for: an extra that is missing costs
nothing until then."""

from __future__ import annotations

from ghost.config import Settings
from ghost.errors import ConfigurationError
from ghost.providers.base import EmbeddingsProvider, LLMProvider
from ghost.providers.stub import StubEmbeddings, StubLLM
from ghost.records import Clock, SystemClock

KNOWN = ("stub", "gemini", "openai", "ollama")


def language_model(settings: Settings) -> LLMProvider:
    """`PROVIDER_LLM`. Asks no server. Raises `ConfigurationError`."""
    if settings.provider_llm == "stub":
        return StubLLM()
    raise _unknown("PROVIDER_LLM", settings.provider_llm)


def embeddings(settings: Settings) -> EmbeddingsProvider:
    """`PROVIDER_EMBED`, with vectors of `VECTOR_DIM` numbers. Asks no server. Raises `ConfigurationError`."""
    if settings.provider_embed == "stub":
        return StubEmbeddings(settings.vector_dim)
    raise _unknown("PROVIDER_EMBED", settings.provider_embed)


def system_clock(settings: Settings) -> Clock:
    """`PROVIDER_CLOCK`. Raises `ConfigurationError`."""
    if settings.provider_clock != "system":
        raise ConfigurationError(f"PROVIDER_CLOCK is {settings.provider_clock!r}: the one clock there is is `system`.")
    return SystemClock()


def _unknown(variable: str, value: str) -> ConfigurationError:
    return ConfigurationError(f"{variable} is {value[:40]!r}: set it to one of {', '.join(KNOWN)}.")
