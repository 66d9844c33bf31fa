"""Private mode: addresses, subnets and what Azure gives ids to become placeholders, the same ones all session long.

It tells which placeholder lies in which, so that one can still reason about them, and maps placeholders back. The
mapping is a file of its own, readable by its owner only; nothing of it reaches a model, an audit or a report.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ghost.errors import RecordError
from ghost.records import read_json, write_json

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

INTERNAL_IP, INTERNAL_SUBNET, AZURE_RESOURCE = "INTERNAL_IP", "INTERNAL_SUBNET", "AZURE_RESOURCE"
PRIVATE: tuple[IPNetwork, ...] = (
    ipaddress.IPv4Network("10.0.0.0/8"),  # RFC 1918
    ipaddress.IPv4Network("172.16.0.0/12"),
    ipaddress.IPv4Network("192.168.0.0/16"),
    ipaddress.IPv6Network("fc00::/7"),  # RFC 4193
)

_GUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_RESOURCE = re.compile(rf"/subscriptions/{_GUID}(?:/[A-Za-z0-9._()~@$-]{{1,260}}+){{0,40}}+", re.IGNORECASE)
_IPV4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?!\d)(?:/\d{1,2}(?!\d))?")
_IPV6 = re.compile(
    r"(?:(?<![0-9A-Za-z:.])|(?<![0-9A-Za-z:._-])(?P<label>[a-f]{0,20}[g-z_-][a-z_-]{0,30}:))"  # `Address:fd00::4`
    r"(?P<address>f[cd][0-9a-f]{2}:[0-9a-f:]{1,40}+(?:/\d{1,3}(?!\d))?)",
    re.IGNORECASE,
)
_REVERSED = re.compile(r"(?<![\w.-])(?P<octets>(?:\d{1,3}\.){1,4})(?=in-addr\.arpa\b)", re.IGNORECASE)
_REVERSED_6 = re.compile(r"(?<![\w.-])(?P<nibbles>(?:[0-9a-f]\.){32})(?=ip6\.arpa\b)", re.IGNORECASE)
_HIDDEN_REVERSED = re.compile(r"(\[INTERNAL_(?:IP|SUBNET)_\d{1,9}\])\.(?=(?:in-addr|ip6)\.arpa\b)", re.IGNORECASE)
_IDENTIFIER = re.compile(rf"(?<![0-9A-Za-z-]){_GUID}(?![0-9A-Za-z-])")
_BESIDE = re.compile(  # names of a subscription or a tenant
    r"(?:(?:subscription|tenant|directory)[\w \[\].-]{0,24}|(?:^|[\s\"'{,])id)\\?[\"']?\s{0,8}[:=]?\s{0,8}\\?[\"']?$"
    r"|(?:/tenants|sts\.windows\.net|login\.microsoftonline\.com|login\.windows\.net)/$",
    re.IGNORECASE,
)
_BESIDE_REACH = 80
_PORT_REACH = 7
_PLACEHOLDER = re.compile(rf"\[(?:{INTERNAL_IP}|{INTERNAL_SUBNET}|{AZURE_RESOURCE})_\d{{1,9}}\]")


class TopologyAnonymizer:
    """Gives placeholders and takes them back. One for a session: with `path`, it goes on where that file ends."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._placeholders: dict[str, str] = {}  # what is hidden, in its one spelling, to its placeholder
        self._originals: dict[str, str] = {}
        self._given: Counter[str] = Counter()  # how many of each kind
        if path is not None:
            self._load(path)

    @property
    def mappings(self) -> Mapping[str, str]:
        """Placeholder to what it stands for."""
        return dict(self._originals)

    def anonymize(self, text: str, *, of_azure: bool = False) -> str:
        """`text` with placeholders. What is a placeholder already stays.

        A GUID is hidden where it is one of a subscription or a tenant, and `of_azure`, where it may always be, anyway.
        """
        known = len(self._originals)
        text = _RESOURCE.sub(lambda match: self._resource(match[0]), text)
        text = self._identifiers(text, of_azure=of_azure)
        text = _REVERSED.sub(self._reversed, text)
        text = _REVERSED_6.sub(self._reversed_6, text)
        text = _IPV4.sub(lambda match: self._address(match[0]), text)
        text = _IPV6.sub(lambda match: (match["label"] or "") + self._address_6(match["address"]), text)
        if self._path is not None and len(self._originals) > known:
            write_json(self._path, self._originals)
        return text

    def restore(self, text: str) -> str:
        """`text` with what its placeholders stand for. One that was never given stays as it is."""
        text = _HIDDEN_REVERSED.sub(lambda match: _reverse_name(self._originals.get(match[1])) or match[0], text)
        return _PLACEHOLDER.sub(lambda match: self._originals.get(match[0], match[0]), text)

    def unknown(self, text: str) -> str | None:
        """The first placeholder in `text` that was never given."""
        return next((found for found in _PLACEHOLDER.findall(text) if found not in self._originals), None)

    def containment(self, text: str) -> dict[str, str]:
        """For each placeholder in `text` the smallest known one it lies in, and so on outwards."""
        inside: dict[str, str] = {}
        waiting = list(dict.fromkeys(_PLACEHOLDER.findall(text)))
        while waiting:
            placeholder = waiting.pop()
            container = self._container(placeholder)
            if container is not None and placeholder not in inside:
                inside[placeholder] = container
                waiting.append(container)
        return dict(sorted(inside.items()))

    def _placeholder(self, kind: str, original: str, key: str) -> str:
        placeholder = self._placeholders.get(key)
        if placeholder is None:
            self._given[kind] += 1
            placeholder = f"[{kind}_{self._given[kind]}]"
            self._placeholders[key] = placeholder
            self._originals[placeholder] = original
        return placeholder

    def _resource(self, resource_id: str) -> str:
        identifier = resource_id.rstrip(".")
        return self._placeholder(AZURE_RESOURCE, identifier, identifier.lower()) + resource_id[len(identifier) :]

    def _identifiers(self, text: str, *, of_azure: bool) -> str:
        """Hides the bare ids of subscriptions and tenants: named so, of the resources seen, or known already."""
        known = {original.split("/")[2].lower() for original in self._originals.values() if original.startswith("/")}

        def hidden(match: re.Match[str]) -> str:
            guid, key = match[0], match[0].lower()
            before = text[max(0, match.start() - _BESIDE_REACH) : match.start()]
            if of_azure or key in known or key in self._placeholders or _BESIDE.search(before) is not None:
                return self._placeholder(AZURE_RESOURCE, guid, key)
            return guid

        return _IDENTIFIER.sub(hidden, text)

    def _address(self, text: str) -> str:
        address, slash, length = text.partition("/")
        ip = _ip(address)
        if ip is None or not any(ip in network for network in PRIVATE if network.version == ip.version):
            return text
        network = _network(text) if slash else None
        if network is not None and network.num_addresses > 1:
            return self._placeholder(INTERNAL_SUBNET, str(network), str(network))
        return self._placeholder(INTERNAL_IP, str(ip), str(ip)) + slash + length

    def _address_6(self, text: str) -> str:
        """An address of version 6 with what may stand behind it: a colon of the sentence, or a port."""
        hidden = self._address(text)
        rest = ""
        while hidden == text and ":" in text and _ip(text.partition("/")[0]) is None and len(rest) < _PORT_REACH:
            shorter = text[:-1] if text.endswith(":") else text.rpartition(":")[0]
            rest, text = text[len(shorter) :] + rest, shorter
            hidden = self._address(text)
        return hidden + rest

    def _reversed(self, match: re.Match[str]) -> str:
        """`4.1.0.10.in-addr.arpa`, and the zones above it, for which a subnet stands."""
        octets = match["octets"].rstrip(".").split(".")[::-1]
        if any(str(int(octet)) != octet for octet in octets):
            return match[0]
        length = f"/{8 * len(octets)}" if len(octets) < 4 else ""
        hidden = self._address(".".join([*octets, "0", "0", "0"][:4]) + length)
        return f"{hidden}." if hidden.startswith("[") else match[0]

    def _reversed_6(self, match: re.Match[str]) -> str:
        nibbles = match["nibbles"].replace(".", "")[::-1]
        hidden = self._address(str(ipaddress.IPv6Address(int(nibbles, 16))))
        return f"{hidden}." if hidden.startswith("[") else match[0]

    def _container(self, placeholder: str) -> str | None:
        original = self._originals.get(placeholder, "")
        if original.startswith("/"):
            parts = original.lower().split("/")
            parents = ("/".join(parts[:count]) for count in range(len(parts) - 1, 2, -1))
            return next((self._placeholders[parent] for parent in parents if parent in self._placeholders), None)
        network = _network(original)
        if network is None:
            return None
        around = [
            (subnet.prefixlen, held)
            for held, text in self._originals.items()
            if held != placeholder
            and held.startswith(f"[{INTERNAL_SUBNET}_")
            and (subnet := _network(text)) is not None
            and subnet.version == network.version
            and network.subnet_of(subnet)  # type: ignore[arg-type] # of one version, as the line before says
        ]
        return max(around)[1] if around else None

    def _load(self, path: Path) -> None:
        try:
            saved: Any = read_json(path)
        except FileNotFoundError:
            return
        if not isinstance(saved, dict) or not all(
            isinstance(v, str) and _PLACEHOLDER.fullmatch(k) for k, v in saved.items()
        ):
            raise RecordError(f"{path} holds no placeholders: restore it from a copy or remove it")
        self._originals = saved
        self._given = Counter(placeholder[1:].rpartition("_")[0] for placeholder in saved)
        self._placeholders = {original.lower(): placeholder for placeholder, original in saved.items()}


def _reverse_name(original: str | None) -> str | None:
    """The name, up to `in-addr.arpa` or `ip6.arpa`, under which an address or a subnet is looked up."""
    network = _network(original) if original is not None else None
    if network is None:
        return None
    width = 8 if network.version == 4 else 4
    parts = network.network_address.reverse_pointer.split(".")[:-2]
    return "".join(f"{part}." for part in parts[len(parts) - network.prefixlen // width :])


def _ip(text: str) -> IPAddress | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _network(text: str) -> IPNetwork | None:
    """The network that `text` names; None where its host bits are set, or it is no network."""
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None
