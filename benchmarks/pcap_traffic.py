"""A seeded capture of mixed traffic, of any number of packets: the same seed and size give the same bytes.

Per million packets about 15,000 TCP streams and 725 MB: handshakes, requests and answers with their ACKs, loss before
and behind the capture point, fast and timed repeats, reordering, duplicates, zero windows, closes, resets, refused and
unanswered connections; TLS and HTTP heads; DNS, NTP, other UDP, ARP, ICMP; a part in VLANs and a part over IPv6.
Checksums are right. A first pass writes one row per packet, which are put in order of time; a second renders them.
"""

from __future__ import annotations

import os
import struct
import tempfile
from pathlib import Path
from typing import Any

import numba
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
kernel = numba.njit(cache=True)

TIME, KIND, SRC, DST, SPORT, DPORT, SEQ, ACK, FLAGS, WIN, LEN, IPID, TTL, V6, VLAN, APP, AT, EXTRA = range(18)
COLUMNS = 18
TCP, UDP, ARP, ICMP = range(4)
FIN, SYN, RST, PUSH, ACKED = 1, 2, 4, 8, 16

# What the payload of a packet is.
RANDOM, TLS_HELLO, TLS_ANSWER, TLS_RECORDS, HTTP_REQUEST, HTTP_ANSWER, DNS_QUERY, DNS_ANSWER, NTP = range(9)
ECHO, ECHO_REPLY, PORT_UNREACHABLE = range(3)

TICK = 1000  # ns: the file holds microseconds
MS = 1_000_000
MSS = 1448
RECORD = 16384 + 5
START_SECOND = 1_750_000_000
_NAMES = 400


@kernel
def emit(rows: Array, used: int, now: int, kind: int, src: int, dst: int, sport: int, dport: int) -> int:
    rows[used, :] = 0
    rows[used, TIME] = now
    rows[used, KIND] = kind
    rows[used, SRC] = src
    rows[used, DST] = dst
    rows[used, SPORT] = sport
    rows[used, DPORT] = dport
    return used + 1


# One stream: state shared by the kernels below.
NOW, CLIENT, SERVER, CPORT, SPORT_OF, CSEQ, SSEQ, CID, SID, CTTL, STTL, IS6, VLAN_OF, CBASE, SBASE = range(15)


@kernel
def segment(
    rows: Array, used: int, s: Array, now: int, from_client: bool, seq: int, ack: int, flags: int, win: int, size: int
) -> int:
    if from_client:
        used = emit(rows, used, now, TCP, s[CLIENT], s[SERVER], s[CPORT], s[SPORT_OF])
        rows[used - 1, IPID] = s[CID] & 0xFFFF
        rows[used - 1, TTL] = s[CTTL]
        s[CID] += 1
    else:
        used = emit(rows, used, now, TCP, s[SERVER], s[CLIENT], s[SPORT_OF], s[CPORT])
        rows[used - 1, IPID] = s[SID] & 0xFFFF
        rows[used - 1, TTL] = s[STTL]
        s[SID] += 1
    row = rows[used - 1]
    row[SEQ] = seq & 0xFFFFFFFF
    row[ACK] = ack & 0xFFFFFFFF
    row[FLAGS] = flags
    row[WIN] = win
    row[LEN] = size
    row[V6] = s[IS6]
    row[VLAN] = s[VLAN_OF]
    return used


