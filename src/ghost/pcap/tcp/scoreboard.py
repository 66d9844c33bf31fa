"""What one side of a stream has sent and the peer not acknowledged, and the gaps in it: where segments were lost.

Held segments and holes are rows of one pool, linked by side. A segment below the next expected sequence number either
fills a hole (its first copy never reached the capture point) or repeats what was captured (the copy was lost behind
it, or the repeat was needless); the second is judged when the peer acknowledges, or when it reports a duplicate (RFC
2883), which it does as soon as the repeat arrives: that is after the ACK of an original that was only delayed.
"""

from __future__ import annotations

from ghost.pcap import layout as L
from ghost.pcap.array_types import Counters, EventLog, SampleLog, SegmentPool, SideTable

_MOST_HOLES = 256
_MOST_DOUBTED = 32
_SHORT = 0xFFFFFFFF


def note(kind: int, side: int, frame: int, sides: SideTable, events: EventLog, counts: Counters) -> None:
    """Count an event of a side; the first frames are kept as evidence, where the model has a place for them."""
    at = side * L.SIDE + L.D_EVENTS + kind
    sides[at] = sides[at] + 1
    if sides[at] <= L.SAMPLE_FRAMES and not L.E_ZERO_WINDOW_PROBE_ACK <= kind <= L.E_ACK_RTT:
        row = counts[L.N_EVENTS] * 3
        events[row] = side
        events[row + 1] = kind
        events[row + 2] = frame
        counts[L.N_EVENTS] = counts[L.N_EVENTS] + 1


def sample(kind: int, side: int, value: int, samples: SampleLog, counts: Counters) -> None:
    at = counts[L.N_SAMPLES]
    key = side * L.SAMPLES + kind
    if value <= _SHORT:
        samples[at] = (key << 32) | value
        counts[L.N_SAMPLES] = at + 1
    else:
        samples[at] = -1 - key
        samples[at + 1] = value
        counts[L.N_SAMPLES] = at + 2
    counts[L.N_LAST_SAMPLE] = value


def take_segment(pool: SegmentPool, counts: Counters) -> int:
    """Return a free row of the pool."""
    row = counts[L.N_FREE]
    if row >= 0:
        counts[L.N_FREE] = pool[row * L.SEGMENT + L.G_NEXT]
        counts[L.N_FREE_COUNT] = counts[L.N_FREE_COUNT] - 1
    else:
        row = counts[L.N_POOL]
        counts[L.N_POOL] = row + 1
    return row


def free_segment(row: int, pool: SegmentPool, counts: Counters) -> None:
    pool[row * L.SEGMENT + L.G_NEXT] = counts[L.N_FREE]
    counts[L.N_FREE] = row
    counts[L.N_FREE_COUNT] = counts[L.N_FREE_COUNT] + 1


def count_loss(
    kind: int, side: int, frame: int, size: int, sides: SideTable, events: EventLog, counts: Counters
) -> None:
    """Note a lost segment of a side."""
    note(kind, side, frame, sides, events, counts)
    s = side * L.SIDE
    # Repeats are judged late, and not in the order of their frames.
    sides[s + L.D_LAST_LOST] = max(sides[s + L.D_LAST_LOST], frame)
    if sides[s + L.D_FIRST_LOST] == 0 or frame < sides[s + L.D_FIRST_LOST]:
        sides[s + L.D_FIRST_LOST] = frame
    if size > sides[s + L.D_LARGEST_LOST]:
        sides[s + L.D_LARGEST_LOST] = size
    if size > 0 and (sides[s + L.D_SMALLEST_LOST] == 0 or size < sides[s + L.D_SMALLEST_LOST]):
        sides[s + L.D_SMALLEST_LOST] = size


def count_repeat_loss(
    g: int, side: int, sides: SideTable, events: EventLog, pool: SegmentPool, counts: Counters
) -> None:
    """Note that a held segment was lost, if it is a repeat."""
    kind = pool[g + L.G_KIND]
    if kind == 1 or kind == 4:
        count_loss(L.E_LOST_DOWNSTREAM, side, pool[g + L.G_FRAME], pool[g + L.G_SIZE], sides, events, counts)
    if kind == 4:
        note(L.E_DOUBTFUL, side, pool[g + L.G_FRAME], sides, events, counts)


