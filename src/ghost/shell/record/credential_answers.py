"""Secrets recognised by the command that printed them: `az keyvault secret show --query value -o tsv`.

Such an answer is a bare value, or one under a name that says nothing (`value`, `default`). So of a command that yields
secrets every value goes that could be one. What stays: values of a known kind (a date, an address, a resource id),
words of the command itself, and what stands beside a name that is never a secret's (`id`, `provisioningState`), as
long as no `--query` can have given it that name. Which commands is `az_risky_reads.toml` and, like the names and
kinds, `[answers]` of `ghost/redaction/redaction.toml`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ghost.patterns import lazy
from ghost.policy import load_policy
from ghost.redaction import MARKER, Counts, Rule, looks_random, secret_kind
from ghost.shell.judge.az import read_commands
from ghost.shell.judge.az.jmespath_queries import projects_only, secret_field
from ghost.shell.record.bounded_json import is_deep, read_json, written

_POLICY = load_policy(Path(__file__).parents[1] / "policy", "credential_answers.toml")
_COMMANDS = tuple(lazy(pattern) for pattern in _POLICY["commands"])
_OPEN_ENDINGS = frozenset(_POLICY["open_endings"])
_OPEN_VALUES = frozenset(_POLICY["open_values"])
_OPEN_KINDS = lazy("|".join(_POLICY["open_kinds"]))
_PROGRAMS = frozenset(_POLICY["programs"])
_SHELL_MARKS = lazy(r"[\s;|&()`'\"$]+")
_INNER_WORDS = 64
_SHORTEST = 3
_INDENTED = 1 << 23  # a longer answer is not indented
_TELLING_DIGITS = 6  # a shorter number beside a name counts something

_WORDS_OF_NAME = lazy(r"[A-Z]?[a-z]++|[A-Z]++(?![a-z])|\d++")
_IDENTIFIER = lazy(r"(?<!\w)[A-Za-z_]\w*+")
_RENAMED = lazy(r"(?<!\w)(?P<to>[A-Za-z_]\w*+)\s*+:\s*+(?P<path>[\w.\[\]* -]*+)")
_FREE = lazy(r"[\"'`(\\?&]")  # in a query: a name may be spelled otherwise, or a value be made
_NAMES_DROPPED = lazy(r"(?<!\[)\*|@|\bvalues?\s*+(?:$|[\]})|,(])")

Judge = Callable[[str, str | None], str]


# Commands


def yields_secrets(words: Sequence[str]) -> bool:
    """Whether the output of a command may be a secret without a name beside it."""
    return any(map(_yields, _commands(words)))


def _commands(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """The command and those that it wraps: `sudo az ...`, `bash -c 'az ...'`."""
    yield words
    inner = [part for word in words for part in (_SHELL_MARKS.split(word) if " " in word else [word])]
    for at, word in list(enumerate(inner))[1:]:
        program = word.rpartition("/")[2]
        if program in _PROGRAMS:
            yield [program, *filter(None, inner[at + 1 : at + 1 + _INNER_WORDS])]


def _yields(words: Sequence[str]) -> bool:
    if not words:
        return False
    line = " ".join(words)
    if any(pattern.match(line) for pattern in _COMMANDS):
        return not _asks_for_open_fields(words)
    if words[0] == "az":
        return _az_yields_secrets(words)
    return any(kind is not None and kind[1] for kind in map(secret_kind, _printed_fields(words)))


def _az_yields_secrets(words: Sequence[str]) -> bool:
    if _asks_for_open_fields(words):
        return False
    path, risks = _az_path(words), read_commands.reads().risks
    if any(pattern.match(f"{path} ") for pattern, _ in risks.secrets):
        return True
    queries = _values(words, "--query")
    if any(map(secret_field, queries)):
        return True
    if path != "rest" and risks.of_reading(path) is None and path not in risks.projected:
        return False
    if queries:
        return any(map(_NAMES_DROPPED.search, queries))
    return any(value.lower() == "tsv" for value in [*_values(words, "--output"), *_values(words, "-o")])


def _asks_for_open_fields(words: Sequence[str]) -> bool:
    """Whether the `--query` takes only fields that are never secret, such as `[].name`."""
    queries = _values(words, "--query") if words[0] == "az" else []
    return len(queries) == 1 and projects_only(
        frozenset(filter(_is_open_name, _IDENTIFIER.findall(queries[0]))), queries[0].strip()
    )


def _az_path(words: Sequence[str]) -> str:
    """The words of the az command, without options."""
    leading = [word for word in words[1:] if not word.startswith("-")]
    if len(words) > 1 and not words[1].startswith("-"):
        end = next((at for at, word in enumerate(words) if word.startswith("-")), len(words))
        leading = list(words[1:end])
    return " ".join(" ".join(leading).split())[:200]


def _values(words: Sequence[str], option: str) -> list[str]:
    """The values of an option, also abbreviated or joined to its value."""
    found: list[str] = []
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if option.startswith("--"):
            if len(name) > 2 and option.startswith(name):
                found += [value] if equals else words[at + 1 : at + 2]
        elif word.startswith(option) and not word.startswith("--"):
            found += [word[2:].removeprefix("=")] if len(word) > 2 else words[at + 1 : at + 2]
    return found


def _printed_fields(words: Sequence[str]) -> list[str]:
    return _values(words, "-e") if words[0] == "tshark" else []


# Answers


def redact_answer(text: str, words: Sequence[str], counts: Counts) -> str:
    """The output of such a command without any value that could be a secret."""
    judge = _judge_for(words, counts)
    try:
        answer = read_json(text)
    except ValueError:
        return _by_line(text, words, judge)
    if is_deep(answer):
        return _by_line(text, words, judge)
    judged = _judged(answer, None, judge)
    return written(judged, 2, _INDENTED) or json.dumps(judged, ensure_ascii=False)


def prints_answer_as_error(words: Sequence[str]) -> bool:
    """Whether standard error holds the answer too."""
    return any(len(word) > 2 and "--debug".startswith(word) for word in words)


def _judge_for(words: Sequence[str], counts: Counts) -> Judge:
    asked = frozenset(words)
    is_named = _name_filter(_values(words, "--query") if words[0] in ("az", "tshark") else ["?"])

    def judge(value: str, name: str | None) -> str:
        bare = value.strip().strip("\"'")
        if len(bare) < _SHORTEST or bare in asked or (name is not None and is_named(name)) or is_open_value(bare):
            return value
        counts[Rule("api_key", "credential-answer")] += 1
        return MARKER

    return judge


def _name_filter(queries: Sequence[str]) -> Callable[[str], bool]:
    """Return a test for names that the provider chooses and that never name a secret."""
    if any(map(_FREE.search, queries)):
        return lambda _: False
    renamed = {match["to"].lower(): match["path"].strip() for query in queries for match in _RENAMED.finditer(query)}

    def is_named(name: str) -> bool:
        source = renamed.get(name.lower())
        if source is None:
            return _is_open_name(name)
        taken = _IDENTIFIER.findall(source)
        return bool(taken) and _is_open_name(taken[-1]) and _is_open_name(name)

    return is_named


def _is_open_name(name: str) -> bool:
    words = _WORDS_OF_NAME.findall(name)
    return bool(words) and words[-1].lower() in _OPEN_ENDINGS and secret_kind(name) is None


def is_open_value(value: str) -> bool:
    """Whether a value is of a kind that is never a secret, or was redacted already."""
    return value.lower() in _OPEN_VALUES or _OPEN_KINDS.fullmatch(value) is not None


def _judged(answer: Any, name: str | None, judge: Judge) -> Any:
    if isinstance(answer, dict):
        return {key: _judged(value, key, judge) for key, value in answer.items()}
    if isinstance(answer, list):
        return [_judged(item, name, judge) for item in answer]
    if isinstance(answer, str):
        return judge(answer, name)
    if answer is None or isinstance(answer, bool) or (name is not None and len(str(answer)) < _TELLING_DIGITS):
        return answer
    return answer if (judged := judge(str(answer), name)) == str(answer) else judged


# Answers by line: tables, tab separated values, YAML, JSON that was cut, and bare values.

_RULE = lazy(r"-{2,}(?: {2}-{2,})*")
_YAML_PAIR = lazy(r"(?P<before>[ ]*(?:- )*(?P<name>[A-Za-z_][\w.-]{0,80}):)(?P<blank>[ ]*)(?P<value>.*)")
_JSON_PAIR = lazy(r"(?P<before>[ ]*\"(?P<name>[A-Za-z_][\w.-]{0,80})\":)(?P<blank>[ ]*)(?P<value>.*)")


def _by_line(text: str, words: Sequence[str], judge: Judge) -> str:
    formats = [value.lower() for value in (*_values(words, "--output"), *_values(words, "-o"))]
    lines = text.split("\n")
    in_table = words[0] == "az" and formats in ([], ["table"])
    if in_table and len(lines) > 1 and _RULE.fullmatch(lines[1].strip()):
        return "\n".join([*lines[:2], *_table(lines[0], lines[1], lines[2:], judge)])
    pair = None
    if any(value.startswith("yaml") for value in formats):
        pair = _YAML_PAIR
    elif text.lstrip().startswith(("{", "[")):
        pair = _JSON_PAIR
    if pair is not None:
        return "\n".join(_paired(line, pair, judge) for line in lines)
    fields = _printed_fields(words)
    separator = next((value[10:] for value in _values(words, "-E") if value.startswith("separator=")), "\t")
    separator = {"/t": "\t", "/s": " "}.get(separator, separator) or "\t"
    return "\n".join(_cells(line.split(separator), separator, fields, judge) for line in lines)


def _paired(line: str, pattern: re.Pattern[str], judge: Judge) -> str:
    found = pattern.fullmatch(line)
    if found is None:
        return judge(line, None)
    value = found["value"].rstrip(", ")
    judged = judge(value, found["name"])
    return f"{found['before']}{found['blank']}{_quoted_like(value, judged)}{found['value'][len(value) :]}"


def _cells(cells: list[str], separator: str, fields: Sequence[str], judge: Judge) -> str:
    names = fields if len(fields) == len(cells) else ()
    return separator.join(judge(cell, name) for cell, name in zip_longest(cells, names))


def _quoted_like(before: str, after: str) -> str:
    return f'"{after}"' if after != before and before.startswith('"') else after


def _table(header: str, rule: str, rows: Sequence[str], judge: Judge) -> Iterator[str]:
    starts = [dashes.start() for dashes in re.finditer(r"-+", rule)]
    edges = list(zip(starts, [*starts[1:], None], strict=True))
    names = [header[start:end].strip() for start, end in edges]
    for row in rows:
        cells = [row[start:end] for start, end in edges]
        whole = sum(bool(cell.strip()) for cell in cells) > 1 or len(cells) == 1  # else a value goes on in it
        yield "".join(
            _in_width(cell, judge(cell.strip(), name if whole and not looks_random(cell) else None))
            for cell, name in zip(cells, names, strict=True)
        ).rstrip(" ")


def _in_width(cell: str, value: str) -> str:
    return cell if value == cell.strip() else f"{value:<{len(cell) - 1}} " if cell.endswith(" ") else value
