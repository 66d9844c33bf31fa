"""The stub model keeps to `docs/providers.md` whatever it is told, and says something useful where it can."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from ghost.errors import ProviderError
from ghost.providers import Item, write_prompt
from ghost.providers.stub import StubLLM
from ghost.providers.stub.text_facts import causes, facts_of

THOUGHT = re.compile(r"#(?:plan|question|insight) \S.*")
NEEDED = re.compile(r".*\? Needed: ([a-z_]+(?:, [a-z_]+)*)\.")


class Decision(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    should_store: bool
    type: str = Field(pattern="^(episodic|semantic|procedural)$")
    importance: float = Field(ge=0, le=1)
    tags: list[str] = Field(max_length=8)
    reason: str = Field(min_length=1, max_length=200)


class Difference(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    id: str
    difference: str = Field(min_length=1)


class Summary(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    summary: str = Field(min_length=1)
    cause: str
    resources: list[str]
    tags: list[str] = Field(max_length=8)
    importance: float = Field(ge=0, le=1)
    differences: list[Difference]


VOCABULARY = """web-vm db-vm cannot reach from to port 6379 10.0.1.4 10.0.2.0/24 fe80::1 db-nsg denies dns nxdomain slow
because cause: timeout ping # ## - [x] #question Needed: refused 99999/tcp :70000 Tuesday's état ２２ İ"""
WORDS = st.sampled_from([*VOCABULARY.split(), "\n", ""])
TEXT = st.one_of(st.text(max_size=400), st.lists(WORDS, max_size=40).map(" ".join))
SECTIONS = st.dictionaries(
    st.sampled_from(["Self", "Stimuli", "Recent thoughts", "Memories", "Task", "Thought", "Else"]),
    st.lists(st.builds(Item, st.text(max_size=12), TEXT), max_size=5),
)
PROMPT = st.one_of(SECTIONS.map(write_prompt), st.text())


def ask(name: str, max_tokens: int = 400, **sections: list[str]) -> str:
    prompt = write_prompt(
        {
            section.replace("_", " "): [Item(f"{section[:3].lower()}:{n}", text) for n, text in enumerate(texts)]
            for section, texts in sections.items()
        }
    )
    return StubLLM().generate(f"{name}\nAnswer as told.", prompt, max_tokens)


@settings(deadline=None)
@given(prompt=PROMPT, max_tokens=st.integers(1, 500))
def test_any_prompt_gives_a_thought_of_at_most_60_words_on_one_line(prompt, max_tokens):
    thought = StubLLM().generate("SOC", prompt, max_tokens)
    assert THOUGHT.fullmatch(thought), thought
    assert len(thought.split()) <= 60
    assert thought == StubLLM().generate("SOC\nYou are an engineer.", prompt, max_tokens)


@settings(deadline=None)
@given(prompt=PROMPT)
def test_any_prompt_gives_a_decision_of_the_promised_shape(prompt):
    decision = Decision.model_validate_json(StubLLM().generate("STORE_DECIDER", prompt, 200))
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,39}", tag) for tag in decision.tags)


@settings(deadline=None)
@given(prompt=PROMPT, sections=SECTIONS)
def test_any_prompt_gives_a_summary_of_the_promised_shape(prompt, sections):
    Summary.model_validate_json(StubLLM().generate("CONSOLIDATE", prompt, 200))
    summary = Summary.model_validate_json(StubLLM().generate("CONSOLIDATE", write_prompt(sections), 200))
    assert len(summary.summary.split()) <= 120
    assert len(summary.differences) <= len(sections.get("Memories", []))


@pytest.mark.parametrize(
    ("stimulus", "needed"),
    [
        ("web-vm cannot reach db-vm", "port"),
        ("db-vm is unreachable on port 5432", "source"),
        ("web-vm cannot connect on port 5432 since noon", "destination"),
    ],
)
def test_what_a_report_of_unreached_traffic_does_not_name_is_asked(stimulus, needed):
    thought, _, sources = ask("SOC", Stimuli=[stimulus]).partition(" Sources: ")
    assert thought.startswith("#question ")
    assert NEEDED.fullmatch(thought)[1] == needed
    assert sources == "sti:0"


