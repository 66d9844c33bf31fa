"""What a model's texts begin with, as queries and as documents (`embedding_prefixes.toml`)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from hashlib import sha256
from importlib.resources import files

from ghost.providers.interfaces import TextKind


@dataclass(frozen=True)
class QueryForm:
    query: str = ""
    document: str = ""

    def prefix(self, kind: TextKind) -> str:
        return self.query if kind == "query" else self.document

    @property
    def mark(self) -> str:
        """Part of the name of the space: vectors of texts with another beginning do not compare. Empty without one."""
        if not (self.query or self.document):
            return ""
        return "/" + sha256(f"{self.query}\0{self.document}".encode()).hexdigest()[:6]


def query_form(model: str) -> QueryForm:
    return next((form for pattern, form in _forms() if fnmatchcase(model.lower(), pattern)), QueryForm())


@cache
def _forms() -> list[tuple[str, QueryForm]]:
    rows = tomllib.loads((files("ghost.providers") / "embedding_prefixes.toml").read_text(encoding="utf-8"))["form"]
    return [(row["model"], QueryForm(row.get("query", ""), row.get("document", ""))) for row in rows]
