"""Rules for DNS abuse: names from domain generation algorithms, and data carried in names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ghost.pcap import safe_text
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.phrasing import count, few
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.model import DnsLongNames, DnsQuery, DnsSection
from ghost.pcap.protocols.dns_long_names import carries_data, looks_random
from ghost.pcap.protocols.dns_question import labels_of, registered

_NIBBLES = frozenset("0123456789abcdef")


@dataclass(frozen=True)
class Generated:
    """Generated names of one client, and names in which it carries data."""

    names: Mapping[str, DnsQuery] = field(default_factory=dict)
    """Registered names of gibberish, each with a query."""
    domains: frozenset[str] = frozenset()
    """The domains that these are in."""
    tunnels: frozenset[str] = frozenset()
    """Registered names below which it asks for names that carry data."""

    def has(self, query: DnsQuery) -> bool:
        """Return whether the name belongs to the generated ones (some can be pronounced) or carries data."""
        name = registered(query.name)
        bare = len(labels_of(query.name)) == len(name.split("."))
        found = name in self.names or (bare and name.partition(".")[2] in self.domains)
        return found or (name in self.tunnels and carries_data(query.name))


def asks_about_an_address(name: str) -> bool:
    """Return whether the name is a reversed address in a DNS list (RFC 5782, 2.1 and 2.4), where NXDOMAIN is an
    answer."""
    labels = labels_of(name)
    four = len(labels) >= 6 and all(label.isdecimal() and int(label[:4]) <= 255 for label in labels[:4])
    return four or (len(labels) >= 34 and all(label in _NIBBLES for label in labels[:32]))


def generated_name_clients(dns: DnsSection) -> dict[str, Generated]:
    """Return clients with many non-existent registered names, most of them random letters, or with tunnels."""
    by_client: dict[str, dict[str, DnsQuery]] = defaultdict(dict)
    for query in dns.nxdomain:
        if len(labels_of(query.name)) >= 2 and not query.recovered and not _is_reverse(query.name):
            by_client[query.client].setdefault(registered(query.name), query)
    made: dict[str, Generated] = {}
    for client, domains in by_client.items():
        random = {domain: query for domain, query in domains.items() if looks_random(domain.split(".")[0])}
        enough = len(random) >= threshold("dns_suspicious.min_random_domains")
        if enough and 100 * len(random) >= threshold("dns_suspicious.random_pct") * len(domains):
            made[client] = Generated(random, frozenset(domain.partition(".")[2] for domain in random))
    for below in _tunnels(dns):
        known = made.get(below.client, Generated())
        made[below.client] = replace(known, tunnels=known.tunnels | {below.domain})
    return made


def _tunnels(dns: DnsSection) -> list[DnsLongNames]:
    least = threshold("dns_suspicious.min_distinct")
    return [below for below in dns.long_names if below.names >= least and not _is_reverse(below.domain)]


def dns_threats(dns: DnsSection, generated: dict[str, Generated]) -> Iterator[Finding]:
    for client, made in generated.items():
        if not made.names:
            continue
        examples = list(made.names.values())
        shown = few([f"“{safe_text.name(domain, 40)}”" for domain in made.names])
        yield make_finding(
            "dns_generated",
            severity="HIGH",
            title=f"{client} asks for generated names: {shown}",
            detail=f"{count(len(examples), 'registered name')} without an address, made of letters at random,"
            f" among {dns.nxdomain_total} NXDOMAIN answers.",
            who=Who(client, examples[0].server, 53),
            evidence=[[query.frame for query in examples[:5]]],
            confidence="medium",
            weight=len(examples),
            measured={"random_domains": len(examples), "nxdomain": dns.nxdomain_total},
            name=examples[0].name.rstrip("."),
        )
    for below in _tunnels(dns):
        domain = safe_text.name(below.domain, 60)
        yield make_finding(
            "dns_tunnel",
            severity="MEDIUM",
            title=f"Names below “{domain}” carry data (DNS tunnel, or lookups of hashes)",
            detail=f"{below.client} asked for {count(below.names, 'distinct name')} with forty random characters or"
            f" more below “{domain}”.",
            who=Who(below.client, below.server, 53),
            evidence=[below.frames],
            confidence="low",
            weight=below.names,
            measured={"distinct_names": below.names},
            name=below.domain,
        )


def _is_reverse(name: str) -> bool:
    return name.lower().rstrip(".").endswith(".arpa")
