"""Brains: they choose the next step of an investigation. A brain speaks and requests tools; it executes nothing.

`OfflineBrain` investigates without a model; `ScriptedBrain` plays the turns of a test.
"""

from ghost.brain.conversation import (
    Brain,
    MemoryNote,
    Message,
    ResumeNote,
    ToolCall,
    ToolDeclaration,
    ToolResult,
    ToolResults,
    Turn,
    Usage,
    UserMessage,
)
from ghost.brain.offline import OfflineBrain
from ghost.brain.scripted import ScriptedBrain

__all__ = [
    "Brain",
    "MemoryNote",
    "Message",
    "OfflineBrain",
    "ResumeNote",
    "ScriptedBrain",
    "ToolCall",
    "ToolDeclaration",
    "ToolResult",
    "ToolResults",
    "Turn",
    "Usage",
    "UserMessage",
]
