"""QUIC: attempts, versions, what is not answered, and the name in a client's Initial packets."""

from __future__ import annotations

import hashlib
import hmac
import struct
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.pcap.analysis import analyse
from ghost.pcap.model import QuicSection
from ghost.pcap.protocols.quic_initial import LongHeader, crypto_frames, joined, read_long_header
from ghost.pcap.protocols.quic_tracker import QuicTracker
from tests.exhaustive import examples

from .talks import later
from .test_tls import hello
from .wire import CLIENT, MS, SERVER, Record, ethernet, ip, pcap, udp

START = 1_700_000_000 * 10**9
V1, V2 = 1, 0x6B3343CF
RFC_ID = bytes.fromhex("8394c8f03e515708")
CLIENT_ID, SERVER_ID = b"clientid", b"serverid"
SALTS = {V1: "38762cf7f55934b34d179ae6a4c80cadccbb7f0a", V2: "0dede3def700a6db819381be6e269dcbf9bd2ed9"}


def expand(secret: bytes, label: str, size: int) -> bytes:
    text = b"tls13 " + label.encode()
    return HKDFExpand(SHA256(), size, struct.pack(">HB", size, len(text)) + text + b"\0").derive(secret)


def keys(version: int, identity: bytes) -> tuple[bytes, bytes, bytes]:
    initial = hmac.digest(bytes.fromhex(SALTS[version]), identity, hashlib.sha256)
    secret, name = expand(initial, "client in", 32), "quic" if version == V1 else "quicv2"
    return expand(secret, f"{name} key", 16), expand(secret, f"{name} iv", 12), expand(secret, f"{name} hp", 16)


def crypto(offset: int, octets: bytes) -> bytes:
    return b"\x06" + struct.pack(">HH", 0x4000 | offset, 0x4000 | len(octets)) + octets


def initial(
    frames: bytes, *, version: int = V1, number: int = 0, identity: bytes = RFC_ID, destination: bytes | None = None,
    token: bytes = b"",
) -> bytes:  # fmt: skip
    """A client's Initial packet, protected as RFC 9001 says."""
    frames += bytes(max(1162 - len(frames), 0))
    destination = identity if destination is None else destination
    first = (0xC0 if version == V1 else 0xD0) | 3
    head = bytes([first]) + struct.pack(">I", version) + bytes([len(destination)]) + destination
    head += bytes([len(CLIENT_ID)]) + CLIENT_ID + bytes([len(token)]) + token
    head += struct.pack(">H", 0x4000 | (4 + len(frames) + 16)) + struct.pack(">I", number)
    key, vector, mask_key = keys(version, identity)
    nonce = (int.from_bytes(vector, "big") ^ number).to_bytes(12, "big")
    sealed = AESGCM(key).encrypt(nonce, frames, head)
    mask = Cipher(algorithms.AES(mask_key), modes.ECB()).encryptor().update(sealed[:16])
    numbered = bytes(a ^ b for a, b in zip(head[-4:], mask[1:5], strict=True))
    return bytes([first ^ (mask[0] & 15)]) + head[1:-4] + numbered + sealed


def server_packet(kind: int, version: int = V1, source: bytes = SERVER_ID) -> bytes:
    ids = bytes([len(CLIENT_ID)]) + CLIENT_ID + bytes([len(source)]) + source
    return bytes([0xC0 | kind << 4]) + struct.pack(">I", version) + ids + b"\0\x40\x20" + bytes(40)


def asked(at_ms: float, datagram: bytes, port: int = 50_000, to: int = 443) -> Record:
    return START + int(at_ms * MS), ethernet(ip(CLIENT, SERVER, 17, udp(port, to, datagram)))


def answered(at_ms: float, datagram: bytes, port: int = 50_000, to: int = 443) -> Record:
    return START + int(at_ms * MS), ethernet(ip(SERVER, CLIENT, 17, udp(to, port, datagram)))


def section(tmp_path: Path, *records: Record) -> QuicSection:
    path = tmp_path / "quic.pcap"
    path.write_bytes(pcap(sorted(records)))
    found = analyse(path).quic
    assert found is not None
    return found


def message() -> bytes:
    return hello()[5:]


def test_the_keys_are_those_of_the_standard() -> None:
    """RFC 9001, A.1."""
    key, vector, mask = keys(V1, RFC_ID)
    assert key.hex() == "1f369613dd76d5467730efcbe3b1a22d"
    assert vector.hex() == "fa044b2f42a3fd3b46fb255c"
    assert mask.hex() == "9f50449e04a0e810283a1e9933adedd2"


@pytest.mark.parametrize(("version", "name"), [(V1, "1"), (V2, "2")])
def test_an_answered_attempt_tells_version_and_server_name(tmp_path: Path, version: int, name: str) -> None:
    kind = 0 if version == V1 else 1
    found = section(
        tmp_path, asked(0, initial(crypto(0, message()), version=version)),
        answered(20, server_packet(kind, version)), later(60_000),
    )  # fmt: skip
    assert (found.initials, found.connections, found.versions) == (2, 1, {name: 2})
    assert (found.server_names, found.unanswered_total) == ({"service.example": 1}, 0)


