"""Explains a verdict: the parse, the deciding rule, and the nearest SAFE command.

Nothing runs and nothing is written. The SAFE command is found by search: operators and wrappers are left out, then
options that are not SAFE, and what a table requires is added; a word that says what to do is never left out.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ghost.errors import ConfigurationError
from ghost.shell.judge.az import read_commands
from ghost.shell.judge.classification import decide, equivalent_of
from ghost.shell.judge.command_line import MAX_LENGTH, CommandLine, parse
from ghost.shell.judge.decision import FORBIDDEN, SAFE, Decision
from ghost.shell.judge.forbidden_commands import KEYWORDS
from ghost.shell.judge.grammar import Grammar, Part, built_in
from ghost.shell.judge.user_tables import grammars

_TRIES = 400
_STEPS = 4
_WRAPPERS = {"sudo": 0, "doas": 0, "env": 0, "nohup": 0, "time": 0, "nice": 0, "command": 0, "stdbuf": 0, "timeout": 1}
"""Programs that run the command behind them, and how many words of their own stand before it."""
_ADDITIONS = (("-c", "4"), ("-r",), ("-i",), ("-a",), ("-o", "/dev/null"), ("-I",))
"""What tables require of a command: a count, a report mode, a selection, a discarded body."""


def explain(command: str, roots: Sequence[str | Path] | None = None) -> dict[str, Any]:
    """Classification, tier, rule and explanation; `parse`; `safe_form` (or None) and `fix`, which says what to do."""
    from ghost.shell.run.execution import Programs

    places = tuple(map(Path, roots)) if roots is not None else None
    command = Programs.of_system().unqualified(command)
    decision = _decision(command, places)
    line = parse(command.strip()[:MAX_LENGTH])
    is_open = decision.classification not in (SAFE, FORBIDDEN) and not decision.rule.startswith("policy:")
    safe_form = _safe_line(line, decision, places) if is_open else None
    return {
        "classification": decision.classification,
        "tier": decision.tier,
        "rule": decision.rule,
        "explanation": decision.explanation,
        "arguments": list(decision.arguments) if decision.arguments is not None else None,
        "environment": decision.environment,
        "problem": decision.problem,
        "hosts": list(decision.hosts),
        "variables": dict(decision.variables),
        "stages": [
            {"arguments": list(each.arguments or ()), "classification": each.classification, "rule": each.rule}
            for each in decision.stages
        ],
        "parse": _parsed(line, decision),
        "safe_form": safe_form,
        "fix": _fix(decision, safe_form, line),
    }


def _decision(command: str, roots: tuple[Path, ...] | None) -> Decision:
    from ghost.shell.run.kernel import missing_sandbox

    if missing_sandbox() is None:
        return decide(command, roots)
    from ghost.shell.run.sandbox import ask_without_sandbox

    return ask_without_sandbox(decide(command, roots))


def _tables() -> Mapping[str, Grammar]:
    """For parsing only: where a file of the user is broken, `decide` finds nothing SAFE."""
    try:
        return grammars()
    except ConfigurationError:
        return built_in()


def _fix(decision: Decision, safe_form: str | None, line: CommandLine) -> str | None:
    if decision.classification == SAFE:
        return None
    if decision.classification == FORBIDDEN:
        return "Nothing makes it SAFE, and nobody can approve it."
    if decision.rule.startswith("policy:"):
        return "Correct the policy file that is named above; until then no command is SAFE, and none runs."
    if decision.rule == "pattern: operator" and line.segments and not KEYWORDS.isdisjoint(s[0] for s in line.segments):
        return "Loops and conditions are a shell's: write the commands themselves, one on each line."
    if decision.rule == "pattern: operator" and len(line.segments) > 1:
        return f"Run each on a line of its own: {', then '.join(shlex.join(one) for one in line.segments[:4])}"
    if safe_form is not None:
        changes = _changes(line, decision, safe_form)
        return f"This would be SAFE: {safe_form}" + (f"  (not the same command: {changes})" if changes else "")
    if decision.problem is not None:
        return "It cannot run as written, approved or not: write one plain command."
    return "No similar command is SAFE: approve it once, or use another command that gives the same answer."


def _changes(line: CommandLine, decision: Decision, safe_form: str) -> str:
    """Describe the differences between the requested line and the SAFE one."""
    written, (words, *rest) = line.segments[0], parse(safe_form).segments
    asked = _unwrapped(written, decision)
    if asked[0] != words[0]:
        return f"it is {words[0]}, which shows much the same"
    before, after = Counter(_pieces(asked)), Counter(_pieces(words))
    told = [f"without {name}"] if (name := written[0].rpartition("/")[2]) in _WRAPPERS else []
    if left_out := list((before - after).elements()):
        told.append(f"without {shlex.join(left_out)}")
    if added := list((after - before).elements()):
        told.append(f"with {shlex.join(added)}")
    if line.stages:
        told += [f"without | {shlex.join(one)}" for one in line.segments[1:] if one not in rest]
    elif line.operators and (line.segments[1:] or line.targets):
        told.append(f"without the part after {line.operators[0]}")
    return ", ".join(told)


def _pieces(words: Sequence[str]) -> Iterator[str]:
    """Options (joined letters separately), their values and operands."""
    for part in _parts(words):
        yield from (text for text in (part.option, part.value) if text is not None)


def _parsed(line: CommandLine, decision: Decision) -> dict[str, Any]:
    """The command parsed as its program would; text after an operator is not parsed."""
    words = line.segments[0] if line.segments else ()
    if decision.program != "az" and decision.program in _tables() and decision.arguments and line.fault is None:
        words = (decision.program, *words[len(words) - _count_of_own_words(decision) :])
    program = words[0] if words else ""
    parts = _parts(words)
    return {
        "program": program,
        "options": [{"option": part.option, "value": part.value} for part in parts if part.option is not None],
        "operands": [part.value for part in parts if part.option is None],
        "operators": list(line.operators),
        "quoted": [line.words[index] for index in sorted(line.quoted) if index < len(line.words)],
        "other_commands": [shlex.join(segment) for segment in line.segments[1:]],
    }


def _count_of_own_words(decision: Decision) -> int:
    """Number of words after the program's name, without the hardening options before them."""
    assert decision.arguments is not None
    return len(decision.arguments) - 1 - len(decision.hardening)


