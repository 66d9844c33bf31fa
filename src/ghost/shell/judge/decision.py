"""The result of classification, as the gate, the executor and the audit read it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from ghost.shell.judge.command_line import TO_READER, Sinks

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
    `empty_command`, `unsupported_syntax`, `command_too_long`; nobody is asked about such a command). `program` is
    the program's name in the policy, or the first word. `hosts` are the host names that must be resolved and judged
    before the run: these and no others where there are any (curl). `variables` are environment variables that the
    run must have. `hardening` are the words of `arguments` behind the program's name that the shell put there.

    Of a pipeline `stages` are the verdicts on its commands, each as on a line of its own, and the fields are those of
    the stage that decided: the first FORBIDDEN, else the first that cannot run, else the first that is RISKY, else
    the first of all. `profile` names the sandbox profile of a command that has it for its place in a line; the others
    have that of their program.

    `form` is set for a RISKY command that a person may allow once for all values in its slots (`read_forms`); `reads`
    says that a command which asks cannot write: then she may allow it for the session.
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
    sinks: Sinks = TO_READER
    time_limit: float | None = None
    """Seconds, from `timeout SECONDS` before the command."""
    profile: str | None = None
    stages: tuple[Decision, ...] = ()
    form: str | None = None
    reads: bool = False

    @property
    def commands(self) -> tuple[Decision, ...]:
        """The verdict on each command of the line, in order."""
        return self.stages or (self,)


def of_line(stages: tuple[Decision, ...]) -> Decision:
    """The verdict on a line of these commands: that of the one which decides, with all of them as its stages."""
    if len(stages) == 1:
        return stages[0]
    cannot_run = next((stage for stage in stages if stage.problem is not None), None)
    decisive = cannot_run or next((stage for stage in stages if stage.classification != SAFE), stages[0])
    reads = all(stage.classification == SAFE or stage.reads for stage in stages)
    return replace(decisive, environment=stages[0].environment, stages=stages, form=None, reads=reads)
