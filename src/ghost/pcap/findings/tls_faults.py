"""Rules for TLS: failed handshakes, and certificates that are not valid for long or not for what was asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import numpy as np

from ghost.pcap import safe_text
from ghost.pcap.findings.common_causes import other_clients_of
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import MOST_GROUPS, Observed
from ghost.pcap.findings.phrasing import at, count, duration, few
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.silent_peers import unacknowledged_sides
from ghost.pcap.model import Certificate, TlsFailure, TlsSection

ABOUT_A_CERTIFICATE = {
    "bad_certificate", "unsupported_certificate", "certificate_revoked", "certificate_expired", "certificate_unknown",
    "unknown_ca", "bad_certificate_status_response", "certificate_required", "access_denied", "decrypt_error",
}  # fmt: skip
"""Alerts (RFC 8446, 6.2) with which one side refuses what the other proved itself with."""
ABOUT_THE_VERSION = {"protocol_version", "inappropriate_fallback", "insufficient_security"}


def tls_findings(seen: Observed) -> Iterator[Finding]:
    tls = seen.analysis.tls
    if tls is None:
        return
    groups: dict[tuple[str, int, str], list[TlsFailure]] = {}
    unacknowledged = set(np.flatnonzero(unacknowledged_sides(seen).any(axis=1)).tolist())
    for failure in tls.failures:
        # Where nothing gets through that one end repeats, no handshake does; that is a finding of its own.
        if _intended_handshakes(failure) and failure.stream_id not in unacknowledged:
            blame = "network" if _not_acknowledged(seen, failure) else _blame(failure)
            groups.setdefault((failure.server, failure.port, blame), []).append(failure)
    largest = sorted(groups.items(), key=lambda group: -len(group[1]))[:MOST_GROUPS]
    for (server, port, blame), failures in largest:
        yield _failed(seen, server, port, blame, failures)
    yield from _certificates(tls, {(server, port) for server, port, _ in groups})


def _intended_handshakes(failure: TlsFailure) -> bool:
    """Return failures without those cut off by the end of the capture or by an impatient client."""
    waited = failure.waited_ms or 0.0
    if failure.stage in ("hung", "no_server_hello"):
        return waited >= threshold("tls_failure.hung_ms")
    if failure.stage in ("closed_in_handshake", "reset_in_handshake") and failure.ended_by == "client":
        # A client that leaves before the server has said anything changed its mind, unless it had waited.
        return failure.chosen_version is not None or waited >= threshold("tls_failure.client_patience_ms")
    return True


def _not_acknowledged(seen: Observed, failure: TlsFailure) -> bool:
    """Return whether one side's data was repeated and never acknowledged."""
    c = seen.columns
    if failure.stage == "alert" or failure.ended_by == "server" or failure.stream_id >= len(c):
        return False
    row = failure.stream_id
    repeated = (c.unacked_bytes[row] > 0) & (c.sides("rto_retransmissions")[row] > 0)
    return bool(repeated.any())


def _blame(failure: TlsFailure) -> str:
    """Return the blame: the side whose certificate or version is refused, or that is silent."""
    if failure.alert is not None and failure.alert in ABOUT_A_CERTIFICATE:
        return "client" if failure.alert_from == "server" else "server_application"
    if failure.alert == "handshake_failure" and failure.alert_from == "server" and failure.chosen_version:
        return "client"  # version and cipher were chosen: what failed is what the client answered, its certificate
    if failure.stage in ("hung", "no_server_hello"):
        return "client" if failure.silent == "client" and failure.chosen_version else "server_application"
    if failure.alert == "encrypted" and failure.alert_from == "server":
        return "client"  # it had said hello and sent its own certificate: what is left to refuse is the client's
    return "server_application"


def _failed(seen: Observed, server: str, port: int, blame: str, failures: list[TlsFailure]) -> Finding:
    tls = seen.analysis.tls
    assert tls is not None
    examples = failures[0]
    names = [
        f"“{safe_text.name(name, 60)}”" for name in dict.fromkeys(f.server_name for f in failures if f.server_name)
    ]
    case, what = _words(examples, blame)
    certificate = examples.certificate if case == "tls_server_certificate" else None
    more = f" {_about(certificate)}" if certificate else ""
    reasons = _reasons(certificate, [examples.server_name or ""]) if certificate else []
    if certificate and certificate.self_signed:
        reasons.append("is self-signed")
    elif certificate and not certificate.issuer_sent:
        reasons.append("comes without its intermediate certificate, which the client may need")
    if reasons:
        case, what = "tls_certificate_fault", f"{what}: the certificate {reasons[0]}"
        more += f" It also {' and '.join(reasons[1:])}." if len(reasons) > 1 else ""
    # One client that leaves without a word may have changed its mind.
    doubtful = case == "tls_server_certificate" and examples.alert is None and len(failures) == 1
    versions = f" The client offers {examples.offered_version}"
    versions += f", the server chose {examples.chosen_version}." if examples.chosen_version else "."
    good = _completed_elsewhere(seen, server, port, len(failures))
    clients = dict.fromkeys(f.client for f in failures)
    whom = examples.client if len(clients) == 1 else f"{len(clients):,} clients"
    who = Who(examples.client, server, port)
    return make_finding(
        case,
        severity="MEDIUM" if good or doubtful else "HIGH",
        blame=blame,
        title=f"TLS handshakes of {whom} with {at(server, port)} fail: {what}",
        detail=f"{count(len(failures), 'handshake')}{' for ' + few(names) if names else ''}: {what}.{more}"
        + (versions if examples.offered_version else ""),
        who=who,
        evidence=(f.frames for f in failures),
        confidence="high" if reasons or (examples.stage == "alert" and examples.alert != "encrypted") else "medium",
        weight=len(failures),
        measured={"failed": len(failures), "completed": tls.handshakes_completed}
        | ({"clients": len(clients)} if len(clients) > 1 else {}),
        other_pairs=other_clients_of(who, clients),
        name=examples.server_name or server,
    )


