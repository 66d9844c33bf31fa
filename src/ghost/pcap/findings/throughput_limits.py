"""Rules for slow transfers: deep queues, rate limits, small windows, long round trips."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ghost.pcap.array_queries import median, percentiles
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.long_paths import delay_findings
from ghost.pcap.findings.observations import Observed, Path, Traffic, directions, groups_of, sent_by
from ghost.pcap.findings.phrasing import bit_rate, count, duration, first_frames, rate
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Floats, Mask
from ghost.pcap.model import Direction, EchoPath, Statistics, Stream


def throughput_findings(seen: Observed) -> Iterator[Finding]:
    bloated = {finding.who.dst: finding for finding in _bloat(seen)}
    yield from bloated.values()
    yield from _small_windows(seen)
    yield from delay_findings(seen)


# -------------------------------------------------------------------------------------------------- bufferbloat


def _bloat(seen: Observed) -> Iterator[Finding]:
    """Yield findings for bufferbloat: the round trip grows many times over while a transfer fills a queue."""
    found: dict[frozenset[str], Finding] = {}
    for stream in seen.bulk:
        for side, peer in directions(stream):
            pair = frozenset((side.endpoint.address, peer.endpoint.address))
            trip = side.ack_rtt_ms
            if pair in found or trip is None or trip.count < threshold("bufferbloat.min_samples"):
                continue
            if side.largest_in_flight < threshold("bufferbloat.min_segments_in_flight") * max(side.largest_segment, 1):
                continue
            trip = _base_round_trip(seen, stream, trip)
            if _swollen(trip) and trip.median >= 2 * trip.min:
                how = f"while {side.endpoint.address} had up to {side.largest_in_flight // 1024} KiB under way"
                found[pair] = _bloated(
                    side.endpoint.address, peer.endpoint.address, stream.server.endpoint.port, trip, how,
                    (side.first_frame,),
                )  # fmt: skip
    _concurrent_requests(seen, found)
    for path in _busy_pings(seen):
        pair = frozenset((path.src, path.dst))
        if pair not in found and path.rtt_ms is not None and _swollen(path.rtt_ms):
            found[pair] = _bloated(path.src, path.dst, None, path.rtt_ms, "of pings beside a transfer", ())
    yield from found.values()
    yield from _slower_handshakes(seen, set(found))


def _concurrent_requests(seen: Observed, found: dict[frozenset[str], Finding]) -> None:
    """Return requests of the same hosts whose ACKs are late because they wait in the transfer's queue."""
    acked_rows, acked = seen.columns.samples("request_acked_ms")
    for stream in seen.bulk:
        client, server = stream.client.endpoint.address, stream.server.endpoint.address
        pair = frozenset((client, server))
        rows, _ = seen.of_path((client, server))
        if pair in found:
            continue
        mine = np.zeros(len(seen.columns), np.bool_)
        mine[rows] = True
        values = np.sort(acked[mine[acked_rows]])
        if len(values) < threshold("bufferbloat.min_pings"):
            continue
        middle, high = percentiles(values, (50, 95))
        trip = _base_round_trip(
            seen, stream, Statistics(len(values), float(values[0]), middle, high, float(values[-1]))
        )
        if _swollen(trip) and trip.p95 - trip.min >= threshold("bufferbloat.added_to_requests_ms"):
            how = "of requests beside a transfer"
            found[pair] = _bloated(client, server, stream.server.endpoint.port, trip, how, (stream.first_frame,))


def _base_round_trip(seen: Observed, stream: Stream, trip: Statistics) -> Statistics:
    """Return the base round trip: the fastest handshake of the pair.

    A single ACK may come from nearby (a NAT, an endpoint at the capture point).
    """
    c = seen.columns
    rows, _ = seen.of_path((stream.client.endpoint.address, stream.server.endpoint.address))
    handshakes = (c.syn_to_syn_ack_ms + c.syn_ack_to_ack_ms)[rows]
    handshakes = handshakes[~np.isnan(handshakes)]
    floor = float(handshakes.min()) if len(handshakes) else max(trip.min, threshold("bufferbloat.least_floor_ms"))
    return Statistics(trip.count, floor, trip.median, trip.p95, trip.max)


def _swollen(trip: Statistics) -> bool:
    return trip.count >= threshold("bufferbloat.min_pings") and _grown(trip)


def _grown(trip: Statistics) -> bool:
    return trip.p95 >= threshold("bufferbloat.ratio") * max(trip.min, 0.1) and trip.p95 - trip.min >= threshold(
        "bufferbloat.added_ms"
    )


