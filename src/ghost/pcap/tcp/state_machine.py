"""The TCP state machine, packet by packet: what each packet changes, and where each repeated segment was lost.

Loss is concluded apart from Wireshark's flags: a gap that is filled later was lost before the capture point, a captured
segment that the peer then needed again was lost after it (see `model`). State is arrays only, so a batch may end
anywhere and the kernel may be compiled or not.
"""

from __future__ import annotations

from ghost.pcap import layout as L
from ghost.pcap.array_types import (
    Counters,
    EventLog,
    HashSlots,
    PacketRows,
    SampleLog,
    SegmentPool,
    SideTable,
    StreamKeys,
    StreamTable,
)
from ghost.pcap.tcp.analysis_flags import ORDER_NS, after, flag
from ghost.pcap.tcp.duplicate_segments import is_copy, note_copy
from ghost.pcap.tcp.response_times import time_response
from ghost.pcap.tcp.scoreboard import (
    acknowledge,
    count_loss,
    count_repeat_loss,
    drop_head,
    fill_holes,
    forget_holes,
    hold_segment,
    lose_deferred,
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
    p: int, stream: int, sender: int, flags: int, rows: PacketRows, streams: StreamTable, sides: SideTable,
    events: EventLog, pool: SegmentPool, counts: Counters,
) -> int:  # fmt: skip
    """Judge what a segment with data, SYN or FIN shows about loss."""
    side = stream * 2 + sender
    f = side * L.SIDE
    control = rows[p + L.CONTROL]
    seq = rows[p + L.SEQUENCE]
    length = rows[p + L.LENGTH]
    end = (seq + length + (1 if control & (L.SYN | L.FIN) else 0)) & L.SEQ
    now = rows[p + L.TIME]
    frame = rows[p + L.FRAME]
    following = sides[f + L.D_NEXT]
    kind = 0
    if following >= 0 and (seq - following) & L.SEQ >= L.HALF:
        verdict = 0
        if sides[f + L.D_HOLE_COUNT]:
            round_trip = streams[stream * L.STREAM + L.S_INITIAL_RTT]
            round_trip = ORDER_NS if round_trip < 0 else round_trip - round_trip // 8
            verdict = fill_holes(
                side, seq, end, now, rows[p + L.IP_ID], rows[p + L.TIMESTAMP], round_trip, sides, pool, counts
            )
        if verdict == 1:
            count_loss(L.E_LOST_UPSTREAM, side, frame, length, sides, events, counts)
        elif verdict == 2:
            note(L.E_REORDERED, side, frame, sides, events, counts)
        elif rows[p + L.DUPLICATE] and is_copy(p, stream, sender, rows, streams, sides):
            kind = 3
        else:
            mark_repeated(side, seq, sides, pool)
            kind = 4 if rows[p + L.DUPLICATE] > 0 else 1
            acked = sides[(stream * 2 + 1 - sender) * L.SIDE + L.D_ACK]
            # Wireshark's flag is for data alone; a SYN-ACK or a FIN is repeated needlessly as well.
            empty = length == 0 and acked >= 0 and (acked - end) & L.SEQ < L.HALF
            if flags & (1 << L.E_SPURIOUS) or empty:
                kind = 3
                note(L.E_NEEDLESS, side, frame, sides, events, counts)
    return kind


def hold(
    p: int,
    stream: int,
    sender: int,
    kind: int,
    rows: PacketRows,
    sides: SideTable,
    events: EventLog,
    pool: SegmentPool,
    counts: Counters,
) -> None:
    """Remember a segment until it is acknowledged; beyond the limit the oldest is judged and forgotten."""
    side = stream * 2 + sender
    f = side * L.SIDE
    length = rows[p + L.LENGTH]
    start = rows[p + L.SEQUENCE]
    end = (start + length + (1 if rows[p + L.CONTROL] & (L.SYN | L.FIN) else 0)) & L.SEQ
    hold_segment(
        side, start, end, kind, length, rows[p + L.TIME], rows[p + L.FRAME], rows[p + L.TIMESTAMP], sides, pool, counts
    )
    limit = _MOST_HELD if sides[(stream * 2 + 1 - sender) * L.SIDE + L.D_PACKETS] else _MOST_UNHEARD
    if sides[f + L.D_HELD] > limit:
        g = sides[f + L.D_HEAD] * L.SEGMENT
        if pool[g + L.G_SIZE] > 0:
            count_repeat_loss(g, side, sides, events, pool, counts)
        drop_head(side, sides, pool, counts)


