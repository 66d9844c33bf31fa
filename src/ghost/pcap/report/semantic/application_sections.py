"""The sections of the application protocols: DNS, TLS, HTTP, DHCP and UDP services."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ghost.pcap import safe_text
from ghost.pcap.findings.phrasing import at
from ghost.pcap.model import (
    Certificate,
    DhcpSection,
    DnsQuery,
    DnsSection,
    HttpExchange,
    HttpSection,
    TlsFailure,
    TlsSection,
    UdpService,
)
from ghost.pcap.report.semantic.value_format import counted, moment, present, rounded, statistics

ITEMS = 20
NAMES = 10
SOON_DAYS = 30
"""A certificate that ends sooner is listed; so is one that says something odd."""


def dns_section(dns: DnsSection) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "queries_total": dns.queries_total,
        "responses_total": dns.responses_total,
        "unanswered_queries": dns.unanswered_total,
        "query_type_distribution": counted(dns.query_types, ITEMS),
        "rcode_distribution": counted(dns.rcodes, ITEMS),
        "latency_ms": statistics(dns.latency_ms),
        "dns_servers_queried": [
            present(
                {
                    "address": server.address,
                    "queries": server.queries,
                    "unanswered": server.unanswered,
                    "median_ms": rounded(server.latency_ms.median) if server.latency_ms else None,
                }
            )
            for server in dns.servers[:8]
        ],
        "distinct_names": dns.distinct_names,
        "top_queried_domains": counted(dict(dns.top_domains), NAMES),
        "truncated_responses": dns.truncated_responses,
    }
    optional: dict[str, Any] = {
        "unanswered_names": _names(dns.unanswered),
        "slow_queries": [
            {"name": safe_text.name(query.name), "server": query.server, "ms": rounded(query.latency_ms)}
            for query in dns.slow[:ITEMS]
        ],
        "nxdomain_total": dns.nxdomain_total,
        "nxdomain_domains": _names(dns.nxdomain),
        "servfail_total": dns.servfail_total,
        "servfail_domains": _names(dns.servfail),
        "recovered": dns.recovered_total,
        "repeated_queries": dns.repeated_queries,
        "malformed": dns.malformed,
        "mdns_packets": dns.mdns_packets,
        "llmnr_packets": dns.llmnr_packets,
    }
    return {**entry, **present(optional)}


def _names(queries: Iterable[DnsQuery]) -> list[str]:
    """Return the names to list, those that nothing recovered first."""
    ordered = sorted(queries, key=lambda query: query.recovered)
    return list(dict.fromkeys(safe_text.name(query.name) for query in ordered))[:NAMES]


def tls_section(tls: TlsSection) -> dict[str, Any]:
    odd = [each for each in tls.certificates if each.days_left < SOON_DAYS or each.not_yet_valid or each.self_signed]
    optional: dict[str, Any] = {
        "versions_offered": dict(tls.versions_offered),
        "versions_chosen": dict(tls.versions_chosen),
        "server_names": counted(tls.server_names, NAMES),
        "distinct_server_names": tls.distinct_server_names,
        "handshake_ms": statistics(tls.handshake_ms),
        "alerts": counted(tls.alerts, ITEMS),
        "hello_retries": tls.hello_retries,
        "handshake_failures": tls.failures_total,
        "failures": [_tls_failure(failure) for failure in tls.failures[:ITEMS]],
        "certificates_seen": len(tls.certificates),
        "certificates_to_look_at": [_certificate(each) for each in odd[:NAMES]],
    }
    return {
        "client_hellos": tls.client_hellos,
        "server_hellos": tls.server_hellos,
        "handshakes_completed": tls.handshakes_completed,
        **present(optional),
    }


def _tls_failure(failure: TlsFailure) -> dict[str, Any]:
    optional: dict[str, Any] = {
        "server_name": safe_text.name(failure.server_name) if failure.server_name else None,
        "alert": failure.alert,
        "alert_from": failure.alert_from,
        "offered": failure.offered_version,
        "chosen": failure.chosen_version,
        "ended_by": failure.ended_by,
        "silent": failure.silent,
        "waited_ms": rounded(failure.waited_ms),
        "frames": list(failure.frames),
    }
    return {
        "stream_id": failure.stream_id,
        "src": failure.client,
        "dst": at(failure.server, failure.port),
        "stage": failure.stage,
        **present(optional),
    }


def _certificate(certificate: Certificate) -> dict[str, Any]:
    optional: dict[str, Any] = {
        "names": [safe_text.name(name) for name in certificate.names[:3]],
        "expired": certificate.expired,
        "not_yet_valid": certificate.not_yet_valid,
        "self_signed": certificate.self_signed,
    }
    return {
        "server": at(certificate.server, certificate.port),
        "subject": safe_text.name(certificate.subject),
        "not_after": moment(certificate.not_after_ns),
        "days_left": round(certificate.days_left, 1),
        **present(optional),
        "frame": certificate.frame,
    }


def http_section(http: HttpSection) -> dict[str, Any]:
    optional: dict[str, Any] = {
        "methods": dict(http.methods),
        "status_distribution": counted(http.status_distribution, ITEMS),
        "hosts": counted(http.hosts, NAMES),
        "response_ms": statistics(http.response_ms),
        "slow_responses": [_exchange(exchange) for exchange in http.slow[:NAMES]],
        "errors": [
            present(
                {
                    "server": at(error.server, error.port),
                    "host": safe_text.name(error.host) if error.host else None,
                    "src": error.client,
                    "method": error.method,
                    "status": error.status,
                    "count": error.count,
                    "frames": list(error.frames[:3]),
                }
            )
            for error in http.errors[:NAMES]
        ],
        "unanswered_total": http.unanswered_total,
        "unanswered": [_exchange(exchange) for exchange in http.unanswered[:NAMES]],
        "incomplete_total": http.incomplete_total,
        "incomplete": [_exchange(exchange) for exchange in http.incomplete[:NAMES]],
        "unpaired_responses": http.unpaired_responses,
        "upgraded": http.upgraded,
    }
    return {"requests": http.requests, "responses": http.responses, **present(optional)}


def _exchange(exchange: HttpExchange) -> dict[str, Any]:
    optional: dict[str, Any] = {
        "host": safe_text.name(exchange.host) if exchange.host else None,
        "method": exchange.method,
        "status": exchange.status,
        "ms": rounded(exchange.response_ms),
        "promised_bytes": exchange.promised_bytes,
        "came_bytes": exchange.came_bytes,
        "ended_by": exchange.ended_by,
        "reset": exchange.reset,
        "frames": list(exchange.frames),
    }
    return {
        "stream_id": exchange.stream_id,
        "src": exchange.client,
        "dst": at(exchange.server, exchange.port),
        **present(optional, keep=("came_bytes",) if exchange.promised_bytes else ()),
    }


def dhcp_section(dhcp: DhcpSection) -> dict[str, Any]:
    optional: dict[str, Any] = {
        "unanswered_clients": dhcp.unanswered_total,
        "unanswered": [
            {"client": one.client, "discoveries": one.discoveries, "frames": list(one.frames[:3])}
            for one in dhcp.unanswered[:NAMES]
        ],
        "naks": dhcp.naks.count,
    }
    return {"messages": counted(dhcp.messages, ITEMS), **present(optional)}


def service_section(service: UdpService) -> dict[str, Any]:
    optional: dict[str, Any] = {
        "unanswered_conversations": service.unanswered,
        "silent_servers": [
            {"server": at(one.address, one.port), "requests": one.requests, "frames": list(one.frames[:3])}
            for one in service.silent_servers[:NAMES]
        ],
    }
    counts = {"conversations": service.conversations, "requests": service.requests, "responses": service.responses}
    return {**counts, **present(optional)}
