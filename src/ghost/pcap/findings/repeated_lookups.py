"""Which names that do not exist somebody needs: a program asks again and again, and so do its other instances.

People mistype a name once or twice, and browsers ask at their start for three names of random letters, alone and
behind each suffix of the search list, to find out whether the resolver lies.
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
    """Whether any of these names was asked for again and again, by several clients, or they are many.

    `forwarders` are DNS servers: what they ask for somebody else asked for.
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
    """The first label: behind whatever suffix it is looked for, it is one name."""
    return next(iter(labels_of(query.name.lower())), "")


def _probes(queries: Sequence[DnsQuery]) -> set[str]:
    """Names of random letters, if all of a client's that may be have letters as chance draws them: single ones are too
    short to tell."""
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
