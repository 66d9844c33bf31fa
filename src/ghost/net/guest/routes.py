"""Route selection of a Linux guest: which interface and next hop a packet takes, or why none.

The rules are asked by priority; each names a table, in which the longest prefix wins, then the lowest metric. A rule
that asks for what is not known here (marks, ports) makes the decision unknown unless it is the same in either case.

    ip -j route show table all       read_routes
    ip -j rule, ip -6 -j rule        read_rules

The readers raise `ValueError` with the place for JSON that is not of that form.

ip-route(8), ip-rule(8), https://docs.kernel.org/networking/ip-sysctl.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any, Literal, TypeVar, get_args

from ghost.net.address_matching import Address, Prefix

Kind = Literal["unicast", "local", "broadcast", "anycast", "multicast", "blackhole", "unreachable", "prohibit", "throw"]
T = TypeVar("T")
REJECTS = ("blackhole", "unreachable", "prohibit", "throw")
RULE_FIELDS = frozenset(
    {"priority", "src", "srclen", "dst", "dstlen", "iif", "iif_detached", "oif", "oif_detached", "not", "table"}
    | {"action", "goto", "suppress_prefixlen", "protocol", "nop"}
)


@dataclass(frozen=True)
class NextHop:
    device: str
    gateway: Address | None = None
    """None: the destination itself is on the link."""


@dataclass(frozen=True)
class GuestRoute:
    network: Prefix
    kind: Kind = "unicast"
    hops: tuple[NextHop, ...] = ()
    """More than one: the kernel spreads connections over them."""
    table: str = "main"
    metric: int = 0
    tos: int = 0
    mtu: int | None = None
    source: Address | None = None
    """The source that packets made here take."""


@dataclass(frozen=True)
class RoutingRule:
    priority: int
    table: str = ""
    action: str = "lookup"
    """lookup, goto, nop, blackhole, unreachable or prohibit."""
    source: Prefix | None = None
    destination: Prefix | None = None
    in_interface: str = ""
    """"lo": packets made here."""
    out_interface: str = ""
    negated: bool = False
    goto: int = 0
    suppress_prefix_length: int = -1
    unknown: tuple[str, ...] = ()
    """What else the rule asks for."""


DEFAULT_RULES = tuple(RoutingRule(n, table) for n, table in ((0, "local"), (32766, "main"), (32767, "default")))


@dataclass(frozen=True)
class RouteDecision:
    kind: Kind | Literal["none", "unknown"]
    """none: no route, the packet is not sent."""
    hops: tuple[NextHop, ...] = ()
    route: GuestRoute | None = None
    mtu: int | None = None
    detail: str = ""
    """Why it is unknown."""


def select_guest_route(
    routes: Sequence[GuestRoute],
    destination: Address,
    rules: Sequence[RoutingRule] = DEFAULT_RULES,
    *,
    source: Address | None = None,
    in_interface: str = "",
    out_interface: str = "",
    mtus: Mapping[str, int] | None = None,
) -> RouteDecision:
    """Return the route of a packet that came in by `in_interface`, or is made here, perhaps bound to `out_interface`.

    source: None if the sender left it open. mtus: of the interfaces. Whether the guest forwards is not asked.
    """
    if destination.is_multicast:
        return RouteDecision("unknown", detail="multicast")
    table = [route for route in routes if destination in route.network and not route.tos]
    found = list(_decisions(table, rules, destination, source, in_interface or "lo", out_interface))
    doubts = ", ".join(dict.fromkeys(name for _, names in found for name in names))
    decisions = list(dict.fromkeys(decision for decision, _ in found))
    if len(decisions) > 1:
        return RouteDecision("unknown", detail=f"a rule asks for {doubts}")
    decision = decisions[0]
    if out_interface and destination.version == 4 and (decision.kind == "none" or decision.kind in REJECTS):
        decision = RouteDecision("unicast", (NextHop(out_interface),))  # the kernel takes it to be on the link
    limits = [decision.route.mtu] if decision.route and decision.route.mtu else []
    limits += [mtus[hop.device] for hop in decision.hops if mtus and hop.device in mtus]
    return RouteDecision(decision.kind, decision.hops, decision.route, min(limits, default=None))


def _decisions(
    routes: Sequence[GuestRoute],
    rules: Sequence[RoutingRule],
    destination: Address,
    source: Address | None,
    in_interface: str,
    out_interface: str,
) -> Iterator[tuple[RouteDecision, tuple[str, ...]]]:
    """Return each decision that the rules may come to, and what it rests on that is not known."""
    resume = 0
    for rule in sorted(rules, key=lambda rule: rule.priority):
        if rule.priority < resume:
            continue
        asked = (
            rule.source is None or (source is not None and source in rule.source),
            rule.destination is None or destination in rule.destination,
            rule.in_interface in ("", in_interface),
            rule.out_interface in ("", out_interface),
        )
        matches = all(asked) != rule.negated if all(asked) is False or not rule.unknown else None
        if matches is False:
            continue
        if rule.action == "goto":
            if matches is None:
                yield RouteDecision("unknown"), rule.unknown
            else:
                resume = rule.goto
        decision = _by_rule(rule, routes, out_interface)
        if decision:
            yield decision, rule.unknown
            if matches:
                return
    yield RouteDecision("none"), ()


def _by_rule(rule: RoutingRule, routes: Sequence[GuestRoute], out_interface: str) -> RouteDecision | None:
    if rule.action in REJECTS:
        return RouteDecision(_kind(rule.action))
    if rule.action != "lookup":
        return None
    fitting = sorted((r for r in routes if r.table == rule.table), key=lambda r: (-r.network.prefixlen, r.metric))
    for route in fitting:
        if route.kind in REJECTS and (not out_interface or route.network.version == 4):
            return None if route.kind == "throw" else RouteDecision(route.kind, (), route)
        hops = route.hops
        if route.network.version == 6:  # routes with the same metric share the packets
            equal = (r for r in fitting if (r.network, r.metric, r.kind) == (route.network, route.metric, route.kind))
            hops = tuple(dict.fromkeys(hop for r in equal for hop in r.hops))
        if out_interface:
            hops = tuple(hop for hop in hops if hop.device == out_interface)
        if hops and route.kind not in REJECTS:
            return (
                None
                if route.network.prefixlen <= rule.suppress_prefix_length
                else RouteDecision(route.kind, hops, route)
            )
    return None


def read_routes(text: str) -> tuple[GuestRoute, ...]:
    return _read(text, "ip -j route show table all", _route)


def read_rules(text: str) -> tuple[RoutingRule, ...]:
    return _read(text, "ip -j rule", _rule)


def _read(text: str, command: str, read: Callable[[Mapping[str, Any]], T]) -> tuple[T, ...]:
    try:
        rows = json.loads(text)
    except RecursionError:
        raise ValueError(f"not the JSON of {command}: nested too deeply") from None
    if not isinstance(rows, list):
        raise ValueError(f"not the JSON of {command}: a list is expected")
    result = []
    for place, row in enumerate(rows):
        try:
            result.append(read(row))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"[{place}] is not of {command}: {type(error).__name__} {error}") from error
    return tuple(result)


def _route(row: Mapping[str, Any]) -> GuestRoute:
    destination = str(row["dst"])
    if destination == "default":
        destination = "::/0" if "pref" in row or ":" in str(row.get("gateway", "")) else "0.0.0.0/0"
    source = row.get("prefsrc")
    return GuestRoute(
        ip_network(destination),
        _kind(str(row.get("type", "unicast"))),
        tuple(_hop(hop) for hop in row.get("nexthops", [row]) if "dev" in hop and "dead" not in hop.get("flags", ())),
        str(row.get("table", "main")),
        int(row.get("metric", 0)),
        int(str(row.get("tos", 0)), 0),
        next((int(metric["mtu"]) for metric in row.get("metrics", ()) if "mtu" in metric), None),
        ip_address(str(source)) if source else None,
    )


def _hop(row: Mapping[str, Any]) -> NextHop:
    gateway = row.get("gateway") or row.get("via", {}).get("host")
    return NextHop(str(row["dev"]), ip_address(str(gateway)) if gateway else None)


def _rule(row: Mapping[str, Any]) -> RoutingRule:
    return RoutingRule(
        int(row["priority"]),
        str(row.get("table", "")),
        "goto" if "goto" in row else "nop" if "nop" in row else str(row.get("action", "lookup")),
        _selector(row, "src"),
        _selector(row, "dst"),
        str(row.get("iif", "")),
        str(row.get("oif", "")),
        "not" in row,
        int(row.get("goto", 0)),
        int(row.get("suppress_prefixlen", -1)),
        tuple(sorted(row.keys() - RULE_FIELDS)),
    )


def _selector(row: Mapping[str, Any], field: str) -> Prefix | None:
    stated = row.get(field, "all")
    return (
        None
        if stated == "all"
        else ip_network(f"{stated}/{row[field + 'len']}" if f"{field}len" in row else str(stated))
    )


def _kind(stated: str) -> Kind:
    for kind in get_args(Kind):
        if stated == kind:
            return kind  # type: ignore[no-any-return]
    raise ValueError(f"{stated!r} is not a type of route")
