"""DNS names of the symptom: resolved in Azure's private zones, which take precedence over local resolvers."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

from ghost.brain.offline.azure_reads import Read, Reading, az, is_name, query, resource_id
from ghost.brain.offline.case import Case, Cause, confirm, read
from ghost.brain.offline.endpoints import End
from ghost.brain.offline.hypothesis_catalogue import ABSENT
from ghost.brain.offline.local_probe import FROM
from ghost.brain.offline.steps import Steps
from ghost.brain.offline.symptom import Phrases, Symptom, addresses_in
from ghost.brain.offline.tenant import Tenant
from ghost.text import one_line


@dataclass(frozen=True)
class LookUp:
    """Answers of Azure's private DNS and the local resolver for one name."""

    name: str
    zone: str = ""
    zone_group: str = ""
    private_addresses: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    """Ids of the networks linked with the zone, in lower case."""
    local_addresses: tuple[str, ...] = ()
    zone_ids: tuple[str, ...] = ()
    local_ids: tuple[str, ...] = ()
    unread: str = ""
    """The reason the private zones could not be read."""

    zones: tuple[str, ...] = ()
    """All visible private zones."""
    asked_locally: bool = False
    """The local resolver gave an answer or NXDOMAIN."""

    @property
    def label(self) -> str:
        """The name without its zone."""
        return self.name[: -len(self.zone) - 1]

    @property
    def nowhere(self) -> bool:
        """True if every available resolver was asked and none has an address."""
        return not self.unread and not self.zone and not self.local_addresses and self.asked_locally

    @property
    def addresses(self) -> tuple[str, ...]:
        return self.private_addresses or self.local_addresses


def look_up(case: Case, symptom: Symptom, tenant: Tenant) -> Steps[LookUp | None]:
    """Resolve the first DNS name of the symptom that is not just the name of a machine."""
    machines = {machine.name.casefold() for machine in tenant.machines}
    name = next((name for name in symptom.dns_names if name.casefold() not in machines), None)
    if name is None:
        return None
    local, zones = yield from read(
        case,
        f"The symptom uses the name {name}, so I look it up {FROM} and among the private DNS zones.",
        Read(("dig", name, "+short"), f"What {name} resolves to {FROM}."),
        Read(az("network", "private-dns", "zone", "list", query=query("private_zones")), "Private DNS zones."),
    )
    found = LookUp(
        name,
        local_addresses=tuple(addresses_in(local.value)) if local.ok and isinstance(local.value, str) else (),
        local_ids=local.audit_ids if local.ok else (),
        zone_ids=zones.audit_ids if zones.ok else (),
        unread="" if zones.ok else zones.why,
        zones=tuple(one_line(str(row.get("name"))) for row in zones.rows()),
        asked_locally=local.exit_code is not None,
    )
    return (yield from _in_zone(case, found, zones))


def _in_zone(case: Case, found: LookUp, zones: Reading) -> Steps[LookUp]:
    holding = [
        row
        for row in zones.rows()
        if is_name(row.get("name")) and is_name(row.get("group")) and found.name.endswith(f".{row['name'].lower()}")
    ]
    if not holding:
        return found
    zone = max(holding, key=lambda row: len(row["name"]))
    where = ("-g", zone["group"], "-z", zone["name"])
    records, links = yield from read(
        case,
        f"The private zone {zone['name']} holds that name; I read its records and linked networks.",
        Read(
            az("network", "private-dns", "record-set", "a", "list", *where, query=query("zone_records")),
            f"Addresses in the private zone {zone['name']}.",
        ),
        Read(
            az("network", "private-dns", "link", "vnet", "list", *where, query=query("zone_links")),
            f"Networks linked with the private zone {zone['name']}.",
        ),
    )
    label = found.name[: -len(zone["name"]) - 1]
    addresses = [
        str(a) for row in records.rows() if str(row.get("name")).lower() == label for a in row["addresses"] or ()
    ]
    linked = [resource_id(row.get("network")) for row in links.rows() if str(row.get("state")).lower() != "inprogress"]
    return replace(
        found,
        zone=zone["name"],
        zone_group=zone["group"],
        private_addresses=tuple(addresses),
        linked=tuple(network.text.casefold() for network in linked if network),
        zone_ids=(*found.zone_ids, *records.audit_ids, *links.audit_ids) if records.ok and links.ok else found.zone_ids,
        unread="" if records.ok and links.ok else records.why or links.why,
    )


