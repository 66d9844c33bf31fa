"""The verdict on one command line: SAFE, RISKY or FORBIDDEN, by fixed rules alone. Nothing here starts a process.

The line is parsed once; each command of a pipeline is judged, and the worst verdict is that on the line.
Tier 0 refuses what is never run; then syntax and patterns (Tier 3), the allowlist with its
option grammars (Tier 1) and the table of az reads (Tier 2) must each have nothing against it. Whatever no rule knows
is RISKY. The tables are data in `policy/`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ghost.errors import ConfigurationError
from ghost.patterns import lazy
from ghost.shell.judge.az import read_commands
from ghost.shell.judge.az.effects import effect_of
from ghost.shell.judge.command_line import MAX_LENGTH, CommandLine, Stage, parse
from ghost.shell.judge.decision import FORBIDDEN, RISKY, SAFE, Classification, Decision, Environment, of_line
from ghost.shell.judge.forbidden_commands import credential_behind, forbidden
from ghost.shell.judge.grammar import Grammar, Refusal
from ghost.shell.judge.read_forms import form_of_az, form_of_program
from ghost.shell.judge.user_tables import grammars
from ghost.shell.judge.value_types import DEFAULT_ROOTS, Roots, real_path
from ghost.shell.policy_tables import policy_table

TEXT_ONLY = "filter"
"""The sandbox profile of what passes text on."""

_TIME_LIMIT = lazy(r"([0-9]{1,4}(?:\.[0-9]{1,3})?)([smh]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}
_ASSIGNMENT = lazy(r"[A-Za-z_][A-Za-z0-9_]*=")


def decide(command: str, roots: Sequence[Path] | None = None) -> Decision:
    """Judge one command line. Never raises, whatever the string; linear in its length.

    Blanks and line ends around the command are no part of it: what runs is its words.
    `roots` are the directories under which captures are read and reports written: by default the working directory,
    its `captures` and /tmp/captures.
    """
    command = command.strip(" \t\r\n")
    if len(command) > MAX_LENGTH:
        why = f"The command has {len(command)} characters; at most {MAX_LENGTH} are read. Ask for less at once."
        return Decision(RISKY, 3, "syntax: length", why, problem="command_too_long")
    line = parse(command)
    if not line.words and line.fault is None:
        return Decision(RISKY, 3, "syntax: empty", "There is no command. Give one.", problem="empty_command")
    refusal = forbidden(command, line)
    if refusal is None:
        try:
            decision = _judge(line, Roots(DEFAULT_ROOTS if roots is None else tuple(roots)))
        except ConfigurationError as error:  # a broken table: nothing is approved by the others either
            return _cannot_run(
                line.words, "policy: unusable", f"No command is classified until this is corrected: {error}", 1
            )
        if decision.classification == SAFE:
            return decision
        refusal = next(filter(None, (credential_behind(stage.words) for stage in line.stages)), None)
        if refusal is None:
            return decision
    program = line.words[0] if line.words else ""
    return Decision(FORBIDDEN, 0, refusal.rule, refusal.explanation, program, environment=_environment(program))


def classify(command: str, roots: Sequence[Path] | None = None) -> tuple[Classification, int | None, str]:
    """What `decide` says, as `(classification, tier, explanation)`; the tier is None when SAFE."""
    decision = decide(command, roots)
    return decision.classification, decision.tier, decision.explanation


def _judge(line: CommandLine, roots: Roots) -> Decision:
    if line.fault is not None:
        return _cannot_run(line.words, line.fault.rule, line.fault.explanation)
    return of_line(tuple(_judge_stage(stage, roots, line.stages[:at]) for at, stage in enumerate(line.stages)))


def _judge_stage(stage: Stage, roots: Roots, before: Sequence[Stage] = ()) -> Decision:
    words = stage.words
    if stage.backticked and not _only_query_backticks(stage):
        why = "A backtick in double quotes is command substitution. Use single quotes if it is text."
        return _cannot_run(words, "pattern: substitution", why)
    variables: tuple[tuple[str, str], ...] = ()
    if _ASSIGNMENT.match(words[0]):
        variables, words = _variables_before(stage)
        if not words or _ASSIGNMENT.match(words[0]):
            why = f"{(*words, *stage.words)[0][:80]!r} sets a variable for the command after it; leave it out."
            return _cannot_run(
                stage.words, "pattern: environment", f"{why} Only listed ones are allowed there: LC_ALL=C"
            )
    time_limit = None
    if words[0] == "timeout" and len(words) > 2 and (limit := _TIME_LIMIT.fullmatch(words[1])):
        time_limit, words = float(limit[1]) * _UNITS[limit[2]], words[2:]  # the shell itself ends the command then
    judged = _judge_behind_pipe(words, roots, before) if before else _judge_words(words, roots)
    return replace(judged, variables=(*judged.variables, *variables), sinks=stage.sinks, time_limit=time_limit)


def _judge_behind_pipe(words: tuple[str, ...], roots: Roots, before: Sequence[Stage]) -> Decision:
    """A filter may do what it likes with the text: its profile lets it do nothing else. Of other programs few may."""
    policy = _pipes()
    words = (*policy.spellings.get(words[0], words[:1]), *words[1:])
    if words[0] in policy.filters:
        return _text_only(words)
    judged = _judge_words(words, roots)
    if judged.classification != SAFE or judged.profile == TEXT_ONLY:
        return judged
    given = " ".join(before[-1].words)
    sends = next((sends for lead, sends in policy.readers if words[: len(lead)] == lead), None)
    if sends is False or (sends is True and len(before) == 1 and policy.blank.fullmatch(given)):
        return judged
    why = f"{words[0]} behind a pipe is not known to only read what it is given. Run it on a line of its own."
    return replace(judged, classification=RISKY, tier=3, rule="pipe: not a filter", explanation=why)


def _text_only(words: tuple[str, ...]) -> Decision:
    why = f"{words[0]} passes text on here: it reads no file, writes none, and starts and reaches nothing."
    return Decision(SAFE, None, "pipe: filter", why, words[0], words, profile=TEXT_ONLY)


class _Pipes(NamedTuple):
    filters: frozenset[str]
    blank: re.Pattern[str]
    spellings: Mapping[str, tuple[str, ...]]
    readers: tuple[tuple[tuple[str, ...], bool], ...]
    """First words, and whether the program sends what it is given."""


@cache
def _pipes() -> _Pipes:
    table = policy_table("pipes.toml")
    return _Pipes(
        filters=frozenset(table["filters"].split()),
        blank=lazy(table["blank"]),
        spellings={name: tuple(words.split()) for name, words in table["spellings"].items()},
        readers=tuple((tuple(row["words"].split()), row["sends"]) for row in table["readers"]),
    )


def _variables_before(stage: Stage) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return the listed variables before the command and the words after them. A quoted word is not a variable."""
    at = 0
    variables: list[tuple[str, str]] = []
    for at, word in enumerate(stage.words):
        name, _, value = word.partition("=")
        allowed = _allowed_before().get(name)
        if allowed is None or at in stage.quoted or allowed.fullmatch(value) is None:
            break
        variables.append((name, value))
    else:
        at = len(stage.words)
    return tuple(variables), stage.words[at:]


