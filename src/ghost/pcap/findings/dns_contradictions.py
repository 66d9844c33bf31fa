"""Rules for DNS answers that contradict each other, the private endpoint of their name, or where the client goes.

Severity follows from the connections: HIGH if those to a contradicted address fail, LOW if they work or there are none.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ghost.pcap import safe_text
from ghost.pcap.array_queries import among
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import MOST_GROUPS, Observed
from ghost.pcap.findings.phrasing import at, count, few
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Mask, StreamRows
from ghost.pcap.model import DnsAnswer, DnsSection

_DNS = 53


def dns_contradiction_findings(seen: Observed, dns: DnsSection) -> Iterator[Finding]:
    failed = _failed(seen)
    yield from _public_despite_private_link(seen, dns, failed)
    yield from _split_answers(seen, dns, failed)
    yield from _other_address(seen, dns, failed)


def _failed(seen: Observed) -> Mask:
    """Return the mask of connections that were not opened, or on which the server said nothing."""
    c, tls = seen.columns, seen.analysis.tls
    waited = seen.last_ns - c.first_ns >= threshold("syn_unanswered.answer_window_ms") * 1e6
    given_up = waited | (c.sides("syn")[:, CLIENT] >= threshold("syn_unanswered.min_attempts"))
    rejected = (c.sides("rst")[:, SERVER] > 0) | (np.nan_to_num(c.request_ms) >= threshold("slow_application.hung_ms"))
    mute = rejected & (c.sides("syn")[:, CLIENT] > 0) & (c.sides("payload_bytes")[:, SERVER] == 0)
    in_handshake = [failure.stream_id for failure in tls.failures] if tls else []
    result: Mask = (seen.only_syn & given_up) | mute | among(np.arange(len(c)), in_handshake)
    return result


@dataclass(frozen=True, eq=False)
class _Followed:
    """An answer and the client's later connections to its addresses."""

    answer: DnsAnswer
    rows: StreamRows
    failed: StreamRows

    @property
    def fails(self) -> bool:
        return len(self.failed) > 0 and 2 * len(self.failed) >= len(self.rows)


def _followed(seen: Observed, answer: DnsAnswer, failed: Mask) -> _Followed:
    rows = _connections(seen, answer.client, answer.addresses, answer.first_ns)
    return _Followed(answer, rows, rows[failed[rows]])


def _connections(seen: Observed, client: str, servers: Collection[str], since_ns: int) -> StreamRows:
    c, number_of = seen.columns, seen.number_of
    known = [number_of[server] for server in servers if server in number_of]
    mine = (c.hosts[:, CLIENT] == number_of.get(client, -1)) & (c.first_ns >= since_ns)
    return np.flatnonzero(mine & among(c.hosts[:, SERVER], known))


def _all_public(answer: DnsAnswer) -> bool:
    return all(ipaddress.ip_address(address).is_global for address in answer.addresses)


def _all_private(answer: DnsAnswer) -> bool:
    """Return whether all addresses belong to private networks; filters answer with loopback and 0.0.0.0."""
    each = [ipaddress.ip_address(address) for address in answer.addresses]
    return all(one.is_private and not (one.is_loopback or one.is_unspecified or one.is_link_local) for one in each)


# ----------------------------------------------------------------------------------------- two kinds of answers


def _public_despite_private_link(seen: Observed, dns: DnsSection, failed: Mask) -> Iterator[Finding]:
    by_server: dict[str, list[_Followed]] = defaultdict(list)
    for answer in dns.answers:
        if answer.private_link and answer.addresses and _all_public(answer):
            by_server[answer.server].append(_followed(seen, answer, failed))
    for server, found in list(by_server.items())[:MOST_GROUPS]:
        worst = _worst(found)
        same_name = (each for each in dns.answers if each.name == worst.answer.name and _all_private(each))
        other = next((f" {each.server} answers with {few(each.addresses)}." for each in same_name), "")
        yield _finding(
            seen,
            "dns_private_link",
            found,
            f"{_name(worst.answer.name)} has a private endpoint, but the DNS server {server} answers with the public"
            f" address {few(worst.answer.addresses, 1)}",
            f"The answer's aliases lead through a `privatelink` zone to a public address.{other}",
        )


def _split_answers(seen: Observed, dns: DnsSection, failed: Mask) -> Iterator[Finding]:
    """Yield findings on names for which one client got only private addresses from one server and only public ones from
    another."""
    asked: dict[tuple[str, str], list[DnsAnswer]] = defaultdict(list)
    for answer in dns.answers:
        if answer.addresses and not answer.private_link:
            asked[answer.client, answer.name].append(answer)
    pairs: dict[tuple[str, str], list[_Followed]] = defaultdict(list)
    for answers in asked.values():
        private = next(filter(_all_private, answers), None)
        public = next(filter(_all_public, answers), None)
        if private and public:
            both = sorted(
                (_followed(seen, each, failed) for each in (public, private)), key=lambda each: not each.fails
            )
            pairs[public.server, private.server].append(both[0])
    for (outer, inner), found in list(pairs.items())[:MOST_GROUPS]:
        worst = _worst(found)
        yield _finding(
            seen,
            "dns_split_answers",
            found,
            f"{_name(worst.answer.name)} is a public address by the DNS server {outer} and a private one by {inner}",
            f"{worst.answer.server} answers {worst.answer.client} with {few(worst.answer.addresses)}, which the other"
            " server does not.",
        )


