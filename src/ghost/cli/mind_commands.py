"""`ghost serve`, `run`, `ingest`, `search`, `interrupts`, `answer`, `export`, `import`, `scrape` and `tasks`.

All but `serve` work on the workspace's memory itself, whether or not a server runs: a store may be open in several
processes, and what one of them writes the others read.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from pydantic import BaseModel

from ghost.agent import Waiting, WaitingRoom
from ghost.cli.approvals import TerminalGate
from ghost.cli.session_records import open_workspace
from ghost.cli.terminal import is_interactive, to_stdout
from ghost.cli.watch_commands import watching
from ghost.config import Settings
from ghost.errors import ConfigurationError, UsageError
from ghost.mind import (
    FIX_CHECK,
    Event,
    Filter,
    Hit,
    Kind,
    MemoryType,
    Query,
    QueryStatus,
    Stimulus,
    StreamOfConsciousness,
    opened_memory,
)
from ghost.records import SystemClock, elapsed, private_dir
from ghost.scraper import plan_from
from ghost.server import opened_engine, re_embedding
from ghost.shell import HitlDecision
from ghost.text import visible

INTERRUPTED = 130
LONGEST_SHOWN = 400
ABOUT_QUESTION = "task:q:"
"""The beginning of the id of a task to answer a question."""


def serve(workspace: Path | None, *, host: str | None, port: int | None) -> int:
    from ghost.cli.served_investigation import ServedInvestigator
    from ghost.server import serve as run_server

    given = {name: value for name, value in (("api_host", host), ("api_port", port)) if value is not None}
    settings = Settings(**given)
    root = open_workspace(workspace, settings).root
    return run_server(
        settings,
        root,
        investigator=ServedInvestigator(root),
        beside=lambda engine: watching(settings, root, engine),
    )


# --- thinking without a server ---


def run(workspace: Path | None, *, cycles: int | None, as_json: bool) -> int:
    """Run the loop at the configured cadence until Ctrl-C, or `cycles` times without waiting."""
    settings, root = _settings(workspace)
    shown = _Thoughts(as_json=as_json)
    with opened_engine(settings, root) as engine, re_embedding(engine):
        unsubscribe = engine.subscribe(shown.show)
        try:
            if cycles is not None:
                for _ in range(cycles):
                    engine.cycle()
                return 0
            if not settings.soc_enabled:
                raise ConfigurationError("SOC_ENABLED is false: unset it, or think a number of times with --cycles")
            stream = StreamOfConsciousness(engine, settings, engine.clock, Random())  # noqa: S311 - jitter
            with watching(settings, root, engine):
                asyncio.run(_until_ended(stream))
            return INTERRUPTED
        finally:
            unsubscribe()


async def _until_ended(stream: StreamOfConsciousness) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, ended.set)
    await stream.start()
    try:
        await ended.wait()
    finally:
        await stream.stop()


class _Thoughts:
    """Prints one line per event of the background loop."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._lock = threading.Lock()

    def show(self, event: Event) -> None:
        if self._as_json:
            line = json.dumps({"kind": event.kind.value, "ts": event.ts, **event.data}, default=str)
        elif event.kind is Kind.THOUGHT:
            line = f"{_time(event.ts)}  {visible(str(event.data['content']))}"
        elif event.kind is Kind.INTERRUPT:
            line = f"{_time(event.ts)}  asks: {visible(str(event.data['question']))}  (ghost answer {event.data['id']})"
        elif event.kind is Kind.STIMULUS and event.data["source"] == FIX_CHECK:
            line = f"{_time(event.ts)}  {visible(str(event.data['content']))}"
        elif event.kind is Kind.ERROR:
            line = f"{_time(event.ts)}  {visible(str(event.data.get('message', '')))}"
        else:
            return
        with self._lock:
            print(line, flush=True)


def ingest(text: str, workspace: Path | None, *, source: str, as_json: bool) -> None:
    """Store an observation for the next cycle of `ghost serve` or `ghost run` in this workspace."""
    if not text.strip():
        raise UsageError('no observation was given: ghost ingest "the change of the firewall at 14:00 is done"')
    settings, root = _settings(workspace)
    with opened_engine(settings, root) as engine:
        now = engine.clock.now().timestamp()
        stimulus = Stimulus(id=engine.store.new_ids("stim", now)[0], source=source, content=text, ts=now)
        engine.ingest([stimulus])
        waiting = engine.waiting
    if as_json:
        print(json.dumps({"id": stimulus.id, "waiting": waiting}))
    else:
        print(f"{stimulus.id} is queued for the next cycle of ghost serve or ghost run ({waiting} waiting)")


# --- memory ---


