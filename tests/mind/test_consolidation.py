"""Consolidation: what recurs is summed up, what is told twice merged, what nobody asks for fades; look-alikes stay."""

from __future__ import annotations

import json

import pytest

from ghost.errors import ProviderError, StoreError
from ghost.mind import Changes, Finding, Finished, Memory, MemoryType, Stimulus, recall, remember
from ghost.mind.consolidation import MAX_PER_RUN, Consolidation
from ghost.mind.episodes import episode
from ghost.mind.long_term_memory import SUPERSEDED, LongTermMemory
from ghost.mind.retention import LEAST, may_merge
from ghost.mind.told_facts import told_memories
from ghost.providers.stub import StubEmbeddings
from tests.mind.minds import DIM, START, SpeakingModel, SteppedClock, mind, open_sqlite, without_secrets

DAY = 86_400.0
EPISODIC, SEMANTIC = MemoryType.EPISODIC, MemoryType.SEMANTIC


class Room:
    """Long-term memory with what puts it in order."""

    def __init__(self, folder, model=None) -> None:
        self.store = open_sqlite(folder)
        self.clock = SteppedClock()
        self.model = model or SpeakingModel()
        self.ltm = LongTermMemory(self.store, StubEmbeddings(DIM), self.clock)
        self.consolidation = Consolidation(self.ltm, self.model, self.clock, without_secrets)
        self.number = 0

    def add(self, content: str, kind: MemoryType = EPISODIC, *, days: float = 0, **given) -> str:
        self.number += 1
        at = START + days * DAY
        metadata = given.pop("metadata", {})
        memory = Memory(
            id=f"mem:{self.number}",
            type=kind,
            content=content,
            created_at=at,
            last_access=at,
            metadata={"session_id": f"ghost_{self.number}", "audit_ids": [f"sh_{self.number}"]} | metadata,
            **{"importance": 0.6} | given,
        )
        self.ltm.upsert_memory(memory)
        return memory.id

    def run(self):
        return self.consolidation.run()

    def all(self) -> dict[str, Memory]:
        return {memory.id: memory for memory in self.store.memories()}

    def summaries(self) -> list[Memory]:
        return [memory for memory in self.all().values() if memory.metadata.get("kind") == "summary"]


@pytest.fixture
def room(tmp_path):
    made = Room(tmp_path)
    yield made
    made.store.close()


def incident(source: str, port: int, cause: str, *, day: str = "2026-03-01") -> str:
    return (
        f"{day}, lab nsg: {source} cannot reach db-vm on port {port}\nCause: {cause} (confidence high)\nCleared: dns."
    )


NSG = "The rule deny-pg of db-nsg denies TCP 5432 from {}"


def recurring(room: Room) -> list[str]:
    return [
        room.add(incident("web-vm", 5432, NSG.format("web-subnet"), day="2026-03-01"), days=0, tags=("nsg", "a")),
        room.add(incident("app-vm", 5432, NSG.format("app-subnet"), day="2026-03-09"), days=8, tags=("nsg", "b")),
        room.add(incident("job-vm", 5432, NSG.format("job-subnet"), day="2026-03-20"), days=19, tags=("nsg",)),
    ]


def correct(room: Room, name: str, by: str) -> None:
    old = room.all()[name]
    room.ltm.upsert_memory(old.model_copy(update={"metadata": {**old.metadata, SUPERSEDED: by}}))


# --- corrections ---


def test_what_was_corrected_is_neither_merged_nor_summed_up(room):
    told = {"metadata": {"session_id": None}}
    old = room.add("Ana moved pay-db to 10.4.0.7", importance=0.9, **told)
    other = room.add("Ana moved pay-db to 10.4.0.8", days=0.1, **told)
    again = room.add("Ana moved pay-db to 10.4.0.7", days=0.2, **told)
    correct(room, old, other)
    correct(room, other, again)
    ids = recurring(room)
    correct(room, ids[1], "mem:right")
    assert room.run().merged == 0
    kept = room.all()
    assert [kept[name].metadata.get(SUPERSEDED) for name in (old, other, again)] == [other, again, None]
    (summary,) = room.summaries()
    assert summary.metadata["sources"] == [ids[0], ids[2]]
    assert "app-vm" not in summary.content


