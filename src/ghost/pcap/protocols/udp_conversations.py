"""UDP conversations: a kernel counts both directions of each pair of endpoints."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

import numpy as np

from ghost.pcap import layout as L
from ghost.pcap.array_types import Array, ConversationTable, Counters, HashSlots, Kernel, PacketRows, Vector
from ghost.pcap.kernels.flow_hash import hash_endpoints
from ghost.pcap.model import Endpoint, UdpConversation, UdpSection

U_LOW, U_HIGH, U_FIRST_SIDE, U_PACKETS, U_BYTES, U_FIRST, U_LAST, U_FRAME = 0, 1, 2, 3, 5, 7, 8, 9
CONVERSATION = 10


def udp_slot(low: int, high: int, slots: HashSlots, table: ConversationTable, counts: Counters) -> int:
    mask = len(slots) - 1
    slot = hash_endpoints(low, high, counts[1]) & mask
    while slots[slot] != 0:
        u = (slots[slot] - 1) * CONVERSATION
        if table[u + U_LOW] == low and table[u + U_HIGH] == high:
            break
        slot = (slot + 1) & mask
    return slot


def count_conversations(
    rows: PacketRows, begin: int, count: int, slots: HashSlots, table: ConversationTable, counts: Counters
) -> int:
    """Count the UDP packets of rows `begin` to `count`; returns where it stopped for want of room."""
    capacity = len(table) // CONVERSATION
    for n in range(begin, count):
        p = n * L.PACKET
        if rows[p + L.PROTOCOL] != 17:
            continue
        if counts[0] >= capacity:
            return n
        low = (rows[p + L.SOURCE] << 16) | rows[p + L.SOURCE_PORT]
        high = (rows[p + L.DESTINATION] << 16) | rows[p + L.DESTINATION_PORT]
        sender = 0
        if low > high:
            low, high = high, low
            sender = 1
        now = rows[p + L.TIME]
        slot = udp_slot(low, high, slots, table, counts)
        if slots[slot] == 0:
            u = counts[0] * CONVERSATION
            counts[0] = counts[0] + 1
            slots[slot] = counts[0]
            table[u + U_LOW] = low
            table[u + U_HIGH] = high
            table[u + U_FIRST_SIDE] = sender
            table[u + U_FIRST] = now
            table[u + U_LAST] = now
            table[u + U_FRAME] = rows[p + L.FRAME]
        u = (slots[slot] - 1) * CONVERSATION
        table[u + U_PACKETS + sender] = table[u + U_PACKETS + sender] + 1
        table[u + U_BYTES + sender] = table[u + U_BYTES + sender] + rows[p + L.LENGTH]
        table[u + U_FIRST] = min(table[u + U_FIRST], now)
        table[u + U_LAST] = max(table[u + U_LAST], now)
    return count


def place_conversations(slots: HashSlots, table: ConversationTable, counts: Counters) -> None:
    for number in range(counts[0]):
        u = number * CONVERSATION
        slots[udp_slot(table[u + U_LOW], table[u + U_HIGH], slots, table, counts)] = number + 1


KERNELS = (udp_slot, count_conversations, place_conversations)


class UdpConversations:
    def __init__(self, vector: Vector, kernels: Kernel, seed: int = 0, capacity: int = 256) -> None:
        self._vector, self._kernels = vector, kernels
        self._table = np.zeros(capacity * CONVERSATION, np.int64)
        self._slots = np.zeros(capacity * 2, np.int64)
        self._counts = np.array([0, seed], np.int64)

    def use(self, vector: Vector, kernels: Kernel) -> None:
        """Run the next batches this way."""
        self._vector, self._kernels = vector, kernels

    def arrays(self) -> tuple[Array, ...]:
        """The state, in the order in which `count_conversations` takes it."""
        return self._slots, self._table, self._counts

    def make_room(self) -> None:
        """For twice as many conversations."""
        self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        self._slots = np.zeros(len(self._slots) * 2, np.int64)
        self._kernels(place_conversations)(*map(self._vector, self.arrays()))

    def table(self) -> Array:
        """A row a conversation, in the order of their first frames."""
        return self._table[: int(self._counts[0]) * CONVERSATION].reshape(-1, CONVERSATION)


def udp_section(table: Array, address: Callable[[int], str]) -> UdpSection | None:
    total = len(table)
    if not total:
        return None
    packets, sizes = table[:, U_PACKETS : U_PACKETS + 2], table[:, U_BYTES : U_BYTES + 2]

    def conversation(number: int) -> UdpConversation:
        row = table[number].tolist()
        client = row[U_FIRST_SIDE]
        server = 1 - client
        ends = [Endpoint(address(row[at] >> 16), row[at] & 0xFFFF) for at in (U_LOW, U_HIGH)]
        return UdpConversation(
            client=ends[client],
            server=ends[server],
            client_packets=row[U_PACKETS + client],
            server_packets=row[U_PACKETS + server],
            client_bytes=row[U_BYTES + client],
            server_bytes=row[U_BYTES + server],
            first_ns=row[U_FIRST],
            last_ns=row[U_LAST],
            first_frame=row[U_FRAME],
        )

    one_sided = np.flatnonzero((packets == 0).any(axis=1))
    silent = [
        number
        for number in one_sided[np.argsort(-packets[one_sided].sum(axis=1), kind="stable")].tolist()
        if expects_answer(address(int(table[number, U_HIGH if table[number, U_FIRST_SIDE] == 0 else U_LOW]) >> 16))
    ]
    return UdpSection(
        datagrams=int(packets.sum()),
        payload_bytes=int(sizes.sum()),
        conversations_total=total,
        unanswered_conversations=len(silent),
        conversations=tuple(map(conversation, np.argsort(-sizes.sum(axis=1), kind="stable")[:10].tolist())),
        unanswered=tuple(map(conversation, silent[:20])),
    )


def expects_answer(destination: str) -> bool:
    """Return whether a destination is unicast (.255 counts as a broadcast address)."""
    address = ipaddress.ip_address(destination)
    return not (address.is_multicast or (address.version == 4 and destination.endswith(".255")))
