"""Admission of external text to the mind: secrets redacted, length bounded."""

from __future__ import annotations

import json
from typing import Any

from ghost.mind.data_model import Stimulus
from ghost.mind.thought_parsing import Redact

CONTENT_CHARS = 4000
METADATA_CHARS = 4000
_DEPTH = 6
_CUT = " … [cut]"


def encodable(redact: Redact) -> Redact:
    """Return the value with text that UTF-8 can encode; lone surrogates, possible in JSON, are replaced."""
    return lambda text: redact(text.encode("utf-8", "replace").decode("utf-8"))


def admitted(stimulus: Stimulus, redact: Redact) -> Stimulus:
    """Return the stimulus as stored. Redaction precedes truncation: a truncated secret may not be recognisable."""
    return stimulus.model_copy(
        update={
            "id": redact(stimulus.id)[:200],
            "source": redact(stimulus.source)[:200],
            "content": _bounded(redact(stimulus.content)),
            "metadata": _metadata(stimulus.metadata, redact),
        }
    )


def _bounded(text: str) -> str:
    return text if len(text) <= CONTENT_CHARS else text[: CONTENT_CHARS - len(_CUT)] + _CUT


def _metadata(metadata: dict[str, Any], redact: Redact) -> dict[str, Any]:
    cleaned = _without_secrets(metadata, redact, _DEPTH)
    try:
        fits = len(json.dumps(cleaned, allow_nan=False)) <= METADATA_CHARS
    except (TypeError, ValueError):
        fits = False
    return cleaned if fits else {"metadata": "left out: too large, or not JSON"}


def _without_secrets(value: Any, redact: Redact, depth: int) -> Any:
    if isinstance(value, str):
        return redact(value)
    if depth == 0:
        return None if isinstance(value, dict | list) else value
    if isinstance(value, dict):
        return {redact(str(name)): _named(str(name), inner, redact, depth) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_secrets(inner, redact, depth - 1) for inner in value]
    return value


def _named(name: str, value: Any, redact: Redact, depth: int) -> Any:
    """Return a value redacted together with its name: `password` identifies a secret that its value does not."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return _without_secrets(value, redact, depth - 1)
    line = f"{name}: {value}"
    return value if not isinstance(value, str) and redact(line) == line else _nested(redact(line), name, value, redact)


def _nested(line: str, name: str, value: Any, redact: Redact) -> str:
    head = f"{name}: "
    return line[len(head) :] if line.startswith(head) else redact(str(value))
