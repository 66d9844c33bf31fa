"""The mind: memory, attention, thoughts between investigations, and questions to people."""

from ghost.mind.attention import Attention, Component, Score, Weights
from ghost.mind.change_timeline import ResourceChange, changed_before
from ghost.mind.data_model import (
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
from ghost.mind.engine import Abandoned, CycleResult, Engine
from ghost.mind.event_bus import Event, Kind
from ghost.mind.inbox import InboxFull
from ghost.mind.interrupts import Interrupts, MissingFields
from ghost.mind.investigation_memories import INVESTIGATION, Finding, Finished, Hint, Step, recall, remember
from ghost.mind.long_term_memory import RANK_CONSTANT, Hit, LongTermMemory
from ghost.mind.sources import TaskSource
from ghost.mind.sqlite_connections import transaction
from ghost.mind.store import EVERYTHING, Changes, Filter, MemoryStore
from ghost.mind.store_selection import open_store, opened_memory
from ghost.mind.stream import StreamOfConsciousness
from ghost.mind.told_facts import FIX_CHECK
from ghost.mind.working_memory import WorkingMemory

__all__ = [
    "EVERYTHING",
    "FIX_CHECK",
    "INVESTIGATION",
    "RANK_CONSTANT",
    "Abandoned",
    "Attention",
    "Changes",
    "Component",
    "CycleResult",
    "Engine",
    "Event",
    "Filter",
    "Finding",
    "Finished",
    "Hint",
    "Hit",
    "InboxFull",
    "Interrupts",
    "Kind",
    "LongTermMemory",
    "Memory",
    "MemoryStore",
    "MemoryType",
    "MissingFields",
    "Query",
    "QueryStatus",
    "ResourceChange",
    "Score",
    "SelfModel",
    "Step",
    "Stimulus",
    "StreamOfConsciousness",
    "Task",
    "TaskSource",
    "TaskStatus",
    "Thought",
    "Weights",
    "WorkingMemory",
    "changed_before",
    "open_store",
    "opened_memory",
    "recall",
    "remember",
    "transaction",
]
