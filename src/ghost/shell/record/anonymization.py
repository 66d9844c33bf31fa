"""Private mode: addresses, subnets, names of machines and ids become placeholders, the same ones all session long.

It tells which placeholder lies in which, so that one can still reason about them, and maps placeholders back. The
mapping is a file of its own, readable by its owner only; nothing of it reaches a model, an audit or a report.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ghost.errors import RecordError
from ghost.patterns import lazy
from ghost.records import read_json, write_json
from ghost.shell.record.machine_names import MachineNames, machine_of
from ghost.shell.record.private_addresses import (
    DASHED,
    IPNetwork,
    Subnets,
    hide_addresses,
    in_dashes,
    network_of,
    reverse_name,
)

INTERNAL_IP, INTERNAL_SUBNET, AZURE_RESOURCE = "INTERNAL_IP", "INTERNAL_SUBNET", "AZURE_RESOURCE"
MACHINE = "MACHINE"
LITERAL = "LITERAL"
"""Stands for a text as it is: one that looks like a placeholder, or whose names are not known yet."""
_GUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_RESOURCE = lazy(rf"/subscriptions/{_GUID}(?:/[A-Za-z0-9._()~@$-]{{1,260}}+){{0,40}}+", re.IGNORECASE)
_IDENTIFIER = lazy(rf"(?<![0-9A-Za-z-]){_GUID}(?![0-9A-Za-z-])")
_BESIDE = lazy(  # names of a subscription or a tenant
    r"(?:(?:subscription|tenant|directory)[\w \[\].-]{0,24}|(?:^|[\s\"'{,])id)\\?[\"']?\s{0,8}[:=]?\s{0,8}\\?[\"']?$"
    r"|(?:/tenants|sts\.windows\.net|login\.microsoftonline\.com|login\.windows\.net)/$",
    re.IGNORECASE,
)
_BESIDE_REACH = 80
_PLACEHOLDER = lazy(rf"\[(?:{INTERNAL_IP}|{INTERNAL_SUBNET}|{AZURE_RESOURCE}|{MACHINE}|{LITERAL})_\d{{1,9}}\]")
_SPELLED = lazy(rf"\[({INTERNAL_IP}_\d{{1,9}}){DASHED}\]")
_LOOKALIKE = lazy(rf"\[[A-Z_]{{4,20}}_\d{{1,9}}(?:{DASHED})?\]")
_HIDDEN_REVERSED = lazy(
    rf"(\[(?:{INTERNAL_IP}|{INTERNAL_SUBNET})_\d{{1,9}}\])\.(?=(?:in-addr|ip6)\.arpa\b)", re.IGNORECASE
)


class TopologyAnonymizer:
    """Replaces addresses by placeholders and restores them. `path` keeps the mapping of a session.

    Several of one process may share it: each reads what another has written since, before it gives a placeholder.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._read = 0
        """Modification time of the file as it is known."""
        self._placeholders: dict[str, str] = {}  # what is hidden, in its one spelling, to its placeholder
        self._originals: dict[str, str] = {}
        self._given: Counter[str] = Counter()  # how many of each kind
        self._subnets = Subnets()
        self._subscriptions: set[str] = set()
        self._machines = MachineNames()
        self._refresh()

    @property
    def mappings(self) -> Mapping[str, str]:
        """Placeholder to what it stands for."""
        return dict(self._originals)

    def anonymize(self, text: str, *, of_azure: bool = False) -> str:
        """`text` with placeholders in place of private addresses, subnets, ids and the machines that ids have named.

        A GUID is hidden where it is one of a subscription or a tenant, and `of_azure`, where it may always be, anyway.
        """
        self._refresh()
        known = len(self._originals)
        text = _RESOURCE.sub(lambda match: self._resource(match[0]), text)
        text = self._identifiers(text, of_azure=of_azure)
        text = self._machines.replaced(text, lambda name: self._placeholder(MACHINE, name, name))
        text = hide_addresses(text, self._of_network)
        self._save(known)
        return text

    def literal(self, text: str) -> str:
        """The placeholder of a whole text; of an empty one itself."""
        self._refresh()
        known = len(self._originals)
        placeholder = text and self._placeholder(LITERAL, text, text)
        self._save(known)
        return placeholder

    def _save(self, known: int) -> None:
        if self._path is not None and len(self._originals) > known:
            write_json(self._path, self._originals)
            self._read = self._path.stat().st_mtime_ns

    def anonymize_output(self, text: str, *, of_azure: bool = False) -> str:
        """`anonymize` for what a program printed: text that looks like a placeholder comes back as that text."""
        return self.anonymize(_LOOKALIKE.sub(lambda m: self._placeholder(LITERAL, m[0], m[0]), text), of_azure=of_azure)

    def restore(self, text: str) -> str:
        """`text` with its placeholders replaced by their values. Unknown ones stay."""
        self._refresh()
        text = _SPELLED.sub(lambda match: in_dashes(self._originals.get(f"[{match[1]}]")) or match[0], text)
        text = _HIDDEN_REVERSED.sub(lambda match: reverse_name(self._originals.get(match[1])) or match[0], text)
        return _PLACEHOLDER.sub(lambda match: self._originals.get(match[0], match[0]), text)

    def unknown(self, text: str) -> str | None:
        """The first unknown placeholder in `text`; None without one."""
        return next((found for found in _placeholders_in(text) if found not in self._originals), None)

    def containment(self, text: str) -> dict[str, str]:
        """For each placeholder in `text` the smallest known subnet that contains it, and so on outwards."""
        inside: dict[str, str] = {}
        waiting = list(dict.fromkeys(_placeholders_in(text)))
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
            self._index(placeholder, original)
        return placeholder

    def _index(self, placeholder: str, original: str) -> None:
        if placeholder.startswith(f"[{INTERNAL_SUBNET}_") and (subnet := network_of(original)) is not None:
            self._subnets.add(subnet, placeholder)
        elif placeholder.startswith(f"[{AZURE_RESOURCE}_") and original.startswith("/"):
            self._subscriptions.add(original.split("/")[2].lower())
        elif placeholder.startswith(f"[{MACHINE}_"):
            self._machines.add(original)

    def _of_network(self, network: IPNetwork) -> str:
        """The placeholder of a subnet; of an address for a /32 or /128."""
        if network.num_addresses > 1:
            return self._placeholder(INTERNAL_SUBNET, str(network), str(network))
        address = str(network.network_address)
        return self._placeholder(INTERNAL_IP, address, address)

    def _resource(self, resource_id: str) -> str:
        identifier = resource_id.rstrip(".")
        if (machine := machine_of(identifier)) is not None:
            self._placeholder(MACHINE, machine, machine.lower())
        return self._placeholder(AZURE_RESOURCE, identifier, identifier.lower()) + resource_id[len(identifier) :]

    def _identifiers(self, text: str, *, of_azure: bool) -> str:
        """Hides the bare ids of subscriptions and tenants: named so, of the resources seen, or known already."""
        known = self._subscriptions

        def hidden(match: re.Match[str]) -> str:
            guid, key = match[0], match[0].lower()
            before = text[max(0, match.start() - _BESIDE_REACH) : match.start()]
            if of_azure or key in known or key in self._placeholders or _BESIDE.search(before) is not None:
                return self._placeholder(AZURE_RESOURCE, guid, key)
            return guid

        return _IDENTIFIER.sub(hidden, text)

    def _container(self, placeholder: str) -> str | None:
        original = self._originals.get(placeholder, "")
        if original.startswith("/"):
            parts = original.lower().split("/")
            parents = ("/".join(parts[:count]) for count in range(len(parts) - 1, 2, -1))
            return next((self._placeholders[parent] for parent in parents if parent in self._placeholders), None)
        network = network_of(original)
        return self._subnets.around(network) if network is not None else None

    def _refresh(self) -> None:
        if self._path is not None and self._path.exists() and self._read != (at := self._path.stat().st_mtime_ns):
            self._load(self._path)
            self._read = at

    def _load(self, path: Path) -> None:
        saved: Any = read_json(path)
        if not isinstance(saved, dict) or not all(
            isinstance(v, str) and _PLACEHOLDER.fullmatch(k) for k, v in saved.items()
        ):
            raise RecordError(f"{path} holds no placeholders: restore it from a copy or remove it")
        self._originals = saved
        self._given = Counter(placeholder[1:].rpartition("_")[0] for placeholder in saved)
        self._placeholders = {
            original if placeholder.startswith(f"[{LITERAL}_") else original.lower(): placeholder
            for placeholder, original in saved.items()
        }
        for placeholder, original in saved.items():
            self._index(placeholder, original)


def _placeholders_in(text: str) -> list[str]:
    return _PLACEHOLDER.findall(_SPELLED.sub(r"[\1]", text))