@cache
def _allowed_before() -> Mapping[str, re.Pattern[str]]:
    table = policy_table("environment.toml")
    return {name: lazy(values) for names, values in table["before"].items() for name in names.split()}


def _judge_words(words: tuple[str, ...], roots: Roots) -> Decision:
    grammar, words = _grammar_of(words)
    if grammar is not None:
        return _by_grammar(grammar, words, roots)
    program = words[0]
    if _pipes().blank.fullmatch(" ".join(words)):
        return _text_only(words)
    if "/" in program or not program:
        bare = program.rpartition("/")[2]
        fix = f" Write {bare} ..." if bare in grammars() or bare == "az" else ""
        why = f"Programs are run by their bare name from the system's directories, so {program[:80]!r} cannot run.{fix}"
        return _cannot_run(words, "not in the allowlist", why, tier=1)
    if program == "az":
        return _by_az_table(words)
    return _unknown_program(words, roots)


def _cannot_run(words: Sequence[str], rule: str, explanation: str, tier: int = 3) -> Decision:
    program = words[0] if words else ""
    return Decision(
        RISKY, tier, rule, explanation, program, problem="unsupported_syntax", environment=_environment(program)
    )


def _environment(program: str) -> Environment:
    return "azure" if program == "az" else "local"


def _only_query_backticks(stage: Stage) -> bool:
    """Backticks are JMESPath literals in the value of an az `--query`, and nowhere else."""
    words = stage.words
    return words[0] == "az" and all(
        words[index].startswith("--query=") or words[index - 1] == "--query" for index in stage.backticked
    )


