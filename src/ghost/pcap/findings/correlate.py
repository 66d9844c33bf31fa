"""One cause is one finding: what another finding explains better is left out."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from ghost.pcap.findings.finding import Finding

_Keys = Callable[[Finding], Sequence[Hashable]]


def one_cause_each(findings: Sequence[Finding]) -> list[Finding]:
    explained: set[int] = set()
    for kind, symptoms, key_of_cause, keys_of_symptom in _EXPLANATIONS:
        causes = {key for finding in findings if finding.kind == kind for key in key_of_cause(finding)}
        if causes:
            explained.update(
                number
                for number, finding in enumerate(findings)
                if finding.kind in symptoms and not causes.isdisjoint(keys_of_symptom(finding))
            )
    return [finding for number, finding in enumerate(findings) if number not in explained]


def _target(cause: Finding) -> Sequence[Hashable]:
    return [(cause.who.dst, cause.who.port)]


def _targets(symptom: Finding) -> Sequence[Hashable]:
    """A cause that names no port explains every port of its destination."""
    return [(symptom.who.dst, symptom.who.port), (symptom.who.dst, None)]


def _pair(finding: Finding) -> Sequence[Hashable]:
    return [frozenset((finding.who.src, finding.who.dst))]


_EXPLANATIONS: tuple[tuple[str, frozenset[str], _Keys, _Keys], ...] = (
    # who says so himself is believed over the silence
    (
        "admin_prohibited",
        frozenset({"syn_unanswered", "dns_timeout", "refused", "loss", "rto_loss"}),
        _target,
        _targets,
    ),
    ("port_unreachable", frozenset({"syn_unanswered", "dns_timeout"}), _target, _targets),
    ("host_down", frozenset({"syn_unanswered", "dns_timeout", "loss", "rto_loss"}), _target, _targets),
    ("routing_loop", frozenset({"syn_unanswered", "dns_timeout", "loss", "rto_loss"}), _target, _targets),
    # one pair of hosts of which one direction passes here: nothing else about it can be judged
    ("asymmetric", frozenset({"idle_timeout", "mtu_black_hole", "mid_session_reset"}), _pair, _pair),
    # the repeats are those of the large segments, of the dead connection
    ("mtu_black_hole", frozenset({"loss", "rto_loss", "idle_timeout"}), _pair, _pair),
    ("idle_timeout", frozenset({"rto_loss"}), _pair, _pair),
    ("third_party_reset", frozenset({"refused", "mid_session_reset"}), _pair, _pair),
)
