"""What memory does to an investigation: to a second run of an incident, and where it misleads.

It misleads where the network that it remembers had another fault: the machines at the ends were stopped, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ghost.errors import LabError
from ghost.lab.evaluation.results import Row
from ghost.lab.scenario import SCENARIOS, Scenario, load_case

MAY_COST: Final = 3
"""Commands that a misleading memory may cost."""
_OPINIONS: Final = ("az network watcher test-ip-flow", "az network watcher show-next-hop")
"""What confirms a cause that is seen already."""


@dataclass(frozen=True)
class Remembered:
    """One run: its row, and what is compared of its report."""

    row: Row
    causes: tuple[tuple[str, str, str], ...]
    """Kind, resource and rule."""
    coverage: tuple[tuple[str, str], ...]
    """Layer and status."""
    seen_at: int | None
    """The number of the command with which the first cause is seen; None without a cause."""


@dataclass(frozen=True)
class MemoryEffect:
    name: str
    group: str
    first: Remembered
    second: Remembered
    misled: Remembered | None
    """None: the scenario is a tape, or no machine is an end of its flow."""

    @property
    def worse(self) -> list[str]:
        """What is not as it should be, as clauses."""
        told, first, second = [], self.first, self.second
        for run in filter(None, (first, second, self.misled)):
            told += [f"no report: {run.row.error}"] if run.row.error else []
        if told:
            return told
        if first.causes and 2 * second.row.commands > first.row.commands:
            told.append(f"{second.row.commands} of {first.row.commands} commands in the second run")
        told += ["another cause in the second run"] if second.causes != first.causes else []
        told += ["another coverage in the second run"] if second.coverage != first.coverage else []
        if self.misled is not None:
            cost = self.misled.row.commands - first.row.commands
            same = (self.misled.causes, self.misled.row.outcome) == (first.causes, first.row.outcome)
            told += [f"misled: {cost} commands more"] if cost > MAY_COST else []
            told += [] if same else ["misled: another verdict"]
        return told


def remembered(row: Row, report: Mapping[str, Any]) -> Remembered:
    causes = [cause for cause in report.get("causes") or () if cause["supported"]]
    opinions = {each["audit_id"] for each in report.get("evidence") or () if each["command"].startswith(_OPINIONS)}
    cited = [
        [
            int(i.rpartition("_")[2])
            for i in cause["audit_ids"]
            if i.startswith(report["session_id"]) and i not in opinions
        ]
        for cause in causes
    ]
    return Remembered(
        row,
        tuple(sorted((cause["kind"], cause["resource"].casefold(), str(cause["rule"] or "")) for cause in causes)),
        tuple((each["layer"], each["status"]) for each in report.get("coverage") or ()),
        min((max(numbers) for numbers in cited if numbers), default=None),
    )


def effects_as_json(effects: Sequence[MemoryEffect]) -> dict[str, Any]:
    """Return the content of the file of `ghost eval --memory --json`."""
    rows = [{**asdict(effect), "worse": effect.worse} for effect in effects]
    groups = sorted({effect.group for effect in effects})
    classes = {group: memory_sums([each for each in effects if each.group == group]) for group in groups}
    return {"scenarios": rows, "summary": {**memory_sums(effects), "classes": classes}}


def memory_sums(effects: Sequence[MemoryEffect]) -> dict[str, Any]:
    """Return sums over the scenarios in which the first run found a cause, and over those with a misleading memory."""
    found = [each for each in effects if each.first.causes]
    misled = [(each.first, each.misled) for each in effects if each.misled is not None]
    return {
        "scenarios": len(effects),
        "causes_found": len(found),
        "commands_first": sum(each.first.row.commands for each in found),
        "commands_second": sum(each.second.row.commands for each in found),
        "seen_at_first": sum(each.first.seen_at or 0 for each in found),
        "seen_at_second": sum(each.second.seen_at or 0 for each in found),
        "asked_first": sum(each.first.row.risky_asked for each in found),
        "asked_second": sum(each.second.row.risky_asked for each in found),
        "at_most_half": sum(2 * each.second.row.commands <= each.first.row.commands for each in found),
        "same_cause": sum(each.second.causes == each.first.causes for each in effects),
        "same_coverage": sum(each.second.coverage == each.first.coverage for each in effects),
        "misled": len(misled),
        "misled_commands_more": sum(other.row.commands - first.row.commands for first, other in misled),
        "misled_most_more": max((other.row.commands - first.row.commands for first, other in misled), default=0),
        "misled_same_verdict": sum(
            (other.causes, other.row.outcome) == (first.causes, first.row.outcome) for first, other in misled
        ),
        "worse": sum(bool(each.worse) for each in effects),
    }


def write_stopped(scenario: str, file: Path) -> bool:
    """Write a scenario with the machines at the ends of its flow stopped, under its own name; return whether any is."""
    case = load_case(scenario)
    if not isinstance(case, Scenario):
        return False
    ends = {str(end) for flow in case.flows[:1] for end in (flow.source, flow.destination)}
    stopped = [machine.name for machine in case.world.machines if machine.name in ends]
    if not stopped:
        return False
    source = SCENARIOS / f"{scenario}.toml"
    edits = "".join(f'\n[[edits]]\nmachine = "{name}"\nset = {{ power = "deallocated" }}\n' for name in stopped)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        (source if source.exists() else Path(scenario)).read_text(encoding="utf-8") + edits, encoding="utf-8"
    )
    try:
        load_case(str(file))
    except LabError:
        return False
    return True