def _parts(words: Sequence[str]) -> list[Part]:
    if not words:
        return []
    if words[0] == "az":
        return list(_az_parts(words))
    grammar = _tables().get(words[0])
    return list(grammar.read(words) if grammar else _plain_parts(words))


def _az_parts(words: Sequence[str]) -> Iterator[Part]:
    """az takes every word up to the next option as the option's values."""
    position = 1
    while position < len(words):
        word = words[position]
        end = position + 1
        if not word.startswith("-"):
            yield Part(None, word, word)
        elif word.startswith("--") and "=" in word:
            name, _, value = word.partition("=")
            yield Part(name, value, word)
        else:
            while end < len(words) and not words[end].startswith("-"):
                end += 1
            yield Part(word, " ".join(words[position + 1 : end]) or None, word, takes_next=end > position + 1)
        position = end


def _plain_parts(words: Sequence[str]) -> Iterator[Part]:
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if not word.startswith("-") or word == "-":
            yield Part(None, word, word)
        else:
            yield Part(name, value, word) if equals else Part(word, None, word)


def _safe_line(line: CommandLine, decision: Decision, roots: tuple[Path, ...] | None) -> str | None:
    """The nearest SAFE form of the first command, with the commands behind it that are SAFE there."""
    first = _nearest_safe(line, decision, roots)
    behind = zip(line.stages[1:], decision.stages[1:], strict=True) if decision.stages else ()
    kept = [shlex.join(stage.words) for stage, judged in behind if judged.classification == SAFE]
    if first is None or not kept:
        return first
    whole = " | ".join((first, *kept))
    return whole if _decision(whole, roots).classification == SAFE else first


