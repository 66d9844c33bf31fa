"""Types of arrays, and the two ways to run a kernel: interpreted over memoryviews, or compiled over arrays.

A kernel is a plain function over flat integer sequences. Interpreted, it gets memoryviews, whose items are plain
integers and cost a third of a numpy scalar. Compiled, it gets the arrays themselves. Both see the same memory, so
state may pass from one to the other at any batch.

Each table that a kernel takes has a type of its own, so that mypy tells them apart. A table is flat: row `n` of a table
with rows of length `SIZE` begins at `n * SIZE`, and `layout` names the fields.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NewType, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.int64]
"""Numbers of any shape."""
PacketArray: TypeAlias = NDArray[np.int64]
"""int64[packets, layout.PACKET]: what `PacketRows` is flat."""
StreamArray: TypeAlias = NDArray[np.int64]
"""int64[streams, layout.STREAM]."""
SideArray: TypeAlias = NDArray[np.int64]
"""int64[2 * streams, layout.SIDE]: side 0 of a stream, then side 1."""
RowIndices: TypeAlias = NDArray[np.int64]
"""int64[n]: numbers of rows in another table."""


class IntVector(ABC):
    """A flat sequence of integers that can be written: a memoryview or an array."""

    @abstractmethod
    def __getitem__(self, index: int, /) -> int: ...
    @abstractmethod
    def __setitem__(self, index: int, value: int, /) -> None: ...
    @abstractmethod
    def __len__(self) -> int: ...


FileBytes = NewType("FileBytes", IntVector)
"""uint8[n]: a part of the capture file."""
PacketRows = NewType("PacketRows", IntVector)
"""int64[packets * layout.PACKET]: the packets of a batch."""
StreamTable = NewType("StreamTable", IntVector)
"""int64[streams * layout.STREAM]: TCP streams."""
SideTable = NewType("SideTable", IntVector)
"""int64[2 * streams * layout.SIDE]: both sides of each TCP stream."""
SegmentPool = NewType("SegmentPool", IntVector)
"""int64[segments * layout.SEGMENT]: unacknowledged segments and holes, linked by side."""
EventLog = NewType("EventLog", IntVector)
"""int64[events * 3]: side, kind and frame of each event since the log was taken out."""
SampleLog = NewType("SampleLog", IntVector)
"""int64[n]: samples of times in ns since the log was taken out, packed as `layout.SAMPLES` says."""
StreamKeys = NewType("StreamKeys", IntVector)
"""int64[streams * layout.KEY]: endpoints of every stream, and where its row is."""
HashSlots = NewType("HashSlots", IntVector)
"""int64[2**n]: number of a table's row + 1; 0 where the slot is free."""
AddressTable = NewType("AddressTable", IntVector)
"""int64[addresses * layout.ADDRESS]: IP version and four 32-bit words of each address."""
ConversationTable = NewType("ConversationTable", IntVector)
"""int64[conversations * udp_conversations.CONVERSATION]: pairs of UDP endpoints."""
RecentPackets = NewType("RecentPackets", IntVector)
"""int64[duplicates.RECENT_ROOM]: signatures and times of packets seen just before."""
OpenHandshakes = NewType("OpenHandshakes", IntVector)
"""int64[tls_handshake_records.OPENED_ROOM]: TLS handshake records that continue in a later segment."""
Counters = NewType("Counters", IntVector)
"""int64[n]: counters and limits of a table."""
PacketTotals = NewType("PacketTotals", IntVector)
"""int64[n]: counts over all packets (`packet_totals`)."""
BinTable = NewType("BinTable", IntVector)
"""int64[bins * time_bins.BIN]: counts by bin of time."""
RoundTripTable = NewType("RoundTripTable", IntVector)
"""int64[bins * buckets]: number of round trips by bin of time and by bucket."""
BucketEdges = NewType("BucketEdges", IntVector)
"""int64[buckets]: the shortest round trip of each bucket, in ns, ascending."""
PairTable = NewType("PairTable", IntVector)
"""int64[slots * time_bins.PAIR]: counts by pair of hosts and wide bin; a hash table."""

Vector: TypeAlias = Callable[[NDArray[Any]], Any]
"""An array as the flat sequence that the kernels in use take."""
Kernel: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
"""A kernel as it is run: itself, or compiled."""


def interpreted_vector(array: NDArray[Any]) -> Any:
    """The array as a memoryview."""
    return array.data


def interpreted_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return function