def test_what_is_corrected_or_deleted_while_the_model_writes_stays_so(tmp_path):
    class Slow(SpeakingModel):
        def generate(self, *words, **named):
            correct(room, ids[0], "mem:right")
            room.ltm.forget([ids[1]])
            return super().generate(*words, **named)

    room = Room(tmp_path, Slow())
    ids = recurring(room)
    room.run()
    assert room.all()[ids[0]].metadata[SUPERSEDED] == "mem:right"
    assert ids[1] not in room.all()
    room.store.close()


def test_a_summary_of_what_was_corrected_is_last_until_it_is_written_anew_without_it(room):
    ids = [
        room.add(
            incident(f"{vm}-vm", 5432, NSG.format(f"{vm}-subnet")),
            days=day,
            tags=("told",),
            metadata={"values": {"db-vm|port": "5432"}},
        )
        for day, vm in enumerate(("web", "app", "job"))
    ]
    room.run()
    (before,) = room.summaries()
    stimulus = Stimulus(id="stim:1", source="cli", content="db-vm listens on port 5433", ts=START + DAY / 2)
    room.store.apply(Changes(memories=told_memories([stimulus], room.ltm, START + 4 * DAY)))
    assert SUPERSEDED in room.all()[ids[0]].metadata
    assert SUPERSEDED not in room.all()[ids[1]].metadata
    hits = room.ltm.search("db-nsg denies db-vm port", 10)
    assert SUPERSEDED in next(hit for hit in hits if hit.memory.id == before.id).memory.metadata
    new = room.add(incident("bat-vm", 5432, NSG.format("bat-subnet")), days=30)
    room.run()
    (after,) = room.summaries()
    assert after.id == before.id
    assert after.metadata["sources"] == [ids[1], ids[2], new]
    assert "web-vm" not in after.content
    assert SUPERSEDED not in after.metadata


# --- summing up ---


def test_incidents_with_one_cause_become_a_summary_of_cause_resources_and_differences(room):
    ids = recurring(room)
    originals = room.all()
    report = room.run()
    assert (report.summaries, report.merged, report.complete) == (1, 0, True)
    (summary,) = room.summaries()
    assert summary.type is SEMANTIC
    assert summary.metadata["sources"] == ids
    assert summary.metadata["audit_ids"] == ["sh_1", "sh_2", "sh_3"]
    assert summary.metadata["sessions"] == ["ghost_1", "ghost_2", "ghost_3"]
    assert summary.metadata["cause"] == "The rule deny-pg of db-nsg denies TCP 5432 from …"
    assert {"db-vm", "db-nsg", "deny-pg"} <= set(summary.metadata["resources"])
    assert not {"web-vm", "app-vm", "job-vm", "web-subnet"} & set(summary.metadata["resources"])
    differences = summary.metadata["differences"]
    assert all(name in differences[key] for key, name in zip(ids, ("web-vm", "app-vm", "job-vm"), strict=True))
    assert "Seen 3 times, 2025-10-09 to 2025-10-28" in summary.content
    assert "denies TCP 5432" in summary.content
    assert "nsg" in summary.tags
    assert not any(each.content in summary.content for each in originals.values()), "it is no concatenation"
    assert len(summary.content) < sum(len(each.content) for each in originals.values())
    for each in ids:
        kept = room.all()[each]
        assert kept.content == originals[each].content
        assert kept.importance == originals[each].importance / 2
        assert kept.metadata["summary"] == summary.id
        assert kept.embedding == originals[each].embedding


def test_a_second_run_changes_nothing(room):
    recurring(room)
    room.add("the tls certificate of shop.example expired", SEMANTIC)
    room.run()
    before = room.all()
    for _ in range(3):
        assert room.run().changed == 0
    room.clock.passes(8 * DAY)  # and a sweep over everything neither
    report = room.run()
    assert report.looked_at == len(before)
    assert report.changed == 0
    assert room.all() == before
    assert len(room.model.prompts("CONSOLIDATE")) == 1


def test_another_incident_of_the_kind_joins_the_summary(room):
    ids = recurring(room)
    room.run()
    (before,) = room.summaries()
    new = room.add(incident("bat-vm", 5432, NSG.format("bat-subnet")), days=30)
    assert room.run().summaries == 1
    (after,) = room.summaries()
    assert after.id == before.id
    assert after.metadata["sources"] == [*ids, new]
    assert after.metadata["audit_ids"] == ["sh_1", "sh_2", "sh_3", "sh_4"]
    assert after.content.startswith("Seen 4 times")
    assert after.importance >= before.importance
    assert room.all()[ids[0]].importance == 0.3, "lowered once"


