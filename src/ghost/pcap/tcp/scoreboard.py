"""What one side of a stream has sent and the peer not acknowledged, and the gaps in it: where segments were lost.

Held segments and holes are rows of one pool, linked by side. A segment below the next expected sequence number either
fills a hole (its first copy never reached the capture point) or repeats what was captured (the copy was lost behind
it, or the repeat was needless); the second is judged when the peer acknowledges, or when it reports a duplicate (RFC
2883), which it does as soon as the repeat arrives: that is after the ACK of an original that was only delayed.
"""

from __future__ import annotations

from ghost.pcap.array_types import Ints
from ghost.pcap.layout import (
    D_DOUBTED,
    D_DOUBTED_COUNT,
    D_EVENTS,
    D_HEAD,
    D_HELD,
    D_HOLE_COUNT,
    D_HOLES,
    D_LARGEST_ACKED,
    D_LARGEST_LOST,
    D_MIN_RTT,
    D_SMALLEST_LOST,
    D_TAIL,
    E_ACK_RTT,
    E_CAPTURE_GAP,
    E_DOUBTFUL,
    E_LOST_DOWNSTREAM,
    E_NEEDLESS,
    E_ZERO_WINDOW_PROBE_ACK,
    G_END,
    G_FRAME,
    G_KIND,
    G_NEXT,
    G_PREVIOUS,
    G_SIZE,
    G_START,
    G_TIME,
    G_TIMESTAMP,
    HALF,
    N_EVENTS,
    N_FREE,
    N_FREE_COUNT,
    N_LAST_SAMPLE,
    N_POOL,
    N_SAMPLES,
    SAMPLE_FRAMES,
    SAMPLE_RTT,
    SAMPLES,
    SEGMENT,
    SEQ,
    SIDE,
)

_MOST_HOLES = 256
_MOST_DOUBTED = 32
_SHORT = 0xFFFFFFFF


def note(kind: int, side: int, frame: int, sides: Ints, events: Ints, counts: Ints) -> None:
    """Count an event of a side; the first frames are kept as evidence, where the model has a place for them."""
    at = side * SIDE + D_EVENTS + kind
    sides[at] = sides[at] + 1
    if sides[at] <= SAMPLE_FRAMES and not E_ZERO_WINDOW_PROBE_ACK <= kind <= E_ACK_RTT:
        row = counts[N_EVENTS] * 3
        events[row] = side
        events[row + 1] = kind
        events[row + 2] = frame
        counts[N_EVENTS] = counts[N_EVENTS] + 1


def sample(kind: int, side: int, value: int, samples: Ints, counts: Ints) -> None:
    at = counts[N_SAMPLES]
    key = side * SAMPLES + kind
    if value <= _SHORT:
        samples[at] = (key << 32) | value
        counts[N_SAMPLES] = at + 1
    else:
        samples[at] = -1 - key
        samples[at + 1] = value
        counts[N_SAMPLES] = at + 2
    counts[N_LAST_SAMPLE] = value


def take_segment(pool: Ints, counts: Ints) -> int:
    """A free row of the pool."""
    row = counts[N_FREE]
    if row >= 0:
        counts[N_FREE] = pool[row * SEGMENT + G_NEXT]
        counts[N_FREE_COUNT] = counts[N_FREE_COUNT] - 1
    else:
        row = counts[N_POOL]
        counts[N_POOL] = row + 1
    return row


def free_segment(row: int, pool: Ints, counts: Ints) -> None:
    pool[row * SEGMENT + G_NEXT] = counts[N_FREE]
    counts[N_FREE] = row
    counts[N_FREE_COUNT] = counts[N_FREE_COUNT] + 1


def lose(kind: int, side: int, frame: int, size: int, sides: Ints, events: Ints, counts: Ints) -> None:
    """Note a lost segment of a side."""
    note(kind, side, frame, sides, events, counts)
    s = side * SIDE
    if size > sides[s + D_LARGEST_LOST]:
        sides[s + D_LARGEST_LOST] = size
    if size > 0 and (sides[s + D_SMALLEST_LOST] == 0 or size < sides[s + D_SMALLEST_LOST]):
        sides[s + D_SMALLEST_LOST] = size


