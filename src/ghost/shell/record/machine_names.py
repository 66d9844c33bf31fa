"""Names of machines in text, as whole words and as parts of others: `web-01` in `web-01-nic` and `web-01.corp.example`.

Learned from the ids of the machines. Each text is read once, however many names are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ghost.azure import is_word_of_az
from ghost.patterns import lazy

_OF_MACHINE = lazy(
    r"/providers/Microsoft\.(?:Compute/virtualMachines|Compute/virtualMachineScaleSets|HybridCompute/machines)/([^/]+)",
    re.IGNORECASE,
)
_WORD = lazy(r"\[[A-Z_]{1,30}_\d{1,9}(?:_[A-Z]+)?\]|[A-Za-z0-9]+(?:[._-]+[A-Za-z0-9]+)*+")
_PART = lazy(r"[a-z0-9]+")


def machine_of(resource_id: str) -> str | None:
    """The machine that an id names. None also for what tells nothing: a number, or a word of az (`web`, `db`)."""
    match = _OF_MACHINE.search(resource_id)
    name = match[1].rstrip("._-") if match is not None else ""
    tells = len(name) > 2 and not name.isdecimal() and not is_word_of_az(name.lower())
    return name if tells and not name.startswith("[") else None


class MachineNames:
    """Names in any case. Their placeholders are not looked at again."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._first_parts: set[str] = set()

    def add(self, name: str) -> None:
        self._names.add(name.lower())
        self._first_parts.add(_PART.findall(name.lower())[0])

    def replaced(self, text: str, placeholder_of: Callable[[str], str]) -> str:
        """`text` with what `placeholder_of` gives for each name in lower case, the longest first."""
        if not self._names:
            return text
        return _WORD.sub(lambda match: self._in_word(match[0], placeholder_of), text)

    def _in_word(self, word: str, placeholder_of: Callable[[str], str]) -> str:
        lowered = word.lower()
        parts = [part.span() for part in _PART.finditer(lowered)]
        if word.startswith("[") or not any(lowered[a:b] in self._first_parts for a, b in parts):
            return word
        written, done = "", 0
        for start, _ in parts:
            ends = (end for _, end in reversed(parts) if end > start >= done)
            end = next((end for end in ends if lowered[start:end] in self._names), None)
            if end is not None:
                written += word[done:start] + placeholder_of(lowered[start:end])
                done = end
        return written + word[done:]