def test_a_hello_in_pieces_over_several_packets_and_out_of_order_is_read(tmp_path: Path) -> None:
    whole = message()
    third = len(whole) // 3
    second = initial(crypto(third, whole[third : 2 * third]) + crypto(0, whole[:third]), number=1)
    found = section(tmp_path, asked(0, initial(b"\1" + crypto(2 * third, whole[2 * third :]))), asked(1, second))
    assert (found.server_names, found.initials, found.connections) == ({"service.example": 1}, 2, 1)


def test_a_retry_changes_the_keys_and_is_an_answer(tmp_path: Path) -> None:
    again = initial(crypto(0, message()), identity=SERVER_ID, token=b"token", number=1)
    found = section(
        tmp_path, asked(0, initial(crypto(0, message()[:50]))), answered(20, server_packet(3)), asked(40, again),
        later(60_000),
    )  # fmt: skip
    assert (found.retry.count, found.unanswered_total, found.server_names) == (1, 0, {"service.example": 1})


def test_attempts_that_nothing_answers_are_told_by_server(tmp_path: Path) -> None:
    tries = [asked(at, initial(crypto(0, message())), port) for port in (50_000, 50_001) for at in (0, 300, 900)]
    found = section(tmp_path, *tries, later(60_000))
    (silent,) = found.unanswered
    assert (silent.server, silent.port, silent.attempts, silent.packets) == (SERVER, 443, 2, 6)
    assert (found.unanswered_total, found.server_names) == (2, {"service.example": 2})


def test_a_server_without_a_common_version_says_so(tmp_path: Path) -> None:
    ids = bytes([8]) + CLIENT_ID + bytes([8]) + RFC_ID
    refusal = b"\x80\0\0\0\0" + ids + struct.pack(">II", V2, 0xFF00001D)
    found = section(tmp_path, asked(0, initial(crypto(0, message()))), answered(20, refusal), later(60_000))
    assert (found.version_negotiation.frames, found.unanswered_total) == ((2,), 0)


def test_other_ports_count_where_the_first_bytes_fit_and_other_protocols_do_not(tmp_path: Path) -> None:
    found = section(tmp_path, asked(0, initial(crypto(0, message())), to=8443))
    assert (found.initials, found.server_names) == (1, {"service.example": 1})
    path = tmp_path / "rtp.pcap"
    path.write_bytes(pcap([asked(0, b"\x80\x60\0\1" + bytes(168), to=8443), asked(1, bytes(100))]))
    assert analyse(path).quic is None


@settings(max_examples=examples(30), deadline=None)
@given(st.binary(max_size=120), st.integers(0, 1250), st.integers(0, 1249))
def test_arbitrary_cut_and_damaged_packets_never_break(octets: bytes, keep: int, place: int) -> None:
    whole = initial(crypto(0, message()))
    damaged = whole[:place] + bytes([whole[place % len(whole)] ^ 0x55]) + whole[place + 1 :]
    tracker = QuicTracker()
    for frame, datagram in enumerate((octets, whole[:keep], whole[:keep] + octets, damaged), 1):
        header = read_long_header(datagram)
        if header is not None:
            assert isinstance(header, LongHeader)
            for offset, piece in crypto_frames(datagram, header, RFC_ID):
                joined({offset: piece})
        tracker.packet(datagram, (1 << 16 | frame, 2 << 16 | 443), frame, frame)
    tracker.section(str, 10**12)


@given(st.dictionaries(st.integers(0, 40), st.binary(min_size=1, max_size=30), max_size=8))
def test_arbitrary_pieces_never_break(pieces: dict[int, bytes]) -> None:
    whole = joined(pieces)
    assert whole is None or len(whole) <= 70


def test_equal_pieces_at_several_places_are_put_where_they_belong() -> None:
    body = b"\1\0\0\4aaaa"
    assert joined({place: body[place : place + 1] for place in range(8)}) == b"aaaa"
    assert joined({0: body[:6], 5: b"a", 2: body[2:]}) == b"aaaa"
    assert joined({0: body[:4], 5: b"aaa"}) is None


@pytest.mark.needs("tshark")
def test_names_in_initial_packets_agree_with_tshark(tmp_path: Path) -> None:
    path = tmp_path / "quic.pcap"
    other = initial(crypto(0, message()), identity=b"another1")
    path.write_bytes(pcap([asked(0, initial(crypto(0, message()))), asked(9, other, 50_001)]))
    command = ["tshark", "-r", str(path), "-T", "fields", "-e", "tls.handshake.extensions_server_name"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    found = analyse(path).quic
    assert found is not None
    assert found.server_names == {"service.example": len(names)} == {"service.example": 2}
