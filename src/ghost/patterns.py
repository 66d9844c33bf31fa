"""Regular expressions that are compiled when they are first used: a table of hundreds costs nothing at start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast


class _LazyPattern:
    """Stands for a `re.Pattern` until one of its methods is asked for; from then on it has that pattern's methods.

    Two threads may compile the same pattern at once; both get the one that `re` caches, or an equal one.
    """

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(self._source, self._flags)
        for method in ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split", "groupindex"):
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


if TYPE_CHECKING:
    lazy = re.compile
else:

    def lazy(source: str | bytes, flags: int = 0) -> re.Pattern[str]:
        """The pattern that `re.compile` makes, compiled when it is first used.

        `re.error` is raised then too, so a test compiles every pattern of a table.
        """
        return cast("re.Pattern[str]", _LazyPattern(source, flags))