NOT_ASKED = """
Nothing answers: the app is down
Users report that redis on cache-vm times out from somewhere
db-vm is down
app-vm is slow
the outage of Monday is resolved
Omar lost his badge
web-vm could not reach db-vm, which Ana fixed
nobody in the office can reach files.contoso.com on port 443
db-vm is unreachable from everywhere on port 22
backup failed because the vault was full
if web-vm cannot reach db-vm, call Lena
web-vm fails to reach db-vm at all, ping included
does web-vm still fail to reach db-vm?
"""


def test_what_a_text_says_in_words_or_not_at_all_is_not_asked():
    for text in NOT_ASKED.strip().splitlines():
        assert not ask("SOC", Stimuli=[text]).startswith("#question"), text


@pytest.mark.parametrize(
    "stimulus",
    [
        "web-vm cannot reach db-vm on port 6379",
        "web-vm cannot reach redis on db-vm",
        "Connections from 10.0.1.4 to 10.0.2.7:5432 time out",
        "vm-a lost connection to vm-b on 443",
        "vm-a lost connection to vm-b on 443 since the restart.",
        "backup job on 10.1.2.3 fails to reach storage.contoso.com:443 with timeouts",
        "ping from web-vm to db-vm fails",
        "web-vm fails to resolve db-vm.internal: NXDOMAIN, from web-vm to dns-vm",
    ],
)
def test_a_report_that_names_all_is_checked_and_not_asked_about(stimulus):
    thought = ask("SOC", Stimuli=[stimulus])
    assert not thought.startswith("#question")


def test_an_answer_in_the_stimuli_ends_the_question():
    asked = ask("SOC", Stimuli=["web-vm cannot reach db-vm"])
    assert asked == "#question On which port does web-vm fail to reach db-vm? Needed: port. Sources: sti:0"
    after = ask("SOC", Stimuli=["It is port 6379", "web-vm cannot reach db-vm"], Recent_thoughts=[asked])
    assert after.startswith("#plan web-vm to db-vm: check ")


def test_a_plan_begins_with_a_cause_or_a_change_at_the_same_resource_and_names_both_texts():
    report = "web-vm cannot reach db-vm on port 6379"
    cause = "Port 6379 to db-vm was blocked by db-nsg, rule deny-redis"
    change = "Ana moved db-vm to 10.4.0.7"
    for found in (cause, change):
        thought = ask("SOC", Stimuli=[report], Memories=["The gateway's certificate expired", found])
        assert thought.startswith("#plan web-vm to db-vm on port 6379: check ")
        assert thought.endswith(f"{found} Sources: sti:0, mem:1")
    assert "first, as in" in ask("SOC", Stimuli=[report], Memories=[change, cause]), "a cause before a change"


def test_a_cause_that_was_found_before_is_an_insight():
    thought = ask(
        "SOC",
        Stimuli=["Root cause: db-nsg denies 6379 from prod-subnet"],
        Memories=["db-nsg denied 5432 from prod-subnet last week"],
    )
    assert thought.startswith("#insight db-nsg, prod-subnet again: Root cause: db-nsg denies 6379")
    assert thought.endswith("Sources: sti:0, mem:0")


def test_advice_is_no_change():
    advice = "Where the symptom was: no Redis\nthe fault was at nsg_inbound of cache-nsg\nAdvised then: Remove it"
    assert "changed" not in ask("SOC", Stimuli=[f"{advice} a-1"], Memories=[f"{advice} b-2"])


def test_failures_at_one_resource_are_told_together_and_a_check_is_named_once():
    reports = [
        "batch-vm fails to reach files-vm on port 445",
        "app-vm is slow",
        "vm-a lost connection to files-vm on 443",
    ]
    thought = ask("SOC", Stimuli=reports)
    assert thought.startswith("#insight More than one failure at files-vm: batch-vm ")
    assert thought.endswith("Sources: sti:0, sti:2")
    first = ask("SOC", Stimuli=["web-vm cannot reach db-vm on port 22"])
    second = ask("SOC", Stimuli=["batch-vm cannot reach files-vm on port 445"], Recent_thoughts=[first])
    assert first.startswith("#plan web-vm to db-vm on port 22: check the effective rules")
    assert second.startswith("#insight A failure at batch-vm: batch-vm cannot reach files-vm")


