"""What the walks of the candidates tell: the faults, each walked with its mend, and which layers are clear."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_address
from typing import Final

from ghost import net
from ghost.brain.offline.case import Case, Cause
from ghost.brain.offline.complaint import Candidate, Complaint
from ghost.brain.offline.hypothesis_catalogue import HYPOTHESIS_OF
from ghost.brain.offline.remedies import advice_for, commands_for
from ghost.brain.offline.steps import Steps
from ghost.brain.offline.tenant_reads import read_for
from ghost.brain.offline.understanding.equal_gates import let_in
from ghost.net import Fault, Flow, Hop, Mend, Network, Walk, known_kinds
from ghost.text import one_line

MAX_WALKED: Final = 8
"""Candidates that are read and walked; each is two or three reads of its own."""
MAX_PORT_PARTS: Final = 40
"""Ranges of ports that are told apart for a port that nobody stated."""
LAYER_OF: Final[Mapping[str, str]] = {
    "machine": "vm_state",
    "route": "routes",
    "appliance": "routes",
    "firewall": "routes",
    "gateway": "routes",
    "internet": "routes",
    "platform": "routes",
    "interface": "routes",
    "peering": "peering",
    "name": "dns",
    "zone": "dns",
    "alias": "dns",
    "private_endpoint": "service_endpoints",
    "service": "service_endpoints",
    "storage": "service_endpoints",
    "sql": "service_endpoints",
    "redis": "service_endpoints",
    "key_vault": "service_endpoints",
    "load_balancer": "load_balancer",
    "public_address": "load_balancer",
    "nat": "load_balancer",
    "guest": "guest_firewall",
}
"""The layer of the path coverage to which a kind of hop belongs; security groups: by direction."""
NOT_ON_THE_WAY: Final = {
    "nsg_outbound": "no security group applies where the traffic leaves",
    "nsg_inbound": "no security group applies where the traffic arrives",
    "peering": "no peering is on the path",
    "service_endpoints": "no service or private endpoint is on the path",
    "load_balancer": "no load balancer or NAT is on the path",
}
MAX_NOTE: Final = 240

Identity = tuple[str, str, str, str]


@dataclass(frozen=True)
class Verdict:
    """What configuration does with the traffic of one candidate."""

    candidate: Candidate
    walk: Walk
    beyond: Walk
    """With the faults mended, as far as changes are known: what lies behind them."""
    faults: tuple[Fault, ...]
    whatever_port: frozenset[Identity]
    """The faults that do not depend on the port."""

    @property
    def outcome(self) -> net.Outcome:
        return "blocked" if self.faults else self.walk.outcome

    @property
    def asks_the_guest(self) -> bool:
        """Whether what lies behind the faults depends on the inside of an appliance."""
        return any(hop.kind in ("appliance", "guest") and hop.verdict == "unknown" for hop in every_hop(self.beyond))


def judge(case: Case, candidates: Sequence[Candidate]) -> Steps[list[Verdict]]:
    """Read what the candidates' walks need, all in the same turns, and walk them."""
    walked = candidates[:MAX_WALKED]
    tests = tuple(dict.fromkeys(HYPOTHESIS_OF.values()))[:3]
    purpose = f"I read what decides about {_listed(str(candidate) for candidate in walked)}, in both directions."
    yield from read_for(case, [candidate.flow for candidate in walked], purpose, tests)
    verdicts = []
    for candidate in walked:
        verdicts.append((yield from _judged(case, candidate)))
    return verdicts


def _judged(case: Case, candidate: Candidate) -> Steps[Verdict]:
    flow, source = candidate.flow, candidate.source.interface or None
    while True:
        faults = net.explain(case.network, flow, source=source)
        mended = partial(_mended, faults=faults)
        beyond = net.walk(mended(case.network), flow, source=source)
        known = len(case.asked_of_azure)
        if faults and beyond.missing:
            yield from read_for(case, [flow], "I check what follows the fault, once corrected.", changed=mended)
        if len(case.asked_of_azure) == known:
            break
    walked = net.walk(case.network, flow, source=source)
    always = frozenset(map(identity, faults))
    if candidate.port_guessed:
        always = _whatever_port(case.network, flow)
        if flow.destination_port is None:
            faults = [fault for fault in faults if identity(fault) in always]
    return Verdict(candidate, walked, beyond, tuple(faults), always)


def _mended(network: Network, faults: Iterable[Fault]) -> Network:
    for fault in faults:
        network = fault.mend.applied(network) if fault.mend is not None else network
    return network


def _whatever_port(network: Network, flow: Flow) -> frozenset[Identity]:
    """Return the faults that a packet to any port meets."""
    parts = net.ports_to(network, flow)
    if len(parts) > MAX_PORT_PARTS:
        return frozenset()
    found = [frozenset(map(identity, net.explain(network, part.walk.flow))) for part in parts]
    return frozenset.intersection(*found) if found else frozenset()


def identity(fault: Fault) -> Identity:
    return fault.kind, net.key(fault.resource), fault.rule, fault.hop.direction or ""


# Causes


