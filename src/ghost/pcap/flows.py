"""A number for the two endpoints of a flow: where it lies in a table, and which shard follows it."""

from __future__ import annotations

_WORD = 0xFFFFFFFF


def mixed_ends(low: int, high: int, seed: int) -> int:
    """32 bits. A table's seed is of each run its own, so that nobody can choose flows that all fall into one slot."""
    mixed = (((low & _WORD) + seed) * 0x9E3779B1 ^ ((low >> 32) + seed) * 0x85EBCA6B) & _WORD
    mixed = (mixed ^ ((high & _WORD) + seed) * 0xC2B2AE35 ^ ((high >> 32) + seed) * 0x27D4EB2F) & _WORD
    mixed = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D) & _WORD
    return mixed ^ (mixed >> 13)


KERNELS = (mixed_ends,)
