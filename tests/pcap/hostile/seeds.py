"""Small sound captures to damage: every protocol the engine reads, with a canary wherever a payload byte may lie."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache

from .. import test_dhcp
from ..labelled import messages
from ..talks import Connection
from ..test_tls import session
from ..wire import CLIENT, MS, SERVER, Record, Talk, ethernet, ip, tcp, transfer, udp

START = 1_700_000_000 * 1_000_000_000
CANARY = b"CANARY-0123456789"
ROUTER = "10.0.1.1"


def at(ms: float, frame: bytes) -> Record:
    return START + int(ms * MS), frame


def datagram(ms: float, source_port: int, destination_port: int, payload: bytes, *, back: bool = False) -> Record:
    ends = (SERVER, CLIENT) if back else (CLIENT, SERVER)
    return at(ms, ethernet(ip(*ends, 17, udp(source_port, destination_port, payload))))


def icmp(kind: int, code: int, rest: int, body: bytes) -> bytes:
    return struct.pack(">BBHI", kind, code, 0, rest) + body


def web(port: int = 80) -> list[Record]:
    """Paths, queries, cookies, credentials, fields, bodies, chunks; a failure and an answer that stops early."""
    head = b"POST /%b?q=%b HTTP/1.1\r\nHost: shop.example\r\nCookie: id=%b\r\n" % (CANARY, CANARY, CANARY)
    head += b"Authorization: Basic %b\r\nX-%b: 1\r\nContent-Length: 60\r\n\r\n" % (CANARY, CANARY)
    answer = b"HTTP/1.1 503 %b\r\nServer: %b\r\nContent-Length: 40\r\n\r\n" % (CANARY, CANARY)
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n15;%b\r\n%b\r\n0\r\n\r\n" % (CANARY, CANARY)
    talk = Connection(server_port=port).opened().asks(head + CANARY.ljust(60, b".")).waits(1500)
    talk.answers(answer + CANARY.ljust(40, b".")).asks(head + CANARY * 4).answers(chunks)
    talk.asks(b"GET /%b HTTP/1.1\r\nHost: shop.example\r\n\r\n" % CANARY)
    talk.answers(b"HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n" + CANARY * 20)
    return talk.resets(False).records


def names() -> list[Record]:
    """Answers of all kinds, a failure, a name that is not there, silence, TCP, mDNS and LLMNR."""
    records: list[Record] = []
    kinds = ("NOERROR", "NXDOMAIN", "SERVFAIL", "NOERROR", "REFUSED")
    for n, code in enumerate(kinds):
        asked = messages.query(f"host{n}.example", 100 + n, "TXT" if n % 2 else "A")
        told = messages.reply(asked, code=code, text=CANARY.decode() if code == "NOERROR" else None)
        records += [datagram(40 * n, 40_000 + n, 53, asked), datagram(40 * n + 20, 53, 40_000 + n, told, back=True)]
    records += [datagram(300 + 900 * n, 41_000, 53, messages.query("silent.example", 7)) for n in range(3)]
    asked = messages.query("large.example", 9, "TXT")
    told = messages.reply(asked, text=(CANARY * 10).decode())
    talk = Connection(server_port=53, client_port=42_000, now=START + 4000 * MS).opened()
    talk.asks(struct.pack(">H", len(asked)) + asked).answers(struct.pack(">H", len(told)) + told)
    records += talk.closes().records
    return [*records, datagram(5000, 5353, 5353, asked), datagram(5001, 5355, 50_000, told)]


def configuration() -> list[Record]:
    """DHCP and DHCPv6."""
    records = [test_dhcp.sent(n * 1000, test_dhcp.message(kind)) for n, kind in enumerate((1, 1, 3))]
    records += [test_dhcp.sent(2100 + n, test_dhcp.message(kind), ROUTER, answer=True) for n, kind in enumerate((2, 6))]
    return [*records, test_dhcp.sent6(3000, test_dhcp.message6(1)), test_dhcp.sent6(
        3100, test_dhcp.message6(2) + CANARY, answer=True
    )]  # fmt: skip


def services() -> list[Record]:
    """UDP services of which nothing but the ports is read."""
    initial = b"\xc3\0\0\0\1\x08" + CANARY
    return [
        record
        for n, (port, body) in enumerate([(123, b"\x23" + CANARY * 3), (443, initial), (500, CANARY)])
        for record in (datagram(n, 40_000, port, body), datagram(n + 20, port, 40_000, body, back=True))
    ]


def control() -> list[Record]:
    """ARP with an address twice, echoes, and errors that quote what they are about, payload included."""
    mac, other, unknown = b"\x02\0\0\0\0\1", b"\x02\0\0\0\0\2", bytes(6)
    records = [
        at(1, messages.arp(1, mac, CLIENT, unknown, SERVER) + CANARY),
        at(2, messages.arp(2, other, SERVER, mac, CLIENT) + CANARY),
        at(3, messages.arp(2, b"\x02\0\0\0\0\3", SERVER, mac, CLIENT) + CANARY),
        at(4, messages.arp(1, mac, CLIENT, unknown, "10.0.1.77")),
    ]
    for n in range(3):
        echo = icmp(8, 0, 7 << 16 | n, CANARY * 3)
        records.append(at(10 + 20 * n, ethernet(ip(CLIENT, SERVER, 1, echo))))
        if n:
            records.append(at(15 + 20 * n, ethernet(ip(SERVER, CLIENT, 1, b"\0" + echo[1:]))))
    quoted = ip(CLIENT, SERVER, 17, udp(40_000, 33_434, CANARY), ttl=1)
    opening = ip(CLIENT, SERVER, 6, tcp(40_001, 443, 5, 0, 2, CANARY))
    for n, (kind, code, rest) in enumerate([(3, 3, 0), (3, 4, 1400), (3, 13, 0), (11, 0, 0), (5, 1, 0x0A000102)]):
        error = icmp(kind, code, rest, quoted if n % 2 else opening)
        records.append(at(100 + n, ethernet(ip(ROUTER, CLIENT, 1, error + CANARY))))
    six = ip("fd00::4", "fd00::5", 17, udp(40_000, 33_434, CANARY), ttl=1)
    for n, (kind, code, rest) in enumerate([(1, 4, 0), (2, 0, 1280), (3, 0, 0)]):
        records.append(at(200 + n, ethernet(ip("fd00::1", "fd00::4", 58, icmp(kind, code, rest, six)))))
    for n, kind in enumerate((135, 136)):
        body = icmp(kind, 0, 0, bytes(15) + b"\5" + b"\2\1" + other + CANARY)
        records.append(at(210 + n, ethernet(ip("fd00::4", "fd00::5", 58, body, ttl=255))))
    return records


def odd() -> list[Record]:
    """Canaries in IP and TCP options, behind the length of IP, in padding, fragments and cleartext protocols."""
    options = bytes([0x88, 2 + len(CANARY)]) + CANARY + b"\1"
    inside = tcp(40_000, 25, 1, 1, 24, CANARY * 3, options=bytes([253, 2 + len(CANARY)]) + CANARY)
    plain = ip(CLIENT, SERVER, 6, inside)
    with_options = bytes([0x40 | 5 + len(options) // 4]) + b"\0" + struct.pack(">H", len(plain) + len(options))
    with_options += plain[4:20] + options + plain[20:]
    whole = udp(40_000, 53, messages.query("fragment.example", 3) + CANARY * 9)
    pieces = [ip(CLIENT, SERVER, 17, whole[:64], number=9, fragment=0x2000), ip(
        CLIENT, SERVER, 17, whole[64:], number=9, fragment=8
    )]  # fmt: skip
    extended = b"\x06\0\x05\x02\0\0\1\0" + tcp(40_000, 22, 1, 1, 24, CANARY)
    said = (b"USER %b\r\n", b"PASS %b\r\n", b"AUTH %b\r\n", b"*1\r\n$17\r\n%b\r\n", b"GET %b\r\n", b"SSH-2.0-%b\r\n")
    frames = [
        ethernet(with_options) + CANARY, *map(ethernet, pieces),
        ethernet(ip("fd00::4", "fd00::5", 0, extended)), CANARY * 3, ethernet(plain, 0x88CC), ethernet(CANARY, 0x0024),
        *(ethernet(ip(CLIENT, SERVER, 6, tcp(40_000, port, n * 99, 1, 24, line % CANARY))) for n, (port, line) in
          enumerate(zip((21, 25, 6379, 80, 8080, 443), said, strict=True))),
        ethernet(ip(CLIENT, SERVER, 132, CANARY)), ethernet(ip(CLIENT, SERVER, 17, udp(4789, 4789, CANARY * 4))),
    ]  # fmt: skip
    return [at(n, frame) for n, frame in enumerate(frames)]


def tunnels() -> list[Record]:
    """The same segment in VLANs, PPPoE, GRE, IP in IP, VXLAN, Geneve and MPLS."""
    inner = ip(CLIENT, SERVER, 6, tcp(40_000, 443, 1, 0, 2))
    outer = ("192.0.2.1", "192.0.2.2")
    head = ethernet(b"E")[:12]
    bodies = [
        head + b"\x81\0\0\5\x08\0" + inner,
        head + b"\x88\xa8\0\5\x81\0\0\6\x08\0" + inner,
        head + b"\x88\x64\x11\0\0\1" + struct.pack(">H", 2 + len(inner)) + b"\0\x21" + inner,
        ethernet(ip(*outer, 47, b"\0\0\x08\0" + inner)),
        ethernet(ip(*outer, 47, b"\0\0\x65\x58" + ethernet(inner))),
        ethernet(ip(*outer, 4, inner)),
        ethernet(ip(*outer, 17, udp(50_000, 4789, b"\x08\0\0\0\0\0\1\0" + ethernet(inner)))),
        ethernet(ip(*outer, 17, udp(50_000, 6081, b"\0\0\x65\x58\0\0\1\0" + ethernet(inner)))),
        ethernet(b"\0\1\1\x40" + inner, 0x8847),
    ]
    return [at(n, body) for n, body in enumerate(bodies)]


def lossy() -> list[Record]:
    return transfer(3, segments=30, upstream=0.1, downstream=0.1, window=6)[0].records


def windows() -> list[Record]:
    """A window that closes and opens, probes and keep-alives, a repeat, ports used again."""
    talk = Talk().opened().c(1, 1, size=500).s(1, 501, window=0).c(501, 1, size=1).s(1, 501, window=0)
    talk.s(1, 501, window=500).c(501, 1, size=500).c(501, 1, size=500).s(1, 1001).c(1000, 1).s(1, 1001, after_ms=900)
    return talk.c(5000, 1, size=9).c(0, 0, 2).s(0, 0, 4, ttl=200).c(7000, 0, 2, after_ms=9000).records


SEEDS: dict[str, Callable[[], list[Record]]] = {
    "web": web, "names": names, "configuration": configuration, "services": services, "control": control,
    "odd": odd, "tunnels": tunnels, "lossy": lossy, "windows": windows,
    "secure": lambda: session(answer=CANARY * 40).records,
    "nothing": list,
}  # fmt: skip


@cache
def seed(name: str) -> tuple[Record, ...]:
    return tuple(SEEDS[name]())