def lose_repeated(g: int, side: int, sides: Ints, events: Ints, pool: Ints, counts: Ints) -> None:
    """Note that a held segment was lost, if it is a repeat."""
    kind = pool[g + G_KIND]
    if kind == 1 or kind == 4:
        lose(E_LOST_DOWNSTREAM, side, pool[g + G_FRAME], pool[g + G_SIZE], sides, events, counts)
    if kind == 4:
        note(E_DOUBTFUL, side, pool[g + G_FRAME], sides, events, counts)


def hold_segment(
    side: int, start: int, end: int, kind: int, size: int, now: int, frame: int, timestamp: int,
    sides: Ints, pool: Ints, counts: Ints,
) -> None:  # fmt: skip
    """Remember a segment until it is acknowledged, in the order of its end."""
    row = take_segment(pool, counts)
    g = row * SEGMENT
    pool[g + G_START] = start
    pool[g + G_END] = end
    pool[g + G_TIME] = now
    pool[g + G_FRAME] = frame
    pool[g + G_KIND] = kind
    pool[g + G_SIZE] = size
    pool[g + G_TIMESTAMP] = timestamp
    s = side * SIDE
    before = sides[s + D_TAIL]
    after = -1
    while (
        before >= 0 and (pool[before * SEGMENT + G_END] - end) & SEQ < HALF and (pool[before * SEGMENT + G_END] != end)
    ):
        after = before
        before = pool[before * SEGMENT + G_PREVIOUS]
    pool[g + G_PREVIOUS] = before
    pool[g + G_NEXT] = after
    if before >= 0:
        pool[before * SEGMENT + G_NEXT] = row
    else:
        sides[s + D_HEAD] = row
    if after >= 0:
        pool[after * SEGMENT + G_PREVIOUS] = row
    else:
        sides[s + D_TAIL] = row
    sides[s + D_HELD] = sides[s + D_HELD] + 1


def drop_head(side: int, sides: Ints, pool: Ints, counts: Ints) -> None:
    s = side * SIDE
    row = sides[s + D_HEAD]
    following = pool[row * SEGMENT + G_NEXT]
    sides[s + D_HEAD] = following
    if following >= 0:
        pool[following * SEGMENT + G_PREVIOUS] = -1
    else:
        sides[s + D_TAIL] = -1
    sides[s + D_HELD] = sides[s + D_HELD] - 1
    free_segment(row, pool, counts)


def mark_repeated(side: int, start: int, sides: Ints, pool: Ints) -> int:
    """Mark held segments that the repeat of `start` overlaps: their ACK tells no round trip. Returns how many."""
    row = sides[side * SIDE + D_TAIL]
    found = 0
    while row >= 0:
        g = row * SEGMENT
        # Ends are in order: nothing before this one reaches beyond `start`.
        if (start - pool[g + G_END]) & SEQ < HALF:
            break
        if pool[g + G_KIND] == 0:
            pool[g + G_KIND] = 2
        found += 1
        row = pool[g + G_PREVIOUS]
    return found


def open_hole(
    side: int, start: int, end: int, now: int, frame: int, ip_id: int, timestamp: int,
    sides: Ints, pool: Ints, counts: Ints,
) -> None:  # fmt: skip
    s = side * SIDE
    if sides[s + D_HOLE_COUNT] >= _MOST_HOLES:
        return
    row = take_segment(pool, counts)
    g = row * SEGMENT
    pool[g + G_START] = start
    pool[g + G_END] = end
    pool[g + G_TIME] = now
    pool[g + G_FRAME] = frame
    pool[g + G_SIZE] = ip_id
    pool[g + G_TIMESTAMP] = timestamp
    pool[g + G_NEXT] = sides[s + D_HOLES]
    sides[s + D_HOLES] = row
    sides[s + D_HOLE_COUNT] = sides[s + D_HOLE_COUNT] + 1


