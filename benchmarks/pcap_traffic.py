"""Mixed traffic of any number of packets, from a seed: one row a packet, which `pcap_render` makes a capture of.

Per million packets about 15,000 TCP streams and 725 MB: handshakes, requests and answers with their ACKs, loss before
and behind the capture point, fast and timed repeats, reordering, duplicates, zero windows, closes, resets, refused and
unanswered connections; TLS and HTTP heads; DNS, NTP, other UDP, ARP, ICMP; a part in VLANs and a part over IPv6.
"""

from __future__ import annotations

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
START_SECOND = 1_750_000_000
NAMES = 400


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
        sport, name = np.random.randint(32768, 61000), int(NAMES * np.random.random() ** 3)
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
