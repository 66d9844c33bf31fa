"""TLS handshakes: real endpoints talk in memory, and what the capture shows of it is told right."""

from __future__ import annotations

import random
import ssl
import struct
import subprocess
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.pcap.analysis import analyse
from ghost.pcap.findings import find
from ghost.pcap.model import Certificate, TlsFailure, TlsSection
from ghost.pcap.protocols.tls_certificates import read_certificate
from ghost.pcap.protocols.tls_messages import (
    read_certificates,
    read_client_hello,
    read_server_hello,
    read_ssl2_hello,
    version_name,
)
from ghost.pcap.protocols.tls_record_stream import Records
from ghost.pcap.protocols.tls_tracker import TlsTracker
from ghost.pcap.tcp.stream_endings import End, Ending
from tests.exhaustive import examples, sample

from .agreement import captures_with
from .talks import Connection, TlsPair, certificate, client_context, later, server_context, tls
from .wire import MS, Record, pcap

DAY_MS = 86_400_000
CANARY = b"CANARY-0123456789"


def section(tmp_path: Path, *records: Record) -> TlsSection:
    path = tmp_path / "tls.pcap"
    path.write_bytes(pcap(sorted(records)))
    found = analyse(path).tls
    assert found is not None
    return found


def only_failure(tmp_path: Path, *records: Record) -> TlsFailure:
    found = section(tmp_path, *records)
    assert (found.failures_total, found.handshakes_completed) == (1, 0)
    return found.failures[0]


def limited(context: ssl.SSLContext, version: ssl.TLSVersion) -> ssl.SSLContext:
    context.maximum_version = version
    return context


@cache
def hello() -> bytes:
    """What a real client writes first."""
    return next(octets for _, octets in TlsPair(client_context(), server_context()).handshake())


def session(answer: bytes = CANARY * 4000, **connection: int) -> Connection:
    """A whole TLS 1.3 connection that carries canaries."""
    pair = TlsPair(client_context(), server_context())
    talk = tls(pair, Connection(**connection))  # type: ignore[arg-type]
    for from_client, octets in pair.exchange(CANARY, answer):
        talk.send(from_client, octets)
    for from_client, octets in pair.flights([(True, ssl.SSLObject.unwrap), (False, ssl.SSLObject.unwrap)]):
        talk.send(from_client, octets)
    return talk.closes()


@pytest.mark.parametrize("mss", [200, 536, 1400])
def test_a_handshake_of_tls_1_3_is_complete_whatever_the_segments(tmp_path: Path, mss: int) -> None:
    found = section(tmp_path, *session(mss=mss).records, later(600_000))
    assert (found.client_hellos, found.server_hellos, found.handshakes_completed) == (1, 1, 1)
    assert found.versions_offered == found.versions_chosen == {"TLS 1.3": 1}
    assert (found.server_names, found.failures, found.alerts) == ({"service.example": 1}, (), {})
    assert found.handshake_ms is not None


@pytest.mark.parametrize("mss", [200, 536, 1400])
def test_a_certificate_that_spans_segments_is_read(tmp_path: Path, mss: int) -> None:
    older = limited(client_context(), ssl.TLSVersion.TLSv1_2)
    talk = tls(TlsPair(older, server_context(days=10)), Connection(mss=mss)).closes()
    found = section(tmp_path, *talk.records)
    assert (found.handshakes_completed, found.versions_chosen) == (1, {"TLS 1.2": 1})
    (certificate,) = found.certificates
    assert certificate.subject == certificate.issuer == "CN=service.example"
    assert certificate.names == ("service.example", "10.0.2.4")
    assert certificate.self_signed
    assert (certificate.server, certificate.port) == ("10.0.2.4", 443)
    assert round(certificate.days_left) == 10
    assert not certificate.expired


def test_expiry_is_judged_by_the_time_of_the_capture(tmp_path: Path) -> None:
    older = limited(client_context(), ssl.TLSVersion.TLSv1_2)
    talk = Connection().waits(11 * DAY_MS)
    (certificate,) = section(tmp_path, *tls(TlsPair(older, server_context(days=10)), talk).records).certificates
    assert certificate.expired
    early = Connection().waits(-2 * DAY_MS)
    (certificate,) = section(tmp_path, *tls(TlsPair(older, server_context(days=10)), early).records).certificates
    assert certificate.not_yet_valid
    assert not certificate.expired


