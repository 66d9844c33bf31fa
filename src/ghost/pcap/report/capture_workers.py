"""Several captures at once, in processes here (`--jobs`) or on a Dask cluster (`--dask`, extra `cluster`).

A task is a whole capture. Workers get its path, which they must be able to read, and return text; nothing of one
capture depends on another, so the result is the same to the byte wherever and in whatever order they are read.
"""

from __future__ import annotations

import io
import multiprocessing
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from ghost.errors import CaptureError, ConfigurationError, GhostError
from ghost.pcap.garbage_collection import tune_process
from ghost.pcap.report.single_capture import Report, report_on
from ghost.text import visible

CONNECT_SECONDS = 10

Outcome = Report | GhostError | OSError
Workers = tuple[Callable[..., Any], tuple[type[Exception], ...]]
"""How a task is submitted, and what its result raises if a worker ends first."""


def reports(paths: Sequence[Path], *, jobs: int = 1, dask: str | None = None) -> Iterator[Outcome]:
    """Yield the report of each capture, or why there is none, in the order of `paths`."""
    if dask is None and min(jobs, len(paths)) == 1:
        yield from map(_outcome, paths)
        return
    with _processes(min(jobs, len(paths))) if dask is None else _cluster(dask) as (submit, losses):
        pending = deque(submit(_outcome, path.absolute(), io.StringIO()) for path in paths)
        for path in paths:
            try:
                outcome = pending.popleft().result()
            except losses as error:
                outcome = CaptureError(f"its worker was lost ({error}): analyse it alone, or fewer at once")
            if isinstance(outcome, Report):
                sys.stderr.write(f"{visible(path.name)}: {outcome.summary.total_packets:,} packets\n")
            yield outcome


def _outcome(path: Path, progress_on: TextIO | None = None) -> Outcome:
    try:
        return report_on(path, progress_on)
    except (GhostError, OSError) as error:
        return error


@contextmanager
def _processes(number: int) -> Iterator[Workers]:
    fresh = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(number, fresh, initializer=_begin_process)
    try:
        yield pool.submit, (BrokenExecutor,)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _begin_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt ends it without a word; the program says what is left
    tune_process()


@contextmanager
def _cluster(address: str) -> Iterator[Workers]:
    try:
        from distributed import Client, KilledWorker
        from distributed.client import FutureCancelledError
    except ImportError as error:
        raise ConfigurationError(
            "--dask needs the extra `cluster`: pip install 'ghost-investigator[cluster]', or leave the option out"
        ) from error
    try:
        client: Any = Client(address, timeout=CONNECT_SECONDS)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"no Dask scheduler answers at {address} ({error}): start one with `dask scheduler` and `dask worker`"
        ) from error
    with client:
        yield partial(client.submit, pure=False), (KilledWorker, FutureCancelledError, ImportError)
