"""How the work of the mind grows with what it holds, as ratios of processor time within one run.

A cycle among 10,000 memories to one among 1,000; a thought beside 20,000 others to one beside 20; the next of 100,000
tasks to the next of 10,000. Each pair is measured in turns and the medians are compared.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.mind.minds import START, SteppedClock, mind, stimulus

from ghost.mind import Attention, Changes, Memory, MemoryType, Task, Thought, Weights, WorkingMemory

ROUNDS = 40
Work = Callable[[], object]


@contextmanager
def cycle(held: int) -> Iterator[Work]:
    choose = random.Random(1)
    names = [f"{role}-{kind}-{n}" for role in ("web", "app", "db") for kind in ("vm", "nsg", "rt") for n in range(90)]

    def fault() -> str:
        one, two, three = choose.sample(names, 3)
        return f"{one} cannot reach {two} on port {choose.choice([22, 80, 443, 5432])}, because {three} denies it"

    memories = [
        Memory(id=f"mem:{n}", type=MemoryType.EPISODIC, content=fault(), created_at=START, last_access=START)
        for n in range(held)
    ]
    with tempfile.TemporaryDirectory() as directory:
        engine = mind(Path(directory))
        for start in range(0, held, 1000):
            engine.store.apply(Changes(memories=engine.ltm.prepare_all(memories[start : start + 1000])))
        engine.cycle()
        numbers = iter(range(1_000_000))

        def work() -> None:
            engine.ingest([stimulus(fault(), next(numbers))])
            engine.cycle()

        yield work


@contextmanager
def thought(held: int) -> Iterator[Work]:
    memory = WorkingMemory(held, 10**9, 10**9, 900)
    numbers = iter(range(10_000_000))

    def add(count: int) -> None:
        for number in (next(numbers) for _ in range(count)):
            memory.add(Thought(id=f"thought:{number}", content="#plan look", ts=number))

    add(held)
    yield lambda: add(500)


@contextmanager
def next_task(held: int) -> Iterator[Work]:
    clock = SteppedClock()
    attention = Attention(Weights(), clock)
    for n in range(held):
        given = {"importance": n % 997 / 997, "last_update_ts": START - n % 100_000}
        deadline = START + n % 400_000 if n % 3 else None
        attention.add_or_update(
            Task(id=f"task:{n}", title=str(n), created_ts=START, deadline_ts=deadline, **given), 0.5
        )

    def work() -> None:
        for _ in range(20):
            clock.passes(30)
            attention.peek()

    yield work


PAIRS = [
    ("a cycle, 10,000 memories to 1,000", cycle, 10_000, 1_000, 4.0),
    ("a thought, beside 20,000 to beside 20", thought, 20_000, 20, 4.0),
    ("the next task, of 100,000 to of 10,000", next_task, 100_000, 10_000, 40.0),
]


def seconds(work: Work) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> int:
    held = True
    for what, prepare, many, few, bound in PAIRS:
        with ExitStack() as stack:
            works = [stack.enter_context(prepare(count)) for count in (many, few)]
            taken = [[seconds(work) for work in works] for _ in range(ROUNDS)]
        medians = [statistics.median(column) for column in zip(*taken, strict=True)]
        ratio = medians[0] / medians[1]
        print(f"{what}: {ratio:.1f} times (bound {bound:.0f}), {medians[0] * 1000:.2f} ms of CPU")
        held = held and ratio < bound
    return 0 if held else 1
