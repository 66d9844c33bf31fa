"""Compiled kernels say what interpreted ones say; statistics are nearest rank."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.pcap import layout as L
from ghost.pcap.analysis import analyse
from ghost.pcap.kernels import address_table, compilation, object_file
from ghost.pcap.sample_statistics import EXACT, Samples, statistics
from tests.exhaustive import examples

from .wire import transfer


def test_compiled_kernels_equal_interpreted_ones(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    talk, _ = transfer(11, segments=300, upstream=0.05, downstream=0.05, ack_loss=0.05)
    path = talk.save(tmp_path / "lossy.pcap")
    slow, fast = analyse(path, compile_kernels=False), analyse(path, compile_kernels=True)
    assert slow.summary == fast.summary
    assert slow.tcp is not None
    assert fast.tcp is not None
    assert slow.tcp.totals == fast.tcp.totals
    assert list(slow.tcp.streams) == list(fast.tcp.streams)


def test_a_small_capture_is_analysed_without_importing_numba(tmp_path: Path) -> None:
    path = transfer(1, segments=50)[0].save(tmp_path / "small.pcap")
    program = (
        "import sys, pathlib; from ghost.pcap.analysis import analyse;"
        f"analyse(pathlib.Path({str(path)!r})); sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_compiling_waits_for_captures_that_repay_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(compilation, "cache_directory", lambda: tmp_path)
    assert not compilation.worth_it(compilation.WORTH_COMPILING - 1)
    assert compilation.worth_it(compilation.WORTH_COMPILING)
    (tmp_path / "ready").touch()
    assert compilation.worth_it(compilation.WORTH_LOADING)
    assert not compilation.worth_it(compilation.WORTH_LOADING - 1)


def test_a_directory_others_may_write_to_is_not_trusted_with_compiled_code(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert not compilation._usable(tmp_path)
    tmp_path.chmod(0o700)
    assert compilation._usable(tmp_path)


def placed_by(directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What a kernel says that is compiled, or loaded, with its cache below `directory`."""
    monkeypatch.setattr(compilation, "_MODULES", (address_table,))
    monkeypatch.setattr(compilation, "cache_directory", lambda: directory)
    vector, kernels = compilation.load.__wrapped__()
    slots = np.zeros(8, np.int64)
    kernels(address_table.place_addresses)(
        vector(np.arange(2 * L.ADDRESS)), vector(slots), vector(np.array([2, 3, 5, 7, 11]))
    )
    return slots.tolist()  # type: ignore[no-any-return]


def test_a_damaged_cache_of_kernels_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    expected = placed_by(tmp_path, monkeypatch)
    compilation.mark_ready()
    kept = sorted(tmp_path.rglob("*.nb[ci]"))
    assert kept
    for path in kept:
        path.write_bytes(b"damaged")
    assert placed_by(tmp_path, monkeypatch) == expected
    compilation.mark_ready()
    assert placed_by(tmp_path, monkeypatch) == expected


def test_compiled_kernels_are_loaded_without_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    expected = placed_by(tmp_path, monkeypatch)
    compilation.mark_ready()

    def fail(directory: Path) -> None:
        raise AssertionError("numba was asked")

    with monkeypatch.context() as without:
        without.setattr(compilation, "_dispatchers", fail)
        assert placed_by(tmp_path, monkeypatch) == expected
        compilation.mark_ready()
        _, kernels = compilation.load.__wrapped__()
    with pytest.raises(IndexError):
        kernels(address_table.place_addresses)(np.zeros(1, np.int64), np.zeros(8, np.int64), np.array([2, 3, 5, 7, 11]))
    for wrong in (np.zeros(10, np.int32), np.zeros((10, 10), np.int64), np.zeros(20, np.int64)[::2]):
        with pytest.raises(TypeError):
            kernels(address_table.place_addresses)(wrong, np.zeros(8, np.int64), np.zeros(5, np.int64))


@pytest.mark.parametrize("damage", [b"", b"damaged", b"\0" * 4096])
def test_damaged_machine_code_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes) -> None:
    pytest.importorskip("numba")
    expected = placed_by(tmp_path, monkeypatch)
    compilation.mark_ready()
    kept = tmp_path / "kernels"
    sound = kept.read_bytes()
    kept.write_bytes(damage or sound[:-1])
    assert placed_by(tmp_path, monkeypatch) == expected
    compilation.mark_ready()
    assert kept.read_bytes() == sound


