"""`ghost watch`: paths that are read again at times, and the schedule of them beside the background loop."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ghost.agent import (
    WATCH,
    FixCheckRuns,
    OpenShell,
    Session,
    Watch,
    WatchResult,
    WatchRuns,
    Workspace,
    first_fault,
    load_session,
    without_secrets,
)
from ghost.cli.session_opening import network_of_az, own_lab_of
from ghost.cli.session_records import open_workspace, option_of, workspace_of
from ghost.cli.watch_schedule import scheduled
from ghost.config import Settings
from ghost.errors import UsageError
from ghost.lab import lab_behind_az, lab_programs, load_case, start
from ghost.mind import FIX_CHECK, Engine, Interrupts, QueryStatus, Stimulus, opened_memory
from ghost.net import ReachQuestion
from ghost.records import SystemClock, elapsed, new_command_id, private_dir
from ghost.shell import SafeExecShell
from ghost.text import plural, visible

STATUS: Final = {"no_drift": 0, "started": 0, "not_known": 3, "drift": 4}
"""Exit status of an outcome."""
SECONDS: Final = {"m": 60, "h": 3600, "d": 86_400}
MIN_EVERY, MAX_EVERY = 60, 30 * 86_400
_EVERY: Final = re.compile(r"(\d{1,4})([mhd])")
_WORDS: Final = {
    "started": "READ: later runs are compared with this one.",
    "no_drift": "NO DRIFT: the path is as it was.",
    "drift": "DRIFT: the path is not as it was.",
    "not_known": "NOT KNOWN: what decides could not all be read.",
}


def add(
    ends: Sequence[str],
    port: int | None,
    protocol: str,
    every: str,
    workspace_option: Path | None,
    lab: str | None = None,
    *,
    as_json: bool,
) -> None:
    """Watch the path of a session, or between two ends, in a new lab of the scenario `lab`."""
    every_seconds = seconds_of(every)
    if len(ends) == 1:
        if lab is not None:
            raise UsageError("the path of a session is read in its own network: leave out --lab, or name two ends")
        workspace, file = workspace_of(ends[0], workspace_option, Settings())
        runs = _runs(workspace)
        watch, result = runs.add_investigation(load_session(file)[0], every_seconds), None
    else:
        question = ReachQuestion(ends[0], ends[1], port, protocol)
        spelled = question.checked()
        if port is None and spelled != "Icmp":
            raise UsageError("a watch is of one destination port: ghost watch add SOURCE DESTINATION PORT")
        workspace = open_workspace(workspace_option, Settings())
        flow = {"source": ends[0], "destination": ends[1], "port": port, "protocol": spelled}
        runs, network, lab_id = _runs(workspace), network_of_az(lab_behind_az()), None
        if lab is not None:
            lab_id = new_command_id(WATCH, SystemClock().now())
            network = start(
                load_case(lab), workspace.root / "lab" / lab_id, speed=Settings().lab_speed
            ).briefing.network
        watch, result = runs.add_ends(flow, str(question), network, every_seconds, lab_id)
    if as_json:
        print(json.dumps(_as_dict(watch), indent=2, ensure_ascii=False))
        return
    print(visible(f"{watch.id} watches {watch.title} every {elapsed(watch.every_seconds)}, {watch.network}"))
    if result is not None:
        _tell_walks(result)
        _tell_limits(result)
    option = option_of(workspace.root)
    print(f"Run it now: ghost watch run {watch.id}{option}   By itself: ghost serve{option}, or ghost run{option}")


def list_watches(workspace_option: Path | None, *, as_json: bool) -> None:
    watches = _runs(open_workspace(workspace_option, Settings())).watches.all()
    if as_json:
        print(json.dumps([_as_dict(watch) for watch in watches], indent=2, ensure_ascii=False))
        return
    if not watches:
        print("No path is watched: ghost watch add SESSION, or ghost watch add SOURCE DESTINATION PORT")
    for watch in watches:
        last = watch.runs[-1] if watch.runs else None
        told = f"{last.outcome.replace('_', ' ')} at {_time(last.at)}" if last else "not run yet"
        open_drifts = f", {plural(len(watch.drifts), 'drift')}" if watch.drifts else ""
        every = elapsed(watch.every_seconds)
        print(visible(f"{watch.id}  {watch.title}  every {every}, next {_time(watch.due_at)}  {told}{open_drifts}"))
        if last is not None and last.why:
            print(visible(f"    {last.why}"))


def run(watch_id: str | None, workspace_option: Path | None, *, as_json: bool) -> int:
    """Run one watch, or all, now. Returns the highest exit status of their outcomes."""
    workspace = open_workspace(workspace_option, Settings())
    runs = _runs(workspace)
    ids = [watch_id] if watch_id is not None else [watch.id for watch in runs.watches.all()]
    if not ids:
        raise UsageError("no path is watched: ghost watch add SESSION, or ghost watch add SOURCE DESTINATION PORT")
    results = []
    for each in ids:
        asked = _asked(runs.watches.get(each))
        results.append(runs.run(each))
        if not as_json:
            _tell(runs.watches.get(each), results[-1], asked, _questions(workspace), option_of(workspace.root))
    if as_json:
        print(json.dumps([result.model_dump(mode="json") for result in results], indent=2, ensure_ascii=False))
    return max(STATUS[result.outcome] for result in results)


def remove(watch_id: str, workspace_option: Path | None) -> None:
    workspace = open_workspace(workspace_option, Settings())
    watch, withdrawn = _runs(workspace).remove(watch_id)
    print(visible(f"{watch.id} is removed: {watch.title}. The records of its runs stay."))
    for query_id in withdrawn:
        print(f"Its question {query_id} is withdrawn.")


@contextmanager
def watching(settings: Settings, root: Path, engine: Engine) -> Iterator[None]:
    """Run the due watches and checks of fixes of a workspace meanwhile; `engine` is told what they find."""
    cancelled, cancel = os.pipe()
    try:
        workspace, open_shell = Workspace(root), _shells(replace(settings, workspace=root), cancelled)
        questions = _Questions(lambda: nullcontext(engine.interrupts))
        runs = WatchRuns(workspace, open_shell, SystemClock(), questions)
        checks = FixCheckRuns(workspace, open_shell, SystemClock(), lambda *told: engine.ingest([_fix_check(*told)]))
        steps = (runs.ask_open, runs.run_due, checks.tell_open, checks.run_due)
        with scheduled(steps, end_command=lambda: os.write(cancel, b".")):
            yield
    finally:
        os.close(cancelled)
        os.close(cancel)


def _fix_check(session: Session, record: Mapping[str, Any]) -> Stimulus:
    """Return what a check of a fix found, as the mind is told of it."""
    outcome, of, by = str(record["outcome"]).replace("_", " ").upper(), session.session_id, str(record["records"])
    return Stimulus(
        id=f"mended:{by}",
        source=FIX_CHECK,
        content=f"Was it mended? {first_fault(session)}: {outcome}, {record['why']}. Records: {of} before, {by} now.",
        metadata={"session_id": of, "outcome": record["outcome"]},
        ts=datetime.fromisoformat(str(record["at"])).timestamp(),
    )


def seconds_of(every: str) -> float:
    """Return the seconds of `15m`, `6h` or `1d`."""
    form = _EVERY.fullmatch(every.strip())
    seconds = int(form[1]) * SECONDS[form[2]] if form else 0
    if not MIN_EVERY <= seconds <= MAX_EVERY:
        raise UsageError(f"--every is {every[:40]!r}: give minutes, hours or days, from 1m to 30d, such as 15m")
    return float(seconds)


def _runs(workspace: Workspace) -> WatchRuns:
    settings = replace(Settings(), workspace=workspace.root)
    if settings.private:
        raise UsageError("a walk compares addresses, which private mode hides: unset GHOST_PRIVATE for ghost watch")
    private_dir(workspace.root)
    return WatchRuns(workspace, _shells(settings), SystemClock(), _questions(workspace))


def _questions(workspace: Workspace) -> _Questions:
    settings = replace(Settings(), workspace=workspace.root)

    @contextmanager
    def opened() -> Iterator[Interrupts]:
        with opened_memory(settings) as memory:
            expiry = settings.interrupt_expiry_seconds
            yield Interrupts(memory.store, SystemClock(), expiry, redact=without_secrets)

    return _Questions(opened)


@dataclass(frozen=True)
class _Questions:
    opened: Callable[[], AbstractContextManager[Interrupts]]

    def ask(self, question: str, reason: str) -> str:
        with self.opened() as interrupts:
            known = interrupts.answered_before(question)
            is_answered = known is not None and known.question == question and _is_yes(known.answer)
            return known.id if known is not None and is_answered else interrupts.create(question, reason)

    def answer_to(self, query_id: str) -> str | None:
        """Return the answer of a question that somebody answered."""
        with self.opened() as interrupts:
            query = interrupts.get(query_id)
            return query.answer if query is not None and query.status is QueryStatus.ANSWERED else None

    def withdraw(self, query_id: str, why: str) -> bool:
        with self.opened() as interrupts:
            return interrupts.withdraw(query_id, why)

    def is_refused(self, query_id: str) -> bool:
        answer = self.answer_to(query_id)
        return answer is not None and not _is_yes(answer)


def _is_yes(answer: str | None) -> bool:
    return (answer or "").strip().casefold().startswith("yes")


def _shells(settings: Settings, cancelled: int | None = None) -> OpenShell:
    """Return what opens a read-only shell, for SAFE commands alone."""

    def opened(lab_of: str, network: str, session_id: str) -> SafeExecShell:
        if settings.private:
            raise UsageError("a walk compares addresses, which private mode hides")
        az_lab = lab_behind_az()
        lab = own_lab_of(lab_of, network, settings.workspace, az_lab)
        return SafeExecShell(
            session_id,
            audit_dir=settings.audit_dir,
            timeout_seconds=settings.command_timeout_seconds,
            roots=[Path.cwd(), settings.workspace],
            read_only=True,
            cancelled=cancelled,
            **lab_programs(lab or az_lab, own_az=lab is None),
        )

    return opened


def _asked(watch: Watch) -> list[str]:
    return [drift.query_id for drift in watch.drifts if drift.query_id]


def _tell(watch: Watch, result: WatchResult, asked_before: Sequence[str], questions: _Questions, option: str) -> None:
    print(visible(f"{watch.id}  {watch.title}"))
    print(_WORDS[result.outcome] if not result.why else f"{_WORDS[result.outcome]} {visible(result.why)}")
    _tell_walks(result)
    for change in result.changes:
        print(visible(f"  {change['flow']}"))
        print(visible(f"    before: {change['before']}"))
        print(visible(f"    now:    {change['now']}"))
    if result.outcome == "drift":
        by = "; ".join(result.changed_by) or "not known: the activity log shows no change of this path, or was not read"
        print(visible(f"  changed: {by}"))
    for noted in result.noted:
        print(visible(f"  noted, decides nothing here: {noted}"))
    if result.outcome != "not_known":
        _tell_limits(result)
    withdrawn = [each for each in asked_before if each not in _asked(watch)]
    for each in withdrawn if result.outcome == "drift" else ():
        print(f"Question {each} is withdrawn: the path is as it was before it.")
    if asked := [drift.query_id for drift in watch.drifts if drift.session_id == result.session_id and drift.query_id]:
        answer = questions.answer_to(asked[0])
        again = (
            f"ghost answer {asked[0]} yes{option}" if answer is None else f"{asked[0]} is answered: {visible(answer)}"
        )
        print(f"Asked whether it was intended: {again}")
    elif result.outcome == "drift":
        print("Nobody is asked: " + ("the path went back." if withdrawn else "the same was told within a day."))
    if result.head is not None:  # of a run that ended early there is nothing to check
        print(f"Check it: ghost audit verify {result.session_id}{option}")


def _tell_walks(result: WatchResult) -> None:
    for each in result.walks:
        why = f": {each['why']}" if each["why"] else ""
        print(visible(f"  {each['flow']}: {each['outcome']}{why}"))


def _tell_limits(result: WatchResult) -> None:
    for reason in result.not_known:
        print(visible(f"  not known: {reason}"))


def _as_dict(watch: Watch) -> dict[str, object]:
    return watch.model_dump(mode="json")


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%m-%d %H:%MZ")
