"""Of names that do not resolve: who asks for what. A server that is asked is no end, unless no name is told."""

from __future__ import annotations

import re
from dataclasses import replace
from ipaddress import ip_address
from itertools import pairwise
from typing import Final

from ghost.brain.offline.complaint import End
from ghost.brain.offline.understanding.end_mentions import NAMED, Mention, Mentioned
from ghost.brain.offline.understanding.named_hosts import address_of
from ghost.brain.offline.understanding.tenant_names import TenantNames
from ghost.net import HOST_ADDRESS, Interface, VirtualNetwork

_SERVER_BEFORE: Final = re.compile(r"(?:dns server|server:|resolver|nameserver)[\s:=(]*$")
_SERVER_AFTER: Final = re.compile(r"#53|\s?\(?(?:(?:as|is|our|the|a) ){0,3}(?:dns|resolver|nameserver)")


def who_asks_what(
    mentioned: Mentioned, sources: tuple[Mention, ...], destinations: tuple[Mention, ...], names: TenantNames
) -> tuple[tuple[Mention, ...], tuple[Mention, ...]]:
    """Return who asks for what: the name is the destination, a server that was asked is no end."""
    text = mentioned.text.casefold()
    named = tuple(m for m in destinations if _is_name(m)) or tuple(m for m in mentioned.mentions if _is_name(m))[:1]
    others = [m for m in (*sources, *destinations, *mentioned.mentions) if m.meanings and not _is_answer(m)]
    askers = [m for m in others if not (53 in m.ports or HOST_ADDRESS in m.addresses or _is_called_server(text, m))]
    rest = tuple(mention for mention in destinations if mention not in askers[:1])
    return tuple(askers[:1]), named or (_servers_of(askers[0], names) if askers else ()) or rest


_INSTEAD_OF: Final = re.compile(r"(?:instead of|rather than|and not|but not|,? not)\s*$", re.IGNORECASE)


def name_expected(mentioned: Mentioned) -> tuple[Mention, ...]:
    """Return the name that is said to resolve wrongly, told by addresses: "20.60.4.9 instead of 10.0.5.4"."""
    addresses = [m for m in mentioned.mentions if address_of(m.text.partition(":")[0]) is not None]
    for wrong, right in pairwise(addresses):
        between = mentioned.text[wrong.end : right.start]
        names = [end.label for ends in right.meanings for end in ends if "." in end.label and not end.machine]
        if _INSTEAD_OF.search(between) and len(between) < 25 and _is_answer(wrong) and names:
            end = End(names[0], names[0], origin=f"the name of {right.text}")
            return (replace(right, text=names[0], meanings=((end,),), ports=right.ports or wrong.ports),)
    return ()


def _servers_of(asker: Mention, names: TenantNames) -> tuple[Mention, ...]:
    """Return the DNS servers that a machine asks, where it is not said for which name."""
    interface = next((names.network.get(Interface, end.interface) for ends in asker.meanings for end in ends), None)
    home = names.network.get(VirtualNetwork, interface.subnet.partition("/subnets/")[0]) if interface else None
    servers = (interface.dns_servers or (home.dns_servers if home else ()) or (HOST_ADDRESS,)) if interface else ()
    ends = [replace(names.at(each) or End(each, each), origin=f"the DNS server of {asker.text}") for each in servers]
    return tuple(Mention(0, 0, end.address, ((end,),), NAMED, (53,), "Udp") for end in ends)


def _is_answer(mention: Mention) -> bool:
    """Return whether a mention is a name, or an address outside, as a server gives it: neither asks for a name."""
    return _is_name(mention) or any(address_of(each) and ip_address(each).is_global for each in mention.addresses)


def _is_called_server(text: str, mention: Mention) -> bool:
    before, after = text[max(mention.start - 24, 0) : mention.start], text[mention.end : mention.end + 24]
    return bool("dns" in mention.text.casefold() or _SERVER_BEFORE.search(before) or _SERVER_AFTER.match(after))


def _is_name(mention: Mention) -> bool:
    return "." in mention.text and address_of(mention.text) is None
