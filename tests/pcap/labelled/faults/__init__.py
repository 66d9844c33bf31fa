"""Scenes with one fault each. What is broken is said once, in the decorator: the kind, and whose it is."""

from ..scene import FAULTS
from . import connections, crowds, names, paths, programs, sealed, segments, silence

__all__ = ["FAULTS", "connections", "crowds", "names", "paths", "programs", "sealed", "segments", "silence"]