def blame_faults(case: Case, complaint: Complaint, verdicts: Sequence[Verdict]) -> None:
    """Blame the faults that explain the complaint; tell those that only some of the candidates meet."""
    for flow in complaint.flows:
        of_flow = [verdict for verdict in verdicts if verdict.candidate in flow]
        best = [verdict for verdict in of_flow if verdict.candidate.meaning == of_flow[0].candidate.meaning]
        for key_of_fault in dict.fromkeys(identity(fault) for verdict in of_flow for fault in verdict.faults):
            met = [verdict for verdict in of_flow if key_of_fault in map(identity, verdict.faults)]
            fault = next(fault for fault in met[0].faults if identity(fault) == key_of_fault)
            layer = layer_of(fault.hop)
            if complaint.kind == "dns" and layer != "dns":
                _observe(case, fault, met, "it is not about the name")
            elif not complaint.source_known and len(met) < len(of_flow):
                _observe(case, fault, met, "others pass, and no source was named")
                case.by_source.add(layer)
                who = _listed(verdict.candidate.source.label for verdict in met)
                case.not_verified(
                    layer, f"it depends on the source: {who} is blocked ({_reason(fault.hop, met[0].candidate)})"
                )
                mend = _mend_of(fault, met[0].candidate)
                mending = [f"If the source is {who}: {each}" for each in _commands(mend, case.network)]
                case.actions += [each for each in mending if each not in case.actions]
            elif _comes_by_an_unknown_way(case.network, complaint, met[0]) and layer in _JUDGED_BY_ADDRESS:
                _observe(case, fault, met, "the path and address by which its source reaches Azure are not known")
            elif _decides_by_public_address(case.network, fault, met[0]):
                _observe(case, fault, met, "it lets certain addresses in, and that of the source is not known")
            elif not complaint.ends_sure and _denies_all(case.network, fault):
                _observe(case, fault, met, "no rule ever allowed it there, and the symptom may mean other traffic")
            elif met[0] not in best:
                _observe(case, fault, met, "this is not the likeliest meaning of the symptom")
            else:
                unsure = list(_doubts(complaint, fault, met, of_flow))
                case.blame(_cause(case, fault, met, best, unsure))


_JUDGED_BY_ADDRESS: Final = ("nsg_outbound", "nsg_inbound", "routes", "peering", "service_endpoints")
"""Layers at which another source address may be treated otherwise."""


def _comes_by_an_unknown_way(network: Network, complaint: Complaint, verdict: Verdict) -> bool:
    """Return whether nothing that was read has the source: a client of a VPN, or one that means a private address.

    Its own address is not the one that Azure sees, or it is not on the way to Azure at all.
    """
    flow, first = verdict.candidate.flow, next(iter(verdict.walk.hops), None)
    if _is_anybody(verdict.candidate) and re.search(r"\bvpn\b", complaint.text, re.IGNORECASE):
        return True
    if not net.is_address(flow.destination_address):
        return False
    if ip_address(flow.source_address).is_global:
        there = network.get(net.Interface, verdict.candidate.destination.interface)
        has_public = there is not None and any(each.public_address for each in there.configurations)
        return not (has_public or ip_address(flow.destination_address).is_global)
    return first is not None and first.kind in ("interface", "gateway") and first.verdict == "unknown"


def _is_anybody(candidate: Candidate) -> bool:
    """Return whether the source is outside Azure and its address was not told."""
    return candidate.flow.source_address == net.FIRST_PUBLIC


def _decides_by_public_address(network: Network, fault: Fault, verdict: Verdict) -> bool:
    """Return whether what stops a source of unknown public address lets other public addresses in."""
    if not _is_anybody(verdict.candidate):
        return False
    group = network.get(net.RuleSet, fault.hop.resource)
    prefixes = [prefix.partition("/")[0] for prefix in let_in(group, verdict.candidate.flow.destination_port)]
    return fault.kind == "service_firewall" or any(
        net.is_address(prefix) and ip_address(prefix).is_global for prefix in prefixes
    )


def _denies_all(network: Network, fault: Fault) -> bool:
    """Return whether a rule for whatever no other rule lets in stops it: it may never have been meant to pass."""
    if fault.kind != "security_rule":
        return False
    group = network.get(net.RuleSet, fault.hop.resource)
    rule = next((each for each in group.rules if each.name == fault.rule), None) if group else None
    return fault.hop.is_default_rule or (rule is not None and "*" in rule.destination_ports)


def _doubts(complaint: Complaint, fault: Fault, met: Sequence[Verdict], of_flow: Sequence[Verdict]) -> Iterable[str]:
    if met[0].candidate.port_guessed and identity(fault) not in met[0].whatever_port:
        yield "the port was not stated, and other ports are not blocked there"
    answers = layer_of(fault.hop) == "service_endpoints"  # with an error of the service's protocol
    if not complaint.ends_sure:
        yield "the symptom does not clearly say which traffic is meant"
    if complaint.kind == "refused" and fault.hop.verdict == "drop" and not answers:
        yield "the symptom says refused, but this drops packets without an answer"
    if fault.hop.doubt:
        yield fault.hop.doubt
    meanings = {verdict.candidate.meaning for verdict in of_flow}
    if meanings - {verdict.candidate.meaning for verdict in met}:
        yield "the symptom may mean other traffic, which is not blocked there"


