"""Connections that work badly: loss by direction, reordering, closed windows, delay, half a conversation."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.observed import Observed, Path, PathCount
from ghost.pcap.findings.policy import cause_of, remediation_of, threshold
from ghost.pcap.findings.words import count, duration, few, first_frames, percent, rate
from ghost.pcap.model import Direction, Stream


def transfer_findings(seen: Observed) -> Iterator[Finding]:
    yield from _loss(seen)
    yield from _reordering(seen)
    yield from _zero_window(seen)
    yield from _delay(seen)
    yield from _asymmetric(seen)


def _loss(seen: Observed) -> Iterator[Finding]:
    """One finding a direction: `who.src` sent what was lost on its way to `who.dst`.

    What a router dropped for its size, and said so, is path MTU discovery and no loss.
    """
    for (source, destination), path in seen.paths.items():
        too_big = sum(error.count for error in seen.too_big.get((source, destination), ()))
        if (
            path.lost - too_big >= threshold("loss.min_segments")
            and path.sent >= threshold("loss.min_data_segments")
            and path.loss_pct >= threshold("loss.min_pct")
        ):
            yield _lossy_path(seen, source, destination, path)


def _lossy_path(seen: Observed, source: str, destination: str, path: PathCount) -> Finding:
    by_timer = (
        path.rto >= threshold("rto_loss.min_timeouts")
        and percent(path.rto, path.retransmissions) >= threshold("rto_loss.share_pct")
        and path.duplicate_acks_back < path.rto
    )
    kind = "rto_loss" if by_timer else "loss"
    back = seen.paths.get((destination, source))
    other_way = f"{back.lost} of {back.sent:,}" if back is not None and back.sent else "nothing sent"
    repairs = f"{path.fast} fast, {path.rto} after a timeout or within a recovery"
    doubtful = seen.copies_pct >= threshold("duplicate_packets.doubtful_loss_pct")
    doubt = " Packets were captured more than once, so some of these may be copies." if doubtful else ""
    return Finding(
        kind=kind,
        severity="LOW" if doubtful else _loss_severity(path.loss_pct),
        blame="network",
        protocol="TCP",
        title=f"{rate(path.loss_pct)} of the segments from {source} to {destination} are lost"
        + (" and repaired only after timeouts" if by_timer else ""),
        detail=f"{path.lost} of {path.sent:,} segments lost {_where(path)};"
        f" {path.retransmissions} flagged as retransmissions ({repairs}). The other way: {other_way} lost.{doubt}",
        who=Who(source, destination, path.port),
        evidence=first_frames([path.frames]),
        cause=cause_of(kind),
        remediation=remediation_of(kind, src=source, dst=destination, port=path.port),
        confidence="low" if doubtful else "high" if path.lost >= 3 * threshold("loss.min_segments") else "medium",
        weight=path.lost,
        measured={
            "retransmissions": path.retransmissions,
            "data_segments": path.data_segments,
            "loss_pct": round(path.loss_pct, 2),
            "lost_before_capture_point": path.lost_upstream,
            "lost_after_capture_point": path.lost_downstream,
            "rto": path.rto,
        },
    )


def _loss_severity(loss_pct: float) -> str:
    if loss_pct >= threshold("loss.high_pct"):
        return "HIGH"
    return "MEDIUM" if loss_pct >= threshold("loss.medium_pct") else "LOW"


def _where(path: PathCount) -> str:
    if path.lost_upstream and path.lost_downstream:
        return f"({path.lost_upstream} before and {path.lost_downstream} after the capture point)"
    if path.lost_upstream:
        return "between the sender and the capture point"
    return "between the capture point and the receiver"


def _reordering(seen: Observed) -> Iterator[Finding]:
    for (source, destination), path in seen.paths.items():
        share = percent(path.reordered, path.data_segments)
        if path.reordered >= threshold("reordering.min_segments") and share >= threshold("reordering.min_pct"):
            yield Finding(
                kind="reordering",
                severity="LOW",
                blame="network",
                protocol="TCP",
                title=f"{rate(share)} of the segments from {source} to {destination} arrive out of order",
                detail=f"{path.reordered} of {path.data_segments:,} data segments came behind later ones within one"
                " round trip: overtaken, not lost.",
                who=Who(source, destination),
                evidence=first_frames([path.reordered_frames]),
                cause=cause_of("reordering"),
                remediation=remediation_of("reordering", src=source, dst=destination),
                confidence="medium",
                weight=path.reordered,
                measured={"reordered": path.reordered, "data_segments": path.data_segments},
            )


def _zero_window(seen: Observed) -> Iterator[Finding]:
    """`who.src` is the receiver that does not read, `who.dst` the sender that has to wait."""
    for (source, destination), closed in seen.zero_window.items():
        group = [(stream, side) for stream, side in closed if _hinders(side, _peer(stream, side))]
        if not group:
            continue
        events = sum(side.zero_window.count for _, side in group)
        probes = sum(_probes(_peer(stream, side)) for stream, side in group)
        stall_ms = max(_peer(stream, side).longest_silence_ms for stream, side in group) if probes else 0.0
        stream, side = max(group, key=lambda pair: pair[1].zero_window.count)
        is_server = side is stream.server
        port = stream.server.endpoint.port
        waited = (
            f" The sender had to probe {count(probes, 'time')}; longest pause {duration(stall_ms)}." if probes else ""
        )
        yield Finding(
            kind="zero_window",
            severity="HIGH" if stall_ms >= threshold("zero_window.high_stall_ms") else "MEDIUM",
            blame="server_application" if is_server else "client",
            protocol="TCP",
            title=f"{source} does not read what {destination} sends",
            detail=f"Its receive window was zero in {count(events, 'packet')} of {count(len(group), 'connection')}"
            f" ({'server' if is_server else 'client'} side, port {port}).{waited}",
            who=Who(source, destination, port),
            evidence=first_frames(side.zero_window.frames for _, side in group),
            cause=cause_of("zero_window"),
            remediation=remediation_of("zero_window", src=source, dst=destination, port=port),
            confidence="high",
            weight=events,
            measured={"zero_window": events, "probes": probes},
        )


def _hinders(receiver: Direction, sender: Direction) -> bool:
    """The window stayed closed until the sender's timer, or closed again and again; one that closes for a moment is
    flow control at work."""
    events = receiver.zero_window.count
    if _probes(sender):
        return events >= threshold("zero_window.min_probed_events")
    return events >= threshold("zero_window.min_events")


def _probes(sender: Direction) -> int:
    """Some stacks probe a closed window with what looks like a keep-alive."""
    return sender.zero_window_probes.count + sender.keep_alives.count


def _peer(stream: Stream, side: Direction) -> Direction:
    return stream.server if side is stream.client else stream.client


def _delay(seen: Observed) -> Iterator[Finding]:
    for (client, server), samples in seen.handshake_ms.items():
        middle = median(ms for ms, _ in samples)
        if len(samples) < threshold("delay.min_handshakes") or middle < threshold("delay.handshake_ms"):
            continue
        slowest = sorted(samples, reverse=True)
        yield Finding(
            kind="delay",
            severity="MEDIUM",
            blame="network",
            protocol="TCP",
            title=f"A round trip between {client} and {server} takes {duration(middle)}",
            detail=f"Median of {count(len(samples), 'TCP handshake')}; fastest {duration(slowest[-1][0])}, slowest"
            f" {duration(slowest[0][0])}.",
            who=Who(client, server),
            evidence=first_frames([[frame for _, frame in slowest[:5]]]),
            cause=cause_of("delay"),
            remediation=remediation_of("delay", src=client, dst=server),
            confidence="medium",
            weight=len(samples),
            measured={"handshakes": len(samples), "median_rtt_ms": round(middle, 1)},
        )


def _asymmetric(seen: Observed) -> Iterator[Finding]:
    """`who.src` is the side whose packets were captured. Several pairs of hosts share the one cause."""
    halves = {path: streams for path, streams in seen.one_sided.items() if not _heard_otherwise(seen, path)}
    packets = {path: sum(stream.packets for stream in streams) for path, streams in halves.items()}
    halves = {path: halves[path] for path in halves if packets[path] >= threshold("asymmetric.min_packets")}
    if halves:
        yield _half_heard(max(halves, key=lambda path: packets[path]), halves, packets)


def _heard_otherwise(seen: Observed, path: Path) -> bool:
    back = seen.paths.get((path[1], path[0]))
    return back is not None and back.packets > 0


def _half_heard(busiest: Path, halves: dict[Path, list[Stream]], packets: dict[Path, int]) -> Finding:
    source, destination = busiest
    streams = [stream for each in halves.values() for stream in each]
    total = sum(packets[path] for path in halves)
    ports = sorted({stream.server.endpoint.port for stream in streams})
    others = f", and of {count(len(halves) - 1, 'other pair')} of hosts" if len(halves) > 1 else ""
    return Finding(
        kind="asymmetric",
        severity="MEDIUM",
        blame="network",
        protocol="TCP",
        title=f"Only one direction was captured: {source} to {destination}, never back{others}",
        detail=f"{count(total, 'packet')} in {count(len(streams), 'connection')} (port {few(ports)}) carry data or"
        " acknowledge answers that do not pass here.",
        who=Who(source, destination, ports[0] if len(ports) == 1 else None),
        evidence=first_frames([stream.first_frame] for stream in halves[busiest][:5]),
        cause=cause_of("asymmetric"),
        remediation=remediation_of("asymmetric", src=source, dst=destination),
        confidence="medium",
        weight=total,
        measured={"packets": total, "streams": len(streams), "pairs": len(halves), "answers": 0},
    )
