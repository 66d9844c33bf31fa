"""Splits one command line into the words that are judged and that run. No other code parses a command again.

The quoting is the POSIX shell's (XCU 2.2): bare words, backslash, single and double quotes. Nothing is expanded. Of the
operators two are understood: a pipe, which begins a stage of its own, and what discards or joins a stage's output
(`2>/dev/null`, `2>&1`). Any other that stands outside quotes is a `fault`, and so is a control character anywhere, a
character outside printable ASCII outside quotes, and an expansion inside double quotes. A faulty line has no words
that could run; its `segments`, `targets` and `nested` texts are kept so that a forbidden command is found in them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal

from ghost.patterns import lazy

MAX_LENGTH = 16_384
"""Characters. The longest real az query measured a tenth of it."""


@dataclass(frozen=True)
class Fault:
    rule: str
    explanation: str


Sink = Literal["output", "errors", "nowhere"]
"""Where a stream of a stage goes: to the next stage or the reader, to the record's errors, or to /dev/null."""


@dataclass(frozen=True)
class Sinks:
    output: Sink = "output"
    errors: Sink = "errors"


TO_READER = Sinks()


@dataclass(frozen=True)
class Stage:
    """One command of a line; `backticked` and `quoted` count its own words."""

    words: tuple[str, ...]
    sinks: Sinks = TO_READER
    backticked: frozenset[int] = frozenset()
    """Words with a backtick inside double quotes: text in an az `--query`, a substitution anywhere else."""
    quoted: frozenset[int] = frozenset()


@dataclass(frozen=True)
class CommandLine:
    words: tuple[str, ...] = ()
    """Of all stages."""
    stages: tuple[Stage, ...] = ()
    """Its commands, which pipes join; none where there is a fault."""
    fault: Fault | None = None
    segments: tuple[tuple[str, ...], ...] = ()
    """The words between operators: one segment where there is no operator."""
    targets: tuple[str, ...] = ()
    """Where redirections point to."""
    nested: tuple[str, ...] = ()
    """Texts in double quotes that a shell would expand."""
    operators: tuple[str, ...] = ()
    """What stood outside quotes and is no word: operators, redirections, expansions."""
    quoted: frozenset[int] = frozenset()
    """Words of which some part was quoted or escaped."""