def _cause(case: Case, fault: Fault, met: Sequence[Verdict], all_meant: Sequence[Verdict], unsure: list[str]) -> Cause:
    hop, layer = fault.hop, layer_of(fault.hop)
    candidate = met[0].candidate
    some = "" if len(met) >= len(all_meant) else f" Of {len(all_meant)} similar flows, it affects {_listed(_who(met))}."
    mend = _mend_of(fault, candidate)
    mended = f" {_sentence(str(mend))} {_THEN[fault.outcome]}." if mend is not None else ""
    doubt = f" Not certain: {'; '.join(unsure)}." if unsure else ""
    text = f"{candidate} does not get through: {_reason(hop, candidate)}.{some}{mended}{doubt}"
    return Cause(
        layer,
        HYPOTHESIS_OF[layer],
        text,
        tuple(filter(None, dict.fromkeys(hop.references))),
        (*advice_for(fault), *_commands(mend, case.network)),
        conclusive=not unsure,
        kind=fault.kind,
        resource=fault.resource,
        rule=fault.rule,
        direction=hop.direction,
        port=candidate.flow.destination_port,
        likely=bool(unsure),
        flow=candidate.flow,
        mend=mend,
    )


def _mend_of(fault: Fault, candidate: Candidate) -> Mend | None:
    """Return what mends a fault; None where it would let an address in that merely stands for the internet."""
    return None if _is_anybody(candidate) and net.FIRST_PUBLIC in str(fault.mend) else fault.mend


def _commands(mend: Mend | None, network: Network) -> Sequence[str]:
    return tuple(commands_for(mend, network)) if mend is not None else ()


_THEN: Final = {
    "passes": "a walk passes in both directions",
    "blocked": "a walk stops at the next fault",
    "unknown": "a walk no longer stops here; what follows is not known for certain",
}


def _reason(hop: Hop, candidate: Candidate) -> str:
    reason = hop.reason.replace(net.FIRST_PUBLIC, "not known") if _is_anybody(candidate) else hop.reason
    return one_line(reason, MAX_NOTE)


def _observe(case: Case, fault: Fault, met: Sequence[Verdict], why: str) -> None:
    candidate = met[0].candidate
    text = f"{candidate} does not get through ({_reason(fault.hop, candidate)}), but {why}"
    if text not in case.observations:
        case.state(f"{text}.", *filter(None, fault.hop.references))
        case.observations.append(text)


# Layers


def layer_of(hop: Hop) -> str:
    if hop.fault is not None and (kind := known_kinds().get(hop.fault)) is not None and kind.layer != "nsg":
        return kind.layer
    if hop.kind in ("security_group", "admin_rule"):
        return "nsg_inbound" if hop.direction == "Inbound" else "nsg_outbound"
    return LAYER_OF.get(hop.kind, "routes")


def cover_layers(case: Case, verdicts: Sequence[Verdict]) -> None:
    """Say of each layer what the walks tell, with the faults mended that were blamed."""
    hops = [hop for verdict in verdicts for hop in every_hop(verdict.beyond)]
    met: dict[str, list[Hop]] = {}
    for hop in hops:
        met.setdefault(layer_of(hop), []).append(hop)
    for layer, there in met.items():
        unknown = [hop for hop in there if hop.verdict == "unknown"]
        records = _references(unknown or there)
        if unknown:
            case.not_verified(layer, _reasons(unknown), records)
        elif records and layer not in case.by_source and not any(hop.stops for hop in there):
            case.cover(layer, "cleared", records, _reasons(there))
    whole = _references(hops)
    if whole and not any(hop.verdict == "unknown" for hop in hops):
        for layer, note in NOT_ON_THE_WAY.items():
            if layer not in met:
                case.cover(layer, "cleared", whole, note)


def every_hop(walked: Walk) -> list[Hop]:
    """Return the hops of a walk and of those by the other members of a pool."""
    return [*walked.hops, *(hop for other in walked.others for hop in every_hop(other))]


def _references(hops: Iterable[Hop]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reference for hop in hops for reference in hop.references if reference))


def _reasons(hops: Iterable[Hop]) -> str:
    return one_line("; ".join(dict.fromkeys(hop.reason for hop in hops)), MAX_NOTE)


def _who(verdicts: Iterable[Verdict]) -> Iterable[str]:
    return (f"{v.candidate.source.label} to {v.candidate.destination.label}" for v in verdicts)


def _listed(items: Iterable[str], most: int = 3) -> str:
    unique = list(dict.fromkeys(items))
    more = f" and {len(unique) - most} more" if len(unique) > most else ""
    return f"{'; '.join(unique[:most])}{more}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def with_port(candidate: Candidate, port: int, protocol: str) -> Candidate:
    flow = replace(candidate.flow, destination_port=port, protocol=protocol)
    return replace(candidate, flow=flow, port_origin="stated")
