"""What a recorded command read: the inverse of `argv_of`, as people and models write such a command too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ghost.net.admin_rules import AdminRules
from ghost.net.az_reads import AZ_READS, AzRead
from ghost.net.dig_reads import asked_by_dig
from ghost.net.gateways import GatewayConnections
from ghost.net.listed_resources import type_in
from ghost.net.network import Missing
from ghost.net.resources import (
    EffectiveGroups,
    EffectiveRoutes,
    Interface,
    Machine,
    Resource,
    RouteTable,
    RuleSet,
    VirtualNetwork,
    subscription_of,
)
from ghost.net.tenant_bodies import LISTED, OWNED

_SHORT: Final = {
    "--resource-group": "-g", "--name": "-n", "--output": "-o", "--server": "-s", "--zone-name": "-z",
    "--show-details": "-d",
}  # fmt: skip
_NEUTRAL: Final = {"-g", "-o", "--subscription", "--only-show-errors"}
_ALSO: Final[Mapping[type[Resource], AzRead]] = {
    RuleSet: AzRead("", every="network nsg list"),
    RouteTable: AzRead("", every="network route-table list"),
    Machine: AzRead("vm show -d", every="vm list -d"),
}
"""Commands that tell the same as the one that is asked for here."""
_TYPES: Final[Mapping[type[Resource], str]] = {
    **LISTED,
    **{kind: owner for kind, (owner, _) in OWNED.items()},
    EffectiveGroups: LISTED[Interface],
    EffectiveRoutes: LISTED[Interface],
    AdminRules: LISTED[VirtualNetwork],
    GatewayConnections: "microsoft.network/virtualnetworkgateways",
}
"""The Azure type of what the id of each names."""


def missing_of(argv: Sequence[str], home: str = "") -> Missing | None:
    """Return what a command read in whole; None if it is none of ours, or shows a part.

    `home`: the login's own subscription.
    """
    if argv and argv[0] == "dig":
        return asked_by_dig(argv)
    words, options = words_and_options(argv[1:])
    if not argv or argv[0] != "az" or options.get("-o", "json") not in ("json", "jsonc"):
        return None
    for kind, how in (*AZ_READS.items(), *_ALSO.items()):
        for command in filter(None, (how.one, how.every)):
            own_words, own_options = words_and_options(command.split())
            more = {name: value for name, value in options.items() if own_options.get(name) != value}
            if words != own_words or own_options.items() - options.items() or more.pop("--query", "") != how.query:
                continue
            found = _one(kind, how, more, home) if command == how.one else _every(kind, more)
            if found is not None:
                return found
    return None


def _every(kind: type[Resource], options: Mapping[str, str]) -> Missing | None:
    return Missing(kind) if options.keys() <= _NEUTRAL - {"-g", "--subscription"} else None


def _one(kind: type[Resource], how: AzRead, options: dict[str, str], home: str) -> Missing | None:
    if how.name == "--subscription":
        of = options.get("--subscription", home)
        return Missing(kind, f"/subscriptions/{of}") if of and options.keys() <= _NEUTRAL - {"-g"} else None
    if options.get("--ids"):
        first, *others = options.pop("--ids").split()
        same_type = {type_in(each) for each in (first, *others)} == {_TYPES[kind]}
        return Missing(kind, first, tuple(others)) if same_type and options.keys() <= _NEUTRAL else None
    of, group, name = options.get("--subscription", home), options.get("-g"), options.pop(how.name, "")
    if not (of and group and name and options.keys() <= _NEUTRAL) or kind not in _TYPES:
        return None
    return Missing(kind, f"/subscriptions/{of}/resourceGroups/{group}/providers/{_TYPES[kind]}/{name}")


def home_in(text: str) -> str:
    """Return the subscription of the first id in an answer; empty if it has none."""
    at = text.find("/subscriptions/")
    return subscription_of(text[at : at + 60].partition('"')[0]) if at >= 0 else ""


def words_and_options(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the words before the first option, and the values of the options by their short names."""
    start = next((at for at, word in enumerate(words) if word.startswith("-")), len(words))
    flat = [part for word in words[start:] for part in (word.split("=", 1) if word.startswith("--") else [word])]
    options: dict[str, list[str]] = {}
    for word in flat:
        if word.startswith("-"):
            values = options[_SHORT.get(word, word)] = []
        else:
            values.append(word)
    return list(words[:start]), {option: " ".join(values) for option, values in options.items()}