def _busy_pings(seen: Observed) -> Iterator[EchoPath]:
    """Yield pings between hosts with a concurrent transfer."""
    busy = {end for stream in seen.bulk for end in (stream.client.endpoint.address, stream.server.endpoint.address)}
    for path in seen.analysis.icmp.echo_paths if seen.analysis.icmp else ():
        if path.src in busy or path.dst in busy:
            yield path


def _slower_handshakes(seen: Observed, known: set[frozenset[str]]) -> Iterator[Finding]:
    """Yield findings for slow handshakes during a transfer: at the receiver's end ACK times show nothing."""
    c = seen.columns
    trips = c.syn_to_syn_ack_ms + c.syn_ack_to_ack_ms
    once = (c.syn_retransmissions == 0) & (c.syn_ack_retransmissions == 0)
    for stream in seen.bulk:
        client, server = stream.client.endpoint.address, stream.server.endpoint.address
        pair = frozenset((client, server))
        if pair in known:
            continue
        known.add(pair)
        rows, _ = seen.of_path((client, server))
        rows = rows[~np.isnan(trips[rows]) & once[rows]]
        during = (c.first_ns[rows] > stream.first_ns) & (c.first_ns[rows] < stream.last_ns)
        ways = (seen.traffic(client, server), seen.traffic(server, client))
        lossy = any(way is not None and way.loss_pct >= threshold("loss.min_pct") for way in ways)
        if lossy or during.sum() < threshold("bufferbloat.min_handshakes"):
            continue  # what is lost comes late as well
        values = np.sort(trips[rows])
        loaded = median(trips[rows][during])
        trip = Statistics(len(values), float(values[0]), loaded, loaded, float(values[-1]))
        if _grown(trip):
            how = f"of {count(int(during.sum()), 'handshake')} made during a transfer"
            frames = first_frames([s.first_frame] for s in seen.worst(rows[during]))
            yield _bloated(client, server, stream.server.endpoint.port, trip, how, frames)


def _bloated(
    source: str, destination: str, port: int | None, trip: Statistics, how: str, frames: tuple[int, ...]
) -> Finding:
    return make_finding(
        "bufferbloat",
        severity="MEDIUM",
        title=f"A deep queue between {source} and {destination}: under load a round trip takes {duration(trip.p95)}"
        f" instead of {duration(trip.min)}",
        detail=f"Round trips {how}: fastest {duration(trip.min)}, median {duration(trip.median)}, 95th percentile"
        f" {duration(trip.p95)}.",
        who=Who(source, destination, port),
        evidence=[frames],
        confidence="high" if trip.count >= 2 * threshold("bufferbloat.min_samples") else "medium",
        weight=trip.p95,
        measured={"min_ms": round(trip.min, 1), "median_ms": round(trip.median, 1), "p95_ms": round(trip.p95, 1)},
    )


# -------------------------------------------------------------------------------------------------- rate limits


def policed_transfers(seen: Observed, path: Path, traffic: Traffic) -> Finding | None:
    """Return transfers held to one rate by loss, as by a policer; under random loss the rate varies."""
    if seen.copies_pct >= threshold("duplicate_packets.doubtful_loss_pct"):
        return None  # copies count twice in the rate, and as loss
    kept = _steady_rate(seen, path) if _carries_a_transfer(seen, path) else None
    if kept is None:
        return None
    seconds, flat = kept
    bits = flat * 8
    source, destination = path
    rows, sides = seen.of_path(path)
    examples = seen.worst(rows, seen.columns.lost()[rows, sides])
    port = examples[0].server.endpoint.port if examples else None
    return make_finding(
        "throughput_policed",
        severity="MEDIUM",
        title=f"Traffic from {source} to {destination} is held to about {bit_rate(bits)}",
        detail=f"Over {seconds:.1f} s the rate keeps to {bit_rate(bits)} while {traffic.lost} of {traffic.sent:,}"
        f" segments ({rate(traffic.loss_pct)}) are dropped: what exceeds the rate is discarded, as a policer does.",
        who=Who(source, destination, port),
        evidence=((*side.lost_downstream.frames, *side.lost_upstream.frames) for side in sent_by(source, examples)),
        confidence="medium",
        weight=traffic.lost,
        measured={"rate_bps": round(bits), "loss_pct": round(traffic.loss_pct, 2)},
    )


