"""No text makes judging slow: not the patterns of the policy, one by one, and no line of 16,000 characters.

All times are of the processor. The bounds are those of `docs/safety.md`.
"""

from __future__ import annotations

import re
import shlex
import signal
import sys
import time
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ghost.shell import TopologyAnonymizer
from ghost.shell.judge.classification import decide
from ghost.shell.judge.grammar import PROGRAMS
from ghost.shell.judge.network.exfiltration import fault_of_name
from ghost.shell.judge.network.request_headers import fault_of_form
from ghost.shell.judge.network.request_urls import fault_of_url
from ghost.shell.policy_tables import POLICY

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_parse

FORMS = ("accept", "cache-control", "if-modified-since", "user-agent", "range", "x-ms-date")
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
PIECES += [
    *("rm ", "sudo ", "sudo rm ", "-a rm ", "sh -c ", "'sh -c ' ", "/ ", "~ ", "a=@", ".ssh/", ". ", "f(){f|f&};"),
    *("while true", "'\" ", "az ", "--query ", "-4", "[::1] ", "( ", "find -exec ", "python -c 'rm", "`", "$(", "id_"),
    *("/proc/", "key", "list-keys ", "x.", "0x", "'`'", "rmtree(", '"\'"', "fork ", "echo -x ", "rm -r ; "),
    *("xargs rm -r | ", "sh -c 'id' ; ", "> ", '\\"', '"\\"', '"`$', "\u200b", "''", "settings[?", "tags.settings "),
]
NESTING = ["", "cat ", "sudo ", "curl ", "python3 -c '", 'sh -c "']
HEADS = [
    *("az vm show --query settings", "dig "),
    *("az ", "az vm list --query ", "az vm list -g ", "az vm show --ids ", "az graph query -q "),
    *("az monitor log-analytics query -w w --analytics-query ", "tcpdump -r /tmp/captures/a.pcap "),
    *("tshark -r /tmp/captures/a.pcap ", "tshark -r /tmp/captures/a.pcap -Y ", "tshark -r /tmp/captures/a.pcap -z "),
    *("tshark -r /tmp/captures/a.pcap -z io,stat,1,", "tshark -r /tmp/captures/a.pcap -d ", "curl -H "),
    *("tshark -r /tmp/captures/a.pcap -O ", "curl -w ", "curl -H Host:", "curl http://a.example/", "ss -tan "),
    *("pcap-forensics /tmp/captures/a.pcap --report-dir ", *(f"{path.stem} " for path in PROGRAMS.glob("*.toml"))),
]


def slowest_patterns() -> Iterator[tuple[float, str]]:
    """For each pattern of the policy the seconds of its worst text: none may backtrack."""
    for pattern in patterns():
        compiled = re.compile(pattern, re.ASCII)
        texts_of_attacks = (
            f"{head}{piece * count}{tail}"[: LENGTH + 1]
            for head, piece in attacks(pattern)
            for tail in ("\x01", "!", "")
            for count in (30, LENGTH // len(piece))
        )
        yield max((seconds(compiled, text) for text in texts_of_attacks), default=0.0), pattern


def slowest_lines(heads: Iterable[str]) -> Iterator[tuple[float, str]]:
    """For each beginning of a command the seconds of its worst line of 16,000 characters, best of three."""
    for head in sorted(set(heads)):
        decide(f"{head}a", CAPTURES)
        worst = (0.0, head)
        for piece in PIECES:
            repeated = piece * (LENGTH // len(piece))
            for line in (f"{head}{repeated}", head + shlex.quote(f"{repeated[: LENGTH - len(head) - 200]}!")):
                worst = max(worst, (processor_seconds(partial(decide, line[:LENGTH], CAPTURES)), line[:80]))
        yield worst


def slowest_parts() -> Iterator[tuple[float, str]]:
    """The parts of a judgement on the longest values that they are given."""
    for piece in ("-", "a", "Ab-", "%25", "a1B", "/", "..", "&a", "=", "A", "%2f", ".sql", "select "):
        for url in (f"https://a.example/{piece * (2000 // len(piece))}", f"http://10.0.0.4/?{piece * 100}"):
            yield processor_seconds(partial(fault_of_url, url)), url[:80]
    for value in ("a, " * 2000 + "!", "a" * 6000, "(" * 6000, "()" * 3000 + "!", "a-a-a," * 1000 + "!", "a=a," * 1500):
        for header in FORMS:
            yield processor_seconds(partial(fault_of_form, header, value)), f"{header}: {value[:40]}"
    for name in (".".join("a2" * 84)[:254], "a." * 127, "ab2." * 63, "A" * 63, ("aB" * 31 + ".") * 4, "7" * 254):
        yield processor_seconds(partial(fault_of_name, name)), name[:80]


def growth_of_anonymization() -> float:
    """How many times longer four times the addresses take: about 4 where time grows with their number alone."""

    def run(count: int) -> None:
        text = "\n".join(
            f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255} in 10.1.{n >> 8 & 255}.0/24" for n in range(count)
        )
        anonymizer = TopologyAnonymizer()
        anonymizer.containment(anonymizer.anonymize(text))

    return processor_seconds(partial(run, 10_000)) / processor_seconds(partial(run, 2_500))


def processor_seconds(call: Callable[[], object]) -> float:
    """The least of three runs; one where it is quick enough already."""
    best = 9.9
    for _ in range(3):
        started = time.process_time()
        call()
        best = min(best, time.process_time() - started)
        if best < 0.02:
            break
    return best


def main() -> int:
    within = True
    for what, found, bound in (
        ("patterns of the policy", slowest_patterns(), 0.05),
        ("lines of 16,000 characters", slowest_lines(HEADS), 0.1),
        ("commands within commands", slowest_lines(NESTING), 0.3),
        ("parts of a judgement", slowest_parts(), 0.05),
    ):
        worst, text = max(found)
        print(f"{what:<28} slowest {worst * 1000:7.1f} ms, bound {bound * 1000:.0f} ms: {text[:60]!r}")
        within &= worst <= bound
    growth = growth_of_anonymization()
    print(f"{'four times the addresses':<28} {growth:.1f} times the time, bound 8")
    return 0 if within and growth < 8 else 1


if __name__ == "__main__":
    sys.exit(main())
