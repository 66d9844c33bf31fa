"""Memory grows with flows, never with packets, and by few bytes for a flow that is idle."""

from __future__ import annotations

import gc
import os
import pickle
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.pcap import layout as L
from ghost.pcap.analysis import analyse
from ghost.pcap.array_types import interpreted_kernel, interpreted_vector
from ghost.pcap.findings import find
from ghost.pcap.report.semantic import dump, semantic
from ghost.pcap.tcp.packed_rows import PackedRows
from ghost.pcap.tcp.stream_tracker import Streams

from .wire import ACK, FIN, PSH, RST, SYN, Talk, pcap


def capture(path: Path, packets: int) -> Path:
    """Two connections that exchange small messages, so that every packet adds samples."""
    talks = [Talk(client_port=40_000 + n).opened(1, 1) for n in range(2)]
    for number in range(packets // 4):
        talk = talks[number % 2]
        at = 1 + 10 * (number // 2)
        talk.c(at, at, PSH | ACK, 10, after_ms=1).s(at, at + 10, PSH | ACK, 10, after_ms=1)
    path.write_bytes(pcap(record for talk in talks for record in talk.records))
    return path


def peak(path: Path) -> int:
    tracemalloc.start()
    try:
        analyse(path, compile_kernels=False, buffer_bytes=1 << 16, batch_packets=512)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_four_times_the_packets_of_the_same_flows_take_no_more_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is small by design is made smaller still, or the captures would have to hold millions of packets.
    monkeypatch.setattr("ghost.pcap.sample_statistics.EXACT", 100)
    monkeypatch.setattr("ghost.pcap.sample_statistics._COMPACT_AT", 800)
    analyse(capture(tmp_path / "first.pcap", 200), compile_kernels=False)
    small, large = peak(capture(tmp_path / "small.pcap", 800)), peak(capture(tmp_path / "large.pcap", 3_200))
    assert large < 1.1 * small


def test_a_half_open_stream_takes_few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ghost.pcap.tcp.stream_tracker.MOST_ROWS", 256)
    count = 20_000
    rows, number = np.zeros((count, L.PACKET), np.int64), np.arange(count)
    rows[:, (L.PROTOCOL, L.CONTROL, L.DESTINATION_PORT)] = 6, SYN, 443
    for field, step in {L.SOURCE: 1, L.FRAME: 1, L.TIME: 10_000, L.SEQUENCE: 64_123}.items():
        rows[:, field] = 1 + number * step
    streams = Streams(interpreted_vector, interpreted_kernel)
    streams.follow(interpreted_vector(rows.reshape(-1)), count)
    tables = sum(table.nbytes for table in streams.arrays())
    state = streams.state()
    assert (tables + len(pickle.dumps(state.rows))) / count < 250
    assert state.event(L.E_SYN).sum() == len(state) == count


def on_and_off(path: Path, seed: int) -> Path:
    """Streams of every kind that stop at any packet and go on much later, some on reused ports."""
    dice, records = random.Random(seed), []
    for n in range(1_500):
        talk = Talk(client=f"10.0.{n % 5}.{n % 199}", client_port=20_000 + n % 1_400, server_port=80 + n % 2)
        talk.now += n * 3_000_000
        for _ in range(n % 4):
            talk.c(n // 1_400, 0, SYN, after_ms=1000)
        if n % 3:
            talk.opened()
            for at in range(n % 5):
                if dice.random() < 0.9:
                    talk.c(1 + 10 * at, 1, PSH | ACK, 10, after_ms=dice.random() * 900)
                talk.s(1, 11 + 10 * at, ACK, after_ms=20)
            talk.c(51, 1, dice.choice((FIN | ACK, RST, ACK)), after_ms=dice.random() * 9000)
        records += talk.records
    path.write_bytes(pcap(sorted(records, key=lambda record: record[0])))
    return path


@pytest.mark.parametrize("batch", [16_384, 7])
def test_idle_streams_are_packed_and_go_on_as_if_they_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    path, taken = on_and_off(tmp_path / "some.pcap", batch), []
    whole = analyse(path, compile_kernels=False)
    monkeypatch.setattr("ghost.pcap.tcp.stream_tracker.MOST_ROWS", 256)
    take = PackedRows.take
    monkeypatch.setattr(PackedRows, "take", lambda self, places: taken.append(len(places)) or take(self, places))
    packed = analyse(path, compile_kernels=False, batch_packets=batch)
    assert sum(taken) > 100
    assert dump(semantic(whole, find(whole))) == dump(semantic(packed, find(packed)))
    assert whole.tcp is not None
    assert packed.tcp is not None
    assert list(whole.tcp.streams) == list(packed.tcp.streams)


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 300), min_size=3, max_size=3), min_size=1))
def test_packed_rows_are_what_was_packed(rows: list[list[int]]) -> None:
    table, packed = np.array(rows, np.int64), PackedRows()
    places = np.concatenate([packed.add(part) for part in (table[:2], table[2:]) if len(part)])
    assert np.array_equal(packed.take(places[::-1]), table[::-1])
    assert all(np.array_equal(packed.column(field)[places], table[:, field]) for field in range(3))


def test_what_one_analysis_held_is_free_when_it_ends(tmp_path: Path) -> None:
    """A folder is read in one process, and nothing there looks for cycles in time."""
    path = capture(tmp_path / "some.pcap", 400)
    analyse(path, compile_kernels=False)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        analyse(path, compile_kernels=False)
        gc.collect()
        # Others' cycles are theirs: numba drops some whenever it feels like it.
        kept = [type(one).__qualname__ for one in gc.garbage if type(one).__module__.startswith(("ghost.", "numpy"))]
        assert kept == []
        assert not any(isinstance(one, bytearray | memoryview) for one in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


_HELD_BACK = """
import sys
from ghost.pcap.garbage_collection import tune_process
if sys.argv[1:]:
    tune_process()
import numpy as np
np.ones(30 << 20, np.uint8)[0]  # once so much was freed, glibc takes less than that from its heap
arrays = [np.ones(2 << 20, np.uint8) for _ in range(60)]
arrays[:-1] = []
with open("/proc/self/statm") as file:
    print(int(file.read().split()[1]) * 4096 >> 20)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="of the GNU C library")
def test_large_arrays_go_back_to_the_system_while_one_above_them_stays() -> None:
    # A cluster's nanny, which another test may have started, leaves MALLOC_TRIM_THRESHOLD_ behind.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", _HELD_BACK]
    held, given_back = (
        int(subprocess.run([*command, *more], capture_output=True, check=True, env=environment).stdout)
        for more in ([], ["own"])
    )
    assert given_back < held - 30
