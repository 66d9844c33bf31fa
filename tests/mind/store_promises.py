"""What every `MemoryStore` promises. A store's tests subclass `StorePromises` and say how one is opened."""

from __future__ import annotations

from tests.mind.made_memories import DIM, SPACE, Open, memory, names, unit
from tests.mind.promises_of_files import FilePromises
from tests.mind.promises_of_search import SearchPromises
from tests.mind.promises_of_writing import WritingPromises
from tests.mind.promises_together import TogetherPromises

__all__ = ["DIM", "SPACE", "Open", "StorePromises", "memory", "names", "unit"]


class StorePromises(WritingPromises, SearchPromises, FilePromises, TogetherPromises):
    """Replace the fixtures `open_one` and `open_other`."""
