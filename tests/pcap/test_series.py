"""What happened when: bins that widen, parts that add up to the whole, and memory that time does not grow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.pcap import layout as L
from ghost.pcap.analysis import analyse
from ghost.pcap.array_types import Array, interpreted_kernel, interpreted_vector
from ghost.pcap.kernels.time_bins import ID_BITS
from ghost.pcap.kernels.time_series import BINS, TICK_NS, Series, SeriesCollector, _order
from tests.exhaustive import examples
from tests.pcap.wire import MS, Talk, pcap, transfer

START = 1_700_000_000 * 1_000_000_000


def follow(collector: SeriesCollector, packets: list[tuple[int, int, int, int, int, int]]) -> None:
    collector.follow(rows(packets).reshape(-1), len(packets))


def rows(packets: list[tuple[int, int, int, int, int, int]]) -> Array:
    """Decoded packets: time, source, destination, bytes, flags, round trip."""
    table = np.zeros((len(packets), L.PACKET), np.int64)
    for column, values in zip(
        (L.TIME, L.SOURCE, L.DESTINATION, L.WIRE, L.FLAGS, L.ROUND_TRIP), zip(*packets, strict=True), strict=True
    ):
        table[:, column] = values
    table[:, L.NETWORK] = 4
    return table


packets = st.lists(
    st.tuples(
        st.one_of(st.integers(START, START + 10**9), st.integers(0, 2**62)),
        st.integers(0, 5),
        st.integers(0, 5),
        st.integers(40, 9000),
        st.sampled_from([0, 1 << L.E_RETRANSMISSION, 1 << L.E_LOST_SEGMENT, 3 | 1 << L.E_LOST_SEGMENT]),
        st.sampled_from([0, 0, 50_000, 20_000_000, 3_000_000_000]),
    ),
    min_size=1,
    max_size=60,
)


def new_collector(most_entries: int = 200_000, slots: int = 8) -> SeriesCollector:
    return SeriesCollector(interpreted_vector, interpreted_kernel, 7, most_entries=most_entries, slots=slots)


def series_of(collector: SeriesCollector) -> Series:
    result = collector.state().result(str)
    assert result is not None
    return result


@settings(max_examples=examples(10), deadline=None)
@given(packets)
def test_every_packet_and_byte_lies_in_the_bin_of_its_time(seen: list[tuple[int, int, int, int, int, int]]) -> None:
    collector = new_collector()
    follow(collector, seen)
    series = series_of(collector)
    assert len(series.packets) <= BINS
    assert series.width_ns % TICK_NS == 0
    for number, (packets_in, bytes_in) in enumerate(zip(series.packets, series.wire_bytes, strict=True)):
        begin = series.start_ns + number * series.width_ns
        here = [packet for packet in seen if begin <= packet[0] < begin + series.width_ns]
        assert (packets_in, bytes_in) == (len(here), sum(packet[3] for packet in here))
    assert sum(trips.count for trips in series.round_trips if trips) == sum(1 for packet in seen if packet[5])
    among = sum(traffic.wire_bytes for traffic in series.traffic)
    assert among == sum(packet[3] for packet in seen), "six hosts are few enough to be shown all"


def test_bins_are_no_wider_than_the_capture_needs() -> None:
    collector = new_collector()
    follow(collector, [(START + n * 10 * MS, 1, 2, 100, 0, 0) for n in range(100)])
    series = series_of(collector)
    assert BINS // 2 <= len(series.packets) <= BINS, "a second of traffic fills at least half of the bins"


def test_a_year_of_packets_takes_no_more_memory_than_a_second() -> None:
    collector = new_collector(500)
    for day in range(365):
        seen = [(START + day * 86_400_000 * MS + n * MS, n % 20, 100 + n % 30, 100, 0, 0) for n in range(200)]
        follow(collector, seen)
    series = series_of(collector)
    assert sum(series.packets) == 365 * 200
    assert len(series.packets) <= BINS
    assert len(collector.state()._entries.pairs) <= 500
    assert series.pair_width_ns > series.width_ns, "pairs of hosts are told apart in wider bins where there are many"


def test_the_busiest_pairs_are_told_by_direction_and_the_one_that_sent_more_comes_first() -> None:
    collector = new_collector()
    follow(collector, [(START, 1, 2, 100, 0, 0), (START, 2, 1, 9000, 0, 0), (START, 3, 1, 50, 0, 0)])
    first, second = series_of(collector).busiest
    assert (first.a, first.b, sum(first.a_to_b), sum(first.b_to_a)) == ("2", "1", 9000, 100)
    assert (second.a, second.b, sum(second.a_to_b), sum(second.b_to_a)) == ("3", "1", 50, 0)


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    talk, _ = transfer(3, segments=600, upstream=0.02, downstream=0.02)
    return talk.save(tmp_path_factory.mktemp("series") / "lossy.pcap")


def test_the_series_of_a_capture_add_up_to_its_totals(lossy: Path) -> None:
    analysis = analyse(lossy)
    series, tcp = analysis.series, analysis.tcp
    assert series is not None
    assert tcp is not None
    assert sum(series.packets) == analysis.summary.total_packets
    assert sum(series.wire_bytes) == analysis.summary.wire_bytes
    assert sum(series.retransmissions) == tcp.totals.retransmissions > 0
    assert sum(series.gaps) == tcp.totals.lost_segments > 0
    assert sum(series.duplicate_acks) == tcp.totals.duplicate_acks > 0
    assert tcp.ack_rtt_ms is not None
    trips = [trip for trip in series.round_trips if trip is not None]
    assert sum(trip.count for trip in trips) == tcp.ack_rtt_ms.count
    assert min(trip.median for trip in trips) == pytest.approx(tcp.ack_rtt_ms.min, rel=0.15)


def test_batches_and_compilation_leave_the_series_as_they_are(lossy: Path) -> None:
    whole = analyse(lossy).series
    assert whole == analyse(lossy, batch_packets=7, buffer_bytes=2048).series


def test_a_capture_without_packets_has_no_series(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(pcap([]))
    assert analyse(empty).series is None


def test_packets_without_addresses_are_counted_in_time_alone(tmp_path: Path) -> None:
    arp = b"\xff" * 6 + b"\x02\0\0\0\0\x01" + b"\x08\x06" + bytes(28)
    path = tmp_path / "arp.pcap"
    path.write_bytes(pcap([(START, arp)]))
    series = analyse(path).series
    assert series is not None
    assert series.packets == (1,)
    assert series.hosts == series.traffic == series.busiest == ()


def test_the_reply_of_a_handshake_is_a_round_trip(tmp_path: Path) -> None:
    path = Talk().opened(there_ms=20, back_ms=20).save(tmp_path / "opened.pcap")
    series = analyse(path).series
    assert series is not None
    assert [round(trip.median) for trip in series.round_trips if trip] == [pytest.approx(20, rel=0.15)] * 2


_numbers = st.one_of(st.integers(0, 5), st.integers(0, (1 << ID_BITS) - 1))


@given(st.lists(st.tuples(_numbers, _numbers, st.one_of(st.integers(0, 9), st.integers(0, 2**40))), min_size=1))
def test_pairs_lie_together_in_the_order_of_time_however_large_their_numbers(
    found: list[tuple[int, int, int]],
) -> None:
    pairs = np.array([source << ID_BITS | destination for source, destination, _ in found], np.int64)
    places = np.array([place for *_, place in found], np.int64)
    order = _order(pairs, places)
    ordered = list(zip(pairs[order].tolist(), places[order].tolist(), strict=True))
    assert ordered == sorted(zip(pairs.tolist(), places.tolist(), strict=True))
