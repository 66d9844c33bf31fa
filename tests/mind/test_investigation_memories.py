"""An investigation is remembered by what it came to; remembered ones are hints: near, of one kind, no evidence."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from ghost.mind import Finding, Finished, LongTermMemory, MemoryType, Step, recall, remember
from ghost.mind.sqlite_store import SqliteStore
from ghost.providers.stub import StubEmbeddings
from ghost.records import SystemClock

LAB = "lab blocked-port (SIMULATED)"
REDIS = Finished(
    session_id="ghost_20260101_120000",
    ended_at=1_767_268_800.0,
    symptom="VMs in prod-subnet cannot reach the Redis cache on port 6379",
    network="Azure",
    confidence="high",
    conclusion="Rule close-legacy-ports (priority 200) of cache-nsg denies TCP 6379 inbound.",
    cause="Rule close-legacy-ports (priority 200) of cache-nsg denies TCP 6379 inbound.",
    audit_ids=("ghost_20260101_120000_015",),
    findings=(
        Finding("vm_state", False, "both run", ("ghost_20260101_120000_007",)),
        Finding("nsg_inbound", True, "denied by close-legacy-ports", ("ghost_20260101_120000_015",)),
    ),
    route=(
        Step("az vm list -d -o json", "ghost_20260101_120000_007"),
        Step("az network nic list-effective-nsg -g prod-rg -n cache-nic", "ghost_20260101_120000_015"),
    ),
    actions=("Move allow-redis before close-legacy-ports",),
)
ROUTED = dataclasses.replace(
    REDIS,
    session_id="ghost_20260102_120000",
    ended_at=1_767_355_200.0,
    symptom="app-01 cannot reach the SQL server sql-02 on 1433",
    conclusion="Route to-firewall sends 10.7.0.0/16 to a virtual appliance that is stopped.",
    cause="Route to-firewall sends 10.7.0.0/16 to a virtual appliance that is stopped.",
    audit_ids=("ghost_20260102_120000_011",),
    findings=(Finding("routes", True, "next hop is down", ("ghost_20260102_120000_011",)),),
    route=(Step("az network nic show-effective-route-table -g r -n app-01-nic", "ghost_20260102_120000_011"),),
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[LongTermMemory]:
    embeddings = StubEmbeddings(128)
    store = SqliteStore(tmp_path / "ghost.sqlite3", embeddings.name, embeddings.dim)
    yield LongTermMemory(store, embeddings, SystemClock())
    store.close()


def test_a_cause_leaves_what_happened_what_it_teaches_and_the_way_there_each_citing_records(
    memory: LongTermMemory,
) -> None:
    kept = {made.type: made for made in remember(memory, REDIS)}

    assert set(kept) == set(MemoryType)
    assert all(made.metadata["audit_ids"] and made.embedding for made in kept.values())
    assert "Cause: Rule close-legacy-ports" in kept[MemoryType.EPISODIC].content
    assert "nsg_inbound" in kept[MemoryType.SEMANTIC].content
    assert "Move allow-redis" in kept[MemoryType.SEMANTIC].content
    assert "list-effective-nsg" in kept[MemoryType.PROCEDURAL].content
    assert kept[MemoryType.PROCEDURAL].metadata["audit_ids"] == [step.audit_id for step in REDIS.route]
    assert {made.id for made in memory.store.memories()} == {made.id for made in kept.values()}


def test_an_investigation_without_a_cause_is_remembered_as_such_and_teaches_nothing(memory: LongTermMemory) -> None:
    nothing = dataclasses.replace(REDIS, cause="", conclusion="Every layer is clean.")
    (kept,) = remember(memory, nothing)
    assert kept.type is MemoryType.EPISODIC
    assert "No cause was found" in kept.content


def test_an_investigation_that_is_remembered_again_replaces_what_it_left(memory: LongTermMemory) -> None:
    first = {made.type: made.id for made in remember(memory, REDIS)}
    again = {made.type: made.id for made in remember(memory, dataclasses.replace(REDIS, confidence="medium"))}
    assert again == first
    assert sum(memory.counts().values()) == 3
    assert all("medium" in m.content for m in memory.store.memories() if m.type is MemoryType.EPISODIC)


def test_the_nearest_investigation_comes_first_and_each_one_once(memory: LongTermMemory) -> None:
    remember(memory, ROUTED)
    remember(memory, REDIS)
    hints = recall(memory, "web tier cannot connect to redis port 6379", "Azure")
    assert hints[0].session_id == REDIS.session_id
    assert hints[0].layers == ("nsg_inbound",)
    assert hints[0].settled_by == "az network nic list-effective-nsg -g prod-rg -n cache-nic"
    assert len({hint.session_id for hint in hints}) == len(hints)


def test_a_cause_whose_records_clear_other_layers_too_is_settled_by_the_last(memory: LongTermMemory) -> None:
    cited = tuple(step.audit_id for step in REDIS.route)
    shared = Finding("nsg_outbound", False, "allowed", cited)
    remember(memory, dataclasses.replace(REDIS, audit_ids=cited, findings=(*REDIS.findings, shared)))
    assert recall(memory, REDIS.symptom, "Azure")[0].settled_by == REDIS.route[-1].command


def again(finished: Finished, number: int, cause: str = "") -> Finished:
    """The same on another day, with records of its own."""
    session = f"ghost_2026010{number}_120000"
    told = f"{cause or finished.cause} (record {session}_015)."
    return dataclasses.replace(
        finished, session_id=session, ended_at=finished.ended_at + number, cause=told, conclusion=told
    )


def test_at_most_three_are_offered(memory: LongTermMemory) -> None:
    for number in range(6):
        remember(memory, again(REDIS, number + 1, f"Rule deny-{number} of cache-nsg denies TCP 6379 inbound"))
    assert len(recall(memory, REDIS.symptom, "Azure")) == 3


def test_those_that_came_to_the_same_are_one_hint_and_crowd_out_nothing(memory: LongTermMemory) -> None:
    for number in range(1, 8):
        remember(memory, again(REDIS, number))
    remember(memory, again(REDIS, 8, "Route to-hub of web-subnet leads nowhere"))
    hints = recall(memory, REDIS.symptom, "Azure")
    assert {(hint.times, hint.session_id) for hint in hints} == {
        (7, "ghost_20260107_120000"),
        (1, "ghost_20260108_120000"),
    }


def test_two_symptoms_without_a_cause_are_two_hints(memory: LongTermMemory) -> None:
    for number, port in enumerate((6379, 6380), 1):
        symptom = f"VMs in prod-subnet cannot reach the Redis cache on port {port}"
        nothing = dataclasses.replace(REDIS, symptom=symptom, cause="", findings=(), conclusion="Every layer is clean.")
        remember(memory, dataclasses.replace(nothing, session_id=f"ghost_2026010{number}_120000"))
    assert len(recall(memory, REDIS.symptom, "Azure")) == 2


def test_a_word_that_every_symptom_says_makes_no_hint(memory: LongTermMemory) -> None:
    remember(memory, REDIS)
    assert recall(memory, "Transfers from app-vm-01 to db-vm-01 on port 5432 stall and are slow", "Azure") == []
    assert recall(memory, "Something odd with cache-nsg", "Azure") != []


def test_a_lab_teaches_nothing_about_a_tenant_nor_the_reverse(memory: LongTermMemory) -> None:
    remember(memory, dataclasses.replace(REDIS, network=LAB))
    assert recall(memory, REDIS.symptom, "Azure") == []
    assert len(recall(memory, REDIS.symptom, "lab wire-loss (SIMULATED)")) == 1


def test_what_has_nothing_to_do_with_the_symptom_is_no_hint(memory: LongTermMemory) -> None:
    remember(memory, ROUTED)
    assert recall(memory, "printer jams paper tray", "Azure") == []


def test_a_long_report_is_cut(memory: LongTermMemory) -> None:
    long = dataclasses.replace(
        REDIS, cause="x" * 50_000, route=tuple(Step(f"cmd {'y' * 3000}", f"a_{n}") for n in range(300))
    )
    assert all(len(made.content) < 10_000 for made in remember(memory, long))


def test_a_memory_of_another_hand_breaks_no_hint(memory: LongTermMemory) -> None:
    first = remember(memory, REDIS)
    for kept in first:
        memory.upsert_memory(kept.model_copy(update={"metadata": {**kept.metadata, "layers_at_fault": 5}}))
    (hint,) = recall(memory, REDIS.symptom, "Azure")
    assert hint.layers == ()
