"""Edits: what a scenario changes in its base world, what mends a fault, and what `az` changed in a running lab.

Of a resource in Azure's own words (`put`, `patch`, `delete`), of a machine's inside, of the wire, of a service, or of
any other field of the world.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ghost.errors import LabError
from ghost.lab.wire.conditions import ServiceFault, WireFault
from ghost.policy import from_dict, to_dict

if TYPE_CHECKING:
    from ghost.lab.world import Machine, World

    Item = TypeVar("Item", Machine, World)


@dataclass(frozen=True)
class Edit:
    """One of `put`, `patch`, `delete`, `machine`, `wire`, `service` and `world`."""

    put: str | None = None
    """The resource or part to create or replace: `TYPE/NAME[/PART/NAME]`, or an id."""
    patch: str | None = None
    """The resource or part of which `properties` and `more` replace what they name."""
    delete: str | None = None
    properties: dict[str, Any] = field(default_factory=dict)
    """In Azure's own words; `TYPE/NAME` in a text is replaced by the id."""
    more: dict[str, Any] = field(default_factory=dict)
    """What stands beside the properties: `sku`, `tags`, `zones`, `kind`."""
    group: str | None = None
    """Resource group of a new resource; default: the world's first."""
    machine: str | None = None
    """A machine of which `set` replaces fields: `power`, `listeners`, `iptables` ..."""
    set: dict[str, Any] = field(default_factory=dict)
    wire: dict[str, Any] = field(default_factory=dict)
    """Conditions between two ends, in place of those that they had."""
    service: dict[str, Any] = field(default_factory=dict)
    """How a service behaves, in place of how it did."""
    world: dict[str, Any] = field(default_factory=dict)
    """Other fields of the world."""

    @property
    def resource(self) -> str | None:
        return self.put or self.patch or self.delete


OPERATIONS = ("put", "patch", "delete", "machine", "wire", "service", "world")


def edited(world: World, edits: Iterable[Edit], place: str = "edits") -> World:
    """Return a world after the edits, in their order. Raises `LabError` that begins with the place of a wrong one."""
    for number, edit in enumerate(edits):
        world = _edited(world, edit, f"{place}[{number}]")
    return world


def _edited(world: World, edit: Edit, place: str) -> World:
    stated = [name for name in OPERATIONS if getattr(edit, name)]
    if len(stated) != 1:
        raise LabError(f"{place}: give one of {', '.join(OPERATIONS)}; there is {' and '.join(stated) or 'none'}")
    if edit.resource is not None:
        return replace(world, edits=(*world.edits, edit))
    if edit.machine is not None:
        at = next((i for i, vm in enumerate(world.machines) if vm.name.casefold() == edit.machine.casefold()), None)
        if at is None:
            raise LabError(f"{place}: the world has no machine {edit.machine!r}; it has {_names(world.machines)}")
        changed = _replaced(world.machines[at], edit.set, f"{place}.set")
        return replace(world, machines=(*world.machines[:at], changed, *world.machines[at + 1 :]))
    if edit.wire:
        wire = from_dict(WireFault, edit.wire, f"{place}.wire", LabError)
        return replace(world, faults=_instead(world.faults, wire, "source", "destination"))
    if edit.service:
        service = from_dict(ServiceFault, edit.service, f"{place}.service", LabError)
        return replace(world, services=_instead(world.services, service, "machine", "port"))
    return _replaced(world, edit.world, f"{place}.world")


def _replaced(item: Item, values: dict[str, Any], place: str) -> Item:
    unknown = sorted(values.keys() - {each.name for each in fields(item)})
    if unknown:
        raise LabError(f"{place}: unknown field {unknown[0]!r}; known are {', '.join(f.name for f in fields(item))}")
    return from_dict(type(item), {**to_dict(item), **values}, place, LabError)


def _instead(items: Sequence[Any], made: Any, *ends: str) -> tuple[Any, ...]:
    """Return the items with the one that was made in place of that of the same ends."""
    return (*(item for item in items if any(getattr(item, end) != getattr(made, end) for end in ends)), made)


def _names(items: Iterable[Any]) -> str:
    return ", ".join(item.name for item in items) or "none"