@pytest.mark.parametrize(
    ("news", "said"),
    [
        ("Ana moved db-vm to 10.4.0.7.", "#insight A change at db-vm: Ana moved db-vm to 10.4.0.7 Sources: sti:0"),
        ("Lena owns hub-fw", "#insight A fact at hub-fw: Lena owns hub-fw Sources: sti:0"),
        ("db-nsg denies 443", "#insight A cause at db-nsg: db-nsg denies 443 Sources: sti:0"),
        ("the change at 14:00 is done", "#plan Go on with Clean up web-vm Sources: tas:0"),
    ],
)
def test_news_is_told_with_its_resource_and_before_the_task(news, said):
    assert ask("SOC", Stimuli=[news], Task=["Clean up web-vm"]) == said


def test_no_plan_leads_from_a_thing_to_itself():
    asked = "#question What does db-vm fail to reach on port 5432? Needed: destination."
    after = ask("SOC", Stimuli=["db-vm is unreachable on port 5432"], Recent_thoughts=[asked])
    assert "db-vm to db-vm" not in after


OWN_PLAN = "#plan web-vm to db-vm on port 6379: check a capture at both ends, for retransmissions and gaps."


def test_what_it_only_suspected_is_no_cause_that_was_found():
    thought = ask("SOC", Stimuli=["web-vm cannot reach db-vm on port 6379"], Memories=[OWN_PLAN])
    assert "mem:0" not in thought


def test_its_own_thoughts_are_not_compared_with_each_other():
    own = [f"#insight db-nsg again: db-nsg denied {n} | before: db-nsg denied {n + 1}" for n in range(3)]
    assert ask("SOC", Memories=own) == "#insight Nothing new: no stimulus, task or memory asks for attention."


def test_what_one_investigation_left_is_not_compared_with_itself():
    left = [Item(f"mem:1767268800000{end}", "db-nsg denied 6379 to db-vm") for end in ("", "_2", "_3")]
    alone = StubLLM().generate("SOC", write_prompt({"Memories": left}), 400)
    assert alone.startswith("#insight Nothing new")
    other = Item("mem:1767355200000", "db-nsg denied 5432 to db-vm")
    assert "#insight db-nsg, db-vm again" in StubLLM().generate("SOC", write_prompt({"Memories": [*left, other]}), 400)


def test_nothing_is_said_twice_while_there_is_something_else_to_say():
    said: list[str] = []
    for _ in range(4):
        said.append(
            ask(
                "SOC",
                Stimuli=["web-vm cannot reach db-vm on port 6379"],
                Task=["Clean up: delete the capture of web-vm"],
                Memories=["db-nsg denied 5432 to db-vm"],
                Recent_thoughts=said,
            )
        )
    assert len(set(said)) == 4


def test_a_finding_is_kept_and_a_question_is_not():
    kept = json.loads(ask("STORE_DECIDER", Thought=["#insight db-nsg denies 6379 from prod-subnet."]))
    assert (kept["should_store"], kept["type"], kept["tags"][:2]) == (True, "episodic", ["nsg", "db-nsg"])
    asked = json.loads(ask("STORE_DECIDER", Thought=["#question On which port does web-vm fail? Needed: port."]))
    assert asked["should_store"] is False
    idle = json.loads(ask("STORE_DECIDER", Thought=["#insight Nothing new: no stimulus asks for attention."]))
    assert idle["should_store"] is False
    plan = json.loads(ask("STORE_DECIDER", Thought=["#plan Check the effective routes of web-nic first."]))
    assert (plan["should_store"], plan["type"]) == (True, "procedural")
    assert kept["importance"] > plan["importance"]


@pytest.mark.parametrize(
    "thought",
    [
        OWN_PLAN,
        "#plan web-vm to db-vm: check first what was changed: Ana moved db-vm to 10.4.0.7",
        "#insight db-nsg again: db-nsg denied 443 | before: db-nsg denied 22",
        "#insight New: Investigation ghost_20260101_093537 ran a command that ended with exit status 0: az vm list "
        "(safe), record ghost_20260101_093537_004",
    ],
)
def test_guesses_and_what_is_kept_elsewhere_are_no_memories(thought):
    assert json.loads(ask("STORE_DECIDER", Thought=[thought]))["should_store"] is False


def test_a_change_that_somebody_tells_of_is_kept():
    kept = json.loads(ask("STORE_DECIDER", Thought=["#insight New: the firewall change at 14:00 is done"]))
    assert (kept["should_store"], kept["type"]) == (True, "episodic")


