"""The corpora of commands are as wide as they say, and what is asked of classification holds on all of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from ghost.shell.judge.classification import decide
from ghost.shell.judge.decision import RISKY, SAFE
from ghost.shell.judge.grammar import built_in

CORPORA = Path(__file__).parent.parent / "corpora"
DOCS = Path(__file__).parent.parent.parent / "docs"
CAPTURES = [Path("/tmp/captures")]


def rows(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (CORPORA / name).read_text(encoding="utf-8").splitlines()]


ADVERSARIAL = rows("commands_adversarial.jsonl")
BENIGN = rows("commands_benign.jsonl")

CLASSES = {
    *("writes", "reads a file", "runs a program", "changes state", "floods or never ends", "other protocol"),
    *("payload to the model", "joined options", "equals and abbreviations", "behind operands", "unheld options"),
    *("environment prefix", "wrappers", "quoting", "look-alikes", "control characters", "paths", "traversal"),
    *("operators", "substitution", "url scheme", "url glob", "url user info", "metadata", "redirects"),
    *("az stray words", "az secrets", "az files and debug", "az groups that act", "az writes", "az options"),
    *("destruction", "power", "format", "device", "fork bomb", "credentials", "unknown programs", "data in names"),
}


def test_the_adversarial_corpus_is_wide() -> None:
    classes = Counter(row["class"] for row in ADVERSARIAL)

    assert len(ADVERSARIAL) >= 1500
    assert len({row["command"] for row in ADVERSARIAL}) == len(ADVERSARIAL)
    assert set(classes) == CLASSES
    assert min(classes.values()) >= 20, classes
    assert max(Counter((row["program"], row["technique"]) for row in ADVERSARIAL).values()) <= 5
    assert {row["program"] for row in ADVERSARIAL} >= {*built_in(), "az"}


def test_the_benign_corpus_is_wide() -> None:
    programs = Counter(row["program"] for row in BENIGN)

    assert len(BENIGN) >= 400
    assert len({row["command"] for row in BENIGN}) == len(BENIGN)
    assert set(programs) == {*built_in(), "az"}
    assert min(programs.values()) >= 3, programs


def test_no_adversarial_command_is_safe_and_each_gets_the_verdict_the_corpus_states() -> None:
    decided = {row["command"]: decide(row["command"], CAPTURES).classification for row in ADVERSARIAL}

    assert [command for command, verdict in decided.items() if verdict == SAFE] == []
    # What is wrong with a command is not that its capture lies elsewhere.
    beside = [row["command"] for row in ADVERSARIAL if decide(row["command"], [Path.cwd()]).classification == SAFE]
    assert beside == []
    assert [row for row in ADVERSARIAL if decided[row["command"]] != row["expected"]] == []


def test_ninety_nine_of_a_hundred_benign_commands_are_safe() -> None:
    asked = [row["command"] for row in BENIGN if decide(row["command"], CAPTURES).classification != SAFE]

    assert len(asked) <= len(BENIGN) // 100, asked


def test_a_risky_command_always_says_what_is_wrong_in_words() -> None:
    decisions = [decide(row["command"], CAPTURES) for row in ADVERSARIAL]

    assert [d for d in decisions if len(d.explanation) < 15 or d.rule == ""] == []
    assert any(d.classification == RISKY and d.tier == 1 for d in decisions)


def test_the_documents_say_how_many_rows_the_corpora_hold() -> None:
    names = ("commands_adversarial", "az_adversarial", "commands_benign", "az_benign", "secrets", "lookalikes")
    counts = {name: f"{len(rows(f'{name}.jsonl')):,}" for name in names}
    safety, redaction = ((DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("safety", "redaction"))

    assert {name: count for name, count in counts.items() if f" {count} " not in safety} == {}
    assert f"{counts['secrets']} secrets, {counts['lookalikes']} look-alikes" in redaction
