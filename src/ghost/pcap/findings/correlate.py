"""One cause is one finding: what another finding explains better is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ghost.pcap.findings.finding import Finding

_Explains = Callable[[Finding, Finding], bool]


def one_cause_each(findings: Iterable[Finding]) -> list[Finding]:
    found = list(findings)
    return [
        finding
        for finding in found
        if not any(
            finding.kind in symptoms and same(cause, finding)
            for kind, symptoms, same in _EXPLANATIONS
            for cause in found
            if cause.kind == kind and cause is not finding
        )
    ]


def _same_target(cause: Finding, symptom: Finding) -> bool:
    """Same destination, and the same port where the cause names one."""
    return cause.who.dst == symptom.who.dst and (cause.who.port is None or cause.who.port == symptom.who.port)


def _same_pair(cause: Finding, symptom: Finding) -> bool:
    return {cause.who.src, cause.who.dst} == {symptom.who.src, symptom.who.dst}


_EXPLANATIONS: tuple[tuple[str, frozenset[str], _Explains], ...] = (
    # who says so himself is believed over the silence
    ("admin_prohibited", frozenset({"syn_unanswered", "dns_timeout", "refused", "loss", "rto_loss"}), _same_target),
    ("port_unreachable", frozenset({"syn_unanswered", "dns_timeout"}), _same_target),
    ("host_down", frozenset({"syn_unanswered", "dns_timeout", "loss", "rto_loss"}), _same_target),
    ("routing_loop", frozenset({"syn_unanswered", "dns_timeout", "loss", "rto_loss"}), _same_target),
    # one pair of hosts of which one direction passes here: nothing else about it can be judged
    ("asymmetric", frozenset({"syn_unanswered", "idle_timeout", "mtu_black_hole", "mid_session_reset"}), _same_pair),
    # the repeats are those of the large segments, of the dead connection
    ("mtu_black_hole", frozenset({"loss", "rto_loss", "idle_timeout"}), _same_pair),
    ("idle_timeout", frozenset({"rto_loss"}), _same_pair),
    ("third_party_reset", frozenset({"refused", "mid_session_reset"}), _same_pair),
)