def unlink(row: int, before: int, first: int, count: int, sides: Ints, pool: Ints, counts: Ints) -> None:
    """Take a row out of a list of a side, whose first row and length are in the fields `first` and `count`."""
    following = pool[row * SEGMENT + G_NEXT]
    if before >= 0:
        pool[before * SEGMENT + G_NEXT] = following
    else:
        sides[first] = following
    sides[count] = sides[count] - 1
    free_segment(row, pool, counts)


def fill_holes(
    side: int, start: int, end: int, now: int, ip_id: int, timestamp: int, round_trip: int,
    sides: Ints, pool: Ints, counts: Ints,
) -> int:  # fmt: skip
    """Take `start` to `end` out of the side's holes: 0 none was there, 1 a repeat filled it, 2 it was only late."""
    s = side * SIDE
    row = sides[s + D_HOLES]
    before = -1
    verdict = 0
    while row >= 0:
        g = row * SEGMENT
        following = pool[g + G_NEXT]
        low = pool[g + G_START]
        high = pool[g + G_END]
        # Overlap: start < high and end > low.
        if start != high and (high - start) & SEQ < HALF and end != low and (end - low) & SEQ < HALF:
            # A repeat was sent after the segment that opened the hole, a late one before it. The sender's clock says
            # which; then its IP id; then whether a round trip had time to pass.
            newer = (timestamp - pool[g + G_TIMESTAMP]) & SEQ
            step = (ip_id - pool[g + G_SIZE]) & 0xFFFF
            if timestamp and pool[g + G_TIMESTAMP] and newer:
                late = newer >= HALF
            elif ip_id and pool[g + G_SIZE] and step:
                late = step >= 0x8000
            else:
                late = now - pool[g + G_TIME] < round_trip
            verdict = 2 if late else 1
            begins = (start - low) & SEQ < HALF and start != low
            ends = (high - end) & SEQ < HALF and high != end
            if begins and ends:
                pool[g + G_END] = start
                open_hole(
                    side, end, high, pool[g + G_TIME], pool[g + G_FRAME], pool[g + G_SIZE], pool[g + G_TIMESTAMP],
                    sides, pool, counts,
                )  # fmt: skip
                return verdict
            if begins:
                pool[g + G_END] = start
                before = row
            elif ends:
                pool[g + G_START] = end
                before = row
            else:
                unlink(row, before, s + D_HOLES, s + D_HOLE_COUNT, sides, pool, counts)
        else:
            before = row
        row = following
    return verdict


def forget_holes(side: int, ack: int, sides: Ints, events: Ints, pool: Ints, counts: Ints) -> None:
    """The peer acknowledged beyond a hole: what was in it travelled, and only the capture lacks it."""
    s = side * SIDE
    row = sides[s + D_HOLES]
    before = -1
    while row >= 0:
        g = row * SEGMENT
        following = pool[g + G_NEXT]
        if (ack - pool[g + G_END]) & SEQ < HALF:
            note(E_CAPTURE_GAP, side, pool[g + G_FRAME], sides, events, counts)
            unlink(row, before, s + D_HOLES, s + D_HOLE_COUNT, sides, pool, counts)
        else:
            before = row
        row = following


def doubt_head(side: int, sides: Ints, pool: Ints, counts: Ints) -> None:
    """Keep the repeat at the head of what is held, until the receiver reports it as a duplicate, or for good."""
    s = side * SIDE
    row = take_segment(pool, counts)
    head = sides[s + D_HEAD] * SEGMENT
    for column in range(SEGMENT):
        pool[row * SEGMENT + column] = pool[head + column]
    pool[row * SEGMENT + G_NEXT] = sides[s + D_DOUBTED]
    sides[s + D_DOUBTED] = row
    sides[s + D_DOUBTED_COUNT] = sides[s + D_DOUBTED_COUNT] + 1


