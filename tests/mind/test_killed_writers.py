"""A process that writes memories is killed (`SIGKILL`) again and again: what it was told was kept is there."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Set
from pathlib import Path

import numpy as np

from ghost.mind.sqlite_store import SqliteStore
from tests.exhaustive import EXHAUSTIVE
from tests.mind.killed_writer import DIM, SPACE, memory, vector

KILLS = 100 if EXHAUSTIVE else 4
ROOT = Path(__file__).parents[2]


Model = dict[str, int]
"""Ids of memories and the numbers that they were made of."""


def _after(model: Model, line: str) -> Model:
    verb, *words = line.split()
    if verb == "forget":
        return {name: number for name, number in model.items() if name != words[0]}
    return model | dict(zip(words[::2], map(int, words[1::2]), strict=True))


def _acknowledged(model: Model, lines: list[str]) -> tuple[Model, Model]:
    """What must be there, and what may be there instead: with the change that was under way when the kill came."""
    will = model
    for line in lines:
        if line == "done":
            model = will
        else:
            will = _after(model, line)
    return model, will


def _run_and_kill(path: Path, seed: int, seconds: float) -> list[str]:
    """The whole lines that a writer printed until it was killed."""
    command = [sys.executable, "-m", "tests.mind.killed_writer", str(path), str(seed)]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stderr is not None
    lines = [child.stdout.readline()]
    reader = threading.Thread(target=lambda: lines.extend(child.stdout))
    reader.start()
    time.sleep(seconds)
    child.kill()
    child.wait()
    reader.join()
    errors = child.stderr.read().decode()
    child.stdout.close()
    child.stderr.close()
    assert errors == ""
    return [line.decode().strip() for line in lines if line.endswith(b"\n")]


def test_nothing_acknowledged_is_lost_when_a_writer_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "data" / "ghost.sqlite3"
    model: Model = {}
    choose = random.Random(11)
    for kill in range(KILLS):
        model, instead = _acknowledged(model, _run_and_kill(path, kill + 1, choose.uniform(0.01, 0.5)))
        model = _checked(path, model, instead)
    assert len(model) > KILLS


def _checked(path: Path, model: Model, instead: Model) -> Model:
    """Which of the two there is; either of them whole."""
    store = SqliteStore(path, SPACE, DIM)
    try:
        kept = {one.id: one for one in store.memories()}
        wanted = [one for one in (model, instead) if kept == {name: memory(name, n) for name, n in one.items()}]
        assert wanted, f"{len(kept)} memories, of {len(model)} that were acknowledged"
        assert {f"thought:{name}" for name in kept} <= {thought.id for thought in store.thoughts(10**6)}
        some = random.Random(len(kept)).sample(sorted(wanted[0].items()), min(20, len(kept)))
        for name, number in some:
            assert store.keyword_ids(f"word{number}", 3) == [name]
            assert store.vector_ids(vector(number), 1)[0][0] == name
        store.vector_ids(vector(1), 1)
        _check_matrix(store, kept.keys())
    finally:
        store.close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
    connection.close()
    return wanted[0]


def _check_matrix(store: SqliteStore, kept: Set[str]) -> None:
    """Row by row, as the file beside the database holds it."""
    with store._connections.reading() as connection:
        rows = connection.execute("SELECT place, id, vector FROM memory JOIN embedding USING (place)").fetchall()
    assert {name for _, name, _ in rows} == kept
    table = store._matrix.table()
    expected = np.zeros((len(table), DIM), dtype=np.float32)
    for place, _, written in rows:
        expected[place - 1] = np.frombuffer(written, dtype="<f4")
    assert np.allclose(table["vector"], expected, atol=1e-6)
