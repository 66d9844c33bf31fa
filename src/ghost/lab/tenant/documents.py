"""Bodies of resources by id, as Azure Resource Manager keeps them: what a read gets and a change changes.

A part such as a subnet lies in its owner's body; a record of a zone, or a rule of a SQL server, is a body of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from ghost.errors import LabError
from ghost.lab.tenant.azure_types import AZURE_TYPES, PARTS

Body = dict[str, Any]

_ID = re.compile(r"(?i)/subscriptions/[^/]+/resourceGroups/[^/]+/providers/[^/]+(/[^/]+/[^/]+)+$")
_STATELESS = re.compile(r"privateDnsZones/(?!virtualNetworkLinks)|^Microsoft.Sql/|redis/firewallRules")
"""Types of which Azure tells no provisioning state."""
_UNTYPED = re.compile(r"virtualNetworkGateways")
"""Types whose parts have no `type`."""


class Documents:
    def __init__(self, subscription: str, default_group: str) -> None:
        self._bodies: dict[str, Body] = {}
        self._root = f"/subscriptions/{subscription}"
        self._default_group = default_group

    @classmethod
    def of_bodies(cls, subscription: str, default_group: str, bodies: Iterable[Body]) -> Documents:
        """Return documents of bodies that are complete."""
        made = cls(subscription, default_group)
        made._bodies = {folded(body["id"]): body for body in bodies}
        return made

    def __iter__(self) -> Iterator[Body]:
        return iter(self._bodies.values())

    def of_type(self, kind: str, group: str | None = None) -> list[Body]:
        """Return the bodies of a type, `Microsoft.Network/virtualNetworks`, in a group or in all."""
        return [
            body
            for body in self
            if body["type"].casefold() == kind.casefold()
            and (group is None or body["id"].split("/")[4].casefold() == group.casefold())
        ]

    def get(self, resource_id: str) -> Body | None:
        """Return the body of a resource or of a part of one."""
        own = self._bodies.get(folded(resource_id))
        if own is not None:
            return own
        owner_id, part, name = _split(resource_id)
        owner = self._bodies.get(folded(owner_id))
        return next((item for item in _parts(owner, part) if item["name"].casefold() == name.casefold()), None)

    def parts(self, owner_id: str, part: str) -> list[Body] | None:
        """Return the parts of a resource, or the bodies of a type below it; None if the resource has no such parts."""
        owner = self._bodies.get(folded(owner_id))
        if owner is None:
            return None
        if part.casefold() in PARTS.get(_last(owner["type"]), {}):
            return _parts(owner, part)
        wanted = f"{owner['type']}/{part}".casefold()
        below = [body for body in self if body["type"].casefold() == wanted]
        return [body for body in below if folded(body["id"]).startswith(f"{folded(owner_id)}/")]

    def put(self, resource_id: str, body: Mapping[str, Any]) -> None:
        """Create or replace a resource or part; of an owner that exists."""
        owner_id, part, name = _split(resource_id)
        owner = self._bodies.get(folded(owner_id))
        spelled = PARTS.get(_last(type_in(owner_id)), {}).get(part.casefold())
        stated = {"name": name, **deepcopy(dict(body))}
        made = _part_of(owner_id, spelled, stated) if spelled else _whole(resource_id, stated)
        if "/" in type_in(resource_id).partition("/")[2] and owner is None:
            raise LabError(f"there is no {owner_id} to which {name} could belong")
        if spelled is None or owner is None:
            self._bodies[folded(resource_id)] = made
            return
        items = owner["properties"].setdefault(spelled, [])
        places = [at for at, item in enumerate(items) if item["name"].casefold() == name.casefold()]
        if places:
            items[places[0]] = made
        else:
            items.append(made)

    def delete(self, resource_id: str) -> bool:
        """Delete a resource with what is below it, or a part. Return whether it was there."""
        whole = folded(resource_id)
        gone = [key for key in self._bodies if key == whole or key.startswith(f"{whole}/")]
        for key in gone:
            del self._bodies[key]
        if gone:
            return True
        owner_id, part, name = _split(resource_id)
        items = _parts(self._bodies.get(folded(owner_id)), part)
        found = [item for item in items if item["name"].casefold() == name.casefold()]
        for item in found:
            items.remove(item)
        return bool(found)

    def id_of(self, reference: str, *, group: str | None = None) -> str:
        """Return the id of what a scenario calls `TYPE/NAME[/PART/NAME]`; a new resource is in `group`.

        Raises `LabError` for a type that no lab knows, or a name that several groups have.
        """
        if reference.startswith("/"):
            if not _ID.match(reference):
                raise LabError(f"{reference!r} is not a resource id")
            return reference
        kind_name, _, rest = reference.partition("/")
        kind = AZURE_TYPES.get(kind_name.casefold())
        name, _, below = rest.partition("/")
        if kind is None or not name or (below and below.count("/") % 2 == 0):
            types = ", ".join(sorted(each.rpartition("/")[2] for each in AZURE_TYPES.values()))
            form = "write TYPE/NAME or TYPE/NAME/PART/NAME"
            raise LabError(f"{reference!r} names no resource: {form}, TYPE one of {types}")
        there = [body["id"] for body in self.of_type(kind) if body["name"].casefold() == name.casefold()]
        if len(there) > 1:
            raise LabError(f"{reference!r} is the name of {', '.join(there)}: write the whole id")
        made = f"{self._root}/resourceGroups/{group or self._default_group}/providers/{kind}/{name}"
        return "/".join(filter(None, [there[0] if there else made, below]))

    def existing(self, reference: str) -> Body:
        """Return the body that a reference names. Raises `LabError` if there is none."""
        found = self.get(self.id_of(reference))
        if found is None:
            kind = type_in(self.id_of(reference))
            near = ", ".join(sorted(body["name"] for body in self.of_type(kind))) or "none"
            raise LabError(f"there is no {reference!r}; of its type there is {near}")
        return found


def _whole(resource_id: str, body: Body) -> Body:
    """Return a body with what Azure adds to it and to its parts."""
    kind = type_in(resource_id)
    state = {} if _STATELESS.search(kind) else {"provisioningState": "Succeeded"}
    properties: Body = {**state, **body.get("properties", {})}
    for part in PARTS.get(_last(kind), {}).values():
        if part in properties:
            properties[part] = [_part_of(resource_id, part, item) for item in properties[part]]
    name = body.get("name") or resource_id.rpartition("/")[2]
    return {**body, "id": resource_id, "name": name, "type": kind, "properties": properties}


def _part_of(owner: str, part: str, item: Body) -> Body:
    if not isinstance(item, dict) or not item.get("name"):
        raise LabError(f"one of the {part} of {owner.rpartition('/')[2]} has no name")
    made = {"etag": etag_of(owner), **_whole(f"{owner}/{part}/{item['name']}", item)}
    return {name: value for name, value in made.items() if name != "type" or not _UNTYPED.search(type_in(owner))}


def folded(resource_id: str) -> str:
    return resource_id.casefold().rstrip("/")


def type_in(resource_id: str) -> str:
    """Return the Azure type of an id: `Microsoft.Network/virtualNetworks/subnets`; as Azure spells it, if known."""
    _, _, place = resource_id.partition("/providers/")
    provider, *rest = place.split("/")
    kinds = rest[::2]
    known = AZURE_TYPES.get(kinds[0].casefold()) if kinds else None
    if known is not None:
        provider, kinds[0] = known.split("/")
    return "/".join([provider, *kinds])


def guid(text: str) -> str:
    """Return a GUID derived from the text, so that answers are reproducible."""
    return str(uuid5(NAMESPACE_URL, text))


def etag_of(text: str) -> str:
    return f'W/"{guid(text + "#etag")}"'


def _split(resource_id: str) -> tuple[str, str, str]:
    """Return owner, type of part and name."""
    owner, _, name = resource_id.rstrip("/").rpartition("/")
    owner, _, part = owner.rpartition("/")
    return owner, part, name


def _parts(owner: Body | None, part: str) -> list[Body]:
    if owner is None:
        return []
    spelled = PARTS.get(_last(owner["type"]), {}).get(part.casefold())
    found: list[Body] = owner["properties"].get(spelled, []) if spelled else []
    return found


def _last(kind: str) -> str:
    return kind.rpartition("/")[2].casefold()