NOT_ONE_CAUSE = [
    ("another layer", NSG.format("web-subnet"), "The route table db-rt sends 10.1.0.0/16 to a next hop that drops it"),
    ("another group", NSG.format("web-subnet"), "The rule deny-pg of app-nsg denies TCP 5432 from web-subnet"),
    ("another rule", NSG.format("web-subnet"), "The rule deny-all of db-nsg denies TCP 5432 from web-subnet"),
    ("another port", NSG.format("web-subnet"), "The rule deny-pg of db-nsg denies TCP 6379 from web-subnet"),
    ("another protocol", NSG.format("web-subnet"), "The rule deny-pg of db-nsg denies UDP 5432 from web-subnet"),
    (
        "another direction",
        "The rule deny-pg of db-nsg denies inbound TCP 5432",
        "The rule deny-pg of db-nsg denies outbound TCP 5432",
    ),
    ("the firewall inside", NSG.format("web-subnet"), "The firewall inside db-vm drops TCP 5432 from web-subnet"),
    (
        "the firewall inside another",
        "The firewall inside db-vm drops TCP 5432 from web-vm",
        "The firewall inside app-vm drops TCP 5432 from web-vm",
    ),
    ("another machine is off", "db-vm is deallocated", "app-vm is deallocated"),
    ("nothing listens", "Nothing listens on TCP 5432 of db-vm", "The rule deny-pg of db-nsg denies TCP 5432 of db-vm"),
    ("missing or wrong", "The route of hub-vnet is missing in db-rt", "The route of hub-vnet is wrong in db-rt"),
    ("expired or mismatched", "The certificate of db-vm expired", "The certificate of db-vm has a name mismatch"),
    (
        "another peering",
        "The peering hub-to-spoke1 is disconnected",
        "The peering hub-to-spoke2 is disconnected",
    ),
    (
        "another zone",
        "The private zone corp.example is not linked to spoke-vnet",
        "The private zone lab.example is not linked to spoke-vnet",
    ),
    ("no cause", NSG.format("web-subnet"), ""),
    ("neither has a cause", "", ""),
]


@pytest.mark.parametrize(("one", "other"), [row[1:] for row in NOT_ONE_CAUSE], ids=[row[0] for row in NOT_ONE_CAUSE])
def test_two_incidents_with_different_causes_are_never_put_together_however_alike_they_sound(room, one, other):
    for cause in (one, other):
        told = f"web-vm cannot reach db-vm on port 5432. Checked hub-vnet, spoke-vnet and db-vm. Cause: {cause}"
        room.add(told if cause else "web-vm cannot reach db-vm on port 5432. No cause was found.")
    before = room.all()
    report = room.run()
    assert (report.summaries, report.merged) == (0, 0)
    assert room.all() == before


ONE_CAUSE = [
    (NSG.format("web-subnet"), NSG.format("app-subnet")),
    ("The rule deny-pg of db-nsg denies TCP 5432", "TCP 5432 is blocked by deny-pg in db-nsg"),
    ("The peering hub-to-spoke1 is disconnected", "hub-to-spoke1, a peering, is disconnected"),
    (
        "The private zone corp.example is not linked to spoke-vnet",
        "spoke-vnet is not linked to private zone corp.example",
    ),
    ("Nothing listens on port 5432 of db-vm", "Nothing listens on port 5432 of db-vm"),
]


@pytest.mark.parametrize(("one", "other"), ONE_CAUSE)
def test_one_cause_is_known_again_in_other_words(room, one, other):
    for source, cause in (("web-vm", one), ("app-vm", other)):
        room.add(f"{source} cannot reach db-vm on port 5432. Cause: {cause}")
    assert room.run().summaries == 1
    assert len(room.summaries()) == 1


@pytest.mark.parametrize(
    ("tags", "layers", "put_together"),
    [
        ((("network:lab",), ("network:lab",)), (["nsg"], ["nsg"]), True),
        ((("network:lab",), ("network:lab",)), (["nsg"], []), True),
        ((("network:lab",), ("network:azure",)), (["nsg"], ["nsg"]), False),
        ((("network:lab",), ()), (["nsg"], ["nsg"]), False),
        ((("network:lab",), ("network:lab",)), (["nsg"], ["guest_firewall"]), False),
    ],
)
def test_a_lab_and_a_tenant_or_two_layers_at_fault_are_not_put_together(room, tags, layers, put_together):
    for source, its_tags, its_layers in zip(("web", "app"), tags, layers, strict=True):
        content = incident(f"{source}-vm", 5432, NSG.format(f"{source}-subnet"))
        room.add(content, tags=its_tags, metadata={"layers_at_fault": its_layers})
        room.add("The rule deny-pg of db-nsg denies TCP 5432.", SEMANTIC, tags=its_tags)
    report = room.run()
    assert report.summaries == put_together
    assert report.merged == (tags[0] == tags[1])


