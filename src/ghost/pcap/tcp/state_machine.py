"""The TCP state machine, packet by packet: what each packet changes, and where each repeated segment was lost.

Loss is concluded apart from Wireshark's flags: a gap that is filled later was lost before the capture point, a captured
segment that the peer then needed again was lost after it (see `model`). State is arrays only, so a batch may end
anywhere and the kernel may be compiled or not.
"""

from __future__ import annotations

from ghost.pcap.array_types import Ints
from ghost.pcap.layout import (
    ACK,
    ACKED_AHEAD,
    ACKNOWLEDGED,
    BLANK,
    CONTROL,
    D_ACK,
    D_ACK_TIME,
    D_BASE,
    D_DUPLICATES,
    D_EVENTS,
    D_FIRST_FRAME,
    D_FIRST_TIME,
    D_HEAD,
    D_HELD,
    D_HOLE_COUNT,
    D_IN_FLIGHT,
    D_LARGEST,
    D_LAST_FLAGS,
    D_LAST_TIME,
    D_LAST_WORDS,
    D_NEXT,
    D_NEXT_TIME,
    D_PACKETS,
    D_PAYLOAD,
    D_RST_AFTER_FIN,
    D_RST_TTL,
    D_SAME_ACK_TIME,
    D_SCALE,
    D_SEEN_END,
    D_SEGMENTS,
    D_SILENCE,
    D_SMALLEST_WINDOW,
    D_SYN_WINDOW,
    D_TTL,
    D_TTL_MAX,
    D_TTL_MIN,
    D_WINDOW,
    DESTINATION,
    DESTINATION_PORT,
    DSACK_END,
    DSACK_START,
    E_ACK_RTT,
    E_DATA_AFTER_RST,
    E_DUPLICATE_ACK,
    E_FIN,
    E_KEEP_ALIVE,
    E_LOST_SEGMENT,
    E_LOST_UPSTREAM,
    E_NEEDLESS,
    E_REORDERED,
    E_REUSED_PORTS,
    E_RST,
    E_SPURIOUS,
    E_ZERO_WINDOW_PROBE,
    ECHO,
    ENCAPSULATION,
    ENDS_BLANK,
    ENDS_OTHERWISE,
    FIN,
    FLAGS,
    FRAGMENT,
    FRAME,
    G_NEXT,
    G_SIZE,
    HALF,
    IP_ID,
    LENGTH,
    N_EVENT_CAPACITY,
    N_EVENTS,
    N_FREE_COUNT,
    N_LAST_SAMPLE,
    N_POOL,
    N_POOL_CAPACITY,
    N_SAMPLE_CAPACITY,
    N_SAMPLES,
    N_STREAM_CAPACITY,
    N_STREAMS,
    NO_BLANK,
    PACKET,
    PROTOCOL,
    RECORDS,
    ROUND_TRIP,
    RST,
    S_CLIENT,
    S_ENCAPSULATION,
    S_FIRST_RST,
    S_FIRST_TIME,
    S_INITIAL_RTT,
    S_KNOWN_BY,
    S_LAST_FRAME,
    S_LAST_TIME,
    S_MIRRORED,
    S_REQUEST_OPEN,
    S_WIRE_BYTES,
    SAMPLE_DELTA,
    SEGMENT,
    SEQ,
    SEQUENCE,
    SIDE,
    SOURCE,
    SOURCE_PORT,
    STREAM,
    STREAM_NUMBER,
    SYN,
    TIME,
    TIMESTAMP,
    TTL,
    TWIN,
    WINDOW,
    WIRE,
)
from ghost.pcap.tcp.analysis_flags import ORDER_NS, after, flag
from ghost.pcap.tcp.duplicate_segments import is_copy, note_copy
from ghost.pcap.tcp.response_times import time_response
from ghost.pcap.tcp.scoreboard import (
    acknowledge,
    drop_head,
    fill_holes,
    forget_holes,
    hold_segment,
    lose,
    lose_doubted,
    lose_repeated,
    mark_repeated,
    note,
    open_hole,
    sample,
)
from ghost.pcap.tcp.stream_table import open_stream, slot_of
from ghost.pcap.tcp.three_way_handshake import handshake

_MOST_HELD = 4096
"""Unacknowledged segments remembered for each side; a side whose peer is not captured is held to `_MOST_UNHEARD`."""
_MOST_UNHEARD = 64

# Room that one packet may need at most: no kind of event of a side is logged more than SAMPLE_FRAMES times.
_EVENTS_AT_ONCE = 64
_POOL_AT_ONCE = 8
_SAMPLES_AT_ONCE = 8