def hold_segment(
    side: int, start: int, end: int, kind: int, size: int, now: int, frame: int, timestamp: int,
    sides: SideTable, pool: SegmentPool, counts: Counters,
) -> None:  # fmt: skip
    """Remember a segment until it is acknowledged, in the order of its end."""
    row = take_segment(pool, counts)
    g = row * L.SEGMENT
    pool[g + L.G_START] = start
    pool[g + L.G_END] = end
    pool[g + L.G_TIME] = now
    pool[g + L.G_FRAME] = frame
    pool[g + L.G_KIND] = kind
    pool[g + L.G_SIZE] = size
    pool[g + L.G_TIMESTAMP] = timestamp
    s = side * L.SIDE
    before = sides[s + L.D_TAIL]
    after = -1
    while (
        before >= 0
        and (pool[before * L.SEGMENT + L.G_END] - end) & L.SEQ < L.HALF
        and (pool[before * L.SEGMENT + L.G_END] != end)
    ):
        after = before
        before = pool[before * L.SEGMENT + L.G_PREVIOUS]
    pool[g + L.G_PREVIOUS] = before
    pool[g + L.G_NEXT] = after
    if before >= 0:
        pool[before * L.SEGMENT + L.G_NEXT] = row
    else:
        sides[s + L.D_HEAD] = row
    if after >= 0:
        pool[after * L.SEGMENT + L.G_PREVIOUS] = row
    else:
        sides[s + L.D_TAIL] = row
    sides[s + L.D_HELD] = sides[s + L.D_HELD] + 1


def drop_head(side: int, sides: SideTable, pool: SegmentPool, counts: Counters) -> None:
    s = side * L.SIDE
    row = sides[s + L.D_HEAD]
    following = pool[row * L.SEGMENT + L.G_NEXT]
    sides[s + L.D_HEAD] = following
    if following >= 0:
        pool[following * L.SEGMENT + L.G_PREVIOUS] = -1
    else:
        sides[s + L.D_TAIL] = -1
    sides[s + L.D_HELD] = sides[s + L.D_HELD] - 1
    free_segment(row, pool, counts)


def mark_repeated(side: int, start: int, sides: SideTable, pool: SegmentPool) -> int:
    """Mark held segments that the repeat of `start` overlaps: their ACK tells no round trip. Returns how many."""
    row = sides[side * L.SIDE + L.D_TAIL]
    found = 0
    while row >= 0:
        g = row * L.SEGMENT
        # Ends are in order: nothing before this one reaches beyond `start`.
        if (start - pool[g + L.G_END]) & L.SEQ < L.HALF:
            break
        if pool[g + L.G_KIND] == 0:
            pool[g + L.G_KIND] = 2
        found += 1
        row = pool[g + L.G_PREVIOUS]
    return found


def open_hole(
    side: int, start: int, end: int, now: int, frame: int, ip_id: int, timestamp: int,
    sides: SideTable, pool: SegmentPool, counts: Counters,
) -> None:  # fmt: skip
    s = side * L.SIDE
    if sides[s + L.D_HOLE_COUNT] >= _MOST_HOLES:
        return
    row = take_segment(pool, counts)
    g = row * L.SEGMENT
    pool[g + L.G_START] = start
    pool[g + L.G_END] = end
    pool[g + L.G_TIME] = now
    pool[g + L.G_FRAME] = frame
    pool[g + L.G_SIZE] = ip_id
    pool[g + L.G_TIMESTAMP] = timestamp
    pool[g + L.G_NEXT] = sides[s + L.D_HOLES]
    sides[s + L.D_HOLES] = row
    sides[s + L.D_HOLE_COUNT] = sides[s + L.D_HOLE_COUNT] + 1


def unlink(
    row: int, before: int, first: int, count: int, sides: SideTable, pool: SegmentPool, counts: Counters
) -> None:
    """Take a row out of a list of a side, whose first row and length are in the fields `first` and `count`."""
    following = pool[row * L.SEGMENT + L.G_NEXT]
    if before >= 0:
        pool[before * L.SEGMENT + L.G_NEXT] = following
    else:
        sides[first] = following
    sides[count] = sides[count] - 1
    free_segment(row, pool, counts)


