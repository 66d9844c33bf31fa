"""The checks made before a capture is created, as data with their commands.

A check passes, fails, or cannot be made. A failed check ends the task before anything exists, with its remedy; one that
cannot be made does so only if it is required; for the others the creation itself decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from ghost.policy import load_policy


class Check(StrEnum):
    MACHINE = "machine"
    CAPTURES = "captures"
    IDENTITY = "identity"
    ACCOUNT = "account"
    SUBNET = "subnet"
    ROLE = "role"
    STORAGE = "storage"
    BLOBS = "blobs"
    ROUTES = "routes"
    GATES = "gates"


@dataclass(frozen=True)
class CheckCommand:
    """One row of the table: the words of a command, some of them `$names` of known facts."""

    check: Check
    words: tuple[str, ...]
    why: str
    target_types: frozenset[str] = frozenset({"vm", "vmss"})
    required: bool = False
    in_subscription: bool = False
    login_only: bool = False
    """Plays no part where the account is read with its key."""
    needs: str | None = None
    """The field of a task without which it plays no part."""
    unless: Check | None = None
    """The check that, passed, makes it superfluous."""

    def filled(self, known: Mapping[str, str | None]) -> list[str] | str:
        """Return the argument list, or the name of a missing fact."""
        words: list[str] = []
        for word in self.words:
            if not word.startswith("$"):
                words.append(word)
                continue
            value = known.get(word[1:])
            if not value:
                return word[1:].replace("_", " ")
            words.append(value)
        subscription = known.get("subscription")
        return [*words, "--subscription", subscription] if self.in_subscription and subscription else words


@cache
def checks() -> tuple[CheckCommand, ...]:
    """Return the table in the order of the checks."""
    return load_policy(__file__, "preflight.toml", dict[str, tuple[CheckCommand, ...]])["checks"]


def of_target(target_type: str | None) -> tuple[CheckCommand, ...]:
    return tuple(row for row in checks() if target_type in row.target_types)


def after(check: Check | None, target_type: str | None) -> tuple[CheckCommand, ...]:
    """Return the checks after `check`; all of them for None."""
    rows = of_target(target_type)
    made = [row.check for row in rows]
    return rows if check is None else rows[made.index(check) + 1 :]


def required(check: Check) -> bool:
    return any(row.required for row in checks() if row.check is check)