def search(
    query: str,
    workspace: Path | None,
    *,
    count: int,
    types: Iterable[str],
    tags: Iterable[str],
    since: datetime | None,
    until: datetime | None,
    as_json: bool,
) -> None:
    where = Filter(frozenset(map(_type, types)), frozenset(tags), _epoch(since), _epoch(until))
    settings, _ = _settings(workspace)
    with opened_memory(settings) as memory:
        memory.catch_up()
        hits = memory.search(query, top_k=count, where=where)
        held = sum(memory.counts().values())
        waiting = bool(memory.store.without_embedding(1))
    if waiting:
        print(
            "Some memories have no embedding of this model yet and are found by words alone: ghost serve or ghost run "
            "embeds them in the background.",
            file=sys.stderr,
        )
    if as_json:
        print(json.dumps([_hit(hit) for hit in hits], indent=2, ensure_ascii=False))
        return
    if not hits:
        print(f"Nothing close among {held} memories.")
    rich = to_stdout()
    for hit in hits:
        head = f"{_day(hit.memory.created_at)}  {hit.memory.type.value}  {hit.memory.id}  {_scores(hit)}"
        tags_shown = " ".join(f"#{tag}" for tag in hit.memory.tags)
        rich.print(visible(f"{head}  {tags_shown}"), style="bold", markup=False)
        if read_at := hit.memory.metadata.get("final_url"):
            rich.print(visible(f"  read at {read_at}"), markup=False)
        content = _cut(visible(hit.memory.content, keep="\n\t"))
        rich.print("  " + content.replace("\n", "\n  "), markup=False)


def export(path: Path, workspace: Path | None) -> None:
    settings, _ = _settings(workspace)
    with opened_memory(settings) as memory:
        count = memory.export_jsonl(path)
    print(f"{count} memories written to {path}")


def import_(path: Path, workspace: Path | None) -> None:
    settings, _ = _settings(workspace)
    with opened_memory(settings) as memory:
        count = memory.import_jsonl(path)
    print(f"{count} memories read from {path}")


# --- questions ---


def interrupts(workspace: Path | None, *, all_: bool, as_json: bool) -> None:
    settings, root = _settings(workspace)
    with opened_engine(settings, root) as engine:
        found = engine.store.queries() if all_ else engine.interrupts.list_open()
    waiting = WaitingRoom(root, SystemClock()).open()
    if as_json:
        rows = [{**asdict(each), "kind": "investigation"} for each in waiting]
        print(json.dumps([*rows, *_dumped(found)], indent=2, ensure_ascii=False))
        return
    if not found and not waiting:
        print("No question is open." if not all_ else "Nothing was ever asked.")
    for each in waiting:
        for line in _waiting(each):
            print(line)
    for query in found:
        for line in _question(query):
            print(line)


def answer(query_id: str, text: str, workspace: Path | None) -> None:
    settings, root = _settings(workspace)
    if query_id.startswith("a:"):
        _answer_investigation(WaitingRoom(root, SystemClock()), query_id, text)
        return
    if not text:
        raise UsageError(f"an answer needs words: ghost answer {query_id} TEXT")
    with opened_engine(settings, root) as engine:
        if engine.interrupts.answer(query_id, text):
            print(f"{query_id} is answered")
            return
        known = engine.interrupts.get(query_id)
        waiting = ", ".join(query.id for query in engine.interrupts.list_open()) or "none"
    state = "is not known" if known is None else f"is not open ({known.status.value})"
    raise UsageError(f"{query_id} {state}; open questions: {waiting} (see: ghost interrupts)")


def _answer_investigation(room: WaitingRoom, row_id: str, text: str) -> None:
    """Answer what an investigation asks: an approval only at a terminal, by who has read the command here."""
    waiting = room.find(row_id)
    if waiting is None:
        raise _too_late(room, row_id)
    given: HitlDecision | str = text
    if not isinstance(waiting.asked, str):
        if text or not is_interactive():
            raise UsageError(f"an approval is given at a terminal, where its command is shown: ghost answer {row_id}")
        given = TerminalGate(to_stdout()).approve(waiting.asked)
    elif not text.strip():
        raise UsageError(f"an answer needs words: ghost answer {row_id} TEXT")
    if not room.answer(row_id, waiting.sha256, given):
        raise _too_late(room, row_id)
    print(f"{row_id} is answered: {given if isinstance(given, str) else given.action}")


def _too_late(room: WaitingRoom, row_id: str) -> UsageError:
    closed = room.closed(row_id)
    return UsageError(visible(f"{row_id} {closed.told if closed else 'is not known'} (see: ghost interrupts)"))


