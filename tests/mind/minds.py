"""What tests of the mind stand on: the real store in a folder, time that passes when told, a model that says lines."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ghost.config import Settings
from ghost.mind import Changes, Engine, Stimulus, Task, TaskSource
from ghost.mind.sqlite_store import SqliteStore
from ghost.providers import EmbeddingsProvider, TextKind
from ghost.providers.stub import StubEmbeddings, StubLLM
from ghost.shell import redact

START = 1_760_000_000.0
DIM = 128


def without_secrets(text: str) -> str:
    return redact(text)[0]


class SteppedClock:
    """Stands still until `passes` is called."""

    def __init__(self, at: float = START) -> None:
        self.at = at

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds

    def passes(self, seconds: float) -> None:
        self.at += seconds


Said = str | Exception | Callable[[str], str]


class SpeakingModel:
    """Says what it was given for each kind of question, in order, then what the stub says. Keeps what it was asked."""

    name = "speaking"

    def __init__(
        self, thoughts: Iterable[Said] = (), decisions: Iterable[Said] = (), summaries: Iterable[Said] = ()
    ) -> None:
        self.lines = {"SOC": list(thoughts), "STORE_DECIDER": list(decisions), "CONSOLIDATE": list(summaries)}
        self.asked: list[tuple[str, str]] = []
        self.stub = StubLLM()

    def generate(self, system: str, prompt: str, max_tokens: int, **kwargs: Any) -> str:
        name = system.split("\n", 1)[0]
        self.asked.append((name, prompt))
        if not self.lines[name]:
            return self.stub.generate(system, prompt, max_tokens, **kwargs)
        said = self.lines[name].pop(0)
        if isinstance(said, Exception):
            raise said
        return said(prompt) if callable(said) else said

    def prompts(self, name: str) -> list[str]:
        return [prompt for asked, prompt in self.asked if asked == name]


class Lopsided(StubEmbeddings):
    """All its cosines lie between 0.8 and 1, as those of a learnt model may."""

    def __init__(self) -> None:
        super().__init__(DIM)
        self.name, self.dim = f"lopsided-{DIM + 1}", DIM + 1

    def embed(self, texts: Sequence[str], kind: TextKind = "document") -> list[list[float]]:
        return [[2.0, *vector] for vector in StubEmbeddings(DIM).embed(texts, kind)]


class BreakableStore(SqliteStore):
    """While `broken`, a transaction fails after its memories, thoughts, tasks and questions were written."""

    broken = False

    def apply(self, changes: Changes) -> None:
        if self.broken:
            changes = dataclasses.replace(changes, preferences={**changes.preferences, "~": float("nan")})
        super().apply(changes)


class Naming:
    """A source whose one task names `v0` to `v299`, so that thoughts on them rest on something."""

    name = "naming"

    def tasks(self, now: float) -> list[Task]:
        names = " ".join(f"v{number}" for number in range(300))
        return [Task(id="task:names", title="Look at", context=names, created_ts=START, last_update_ts=START)]


def keep(should_store: bool = True, **given: Any) -> str:
    return json.dumps(
        {"should_store": should_store, "type": "episodic", "importance": 0.7, "tags": ["nsg"], "reason": "a test"}
        | given
    )


def settings(folder: Path, **given: Any) -> Settings:
    return Settings(**{"workspace": folder, "wm_half_life_seconds": 900.0, **given})


def open_sqlite(folder: Path, embeddings: EmbeddingsProvider | None = None) -> BreakableStore:
    space = embeddings or StubEmbeddings(DIM)
    return BreakableStore(folder / "ghost.sqlite3", space.name, space.dim)


def mind(
    folder: Path,
    llm: Any = None,
    clock: SteppedClock | None = None,
    sources: Sequence[TaskSource] = (),
    scraper: Any = None,
    embeddings: EmbeddingsProvider | None = None,
    **given: Any,
) -> Engine:
    """An engine on the store in `folder`; a second one on the same folder is the mind after a restart."""
    return Engine(
        open_sqlite(folder, embeddings),
        llm or StubLLM(),
        embeddings or StubEmbeddings(DIM),
        clock or SteppedClock(),
        without_secrets,
        settings(folder, **given),
        sources,
        scraper,
    )


def stimulus(content: str, number: int = 1, **given: Any) -> Stimulus:
    return Stimulus(id=f"stim:{number}", source="test", content=content, ts=START, **given)
