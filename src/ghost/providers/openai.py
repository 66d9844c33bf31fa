"""Any server with OpenAI's API: `/chat/completions` and `/embeddings` (OpenAI, vLLM, LM Studio, llama.cpp).

https://platform.openai.com/docs/api-reference. Needs `httpx2`; import this module late.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ghost.errors import ProviderError
from ghost.providers.embedding_vectors import batches, unit_vectors
from ghost.providers.model_output import ready
from ghost.providers.model_server import Access, ModelServer

BATCH = 64


class OpenAIModel:
    def __init__(self, access: Access, model: str) -> None:
        self.name = f"openai/{model}"
        self._model = model
        self._server = ModelServer(access)
        self._limit = "max_tokens"

    def generate(self, system: str, prompt: str, max_tokens: int, **kwargs: Any) -> str:
        schema = kwargs.get("json_schema")
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt}],
        }
        if schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}

        def read(answer: dict[str, Any]) -> str:
            return self._text(answer, schema)

        try:
            return str(self._server.ask("/chat/completions", {**body, self._limit: max_tokens}, read))
        except ProviderError as error:
            # Models that reason know the limit by another name, other servers by the old one only.
            if self._limit == "max_completion_tokens" or "max_completion_tokens" not in str(error):
                raise
        self._limit = "max_completion_tokens"
        return str(self._server.ask("/chat/completions", {**body, self._limit: max_tokens}, read))

    def _text(self, answer: dict[str, Any], schema: Any) -> str:
        choices = answer.get("choices")
        if not isinstance(choices, list) or not choices:
            raise ProviderError(f"{self.name} gave no choices.", transient=True)
        choice = choices[0]
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict):
            raise ProviderError(f"{self.name} gave a choice without a message.", transient=True)
        if choice.get("finish_reason") == "content_filter" or message.get("refusal"):
            raise ProviderError(f"{self.name} refused to answer (content filter).")
        cut = choice.get("finish_reason") == "length"
        return ready(message.get("content"), model=self.name, json_schema=schema, cut=cut)


class OpenAIEmbeddings:
    def __init__(self, access: Access, model: str, dim: int) -> None:
        self.name = f"openai/{model}/{dim}"
        self.dim = dim
        self._model = model
        self._server = ModelServer(access)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [vector for batch in batches(texts, BATCH) for vector in self._embedded(batch)]

    def _embedded(self, batch: list[str]) -> list[list[float]]:
        def read(answer: dict[str, Any]) -> list[list[float]]:
            return unit_vectors(_in_order(answer.get("data")), count=len(batch), dim=self.dim, model=self.name)

        body = {"model": self._model, "input": batch, "encoding_format": "float"}
        vectors: list[list[float]] = self._server.ask("/embeddings", body, read)
        return vectors


def _in_order(rows: Any) -> list[Any] | None:
    """Return the vectors by their `index`; `None` if the indices do not match the texts."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return None
    indices = [row.get("index", position) for position, row in enumerate(rows)]
    if not all(type(index) is int for index in indices) or sorted(indices) != list(range(len(rows))):
        return None
    by_index = dict(zip(indices, rows, strict=True))
    return [by_index[index].get("embedding") for index in range(len(rows))]
