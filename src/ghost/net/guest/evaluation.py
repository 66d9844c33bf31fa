"""What a Linux guest does with a packet: the verdict of its packet filter, and the rule that gave it.

Each base chain of a hook is asked in the order of priorities; each must accept, and the first that drops or rejects
ends it. Chains of type nat are asked about the first packet of a connection only, at a fixed place of the hook, until
one translates. Where a match is not known, both ways are followed: the verdict is unknown unless all end the same.

iptables(8), nft(8); https://wiki.nftables.org/wiki-nftables/index.php/Netfilter_hooks
https://docs.kernel.org/networking/nf_conntrack-sysctl.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address

from ghost.net.address_matching import Address
from ghost.net.guest.ruleset import (
    PORT_PROTOCOLS,
    PROTOCOLS,
    STATE_BITS,
    TCP_FLAGS,
    Action,
    Chain,
    Hook,
    Match,
    Packet,
    Rule,
    Ruleset,
    State,
    Table,
    Verdict,
    name_interval,
)

INPUT: tuple[Hook, ...] = ("prerouting", "input")
FORWARD: tuple[Hook, ...] = ("prerouting", "forward", "postrouting")
OUTPUT: tuple[Hook, ...] = ("output", "postrouting")

CONNTRACK_PRIORITY = -200
"""Before it, in prerouting and output, a packet has no connection: `ct state` is invalid there."""
NAT_PRIORITY: dict[Hook, int] = {"prerouting": -100, "output": -100, "input": 100, "postrouting": 100}
"""Where the kernel asks the nat chains of a hook, whatever their own priority, which orders them among themselves."""
LOOPBACK = (name_interval("lo")[0],) * 2
"""What a packet with an unknown interface does not match: one that comes from elsewhere, or goes there."""
ICMPX = {
    "port-unreachable": ("port-unreachable", "port-unreachable"),
    "admin-prohibited": ("admin-prohibited", "admin-prohibited"),
    "no-route": ("net-unreachable", "no-route"),
    "host-unreachable": ("host-unreachable", "addr-unreachable"),
}
"""What an `icmpx` answer is to IPv4 and to IPv6."""
DEEPEST_JUMP = 100


@dataclass(frozen=True)
class Decision:
    """What one base chain did with a packet."""

    table: Table
    chain: Chain
    rule: Rule | None
    """None: the policy of the base chain."""
    action: Action

    def __str__(self) -> str:
        where = f"{self.table.family} {self.table.name} {self.chain.name}"
        return f"{where} {self.rule.handle}: {self.rule.text}" if self.rule else f"{where} policy {self.action.kind}"


@dataclass(frozen=True)
class GuestVerdict:
    verdict: Verdict
    packet: Packet
    """As translation left it."""
    detail: str = ""
    """The answer of a reject; the reason why the verdict is unknown."""
    decisions: tuple[Decision, ...] = ()
    """One of each base chain that the packet met."""
    doubts: tuple[str, ...] = ()
    """Matches that were not known. If the verdict is known, they decide only by which rule it is given."""

    @property
    def decisive(self) -> Decision | None:
        """The decision that ended it; of an accepted packet the last by a rule of a filter, else the last."""
        by_rule = [d for d in self.decisions if d.rule and not d.chain.is_nat]
        chosen = by_rule if self.verdict == "accept" and by_rule else self.decisions
        return chosen[-1] if chosen else None


def evaluate(
    ruleset: Ruleset,
    hooks: Sequence[Hook],
    packet: Packet,
    state: State = "NEW",
    *,
    addresses: Mapping[str, Sequence[Address]] | None = None,
    translated: Packet | None = None,
) -> GuestVerdict:
    """Return what happens to a packet on its way through `hooks`: `INPUT`, `FORWARD`, `OUTPUT`, or a part of them.

    addresses: those of each interface, the primary one first; what masquerading and redirecting translate to.
    translated: of a packet that is not NEW, what the translation of its connection makes of it.
    A translated source port is said to be kept although the kernel takes another where two connections would clash.
    """
    live: dict[Packet, tuple[Decision, ...]] = {packet: ()}
    ended: list[GuestVerdict] = []
    doubts: dict[str, None] = {}
    for hook in hooks:
        chains = sorted(ruleset.base_chains(hook, packet.version), key=lambda found: _place(found[1], hook))
        pending = hook in NAT_PRIORITY and translated is not None and state != "NEW"
        settled: set[Packet] = set()
        for table, chain in chains:
            if pending and translated is not None and _place(chain, hook)[0] >= NAT_PRIORITY[hook]:
                live, pending = _established(live, hook, translated), False
            if chain.is_nat and state != "NEW":
                continue
            after: dict[Packet, tuple[Decision, ...]] = {}
            for current, decisions in live.items():
                if chain.is_nat and current in settled:
                    after[current] = decisions
                    continue
                traversal = _Traversal(table, current, _state_at(chain, hook, current, state), doubts)
                for decision in traversal.decide(chain):
                    so_far = (*decisions, decision)
                    kind = decision.action.kind
                    if kind in ("dnat", "redirect", "snat", "masquerade"):
                        result = _translate(current, decision.action, addresses or {})
                        settled.add(result)
                        after[result] = so_far
                    elif kind == "accept":
                        after[current] = so_far
                    else:
                        ended.append(_ended(current, decision.action, so_far))
            live = after
        if pending and translated is not None:
            live = _established(live, hook, translated)
    outcomes = [*ended, *(GuestVerdict("accept", left, "", decisions) for left, decisions in live.items())]
    distinct = {(o.verdict, o.detail, o.packet if o.verdict == "accept" else None) for o in outcomes}
    if len(distinct) == 1 and outcomes[-1].verdict != "unknown":
        return replace(outcomes[-1], doubts=tuple(doubts))
    first_unknown = next((o for o in outcomes if o.verdict == "unknown"), outcomes[0])
    reasons = dict.fromkeys([*doubts, *(o.detail for o in outcomes if o.verdict == "unknown")])
    return GuestVerdict("unknown", packet, "; ".join(reasons), first_unknown.decisions, tuple(doubts))


def _place(chain: Chain, hook: Hook) -> tuple[int, int]:
    return NAT_PRIORITY.get(hook, chain.priority) if chain.is_nat else chain.priority, chain.priority


def _state_at(chain: Chain, hook: Hook, packet: Packet, state: State) -> State:
    tracked = chain.priority > CONNTRACK_PRIORITY or hook not in ("prerouting", "output") or packet.in_interface == "lo"
    return state if tracked else "INVALID"


def _established(
    live: Mapping[Packet, tuple[Decision, ...]], hook: Hook, translated: Packet
) -> dict[Packet, tuple[Decision, ...]]:
    return {
        replace(packet, destination=translated.destination, destination_port=translated.destination_port)
        if hook in ("prerouting", "output")
        else replace(packet, source=translated.source, source_port=translated.source_port): decisions
        for packet, decisions in live.items()
    }


def _ended(packet: Packet, action: Action, decisions: tuple[Decision, ...]) -> GuestVerdict:
    if action.kind == "drop":
        return GuestVerdict("drop", packet, "", decisions)
    if action.kind == "unknown":
        return GuestVerdict("unknown", packet, f"{action.target} ({decisions[-1]})", decisions)
    family, _, answer = action.target.partition(" ")
    if family == "icmpx":
        v4, v6 = ICMPX.get(answer, (answer, answer))
        return GuestVerdict("reject", packet, f"icmp {v4}" if packet.version == 4 else f"icmpv6 {v6}", decisions)
    return GuestVerdict("reject", packet, action.target, decisions)


def _translate(packet: Packet, action: Action, addresses: Mapping[str, Sequence[Address]]) -> Packet:
    """Return the packet with what is certain of the new address and port; the rest is not known."""
    is_source = action.kind in ("snat", "masquerade")
    address = packet.source if is_source else packet.destination
    port = packet.source_port if is_source else packet.destination_port
    if action.addresses is not None:
        low, high = action.addresses
        address = (IPv4Address(low) if packet.version == 4 else IPv6Address(low)) if low == high else None
    elif action.kind in ("masquerade", "redirect"):
        interface = packet.out_interface if is_source else packet.in_interface
        if action.kind == "redirect" and interface == "":
            address = IPv4Address("127.0.0.1") if packet.version == 4 else IPv6Address("::1")
        else:
            own = addresses.get(interface or "", ())
            address = next((a for a in own if a.version == packet.version), None)
    if action.ports is not None and packet.protocol in PORT_PROTOCOLS:
        port = action.ports[0] if action.ports[0] == action.ports[1] else None
    if is_source:
        return replace(packet, source=address, source_port=port)
    return replace(packet, destination=address, destination_port=port)


class _Traversal:
    """One packet in the chains of one table."""

    def __init__(self, table: Table, packet: Packet, state: State, doubts: dict[str, None]) -> None:
        self._table = table
        self._packet = packet
        self._state = state
        self._doubts = doubts
        self._left: dict[str, tuple[list[Decision], bool]] = {}
        self._inside: list[str] = []

    def decide(self, base: Chain) -> list[Decision]:
        """Return each decision that the base chain may come to: one, unless a match is not known."""
        decisions, through = self._leave(base.name)
        return [*decisions, Decision(self._table, base, None, Action(base.policy))] if through else decisions

    def _leave(self, name: str) -> tuple[list[Decision], bool]:
        """Return the decisions that may be made in a chain, and whether a packet may leave it undecided."""
        if name not in self._left:
            self._inside.append(name)
            self._left[name] = self._follow(self._table.chain[name])
            self._inside.pop()
        return self._left[name]

    def _follow(self, chain: Chain) -> tuple[list[Decision], bool]:
        decisions: list[Decision] = []
        returned = False
        for rule in chain.rules:
            action = rule.action
            matched = action.kind != "continue" and self._matches(chain, rule)
            if matched is False:
                continue
            if action.kind in ("jump", "goto"):
                problem = self._problem(action.target)
                if problem:
                    action = Action("unknown", problem)
                else:
                    inner, through = self._leave(action.target)
                    decisions += inner
                    returned |= through and action.kind == "goto"
                    if matched and (action.kind == "goto" or not through):
                        return decisions, returned
                    continue
            if action.kind == "return":
                returned = True
            else:
                decisions.append(Decision(self._table, chain, rule, action))
            if matched:
                return decisions, returned
        return decisions, True

    def _problem(self, target: str) -> str:
        if target not in self._table.chain:
            return f"no chain {target}"
        return f"jumps without end: {target}" if target in self._inside or len(self._inside) > DEEPEST_JUMP else ""

    def _matches(self, chain: Chain, rule: Rule) -> bool | None:
        answer: bool | None = True
        unknown = ""
        for match in rule.matches:
            matched = self._test(match)
            if matched is False:
                return False
            if matched is None and answer:
                answer, unknown = None, str(match)
        if answer is None:
            self._doubts[f"{unknown} ({Decision(self._table, chain, rule, rule.action)})"] = None
        return answer

    def _test(self, match: Match) -> bool | None:
        values = [field_value(name, self._packet, self._state) for name in match.fields]
        if -1 in values:
            return False
        answer: bool | None = False
        for element in match.elements:
            fits = [
                interval != LOOPBACK and None if value is None else interval[0] <= value & match.mask <= interval[1]
                for value, interval in zip(values, element, strict=True)
            ]
            if False not in fits:
                answer = None if None in fits else True
                if answer:
                    break
        if None in values and not match.elements:
            return None
        return None if answer is None else answer != match.negated


def field_value(name: str, packet: Packet, state: State) -> int | None:
    """Return the value of a packet's field; -1 if it has no such field, None if the value is not known."""
    protocol = PROTOCOLS.get(packet.protocol)
    layer, _, field = name.partition(" ")
    match layer, field:
        case "ip" | "ip6", _ if (layer == "ip6") != (packet.version == 6):
            return -1
        case "ip" | "ip6", "saddr":
            return None if packet.source is None else int(packet.source)
        case "ip" | "ip6", "daddr":
            return None if packet.destination is None else int(packet.destination)
        case ("ip", "protocol") | ("ip6", "nexthdr") | ("meta", "l4proto"):
            return protocol
        case "meta", "nfproto":
            return 2 if packet.version == 4 else 10
        case "meta", "iif" | "iifname":
            return None if packet.in_interface is None else name_interval(packet.in_interface)[0]
        case "meta", "oif" | "oifname":
            return None if packet.out_interface is None else name_interval(packet.out_interface)[0]
        case "ct", "state":
            return STATE_BITS[state]
        case "icmp" | "icmpv6", _ if layer != packet.protocol:
            return -1
        case "icmp" | "icmpv6", "type":
            return packet.icmp_type
        case "icmp" | "icmpv6", "code":
            return 0 if packet.icmp_type in (0, 8, 128, 129) else None
        case "tcp", "flags" if packet.protocol == "tcp":
            return TCP_FLAGS["SYN"] if state == "NEW" else None
        case _ if layer in PORT_PROTOCOLS and layer != packet.protocol:
            return -1
        case _, "sport" if layer in PORT_PROTOCOLS or (layer == "th" and packet.protocol in PORT_PROTOCOLS):
            return packet.source_port
        case _, "dport" if layer in PORT_PROTOCOLS or (layer == "th" and packet.protocol in PORT_PROTOCOLS):
            return packet.destination_port
    return None
