"""Scenes with one fault each. What is broken is said once, in the decorator: the kind, and whose it is."""

from ..scene import FAULTS
from . import answers, connections, crowds, gone, names, paths, programs, refusals, sealed, segments, silence

__all__ = [
    "FAULTS",
    "answers",
    "connections",
    "crowds",
    "gone",
    "names",
    "paths",
    "programs",
    "refusals",
    "sealed",
    "segments",
    "silence",
]
