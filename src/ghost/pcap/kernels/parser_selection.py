"""The kernel that takes marked packets out of a batch: those of one reader together, in columns."""

from __future__ import annotations

from ghost.pcap.array_types import Ints
from ghost.pcap.layout import (
    ACKNOWLEDGED,
    DESTINATION,
    DESTINATION_PORT,
    END,
    FRAME,
    LENGTH,
    MARK,
    MARK_ARP,
    MARK_DHCP,
    MARK_DHCP6,
    MARK_DNS,
    MARK_DNS_TCP,
    MARK_ICMP,
    MARK_ICMP6,
    MARK_LLMNR,
    MARK_MDNS,
    PACKET,
    PAYLOAD,
    SEQUENCE,
    SOURCE,
    SOURCE_PORT,
    STREAM_NUMBER,
    TIME,
    TRANSPORT,
    TTL,
)

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
    """The mark that stands for all whose packets go to one reader."""
    if mark in (MARK_DNS_TCP, MARK_MDNS, MARK_LLMNR):
        return MARK_DNS
    if mark == MARK_DHCP6:
        return MARK_DHCP
    if mark == MARK_ICMP6:
        return MARK_ICMP
    return mark


def sort_marked(rows: Ints, count: int, counts: Ints, table: Ints) -> int:
    """Write the marked packets to the columns of `table`, reader by reader, each in the order of the rows; `counts`
    gets how many there are for each reader. Returns how many there are, and writes none where there is no room."""
    for n in range(count):
        if rows[n * PACKET + MARK]:
            reader = reader_of(rows[n * PACKET + MARK])
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
        p = n * PACKET
        mark = rows[p + MARK]
        if mark == 0:
            continue
        reader = reader_of(mark)
        t = counts[reader]
        counts[reader] = t + 1
        start = rows[p + PAYLOAD]
        stop = min(rows[p + END], start + rows[p + LENGTH])
        if reader == MARK_ICMP:
            start = rows[p + TRANSPORT]
            stop = min(rows[p + END], start + _MOST_ICMP)
        elif reader == MARK_ARP:
            start, stop = rows[p + TRANSPORT], rows[p + END]
        table[C_MARK * room + t] = mark
        table[C_SOURCE * room + t] = rows[p + SOURCE]
        table[C_SOURCE_PORT * room + t] = rows[p + SOURCE_PORT]
        table[C_DESTINATION * room + t] = rows[p + DESTINATION]
        table[C_DESTINATION_PORT * room + t] = rows[p + DESTINATION_PORT]
        table[C_SEQUENCE * room + t] = rows[p + SEQUENCE]
        table[C_ACKNOWLEDGED * room + t] = rows[p + ACKNOWLEDGED]
        table[C_LENGTH * room + t] = rows[p + LENGTH]
        table[C_FRAME * room + t] = rows[p + FRAME]
        table[C_TIME * room + t] = rows[p + TIME]
        if reader == MARK_ICMP:
            table[C_SEQUENCE * room + t] = rows[p + TTL]
        table[C_STREAM * room + t] = rows[p + STREAM_NUMBER]
        table[C_SENDER * room + t] = (rows[p + SOURCE] << 16) | rows[p + SOURCE_PORT]
        table[C_RECEIVER * room + t] = (rows[p + DESTINATION] << 16) | rows[p + DESTINATION_PORT]
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