def _worst(found: Sequence[_Followed]) -> _Followed:
    return max(found, key=lambda each: (each.fails, len(each.failed), len(each.rows)))


def _finding(seen: Observed, case: str, found: Sequence[_Followed], title: str, detail: str) -> Finding:
    """Return the finding for the answers of one server."""
    worst = _worst(found)
    failing = [each for each in found if each.fails]
    rows = np.concatenate([each.rows for each in failing or found])
    tried, failed = len(rows), sum(len(each.failed) for each in failing or found)
    follows = (
        f"{failed} of {count(tried, 'connection')} to such addresses failed" if tried else "No connection followed"
    )
    names, clients = {each.answer.name for each in found}, {each.answer.client for each in found}
    further = f" {len(names)} names, {count(len(clients), 'client')}." if len(names) + len(clients) > 2 else ""
    refused = np.concatenate([each.failed for each in failing]) if failing else rows[:0]
    return make_finding(
        case,
        severity="HIGH" if failing else "LOW",
        title=f"{title}, to which connections fail" if failing else title,
        detail=f"{detail} {follows}.{further}",
        who=Who(worst.answer.client, worst.answer.server, _DNS),
        evidence=[[worst.answer.frame], *seen.frames(refused, "syn", CLIENT)],
        confidence="medium",
        weight=len(found) + failed,
        measured={"names": len(names), "connections": tried, "failed": failed},
        other_targets=tuple(dict.fromkeys(seen.name_of(int(service)) for service in seen.service[refused])),
        name=worst.answer.name,
    )


# -------------------------------------------------------------------------------------------- another address


def _other_address(seen: Observed, dns: DnsSection, failed: Mask) -> Iterator[Finding]:
    """Yield findings on clients that connect for a name to an address which no answer gives, and to none that one
    gives."""
    c, http = seen.columns, seen.analysis.http
    if dns.answers_unlisted:
        return
    by_name: dict[str, list[DnsAnswer]] = defaultdict(list)
    for answer in dns.answers:
        by_name[answer.name].append(answer)
    given = {address for answer in dns.answers for address in answer.addresses} | (
        http.proxies if http else frozenset()
    )
    names: dict[tuple[int, int], set[str]] = defaultdict(set)
    for row, text in c.server_names.items():
        names[int(c.hosts[row, CLIENT]), int(seen.service[row])].add(text.lower().rstrip(".").partition(":")[0])
    findings = 0
    for (client, service), (name, *others) in names.items():
        server, port = seen.name_of(service)
        answers = by_name.get(name, [])
        own = [answer for answer in answers if answer.client == c.host(client)]
        addresses = {
            address for answer in answers for address in answer.addresses if (":" in address) == (":" in server)
        }
        # A proxy carries several names. A cluster's node rewrites the address of a service to that of a pod.
        if others or not own or not addresses or server in given or ".svc." in name or findings >= MOST_GROUPS:
            continue
        if not all(answer.complete for answer in answers) or len(_connections(seen, c.host(client), addresses, 0)):
            continue
        since = min(answer.first_ns for answer in own)
        rows = _connections(seen, c.host(client), [server], since)
        rows = rows[c.ports[rows, SERVER] == port]
        fails = 2 * int(failed[rows].sum()) >= len(rows)
        if not fails:  # an answer from before the capture may still have been valid
            rows = rows[c.first_ns[rows] > seen.first_ns + threshold("dns_contradiction.cache_seconds") * 1e9]
        if len(rows) < threshold("dns_contradiction.min_connections"):
            continue
        findings += 1
        yield make_finding(
            "dns_other_address",
            severity="HIGH" if fails else "LOW",
            title=f"{c.host(client)} connects to {at(server, port)} for {_name(name)}, which DNS says is"
            f" {few(sorted(addresses), 1)}{': these connections fail' if fails else ''}",
            detail=f"No answer in the capture has this address, and the client tries none that one has."
            f" {int(failed[rows].sum())} of {count(len(rows), 'connection')} after the answer failed.",
            who=Who(c.host(client), server, port),
            evidence=[[own[0].frame], *seen.frames(rows, "syn", CLIENT)],
            confidence="medium" if fails else "low",
            weight=len(rows),
            measured={"connections": len(rows), "failed": int(failed[rows].sum())},
            other_targets=((server, port),) if fails else (),
            name=name,
        )


def _name(text: str) -> str:
    return f"“{safe_text.name(text, 80)}”"