@pytest.mark.parametrize(
    ("name", "asked", "covered"),
    [
        ("shop.example", "Shop.Example.", True), ("*.shop.example", "a.shop.example", True), ("*", "shop", False),
        ("*.shop.example", "shop.example", False), ("*.shop.example", "a.b.shop.example", False),
        ("10.0.2.4", "10.0.2.4", True), ("a*.shop.example", "ab.shop.example", False), ("*.example", "", False),
    ],
)  # fmt: skip
def test_a_wildcard_stands_for_one_label(name: str, asked: str, covered: bool) -> None:
    assert Certificate("10.0.2.4", 443, "", "", (name,), 0, 0, False, 1).is_for(asked) == covered


def test_a_failed_handshake_holds_what_the_server_had_sent(tmp_path: Path) -> None:
    strict = limited(client_context(trusting=False), ssl.TLSVersion.TLSv1_2)
    pair = TlsPair(strict, server_context(), name="other.example")
    sent = only_failure(tmp_path, *tls(pair).closes().records).certificate
    assert sent is not None
    assert (sent.asked, sent.is_for("other.example"), sent.issuer_sent) == (("other.example",), False, False)
    newer = only_failure(tmp_path, *tls(TlsPair(client_context(trusting=False), server_context())).closes().records)
    assert newer.certificate is None


def test_a_client_that_refuses_the_certificate_says_so(tmp_path: Path) -> None:
    strict = limited(client_context(trusting=False), ssl.TLSVersion.TLSv1_2)
    failure = only_failure(tmp_path, *tls(TlsPair(strict, server_context())).closes().records)
    assert (failure.stage, failure.alert, failure.alert_from) == ("alert", "unknown_ca", "client")
    assert (failure.server_name, failure.chosen_version) == ("service.example", "TLS 1.2")


def test_versions_that_do_not_meet_are_told_with_what_was_offered(tmp_path: Path) -> None:
    modern = server_context()
    modern.minimum_version = ssl.TLSVersion.TLSv1_3
    pair = TlsPair(limited(client_context(), ssl.TLSVersion.TLSv1_2), modern)
    failure = only_failure(tmp_path, *tls(pair).closes(False).records)
    assert (failure.stage, failure.alert, failure.alert_from) == ("alert", "protocol_version", "server")
    assert (failure.offered_version, failure.chosen_version) == ("TLS 1.2", None)


def test_failures_at_one_server_hide_none_at_another_and_all_are_counted(tmp_path: Path) -> None:
    def refused(number: int, server: str, at_ms: int) -> list[Record]:
        talk = Connection(server=server, client_port=30_000 + number, now=at_ms * MS).opened()
        return talk.send(True, hello()).send(False, b"\x15\3\3\0\2\2\x28").closes().records

    records = [record for n in range(90) for record in refused(n, "10.0.2.1" if n < 60 else "10.0.2.2", 1_000 * n)]
    path = tmp_path / "refused.pcap"
    path.write_bytes(pcap(records))
    found = [finding for finding in find(analyse(path)) if finding.kind == "tls_failure"]
    assert [(one.who.dst, one.measured["failed"]) for one in found] == [("10.0.2.1", 60), ("10.0.2.2", 30)]


def test_a_server_that_wants_a_certificate_in_tls_1_3_is_seen_to_refuse_though_its_alert_is_encrypted(
    tmp_path: Path,
) -> None:
    strict = server_context()
    strict.verify_mode = ssl.CERT_REQUIRED
    failure = only_failure(tmp_path, *tls(TlsPair(client_context(), strict)).closes(False).records)
    assert (failure.stage, failure.alert, failure.alert_from) == ("alert", "encrypted", "server")


@pytest.mark.parametrize("separate", [False, True])
def test_an_encrypted_alert_of_the_client_in_place_of_its_last_flight_is_a_failure(
    tmp_path: Path, separate: bool
) -> None:
    change, alert = b"\x14\3\3\0\1\1", b"\x17\3\3\0\x13" + bytes(19)
    flights = [octets for _, octets in TlsPair(client_context(), server_context()).handshake()]
    talk = Connection().opened().asks(flights[0]).answers(flights[1])
    for octets in (change, alert) if separate else (change + alert,):
        talk.asks(octets)
    failure = only_failure(tmp_path, *talk.closes().records)
    assert (failure.stage, failure.alert, failure.alert_from) == ("alert", "encrypted", "client")


