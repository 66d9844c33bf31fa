"""The Cloud Orchestrator: packet captures in Azure as tasks with a life of their own.

It turns five intents into az commands, carries them to a shell, and keeps a registry from which every resource it ever
asked for can be found and removed. It may not start a program, import the shell or the capture engine, or delete
anything that nobody asked it to delete.
"""

from ghost.cloud.orchestrator import CloudOrchestrator, Shell
from ghost.cloud.task import CaptureTask, CleanupStatus, CleanupStep, Mode, Outcome, State
from ghost.cloud.unreleased_captures import LeftBehind, left_behind

__all__ = [
    "CaptureTask",
    "CleanupStatus",
    "CleanupStep",
    "CloudOrchestrator",
    "LeftBehind",
    "Mode",
    "Outcome",
    "Shell",
    "State",
    "left_behind",
]
