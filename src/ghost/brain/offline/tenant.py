"""The machines and networks of the subscription that the investigation may read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

from ghost.brain.offline.azure_reads import Read, Reading, az, is_name, query, resource_id
from ghost.brain.offline.case import Case, read
from ghost.brain.offline.resource_matching import meaningful
from ghost.brain.offline.steps import Steps
from ghost.brain.offline.symptom import Symptom


@dataclass(frozen=True)
class Machine:
    name: str
    group: str
    location: str
    power: str
    addresses: tuple[str, ...]
    tags: tuple[str, ...] = ()
    """Keys and values."""


@dataclass(frozen=True)
class Subnet:
    name: str
    network: str
    group: str
    prefixes: tuple[str, ...]

    def holds(self, address: str) -> bool:
        return any(within(address, prefix) for prefix in self.prefixes)


@dataclass(frozen=True)
class Network:
    name: str
    group: str
    prefixes: tuple[str, ...]
    subnets: tuple[Subnet, ...]


@dataclass(frozen=True)
class Tenant:
    machines: tuple[Machine, ...] = ()
    networks: tuple[Network, ...] = ()
    audit_ids: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Lists that could not be read, and why."""
    subnets: tuple[Subnet, ...] = field(default=())

    def subnet_of(self, machine: Machine) -> Subnet | None:
        """Return a candidate subnet by address alone; networks may overlap."""
        return next((s for s in self.subnets for address in machine.addresses if s.holds(address)), None)

    def machines_at(self, address: str) -> list[Machine]:
        return [machine for machine in self.machines if address in machine.addresses]


def read_tenant(case: Case, symptom: Symptom) -> Steps[Tenant]:
    machines, networks = yield from read(
        case,
        "First I list the virtual machines and networks to resolve the symptom.",
        _machine_list(symptom),
        _network_list(symptom),
    )
    found = _machines(machines)
    missing = []
    audit_ids = [*machines.audit_ids, *networks.audit_ids]
    if not machines.ok:
        case.say(f"The list of machines could not be read: {machines.why}.")
        missing.append(f"list of virtual machines: {machines.why}")
        (interfaces,) = yield from read(
            case, "Network interfaces name their machines too, so I list those.", _INTERFACES
        )
        found = _machines_of_interfaces(interfaces)
        audit_ids += interfaces.audit_ids
        if not interfaces.ok:
            missing.append(f"list of network interfaces: {interfaces.why}")
    if not networks.ok:
        case.say(f"The list of networks could not be read: {networks.why}.")
        missing.append(f"list of virtual networks: {networks.why}")
    known = _networks(networks)
    return Tenant(found, known, tuple(audit_ids), tuple(missing), tuple(s for n in known for s in n.subnets))


_INTERFACES = Read(
    az("network", "nic", "list", query=query("interfaces")),
    "Network interfaces name their virtual machines and private addresses.",
)


def _machine_list(symptom: Symptom) -> Read:
    pages = tuple(
        az("vm", "list", "-d", query=query("machines_named", token=word)) for word in _words_to_look_for(symptom)
    )
    return Read(
        az("vm", "list", "-d", query=query("machines")),
        "Names, private addresses, tags and power state of the virtual machines, to resolve the symptom.",
        pages=pages,
    )


def _network_list(symptom: Symptom) -> Read:
    pages = tuple(
        az("network", "vnet", "list", query=query("networks_named", token=word)) for word in _words_to_look_for(symptom)
    )
    return Read(
        az("network", "vnet", "list", query=query("networks")),
        "Address spaces and subnets of the virtual networks, to resolve the symptom.",
        pages=pages,
    )


def _words_to_look_for(symptom: Symptom) -> list[str]:
    """Return words of the symptom that may be part of a name, for a tenant too large to list.

    JMESPath comparison is case-sensitive, so each word is tried as typed and in lower case.
    """
    useful = meaningful(symptom.text)
    typed = [word.strip(".,;:!?\"'()") for word in symptom.text.split()]
    name_words = [word for word in typed if word.lower() in useful or any(part in useful for part in _parts(word))]
    return list(dict.fromkeys(form for word in name_words if len(word) >= 2 for form in (word, word.lower())))[:12]


def _parts(word: str) -> list[str]:
    return [part for part in "".join(c if c.isalnum() else " " for c in word.lower()).split() if part]


def _machines(reading: Reading) -> tuple[Machine, ...]:
    return tuple(
        Machine(
            name=row["name"],
            group=row["group"],
            location=str(row.get("location") or ""),
            power=str(row.get("power") or ""),
            addresses=_addresses(row.get("addresses")),
            tags=_tags(row.get("tags")),
        )
        for row in reading.rows()
        if is_name(row.get("name")) and is_name(row.get("group"))
    )


def _machines_of_interfaces(reading: Reading) -> tuple[Machine, ...]:
    found: dict[str, Machine] = {}
    for row in reading.rows():
        owner = resource_id(row.get("machine"))
        if owner is not None:
            before = found.get(owner.text.casefold())
            addresses = (*(before.addresses if before else ()), *_addresses(row.get("addresses")))
            found[owner.text.casefold()] = Machine(
                owner.name, owner.group, str(row.get("location") or ""), "", addresses
            )
    return tuple(found.values())


def _networks(reading: Reading) -> tuple[Network, ...]:
    return tuple(
        Network(
            row["name"],
            row["group"],
            tuple(map(str, row.get("prefixes") or ())),
            tuple(
                Subnet(item["name"], row["name"], row["group"], prefixes_of(item))
                for item in row.get("subnets") or ()
                if is_name(item.get("name"))
            ),
        )
        for row in reading.rows()
        if is_name(row.get("name")) and is_name(row.get("group"))
    )


def prefixes_of(subnet: dict[str, Any]) -> tuple[str, ...]:
    """Return the prefixes of a subnet; Azure gives one prefix or a list."""
    several = subnet.get("prefixes") or ()
    return tuple(map(str, several)) if several else tuple(filter(None, [str(subnet.get("prefix") or "")]))


def _addresses(value: Any) -> tuple[str, ...]:
    """Return the addresses from a list, or from the text of `vm list -d`."""
    parts: Iterable[Any] = value.split(",") if isinstance(value, str) else value or ()
    return tuple(str(part).strip() for part in parts if part and is_address(str(part).strip()))


def _tags(value: Any) -> tuple[str, ...]:
    return tuple(str(part) for pair in value.items() for part in pair if part) if isinstance(value, dict) else ()


def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def within(address: str, prefix: str) -> bool:
    try:
        network: IPv4Network | IPv6Network = ip_network(prefix, strict=False)
        return ip_address(address) in network
    except ValueError:
        return False


def prefixes_around(address: str) -> list[str]:
    """Return every prefix that can contain the address: JMESPath can look up a prefix but not compare one."""
    parsed = ip_address(address)
    return [str(ip_network(f"{address}/{length}", strict=False)) for length in range(parsed.max_prefixlen, -1, -1)]