def _carries_a_transfer(seen: Observed, path: Path) -> bool:
    """Return whether a stream sends as fast as the path allows; small messages are limited by their writer."""
    c = seen.columns
    rows, sides = seen.of_path(path)
    pair_bytes, segments = c.sides("payload_bytes")[rows, sides], c.sides("data_segments")[rows, sides]
    mss, largest = c.sides("mss").min(axis=1)[rows], c.sides("largest_segment")[rows, sides]
    # What an adapter joins or will cut is larger than the MSS; of a connection that began before, none is known.
    whole = pair_bytes >= threshold("throughput_limited.full_share") * segments * np.where(mss > 0, mss, largest)
    return bool((whole & (pair_bytes >= threshold("throughput_limited.min_bytes"))).any())


def _steady_rate(seen: Observed, path: Path) -> tuple[float, float] | None:
    """Return seconds and bytes per second of a steady rate of a pair, or None.

    If others pass the same policer, their sum keeps the rate.
    """
    width, own, shared = _moved(seen, path)
    plateaus = [
        plateau for pair_bytes in (own, *shared) if (plateau := _plateau(pair_bytes)) is not None and plateau.is_steady
    ]
    if not plateaus:
        return None
    flattest = min(plateaus, key=lambda plateau: min(plateau.above, plateau.below))
    return len(own) * width, flattest.middle / width


def share_a_policer(seen: Observed, path: Path) -> bool:
    """Return whether a transfer and concurrent traffic keep one rate together, and so share a policer."""
    plateaus = [_plateau(every) for every in _moved(seen, path)[2]]
    return any(plateau is not None and plateau.is_steady for plateau in plateaus)


def _moved(seen: Observed, path: Path) -> tuple[float, Floats, list[Floats]]:
    """Return seconds per bin, and bytes per bin: of the pair, and if it moves most of it, of all traffic to the
    receiver and of all from the sender. Empty for pairs that are not among the busiest."""
    series, ways = seen.analysis.series, seen.pair_bytes
    if series is None or path not in ways:
        return 1.0, np.zeros(0), []
    own = ways[path]
    shared = [
        np.sum([pair_bytes for way, pair_bytes in ways.items() if way[end] == path[end]], axis=0) for end in (1, 0)
    ]
    return series.pair_width_ns / 1e9, own, [every for every in shared if every.sum() < 2 * own.sum()]


@dataclass(frozen=True)
class _Plateau:
    """Rate of a transfer over time."""

    middle: float
    """Bytes a bin, half of the time."""
    above: float
    """How much faster it is for a twentieth of the time, as a share of the middle."""
    below: float
    """How much slower for a tenth."""

    @property
    def is_steady(self) -> bool:
        """Return whether any of the rates is steady: a policed transfer waits for its timers now and then and starts
        with a burst."""
        above, below = threshold("throughput_limited.above"), threshold("throughput_limited.below")
        return self.above <= above or self.below <= below


