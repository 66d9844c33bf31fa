"""Names that no person or program would ask for: domain generation algorithms, and data carried inside names."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ghost.pcap import text
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.policy import cause_of, remediation_of, threshold
from ghost.pcap.findings.words import count, few, first_frames
from ghost.pcap.model import DnsQuery, DnsSection

VOWELS = set("aeiouy")
SECOND_LEVEL = {"co", "com", "net", "org", "ac", "gov", "edu", "ne", "or"}
"""Below a country's domain these are no names of their own (`example.co.uk`)."""


def dns_threats(dns: DnsSection) -> Iterator[Finding]:
    yield from _generated(dns)
    yield from _tunnels(dns)


def _labels(name: str) -> list[str]:
    return [label for label in name.lower().rstrip(".").split(".") if label]


def registered(name: str) -> str:
    """The part of a name that somebody registers: `example.co.uk` of `www.example.co.uk`."""
    labels = _labels(name)
    deep = len(labels) >= 3 and len(labels[-1]) == 2 and labels[-2] in SECOND_LEVEL
    return ".".join(labels[-3:] if deep else labels[-2:])


def looks_random(label: str) -> bool:
    """No language writes like this: hardly a vowel, long runs of consonants, digits between letters, even spread."""
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


def _generated(dns: DnsSection) -> Iterator[Finding]:
    """Many registered names that do not exist, most of them gibberish, asked for by one client."""
    by_client: dict[str, dict[str, DnsQuery]] = defaultdict(dict)
    for query in dns.nxdomain:
        if len(_labels(query.name)) >= 2 and not _is_reverse(query.name) and not query.recovered:
            by_client[query.client].setdefault(registered(query.name), query)
    for client, domains in by_client.items():
        random = [domain for domain in domains if looks_random(domain.split(".")[0])]
        enough = len(random) >= threshold("dns_suspicious.min_random_domains")
        if enough and 100 * len(random) >= threshold("dns_suspicious.random_pct") * len(domains):
            examples = [domains[domain] for domain in random]
            shown = few([f"“{text.name(domain, 40)}”" for domain in random])
            yield _finding(
                client, examples, advice="dns_generated",
                title=f"{client} asks for names that an algorithm made: {shown}",
                detail=f"{count(max(len(random), 1), 'registered name')} without an address, made of letters at random,"
                f" among {dns.nxdomain_total} NXDOMAIN answers.",
                measured={"random_domains": len(random), "nxdomain": dns.nxdomain_total},
            )  # fmt: skip


# ----------------------------------------------------------------------------------------------------- tunnels


@dataclass
class _Below:
    """Names below one registered name."""

    names: list[str]
    queries: int = 0


def _tunnels(dns: DnsSection) -> Iterator[Finding]:
    """Ever new long names below one registered name: the names themselves carry data."""
    below: dict[str, _Below] = {}
    for name, asked in dns.top_domains:
        if not _is_reverse(name):
            group = below.setdefault(registered(name), _Below([]))
            group.names.append(name)
            group.queries += asked
    for domain, group in below.items():
        carried = [_carried(name, domain) for name in group.names]
        long = [part for part in carried if len(part) >= threshold("dns_suspicious.min_carried") and _packed(part)]
        if len(long) < threshold("dns_suspicious.min_long_names") or dns.distinct_names < threshold(
            "dns_suspicious.min_distinct"
        ):
            continue
        examples = _about(domain, (*dns.nxdomain, *dns.unanswered, *dns.slow, *dns.servfail))
        asked_by = examples[0].client if examples else "-"
        odd = ", ".join(
            f"{number} {kind}" for kind, number in dns.query_types.items() if kind in ("TXT", "NULL", "CNAME", "MX")
        )
        yield _finding(
            asked_by, examples, advice="dns_tunnel", server=dns.servers[0].address if dns.servers else "-",
            name=domain,
            title=f"Names below “{text.name(domain, 60)}” carry data (DNS tunnel)",
            detail=f"{count(dns.distinct_names, 'distinct name')} were asked for, those below"
            f" “{text.name(domain, 60)}” with about {sum(map(len, long)) // len(long)} random characters each"
            + (f"; record types {odd}" if odd else "") + ".",
            measured={"distinct_names": dns.distinct_names, "queries": dns.queries_total},
        )  # fmt: skip


def _carried(name: str, domain: str) -> str:
    head = name.lower().rstrip(".")
    return head[: -len(domain) - 1].replace(".", "") if head.endswith("." + domain) else ""


def _packed(part: str) -> bool:
    """Encoded data uses its letters evenly."""
    return _entropy(part) >= 0.85 * math.log2(max(min(len(set(part)), len(part)), 2))


def _about(domain: str, queries: Iterable[DnsQuery]) -> list[DnsQuery]:
    return [query for query in queries if registered(query.name) == domain]


def _finding(
    client: str, examples: Sequence[DnsQuery], *, advice: str, title: str, detail: str, server: str = "-",
    name: str = "", measured: dict[str, int | float],
) -> Finding:  # fmt: skip
    server = examples[0].server if examples else server
    return Finding(
        kind="dns_suspicious",
        severity="HIGH",
        blame="client",
        protocol="DNS",
        title=title,
        detail=detail,
        who=Who(client, server, 53),
        evidence=first_frames([query.frame] for query in examples[:5]),
        cause=cause_of(advice),
        remediation=remediation_of(
            advice, src=client, dst=server, name=name or (examples[0].name.rstrip(".") if examples else None)
        ),
        confidence="medium",
        weight=sum(measured.values()),
        measured=measured,
    )
