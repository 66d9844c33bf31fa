"""What was changed in the day before, on the resources that a symptom names: as told, and as activity logs told."""

from __future__ import annotations

import dataclasses

from ghost.mind import Finding, Finished, ResourceChange, Stimulus, changed_before, remember
from tests.mind.minds import START, SteppedClock, mind

HOUR = 3600.0
LOGGED = ResourceChange(START - 2 * HOUR, "j...@corp.example changed securityRules deny-pg of db-nsg.", "sh_9")
FINISHED = Finished(
    session_id="ghost_20260101_120000",
    ended_at=START - HOUR,
    symptom="web-vm cannot reach db-vm on port 5432",
    network="Azure",
    confidence="high",
    conclusion="db-nsg denies it",
    cause="db-nsg denies it",
    audit_ids=("sh_1",),
    findings=(Finding("nsg_inbound", True, "denied", ("sh_1",)),),
    changes=(LOGGED, ResourceChange(START - 30 * HOUR, "j...@corp.example changed virtualMachines web-vm.", "sh_9")),
)
TOLD = [
    (-25, "Ana moved db-vm to 10.4.0.6"),
    (-3, "Ana moved db-vm to 10.4.0.7 on Tuesday"),
    (-2, "db-vm is fine"),
    (-1, "Kofi renamed cart-vm"),
    (1, "Omar restarted db-vm"),
]


def test_changes_of_the_day_before_are_found_by_the_names_of_a_symptom_newest_first(tmp_path):
    engine = mind(tmp_path, clock=SteppedClock())
    for number, (hours, text) in enumerate(TOLD):
        engine.ingest([Stimulus(id=f"stim:{number}", source="cli", content=text, ts=START + hours * HOUR)])
    engine.cycle()
    remember(engine.ltm, FINISHED)
    remember(engine.ltm, dataclasses.replace(FINISHED, session_id="ghost_2", network="lab blocked-port (SIMULATED)"))

    found = changed_before(engine.ltm, "app-vm times out to db-vm", "Azure", START)
    assert [(change.at, change.resource, change.what, change.source) for change in found] == [
        (START - 2 * HOUR, "deny-pg", LOGGED.what, "activity log, ghost_20260101_120000"),
        (START - 3 * HOUR, "db-vm", TOLD[1][1], "told by cli"),
    ]
    assert found[0].audit_ids == "sh_9"
    assert all(change.memory_id.startswith("mem:") for change in found)
    (other,) = changed_before(engine.ltm, "cart-vm is slow", "Azure", START)
    assert other.what == TOLD[3][1]
    (later,) = changed_before(engine.ltm, "db-vm is slow", "Azure", START + HOUR, seconds=HOUR / 2)
    assert later.what == TOLD[4][1]
    assert changed_before(engine.ltm, "everything is slow", "Azure", START) == []
    by_rule = changed_before(engine.ltm, "is db-nsg wrong?", "Azure", START)
    assert [change.what for change in by_rule] == [LOGGED.what], "its own name finds a change too"