_PIECE = lazy(
    r"""
      (?P<sink>(?:(?:[12]?>|&>|0?<)\x20*/dev/null|2>&1)(?=[\x20|;&]|\Z))
    | (?P<word>[A-Za-z0-9_@%+=:,./~!?*\#\[\]{}^-]++)\x20+
    | (?P<space>\x20+)
    | (?P<bare>[A-Za-z0-9_@%+=:,./~!?*\#\[\]{}^-]++)
    | '(?P<single>[^']*)'
    | "(?P<double>[^"\\]*+(?:\\.[^"\\]*+)*+)"
    | \\(?P<escaped>.)
    | (?P<redirection>[<>&]?>\||<<<|<<-?|<>|[<>]&|&>>?|>>|[<>](?!\())
    | (?P<operator>\|\|?&?|&&?|;;?&?|[<>$]?\(|\)|`|[\n\r])
    | (?P<variable>\$(?:\{[A-Za-z0-9_]*\}?|[A-Za-z0-9_]*))
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DOUBLE_ESCAPE = lazy(r'\\([\\"$`])')
_EXPANSION = lazy(r"(?:[^\\$]|\\.)*\$", re.DOTALL)
_BACKTICK = lazy(r"(?:[^\\`]|\\.)*`", re.DOTALL)
_INVISIBLE = lazy(r"[^\x20-\x7e]")

_OPERATOR_NAMES = {
    "||": "'or'", "&": "a background job", "&&": "'and'", ";": "a second command",
    "\n": "a line break", "\r": "a carriage return", "`": "command substitution", "$(": "command substitution",
    "<(": "process substitution", ">(": "process substitution", "(": "a subshell", ")": "a subshell",
}  # fmt: skip

_CONTROL_NAMES = {"\n": "a line break", "\r": "a carriage return", "\t": "a tab", "\0": "a NUL character"}

_ONE_COMMAND = "The shell runs one command, or several joined by pipes, and interprets nothing else: "
_FIX = " Put it in quotes if it is text; otherwise run one command at a time."


@dataclass
class _Assembly:
    """Words under construction. `current` is None between words, so that `''` is a word and a space is none."""

    words: list[str] = field(default_factory=list)
    segments: list[tuple[str, ...]] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    quoted: set[int] = field(default_factory=set)
    backticked: set[int] = field(default_factory=set)
    stages: list[Stage] = field(default_factory=list)
    sinks: Sinks = TO_READER
    fault: Fault | None = None
    current: list[str] | None = None
    segment_start: int = 0
    stage_start: int = 0
    awaiting_target: bool = False

    def add(self, text: str) -> None:
        if self.current is None:
            self.current = [text]
        else:
            self.current.append(text)

    def add_quoted(self, text: str) -> None:
        self.quoted.add(len(self.words))
        self.add(text)

    def end_word(self) -> None:
        if self.current is None:
            return
        word = "".join(self.current)
        self.current = None
        if self.awaiting_target:
            self.targets.append(word)
            self.awaiting_target = False
        else:
            self.words.append(word)

    def end_segment(self) -> None:
        self.end_word()
        self.awaiting_target = False
        if len(self.words) > self.segment_start:
            self.segments.append(tuple(self.words[self.segment_start :]))
            self.segment_start = len(self.words)

    def end_stage(self, *, joins_errors: bool = False) -> None:
        self.end_segment()
        start, end = self.stage_start, len(self.words)
        if start == end:
            self.refuse("pattern: operator", "A command is missing beside an operator. Write it, or leave that out.")
        sinks = replace(self.sinks, errors=self.sinks.output) if joins_errors else self.sinks
        backticked, quoted = (
            frozenset(at - start for at in words if start <= at < end) for words in (self.backticked, self.quoted)
        )
        self.stages.append(Stage(tuple(self.words[start:]), sinks, backticked, quoted))
        self.stage_start, self.sinks = end, TO_READER

    def add_sink(self, text: str) -> None:
        """`2>/dev/null` and the like, from left to right as a shell takes them."""
        glued = self.current is not None and (text[0].isdigit() or "".join(self.current).isdigit())
        self.end_word()
        sign = text.removesuffix("/dev/null").strip()
        if glued or (sign.endswith("<") and self.stages):
            self.refuse("pattern: redirection", f"{_ONE_COMMAND}{text} is not understood here. Leave it out.")
        elif sign == "2>&1":
            self.sinks = replace(self.sinks, errors=self.sinks.output)
        elif sign == "2>":
            self.sinks = replace(self.sinks, errors="nowhere")
        elif sign == "&>":
            self.sinks = Sinks("nowhere", "nowhere")
        elif sign.endswith(">"):
            self.sinks = replace(self.sinks, output="nowhere")

    def refuse(self, rule: str, explanation: str) -> None:
        """Keep the first fault: it is the leftmost."""
        if self.fault is None:
            self.fault = Fault(rule, explanation)


def parse(command: str) -> CommandLine:
    """Parse one command line; linear in its length and never raises."""
    parts = _Assembly()
    for piece in _PIECE.finditer(command):
        kind, text = piece.lastgroup, piece[0]
        if kind == "sink":
            parts.add_sink(text)
        elif kind == "word":  # mostly a whole one: its last bare part, with the blanks behind it
            parts.add(piece["word"])
            parts.end_word()
        elif kind == "space":
            parts.end_word()
        elif kind == "bare":
            parts.add(text)
        elif kind == "single":
            _check_characters(parts, piece["single"])
            parts.add_quoted(piece["single"])
        elif kind == "double":
            _add_double_quoted(parts, piece["double"])
        elif kind == "escaped":
            _check_characters(parts, piece["escaped"], quoted=False)
            parts.add_quoted(piece["escaped"])
        elif kind == "redirection":
            parts.refuse("pattern: redirection", f"{_ONE_COMMAND}{text} redirects, which reads or writes a file.{_FIX}")
            parts.operators.append(text)
            if parts.current is not None and "".join(parts.current).isdigit():
                parts.current = None  # the number of a stream: 2>file
            parts.end_word()
            parts.awaiting_target = True
        elif kind == "operator" and text in ("|", "|&"):
            parts.operators.append(text)
            parts.end_stage(joins_errors=text == "|&")
        elif kind == "operator":
            name = _OPERATOR_NAMES.get(text, "an operator")
            rule = "pattern: substitution" if text in ("`", "$(", "<(", ">(") else "pattern: operator"
            parts.refuse(rule, f"{_ONE_COMMAND}{text!r} outside quotes is {name}.{_FIX}")
            parts.operators.append(text)
            parts.end_segment()
        elif kind == "variable":
            parts.operators.append(text)
            parts.refuse(
                "pattern: substitution", f"{_ONE_COMMAND}{text} is a variable. Write its value, or use single quotes."
            )
            parts.add(text)
        elif text in "'\"\\":
            parts.refuse("syntax: quotes", f"The quoting is not balanced: {text} is opened and never closed. Close it.")
            parts.add(command[piece.end() :])
            parts.nested.append(command[piece.end() :])
            break
        else:
            _check_characters(parts, text, quoted=False)
            parts.add(text) if text.isprintable() else parts.end_segment()
    parts.end_segment()
    if parts.words or parts.stages or parts.sinks != TO_READER:
        parts.end_stage()
    return CommandLine(
        words=tuple(parts.words),
        stages=() if parts.fault is not None else tuple(parts.stages),
        fault=parts.fault,
        segments=tuple(parts.segments),
        targets=tuple(parts.targets),
        nested=tuple(parts.nested),
        operators=tuple(parts.operators),
        quoted=frozenset(parts.quoted),
    )


def _add_double_quoted(parts: _Assembly, raw: str) -> None:
    if "\\" in raw or "$" in raw or "`" in raw:
        if _EXPANSION.match(raw):
            parts.refuse(
                "pattern: substitution",
                f"{_ONE_COMMAND}'$' in double quotes is an expansion. Use single quotes if it is text.",
            )
            parts.nested.append(raw)
        if _BACKTICK.match(raw):
            parts.backticked.add(len(parts.words))
            parts.nested.append(raw)
        raw = _DOUBLE_ESCAPE.sub(r"\1", raw)
    _check_characters(parts, raw)
    parts.add_quoted(raw)


def _check_characters(parts: _Assembly, text: str, *, quoted: bool = True) -> None:
    if _INVISIBLE.search(text) is None or (quoted and text.isprintable()):
        return
    character = next(c for c in text if not " " <= c <= "~" and not (quoted and c.isprintable()))
    if character.isprintable():
        explanation = (
            f"{character!r} (U+{ord(character):04X}) is outside ASCII and may only look like another character. "
            "Outside quotes a command is printable ASCII; retype it, or put text in quotes."
        )
        parts.refuse("syntax: character", explanation)
    else:
        what = _CONTROL_NAMES.get(character, "the control or invisible character")
        parts.refuse(
            "syntax: control character",
            f"The command holds {what} (U+{ord(character):04X}){' in quotes' if quoted else ''}, "
            "and such a command never runs, approved or not. Write it in one line without it.",
        )
