"""`ghost eval`: investigates scenarios, each in a process and a directory of its own, and scores the reports."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from glob import glob
from pathlib import Path
from typing import Final

from ghost.agent import Evidence, Workspace, load_session, read_conversation
from ghost.brain import Turn
from ghost.cli.brain_choice import Wish, choose_brain
from ghost.cli.evaluation_table import show_beside, show_memory, show_results, verdict_on, verdict_on_memory
from ghost.cli.investigation_command import INCONCLUSIVE
from ghost.cli.terminal import to_stderr, to_stdout
from ghost.config import Settings
from ghost.errors import RecordError, SessionError, UsageError
from ghost.lab import (
    GHOST,
    Case,
    Job,
    MemoryEffect,
    Remembered,
    Row,
    class_of,
    effects_as_json,
    load_case,
    remembered,
    results_as_json,
    run_side_by_side,
    scenario_names,
    score,
    summary,
    tape_names,
    write_stopped,
)
from ghost.records import private_dir, read_json, write_json
from ghost.text import did_you_mean, visible

STDOUT: Final = Path("-")
OFFLINE: Final = "offline"
NOT_INHERITED: Final = {"GHOST_WORKSPACE", "DB_PATH", "GHOST_DATABASE_URL", "LOG_DIR", "GHOST_PRIVATE"}
"""Settings that an investigation of a simulated network has of its own: no memories, and real names in its report."""


@dataclass(frozen=True)
class Evaluation:
    wish: Wish
    patterns: Sequence[str]
    """Names and files of scenarios, with wildcards; empty for all of Ghost's own."""
    all_wordings: bool
    repeat: int
    jobs: int
    timeout_seconds: float
    json_file: Path | None
    fail_under: float | None
    keep_in: Path | None
    """Where sessions and reports are kept; None to delete them."""
    memory: bool = False
    """Measure what memory does to a second run, and one that misleads."""


@dataclass(frozen=True)
class Run:
    scenario: Case
    file: str
    """The name or path by which an investigation loads the scenario."""
    wording: int
    repeat: int
    offline: bool = False
    """Whether it is made to stand beside a model's."""

    @property
    def empty_row(self) -> Row:
        return Row(name=self.scenario.name, wording=self.wording, repeat=self.repeat, group=class_of(self.scenario))


def evaluate(evaluation: Evaluation) -> int:
    """Run all investigations. Returns the exit status; after Ctrl-C, shows what is done and raises it again."""
    settings, runs = Settings(), list(_runs(evaluation))
    if evaluation.memory:
        return _evaluate_memory(evaluation, settings, runs)
    rows: dict[int, Row] = {}
    interrupted: KeyboardInterrupt | None = None
    with _directory(evaluation.keep_in) as directory:
        brain = choose_brain(evaluation.wish, settings, Workspace(directory)).brain.name
        if brain != OFFLINE:
            runs += [replace(run, offline=True) for run in runs if run.repeat == 1]
        _write(evaluation.json_file, brain, [], [])
        try:
            # no name of a scenario in a path, which may tell a brain the cause
            places = [directory / f"{number:03}" for number in range(1, len(runs) + 1)]
            with contextlib.closing(_investigated(runs, places, evaluation, settings)) as investigated:
                for number, row in investigated:
                    rows[number] = row
                    of = f" ({OFFLINE})" if runs[number].offline else ""
                    to_stderr().print(f"[{len(rows)}/{len(runs)}]{of} {verdict_on(row)}", markup=False)
                    _write(evaluation.json_file, brain, *_in_order(rows, runs))
        except KeyboardInterrupt as interrupt:
            interrupted = interrupt
    done, beside = _in_order(rows, runs)
    if evaluation.json_file == STDOUT:
        print(json.dumps(results_as_json(brain, done, beside), indent=2))
    rich = to_stderr() if evaluation.json_file == STDOUT else to_stdout()
    show_results(rich, brain, done, sum(not run.offline for run in runs))
    if beside:
        show_beside(rich, brain, done, beside)
    if evaluation.keep_in:
        to_stderr().print(f"Sessions and reports: {directory}", markup=False)
    if interrupted is not None:
        raise interrupted
    right = summary(done)["right_percent"]
    return int(evaluation.fail_under is not None and (right is None or right < evaluation.fail_under))


