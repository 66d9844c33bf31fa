"""Rule for policers shared by several conversations: others lose segments beside the transfer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from ghost.pcap.array_types import Array
from ghost.pcap.findings.finding import Finding
from ghost.pcap.findings.observations import Observed, Traffic
from ghost.pcap.findings.phrasing import count, percent, rate
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import StreamRows
from ghost.pcap.findings.throughput_limits import share_a_policer


def merge_policed_loss(
    seen: Observed, held: Sequence[tuple[Traffic, Finding]], lossy: Collection[Traffic]
) -> tuple[list[Finding], set[Traffic]]:
    """Return findings about policed transfers, and which of the `lossy` directions lose to the same policers.

    Directions that share an end with the transfer become part of its finding; others keep a finding of their own, which
    comes after it.
    """
    explained: set[Traffic] = set()
    findings = []
    for transfer, finding in sorted(held, key=lambda pair: -pair[0].lost):
        one_rate = share_a_policer(seen, (transfer.source, transfer.destination))
        candidates = [other for other in lossy if other not in explained] if one_rate else []
        beside = [other for other in candidates if _loses_with(seen, other, transfer)]
        sharing = [other for other in beside if _share_an_end(other, transfer)]
        explained.update(sharing)
        findings.append(_with_shared_loss(finding, beside, sharing))
    return findings, explained


def _share_an_end(one: Traffic, other: Traffic) -> bool:
    return one.source == other.source or one.destination == other.destination


def _loses_with(seen: Observed, other: Traffic, transfer: Traffic) -> bool:
    """Return whether the direction loses on the same side of the capture point, far less, and only on streams open
    during the transfer."""
    same_side = (other.lost_upstream > other.lost_downstream) == (transfer.lost_upstream > transfer.lost_downstream)
    if not same_side or 100 * other.lost > threshold("throughput_limited.beside_pct") * transfer.lost:
        return False
    c, mine = seen.columns, _losing(seen, other)[0]
    transfers, lost = _losing(seen, transfer)
    busiest = transfers[np.argmax(lost)]
    during = (c.first_ns[mine] <= c.last_ns[busiest]) & (c.last_ns[mine] >= c.first_ns[busiest])
    return bool(during.all())


def _losing(seen: Observed, traffic: Traffic) -> tuple[StreamRows, Array]:
    """Return the streams of a direction that lost segments, and how many."""
    rows, sides = seen.of_path((traffic.source, traffic.destination))
    lost = seen.columns.lost()[rows, sides]
    return rows[lost > 0], lost[lost > 0]


def _with_shared_loss(finding: Finding, beside: Sequence[Traffic], sharing: Sequence[Traffic]) -> Finding:
    """Return the finding with the severity that the loss of the others would have alone."""
    if not beside:
        return finding
    worst = max(other.loss_pct for other in beside)
    lost, sent = sum(other.lost for other in sharing), sum(other.sent for other in sharing)
    detail, measured = finding.detail, dict(finding.measured)
    if sharing:
        detail += (
            f" {count(len(sharing), 'other pair')} of hosts lose{'s' if len(sharing) == 1 else ''}"
            f" {rate(percent(lost, sent))} of what {'it sends' if len(sharing) == 1 else 'they send'} beside it."
        )
        measured["others"] = len(sharing)
    return replace(
        finding,
        severity="HIGH" if worst >= threshold("loss.high_pct") else finding.severity,
        detail=detail,
        weight=finding.weight + lost,
        measured=measured,
    )
