"""No text makes judging slow: not the patterns of the policy, one by one, and no line of 16,000 characters."""

from __future__ import annotations

import re
import shlex
import signal
import time
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ghost.shell.judge.classification import decide
from ghost.shell.judge.grammar import PROGRAMS
from ghost.shell.policy_tables import policy_table

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_parse

POLICY = PROGRAMS.parent
OF_OTHERS = {"redaction.toml"}  # its patterns are parts of larger ones, held to a time a line by the tests of redaction
TYPES = re.compile(r"(?:MATCH|TOKENS|INTERFACE|DNS_NAME) (?P<pattern>.*?)(?: -- [^|()]*)?", re.DOTALL)
LENGTH = 16_000
CAPTURES = [Path("/tmp/captures")]


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key != "examples":
                yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def patterns() -> list[str]:
    """Every text of the policy that is, or may be, a regular expression."""
    found = set()
    for path in sorted(POLICY.rglob("*.toml")):
        if path.name in OF_OTHERS:
            continue
        for text in texts(tomllib.loads(path.read_text("utf-8"))):
            for part in [text, *text.split(" | ")]:
                typed = TYPES.fullmatch(part.strip())
                pattern = typed["pattern"] if typed else text
                if re.search(r"[*+}]", pattern) and compiles(pattern):
                    found.add(pattern)
    return sorted(found)


def compiles(pattern: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except re.error:
        return False
    return True


def samples(tree: Any, budget: int = 6) -> list[str]:
    """A few texts that the parsed pattern matches, or nearly: one for each alternative, repetitions taken once."""
    found = [""]
    for operation, argument in tree:
        name = str(operation)
        if name == "LITERAL":
            pieces = [chr(argument)]
        elif name in ("NOT_LITERAL", "ANY"):
            pieces = ["a"]
        elif name == "IN":
            pieces = [of_class(argument)]
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            pieces = samples(argument[2], budget)
        elif name == "SUBPATTERN":
            pieces = samples(argument[3], budget)
        elif name == "ATOMIC_GROUP":
            pieces = samples(argument, budget)
        elif name == "BRANCH":
            pieces = [text for branch in argument[1] for text in samples(branch, 1)]
        else:
            pieces = [""]
        found = [head + piece for piece in pieces for head in found][: 4 * budget]
    return found[: 4 * budget]


def of_class(items: Any) -> str:
    for name, argument in items:
        if str(name) == "LITERAL":
            return chr(argument)
        if str(name) == "RANGE":
            return chr(argument[0])
        if str(name) == "CATEGORY":
            return {"CATEGORY_DIGIT": "0", "CATEGORY_SPACE": " "}.get(str(argument), "a")
    return "a"


def attacks(pattern: str) -> set[tuple[str, str]]:
    """For each repetition of the pattern a text that leads to it, and what to repeat there."""
    found: set[tuple[str, str]] = set()

    def walk(tree: Any, before: str) -> None:
        head = before
        for item in tree:
            name, argument = str(item[0]), item[1]
            if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
                found.update((head, piece) for piece in samples(argument[2]) if piece)
                walk(argument[2], head)
            elif name == "SUBPATTERN":
                walk(argument[3], head)
            elif name == "ATOMIC_GROUP":
                walk(argument, head)
            elif name in ("ASSERT", "ASSERT_NOT"):
                walk(argument[1], head)
            elif name == "BRANCH":
                for branch in argument[1]:
                    walk(branch, head)
            head += samples([item], 1)[0]

    walk(sre_parse.parse(pattern), "")
    return found


class TooSlowError(Exception):
    pass


def seconds(pattern: re.Pattern[str], text: str) -> float:
    def stop(*_: object) -> None:
        raise TooSlowError

    old = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, 1)
    started = time.process_time()
    try:
        pattern.fullmatch(text)
        return time.process_time() - started
    except TooSlowError:
        return 1.0
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, old)


def test_the_patterns_of_the_policy_are_found() -> None:
    found = patterns()

    assert len(found) > 60
    assert policy_table("az_options.toml")["meaning"]["account"].removeprefix("MATCH ").partition(" -- ")[0] in found


def test_a_pattern_that_backtracks_without_end_would_be_found() -> None:
    bad = r"x(?:a ?(?:b|c)?)+"

    assert max(seconds(re.compile(r"(?:a+)+"), head + piece * 30 + "\x01") for head, piece in attacks(r"(?:a+)+")) > 0.5
    assert attacks(bad) >= {("x", "a b")}


@pytest.mark.parametrize("pattern", patterns())
def test_no_pattern_backtracks(pattern: str) -> None:
    compiled = re.compile(pattern, re.ASCII)
    for head, piece in attacks(pattern):
        for tail in ("\x01", "!", ""):
            assert seconds(compiled, f"{head}{piece * 30}{tail}") < 0.05, (head, piece)
            assert seconds(compiled, f"{head}{piece * (LENGTH // len(piece))}{tail}"[: LENGTH + 1]) < 0.05, (
                head,
                piece,
            )


PIECES = [
    *("a", "aaaa ", "a ", "é", "ip.src", "(", ")", "((", "()", "(ip.src)", "tcp[", "[", "]", "a[0]", "tcp[0] ", "[]."),
    *("0", "0.", "10.", "1:", "::", "a:", "a.", "a-", "'", '"', "\\", "*", "%", "%25", "%{", "%{a}", "/", "./", "../"),
    *(
        "//",
        "@",
        ",",
        ";",
        "=",
        "a=",
        "a,",
        "-",
        "--",
        "-a ",
        "--a ",
        "and ",
        "a and ",
        "not ",
        "! ",
        "`1`",
        "{",
        "{a:",
    ),
    *(
        "a|",
        "| where name",
        "name ",
        "/api/v1/",
        "/a/",
        "&",
        "..",
        "~",
        "<",
        "#",
        "?",
        "+",
        "contains(",
        "reverse(sort(",
    ),
]
HEADS = [
    *("az ", "az vm list --query ", "az vm list -g ", "az vm show --ids ", "az graph query -q "),
    *("az monitor log-analytics query -w w --analytics-query ", "tcpdump -r /tmp/captures/a.pcap "),
    *("tshark -r /tmp/captures/a.pcap ", "tshark -r /tmp/captures/a.pcap -Y ", "tshark -r /tmp/captures/a.pcap -z "),
    *("tshark -r /tmp/captures/a.pcap -z io,stat,1,", "tshark -r /tmp/captures/a.pcap -d ", "curl -H "),
    *("tshark -r /tmp/captures/a.pcap -O ", "curl -w ", "curl -H Host:", "curl http://a.example/", "ss -tan "),
    *("pcap-forensics /tmp/captures/a.pcap --report-dir ", *(f"{path.stem} " for path in PROGRAMS.glob("*.toml"))),
]


@pytest.mark.slow
@pytest.mark.parametrize("head", sorted(set(HEADS)))
def test_no_line_of_16000_characters_takes_long(head: str) -> None:
    decide(f"{head}a", CAPTURES)
    for piece in PIECES:
        repeated = piece * (LENGTH // len(piece))
        for line in (f"{head}{repeated}"[:LENGTH], head + shlex.quote(f"{repeated[: LENGTH - len(head) - 200]}!")):
            best = 1.0
            for _ in range(3):
                started = time.process_time()
                decide(line[:LENGTH], CAPTURES)
                best = min(best, time.process_time() - started)
                if best < 0.1:
                    break
            assert best < 0.1, (piece, line[:80])
