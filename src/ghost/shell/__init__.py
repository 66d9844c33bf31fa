"""Safe-Exec Shell: the only room that starts a process.

A command is classified, a person decides what is risky, a program runs without a shell, its output is redacted and cut,
and a record is chained to the audit. See `docs/safety.md`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ghost.shell.gate import READ_ONLY, ApprovalRequest, Approve, HitlCallback, HitlDecision
from ghost.shell.judge.classification import classify
from ghost.shell.judge.decision import FORBIDDEN, RISKY, SAFE
from ghost.shell.judge.explanation import explain

if TYPE_CHECKING:
    from ghost.redaction import redact
    from ghost.shell.record.anonymization import TopologyAnonymizer
    from ghost.shell.record.kept_output import printed_output, recorded_output, whole_output
    from ghost.shell.record.truncation import truncate
    from ghost.shell.run.execution import Programs
    from ghost.shell.run.kernel import missing_sandbox
    from ghost.shell.safe_exec_shell import SafeExecShell

__all__ = [
    "FORBIDDEN",
    "READ_ONLY",
    "RISKY",
    "SAFE",
    "ApprovalRequest",
    "Approve",
    "HitlCallback",
    "HitlDecision",
    "Programs",
    "SafeExecShell",
    "TopologyAnonymizer",
    "classify",
    "explain",
    "missing_sandbox",
    "printed_output",
    "recorded_output",
    "redact",
    "truncate",
    "whole_output",
]

_MODULES = {
    "Programs": "ghost.shell.run.execution",
    "SafeExecShell": "ghost.shell.safe_exec_shell",
    "TopologyAnonymizer": "ghost.shell.record.anonymization",
    "missing_sandbox": "ghost.shell.run.kernel",
    "printed_output": "ghost.shell.record.kept_output",
    "redact": "ghost.redaction",
    "recorded_output": "ghost.shell.record.kept_output",
    "truncate": "ghost.shell.record.truncation",
    "whole_output": "ghost.shell.record.kept_output",
}


def __getattr__(name: str) -> Any:
    """What only running a command needs is imported when it is first asked for: judging one starts twice as fast."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value
