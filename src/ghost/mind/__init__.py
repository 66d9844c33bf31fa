"""The mind: what Ghost remembers, what it attends to, what it thinks of on its own, and what it asks."""

from ghost.mind.long_term_memory import Hit, LongTermMemory
from ghost.mind.model import (
    Memory,
    MemoryType,
    Query,
    QueryStatus,
    SelfModel,
    Stimulus,
    Task,
    TaskStatus,
    Thought,
)
from ghost.mind.opening import open_store
from ghost.mind.store import EVERYTHING, Changes, Filter, MemoryStore

__all__ = [
    "EVERYTHING",
    "Changes",
    "Filter",
    "Hit",
    "LongTermMemory",
    "Memory",
    "MemoryStore",
    "MemoryType",
    "Query",
    "QueryStatus",
    "SelfModel",
    "Stimulus",
    "Task",
    "TaskStatus",
    "Thought",
    "open_store",
]
