"""Two captures of one path made packet by packet: what happened between them is known, and must be said exactly."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.pcap.analysis import analyse
from ghost.pcap.compare.clock_offset import compare_clocks
from ghost.pcap.compare.path_ends import OneWay, TwoEnds, two_ends
from ghost.pcap.compare.path_ends_report import ends_document, ends_headline, ends_html, ends_markdown
from tests.exhaustive import examples
from tests.pcap.wire import ACK, MS, PSH, RST, SYN, Record, ethernet, ip, pcap, tcp, udp

START = 1_700_000_000 * 1_000_000_000
CLIENT, SERVER = "10.0.1.4", "10.0.2.4"
MSS_1460, MSS_1360 = b"\x02\x04\x05\xb4", b"\x02\x04\x05\x50"


@dataclass
class Wire:
    """Between the captures A (at the client) and B (at the server): carries each packet and writes both down."""

    there_ms: float = 10.0
    back_ms: float = 10.0
    offset_ms: float = 0.0
    """B's clock is ahead by this."""
    drift: float = 0.0
    hops: int = 2
    a: list[Record] = field(default_factory=list)
    b: list[Record] = field(default_factory=list)
    number: int = 100

    def clock_of_b(self, now: float) -> int:
        """What B's clock shows at a time in ms."""
        return START + int((now + self.offset_ms + self.drift * now) * MS)

    def packet(
        self, now: float, from_client: bool, segment: bytes, *, lost: bool = False, copies: int = 1,
        late_ms: float = 0.0, number: int | None = None, ends: tuple[str, str] = (CLIENT, SERVER),
        seen_as: tuple[str, str] | None = None, rewritten: bytes | None = None, protocol: int = 6, kept_from: str = "",
    ) -> int:  # fmt: skip
        """One packet leaves its end at `now` (true time, in ms) and arrives at the other, or not."""
        if number is None:
            self.number += 1
            number = self.number & 0xFFFF
        source, destination = ends if from_client else ends[::-1]
        new_source, new_destination = (seen_as or ends) if from_client else (seen_as or ends)[::-1]
        far = ethernet(
            ip(new_source, new_destination, protocol, rewritten or segment, number=number, ttl=64 - self.hops)
        )
        near = ethernet(ip(source, destination, protocol, segment, number=number))
        arrives = now + late_ms + (self.there_ms if from_client else self.back_ms)
        if from_client:
            if kept_from != "A":
                self.a.append((START + int(now * MS), near))
            if not lost:
                self.b += [(self.clock_of_b(arrives + n * 0.1), far) for n in range(copies)]
        else:
            if kept_from != "B":
                self.b.append((self.clock_of_b(now), near))
            if not lost:
                self.a += [(START + int((arrives + n * 0.1) * MS), far) for n in range(copies)]
        return number

    def files(self, where: Path) -> tuple[Path, Path]:
        for name, records in (("a.pcap", self.a), ("b.pcap", self.b)):
            (where / name).write_bytes(pcap(sorted(records, key=lambda record: record[0]), nanoseconds=True))
        return where / "a.pcap", where / "b.pcap"

    def judged(self, where: Path, *, certain: bool = False) -> TwoEnds:
        a, b = self.files(where)
        found = two_ends(a, b, analyse(a), analyse(b), certain=certain)
        assert found is not None
        return found


def way(found: TwoEnds, sender: str) -> OneWay:
    (one,) = [each for each in found.ways if each.sender == sender]
    return one


def conversation(
    path: Wire, lose: Callable[[int, bool], bool] = lambda n, to_server: False, packets: int = 200
) -> None:
    """A client that sends and a server that acknowledges, 5 ms apart."""
    for n in range(packets):
        data = tcp(40_000, 443, 10_000_000 + n * 100, 20_000_000, ACK | PSH, b"x" * 100)
        path.packet(n * 5.0, True, data, lost=lose(n, True))
        acked = tcp(443, 40_000, 20_000_000, 10_000_100 + n * 100, ACK)
        path.packet(n * 5.0 + 30, False, acked, lost=lose(n, False))


