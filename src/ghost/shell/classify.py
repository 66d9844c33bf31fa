"""The verdict on one command line: SAFE, RISKY or FORBIDDEN, by fixed rules alone. Nothing here starts a process.

A first frame: every command is RISKY until the tables behind it say otherwise.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from ghost.shell.decision import RISKY, Classification, Decision

MAX_LENGTH = 16_384


def decide(command: str, roots: Sequence[Path] | None = None) -> Decision:
    """Judge one command line. Never raises, whatever the string; linear in its length."""
    if len(command) > MAX_LENGTH:
        return Decision(RISKY, 3, "syntax: length", "The command is too long.", problem="command_too_long")
    if not command.strip():
        return Decision(RISKY, 3, "syntax: empty", "There is no command.", problem="empty_command")
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        return Decision(RISKY, 3, "syntax: quotes", str(error), problem="unsupported_syntax")
    return Decision(RISKY, 1, "not in the allowlist", "Not in the allowlist.", words[0], words)


def classify(command: str, roots: Sequence[Path] | None = None) -> tuple[Classification, int | None, str]:
    """What `decide` says, as `(classification, tier, explanation)`; the tier is None when SAFE."""
    decision = decide(command, roots)
    return decision.classification, decision.tier, decision.explanation
