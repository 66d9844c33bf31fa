"""Rules for path MTU black holes: packets too big for the path, and discovery that does not work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ghost.pcap.findings.common_causes import group_paths, hosts_of, merged_finding
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import Observed, Path
from ghost.pcap.findings.phrasing import FRAMES, count, few, first_frames
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import Mask
from ghost.pcap.model import Direction, IcmpError, Stream

IP_AND_TCP_HEADERS = 40
_Stuck = dict[Path, tuple[Direction, Stream]]


def path_mtu_findings(seen: Observed) -> Iterator[Finding]:
    """Yield findings for path MTU black holes.

    Discovery that works is healthy: the sender is told and continues with smaller segments.
    """
    stuck = _stuck_on_size(seen)
    for path, messages in seen.too_big.items():
        goes_on = seen.traffic(*path) is not None and all(error.protocol == "tcp" for error in messages)
        repeated = sum(error.count for error in messages) >= threshold("mtu.min_messages")
        if path not in stuck and repeated and not goes_on:
            yield _black_hole(path, messages, None)
    paths = list(stuck)
    for places in group_paths(seen, paths):
        yield merged_finding(
            [paths[place] for place in places], partial(_black_holes, seen, stuck), partial(_who, stuck)
        )


def _who(stuck: _Stuck, path: Path) -> Who:
    return Who(*path, stuck[path][1].server.endpoint.port)


def _black_holes(seen: Observed, stuck: _Stuck, paths: Sequence[Path]) -> Finding:
    """Return one finding for paths that share an end, with the text of the path that repeats most."""
    worst = max(paths, key=lambda path: stuck[path][0].rto_retransmissions.count)
    finding = _black_hole(worst, seen.too_big.get(worst, []), stuck[worst])
    if len(paths) == 1:
        return finding
    source, destination = (hosts_of([path[end] for path in paths]) for end in (0, 1))
    examples = [worst, *(path for path in paths if path != worst)][:FRAMES]
    senders = [stuck[path][0] for path in examples]
    return replace(
        finding,
        title=f"Large packets from {source} to {destination} do not get through",
        detail=f"{finding.detail} This is from {worst[0]} to {worst[1]}; {len(paths) - 1} more paths are affected.",
        evidence=first_frames((side.rto_retransmissions.frames or side.lost_segments.frames)[:1] for side in senders),
        weight=max(finding.weight, len(paths)),
        measured={**finding.measured, "paths": len(paths)},
    )


def _stuck_on_size(seen: Observed) -> _Stuck:
    """Return sides whose large segments never arrive while smaller ones do, by sender and receiver."""
    c = seen.columns
    talked = (c.sides("packets") > 0).all(axis=1) & np.isin(c.handshake, ("completed", "not_seen"))
    found = np.argwhere((_unacknowledged_large_segments(seen) | _holes_that_stay(seen)) & talked[:, None])
    stuck: _Stuck = {}
    for row, side in found.tolist():
        path = (c.host(c.hosts[row, side]), c.host(c.hosts[row, 1 - side]))
        if path not in stuck:
            stream = c.make([row])[0]
            stuck[path] = ((stream.client, stream.server)[side], stream)
    return stuck


def _unacknowledged_large_segments(seen: Observed) -> Mask:
    """Return sides, captured near the sender, with timeouts for segments larger than all acknowledged ones."""
    c = seen.columns
    smallest = c.sides("smallest_lost_segment")
    passed = np.maximum(c.sides("largest_acked_segment"), threshold("mtu.min_segment_bytes"))
    result: Mask = (
        (c.unacked_bytes > 0) & (c.sides("rto_retransmissions") >= threshold("mtu.min_repeats")) & (smallest > passed)
    )
    return result


def _holes_that_stay(seen: Observed) -> Mask:
    """Return sides, captured near the receiver, with a gap that stays open for seconds while smaller segments after it
    arrive. Loss is repaired within a round trip or a timer."""
    c = seen.columns
    # Of a gap that segments filled which had been overtaken, nothing is left.
    gap = c.sides("lost_segments") > c.sides("reordered")
    gap &= (c.sides("lost_upstream") == 0) & (c.sides("capture_gaps") == 0)
    gap &= c.sides("acked_unseen")[:, ::-1] == 0
    largest, mss = c.sides("largest_segment"), c.sides("mss").min(axis=1, keepdims=True)
    small = (mss > 0) & (largest + 12 < mss)
    # From the gap to the end of the connection, or of the capture, nothing that the peer could acknowledge came.
    waiting = (seen.last_ns - c.last_ns)[:, None] / 1e6
    waiting = np.maximum(waiting, c.sides("longest_silence_ms"))
    result: Mask = gap & small & (waiting >= threshold("mtu.patience_ms"))
    return result


def _black_hole(path: Path, messages: list[IcmpError], side_and_stream: tuple[Direction, Stream] | None) -> Finding:
    source, destination = path
    port = side_and_stream[1].server.endpoint.port if side_and_stream else None
    parts: list[str] = []
    frames: list[tuple[int, ...]] = []
    mtu = 0
    if messages:
        mtu = min((error.next_hop_mtu or 0 for error in messages), default=0)
        senders = sorted({error.src for error in messages})
        parts.append(
            f"{few(senders)} reported {count(sum(e.count for e in messages), 'time')} that packets do not fit"
            + (f" into an MTU of {mtu}" if mtu else "")
        )
        frames.extend(error.sample_frames for error in messages)
    if side_and_stream:
        side = side_and_stream[0]
        if side.smallest_lost_segment:
            parts.append(
                f"segments of {side.smallest_lost_segment} bytes and more were repeated"
                f" {count(side.rto_retransmissions.count, 'time')} and never acknowledged; the largest that got"
                f" through had {side.largest_acked_segment}"
            )
            frames.append(side.rto_retransmissions.frames)
        else:
            parts.append(
                f"a gap in what {source} sends is never filled, and what comes behind it has at most"
                f" {side.largest_segment} bytes: full-size segments do not arrive here"
            )
            frames.append(side.lost_segments.frames)
    text = "; ".join(parts)
    return make_finding(
        "mtu_black_hole",
        severity="HIGH" if side_and_stream else "MEDIUM",
        protocol="ICMP" if messages and not side_and_stream else "TCP",
        title=f"Large packets from {source} to {destination} do not get through",
        detail=text[:1].upper() + text[1:] + ".",
        who=Who(source, destination, port),
        evidence=frames,
        confidence="high" if messages and side_and_stream else "medium",
        weight=sum(error.count for error in messages) + 1,
        measured={"next_hop_mtu": mtu, "mss_that_fits": mtu - IP_AND_TCP_HEADERS} if mtu else {},
    )
