"""Connections that broke: reset in the middle, forgotten while idle, stuck behind a small MTU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.observed import Observed, directions
from ghost.pcap.findings.policy import cause_of, remediation_of, threshold
from ghost.pcap.findings.words import at, count, duration, few, first_frames
from ghost.pcap.model import Direction, IcmpError, Stream

IP_AND_TCP_HEADERS = 40


def broken_findings(seen: Observed) -> Iterator[Finding]:
    yield from _resets(seen)
    yield from _forgotten(seen)
    yield from _too_big(seen)


# ------------------------------------------------------------------------------------------------------- resets


class _ResetGroup(NamedTuple):
    kind: str
    sender: str
    receiver: str
    server: str
    port: int


def _resets(seen: Observed) -> Iterator[Finding]:
    groups: dict[_ResetGroup, list[Stream]] = defaultdict(list)
    for stream in seen.reset:
        group = _judge_reset(stream)
        if group is not None:
            groups[group].append(stream)
    for group, streams in groups.items():
        if group.kind == "third_party_reset":
            yield _third_party(group, streams)
        elif group.kind == "idle_timeout":
            yield _idle_timeout(group, streams)
        else:
            yield _mid_session(group, streams)


def _judge_reset(stream: Stream) -> _ResetGroup | None:
    """What kind of fault a reset is; None for the ones that end a complete exchange."""
    server, port = stream.server.endpoint.address, stream.server.endpoint.port
    client = stream.client.endpoint.address
    if stream.rst_from == "neither":
        return _ResetGroup("third_party_reset", client, server, server, port)
    by_server = stream.rst_from == "server"
    resetter, peer = (stream.server, stream.client) if by_server else (stream.client, stream.server)
    if resetter.rst_after_fin or not stream.payload_bytes:
        return None
    if not (stream.unanswered_request_ms is not None or peer.data_after_rst or resetter.unacked_bytes):
        return None
    sender, receiver = (server, client) if by_server else (client, server)
    if max(stream.client.longest_silence_ms, stream.server.longest_silence_ms) >= threshold("idle_timeout.min_gap_ms"):
        return _ResetGroup("idle_timeout", sender, receiver, server, port)
    return _ResetGroup("mid_session_reset", sender, receiver, server, port)


def _third_party(group: _ResetGroup, streams: list[Stream]) -> Finding:
    worst = streams[0]
    forged = [side for side, _ in directions(worst) if side.rst and side.rst_ttl is not None]
    ttls = "; ".join(
        f"resets in the name of {side.endpoint.address} have TTL {side.rst_ttl}"
        + (f", its other packets {_span(side)}" if side.ttl_min is not None else "")
        for side in forged
    )
    return Finding(
        kind="third_party_reset",
        severity="HIGH",
        blame="policy",
        protocol="TCP",
        title=f"A device in between resets connections of {group.sender} to {at(group.server, group.port)}",
        detail=f"{count(len(streams), 'connection')} reset by neither end: {ttls or 'the TTL is not that of a peer'}.",
        who=Who(group.sender, group.server, group.port),
        evidence=first_frames(side.rst.frames for stream in streams for side, _ in directions(stream)),
        cause=cause_of("third_party_reset"),
        remediation=remediation_of("third_party_reset", src=group.sender, dst=group.server, port=group.port),
        confidence="high",
        weight=len(streams),
        measured={"resets": len(streams)},
    )


def _span(side: Direction) -> str:
    return str(side.ttl_min) if side.ttl_min == side.ttl_max else f"{side.ttl_min} to {side.ttl_max}"


def _mid_session(group: _ResetGroup, streams: list[Stream]) -> Finding:
    by_server = group.sender == group.server
    waited = [s.unanswered_request_ms for s in streams if s.unanswered_request_ms is not None]
    gave_up = not by_server and waited and min(waited) >= threshold("mid_session_reset.client_patience_ms")
    pending = f" {count(len(waited), 'request')} had no answer yet" if waited else ""
    if gave_up:
        pending += f" after {duration(max(waited))}: the client gave up waiting"
    return Finding(
        kind="mid_session_reset",
        severity="HIGH" if len(streams) > 1 else "MEDIUM",
        blame="server_application" if by_server or gave_up else "client",
        protocol="TCP",
        title=f"{group.sender} resets connections to {at(group.server, group.port)} in the middle of an exchange"
        if not by_server
        else f"{at(group.server, group.port)} resets connections of {group.receiver} in the middle of an exchange",
        detail=f"{count(len(streams), 'established connection')} aborted by the {'server' if by_server else 'client'}."
        + (f"{pending}." if pending else ""),
        who=Who(group.sender, group.receiver, group.port),
        evidence=first_frames((s.server if by_server else s.client).rst.frames for s in streams),
        cause=cause_of("mid_session_reset"),
        remediation=remediation_of("mid_session_reset", src=group.sender, dst=group.receiver, port=group.port),
        confidence="medium",
        weight=len(streams),
        measured={"resets": len(streams)},
    )


# ------------------------------------------------------------------------------------------------ idle time-outs


def _forgotten(seen: Observed) -> Iterator[Finding]:
    """Connections that went silent and whose next data nobody acknowledged any more."""
    groups: dict[_ResetGroup, list[Stream]] = defaultdict(list)
    for stream in seen.stuck:
        if stream.teardown == "rst" or stream.handshake in ("refused", "unanswered"):
            continue
        for side, peer in directions(stream):
            silent = side.longest_silence_ms >= threshold("idle_timeout.min_gap_ms")
            repeated = side.rto_retransmissions.count >= threshold("idle_timeout.min_repeats")
            if silent and repeated and side.unacked_bytes and peer.packets and not peer.fin:
                server = stream.server.endpoint
                key = _ResetGroup(
                    "idle_timeout", side.endpoint.address, peer.endpoint.address, server.address, server.port
                )
                groups[key].append(stream)
    for group, streams in groups.items():
        yield _idle_timeout(group, streams)


def _idle_timeout(group: _ResetGroup, streams: list[Stream]) -> Finding:
    silence = max(max(s.client.longest_silence_ms, s.server.longest_silence_ms) for s in streams)
    ended = "reset" if any(s.teardown == "rst" for s in streams) else "left without an acknowledgement"
    return Finding(
        kind="idle_timeout",
        severity="MEDIUM",
        blame="network",
        protocol="TCP",
        title=f"Connections of {group.sender} to {group.receiver} die while they are idle",
        detail=f"{count(len(streams), 'connection')} to {at(group.server, group.port)}, silent for up to"
        f" {duration(silence)}, {ended} when used again.",
        who=Who(group.sender, group.receiver, group.port),
        evidence=first_frames([s.last_frame] for s in streams),
        cause=cause_of("idle_timeout"),
        remediation=remediation_of("idle_timeout", src=group.sender, dst=group.receiver, port=group.port),
        confidence="medium",
        weight=len(streams),
        measured={"connections": len(streams), "silence_ms": round(silence)},
    )


# -------------------------------------------------------------------------------------------------- path MTU


def _too_big(seen: Observed) -> Iterator[Finding]:
    """Path MTU discovery that works is healthy: the sender is told, sends smaller segments, and goes on."""
    stuck = {(s.endpoint.address, p.endpoint.address): (s, stream) for stream, s, p in _stuck_on_size(seen)}
    for path, messages in seen.too_big.items():
        goes_on = path in seen.paths and all(error.protocol == "tcp" for error in messages)
        repeated = sum(error.count for error in messages) >= threshold("mtu.min_messages")
        if path in stuck or (repeated and not goes_on):
            yield _black_hole(path, messages, stuck.pop(path, None))
    for path, side_and_stream in stuck.items():
        yield _black_hole(path, [], side_and_stream)


def _stuck_on_size(seen: Observed) -> Iterator[tuple[Stream, Direction, Direction]]:
    """Sides whose large segments were repeated and never acknowledged while smaller ones were."""
    for stream in seen.stuck:
        if stream.handshake != "completed" and stream.handshake != "not_seen":
            continue
        for side, peer in directions(stream):
            if (
                side.unacked_bytes
                and peer.packets
                and side.rto_retransmissions.count >= threshold("mtu.min_repeats")
                and side.smallest_lost_segment > max(side.largest_acked_segment, threshold("mtu.min_segment_bytes"))
            ):
                yield stream, side, peer


def _black_hole(
    path: tuple[str, str], messages: list[IcmpError], side_and_stream: tuple[Direction, Stream] | None
) -> Finding:
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
        parts.append(
            f"segments of {side.smallest_lost_segment} bytes and more were repeated"
            f" {count(side.rto_retransmissions.count, 'time')} and never acknowledged; the largest that got through"
            f" had {side.largest_acked_segment}"
        )
        frames.append(side.rto_retransmissions.frames)
    fits = {"mtu": mtu - IP_AND_TCP_HEADERS} if mtu else {}
    return Finding(
        kind="mtu_black_hole",
        severity="HIGH" if side_and_stream else "MEDIUM",
        blame="network",
        protocol="ICMP" if messages and not side_and_stream else "TCP",
        title=f"Large packets from {source} to {destination} do not get through",
        detail="; ".join(parts)[:1].upper() + "; ".join(parts)[1:] + ".",
        who=Who(source, destination, port),
        evidence=first_frames(frames),
        cause=cause_of("mtu_black_hole"),
        remediation=remediation_of("mtu_black_hole", src=source, dst=destination),
        confidence="high" if messages and side_and_stream else "medium",
        weight=sum(error.count for error in messages) + 1,
        measured={"next_hop_mtu": mtu, **({"mss_that_fits": fits["mtu"]} if fits else {})} if mtu else {},
    )
