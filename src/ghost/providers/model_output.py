"""Cleaning of a model's answer: reasoning removed, JSON parsed if requested."""

from __future__ import annotations

import json
import re
from typing import Any

from ghost.errors import UnusableAnswer

_NOTES = re.compile(r"\A\s*<think>.*?</think>\s*", re.DOTALL)
_FENCED = re.compile(r"\A```(?:json)?[ \t]*\n(.*?)\n?```\Z", re.DOTALL)


def ready(text: Any, *, model: str, json_schema: Any, cut: bool) -> str:
    """Return the answer. `cut`: the model stopped at `max_tokens`. Raises `UnusableAnswer` for an unusable answer."""
    if not isinstance(text, str) or not (answer := _NOTES.sub("", text, count=1).strip()):
        why = "used all its tokens before it answered: raise the limit" if cut else "gave an empty answer"
        raise UnusableAnswer(f"{model} {why}.", transient=not cut)
    answer = answer.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair cannot be stored
    if json_schema is None:
        return answer
    if cut:
        raise UnusableAnswer(f"{model} reached its token limit in the middle of its JSON: raise the limit.")
    fenced = _FENCED.match(answer)
    answer = fenced[1] if fenced else answer
    try:
        parsed_json(answer)
    except ValueError as error:
        raise UnusableAnswer(f"{model} was asked for JSON and gave another format ({error}).", transient=True) from None
    return answer


def parsed_json(text: str | bytes) -> Any:
    """Parse JSON. Raises `ValueError` with a reason that repeats nothing of the text."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at character {error.pos}") from None
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    except ValueError:
        raise ValueError("a number that is too long") from None
