"""Validation of a server's vectors: number, size, finite values, and normalisation to length 1."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from ghost.errors import ProviderError


def unit_vectors(vectors: Any, *, count: int, dim: int, model: str) -> list[list[float]]:
    if not isinstance(vectors, list) or len(vectors) != count:
        got = len(vectors) if isinstance(vectors, list) else "no"
        raise ProviderError(
            f"{model} gave {got} vectors for {count} texts: name another model in GHOST_EMBED_MODEL.", transient=True
        )
    return [_unit_vector(vector, dim, model) for vector in vectors]


def batches(texts: Sequence[str], size: int) -> list[list[str]]:
    """Yield the texts in batches, in order. An empty text becomes a blank, since servers refuse empty ones."""
    remaining = iter([text or " " for text in texts])
    return [batch for _ in range(0, len(texts), size) if (batch := list(islice(remaining, size)))]


def _unit_vector(vector: Any, dim: int, model: str) -> list[float]:
    if not isinstance(vector, list) or not all(type(number) in (float, int) for number in vector):
        raise ProviderError(
            f"{model} gave a vector that is not a list of numbers: name another model in GHOST_EMBED_MODEL.",
            transient=True,
        )
    if len(vector) != dim:
        raise ProviderError(
            f"{model} gives vectors of {len(vector)} numbers, VECTOR_DIM is {dim}: set VECTOR_DIM={len(vector)}, or"
            " name another model in GHOST_EMBED_MODEL."
        )
    try:
        numbers = np.array(vector, dtype=np.float64)
    except OverflowError:
        numbers = np.array([np.inf])
    largest = float(np.max(np.abs(numbers)))
    if not np.isfinite(numbers).all() or largest == 0.0:
        raise ProviderError(
            f"{model} gave an invalid vector (infinite, not a number or all 0): set another GHOST_EMBED_MODEL.",
            transient=True,
        )
    numbers /= largest  # first: squares of very large or very small numbers leave the range
    unit: list[float] = (numbers / np.linalg.norm(numbers)).tolist()
    return unit
