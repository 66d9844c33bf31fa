"""A packet's way to an address, or to a name: what the source's machine gets for it comes first.

All addresses of a name must agree: which one a machine takes is not known. Where the public way is closed, and that to
a private endpoint open with its zone linked, the missing link is the fault.
"""

from __future__ import annotations

from dataclasses import replace

from ghost.net import packet_path
from ghost.net.address_matching import is_address
from ghost.net.hops import Hop, Walk
from ghost.net.names.records import PublicName, dns_name
from ghost.net.names.resolution import Resolution, resolve
from ghost.net.network import Missing, Network, Unread
from ghost.net.resources import Interface
from ghost.net.security import Flow
from ghost.net.senders import comes_from_outside, is_public, sender
from ghost.net.services import service_named


def walk(network: Network, flow: Flow, *, source: str | None = None) -> Walk:
    """Return the way of a first packet, and of its answer. The flow's destination is an address or a DNS name.

    `source`: id of the interface that sends, where several have the flow's source address.
    """
    if is_address(flow.destination_address):
        return packet_path.walk(network, flow, source=source)
    name = dns_name(flow.destination_address)
    if comes_from_outside(network, flow.source_address):
        return _to_public_name(network, flow, name, source)
    here = sender(network, flow, source)
    if isinstance(here, Hop):
        return Walk(flow, (here,))
    resolution = resolve(network, here, name, _walked_from)
    if resolution.public is not None:
        public = _to_public_name(network, flow, resolution.public, here.id)
        past = resolution.bypassed if public.blocker is not None else None
        if past is not None and any(walk(m.applied(network), flow, source=here.id).blocker is None for m in past.mends):
            return Walk(flow, (*resolution.hops[:-1], past, *public.hops))
        return Walk(flow, (*resolution.hops, *public.hops))
    flows = [
        replace(flow, source_address=_own_address(here, flow.source_address, address), destination_address=address)
        for address in resolution.addresses
    ]
    return _together(flow, resolution.hops, [packet_path.walk(network, each, source=here.id) for each in flows])


def resolution_of(network: Network, interface: Interface, name: str) -> Resolution:
    """Return what a machine gets for a name at this interface."""
    return resolve(network, interface, dns_name(name), _walked_from)


def _own_address(here: Interface, asked: str, destination: str) -> str:
    """Return the address that an interface sends from: the one that was asked for, if it is of the same family."""
    of_family = (c.address for c in here.configurations if (":" in c.address) == (":" in destination))
    return asked if (":" in asked) == (":" in destination) else next(of_family, asked)


def _to_public_name(network: Network, flow: Flow, name: str, source: str | None) -> Walk:
    """Return the way to what the internet's DNS answers for a name: known if it is a service's."""
    try:
        service = service_named(network, name)
    except Unread as unread:
        return Walk(flow, (Hop("internet", source or "", "unknown", unread.reason, missing=unread.missing),))
    if service is None:
        return _to_told_addresses(network, flow, name, source)
    return packet_path.walk(network, replace(flow, destination_address=name), source=source, service=service.id)


def _to_told_addresses(network: Network, flow: Flow, name: str, source: str | None) -> Walk:
    """Return the way to the addresses that public DNS told for a name, where it was asked."""
    try:
        answer = network.one(PublicName, name)
    except Unread as unread:
        told = f" ({network.failed[Missing(PublicName, name)]})" if unread.missing is None else ""
        reason = f"the address of {name} is not shown by Azure's configuration{told}"
        return Walk(flow, (Hop("internet", source or "", "unknown", reason, missing=unread.missing),))
    if not answer.addresses:
        reason, references = f"public DNS has no address for {name}", (answer.reference,)
        return Walk(flow, (Hop("name", name, "unknown", reason, references=references),))
    said = ", ".join(answer.addresses)
    if not all(map(is_public, answer.addresses)):
        reason = f"DNS says {said} for {name}, asked from here: another resolver may not give a private address"
        return Walk(flow, (Hop("name", name, "unknown", reason, references=(answer.reference,)),))
    reason = f"public DNS says {said} for {name}, asked from here"
    hop = Hop("name", name, "pass", reason, references=(answer.reference,))
    flows = [replace(flow, destination_address=address) for address in answer.addresses]
    return _together(flow, (hop,), [packet_path.walk(network, each, source=source) for each in flows])


def _walked_from(network: Network, flow: Flow, source: str) -> Walk:
    return packet_path.walk(network, flow, source=source)


def _together(flow: Flow, resolved: tuple[Hop, ...], walks: list[Walk]) -> Walk:
    """Return one walk of the ways to all addresses."""
    if not walks:
        return Walk(flow, resolved)
    if len({walked.outcome for walked in walks}) == 1:
        hops = walks[0].hops if walks[0].outcome == "blocked" else tuple(h for walked in walks for h in walked.hops)
        by_members = tuple(other for walked in walks for other in walked.others)
        return Walk(walks[0].flow, (*resolved, *hops), by_members)
    outcomes = ", ".join(f"{walked.flow.destination_address} {walked.outcome}" for walked in walks)
    differing = Hop("name", "", "unknown", f"the addresses of {flow.destination_address} differ: {outcomes}")
    others = (hop for walked in walks if walked.outcome != "blocked" for hop in walked.hops)
    return Walk(flow, (*resolved, differing, *others))
