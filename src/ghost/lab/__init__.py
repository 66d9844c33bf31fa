"""A simulated Azure to practise, demonstrate and test on: a directory of programs that answer from one world.

What investigates cannot tell it from the real thing: it only sees programs of the usual names. This room may not be
imported by what investigates.
"""

from ghost.lab.arm.emulator_state import UNSET_BESIDE_A_LAB, RunningEmulator
from ghost.lab.background_labs import in_foreground, lab_behind_az, put_up, standing, take_down
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
    "put_up",
    "read_scenario",
    "reopen",
    "scenario_names",
    "standing",
    "start",
    "take_down",
    "world_from_dict",
]
