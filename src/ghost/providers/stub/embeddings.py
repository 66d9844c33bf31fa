"""Embeddings without a model: concepts of a text, and hashed features of its words.

The first half of the vector holds concepts (`concepts.txt`), one dimension each, so that paraphrases are similar. In
the second half each word stem, and each part of an identifier, adds to four dimensions with a sign, from its SHA-256.
There is no training and no word frequency. The same text gives the same vector on every machine.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from ghost.providers.interfaces import TextKind
from ghost.providers.stub.concept_index import concepts, concepts_of, stem
from ghost.providers.stub.tokenizer import content_terms, inner_terms, terms

Vector = NDArray[np.float32]

CONCEPT, STEM, INNER = 1.0, 0.4, 0.6
"""Weights within a word: what it is about, shared among its concepts; beside that, the word itself; and what an
identifier holds."""
UNNAMED = 0.8
"""What a word or identifier weighs, with all that it brings, that names no concept; one that does weighs 1."""

PLACES = 4
CACHE_BYTES = 32 * 2**20
SPACE = "stub2"
"""Changed whenever the vector of a text changes, so that stored vectors are replaced."""


class StubEmbeddings:
    """`dim` numbers, at least 8, length 1. Thread-safe. Caches the vectors of recent words, up to 32 MiB."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.name = f"{SPACE}-{dim}"
        self._words = _VectorCache(CACHE_BYTES // (4 * dim + 200))

    def embed(self, texts: Sequence[str], kind: TextKind = "document") -> list[list[float]]:  # noqa: ARG002 - one form
        return [self._embedded(text).tolist() for text in texts]

    def _embedded(self, text: str) -> Vector:
        found = content_terms(text) or terms(text)
        vector = np.zeros(self.dim, dtype=np.float32)
        for term, times in Counter(found).items():
            vector += np.float32(1 + log(times)) * self._word(term)
        for first, second in dict.fromkeys(pairwise(found)):
            _add_concepts(vector, concepts_of(f"{first}-{second}"), CONCEPT)
        length = float(np.linalg.norm(vector))
        if length < 1e-6:  # nothing in it is a word: equal texts are still equal
            vector = hashed([("text", text, 1.0)], self.dim)
            length = float(np.linalg.norm(vector))
        return vector / np.float32(length)

    def _word(self, term: str) -> Vector:
        vector = self._words.get(term)
        if vector is None:
            vector = self._words.keep(term, _word_vector(term, self.dim))
        return vector


def hashed(features: list[tuple[str, str, float]], dim: int) -> Vector:
    """Return the sum of features (kind, text, weight), each in `PLACES` dimensions of a vector of `dim`, one in each
    quarter of the non-concept part.
    """
    vector = np.zeros(dim, dtype=np.float32)
    free = _concept_places(dim)
    for kind, text, weight in features:
        digest = sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).digest()
        share = weight / sqrt(PLACES)
        for place in range(PLACES):
            word = int.from_bytes(digest[8 * place : 8 * place + 8], "little")
            begin, end = (free + quarter * (dim - free) // PLACES for quarter in (place, place + 1))
            vector[begin + (word >> 1) % (end - begin)] += share if word & 1 else -share
    return vector


def _concept_places(dim: int) -> int:
    return min(dim // 2, len(concepts()))


def _word_vector(term: str, dim: int) -> Vector:
    inner, concept_numbers = inner_terms(term), concepts_of(term)
    weight = INNER / sqrt(max(1.0, len(inner) / 2))
    stems = [("word", stem(term), STEM if concept_numbers else 1.0), *(("word", stem(part), weight) for part in inner)]
    vector = hashed(stems, dim)
    _add_concepts(vector, concept_numbers, CONCEPT)
    for part in inner:
        _add_concepts(vector, concepts_of(part), weight * CONCEPT)
    length = np.linalg.norm(vector)
    return vector * np.float32((1.0 if concept_numbers else UNNAMED) / length) if length > 1e-6 else vector


def _add_concepts(vector: Vector, concept_numbers: Sequence[int], weight: float) -> None:
    """Add concepts; in a small space some share a dimension, with alternating signs."""
    places = _concept_places(len(vector))
    for number in concept_numbers:
        turn, place = divmod(number, places)
        vector[place] += weight / sqrt(len(concept_numbers)) * (-1 if turn % 2 else 1)


class _VectorCache:
    """A cache of the last `bound` vectors used."""

    def __init__(self, bound: int) -> None:
        self._bound = max(bound, 1)
        self._vectors: OrderedDict[str, Vector] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._vectors)

    def get(self, key: str) -> Vector | None:
        with self._lock:
            vector = self._vectors.get(key)
            if vector is not None:
                self._vectors.move_to_end(key)
            return vector

    def keep(self, key: str, vector: Vector) -> Vector:
        with self._lock:
            self._vectors[key] = vector
            if len(self._vectors) > self._bound:
                self._vectors.popitem(last=False)
        return vector
