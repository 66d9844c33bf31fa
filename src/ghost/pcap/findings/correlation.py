"""Removes findings that another finding explains: one cause, one finding."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.phrasing import rate
from ghost.pcap.findings.rule_settings import threshold

_KeysOfCause = Callable[[Finding], Sequence[Hashable]]
_KeysOfWho = Callable[[Who], Sequence[Hashable]]
_MINOR = ("LOW", "INFO")


ABSENCES = {
    "dns_timeout", "mtu_black_hole", "slow_application", "early_close", "reordering", "asymmetric", "loss", "rto_loss",
    "tls_failure", "bufferbloat",
}  # fmt: skip
"""Concluded from what a capture does not hold."""


def with_lower_confidence(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with lower confidence if the capture lacks packets: an absent packet may only not have been
    captured."""
    missing = max((f.measured.get("missing_pct", 0.0) for f in findings if f.kind == "capture_incomplete"), default=0.0)
    if missing < threshold("capture_incomplete.doubtful_pct"):
        return list(findings)
    return [
        replace(
            finding,
            severity="LOW",
            confidence="low",
            weight=0.0,
            detail=f"{finding.detail} Uncertain: about {rate(missing)} of the packets are not in the capture.",
        )
        if finding.kind in ABSENCES and finding.severity not in _MINOR
        else finding
        for finding in findings
    ]