def _evaluate_memory(evaluation: Evaluation, settings: Settings, runs: Sequence[Run]) -> int:
    """Run each twice in one memory, and once in one that misleads. Returns the exit status: 1 if any is worse."""
    effects: list[MemoryEffect] = []
    with _directory(evaluation.keep_in) as directory:
        for number, run in enumerate(runs, 1):
            told = _with_memory(run, directory / f"{number:03}", evaluation, settings)
            effects.append(told)
            to_stderr().print(f"[{number}/{len(runs)}] {verdict_on_memory(told)}", markup=False)
            if evaluation.json_file not in (None, STDOUT):
                write_json(evaluation.json_file.absolute(), effects_as_json(effects))
    if evaluation.json_file == STDOUT:
        print(json.dumps(effects_as_json(effects), indent=2))
    show_memory(to_stderr() if evaluation.json_file == STDOUT else to_stdout(), effects)
    return int(any(effect.worse for effect in effects))


def _with_memory(run: Run, place: Path, evaluation: Evaluation, settings: Settings) -> MemoryEffect:
    """Run a scenario twice in one workspace; and once where the workspace remembers another fault of that network."""

    def at_once(*each: tuple[Run, Path]) -> list[Remembered]:
        made = dict(_investigated([run for run, _ in each], [place for _, place in each], evaluation, settings))
        return [_remembered(made[number], place) for number, (_, place) in enumerate(each)]

    file = place / "world" / f"{run.scenario.name}.toml"
    stopped = write_stopped(run.file, file)
    steps = [(run, place / "first")]
    if stopped:
        steps.append((replace(run, file=str(file)), place / "other"))
    first, *_ = at_once(*steps)
    second, *misled = at_once(*[(run, path) for _, path in steps])
    return MemoryEffect(run.scenario.name, class_of(run.scenario), first, second, misled[0] if misled else None)


def _remembered(row: Row, place: Path) -> Remembered:
    workspace = Workspace(place)
    try:
        session, _ = load_session(workspace.session_file)
        report = read_json(session.paths(place).report_json)
    except (SessionError, RecordError, OSError):
        report = {}
    return remembered(row, report)


def _in_order(rows: dict[int, Row], runs: Sequence[Run]) -> tuple[list[Row], list[Row]]:
    """Return the rows of the brain that is measured, and those of the offline brain beside it."""
    ordered = [(runs[number].offline, row) for number, row in sorted(rows.items())]
    return [row for offline, row in ordered if not offline], [row for offline, row in ordered if offline]


def _investigated(
    runs: Sequence[Run], places: Sequence[Path], evaluation: Evaluation, settings: Settings
) -> Generator[tuple[int, Row]]:
    """Yield the number and the row of each run as it ends. `places`: the directories they run in."""
    jobs = [Job(_words(run, evaluation.wish), place) for run, place in zip(runs, places, strict=True)]
    inherited = {**os.environ, **settings.as_environment()}
    environment = {name: value for name, value in inherited.items() if name not in NOT_INHERITED}
    limit = evaluation.timeout_seconds
    with contextlib.closing(
        run_side_by_side(jobs, at_once=evaluation.jobs, timeout_seconds=limit, environment=environment)
    ) as ended:
        for end in ended:
            number = jobs.index(end.job)
            error = f"no report within {limit:g} s" if end.status is None else None
            if end.status not in (None, 0, INCONCLUSIVE):
                error = _last_line(end.job.errors) or f"exit status {end.status}"
            yield number, _row(runs[number], end.job.directory, round(end.seconds, 1), error)