@settings(max_examples=examples(4), deadline=None)
@given(
    st.floats(-100_000, 100_000),
    st.floats(1, 80),
    st.floats(1, 80),
    st.sets(st.integers(0, 118), max_size=30),
    st.sets(st.integers(0, 118), max_size=30),
)
def test_losses_are_counted_exactly_each_way_and_the_offset_is_right_to_half_the_asymmetry(
    tmp_path_factory: pytest.TempPathFactory,
    offset: float,
    there: float,
    back: float,
    lost: set[int],
    lost_back: set[int],
) -> None:
    path = Wire(there_ms=there, back_ms=back, offset_ms=offset)
    conversation(path, lambda n, to_server: n in (lost if to_server else lost_back), packets=120)
    found = path.judged(tmp_path_factory.mktemp("pair"))
    assert found.clock is not None
    assert found.clock.uncertainty_ns is not None
    assert abs(found.clock.offset_ns / 1e6 - offset) <= abs(there - back) / 2 + 0.001
    assert abs(found.clock.offset_ns / 1e6 - offset) <= found.clock.uncertainty_ns / 1e6 + 0.001
    assert found.round_trip_ms == pytest.approx(there + back, abs=0.001)
    for sender, missing in (("A", lost), ("B", lost_back)):
        one = way(found, sender)
        assert one.lost.count == len(missing)
        assert one.arrived == 120 - len(missing)
        assert one.hops == 2
        assert not one.copied
        assert not one.reordered
        assert not one.appeared


def test_the_frames_of_lost_packets_are_those_of_the_end_they_left(tmp_path: Path) -> None:
    path = Wire()
    conversation(path, lambda n, to_server: to_server and n in (7, 90))
    a, _ = path.files(tmp_path)
    found = path.judged(tmp_path)
    frames = way(found, "A").lost.frames
    records = sorted(path.a, key=lambda record: record[0])
    sequence_numbers = [int.from_bytes(records[frame - 1][1][38:42], "big") for frame in frames]
    assert sequence_numbers == [10_000_000 + 7 * 100, 10_000_000 + 90 * 100]
    assert a.name == found.a


def test_copies_late_packets_and_injected_resets_are_told_apart(tmp_path: Path) -> None:
    path = Wire()
    for n in range(100):
        data = tcp(40_000, 443, 10_000_000 + n * 100, 20_000_000, ACK | PSH, b"x" * 100)
        path.packet(n * 5.0, True, data, copies=2 if n in (3, 50, 51) else 1, late_ms=12 if n in (20, 60) else 0)
        path.packet(n * 5.0 + 30, False, tcp(443, 40_000, 20_000_000, 10_000_100 + n * 100, ACK))
    path.packet(400, False, tcp(443, 40_000, 20_000_000, 0, RST), kept_from="B")
    found = path.judged(tmp_path)
    to_server, to_client = way(found, "A"), way(found, "B")
    assert to_server.copied.count == 3
    assert to_server.reordered.count == 2
    assert not to_server.lost
    assert to_client.resets_injected.count == 1
    assert not to_client.appeared
    assert to_server.delay_ms is not None
    assert to_server.delay_ms.max == pytest.approx(22, abs=0.01)


