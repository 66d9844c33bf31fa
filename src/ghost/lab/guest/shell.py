"""A small reader of shell scripts: commands joined by `;`, `&&`, `||` and `|`, with quotes and redirections.

Expansions, loops, conditions and files that are written are refused before anything is run.
https://pubs.opengroup.org/onlinepubs/9699919799/utilities/V3_chap02.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+|\\\n)|(?P<comment>\#[^\n]*)|(?P<line>\n)|(?P<operator>&&|\|\||;;|[;|])
    |(?P<redirect>&>>?|[0-9]*(?:>>|>\||<<|<>|>|<)(?:&[0-9-])?)|(?P<refused>[&()])
    |(?P<word>(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|[^\s;&|<>()'"\\])+)""",
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(
    r"""\\(?P<escaped>.)|'(?P<single>[^']*)'|"(?P<double>(?:\\.|[^"\\])*)"|(?P<plain>[^'"\\]+)""", re.S
)
_RESERVED = re.compile(r"if|then|else|elif|fi|for|while|until|do|done|case|esac|function|[{}]|\[\[?|test|select")
LONGEST_SCRIPT, MOST_COMMANDS = 65_536, 500
_STATUS = "\0"
"""Stands for `$?` in a word."""


class NotSimulatedError(Exception):
    """What a script asks for and a lab does not have."""


@dataclass(frozen=True)
class Ran:
    """What a command printed, and its exit status."""

    out: str = ""
    err: str = ""
    status: int = 0


Tool = Callable[[Sequence[str], str], Ran]
"""Runs a command with its standard input."""
Connect = Callable[[str, int], Ran]
"""Opens /dev/tcp/HOST/PORT."""


@dataclass(frozen=True)
class Command:
    line: int
    words: tuple[str, ...]
    redirects: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Pipeline:
    commands: tuple[Command, ...]
    joined_by: str = ";"
    """To the pipeline before: `;`, `&&` or `||`."""
    negated: bool = False


@dataclass
class _Reading:
    words: list[str] = field(default_factory=list)
    redirects: list[tuple[str, str]] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    expects_target: str = ""


def read_script(text: str) -> tuple[Pipeline, ...]:
    """Return the pipelines of a script. Raises `NotSimulatedError` with the line."""
    if len(text) > LONGEST_SCRIPT:
        raise NotSimulatedError(f"a lab reads scripts of at most {LONGEST_SCRIPT} characters")
    pipelines = tuple(_pipelines(text))
    if sum(len(pipeline.commands) for pipeline in pipelines) > MOST_COMMANDS:
        raise NotSimulatedError(f"a lab runs scripts of at most {MOST_COMMANDS} commands")
    return pipelines


def _pipelines(text: str) -> Iterator[Pipeline]:
    reading, joined_by, line = _Reading(), ";", 1
    for kind, part in [*_tokens(text), ("line", "\n")]:
        if kind == "redirect":
            if part[-2:-1] == "&" and part[-1] != ">":
                reading.redirects.append((part, ""))
            else:
                reading.expects_target = part
        elif kind == "word":
            word = _unquoted(part, line)
            if reading.expects_target:
                reading.redirects.append((reading.expects_target, word))
                reading.expects_target = ""
            else:
                _check_word(part, reading.words, line)
                reading.words.append(word)
        else:
            if reading.expects_target:
                raise NotSimulatedError(f"line {line}: a redirection without a file")
            _end_command(reading, line)
            if part != "|" and reading.commands:
                first = reading.commands[0]
                negated = first.words[0] == "!" and len(first.words) > 1
                if negated:
                    reading.commands[0] = Command(first.line, first.words[1:], first.redirects)
                yield Pipeline(tuple(reading.commands), joined_by, negated)
                reading, joined_by = _Reading(), ";"
            if part in ("&&", "||"):
                joined_by = part
            line += kind == "line"


def _end_command(reading: _Reading, line: int) -> None:
    if reading.words or reading.redirects:
        reading.commands.append(Command(line, tuple(reading.words or (":",)), tuple(reading.redirects)))
    reading.words, reading.redirects = [], []


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at, line = 0, 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup == "refused":
            raise NotSimulatedError(f"line {line}: {text[at : at + 12].splitlines()[0]!r} is not simulated")
        kind = str(found.lastgroup)
        if kind not in ("blank", "comment"):
            yield kind, found[0]
        line += found[0].count("\n")
        at = found.end()


