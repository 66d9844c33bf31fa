"""Embeddings without a model: hashed features of words, of what identifiers hold, and of character n-grams.

A feature goes to four places of the vector with a sign each, both from its SHA-256. Two texts are as near as the
features they share; nothing is learnt, and nothing is known of how rare a word is. The same text gives the same vector
on every machine.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import pairwise
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from ghost.providers.stub.terms import content_terms, inner_terms, same_words, terms

Vector = NDArray[np.float32]

WORD, MEANING, INNER, PAIR, LETTERS = 1.0, 1.0, 0.6, 0.35, 0.5
"""Weights: the word itself, its group of words that mean the same, what an identifier holds, two words in a row, and
all n-grams of a word together. A word weighs 1 with all that it brings, an identifier no more than any other."""

PLACES = 4
CACHE_BYTES = 32 * 2**20


class StubEmbeddings:
    """`dim` numbers, length 1. Safe to call from threads. Keeps the vectors of the words last seen, up to 32 MiB."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.name = f"stub-{dim}"
        self._words = _Kept(CACHE_BYTES // (4 * dim + 200))
        self._pairs = _Kept(CACHE_BYTES // (4 * dim + 200) // 4)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._embedded(text).tolist() for text in texts]

    def _embedded(self, text: str) -> Vector:
        found = content_terms(text) or terms(text)
        vector = np.zeros(self.dim, dtype=np.float32)
        for term, times in Counter(found).items():
            vector += np.float32(1 + log(times)) * self._word(term)
        for pair, times in Counter(pairwise(found)).items():
            vector += np.float32(1 + log(times)) * self._pair(*pair)
        length = float(np.linalg.norm(vector))
        if length < 1e-6:  # nothing in it is a word: equal texts are still equal
            vector = hashed([("text", text, 1.0)], self.dim)
            length = float(np.linalg.norm(vector))
        return vector / np.float32(length)

    def _word(self, term: str) -> Vector:
        vector = self._words.get(term)
        if vector is None:
            vector = self._words.keep(term, hashed(_features(term), self.dim))
        return vector

    def _pair(self, first: str, second: str) -> Vector:
        key = f"{first} {second}"
        vector = self._pairs.get(key)
        if vector is None:
            meanings = same_words()
            text = f"{meanings.get(first, first)} {meanings.get(second, second)}"
            vector = self._pairs.keep(key, hashed([("pair", text, PAIR)], self.dim))
        return vector


def hashed(features: list[tuple[str, str, float]], dim: int) -> Vector:
    """The sum of features (kind, text, weight), each in `PLACES` places of a vector of `dim`, one in each quarter: no
    feature meets itself."""
    vector = np.zeros(dim, dtype=np.float32)
    for kind, text, weight in features:
        digest = sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).digest()
        share = weight / sqrt(PLACES)
        for place in range(PLACES):
            word = int.from_bytes(digest[8 * place : 8 * place + 8], "little")
            begin, end = place * dim // PLACES, (place + 1) * dim // PLACES
            vector[begin + (word >> 1) % (end - begin)] += share if word & 1 else -share
    return vector


def _features(term: str) -> list[tuple[str, str, float]]:
    features = [("word", term, WORD)]
    meanings = same_words()
    if (meaning := meanings.get(term)) is not None:
        features.append(("meaning", meaning, MEANING))
    inner = inner_terms(term)
    weight = INNER if len(inner) <= 4 else 2 * INNER / sqrt(len(inner))
    features += [("word", part, weight) for part in inner]
    features += [("meaning", meanings[part], weight * MEANING) for part in inner if part in meanings]
    grams = list(_grams(term))
    features += [("gram", gram, LETTERS / sqrt(len(grams))) for gram in grams]
    whole = sqrt(sum(weight**2 for _, _, weight in features))
    return [(kind, text, weight / whole) for kind, text, weight in features]


def _grams(term: str) -> Iterator[str]:
    """Three and four letters in a row, with the word's ends marked. Numbers that look alike are not alike."""
    if not any(character.isalpha() for character in term):
        return
    marked = f"<{term}>"
    for size in (3, 4):
        for start in range(min(len(marked) - size + 1, 64)):
            yield marked[start : start + size]


class _Kept:
    """The vectors used last, at most `bound` of them."""

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
