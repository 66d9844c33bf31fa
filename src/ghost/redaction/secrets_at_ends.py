"""Secrets that a text ends in: what would tell them was never printed, as the `@` behind a login in a URL.

A text that ends inside a line may be a part of one: its end is read as it may have gone on. Which ends those are, and
what may have followed, is `[[ending]]` of `redaction.toml`. Only the last lines are looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ghost.redaction.secret_values import MARKER, POLICY, Counts

Redact = Callable[[str, Counts], str]

_REACH = 2_048


@dataclass(frozen=True)
class Ending:
    """An end that is looked for, and what may have followed it; nothing where a group of `when` is the secret."""

    when: re.Pattern[str]
    add: tuple[str, ...]
    must: tuple[str, ...]
    must_not: tuple[str, ...]


def redact_end(text: str, counts: Counts, redact: Redact) -> str:
    """`text` without a secret that it ends in; as it is where it ends with a line."""
    if not text or text.endswith("\n"):
        return text
    start = _start_of_end(text)
    end = text[start:]
    for ending in ENDINGS:
        if (found := ending.when.search(end)) is None:
            continue
        if found.lastgroup is not None and not found[found.lastgroup].startswith("[REDACTED"):
            end = end[: found.start(found.lastgroup)] + MARKER
            counts["password"] += 1
        for added in ending.add:
            end = _as_if_followed(end, added, counts, redact)
    return text[:start] + end


def _start_of_end(text: str) -> int:
    """Where the last lines begin, as many as are looked at; of a longer one, where one of its words does."""
    earliest = max(0, len(text) - _REACH)
    if earliest == 0:
        return 0
    edge = text.find("\n", earliest) + 1 or text.find(" ", earliest) + 1
    return edge or earliest


def _as_if_followed(end: str, added: str, counts: Counts, redact: Redact) -> str:
    """`end` without what is a secret once `added` stands behind it, and only then."""
    found: Counts = Counter()
    followed = redact(end + added, found)
    if not found or followed == redact(end, Counter()) + added:
        return end
    counts += found
    return followed.removesuffix(added)


def _load_endings(policy: dict[str, Any]) -> Iterator[Ending]:
    for row in policy["ending"]:
        yield Ending(re.compile(row["when"]), tuple(row.get("add", ())), tuple(row["must"]), tuple(row["must_not"]))


ENDINGS = tuple(_load_endings(POLICY))
