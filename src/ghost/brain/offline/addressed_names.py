"""An address that nothing has may be a stale record's: the complaint is then about the name that leads to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from ghost import net
from ghost.brain.offline.case import Case
from ghost.brain.offline.complaint import Candidate, Complaint, End
from ghost.brain.offline.path_verdict import Verdict, every_hop, judge
from ghost.brain.offline.steps import Steps
from ghost.brain.offline.tenant_reads import read_missing
from ghost.net import Missing

UNUSED: Final = "address_unused"
STALE: Final = "dns_record_stale"
MAX_ZONES: Final = 8
MAX_NAMES: Final = 3


def by_name(case: Case, complaint: Complaint, verdicts: list[Verdict]) -> Steps[tuple[Complaint, list[Verdict]]]:
    """Return the complaint and its verdicts with unused addresses replaced by the names whose stale records give them.

    Only a name that the source resolves to the address counts, where its private endpoint has another one: else the
    unused address is the fault, whatever names have it.
    """
    named: dict[Candidate, Candidate] = {}
    for verdict in verdicts:
        candidate = verdict.candidate
        address = candidate.flow.destination_address
        if any(fault.kind == UNUSED for fault in verdict.faults) and net.is_address(address):
            names = yield from _names_with(case, candidate.source, address)
            for name in names[:MAX_NAMES]:
                end = End(name, name, origin=f"private DNS gives {address} for it, and nothing has that address")
                flow = replace(candidate.flow, destination_address=name)
                by_that = replace(candidate, flow=flow, destination=end)
                (walked,) = yield from judge(case, [by_that])
                if any(fault.kind == STALE and address in fault.hop.reason for fault in walked.faults):
                    named[candidate] = by_that
                    break
    if not named:
        return complaint, verdicts
    flows = tuple(tuple(named.get(each, each) for each in flow) for flow in complaint.flows)
    complaint = replace(complaint, flows=flows)
    return complaint, (yield from judge(case, complaint.candidates))


def apart(case: Case, complaint: Complaint, verdicts: Sequence[Verdict]) -> Complaint:
    """Return the complaint with names in DNS that lead elsewhere than to the machine they are told beside as flows of
    their own, where configuration stops the traffic to that machine: it does not explain what becomes of the other's.
    """
    flows: list[tuple[Candidate, ...]] = []
    for flow in complaint.flows:
        of_flow = [verdict for verdict in verdicts if verdict.candidate in flow]
        told = [each for each in of_flow if net.is_address(each.candidate.flow.destination_address)]
        is_stopped = any(verdict.faults for verdict in told)
        ends = [verdict.candidate for verdict in told]
        elsewhere = {each.candidate for each in of_flow if is_stopped and _leads_elsewhere(case, each, ends)}
        flows += [tuple(each for each in flow if (each in elsewhere) is own) for own in (False, True)]
    return replace(complaint, flows=tuple(flow for flow in flows if flow))


def _leads_elsewhere(case: Case, verdict: Verdict, told: Sequence[Candidate]) -> bool:
    """Return whether the destination is a name that resolves to none of these, nor to a balancer before them."""
    candidate = verdict.candidate
    interface = case.network.get(net.Interface, candidate.source.interface)
    if interface is None or candidate in told:
        return False
    addresses = net.resolution_of(case.network, interface, candidate.flow.destination_address).addresses
    machines = {net.key(hop.resource) for hop in every_hop(verdict.beyond) if hop.kind == "machine"}
    return bool(addresses) and all(
        each.flow.destination_address not in addresses and net.key(each.destination.machine) not in machines
        for each in told
    )


def _names_with(case: Case, source: End, address: str) -> Steps[list[str]]:
    interface = case.network.get(net.Interface, source.interface)
    if interface is None:
        return []
    subscription = "/".join(interface.id.split("/")[:3])
    purpose = f"Nothing has {address}: I look for a name whose record leads to it."
    yield from read_missing(case, [Missing(net.PrivateZones, subscription)], purpose)
    known = case.network.get(net.PrivateZones, subscription)
    zones = known.zones[:MAX_ZONES] if known else ()
    yield from read_missing(case, [Missing(net.ZoneRecords, zone) for zone in zones], purpose)
    return list(dict.fromkeys(name for zone in zones for name in _names_in(case, zone, address)))


def _names_in(case: Case, zone: str, address: str) -> Iterator[str]:
    records = case.network.get(net.ZoneRecords, zone)
    suffix = net.without_private_link(net.name_of(zone))
    for record in records.records if records else ():
        if address in record.addresses and "*" not in record.name:
            yield suffix if record.name == "@" else f"{record.name}.{suffix}"