def report_duplicate(side: int, start: int, end: int, sides: Ints, events: Ints, pool: Ints, counts: Ints) -> None:
    """The peer had what came again from `start` to `end`: the latest doubted repeat of it was needless."""
    s = side * SIDE
    row = sides[s + D_DOUBTED]
    before = -1
    while row >= 0:
        g = row * SEGMENT
        following = pool[g + G_NEXT]
        if (pool[g + G_START] - start) & SEQ < HALF and (end - pool[g + G_END]) & SEQ < HALF:
            note(E_NEEDLESS, side, pool[g + G_FRAME], sides, events, counts)
            unlink(row, before, s + D_DOUBTED, s + D_DOUBTED_COUNT, sides, pool, counts)
            return
        before = row
        row = following


def lose_doubted(side: int, sides: Ints, events: Ints, pool: Ints, counts: Ints) -> None:
    """Nobody reported them: they were needed."""
    row = sides[side * SIDE + D_DOUBTED]
    while row >= 0:
        lose_repeated(row * SEGMENT, side, sides, events, pool, counts)
        row = pool[row * SEGMENT + G_NEXT]


def acknowledge(
    side: int, ack: int, now: int, dsack_start: int, dsack_end: int, echo: int, sides: Ints, events: Ints, pool: Ints,
    samples: Ints, counts: Ints,
) -> int:  # fmt: skip
    """Release what the peer acknowledged of `side`'s segments and judge its repeats. 1 if it ends a held segment.

    `echo` is the timestamp that the peer echoes, as rows hold it: an original's own shows that it arrived (RFC 3522).
    """
    s = side * SIDE
    exact = 0
    arrived_from = -1
    arrived_to = -1
    others = 0
    shortest = sides[s + D_MIN_RTT]
    if dsack_end != dsack_start and sides[s + D_DOUBTED] >= 0:
        report_duplicate(side, dsack_start, dsack_end, sides, events, pool, counts)
    while sides[s + D_HEAD] >= 0:
        g = sides[s + D_HEAD] * SEGMENT
        end = pool[g + G_END]
        if (ack - end) & SEQ >= HALF:
            break
        kind = pool[g + G_KIND]
        elapsed = now - pool[g + G_TIME]
        size = pool[g + G_SIZE]
        if end == ack:
            if kind == 0 and elapsed >= 0 and exact == 0:
                # Karn: only a segment sent once tells a round trip.
                sample(SAMPLE_RTT, side, elapsed, samples, counts)
                if sides[s + D_MIN_RTT] < 0 or elapsed < sides[s + D_MIN_RTT]:
                    sides[s + D_MIN_RTT] = elapsed
            if elapsed:
                exact = 1
        if echo and pool[g + G_TIMESTAMP] == echo:
            if kind == 2:
                arrived_from = pool[g + G_START]
                arrived_to = end
            elif kind == 0:
                others = 1  # the echo may be of this one
        if kind == 1 or kind == 4:
            newer = (pool[g + G_TIMESTAMP] - echo) & SEQ
            delayed = (
                others == 0
                and arrived_to == end
                and arrived_from == pool[g + G_START]
                and pool[g + G_TIMESTAMP] > 0
                and newer > 0
                and newer < HALF
            )
            reported = (
                dsack_end != dsack_start
                and (pool[g + G_START] - dsack_start) & SEQ < HALF
                and ((dsack_end - end) & SEQ < HALF)
            )
            if reported or delayed or (shortest > 0 and elapsed * 2 < shortest):
                # The receiver says it had it, or answers the original, or sooner than the repeat could reach it.
                note(E_NEEDLESS, side, pool[g + G_FRAME], sides, events, counts)
            elif size and sides[s + D_DOUBTED_COUNT] < _MOST_DOUBTED:
                doubt_head(side, sides, pool, counts)
            else:
                lose_repeated(g, side, sides, events, pool, counts)
        if size > sides[s + D_LARGEST_ACKED]:
            sides[s + D_LARGEST_ACKED] = size
        drop_head(side, sides, pool, counts)
    return exact


KERNELS = (
    note, sample, take_segment, free_segment, lose, lose_repeated, hold_segment, drop_head, mark_repeated, open_hole,
    unlink, fill_holes, forget_holes, doubt_head, report_duplicate, lose_doubted, acknowledge,
)  # fmt: skip
