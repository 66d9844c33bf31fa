"""Writes, changes, forgets and searches until it is killed, and says what it will do and, once acknowledged, `done`.

`python -m tests.mind.killed_writer DATABASE SEED`. Lines: `put ID NUMBER ID NUMBER ...`, `forget ID`, `done`.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np

from ghost.mind import Changes, Memory, MemoryType, Thought
from ghost.mind.sqlite_store import SqliteStore

SPACE, DIM = "killed/32", 32


def vector(number: int) -> tuple[float, ...]:
    made = np.random.default_rng(number).standard_normal(DIM)
    return tuple((made / np.linalg.norm(made)).astype(np.float32).tolist())


def memory(name: str, number: int) -> Memory:
    return Memory(
        id=name,
        type=MemoryType.SEMANTIC,
        content=f"filler words of every memory word{number} " * 3,
        embedding=vector(number),
        embedding_model=SPACE,
        created_at=1.0,
        last_access=1.0,
    )


def main(path: Path, seed: int) -> None:
    store = SqliteStore(path, SPACE, DIM)
    choose = random.Random(seed)
    mine: list[str] = []
    number = seed * 1_000_000
    while True:
        number += 1
        if mine and choose.random() < 0.15:
            gone = mine.pop(choose.randrange(len(mine)))
            print(f"forget {gone}", flush=True)
            store.apply(Changes(forgotten=[gone]))
        else:
            if mine and choose.random() < 0.2:
                batch = {choose.choice(mine): number}
            else:
                names = store.new_ids("mem", 1.0, choose.randint(1, 20))
                batch = {name: number + n for n, name in enumerate(names)}
                mine += names
            number += len(batch)
            print("put", *(f"{name} {n}" for name, n in batch.items()), flush=True)
            thoughts = [Thought(id=f"thought:{name}", content="#plan x", ts=1.0) for name in batch]
            store.apply(Changes(memories=[memory(name, n) for name, n in batch.items()], thoughts=thoughts))
        print("done", flush=True)
        if choose.random() < 0.5:
            store.vector_ids(vector(number), 5)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