def judge_segment(
    p: int, stream: int, sender: int, flags: int, rows: Ints, streams: Ints, sides: Ints, events: Ints, pool: Ints,
    counts: Ints,
) -> int:  # fmt: skip
    """Conclude what a segment with data, SYN or FIN says about loss. Returns the kind under which it is held."""
    side = stream * 2 + sender
    f = side * SIDE
    control = rows[p + CONTROL]
    seq = rows[p + SEQUENCE]
    length = rows[p + LENGTH]
    end = (seq + length + (1 if control & (SYN | FIN) else 0)) & SEQ
    now = rows[p + TIME]
    frame = rows[p + FRAME]
    following = sides[f + D_NEXT]
    kind = 0
    if following >= 0 and (seq - following) & SEQ >= HALF:
        verdict = 0
        if sides[f + D_HOLE_COUNT]:
            round_trip = streams[stream * STREAM + S_INITIAL_RTT]
            round_trip = ORDER_NS if round_trip < 0 else round_trip - round_trip // 8
            verdict = fill_holes(
                side, seq, end, now, rows[p + IP_ID], rows[p + TIMESTAMP], round_trip, sides, pool, counts
            )
        if verdict == 1:
            lose(E_LOST_UPSTREAM, side, frame, length, sides, events, counts)
        elif verdict == 2:
            note(E_REORDERED, side, frame, sides, events, counts)
        elif rows[p + TWIN] and is_copy(p, stream, sender, rows, streams, sides):
            kind = 3
        else:
            mark_repeated(side, seq, sides, pool)
            kind = 4 if rows[p + TWIN] > 0 else 1
            acked = sides[(stream * 2 + 1 - sender) * SIDE + D_ACK]
            # Wireshark's flag is for data alone; a SYN-ACK or a FIN is repeated needlessly as well.
            empty = length == 0 and acked >= 0 and (acked - end) & SEQ < HALF
            if flags & (1 << E_SPURIOUS) or empty:
                kind = 3
                note(E_NEEDLESS, side, frame, sides, events, counts)
    return kind


def hold(
    p: int, stream: int, sender: int, kind: int, rows: Ints, sides: Ints, events: Ints, pool: Ints, counts: Ints
) -> None:
    """Remember a segment until it is acknowledged; beyond the limit the oldest is judged and forgotten."""
    side = stream * 2 + sender
    f = side * SIDE
    length = rows[p + LENGTH]
    start = rows[p + SEQUENCE]
    end = (start + length + (1 if rows[p + CONTROL] & (SYN | FIN) else 0)) & SEQ
    hold_segment(
        side, start, end, kind, length, rows[p + TIME], rows[p + FRAME], rows[p + TIMESTAMP], sides, pool, counts
    )
    limit = _MOST_HELD if sides[(stream * 2 + 1 - sender) * SIDE + D_PACKETS] else _MOST_UNHEARD
    if sides[f + D_HELD] > limit:
        g = sides[f + D_HEAD] * SEGMENT
        if pool[g + G_SIZE] > 0:
            lose_repeated(g, side, sides, events, pool, counts)
        drop_head(side, sides, pool, counts)


def count_packet(
    p: int, stream: int, sender: int, rows: Ints, streams: Ints, sides: Ints, events: Ints, samples: Ints, counts: Ints
) -> None:
    """Totals, TTLs, times and windows of the sending side."""
    t = stream * STREAM
    side = stream * 2 + sender
    f = side * SIDE
    control = rows[p + CONTROL]
    length = rows[p + LENGTH]
    now = rows[p + TIME]
    frame = rows[p + FRAME]
    streams[t + S_LAST_FRAME] = frame
    streams[t + S_FIRST_TIME] = min(streams[t + S_FIRST_TIME], now)
    streams[t + S_LAST_TIME] = max(streams[t + S_LAST_TIME], now)
    streams[t + S_WIRE_BYTES] = streams[t + S_WIRE_BYTES] + rows[p + WIRE]
    streams[t + S_ENCAPSULATION] = streams[t + S_ENCAPSULATION] | rows[p + ENCAPSULATION]
    if sides[f + D_PACKETS]:
        pause = max(now - sides[f + D_LAST_TIME], 0)
        sample(SAMPLE_DELTA, side, pause, samples, counts)
        sides[f + D_SILENCE] = max(sides[f + D_SILENCE], pause)
        sides[f + D_LAST_TIME] = max(now, sides[f + D_LAST_TIME])
    else:
        sides[f + D_FIRST_TIME] = now
        sides[f + D_LAST_TIME] = now
        sides[f + D_FIRST_FRAME] = frame
    sides[f + D_PACKETS] = sides[f + D_PACKETS] + 1
    if length:
        sides[f + D_PAYLOAD] = sides[f + D_PAYLOAD] + length
        sides[f + D_SEGMENTS] = sides[f + D_SEGMENTS] + 1
        sides[f + D_LARGEST] = max(sides[f + D_LARGEST], length)
        if sides[(stream * 2 + 1 - sender) * SIDE + D_EVENTS + E_RST]:
            note(E_DATA_AFTER_RST, side, frame, sides, events, counts)
    ttl = rows[p + TTL]
    if control & RST:
        if sides[f + D_RST_TTL] < 0:
            sides[f + D_RST_TTL] = ttl
            fins = sides[stream * 2 * SIDE + D_EVENTS + E_FIN] + sides[(stream * 2 + 1) * SIDE + D_EVENTS + E_FIN]
            sides[f + D_RST_AFTER_FIN] = 1 if fins else 0
        if streams[t + S_FIRST_RST] == 0:
            streams[t + S_FIRST_RST] = sender + 1
        note(E_RST, side, frame, sides, events, counts)
    else:
        if sides[f + D_TTL] < 0:
            sides[f + D_TTL] = ttl
            sides[f + D_TTL_MIN] = ttl
            sides[f + D_TTL_MAX] = ttl
        sides[f + D_TTL_MIN] = min(sides[f + D_TTL_MIN], ttl)
        sides[f + D_TTL_MAX] = max(sides[f + D_TTL_MAX], ttl)
        if not control & SYN:
            window = rows[p + WINDOW] << max(sides[f + D_SCALE], 0)
            if sides[f + D_SMALLEST_WINDOW] < 0 or window < sides[f + D_SMALLEST_WINDOW]:
                sides[f + D_SMALLEST_WINDOW] = window
    if control & FIN:
        note(E_FIN, side, frame, sides, events, counts)