def test_investigations_that_came_to_one_cause_are_remembered_as_one_lesson(room):
    finding = Finding("nsg", True, "db-nsg denies it", ("sh_1",))
    for number, source in enumerate(("web-vm", "app-vm"), 1):
        finished = Finished(
            session_id=f"ghost_2026010{number}_120000",
            ended_at=START + number * DAY,
            symptom=f"{source} cannot reach db-vm on port 5432",
            network="lab nsg-deny",
            confidence="high",
            conclusion="db-nsg denies it",
            cause="The rule deny-pg of db-nsg denies TCP 5432",
            audit_ids=(f"sh_{number}",),
            findings=(finding,),
        )
        remember(room.ltm, finished)
    room.run()
    (summary,) = room.summaries()
    assert summary.metadata["cause"] == "The rule deny-pg of db-nsg denies TCP 5432"
    assert summary.metadata["audit_ids"] == ["sh_1", "sh_2"]
    assert summary.metadata["layers_at_fault"] == ["nsg"]
    assert {"investigation", "network:lab"} <= set(summary.tags)
    assert not any(tag.startswith("session:") for tag in summary.tags), "no investigation replaces it"
    (hint,) = recall(room.ltm, "job-vm cannot reach db-vm on 5432", "lab nsg")
    assert (hint.memory_id, hint.session_id, hint.times) == (summary.id, "ghost_20260102_120000", 2)
    assert hint.conclusion.startswith("The rule deny-pg")


def test_what_shares_no_resource_is_not_summed_up(room):
    room.add("alpha-web cannot reach alpha-db. Cause: a security group denies the traffic")
    room.add("beta-web cannot reach beta-db. Cause: a security group denies the traffic")
    assert room.run().summaries == 0


@pytest.mark.parametrize(
    "content",
    [
        "x cannot reach y. Cause: the rule deny-pg of db-nsg denies TCP 5432. (confidence high)\nCleared: dns",
        "x cannot reach y\nRoot cause: the rule deny-pg of db-nsg denies TCP 5432",
        "#insight x cannot reach y, because the rule deny-pg of db-nsg denies TCP 5432.",
        "It failed due to the rule deny-pg of db-nsg denies TCP 5432; then it worked",
    ],
)
def test_the_cause_is_read_from_what_the_memory_says(content):
    memory = Memory(id="mem:1", type=EPISODIC, content=content, created_at=0, last_access=0)
    assert episode(memory).cause.lower() == "the rule deny-pg of db-nsg denies tcp 5432"
    told = memory.model_copy(update={"metadata": {"cause": "something else"}})
    assert episode(told).cause == "something else"


@pytest.mark.parametrize(
    "content",
    [
        "x cannot reach y. No cause was found.",
        "x cannot reach y. The cause is still unknown",
        "x cannot reach y. Cause: not found (confidence low)",
        "x cannot reach y. Cause: unclear, see ticket",
        "x cannot reach y, but not because of db-nsg denying it",
        "x cannot reach y. Cause: none",
        "x cannot reach y",
    ],
)
def test_a_cause_that_is_not_known_is_none(content):
    memory = Memory(id="mem:1", type=EPISODIC, content=content, created_at=0, last_access=0)
    assert episode(memory).cause == ""


@pytest.mark.parametrize(
    "said",
    [
        "no idea",
        json.dumps({"summary": ""}),
        json.dumps({"summary": "evil-nsg of another tenant denies it", "resources": ["evil-nsg"]}),
        json.dumps({"summary": "All go to 203.0.113.9", "cause": ""}),
        json.dumps({"summary": "It was the dns zone that did not resolve", "cause": "dns"}),
        json.dumps({"summary": "fine", "importance": 7}),
    ],
)
def test_a_model_that_says_what_no_episode_says_is_not_believed(tmp_path, said):
    room = Room(tmp_path, SpeakingModel(summaries=[said]))
    recurring(room)
    assert room.run().summaries == 1
    (summary,) = room.summaries()
    for wrong in ("evil-nsg", "203.0.113.9", "dns zone", "no idea", "fine"):
        assert wrong not in summary.content
    assert "db-nsg" in summary.content
    assert "They differ: mem:1 2025-10-09: web-subnet, web-vm" in summary.content