def _check_word(token: str, words: Sequence[str], line: int) -> None:
    if not words and (_RESERVED.fullmatch(token) or re.match(r"[A-Za-z_]\w*=", token)):
        raise NotSimulatedError(f"line {line}: {token}: not simulated: a lab runs plain commands")


def _unquoted(token: str, line: int) -> str:
    text = ""
    for part in _QUOTED.finditer(token):
        if part["escaped"] is not None:
            text += part["escaped"]
        elif part["single"] is not None:
            text += part["single"]
        else:
            piece = part["plain"] if part["double"] is None else re.sub(r"\\([\"\\$`])", r"\1", part["double"])
            text += piece.replace("$?", _STATUS)
            if re.search(r"(?<!\\)`|\$[\w({@*#!]", (part["plain"] or part["double"] or "").replace("\\$", "")):
                raise NotSimulatedError(f"line {line}: {token}: expansions are not simulated")
    return text


def run(pipelines: Sequence[Pipeline], tool: Tool, connect: Connect) -> Ran:
    """Run a script: what it prints in all, and the status of the last command."""
    out, err, status = "", "", 0
    for pipeline in pipelines:
        if pipeline.joined_by in ("&&", "||") and (status == 0) != (pipeline.joined_by == "&&"):
            continue
        if pipeline.commands[0].words[0] == "exit":
            words = pipeline.commands[0].words
            stated = words[1] if len(words) > 1 else str(status)
            return Ran(out, err, int(stated) % 256 if stated.isdecimal() else 2)
        ran = _run_pipeline(pipeline, status, tool, connect)
        out, err = out + ran.out, err + ran.err
        status = int(ran.status == 0) if pipeline.negated else ran.status
    return Ran(out, err, status)


def _run_pipeline(pipeline: Pipeline, status: int, tool: Tool, connect: Connect) -> Ran:
    flowing, err = Ran(), ""
    for command in pipeline.commands:
        words = tuple(word.replace(_STATUS, str(status)) for word in command.words)
        flowing = _run_command(command, words, flowing.out, tool, connect)
        err += flowing.err
    return Ran(flowing.out, err, flowing.status)


def _run_command(command: Command, words: Sequence[str], stdin: str, tool: Tool, connect: Connect) -> Ran:
    for _, target in command.redirects:
        if target.startswith(("/dev/tcp/", "/dev/udp/")):
            opened = connect(target, command.line)
            if opened.status:
                return opened
    ran = tool(words, stdin) if words[0] not in (":", "exec") else Ran()
    if ran.status == 127 and ran.err:
        ran = Ran(ran.out, f"script.sh: line {command.line}: {ran.err}", 127)
    places = {1: "out", 2: "err"}
    for operator, target in command.redirects:
        _redirect(places, operator, target, command.line)
    texts = {"out": "", "err": "", "nowhere": ""}
    for number, text in ((1, ran.out), (2, ran.err)):
        texts[places[number]] += text
    return Ran(texts["out"], texts["err"], ran.status)


def _redirect(places: dict[int, str], operator: str, target: str, line: int) -> None:
    numbers = [1, 2] if operator.startswith("&") else [int(operator[0]) if operator[0].isdigit() else 1]
    if operator.endswith("&-") or "<" in operator or target.startswith(("/dev/tcp/", "/dev/udp/")):
        if "<" in operator and target and not target.startswith("/dev/"):
            raise NotSimulatedError(f"line {line}: reading {target} is not simulated")
        return
    if operator[-2:-1] == "&" and operator[-1] != ">":
        place = places.get(int(operator[-1]), "nowhere")
    elif target in ("/dev/null", "/dev/stdout", "/dev/stderr"):
        place = {"/dev/null": "nowhere", "/dev/stdout": "out", "/dev/stderr": "err"}[target]
    else:
        raise NotSimulatedError(f"line {line}: a lab writes no files: {target}")
    for number in numbers:
        places[number] = place
