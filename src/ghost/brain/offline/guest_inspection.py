"""The inside of the machines on the way: what their own tools print, read by run-command into the network.

The script is constant and reads only (`ghost.net`); nothing that a machine prints is more than parsed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ghost.brain.offline.azure_reads import Outcome, Read, Reading, az, resource_id
from ghost.brain.offline.case import Case, read
from ghost.brain.offline.complaint import Candidate, Complaint
from ghost.brain.offline.hypothesis_catalogue import LOST
from ghost.brain.offline.steps import Steps
from ghost.net import GUEST_SCRIPT, Guest, Interface, Machine, Network, Walk, explain, key, name_of, read_inside, walk

MAX_MACHINES: Final = 4
"""Machines read inside in one investigation: each is an approval."""


def inspect_guests(case: Case, complaint: Complaint, candidates: Sequence[Candidate]) -> Steps[None]:
    """Read the machines that the candidates' packets meet, the destination's first, until the walk is explained.

    A source that was not named is not read: it stands for others. An appliance is read too where it may stop what
    would pass with the faults found mended.
    """
    if complaint.kind == "slow":
        return  # What passes slowly passes.
    tried: dict[str, str] = {}
    for candidate in candidates:
        for machine in machines_on_way(case.network, candidate):
            if key(machine) in tried or case.network.get(Guest, machine) is not None:
                continue
            if not _may_tell(case.network, complaint, candidate, machine):
                continue
            if len(tried) == MAX_MACHINES:
                note = f"the guests of {name_of(machine)} and further machines were not read"
                case.not_verified("guest_firewall", note)
                return
            tried[key(machine)] = yield from _inspect(case, machine, candidates)
    _cover(case, candidates, [why for why in tried.values() if why])


def _may_tell(network: Network, complaint: Complaint, candidate: Candidate, machine: str) -> bool:
    """Return whether the inside of a machine may explain what the walk does not."""
    walked = _walked(network, candidate)
    stop = walked.first_stop
    if stop is None:
        return complaint.source_known or key(machine) != key(candidate.source.machine)
    if stop.kind == "guest":  # Another member of the pool may have the same fault.
        return key(machine) in map(key, arrivals(network, candidate))
    for fault in explain(network, candidate.flow, source=candidate.source.interface or None):
        if fault.mend is None:
            return False
        network = fault.mend.applied(network)
    doubted = [hop for hop in _walked(network, candidate).hops if hop.kind == "appliance" and hop.verdict == "unknown"]
    appliances = [network.get(Interface, hop.resource) for hop in doubted]
    return any(each is not None and key(each.machine or "") == key(machine) for each in appliances)


def machines_on_way(network: Network, candidate: Candidate) -> tuple[str, ...]:
    """Return the ids of the running machines that a candidate's packets meet: where they arrive first."""
    walked = _walked(network, candidate)
    met = dict.fromkeys(_machines(network, walked))
    known = network.all(Machine)
    running = [each for each in met if (found := known.get(key(each))) is None or found.power in (None, "running")]
    ends = [*arrivals(network, candidate), *filter(None, [candidate.source.machine])]
    there = {key(each): each for each in running}
    order = dict.fromkeys(key(each) for each in ends if key(each) in there)
    return tuple(there[each] for each in (*order, *(other for other in there if other not in order)))


def walks_of(network: Network, candidate: Candidate) -> tuple[Walk, ...]:
    """Return the walk of a candidate's flow, and those by other members of a pool."""
    return tuple(_ways(_walked(network, candidate)))


def _walked(network: Network, candidate: Candidate) -> Walk:
    return walk(network, candidate.flow, source=candidate.source.interface or None)


def _ways(walked: Walk) -> Iterator[Walk]:
    yield walked
    for other in walked.others:
        yield from _ways(other)


def _machines(network: Network, walked: Walk) -> Iterator[str]:
    for hop in (hop for way in _ways(walked) for hop in way.hops):
        if hop.kind == "machine":
            yield hop.resource
        elif hop.kind == "appliance" and (appliance := network.get(Interface, hop.resource)) and appliance.machine:
            yield appliance.machine


