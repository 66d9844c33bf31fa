"""Reader of what `nft -j list ruleset` prints.

Raises `ValueError` with the place for JSON that is not of that form. A rule with a statement or expression that is not
known here is kept; what it decides is unknown. Tables of the families arp and bridge see no packets of the host and are
left out; what a chain at ingress or egress does is unknown.

libnftables-json(5), nft(8)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any, get_args

from ghost.net.guest.ruleset import (
    EVERYTHING,
    ICMP_TYPES,
    PORT_PROTOCOLS,
    PROTOCOLS,
    STATE_BITS,
    TCP_FLAGS,
    Action,
    ActionKind,
    Chain,
    Element,
    Family,
    Hook,
    Interval,
    Match,
    Rule,
    Ruleset,
    Table,
    Translation,
    address_interval,
    name_interval,
)

FAMILIES: dict[str, Family] = {"ip": "ip", "ip6": "ip6", "inet": "inet", "netdev": "inet"}
VERDICTS: dict[str, ActionKind] = {"accept": "accept", "drop": "drop", "return": "return", "continue": "continue"}
JUMPS: dict[str, ActionKind] = {"jump": "jump", "goto": "goto"}
TRANSLATIONS: dict[str, ActionKind] = {name: name for name in get_args(Translation)}
CONTINUES = frozenset(("counter", "log", "comment", "flow", "last", "secmark", "ct helper", "ct timeout", "xt LOG"))
"""Statements after which the rule goes on, and which change nothing that a known match asks for."""
MAY_BREAK = frozenset(("limit", "quota", "ct count", "meter", "xt match"))
"""Statements that act as a match."""
SET_FREELY = frozenset(
    ("meta mark", "meta priority", "meta nftrace", "meta secmark", "ct mark", "ct label", "ct event")
)
"""Fields that a rule may set: only matches that are unknown anyway ask for them."""
TCP = Match(("meta l4proto",), (((6, 6),),))
IPV4, IPV6 = (Match(("meta nfproto",), (((number, number),),)) for number in (2, 10))
IMPLIED = {"tcp reset": TCP, "icmp": IPV4, "icmpv6": IPV6, "ip": IPV4, "ip6": IPV6}
"""What the answer of a reject, or the family of a translation, asks of a packet; nft does not list it."""
SYMBOLS: dict[str, Mapping[str, int]] = {
    **dict.fromkeys(("meta l4proto", "ip protocol", "ip6 nexthdr"), PROTOCOLS),
    **{f"{layer} {side}": {} for layer in (*PORT_PROTOCOLS, "th") for side in ("sport", "dport")},
    **{f"{layer} type": types for layer, types in ICMP_TYPES.items()},
    "icmp code": {},
    "icmpv6 code": {},
    "meta nfproto": {"ipv4": 2, "ipv6": 10},
    "ct state": {state.lower(): bit for state, bit in STATE_BITS.items()},
    "tcp flags": {flag.lower(): bit for flag, bit in TCP_FLAGS.items()},
}
"""Fields whose values are numbers, and the names of these."""
ADDRESS_FIELDS = frozenset(("ip saddr", "ip daddr", "ip6 saddr", "ip6 daddr"))
NAME_FIELDS = frozenset(("meta iif", "meta oif", "meta iifname", "meta oifname"))


class _Unsupported(Exception):  # noqa: N818 - not an error: what it names becomes unknown
    pass


def read_nft(text: str, reference: str = "") -> Ruleset:
    """Return the tables of a listing."""
    try:
        listing = _object(json.loads(text)).get("nftables")
    except RecursionError:
        raise ValueError("not the JSON of nft -j list ruleset: nested too deeply") from None
    tables: dict[tuple[str, str], _TableReader] = {}
    for place, item in enumerate(_list(listing)):
        try:
            for kind, stated in _object(item).items():
                if kind in ("table", "chain", "set", "map", "rule"):
                    _sort(kind, _object(stated), tables)
        except ValueError as error:
            raise ValueError(f"nftables[{place}] is not of nft -j list ruleset: {error}") from error
    return Ruleset(tuple(reader.table(reference) for reader in tables.values() if not reader.is_dormant))


def _sort(kind: str, stated: Mapping[str, Any], tables: dict[tuple[str, str], _TableReader]) -> None:
    family, name = _text_of(stated, "family"), _text_of(stated, "name" if kind == "table" else "table")
    if family not in FAMILIES:
        return
    if kind == "table":
        tables[family, name] = _TableReader(family, name, stated.get("flags"))
        return
    if (family, name) not in tables:
        raise ValueError(f"no table {family} {name}")
    tables[family, name].take(kind, stated)


class _TableReader:
    """Collects what a table holds. Rules are read last: the sets they name are known then."""

    def __init__(self, family: str, name: str, flags: Any) -> None:
        self._family = FAMILIES[family]
        self._name = name
        stated = {str(flag) for flag in (flags if isinstance(flags, list) else [flags])} - {"None", "owner", "persist"}
        self.is_dormant = stated == {"dormant"}
        self._doubt = f"table flags {', '.join(sorted(stated))}" if stated else ""
        self._chains: dict[str, Chain] = {}
        self._rules: dict[str, list[tuple[str, list[Any], str]]] = {}
        self._sets: dict[str, Mapping[str, Any]] = {}

    def take(self, kind: str, stated: Mapping[str, Any]) -> None:
        if kind == "chain":
            chain = self._chain(stated)
            self._chains[chain.name], self._rules[chain.name] = chain, []
        elif kind == "rule":
            name = _text_of(stated, "chain")
            if name not in self._rules:
                raise ValueError(f"no chain {name}")
            comment = f" comment {json.dumps(stated['comment'])}" if stated.get("comment") else ""
            self._rules[name].append((f"handle {stated.get('handle')}", _list(stated.get("expr")), comment))
        else:
            self._sets[_text_of(stated, "name")] = stated

    def _chain(self, stated: Mapping[str, Any]) -> Chain:
        name, hook, priority = _text_of(stated, "name"), stated.get("hook"), stated.get("prio", 0)
        if hook is None:
            return Chain(name)
        if type(priority) is not int:
            raise ValueError(f"{priority!r} is not a priority")
        policy = VERDICTS.get(str(stated.get("policy", "accept")), "unknown")
        for known in get_args(Hook):
            if hook == known:
                return Chain(name, (), known, priority, policy, is_nat=stated.get("type") == "nat")
        self._doubt = self._doubt or f"hook {hook}"
        return Chain(name, (), "postrouting" if hook == "egress" else "prerouting", -1000, policy)

    def table(self, reference: str) -> Table:
        chains = []
        for name, chain in self._chains.items():
            rules = [rule for stated in self._rules[name] for rule in self._read_rule(*stated)]
            if self._doubt and chain.hook:  # either the chain is not asked at all, or it is
                rules.insert(0, Rule((Match((self._doubt,)),), Action("accept"), self._doubt, "table"))
            chains.append(Chain(name, tuple(rules), chain.hook, chain.priority, chain.policy, chain.is_nat))
        return Table(self._family, self._name, tuple(chains), reference)

    def _read_rule(self, handle: str, statements: list[Any], comment: str) -> Iterator[Rule]:
        """Return the rule; of a verdict map one per entry."""
        text = " ".join(_as_text(statement) for statement in statements) + comment
        matches: list[Match] = []
        for statement in statements:
            kind, stated = _only_item(statement)
            if kind == "xt" and isinstance(stated, Mapping):
                kind = "xt match" if stated.get("type") == "match" else f"xt {stated.get('name')}"
            try:
                if kind == "match":
                    matches.append(self._match(_object(stated)))
                elif kind == "vmap":
                    for keys, action in self._verdict_map(_object(stated)):
                        yield Rule((*matches, keys), action, text, handle)
                    return
                elif kind == "continue" or kind in CONTINUES:
                    continue
                elif kind in VERDICTS or kind in JUMPS or kind == "reject" or kind in TRANSLATIONS:
                    action = _action(kind, stated)
                    implied = stated.get("family", "") if kind in TRANSLATIONS and stated else action.target
                    implied = implied if implied in IMPLIED else str(implied).partition(" ")[0]
                    if implied in IMPLIED and kind not in JUMPS:
                        matches.append(IMPLIED[implied])
                    yield Rule(tuple(matches), action, text, handle)
                    return
                elif kind in ("set", "map"):
                    if _object(stated).get("stmt"):
                        matches.append(Match(("set statement",)))
                elif kind in MAY_BREAK:
                    matches.append(Match((_as_text(statement),)))
                elif kind != "mangle" or _as_text(_object(stated).get("key")) not in SET_FREELY:
                    raise _Unsupported(_as_text(statement))
            except _Unsupported as unsupported:
                if kind == "match":
                    matches.append(Match((str(unsupported),)))
                else:
                    yield Rule(tuple(matches), Action("unknown", str(unsupported)), text, handle)
                    return
        yield Rule(tuple(matches), Action("continue"), text, handle)

    def _match(self, stated: Mapping[str, Any]) -> Match:
        operator, right = stated.get("op"), stated.get("right")
        fields, mask = _fields(stated.get("left"))
        is_set = (isinstance(right, str) and right.startswith("@")) or (isinstance(right, Mapping) and "set" in right)
        if operator in ("in", "!") and not is_set:
            return Match(fields, (((0, 0),),), operator == "in", _bits(fields[0], right))
        if operator in ("==", "!=", "in") and is_set:
            return Match(fields, tuple(_element(fields, item) for item in self._items(right)), operator == "!=", mask)
        if operator in ("==", "!="):
            if isinstance(right, list) or (isinstance(right, Mapping) and "|" in right):
                right = _bits(fields[0], right)
            return Match(fields, (_element(fields, right),), operator == "!=", mask)
        if operator in ("<", "<=", ">", ">=") and len(fields) == 1:
            limit, last = _number(fields[0], right), EVERYTHING[1]
            bounds = {"<": (0, limit - 1), "<=": (0, limit), ">": (limit + 1, last), ">=": (limit, last)}
            return Match(fields, ((bounds[operator],),), mask=mask)
        raise _Unsupported(_as_text({"match": stated}))

    def _verdict_map(self, stated: Mapping[str, Any]) -> Iterator[tuple[Match, Action]]:
        fields, mask = _fields(stated.get("key"))
        pairs = [item for item in self._items(stated.get("data")) if isinstance(item, list) and len(item) == 2]
        read = [(_element(fields, key), _action(*_only_item(verdict))) for key, verdict in pairs]
        every = tuple(EVERYTHING for _ in fields)
        stated_keys = tuple(element for element, _ in read if element != every)
        for element, action in read:  # the element "*" stands for every other key
            rest = element == every
            yield Match(fields, stated_keys if rest else (element,), rest, mask), action

    def _items(self, stated: Any) -> list[Any]:
        """Return the elements of a set or map: an anonymous one, or one by name."""
        if isinstance(stated, Mapping):
            return _list(stated.get("set"))
        named = self._sets.get(str(stated).removeprefix("@"))
        if named is None:
            raise _Unsupported(f"no set {stated}")
        if {"dynamic", "timeout"} & {str(flag) for flag in _list(named.get("flags"))}:
            raise _Unsupported(f"{stated}, which changes")
        if any(_only_item(statement)[0] != "counter" for statement in _list(named.get("stmt"))):
            raise _Unsupported(f"{stated}, which has statements")
        return _list(named.get("elem"))


def _fields(stated: Any) -> tuple[tuple[str, ...], int]:
    """Return the names of the compared fields, and the mask."""
    kind, inner = _only_item(stated)
    if kind == "concat":
        return tuple(name for part in _list(inner) for name in _fields(part)[0]), -1
    if kind == "&":
        masked, *mask = _list(inner)
        (name, *_), _ = _fields(masked)
        return (name,), _bits(name, mask[0] if mask else None)
    name = _as_text(stated)
    if name not in SYMBOLS and name not in ADDRESS_FIELDS and name not in NAME_FIELDS:
        raise _Unsupported(name)
    return (name,), -1


def _element(fields: tuple[str, ...], stated: Any) -> Element:
    if isinstance(stated, Mapping) and "elem" in stated:
        wrapped = _object(stated["elem"])
        if wrapped.keys() - {"val", "comment", "counter"}:
            raise _Unsupported(_as_text(wrapped.get("val")) + " with statements")
        stated = wrapped.get("val")
    if stated == "*":
        return tuple(EVERYTHING for _ in fields)
    parts = _list(stated.get("concat")) if isinstance(stated, Mapping) and "concat" in stated else [stated]
    if len(parts) != len(fields):
        raise _Unsupported(_as_text(stated))
    return tuple(_interval(field, part) for field, part in zip(fields, parts, strict=True))


def _interval(field: str, stated: Any) -> Interval:
    if field in NAME_FIELDS:
        if not isinstance(stated, str):
            raise _Unsupported(f"{field} {_as_text(stated)}")
        return name_interval(stated.removesuffix("*"), prefix=stated.endswith("*"))
    if isinstance(stated, Mapping) and "range" in stated:
        first, *last = (_number(field, end) for end in _list(stated["range"]))
        return first, last[0] if last else first
    if isinstance(stated, Mapping) and "prefix" in stated and field in ADDRESS_FIELDS:
        prefix = _object(stated["prefix"])
        return address_interval(f"{prefix.get('addr')}/{prefix.get('len')}")
    number = _number(field, stated)
    return number, number


def _number(field: str, stated: Any) -> int:
    if type(stated) is int:
        return stated
    if isinstance(stated, str) and field in ADDRESS_FIELDS:
        return int(ip_address(stated))
    if isinstance(stated, str) and stated in SYMBOLS.get(field, {}):
        return SYMBOLS[field][stated]
    raise _Unsupported(f"{field} {_as_text(stated)}")


def _bits(field: str, stated: Any) -> int:
    parts = stated["|"] if isinstance(stated, Mapping) and "|" in stated else stated
    bits = 0
    for part in parts if isinstance(parts, list) else [parts]:
        bits |= _bits(field, part) if isinstance(part, Mapping) else _number(field, part)
    return bits


def _action(kind: str, stated: Any) -> Action:
    if kind in VERDICTS:
        return Action(VERDICTS[kind])
    if kind in JUMPS:
        return Action(JUMPS[kind], _text_of(_object(stated), "target"))
    if kind == "reject":
        answer = _object(stated or {"type": "icmpx", "expr": "port-unreachable"})
        return Action("reject", f"{answer.get('type')} {answer.get('expr', '')}".strip())
    if kind not in TRANSLATIONS:
        raise _Unsupported(kind)
    options = _object(stated or {})
    address, port, flags = options.get("addr"), options.get("port"), options.get("flags")
    is_random = kind in ("snat", "masquerade") and "random" in str(flags)
    return Action(
        TRANSLATIONS[kind],
        addresses=None if address is None else _interval("ip saddr", address),
        ports=_interval("th dport", port) if port is not None else (1, 65535) if is_random else None,
    )


def _as_text(stated: Any) -> str:
    """Return about what `nft list` prints for a statement or an expression."""
    if isinstance(stated, list):
        return (
            "{ "
            + ", ".join(" : ".join(map(_as_text, i)) if isinstance(i, list) else _as_text(i) for i in stated)
            + " }"
        )
    if not isinstance(stated, Mapping):
        return "" if stated is None else str(stated)
    kind, inner = next(iter(stated.items()), ("", None))
    if isinstance(inner, list):
        separator = {"range": "-", "concat": " . ", "&": " & ", "|": " | "}.get(kind)
        return separator.join(map(_as_text, inner)) if separator else _as_text(inner)
    if not isinstance(inner, Mapping):
        return kind if inner is None else f"{kind} {inner}"
    values = [value for value in inner.values() if value is not None]
    match kind:
        case "match":
            operator = "" if inner.get("op") in ("==", "in") else f"{inner.get('op')} "
            return f"{_as_text(inner.get('left'))} {operator}{_as_text(inner.get('right'))}"
        case "payload" | "elem":
            return " ".join(map(_as_text, values[:2] if kind == "payload" else values[:1]))
        case "prefix":
            return "/".join(map(_as_text, values))
        case "meta":
            return f"meta {_as_text(inner.get('key'))}"
        case "vmap":
            return f"{_as_text(inner.get('key'))} vmap {_as_text(inner.get('data'))}"
        case "counter":
            return kind
        case "reject":
            return f"reject with {' '.join(map(_as_text, values))}"
    return f"{kind} {' '.join(map(_as_text, values))}".strip()


def _only_item(stated: Any) -> tuple[str, Any]:
    items = list(_object(stated).items())
    if len(items) != 1:
        raise ValueError(f"an object with one member is expected, got {len(items)} members")
    return str(items[0][0]), items[0][1]


def _object(stated: Any) -> Mapping[str, Any]:
    if not isinstance(stated, Mapping):
        raise ValueError(f"an object is expected, got {type(stated).__name__}")
    return stated


def _list(stated: Any) -> list[Any]:
    if stated is not None and not isinstance(stated, list):
        raise ValueError(f"a list is expected, got {type(stated).__name__}")
    return stated or []


def _text_of(stated: Mapping[str, Any], field: str) -> str:
    if not isinstance(stated.get(field), str):
        raise ValueError(f"{field!r} is not a text")
    return str(stated[field])