def test_a_model_that_fails_leaves_what_was_done_and_the_next_run_goes_on(tmp_path):
    room = Room(tmp_path, SpeakingModel(summaries=[ProviderError("gone", transient=True)]))
    room.add("the same thing", SEMANTIC)
    room.add("The same thing.", SEMANTIC)
    recurring(room)
    with pytest.raises(ProviderError):
        room.run()
    assert len(room.all()) == 4, "the duplicates were merged"
    assert room.consolidation.due_since(room.clock.at) is not None
    assert room.run().summaries == 1
    assert room.consolidation.due_since(room.clock.at) is None


def test_what_cannot_be_written_leaves_memory_as_it_was(room):
    recurring(room)
    before = room.all()
    room.store.broken = True
    with pytest.raises(StoreError):
        room.run()
    room.store.broken = False
    assert room.all() == before
    assert room.run().summaries == 1


# --- merging ---


def test_what_is_told_twice_becomes_one_with_everything_that_both_had(room):
    first = room.add(
        "The rule deny-pg of db-nsg denies TCP 5432 to db-vm.", SEMANTIC, importance=0.5, tags=("nsg", "a"), days=1
    )
    second = room.add(
        "the rule deny-pg of db-nsg denies tcp 5432 to db-vm", SEMANTIC, importance=0.9, tags=("nsg", "b"), days=5
    )
    report = room.run()
    assert report.merged == 1
    (kept,) = room.all().values()
    assert kept.id == second, "the one that matters more"
    assert kept.importance == 0.9
    assert set(kept.tags) == {"nsg", "a", "b"}
    assert (kept.created_at, kept.last_access) == (START + DAY, START + 5 * DAY)
    assert sorted(kept.metadata["audit_ids"]) == ["sh_1", "sh_2"]
    assert kept.metadata["merged"] == [first]
    assert room.ltm.search("deny-pg", 5)[0].memory.id == second
    assert room.run().changed == 0


NOT_TOLD_TWICE = [
    ("db-nsg denies web-vm", "app-nsg denies web-vm"),
    ("web-vm cannot reach db-vm", "db-vm cannot reach web-vm"),
    ("db-nsg denies port 443 to web-vm", "db-nsg denies port 8443 to web-vm"),
    ("db-nsg denies web-vm at 10.0.0.4", "db-nsg denies web-vm at 10.0.0.5"),
    ("on 2026-03-01 db-nsg denied web-vm", "on 2026-03-02 db-nsg denied web-vm"),
    ("the inbound traffic of web-vm is fine", "the outbound traffic of web-vm is fine"),
    ("the route of web-vm is missing", "the route of web-vm is wrong"),
    ("web-vm has a certificate that expired", "web-vm has a route that expired"),
]


@pytest.mark.parametrize(("one", "other"), NOT_TOLD_TWICE)
def test_what_only_looks_alike_stays_two(room, one, other):
    for text in (one, other):
        room.add(text, SEMANTIC)
    assert room.run().merged == 0
    assert len(room.all()) == 2


def test_two_incidents_in_the_same_words_are_two_and_one_incident_told_twice_is_one(room):
    text = "web-vm cannot reach db-vm on port 5432. No cause was found."
    room.add(text)
    room.add(text)
    room.run()
    assert len(room.all()) == 2
    room.add(text, metadata={"session_id": "ghost_1"})
    room.run()
    assert len(room.all()) == 2


@pytest.mark.parametrize(("hours", "merge"), [(1, True), (23, True), (25, False)])
def test_thoughts_of_no_session_merge_within_a_day(hours, merge):
    one, other = (
        Memory(id=f"mem:{n}", type=EPISODIC, content="db-nsg denies web-vm", created_at=at, last_access=at)
        for n, at in enumerate((0.0, hours * 3600.0))
    )
    assert may_merge(one, other) == merge


def test_pages_and_summaries_are_not_merged_by_their_words(room):
    for number in (1, 2):
        room.add("A user-defined route overrides a system route.", SEMANTIC, tags=("document", f"page:{number}"))
    assert room.run().merged == 0


def test_a_summary_keeps_to_its_sources_when_one_of_them_is_merged(room):
    ids = recurring(room)
    room.run()
    twin = room.add(
        incident("web-vm", 5432, NSG.format("web-subnet"), day="2026-03-01"),
        days=20,
        importance=0.9,
        metadata={"session_id": "ghost_1"},
    )
    assert room.run().merged == 1
    (summary,) = room.summaries()
    assert summary.metadata["sources"] == [twin, *ids[1:]]
    assert room.all()[twin].metadata["summary"] == summary.id
    assert room.run().changed == 0


