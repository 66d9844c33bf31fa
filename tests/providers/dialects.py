"""Each client with the answers that its server gives when all is well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ghost.providers.interfaces import EmbeddingsProvider, LLMProvider
from ghost.providers.model_server import ModelServer
from ghost.providers.server_models import ServerEmbeddings, ServerModel
from tests.providers.servers import KEY, Highest, WaitingClock

DIM = 3


@dataclass(frozen=True)
class Dialect:
    name: str
    text: Callable[..., Any]
    """The body that carries a text; `cut=True` when it was cut at the limit of tokens."""
    vectors: Callable[[list[Any]], Any]

    def model(self, url: str, clock: WaitingClock | None = None, seconds: float = 60.0) -> LLMProvider:
        return ServerModel(access(self.name, "m", url, clock or WaitingClock(), seconds))

    def embeddings(self, url: str, clock: WaitingClock | None = None, seconds: float = 60.0) -> EmbeddingsProvider:
        return ServerEmbeddings(access(self.name, "e", url, clock or WaitingClock(), seconds), DIM)


def access(
    provider: str, model: str, url: str, clock: WaitingClock, seconds: float = 60.0, key: str = KEY
) -> ModelServer:
    return ModelServer(provider, model, url, "GHOST_LLM_URL", key, "GHOST_LLM_KEY", seconds, clock, Highest())


def _openai_text(text: Any, cut: bool = False) -> Any:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "length" if cut else "stop"}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def _openai_vectors(vectors: list[Any]) -> Any:
    rows = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
    return {"object": "list", "model": "e", "data": rows, "usage": {"prompt_tokens": 1, "total_tokens": 1}}


OPENAI = Dialect("openai", _openai_text, _openai_vectors)
OLLAMA = Dialect("ollama", _openai_text, _openai_vectors)
GEMINI = Dialect(
    "gemini",
    lambda text, cut=False: {
        "candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "MAX_TOKENS" if cut else "STOP"}],
    },
    lambda vectors: {"embeddings": [{"values": vector} for vector in vectors]},
)
ANTHROPIC = Dialect(
    "anthropic",
    lambda text, cut=False: {
        "id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": text}],
        "stop_reason": "max_tokens" if cut else "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    lambda vectors: None,  # it has no embeddings
)  # fmt: skip
ALL = [OPENAI, OLLAMA, GEMINI]
CHAT = [*ALL, ANTHROPIC]
