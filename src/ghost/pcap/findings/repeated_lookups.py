"""Decides which non-existent names are needed: a program asks again and again, and so do its other instances.

People mistype a name once or twice, and browsers probe three random names at start, alone and with each search suffix.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.model import DnsQuery
from ghost.pcap.protocols.dns_question import labels_of

_PROBE = range(7, 16)
"""Letters of a name by which a browser probes."""
_COMMON = frozenset("etaoinsrldcu")
"""The letters that make up most of what people write."""


def is_needed_name(queries: Sequence[DnsQuery], forwarders: Collection[str]) -> bool:
    """Return whether any of these names was asked for repeatedly, by several clients, or they are many.

    `forwarders` are DNS servers, which ask for others.
    """
    clients: dict[str, set[str]] = defaultdict(set)
    for query in queries:
        if query.client not in forwarders:
            clients[query.name.lower()].add(query.client)
    return (
        any(query.count >= threshold("dns_nxdomain.again") for query in queries)
        or any(len(some) >= threshold("dns_nxdomain.clients") for some in clients.values())
        or len({_host(query) for query in queries} - _probes(queries)) >= threshold("dns_nxdomain.names")
    )


def _host(query: DnsQuery) -> str:
    """Return the first label, the same for every search suffix."""
    return next(iter(labels_of(query.name.lower())), "")


def _probes(queries: Sequence[DnsQuery]) -> set[str]:
    """Return a browser's probe names: random letters, judged over all candidates of a client, since single names are
    too short."""
    of_client: dict[str, set[str]] = defaultdict(set)
    for query in queries:
        host = _host(query)
        if host.isascii() and host.isalpha() and len(host) in _PROBE:
            of_client[query.client].add(host)
    return {host for hosts in of_client.values() if _is_random(hosts) for host in hosts}


def _is_random(hosts: Collection[str]) -> bool:
    letters = "".join(hosts)
    common = 100 * sum(letter in _COMMON for letter in letters) / len(letters)
    return common < threshold("dns_nxdomain.common_letters_pct")
