"""What Ghost asks of a language model and of an embedding model, whoever serves it.

Calls block; who must not wait calls them from a thread. A provider retries what is worth retrying by itself, within its
timeout, and raises `ProviderError` with `transient` set where it gave up on something that may pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class LLMProvider(Protocol):
    name: str
    """What logs and pages call it: `stub`, `gemini/gemini-2.0-flash`."""

    def generate(self, system: str, prompt: str, max_tokens: int, **kwargs: Any) -> str:
        """The model's text. `json_schema=` asks for JSON of that schema. Raises `ProviderError`."""
        ...


class EmbeddingsProvider(Protocol):
    name: str
    """Names the space of its vectors (`stub2-128`, `gemini/gemini-embedding-001/768`): no two spaces compare."""

    dim: int

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector of `dim` numbers and length 1 for each text. Raises `ProviderError`."""
        ...