def _grammar_of(words: tuple[str, ...]) -> tuple[Grammar | None, tuple[str, ...]]:
    """Return the program's table, and the words with the program's own name in place of another spelling."""
    tables = grammars()  # also for az: a broken file of the user makes no command SAFE
    if words[0] == "az":
        return None, words
    if grammar := tables.get(words[0]):
        return grammar, words
    for grammar, spelling in _spellings():
        for size in range(1, min(len(words), 4) + 1):
            first = " ".join(words[:size])
            if first.count(" ") == size - 1 and spelling.fullmatch(first):
                return grammar, (grammar.program, *words[size:])
    return None, words


@cache
def _spellings() -> tuple[tuple[Grammar, re.Pattern[str]], ...]:
    return tuple((grammar, spelling) for grammar in grammars().values() for spelling in grammar.spelling_patterns)


def _by_grammar(grammar: Grammar, words: tuple[str, ...], roots: Roots) -> Decision:
    judged = grammar.judge(words, roots)
    if isinstance(judged, Refusal):
        form = form_of_program(grammar, words, roots)
        return Decision(RISKY, 1, judged.rule, judged.explanation, grammar.program, words, form=form)
    return Decision(
        SAFE,
        None,
        f"{grammar.program}: allowed",
        f"{grammar.program} {grammar.about}, and every option of this command is known to only read.",
        grammar.program,
        (words[0], *judged.hardening, *words[1:]),
        hosts=judged.hosts,
        variables=grammar.variables,
        hardening=judged.hardening,
    )


def _by_az_table(words: tuple[str, ...]) -> Decision:
    refusal = read_commands.reads().refusal(words)
    if refusal is not None:
        explanation = effect_of(words) or refusal.explanation
        form = form_of_az(words)
        reads = form is not None
        return Decision(RISKY, 2, refusal.rule, explanation, "az", words, environment="azure", form=form, reads=reads)
    why = "This az command is in the table of reads, and every option of it is known."
    return Decision(SAFE, None, "az: read", why, "az", words, environment="azure")


def _unknown_program(words: tuple[str, ...], roots: Roots) -> Decision:
    program = words[0]
    patterns = _patterns()
    if known := patterns.dangerous.get(program):
        why = f"{program} {known.explanation}.{_which_files(words, roots) if program == 'rm' else ''}"
        return Decision(RISKY, 3, known.rule, why, program, words)
    effect = patterns.unknown.get(program)
    what = f"{program} {effect}." if effect else f"The policy does not know what {program[:80]!r} does."
    near = "" if effect else " If it only reads, approve it once or use an allowed program instead."
    return Decision(RISKY, 1, "not in the allowlist", f"{what} It is not in the allowlist.{near}", program, words)


def _which_files(words: Sequence[str], roots: Roots) -> str:
    """Real paths of the files of an rm, for the prompt."""
    paths = [word for word in words[1:] if not word.startswith("-")]
    sentences = []
    for path in paths[:8]:
        if path.startswith("~") or any(character in path for character in "*?["):
            sentences.append(f" {path[:80]!r} is taken as written: nothing expands it.")
            continue
        inside = roots.hold(path)
        place = (
            "under the workspace's own directories" if inside else "OUTSIDE the audit, capture and report directories"
        )
        real = str(real_path(path))
        told = "lies" if real == path else f"is really {real[:160]!r},"
        sentences.append(f" {path[:120]!r} {told} {place}.")
    if len(paths) > 8:
        sentences.append(f" And {len(paths) - 8} more.")
    return "".join(sentences)


def equivalent_of(words: Sequence[str]) -> str | None:
    """An allowed command that shows the same as a program outside the allowlist."""
    text = " ".join(words)[:400]
    matches = ((pattern.fullmatch(text), form) for pattern, form in _patterns().instead)
    return next((match.expand(form) for match, form in matches if match), None)


class _Patterns(NamedTuple):
    dangerous: Mapping[str, Refusal]
    unknown: Mapping[str, str]
    instead: tuple[tuple[re.Pattern[str], str], ...]


@cache
def _patterns() -> _Patterns:
    table = policy_table("patterns.toml")
    return _Patterns(
        dangerous={
            program: Refusal(f"pattern: {rule}", row["why"])
            for rule, row in table["patterns"].items()
            for program in row["programs"].split()
        },
        unknown={program: why for programs, why in table["unknown"].items() for program in programs.split()},
        instead=tuple((lazy(row["words"], re.ASCII), row["form"]) for row in table["instead"]),
    )