def count_packet(
    p: int,
    stream: int,
    sender: int,
    rows: PacketRows,
    streams: StreamTable,
    sides: SideTable,
    events: EventLog,
    samples: SampleLog,
    counts: Counters,
) -> None:
    """Totals, TTLs, times and windows of the sending side."""
    t = stream * L.STREAM
    side = stream * 2 + sender
    f = side * L.SIDE
    control = rows[p + L.CONTROL]
    length = rows[p + L.LENGTH]
    now = rows[p + L.TIME]
    frame = rows[p + L.FRAME]
    streams[t + L.S_LAST_FRAME] = frame
    streams[t + L.S_FIRST_TIME] = min(streams[t + L.S_FIRST_TIME], now)
    streams[t + L.S_LAST_TIME] = max(streams[t + L.S_LAST_TIME], now)
    streams[t + L.S_WIRE_BYTES] = streams[t + L.S_WIRE_BYTES] + rows[p + L.WIRE]
    streams[t + L.S_ENCAPSULATION] = streams[t + L.S_ENCAPSULATION] | rows[p + L.ENCAPSULATION]
    if sides[f + L.D_PACKETS]:
        pause = max(now - sides[f + L.D_LAST_TIME], 0)
        sample(L.SAMPLE_DELTA, side, pause, samples, counts)
        if pause > sides[f + L.D_SILENCE]:
            sides[f + L.D_SILENCE] = pause
            sides[f + L.D_SILENT_FROM] = sides[f + L.D_LAST_TIME]
        sides[f + L.D_LAST_TIME] = max(now, sides[f + L.D_LAST_TIME])
    else:
        sides[f + L.D_FIRST_TIME] = now
        sides[f + L.D_LAST_TIME] = now
        sides[f + L.D_FIRST_FRAME] = frame
    sides[f + L.D_PACKETS] = sides[f + L.D_PACKETS] + 1
    if length:
        sides[f + L.D_PAYLOAD] = sides[f + L.D_PAYLOAD] + length
        sides[f + L.D_SEGMENTS] = sides[f + L.D_SEGMENTS] + 1
        sides[f + L.D_LARGEST] = max(sides[f + L.D_LARGEST], length)
        if sides[(stream * 2 + 1 - sender) * L.SIDE + L.D_EVENTS + L.E_RST]:
            note(L.E_DATA_AFTER_RST, side, frame, sides, events, counts)
    ttl = rows[p + L.TTL]
    if control & L.RST:
        if sides[f + L.D_RST_TTL] < 0:
            sides[f + L.D_RST_TTL] = ttl
            fins = (
                sides[stream * 2 * L.SIDE + L.D_EVENTS + L.E_FIN]
                + sides[(stream * 2 + 1) * L.SIDE + L.D_EVENTS + L.E_FIN]
            )
            sides[f + L.D_RST_AFTER_FIN] = 1 if fins else 0
        if streams[t + L.S_FIRST_RST] == 0:
            streams[t + L.S_FIRST_RST] = sender + 1
        note(L.E_RST, side, frame, sides, events, counts)
    else:
        if sides[f + L.D_TTL] < 0:
            sides[f + L.D_TTL] = ttl
            sides[f + L.D_TTL_MIN] = ttl
            sides[f + L.D_TTL_MAX] = ttl
        sides[f + L.D_TTL_MIN] = min(sides[f + L.D_TTL_MIN], ttl)
        sides[f + L.D_TTL_MAX] = max(sides[f + L.D_TTL_MAX], ttl)
        if not control & L.SYN:
            window = rows[p + L.WINDOW] << max(sides[f + L.D_SCALE], 0)
            if sides[f + L.D_SMALLEST_WINDOW] < 0 or window < sides[f + L.D_SMALLEST_WINDOW]:
                sides[f + L.D_SMALLEST_WINDOW] = window
    if control & L.FIN:
        note(L.E_FIN, side, frame, sides, events, counts)


