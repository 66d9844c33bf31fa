"""The types of resources that a lab knows, and how they refer to each other: `azure_types.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ghost.policy import load_policy


@dataclass(frozen=True)
class BackReference:
    """What Azure writes at the other end of a reference."""

    holder: str
    """`TYPE` or `TYPE/PART`: who refers."""
    field: str
    """Of the holder's properties; `(owner)`: the resource that it is below."""
    other: str
    """`TYPE` or `TYPE/PART`: who is referred to."""
    back: str
    """Of the other's properties; no client sets it."""
    many: bool = False


_CONTENT: dict[str, Any] = load_policy(__file__, "azure_types.toml")
AZURE_TYPES: dict[str, str] = {
    name.casefold(): f"{provider}/{name}" for provider, names in _CONTENT["types"].items() for name in names.split()
}
"""The whole type by its last word, in lower case: `subnets` has none, it is a part."""
PARTS: dict[str, dict[str, str]] = {
    owner.casefold(): {part.casefold(): part for part in parts.split()} for owner, parts in _CONTENT["parts"].items()
}
"""Of each type, by its last word, the parts in its body: as Azure writes them by lower case."""


def _back_reference(row: str) -> BackReference:
    holder, field, other, back = row.split()
    return BackReference(holder, field, other, back.removesuffix("[]"), back.endswith("[]"))


BACK_REFERENCES: tuple[BackReference, ...] = tuple(map(_back_reference, _CONTENT["back_references"]))


def azure_type(name: str) -> str | None:
    return AZURE_TYPES.get(name.casefold())
