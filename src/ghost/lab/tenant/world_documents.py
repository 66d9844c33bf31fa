"""From a world to the bodies of its tenant: the compact tables, then the edits, then what Azure fills in by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ghost.errors import LabError
from ghost.lab.edits import Edit
from ghost.lab.tenant import bodies, network_bodies, service_bodies
from ghost.lab.tenant.azure_types import AZURE_TYPES, BACK_REFERENCES, PARTS
from ghost.lab.tenant.documents import Body, Documents, etag_of, folded, type_in
from ghost.lab.world import World

_REFERENCE = re.compile(rf"(?:{'|'.join(AZURE_TYPES)})(?:/[\w.@-]+/[\w.-]+)*/[\w.@-]+", re.IGNORECASE)


def documents_of(world: World) -> Documents:
    """Return the bodies of a world. Raises `LabError` for an edit of what is not there."""
    documents = Documents(world.subscription.id, world.groups[0].name if world.groups else "")
    for body in (*bodies.of_world(world), *network_bodies.of_world(world), *service_bodies.of_world(world)):
        documents.put(body["id"], body)
    for number, edit in enumerate(world.edits):
        try:
            apply(documents, edit)
        except LabError as error:
            raise LabError(f"edits[{number}]: {error}") from None
    _complete(world, documents)
    return documents


def apply(documents: Documents, edit: Edit) -> None:
    """Put, patch or delete a resource. Raises `LabError` if what it names is not there."""
    if edit.delete is not None:
        documents.delete(documents.existing(edit.delete)["id"])
        return
    stated = {**_resolved(documents, edit.more), "properties": _resolved(documents, edit.properties)}
    if edit.put is not None:
        documents.put(documents.id_of(edit.put, group=edit.group), stated)
    else:
        known = documents.existing(str(edit.patch))
        documents.put(known["id"], {**known, **stated, "properties": {**known["properties"], **stated["properties"]}})


def admin_rules_of(world: World, network: str) -> list[Body]:
    """Return the security admin rules in effect on a virtual network, as Azure lists them."""
    stated = {name.casefold(): rules for name, rules in world.admin_rules.items()}
    return [_resolved(world.documents, rule) for rule in stated.get(network.casefold(), ())]


def _resolved(documents: Documents, value: Any) -> Any:
    """Return the value with the names of resources in it replaced by their ids."""
    if isinstance(value, dict):
        return {name: _resolved(documents, item) for name, item in value.items()}
    if isinstance(value, list):
        return [_resolved(documents, item) for item in value]
    return documents.id_of(value) if isinstance(value, str) and _REFERENCE.fullmatch(value) else value


def _complete(world: World, documents: Documents) -> None:
    """Fill in what Azure does: ids and types of parts, the other ends of references, address spaces of peers."""
    for body in documents:
        group = body["id"].split("/")[4]
        if len(type_in(body["id"]).split("/")) == 2:
            is_global = body["type"].endswith(("privateDnsZones", "dnsZones"))
            body.setdefault("location", "global" if is_global else world.location_of(group))
            body.setdefault("tags", {})
        if body["type"].startswith("Microsoft.Network/"):
            body.setdefault("etag", etag_of(body["id"]))
    network_bodies.complete(documents)
    service_bodies.complete(documents)
    for rule in BACK_REFERENCES:
        for other in _holders(documents, rule.other):
            other["properties"].pop(rule.back, None)
    for rule in BACK_REFERENCES:
        for holder in _holders(documents, rule.holder):
            for named in _named_by(holder, rule.field):
                _write_back(documents, named, rule.back, holder["id"], many=rule.many)


def _holders(documents: Documents, holder: str) -> Iterator[Body]:
    kind, _, part = holder.partition("/")
    whole = AZURE_TYPES[kind.casefold()]
    if part and part.casefold() not in PARTS.get(kind.casefold(), {}):
        yield from documents.of_type(f"{whole}/{part}")
        return
    for body in documents:
        if body["type"].rpartition("/")[2].casefold() == kind.casefold():
            yield from body["properties"].get(PARTS[kind.casefold()][part.casefold()], []) if part else [body]


def _named_by(holder: Body, field: str) -> list[str]:
    if field == "(owner)":
        return ["/".join(holder["id"].split("/")[:-2])]
    properties = holder["properties"]
    value = properties.get(field) or properties.get("networkProfile", {}).get(field)
    items = value if isinstance(value, list) else [value]
    return [item["id"] for item in items if isinstance(item, dict) and "id" in item]


def _write_back(documents: Documents, other: str, field: str, holder: str, *, many: bool) -> None:
    body = documents.get(other)
    if body is None:
        raise LabError(f"{holder} refers to {other}, which does not exist")
    if not many:
        body["properties"][field] = {"id": holder}
        return
    known = body["properties"].setdefault(field, [])
    if all(folded(item["id"]) != folded(holder) for item in known):
        known.append({"id": holder})