def test_what_a_memory_holds_already_is_not_kept_again():
    decision = json.loads(
        ask(
            "STORE_DECIDER",
            Thought=["#insight db-nsg denies port 6379 from prod-subnet."],
            Memories=["The spoke has no route", "db-nsg denies port 6379 from prod-subnet"],
        )
    )
    assert decision["should_store"] is False
    assert "mem:1" in decision["reason"]


NOTES = [
    "web-vm could not reach db-vm on port 6379: db-nsg rule deny-redis blocked it after Tuesday's change",
    "app-vm timed out to db-vm port 5432; cause: db-nsg denied postgres from app-subnet",
    "db-nsg drops redis 6379 from batch-vm, fixed by a new allow rule",
]


def test_a_summary_tells_the_shared_cause_the_shared_resources_and_the_differences():
    summary = Summary.model_validate_json(ask("CONSOLIDATE", Memories=NOTES))
    assert summary.cause == "a network security group denies the traffic"
    assert summary.resources == ["db-nsg", "db-vm"]
    differences = {each.id: each.difference for each in summary.differences}
    assert "web-vm" in differences["mem:0"]
    assert "port 5432" in differences["mem:1"]
    assert "batch-vm" in differences["mem:2"]
    assert not any("db-nsg" in difference for difference in differences.values())
    for note in NOTES:
        assert note not in summary.summary
    assert "db-nsg" in summary.summary


def test_memories_with_different_causes_share_none():
    summary = Summary.model_validate_json(
        ask("CONSOLIDATE", Memories=["db-nsg denied 6379 to db-vm", "the certificate of db-vm expired"])
    )
    assert summary.cause == ""
    assert summary.resources == ["db-vm"]


def test_a_cause_in_words_that_no_table_holds_is_shared_when_both_say_it():
    summary = Summary.model_validate_json(
        ask(
            "CONSOLIDATE",
            Memories=[
                "web-vm was unreachable because the licence server ran out of seats",
                "app-vm failed due to licence seats",
            ],
        )
    )
    assert summary.cause == "licence seats"


def test_json_is_refused_for_a_question_that_is_not_the_minds():
    with pytest.raises(ProviderError, match="PROVIDER_LLM"):
        StubLLM().generate("TRANSLATE", "hello", 10, json_schema={"type": "object"})
    assert StubLLM().generate("", "one two three", 1) == "one"


@pytest.mark.parametrize(
    ("text", "resources", "ports"),
    [
        ("web-vm to 10.0.2.7:5432", ("web-vm", "10.0.2.7"), ("5432",)),
        ("10.0.1.0/24 and fd00::1 on 6379/tcp", ("10.0.1.0/24", "fd00::1"), ("6379",)),
        ("at 12:30:15 on 2026-01-15 it was end-to-end slow", (), ()),
        ("999.1.1.1 and 1.2.3 port 70000", (), ()),
        ("networkInterfaces/web-nic over ssh", ("web-nic",), ("22",)),
        ("ssh on port 2222", (), ("2222",)),
        ("vm-a to vm-b on 443, then down on 22 November, on 10 machines", ("vm-a", "vm-b"), ("443",)),
        ("api.contoso.com and db.internal, e.g. on Monday", ("api.contoso.com", "db.internal"), ()),
        ("ghost_20260101_093537 ran az network nic show-effective-route-table, ghost_20260101_093537_006", (), ()),
    ],
)
def test_resources_and_ports_are_read_from_text(text, resources, ports):
    facts = facts_of(text)
    assert (facts.resources, facts.ports) == (resources, ports)


def test_each_cause_is_told_by_words_of_its_own():
    texts = {
        "nsg": "db-nsg denies the flow",
        "routing": "the spoke has no route to it",
        "peering": "the peering of hub is disconnected",
        "dns": "the name gives NXDOMAIN",
        "guest-firewall": "iptables drops it",
        "listener": "nothing listens on 6379",
        "machine-state": "the machine was deallocated",
        "mtu": "the MTU of the tunnel is 1400",
        "tls": "the certificate of the gateway expired",
        "snat": "SNAT ports ran out",
        "load-balancer": "the health probe fails",
        "private-endpoint": "the private endpoint is pending",
        "loss": "packet loss of 2 %",
        "saturation": "the server advertised a zero window",
    }
    assert set(texts) == {cause.tag for cause in causes()}
    for tag, text in texts.items():
        assert [cause.tag for cause in facts_of(text).causes] == [tag], text
