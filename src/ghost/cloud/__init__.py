"""The Cloud Orchestrator: packet captures in Azure as tasks with their own life cycle.

Turns five intents into az commands, passes them to a shell, and keeps a registry from which every resource it requested
can be found and removed. It may not start a program, import the shell or the capture engine, or delete anything
unasked.
"""

from ghost.cloud.orchestrator import ApprovePlan, CloudOrchestrator, Shell
from ghost.cloud.progress_lines import is_routine
from ghost.cloud.requests import ANY_ACCOUNT, Wishes
from ghost.cloud.resource_names import check_target
from ghost.cloud.task import CaptureTask, CleanupStatus, CleanupStep, Mode, Outcome, State
from ghost.cloud.unreleased_captures import UnreleasedCapture, capture_tasks, unreleased_captures_of

__all__ = [
    "ANY_ACCOUNT",
    "ApprovePlan",
    "CaptureTask",
    "CleanupStatus",
    "CleanupStep",
    "CloudOrchestrator",
    "Mode",
    "Outcome",
    "Shell",
    "State",
    "UnreleasedCapture",
    "Wishes",
    "capture_tasks",
    "check_target",
    "is_routine",
    "unreleased_captures_of",
]
