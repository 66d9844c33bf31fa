"""A capture, or a folder of a hundred, on two worker processes: every file and every line is the same, to the byte."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ghost.errors import CaptureError, ConfigurationError
from ghost.pcap import main
from ghost.pcap.report import capture_workers
from ghost.pcap.report.capture_workers import reports

from .wire import ACK, PSH, SYN, Talk, ethernet, ip, pcap, transfer, udp


def mixed(path: Path, seed: int, flows: int = 12) -> Path:
    """Lossy transfers, requests and datagrams of many hosts, packet by packet between each other."""
    dice = random.Random(seed)
    records = []
    for flow in range(flows):
        talk, _ = transfer(
            seed + flow, segments=20, upstream=dice.random() * 0.1, downstream=dice.random() * 0.1, ack_loss=0.02
        )
        web = Talk(client=f"10.0.1.{flow % 3}", server=f"10.0.2.{flow % 2}", client_port=30_000 + flow, server_port=80)
        web.opened().c(1, 1, PSH | ACK, 90, after_ms=dice.random() * 40).s(1, 91, PSH | ACK, 700, after_ms=30)
        question = bytes([0, flow, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 4]) + b"name\0\0\1\0\1"
        asked = ethernet(ip("10.0.1.4", "10.0.9.53", 17, udp(40_000 + flow, 53, question), number=flow + 1))
        opening = Talk(client=f"10.0.1.{flow}", client_port=20_000).c(0, 0, SYN)
        records += talk.records + web.records + opening.records + [(web.now, asked), (web.now + 1000, asked)]
    moved = [(when + dice.randrange(10**9) * (number % 2), frame) for number, (when, frame) in enumerate(records)]
    path.write_bytes(pcap(sorted(moved, key=lambda record: record[0])))
    return path


@pytest.fixture(scope="module")
def hundred(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hundred small captures, of which one is empty, one is no capture and one is damaged."""
    folder = tmp_path_factory.mktemp("evidence")
    for number in range(97):
        mixed(folder / f"{number:02}.pcap", number, flows=1)
    (folder / "empty.pcap").touch()
    (folder / "notes.pcap").write_text("a note under the wrong name")
    (folder / "damaged.pcap").write_bytes((folder / "00.pcap").read_bytes()[:-9])
    return folder


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as local:
        yield local


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files need not survive a power cut: syncing four hundred of them takes longer than all else."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def made_of(capture: Path, out: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, str]:
    """Standard output and every file that a run writes."""
    out.mkdir()
    main([str(capture), "--semantic-dir", str(out), "--report-dir", str(out), *options])
    files = {path.name: path.read_text() for path in out.iterdir()}
    return {**files, "printed": capsys.readouterr().out.replace(str(out), "out")}


@pytest.mark.filterwarnings("default")  # of a cluster that starts and ends; ours are errors in every other test
def test_two_workers_of_a_cluster_write_the_same_to_the_byte(
    hundred: Path, cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for capture, files in ((hundred, 99 * 4 + 2), (mixed(tmp_path / "one.pcap", 5), 4)):
        alone = made_of(capture, tmp_path / f"{capture.name}-alone", capsys)
        assert len(alone) == files + 1
        there = made_of(capture, tmp_path / f"{capture.name}-there", capsys, "--dask", cluster.scheduler_address)
        assert there == alone


def test_processes_of_this_machine_write_the_same_to_the_byte(
    hundred: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "some").mkdir()
    for name in ("00.pcap", "01.pcap", "02.pcap", "empty.pcap", "notes.pcap"):
        (tmp_path / "some" / name).write_bytes((hundred / name).read_bytes())
    alone = made_of(tmp_path / "some", tmp_path / "alone", capsys)
    assert made_of(tmp_path / "some", tmp_path / "there", capsys, "--jobs", "2") == alone


def test_captures_whose_process_ended_are_named_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_workers, "_outcome", _end)
    for outcome in reports([tmp_path / "a", tmp_path / "b"], jobs=2):
        assert isinstance(outcome, CaptureError)
        assert str(outcome).startswith("its worker was lost")


def _end(path: Path, progress_on: object) -> None:
    os._exit(1)


@pytest.mark.filterwarnings("default")
def test_a_cluster_that_is_not_there_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(capture_workers, "CONNECT_SECONDS", 1)
    with pytest.raises(ConfigurationError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9"):
        list(reports([mixed(tmp_path / "mixed.pcap", 5, flows=1)], dask="tcp://127.0.0.1:9"))
