"""Resets sent from closer than the host they claim to come from.

Captured beside the client, a packet with an initial TTL was sent on this segment. A host whose other packets have
passed a router is not on it; nor is a host without other packets if its neighbours are behind routers.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from ghost.pcap.array_queries import among, distinct
from ghost.pcap.findings.observations import FIRST_TTLS, MOST_GROUPS, Observed
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, StreamRows


def from_this_segment(seen: Observed, rows: StreamRows) -> Iterator[tuple[StreamRows, list[int]]]:
    """Yield refused attempts per host that were answered from this segment, and the TTLs of the host's neighbours."""
    c = seen.columns
    ttl = c.sides("ttl_min")
    beside = among(c.sides("rst_ttl")[rows, SERVER], FIRST_TTLS) & among(ttl[rows, CLIENT], FIRST_TTLS)
    near = rows[beside]
    if not len(near):
        return
    heard = ttl >= 0
    network = {number: network_of(address) for number, address in enumerate(c.addresses)}
    for host in distinct(c.hosts[near, SERVER])[:MOST_GROUPS].tolist():
        mine = near[c.hosts[near, SERVER] == host]
        if network[host] in {network[number] for number in c.hosts[mine, CLIENT].tolist()} or seen.ttls(host):
            continue
        beside_it = [number for number, net in network.items() if net == network[host] and number != host]
        known = distinct(ttl[heard & among(c.hosts, beside_it)]).tolist()
        if known and not set(known) & set(FIRST_TTLS):
            yield mine, known


def network_of(address: str) -> str:
    """Return the /24 or /64 network of an address; text that is no address is its own network."""
    if ":" not in address:
        return address.rpartition(".")[0] or address
    try:
        return str(ipaddress.ip_network(f"{address}/64", strict=False))
    except ValueError:
        return address
