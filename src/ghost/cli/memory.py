"""What an investigation takes from memory when it begins, and leaves there when it ends.

Memory helps and is never needed: where it cannot be opened or asked, one line says so and the investigation goes on.
A private session neither asks nor leaves anything: what it knows are placeholders, which mean nothing in another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from ghost.agent import finished
from ghost.brain import MemoryNote
from ghost.cli.narration import short
from ghost.cli.words import plain
from ghost.config import Settings
from ghost.errors import GhostError
from ghost.mind import Hint, LongTermMemory, open_store, recall, remember
from ghost.records import Clock, SystemClock

Say = Callable[[str], None]

NOT_EVIDENCE = (
    "Memory of earlier investigations follows. It says where to look first; it is no evidence, the network may differ "
    "now, and an id of a memory cannot be cited."
)


@contextmanager
def opened_memory(settings: Settings, clock: Clock | None = None) -> Iterator[LongTermMemory]:
    """Raises `StoreError` where the store cannot be opened, `ConfigurationError` where a setting is wrong."""
    from ghost.providers import embeddings

    provider = embeddings(settings)
    store = open_store(settings, provider.name, provider.dim)
    try:
        yield LongTermMemory(store, provider, clock or SystemClock())
    finally:
        store.close()


def hints_for(symptom: str, network: str, settings: Settings, warn: Say) -> list[Hint]:
    """The nearest earlier investigations of this kind of network; none where memory cannot be asked."""
    if not (settings.database_url or settings.database.exists()):
        return []
    try:
        with opened_memory(settings) as memory:
            return recall(memory, symptom, network)
    except GhostError as error:
        warn(f"Memory was not asked: {error}")
        return []


def note_of(hints: list[Hint]) -> MemoryNote | None:
    """What the brain hears."""
    if not hints:
        return None
    told = [f"[memory {hint.memory_id}] {hint.text}" for hint in hints]
    layers = dict.fromkeys(layer for hint in hints for layer in hint.layers)
    return MemoryNote("\n\n".join([NOT_EVIDENCE, *told]), tuple(layers))


def shown(hint: Hint) -> list[str]:
    """One hint for a person: when and what was asked, what it came to, and how to look at that first."""
    day = datetime.fromtimestamp(hint.created_at, UTC).date().isoformat()
    often = f", the last of {hint.times} that came to this" if hint.times > 1 else ""
    lines = [
        f"{day}  {plain(hint.symptom)}  ({plain(hint.session_id) or 'a summary'}{often})",
        f"    {plain(hint.conclusion)}",
    ]
    return [*lines, f"    settled by: {plain(short(hint.settled_by))}"] if hint.settled_by else lines


def keep(report: Mapping[str, Any], settings: Settings, warn: Say) -> int:
    """Remembers a finished investigation. Returns how many memories it left: none where it could not."""
    try:
        with opened_memory(settings) as memory:
            return len(remember(memory, finished(report)))
    except GhostError as error:
        warn(f"This investigation was not remembered: {error}")
        return 0