@kernel
def transfer(
    rows: Array, used: int, s: Array, from_client: bool, size: int, near: int, far: int, loss: float, reorder: float,
    twice: float, app: int, rest_app: int, at: int,
) -> int:  # fmt: skip
    """`size` bytes from one side in growing bursts; `near` is its delay to the capture point, `far` the other's."""
    mine, theirs = (CSEQ, SSEQ) if from_client else (SSEQ, CSEQ)
    window = 10
    sent = 0
    while sent < size:
        burst = min(window, (size - sent + MSS - 1) // MSS)
        now = s[NOW] + near
        gap = 12_000 + np.random.randint(0, 8_000)
        lost_at, lost_upstream = -1, False
        first = s[mine]
        duplicates = 0
        unacked = 0
        reached = first
        late = -1
        ack_time = now
        for n in range(burst):
            length = min(MSS, size - sent)
            when = now + n * gap
            lost = lost_at < 0 and np.random.random() < loss
            if lost:
                lost_at, lost_size, lost_what = s[mine], length, (app if sent == 0 else rest_app)
                lost_offset = at + sent
                lost_upstream = np.random.random() < 0.5
            if late < 0 and not lost and n + 3 < burst and np.random.random() < reorder:
                when += 3 * gap + gap // 2
                late = n
            if not lost or not lost_upstream:
                flags = ACKED | (PUSH if sent + length == size else 0)
                used = segment(rows, used, s, when, from_client, s[mine], s[theirs], flags, 501, length)
                rows[used - 1, APP] = app if sent == 0 else rest_app
                rows[used - 1, AT] = at + sent
                if np.random.random() < twice:
                    rows[used, :] = rows[used - 1, :]
                    rows[used, TIME] += 30_000
                    used += 1
            s[mine] = (s[mine] + length) & 0xFFFFFFFF
            sent += length
            if lost_at < 0 and (late < 0 or n > late + 3):
                reached = s[mine]
                unacked += 1
                if unacked == 2 or n == burst - 1:
                    ack_time = now + n * gap + 2 * far
                    used = segment(rows, used, s, ack_time, not from_client, s[theirs], reached, ACKED, 4096, 0)
                    unacked = 0
            elif not lost and n != late and lost_at >= 0:
                # Each segment behind a missing one is answered at once.
                duplicates += 1
                used = segment(
                    rows, used, s, now + n * gap + 2 * far, not from_client, s[theirs], lost_at, ACKED, 4096, 0
                )
            elif not lost and late >= 0 and n > late:
                used = segment(
                    rows, used, s, now + n * gap + 2 * far, not from_client, s[theirs],
                    (first + late * MSS) & 0xFFFFFFFF, ACKED, 4096, 0,
                )  # fmt: skip
        last = now + burst * gap
        if lost_at >= 0:
            repeat = last + 2 * far + 2 * near if duplicates >= 3 else last + 200 * MS + 2 * far + 2 * near
            used = segment(rows, used, s, repeat, from_client, lost_at, s[theirs], ACKED | PUSH, 501, lost_size)
            rows[used - 1, APP] = lost_what
            rows[used - 1, AT] = lost_offset
            last = repeat
        if lost_at >= 0 or reached != s[mine]:
            ack_time = last + 2 * far
            used = segment(rows, used, s, ack_time, not from_client, s[theirs], s[mine], ACKED, 4096, 0)
        s[NOW] = ack_time + near
        window = min(window * 2, 64) if lost_at < 0 else max(window // 2, 4)
    return used


@kernel
def stall(rows: Array, used: int, s: Array, far: int) -> int:
    """The client's window closes, is probed and opens again."""
    now = s[NOW] + 5 * MS
    used = segment(rows, used, s, now, True, s[CSEQ], s[SSEQ], ACKED, 0, 0)
    for n in range(3):
        now += 200 * MS << n
        used = segment(rows, used, s, now, False, s[SSEQ] - 1, s[CSEQ], ACKED, 501, 0)
        used = segment(rows, used, s, now + 2 * far, True, s[CSEQ], s[SSEQ], ACKED, 0, 0)
    now += 300 * MS
    used = segment(rows, used, s, now, True, s[CSEQ], s[SSEQ], ACKED, 4096, 0)
    s[NOW] = now + far
    return used


@kernel
def stream(rows: Array, used: int, s: Array) -> int:
    dice = np.random.random()
    to_client, to_server = int(np.random.lognormal(-0.5, 1.2) * MS), int(np.random.lognormal(1.5, 1.2) * MS)
    used = segment(rows, used, s, s[NOW], True, s[CSEQ], 0, SYN, 64240, 0)
    if dice < 0.01:  # nobody answers
        for n in range(3):
            s[NOW] += 1000 * MS << n
            used = segment(rows, used, s, s[NOW], True, s[CSEQ], 0, SYN, 64240, 0)
        return used
    s[NOW] += 2 * to_server
    if dice < 0.02:  # refused
        return segment(rows, used, s, s[NOW], False, 0, s[CSEQ] + 1, RST | ACKED, 0, 0)
    used = segment(rows, used, s, s[NOW], False, s[SSEQ], s[CSEQ] + 1, SYN | ACKED, 65160, 0)
    s[CSEQ] = (s[CSEQ] + 1) & 0xFFFFFFFF
    s[SSEQ] = (s[SSEQ] + 1) & 0xFFFFFFFF
    s[NOW] += 2 * to_client
    used = segment(rows, used, s, s[NOW], True, s[CSEQ], s[SSEQ], ACKED, 502, 0)
    loss = 0.0 if np.random.random() < 0.6 else np.random.random() * 0.012
    reorder = 0.004 if np.random.random() < 0.1 else 0.0
    twice = 0.01 if np.random.random() < 0.02 else 0.0
    kind = 0.0 if s[SPORT_OF] == 443 else 0.7 if s[SPORT_OF] == 80 else 0.9
    asked = 0
    answered = 0
    requests = 1 + int(np.random.exponential(1.0 if kind < 0.85 else 8.0))
    # s[NOW] is the time at the capture point while the handshake lasts; a transfer wants the sender's.
    s[NOW] -= to_client
    if kind < 0.6:
        used = transfer(rows, used, s, True, 517, to_client, to_server, 0.0, 0.0, 0.0, TLS_HELLO, RANDOM, 0)
        s[NOW] += 1 * MS + to_server
        used = transfer(
            rows, used, s, False, 127 + 6 + 3800, to_server, to_client, 0.0, 0.0, 0.0, TLS_ANSWER, RANDOM, 0
        )
        s[NOW] += to_client - to_server
    for n in range(requests):
        s[NOW] += np.random.randint(1, 50) * MS
        size = int(min(np.random.lognormal(8.3 if kind < 0.85 else 6.0, 1.9), 6_000_000.0)) + 200
        if kind < 0.6:
            used = transfer(
                rows, used, s, True, 350 + n, to_client, to_server, loss, 0.0, 0.0, TLS_RECORDS, TLS_RECORDS, asked
            )
            asked += 350 + n
            what = rest = TLS_RECORDS
        elif kind < 0.85:
            used = transfer(rows, used, s, True, 160, to_client, to_server, loss, 0.0, 0.0, HTTP_REQUEST, RANDOM, 0)
            what, rest = HTTP_ANSWER, RANDOM
            answered = 0
        else:
            used = transfer(rows, used, s, True, 90, to_client, to_server, loss, 0.0, 0.0, RANDOM, RANDOM, 0)
            what = rest = RANDOM
        s[NOW] += to_server + np.random.randint(1, 30) * MS
        began = used
        used = transfer(rows, used, s, False, size, to_server, to_client, loss, reorder, twice, what, rest, answered)
        if what == HTTP_ANSWER:
            for row in range(began, used):
                rows[row, EXTRA] = size
        answered += size
        s[NOW] += to_client - to_server
        if np.random.random() < 0.004:
            used = stall(rows, used, s, to_server)
    ending = np.random.random()
    s[NOW] += np.random.randint(1, 2000) * MS + to_client
    if ending < 0.86:
        used = segment(rows, used, s, s[NOW], True, s[CSEQ], s[SSEQ], FIN | ACKED, 502, 0)
        s[NOW] += 2 * to_server
        used = segment(rows, used, s, s[NOW], False, s[SSEQ], s[CSEQ] + 1, FIN | ACKED, 501, 0)
        s[NOW] += 2 * to_client
        used = segment(rows, used, s, s[NOW], True, s[CSEQ] + 1, s[SSEQ] + 1, ACKED, 502, 0)
    elif ending < 0.92:
        used = segment(rows, used, s, s[NOW], True, s[CSEQ], s[SSEQ], RST | ACKED, 0, 0)
    return used


@kernel
def other(rows: Array, used: int, now: int, clients: int, servers: int) -> int:
    """One exchange that is not TCP."""
    dice = np.random.random()
    client, server = np.random.randint(0, clients), clients + np.random.randint(0, servers)
    began = used
    if dice < 0.55:
        sport, name = np.random.randint(32768, 61000), int(_NAMES * np.random.random() ** 3)
        number = np.random.randint(0, 65536)
        server = clients + np.random.randint(0, 2)
        used = emit(rows, used, now, UDP, client, server, sport, 53)
        rows[used - 1, APP] = DNS_QUERY
        if np.random.random() > 0.005:
            wait = int(np.random.lognormal(1.0, 1.0) * MS)
            used = emit(rows, used, now + wait, UDP, server, client, 53, sport)
            rows[used - 1, APP] = DNS_ANSWER
        rows[began:used, AT] = name
        rows[began:used, EXTRA] = number
    elif dice < 0.65:
        used = emit(rows, used, now, UDP, client, server, 123, 123)
        used = emit(rows, used, now + 8 * MS, UDP, server, client, 123, 123)
        rows[began:used, APP] = NTP
        rows[began:used, LEN] = 48
        rows[began, AT] = 1
    elif dice < 0.80:
        sport = np.random.randint(32768, 61000)
        for _ in range(np.random.randint(4, 40)):
            now += 20 * MS
            used = emit(rows, used, now, UDP, client, server, sport, 5004)
            rows[used - 1, LEN] = 172
            if np.random.random() < 0.9:
                used = emit(rows, used, now + 3 * MS, UDP, server, client, 5004, sport)
                rows[used - 1, LEN] = 172
    elif dice < 0.90:
        used = emit(rows, used, now, ARP, client, 1 + (client + 7) % (clients - 1), 1, 0)
        if np.random.random() > 0.05:
            used = emit(rows, used, now + 1 * MS, ARP, rows[began, DST], client, 2, 0)
    elif dice < 0.99:
        number = np.random.randint(0, 65536)
        for n in range(4):
            used = emit(rows, used, now, ICMP, client, server, ECHO, 0)
            rows[used - 1, AT] = number << 16 | n
            if np.random.random() > 0.02:
                used = emit(rows, used, now + 11 * MS, ICMP, server, client, ECHO_REPLY, 0)
                rows[used - 1, AT] = number << 16 | n
            now += 1000 * MS
    else:
        used = emit(rows, used, now, UDP, client, server, np.random.randint(32768, 61000), 33434)
        rows[used - 1, LEN] = 32
        used = emit(rows, used, now + 9 * MS, ICMP, server, client, PORT_UNREACHABLE, 0)
        rows[used - 1, AT] = rows[used - 2, SPORT]
    v6, vlan = rows[began, KIND] == UDP and np.random.random() < 0.1, 100 if np.random.random() < 0.1 else 0
    for row in range(began, used):
        rows[row, IPID] = np.random.randint(1, 65536)
        rows[row, TTL] = 64 if rows[row, SRC] < clients else 55
        rows[row, V6] = v6
        rows[row, VLAN] = vlan
    return used


@kernel
def simulate(rows: Array, wanted: int, seed: int, clients: int, servers: int) -> int:
    np.random.seed(seed)
    span = wanted * 100 * TICK  # ten thousand packets a second
    used = 0
    s = np.zeros(15, np.int64)
    while used < wanted:
        now = START_SECOND * 1_000_000_000 + int(np.random.random() * span)
        s[NOW], s[CLIENT], s[SERVER] = now, np.random.randint(0, clients), clients + np.random.randint(0, servers)
        port = np.random.random()
        s[SPORT_OF] = 443 if port < 0.6 else 80 if port < 0.85 else 5432
        s[CPORT] = np.random.randint(32768, 61000)
        s[CSEQ], s[SSEQ] = np.random.randint(0, 1 << 32), np.random.randint(0, 1 << 32)
        s[CID], s[SID] = np.random.randint(0, 65536), np.random.randint(0, 65536)
        s[CTTL], s[STTL] = 63, 64 - np.random.randint(2, 20)
        s[IS6] = np.random.random() < 0.1
        s[VLAN_OF] = 100 if np.random.random() < 0.1 else 0
        used = stream(rows, used, s)
        for _ in range(2):
            if np.random.random() < 0.6:
                used = other(
                    rows, used, START_SECOND * 1_000_000_000 + int(np.random.random() * span), clients, servers
                )
    return used


@kernel
def put(out: Array, at: int, value: int, size: int) -> int:
    for n in range(size):
        out[at + n] = value >> 8 * (size - 1 - n) & 0xFF
    return at + size


@kernel
def address(out: Array, at: int, number: int, clients: int, v6: int) -> int:
    if v6:
        at = put(out, at, 0x20010DB8, 4)
        at = put(out, at, 1 if number < clients else 2, 4)
        at = put(out, at, 0, 4)
        return put(out, at, number + 1, 4)
    return put(out, at, (0x0A010000 if number < clients else 0xAC100000) + number + 1, 4)


@kernel
def ones(out: Array, start: int, stop: int, total: int) -> int:
    for at in range(start, stop - 1, 2):
        total += out[at] << 8 | out[at + 1]
    if (stop - start) & 1:
        total += out[stop - 1] << 8
    return total


@kernel
def folded(total: int) -> int:
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@kernel
def digits(out: Array, at: int, value: int, size: int) -> None:
    for n in range(size):
        out[at + size - 1 - n] = 48 + value % 10
        value //= 10


@kernel
def payload(out: Array, o: int, row: Array, noise: Array, texts: Array, starts: Array, names: Array) -> int:
    """Write what the packet carries; its length."""
    size, app = row[LEN], row[APP]
    if app in (DNS_QUERY, DNS_ANSWER):
        name = row[AT]
        length = names[name, 0]
        put(out, o, row[EXTRA], 2)
        missing = name % 50 == 49
        put(out, o + 2, 0x0100 if app == DNS_QUERY else 0x8183 if missing else 0x8180, 2)
        put(out, o + 4, 1, 2)
        put(out, o + 6, 1 if app == DNS_ANSWER and not missing else 0, 2)
        put(out, o + 8, 0, 4)
        out[o + 12 : o + 12 + length] = names[name, 1 : 1 + length]
        at = o + 12 + length
        at = put(out, at, 1, 2)
        at = put(out, at, 1, 2)
        if app == DNS_ANSWER and not missing:
            at = put(out, at, 0xC00C00010001, 6)
            at = put(out, at, 300, 4)
            at = put(out, at, 4, 2)
            at = put(out, at, 0xAC100001 + name, 4)
        return at - o
    if size == 0:
        return 0
    shift = (row[SEQ] * 7 + row[AT]) & 0xFFFF
    out[o : o + size] = noise[shift : shift + size]
    if app == NTP:
        out[o : o + 48] = 0
        out[o] = 0x23 if row[AT] else 0x24
        out[o + 1] = 0 if row[AT] else 2
        put(out, o + 40, row[TIME] // 1_000_000_000 + 2_208_988_800, 4)
    elif app == TLS_RECORDS:
        # A record of at most 16 KiB begins every RECORD bytes; requests are shorter and end with theirs.
        if row[DPORT] == 443:
            put(out, o, 0x170303, 3)
            put(out, o + 3, size - 5, 2)
        else:
            at = -row[AT] % RECORD
            while at < size:
                head = (0x17, 3, 3, 0x40, 0)
                for n in range(min(5, size - at)):
                    out[o + at + n] = head[n]
                at += RECORD
            begun = row[AT] % RECORD
            for n in range(5 - begun):
                if n < size:
                    out[o + n] = (0x17, 3, 3, 0x40, 0)[begun + n]
    elif app != RANDOM:
        text = app - 1 if app < TLS_RECORDS else app - 2
        length = min(starts[text + 1] - starts[text], size)
        out[o : o + length] = texts[starts[text] : starts[text] + length]
        if app == HTTP_ANSWER:
            if row[SEQ] % 97 == 0:
                out[o + 9], out[o + 10], out[o + 11] = 53, 48, 51
            digits(out, o + 33, row[EXTRA] - length, 8)
    return size


@kernel
def render(
    rows: Array, order: Array, begin: int, stop: int, out: Array, clients: int, noise: Array, texts: Array,
    starts: Array, names: Array,
) -> int:  # fmt: skip
    """Records of the packets `begin` to `stop` of the order; returns how many bytes they take."""
    o = 0
    for n in range(begin, stop):
        row = rows[order[n]]
        record = o
        o += 16
        src, dst, kind, v6 = row[SRC], row[DST], row[KIND], row[V6]
        o = put(out, o, 0x020000000000 + dst, 6)
        o = put(out, o, 0x020000000000 + src, 6)
        if row[VLAN]:
            o = put(out, o, 0x81000000 + row[VLAN], 4)
        o = put(out, o, 0x0806 if kind == ARP else 0x86DD if v6 else 0x0800, 2)
        if kind == ARP:
            o = put(out, o, 0x0001080006040000 + row[SPORT], 8)
            o = put(out, o, 0x020000000000 + src, 6)
            o = address(out, o, src, clients, 0)
            o = put(out, o, 0x020000000000 + dst if row[SPORT] == 2 else 0, 6)
            o = address(out, o, dst, clients, 0)
            o = put(out, o, 0, 8)
            o = put(out, o, 0, 8)
            o = put(out, o, 0, 2)
        else:
            head = o
            protocol = 6 if kind == TCP else 17 if kind == UDP else 1
            if v6:
                o = put(out, o, 0x60000000, 4)
                o = put(out, o, 0, 2)
                o = put(out, o, protocol << 8 | row[TTL], 2)
                ends = o
                o = address(out, o, src, clients, 1)
                o = address(out, o, dst, clients, 1)
            else:
                o = put(out, o, 0x45000000, 4)
                o = put(out, o, row[IPID] << 16 | 0x4000, 4)
                o = put(out, o, row[TTL] << 8 | protocol, 2)
                o = put(out, o, 0, 2)
                ends = o
                o = address(out, o, src, clients, 0)
                o = address(out, o, dst, clients, 0)
            body = o
            check = 0
            if kind == TCP:
                o = put(out, o, row[SPORT] << 16 | row[DPORT], 4)
                o = put(out, o, row[SEQ], 4)
                o = put(out, o, row[ACK], 4)
                opening = row[FLAGS] & SYN
                o = put(out, o, (10 if opening else 8) << 12 | row[FLAGS], 2)
                o = put(out, o, row[WIN], 2)
                check = o
                o = put(out, o, 0, 4)
                stamp = row[TIME] // MS & 0xFFFFFFFF
                if opening:
                    o = put(out, o, 0x020405B40402080A, 8)
                    o = put(out, o, stamp, 4)
                    o = put(out, o, 0, 4)
                    o = put(out, o, 0x01030307, 4)
                else:
                    o = put(out, o, 0x0101080A, 4)
                    o = put(out, o, stamp, 4)
                    o = put(out, o, 0, 4)
                o += payload(out, o, row, noise, texts, starts, names)
            elif kind == UDP:
                o = put(out, o, row[SPORT] << 16 | row[DPORT], 4)
                check = o + 2
                o = put(out, o, 0, 4)
                o += payload(out, o, row, noise, texts, starts, names)
                put(out, body + 4, o - body, 2)
            elif row[SPORT] == PORT_UNREACHABLE:
                check = o + 2
                o = put(out, o, 0x03030000, 4)
                o = put(out, o, 0, 4)
                o = put(out, o, 0x4500003C, 4)
                o = put(out, o, 0x00004000, 4)
                o = put(out, o, 0x01110000, 4)
                o = address(out, o, dst, clients, 0)
                o = address(out, o, src, clients, 0)
                o = put(out, o, row[AT] << 16 | 33434, 4)
                o = put(out, o, 40 << 16, 4)
            else:
                check = o + 2
                o = put(out, o, 0x08000000 if row[SPORT] == ECHO else 0, 4)
                o = put(out, o, row[AT], 4)
                out[o : o + 56] = noise[:56]
                o += 56
            if v6:
                put(out, head + 4, o - body, 2)
            else:
                put(out, head + 2, o - head, 2)
                put(out, head + 10, folded(ones(out, head, body, 0)), 2)
            total = ones(out, body, o, 0)
            if kind != ICMP:
                total = ones(out, ends, body, total) + protocol + o - body
            put(out, check, folded(total), 2)
            while o - record - 16 < 60:
                out[o] = 0
                o += 1
        seconds, size = row[TIME] // 1_000_000_000, o - record - 16
        part = row[TIME] % 1_000_000_000 // TICK
        for at, value in ((0, seconds), (4, part), (8, size), (12, size)):
            for byte in range(4):
                out[record + at + byte] = value >> 8 * byte & 0xFF
    return o


def texts() -> tuple[Array, Array]:
    """Heads of messages: TLS client hello and answer, HTTP request and answer; and where each begins."""
    name = b"shop.example.net"
    sni = struct.pack(">HHHBH", 0, len(name) + 5, len(name) + 3, 0, len(name)) + name
    versions = struct.pack(">HHBHH", 43, 5, 4, 0x0304, 0x0303)
    extensions = sni + versions + struct.pack(">HH", 10, 4) + b"\0\2\0\x1d" + struct.pack(">HHB", 13, 4, 0) + b"\2\4\3"
    before = b"\3\3" + bytes(range(32)) + b"\x20" + bytes(range(32)) + b"\0\6\x13\1\x13\2\xc0\x2f\1\0"
    padding = 517 - 9 - len(before) - 2 - len(extensions) - 4
    extensions += struct.pack(">HH", 21, padding) + bytes(padding)
    body = before + struct.pack(">H", len(extensions)) + extensions
    hello = struct.pack(">BHHBBH", 22, 0x0301, len(body) + 4, 1, 0, len(body)) + body
    answer_body = b"\3\3" + bytes(range(64, 96)) + b"\x20" + bytes(range(32)) + b"\x13\1\0\0\x2e"
    answer_body += struct.pack(">HHH", 43, 2, 0x0304) + struct.pack(">HHHH", 51, 36, 29, 32) + bytes(range(32))
    answer = struct.pack(">BHHBBH", 22, 0x0303, len(answer_body) + 4, 2, 0, len(answer_body)) + answer_body
    answer += b"\x14\3\3\0\1\1" + struct.pack(">BHH", 23, 0x0303, 3933 - len(answer) - 6 - 5)
    request = b"GET /catalogue/items?page=1 HTTP/1.1\r\nHost: shop.example.net\r\nUser-Agent: browser/1.0\r\nAccept: "
    request += b"*/*\r\nX-Padding: "
    request += b"p" * (160 - len(request) - 4) + b"\r\n\r\n"
    response = b"HTTP/1.1 200 OK\r\nContent-Length: 00000000\r\nContent-Type: application/octet-stream\r\n\r\n"
    assert (len(hello), len(request)) == (517, 160)
    every = (hello, answer, request, response)
    return np.frombuffer(b"".join(every), np.uint8), np.cumsum([0, *map(len, every)])


def domain_names() -> Array:
    table = np.zeros((_NAMES, 64), np.uint8)
    for number in range(_NAMES):
        labels = [f"host{number}".encode(), f"zone{number % 23}".encode(), b"example", b"org"]
        wire = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
        table[number, : len(wire) + 1] = np.frombuffer(bytes([len(wire)]) + wire, np.uint8)
    return table


def write(path: Path, packets: int, seed: int = 1) -> None:
    clients, servers = 500, 300
    rows = np.zeros((packets + 60_000, COLUMNS), np.int64)
    simulate(rows, packets, seed, clients, servers)
    rows = rows[:packets]
    order = np.argsort(rows[:, TIME], kind="stable")
    noise = np.random.default_rng(seed).integers(0, 256, (1 << 16) + 2000, dtype=np.uint8)
    words, starts = texts()
    names = domain_names()
    at_once = 8192
    out = np.zeros(at_once * 1700, np.uint8)
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for begin in range(0, packets, at_once):
            stop = min(begin + at_once, packets)
            size = render(rows, order, begin, stop, out, clients, noise, words, starts, names)
            file.write(memoryview(out)[:size])  # type: ignore[arg-type]


def cached(packets: int, seed: int = 1) -> Path:
    """The capture of this size, made where it is not there yet; outside the checkout."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or tempfile.gettempdir()) / "ghost-benchmarks"
    root.mkdir(parents=True, exist_ok=True)
    path = root / f"mixed-{packets}-{seed}.pcap"
    if not path.is_file():
        unfinished = path.with_suffix(f".{os.getpid()}")
        write(unfinished, packets, seed)
        unfinished.replace(path)
    return path