def _waiting(waiting: Waiting) -> list[str]:
    now = SystemClock().now().timestamp()
    limit = "" if waiting.expires_at is None else f", {_left(waiting.expires_at - now)}"
    lines = [f"{waiting.id}  {waiting.session_id} waits{limit}: {visible(waiting.symptom)}"]
    if isinstance(waiting.asked, str):
        return [*lines, f"    asks: {visible(waiting.asked)}", f"    ghost answer {waiting.id} TEXT"]
    lines += [f"    RISKY: {visible(line)}" for line in waiting.asked.lines]
    return [*lines, f"    why: {visible(waiting.asked.reasoning)}", f"    ghost answer {waiting.id}"]


def _question(query: Query) -> list[str]:
    now = SystemClock().now().timestamp()
    state = query.status.value if query.status is not QueryStatus.OPEN else _left(query.expires_ts - now)
    lines = [f"{query.id}  {state}  {visible(query.question)}"]
    if query.rationale:
        lines.append(f"    why: {visible(query.rationale)}")
    if query.answer is not None:
        lines.append(f"    {query.status.value}: {visible(_cut(query.answer))}")
    elif query.status is QueryStatus.OPEN:
        wanted = "; ".join(f"{name}: ..." for name in query.required_fields) or "..."
        lines.append(f"    ghost answer {query.id} {visible(json.dumps(wanted))}")
    return lines


def _left(seconds: float) -> str:
    return f"open for {elapsed(seconds)}" if seconds > 0 else "expired"


# --- pages, tasks ---


def scrape(question: str, seeds: list[str], workspace: Path | None, *, pages: int | None, as_json: bool) -> int:
    """Read pages. Returns exit status 0, or 1 where no page was read."""
    settings, root = _settings(workspace)
    stop = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        with opened_engine(settings, root) as engine:
            result = engine.scrape(plan_from(settings, question, seeds, pages), stop=stop.is_set)
    finally:
        signal.signal(signal.SIGINT, before)
    if as_json:
        print(result.model_dump_json(indent=2))
    for document in result.documents if not as_json else ():
        print(visible(f"read     {document.final_url}  {document.title}  ({len(document.text)} characters)"))
    for url in result.not_modified if not as_json else ():
        print(visible(f"unchanged {url}"))
    for refusal in result.refusals:
        hint = " (see ALLOWLIST_DOMAINS)" if "not on the allowlist" in refusal.reason else ""
        print(visible(f"refused  {refusal.url}: {refusal.reason}{hint}"), file=sys.stderr)
    if result.why_ended:
        print(visible(f"ended: {result.why_ended}"), file=sys.stderr)
    if stop.is_set():
        return INTERRUPTED
    return 0 if result.documents or result.not_modified else 1


def tasks(workspace: Path | None, *, count: int, as_json: bool) -> None:
    """List open tasks by priority, with the reason."""
    settings, root = _settings(workspace)
    with opened_engine(settings, root) as engine:
        engine.tend()
        best = [task for task, _ in engine.attention.top_k(count)]
        scores = {task.id: score for task in best if (score := engine.attention.explain(task.id)) is not None}
    if as_json:
        rows = [
            {**task.model_dump(mode="json"), "score": scores[task.id].total, "why": str(scores[task.id])}
            for task in best
        ]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    if not best:
        print("No task waits.")
    for task in best:
        print(visible(f"{scores[task.id].total:.3f}  {task.title}  ({task.id}, {task.status.value})"))
        if task.context:
            print(f"       {visible(_cut(task.context))}")
        if task.id.startswith(ABOUT_QUESTION):
            print(f"       ghost answer {task.id.removeprefix('task:')} ...")


# --- words ---


def _settings(workspace: Path | None) -> tuple[Settings, Path]:
    settings = Settings()
    root = open_workspace(workspace, settings).root
    private_dir(root)
    return replace(settings, workspace=root), root


def _scores(hit: Hit) -> str:
    similarity = "by words alone" if hit.similarity is None else f"similarity {hit.similarity:.2f}"
    return f"score {hit.score:.3f}, {similarity}"


def _hit(hit: Hit) -> dict[str, Any]:
    memory = hit.memory.model_dump(mode="json", exclude={"embedding", "embedding_model"})
    return {
        **memory,
        "score": round(hit.score, 6),
        "keyword_rank": hit.keyword_rank,
        "vector_rank": hit.vector_rank,
        "similarity": None if hit.similarity is None else round(hit.similarity, 4),
    }


def _dumped(models: Iterable[BaseModel]) -> list[dict[str, Any]]:
    return [model.model_dump(mode="json") for model in models]


def _type(word: str) -> MemoryType:
    try:
        return MemoryType(word)
    except ValueError:
        raise UsageError(f"there are no memories of type {word!r}: choose {', '.join(MemoryType)}") from None


def _epoch(moment: datetime | None) -> float | None:
    if moment is None:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN].rstrip()}..."