def test_machine_code_of_another_processor_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    placed_by(tmp_path, monkeypatch)
    compilation.mark_ready()
    assert object_file.sound(tmp_path / "kernels", [address_table.place_addresses])
    monkeypatch.setattr(object_file, "_processor", lambda: "another")
    assert not object_file.sound(tmp_path / "kernels", [address_table.place_addresses])
    assert object_file.load(tmp_path / "kernels", [address_table.place_addresses]) is None


def test_kernels_compile_where_no_cache_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    (tmp_path / "file").touch()
    assert sum(placed_by(tmp_path / "file" / "kernels", monkeypatch)) == 3
    compilation.mark_ready()


def test_kernels_compile_where_a_file_cannot_be_finished(tmp_path: Path) -> None:
    """As on a full disk: every file ends after 3,000 bytes."""
    pytest.importorskip("numba")
    program = (
        "import pathlib, resource, pytest; from tests.pcap.test_compiled import placed_by, compilation;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000));"
        f"print(sum(placed_by(pathlib.Path({str(tmp_path)!r}), pytest.MonkeyPatch())));"
        "compilation.mark_ready(); print(compilation.ready())"
    )
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ran.stdout.split() == ["3", "False"]
    assert all(path.stat().st_size <= 3000 and path.suffix == ".nbi" for path in tmp_path.rglob("*") if path.is_file())


def test_what_a_power_cut_left_of_a_first_compilation_is_compiled_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    expected = placed_by(tmp_path, monkeypatch)
    for path in tmp_path.rglob("*.nbi"):
        path.write_bytes(b"")
    assert not compilation.ready()
    assert placed_by(tmp_path, monkeypatch) == expected
    compilation.mark_ready()
    assert object_file.sound(tmp_path / "kernels", [address_table.place_addresses])


def test_no_cache_is_looked_for_where_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for nowhere in (tmp_path / ("long" * 100), Path("relative"), Path("/dev/null/kernels")):
        monkeypatch.setattr(compilation, "cache_directory", lambda nowhere=nowhere: nowhere)
        assert not compilation.ready()
        assert not compilation._usable(nowhere)
        compilation.mark_ready()
    assert not Path("relative").exists()


def test_the_cache_is_where_xdg_says_if_it_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for said, expected in ((str(tmp_path / "here"), tmp_path / "here"), ("", tmp_path / ".cache")):
        monkeypatch.setenv("XDG_CACHE_HOME", said)
        assert compilation._caches() == expected
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert compilation._caches() == tmp_path / ".cache"
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 9)  # of whom the system knows nothing
    assert not compilation._caches().is_absolute()


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=60))
def test_statistics_are_nearest_rank(values: list[int]) -> None:
    ordered = sorted(values)
    found = statistics([value / 1e6 for value in values])
    assert found is not None
    assert found.count == len(values)
    assert (found.min, found.max) == (round(ordered[0] / 1e6, 6), round(ordered[-1] / 1e6, 6))
    assert found.median == round(ordered[math.ceil(0.5 * len(ordered)) - 1] / 1e6, 6)
    assert found.p95 == round(ordered[math.ceil(0.95 * len(ordered)) - 1] / 1e6, 6)


def test_no_samples_have_no_statistics() -> None:
    assert statistics([]) is None
    assert Samples().of(3) is None
    assert Samples().of_all(0, 4) is None


@settings(max_examples=examples(4), deadline=None)
@given(st.integers(0, 2**31), st.floats(9, 18))
def test_beyond_the_exact_count_statistics_stay_within_one_percent(seed: int, scale: float) -> None:
    values = np.exp(np.random.default_rng(seed).normal(scale, 1.5, EXACT + 5000)).astype(np.int64) + 1
    samples = Samples()
    samples.add(np.zeros(len(values), np.int64), values)
    found, ordered = samples.of(0), np.sort(values)
    assert found is not None
    assert found.count == len(values)
    assert (found.min, found.max) == pytest.approx((ordered[0] / 1e6, ordered[-1] / 1e6), abs=1e-6)
    assert found.median == pytest.approx(ordered[math.ceil(0.5 * len(values)) - 1] / 1e6, rel=0.0101, abs=1e-6)
    assert found.p95 == pytest.approx(ordered[math.ceil(0.95 * len(values)) - 1] / 1e6, rel=0.0101, abs=1e-6)
