"""A simulated Azure for practice, demonstrations and tests: programs that answer from one world.

The investigating rooms cannot tell it from the real one: they see programs of the usual names, and may not import this
room.
"""

from ghost.lab.arm.emulator_state import UNSET_BESIDE_A_LAB, RunningEmulator
from ghost.lab.background_labs import in_foreground, lab_behind_az, running_labs, start_lab, stop_lab
from ghost.lab.launchers import RunningLab, reopen, start
from ghost.lab.scenario import (
    Approval,
    Approvals,
    Briefing,
    ExpectedCause,
    Scenario,
    load_scenario,
    read_scenario,
    scenario_names,
)
from ghost.lab.world import World
from ghost.lab.world_validation import world_from_dict

__all__ = [
    "UNSET_BESIDE_A_LAB",
    "Approval",
    "Approvals",
    "Briefing",
    "ExpectedCause",
    "RunningEmulator",
    "RunningLab",
    "Scenario",
    "World",
    "in_foreground",
    "lab_behind_az",
    "load_scenario",
    "read_scenario",
    "reopen",
    "running_labs",
    "scenario_names",
    "start",
    "start_lab",
    "stop_lab",
    "world_from_dict",
]
