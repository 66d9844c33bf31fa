"""Each client with the answers that its server gives when all is well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ghost.providers.gemini import GeminiEmbeddings, GeminiModel
from ghost.providers.interfaces import EmbeddingsProvider, LLMProvider
from ghost.providers.model_server import Access
from ghost.providers.ollama import OllamaEmbeddings, OllamaModel
from ghost.providers.openai import OpenAIEmbeddings, OpenAIModel
from tests.providers.servers import KEY, Highest, WaitingClock

DIM = 3


@dataclass(frozen=True)
class Dialect:
    name: str
    build_model: Callable[[Access], LLMProvider]
    build_embeddings: Callable[[Access], EmbeddingsProvider]
    text: Callable[..., Any]
    """The body that carries a text; `cut=True` when it was cut at the limit of tokens."""
    vectors: Callable[[list[Any]], Any]

    def model(self, url: str, clock: WaitingClock | None = None, seconds: float = 60.0) -> LLMProvider:
        return self.build_model(access(url, clock or WaitingClock(), seconds))

    def embeddings(self, url: str, clock: WaitingClock | None = None, seconds: float = 60.0) -> EmbeddingsProvider:
        return self.build_embeddings(access(url, clock or WaitingClock(), seconds))


def access(url: str, clock: WaitingClock, seconds: float = 60.0, key: str = KEY) -> Access:
    return Access(url, "GHOST_LLM_URL", key, "GHOST_LLM_KEY", seconds, clock, Highest())


OPENAI = Dialect(
    "openai",
    lambda access: OpenAIModel(access, "m"),
    lambda access: OpenAIEmbeddings(access, "e", DIM),
    lambda text, cut=False: {
        "choices": [{"message": {"content": text}, "finish_reason": "length" if cut else "stop"}],
    },
    lambda vectors: {"data": [{"index": n, "embedding": vector} for n, vector in enumerate(vectors)]},
)
OLLAMA = Dialect(
    "ollama",
    lambda access: OllamaModel(access, "m"),
    lambda access: OllamaEmbeddings(access, "e", DIM),
    lambda text, cut=False: {"message": {"content": text}, "done_reason": "length" if cut else "stop"},
    lambda vectors: {"embeddings": vectors},
)
GEMINI = Dialect(
    "gemini",
    lambda access: GeminiModel(access, "gemini-2.0-flash"),
    lambda access: GeminiEmbeddings(access, "gemini-embedding-001", DIM),
    lambda text, cut=False: {
        "candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "MAX_TOKENS" if cut else "STOP"}],
    },
    lambda vectors: {"embeddings": [{"values": vector} for vector in vectors]},
)
ALL = [OPENAI, OLLAMA, GEMINI]