def _nearest_safe(line: CommandLine, decision: Decision, roots: tuple[Path, ...] | None) -> str | None:
    """The SAFE command with the fewest changes, by breadth-first search; None if none is within `_STEPS`."""
    words = _unwrapped(line.segments[0] if line.segments else (), decision)
    if not words:
        return None
    other = equivalent_of(words)
    if other is not None and _decision(other, roots).classification == SAFE:
        return other
    seen = {words}
    level = [words]
    for _ in range(_STEPS):
        following: list[tuple[str, ...]] = []
        for candidate in level:
            if _decision(shlex.join(candidate), roots).classification == SAFE:
                return shlex.join(candidate)
            if len(seen) > _TRIES:
                continue
            for changed in islice(_changed(candidate), _TRIES):
                if changed not in seen:
                    seen.add(changed)
                    following.append(changed)
        level = following
    return None


def _unwrapped(words: tuple[str, ...], decision: Decision) -> tuple[str, ...]:
    """The command without variables, wrappers and the directory of its program."""
    while words:
        name = words[0].rpartition("/")[2]
        if name in _WRAPPERS:
            rest = words[1:]
            while rest and rest[0].startswith("-"):
                rest = rest[1:]
            words = rest[_WRAPPERS[name] :]
        elif "=" in words[0] and words[0].partition("=")[0].isidentifier():
            words = words[1:]
        else:
            break
    if not words:
        return ()
    if words[0] not in _tables() and decision.program in _tables() and decision.arguments is not None:
        return (decision.program, *decision.arguments[1:])
    return (words[0].rpartition("/")[2], *words[1:])


def _changed(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Every command with one option removed, spelled in full or added."""
    if words[0] == "az":
        yield from _az_reads_near(words)
    yield from _with_one_less(words)
    if words[0] == "az":
        return
    grammar = _tables().get(words[0])
    for addition in _ADDITIONS:
        if grammar is not None and addition[0] not in words and _takes(grammar, *addition):
            yield (words[0], *addition, *words[1:])
    if words[0] == "curl":
        for index, word in enumerate(words[1:], start=1):
            if not word.startswith("-") and "." in word and "://" not in word and "/" not in words[index - 1]:
                yield (*words[:index], f"http://{word}", *words[index + 1 :])


def _takes(grammar: Grammar, option: str, value: str | None = None) -> bool:
    """Whether the program has this option, with a value where one is given."""
    if value is None:
        return option in grammar.flags or option in grammar.optional
    return option in grammar.values


def _az_reads_near(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Commands with one option spelled in full, or with a query of the fields that hold no secret."""
    end = next((at for at, word in enumerate(words[1:], start=1) if word.startswith("-")), len(words))
    path = " ".join(words[1:end])
    known = read_commands.reads().options(path) or {}
    for index in range(end, len(words)):
        name, equals, value = words[index].partition("=")
        full = [long for long in known if long.startswith(name)] if name.startswith("--") and len(name) > 2 else []
        if len({known[long].name for long in full}) == 1 and name not in known:
            yield (*words[:index], f"{known[full[0]].name}{equals}{value}", *words[index + 1 :])
    if (projected := read_commands.reads().risks.projected.get(path)) is not None:
        rest = list(words)
        if "--query" in rest:
            del rest[rest.index("--query") : rest.index("--query") + 2]
        yield (*rest, "--query", projected.query(path)) if projected.fields else tuple(rest)


def _with_one_less(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    grammar = _tables().get(words[0])
    for index, word in enumerate(words[1:], start=1):
        if not word.startswith(grammar.prefixes if grammar else "-") or len(word) < 2:
            continue
        end = index + 1
        if words[0] == "az":
            while end < len(words) and not words[end].startswith("-"):
                end += 1
        elif grammar is not None:
            read = grammar.read((words[0], *words[index : index + 2]))
            end += any(part.takes_next for part in read)
            if len(word) > 2 and grammar.clusters and not word.startswith("--"):
                for letter in range(1, len(word)):
                    yield (*words[:index], word[:letter] + word[letter + 1 :], *words[index + 1 :])
        is_unknown = grammar is None or not (word in grammar.flags or "=" in word or word.startswith(grammar.joined))
        without_next = (*words[:index], *words[end + 1 :])
        if is_unknown and end == index + 1 and not all(other.startswith("-") for other in without_next[1:]):
            yield without_next  # an unknown option may have had a value
        yield (*words[:index], *words[end:])