def arrivals(network: Network, candidate: Candidate) -> tuple[str, ...]:
    """Return the ids of the machines to which the packets are addressed, behind a load balancer its members."""
    found = [candidate.destination.machine] if candidate.destination.machine else []
    for hop in (hop for way in walks_of(network, candidate) for hop in way.hops):
        if hop.kind == "machine" and hop.leg == "forward" and hop.sight is not None:
            interface = network.get(Interface, hop.sight.interface)
            if interface is not None and interface.has(hop.sight.flow.destination_address):
                found.append(hop.resource)
    return tuple({key(machine): machine for machine in found}.values())


def _inspect(case: Case, machine: str, candidates: Sequence[Candidate]) -> Steps[str]:
    """Read one machine inside; return why it, or a part of it, is not known."""
    place, name = resource_id(machine), name_of(machine)
    if place is None or len(place.names) != 1:
        return f"{name} is an instance of a scale set, and the guests of those are not read"
    known = case.network.get(Machine, machine)
    if known is not None and known.os.casefold() == "windows":
        return f"{name} runs Windows, whose firewall and sockets are not read"
    (answer,) = yield from read(
        case,
        f"Azure does not show what the guest of {name} does, so I read its packet filter, sockets and routes by "
        "run-command. It changes nothing and needs your approval.",
        Read(
            az("vm", "run-command", "invoke", "-g", place.group, "-n", place.name, "--command-id", "RunShellScript",
               "--scripts", *GUEST_SCRIPT),
            f"Packet filter, listening sockets and routes inside {name}.",
            (LOST,),
        ),
    )  # fmt: skip
    if not answer.ok:
        return _refused(case, name, answer)
    inside = read_inside(machine, answer.value, answer.record or "", six=_is_six(candidates))
    if inside is None:
        return f"the output of run-command on {name} is not that of the script"
    read_so = case.network.with_resources(Guest, [inside.guest])
    if inside.part_of_filter is not None:
        partly = case.network.with_resources(Guest, [inside.part_of_filter])
        if any(_stopped_at(partly, candidate, machine) for candidate in candidates):
            read_so = partly
    case.network = read_so
    return f"of {name}: {', '.join(inside.unknown)}" if inside.unknown else ""


def _refused(case: Case, name: str, answer: Reading) -> str:
    if answer.outcome is Outcome.DENIED:
        case.actions.append(
            f"Check the guest of {name} by hand: ss -ltnup; nft list ruleset; iptables-save; ip route; ip rule. "
            "A capture there shows only whether packets arrive and are answered."
        )
    return f"the guest of {name} was not read: {answer.why}"


def _is_six(candidates: Iterable[Candidate]) -> bool:
    return any(":" in candidate.flow.source_address for candidate in candidates)


def _stopped_at(network: Network, candidate: Candidate, machine: str) -> bool:
    stops = (hop for way in _ways(_walked(network, candidate)) for hop in way.hops if hop.stops)
    return any(hop.fault == "guest_firewall" and key(hop.resource) == key(machine) for hop in stops)


def _cover(case: Case, candidates: Sequence[Candidate], unknown: Sequence[str]) -> None:
    """Clear the guests' layer where all that the packets meet were read whole and let them pass."""
    guests: dict[str, Guest | None] = {}
    for candidate in candidates:
        stop = _walked(case.network, candidate).first_stop
        if stop is not None and (stop.kind in ("guest", "appliance") or not unknown):
            return  # The walk names what stops the packet.
        guests |= {key(each): case.network.get(Guest, each) for each in machines_on_way(case.network, candidate)}
    read_whole = [guest for guest in guests.values() if guest is not None]
    references = [guest.reference for guest in read_whole]
    if unknown or len(read_whole) < len(guests) or not guests:
        what = "; ".join(unknown) or "not every guest on the path was read"
        case.not_verified("guest_firewall", what, references)
    else:
        names = ", ".join(guest.name for guest in read_whole)
        case.cover("guest_firewall", "cleared", references, f"the guests of {names} let the packets pass, and listen")
