"""`ghost eval` of a model: its score beside the offline brain's, where it was worse, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ghost.brain import Message, ToolCall, Turn
from ghost.lab import Row, worse_than
from tests.model_servers.dialects import DIALECTS
from tests.model_servers.exchange import MODEL
from tests.model_servers.server import serving
from tests.model_servers.test_investigations import ghost

OPENAI = next(dialect for dialect in DIALECTS if dialect.name == "openai")


def gives_up(conversation: Sequence[Message]) -> Turn:
    number = 1 + sum(isinstance(message, Turn) for message in conversation)
    nothing = {"confidence": "low", "root_cause_summary": "I do not know.", "outcome": "inconclusive"}
    return Turn("", (ToolCall(f"t{number}.1", "complete_investigation", nothing),))


def test_a_model_that_is_worse_is_marked_beside_the_offline_brain_with_its_cost(tmp_path: Path) -> None:
    words = ("eval", "blocked-port", "--brain", "openai", "--model", MODEL, "--json", "score.json")
    with serving(OPENAI, gives_up) as server:
        done = ghost(*words, server=server, cwd=tmp_path, GHOST_LLM_PRICES="1,2")
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "score.json").read_text())
    (row,), (offline,) = told["scenarios"], told["offline"]["scenarios"]
    assert (row["root_cause_right"], offline["root_cause_right"]) == (False, True)
    assert told["worse"] == ["blocked-port 1"]
    assert row["cost"] > 0
    assert "cost" not in offline
    assert "Worse than offline: 1:\n  blocked-port 1: WRONG, inconclusive" in done.stdout
    assert "      offline: right, cause found" in done.stdout
    assert f"cost ${row['cost']:.4f}" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_worse_is_no_right_cause_or_more_false_ones_on_the_same_symptom() -> None:
    def row(name: str, *, right: bool, false: int = 0, wording: int = 1) -> Row:
        return Row(
            name=name, wording=wording, repeat=1, group="nsg", root_cause_right=right, false_causes=false
        )  # fmt: skip

    offline = [row("a", right=True), row("b", right=False), row("c", right=True)]
    model = [
        row("a", right=True, false=1),
        row("b", right=True),
        row("c", right=True),
        row("a", right=False, wording=2),
    ]
    assert worse_than(offline, model) == [(model[0], offline[0])]
