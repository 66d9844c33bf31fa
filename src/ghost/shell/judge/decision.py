"""The result of classification, as the gate, the executor and the audit read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

SAFE: Final = "SAFE"
RISKY: Final = "RISKY"
FORBIDDEN: Final = "FORBIDDEN"

Classification = Literal["SAFE", "RISKY", "FORBIDDEN"]
Environment = Literal["local", "azure"]


@dataclass(frozen=True)
class Decision:
    """The verdict on one command line, with the words that were judged: exactly those run.

    `tier` is the tier that decided (0 to 3), None when SAFE. `rule` names the deciding rule for a person who
    wants to look it up (`ping: option`, `az: not a read`, `pattern: redirection`); `explanation` says in words
    what is wrong or, for a RISKY command, what running it may change.

    `arguments` are the words to run, the program's bare name first, with the hardening options of the program
    already in it when SAFE; None when nothing could run as written (`problem` then says why:
    `empty_command`, `unsupported_syntax`, `command_too_long`). `program` is the program's name in the policy,
    or the first word. `hosts` are the host names that must be resolved and judged before the run: these and
    no others where there are any (curl). `variables` are environment variables that the run must have.
    `hardening` are the words of `arguments` behind the program's name that the shell put there.
    """

    classification: Classification
    tier: int | None
    rule: str
    explanation: str
    program: str = ""
    arguments: tuple[str, ...] | None = None
    problem: str | None = None
    environment: Environment = "local"
    hosts: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    hardening: tuple[str, ...] = ()

    @property
    def refused_unasked(self) -> bool:
        """Whether nobody is asked, since no approval makes it run and no part of it is a command: a control character,
        an open quote, too many characters, no usable policy. Behind an operator there is a command that a person may
        want to run instead, so that is asked for.
        """
        return self.problem in ("command_too_long", "empty_command") or (
            self.problem is not None and self.rule.startswith(("syntax:", "policy:"))
        )