def fill_holes(
    side: int, start: int, end: int, now: int, ip_id: int, timestamp: int, round_trip: int,
    sides: SideTable, pool: SegmentPool, counts: Counters,
) -> int:  # fmt: skip
    """Take `start` to `end` out of the side's holes: 0 none was there, 1 a repeat filled it, 2 it was only late."""
    s = side * L.SIDE
    row = sides[s + L.D_HOLES]
    before = -1
    verdict = 0
    while row >= 0:
        g = row * L.SEGMENT
        following = pool[g + L.G_NEXT]
        low = pool[g + L.G_START]
        high = pool[g + L.G_END]
        # Overlap: start < high and end > low.
        if start != high and (high - start) & L.SEQ < L.HALF and end != low and (end - low) & L.SEQ < L.HALF:
            # A repeat was sent after the segment that opened the hole, a late one before it. The sender's clock says
            # which; then its IP id; then whether a round trip had time to pass.
            newer = (timestamp - pool[g + L.G_TIMESTAMP]) & L.SEQ
            step = (ip_id - pool[g + L.G_SIZE]) & 0xFFFF
            if timestamp and pool[g + L.G_TIMESTAMP] and newer:
                late = newer >= L.HALF
            elif ip_id and pool[g + L.G_SIZE] and step:
                late = step >= 0x8000
            else:
                late = now - pool[g + L.G_TIME] < round_trip
            verdict = 2 if late else 1
            begins = (start - low) & L.SEQ < L.HALF and start != low
            ends = (high - end) & L.SEQ < L.HALF and high != end
            if begins and ends:
                pool[g + L.G_END] = start
                open_hole(
                    side, end, high, pool[g + L.G_TIME], pool[g + L.G_FRAME], pool[g + L.G_SIZE],
                    pool[g + L.G_TIMESTAMP], sides, pool, counts,
                )  # fmt: skip
                return verdict
            if begins:
                pool[g + L.G_END] = start
                before = row
            elif ends:
                pool[g + L.G_START] = end
                before = row
            else:
                unlink(row, before, s + L.D_HOLES, s + L.D_HOLE_COUNT, sides, pool, counts)
        else:
            before = row
        row = following
    return verdict


def forget_holes(side: int, ack: int, sides: SideTable, events: EventLog, pool: SegmentPool, counts: Counters) -> None:
    """The peer acknowledged beyond a hole: its content arrived, and only the capture lacks it."""
    s = side * L.SIDE
    row = sides[s + L.D_HOLES]
    before = -1
    while row >= 0:
        g = row * L.SEGMENT
        following = pool[g + L.G_NEXT]
        if (ack - pool[g + L.G_END]) & L.SEQ < L.HALF:
            note(L.E_CAPTURE_GAP, side, pool[g + L.G_FRAME], sides, events, counts)
            unlink(row, before, s + L.D_HOLES, s + L.D_HOLE_COUNT, sides, pool, counts)
        else:
            before = row
        row = following


def defer_head(side: int, sides: SideTable, pool: SegmentPool, counts: Counters) -> None:
    """Defer the repeat at the head of the held segments until the receiver reports a duplicate, or to the end."""
    s = side * L.SIDE
    row = take_segment(pool, counts)
    head = sides[s + L.D_HEAD] * L.SEGMENT
    for column in range(L.SEGMENT):
        pool[row * L.SEGMENT + column] = pool[head + column]
    pool[row * L.SEGMENT + L.G_NEXT] = sides[s + L.D_DOUBTED]
    sides[s + L.D_DOUBTED] = row
    sides[s + L.D_DOUBTED_COUNT] = sides[s + L.D_DOUBTED_COUNT] + 1


def report_duplicate(
    side: int, start: int, end: int, sides: SideTable, events: EventLog, pool: SegmentPool, counts: Counters
) -> None:
    """The peer already had `start` to `end`: the latest deferred repeat of it was needless."""
    s = side * L.SIDE
    row = sides[s + L.D_DOUBTED]
    before = -1
    while row >= 0:
        g = row * L.SEGMENT
        following = pool[g + L.G_NEXT]
        if (pool[g + L.G_START] - start) & L.SEQ < L.HALF and (end - pool[g + L.G_END]) & L.SEQ < L.HALF:
            note(L.E_NEEDLESS, side, pool[g + L.G_FRAME], sides, events, counts)
            unlink(row, before, s + L.D_DOUBTED, s + L.D_DOUBTED_COUNT, sides, pool, counts)
            return
        before = row
        row = following


