"""Rule for path changes: from one moment to the end of the capture a round trip takes many times as long.

The median of all handshakes does not show it. A gradual rise is load; single slow handshakes are a host or a lookup;
slowness at the start has passed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from ghost.pcap.array_queries import median
from ghost.pcap.findings.common_causes import group_paths, hosts_of, merged_finding
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import MOST_GROUPS, MOST_PATHS, Observed, Path, groups_of
from ghost.pcap.findings.phrasing import clock, count, duration
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Floats, Mask, StreamRows

_MOST_EXCEPTIONS = 0.1


@dataclass(frozen=True, eq=False)
class _Change:
    """Handshakes of two hosts, before and after the change."""

    before: StreamRows
    after: StreamRows
    """Streams."""
    client: str
    server: str


def path_change_findings(seen: Observed, trips: Floats, clean: Mask, known: Collection[Path]) -> Iterator[Finding]:
    """Yield findings for longer paths.

    `trips`: float[streams], handshake round trip in ms, used where `clean`; `known`: client and server pairs that
    another finding covers.
    """
    c = seen.columns
    changes: list[_Change] = []
    late = clean & (trips >= threshold("delay.longer_ms"))
    pairs = groups_of(np.flatnonzero(late), c.hosts[:, CLIENT], c.hosts[:, SERVER])
    for (client, server), slow in islice(pairs, MOST_PATHS):
        if len(slow) < threshold("delay.min_each") or (c.host(client), c.host(server)) in known:
            continue
        rows = np.flatnonzero(clean & (c.hosts[:, CLIENT] == client) & (c.hosts[:, SERVER] == server))
        rows = rows[np.argsort(c.first_ns[rows], kind="stable")]
        at = changed_at(trips[rows])
        if at is not None:
            changes.append(_Change(rows[:at], rows[at:], c.host(client), c.host(server)))
    make = partial(_longer, seen, trips)
    for places in islice(group_paths(seen, [(each.client, each.server) for each in changes]), MOST_GROUPS):
        yield merged_finding([changes[place] for place in places], make, lambda each: Who(each.client, each.server))


def changed_at(trips: Floats) -> int | None:
    """Return the index of the first slow handshake if enough slow ones follow and enough fast ones come right before
    it, else None."""
    least = int(threshold("delay.min_each"))
    if len(trips) < 2 * least:
        return None
    usual = median(trips[:least])
    slow = (trips >= threshold("delay.longer_ratio") * usual) & (trips - usual >= threshold("delay.longer_ms"))
    for at in np.flatnonzero(slow).tolist():
        if at < least:
            continue
        before, after = slow[:at], slow[at:]
        if len(after) < least:
            return None
        sharp = median(trips[at - least : at]) < 2 * usual and slow[at : at + least].all()
        ends_so = slow[-least:].sum() >= least - 1
        if sharp and ends_so and before.mean() <= _MOST_EXCEPTIONS and after.mean() >= 1 - _MOST_EXCEPTIONS:
            return int(at)
    return None


def _longer(seen: Observed, trips: Floats, changes: Sequence[_Change]) -> Finding:
    """Return the finding; `who` is the pair with most handshakes since the change."""
    c = seen.columns
    changes = sorted(changes, key=lambda each: -len(each.after))
    worst = changes[0]
    after, before = (np.concatenate([getattr(each, part) for each in changes]) for part in ("after", "before"))
    moment = int(c.first_ns[after].min())
    begun = (moment - seen.first_ns) / 1e6
    usual, longer = median(trips[before]), median(trips[after])
    rise = median(c.syn_to_syn_ack_ms[after]) - median(c.syn_to_syn_ack_ms[before])
    near = "the server" if rise >= (longer - usual) / 2 else "the client"
    source, destination = (hosts_of([getattr(each, end) for each in changes]) for end in ("client", "server"))
    return make_finding(
        "delay_begun",
        severity="MEDIUM",
        title=f"A round trip between {source} and {destination} takes {duration(longer)} instead of {duration(usual)},"
        f" from {duration(begun)} into the capture on",
        detail=f"Since {clock(moment)} {count(len(after), 'TCP handshake')} took {duration(longer)} (median), and"
        f" {count(len(before), 'handshake')} before that {duration(usual)}; it stays so to the end. The added delay"
        f" lies between the capture point and {near}.",
        who=Who(worst.client, worst.server),
        evidence=([s.first_frame] for s in seen.worst(after)),
        confidence="medium",
        weight=len(after),
        measured={
            "handshakes": len(after),
            "median_rtt_ms": round(longer, 1),
            "before_ms": round(usual, 1),
            "at_ms": round(begun),
        }
        | ({"paths": len(changes)} if len(changes) > 1 else {}),
    )
