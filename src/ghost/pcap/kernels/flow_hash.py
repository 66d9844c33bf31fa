"""A number for the two endpoints of a flow: where it lies in a table, and which shard follows it."""

from __future__ import annotations

_WORD = 0xFFFFFFFF


def hash_endpoints(low: int, high: int, seed: int) -> int:
    """32 bits. A table's seed, of 62 bits, is of each run its own, so that nobody can choose flows that all fall into
    one slot: a multiplier made of it for each end, and the high bits of the sum (multiply-shift hashing)."""
    own = seed ^ 0x1F83D9ABFB41BD6B
    mixed = ((low * own + high * ((own ^ (own >> 31)) * 0x2545F4914F6CDD1D)) >> 32) & _WORD
    mixed = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D) & _WORD
    return mixed ^ (mixed >> 13)


KERNELS = (hash_endpoints,)
