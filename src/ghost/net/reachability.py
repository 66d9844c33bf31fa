"""What a person or an agent asks of a walk: names become addresses, proposed changes are assumed, the reads are made.

Pure: `reach_of` reads through a caller's `execute`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from ipaddress import ip_address
from typing import Any, Final

from ghost.errors import GhostError, UsageError
from ghost.net.address_matching import is_address
from ghost.net.faults import Fault, explain
from ghost.net.hops import Hop, Mend, Walk
from ghost.net.names import dns_name
from ghost.net.network import Network
from ghost.net.proposals import check_form, proposal_of, proposed
from ghost.net.resources import Interface, name_of
from ghost.net.security import Flow
from ghost.net.snapshot import Answer, Read, collect, look_up, read_interfaces
from ghost.net.walk_sets import FIRST_PUBLIC, Part, ports_to, public_address_of, sources_of
from ghost.net.walks import walk

NOT_SHOWN: Final = (
    "Configuration does not show whether the guest's own firewall lets it in, whether anything listens there, nor loss "
    "and delay on the wire: see ghost investigate."
)
MAX_NAMES, MAX_NAME = 12, 80
"""Of names that are offered, and of the characters of one."""
MAX_SOURCES: Final = 300
"""Of a walk from everywhere: `az` reads one machine a call."""
PROTOCOLS: Final = {"tcp": "Tcp", "udp": "Udp", "icmp": "Icmp"}


@dataclass(frozen=True)
class ReachQuestion:
    """`source` and `destination`: a machine, an interface or an address, or a destination's DNS name."""

    source: str
    destination: str
    port: int | None = None
    """None: every port."""
    protocol: str = "tcp"
    assume: Sequence[str] = ()
    """Changes, as `check_form` reads them."""
    from_all: bool = False
    """From every source, in place of `source`."""

    def __str__(self) -> str:
        port = "" if self.port is None else f"/{self.port}"
        return f"{self.source} → {self.destination} {self.protocol.casefold()}{port}"

    def checked(self) -> str:
        """Return the protocol as Azure spells it. Raises `UsageError` for what cannot be asked, before any read."""
        protocol = PROTOCOLS.get(self.protocol.casefold())
        if protocol is None:
            raise UsageError(f"{self.protocol!r} is not a protocol: give one of {', '.join(PROTOCOLS)}")
        if self.port is not None and protocol == "Icmp":
            raise UsageError("icmp has no ports: leave the port out, or name tcp or udp as protocol")
        if self.port is None and protocol != "Icmp" and self.from_all:
            raise UsageError("a walk from every source needs a destination port: name one")
        for text in self.assume:
            try:
                check_form(text)
            except ValueError as wrong:
                raise UsageError(str(wrong)) from None
        return protocol


@dataclass(frozen=True)
class Reach:
    """The answer: one walk with its faults, or parts that end alike."""

    network: Network
    destination: str
    """As it was asked for: an address or a DNS name."""
    assumed: tuple[str, ...]
    walks: tuple[Walk, ...]
    """One, or one of each part."""
    faults: tuple[Fault, ...] = ()
    parts: tuple[Part, ...] = ()
    of: str = ""
    """What the parts are of: `sources` or `ports`; empty for one walk."""

    def proposals(self) -> Iterator[tuple[Fault, str | None]]:
        """Yield each fault with its mend as a proposal behind the mends before; None where it has no form."""
        network = self.network
        for fault in self.faults:
            yield fault, None if fault.mend is None else proposal_of(fault.mend, network)
            network = network if fault.mend is None else fault.mend.applied(network)

    def as_dicts(self, **about: Any) -> list[dict[str, Any]]:
        """Return each walk as JSON; `about` is said of each, and of a part what it is of."""
        about["assumed"] = list(self.assumed)
        if self.of:
            return [{self.of: part.of, **about, **self._as_dict(part.walk)} for part in self.parts]
        return [{**about, **self._as_dict(each)} for each in self.walks]

    def _as_dict(self, walked: Walk) -> dict[str, Any]:
        return {
            "flow": asdict(walked.flow),
            "name": None if is_address(self.destination) else self.destination,
            "outcome": walked.outcome,
            "hops": [_hop_as_dict(hop) for hop in walked.hops],
            "faults": [
                {
                    "kind": fault.kind,
                    "resource": fault.hop.resource,
                    "rule": fault.hop.rule,
                    "direction": fault.hop.direction,
                    "mend": str(fault.mend) if fault.mend else None,
                    "outcome_with_mend": fault.outcome,
                    "derived": list(fault.derived),
                    "assume": assume,
                }
                for fault, assume in self.proposals()
            ],
            "not_shown": NOT_SHOWN,
        }


