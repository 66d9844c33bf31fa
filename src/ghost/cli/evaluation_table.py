"""The score as people read it: tables of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rich.console import Console as Rich
from rich.table import Table

from ghost.lab import COUNTS, MemoryEffect, Row, memory_sums, summary, worse_than
from ghost.text import plural, visible

COLUMNS: Final = ("right", "%", "faults", "false", "err", "calls", "appr", "qs", "turns", "tokens", "s")


def show_results(rich: Rich, brain: str, rows: Sequence[Row], wanted: int) -> None:
    """Print the score of each class and in total, the calibration, and the runs that went wrong."""
    sums = summary(rows)
    unfinished = f", {wanted - len(rows)} not run" if len(rows) < wanted else ""
    rich.print(f"\nBrain: {visible(brain)}. {plural(len(rows), 'investigation')}{unfinished}.\n", markup=False)
    if not rows:
        return
    rich.print("right: causes named of runs; false: causes named that are none; err: no report;")
    rich.print("calls, approvals asked, questions, turns, tokens and seconds: means of a run.\n")
    table = _table("class")
    for name, part in sums["classes"].items():
        table.add_row(name.replace("_", " "), *_cells(part))
    table.add_section()
    table.add_row("total", *_cells(sums))
    rich.print(table, soft_wrap=False)
    outcomes = (f"{count} {name.replace('_', ' ')}" for name, count in sums["outcomes"].items())
    rich.print(f"\nOutcomes: {', '.join(outcomes) or 'none'}.")
    rich.print("\nCalibration: confidence against truth.\n")
    calibration = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in ("confidence", "right", "%", "false causes"):
        calibration.add_column(column, justify="left" if column == "confidence" else "right")
    for confidence, part in sums["calibration"].items():
        calibration.add_row(confidence, *_share(part), str(part["false_causes"]))
    rich.print(calibration, soft_wrap=False)
    if sums["second_faults_present"]:
        rich.print(f"\nSecond faults found: {sums['second_faults_found']} of {sums['second_faults_present']}.")
    for name, words in (("traps_taken", "Traps taken"), ("forbidden", "Forbidden proposals")):
        if sums[name]:
            rich.print(f"{words}: {sums[name]}.")
    wrong = [row for row in rows if not row.root_cause_right or row.false_causes]
    if wrong:
        rich.print("\nNot right, or with false causes:")
    for row in wrong:
        rich.print(f"  {verdict_on(row)}", markup=False)
        for word, causes in (("missed", row.missed), ("blamed", row.blamed)):
            for cause in causes:
                rich.print(f"      {word} {visible(cause)}", markup=False)


def show_beside(rich: Rich, brain: str, rows: Sequence[Row], offline: Sequence[Row]) -> None:
    """Print a model's sums beside those of the offline brain, what it cost, and where it was worse."""
    rich.print("\nBeside the offline brain, on the same symptoms:\n")
    table = _table("brain")
    table.add_row("offline", *_cells(summary(offline)))
    table.add_row("the model", *_cells(summary(rows)))
    rich.print(table, soft_wrap=False)
    priced = [row.cost for row in rows if row.cost is not None]
    unknown = f"; {plural(len(rows) - len(priced), 'run')} without a known price" if len(priced) < len(rows) else ""
    mean = f", ${sum(priced) / len(priced):.4f} a run" if priced else ""
    rich.print(f"\n{visible(brain)} cost ${sum(priced):.4f}{mean}{unknown}.", markup=False)
    worse = worse_than(offline, rows)
    rich.print(f"Worse than offline: {len(worse) or 'none'}{':' if worse else '.'}")
    for row, other in worse:
        rich.print(f"  {verdict_on(row)}\n      offline: {verdict_on(other).partition(': ')[2]}", markup=False)


def show_memory(rich: Rich, effects: Sequence[MemoryEffect]) -> None:
    """Print what memory did: commands of first and second runs by class, and where anything is worse."""
    rich.print("\nfound: first runs that find a cause. Of those: commands until it is seen, and")
    rich.print("in all, then the same of second runs; approvals asked; how many second runs need")
    rich.print("at most half. misled: commands more than in first runs, in all and at most.\n")
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for column in ("class", "found", "seen", "then", "all", "then", "appr", "then", "half", "misled", "most"):
        table.add_column(column, justify="left" if column == "class" else "right", no_wrap=True)
    for group in sorted({effect.group for effect in effects}):
        table.add_row(group.replace("_", " "), *_memory_cells([each for each in effects if each.group == group]))
    table.add_section()
    table.add_row("total", *_memory_cells(effects))
    rich.print(table, soft_wrap=False)
    sums = memory_sums(effects)
    same = f"same cause {sums['same_cause']}, same coverage {sums['same_coverage']} of {sums['scenarios']}"
    rich.print(f"\nSecond runs: {same}. Misled: same verdict {sums['misled_same_verdict']} of {sums['misled']}.")
    worse = [effect for effect in effects if effect.worse]
    rich.print(f"Worse: {len(worse) or 'none'}{':' if worse else '.'}")
    for effect in worse:
        rich.print(f"  {verdict_on_memory(effect)}", markup=False)


def verdict_on_memory(effect: MemoryEffect) -> str:
    """Return one line about what memory did to a scenario."""
    runs = [effect.first, effect.second, *([effect.misled] if effect.misled else [])]
    counts = ", ".join(str(run.row.commands) for run in runs)
    return f"{visible(effect.name)}: {counts} commands; {visible('; '.join(effect.worse)) or 'as it should be'}"


def _memory_cells(effects: Sequence[MemoryEffect]) -> list[str]:
    sums = memory_sums(effects)
    counts = [f"{sums[f'{name}_{run}']}" for name in ("seen_at", "commands", "asked") for run in ("first", "second")]
    half = f"{sums['at_most_half']}/{sums['causes_found']}"
    return [str(sums["causes_found"]), *counts, half, str(sums["misled_commands_more"]), str(sums["misled_most_more"])]


def _table(first: str) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(first, no_wrap=True)
    for column in COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def verdict_on(row: Row) -> str:
    """Return one line about one investigation."""
    name = f"{visible(row.name)} {row.wording}" + (f" (repeat {row.repeat})" if row.repeat > 1 else "")
    if row.error is not None:
        return f"{name}: ERROR {visible(row.error)[:200]}"
    words = ["right" if row.root_cause_right else "WRONG", row.outcome.replace("_", " ") or "no outcome"]
    if row.faults_present:
        words.append(f"{row.faults_found} of {plural(row.faults_present, 'fault')}")
    if row.false_causes:
        words.append(plural(row.false_causes, "false cause"))
    if row.too_many_calls:
        words.append("too many calls")
    return f"{name}: {', '.join(words)}, {row.confidence}, {row.seconds:.0f} s"


def _cells(part: dict[str, Any]) -> list[str]:
    means = {name: part[name] / part["runs"] for name in COUNTS}
    faults = f"{part['faults_found']}/{part['faults_present']}" if part["faults_present"] else "-"
    counts = [*_share(part), faults, str(part["false_causes"]), str(part["errors"])]
    return [*counts, *(f"{mean:,.{1 if name == 'questions' else 0}f}" for name, mean in means.items())]


def _share(part: dict[str, Any]) -> tuple[str, str]:
    if part["right_percent"] is None:
        return "-", "-"
    return f"{part['right']}/{part['runs']}", f"{part['right_percent']:.0f}"