def _runs(evaluation: Evaluation) -> Iterator[Run]:
    for file in _files(evaluation.patterns):
        scenario = load_case(file)
        wordings = len(scenario.symptoms) if evaluation.all_wordings else 1
        for wording in range(1, wordings + 1):
            for repeat in range(1, evaluation.repeat + 1):
                yield Run(scenario, file, wording, repeat)


def _files(patterns: Sequence[str]) -> list[str]:
    """Return names of scenarios and absolute paths of files. Raises `UsageError` for a pattern that nothing matches."""
    own, found = [*scenario_names(), *tape_names()], dict[str, None]()
    for pattern in patterns or ["*"]:
        if Path(pattern).suffix in {".toml", ".json"}:
            matching = [str(Path(path).absolute()) for path in sorted(glob(pattern))]  # noqa: PTH207 - may be absolute
        else:
            matching = [name for name in own if fnmatchcase(name, pattern)]
        if not matching:
            raise UsageError(
                f"no scenario matches {pattern!r}: {did_you_mean(pattern, own)}see ghost lab list, or ./mine/*.toml"
            )
        found.update(dict.fromkeys(matching))
    return list(found)


@contextlib.contextmanager
def _directory(keep_in: Path | None) -> Iterator[Path]:
    if keep_in is None:
        with tempfile.TemporaryDirectory(prefix="ghost-eval-", ignore_cleanup_errors=True) as temporary:
            yield Path(temporary)
        return
    kept = private_dir(keep_in.absolute())
    yield Path(tempfile.mkdtemp(prefix=f"eval-{datetime.now(UTC):%Y%m%d-%H%M%S}-", dir=kept))


def _words(run: Run, wish: Wish) -> tuple[str, ...]:
    wish = Wish(OFFLINE) if run.offline else wish
    options = {"--brain": wish.brain, "--model": wish.model, "--max-cost": wish.max_cost}
    chosen = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    symptom = run.scenario.symptoms[run.wording - 1].text
    return (*GHOST, "investigate", "--lab", run.file, "--workspace", ".", "--json", *chosen, "--", symptom)


def _row(run: Run, directory: Path, seconds: float, error: str | None) -> Row:
    """Return what the records of an investigation tell."""
    row = replace(run.empty_row, seconds=seconds, error=error)
    workspace = Workspace(directory)
    try:
        session, _ = load_session(workspace.session_file)
        paths = session.paths(workspace.root)
        records = Evidence(paths.shell_audit)
        conversation, _, _ = read_conversation(paths.turns, records)
        used = [message.usage for message in conversation if isinstance(message, Turn)]
        limit = run.scenario.truth.max_calls
        row = replace(
            row,
            commands=len(records),
            questions=sum(isinstance(message, Turn) and not message.tool_calls for message in conversation),
            risky_asked=sum(str(record.get("action")).startswith("user_") for record in records.values()),
            turns=session.turn_count,
            tokens=sum(usage.input_tokens + usage.output_tokens for usage in used),
            cost=sum(costs) if (costs := [usage.cost for usage in used if usage.cost is not None]) else None,
            too_many_calls=limit is not None and len(records) > limit,
        )
        if error is not None:
            return row
        report = read_json(paths.report_json)
    except (SessionError, RecordError, OSError) as unread:
        return replace(row, error=error or str(unread))
    symptom = run.scenario.symptoms[run.wording - 1]
    commands = [str(record.get("command")) for record in records.values()]
    return replace(row, **asdict(score(run.scenario, report, commands, symptom.flow)))


def _last_line(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return visible(next((line.strip() for line in reversed(lines) if line.strip()), "")).removeprefix("ghost: ")


def _write(file: Path | None, brain: str, rows: Sequence[Row], beside: Sequence[Row]) -> None:
    if file not in (None, STDOUT):
        write_json(file.absolute(), results_as_json(brain, rows, beside))