def test_a_client_that_checks_the_port_and_closes_is_no_failure(tmp_path: Path) -> None:
    """Its close and the server's are alerts, too."""
    pair = TlsPair(client_context(), server_context())
    pair.server_context.num_tickets = 0
    talk = tls(pair)
    for from_client, octets in pair.flights([(True, ssl.SSLObject.unwrap), (False, ssl.SSLObject.unwrap)]):
        talk.send(from_client, octets)
    found = section(tmp_path, *talk.closes().records)
    assert (found.handshakes_completed, found.failures) == (1, ())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_goodbye_in_the_segment_that_ends_the_handshake_refuses_nobody(
    tmp_path: Path, version: ssl.TLSVersion
) -> None:
    """A probe says goodbye right behind its last flight, and a card or a kernel joins the two."""
    pair = TlsPair(limited(client_context(), version), server_context())
    pair.server_context.num_tickets = 0
    talk = Connection().opened()
    flights = list(pair.handshake())
    last_of_all = next(octets for _, octets in pair.flights([(flights[-1][0], ssl.SSLObject.unwrap)]))
    for from_client, octets in flights[:-1]:
        talk.send(from_client, octets)
    talk.send(flights[-1][0], flights[-1][1] + last_of_all)
    found = section(tmp_path, *talk.closes(flights[-1][0]).records)
    assert (found.handshakes_completed, found.failures) == (1, ())


def test_a_hello_retry_is_part_of_one_handshake(tmp_path: Path) -> None:
    picky = server_context()
    picky.set_ecdh_curve("secp384r1")
    found = section(tmp_path, *tls(TlsPair(client_context(), picky)).closes().records)
    assert (found.client_hellos, found.server_hellos, found.hello_retries) == (2, 1, 1)
    assert (found.handshakes_completed, found.failures) == (1, ())


@pytest.mark.parametrize("server_too", [False, True])
def test_a_finish_in_a_segment_of_its_own_is_passed_over_and_the_goodbye_behind_it_refuses_nobody(
    tmp_path: Path, server_too: bool
) -> None:
    """The change of cipher comes alone, as of Java and of the first clients of TLS 1.3."""
    pair = TlsPair(client_context(), server_context())
    pair.server_context.num_tickets = 0
    asked, flight, finish = (octets for _, octets in list(pair.handshake())[:3])
    talk = Connection().opened().asks(asked).answers(flight).asks(finish[:6]).asks(finish[6:])
    goodbyes = [(side, ssl.SSLObject.unwrap) for side in (True, False)[: 1 + server_too]]
    for from_client, octets in pair.flights(goodbyes):
        talk.send(from_client, octets)
    found = section(tmp_path, *talk.closes().records)
    assert (found.handshakes_completed, found.failures) == (1, ())


def test_the_middle_of_a_certificate_that_was_overtaken_is_read(tmp_path: Path) -> None:
    """The segment that overtakes it ends the server's flight."""
    (_, asked), (_, flight), *rest = TlsPair(
        limited(client_context(), ssl.TLSVersion.TLSv1_2), server_context()
    ).handshake()
    talk = Connection().opened().asks(asked)
    begin, talk.mss = len(talk.records), (len(flight) - 180) // 2
    talk.answers(flight).mss = 1400
    for from_client, octets in rest:
        talk.send(from_client, octets)
    whens, frames = zip(*talk.closes().records, strict=True)
    overtaken = [*frames[: begin + 1], frames[begin + 2], frames[begin + 1], *frames[begin + 3 :]]
    found = section(tmp_path, *zip(whens, overtaken, strict=True))
    assert (found.handshakes_completed, found.failures, len(found.certificates)) == (1, (), 1)