def _hop_as_dict(hop: Hop) -> dict[str, Any]:
    told = asdict(replace(hop, mends=(), missing=None))
    missing = None if hop.missing is None else str(hop.missing)
    return {**told, "mends": [str(mend) for mend in hop.mends], "missing": missing, "page": hop.page}


def reach_of(question: ReachQuestion, execute: Callable[[Read], Answer]) -> Reach:
    """Read what the question needs, and walk. Raises `UsageError` where it cannot be asked, `GhostError` where the
    network cannot be read."""
    protocol = question.checked()
    network = read_interfaces(execute)
    if network.failed:
        raise GhostError(
            f"the network interfaces could not be read ({'; '.join(network.failed.values())}): see ghost doctor"
        )
    destination = _address_or_name(network, question.destination)
    sources = [_address(network, question.source)] if not question.from_all else _others(network, destination)
    flows = [Flow(protocol, source, None, destination, question.port) for source in sources]
    public = None
    if question.from_all:
        network, public = look_up(network, execute, lambda known: public_address_of(known, destination))
        flows += [Flow(protocol, FIRST_PUBLIC, None, public, question.port)] if public else []
        if not flows:
            raise UsageError(f"nothing else than {question.destination} was read that could send to it: name a source")
    network = collect(flows, execute, network)
    changes: list[Mend] = []
    for text in question.assume:
        try:
            changes.append(proposed(text, _with(network, changes)))
        except ValueError as wrong:
            raise UsageError(str(wrong)) from None
        network = collect(flows, execute, network, lambda known: _with(known, changes))
    network, assumed = _with(network, changes), tuple(map(str, changes))
    if question.from_all or (question.port is None and flows[0].has_ports):
        parts = tuple(sources_of(network, flows[0], public) if question.from_all else ports_to(network, flows[0]))
        of = "sources" if question.from_all else "ports"
        return Reach(network, destination, assumed, tuple(part.walk for part in parts), parts=parts, of=of)
    return Reach(network, destination, assumed, (walk(network, flows[0]),), tuple(explain(network, flows[0])))


def _with(network: Network, changes: Iterable[Mend]) -> Network:
    for change in changes:
        network = change.applied(network)
    return network


def _address(network: Network, named: str) -> str:
    """Return the address that is meant by an address or the name of a machine or an interface."""
    try:
        return str(ip_address(named))
    except ValueError:
        pass
    names: dict[str, dict[str, str]] = {}
    for interface in network.all(Interface).values():
        for name in (interface.name, name_of(interface.machine or interface.id)):
            names.setdefault(name.casefold(), {})[interface.address] = interface.name
    found = names.get(named.casefold(), {})
    if len(found) > 1:
        each = ", ".join(f"{address} ({name})" for address, name in found.items())
        raise UsageError(f"{named!r} has several addresses: give one of {each}")
    if not found:
        known = get_close_matches(named.casefold(), names, MAX_NAMES) or sorted(names)
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        there = ", ".join(each[:MAX_NAME] for each in known[:MAX_NAMES]) or "none"
        raise UsageError(f"no machine or interface is named {named[:MAX_NAME]!r}; there are: {there}{more}")
    return next(iter(found))


def _address_or_name(network: Network, named: str) -> str:
    """Return the address that is meant, or a DNS name, which the source's machine resolves."""
    known = (i.name for i in network.all(Interface).values())
    machines = (name_of(i.machine) for i in network.all(Interface).values() if i.machine)
    if "." in named and not is_address(named) and named.casefold() not in map(str.casefold, (*known, *machines)):
        try:
            return dns_name(named)
        except ValueError as wrong:
            raise UsageError(str(wrong)) from None
    return _address(network, named)


def _others(network: Network, destination: str) -> list[str]:
    version = ip_address(destination).version if is_address(destination) else 4
    addresses = {ip_address(i.address) for i in network.all(Interface).values() if not i.has(destination)}
    found = [str(each) for each in sorted(addresses, key=lambda a: (a.version, a)) if each.version == version]
    if len(found) > MAX_SOURCES:
        raise UsageError(
            f"a walk from every source would read the state of {len(found)} machines one by one, and stops at "
            f"{MAX_SOURCES}: name a source"
        )
    return found
