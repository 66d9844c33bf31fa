"""Rules for DNS abuse: names from domain generation algorithms, and data carried in names."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ghost.pcap import safe_text
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.phrasing import count, few
from ghost.pcap.findings.reputation_lookups import asks_reputation, in_reputation_zone
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.model import DnsQuery, DnsSection
from ghost.pcap.protocols.dns_question import labels_of, registered

VOWELS = set("aeiouy")
_WORD = re.compile(r"[^._-]+")


@dataclass(frozen=True)
class Generated:
    """Generated names of one client."""

    names: dict[str, DnsQuery]
    """Registered names of gibberish, each with a query."""
    domains: frozenset[str]
    """The domains that these are in."""

    def has(self, query: DnsQuery) -> bool:
        """Return whether the name belongs to the generated ones; some of them can be pronounced."""
        name = registered(query.name)
        bare = len(labels_of(query.name)) == len(name.split("."))
        return name in self.names or (bare and name.partition(".")[2] in self.domains)


def dns_threats(dns: DnsSection, generated: dict[str, Generated]) -> Iterator[Finding]:
    yield from _generated(dns, generated)
    yield from _tunnels(dns)


def looks_random(label: str) -> bool:
    """Return whether a label looks random: few vowels, long runs of consonants, digits between letters, even
    distribution."""
    letters = [c for c in label if c.isalpha()]
    if len(label) < threshold("dns_suspicious.min_label"):
        return False
    run = longest = 0
    for character in label:
        run = 0 if character in VOWELS or character == "-" else run + 1
        longest = max(longest, run)
    vowels = sum(c in VOWELS for c in letters) / len(letters) if letters else 0.0
    switches = sum(a.isdigit() != b.isdigit() for a, b in pairwise(label))
    return vowels < 0.22 or longest >= 5 or switches >= 4 or _entropy(label) >= 3.6


def _entropy(label: str) -> float:
    return -sum(n / len(label) * math.log2(n / len(label)) for n in Counter(label).values())


def _is_reverse(name: str) -> bool:
    return name.lower().rstrip(".").endswith(".arpa")


# --------------------------------------------------------------------------------------------------- generated


def generated_name_clients(dns: DnsSection) -> dict[str, Generated]:
    """Return, by client, its generated names: clients that ask for many non-existent registered names, most of them
    random letters."""
    by_client: dict[str, dict[str, DnsQuery]] = defaultdict(dict)
    for query in dns.nxdomain:
        expected = query.recovered or _is_reverse(query.name) or asks_reputation(query.name)
        if len(labels_of(query.name)) >= 2 and not expected:
            by_client[query.client].setdefault(registered(query.name), query)
    made: dict[str, Generated] = {}
    for client, domains in by_client.items():
        random = {domain: query for domain, query in domains.items() if looks_random(domain.split(".")[0])}
        enough = len(random) >= threshold("dns_suspicious.min_random_domains")
        if enough and 100 * len(random) >= threshold("dns_suspicious.random_pct") * len(domains):
            made[client] = Generated(random, frozenset(domain.partition(".")[2] for domain in random))
    return made


def _generated(dns: DnsSection, generated: dict[str, Generated]) -> Iterator[Finding]:
    for client, made in generated.items():
        random, examples = list(made.names), list(made.names.values())
        shown = few([f"“{safe_text.name(domain, 40)}”" for domain in random])
        yield _finding(
            Who(client, examples[0].server, 53), [query.frame for query in examples[:5]], case="dns_generated",
            name=examples[0].name.rstrip("."),
            title=f"{client} asks for generated names: {shown}",
            detail=f"{count(len(random), 'registered name')} without an address, made of letters at random,"
            f" among {dns.nxdomain_total} NXDOMAIN answers.",
            measured={"random_domains": len(random), "nxdomain": dns.nxdomain_total},
        )  # fmt: skip


# ----------------------------------------------------------------------------------------------------- tunnels


def _tunnels(dns: DnsSection) -> Iterator[Finding]:
    """Yield findings for DNS tunnels: ever new long names below one registered name."""
    for below in dns.long_names:
        if below.names < threshold("dns_suspicious.min_distinct"):
            return  # most names come first
        domain = below.domain
        if _is_reverse(domain) or not below.sample:
            continue
        carried = _carried(domain, below.sample)
        long = [part for part in carried if len(part) >= threshold("dns_suspicious.min_carried") and _packed(part)]
        # Rounded up: thirty names of which every one carries data are thirty.
        carrying = math.ceil(below.names * len(long) / len(below.sample))
        if len(long) < threshold("dns_suspicious.min_long_names") or carrying < threshold(
            "dns_suspicious.min_distinct"
        ):
            continue
        odd = ", ".join(
            f"{number} {kind}" for kind, number in below.query_types.items() if kind in ("TXT", "NULL", "CNAME", "MX")
        )
        yield _finding(
            Who(below.client, below.server, 53), below.frames, case="dns_tunnel", name=domain,
            title=f"Names below “{safe_text.name(domain, 60)}” carry data (DNS tunnel)",
            detail=f"{count(below.names, 'distinct long name')} below “{safe_text.name(domain, 60)}” were asked for,"
            f" with about {sum(map(len, long)) // len(long)} random characters each that no other of them has"
            + (f"; record types {odd}" if odd else "") + ".",
            measured={"distinct_names": below.names, "queries": below.queries},
        )  # fmt: skip


def _carried(domain: str, names: Sequence[str]) -> list[str]:
    """Return the part of each name that no other name has.

    Clusters use long names of recurring words; tunnelled data is new in every name.
    """
    heads = [
        _WORD.findall(head[: -len(domain) - 1]) if head.endswith("." + domain) and not in_reputation_zone(head) else []
        for head in (name.lower().rstrip(".") for name in names)
    ]
    names_with = Counter(word for head in heads for word in set(head))
    return ["".join(word for word in head if names_with[word] == 1) for head in heads]


def _packed(part: str) -> bool:
    """Return whether the text uses its letters evenly, as encoded data does."""
    return _entropy(part) >= 0.85 * math.log2(max(min(len(set(part)), len(part)), 2))


def _finding(
    who: Who, frames: Sequence[int], *, case: str, title: str, detail: str, name: str,
    measured: dict[str, int | float],
) -> Finding:  # fmt: skip
    return make_finding(
        case,
        severity="HIGH",
        title=title,
        detail=detail,
        who=who,
        evidence=[frames],
        confidence="medium",
        weight=sum(measured.values()),
        measured=measured,
        name=name or None,
    )
