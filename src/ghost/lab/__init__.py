"""A simulated Azure to practise, demonstrate and test on: a directory of programs that answer from one world.

What investigates cannot tell it from the real thing: it only sees programs of the usual names. This room may not be
imported by what investigates.
"""

from ghost.lab.running import RunningLab, reopen, start
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

__all__ = [
    "Approval",
    "Approvals",
    "Briefing",
    "ExpectedCause",
    "RunningLab",
    "Scenario",
    "World",
    "load_scenario",
    "read_scenario",
    "reopen",
    "scenario_names",
    "start",
]