def lose_deferred(side: int, sides: SideTable, events: EventLog, pool: SegmentPool, counts: Counters) -> None:
    """Count deferred repeats that were not reported as duplicates: they were needed."""
    row = sides[side * L.SIDE + L.D_DOUBTED]
    while row >= 0:
        count_repeat_loss(row * L.SEGMENT, side, sides, events, pool, counts)
        row = pool[row * L.SEGMENT + L.G_NEXT]


def acknowledge(
    side: int, ack: int, now: int, dsack_start: int, dsack_end: int, echo: int, sides: SideTable, events: EventLog,
    pool: SegmentPool, samples: SampleLog, counts: Counters,
) -> int:  # fmt: skip
    """Release what the peer acknowledged of `side`'s segments and judge its repeats. 1 if it ends a held segment.

    `echo` is the timestamp that the peer echoes, as rows hold it: an original's own shows that it arrived (RFC 3522).
    """
    s = side * L.SIDE
    exact = 0
    arrived_from = -1
    arrived_to = -1
    others = 0
    shortest = sides[s + L.D_MIN_RTT]
    if dsack_end != dsack_start and sides[s + L.D_DOUBTED] >= 0:
        report_duplicate(side, dsack_start, dsack_end, sides, events, pool, counts)
    while sides[s + L.D_HEAD] >= 0:
        g = sides[s + L.D_HEAD] * L.SEGMENT
        end = pool[g + L.G_END]
        if (ack - end) & L.SEQ >= L.HALF:
            break
        kind = pool[g + L.G_KIND]
        elapsed = now - pool[g + L.G_TIME]
        size = pool[g + L.G_SIZE]
        if end == ack:
            if kind == 0 and elapsed >= 0 and exact == 0:
                # Karn: only a segment sent once tells a round trip.
                sample(L.SAMPLE_RTT, side, elapsed, samples, counts)
                if sides[s + L.D_MIN_RTT] < 0 or elapsed < sides[s + L.D_MIN_RTT]:
                    sides[s + L.D_MIN_RTT] = elapsed
            if elapsed:
                exact = 1
        if echo and pool[g + L.G_TIMESTAMP] == echo:
            if kind == 2:
                arrived_from = pool[g + L.G_START]
                arrived_to = end
            elif kind == 0:
                others = 1  # the echo may be of this one
        if kind == 1 or kind == 4:
            newer = (pool[g + L.G_TIMESTAMP] - echo) & L.SEQ
            delayed = (
                others == 0
                and arrived_to == end
                and arrived_from == pool[g + L.G_START]
                and pool[g + L.G_TIMESTAMP] > 0
                and newer > 0
                and newer < L.HALF
            )
            reported = (
                dsack_end != dsack_start
                and (pool[g + L.G_START] - dsack_start) & L.SEQ < L.HALF
                and ((dsack_end - end) & L.SEQ < L.HALF)
            )
            if reported or delayed or (shortest > 0 and elapsed * 2 < shortest):
                # The receiver says it had it, or answers the original, or sooner than the repeat could reach it.
                note(L.E_NEEDLESS, side, pool[g + L.G_FRAME], sides, events, counts)
            elif size and sides[s + L.D_DOUBTED_COUNT] < _MOST_DOUBTED:
                defer_head(side, sides, pool, counts)
            else:
                count_repeat_loss(g, side, sides, events, pool, counts)
        if size > sides[s + L.D_LARGEST_ACKED]:
            sides[s + L.D_LARGEST_ACKED] = size
        drop_head(side, sides, pool, counts)
    return exact


KERNELS = (
    note, sample, take_segment, free_segment, count_loss, count_repeat_loss, hold_segment, drop_head, mark_repeated,
    open_hole, unlink, fill_holes, forget_holes, defer_head, report_duplicate, lose_deferred, acknowledge,
)  # fmt: skip
