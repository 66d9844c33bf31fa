"""A guest from what its own tools print: the texts of the commands in `COMMANDS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ghost.net.guest.iptables import read_iptables
from ghost.net.guest.listeners import read_listeners
from ghost.net.guest.nft import read_nft
from ghost.net.guest.routes import DEFAULT_RULES, read_routes, read_rules
from ghost.net.guest.ruleset import Ruleset
from ghost.net.resources import Guest

COMMANDS: Final = {
    "nft": "nft -j list ruleset",
    "iptables": "iptables-save",
    "ip6tables": "ip6tables-save",
    "tcp": "ss -tlnpH",
    "udp": "ss -ulnpH",
    "routes": "ip -j route show table all",
    "rules": "ip -j rule",
    "forwarding": "sysctl -n net.ipv4.ip_forward",
}
"""What tells each part of a guest, as `read_guest` takes its text."""


def read_guest(machine: str, texts: Mapping[str, str], reference: str = "") -> Guest:
    """Return what the texts, by the names of `COMMANDS`, tell of a machine; what no text is of was not read.

    Raises `ValueError` for a text that its command does not print.
    """
    packet_filter = Ruleset() if {"nft", "iptables", "ip6tables"} & texts.keys() else None
    if packet_filter is not None:
        if "nft" in texts:
            packet_filter = packet_filter.merged(read_nft(texts["nft"], reference))
        if "iptables" in texts:
            packet_filter = packet_filter.merged(read_iptables(texts["iptables"], "ip", reference))
        if "ip6tables" in texts:
            packet_filter = packet_filter.merged(read_iptables(texts["ip6tables"], "ip6", reference))
    sockets = {name: read_listeners(texts[name]) for name in ("tcp", "udp") if name in texts}
    return Guest(
        id=machine,
        reference=reference,
        packet_filter=packet_filter,
        listeners=tuple((name, each) for name, found in sockets.items() for each in found) if sockets else None,
        routes=read_routes(texts["routes"]) if "routes" in texts else None,
        routing_rules=read_rules(texts["rules"]) if "rules" in texts else DEFAULT_RULES,
        forwards=texts["forwarding"].strip() == "1" if "forwarding" in texts else None,
    )