def test_every_summary_of_what_is_merged_keeps_to_its_sources(room):
    text = "db-nsg denies web-vm"
    ids = [room.add(text, metadata={"session_id": "ghost_1", "summary": f"mem:{10 + n}"}) for n in range(2)]
    room.number = 9
    for each in ids:
        room.add("Seen twice.", SEMANTIC, metadata={"kind": "summary", "sources": [each, "mem:99"]})
    assert room.run().merged == 1
    (kept,) = room.all().keys() & set(ids)
    assert [summary.metadata["sources"] for summary in room.summaries()] == [[kept, "mem:99"]] * 2


# --- fading ---


def test_what_nobody_asks_for_fades_and_what_is_asked_for_does_not(room):
    old, asked = room.add("alpha-vm was moved"), room.add("beta-vm was moved")
    room.clock.passes(120 * DAY)
    room.store.touch([asked], room.clock.at)
    report = room.run()
    assert report.faded == 1
    kept = room.all()
    assert kept[asked].importance == 0.6
    assert kept[old].importance == pytest.approx(0.6 * 0.5 ** (120 / 90))
    assert room.run().faded == 0
    room.clock.passes(30 * DAY)
    room.run()
    assert room.all()[old].importance == pytest.approx(0.6 * 0.5 ** (150 / 90))
    assert len(room.all()[old].embedding) == DIM


def test_nothing_fades_within_a_month_or_to_nothing(room):
    name = room.add("alpha-vm was moved")
    room.clock.passes(29 * DAY)
    assert room.run().faded == 0
    room.clock.passes(5000 * DAY)
    room.run()
    assert room.all()[name].importance == LEAST
    room.clock.passes(9 * DAY)
    assert room.run().faded == 0


# --- when, and how much ---


def test_a_run_is_due_by_count_and_by_time(room):
    now = room.clock.at
    assert room.consolidation.due_since(now) is None
    for number in range(19):
        room.add(f"vm-{number} was moved")
    assert room.consolidation.due_since(now + 60) is None
    room.add("vm-19 was moved")
    assert room.consolidation.due_since(now + 120) == now + 120
    assert room.consolidation.due_since(now + 500) == now + 120, "since when does not move"
    room.clock.passes(600)
    room.run()
    assert room.consolidation.due_since(now + 700) is None
    assert room.consolidation.due_since(room.clock.at + DAY) is not None


def test_a_run_is_bounded_and_the_next_goes_on_where_it_ended(room):
    prepared = room.ltm.prepare_all(
        [
            Memory(
                id=f"mem:{n}",
                type=EPISODIC,
                content=f"vm-{n} moved to rack-{n}",
                created_at=START + n // 3,
                last_access=START,
            )
            for n in range(MAX_PER_RUN + 50)
        ]
    )
    room.store.apply(Changes(memories=prepared))
    first = room.run()
    assert (first.looked_at, first.complete) == (MAX_PER_RUN, False)
    assert room.consolidation.due_since(room.clock.at) is not None
    second = room.run()
    assert (second.looked_at, second.complete) == (50, True)
    assert room.run().looked_at == 0


def test_a_run_ends_when_it_is_told_to(room):
    recurring(room)
    report = room.consolidation.run(lambda: True)
    assert (report.looked_at, report.complete) == (0, False)


def test_a_due_consolidation_is_a_task_and_is_done_when_it_was_run(tmp_path):
    clock = SteppedClock()
    engine = mind(tmp_path, clock=clock)
    for number in range(20):
        content = f"vm-{number} cannot reach db-vm on port 5432, because rule deny-pg of db-nsg denies TCP 5432"
        kept = Memory(
            id=f"mem:{number}",
            type=EPISODIC,
            content=content,
            created_at=START + number,
            last_access=START,
            metadata={"session_id": f"s{number}"},
        )
        engine.ltm.upsert_memory(kept)
    clock.passes(60)
    engine.tend()
    assert [task.id for task in engine.attention.tasks()] == ["task:consolidation"]
    report = engine.consolidate()
    assert report.complete
    assert engine.observe()["summaries_made"] == report.summaries > 0
    (summary,) = [memory for memory in engine.store.memories() if memory.metadata.get("kind") == "summary"]
    assert len(summary.metadata["sources"]) == 20
    engine.tend()
    assert len(engine.attention) == 0
