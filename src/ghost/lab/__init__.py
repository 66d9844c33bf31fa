"""A simulated Azure for practice, demonstrations and tests: programs that answer from one world.

The investigating rooms cannot tell it from the real one: they see programs of the usual names, and may not import this
room.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ghost.lab.arm.emulator_state import UNSET_BESIDE_A_LAB, RunningEmulator
    from ghost.lab.background_labs import in_foreground, lab_behind_az, running_labs, start_lab, stop_lab
    from ghost.lab.briefing import Answer, Approval, Approvals, Briefing
    from ghost.lab.evaluation.memory_effects import (
        MemoryEffect,
        Remembered,
        effects_as_json,
        memory_sums,
        remembered,
        write_stopped,
    )
    from ghost.lab.evaluation.processes import GHOST, Job, run_side_by_side
    from ghost.lab.evaluation.results import COUNTS, Row, results_as_json, summary, worse_than
    from ghost.lab.evaluation.scoring import class_of, score
    from ghost.lab.launchers import RunningLab, reopen, start
    from ghost.lab.scenario import (
        Case,
        Scenario,
        TapeScenario,
        headlines,
        load_case,
        load_scenario,
        read_scenario,
        scenario_names,
        tape_names,
    )
    from ghost.lab.scenario_checks import Finding, findings
    from ghost.lab.scenario_schema import schema_of_scenarios
    from ghost.lab.shell_programs import ShellPrograms, lab_programs
    from ghost.lab.truth import Fault, Symptom, Truth
    from ghost.lab.world import World
    from ghost.lab.world_validation import world_from_dict

__all__ = [
    "COUNTS",
    "GHOST",
    "UNSET_BESIDE_A_LAB",
    "Answer",
    "Approval",
    "Approvals",
    "Briefing",
    "Case",
    "Fault",
    "Finding",
    "Job",
    "MemoryEffect",
    "Remembered",
    "Row",
    "RunningEmulator",
    "RunningLab",
    "Scenario",
    "ShellPrograms",
    "Symptom",
    "TapeScenario",
    "Truth",
    "World",
    "class_of",
    "effects_as_json",
    "findings",
    "headlines",
    "in_foreground",
    "lab_behind_az",
    "lab_programs",
    "load_case",
    "load_scenario",
    "memory_sums",
    "read_scenario",
    "remembered",
    "reopen",
    "results_as_json",
    "run_side_by_side",
    "running_labs",
    "scenario_names",
    "schema_of_scenarios",
    "score",
    "start",
    "start_lab",
    "stop_lab",
    "summary",
    "tape_names",
    "world_from_dict",
    "worse_than",
    "write_stopped",
]

_MODULES = {
    "MemoryEffect": "ghost.lab.evaluation.memory_effects",
    "Remembered": "ghost.lab.evaluation.memory_effects",
    "effects_as_json": "ghost.lab.evaluation.memory_effects",
    "memory_sums": "ghost.lab.evaluation.memory_effects",
    "remembered": "ghost.lab.evaluation.memory_effects",
    "write_stopped": "ghost.lab.evaluation.memory_effects",
    "Answer": "ghost.lab.briefing",
    "Approval": "ghost.lab.briefing",
    "Approvals": "ghost.lab.briefing",
    "Briefing": "ghost.lab.briefing",
    "Case": "ghost.lab.scenario",
    "Fault": "ghost.lab.truth",
    "GHOST": "ghost.lab.evaluation.processes",
    "Job": "ghost.lab.evaluation.processes",
    "COUNTS": "ghost.lab.evaluation.results",
    "Row": "ghost.lab.evaluation.results",
    "RunningEmulator": "ghost.lab.arm.emulator_state",
    "RunningLab": "ghost.lab.launchers",
    "Scenario": "ghost.lab.scenario",
    "ShellPrograms": "ghost.lab.shell_programs",
    "Symptom": "ghost.lab.truth",
    "TapeScenario": "ghost.lab.scenario",
    "Truth": "ghost.lab.truth",
    "UNSET_BESIDE_A_LAB": "ghost.lab.arm.emulator_state",
    "World": "ghost.lab.world",
    "class_of": "ghost.lab.evaluation.scoring",
    "Finding": "ghost.lab.scenario_checks",
    "findings": "ghost.lab.scenario_checks",
    "in_foreground": "ghost.lab.background_labs",
    "lab_behind_az": "ghost.lab.background_labs",
    "lab_programs": "ghost.lab.shell_programs",
    "load_case": "ghost.lab.scenario",
    "load_scenario": "ghost.lab.scenario",
    "read_scenario": "ghost.lab.scenario",
    "reopen": "ghost.lab.launchers",
    "results_as_json": "ghost.lab.evaluation.results",
    "run_side_by_side": "ghost.lab.evaluation.processes",
    "running_labs": "ghost.lab.background_labs",
    "headlines": "ghost.lab.scenario",
    "scenario_names": "ghost.lab.scenario",
    "schema_of_scenarios": "ghost.lab.scenario_schema",
    "score": "ghost.lab.evaluation.scoring",
    "start": "ghost.lab.launchers",
    "start_lab": "ghost.lab.background_labs",
    "stop_lab": "ghost.lab.background_labs",
    "summary": "ghost.lab.evaluation.results",
    "tape_names": "ghost.lab.scenario",
    "world_from_dict": "ghost.lab.world_validation",
    "worse_than": "ghost.lab.evaluation.results",
}


def __getattr__(name: str) -> Any:
    """Everything is imported when it is first asked for: the lab's programs start by the hundred."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value
