"""Who decides the next step of an investigation. A brain only speaks and asks for tools; it never executes anything.

`OfflineBrain` investigates without a model, `ScriptedBrain` plays what a test wrote.
"""

from ghost.brain.conversation import (
    Brain,
    MemoryNote,
    Message,
    ResumeNote,
    ToolCall,
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
    "ToolResult",
    "ToolResults",
    "Turn",
    "Usage",
    "UserMessage",
]
