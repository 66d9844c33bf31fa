"""Rules for packets in transit: lost, reordered, or captured in one direction only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial

import numpy as np

from ghost.pcap.array_queries import among, distinct
from ghost.pcap.findings.common_causes import group_paths, hosts_of, merged_finding
from ghost.pcap.findings.connection_aborts import unanswered_retransmissions
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import Observed, Path, Traffic, sent_by
from ghost.pcap.findings.one_way_captures import was_captured_one_way
from ghost.pcap.findings.outages import outage_findings
from ghost.pcap.findings.packet_loss import is_burst, loss_findings, lost_between
from ghost.pcap.findings.phrasing import FRAMES, count, few, percent, rate
from ghost.pcap.findings.rate_policing import merge_policed_loss
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.silent_peers import unacknowledged_sides
from ghost.pcap.findings.stream_columns import CLIENT, Mask, StreamRows
from ghost.pcap.findings.throughput_limits import policed_transfers
from ghost.pcap.model import Direction, IcmpError


def transit_findings(seen: Observed) -> Iterator[Finding]:
    in_vain = unacknowledged_sides(seen)
    lossy: list[Traffic] = []
    late: list[Traffic] = []
    policed: list[tuple[Traffic, Finding]] = []
    for traffic in seen.impaired_directions():
        path = (traffic.source, traffic.destination)
        if _is_lossy(seen, path, traffic, in_vain):
            held = policed_transfers(seen, path, traffic)
            if held is None:
                lossy.append(traffic)
            else:
                policed.append((traffic, held))
        if _is_reordered(seen, traffic):
            late.append(traffic)
    limited, explained = merge_policed_loss(seen, policed, lossy)
    yield from limited
    yield from loss_findings(seen, [traffic for traffic in lossy if traffic not in explained])
    yield from _reordered_together(seen, late)
    losing = [*lossy, *(traffic for traffic, _ in policed)]
    yield from _silent_ends(seen, in_vain, {(traffic.source, traffic.destination) for traffic in losing})
    yield from _asymmetric(seen)
    yield from _looped(seen)


# --------------------------------------------------------------------------------------------------------- loss


def _is_lossy(seen: Observed, path: Path, traffic: Traffic, in_vain: Mask) -> bool:
    """Return whether the direction loses segments.

    Drops for size are path MTU discovery, capture gaps are not losses, reordered segments are not missing, and
    unacknowledged data is another finding.
    """
    if traffic.lost < threshold("loss.min_segments"):
        return False
    lost = traffic.lost - _dropped_for_size(seen, path) - _repeated_opens(seen, path) - _to_a_restarted_host(seen, path)
    lost -= _after_third_party_reset(seen, path, in_vain)
    rows, sides = seen.of_path(path)
    lost -= _lost_on(seen, path, rows[in_vain[rows, sides]])
    if (
        lost < threshold("loss.min_segments")
        or traffic.sent < threshold("loss.min_data_segments")
        or (
            percent(lost, traffic.sent) < threshold("loss.min_pct")
            and not is_burst(lost, *lost_between(seen, [traffic]))
        )
    ):
        return False
    return traffic.capture_gaps <= lost and not (_overtaken(traffic) and 3 * lost < traffic.needless)


def _silent_ends(seen: Observed, in_vain: Mask, lossy: Collection[Path]) -> Iterator[Finding]:
    """Yield findings for unacknowledged streams on paths that lose no other segments."""
    rows, sides = np.nonzero(in_vain)
    ends, number = seen.columns.hosts, max(len(seen.columns.addresses), 1)
    known = [seen.number_of[source] * number + seen.number_of[destination] for source, destination in lossy]
    alone = ~among(ends[rows, sides] * number + ends[rows, 1 - sides], known)
    yield from outage_findings(seen, rows[alone], sides[alone])


def _dropped_for_size(seen: Observed, path: Path) -> int:
    """Return segments that a router dropped for their size: it said so, or all later segments were smaller than the
    MSS."""
    messages = seen.too_big.get(path, ())
    # Each connection that is told has a flight under way, of which routers report some (RFC 1812 limits the rate).
    flight = int(threshold("mtu.first_flights_segments"))
    told = max(sum(error.count for error in messages), min(flight * len(messages), _larger(seen, path, messages)))
    c = seen.columns
    rows, sides = seen.of_path(path)
    agreed = c.sides("mss")[rows].min(axis=1)
    shrunk = (agreed > 0) & (c.sides("largest_segment")[rows, sides] + 12 < agreed)
    full = c.sides("data_segments")[rows, sides] >= threshold("loss.min_data_segments")
    refused = int(c.sides("lost_upstream")[rows, sides][shrunk & full].sum())
    return told + min(refused, flight)


def _repeated_opens(seen: Observed, path: Path) -> int:
    """Return repeated SYNs and SYN-ACKs.

    If data passes and only these are lost, connections are refused, not packets. In a simultaneous open (RFC 9293, 3.5)
    a SYN-ACK repeats the SYN of its own side and nothing was lost.
    """
    c = seen.columns
    rows, sides = seen.of_path(path)
    repeats = np.where(sides == CLIENT, c.syn_retransmissions[rows], c.syn_ack_retransmissions[rows])
    repeats += np.minimum(c.sides("syn")[rows, sides], c.sides("syn_ack")[rows, sides])
    return int(np.minimum(repeats, c.lost()[rows, sides]).sum())


def _after_third_party_reset(seen: Observed, path: Path, in_vain: Mask) -> int:
    """Return timeouts of a sender that did not receive the reset a third device sent.

    Losses repaired before it count.
    """
    c = seen.columns
    rows, sides = seen.of_path(path)
    repeats = np.minimum(c.sides("rto_retransmissions"), c.lost())[rows, sides]
    return int(repeats[seen.foreign_reset[rows].any(axis=1) & ~in_vain[rows, sides]].sum())


def _to_a_restarted_host(seen: Observed, path: Path) -> int:
    """Return repeats to a host that never answered and then had no state for the stream."""
    rows, sides = seen.of_path(path)
    mine = unanswered_retransmissions(seen)[rows] & (sides == CLIENT)
    return int(seen.columns.lost()[rows, sides][mine].sum())


def _lost_on(seen: Observed, path: Path, rows: StreamRows) -> int:
    """Return the losses of these streams of a path."""
    every, sides = seen.of_path(path)
    return int(seen.columns.lost()[every, sides][among(every, rows)].sum())


def _larger(seen: Observed, path: Path, messages: Sequence[IcmpError]) -> int:
    """Return the losses of streams that continued with smaller segments."""
    ports = {error.source_port for error in messages}
    c = seen.columns
    rows, sides = seen.of_path(path)
    mine = among(c.ports[rows, sides], [port for port in ports if port is not None])
    return int(c.lost()[rows, sides][mine].sum())


# --------------------------------------------------------------------------------------------------- reordering


def _overtaken(traffic: Traffic) -> bool:
    """Return whether segments were reordered, seen at the sender's end: fast retransmissions that the receiver then
    reports as duplicates. Without other needless repeats, timers ran out while answers waited in a queue."""
    return (
        traffic.reordered < traffic.needless
        and traffic.lost < traffic.needless
        and 2 * traffic.rto <= traffic.needless
        and traffic.duplicate_acks_back >= 2 * traffic.needless
    )


def _is_reordered(seen: Observed, traffic: Traffic) -> bool:
    late = _late(traffic)
    share = percent(late, traffic.data_segments)
    if late < threshold("reordering.min_segments") or share < threshold("reordering.min_pct"):
        return False
    return seen.copies_pct < threshold("duplicate_packets.min_pct")  # copies look like segments that come late


def _late(traffic: Traffic) -> int:
    return traffic.needless if _overtaken(traffic) else traffic.reordered


def _reordered_together(seen: Observed, ways: Sequence[Traffic]) -> Iterator[Finding]:
    """Yield findings for reordering: late segments at the receiver's end, needless repeats at the sender's end."""
    for places in group_paths(seen, [(way.source, way.destination) for way in ways]):
        yield merged_finding(
            [ways[n] for n in places], partial(_reordering, seen), lambda way: Who(way.source, way.destination)
        )


def _reordering(seen: Observed, ways: Sequence[Traffic]) -> Finding:
    ways = sorted(ways, key=lambda way: -_late(way))
    worst, at_sender = ways[0], _overtaken(ways[0])
    late, sent = sum(map(_late, ways)), sum(way.data_segments for way in ways)
    shares = [percent(late, sent), *(percent(_late(way), way.data_segments) for way in ways)]
    examples = [(_most(seen, way), "needless" if _overtaken(way) else "reordered") for way in ways[:FRAMES]]
    how = (
        f"{late} of {sent:,} data segments were repeated although the receiver had them: later ones"
        " overtook them, and its duplicate ACKs made the sender repeat what was not lost."
        if at_sender
        else f"{late} of {sent:,} data segments arrived after later ones within one round trip: overtaken, not lost."
    )
    source, destination = (hosts_of([getattr(way, end) for way in ways]) for end in ("source", "destination"))
    return make_finding(
        "reordering",
        severity="LOW" if max(shares) < threshold("reordering.medium_pct") else "MEDIUM",
        title=f"{rate(shares[0])} of the segments from {source} to {destination} arrive out of order",
        detail=how,
        who=Who(worst.source, worst.destination),
        evidence=(getattr(side, column).frames for sides, column in examples for side in sides),
        confidence="low" if at_sender else "medium",
        weight=late,
        measured={"reordered": late, "data_segments": sent} | ({"paths": len(ways)} if len(ways) > 1 else {}),
    )


def _most(seen: Observed, way: Traffic) -> list[Direction]:
    """Return the sending sides of the streams with most late segments."""
    rows, sides = seen.of_path((way.source, way.destination))
    late = seen.columns.sides("needless" if _overtaken(way) else "reordered")
    return sent_by(way.source, seen.worst(rows, late[rows, sides]))


# --------------------------------------------------------------------------------------------------- asymmetric


def _asymmetric(seen: Observed) -> Iterator[Finding]:
    """Yield the finding for one-way captures; `who.src` sent the captured packets. All host pairs are one finding."""
    packets = seen.columns.sides("packets").sum(axis=1)
    halves: dict[Path, StreamRows] = {}
    for path, rows in seen.one_way_streams.items():
        nothing_back = seen.traffic(path[1], path[0]) is None
        if nothing_back and int(packets[rows].sum()) >= threshold("asymmetric.min_packets"):
            halves[path] = rows
    if halves:
        yield _one_way_finding(seen, halves, {path: int(packets[rows].sum()) for path, rows in halves.items()})


def _one_way_finding(seen: Observed, halves: dict[Path, StreamRows], packets: dict[Path, int]) -> Finding:
    busiest = max(halves, key=lambda path: packets[path])
    source, destination = busiest
    every = np.concatenate(list(halves.values()))
    total = sum(packets.values())
    ports = distinct(seen.columns.ports[every, 1]).tolist()
    others = f", and of {count(len(halves) - 1, 'other pair')} of hosts" if len(halves) > 1 else ""
    captured_so = was_captured_one_way(seen)
    case = "asymmetric_capture" if captured_so else "asymmetric"
    so = " No pair of hosts was captured in both directions." if captured_so else ""
    return make_finding(
        case,
        severity="LOW" if captured_so else "MEDIUM",
        protocol="TCP",
        title=f"Only one direction was captured: {source} to {destination}{others}",
        detail=f"{count(total, 'packet')} in {count(len(every), 'connection')} (port {few(ports)}) carry data or"
        f" acknowledge answers that were not captured.{so}",
        who=Who(source, destination, ports[0] if len(ports) == 1 else None),
        evidence=([stream.first_frame] for stream in seen.worst(halves[busiest])),
        confidence="high" if captured_so else "medium",
        weight=total,
        measured={"packets": total, "streams": len(every), "pairs": len(halves), "answers": 0},
    )


# --------------------------------------------------------------------------------------------------------- loops


def _looped(seen: Observed) -> Iterator[Finding]:
    """Yield the finding for packets that pass the capture point again and again, unless routers report the loop."""
    looped = seen.analysis.summary.looped
    icmp = seen.analysis.icmp
    if looped is None or any(
        error.unreachable_dst == looped.dst for error in (icmp.of_kind("ttl_exceeded") if icmp else ())
    ):
        return
    yield make_finding(
        "routing_loop_captured",
        severity="HIGH",
        title=f"Packets from {looped.src} to {looped.dst} loop between routers",
        detail=f"{count(looped.packets.count, 'packet')} passed the capture point eight times or more, with fewer hops"
        " left each time.",
        who=Who(looped.src, looped.dst),
        evidence=[looped.packets.frames],
        confidence="high" if looped.packets.count >= threshold("routing_loop.min_messages") else "medium",
        weight=looped.packets.count,
        measured={"looped": looped.packets.count},
    )
