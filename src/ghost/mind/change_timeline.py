"""What was changed on a resource before a time: from told memories and from activity logs that investigations read.

A change is a pointer, never evidence: its record, if it has one, belongs to another investigation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from ghost.mind.facts_in_text import mentions
from ghost.mind.long_term_memory import LongTermMemory
from ghost.mind.retention import DAY
from ghost.mind.store import Filter
from ghost.mind.told_facts import CHANGE, TOLD
from ghost.mind.told_times import moment_told

CHANGES: Final = "changes"
"""In the metadata of an investigation's episode: its changes as rows."""
MAX_CHANGES: Final = 12
_CHANGED: Final = re.compile(r"(\S{1,200}?)(?: of \S{1,200})?\.?$")
"""The resource at the end of `somebody changed securityRules deny-pg of db-nsg.`"""


@dataclass(frozen=True)
class ResourceChange:
    at: float
    """Epoch seconds: when it was changed."""
    what: str
    audit_ids: str = ""
    resource: str = ""
    """The name by which it was found."""
    source: str = ""
    """Who told it: `told by cli`, or `activity log, SESSION`."""
    memory_id: str = ""
    is_told_at: bool = False
    """True if `at` is when somebody told of it, in words that say no time."""

    def as_row(self) -> dict[str, Any]:
        row = asdict(self)
        return {name: row[name] for name in ("at", "what", "audit_ids")}


def changed_before(
    memory: LongTermMemory, text: str, network: str, at: float, *, seconds: float = DAY
) -> list[ResourceChange]:
    """Return what was changed on the resources that `text` names in the `seconds` before `at`, newest first.

    Investigations of another kind of network are left out. Changes that one found on its path belong to the names of
    its symptom too. Raises `StoreError`.
    """
    names = mentions(text).resources
    if not names:
        return []
    where = Filter(tags=frozenset({CHANGE}), since=at - seconds, until=at + 1)
    found: dict[tuple[int, str], ResourceChange] = {}
    for remembered in memory.store.memories(where, with_embeddings=False):
        known = remembered.metadata
        told = TOLD in remembered.tags
        if not told and network_tag(network) not in remembered.tags:
            continue
        for change in _told(known, remembered.content) if told else _logged(known, names):
            resource = change.resource or next(iter(sorted(names & mentions(change.what).words)), "")
            if resource and at - seconds <= change.at <= at + 1:
                key = int(change.at), change.what
                found[key] = replace(change, resource=resource, memory_id=remembered.id)
    return sorted(found.values(), key=lambda change: change.at, reverse=True)[:MAX_CHANGES]


def network_tag(network: str) -> str:
    """Return the tag of a kind of network: a lab's results do not apply to a tenant, nor the reverse."""
    return "network:lab" if network.startswith("lab ") else "network:azure"


def _told(known: Mapping[str, Any], content: str) -> Iterator[ResourceChange]:
    told_at = float(known.get("ts") or 0.0)
    moment = moment_told(content, told_at)
    source = f"told by {known.get('source') or 'somebody'}"
    yield ResourceChange(told_at if moment is None else moment, content, source=source, is_told_at=moment is None)


def _logged(known: Mapping[str, Any], names: Set[str]) -> Iterator[ResourceChange]:
    on_path = next(iter(sorted(names & mentions(str(known.get("symptom", ""))).resources)), "")
    source = f"activity log, {known.get('session_id') or 'an earlier investigation'}"
    for row in known.get(CHANGES) or ():
        what = str(row["what"])
        changed = _CHANGED.search(what)
        resource = changed[1] if changed and on_path else ""
        yield ResourceChange(float(row["at"]), what, str(row.get("audit_ids") or ""), resource, source)
