"""Hash of the two endpoints of a flow: its place in a table."""

from __future__ import annotations

_WORD = 0xFFFFFFFF


def hash_endpoints(low: int, high: int, seed: int) -> int:
    """Return a 32-bit hash of two endpoints.

    The 62-bit seed of a table is drawn for each run, so that nobody can choose flows that share one slot: a multiplier
    per end, and the high bits of the sum (multiply-shift hashing).
    """
    own = seed ^ 0x1F83D9ABFB41BD6B
    mixed = ((low * own + high * ((own ^ (own >> 31)) * 0x2545F4914F6CDD1D)) >> 32) & _WORD
    mixed = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D) & _WORD
    return mixed ^ (mixed >> 13)


KERNELS = (hash_endpoints,)
