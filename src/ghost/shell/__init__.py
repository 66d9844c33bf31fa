"""Safe-Exec Shell: the only room that starts a process.

A command is classified, a person decides what is risky, a program runs without a shell, its output is redacted and cut,
and a record is chained to the audit. See `docs/safety.md`.
"""

from ghost.redaction import redact
from ghost.shell.gate import RUNS_NOTHING, HitlCallback, HitlDecision
from ghost.shell.judge.classification import classify
from ghost.shell.judge.decision import FORBIDDEN, RISKY, SAFE
from ghost.shell.record.anonymization import TopologyAnonymizer
from ghost.shell.record.truncation import truncate
from ghost.shell.safe_exec_shell import SafeExecShell

__all__ = [
    "FORBIDDEN",
    "RISKY",
    "RUNS_NOTHING",
    "SAFE",
    "HitlCallback",
    "HitlDecision",
    "SafeExecShell",
    "TopologyAnonymizer",
    "classify",
    "redact",
    "truncate",
]
