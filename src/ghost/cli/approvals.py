"""Who approves a RISKY command: the engineer at a terminal, a pipe, or the answers of a lab scenario.

Each gate answers requests with a `HitlDecision`, in `approve`, or as `(command, reasoning, risk, tier)` one question a
command. Whatever goes wrong in one is a denial; the shell sees to that.
"""

from __future__ import annotations

import re
import shlex
import sys
import termios
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from rich import box
from rich.console import Console as Rich
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ghost.cli.command_words import effect
from ghost.cli.terminal import is_interactive
from ghost.config import Settings
from ghost.lab import Approval, Approvals, RunningLab
from ghost.patterns import lazy
from ghost.shell import ApprovalRequest, HitlDecision
from ghost.text import visible

NOT_OWN_FILES = Approval("", "deny", "a scenario answers for files of the investigation only")
LONG_COMMAND = 600
"""Characters. Creating a capture takes fewer."""
BOX_WIDTH = 110
MAX_PROSE = 400
NAMED_CHARACTERS = 3
_SPACES = lazy(r" {2,}")


def _space_count(spaces: re.Match[str]) -> str:
    """Replace repeated spaces by their number: a folded line would hide them and text behind them."""
    return f" [{len(spaces.group())} spaces] "


def _folded(text: str) -> str:
    """Untrusted prose on one line: its line breaks could look like rows of the prompt, its length hide the others."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= MAX_PROSE else f"{line[:MAX_PROSE]} … ({len(line):,} characters)"


def _notes(command: str) -> str:
    """Warn about what is easy to miss in a command: great length and non-ASCII look-alike letters."""
    notes = []
    if len(command) > LONG_COMMAND:
        notes.append(f"{len(command):,} characters long: read it to its end")
    odd = list(dict.fromkeys(character for character in command if not character.isascii()))
    if odd:
        named = ", ".join(f"U+{ord(c):04X} {unicodedata.name(c, 'without a name')}" for c in odd[:NAMED_CHARACTERS])
        more = f" and {len(odd) - NAMED_CHARACTERS} more" if len(odd) > NAMED_CHARACTERS else ""
        notes.append(f"holds characters that are not ASCII: {named}{more}")
    return "; ".join(notes)


def _choices(request: ApprovalRequest) -> dict[str, str]:
    """The answers that are offered, and how each is shown: by the letter in brackets or in full it is typed."""
    if request.kind == "plan":
        return {"approve": "[A]pprove all", "deny": "[D]eny", "each": "[E]ach by itself"}
    offered = {"approve": "[A]pprove", "deny": "[D]eny", "modify": "[M]odify"}
    if request.session:
        offered["session"] = "[S] this command for the session"
    if request.form is not None:
        offered["form"] = f"[F] this form for the session: {request.form}"
    return offered


def _choice_letters(request: ApprovalRequest) -> str:
    *first, last = (shown[1].lower() for shown in _choices(request).values())
    return f"{', '.join(first)} or {last}"


def _chosen(typed: str, request: ApprovalRequest) -> str | None:
    """The answer that was typed; None where it is none of this question."""
    return next((answer for answer, shown in _choices(request).items() if typed in (shown[1].lower(), answer)), None)


class Gate(ABC):
    """Answers requests, and as a callback of the shell the question about one command."""

    @abstractmethod
    def approve(self, request: ApprovalRequest) -> HitlDecision: ...

    def __call__(self, command: str, reasoning: str, risk: str, tier: int | None) -> HitlDecision:
        return self.approve(ApprovalRequest("once", (command,), reasoning, risk, tier))


def interactive_gate(rich: Rich) -> Gate:
    """Return the gate for this terminal or pipe. Prompts never go to a redirected standard error."""
    if is_interactive() and sys.stderr.isatty():
        return TerminalGate(rich)
    return PlainGate(sys.stdout if is_interactive() else sys.stderr, sys.stdin)


class TerminalGate(Gate):
    """Show the approval box of the specification and wait for a choice. `edit`: reads a line that begins with text."""

    def __init__(
        self, rich: Rich, read: Callable[[str], str] = input, edit: Callable[[str], str] | None = None
    ) -> None:
        self._rich = rich
        self._read = read
        self._edit = edit or read

    def approve(self, request: ApprovalRequest) -> HitlDecision:
        self._rich.print(approval_box(request))
        _discard_typed_ahead()
        while True:
            answer = _chosen(self._read("Your choice: ").strip().lower(), request)
            if answer == "deny":
                reason = self._read("Denial reason (optional, press Enter to skip): ").strip()
                return HitlDecision("deny", reason=reason or None)
            if answer == "modify":
                with _prefilled(request.lines[0]):
                    modified = self._edit("Command to run instead (empty keeps the question): ").strip()
                if modified:
                    return HitlDecision("modify", modified_command=modified)
            elif answer is not None:
                return HitlDecision(answer)
            else:
                _discard_typed_ahead()
                self._rich.print(f"Type {_choice_letters(request)}.")


def _discard_typed_ahead() -> None:
    """Discard input typed before the prompt was shown or after a wrong answer."""
    if sys.stdin is not None and sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


@contextmanager
def _prefilled(line: str) -> Iterator[None]:
    """Let `input` start with an editable line where readline is available."""
    try:
        import readline
    except ImportError:
        yield
        return
    readline.set_startup_hook(lambda: readline.insert_text(visible(line)))
    try:
        yield
    finally:
        readline.set_startup_hook()


class PlainGate(Gate):
    """The same prompt as plain lines, for pipes; end of input denies."""

    def __init__(self, out: TextIO, lines: TextIO) -> None:
        self._out = out
        self._lines = lines

    def approve(self, request: ApprovalRequest) -> HitlDecision:
        _discard_typed_ahead()
        self._say(f"RISKY {'PLAN' if request.kind == 'plan' else 'COMMAND'}: approval required")
        for heading, text in _rows(request):
            self._say(f"  {heading:12}{text}" if heading else f"  {text}")
        while True:
            answer = _chosen(self._ask(f"{'  '.join(_choices(request).values())}: ").lower(), request)
            if answer == "deny":
                return HitlDecision("deny", reason=self._ask("Denial reason (optional): ") or None)
            if answer == "modify":
                modified = self._ask("Command to run instead: ")
                if modified:
                    return HitlDecision("modify", modified_command=modified)
            elif answer is not None:
                return HitlDecision(answer)
            else:
                _discard_typed_ahead()
                self._say(f"Type {_choice_letters(request)}.")

    def _ask(self, question: str) -> str:
        self._out.write(question)
        self._out.flush()
        line = self._lines.readline()
        self._say("" if line else "(end of input: denied)")
        if not line:
            raise EOFError("the input ended before the approval was answered")
        return line.strip()

    def _say(self, line: str) -> None:
        self._out.write(f"{line}\n")


def gate_of(rich: Rich, lab: RunningLab | None, settings: Settings) -> Gate:
    """Who is asked: the person, or without a terminal a lab's scenario."""
    if lab is not None and not is_interactive():
        return ScenarioGate(rich, lab.briefing.approvals, [settings.capture_dir, settings.audit_dir])
    return interactive_gate(rich)


