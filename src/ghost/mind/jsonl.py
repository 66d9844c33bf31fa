"""Memories as lines of JSON for `ghost export` and `ghost import`, for every store.

One memory per line, keys in the order of `Memory`. Embeddings are float32, written with enough digits to restore them
exactly, so an export of an import equals the file.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ghost.errors import RecordError, StoreError
from ghost.mind.data_model import Memory
from ghost.records import private_dir

LONGEST_LINE = 16_777_216
"""Maximum bytes of one memory; bounds reading of a file without line feeds."""


def line_of(memory: Memory) -> str:
    """Return the line without newline. Raises `StoreError` if a value is not JSON (`nan`, an object)."""
    fields: dict[str, Any] = memory.model_dump(mode="python")
    fields["type"] = memory.type.value
    fields["embedding"] = None
    try:
        text = json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(", ", ": "))
    except (TypeError, ValueError) as error:
        raise StoreError(
            f"the memory {memory.id} cannot be written as JSON ({error}): restore the database from a backup"
        ) from error
    return text.replace('"embedding": null', f'"embedding": [{_numbers(memory.embedding)}]', 1)


def _numbers(embedding: Sequence[float]) -> str:
    """Return numbers with nine digits, which identify every float32."""
    return ", ".join(["%.9g"] * len(embedding)) % tuple(embedding)


def memory_of(line: str) -> Memory:
    """Parse a line. Raises `ValueError` if it is not a memory."""
    fields = json.loads(line)
    if not isinstance(fields, dict):
        raise ValueError("it is not a JSON object")
    fields["embedding"] = tuple(fields.get("embedding", ()))
    fields["tags"] = tuple(fields.get("tags", ()))
    return Memory.model_validate(fields)


def write_jsonl(path: Path, memories: Iterable[Memory]) -> int:
    """Write all memories, or leave `path` unchanged. Returns their number. Raises `StoreError`."""
    count = 0
    temporary = None
    try:
        private_dir(path.parent)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            for count, memory in enumerate(memories, start=1):  # noqa: B007
                file.write(line_of(memory) + "\n")
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
        temporary = None
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except (OSError, RecordError, UnicodeEncodeError) as error:
        raise StoreError(f"cannot export to {path} ({error}): check the disk and the permissions") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
    return count


def read_jsonl(path: Path, check: Callable[[Memory], object]) -> Iterator[Memory]:
    """Yield memories. Raises `StoreError` with the line if it is not a memory or `check` rejects it."""
    number = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), start=1):  # noqa: B007
                if len(line) > LONGEST_LINE:
                    raise StoreError(f"it is longer than {LONGEST_LINE} bytes")
                memory = memory_of(line.decode("utf-8"))
                check(memory)
                yield memory
    except OSError as error:
        raise StoreError(
            f"cannot import {path} ({error.strerror or error}): name a file written by `ghost export`"
        ) from error
    except (ValueError, TypeError, RecursionError, StoreError) as error:
        raise StoreError(f"{path}, line {number}: {_why(error)}: nothing was imported") from error


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"not a memory ({'.'.join(map(str, first['loc'])) or 'fields'}: {first['msg']})"
    return str(error) if isinstance(error, StoreError) else f"not a memory ({error})"
