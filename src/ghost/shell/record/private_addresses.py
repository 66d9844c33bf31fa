"""Private addresses and subnets: their spellings in text, and which subnet contains which.

RFC 1918, unique local and link-local addresses, in any spelling of version 6 (RFC 4291), version 4 in version 6, names
for reverse resolution, and host names that are made of an address (`ip-10-0-2-4`, `fd00--4`). Each text is read once
for each kind of spelling, with patterns that look no further than an address is long.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable

from ghost.patterns import lazy

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
PlaceholderOf = Callable[[IPNetwork], str]

PRIVATE: tuple[IPNetwork, ...] = (
    ipaddress.IPv4Network("10.0.0.0/8"),  # RFC 1918
    ipaddress.IPv4Network("172.16.0.0/12"),
    ipaddress.IPv4Network("192.168.0.0/16"),
    ipaddress.IPv6Network("fc00::/7"),  # RFC 4193
    ipaddress.IPv6Network("fe80::/10"),  # RFC 4291: holds the hardware address of its interface
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052
DASHED = "_DASHED"
"""What the placeholder of an address has behind its number where dashes stand for its dots or colons."""

_IPV4 = lazy(r"(?<![\d.])(?:0{0,4}\d{1,3}\.){3}0{0,4}\d{1,3}(?!\d)(?:/\d{1,2}(?!\d))?")
_PADDED = lazy(r"(?<![\d])0+(?=\d)")
_IPV6 = lazy(
    r"(?:(?<![0-9A-Za-z:.])|(?<![0-9A-Za-z:._-])(?P<label>[a-f]{0,20}[g-z_-][a-z_-]{0,30}:))"  # `Address:fd00::4`
    r"(?P<address>(?=[0-9a-f]{0,4}:[0-9a-f:])[0-9a-f:]{3,47}+"
    r"(?:/\d{1,3}(?!\d))?)",
    re.IGNORECASE,
)
_IPV6_ENDING_IN_4 = lazy(
    r"(?<![0-9A-Za-z:._-])f[cde][0-9a-f]{2}:[0-9a-f:]{0,30}:\d{1,3}(?:\.\d{1,3}){3}(?![\d.])", re.I
)
_REVERSED = lazy(r"(?<![\w.-])(?P<octets>(?:\d{1,3}\.){1,4})(?=in-addr\.arpa\b)", re.IGNORECASE)
_REVERSED_6 = lazy(r"(?<![\w.-])(?P<nibbles>(?:[0-9a-f]\.){2,32})(?=ip6\.arpa\b)", re.IGNORECASE)
_DASHED_4 = lazy(r"(?<![\d.])(?<!\d-)(?:10|172|192)(?:-\d{1,3}){3}(?![\d]|-\d)")
_DASHED_6 = lazy(
    r"(?<![0-9A-Za-z])(?<!\w-)f[cde][0-9a-f]{2}(?:-{1,2}[0-9a-f]{1,4}){1,7}(?![0-9A-Za-z]|-[0-9a-f])", re.IGNORECASE
)
_PORT_REACH = 7


def hide_addresses(text: str, placeholder_of: PlaceholderOf) -> str:
    """`text` with what `placeholder_of` gives for each private address and subnet, however it is spelled."""
    text = _REVERSED.sub(lambda match: _reversed_4(match, placeholder_of), text)
    text = _REVERSED_6.sub(lambda match: _reversed_6(match, placeholder_of), text)
    text = _IPV6_ENDING_IN_4.sub(lambda match: _address(match[0], placeholder_of), text)
    text = _IPV4.sub(lambda match: _address_4(match[0], placeholder_of), text)
    text = _IPV6.sub(lambda match: (match["label"] or "") + _address_6(match["address"], placeholder_of), text)
    if "-" in text:
        text = _DASHED_4.sub(lambda match: _dashed(match[0], match[0].replace("-", "."), placeholder_of), text)
        text = _DASHED_6.sub(lambda match: _dashed(match[0], match[0].replace("-", ":"), placeholder_of), text)
    return text


def in_dashes(address: str | None) -> str | None:
    """The address with dashes, as in host names."""
    return address.replace(".", "-").replace(":", "-") if address is not None else None


def reverse_name(original: str | None) -> str | None:
    """The name, up to `in-addr.arpa` or `ip6.arpa`, under which an address or a subnet is looked up."""
    network = network_of(original) if original is not None else None
    if network is None:
        return None
    width = 8 if network.version == 4 else 4
    parts = network.network_address.reverse_pointer.split(".")[:-2]
    return "".join(f"{part}." for part in parts[len(parts) - network.prefixlen // width :])


def network_of(text: str) -> IPNetwork | None:
    """The network that `text` names; None where its host bits are set, or it is no network."""
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None


class Subnets:
    """Subnets by prefix length and first address: look-up time does not depend on their number."""

    def __init__(self) -> None:
        self._by_length: dict[tuple[int, int], dict[int, str]] = {}

    def add(self, subnet: IPNetwork, placeholder: str) -> None:
        self._by_length.setdefault((subnet.version, subnet.prefixlen), {})[int(subnet.network_address)] = placeholder

    def around(self, network: IPNetwork) -> str | None:
        """The placeholder of the smallest known subnet that strictly contains `network`."""
        bits, first = network.max_prefixlen, int(network.network_address)
        for length in range(network.prefixlen - 1, -1, -1):
            held = self._by_length.get((network.version, length))
            if held is not None and (found := held.get(first >> (bits - length) << (bits - length))) is not None:
                return found
        return None


def _address(text: str, placeholder_of: PlaceholderOf) -> str:
    address, slash, length = text.partition("/")
    ip = _ip(address)
    if ip is None or not _is_private(ip):
        return _mapped(ip, text, placeholder_of) if isinstance(ip, ipaddress.IPv6Address) else text
    network = network_of(text) if slash else None
    if network is not None and network.num_addresses > 1:
        return placeholder_of(network)
    return placeholder_of(ipaddress.ip_network(ip)) + slash + length


def _address_4(text: str, placeholder_of: PlaceholderOf) -> str:
    """An address of version 4, whose numbers may begin with zeros: some programs read those as octal."""
    address, slash, length = text.partition("/")
    if _PADDED.search(address) is None:
        return _address(text, placeholder_of)
    for reading in (_PADDED.sub("", address), _octal(address)):
        if reading is not None and (hidden := _address(reading + slash + length, placeholder_of)).startswith("["):
            return hidden
    return text


def _octal(address: str) -> str | None:
    try:
        return ".".join(str(int(part, 8 if part.startswith("0") else 10)) for part in address.split("."))
    except ValueError:
        return None


def _mapped(ip: ipaddress.IPv6Address, text: str, placeholder_of: PlaceholderOf) -> str:
    """An address of version 4 that is written in one of version 6: `::ffff:a00:204`."""
    inner = ip.ipv4_mapped or (ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else None)
    if inner is None or not _is_private(inner):
        return text
    before = "::ffff:" if ip.ipv4_mapped is not None else "64:ff9b::"
    slash, length = text.partition("/")[1:]
    return before + placeholder_of(ipaddress.ip_network(inner)) + slash + length


def _address_6(text: str, placeholder_of: PlaceholderOf) -> str:
    """An address of version 6 with what may stand behind it: a colon of the sentence, or a port."""
    hidden = _address(text, placeholder_of)
    rest = ""
    while hidden == text and ":" in text and _ip(text.partition("/")[0]) is None and len(rest) < _PORT_REACH:
        shorter = text[:-1] if text.endswith(":") else text.rpartition(":")[0]
        rest, text = text[len(shorter) :] + rest, shorter
        hidden = _address(text, placeholder_of)
    return hidden + rest


def _reversed_4(match: re.Match[str], placeholder_of: PlaceholderOf) -> str:
    """`4.1.0.10.in-addr.arpa`, and the zones above it, for which a subnet stands."""
    octets = match["octets"].rstrip(".").split(".")[::-1]
    if any(str(int(octet)) != octet for octet in octets):
        return match[0]
    length = f"/{8 * len(octets)}" if len(octets) < 4 else ""
    hidden = _address(".".join([*octets, "0", "0", "0"][:4]) + length, placeholder_of)
    return f"{hidden}." if hidden.startswith("[") else match[0]


def _reversed_6(match: re.Match[str], placeholder_of: PlaceholderOf) -> str:
    nibbles = match["nibbles"].replace(".", "")[::-1]
    address = ipaddress.IPv6Address(int(nibbles.ljust(32, "0"), 16))
    hidden = _address(f"{address}/{4 * len(nibbles)}" if len(nibbles) < 32 else str(address), placeholder_of)
    return f"{hidden}." if hidden.startswith("[") else match[0]


def _dashed(text: str, address: str, placeholder_of: PlaceholderOf) -> str:
    ip = _ip(address)
    if ip is None or not _is_private(ip) or in_dashes(str(ip)) != text.lower():
        return text
    return f"{placeholder_of(ipaddress.ip_network(ip))[:-1]}{DASHED}]"


def _is_private(ip: IPAddress) -> bool:
    return any(ip in network for network in PRIVATE if network.version == ip.version)


def _ip(text: str) -> IPAddress | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
