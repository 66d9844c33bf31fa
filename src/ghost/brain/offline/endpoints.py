"""The two ends in Azure: power state, interface, address, subnet, and their security groups."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ghost.brain.offline.azure_reads import Read, Reading, ResourceId, az, query, resource_id
from ghost.brain.offline.case import Case, Cause, confirm, read, refute
from ghost.brain.offline.endpoint_resolution import EndpointMatch
from ghost.brain.offline.hypothesis_catalogue import ABSENT
from ghost.brain.offline.resource_matching import mentions
from ghost.brain.offline.steps import Steps
from ghost.brain.offline.tenant import Machine, is_address, prefixes_of
from ghost.text import one_line

Role = Literal["source", "destination"]


@dataclass(frozen=True)
class End:
    role: Role
    label: str
    address: str = ""
    """Empty if unknown."""
    phrase: str = ""
    """The phrase of the symptom."""
    machine: Machine | None = None
    machine_id: str = ""
    location: str = ""
    power: str = ""
    """`VM running`, `VM deallocated`, ...; empty if unknown."""
    interface: ResourceId | None = None
    subnet: ResourceId | None = None
    subnet_prefixes: tuple[str, ...] = ()
    network_prefixes: tuple[str, ...] = ()
    interface_group: ResourceId | None = None
    subnet_group: ResourceId | None = None
    route_table: ResourceId | None = None
    pools: tuple[str, ...] = ()
    forwarding: bool = False
    complete: bool = False
    """Interface and subnet were both read, so a missing group or table does not exist."""
    audit_ids: tuple[str, ...] = ()

    @property
    def running(self) -> bool | None:
        return None if not self.power else self.power.lower().endswith("running")

    @property
    def resource(self) -> str:
        """Id or name of the machine; else the address."""
        return self.machine_id or self.label

    @property
    def scope(self) -> tuple[str, ...]:
        """Return the prefix a rule for this end must cover: its subnet if the symptom speaks of that, else its
        address.
        """
        whole = self.subnet is not None and mentions(self.phrase, self.subnet.name)
        return self.subnet_prefixes if whole and self.subnet_prefixes else (self.address,)

    @property
    def network(self) -> ResourceId | None:
        """The virtual network of the subnet."""
        return resource_id(self.subnet.text.rsplit("/subnets/", 1)[0]) if self.subnet else None


def inspect_ends(case: Case, source: EndpointMatch, destination: EndpointMatch) -> Steps[tuple[End, End]]:
    ends = [_bare("source", source), _bare("destination", destination)]
    ends = yield from _with_machines(case, ends)
    _judge_power(case, ends)
    ends = yield from _with_interfaces(case, ends)
    ends = yield from _with_subnets(case, ends)
    return ends[0], ends[1]


def _bare(role: Role, match: EndpointMatch) -> End:
    if not match.machines:
        return End(role, match.address or match.phrase, match.address or "", match.phrase)
    machine = match.machines[0]
    address = machine.addresses[0] if machine.addresses else ""
    return End(role, machine.name, address, match.phrase, machine, location=machine.location)


def _with_machines(case: Case, ends: Sequence[End]) -> Steps[list[End]]:
    reads = {end.role: _machine_read(end.machine) for end in ends if end.machine}
    if not reads:
        return list(ends)
    readings = yield from read(case, "I check the state of both machines and their interfaces.", *reads.values())
    answers = dict(zip(reads, readings, strict=True))
    return [_with_machine(case, end, answers[end.role]) if end.role in answers else end for end in ends]


def _machine_read(machine: Machine) -> Read:
    return Read(
        az("vm", "show", "-g", machine.group, "-n", machine.name, "-d", query=query("machine")),
        f"Power state and network interfaces of {machine.name}.",
        (ABSENT,),
    )


def _with_machine(case: Case, end: End, answer: Reading) -> End:
    if not answer.ok:
        case.say(f"The state of {end.label} could not be read: {answer.why}.")
        return end
    row = answer.row()
    interfaces = [item for item in row.get("interfaces") or () if isinstance(item, dict)]
    interfaces.sort(key=lambda item: item.get("primary") is False)
    return replace(
        end,
        machine_id=str(row.get("id") or ""),
        power=one_line(str(row.get("power") or ""), 40),
        location=str(row.get("location") or end.location),
        interface=next(filter(None, (resource_id(item.get("id")) for item in interfaces)), None),
        audit_ids=answer.audit_ids,
    )


def _judge_power(case: Case, ends: Sequence[End]) -> None:
    known = [end for end in ends if end.running is not None]
    stopped = [end for end in known if not end.running]
    audit_ids = [audit_id for end in known for audit_id in end.audit_ids]
    for end in stopped:
        assert end.machine is not None
        start = shlex.join(["az", "vm", "start", "-g", end.machine.group, "-n", end.machine.name])
        text = (
            f"The {end.role} {end.label} is not running: its state is “{end.power}”, so it neither sends nor answers."
        )
        advice = (f"Start {end.label}: {start}",)
        case.blame(
            Cause("vm_state", ABSENT, text, end.audit_ids, advice, kind="machine_stopped", resource=end.resource)
        )
    if stopped:
        confirm(case, ABSENT, [audit_id for end in stopped for audit_id in end.audit_ids])
    unknown = [end for end in ends if end.machine and end.running is None]
    outside = [end.label for end in ends if not end.machine]
    if unknown:
        case.not_verified("vm_state", f"the state of {' and '.join(end.label for end in unknown)} could not be read")
    elif not stopped and known:
        states = " and ".join(f"{end.label} ({end.power})" for end in known)
        aside = f"; {', '.join(outside)} is no machine of the tenant" if outside else ""
        case.state(f"Running: {states}{aside}.", *audit_ids)
        case.cover("vm_state", "cleared", audit_ids, f"running: {states}{aside}")
    elif not known:
        case.not_verified("vm_state", "neither end is a machine whose state can be read")


def settle_presence(case: Case, source: End, destination: End) -> None:
    """Refute the hypothesis of an absent end, once both run and no name leads elsewhere."""
    dns = case.layers.get("dns")
    if source.running and destination.running and not (dns and dns.status == "at_fault"):
        refute(case, ABSENT, [*source.audit_ids, *destination.audit_ids, *(dns.audit_ids if dns else ())])


def _with_interfaces(case: Case, ends: Sequence[End]) -> Steps[list[End]]:
    reads = {end.role: _interface_read(end.interface) for end in ends if end.interface}
    if not reads:
        return list(ends)
    readings = yield from read(case, "Next come their network interfaces.", *reads.values())
    answers = dict(zip(reads, readings, strict=True))
    return [_with_interface(case, end, answers[end.role]) if end.role in answers else end for end in ends]


def _interface_read(interface: ResourceId) -> Read:
    return Read(
        az("network", "nic", "show", "-g", interface.group, "-n", interface.name, query=query("interface")),
        f"Address, subnet and security group of the interface {interface.name}.",
    )


def _with_interface(case: Case, end: End, answer: Reading) -> End:
    if not answer.ok:
        case.say(f"The interface of {end.label} could not be read: {answer.why}.")
        return end
    row = answer.row()
    configurations = [item for item in row.get("configurations") or () if isinstance(item, dict)]
    configurations.sort(key=lambda item: (str(item.get("address")) != end.address, item.get("primary") is False))
    if not configurations:
        return replace(end, audit_ids=(*end.audit_ids, *answer.audit_ids))
    chosen: dict[str, Any] = configurations[0]
    address = str(chosen.get("address") or end.address)
    return replace(
        end,
        address=address if is_address(address) else "",
        subnet=resource_id(chosen.get("subnet")),
        interface_group=resource_id(row.get("security_group")),
        pools=tuple(str(pool) for pool in chosen.get("pools") or () if pool),
        forwarding=bool(row.get("forwarding")),
        audit_ids=(*end.audit_ids, *answer.audit_ids),
    )


def _with_subnets(case: Case, ends: Sequence[End]) -> Steps[list[End]]:
    reads: dict[str, tuple[Read, Read]] = {}
    for end in ends:
        if end.subnet and end.network:
            reads[end.role] = _subnet_read(end.subnet), _network_read(end.network)
    if not reads:
        return list(ends)
    requested = [item for pair in reads.values() for item in pair]
    readings = yield from read(case, "Then the subnets they are in, with their groups and route tables.", *requested)
    pairs = dict(zip(reads, zip(readings[::2], readings[1::2], strict=True), strict=True))
    return [_with_subnet(case, end, *pairs[end.role]) if end.role in pairs else end for end in ends]


def _subnet_read(subnet: ResourceId) -> Read:
    network, name = subnet.names
    words = ("network", "vnet", "subnet", "show", "-g", subnet.group, "--vnet-name", network, "-n", name)
    return Read(az(*words, query=query("subnet")), f"Security group and route table of subnet {name}.")


def _network_read(network: ResourceId) -> Read:
    words = ("network", "vnet", "show", "-g", network.group, "-n", network.name)
    return Read(az(*words, query=query("network")), f"Address space of the virtual network {network.name}.")


def _with_subnet(case: Case, end: End, subnet: Reading, network: Reading) -> End:
    for what, answer in (("subnet", subnet), ("virtual network", network)):
        if not answer.ok:
            case.say(f"The {what} of {end.label} could not be read: {answer.why}.")
    row = subnet.row()
    return replace(
        end,
        subnet_prefixes=prefixes_of(row),
        subnet_group=resource_id(row.get("security_group")),
        route_table=resource_id(row.get("route_table")),
        network_prefixes=tuple(map(str, network.row().get("prefixes") or ())),
        complete=subnet.ok,
        audit_ids=(*end.audit_ids, *(i for answer in (subnet, network) if answer.ok for i in answer.audit_ids)),
    )
