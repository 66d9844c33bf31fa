"""Both security gates, outbound at the source and inbound at the destination, evaluated with Azure's rules."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import pairwise
from typing import Any

from ghost.brain.offline.azure_reads import Outcome, Read, Reading, ResourceId, az, query, resource_id
from ghost.brain.offline.case import Case, Cause, confirm, read, refute
from ghost.brain.offline.endpoints import End
from ghost.brain.offline.hypothesis_catalogue import FILTERED
from ghost.brain.offline.steps import Steps
from ghost.brain.offline.symptom import Symptom
from ghost.brain.offline.tenant import prefixes_around
from ghost.net import (
    Direction,
    Flow,
    GateVerdict,
    SecurityGroup,
    SecurityRule,
    ServiceTags,
    evaluate_group,
    group_from_arm,
    groups_from_effective_nsg,
)
from ghost.text import one_line

BANDS = (0, 200, 400, 700, 1000, 2000, 4097, 70000)
"""Priorities at which the rules are split if they exceed one answer."""
NO_ADDRESS = "255.255.255.255/32"
"""Marks known prefixes that hold neither address."""
LOWEST_PRIORITY, HIGHEST_PRIORITY = 4096, 100
GATE_ORDER: dict[Direction, tuple[str, str]] = {"Outbound": ("nic", "subnet"), "Inbound": ("subnet", "nic")}
LAYER: dict[Direction, str] = {"Outbound": "nsg_outbound", "Inbound": "nsg_inbound"}


def check_gates(case: Case, symptom: Symptom, source: End, destination: End, tags: ServiceTags) -> Steps[None]:
    gates: list[tuple[End, Direction]] = [(source, "Outbound"), (destination, "Inbound")]
    effective = [(end, direction) for end, direction in gates if end.interface and end.running is not False]
    readings = yield from read(
        case,
        "Now the effective security rules at both ends: outbound at the source, inbound at the destination.",
        *(_effective_read(end.interface, direction) for end, direction in effective if end.interface),
    )
    answers = {direction: answer for (_, direction), answer in zip(effective, readings, strict=True)}
    for end, direction in gates:
        groups, audit_ids = yield from _groups(case, end, direction, answers.get(direction))
        if groups is not None:
            yield from _judge(case, symptom, source, destination, end, direction, groups, audit_ids, tags)
    _resolve(case, settled=symptom.port_decides or symptom.protocol == "Icmp")


def _effective_read(interface: ResourceId, direction: Direction) -> Read:
    words = ("network", "nic", "list-effective-nsg", "-g", interface.group, "-n", interface.name)
    pages = tuple(
        az(*words, query=query("effective_rules_band", direction=direction, low=low, high=high))
        for low, high in pairwise(BANDS)
    )
    return Read(
        az(*words, query=query("effective_rules", direction=direction)),
        f"Effective {direction.lower()} security rules at the interface {interface.name}.",
        (FILTERED,),
        pages,
    )


def _groups(
    case: Case, end: End, direction: Direction, answer: Reading | None
) -> Steps[tuple[tuple[SecurityGroup, ...] | None, tuple[str, ...]]]:
    """Return the groups at one gate, effective if available, else as configured; None without either."""
    layer = LAYER[direction]
    if end.machine is None:
        case.not_verified(layer, f"{end.label} has no interface in the tenant whose rules could be read")
        return None, ()
    if answer is not None and answer.ok:
        try:
            return groups_from_effective_nsg(_decoded(answer.value, "effectiveSecurityRules")), answer.audit_ids
        except ValueError as error:
            case.say(f"The effective rules of {end.label} cannot be read: {error}.")
    elif answer is not None:
        case.say(f"The effective rules of {end.label} could not be read: {answer.why}.")
    else:
        case.say(f"{end.label} is not running, so it has no effective rules; the configured ones apply.")
    if not end.complete:
        case.not_verified(layer, f"the rules at {end.label} could not be read: {_reason(answer)}")
        return None, ()
    return (yield from _configured(case, end, direction))


def _configured(
    case: Case, end: End, direction: Direction
) -> Steps[tuple[tuple[SecurityGroup, ...] | None, tuple[str, ...]]]:
    gates = [("subnet", end.subnet_group), ("nic", end.interface_group)]
    reads = {gate: _configured_read(group, direction) for gate, group in gates if group}
    if not reads:
        return (), end.audit_ids
    readings = yield from read(case, "I read the security groups as they are configured instead.", *reads.values())
    failed = next((answer for answer in readings if not answer.ok), None)
    if failed is not None:
        case.not_verified(LAYER[direction], f"the rules at {end.label} could not be read: {failed.why}")
        return None, ()
    try:
        groups = tuple(
            group_from_arm(_decoded(answer.value, "securityRules"), "subnet" if gate == "subnet" else "nic")
            for gate, answer in zip(reads, readings, strict=True)
        )
    except ValueError as error:
        case.not_verified(LAYER[direction], f"the rules at {end.label} could not be parsed: {error}")
        return None, ()
    return groups, tuple(audit_id for answer in readings for audit_id in answer.audit_ids)


def _configured_read(group: ResourceId, direction: Direction) -> Read:
    words = ("network", "nsg", "show", "-g", group.group, "-n", group.name)
    return Read(
        az(*words, query=query("configured_rules", direction=direction)),
        f"Configured {direction.lower()} rules of the security group {group.name}.",
        (FILTERED,),
    )


def _decoded(value: Any, field: str) -> Any:
    """Return rules given as one line of JSON text each as objects."""
    if isinstance(value, dict):
        return {
            key: [_object(i) for i in v] if key == field and isinstance(v, list) else _decoded(v, field)
            for key, v in value.items()
        }
    if isinstance(value, list):
        return [_decoded(item, field) for item in value]
    return value


def _object(item: Any) -> Any:
    """Return a row as an object; a field whose query condition did not hold is false, i.e. absent."""
    row = json.loads(item) if isinstance(item, str) else item
    return {key: value for key, value in row.items() if value is not False} if isinstance(row, dict) else row


def _judge(
    case: Case,
    symptom: Symptom,
    source: End,
    destination: End,
    end: End,
    direction: Direction,
    groups: Sequence[SecurityGroup],
    audit_ids: tuple[str, ...],
    tags: ServiceTags,
) -> Steps[None]:
    layer = LAYER[direction]
    if not (source.address and destination.address):
        case.not_verified(layer, "the private address of one end is not known, so no rule can be applied", audit_ids)
        return
    flow = Flow(symptom.protocol, source.address, None, destination.address, symptom.port)
    in_order = sorted(groups, key=lambda group: GATE_ORDER[direction].index(group.association))
    verdicts = [evaluate_group(group, flow, direction, tags) for group in in_order]
    unknown = [rule for verdict in verdicts if not verdict.certain for rule in verdict.undecided]
    if unknown and end.interface and end.running is not False:
        tags, more = yield from _with_expansions(case, end.interface, flow, unknown, tags)
        audit_ids = (*audit_ids, *more)
        verdicts = [evaluate_group(group, flow, direction, tags) for group in in_order]
    denials = _once_per_rule([verdict for verdict in verdicts if not verdict.allowed and verdict.certain])
    for denial in denials:
        if denial.rule is not None and denial.rule.is_default and any(c.layer == "peering" for c in case.causes):
            text = (
                f"{_denial_text(denial, end, direction, flow, tags)} This results from the missing "
                "peering and is corrected with it."
            )
            case.state(text, *audit_ids)
            case.not_verified(layer, "without the peering the default rules deny; the custom rules do not", audit_ids)
        else:
            remedies = _remedies(denial, direction, flow, source, destination, tags)
            text = _denial_text(denial, end, direction, flow, tags)
            case.blame(
                Cause(
                    *(layer, FILTERED, text, audit_ids, remedies),
                    kind="security_rule",
                    resource=denial.group.name,
                    rule=denial.rule.name if denial.rule else "",
                    direction=direction,
                    port=symptom.port,
                )
            )
    doubtful = [verdict for verdict in verdicts if not verdict.certain]
    if doubtful:
        rules = ", ".join(one_line(rule.name) for verdict in doubtful for rule in verdict.undecided)
        case.not_verified(layer, f"whether {rules} matches {flow} depends on prefixes or a port not known", audit_ids)
    elif not denials:
        reasons = "; ".join(f"{_where(v)}: {_rule(v)} allows it" for v in verdicts) or "no security group is associated"
        text = f"{direction} at {end.label} {flow} passes: {reasons}."
        case.state(text, *audit_ids)
        case.cover(layer, "cleared", audit_ids, text)


def _with_expansions(
    case: Case, interface: ResourceId, flow: Flow, rules: Sequence[SecurityRule], tags: ServiceTags
) -> Steps[tuple[ServiceTags, tuple[str, ...]]]:
    """Return the prefixes behind tags in undecided rules. The lists are long, so only prefixes that hold one of the
    two addresses are requested.
    """
    prefixes = {
        "source_prefixes": prefixes_around(flow.source_address),
        "destination_prefixes": prefixes_around(flow.destination_address),
    }
    words = ("network", "nic", "list-effective-nsg", "-g", interface.group, "-n", interface.name)
    by_name = {rule.name: rule for rule in rules}
    readings = yield from read(
        case,
        "Some rules use tags whose prefixes I do not know, so I query which of them hold these two addresses.",
        *(
            Read(
                az(*words, query=query("effective_prefixes", rule=f"securityRules/{name}", **prefixes)),
                f"The prefixes of the tags in rule {one_line(name)}.",
                (FILTERED,),
            )
            for name in by_name
        ),
    )
    others = dict(tags.others)
    audit_ids: list[str] = []
    for rule, answer in zip(by_name.values(), readings, strict=True):
        for row in (found for group in _groups_of_rows(answer) for found in group):
            audit_ids += answer.audit_ids
            for stated, matched, known in (
                (rule.source_prefixes, row.get("source"), row.get("sources")),
                (rule.destination_prefixes, row.get("destination"), row.get("destinations")),
            ):
                if known:
                    others |= {tag: tuple(map(str, matched or (NO_ADDRESS,))) for tag in stated}
    return ServiceTags(tags.virtual_network, others), tuple(dict.fromkeys(audit_ids))


def _groups_of_rows(answer: Reading) -> list[list[dict[str, Any]]]:
    """Return the rule rows of each group; rows are lines of JSON text."""
    groups = answer.value if answer.ok and isinstance(answer.value, list) else []
    return [[_object(row) for row in group] for group in groups if isinstance(group, list)]


def _once_per_rule(denials: Sequence[GateVerdict]) -> list[GateVerdict]:
    """Drop duplicates: one group at both ends that denies by one rule is one finding."""
    return list({(v.group.name.casefold(), v.rule.name if v.rule else ""): v for v in reversed(denials)}.values())[::-1]


def _denial_text(verdict: GateVerdict, end: End, direction: Direction, flow: Flow, tags: ServiceTags) -> str:
    text = f"The {_where(verdict)} of {end.label} denies {flow} {direction.lower()}: {_rule(verdict)}."
    shadowed = _shadowed(verdict, flow, tags)
    if shadowed is None:
        return text
    return f"{text} It shadows rule {one_line(shadowed.name)} (priority {shadowed.priority}), which would allow it."


def _shadowed(verdict: GateVerdict, flow: Flow, tags: ServiceTags) -> SecurityRule | None:
    """Return the rule that would allow the flow and comes after the denying one."""
    if verdict.rule is None:
        return None
    later = (
        rule
        for rule in sorted(verdict.group.rules, key=lambda rule: rule.priority)
        if rule.direction == verdict.direction
        and rule.priority > verdict.rule.priority
        and not rule.is_default
        and rule.access == "Allow"
    )
    return next((rule for rule in later if rule.matches(flow, tags)), None)


def _covers_only(rule: SecurityRule, flow: Flow, source: End, destination: End) -> bool:
    """Return whether the rule covers only this traffic, so that inverting it opens nothing else."""
    ports = [_port_range(text) for text in rule.destination_ports]
    return (
        (ports == [str(flow.destination_port)] or not flow.has_ports)
        and rule.protocol.casefold() == flow.protocol.casefold()
        and _inside(rule.source_prefixes, source.scope)
        and _inside(rule.destination_prefixes, destination.scope)
    )


def _inside(prefixes: Sequence[str], scope: Sequence[str]) -> bool:
    """Return whether a prefix lies inside another; a tag or `*` never does."""
    try:
        outer = [ip_network(text, strict=False) for text in scope]
        inner = [ip_network(text, strict=False) for text in prefixes]
    except ValueError:
        return False
    return all(any(_within(narrow, wide) for wide in outer) for narrow in inner)


def _within(narrow: IPv4Network | IPv6Network, wide: IPv4Network | IPv6Network) -> bool:
    return (
        narrow.version == wide.version
        and narrow.prefixlen >= wide.prefixlen
        and wide.network_address <= narrow.network_address <= wide.broadcast_address  # type: ignore[operator]
    )


def _port_range(text: str) -> str:
    """Return the range; Azure writes one port as `6379-6379`."""
    first, _, last = text.partition("-")
    return first if first == last else text


def _where(verdict: GateVerdict) -> str:
    group = resource_id(verdict.group.name)
    gate = "interface" if verdict.gate == "nic" else "subnet"
    return f"network security group {group.name if group else one_line(verdict.group.name)} at the {gate}"


def _rule(verdict: GateVerdict) -> str:
    rule = verdict.rule
    if rule is None:
        return "no rule of it matches"
    ports = ",".join(map(_port_range, rule.destination_ports))
    sources, destinations = ",".join(rule.source_prefixes), ",".join(rule.destination_prefixes)
    return one_line(
        f"rule {one_line(rule.name)} (priority {rule.priority}, {rule.access} {rule.protocol} "
        f"{one_line(sources)} to {one_line(destinations)} port {one_line(ports)})",
        300,
    )


def _remedies(
    verdict: GateVerdict, direction: Direction, flow: Flow, source: End, destination: End, tags: ServiceTags
) -> tuple[str, ...]:
    """Return advice with real names that opens only this traffic; the engineer decides whether it should pass."""
    group, rule = resource_id(verdict.group.name), verdict.rule
    if group is None or rule is None:
        return ()
    priority = _free_priority(verdict)
    words = ["az", "network", "nsg", "rule"]
    where = ["-g", group.group, "--nsg-name", group.name]
    remedies = []
    shadowed = _shadowed(verdict, flow, tags)
    if priority is not None and shadowed is not None and "*" not in shadowed.destination_ports:
        move = [*words, "update", *where, "-n", shadowed.name, "--priority", str(priority)]
        remedies.append(
            f"If {one_line(shadowed.name)} is meant to apply, move it before {one_line(rule.name)}: {shlex.join(move)}"
        )
    if priority is not None:
        port = str(flow.destination_port or "PORT")
        ports = ["--destination-port-ranges", port] if flow.has_ports else []
        name = f"allow-{flow.protocol.lower()}-{flow.destination_port or 'flow'}-{priority}"
        allow = [
            *(*words, "create", *where, "-n", name),
            *("--priority", str(priority), "--direction", direction, "--access", "Allow", "--protocol", flow.protocol),
            *("--source-address-prefixes", *source.scope),
            *("--destination-address-prefixes", *destination.scope, *ports),
        ]
        alone = f"before {one_line(rule.name)}: {shlex.join(allow)}"
        opening = "Or allow this traffic alone," if remedies else "If this traffic is meant to pass, allow it"
        remedies.append(f"{opening} {alone}")
    if not rule.is_default and _covers_only(rule, flow, source, destination):
        change = [*words, "update", *where, "-n", rule.name, "--access", "Allow"]
        remedies.append(f"Or, if {one_line(rule.name)} itself is the mistake, change it: {shlex.join(change)}")
    return tuple(remedies)


def _free_priority(verdict: GateVerdict) -> int | None:
    """Return the lowest free priority before the denying rule."""
    assert verdict.rule is not None
    used = {rule.priority for rule in verdict.group.rules if rule.direction == verdict.direction}
    last = min(verdict.rule.priority - 1, LOWEST_PRIORITY)
    tens = range(last // 10 * 10, HIGHEST_PRIORITY - 1, -10)
    return next((p for p in (*tens, *range(last, HIGHEST_PRIORITY - 1, -1)) if p not in used), None)


def settle_gates(case: Case) -> None:
    """Resolve the hypothesis about the rules, once no capture can show another port."""
    _resolve(case, settled=True)


def _resolve(case: Case, *, settled: bool) -> None:
    layers = [case.layers.get(layer) for layer in LAYER.values()]
    denials = [cause for cause in case.causes if cause.hypothesis == FILTERED]
    if denials:
        confirm(case, FILTERED, [audit_id for cause in denials for audit_id in cause.audit_ids])
    elif settled and all(layer is not None and layer.status == "cleared" for layer in layers):
        refute(case, FILTERED, [audit_id for layer in layers if layer for audit_id in layer.audit_ids])


def _reason(answer: Reading | None) -> str:
    if answer is None:
        return "its interface is not known"
    return answer.why if answer.outcome is not Outcome.OK else "its answer could not be parsed"