def test_address_translation_is_seen_through_and_told(tmp_path: Path) -> None:
    path = Wire(offset_ms=77)
    for n in range(60):
        data = {"seq": 5_000_000 + n * 100, "ack": 6_000_000, "flags": ACK | PSH, "payload": b"x" * 100}
        path.packet(
            n * 5.0, True, tcp(40_000, 443, **data), rewritten=tcp(61_001, 443, **data), lost=n == 30,
            seen_as=("203.0.113.9", SERVER),
        )  # fmt: skip
        acked = {"seq": 6_000_000, "ack": 5_000_100 + n * 100, "flags": ACK}
        path.packet(
            n * 5.0 + 30, False, tcp(443, 61_001, **acked), rewritten=tcp(443, 40_000, **acked),
            ends=("203.0.113.9", SERVER), seen_as=(CLIENT, SERVER),
        )  # fmt: skip
    found = path.judged(tmp_path)
    assert found.clock is not None
    assert found.clock.offset_ns / 1e6 == pytest.approx(77, abs=0.001)
    to_server = way(found, "A")
    assert (to_server.lost.count, to_server.arrived) == (1, 59)
    told = [(change.what, change.before, change.after, change.count) for change in to_server.rewritten]
    assert told == [("source", "10.0.1.4:40000", "203.0.113.9:61001", 59)]


def test_what_a_middlebox_does_to_a_handshake_is_told(tmp_path: Path) -> None:
    path = Wire()
    options = MSS_1460 + b"\x01\x03\x03\x07\x04\x02\x01\x01"
    stripped = MSS_1360 + b"\x01\x01\x01\x01\x04\x02\x01\x01"
    opening = {"seq": 1_000_000, "ack": 0, "flags": SYN}
    path.packet(
        0, True, tcp(40_000, 443, **opening, options=options), rewritten=tcp(40_000, 443, **opening, options=stripped)
    )
    for n in range(10):
        path.packet(5 + n, True, tcp(40_000, 443, 1_000_001 + n, 2_000_000, ACK | PSH, b"x"))
        path.packet(30 + n, False, tcp(443, 40_000, 2_000_000, 1_000_002 + n, ACK))
    told = {(change.what, change.before, change.after) for change in way(path.judged(tmp_path), "A").rewritten}
    assert told == {("MSS", "1460", "1360"), ("window scale", "shift 7", "absent")}


def test_segments_that_were_cut_or_joined_arrived_if_all_their_bytes_did(tmp_path: Path) -> None:
    path = Wire()
    base, size, big = 9_000_000, 1000, 8
    for n in range(30):
        start = base + n * size * big
        whole = ethernet(ip(CLIENT, SERVER, 6, tcp(40_000, 443, start, 1, ACK, b"x" * size * big), number=n * big + 1))
        path.a.append((START + n * 20 * MS, whole))
        for part in range(big):
            if n == 12 and part == 5:
                continue  # one piece of one segment is lost
            piece = tcp(40_000, 443, start + part * size, 1, ACK, b"x" * size)
            moment = path.clock_of_b(n * 20 + 10 + part * 0.01)
            path.b.append((moment, ethernet(ip(CLIENT, SERVER, 6, piece, number=n * big + 1 + part, ttl=62))))
        path.packet(n * 20 + 20, False, tcp(443, 40_000, 1, start + size * big, ACK))
    one = way(path.judged(tmp_path), "A")
    assert one.lost.count == 1
    assert one.other_pieces == 29


def test_packets_without_ip_id_and_sequence_number_are_matched_by_what_they_begin_with(tmp_path: Path) -> None:
    path = Wire(offset_ms=-5)
    for n in range(50):
        query = n.to_bytes(2, "big") + b"\x01\x00\x00\x01\0\0\0\0\0\0" + b"\x03www\0\0\1\0\1"
        path.packet(n * 10.0, True, udp(5353, 53, query), number=0, protocol=17, lost=n % 10 == 3)
        if n % 10 != 3:
            path.packet(n * 10.0 + 15, False, udp(53, 5353, query + b"answer"), number=0, protocol=17)
    found = path.judged(tmp_path)
    assert (way(found, "A").lost.count, way(found, "B").lost.count) == (5, 0)