def _words(failure: TlsFailure, blame: str) -> tuple[str, str]:
    """Return the case and a short description of what happened."""
    if failure.stage == "alert" or failure.alert:
        said = f"the {failure.alert_from or 'other side'} sent the alert {failure.alert}"
        if failure.alert in ABOUT_A_CERTIFICATE:
            return ("tls_client_certificate" if blame == "client" else "tls_server_certificate"), said
        if failure.alert in ABOUT_THE_VERSION:
            return "tls_version", said
        if blame == "client":
            said += " to the client's answer"
        return ("tls_client_certificate" if blame == "client" else "tls_failure"), said
    waited = f" for {duration(failure.waited_ms)}" if failure.waited_ms else ""
    if blame == "network":
        return "tls_unacknowledged", "the data of one side is repeated and never acknowledged"
    if failure.stage == "not_tls":
        return "tls_plain", "the server answers the client hello with something that is not TLS"
    if failure.stage == "no_server_hello":
        return "tls_hung", f"no answer to the client hello{waited}"
    if failure.stage == "hung":
        return "tls_hung", f"the {failure.silent or 'server'} stops in mid-handshake{waited}"
    how = "resets" if failure.stage == "reset_in_handshake" else "closes"
    ended = f"the {failure.ended_by or 'other side'} {how} the connection"
    if failure.ended_by == "client" and failure.chosen_version is None:
        return "tls_hung", f"no answer to the client hello{waited}"
    if failure.ended_by == "client":
        return (
            "tls_server_certificate",
            f"{ended} after the server's {'certificate' if failure.certificate else 'hello'}",
        )
    return "tls_failure", f"{ended} " + ("after its hello" if failure.chosen_version else "instead of a hello")


def _completed_elsewhere(seen: Observed, server: str, port: int, failed: int) -> bool:
    """Return whether the service has other streams with more than a handshake."""
    mine = seen.to_service(server, port)
    answers = seen.columns.samples("response_ms")[0]
    talked = np.bincount(answers, minlength=len(seen.columns)) >= 3
    return int((mine & talked).sum()) > failed


def _certificates(tls: TlsSection, failing: set[tuple[str, int]]) -> Iterator[Finding]:
    """Yield LOW findings for certificates that clients accept although they are not, or not for long, valid."""
    for certificate in tls.certificates:
        reasons = _reasons(certificate, certificate.asked)
        if certificate.days_left < threshold("tls_failure.days_left") and not certificate.expired:
            reasons.append("expires soon")
        if reasons and (certificate.server, certificate.port) not in failing:
            yield make_finding(
                "tls_certificate_fault",
                severity="LOW",
                blame="server_application",
                title=f"The certificate of {at(certificate.server, certificate.port)} {reasons[0]}",
                detail=f"{_about(certificate)} Clients accept it.",
                who=Who(certificate.server, certificate.server, certificate.port),
                evidence=[(certificate.frame,)],
                confidence="high",
                weight=certificate.count,
                measured={"days_left": round(certificate.days_left)},
                name=certificate.names[0] if certificate.names else certificate.server,
            )


def _reasons(certificate: Certificate, asked: Iterable[str]) -> list[str]:
    """Return what is wrong with a certificate for clients that ask for these names, whomever they trust."""
    other = next((name for name in asked if name and certificate.names and not certificate.is_for(name)), None)
    names = few([f"“{safe_text.name(name, 60)}”" for name in certificate.names])
    reasons = {
        f"is for {names}, the client asked for “{safe_text.name(other or '', 60)}”": other is not None,
        f"expired on {_date(certificate.not_after_ns)} (UTC)": certificate.expired,
        f"is not valid before {_date(certificate.not_before_ns)} (UTC)": certificate.not_yet_valid,
    }
    return [reason for reason, holds in reasons.items() if holds]


def _date(ns: int) -> str:
    return f"{datetime.fromtimestamp(ns // 10**9, UTC):%Y-%m-%d}"


def _about(certificate: Certificate) -> str:
    subject = safe_text.name(certificate.subject, 80)
    days = certificate.days_left
    state = f"expired {-days:.0f} days before" if certificate.expired else f"has {days:.0f} days left"
    if certificate.not_yet_valid:
        state = "is not valid yet"
    own = ", self-signed" if certificate.self_signed else f", issued by “{safe_text.name(certificate.issuer, 80)}”"
    return f"The certificate of “{subject}”{own}, {state}."