ENDINGS: dict[str, tuple[Callable[[Connection], Connection], str, str | None, str | None]] = {
    "silence": (lambda talk: talk, "no_server_hello", None, "server"),
    "the client gives up": (lambda talk: talk.waits(10_000).closes(), "no_server_hello", "client", "server"),
    "the server closes": (lambda talk: talk.closes(False), "closed_in_handshake", "server", None),
    "the server resets": (lambda talk: talk.resets(False), "reset_in_handshake", "server", None),
    "the client resets at once": (lambda talk: talk.resets(True), "reset_in_handshake", "client", None),
    "an answer that is no TLS": (
        lambda talk: talk.answers(b"220 mail.example ESMTP\r\n").closes(), "not_tls", "client", None,
    ),
    "an answer in HTTP": (
        lambda talk: talk.answers(b"HTTP/1.1 400 Bad Request\r\n\r\n").closes(False), "not_tls", "server", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", ENDINGS)
def test_a_hello_without_a_server_hello_says_how_it_ended(tmp_path: Path, how: str) -> None:
    end, stage, ended_by, silent = ENDINGS[how]
    failure = only_failure(tmp_path, *end(Connection().opened().asks(hello())).records, later(60_000))
    assert (failure.stage, failure.ended_by, failure.silent) == (stage, ended_by, silent)
    assert 4 in failure.frames


def test_a_handshake_that_stops_after_both_hellos_hangs_and_says_who_owes(tmp_path: Path) -> None:
    flights = [octets for _, octets in TlsPair(client_context(), server_context()).handshake()]
    whole = Connection().opened().asks(flights[0]).answers(flights[1])
    failure = only_failure(tmp_path, *whole.records, later(60_000))
    assert (failure.stage, failure.silent) == ("hung", "client")
    cut = Connection().opened().asks(flights[0]).answers(flights[1][:600])
    failure = only_failure(tmp_path, *cut.records, later(60_000))
    assert (failure.stage, failure.silent) == ("hung", "server")


def test_a_capture_that_stops_within_a_handshake_blames_nobody(tmp_path: Path) -> None:
    found = section(tmp_path, *Connection().opened().asks(hello()).records, later(1_000))
    assert (found.client_hellos, found.failures_total) == (1, 0)


def test_one_direction_alone_proves_no_failure(tmp_path: Path) -> None:
    talk = session()
    client_only = [record for record in talk.records if record[1][26:30] == b"\x0a\0\1\4"]
    found = section(tmp_path, *client_only, later(60_000))
    assert (found.client_hellos, found.failures) == (1, ())


@settings(max_examples=examples(5), deadline=None)
@given(st.randoms(use_true_random=False))
def test_reordered_and_repeated_segments_say_the_same(
    tmp_path_factory: pytest.TempPathFactory, chance: random.Random
) -> None:
    older = limited(client_context(), ssl.TLSVersion.TLSv1_2)
    talk = tls(TlsPair(older, server_context()), Connection(mss=300)).closes()
    records = []
    for when, frame in talk.records:
        late = when + chance.choice((0, 0, 0, 1_500_000))
        records.append((late, frame))
        if chance.random() < 0.2:
            records.append((late + 500_000, frame))
    folder = tmp_path_factory.mktemp("reordered")
    found = section(folder, *records)
    assert (found.client_hellos, found.server_hellos, found.failures) == (1, 1, ())
    assert len(found.certificates) == 1
    assert found.server_names == {"service.example": 1}


def cut_at(snap: int, records: Iterable[Record], path: Path) -> TlsSection | None:
    """What is told of a capture that kept so many bytes of each frame."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, snap, 1)]
    for when, frame in records:
        head = struct.pack("<IIII", when // 10**9, when % 10**9 // 1000, min(len(frame), snap), len(frame))
        parts.append(head + frame[:snap])
    path.write_bytes(b"".join(parts))
    return analyse(path, compile_kernels=False).tls


def test_a_snap_length_leaves_what_fits(tmp_path: Path) -> None:
    found = cut_at(200, session().records, tmp_path / "cut.pcap")
    assert found is not None
    assert (found.client_hellos, found.server_hellos, found.failures) == (1, 1, ())


@pytest.mark.parametrize("mss", [1460, 536])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_no_snap_length_makes_a_good_handshake_fail(tmp_path: Path, version: ssl.TLSVersion, mss: int) -> None:
    """Whoever says goodbye first, and with what was cut where."""
    pair = TlsPair(limited(client_context(), version), server_context())
    talk = tls(pair, Connection(mss=mss))
    for from_client, octets in pair.exchange(CANARY, CANARY * 300):
        talk.send(from_client, octets)
    for from_client, octets in pair.flights([(True, ssl.SSLObject.unwrap), (False, ssl.SSLObject.unwrap)]):
        talk.send(from_client, octets)
    records = [*talk.closes().records, later(60_000)]
    for snap in sample((*range(54, 400, 3), *range(400, 1520, 40)), 32, mss):
        found = cut_at(snap, records, tmp_path / "cut.pcap")
        assert found is None or found.failures == (), snap


@pytest.mark.parametrize("snap", [128, 180, 256, 400, 700, 1514])
def test_an_alert_in_clear_is_a_failure_whatever_else_was_cut(tmp_path: Path, snap: int) -> None:
    pair = TlsPair(limited(client_context(), ssl.TLSVersion.TLSv1_2), server_context())
    flights = [octets for _, octets in pair.handshake()]
    talk = Connection().opened().asks(flights[0]).answers(flights[1]).asks(b"\x15\3\3\0\2\2\x2d")
    found = cut_at(snap, talk.closes().records, tmp_path / "cut.pcap")
    assert found is not None
    assert [(each.stage, each.alert) for each in found.failures] == [("alert", "certificate_expired")]


@pytest.mark.parametrize("snap", [256, 400, 1514])
def test_a_client_that_refuses_in_tls_1_3_is_seen_though_the_servers_flight_was_cut(tmp_path: Path, snap: int) -> None:
    flights = [octets for _, octets in TlsPair(client_context(), server_context()).handshake()]
    talk = Connection().opened().asks(flights[0]).answers(flights[1])
    talk.asks(b"\x14\3\3\0\1\1" + b"\x17\3\3\0\x13" + bytes(19))
    found = cut_at(snap, talk.closes().records, tmp_path / "cut.pcap")
    assert found is not None
    assert [(each.stage, each.alert_from) for each in found.failures] == [("alert", "client")]


@pytest.mark.parametrize("snap", [128, 256, 1514])
def test_a_hello_that_was_cut_and_never_answered_is_a_failure(tmp_path: Path, snap: int) -> None:
    talk = Connection().opened().asks(hello())
    found = cut_at(snap, [*talk.records, later(60_000)], tmp_path / "cut.pcap")
    assert found is not None
    assert [each.stage for each in found.failures] == ["no_server_hello"]


def test_application_data_reaches_no_reader() -> None:
    """Of a long transfer only what the handshake and the close need is handed over."""
    import numpy as np

    from ghost.pcap.array_types import interpreted_kernel, interpreted_vector
    from ghost.pcap.kernels.decoder import Decoder
    from ghost.pcap.layout import CAPTURED, LINK, MARK, MARK_TLS, OFFSET, PACKET, WIRE

    talk = session(CANARY * 50_000)
    rows = np.zeros((len(talk.records), PACKET), np.int64)
    at = 0
    for row, (_, frame) in zip(rows, talk.records, strict=True):
        row[OFFSET], row[CAPTURED], row[WIRE], row[LINK] = at, len(frame), len(frame), 1
        at += len(frame)
    buffer = np.frombuffer(b"".join(frame for _, frame in talk.records), np.uint8).copy()
    flat = rows.reshape(-1)
    Decoder(interpreted_vector, interpreted_kernel).decode(
        interpreted_vector(buffer), interpreted_vector(flat), len(rows)
    )
    assert len(talk.records) > 500
    assert int((rows[:, MARK] == MARK_TLS).sum()) <= 8


def test_the_hello_of_ssl_2_is_counted(tmp_path: Path) -> None:
    body = b"\1\0\2\0\3\0\0\0\x10\1\0\x80" + bytes(16)
    old = (0x8000 | len(body)).to_bytes(2, "big") + body
    found = section(tmp_path, *Connection().opened().asks(old).closes(False).records)
    assert (found.client_hellos, found.versions_offered) == (1, {"SSL 2.0": 1})


@settings(deadline=None)
@given(st.binary(max_size=300), st.integers(0, 600))
def test_arbitrary_and_cut_messages_are_read_or_not_but_never_break(octets: bytes, keep: int) -> None:
    whole = hello()[9:]
    for body in (octets, whole[:keep], whole[:keep] + octets):
        for read in (read_client_hello, read_server_hello, read_ssl2_hello):
            found = read(body)
            assert found is None or version_name(found.version)


@settings(max_examples=examples(200))
@given(st.integers(0, 2_000), st.binary(min_size=1, max_size=3), st.binary(max_size=40))
def test_damaged_certificates_are_read_or_not_but_never_break(place: int, damage: bytes, more: bytes) -> None:
    whole = ssl.PEM_cert_to_DER_cert("-----BEGIN CERT" + certificate().read_text().partition("-----BEGIN CERT")[2])
    place %= len(whole)
    octets = whole[:place] + damage + whole[place + len(damage) :]
    message = b"\0\0\0" + len(octets).to_bytes(3, "big") + octets + more
    first, *_ = read_certificates(message)
    facts = read_certificate(first)
    assert facts is None or len(facts.names) <= 2
    assert len(read_certificates(b"\0\0\0" + b"\0\0\1x" * 4_000 + more)) == 10


@settings(max_examples=examples(40))
@given(
    st.lists(
        st.tuples(
            st.booleans(), st.integers(0, 3000),
            st.one_of(st.binary(min_size=1, max_size=80), st.sampled_from([
                b"\x16\3\1\0\x05\1\0\0\1x", b"\x15\3\3\0\2\2\x28", b"\x14\3\3\0\1\1", b"\x17\3\3\0\x13" + bytes(19),
                b"\x16\3\3\x40\0\x0b\0\x3f\xfc", b"\x16\3\3\0\x26\2\0\0\x22" + bytes(34), b"\x80\x2e\1\3\1",
            ])),
        ),
        max_size=30,
    )
)  # fmt: skip
def test_arbitrary_segments_never_break_the_tracker(segments: list[tuple[bool, int, bytes]]) -> None:
    tracker, records = TlsTracker(), Records()
    for frame, (from_client, sequence, payload) in enumerate(segments, 1):
        records.take(sequence, payload, len(payload) + frame % 2)
        assert records.held_bytes <= (1 << 16) + 17_000 + 16 * 80
        ends = (1 << 16 | 40_000, 2 << 16 | 443)
        tracker.packet(0, ends if from_client else ends[::-1], sequence, 0, payload, len(payload), frame, frame * 1000)
    records.rest()
    end = End(1 << 16 | 40_000, 5000, 0, 0, 0, 100)
    tracker.section(str, lambda _: Ending((end, end._replace(endpoint=2 << 16 | 443)), 0), 10**10)


def test_a_stream_whose_hellos_came_whole_keeps_less_than_a_kilobyte() -> None:
    import tracemalloc

    streams, octets = 2_000, hello()
    tracker = TlsTracker()
    tracemalloc.start()
    try:
        for stream in range(streams):
            ends = (1 << 16 | 30_000 + stream, 2 << 16 | 443)
            tracker.packet(stream, ends, stream, 70_000 + stream, octets, len(octets), 1_000 + stream, 10**15 + stream)
        assert tracemalloc.get_traced_memory()[0] < 1_000 * streams
    finally:
        tracemalloc.stop()


def counted_by_tshark(path: Path, *fields: str) -> list[list[str]]:
    """One list of values for each field, over all packets."""
    command = ["tshark", "-r", str(path), "-2", "-T", "fields", "-E", "separator=|"]
    for name in fields:
        command += ["-e", name]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    columns: list[list[str]] = [[] for _ in fields]
    for line in lines:
        for column, values in zip(columns, line.split("|"), strict=True):
            column += [value for value in values.split(",") if value]
    return columns


def assert_agrees(path: Path) -> int:
    types, names, alerts = counted_by_tshark(
        path, "tls.handshake.type", "tls.handshake.extensions_server_name", "tls.alert_message.desc"
    )
    found = analyse(path).tls or TlsSection()
    assert (found.client_hellos, found.server_hellos + found.hello_retries) == (types.count("1"), types.count("2"))
    # A repeated hello of the same connection repeats its name.
    assert sum(found.server_names.values()) == len(names) - found.hello_retries
    assert sum(found.alerts.values()) == len([each for each in alerts if each != "0"])
    return found.client_hellos


@pytest.mark.needs("tshark")
def test_hellos_names_and_alerts_agree_with_tshark_on_made_captures(tmp_path: Path) -> None:
    picky, strict = server_context(), server_context()
    picky.set_ecdh_curve("secp384r1")
    strict.minimum_version = ssl.TLSVersion.TLSv1_3
    older = limited(client_context(), ssl.TLSVersion.TLSv1_2)
    talks = [
        session(),
        tls(TlsPair(client_context(), picky), Connection(client_port=40_001)).closes(),
        tls(TlsPair(older, strict), Connection(client_port=40_002)).closes(),
        tls(TlsPair(older, server_context()), Connection(client_port=40_003, mss=150)).closes(),
        tls(TlsPair(client_context(trusting=False), server_context()), Connection(client_port=40_004)).closes(),
    ]
    path = tmp_path / "all.pcap"
    path.write_bytes(pcap(record for talk in talks for record in talk.records))
    assert assert_agrees(path) == 6


@pytest.mark.needs("tshark")
def test_hellos_names_and_alerts_agree_with_tshark_on_real_captures(shared_captures: Path) -> None:
    assert sum(map(assert_agrees, captures_with("tls", "tls_handshake_types", shared_captures))) >= 5
