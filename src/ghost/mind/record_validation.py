"""Validation of records before any store writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ghost.errors import StoreError
from ghost.mind.data_model import Memory, Query, Task, Thought
from ghost.mind.vector_search import Floats

_ID_CHARACTERS = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_YEAR_10000 = 253_402_300_800.0
"""Maximum epoch seconds (year 9999)."""


def embedding_of(memory: Memory, space: str, dim: int) -> Floats | None:
    """Return the embedding. Raises `StoreError` if the memory cannot be stored. `space`, `dim`: of the store."""
    if not 0 < len(memory.id) <= _ID_CHARACTERS or _CONTROL.search(memory.id):
        raise StoreError(
            f"a memory's id {memory.id[:40]!a} is not 1 to {_ID_CHARACTERS} characters without control characters: "
            "it could not be requested"
        )
    json_of(memory.metadata, f"the metadata of {memory.id!a}")
    try:
        "".join((memory.id, memory.content, *memory.tags)).encode()
    except UnicodeEncodeError as error:
        raise StoreError(f"the memory {memory.id!a} has text that is not Unicode ({error})") from error
    if not are_times(memory.created_at, memory.last_access):
        raise StoreError(f"the memory {memory.id!a} has a time that is not between the years 1970 and 9999")
    if not memory.embedding:
        return None
    if not memory.embedding_model:
        raise StoreError(f"the memory {memory.id} has an embedding and does not name its model")
    is_compared = memory.embedding_model == space
    return vector_of(memory.embedding, dim if is_compared else None, f"the embedding of {memory.id}")


def vector_of(numbers: Sequence[float], dim: int | None, of: str) -> Floats:
    """Return the vector. Raises `StoreError` if its numbers are not finite or not `dim` many."""
    vector = np.asarray(numbers, dtype=np.float32)
    if vector.ndim != 1 or (dim is not None and len(vector) != dim):
        raise StoreError(f"{of} has {vector.size} numbers, and this memory compares vectors of {dim}")
    if not np.isfinite(vector).all():
        raise StoreError(f"{of} has a number that is not finite")
    return vector + np.float32(0.0)  # no -0.0, which no number in JSON stands for


def are_times(*values: object) -> bool:
    return all(isinstance(at, int | float) and 0.0 <= at < _YEAR_10000 for at in values)


def json_of(value: Any, of: str) -> bytes:
    """Return the JSON. Raises `StoreError` if the value is not JSON (`nan`, an object) or not Unicode."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"{of} cannot be kept as JSON ({error})") from error


def body_of(record: Thought | Task | Query) -> bytes:
    """Return the JSON of a record. Raises `StoreError` like `json_of`."""
    try:
        return record.model_dump_json().encode()
    except ValueError as error:
        raise StoreError(f"{record.id!a} cannot be kept as JSON ({error})") from error
