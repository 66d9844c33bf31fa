"""Memory grows with flows, never with packets."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from ghost.pcap.analysis import analyse

from .wire import ACK, PSH, Talk, pcap


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
