"""From bytes to addresses, ports and lengths, whatever carries them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.pcap.analysis import analyse
from ghost.pcap.model import Analysis
from tests.exhaustive import examples

from .wire import ACK, CLIENT, MS, SERVER, ethernet, ip, pcap, tcp, udp

SIX, OTHER_SIX = "2001:db8::1", "2001:db8::2"
INNER = ip(CLIENT, SERVER, 6, tcp(40000, 443, 1, 1, ACK, b"hello"))
INNER6 = ip(SIX, OTHER_SIX, 6, tcp(40000, 443, 1, 1, ACK, b"hello"))
SEGMENT = tcp(40000, 443, 1, 1, ACK, b"hello")


def analysed(tmp_path: Path, frame: bytes, link: int = 1) -> Analysis:
    path = tmp_path / "one.pcap"
    path.write_bytes(pcap([(1, frame)], link=link))
    return analyse(path)


def vlan(kind: int, packet: bytes) -> bytes:
    return struct.pack(">HH", 5, kind) + packet


def pppoe(packet: bytes) -> bytes:
    return struct.pack(">BBHHH", 0x11, 0, 1, len(packet) + 2, 0x21) + packet


def vxlan(packet: bytes, port: int = 4789) -> bytes:
    return ip("192.0.2.1", "192.0.2.2", 17, udp(50000, port, b"\x08\0\0\0\0\0\x01\0" + ethernet(packet)))


def gtp(packet: bytes, flags: int = 0, more: bytes = b"") -> bytes:
    head = struct.pack(">BBHI", 0x30 | flags, 255, len(more) + len(packet), 7) + more
    return ip("192.0.2.1", "192.0.2.2", 17, udp(2152, 2152, head + packet))


def mpls(inside: bytes) -> bytes:
    return b"\0\0\x10\x40\0\0\x21\x40" + inside


def geneve(kind: int, packet: bytes, options: bytes = b"") -> bytes:
    head = struct.pack(">BBHI", len(options) // 4, 0, kind, 7 << 8)
    return ip("192.0.2.1", "192.0.2.2", 17, udp(50000, 6081, head + options + packet))


PPTP = b"\x30\x01\x88\x0b" + struct.pack(">HHI", len(INNER) + 4, 7, 1)  # key and sequence number
ERSPAN = b"\x10\0\x88\xbe" + struct.pack(">III", 1, 0x10010001, 0)  # type II, with its header of eight bytes

ERSPAN_3 = b"\x10\0\x22\xeb" + struct.pack(">I", 1) + b"\x20" + b"\0" * 10 + b"\1" + b"\0" * 8  # with a subheader

CARRIERS = {
    "ethernet": (1, ethernet(INNER), ()),
    "vlan": (1, ethernet(vlan(0x0800, INNER), 0x8100), ("vlan",)),
    "qinq": (1, ethernet(vlan(0x8100, vlan(0x0800, INNER)), 0x88A8), ("vlan", "qinq")),
    "snap": (1, ethernet(b"\xaa\xaa\x03\0\0\0\x08\0" + INNER, len(INNER) + 8), ()),
    "pppoe": (1, ethernet(pppoe(INNER), 0x8864), ("pppoe",)),
    "mpls": (1, ethernet(mpls(INNER), 0x8847), ("mpls",)),
    "ethernet in mpls": (1, ethernet(mpls(ethernet(INNER)), 0x8847), ("mpls",)),
    "ethernet in mpls, with control word": (1, ethernet(mpls(b"\0\0\0\5" + ethernet(INNER)), 0x8847), ("mpls",)),
    "ah": (1, ethernet(ip(CLIENT, SERVER, 51, b"\6\4" + b"\0" * 22 + SEGMENT)), ()),
    "gtp": (1, ethernet(gtp(INNER)), ("gtp",)),
    "gtp, with number": (1, ethernet(gtp(INNER, 2, b"\0\1\0\0")), ("gtp",)),
    "gtp of 5g": (1, ethernet(gtp(INNER, 4, b"\0\0\0\x85\1\0\1\0")), ("gtp",)),
    "vxlan of linux": (1, ethernet(vxlan(INNER, 8472)), ("vxlan",)),
    "inner tunnel of a gateway load balancer": (1, ethernet(vxlan(INNER, 10800)), ("vxlan",)),
    "outer tunnel of a gateway load balancer": (1, ethernet(vxlan(INNER, 10801)), ("vxlan",)),
    "erspan III": (1, ethernet(ip("192.0.2.1", "192.0.2.2", 47, ERSPAN_3 + ethernet(INNER))), ("gre",)),
    "gre": (1, ethernet(ip("192.0.2.1", "192.0.2.2", 47, b"\0\0\x08\0" + INNER)), ("gre",)),
    "gre with key": (1, ethernet(ip("192.0.2.1", "192.0.2.2", 47, b"\x20\0\x08\0\0\0\0\7" + INNER)), ("gre",)),
    "ip in ip": (1, ethernet(ip("192.0.2.1", "192.0.2.2", 4, INNER)), ("ipip",)),
    "gre of pptp": (1, ethernet(ip("192.0.2.1", "192.0.2.2", 47, PPTP + b"\xff\x03\0\x21" + INNER)), ("gre",)),
    "erspan": (1, ethernet(ip("192.0.2.1", "192.0.2.2", 47, ERSPAN + ethernet(INNER))), ("gre",)),
    "vxlan": (1, ethernet(vxlan(INNER)), ("vxlan",)),
    "geneve": (1, ethernet(geneve(0x6558, ethernet(INNER))), ("geneve",)),
    "geneve with options, of a packet": (1, ethernet(geneve(0x0800, INNER, b"\0\1\2\1abcd")), ("geneve",)),
    "sll": (113, b"\0\0\0\1\0\6" + b"\0" * 8 + b"\x08\0" + INNER, ()),
    "sll2": (276, b"\x08\0" + b"\0" * 18 + INNER, ()),
    "raw": (101, INNER, ()),
    "raw, historic number": (12, INNER, ()),
    "null": (0, b"\2\0\0\0" + INNER, ()),
    "loop": (108, b"\0\0\0\2" + INNER, ()),
    "ppp": (9, b"\xff\x03\0\x21" + INNER, ()),
}


@pytest.mark.parametrize("name", CARRIERS)
def test_the_packet_inside_is_found_whatever_carries_it(tmp_path: Path, name: str) -> None:
    link, frame, encapsulation = CARRIERS[name]
    analysis = analysed(tmp_path, frame, link)
    assert analysis.tcp is not None
    stream = analysis.tcp.streams[0]
    assert (stream.client.endpoint.address, stream.client.endpoint.port) == (CLIENT, 40000)
    assert (stream.server.endpoint.address, stream.server.endpoint.port) == (SERVER, 443)
    assert stream.payload_bytes == 5
    assert stream.encapsulation == encapsulation


def test_ipv6_inside_ipv4_is_found(tmp_path: Path) -> None:
    analysis = analysed(tmp_path, ethernet(ip("192.0.2.1", "192.0.2.2", 41, INNER6)))
    assert analysis.tcp is not None
    stream = analysis.tcp.streams[0]
    assert (stream.client.endpoint.address, stream.server.endpoint.address) == (SIX, OTHER_SIX)
    assert stream.encapsulation == ("ipip",)


@pytest.mark.parametrize(
    ("first", "headers"),
    [
        (0, b"\6\0" + b"\0" * 6),
        (60, b"\x2b\0" + b"\0" * 6 + b"\6\2" + b"\0" * 22),
        (44, b"\6\0\0\0\0\0\0\1"),
        (51, b"\6\4" + b"\0" * 22),
    ],
)
def test_ipv6_extension_headers_are_walked(tmp_path: Path, first: int, headers: bytes) -> None:
    analysis = analysed(tmp_path, ethernet(ip(SIX, OTHER_SIX, first, headers + SEGMENT)))
    assert analysis.tcp is not None
    assert analysis.tcp.streams[0].client.endpoint.address == SIX
    assert analysis.tcp.totals.payload_bytes == 5


def test_ipv4_options_are_skipped(tmp_path: Path) -> None:
    packet = bytearray(ip(CLIENT, SERVER, 6, b"\1\1\1\0" + SEGMENT))
    packet[0] = 0x46
    analysis = analysed(tmp_path, ethernet(bytes(packet)))
    assert analysis.tcp is not None
    assert analysis.tcp.streams[0].server.endpoint.port == 443


def test_a_later_fragment_is_counted_and_not_taken_for_a_header(tmp_path: Path) -> None:
    analysis = analysed(tmp_path, ethernet(ip(CLIENT, SERVER, 6, SEGMENT, fragment=100)))
    assert analysis.summary.fragments == 1
    assert analysis.tcp is None


def test_ethernet_padding_is_not_payload(tmp_path: Path) -> None:
    analysis = analysed(tmp_path, ethernet(ip(CLIENT, SERVER, 6, tcp(40000, 443, 1, 1, ACK))) + b"\0" * 6)
    assert analysis.tcp is not None
    assert analysis.tcp.totals.payload_bytes == 0


def test_a_total_length_of_zero_means_segmentation_offload(tmp_path: Path) -> None:
    packet = bytearray(ip(CLIENT, SERVER, 6, tcp(40000, 443, 1, 1, ACK, b"x" * 3000)))
    packet[2:4] = b"\0\0"
    analysis = analysed(tmp_path, ethernet(bytes(packet)))
    assert analysis.tcp is not None
    assert analysis.tcp.streams[0].client.largest_segment == 3000


@pytest.mark.parametrize("link", [105, 65535])
def test_an_unknown_link_type_is_named_and_its_packets_counted_as_undecoded(tmp_path: Path, link: int) -> None:
    summary = analysed(tmp_path, INNER, link).summary
    assert summary.link_types == (f"LINKTYPE_{link}",)
    assert summary.undecoded_packets == 1
    assert [(each.why, each.packets) for each in summary.unread] == [("link_type", 1)]


OVER_UDP = ip(CLIENT, SERVER, 17, udp(40000, 51820, b"\4\0\0\0" + b"x" * 60))
UNREAD = {
    "ESP (encrypted)": ("encrypted", ethernet(ip(CLIENT, SERVER, 50, b"x" * 80))),
    "WireGuard (encrypted)": ("encrypted", ethernet(OVER_UDP)),
    "MACsec (encrypted)": ("encrypted", ethernet(b"x" * 60, 0x88E5)),
    "SCTP": ("protocol", ethernet(ip(CLIENT, SERVER, 132, b"x" * 80))),
    "EtherType 0x1234": ("protocol", ethernet(b"x" * 60, 0x1234)),
    "PPP 0x0053": ("protocol", ethernet(struct.pack(">BBHHH", 0x11, 0, 1, 62, 0x53) + b"x" * 60, 0x8864)),
    "inside mpls": ("tunnel", ethernet(mpls(b"\x10" + b"x" * 60), 0x8847)),
    "inside gre": ("tunnel", ethernet(ip(CLIENT, SERVER, 47, b"\0\0\0\0" + b"x" * 60))),
    "VXLAN": ("tunnel", ethernet(ip(CLIENT, SERVER, 17, udp(40000, 8472, b"x" * 60)))),
    "GTP-U without an IP packet": ("tunnel", ethernet(gtp(b"x" * 60))),
    "damaged headers": ("damaged", ethernet(ip(CLIENT, SERVER, 6, b"x" * 8))),
    "STP": ("control", ethernet(b"\x42\x42\3" + b"\0" * 40, 43)),
    "LLDP": ("control", ethernet(b"x" * 60, 0x88CC)),
    "LCP": ("control", ethernet(struct.pack(">BBHHH", 0x11, 0, 1, 12, 0xC021) + b"x" * 10, 0x8864)),
    "OSPF": ("control", ethernet(ip(CLIENT, SERVER, 89, b"x" * 60))),
    "CDP": ("control", ethernet(b"\xaa\xaa\3\0\0\x0c\x20\0" + b"x" * 40, 48)),
}


@pytest.mark.parametrize("what", UNREAD)
def test_what_is_not_decoded_is_counted_with_its_reason(tmp_path: Path, what: str) -> None:
    why, frame = UNREAD[what]
    summary = analysed(tmp_path, frame).summary
    assert [(each.what, each.why, each.packets) for each in summary.unread] == [(what, why, 1)]
    assert summary.unread_packets == (why != "control")
    assert summary.total_packets == 1


def test_headers_that_the_snap_length_cut_are_counted_as_such(tmp_path: Path) -> None:
    frame = ethernet(vxlan(INNER))
    path = tmp_path / "cut.pcap"
    records = struct.pack("<IIII", 1, 0, 64, len(frame)) + frame[:64]
    path.write_bytes(pcap([]) + records)
    assert [(each.what, each.packets) for each in analyse(path).summary.unread] == [
        ("headers cut by the snap length", 1)
    ]


@pytest.mark.parametrize("ports", [(51820, 53), (4500, 123), (53, 8472), (53, 10800)])
def test_a_query_from_the_port_of_a_tunnel_is_a_query(tmp_path: Path, ports: tuple[int, int]) -> None:
    query = b"\x08\0\1\0\0\1\0\0\0\0\0\0\1a\0\0\1\0\1" + b"\0" * 29
    analysis = analysed(tmp_path, ethernet(ip(CLIENT, SERVER, 17, udp(*ports, query))))
    assert analysis.summary.protocols_present["udp"] == 1
    assert not [each for each in analysis.summary.unread if each.why == "encrypted"]
    assert not analysis.summary.unread_packets


def test_more_reasons_than_the_table_has_are_counted_together(tmp_path: Path) -> None:
    path = tmp_path / "many.pcap"
    frames = [ethernet(ip(CLIENT, SERVER, 140 + n % 60, b"x" * 40)) for n in range(120)]
    path.write_bytes(pcap([(n, frame) for n, frame in enumerate(frames)]))
    summary = analyse(path).summary
    assert summary.unread_packets == 120
    assert {each.what: each.packets for each in summary.unread}["others"] == 120 - 2 * 31


def test_the_same_packet_seen_twice_is_a_duplicate_and_no_loss(tmp_path: Path) -> None:
    frame = ethernet(ip(CLIENT, SERVER, 6, tcp(40000, 443, 1, 1, ACK, b"xx"), number=77))
    path = tmp_path / "twice.pcap"
    path.write_bytes(pcap([(1_000_000, frame), (1_100_000, frame)]))
    analysis = analyse(path)
    assert analysis.summary.duplicate_packets.frames == (2,)
    assert analysis.tcp is not None
    assert analysis.tcp.totals.retransmissions == 1
    assert analysis.tcp.streams[0].client.lost == 0


@settings(max_examples=examples(30), deadline=None)
@given(
    st.sampled_from(sorted(CARRIERS)),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=8),
    st.integers(0, 200),
)
def test_a_damaged_packet_never_stops_the_analysis(
    tmp_path_factory: pytest.TempPathFactory, name: str, edits: list[tuple[int, int]], keep: int
) -> None:
    link, frame, _ = CARRIERS[name]
    changed = bytearray(frame)
    for at, value in edits:
        changed[at % len(changed)] = value
    assert analysed(tmp_path_factory.getbasetemp(), bytes(changed[:keep]), link).summary.total_packets == 1


def test_the_seed_of_the_address_table_changes_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        (n * MS, ethernet(ip(f"10.{n % 7}.{n % 250}.{n % 13}", "10.0.0.1", 17, udp(9, 9)))) for n in range(0, 1400, 2)
    ]
    records += [(n * MS, ethernet(ip(f"2001:db8::{n:x}", "2001:db8::1", 17, udp(9, 9)))) for n in range(1400)]
    (tmp_path / "many.pcap").write_bytes(pcap(records))
    found = []
    for seed in (0, 1, 0xFFFFFFFF):
        monkeypatch.setattr("secrets.randbits", lambda _, seed=seed: seed)
        found.append(analyse(tmp_path / "many.pcap"))
    assert found[0].udp is not None
    assert found[0].udp.conversations_total > 1000
    assert found[0].udp == found[1].udp == found[2].udp
