"""The table of addresses: a small number for each."""

from __future__ import annotations

from ghost.pcap import layout as L
from ghost.pcap.array_types import AddressTable, Counters, HashSlots


def intern_address(
    version: int, w0: int, w1: int, w2: int, w3: int, table: AddressTable, slots: HashSlots, counters: Counters
) -> int:
    """Return the id of an address; a new one for a new address."""
    mask = len(slots) - 1
    # A multiplier for each word, of each run its own, and the high bits of the sum: whatever two words have in common,
    # nobody can choose addresses that all fall into one slot (multiply-shift hashing, Dietzfelbinger 1996).
    mixed = ((w0 * counters[1] + w1 * counters[2] + w2 * counters[3] + w3 * counters[4]) >> 32) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D) & 0xFFFFFFFF
    slot = (mixed ^ (mixed >> 13)) & mask
    while True:
        held = slots[slot]
        if held == 0:
            number = counters[0]
            row = number * L.ADDRESS
            table[row] = version
            table[row + 1] = w0
            table[row + 2] = w1
            table[row + 3] = w2
            table[row + 4] = w3
            slots[slot] = number + 1
            counters[0] = number + 1
            return number
        row = (held - 1) * L.ADDRESS
        if (
            table[row + 4] == w3
            and table[row + 3] == w2
            and table[row + 2] == w1
            and table[row + 1] == w0
            and table[row] == version
        ):
            return held - 1
        slot = (slot + 1) & mask


def place_addresses(table: AddressTable, slots: HashSlots, counters: Counters) -> None:
    """Fill an empty slot table with the addresses there are."""
    known = counters[0]
    counters[0] = 0
    for number in range(known):
        row = number * L.ADDRESS
        intern_address(
            table[row], table[row + 1], table[row + 2], table[row + 3], table[row + 4], table, slots, counters
        )


KERNELS = (
    intern_address,
    place_addresses,
)
