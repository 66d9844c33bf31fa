"""A seeded capture of mixed traffic: the same seed and size give the same bytes, and checksums are right.

The packets that `pcap_traffic` writes as rows are put in order of time and rendered.
"""

from __future__ import annotations

import os
import struct
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.pcap_traffic import (
    ACK,
    APP,
    ARP,
    AT,
    COLUMNS,
    DNS_ANSWER,
    DNS_QUERY,
    DPORT,
    DST,
    ECHO,
    EXTRA,
    FLAGS,
    HTTP_ANSWER,
    ICMP,
    IPID,
    KIND,
    LEN,
    MS,
    NAMES,
    NTP,
    PORT_UNREACHABLE,
    RANDOM,
    SEQ,
    SPORT,
    SRC,
    SYN,
    TCP,
    TICK,
    TIME,
    TLS_RECORDS,
    TTL,
    UDP,
    V6,
    VLAN,
    WIN,
    Array,
    kernel,
    simulate,
)

RECORD = 16384 + 5


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
    size: int = row[LEN]
    app = row[APP]
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
    table = np.zeros((NAMES, 64), np.uint8)
    for number in range(NAMES):
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
