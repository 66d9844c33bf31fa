"""Kernel that selects the marked packets of a batch, by reader, in columns."""

from __future__ import annotations

from ghost.pcap import layout as L
from ghost.pcap.array_types import Counters, IntVector, PacketRows

# The columns of a marked packet.
(
    C_MARK, C_SOURCE, C_SOURCE_PORT, C_DESTINATION, C_DESTINATION_PORT, C_SEQUENCE, C_ACKNOWLEDGED, C_LENGTH, C_FRAME,
    C_TIME, C_STREAM, C_SENDER, C_RECEIVER, C_ROW, C_START, C_STOP,
) = range(16)  # fmt: skip
"""Sender and receiver are endpoints, address id << 16 | port; then the row it has in the batch, and where its message
lies in the buffer. ICMP has no sequence number: its hop limit stands in its place."""
COLUMNS = 16

_MOST_ICMP = 576
"""Of an ICMP message, what holds every header that an error may quote."""


def reader_of(mark: int) -> int:
    """Return the representative mark of the reader; 0 where there is none."""
    if mark >= L.READ_MARKS:
        return 0
    if mark in (L.MARK_DNS_TCP, L.MARK_MDNS, L.MARK_LLMNR):
        return L.MARK_DNS
    if mark == L.MARK_DHCP6:
        return L.MARK_DHCP
    if mark == L.MARK_ICMP6:
        return L.MARK_ICMP
    return mark


def sort_marked(rows: PacketRows, count: int, counts: Counters, table: IntVector) -> int:
    """Write the marked packets to the columns of `table`, reader by reader, each in the order of the rows; `counts`
    gets how many there are for each reader. Returns how many there are, and writes none where there is no room."""
    for n in range(count):
        reader = reader_of(rows[n * L.PACKET + L.MARK])
        if reader:
            counts[reader] = counts[reader] + 1
    total = 0
    for reader in range(len(counts)):
        total += counts[reader]
    room = len(table) // COLUMNS
    if total > room:
        return total
    place = 0
    for reader in range(len(counts)):
        place += counts[reader]
        counts[reader] = place - counts[reader]
    for n in range(count):
        p = n * L.PACKET
        mark = rows[p + L.MARK]
        reader = reader_of(mark)
        if reader == 0:
            continue
        t = counts[reader]
        counts[reader] = t + 1
        start = rows[p + L.PAYLOAD]
        stop = min(rows[p + L.END], start + rows[p + L.LENGTH])
        if reader == L.MARK_ICMP:
            start = rows[p + L.TRANSPORT]
            stop = min(rows[p + L.END], start + _MOST_ICMP)
        elif reader == L.MARK_ARP:
            start, stop = rows[p + L.TRANSPORT], rows[p + L.END]
        table[C_MARK * room + t] = mark
        table[C_SOURCE * room + t] = rows[p + L.SOURCE]
        table[C_SOURCE_PORT * room + t] = rows[p + L.SOURCE_PORT]
        table[C_DESTINATION * room + t] = rows[p + L.DESTINATION]
        table[C_DESTINATION_PORT * room + t] = rows[p + L.DESTINATION_PORT]
        table[C_SEQUENCE * room + t] = rows[p + L.SEQUENCE]
        table[C_ACKNOWLEDGED * room + t] = rows[p + L.ACKNOWLEDGED]
        table[C_LENGTH * room + t] = rows[p + L.LENGTH]
        table[C_FRAME * room + t] = rows[p + L.FRAME]
        table[C_TIME * room + t] = rows[p + L.TIME]
        if reader == L.MARK_ICMP:
            table[C_SEQUENCE * room + t] = rows[p + L.TTL]
        table[C_STREAM * room + t] = rows[p + L.STREAM_NUMBER]
        table[C_SENDER * room + t] = (rows[p + L.SOURCE] << 16) | rows[p + L.SOURCE_PORT]
        table[C_RECEIVER * room + t] = (rows[p + L.DESTINATION] << 16) | rows[p + L.DESTINATION_PORT]
        table[C_ROW * room + t] = n
        table[C_START * room + t] = start
        table[C_STOP * room + t] = stop
    # Each place now lies behind the reader's packets.
    place = 0
    for reader in range(len(counts)):
        behind = counts[reader]
        counts[reader] = behind - place
        place = behind
    return total


KERNELS = (reader_of, sort_marked)
