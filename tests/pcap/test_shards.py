"""However many shards follow the flows of a capture, and wherever: the analysis is the same, to the byte."""

from __future__ import annotations

import itertools
import random
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ghost.errors import ConfigurationError
from ghost.pcap import layout as L
from ghost.pcap.analysis import analyse
from ghost.pcap.findings import find
from ghost.pcap.kernels import dask_cluster
from ghost.pcap.kernels.dask_cluster import narrowed, widened
from ghost.pcap.model import Analysis
from ghost.pcap.protocols.parser_dispatch import Marked, Parsers
from ghost.pcap.report.semantic import dump, semantic
from tests.exhaustive import examples

from .wire import ACK, PSH, SYN, Talk, ethernet, ip, pcap, transfer, udp


def said(analysis: Analysis) -> str:
    return dump(semantic(analysis, find(analysis)))


def equal(one: Analysis, other: Analysis) -> bool:
    """Equal in every field, streams included."""
    assert one.tcp is not None
    assert other.tcp is not None
    return (
        said(one) == said(other)
        and list(one.tcp.streams) == list(other.tcp.streams)
        and (one.summary, one.tcp.totals, one.udp, one.icmp, one.arp, one.dns, one.tls, one.http, one.series)
        == (other.summary, other.tcp.totals, other.udp, other.icmp, other.arp, other.dns, other.tls, other.http,
            other.series)
    )  # fmt: skip


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


@settings(max_examples=examples(4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6), batch=st.sampled_from([7, 64, 16384]))
def test_any_number_of_shards_says_the_same_to_the_byte(tmp_path: Path, seed: int, batch: int) -> None:
    path = mixed(tmp_path / "mixed.pcap", seed)
    whole = analyse(path)
    for jobs in (2, 3, 7):
        assert equal(whole, analyse(path, jobs=jobs, batch_packets=batch))


def test_shards_say_the_same_of_real_captures(shared_captures: Path) -> None:
    captures = sorted(path for path in shared_captures.glob("*.pcap*") if path.stat().st_size < 300_000)[:25]
    assert captures
    for path in captures:
        whole = analyse(path)
        for jobs in (2, 3, 7):
            assert said(whole) == said(analyse(path, jobs=jobs, batch_packets=100)), path.name


@settings(deadline=None)
@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=L.PACKET), st.integers(0, 5))
def test_columns_arrive_at_a_worker_as_they_left(values: list[int], count: int) -> None:
    rows = np.array([(values * L.PACKET * 2)[n : n + L.PACKET] for n in range(count)], np.int64).reshape(
        count, L.PACKET
    )
    assert np.array_equal(widened(narrowed(rows), count), rows)


@pytest.mark.filterwarnings("default")  # of a cluster that starts and ends; ours are errors in every other test
def test_two_workers_of_a_cluster_say_the_same(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    path = mixed(tmp_path / "mixed.pcap", 5)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as local:
        whole = analyse(path)
        assert equal(whole, analyse(path, dask=local.scheduler_address))
        assert equal(whole, analyse(path, dask=local.scheduler_address, jobs=3, compile_kernels=False))


@pytest.mark.filterwarnings("default")
def test_a_cluster_that_is_not_there_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask_cluster, "CONNECT_SECONDS", 1)
    path = mixed(tmp_path / "mixed.pcap", 5, flows=1)
    with pytest.raises(ConfigurationError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9"):
        analyse(path, dask="tcp://127.0.0.1:9")


@pytest.mark.parametrize("jobs", [1, 2, 3])
@pytest.mark.parametrize("failing", [1, 3])
def test_what_fails_in_a_parser_is_raised_and_leaves_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, failing: int
) -> None:
    path, calls, take = mixed(tmp_path / "mixed.pcap", 5), itertools.count(1), Parsers.take

    def fail(self: Parsers, marked: Marked) -> None:
        if next(calls) == failing:
            raise KeyError("lost?")
        take(self, marked)

    monkeypatch.setattr(Parsers, "take", fail)
    with pytest.raises(KeyError, match=re.escape("lost?")):
        analyse(path, compile_kernels=False, jobs=jobs, batch_packets=32)
    for thread in threading.enumerate():
        if thread.name.startswith(("shard", "behind")):
            thread.join(10)
            assert not thread.is_alive()
