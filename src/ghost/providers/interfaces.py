"""Interfaces of language models and embedding models.

Calls block; run them in a thread if needed. A provider retries what is worth retrying within its timeout, then raises
`ProviderError` with `transient` set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class LLMProvider(Protocol):
    name: str
    """Name in logs and pages: `stub`, `gemini/gemini-2.0-flash`."""

    def generate(self, system: str, prompt: str, max_tokens: int, **kwargs: Any) -> str:
        """Return the model's text. `json_schema=` requests JSON of that schema. Raises `ProviderError`."""
        ...


class EmbeddingsProvider(Protocol):
    name: str
    """Names the space of its vectors (`stub2-128`, `gemini/gemini-embedding-001/768`): no two spaces compare."""

    dim: int

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector of `dim` numbers and length 1 per text. Raises `ProviderError`."""
        ...