class ScenarioGate(Gate):
    """Answer prompts from the scenario, for demonstrations without a terminal; show each answer.

    own_directories: where files of the investigation lie. Reading or removing any other file is never approved.
    """

    def __init__(self, rich: Rich, approvals: Approvals, own_directories: Sequence[Path]) -> None:
        self._rich = rich
        self._approvals = approvals
        self._own = [directory.resolve() for directory in own_directories]

    def approve(self, request: ApprovalRequest) -> HitlDecision:
        """A plan is approved where each of its commands is; else each of them asks."""
        self._rich.print(approval_box(request))
        answers = [self._answer(command) for command in request.lines]
        if request.kind == "plan" and not all(answer.allowed for answer in answers):
            self._rich.print("Your choice (answered by the scenario): each by itself", markup=False)
            return HitlDecision("each", by="scenario")
        approval = answers[0]
        self._rich.print(
            f"Your choice (answered by the scenario): {approval.answer}"
            + (f" - {approval.reason}" if approval.reason else ""),
            markup=False,
        )
        return HitlDecision(
            approval.answer, reason=approval.reason or None if approval.answer == "deny" else None, by="scenario"
        )

    def _answer(self, command: str) -> Approval:
        return self._approvals.decide(command) if self._names_own_files_only(command) else NOT_OWN_FILES

    def _names_own_files_only(self, command: str) -> bool:
        words = shlex.split(command)
        if words[0] not in {"cat", "rm"}:
            return True
        paths = [Path(word).resolve() for word in words[1:]]
        return bool(paths) and all(any(path.parent == own for own in self._own) for path in paths)


