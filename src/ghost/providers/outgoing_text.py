"""Providers on another machine get no secret: what they are sent goes through `for_outside` first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ghost.providers.interfaces import EmbeddingsProvider, LLMProvider, TextKind
from ghost.redaction import Placeholders, for_outside


class OutgoingModel:
    """A language model elsewhere. Its answers keep the placeholders that it was sent; they are not restored."""

    def __init__(self, model: LLMProvider, placeholders: Placeholders) -> None:
        self.name = model.name
        self._model = model
        self._placeholders = placeholders

    def generate(self, system: str, prompt: str, max_tokens: int, **kwargs: Any) -> str:
        sent = for_outside(prompt, self._placeholders)
        return self._model.generate(for_outside(system, self._placeholders), sent, max_tokens, **kwargs)


class OutgoingEmbeddings:
    """An embedding model elsewhere."""

    def __init__(self, model: EmbeddingsProvider, placeholders: Placeholders) -> None:
        self.name = model.name
        self.dim = model.dim
        self._model = model
        self._placeholders = placeholders

    def embed(self, texts: Sequence[str], kind: TextKind = "document") -> list[list[float]]:
        return self._model.embed([for_outside(text, self._placeholders) for text in texts], kind)
