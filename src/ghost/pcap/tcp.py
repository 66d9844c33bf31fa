"""The TCP state machine, packet by packet: Wireshark's analysis flags, and where each repeated segment was lost.

Flags follow the definitions in the Wireshark User's Guide, section "TCP Analysis"; the order in which they are tried
and the cases it leaves open are those of TShark 4.0. Loss is concluded apart from the flags: a gap that is filled later
was lost before the capture point, a captured segment that the peer then needed again was lost after it (see `model`).
State is arrays only, so a batch may end anywhere and the kernel may be compiled or not.
"""

from __future__ import annotations

from ghost.pcap.flows import mixed_ends
from ghost.pcap.layout import (
    ACK,
    ACKED_AHEAD,
    ACKNOWLEDGED,
    BLANK,
    CONTROL,
    D_ACK,
    D_ACK_TIME,
    D_BASE,
    D_DOUBTED,
    D_DUPLICATES,
    D_EVENTS,
    D_FIRST_FRAME,
    D_FIRST_TIME,
    D_HEAD,
    D_HELD,
    D_HOLE_COUNT,
    D_HOLES,
    D_IN_FLIGHT,
    D_LARGEST,
    D_LAST_FLAGS,
    D_LAST_TIME,
    D_LAST_WORDS,
    D_MIN_RTT,
    D_MSS,
    D_NEXT,
    D_NEXT_TIME,
    D_OFFERED_SCALE,
    D_PACKETS,
    D_PAYLOAD,
    D_RST_AFTER_FIN,
    D_RST_TTL,
    D_SACK,
    D_SAME_ACK_TIME,
    D_SCALE,
    D_SEEN_END,
    D_SEGMENTS,
    D_SILENCE,
    D_SMALLEST_WINDOW,
    D_SYN_WINDOW,
    D_TAIL,
    D_TTL,
    D_TTL_MAX,
    D_TTL_MIN,
    D_WINDOW,
    DESTINATION,
    DESTINATION_PORT,
    DSACK_END,
    DSACK_START,
    E_ACK_RTT,
    E_ACKED_UNSEEN,
    E_COPY,
    E_COPY_ACK,
    E_COPY_RETRANSMISSION,
    E_COPY_RTO,
    E_DATA_AFTER_RST,
    E_DUPLICATE_ACK,
    E_FAST,
    E_FIN,
    E_KEEP_ALIVE,
    E_KEEP_ALIVE_ACK,
    E_LOST_SEGMENT,
    E_LOST_UPSTREAM,
    E_NEEDLESS,
    E_OUT_OF_ORDER,
    E_REORDERED,
    E_RETRANSMISSION,
    E_REUSED_PORTS,
    E_RST,
    E_RTO,
    E_SPURIOUS,
    E_SYN,
    E_SYN_ACK,
    E_WINDOW_FULL,
    E_WINDOW_UPDATE,
    E_ZERO_WINDOW,
    E_ZERO_WINDOW_PROBE,
    E_ZERO_WINDOW_PROBE_ACK,
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
    IP_ID,
    LENGTH,
    MSS,
    N_EVENT_CAPACITY,
    N_EVENTS,
    N_FREE_COUNT,
    N_LAST_SAMPLE,
    N_POOL,
    N_POOL_CAPACITY,
    N_SAMPLE_CAPACITY,
    N_SAMPLES,
    N_SEED,
    N_STREAM_CAPACITY,
    N_STREAMS,
    NO_BLANK,
    PACKET,
    PROTOCOL,
    RECORDS,
    ROUND_TRIP,
    RST,
    S_ASKED,
    S_CLIENT,
    S_CLIENT_SYN_TIME,
    S_COMPLETED,
    S_ENCAPSULATION,
    S_FIRST_FRAME,
    S_FIRST_RST,
    S_FIRST_TIME,
    S_GREETING,
    S_HIGH,
    S_INITIAL_RTT,
    S_KNOWN_BY,
    S_LAST_FRAME,
    S_LAST_TIME,
    S_LOW,
    S_MIRRORED,
    S_NOTICES,
    S_REQUEST_END,
    S_REQUEST_OPEN,
    S_REQUEST_START,
    S_REQUEST_TIME,
    S_REQUEST_UNACKED,
    S_SYN_ACK_REPEATS,
    S_SYN_ACK_TIME,
    S_SYN_REPEATS,
    S_SYN_TIME,
    S_TO_CLIENT,
    S_TO_SERVER,
    S_UNPROMPTED,
    S_WIRE_BYTES,
    SACK_PERMITTED,
    SAMPLE_DELTA,
    SAMPLE_REQUEST_ACKED,
    SAMPLE_RESPONSE,
    SCALE,
    SEGMENT,
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
from ghost.pcap.segments import (
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
)  # fmt: skip
from ghost.pcap.tls_tickets import asks, is_ticket
from ghost.pcap.vectors import Ints

_FAST_NS = 20_000_000
_ORDER_NS = 3_000_000
_TWO_TICKS_NS = 2_000_000
"""A timer of a sender waits for a round trip and two ticks at the least (RFC 6298, RFC 8985)."""
_AGAIN_NS = 500_000_000
"""Who says more so long after the last word was acknowledged does not go on with it, but begins anew."""
_BEHIND_NS = 20_000_000
"""What is sent at once in several packets comes within that."""
_PAUSE_NS = 1_000_000_000
"""A server that goes on with an answer pauses less."""
_NOTICE = 600
"""Bytes of what is told unasked; answers worth waiting for fill segments."""
_MOST_HELD = 4096
"""Unacknowledged segments remembered for each side; a side whose peer is not captured is held to `_MOST_UNHEARD`."""
_MOST_UNHEARD = 64
_SEQ = 0xFFFFFFFF
_HALF = 0x80000000

# Room that one packet may need at most: no kind of event of a side is logged more than SAMPLE_FRAMES times.
_EVENTS_AT_ONCE = 64
_POOL_AT_ONCE = 8
_SAMPLES_AT_ONCE = 8


def open_stream(low: int, high: int, sender: int, p: int, rows: Ints, streams: Ints, sides: Ints, counts: Ints) -> int:
    """A new stream and its two sides. Without a SYN the lower port tells the server, where one is well known."""
    stream = counts[N_STREAMS]
    counts[N_STREAMS] = stream + 1
    t = stream * STREAM
    streams[t + S_LOW] = low
    streams[t + S_HIGH] = high
    streams[t + S_CLIENT] = sender
    streams[t + S_KNOWN_BY] = 3
    low_port = low & 0xFFFF
    high_port = high & 0xFFFF
    if (low_port < 1024) != (high_port < 1024) or (low_port < 32768) != (high_port < 32768):
        streams[t + S_CLIENT] = 0 if high_port < low_port else 1
        streams[t + S_KNOWN_BY] = 2
    streams[t + S_FIRST_TIME] = rows[p + TIME]
    streams[t + S_LAST_TIME] = rows[p + TIME]
    streams[t + S_FIRST_FRAME] = rows[p + FRAME]
    streams[t + S_SYN_TIME] = -1
    streams[t + S_INITIAL_RTT] = -1
    streams[t + S_CLIENT_SYN_TIME] = -1
    streams[t + S_SYN_ACK_TIME] = -1
    streams[t + S_TO_SERVER] = -1
    streams[t + S_TO_CLIENT] = -1
    streams[t + S_GREETING] = -1
    for side in range(stream * 2, stream * 2 + 2):
        s = side * SIDE
        sides[s + D_BASE] = -1
        sides[s + D_NEXT] = -1
        sides[s + D_SEEN_END] = -1
        sides[s + D_ACK] = -1
        sides[s + D_WINDOW] = -1
        sides[s + D_SCALE] = -1
        sides[s + D_TTL] = -1
        sides[s + D_TTL_MIN] = -1
        sides[s + D_TTL_MAX] = -1
        sides[s + D_RST_TTL] = -1
        sides[s + D_SMALLEST_WINDOW] = -1
        sides[s + D_MIN_RTT] = -1
        sides[s + D_HEAD] = -1
        sides[s + D_TAIL] = -1
        sides[s + D_HOLES] = -1
        sides[s + D_DOUBTED] = -1
        sides[s + D_OFFERED_SCALE] = -1
    return stream


def slot_of(low: int, high: int, slots: Ints, streams: Ints, counts: Ints) -> int:
    """Where the stream of these endpoints is, or would be."""
    mask = len(slots) - 1
    slot = mixed_ends(low, high, counts[N_SEED]) & mask
    while slots[slot] != 0:
        t = (slots[slot] - 1) * STREAM
        if streams[t + S_LOW] == low and streams[t + S_HIGH] == high:
            break
        slot = (slot + 1) & mask
    return slot


def place_streams(slots: Ints, streams: Ints, counts: Ints) -> None:
    """Fill an empty slot table; the latest stream of the same endpoints wins."""
    for stream in range(counts[N_STREAMS]):
        t = stream * STREAM
        slots[slot_of(streams[t + S_LOW], streams[t + S_HIGH], slots, streams, counts)] = stream + 1


def handshake(
    p: int, stream: int, sender: int, rows: Ints, streams: Ints, sides: Ints, events: Ints, counts: Ints
) -> None:
    """Follow SYN, SYN-ACK and the client's ACK."""
    t = stream * STREAM
    side = stream * 2 + sender
    peer = stream * 2 + 1 - sender
    f = side * SIDE
    r = peer * SIDE
    control = rows[p + CONTROL]
    now = rows[p + TIME]
    if control & SYN:
        offered = rows[p + SCALE] - 1
        sides[f + D_OFFERED_SCALE] = offered
        sides[f + D_SCALE] = offered if offered >= 0 else -2
        if rows[p + MSS]:
            sides[f + D_MSS] = rows[p + MSS]
        if rows[p + SACK_PERMITTED]:
            sides[f + D_SACK] = 1
        if control & ACK:
            if sides[r + D_OFFERED_SCALE] < 0 or offered < 0:
                # RFC 7323: scaling is on only if both offer it.
                sides[f + D_SCALE] = -2
                if sides[r + D_SCALE] != -1:
                    sides[r + D_SCALE] = -2
            if streams[t + S_KNOWN_BY] > 1:
                streams[t + S_CLIENT] = 1 - sender
                streams[t + S_KNOWN_BY] = 1
            if sides[f + D_EVENTS + E_SYN_ACK] and not rows[p + TWIN]:
                streams[t + S_SYN_ACK_REPEATS] = streams[t + S_SYN_ACK_REPEATS] + 1
            if streams[t + S_SYN_ACK_TIME] < 0 and streams[t + S_CLIENT_SYN_TIME] >= 0:
                streams[t + S_TO_SERVER] = max(now - streams[t + S_CLIENT_SYN_TIME], 0)
            if not streams[t + S_COMPLETED]:
                streams[t + S_SYN_ACK_TIME] = now
            note(E_SYN_ACK, side, rows[p + FRAME], sides, events, counts)
        else:
            if streams[t + S_KNOWN_BY] > 0:
                streams[t + S_CLIENT] = sender
                streams[t + S_KNOWN_BY] = 0
            if sides[f + D_EVENTS + E_SYN] and not rows[p + TWIN]:
                streams[t + S_SYN_REPEATS] = streams[t + S_SYN_REPEATS] + 1
            if streams[t + S_SYN_ACK_TIME] < 0:
                streams[t + S_CLIENT_SYN_TIME] = now
            streams[t + S_SYN_TIME] = now
            note(E_SYN, side, rows[p + FRAME], sides, events, counts)
            if offered < 0:
                sides[r + D_SCALE] = -2
    elif control & ACK:
        if streams[t + S_SYN_TIME] >= 0 and streams[t + S_INITIAL_RTT] < 0:
            streams[t + S_INITIAL_RTT] = max(now - streams[t + S_SYN_TIME], 0)
        if (
            streams[t + S_SYN_ACK_TIME] >= 0
            and not streams[t + S_COMPLETED]
            and sender == streams[t + S_CLIENT]
            and not control & RST
        ):
            streams[t + S_COMPLETED] = 1
            streams[t + S_TO_CLIENT] = max(now - streams[t + S_SYN_ACK_TIME], 0)


def after(one: int, other: int) -> bool:
    """Whether sequence number `one` lies behind `other`, if that is known at all."""
    return other >= 0 and one != other and (one - other) & _SEQ < _HALF


def flag(p: int, stream: int, sender: int, rows: Ints, streams: Ints, sides: Ints) -> int:
    """Wireshark's flags of one packet, as bits; changes nothing."""
    f = (stream * 2 + sender) * SIDE
    r = (stream * 2 + 1 - sender) * SIDE
    control = rows[p + CONTROL]
    seq = rows[p + SEQUENCE]
    ack = rows[p + ACKNOWLEDGED]
    window = rows[p + WINDOW]
    length = rows[p + LENGTH]
    now = rows[p + TIME]
    following = sides[f + D_NEXT]
    plain = control & (SYN | FIN | RST) == 0
    flags = 0
    if length == 1 and seq == following and sides[r + D_WINDOW] == 0:
        flags = 1 << E_ZERO_WINDOW_PROBE
    else:
        if window == 0 and plain:
            flags |= 1 << E_ZERO_WINDOW
        if following >= 0 and seq != following and (seq - following) & _SEQ < _HALF and not control & RST:
            flags |= 1 << E_LOST_SEGMENT
        if length <= 1 and plain and following >= 0 and seq == (following - 1) & _SEQ:
            flags |= 1 << E_KEEP_ALIVE
        repeats = length == 0 and plain and seq == following and ack == sides[f + D_ACK]
        if repeats and window and window != sides[f + D_WINDOW]:
            flags |= 1 << E_WINDOW_UPDATE
        if length > 0 and plain and sides[r + D_SCALE] != -1 and sides[r + D_ACK] >= 0:
            scale = 0 if sides[r + D_SYN_WINDOW] else max(sides[r + D_SCALE], 0)
            edge = sides[r + D_ACK] + (sides[r + D_WINDOW] << scale)
            if (seq + length) & _SEQ == edge & _SEQ:
                flags |= 1 << E_WINDOW_FULL
        if repeats and window == sides[f + D_WINDOW]:
            if window and sides[r + D_LAST_FLAGS] & (1 << E_KEEP_ALIVE):
                flags |= 1 << E_KEEP_ALIVE_ACK
            elif window == 0 and sides[r + D_LAST_FLAGS] & (1 << E_ZERO_WINDOW_PROBE):
                flags |= 1 << E_ZERO_WINDOW_PROBE_ACK
            elif window:
                flags |= 1 << E_DUPLICATE_ACK
    duplicates = sides[r + D_DUPLICATES]
    if control & ACK:
        seen = sides[r + D_SEEN_END]
        if after(ack, seen):
            if duplicates == 0 or seen != sides[r + D_NEXT]:
                flags |= 1 << E_ACKED_UNSEEN
            if seen == sides[r + D_NEXT]:
                duplicates = ACKED_AHEAD
    if (length > 0 or control & (SYN | FIN)) and not flags & (1 << E_KEEP_ALIVE):
        end = (seq + length) & _SEQ
        behind = following >= 0 and (seq - following) & _SEQ >= _HALF
        if length > 1 and seq == (following - 1) & _SEQ:
            # The byte of a probe, sent once more with what follows it.
            behind = False
        full_end = (end + (1 if control & (SYN | FIN) else 0)) & _SEQ
        acked = sides[r + D_ACK]
        threshold = streams[stream * STREAM + S_INITIAL_RTT]
        if threshold < 0:
            threshold = _ORDER_NS
        if length > 0 and acked >= 0 and (acked - end) & _SEQ < _HALF:
            flags |= 1 << E_SPURIOUS | 1 << E_RETRANSMISSION
        elif (
            behind
            and (duplicates >= 2 or duplicates == ACKED_AHEAD)
            and acked == seq
            and now - sides[r + D_ACK_TIME] < _FAST_NS
        ):
            flags |= 1 << E_FAST | 1 << E_RETRANSMISSION
        elif behind and now - sides[f + D_NEXT_TIME] < threshold and full_end != following:
            flags |= 1 << E_OUT_OF_ORDER
        elif behind:
            flags |= 1 << E_RTO | 1 << E_RETRANSMISSION
    return flags


def is_copy(p: int, stream: int, sender: int, rows: Ints, streams: Ints, sides: Ints) -> bool:
    """Whether a packet that looks like one before is that packet once more, and no repeat of its sender.

    Without an IP id that is told by time: who repeats has waited for a timer, or heard of the loss, which takes a
    round trip and duplicate ACKs of the peer.
    """
    t = stream * STREAM
    f = (stream * 2 + sender) * SIDE
    r = (stream * 2 + 1 - sender) * SIDE
    ago = abs(rows[p + TWIN])
    if ago > 1:
        there = streams[t + S_TO_SERVER]
        back = streams[t + S_TO_CLIENT]
        round_trip = sides[f + D_MIN_RTT]
        if there >= 0 and back >= 0:
            # The first packets of a connection may be slow: addresses are resolved, paths set up.
            whole = round_trip + sides[r + D_MIN_RTT] if round_trip >= 0 and sides[r + D_MIN_RTT] >= 0 else there + back
            round_trip = min(whole, there + back)
        # What a timer sends again comes later, and has another time or IP id.
        timed = rows[p + TIMESTAMP] == 0 and rows[p + IP_ID] == 0 and ago >= max(round_trip, 0) + _TWO_TICKS_NS
        unasked = sides[r + D_PACKETS] > 0 and sides[r + D_SAME_ACK_TIME] < rows[p + TIME] - ago and not timed
        if rows[p + CONTROL] & SYN or unasked or ago < round_trip - round_trip // 8:
            rows[p + TWIN] = 1
    return rows[p + TWIN] == 1


def note_copy(p: int, side: int, flags: int, rows: Ints, sides: Ints, events: Ints, counts: Ints) -> None:
    """Count a copy, and which flags it has that a repeat or a duplicate ACK would have as well."""
    frame = rows[p + FRAME]
    if rows[p + LENGTH]:
        note(E_COPY, side, frame, sides, events, counts)
    if flags & (1 << E_RETRANSMISSION):
        note(E_COPY_RETRANSMISSION, side, frame, sides, events, counts)
    if flags & (1 << E_RTO):
        note(E_COPY_RTO, side, frame, sides, events, counts)
    if flags & (1 << E_DUPLICATE_ACK):
        note(E_COPY_ACK, side, frame, sides, events, counts)


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
    end = (seq + length + (1 if control & (SYN | FIN) else 0)) & _SEQ
    now = rows[p + TIME]
    frame = rows[p + FRAME]
    following = sides[f + D_NEXT]
    kind = 0
    if following >= 0 and (seq - following) & _SEQ >= _HALF:
        verdict = 0
        if sides[f + D_HOLE_COUNT]:
            round_trip = streams[stream * STREAM + S_INITIAL_RTT]
            round_trip = _ORDER_NS if round_trip < 0 else round_trip - round_trip // 8
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
            empty = length == 0 and acked >= 0 and (acked - end) & _SEQ < _HALF
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
    end = (start + length + (1 if rows[p + CONTROL] & (SYN | FIN) else 0)) & _SEQ
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


def time_response(
    p: int, stream: int, sender: int, client: int, block: int, new_data: int, rows: Ints, streams: Ints, sides: Ints,
    samples: Ints, counts: Ints,
) -> None:  # fmt: skip
    """From the last byte of a request to its ACK and to the first byte of the answer, where side `client` asks.

    `block` is where the five columns of the request begin.
    """
    t = stream * STREAM
    now = rows[p + TIME]
    primary = block == t + S_REQUEST_OPEN
    if sender == client:
        if new_data and (not primary or asks(p, t, rows, streams)):
            if streams[block] == 0:
                streams[block + S_REQUEST_START - S_REQUEST_OPEN] = rows[p + SEQUENCE]
            elif (
                streams[block + S_REQUEST_UNACKED - S_REQUEST_OPEN] == 0
                and now - streams[block + S_REQUEST_TIME - S_REQUEST_OPEN] >= _AGAIN_NS
                and primary
            ):
                streams[t + S_UNPROMPTED] = streams[t + S_UNPROMPTED] + 1
            streams[block] = 1
            streams[block + S_REQUEST_UNACKED - S_REQUEST_OPEN] = 1
            streams[block + S_REQUEST_TIME - S_REQUEST_OPEN] = now
            streams[block + S_REQUEST_END - S_REQUEST_OPEN] = (rows[p + SEQUENCE] + rows[p + LENGTH]) & _SEQ
        return
    server = stream * 2 + sender
    asked = streams[block + S_REQUEST_TIME - S_REQUEST_OPEN]
    waited = max(now - asked, 0)
    if (
        streams[block + S_REQUEST_UNACKED - S_REQUEST_OPEN]
        and rows[p + CONTROL] & ACK
        and (rows[p + ACKNOWLEDGED] - streams[block + S_REQUEST_END - S_REQUEST_OPEN]) & _SEQ < _HALF
    ):
        streams[block + S_REQUEST_UNACKED - S_REQUEST_OPEN] = 0
        sample(SAMPLE_REQUEST_ACKED, server, waited, samples, counts)
    behind = 1 if now - sides[server * SIDE + D_NEXT_TIME] < _BEHIND_NS else 0
    if new_data and primary and is_ticket(p, t, behind, rows, streams):
        # Nobody waits for it; who asked something does so still.
        streams[block] = streams[t + S_ASKED]
    elif new_data and streams[block]:
        streams[block] = 0
        sample(SAMPLE_RESPONSE, server, waited, samples, counts)
    elif new_data and asked == 0 and streams[t + S_GREETING] < 0 and streams[t + S_TO_CLIENT] >= 0:
        streams[t + S_GREETING] = max(now - streams[t + S_SYN_ACK_TIME] - streams[t + S_TO_CLIENT], 0)
    elif new_data and primary and asked and rows[p + LENGTH] < _NOTICE:
        paused = now - sides[server * SIDE + D_NEXT_TIME] >= _PAUSE_NS
        streams[t + S_NOTICES] = streams[t + S_NOTICES] + (1 if paused and sides[server * SIDE + D_NEXT] >= 0 else 0)


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
        new_data = 1 if length and not probe and (following < 0 or (seq - following) & _SEQ < _HALF) else 0
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
        end = (seq + length + (1 if control & (SYN | FIN) else 0)) & _SEQ
        if not flags & (1 << E_ZERO_WINDOW_PROBE):
            if following < 0 or control & SYN or (end != following and (end - following) & _SEQ < _HALF):
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
            flight = (sides[f + D_NEXT] - peer_ack) & _SEQ
            if flight < _HALF:
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


KERNELS = (
    open_stream, slot_of, after, place_streams, handshake, flag, is_copy, note_copy, judge_segment, hold, count_packet,
    time_response, track, finish,
)  # fmt: skip
