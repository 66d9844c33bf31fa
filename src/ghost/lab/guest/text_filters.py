"""What stands behind a pipe in a script: grep, head, tail, wc, sort, uniq, cat."""

from __future__ import annotations

import getopt
import re
from collections.abc import Callable, Mapping, Sequence

from ghost.lab.guest.shell import NotSimulatedError, Ran

Files = Mapping[str, str]
MOST_STEPS = 10**9


def _input(files: Files, names: Sequence[str], stdin: str, program: str) -> tuple[str, str]:
    """Return the text of the files named, or standard input, and what is said of files that are not there."""
    if not names or list(names) == ["-"]:
        return stdin, ""
    missing = [name for name in names if name not in files]
    if missing:
        raise NotSimulatedError(f"{program}: {missing[0]} is not simulated; there is {', '.join(sorted(files))}")
    return "".join(files[name] for name in names), ""


def cat(files: Files, words: Sequence[str], stdin: str) -> Ran:
    return Ran(_input(files, [word for word in words if word not in ("-n", "-A")], stdin, "cat")[0])


def grep(files: Files, words: Sequence[str], stdin: str) -> Ran:
    found, rest = getopt.gnu_getopt(list(words), "ivEFcnwoqshe:m:", ["color=", "ignore-case", "count", "line-number"])
    options = dict(found)
    patterns = [value for name, value in found if name == "-e"] or rest[:1]
    names = rest if "-e" in options else rest[1:]
    if not patterns:
        raise getopt.GetoptError("no pattern")
    expressions = [re.escape(p) if "-F" in options else p if "-E" in options else _basic(p) for p in patterns]
    _check_effort(expressions, max(map(len, [stdin, *files.values()])))
    bound = r"\b" if "-w" in options else ""
    joined = "|".join(f"{bound}(?:{each}){bound}" for each in expressions)
    try:
        wanted = re.compile(joined, re.IGNORECASE if options.keys() & {"-i", "--ignore-case"} else 0)
    except re.error as error:
        raise NotSimulatedError(f"grep: {error}") from error
    text, _ = _input(files, names, stdin, "grep")
    lines = enumerate(text.splitlines(), 1)
    met = [(number, line) for number, line in lines if (wanted.search(line) is None) == ("-v" in options)]
    met = met[: int(options["-m"])] if "-m" in options else met
    status = 0 if met else 1
    if "-q" in options:
        return Ran(status=status)
    if options.keys() & {"-c", "--count"}:
        return Ran(f"{len(met)}\n", status=status)
    if "-o" in options:
        met = [(number, match[0]) for number, line in met for match in wanted.finditer(line)]
    numbered = options.keys() & {"-n", "--line-number"}
    return Ran("".join(f"{f'{number}:' if numbered else ''}{line}\n" for number, line in met), status=status)


def _check_effort(expressions: Sequence[str], longest: int) -> None:
    """Refuse what may take `re` for ever: a repetition inside a repeated group, or many over long text."""
    for each in expressions:
        repeated = len(re.findall(r"(?<!\\)[*+{]", each))
        inside = re.search(r"(?<!\\)\)[*+{]", each) and (repeated > 1 or "|" in each)
        if inside or longest**repeated > MOST_STEPS:
            raise NotSimulatedError(f"grep: {each[:40]!r} repeats more than a lab searches for")


def _basic(pattern: str) -> str:
    """Return a basic regular expression as an extended one: `\\|` and `|` change places, and their like."""
    return re.sub(
        r"\\(.)|([|+?(){}])",
        lambda m: m[1] if m[1] and m[1] in "|+?(){}" else f"\\{m[2]}" if m[2] else m[0],
        pattern,
    )


def head(files: Files, words: Sequence[str], stdin: str) -> Ran:
    return _cut(files, words, stdin, lambda lines, number: lines[:number], "head")


def tail(files: Files, words: Sequence[str], stdin: str) -> Ran:
    from_line = next((word for word in words if word.startswith("+")), None)
    if from_line is not None:
        at = int(from_line[1:]) - 1 if from_line[1:].isdecimal() else 0
        return Ran("".join(stdin.splitlines(keepends=True)[at:]))
    return _cut(files, words, stdin, lambda lines, number: lines[-number:] if number else [], "tail")


def _cut(
    files: Files, words: Sequence[str], stdin: str, choose: Callable[[list[str], int], list[str]], program: str
) -> Ran:
    spelled = [f"-n{word[1:]}" if re.fullmatch(r"-\d+", word) else word for word in words]
    found, names = getopt.gnu_getopt(spelled, "n:")
    number = dict(found).get("-n", "10")
    if not number.isdecimal():
        raise getopt.GetoptError(f"invalid number of lines: {number!r}")
    text, _ = _input(files, names, stdin, program)
    return Ran("".join(choose(text.splitlines(keepends=True), int(number))))


def wc(files: Files, words: Sequence[str], stdin: str) -> Ran:
    found, names = getopt.gnu_getopt(list(words), "lwc")
    text, _ = _input(files, names, stdin, "wc")
    counts = {"-l": text.count("\n"), "-w": len(text.split()), "-c": len(text.encode())}
    asked = [name for name, _ in found] or list(counts)
    return Ran(" ".join(str(counts[name]) for name in asked) + (f" {names[0]}" if names else "") + "\n")


def sort(files: Files, words: Sequence[str], stdin: str) -> Ran:
    found, names = getopt.gnu_getopt(list(words), "nru")
    options = {name for name, _ in found}
    lines = _input(files, names, stdin, "sort")[0].splitlines()
    lines = list(dict.fromkeys(lines)) if "-u" in options else lines

    def number(line: str) -> tuple[float, str]:
        leading = re.match(r"\s*-?\d+", line)
        return (float(leading[0]) if leading and "-n" in options else 0.0), line

    return Ran("".join(f"{line}\n" for line in sorted(lines, key=number, reverse="-r" in options)))


FILTERS: dict[str, Callable[[Files, Sequence[str], str], Ran]] = {
    "cat": cat,
    "grep": grep,
    "egrep": lambda files, words, stdin: grep(files, ["-E", *words], stdin),
    "head": head,
    "tail": tail,
    "wc": wc,
    "sort": sort,
}
