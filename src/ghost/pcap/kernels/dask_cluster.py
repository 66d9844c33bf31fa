"""Shards on the workers of a Dask cluster: `--dask ADDRESS`, extra `cluster`.

The capture is read and decoded where the command runs; the workers get the columns of the flows dealt to them, a batch
at a time, and keep the state of these flows until the end. They never open the file and get no payload byte.
"""

from __future__ import annotations

import importlib.util
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ghost.errors import CaptureError, ConfigurationError
from ghost.pcap import layout as L
from ghost.pcap.array_types import Array, Kernel, PacketArray, Vector, interpreted_kernel, interpreted_vector
from ghost.pcap.kernels import compilation
from ghost.pcap.kernels.flow_shards import BatchResult, Shard, ShardResult

CONNECT_SECONDS = 10

_NARROWER = (np.uint8, np.uint16, np.uint32)

Columns = list[NDArray[Any]]


def narrowed(rows: PacketArray) -> Columns:
    """Return the columns of rows, each in the smallest integer type that holds it."""
    columns: Columns = []
    for column in rows.T:
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        if low == high:
            columns.append(np.array([low]))
            continue
        fitting = [kind for kind in _NARROWER if low >= 0 and high <= np.iinfo(kind).max]
        columns.append(column.astype(fitting[0] if fitting else np.int64))
    return columns


def widened(columns: Columns, count: int) -> Array:
    rows = np.empty((count, L.PACKET), np.int64)
    for number, column in enumerate(columns):
        rows[:, number] = column
    return rows


class WorkerShard:
    """A shard as it lives on a worker."""

    def __init__(self, seed: int) -> None:
        self._shard = Shard(interpreted_vector, interpreted_kernel, seed)

    def compile_kernels(self) -> None:
        """Use compiled kernels from here on, if this worker has numba."""
        if importlib.util.find_spec("numba") is not None:
            self._shard.use(*compilation.load())

    def follow(self, columns: Columns, count: int) -> BatchResult:
        return self._shard.follow(widened(columns, count))

    def found(self) -> ShardResult:
        return self._shard.found()


class ClusterShard:
    """A `WorkerShard` called from the client; each call blocks."""

    def __init__(self, actor: Any, failures: tuple[type[Exception], ...]) -> None:
        self._actor, self._failures = actor, failures

    def use(self, vector: Vector, kernels: Kernel) -> None:  # noqa: ARG002  # the kernels of another machine are its own
        self._ask(self._actor.compile_kernels)

    def follow(self, rows: PacketArray) -> BatchResult:
        followed: BatchResult = self._ask(self._actor.follow, narrowed(rows), len(rows))
        return followed

    def found(self) -> ShardResult:
        found: ShardResult = self._ask(self._actor.found)
        return found

    def _ask(self, method: Callable[..., Any], *values: object) -> Any:
        try:
            return method(*values).result()
        except self._failures as error:
            raise CaptureError(
                f"a worker of the cluster was lost ({error}): its flows are lost with it; run again, or without --dask"
            ) from error


@contextmanager
def cluster_shards(address: str, wanted: int) -> Iterator[Sequence[ClusterShard]]:
    """Yield `wanted` shards on the workers of the cluster at `address`; one per worker if 0."""
    try:
        from distributed import Client
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
        workers = list(client.scheduler_info(n_workers=-1)["workers"])
        if not workers:
            raise ConfigurationError(f"the Dask cluster at {address} has no workers: start one with `dask worker`")
        made = [
            client.submit(
                WorkerShard, secrets.randbits(62), actor=True, workers=[workers[n % len(workers)]], pure=False
            )
            for n in range(wanted or len(workers))
        ]
        yield [ClusterShard(future.result(), (OSError, ValueError, RuntimeError)) for future in made]