def track(
    rows: Ints, begin: int, count: int, slots: Ints, streams: Ints, sides: Ints, pool: Ints, events: Ints,
    samples: Ints, counts: Ints,
) -> int:  # fmt: skip
    """Follow the TCP packets of rows `begin` to `count`; returns where it stopped for want of room."""
    for n in range(begin, count):
        p = n * PACKET
        if rows[p + PROTOCOL] != 6 or rows[p + FRAGMENT] == 2:
            continue
        if (
            counts[N_STREAMS] >= counts[N_STREAM_CAPACITY]
            or counts[N_POOL_CAPACITY] - counts[N_POOL] + counts[N_FREE_COUNT] < _POOL_AT_ONCE
            or counts[N_EVENT_CAPACITY] - counts[N_EVENTS] < _EVENTS_AT_ONCE
            or counts[N_SAMPLE_CAPACITY] - counts[N_SAMPLES] < _SAMPLES_AT_ONCE
        ):
            return n
        low = (rows[p + SOURCE] << 16) | rows[p + SOURCE_PORT]
        high = (rows[p + DESTINATION] << 16) | rows[p + DESTINATION_PORT]
        sender = 0
        if low > high:
            low, high = high, low
            sender = 1
        control = rows[p + CONTROL]
        seq = rows[p + SEQUENCE]
        length = rows[p + LENGTH]
        frame = rows[p + FRAME]
        now = rows[p + TIME]

        slot = slot_of(low, high, slots, streams, counts)
        stream = slots[slot] - 1
        reused = 0
        if stream >= 0 and control & (SYN | ACK) == SYN:
            base = sides[(stream * 2 + sender) * SIDE + D_BASE]
            if base >= 0 and base != seq:
                reused = 1
        if stream < 0 or reused:
            stream = open_stream(low, high, sender, p, rows, streams, sides, counts)
            slots[slot] = stream + 1
        side = stream * 2 + sender
        peer = stream * 2 + 1 - sender
        f = side * SIDE
        other_answer = control & (SYN | ACK) == SYN | ACK and sides[f + D_BASE] >= 0 and sides[f + D_BASE] != seq
        if sides[f + D_BASE] < 0 or control & SYN:
            sides[f + D_BASE] = seq

        handshake(p, stream, sender, rows, streams, sides, events, counts)
        flags = flag(p, stream, sender, rows, streams, sides)
        if reused or other_answer:
            flags |= 1 << E_REUSED_PORTS
        count_packet(p, stream, sender, rows, streams, sides, events, samples, counts)

        following = sides[f + D_NEXT]
        probe = flags & (1 << E_KEEP_ALIVE | 1 << E_ZERO_WINDOW_PROBE)
        if flags & (1 << E_LOST_SEGMENT):
            open_hole(side, following, seq, now, frame, rows[p + IP_ID], rows[p + TIMESTAMP], sides, pool, counts)
        new_data = 1 if length and not probe and (following < 0 or (seq - following) & SEQ < HALF) else 0
        if length or control & (SYN | FIN):
            # A probe is repeated on purpose.
            kind = 3 if probe else judge_segment(p, stream, sender, flags, rows, streams, sides, events, pool, counts)
            hold(p, stream, sender, kind, rows, sides, events, pool, counts)
        if new_data or flags & (1 << E_LOST_SEGMENT):
            held = rows[p + RECORDS]
            sides[f + D_LAST_WORDS] = BLANK if held & ENDS_BLANK else NO_BLANK if held & ENDS_OTHERWISE else 0
        client = streams[stream * STREAM + S_CLIENT]
        block = stream * STREAM + S_REQUEST_OPEN
        time_response(p, stream, sender, client, block, new_data, rows, streams, sides, samples, counts)
        if streams[stream * STREAM + S_KNOWN_BY] == 3:
            block = stream * STREAM + S_MIRRORED
            time_response(p, stream, sender, 1 - client, block, new_data, rows, streams, sides, samples, counts)

        # What the next packet is compared with.
        end = (seq + length + (1 if control & (SYN | FIN) else 0)) & SEQ
        if not flags & (1 << E_ZERO_WINDOW_PROBE):
            if following < 0 or control & SYN or (end != following and (end - following) & SEQ < HALF):
                if following != end:
                    sides[f + D_NEXT_TIME] = now
                sides[f + D_NEXT] = end
            seen = sides[f + D_SEEN_END]
            if seen < 0 or control & SYN or seq == seen:
                sides[f + D_SEEN_END] = sides[f + D_NEXT]
        sides[f + D_WINDOW] = rows[p + WINDOW]
        sides[f + D_SYN_WINDOW] = 1 if control & SYN else 0
        if control & ACK:
            ack = rows[p + ACKNOWLEDGED]
            if ack != sides[f + D_ACK]:
                sides[f + D_DUPLICATES] = 0
            else:
                if rows[p + TWIN] != 1:
                    sides[f + D_SAME_ACK_TIME] = now
                if flags & (1 << E_DUPLICATE_ACK):
                    sides[f + D_DUPLICATES] = max(sides[f + D_DUPLICATES], 0) + 1
            sides[f + D_ACK] = ack
            sides[f + D_ACK_TIME] = now
            if after(ack, sides[peer * SIDE + D_SEEN_END]):
                if sides[peer * SIDE + D_SEEN_END] == sides[peer * SIDE + D_NEXT]:
                    sides[peer * SIDE + D_DUPLICATES] = ACKED_AHEAD
                sides[peer * SIDE + D_SEEN_END] = sides[peer * SIDE + D_NEXT]
            sampled = counts[N_SAMPLES]
            if acknowledge(
                peer, ack, now, rows[p + DSACK_START], rows[p + DSACK_END], rows[p + ECHO], sides, events, pool,
                samples, counts,
            ):  # fmt: skip
                flags |= 1 << E_ACK_RTT
            if counts[N_SAMPLES] > sampled:
                rows[p + ROUND_TRIP] = counts[N_LAST_SAMPLE]
            if sides[peer * SIDE + D_HOLE_COUNT]:
                forget_holes(peer, ack, sides, events, pool, counts)
        else:
            # A reset without ACK, say: what this side acknowledged before is not compared with again.
            sides[f + D_DUPLICATES] = 0
            sides[f + D_ACK] = -1
            sides[f + D_ACK_TIME] = now
        peer_ack = sides[peer * SIDE + D_ACK]
        if length and peer_ack >= 0:
            flight = (sides[f + D_NEXT] - peer_ack) & SEQ
            if flight < HALF:
                sides[f + D_IN_FLIGHT] = max(sides[f + D_IN_FLIGHT], flight)
        sides[f + D_LAST_FLAGS] = flags
        rows[p + FLAGS] = flags
        rows[p + STREAM_NUMBER] = stream
        bit = 0
        if rows[p + TWIN] == 1:
            note_copy(p, side, flags, rows, sides, events, counts)
        remaining = flags
        while remaining:
            if remaining & 1:
                note(bit, side, frame, sides, events, counts)
            remaining >>= 1
            bit += 1
    return count


def finish(sides: Ints, pool: Ints, events: Ints, counts: Ints, begin: int) -> int:
    """Judge what was never acknowledged, side by side; returns where it stopped for want of room."""
    for side in range(begin, counts[N_STREAMS] * 2):
        if counts[N_EVENT_CAPACITY] - counts[N_EVENTS] < _EVENTS_AT_ONCE:
            return side
        row = sides[side * SIDE + D_HEAD]
        while row >= 0:
            g = row * SEGMENT
            if pool[g + G_SIZE] > 0:
                lose_repeated(g, side, sides, events, pool, counts)
            row = pool[g + G_NEXT]
        lose_doubted(side, sides, events, pool, counts)
    return counts[N_STREAMS] * 2


KERNELS = (judge_segment, hold, count_packet, track, finish)