def approval_box(request: ApprovalRequest) -> Panel:
    """Return the question: what the command comes to, tier, risk and reason, and the exact command last.

    Nothing stands beside the command's lines, so that it can be copied.
    """
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column(overflow="fold")
    whole = Table.grid()
    whole.add_column(overflow="fold")
    for heading, text in _rows(request):
        if heading:
            rows.add_row(heading, Text(text, style=_ROW_STYLES.get(heading.partition(" ")[0].rstrip(":") + ":", "")))
        else:
            whole.add_row(Text(text, style="bold"))
    whole.add_row(rows)
    whole.add_row(Text("   ".join(_choices(request).values()), style="bold"))
    return Panel(whole, title="SAFETY SHELL ALERT", box=box.HORIZONTALS, border_style="red", width=BOX_WIDTH)


_ROW_STYLES = {"COMMAND:": "bold yellow", "NOTE:": "bold red"}


def _rows(request: ApprovalRequest) -> Iterator[tuple[str, str]]:
    """Yield headings and texts; the sentence that comes first has no heading.

    A long command pushes what stands before it off the screen: its risk is repeated behind it.
    """
    if request.kind == "plan":
        yield from _rows_of_plan(request)
        return
    (command,) = request.lines
    if sentence := effect(command):
        yield "", sentence
    tier = "-" if request.tier is None else request.tier
    yield "TIER:", f"{tier}  |  CLASSIFICATION: RISKY"
    yield "RISK:", _folded(request.risk)
    yield "REASONING:", _folded(request.reasoning)
    yield from _shown("COMMAND:", command)
    if len(command) > LONG_COMMAND:
        yield "RISK:", _folded(request.risk)


def _rows_of_plan(request: ApprovalRequest) -> Iterator[tuple[str, str]]:
    repeated = [str(number) for number, times in enumerate(request.times, 1) if times > 1]
    again = f" If they fail, {', '.join(repeated)} may run again." if repeated else ""
    count = len(request.lines)
    those = (
        f"these {count} commands may run as they stand, and no others"
        if count > 1
        else "this command may run, as it stands"
    )
    yield "", f"A plan: {those}.{again}"
    yield "REASONING:", _folded(request.reasoning)
    sentences = [effect(command) for command in request.lines]
    for number, (command, sentence) in enumerate(zip(request.lines, sentences, strict=True), 1):
        yield from _shown(f"COMMAND {number}:", command)
        if sentence:
            yield "DOES:", _folded(sentence.partition(" Undo: ")[0])  # the plan itself removes what it makes
    if not all(sentences):
        yield "RISK:", _folded(request.risk)


def _shown(heading: str, command: str) -> Iterator[tuple[str, str]]:
    yield heading, _SPACES.sub(_space_count, visible(command))
    if notes := _notes(command):
        yield "NOTE:", notes
