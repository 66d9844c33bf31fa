"""Rules for cleartext HTTP: server errors, refused requests and late answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http import HTTPStatus

import numpy as np

from ghost.pcap import safe_text
from ghost.pcap.array_queries import median
from ghost.pcap.findings.common_causes import other_clients_of
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.long_polls import HELD, every_slow, http_polls, is_long_poll, may_be_long_poll
from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.phrasing import at, count, duration, few, percent, rate
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.model import HttpErrors, HttpExchange, HttpPath, HttpSection

_THROTTLED, _PROXY = 429, 407
_REFUSALS = {
    401: "http_unauthorized", 403: "http_forbidden", _PROXY: "http_proxy_authentication", _THROTTLED: "http_throttled",
} | dict.fromkeys((400, 404, 410, 411, 413, 414, 415, 421, 431), "http_rejected")  # fmt: skip
"""Cases by status. Others of the class answer a condition or a range of the client."""


def http_findings(seen: Observed) -> Iterator[Finding]:
    http = seen.analysis.http
    if http is None:
        return
    yield from _server_errors(seen, http)
    yield from _refusals(http)
    yield from _slow(seen, http)


def _hosts(names: list[str | None]) -> str:
    known = [f"“{safe_text.name(name, 60)}”" for name in dict.fromkeys(names) if name]
    return f" for {few(known)}" if known else ""


def _answers_of(seen: Observed, server: str, port: int) -> int:
    mine = seen.to_service(server, port)
    return int(mine[seen.columns.samples("response_ms")[0]].sum())


def _server_errors(seen: Observed, http: HttpSection) -> Iterator[Finding]:
    groups: dict[tuple[str, int], list[HttpErrors]] = {}
    for error in http.errors:
        if error.status >= 500:
            groups.setdefault((error.server, error.port), []).append(error)
    for (server, port), errors in groups.items():
        failed = sum(error.count for error in errors)
        answers = max(_answers_of(seen, server, port), failed)
        share = percent(failed, answers)
        few_failed = failed < threshold("http_5xx.min_answers") and share < threshold("http_5xx.high_pct")
        by_status = {error.status: 0 for error in errors}
        for error in errors:
            by_status[error.status] += error.count
        statuses = ", ".join(f"{status} ({number})" for status, number in sorted(by_status.items()))
        gateway = {502, 504} & by_status.keys()
        client = next((error.client for error in errors if error.client), server)
        yield make_finding(
            "http_5xx",
            severity="LOW"
            if few_failed or share < threshold("http_5xx.min_pct")
            else "HIGH"
            if share >= threshold("http_5xx.high_pct")
            else "MEDIUM",
            title=f"{at(server, port)} answers {rate(share)} of the requests with a server error",
            detail=f"{failed} of {count(answers, 'answer')}{_hosts([error.host for error in errors])}: status"
            f" {statuses}." + (" A gateway says that the server behind it is unavailable or late." if gateway else ""),
            who=Who(client, server, port),
            evidence=(error.frames for error in errors),
            dated_by=[error.last_frame for error in errors],
            confidence="high",
            weight=failed,
            measured={"failed": failed, "answers": answers},
        )


def _refusals(http: HttpSection) -> Iterator[Finding]:
    """Yield findings for requests that are throttled, or of which a client has nearly all refused."""
    groups: dict[tuple[str, int, int, str | None], list[HttpErrors]] = {}
    for error in http.errors:
        shut_out = percent(error.count, error.answers) >= threshold("http_4xx.refused_pct")
        if (
            error.status in _REFUSALS
            and error.client
            and error.method
            and (shut_out or error.by_gateway or error.status == _THROTTLED)
        ):
            host = error.host if error.status != _PROXY else None
            groups.setdefault((error.server, error.port, error.status, host), []).append(error)
    for (_, _, status, _), errors in groups.items():
        few_refused = sum(error.count for error in errors) < threshold("http_4xx.min_answers")
        served = any(error.served for error in errors)
        if not (few_refused or (served and _REFUSALS[status] == "http_rejected")):
            yield _refused(status, errors, served)


def _refused(status: int, errors: list[HttpErrors], served: bool) -> Finding:
    first = errors[0]
    who = Who(first.client or first.server, first.server, first.port)
    clients = list(dict.fromkeys(error.client for error in errors if error.client))
    refused, answers = (sum(getattr(error, field) for error in errors) for field in ("count", "answers"))
    share = percent(refused, answers)
    waits = max((error.retry_after_s or 0 for error in errors), default=0)
    only_some = status == _THROTTLED and share < threshold("http_4xx.throttled_pct")
    every = share >= threshold("http_4xx.refused_pct") and refused >= threshold("http_4xx.high_answers")
    whom = who.src if len(clients) == 1 else count(len(clients), "client")
    methods = few(sorted({error.method or "" for error in errors}))
    paths = max(error.paths for error in errors)
    return make_finding(
        _REFUSALS[status],
        # Names are a client's word: a scanner asks by address what the server serves by name.
        severity="LOW" if only_some else "HIGH" if every and not any(e.served_there for e in errors) else "MEDIUM",
        title=f"{at(who.dst, who.port)} answers {rate(share)} of the {methods} requests of {whom} with"
        f" {status} {HTTPStatus(status).phrase}",
        detail=f"{refused} of {count(answers, 'answer')}{_hosts([error.host for error in errors])}, of at least"
        f" {count(paths, 'path')}: status {status}."
        + (" A gateway in front of the server refuses them, by a rule of its own." if first.by_gateway else "")
        + (f" The server asks to wait {count(waits, 'second')} (Retry-After)." if waits else "")
        + (
            " Other requests for the host are served."
            if served
            else " No other request for it is served in this capture."
        ),
        who=who,
        evidence=(error.frames for error in errors),
        dated_by=[error.last_frame for error in errors],
        confidence="high",
        weight=refused,
        measured={"refused": refused, "answers": answers}
        | ({"clients": len(clients)} if len(clients) > 1 else {})
        | ({"retry_after_s": waits} if waits else {}),
        other_pairs=other_clients_of(who, clients),
        name=(first.host or who.dst).partition(":")[0],
    )


def _slow(seen: Observed, http: HttpSection) -> Iterator[Finding]:
    """Yield findings for late answers to requests that were acknowledged at once."""
    limit = threshold("slow_application.slow_ms")
    polls = {exchange.frames for exchange in http_polls(every_slow(http))}
    in_time = _in_time(seen)
    groups: dict[tuple[str, int], list[HttpExchange]] = {}
    for exchange in http.slow:
        if exchange.frames not in polls and in_time(exchange):
            groups.setdefault((exchange.server, exchange.port), []).append(exchange)
    said: set[tuple[str, int]] = set()
    for (server, port), exchanges in groups.items():
        answers = max(_answers_of(seen, server, port), len(exchanges))
        share = percent(len(exchanges), answers)
        waits = [exchange.response_ms or 0.0 for exchange in exchanges]
        failed = any((exchange.status or 0) >= 500 for exchange in exchanges)
        if is_long_poll(np.array(waits)) and not failed:
            continue
        held = may_be_long_poll(np.array(waits)) and not failed
        few_slow = len(exchanges) < threshold("slow_application.min_answers")
        if share < threshold("slow_application.min_pct"):
            continue
        said.add((server, port))
        client = exchanges[0].client
        is_short_message = max(waits) < threshold("slow_application.hung_ms")
        yield make_finding(
            "http_slow",
            severity="LOW" if held or (few_slow and (is_short_message or exchanges[0].empty)) else "MEDIUM",
            title=f"{at(server, port)} answers HTTP requests late: {rate(share)} take over {duration(limit)}",
            detail=f"{len(exchanges)} of {count(answers, 'answer')}{_hosts([e.host for e in exchanges])}; median"
            f" {duration(median(waits))}, slowest {duration(max(waits))}. The requests were acknowledged at"
            " once: the path is not the cause." + (HELD if held else ""),
            who=Who(client, server, port),
            evidence=(exchange.frames for exchange in exchanges),
            confidence="low" if held else "medium" if few_slow else "high",
            weight=len(exchanges) + 0.5,
            measured={"slow": len(exchanges), "answers": answers, "slowest_ms": round(max(waits))},
        )
    for path in http.slow_paths:
        exchanges = [each for each in path.exchanges if each.frames not in polls and in_time(each)]
        service = path.exchanges[0].server, path.exchanges[0].port
        if service not in said and len(exchanges) == len(path.exchanges) and _is_always_slow(path):
            yield _slow_path(seen, path)


def _in_time(seen: Observed) -> Callable[[HttpExchange], bool]:
    """Return whether the request of a late answer was acknowledged early."""
    acked_rows, acked = seen.columns.samples("request_acked_ms")
    slowest = np.zeros(len(seen.columns))
    np.maximum.at(slowest, acked_rows, acked)

    def in_time(exchange: HttpExchange) -> bool:
        waited = exchange.response_ms or 0.0
        known = exchange.stream_id < len(slowest)
        early = not known or slowest[exchange.stream_id] <= threshold("slow_application.acked_share") * waited
        return bool(waited >= threshold("slow_application.slow_ms") and early)

    return in_time


def _is_always_slow(path: HttpPath) -> bool:
    waits = np.array([exchange.response_ms or 0.0 for exchange in path.exchanges])
    often = len(waits) > 1 and path.answers + path.waiting >= threshold("slow_application.min_asked")
    return often and path.slow == path.answers and not is_long_poll(waits) and not may_be_long_poll(waits)


def _slow_path(seen: Observed, path: HttpPath) -> Finding:
    """Return the finding for one path that is slow each time; the text of the path is never shown."""
    first = path.exchanges[0]
    waits = [exchange.response_ms or 0.0 for exchange in path.exchanges]
    answers = max(_answers_of(seen, first.server, first.port), path.answers)
    clients = list(dict.fromkeys(exchange.client for exchange in path.exchanges))
    waiting = f" {count(path.waiting, 'more request')} waited at the end." if path.waiting else ""
    return make_finding(
        "http_slow",
        severity="LOW",
        title=f"{at(first.server, first.port)} answers one path late each time: {first.method} takes"
        f" {duration(median(waits))}",
        detail=f"All {path.answers} answers to {first.method} of one path{_hosts([first.host])} took over"
        f" {duration(threshold('slow_application.slow_ms'))} (slowest {duration(max(waits))}), of"
        f" {count(answers, 'answer')} of this server: the requests in frames"
        f" {few([exchange.frames[0] for exchange in path.exchanges])} show which. They were acknowledged at once."
        f"{waiting}",
        who=Who(clients[0], first.server, first.port),
        evidence=(exchange.frames for exchange in path.exchanges),
        confidence="medium",
        weight=path.answers,
        measured={"slow": path.slow, "answers": answers, "slowest_ms": round(max(waits))},
    )
