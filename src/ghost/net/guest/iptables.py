"""Reader of what `iptables-save` and `ip6tables-save` print, with or without counters (`-c`).

Raises `ValueError` with the line for text that is not of that form. A rule with a match or target that is not known
here is kept; the match is unknown, and so is what the target does.

iptables-save(8), iptables(8), iptables-extensions(8)
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Iterator
from dataclasses import replace
from ipaddress import ip_address
from typing import Literal, get_args

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
    Hook,
    Match,
    Rule,
    Ruleset,
    Table,
    Translation,
    address_interval,
    name_interval,
    port_interval,
)

Layer = Literal["ip", "ip6"]
HOOKS: dict[str, Hook] = {name.upper(): name for name in get_args(Hook)}
PRIORITIES = {"raw": -300, "mangle": -150, "nat": -100, "filter": 0, "security": 50}
"""Of the base chains of each table (linux/netfilter_ipv4.h)."""
VERDICTS: dict[str, ActionKind] = {"ACCEPT": "accept", "DROP": "drop", "RETURN": "return"}
TRANSLATIONS: dict[str, ActionKind] = {name.upper(): name for name in get_args(Translation)}
WITHOUT_VERDICT = frozenset(
    (
        "LOG",
        "NFLOG",
        "ULOG",
        "TRACE",
        "AUDIT",
        "SET",
        "TCPMSS",
        "CHECKSUM",
        "CLASSIFY",
        "TOS",
        "DSCP",
        "MARK",
        "CONNMARK",
    )
)
"""Targets after which the next rule is asked. What they mark matters only to matches that are unknown anyway."""
REJECTS = {
    "tcp-reset": "tcp reset",
    "icmp-proto-unreachable": "icmp prot-unreachable",
    "icmp6-adm-prohibited": "icmpv6 admin-prohibited",
}
"""Answers that nft names in another way."""
KNOWN_MODULES = frozenset(
    ("tcp", "udp", "udplite", "sctp", "dccp", "multiport", "conntrack", "state", "icmp", "icmp6", "iprange", "comment")
)
BASE_OPTIONS = frozenset(("-s", "-d", "-i", "-o", "-p", "-f"))
FREE_TEXT = frozenset(("--comment", "--log-prefix", "--nflog-prefix", "--string", "--hex-string"))
"""Options whose one value may look like an option."""
OPTION = re.compile(r"-[a-zA-Z]|--[a-z][a-z0-9-]*")
APPENDED = re.compile(r"(?:\[\d+:\d+\] )?-A (\S+)(.*)")
DECLARED = re.compile(r":(\S+) (ACCEPT|DROP|-)(?: \[\d+:\d+\])?")


def read_iptables(text: str, layer: Layer = "ip", reference: str = "") -> Ruleset:
    """Return the tables of a listing; `layer`: "ip" for `iptables-save`, "ip6" for `ip6tables-save`."""
    tables: list[Table] = []
    name = ""
    chains: dict[str, Chain] = {}
    rules: dict[str, list[Rule]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stated = line.strip()
        try:
            if not stated or stated.startswith("#"):
                continue
            if not name:
                name, chains, rules = _table_name(stated), {}, {}
            elif stated == "COMMIT":
                whole = tuple(replace(chain, rules=tuple(rules[chain.name])) for chain in chains.values())
                tables.append(Table(layer, name, whole, reference))
                name = ""
            elif declared := DECLARED.fullmatch(stated):
                chain = _chain(declared[1], declared[2], name)
                chains[chain.name], rules[chain.name] = chain, []
            elif appended := APPENDED.fullmatch(stated):
                if appended[1] not in chains:
                    raise ValueError(f"no chain {appended[1]}")
                handle = f"rule {len(rules[appended[1]]) + 1}"
                rules[appended[1]].append(_rule(appended[2], layer, chains, handle))
            else:
                raise ValueError("neither a chain nor a rule")
        except ValueError as error:
            raise ValueError(f"line {number} is not of iptables-save: {error}: {stated[:200]!r}") from error
    if name:
        raise ValueError(f"table {name} does not end: no COMMIT behind line {len(text.splitlines())}")
    return Ruleset(tuple(tables))


def _table_name(stated: str) -> str:
    if not stated.startswith("*") or stated[1:] not in PRIORITIES:
        raise ValueError("no table begins here")
    return stated[1:]


def _chain(name: str, policy: str, table: str) -> Chain:
    if policy == "-":
        return Chain(name)
    if name not in HOOKS:
        raise ValueError(f"{name} is not a chain with a policy")
    priority = 100 if table == "nat" and name in ("INPUT", "POSTROUTING") else PRIORITIES[table]
    return Chain(name, (), HOOKS[name], priority, VERDICTS[policy], is_nat=table == "nat")


def _rule(text: str, layer: Layer, chains: Container[str], handle: str) -> Rule:
    matches: list[Match] = []
    module, protocol = "", "th"
    target: tuple[str, str] | None = None
    target_options: dict[str, str] = {}
    for negated, option, values in _options(shlex.split(text)):
        first = values[0] if values else ""
        if target:
            target_options[option] = first
        elif option in ("-j", "-g"):
            target = option, first
        elif option == "-m":
            module = first
            if module not in KNOWN_MODULES:
                matches.append(Match((module,)))
        elif option in BASE_OPTIONS or module in KNOWN_MODULES or not module:
            matches += _matches(option, values, negated, layer, protocol, module)
            if option == "-p" and not negated:
                protocol = next((known for known in PORT_PROTOCOLS if first in (known, str(PROTOCOLS[known]))), "th")
    action = _action(*target, target_options, layer, chains) if target else Action("continue")
    return Rule(tuple(matches), action, text.strip(), handle)


def _options(words: list[str]) -> Iterator[tuple[bool, str, list[str]]]:
    """Return each option with its values, and whether "!" stands before it."""
    place = 0
    while place < len(words):
        negated = words[place] == "!"
        place += negated
        if place == len(words) or not OPTION.fullmatch(words[place]):
            raise ValueError(f"an option is expected at {' '.join(words[place:])!r}")
        option = words[place]
        place += 1
        end = place + 1 if option in FREE_TEXT else place
        while option not in FREE_TEXT and end < len(words) and words[end] != "!" and not OPTION.fullmatch(words[end]):
            end += 1
        yield negated, option, words[place:end]
        place = end


def _matches(
    option: str, values: list[str], negated: bool, layer: Layer, protocol: str, module: str
) -> Iterator[Match]:
    if option == "-f":  # a later fragment: never, packets are whole
        yield Match(("meta l4proto",), (), negated)
        return
    if option == "--syn":
        option, values = "--tcp-flags", ["FIN,SYN,RST,ACK", "SYN"]
    if not values:
        if option in BASE_OPTIONS:
            raise ValueError(f"{option} has no value")
        yield Match((f"{module} {option}",))
        return
    value = values[0]
    match option:
        case "-s" | "--src-range":
            yield _address(f"{layer} saddr", value, negated)
        case "-d" | "--dst-range":
            yield _address(f"{layer} daddr", value, negated)
        case "-i" | "-o":
            interval = name_interval(value.removesuffix("+"), prefix=value.endswith("+"))
            yield Match(("meta iifname" if option == "-i" else "meta oifname",), ((interval,),), negated)
        case "-p":
            number = int(value) if value.isdecimal() else 0 if value == "all" else PROTOCOLS.get(value)
            if number is None:
                yield Match((f"protocol {value}",))
            elif number:
                yield Match(("meta l4proto",), (((number, number),),), negated)
        case "--sport" | "--sports":
            yield Match((f"{protocol} sport",), _ports(value), negated)
        case "--dport" | "--dports":
            yield Match((f"{protocol} dport",), _ports(value), negated)
        case "--ports":
            ports = _ports(value)
            either = (*((p, EVERYTHING) for (p,) in ports), *((EVERYTHING, p) for (p,) in ports))
            yield Match((f"{protocol} sport", f"{protocol} dport"), either, negated)
        case "--ctstate" | "--state":
            states = [STATE_BITS.get(state) for state in value.split(",")]
            known = tuple(((bit, bit),) for bit in states if bit is not None)
            yield Match((f"{module} {option} {value}",)) if None in states else Match(("ct state",), known, negated)
        case "--icmp-type" | "--icmpv6-type":
            if value != "any":
                yield _icmp("icmp" if option == "--icmp-type" else "icmpv6", value, negated)
        case "--tcp-flags" if len(values) == 2:
            mask, set_flags = (_tcp_flags(names) for names in values)
            yield Match(("tcp flags",), (((set_flags, set_flags),),), negated, mask)
        case "--comment":
            return
        case _:
            yield Match((f"{module} {option}".strip(),))


def _address(field: str, value: str, negated: bool) -> Match:
    address, _, mask = value.partition("/")
    if "." in mask or ":" in mask:
        bits = int(ip_address(mask))
        stated = int(ip_address(address)) & bits
        return Match((field,), (((stated, stated),),), negated, bits)
    return Match((field,), ((address_interval(value),),), negated)


def _ports(value: str) -> tuple[Element, ...]:
    return tuple((port_interval(port),) for port in value.split(","))


def _icmp(layer: str, value: str, negated: bool) -> Match:
    kind, has_code, code = value.partition("/")
    number = ICMP_TYPES[layer].get(kind)
    number = int(kind) if number is None else number
    codes = (int(code), int(code)) if has_code else EVERYTHING
    return Match((f"{layer} type", f"{layer} code"), (((number, number), codes),), negated)


def _tcp_flags(names: str) -> int:
    everything = sum(TCP_FLAGS[flag] for flag in ("FIN", "SYN", "RST", "PSH", "ACK", "URG"))
    values = {**TCP_FLAGS, "ALL": everything, "NONE": 0}
    if unknown := set(names.split(",")) - values.keys():
        raise ValueError(f"{', '.join(unknown)} is no TCP flag")
    return sum(values[name] for name in set(names.split(",")))


def _action(option: str, target: str, options: dict[str, str], layer: Layer, chains: Container[str]) -> Action:
    if target in chains:
        return Action("jump" if option == "-j" else "goto", target)
    if target in VERDICTS:
        return Action(VERDICTS[target])
    if target in WITHOUT_VERDICT:
        return Action("continue")
    if target == "REJECT":
        answer = options.get("--reject-with", "icmp-port-unreachable" if layer == "ip" else "icmp6-port-unreachable")
        return Action("reject", REJECTS.get(answer, answer.replace("icmp6-", "icmpv6 ").replace("icmp-", "icmp ")))
    if target in TRANSLATIONS:
        return _translation(TRANSLATIONS[target], options, layer)
    return Action("unknown", target)


def _translation(kind: ActionKind, options: dict[str, str], layer: Layer) -> Action:
    stated = options.get("--to-destination", options.get("--to-source", ""))
    if stated.startswith("["):
        address, _, ports = stated[1:].partition("]")
    elif layer == "ip" or re.fullmatch(r":\d[\d-]*", stated):
        address, _, ports = stated.partition(":")
    else:
        address, ports = stated, ""
    ports = options.get("--to-ports", ports.removeprefix(":")).partition("/")[0]
    is_random = kind in ("snat", "masquerade") and not options.keys().isdisjoint(("--random", "--random-fully"))
    return Action(
        kind,
        addresses=address_interval(address) if address else None,
        ports=port_interval(ports, "-") if ports else (1, 65535) if is_random else None,
    )