def without_explained(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that no other one explains.

    A minor finding explains no major one, unless it is about the capture itself. A finding about many hosts keeps those
    that are not explained.
    """
    unexplained = [dict.fromkeys((finding.who, *finding.other_pairs)) for finding in findings]
    for kind, symptoms, keys_of_cause, keys_of_symptom in _EXPLANATIONS:
        causes = [finding for finding in findings if finding.kind == kind]
        keys = {key for cause in causes for key in keys_of_cause(cause)}
        serious = {
            key
            for cause in causes
            if cause.severity not in _MINOR or cause.blame == "none"
            for key in keys_of_cause(cause)
        }
        for finding, left in zip(findings, unexplained, strict=True):
            explaining = keys if finding.severity in _MINOR else serious
            if finding.kind in symptoms and explaining:
                for who in [who for who in left if not explaining.isdisjoint(keys_of_symptom(who))]:
                    del left[who]
    return [
        finding if finding.restrict is None or len(left) == 1 + len(finding.other_pairs) else finding.restrict(left)
        for finding, left in zip(findings, unexplained, strict=True)
        if left
    ]


def _target(cause: Finding) -> Sequence[Hashable]:
    return [(cause.who.dst, cause.who.port), *cause.other_targets]


def _targets(symptom: Who) -> Sequence[Hashable]:
    """Return the explained destinations; without a port the finding explains every port of its host."""
    return [(symptom.dst, symptom.port), (symptom.dst, None)]


def _pair(who: Who) -> Sequence[Hashable]:
    return [frozenset((who.src, who.dst))]


def _service(who: Who) -> Sequence[Hashable]:
    """Return both hosts in any order, and the server's port."""
    return [(frozenset((who.src, who.dst)), who.port)]


def _every(keys: _KeysOfWho) -> _KeysOfCause:
    """Return a key function over all host pairs of a finding."""
    return lambda cause: [key for who in (cause.who, *cause.other_pairs) for key in keys(who)]


def _large_segments(cause: Finding) -> Sequence[Hashable]:
    """Return the paths of lost large TCP segments; TCP sends no fragments."""
    return () if cause.protocol == "IP" else _every(_pair)(cause)


def _large_datagrams(cause: Finding) -> Sequence[Hashable]:
    """Return the paths of datagrams of which only the first fragment arrives."""
    return _every(_pair)(cause) if cause.protocol == "IP" else ()


def _queue(cause: Finding) -> Sequence[Hashable]:
    """Return the service with a full accept queue; unanswered SYNs do not explain a waiting request."""
    return _every(_service)(cause) if cause.blame == "server_application" else ()


def _silent_host(cause: Finding) -> Sequence[Hashable]:
    return [cause.who.dst]


def _server_host(symptom: Who) -> Sequence[Hashable]:
    return [symptom.dst]


def _gone_host(cause: Finding) -> Sequence[Hashable]:
    """Return the server that fell silent on all connections; it explains unanswered SYNs."""
    return [cause.who.dst] if cause.blame == "server_host" else ()


def _other_targets(cause: Finding) -> Sequence[Hashable]:
    """Return services that are late because they wait for this one, or that fail because of its answers."""
    return cause.other_targets


def _first_host(cause: Finding) -> Sequence[Hashable]:
    return [cause.who.src, *(host for host, _ in cause.other_targets)]


def _hosts(symptom: Who) -> Sequence[Hashable]:
    return [symptom.src, symptom.dst]


_LOSS = frozenset({"loss", "rto_loss"})
_RESETS = frozenset({"refused", "third_party_reset", "mid_session_reset", "early_close"})
_SILENCE = frozenset({"syn_unanswered", "dns_timeout", "no_answer"})
_WAITING = frozenset({"slow_application", "http_slow"})

_EXPLANATIONS: tuple[tuple[str, frozenset[str], _KeysOfCause, _KeysOfWho], ...] = (
    # who says so himself is believed over the silence
    ("admin_prohibited", _SILENCE | _LOSS | {"refused"}, _target, _targets),
    ("port_unreachable", _SILENCE, _target, _targets),
    ("host_down", _SILENCE | _LOSS, _target, _targets),
    ("routing_loop", _SILENCE | _LOSS | {"host_down"}, _target, _targets),
    # who goes to a wrong address meets there whatever is there
    (
        "dns_contradiction",
        _SILENCE | _WAITING | {"refused", "third_party_reset", "admin_prohibited", "tls_failure", "mid_session_reset"},
        _other_targets,
        _targets,
    ),
    # one pair of hosts of which one direction passes here: nothing else about it can be judged
    (
        "asymmetric",
        _LOSS | _WAITING | {"idle_timeout", "mtu_black_hole", "mid_session_reset", "early_close", "tls_failure"},
        _every(_pair),
        _pair,
    ),
    # the repeats are those of the large segments, of the dead connection; and nobody can answer what never came
    ("mtu_black_hole", _LOSS | _WAITING | {"idle_timeout", "tls_failure", "mid_session_reset"}, _large_segments, _pair),
    ("mtu_black_hole", frozenset({"dns_timeout", "no_answer"}), _large_datagrams, _pair),
    ("idle_timeout", _LOSS | _WAITING | {"mid_session_reset"}, _every(_pair), _pair),
    (
        "third_party_reset",
        frozenset({"refused", "mid_session_reset", "tls_failure", "early_close"}),
        _every(_service),
        _service,
    ),
    ("snat_exhaustion", frozenset({"syn_unanswered"}), _every(_service), _service),
    ("backend_dead", frozenset({"syn_unanswered"}), _target, _targets),
    ("syn_unanswered", _WAITING | _LOSS | {"mid_session_reset"}, _queue, _service),
    ("syn_unanswered", frozenset({"no_answer"}), _silent_host, _server_host),
    ("rto_loss", frozenset({"syn_unanswered", "no_answer"}), _gone_host, _server_host),
    # a full queue delays all that passes it, and drops what does not fit any more
    ("bufferbloat", _LOSS | {"delay", "reordering", "throughput_limited"}, _every(_pair), _pair),
    ("throughput_limited", _LOSS, _every(_pair), _pair),
    # the protocol says more exactly what the connection shows
    ("tls_failure", _WAITING | {"mid_session_reset", "early_close"}, _every(_service), _service),
    ("early_close", _WAITING | {"mid_session_reset"}, _every(_service), _service),
    ("mid_session_reset", _WAITING, _every(_service), _service),
    ("http_slow", frozenset({"slow_application"}), _every(_service), _service),
    ("http_5xx", _WAITING, _every(_service), _service),
    ("zero_window", _WAITING | {"throughput_limited", "mid_session_reset"}, _every(_pair), _pair),
    ("dns_slow", _WAITING, _other_targets, _targets),
    ("arp_conflict", _LOSS | _RESETS | {"syn_unanswered"}, _first_host, _hosts),
)
