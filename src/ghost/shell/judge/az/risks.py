"""Risks of az commands, and reads that return secrets: `policy/az_risky_reads.toml`.

Explanations of commands that are not reads are in `policy/az_risks.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ghost.patterns import lazy


@dataclass(frozen=True)
class ProjectedRead:
    """A read whose answer holds secrets beside fields that hold none."""

    why: str
    fields: frozenset[str]
    through: frozenset[str]
    """Objects that are not taken whole, but fields of theirs."""
    shown: tuple[str, ...]
    """Those that tell most, for the explanation."""
    whole_as: frozenset[str]
    """Formats in which the whole answer shows no secret: it is left out, or has a name that redaction is certain of."""

    @property
    def safe(self) -> str:
        """One sentence on which part of the answer is SAFE."""
        if self.fields:
            return f"SAFE is a --query of these fields alone: {' '.join(sorted(self.fields))}."
        return f"SAFE is the whole answer, without a --query, as {', '.join(sorted(self.whole_as))}."

    def query(self, path: str) -> str:
        """A query that is SAFE."""
        shape = ",".join(f"{field}:{field}" for field in self.shown)
        return f"[].{{{shape}}}" if path.endswith(" list") else f"{{{shape}}}"


@dataclass(frozen=True)
class Risks:
    """`az_risky_reads.toml` decides; `az_risks.toml` only has words for what is no read anyway."""

    secrets: tuple[tuple[re.Pattern[str], str], ...]
    beginnings: Mapping[str, str]
    verbs: Mapping[str, str]
    groups: Mapping[str, str]
    options: Mapping[str, str]
    projected: Mapping[str, ProjectedRead]
    needs: Mapping[str, tuple[str, str]]
    """Of a read that acts without it: the option, and why."""
    clear: frozenset[str]
    """Reads within a family that holds secrets, which hold none."""

    def of_reading(self, path: str) -> str | None:
        """Why a read is not SAFE; None where it is."""
        if path in self.projected or path in self.clear or path in self.needs:
            return None
        head = path[:200]
        for pattern, why in self.secrets:
            if pattern.match(f"{head} "):
                return why
        while head:
            if head in self.beginnings:
                return self.beginnings[head]
            head = head.rpartition(" ")[0]
        return None

    def of_path(self, path: str) -> str | None:
        """What an az command that is not SAFE does, derived from its words; None if unknown."""
        words = path[:200].split() or [""]
        if of_group := self.groups.get(" ".join(words[:2])) or self.groups.get(words[0]):
            return of_group
        verb = next((self.verbs[word] for word in reversed(words) if word in self.verbs), None)
        why = self.of_reading(path)
        if why is not None and (verb is None or words[-1] not in self.verbs or why.startswith("prints")):
            return f"may only read, but {why}"
        return verb


def parse_risks(risky: Mapping[str, Any], words: Mapping[str, Any]) -> Risks:
    return Risks(
        secrets=tuple((lazy(f"(?:{row['path']}) "), row["why"]) for row in risky["secret"]),
        beginnings={
            beginning: row["why"]
            for family in ("holds", "acts", "private")
            for row in risky[family]
            for beginning in row["path"].split(", ")
        },
        verbs=words["verbs"],
        groups={path: why for paths, why in words["groups"].items() for path in paths.split(", ")},
        options={name: why for names, why in words["options"].items() for name in names.split(", ")},
        projected={
            path: ProjectedRead(
                why=row["why"],
                fields=frozenset(row["fields"].split()),
                through=frozenset(row.get("through", "").split()),
                shown=tuple(row["shown"].split()),
                whole_as=frozenset(row.get("whole_as", "").split()),
            )
            for row in risky["projected"]
            for path in row["path"].split(", ")
        },
        needs={path: (row["option"], row["why"]) for row in risky["needs"] for path in row["path"].split(", ")},
        clear=frozenset(path for row in risky["clear"] for path in row["path"].split(", ")),
    )
