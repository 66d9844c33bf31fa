"""Which URLs curl may fetch unasked: http or https, a canonical host, and never a cloud's metadata service.

Addresses follow curl's own leniency: inet_aton(3) accepts decimal, octal, hexadecimal and shortened IPv4
addresses, so every such spelling is decoded before it is judged. Metadata addresses: Azure's instance metadata
service (https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service) and wire server
(https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from ghost.patterns import lazy
from ghost.shell.judge.network.admin_endpoints import fault_of_service
from ghost.shell.judge.network.exfiltration import fault_of_name, holds_secret
from ghost.shell.judge.network.http_get import fault_of_request, fully_decoded

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_URL = lazy(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>(?:/[A-Za-z0-9._~%!$&'()*+,;=:@/?#-]*)?)"
)
_BARE = lazy(
    r"(?!(?i:ftp|dict|ldap|imap|smtp|pop3)[.])(?:[A-Za-z0-9_-]+[.])+[A-Za-z0-9-]+[.]?(?P<rest>(?:/[A-Za-z0-9._~%-]*)*)"
)
"""A host with a dot and no port, as people type it: curl asks it over HTTP, unless it begins like a protocol."""
_AUTHORITY = lazy(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?")
_INNER_HOST = lazy(
    r"//(?:[^/?#@\s]{0,200}@)?(?P<name>[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*)|(?<![\w.-])(?P<number>[0-9][0-9A-Fa-fxX.]*)"
)
_LABEL = lazy(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_NUMBER = lazy(r"0[xX][0-9A-Fa-f]*|[0-9]+")

_REFUSED_NETWORKS = tuple(
    ipaddress.ip_network(text)
    for text in (
        "169.254.0.0/16",  # link-local: instance metadata of Azure, AWS, GCP and others
        "168.63.129.16/32",  # Azure's wire server
        "100.100.100.200/32",  # Alibaba Cloud's metadata
        "192.0.0.192/32",  # Oracle Cloud's metadata
        "fe80::/10",
        "fd00:ec2::254/128",  # AWS's metadata
        "fd20:ce::254/128",  # GCP's metadata
    )
)
_REFUSED_NAMES = lazy(
    r"(?:.*\.)?(?:metadata|instance-data|metadata\.google\.internal|metadata\.goog|metadata\.azure\.\w+|metadata\.tencentyun\.com)",
    re.I,
)
_ENDING_IN_IPV4 = tuple(
    ipaddress.IPv6Network(text)
    for text in (
        "::/96",  # compatible, RFC 4291
        "::ffff:0:0/96",  # mapped, RFC 4291
        "::ffff:0:0:0/96",  # translated, RFC 2765 and 7915
        "64:ff9b::/96",  # NAT64's well-known prefix, RFC 6052
        "64:ff9b:1::/48",  # NAT64's local-use prefix, RFC 8215
    )
)
_LOCAL_NAT64 = _ENDING_IN_IPV4[-1]
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
"""The middle of an IPv6 address whose end is an IPv4 address, RFC 5214."""
_CREDENTIAL_SERVICES = frozenset(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
)
_METADATA = "is a cloud's metadata or wire-server address, which hands out credentials"


def _with_scheme(url: str) -> str:
    return f"http://{url}" if _BARE.fullmatch(url) else url


def host_of(url: str) -> str:
    """The host name or address in a URL that `fault_of_url` accepts, without brackets."""
    match = _URL.fullmatch(_with_scheme(url))
    authority = _AUTHORITY.fullmatch(match["authority"]) if match else None
    return (authority["ipv6"] or authority["name"]) if authority else ""


def fault_of_url(url: str) -> str | None:
    """Why a URL is not fetched unasked; None when it is."""
    match = _URL.fullmatch(_with_scheme(url))
    if match is None:
        return (
            "is not an explicit URL; write http://HOST or https://HOST/..., with a slash after the host, "
            "without spaces, braces or brackets"
        )
    if match["scheme"].lower() not in ("http", "https"):
        return f"uses the scheme {match['scheme']}; only http and https are SAFE"
    if "@" in match["authority"]:
        return "carries user information before '@', which hides the real host or sends a password"
    authority = _AUTHORITY.fullmatch(match["authority"])
    if authority is None:
        return "has no plain host name or address"
    if authority["port"] is not None and not 0 < int(authority["port"]) < 65_536:
        return f"has no valid port: {authority['port']}"
    host = authority["ipv6"] or authority["name"]
    fault = _fault_of_ipv6(host) if authority["ipv6"] is not None else fault_of_host_name(host)
    port = int(authority["port"]) if authority["port"] else None
    rest = match["rest"]
    return (
        fault
        or _fault_of_inner(rest)
        or fault_of_service(host, port, rest)
        or fault_of_request(host, port, rest)
        or ("carries a secret, which logs and histories keep" if holds_secret(fully_decoded(url) or "") else None)
    )


def _fault_of_inner(rest: str) -> str | None:
    """Why a URL inside the URL (`?url=http://169.254.169.254/`) would make its server fetch credentials."""
    for host in _INNER_HOST.finditer(fully_decoded(rest) or ""):
        address = parse_ipv4_leniently(host[host.lastgroup or 0].removesuffix("."))
        if (address is not None and is_metadata(address)) or (host["name"] and is_metadata_name(host["name"])):
            return f"names {host[host.lastgroup or 0]} in what it asks for, which {_METADATA}"
    return None


def fault_of_host_name(name: str) -> str | None:
    bare = name.removesuffix(".")
    lenient = parse_ipv4_leniently(bare)
    if lenient is not None:
        if is_metadata(lenient):
            return f"leads to {lenient}, which {_METADATA}"
        if name != str(lenient):
            return f"does not spell its address as usual; write {lenient}"
        return None
    if len(bare) > 253 or not all(_LABEL.fullmatch(label) for label in bare.split(".")):
        return f"has no valid host name: {name}"
    last = bare.rpartition(".")[2]
    if _NUMBER.fullmatch(last):
        return f"has no valid address: {name}"
    if is_metadata_name(bare):
        return f"names {name}, which {_METADATA}"
    return f"names a host that {fault}" if (fault := fault_of_name(bare)) else None


def _fault_of_ipv6(text: str) -> str | None:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return f"has no valid IPv6 address: {text}"
    if is_metadata(address):
        return f"leads to {address}, which {_METADATA}"
    if any(inner != address for inner in embedded_addresses(address)):
        return "hides an IPv4 address in an IPv6 address; write the IPv4 address itself"
    return None


def is_metadata(address: Address) -> bool:
    """Whether packets to this address may reach a metadata service or the wire server."""
    return any(form in network for form in embedded_addresses(address) for network in _REFUSED_NETWORKS)


def embedded_addresses(address: Address) -> Iterator[Address]:
    """The address and every IPv4 address embedded in it (also RFC 3056 and 4380)."""
    yield address
    if isinstance(address, ipaddress.IPv4Address):
        return
    number = int(address)
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if number > 1 and any(address in network for network in _ENDING_IN_IPV4):
        yield ipaddress.IPv4Address(number & 0xFFFF_FFFF)
    if number >> 32 & 0xFFFF_FFFF in _ISATAP:
        yield ipaddress.IPv4Address(number & 0xFFFF_FFFF)
    if address in _LOCAL_NAT64:  # a prefix of 48, 56 or 64 bits within it: the IPv4 address leaves out bits 64 to 71
        yield ipaddress.IPv4Address((number >> 64 & 0xFFFF) << 16 | number >> 40 & 0xFFFF)
        yield ipaddress.IPv4Address((number >> 64 & 0xFF) << 24 | number >> 32 & 0xFF_FFFF)
        yield ipaddress.IPv4Address(number >> 24 & 0xFFFF_FFFF)


def is_credential_service(address: Address) -> bool:
    """Whether this is the address of a cloud's credential service; other link-local addresses are not."""
    return any(form in _CREDENTIAL_SERVICES for form in embedded_addresses(address))


def is_metadata_name(name: str) -> bool:
    return _REFUSED_NAMES.fullmatch(name.removesuffix(".")) is not None


def parse_ipv4_leniently(text: str) -> ipaddress.IPv4Address | None:
    """An IPv4 address as inet_aton(3) reads it, or None: `0x7f.1` and `2130706433` are 127.0.0.1."""
    parts = text.split(".")
    if not 1 <= len(parts) <= 4 or not all(_NUMBER.fullmatch(part) and len(part) <= 40 for part in parts):
        return None
    try:
        numbers = [_number(part) for part in parts]
    except ValueError:
        return None
    *leading, last = numbers
    if any(number > 0xFF for number in leading) or last >= 1 << (8 * (4 - len(leading))):
        return None
    value = last
    for position, number in enumerate(leading):
        value |= number << (8 * (3 - position))
    return ipaddress.IPv4Address(value)


def _number(text: str) -> int:
    lowered = text.lower()
    if lowered.startswith("0x"):
        return int(lowered[2:] or "0", 16)
    if len(lowered) > 1 and lowered.startswith("0"):
        return int(lowered, 8)
    return int(lowered)
