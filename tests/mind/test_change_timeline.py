"""What was changed in the day before, on the resources that a symptom names: as told, and as activity logs told."""

from __future__ import annotations

import dataclasses
import time
from datetime import UTC, datetime, timedelta

import pytest

from ghost.mind import Finding, Finished, ResourceChange, Stimulus, changed_before, remember
from ghost.mind.told_times import moment_told
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
    (-9, "Ana moved db-vm to 10.4.0.5 on Tuesday"),
    (-3, "Ana moved db-vm to 10.4.0.7"),
    (-0.5, "cart-vm was moved yesterday at 12:10"),
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
        (START - 3 * HOUR, "db-vm", TOLD[2][1], "told by cli"),
    ]
    assert [change.is_told_at for change in found] == [False, True]
    assert found[0].audit_ids == "sh_9"
    assert all(change.memory_id.startswith("mem:") for change in found)
    other, moved = changed_before(engine.ltm, "cart-vm is slow", "Azure", START)
    assert other.what == TOLD[5][1]
    assert (moved.what, moved.is_told_at) == (TOLD[3][1], False)
    assert datetime.fromtimestamp(moved.at, UTC) == datetime(2025, 10, 8, 12, 10, tzinfo=UTC)
    (later,) = changed_before(engine.ltm, "db-vm is slow", "Azure", START + HOUR, seconds=HOUR / 2)
    assert later.what == TOLD[6][1]
    assert changed_before(engine.ltm, "everything is slow", "Azure", START) == []
    by_rule = changed_before(engine.ltm, "is db-nsg wrong?", "Azure", START)
    assert [change.what for change in by_rule] == [LOGGED.what], "its own name finds a change too"


NOW = datetime(2025, 10, 9, 8, 53, tzinfo=UTC)
"""A Thursday."""
WORDS_OF_TIME = """
db-vm was moved on Tuesday             | 10-07 23:59
db-vm was moved on Thursday            | 10-09 08:53
db-vm was moved last Thursday at 3 pm  | 10-02 15:00
db-vm was moved on Friday at 10:00     | 10-03 10:00
yesterday Ana moved db-vm              | 10-08 23:59
since 14:00 the route is changed       | 10-08 14:00
the next hop was changed at 07:15      | 10-09 07:15
changed last night at 22:40            | 10-08 22:40
moved this morning                     | 10-09 08:53
moved yesterday evening                | 10-08 23:59
restarted half an hour ago             | 10-09 08:23
two days ago Omar removed it           | 10-07 08:53
removed last week                      | 10-05 23:59
removed on 2025-10-01                  | 10-01 23:59
removed 2025-10-01T14:05:00Z           | 10-01 14:05
"""
NO_TIME = """
db-vm was moved
db-vm will be moved on Friday
Omar owns db-vm from Monday on
db-vm moved to 10.0.0.4:5432, web:443 to 8443
the rule changes today at 22:00
changed at 25:00, or on 2025-99-99
this rule of monday-job was changed
removed on 2025-12-24 at 10:00
removed fr\u0131day, or two m\u0131nutes ago
"""
"""The last with a Turkish i, which matches i where case does not count."""


def test_a_told_change_was_made_when_the_words_say():
    for line in WORDS_OF_TIME.strip().splitlines():
        text, moment = line.split("|")
        found = moment_told(text, NOW.timestamp())
        assert found is not None, text
        assert datetime.fromtimestamp(found, UTC).strftime("%m-%d %H:%M") == moment.strip(), text
    for text in NO_TIME.strip().splitlines():
        assert moment_told(text, NOW.timestamp()) is None, text
    assert moment_told("changed a week ago", NOW.timestamp()) == (NOW - timedelta(days=7)).timestamp()


@pytest.mark.parametrize("bit", ["last ", "12:3", "one ", "2025-10-", "9 ", "from monday "])
def test_no_text_takes_long(bit):
    began = time.process_time()
    moment_told(bit * (4000 // len(bit)), START)
    assert time.process_time() - began < 1