def test_of_copies_with_the_same_header_the_one_that_fits_the_clock_arrived(tmp_path: Path) -> None:
    path = Wire(offset_ms=1000)
    conversation(path, packets=40)
    # A SYN sent three times by a host that numbers nothing: the first two are lost.
    for n in range(3):
        path.packet(100 + 1000 * n, True, tcp(50_000, 443, 77_000_000, 0, SYN), number=0, lost=n < 2)
    path.packet(2150, False, tcp(443, 50_000, 88_000_000, 77_000_001, SYN | ACK))
    found = path.judged(tmp_path)
    one = way(found, "A")
    assert one.lost.count == 2
    records = sorted(path.a, key=lambda record: record[0])
    assert [(records[frame - 1][0] - START) // MS for frame in one.lost.frames] == [100, 1100]
    assert one.delay_ms is not None
    assert one.delay_ms.max == pytest.approx(10, abs=0.01)


def test_clocks_that_drift_apart_are_followed(tmp_path: Path) -> None:
    path = Wire(there_ms=3, back_ms=3, offset_ms=500, drift=80e-6)
    dice = random.Random(1)
    for n in range(400):
        now = n * 250.0
        path.packet(now, True, tcp(40_000, 443, 10_000_000 + n, 1, ACK | PSH, b"x"), late_ms=dice.random())
        path.packet(now + 100, False, tcp(443, 40_000, 1, 10_000_001 + n, ACK), late_ms=dice.random())
    found = path.judged(tmp_path)
    assert found.clock is not None
    assert found.clock.drift * 1e6 == pytest.approx(80, abs=5)
    assert found.round_trip_ms == pytest.approx(6, abs=1.5)
    assert way(found, "A").delay_ms.max < 5  # type: ignore[union-attr]


def test_a_steady_clock_is_not_said_to_drift(tmp_path: Path) -> None:
    path = Wire(there_ms=3, back_ms=3)
    dice = random.Random(2)
    for n in range(200):
        now = n * 250.0
        path.packet(now, True, tcp(40_000, 443, 10_000_000 + n, 1, ACK | PSH, b"x"), late_ms=dice.expovariate(1))
        path.packet(now + 100, False, tcp(443, 40_000, 1, 10_000_001 + n, ACK), late_ms=dice.expovariate(1))
    clock = path.judged(tmp_path).clock
    assert clock is not None
    assert clock.drift == 0


@settings(max_examples=examples(12), deadline=None)
@given(
    st.integers(-(10**12), 10**12),
    st.integers(0, 10**8),
    st.integers(0, 10**8),
    st.lists(st.tuples(st.integers(0, 10**10), st.integers(0, 10**8)), min_size=1, max_size=80),
    st.lists(st.tuples(st.integers(0, 10**10), st.integers(0, 10**8)), min_size=1, max_size=80),
)
def test_the_true_offset_lies_within_the_stated_uncertainty(
    offset: int, there: int, back: int, sent: list[tuple[int, int]], returned: list[tuple[int, int]]
) -> None:
    """Whatever the queues add: where no drift is assumed the bounds hold."""
    clock = compare_clocks(
        np.array([at for at, _ in sent]), np.array([offset + there + queue for _, queue in sent]),
        np.array([at for at, _ in returned]), np.array([offset - back - queue for _, queue in returned]),
    )  # fmt: skip
    assert clock is not None
    assert clock.uncertainty_ns is not None
    if not clock.drift:
        assert abs(clock.offset_ns - offset) <= clock.uncertainty_ns + 1


def test_packets_before_and_after_the_other_capture_ran_are_not_judged(tmp_path: Path) -> None:
    path = Wire(offset_ms=333)
    conversation(path, packets=4000)
    seconds = path.clock_of_b(0)
    path.b = [record for record in path.b if 8000 < (record[0] - seconds) / MS < 12_000]
    found = path.judged(tmp_path)
    assert not way(found, "A").lost
    assert not way(found, "B").lost
    assert not way(found, "B").appeared
    assert found.not_judged > 2000


@pytest.mark.parametrize("cut", [1, 15, 300, 6000])
@pytest.mark.parametrize("offset", [0.0, -7000.0])
@pytest.mark.parametrize("end", ["a", "b"])
def test_a_capture_that_ended_or_began_a_little_off_the_other_lost_nothing(
    tmp_path: Path, cut: int, offset: float, end: str
) -> None:
    for late in (False, True):
        path = Wire(offset_ms=offset)
        conversation(path, packets=2000)
        records = sorted(getattr(path, end), key=lambda record: record[0])
        kept = [r for r in records if (r[0] - records[0][0] >= cut * MS if late else records[-1][0] - r[0] >= cut * MS)]
        setattr(path, end, kept)
        found = path.judged(tmp_path)
        assert not any(one.lost or one.appeared for one in found.ways)
        assert ends_headline(found)[0] == "INFO: No fault between the two ends"


def test_what_is_repeated_and_never_answered_behind_the_last_packet_of_the_other_end_is_lost(tmp_path: Path) -> None:
    path = Wire()
    conversation(path, packets=100)
    for n in range(5):
        path.packet(600 + 500 * 2**n, True, tcp(40_000, 443, 10_010_000, 20_000_000, ACK | PSH, b"x" * 100), lost=True)
    assert way(path.judged(tmp_path), "A").lost.count == 5


def sized(path: Wire, lose: Callable[[int, int], bool], sizes: tuple[int, ...] = (100, 600, 1340, 1460)) -> None:
    """Requests of several sizes, each acknowledged where it arrives."""
    for n in range(60):
        size = sizes[n % len(sizes)]
        data = tcp(40_000, 443, 10_000_000 + n * 1500, 20_000_000, ACK | PSH, b"x" * size)
        path.packet(n * 20.0, True, data, lost=lose(n, size))
        if not lose(n, size):
            path.packet(n * 20.0 + 15, False, tcp(443, 40_000, 20_000_000, 10_000_000 + n * 1500 + size, ACK))


@pytest.mark.parametrize("by_chance", [False, True])
def test_large_packets_that_are_lost_alone_are_the_headline(tmp_path: Path, by_chance: bool) -> None:
    path = Wire()
    sized(path, lambda n, size: size == 1460 or (by_chance and n == 8))
    found = path.judged(tmp_path)
    assert way(found, "A").size_limit == (1380, 1500)
    assert ends_headline(found)[:3] == [
        "HIGH: Packets above 1,380 bytes are lost between A and B, smaller ones arrive (largest that arrived 1,380"
        " bytes, smallest that was lost 1,500)",
        "  owner: the network path, high confidence",
        "  first step, on 10.0.1.4: tracepath -n 10.0.2.4",
    ]
    document = ends_document(found)
    assert document["directions"][0]["smallest_lost_bytes"] == 1500
    assert "Packets above 1,380 bytes" in str(ends_html(found)) or "packets above 1,380 bytes" in str(ends_html(found))


@pytest.mark.parametrize(
    "lose",
    [
        lambda n, size: n % 3 == 0,  # every size
        lambda n, size: size == 1460 and n % 8 == 3,  # some large ones arrive
        lambda n, size: n in (3, 7),  # two of them: chance
        lambda n, size: size == 100,  # the small ones
        lambda n, size: size == 1460 or n % 5 == 0,  # a path that loses much of everything
        lambda n, size: False,
    ],
    ids=["all sizes", "some large", "two", "small", "both", "none"],
)
def test_loss_that_has_another_cause_than_size_is_no_mtu_black_hole(
    tmp_path: Path, lose: Callable[[int, int], bool]
) -> None:
    path = Wire()
    sizes = (100, 600, 1340, 1460)
    sized(path, lose, sizes)
    assert way(path.judged(tmp_path), "A").size_limit is None


def test_traffic_with_other_hosts_is_left_out(tmp_path: Path) -> None:
    path = Wire()
    conversation(path, packets=50)
    path.a += [
        (
            START + n * MS,
            ethernet(ip(CLIENT, "10.9.9.9", 6, tcp(41_000, 80, 5_000_000 + n, 1, ACK, b"y"), number=n + 1)),
        )
        for n in range(50)
    ]
    found = path.judged(tmp_path)
    assert not way(found, "A").lost


def test_loss_before_the_first_and_behind_the_second_capture_is_told_by_sequence_numbers(tmp_path: Path) -> None:
    path = Wire()
    sent = 0
    for n in range(60):
        if n == 20:  # never reached A: sent again later
            continue
        path.packet(n * 5.0, True, tcp(40_000, 443, 10_000_000 + n * 100, 1, ACK | PSH, b"x" * 100))
        acked = min(n + 1, 20) if n < 59 else 20
        path.packet(n * 5.0 + 30, False, tcp(443, 40_000, 1, 10_000_000 + acked * 100, ACK))
        sent = n
    path.packet(400, True, tcp(40_000, 443, 10_000_000 + 20 * 100, 1, ACK | PSH, b"x" * 100))
    path.packet(430, False, tcp(443, 40_000, 1, 10_000_000 + (sent + 1) * 100, ACK))
    one = way(path.judged(tmp_path), "A")
    assert not one.lost
    assert one.lost_before.count == 1


def test_captures_that_share_no_packet_are_two_ends_only_if_that_is_certain(tmp_path: Path) -> None:
    path = Wire()
    conversation(path, lambda n, to_server: True, packets=20)
    a, b = path.files(tmp_path)
    assert two_ends(a, b, analyse(a), analyse(b), certain=False) is None
    found = two_ends(a, b, analyse(a), analyse(b), certain=True)
    assert found is not None
    assert found.clock is None
    assert (way(found, "A").lost.count, way(found, "B").lost.count) == (14, 14)  # while the other capture ran
    assert ends_headline(found)[:3] == [
        "HIGH: Nothing arrived from A (10.0.1.4) to B of 14 packets",
        "  owner: undecided by this capture, high confidence",
        "  first step, on 10.0.1.4: ip -s link show",
    ]


def test_nothing_is_said_of_packets_sent_while_the_other_capture_did_not_run(tmp_path: Path) -> None:
    path = Wire(offset_ms=3_600_000)
    conversation(path, lambda n, to_server: True, packets=20)
    a, b = path.files(tmp_path)
    found = two_ends(a, b, analyse(a), analyse(b), certain=True)
    assert found is not None
    assert found.ways == ()
    assert "while both ran" in ends_headline(found)[0]


def test_a_capture_is_not_the_other_end_of_itself(tmp_path: Path) -> None:
    path = Wire()
    conversation(path, packets=20)
    a, _ = path.files(tmp_path)
    assert two_ends(a, a, analyse(a), analyse(a), certain=True) is None


def test_every_form_of_the_result_tells_the_same(tmp_path: Path) -> None:
    path = Wire(offset_ms=12_345)
    conversation(path, lambda n, to_server: to_server and n in (7, 90))
    found = path.judged(tmp_path)
    document = ends_document(found)
    assert document["clock_offset_ms"] == pytest.approx(12_345, abs=0.001)
    assert document["directions"][0]["lost_between"]["count"] == 2
    assert ends_headline(found)[:3] == [
        "MEDIUM: 2 of 200 packets (1.0%) lost between A and B, from A (10.0.1.4) to B",
        "  owner: the network path, high confidence",
        "  first step, on 10.0.1.4: ip -s link show",
    ]
    assert [fault["kind"] for fault in document["faults"]] == ["loss"]
    for text in (ends_headline(found)[0], "\n".join(ends_markdown(found)), str(ends_html(found))):
        assert "2 of 200 packets (1.0%) lost between A and B" in text
    assert "+12,345.000 ms" in ends_headline(found)[-1]


def test_packets_of_very_large_captures_are_matched_only_when_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Wire()
    conversation(path, packets=20)
    a, b = path.files(tmp_path)
    monkeypatch.setattr("ghost.pcap.compare.path_ends.MOST_UNASKED", 30)
    assert two_ends(a, b, analyse(a), analyse(b), certain=False) is None
    assert two_ends(a, b, analyse(a), analyse(b), certain=True) is not None


@dataclass
class SteppedWire(Wire):
    """B's clock is set while the captures run."""

    step_ms: float = 300.0
    step_at_ms: float = 500.0

    def clock_of_b(self, now: float) -> int:
        return super().clock_of_b(now) + (int(self.step_ms * MS) if now >= self.step_at_ms else 0)


@pytest.mark.parametrize("step", [300.0, -2000.0, 45.0, 3_600_000.0])
@pytest.mark.parametrize("lossy", [False, True])
def test_a_clock_that_was_set_is_told_and_no_delay_with_it(tmp_path: Path, step: float, *, lossy: bool) -> None:
    path = SteppedWire(step_ms=step)
    conversation(path, lambda n, to_server: lossy and n in (70, 130))
    found = path.judged(tmp_path)
    assert found.clock is not None
    assert abs(step) - 20 <= found.clock.changed_ns / 1e6 <= abs(step)
    assert found.round_trip_ms is None
    for one in found.ways:
        assert one.delay_ms is None
        assert one.lost.count <= (2 if lossy else 0)
    if abs(step) < 1000:
        assert [one.lost.count for one in found.ways] == [2, 2] if lossy else [0, 0]
    assert "changed against A's by" in ends_headline(found)[-1]
    assert "delayed" not in "".join(ends_headline(found))
    assert "-" not in ends_headline(found)[-1].replace("two-", "")
    assert ends_document(found)["clock_changed_by_at_least_ms"] == pytest.approx(found.clock.changed_ns / 1e6, abs=1)


def test_a_clock_that_nothing_disciplines_is_followed(tmp_path: Path) -> None:
    path = Wire(there_ms=5, back_ms=5, offset_ms=20, drift=5e-3)
    for n in range(300):
        path.packet(n * 100.0, True, tcp(40_000, 443, 10_000_000 + n, 1, ACK | PSH, b"x"))
        path.packet(n * 100.0 + 50, False, tcp(443, 40_000, 1, 10_000_001 + n, ACK))
    found = path.judged(tmp_path)
    assert found.clock is not None
    assert found.clock.drift == pytest.approx(5e-3, rel=0.02)
    assert not found.clock.changed_ns
    assert way(found, "A").delay_ms.max < 11  # type: ignore[union-attr]


def test_a_queue_that_grows_is_a_delay_and_no_clock_that_was_set(tmp_path: Path) -> None:
    path = Wire(there_ms=5, back_ms=5)
    for n in range(300):
        late = 400.0 if n > 150 else 0.0
        path.packet(n * 10.0, True, tcp(40_000, 443, 10_000_000 + n, 1, ACK | PSH, b"x"), late_ms=late)
        path.packet(n * 10.0 + 5, False, tcp(443, 40_000, 1, 10_000_001 + n, ACK))
    found = path.judged(tmp_path)
    assert found.clock is not None
    assert not found.clock.changed_ns
    assert way(found, "A").delay_ms.max == pytest.approx(405, abs=1)  # type: ignore[union-attr]
    assert "delayed by 400 ms" in "".join(ends_headline(found))


def test_stamps_that_cross_on_one_machine_are_no_clock_that_was_set(tmp_path: Path) -> None:
    path = Wire(there_ms=0.002, back_ms=-0.05)
    conversation(path)
    found = path.judged(tmp_path)
    assert found.clock is not None
    assert not found.clock.changed_ns
    assert min(one.delay_ms.min for one in found.ways if one.delay_ms is not None) >= 0