def with_address(symptom: Symptom, found: LookUp | None) -> Symptom:
    """Return the symptom with the name replaced by its address, so that it can be matched with a machine."""
    if found is None or not found.addresses:
        return symptom
    readings = tuple(
        Phrases(_replaced(reading.source, found), _replaced(reading.destination, found)) for reading in symptom.ways
    )
    return replace(symptom, ways=readings)


def _replaced(phrase: str, found: LookUp) -> str:
    start = phrase.lower().find(found.name)
    return phrase if start < 0 else f"{phrase[:start]}{found.addresses[0]}{phrase[start + len(found.name) :]}"


def check_name(case: Case, found: LookUp | None, source: End, destination: End) -> None:
    if found is None:
        case.cover("dns", "not_verified", (), "the symptom gives no DNS name; machines were found by name or address")
        return
    if found.unread:
        case.not_verified("dns", f"private DNS could not be read: {found.unread}")
        return
    if found.nowhere:
        blame_unknown_name(case, found)
        return
    if not found.zone:
        addresses_text = ", ".join(found.local_addresses) or "nothing"
        case.not_verified(
            "dns", f"no private zone holds {found.name}; {FROM} it resolves to {addresses_text}", found.local_ids
        )
        return
    problem, remedy = _problem(found, source, destination)
    if problem:
        kind = "dns_zone_not_linked" if found.private_addresses else "dns_record_missing"
        rule = "" if found.private_addresses else found.label
        case.blame(Cause("dns", ABSENT, problem, found.zone_ids, (remedy,), kind=kind, resource=found.zone, rule=rule))
        confirm(case, ABSENT, found.zone_ids)
        return
    text = (
        f"{found.name} is {', '.join(found.private_addresses)} in the private zone {found.zone}, "
        "which the source can resolve."
    )
    case.state(text, *found.zone_ids)
    case.cover("dns", "cleared", found.zone_ids, text)


def blame_unknown_name(case: Case, found: LookUp) -> None:
    """Report a name that no private zone and no available resolver knows as the fault."""
    zones = f"none of the private DNS zones ({', '.join(found.zones)}) holds it" if found.zones else ""
    text = (
        f"The name {found.name} resolves to nothing: {FROM} it has no address, and "
        f"{zones or 'the subscription has no private DNS zone'}. Only a DNS server of the network's own, which I "
        "cannot ask, could still know it."
    )
    advice = (
        f"Is {found.name} spelt right? If a machine of that name is meant, use its private address, or give the name "
        "an address record in a private DNS zone that is linked with the network of the source.",
        f"On the source, ask the resolver it uses: dig {found.name}",
    )
    audit_ids = (*found.local_ids, *found.zone_ids)
    case.blame(
        Cause("dns", ABSENT, text, audit_ids, advice, kind="dns_record_missing", resource=found.name, likely=True)
    )


def _problem(found: LookUp, source: End, destination: End) -> tuple[str, str]:
    zone = ["-g", found.zone_group, "-z", found.zone]
    if not found.private_addresses:
        add = ["az", "network", "private-dns", "record-set", "a", "add-record", *zone, "-n", found.label, "-a"]
        add.append(destination.address or "ADDRESS")
        return f"The private zone {found.zone} has no address record for {found.name}.", f"Add it: {shlex.join(add)}"
    if source.network and source.network.text.casefold() not in found.linked:
        link = ["az", "network", "private-dns", "link", "vnet", "create", *zone, "-n", f"{source.network.name}-link"]
        link += ["-v", source.network.text, "-e", "false"]
        return (
            f"The private zone {found.zone} is not linked with {source.network.name}, so {source.label} cannot resolve "
            f"{found.name}.",
            f"Link it: {shlex.join(link)}",
        )
    return "", ""
