"""Ollama's API: `/api/chat` and `/api/embed` (https://github.com/ollama/ollama/blob/main/docs/api.md).

Needs `httpx2`; import this module late.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ghost.errors import ProviderError
from ghost.providers.embedding_vectors import batches, unit_vectors
from ghost.providers.model_output import ready
from ghost.providers.model_server import Access, ModelServer

BATCH = 64


class OllamaModel:
    def __init__(self, access: Access, model: str) -> None:
        self.name = f"ollama/{model}"
        self._model = model
        self._server = ModelServer(access)

    def generate(self, system: str, prompt: str, max_tokens: int, **kwargs: Any) -> str:
        schema = kwargs.get("json_schema")
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt}],
            "stream": False,
            "options": {"num_predict": max_tokens},
        }
        if schema is not None:
            body["format"] = schema

        def read(answer: dict[str, Any]) -> str:
            message = answer.get("message")
            if not isinstance(message, dict):
                raise ProviderError(f"{self.name} gave no message.", transient=True)
            cut = answer.get("done_reason") == "length"
            return ready(message.get("content"), model=self.name, json_schema=schema, cut=cut)

        return str(self._server.ask("/api/chat", body, read))


class OllamaEmbeddings:
    def __init__(self, access: Access, model: str, dim: int) -> None:
        self.name = f"ollama/{model}/{dim}"
        self.dim = dim
        self._model = model
        self._server = ModelServer(access)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [vector for batch in batches(texts, BATCH) for vector in self._embedded(batch)]

    def _embedded(self, batch: list[str]) -> list[list[float]]:
        def read(answer: dict[str, Any]) -> list[list[float]]:
            return unit_vectors(answer.get("embeddings"), count=len(batch), dim=self.dim, model=self.name)

        vectors: list[list[float]] = self._server.ask("/api/embed", {"model": self._model, "input": batch}, read)
        return vectors
