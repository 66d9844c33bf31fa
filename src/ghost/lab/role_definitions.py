"""What a role allows: the built-in ones that a lab needs (`role_definitions.toml`), and those that a tenant defines."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from ghost.policy import load_policy


@dataclass(frozen=True)
class Role:
    name: str
    actions: tuple[str, ...] = ()
    """Patterns: Microsoft.Network/*."""
    not_actions: tuple[str, ...] = ()
    data_actions: tuple[str, ...] = ()
    """Of the content of blobs."""
    id: str | None = None
    """Of a built-in one."""

    def allows(self, action: str, *, of_data: bool) -> bool:
        if of_data:
            return _fits(action, self.data_actions)
        return _fits(action, self.actions) and not _fits(action, self.not_actions)


@cache
def built_in() -> tuple[Role, ...]:
    return load_policy(__file__, "role_definitions.toml", dict[str, tuple[Role, ...]])["roles"]


def _fits(action: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(action.casefold(), pattern.casefold()) for pattern in patterns)