def _plateau(pair_bytes: Floats) -> _Plateau | None:
    """Return the rate of a transfer; None if it is too short."""
    if not len(pair_bytes):
        return None
    busy = np.flatnonzero(pair_bytes >= 0.2 * percentiles(pair_bytes, (95,))[0])
    if len(busy) < threshold("throughput_limited.min_bins"):
        return None
    steady = pair_bytes[busy[0] : busy[-1] + 1]
    # Smooth over a few bins: a policer lets short bursts through.
    wide = max(len(steady) // int(threshold("throughput_limited.windows")), 1)
    usable = len(steady) // wide * wide
    windows = steady[:usable].reshape(-1, wide).mean(axis=1)[1:-1]
    slow, middle, fast = percentiles(windows, (10, 50, 95))
    return _Plateau(middle, fast / middle - 1, 1 - slow / middle) if middle else None


# ------------------------------------------------------------------------------------------------ small windows


def _small_windows(seen: Observed) -> Iterator[Finding]:
    """Yield findings for windows that the sender fills again and again and that are small for the round trip."""
    c = seen.columns
    full, data = c.sides("window_full"), c.sides("data_segments")
    pair_bytes, flight = c.sides("payload_bytes"), c.sides("largest_in_flight")
    window, largest = c.sides("smallest_window")[:, ::-1], c.sides("largest_segment")
    often = (full >= threshold("throughput_limited.min_window_full")) & (
        full * 100 >= threshold("throughput_limited.window_full_pct") * data
    )
    lasting = (c.last_ns - c.first_ns)[:, None] >= threshold("throughput_limited.min_ms") * 1e6
    # A sender stops short of the edge where no whole segment fits any more.
    to_the_edge = (flight <= window) & (flight > window - largest) & (data >= 10 * np.maximum(flight // 1000, 1))
    # Without window scaling no receiver offers more than 65,535 bytes (RFC 7323), whatever its smallest window was.
    unscaled = (c.sides("window_scale")[:, ::-1] < 0) & (c.sides("mss")[:, ::-1] > 0)
    to_the_edge |= unscaled & (flight > 65_535 - largest) & (data >= 10 * np.maximum(flight // 1000, 1))
    limited = (
        (often | to_the_edge | _window_each_round_trip(seen))
        & (
            (pair_bytes >= threshold("throughput_limited.min_bytes"))
            | ((pair_bytes >= threshold("throughput_limited.min_windows") * flight) & lasting)
        )
        & (flight <= threshold("throughput_limited.small_window_bytes"))
        & (c.sides("zero_window")[:, ::-1] == 0)
    )
    for side in (CLIENT, SERVER):
        rows = np.flatnonzero(limited[:, side])
        for (_, service), some in groups_of(rows, c.hosts[:, CLIENT], seen.service):
            stream = seen.worst(some, pair_bytes[some, side], 1)[0]
            sender, receiver = (stream.client, stream.server) if side == CLIENT else (stream.server, stream.client)
            trip = _round_trip(stream, sender)
            if trip is None or trip < threshold("throughput_limited.min_rtt_ms"):
                continue
            window_bytes = max(sender.largest_in_flight, min(receiver.smallest_window or 0, 65535))
            possible = window_bytes * 8 / (trip / 1000)
            if sender.throughput_bps < threshold("throughput_limited.window_use") * possible:
                continue  # it waited for something else most of the time
            yield _window_limited(sender, receiver, seen.name_of(service), trip, len(some), window_bytes)


def _window_each_round_trip(seen: Observed) -> Mask:
    """Return the mask of streams, captured at the receiver, that carry one window of full segments per round trip."""
    c = seen.columns
    trips = (c.syn_to_syn_ack_ms + c.syn_ack_to_ack_ms)[:, None]
    window, data, pair_bytes = c.sides("smallest_window")[:, ::-1], c.sides("data_segments"), c.sides("payload_bytes")
    opening = np.nan_to_num(trips) / 500  # the handshake and the request
    seconds = np.maximum((c.last_ns - c.first_ns)[:, None] / 1e9 - opening, 1e-6)
    each = pair_bytes / seconds * trips / 1000
    near = (each >= 0.75 * window) & (each <= 1.05 * window)
    whole = pair_bytes >= 0.4 * data * c.sides("mss").min(axis=1, keepdims=True)
    clean = (c.lost() == 0) & (c.sides("needless") == 0)
    small = (window > 0) & (window <= threshold("throughput_limited.small_window_bytes"))
    result: Mask = near & whole & clean & small
    return result


def _round_trip(stream: Stream, sender: Direction) -> float | None:
    if stream.handshake_rtt_ms is not None:
        return stream.handshake_rtt_ms
    return sender.ack_rtt_ms.median if sender.ack_rtt_ms else None


def _window_limited(
    sender: Direction, receiver: Direction, service: tuple[str, int], trip: float, streams: int, window: int
) -> Finding:
    source, destination = sender.endpoint.address, receiver.endpoint.address
    is_server = (destination, receiver.endpoint.port) == service
    bits = window * 8 / (trip / 1000)
    return make_finding(
        "throughput_window",
        severity="MEDIUM" if bits < threshold("throughput_limited.enough_bps") else "LOW",
        blame="server_host" if is_server else "client",
        title=f"The receive window of {destination} limits transfers from {source} to {bit_rate(bits)}",
        detail=f"{sender.payload_bytes:,} bytes in {sender.data_segments:,} segments went at"
        f" {bit_rate(sender.throughput_bps)}: never more than {window // 1024} KiB, what the receiver allows, in each"
        f" round trip of {duration(trip)}"
        + (f" ({count(streams, 'connection')})." if streams > 1 else ".")
        + (
            ""
            if receiver.window_scale
            else " It does not offer window scaling."
            if receiver.syn or receiver.syn_ack
            else ""
        ),
        who=Who(source, destination, service[1]),
        evidence=[sender.window_full.frames or (sender.first_frame,)],
        confidence="high",
        weight=sender.window_full.count,
        measured={"window_bytes": window, "rtt_ms": round(trip, 1), "limit_bps": round(bits)},
    )
