"""Who approves a RISKY command: the engineer at a terminal, a pipe, or the answers of a lab scenario.

Each gate is what the shell calls: `(command, reasoning, risk, tier) -> HitlDecision`. Whatever goes wrong in one is
a denial; the shell sees to that.
"""

from __future__ import annotations

import re
import shlex
import sys
import termios
import unicodedata
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
from ghost.lab import Approval, Approvals
from ghost.patterns import lazy
from ghost.shell import HitlCallback, HitlDecision
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


_CHOICES = ("[A]pprove", "[D]eny", "[M]odify")


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


def interactive_gate(rich: Rich) -> HitlCallback:
    """Return the gate for this terminal or pipe. Prompts never go to a redirected standard error."""
    if is_interactive() and sys.stderr.isatty():
        return TerminalGate(rich)
    return PlainGate(sys.stdout if is_interactive() else sys.stderr, sys.stdin)


class TerminalGate:
    """Show the approval box of the specification and wait for a choice."""

    def __init__(self, rich: Rich, read: Callable[[str], str] = input) -> None:
        self._rich = rich
        self._read = read

    def __call__(self, command: str, reasoning: str, risk: str, tier: int | None) -> HitlDecision:
        self._rich.print(approval_box(command, reasoning, risk, tier))
        _discard_typed_ahead()
        while True:
            choice = self._read("Your choice: ").strip().lower()
            if choice in {"a", "approve"}:
                return HitlDecision("approve")
            if choice in {"d", "deny"}:
                reason = self._read("Denial reason (optional, press Enter to skip): ").strip()
                return HitlDecision("deny", reason=reason or None)
            if choice in {"m", "modify"}:
                with _prefilled(command):
                    modified = self._read("Command to run instead (empty keeps the question): ").strip()
                if modified:
                    return HitlDecision("modify", modified_command=modified)
            else:
                _discard_typed_ahead()
                self._rich.print("Type a, d or m.")


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


class PlainGate:
    """The same prompt as plain lines, for pipes; end of input denies."""

    def __init__(self, out: TextIO, lines: TextIO) -> None:
        self._out = out
        self._lines = lines

    def __call__(self, command: str, reasoning: str, risk: str, tier: int | None) -> HitlDecision:
        _discard_typed_ahead()
        self._say("RISKY COMMAND: approval required")
        for heading, text in _rows(command, reasoning, risk, tier):
            self._say(f"  {heading:12}{text}" if heading else f"  {text}")
        while True:
            choice = self._ask(f"{'  '.join(_CHOICES)}: ").lower()
            if choice in {"a", "approve"}:
                return HitlDecision("approve")
            if choice in {"d", "deny"}:
                return HitlDecision("deny", reason=self._ask("Denial reason (optional): ") or None)
            if choice in {"m", "modify"}:
                modified = self._ask("Command to run instead: ")
                if modified:
                    return HitlDecision("modify", modified_command=modified)
            else:
                _discard_typed_ahead()
                self._say("Type a, d or m.")

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


class ScenarioGate:
    """Answer prompts from the scenario, for demonstrations without a terminal; show each answer.

    own_directories: where files of the investigation lie. Reading or removing any other file is never approved.
    """

    def __init__(self, rich: Rich, approvals: Approvals, own_directories: Sequence[Path]) -> None:
        self._rich = rich
        self._approvals = approvals
        self._own = [directory.resolve() for directory in own_directories]

    def __call__(self, command: str, reasoning: str, risk: str, tier: int | None) -> HitlDecision:
        self._rich.print(approval_box(command, reasoning, risk, tier))
        approval = self._approvals.decide(command) if self._names_own_files_only(command) else NOT_OWN_FILES
        self._rich.print(
            f"Your choice (answered by the scenario): {approval.answer}"
            + (f" - {approval.reason}" if approval.reason else ""),
            markup=False,
        )
        if approval.answer == "approve":
            return HitlDecision("approve")
        return HitlDecision("deny", reason=approval.reason or None)

    def _names_own_files_only(self, command: str) -> bool:
        words = shlex.split(command)
        if words[0] not in {"cat", "rm"}:
            return True
        paths = [Path(word).resolve() for word in words[1:]]
        return bool(paths) and all(any(path.parent == own for own in self._own) for path in paths)


def approval_box(command: str, reasoning: str, risk: str, tier: int | None) -> Panel:
    """Return the question: what the command comes to, tier, risk and reason, and the exact command last.

    Nothing stands beside the command's lines, so that it can be copied.
    """
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column(overflow="fold")
    whole = Table.grid()
    whole.add_column(overflow="fold")
    for heading, text in _rows(command, reasoning, risk, tier):
        if heading:
            rows.add_row(heading, Text(text, style=_ROW_STYLES.get(heading, "")))
        else:
            whole.add_row(Text(text, style="bold"))
    whole.add_row(rows)
    whole.add_row(Text("   ".join(_CHOICES), style="bold"))
    return Panel(whole, title="SAFETY SHELL ALERT", box=box.HORIZONTALS, border_style="red", width=BOX_WIDTH)


_ROW_STYLES = {"COMMAND:": "bold yellow", "NOTE:": "bold red"}


def _rows(command: str, reasoning: str, risk: str, tier: int | None) -> Iterator[tuple[str, str]]:
    """Yield headings and texts; the sentence that comes first has no heading.

    A long command pushes what stands before it off the screen: its risk is repeated behind it.
    """
    if sentence := effect(command):
        yield "", sentence
    yield "TIER:", f"{'-' if tier is None else tier}  |  CLASSIFICATION: RISKY"
    yield "RISK:", _folded(risk)
    yield "REASONING:", _folded(reasoning)
    yield "COMMAND:", _SPACES.sub(_space_count, visible(command))
    if notes := _notes(command):
        yield "NOTE:", notes
    if len(command) > LONG_COMMAND:
        yield "RISK:", _folded(risk)
