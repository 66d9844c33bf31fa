"""Rules for DNS: names that do not exist, and servers that fail, are slow or do not answer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from ghost.pcap import safe_text
from ghost.pcap.findings.dns_abuse import Generated, asks_about_an_address, dns_threats, generated_name_clients
from ghost.pcap.findings.dns_contradictions import dns_contradiction_findings
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.one_way_captures import replies_bypass_capture, responses_without_queries
from ghost.pcap.findings.phrasing import at, count, duration, few, percent, rate
from ghost.pcap.findings.repeated_lookups import is_needed_name
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.model import DnsQuery, DnsSection, DnsServer

DNS = 53
_SHOWN = 3
"""Names in a sentence."""


def dns_findings(seen: Observed) -> Iterator[Finding]:
    dns = seen.analysis.dns
    if dns is None:
        return
    servers = {server.address: server for server in dns.servers}
    generated = generated_name_clients(dns)
    yield from dns_threats(dns, generated)
    yield from _timeouts(seen, dns, servers)
    yield from _servfail(dns, servers)
    yield from _nxdomain(dns, servers, generated)
    yield from _slow(seen, dns, servers)
    yield from dns_contradiction_findings(seen, dns)
    yield from responses_without_queries(seen, dns)


def _by_server(queries: Iterable[DnsQuery]) -> dict[str, list[DnsQuery]]:
    groups: dict[str, list[DnsQuery]] = defaultdict(list)
    for query in queries:
        groups[query.server].append(query)
    return groups


def _finding(
    kind: str, examples: list[DnsQuery], *, severity: str, title: str, detail: str, weight: int | None = None,
    other_targets: tuple[tuple[str, int | None], ...] = (), **measured: int | float,
) -> Finding:  # fmt: skip
    """A finding about one server; it weighs as many queries as it concerns."""
    client = Counter(query.client for query in examples).most_common(1)[0][0]
    server, example = examples[0].server, examples[0].name
    return make_finding(
        kind,
        severity=severity,
        title=title,
        detail=detail,
        who=Who(client, server, DNS),
        evidence=([query.frame] for query in examples[:5]),
        dated_by=(query.frame for query in examples),
        confidence="high",
        weight=len(examples) if weight is None else weight,
        measured=measured,
        other_targets=other_targets,
        name=example.rstrip(".") or ".",
    )


def _names(queries: Iterable[DnsQuery], *, whole: bool = True) -> str:
    """Return names as text; a list that is not complete ends in "and others"."""
    distinct = list(dict.fromkeys(query.name for query in queries))
    if not whole and len(distinct) > _SHOWN:
        return ", ".join(f"“{safe_text.name(name, 60)}”" for name in distinct[:_SHOWN]) + " and others"
    return few([*(f"“{safe_text.name(name, 60)}”" for name in distinct[:_SHOWN]), *distinct[_SHOWN:]], _SHOWN)


def _timeouts(seen: Observed, dns: DnsSection, servers: dict[str, DnsServer]) -> Iterator[Finding]:
    lost: list[DnsQuery] = []
    excused: Counter[str] = Counter()
    unanswered = [query for query in dns.unanswered if not query.recovered]
    given_up = _repeated_queries(unanswered)
    for query in unanswered:
        young = _too_recent(query, servers.get(query.server), again=_question(query) in given_up)
        if young or replies_bypass_capture(seen, query.client, query.server):
            excused[query.server] += 1
        else:
            lost.append(query)
    for address, queries in _by_server(lost).items():
        server = servers.get(address)
        asked = server.queries if server else len(queries)
        # The list may be cut; the server's own numbers are not.
        failed = max(len(queries), server.unanswered - server.recovered - excused[address] if server else 0)
        silent = server is None or server.responses == 0
        share = percent(failed, asked)
        few_lost = not silent and share < threshold("dns_timeout.medium_pct")
        severity = "HIGH" if silent and failed > 1 else "LOW" if few_lost else "MEDIUM"
        title = f"The DNS server {address} " + ("answers nothing" if silent else f"leaves {rate(share)} unanswered")
        repeats = sum(query.attempts - 1 for query in queries)
        yield _finding(
            "dns_timeout",
            queries,
            severity=severity,
            title=title,
            detail=f"{failed} of {count(asked, 'query', 'queries')} without an answer ({count(repeats, 'repeat')}):"
            f" {_names(queries, whole=failed == len(queries))}.",
            weight=failed,
            unanswered=failed,
            queries=asked,
        )


_Question = tuple[str, str, str, str]


def _question(query: DnsQuery) -> _Question:
    """Return the key of a question: client, server, name and type, without the id."""
    return query.client, query.server, query.name, query.type


def _repeated_queries(unanswered: Iterable[DnsQuery]) -> set[_Question]:
    """Return questions that a client repeated after it had given up on the first one."""
    first: dict[_Question, float] = {}
    last: dict[_Question, float] = {}
    for query in unanswered:
        question, waited = _question(query), query.waited_ms or 0.0
        first[question] = max(first.get(question, waited), waited)
        last[question] = min(last.get(question, waited), waited - query.tried_ms)
    return {question for question in first if first[question] - last[question] >= threshold("dns_timeout.again_ms")}


def _too_recent(query: DnsQuery, server: DnsServer | None, *, again: bool) -> bool:
    """Return whether the query is so close to the end of the capture that its answer may follow."""
    if query.waited_ms is None:
        return False
    slowest = server.latency_ms.p95 if server is not None and server.latency_ms is not None else 0.0
    patience = threshold("dns_timeout.slow_server_factor") * slowest
    if not again:
        patience = max(patience, threshold("dns_timeout.answer_window_ms"))
    return query.waited_ms < patience


def _servfail(dns: DnsSection, servers: dict[str, DnsServer]) -> Iterator[Finding]:
    for address, queries in _by_server(dns.servfail).items():
        server = servers.get(address)
        failed = sum(query.count for query in queries)
        if server is not None:
            failed = max(failed, sum(server.rcodes.get(code, 0) for code in ("SERVFAIL", "REFUSED")))
        answered = server.responses if server else failed
        refused = all(query.rcode == "REFUSED" for query in queries)
        what = "refuses to answer" if refused else "fails to answer"
        yield _finding(
            "dns_servfail",
            queries,
            severity="HIGH" if failed >= answered and failed > 1 else "MEDIUM",
            title=f"The DNS server {address} {what} {count(failed, 'query', 'queries')}",
            detail=f"{failed} of {count(answered, 'response')} are {'REFUSED' if refused else 'SERVFAIL'}:"
            f" {_names(queries, whole=failed == sum(query.count for query in queries))}.",
            weight=failed,
            failed=failed,
            responses=answered,
        )


_ASKED_EVERYWHERE = frozenset({"wpad", "isatap"})
"""By which Windows looks for a proxy and a tunnel in every network; hardly any has them."""


def _nxdomain(dns: DnsSection, servers: dict[str, DnsServer], generated: dict[str, Generated]) -> Iterator[Finding]:
    """Yield findings for names that do not exist.

    Reverse lookups, and names of a search list that resolve under another suffix, are healthy; generated names have a
    finding of their own.
    """
    failed = {query.name.lower() for query in (*dns.nxdomain, *dns.servfail, *dns.unanswered)}
    resolved = {name.lower() for name, _ in dns.top_domains} - failed
    tried = _search_list({query.name.lower() for query in dns.nxdomain}, resolved)
    missing = [
        q
        for q in dns.nxdomain
        if not q.recovered
        and not (q.client in generated and generated[q.client].has(q))
        and not _is_reverse(q.name)
        and not asks_about_an_address(q.name)
        and q.name.lower().partition(".")[0] not in _ASKED_EVERYWHERE
        and not _found_elsewhere(q.name.lower(), resolved)
        and q.name.lower() not in tried
    ]
    times: Counter[str] = Counter()
    for query in missing:
        times[query.name.lower()] += query.count
    missing.sort(key=lambda query: -times[query.name.lower()])  # what is asked for most is named first
    for address, queries in _by_server(missing).items():
        distinct = len({query.name.lower() for query in queries})
        answers = sum(query.count for query in queries)
        more = servers[address].nxdomain_unlisted if address in servers else 0
        missed = more > 0 or is_needed_name(queries, servers)
        yield _finding(
            "dns_nxdomain",
            queries,
            severity="MEDIUM" if missed else "LOW",
            title=f"{_names(queries)} {'does' if distinct == 1 else 'do'} not exist, according to the DNS server"
            f" {address}",
            detail=f"{count(answers, 'query', 'queries')} for {count(distinct, 'name')} answered NXDOMAIN."
            + (f" {count(more, 'further query', 'further queries')} for names that were not recorded." if more else "")
            + ("" if missed else " No client asked repeatedly: typing errors, or a browser's probes."),
            weight=answers,
            nxdomain=answers,
            names=distinct,
        )


def _is_reverse(name: str) -> bool:
    return name.lower().rstrip(".").endswith((".in-addr.arpa", ".ip6.arpa"))


def _search_list(failed: set[str], resolved: set[str]) -> set[str]:
    """Failed names of a search list: several hosts are missing below one domain and all found below one other."""
    below: dict[tuple[str, str], set[str]] = defaultdict(set)
    homes: dict[str, set[str]] = defaultdict(set)
    for name in resolved:
        host, _, domain = name.rstrip(".").partition(".")
        homes[host].add(domain)
    for name in failed:
        host, _, domain = name.rstrip(".").partition(".")
        for home in homes.get(host, ()):
            below[domain, home].add(name)
    return {name for names in below.values() if len(names) > 1 for name in names}


def _found_elsewhere(name: str, resolved: set[str]) -> bool:
    """Return whether a search list explains the failure: `db.prod.corp.example` failed, and `db.prod`,
    `db.prod.example` or `db.corp.example` resolved."""
    labels = name.rstrip(".").split(".")
    for other in resolved:
        theirs = other.rstrip(".").split(".")
        shared = 0
        while shared < min(len(labels), len(theirs)) and labels[shared] == theirs[shared]:
            shared += 1
        rest = theirs[shared:]
        if shared and len(theirs) < len(labels) and labels[len(labels) - len(rest) :] == rest:
            return True
    return False


def _slow(seen: Observed, dns: DnsSection, servers: dict[str, DnsServer]) -> Iterator[Finding]:
    limit = threshold("dns_slow.slow_ms")
    # A resolver that fails takes its time to: that is told once.
    late = [
        query
        for query in dns.slow
        if query.latency_ms is not None and query.latency_ms >= limit and query.rcode not in ("SERVFAIL", "REFUSED")
    ]
    for address, queries in _by_server(late).items():
        server = servers.get(address)
        answered = server.responses if server else len(queries)
        number = max(len(queries), _later_than(limit, server))
        share = percent(number, answered)
        slowest = max(query.latency_ms or 0.0 for query in queries)
        alone = number < threshold("dns_slow.min_queries")
        if share < threshold("dns_slow.min_pct") or (alone and slowest < threshold("dns_slow.alone_ms")):
            continue
        waiting = _waiting_for(seen, queries)
        behind = f" Answers of {few([at(host, port) for host, port in waiting])} wait for it." if waiting else ""
        typical = server.latency_ms.median if server and server.latency_ms else slowest
        yield _finding(
            "dns_slow",
            queries,
            severity="LOW" if alone and slowest < threshold("dns_slow.gives_up_ms") else "MEDIUM",
            title=f"The DNS server {address} is slow: "
            + (
                f"an answer takes {duration(slowest)}"
                if alone
                else f"{rate(share)} of its answers take over {duration(limit)}"
            ),
            detail=f"{number} of {count(answered, 'response')}; median {duration(typical)}, slowest"
            f" {duration(slowest)}: {_names(queries, whole=number == len(queries))}.{behind}",
            weight=number,
            other_targets=waiting,
            slow=number,
            responses=answered,
            slowest_ms=round(slowest, 1),
        )


def _waiting_for(seen: Observed, late: Iterable[DnsQuery]) -> tuple[tuple[str, int | None], ...]:
    """Return HTTP servers that looked up these names during a request and were late only because of that."""
    http = seen.analysis.http
    asked_by: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for query in late:
        asked_by[query.client].append((query.frame, query.latency_ms or 0.0))
    limit = threshold("slow_application.slow_ms")
    slow: Counter[tuple[str, int | None]] = Counter()
    explained: Counter[tuple[str, int | None]] = Counter()
    for exchange in http.slow if http else ():
        waited = exchange.response_ms or 0.0
        if waited < limit or len(exchange.frames) < 2:
            continue
        begin, end, service = exchange.frames[0], exchange.frames[-1], (exchange.server, exchange.port)
        slow[service] += 1
        explained[service] += any(
            begin < frame < end and waited - latency < limit for frame, latency in asked_by[exchange.server]
        )
    spare = threshold("slow_application.min_answers")
    return tuple(service for service, number in slow.items() if 0 < explained[service] > number - spare)


def _later_than(limit_ms: float, server: DnsServer | None) -> int:
    """Return how many answers took longer than the limit; only some of the slowest queries are listed."""
    return sum(times for tenths, times in server.late.items() if tenths * 100 >= limit_ms) if server else 0