def track(
    rows: PacketRows, begin: int, count: int, slots: HashSlots, keys: StreamKeys, streams: StreamTable,
    sides: SideTable, pool: SegmentPool, events: EventLog, samples: SampleLog, counts: Counters,
) -> int:  # fmt: skip
    """Follow the TCP packets of rows `begin` to `count`; returns where it stopped for want of room or of a packed
    stream. Further packed streams that the rows need are listed as well."""
    wanting = count
    for n in range(begin, count):
        p = n * L.PACKET
        if rows[p + L.PROTOCOL] != 6 or rows[p + L.FRAGMENT] == 2:
            continue
        if (
            counts[L.N_ROWS] >= counts[L.N_ROW_CAPACITY]
            or counts[L.N_STREAMS] >= counts[L.N_KEY_CAPACITY]
            or counts[L.N_WANTED] >= L.MOST_WANTED
            or counts[L.N_POOL_CAPACITY] - counts[L.N_POOL] + counts[L.N_FREE_COUNT] < _POOL_AT_ONCE
            or counts[L.N_EVENT_CAPACITY] - counts[L.N_EVENTS] < _EVENTS_AT_ONCE
            or counts[L.N_SAMPLE_CAPACITY] - counts[L.N_SAMPLES] < _SAMPLES_AT_ONCE
        ):
            return min(n, wanting)
        low = (rows[p + L.SOURCE] << 16) | rows[p + L.SOURCE_PORT]
        high = (rows[p + L.DESTINATION] << 16) | rows[p + L.DESTINATION_PORT]
        sender = 0
        if low > high:
            low, high = high, low
            sender = 1
        control = rows[p + L.CONTROL]
        seq = rows[p + L.SEQUENCE]
        length = rows[p + L.LENGTH]
        frame = rows[p + L.FRAME]
        now = rows[p + L.TIME]

        slot = slot_of(low, high, slots, keys, counts)
        number = slots[slot] - 1
        stream = keys[number * L.KEY + L.K_ROW] if number >= 0 else -1
        if number >= 0 and stream < 0:
            counts[L.COUNTERS + counts[L.N_WANTED]] = number
            counts[L.N_WANTED] = counts[L.N_WANTED] + 1
            wanting = min(n, wanting)
        if wanting < count:
            continue
        reused = 0
        if stream >= 0 and control & (L.SYN | L.ACK) == L.SYN:
            base = sides[(stream * 2 + sender) * L.SIDE + L.D_BASE]
            if base >= 0 and base != seq:
                reused = 1
        if stream < 0 or reused:
            stream = open_stream(low, high, sender, p, rows, keys, streams, sides, counts)
            slots[slot] = counts[L.N_STREAMS]
        side = stream * 2 + sender
        peer = stream * 2 + 1 - sender
        f = side * L.SIDE
        other_answer = (
            control & (L.SYN | L.ACK) == L.SYN | L.ACK and sides[f + L.D_BASE] >= 0 and sides[f + L.D_BASE] != seq
        )
        if sides[f + L.D_BASE] < 0 or control & L.SYN:
            sides[f + L.D_BASE] = seq

        handshake(p, stream, sender, rows, streams, sides, events, counts)
        flags = flag(p, stream, sender, rows, streams, sides)
        if reused or other_answer:
            flags |= 1 << L.E_REUSED_PORTS
        count_packet(p, stream, sender, rows, streams, sides, events, samples, counts)

        following = sides[f + L.D_NEXT]
        probe = flags & (1 << L.E_KEEP_ALIVE | 1 << L.E_ZERO_WINDOW_PROBE)
        if flags & (1 << L.E_LOST_SEGMENT):
            open_hole(side, following, seq, now, frame, rows[p + L.IP_ID], rows[p + L.TIMESTAMP], sides, pool, counts)
        new_data = 1 if length and not probe and (following < 0 or (seq - following) & L.SEQ < L.HALF) else 0
        if length or control & (L.SYN | L.FIN):
            # A probe is repeated on purpose.
            kind = 3 if probe else judge_segment(p, stream, sender, flags, rows, streams, sides, events, pool, counts)
            hold(p, stream, sender, kind, rows, sides, events, pool, counts)
        if new_data or flags & (1 << L.E_LOST_SEGMENT):
            held = rows[p + L.RECORDS]
            sides[f + L.D_LAST_WORDS] = L.BLANK if held & L.ENDS_BLANK else L.NO_BLANK if held & L.ENDS_OTHERWISE else 0
        client = streams[stream * L.STREAM + L.S_CLIENT]
        block = stream * L.STREAM + L.S_REQUEST_OPEN
        time_response(p, stream, sender, client, block, new_data, rows, streams, sides, samples, counts)
        if streams[stream * L.STREAM + L.S_KNOWN_BY] == 3:
            block = stream * L.STREAM + L.S_MIRRORED
            time_response(p, stream, sender, 1 - client, block, new_data, rows, streams, sides, samples, counts)

        # What the next packet is compared with.
        end = (seq + length + (1 if control & (L.SYN | L.FIN) else 0)) & L.SEQ
        if not flags & (1 << L.E_ZERO_WINDOW_PROBE):
            if following < 0 or control & L.SYN or (end != following and (end - following) & L.SEQ < L.HALF):
                if following != end:
                    sides[f + L.D_NEXT_TIME] = now
                sides[f + L.D_NEXT] = end
            seen = sides[f + L.D_SEEN_END]
            if seen < 0 or control & L.SYN or seq == seen:
                sides[f + L.D_SEEN_END] = sides[f + L.D_NEXT]
        sides[f + L.D_WINDOW] = rows[p + L.WINDOW]
        sides[f + L.D_SYN_WINDOW] = 1 if control & L.SYN else 0
        if control & L.ACK:
            ack = rows[p + L.ACKNOWLEDGED]
            if ack != sides[f + L.D_ACK]:
                sides[f + L.D_DUPLICATES] = 0
            else:
                if rows[p + L.DUPLICATE] != 1:
                    sides[f + L.D_SAME_ACK_TIME] = now
                if flags & (1 << L.E_DUPLICATE_ACK):
                    sides[f + L.D_DUPLICATES] = max(sides[f + L.D_DUPLICATES], 0) + 1
            sides[f + L.D_ACK] = ack
            sides[f + L.D_ACK_TIME] = now
            if after(ack, sides[peer * L.SIDE + L.D_SEEN_END]):
                if sides[peer * L.SIDE + L.D_SEEN_END] == sides[peer * L.SIDE + L.D_NEXT]:
                    sides[peer * L.SIDE + L.D_DUPLICATES] = L.ACKED_AHEAD
                sides[peer * L.SIDE + L.D_SEEN_END] = sides[peer * L.SIDE + L.D_NEXT]
            sampled = counts[L.N_SAMPLES]
            if acknowledge(
                peer, ack, now, rows[p + L.DSACK_START], rows[p + L.DSACK_END], rows[p + L.ECHO], sides, events, pool,
                samples, counts,
            ):  # fmt: skip
                flags |= 1 << L.E_ACK_RTT
            if counts[L.N_SAMPLES] > sampled:
                rows[p + L.ROUND_TRIP] = counts[L.N_LAST_SAMPLE]
            if sides[peer * L.SIDE + L.D_HOLE_COUNT]:
                forget_holes(peer, ack, sides, events, pool, counts)
        else:
            # A reset without ACK, say: what this side acknowledged before is not compared with again.
            sides[f + L.D_DUPLICATES] = 0
            sides[f + L.D_ACK] = -1
            sides[f + L.D_ACK_TIME] = now
        peer_ack = sides[peer * L.SIDE + L.D_ACK]
        if length and peer_ack >= 0:
            flight = (sides[f + L.D_NEXT] - peer_ack) & L.SEQ
            if flight < L.HALF:
                sides[f + L.D_IN_FLIGHT] = max(sides[f + L.D_IN_FLIGHT], flight)
        sides[f + L.D_LAST_FLAGS] = flags
        rows[p + L.FLAGS] = flags
        rows[p + L.STREAM_NUMBER] = streams[stream * L.STREAM + L.S_NUMBER]
        bit = 0
        if rows[p + L.DUPLICATE] == 1:
            note_copy(p, side, flags, rows, sides, events, counts)
        remaining = flags
        while remaining:
            if remaining & 1:
                note(bit, side, frame, sides, events, counts)
            remaining >>= 1
            bit += 1
    return wanting


def finish(sides: SideTable, pool: SegmentPool, events: EventLog, counts: Counters, begin: int) -> int:
    """Judge what was never acknowledged, side by side; returns where it stopped for want of room."""
    for side in range(begin, counts[L.N_ROWS] * 2):
        if counts[L.N_EVENT_CAPACITY] - counts[L.N_EVENTS] < _EVENTS_AT_ONCE:
            return side
        row = sides[side * L.SIDE + L.D_HEAD]
        while row >= 0:
            g = row * L.SEGMENT
            if pool[g + L.G_SIZE] > 0:
                count_repeat_loss(g, side, sides, events, pool, counts)
            row = pool[g + L.G_NEXT]
        lose_deferred(side, sides, events, pool, counts)
    return counts[L.N_ROWS] * 2


KERNELS = (judge_segment, hold, count_packet, track, finish)
