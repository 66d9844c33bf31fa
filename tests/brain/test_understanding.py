"""What engineers type over the lab's worlds, and the flows that are meant."""

from __future__ import annotations

import json
import shlex
import time
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.brain.offline.case import Case
from ghost.brain.offline.complaint import Complaint, StatedEnds
from ghost.brain.offline.steps import Question
from ghost.brain.offline.understanding import understand
from ghost.lab import World
from ghost.lab.scenario import world_from_source

WORLDS = Path("src/ghost/lab/worlds")
WORDINGS = tomllib.loads((Path(__file__).parent / "wordings.toml").read_text(encoding="utf-8"))["wording"]
TYPES = {
    "network nic": "Microsoft.Network/networkInterfaces",
    "network vnet": "Microsoft.Network/virtualNetworks",
    "network nsg": "Microsoft.Network/networkSecurityGroups",
    "network lb": "Microsoft.Network/loadBalancers",
    "network public-ip": "Microsoft.Network/publicIPAddresses",
    "network local-gateway": "Microsoft.Network/localNetworkGateways",
}


@cache
def world(name: str) -> World:
    return world_from_source({"base": name}, "")


def answered(command: str, name: str) -> dict[str, Any]:
    """Answer a read of `az` from the world's documents."""
    words = shlex.split(command)
    documents = world(name).documents
    if words[1:3] == ["resource", "list"]:
        output: Any = [{"id": body["id"], "tags": body.get("tags")} for body in documents]
    else:
        bodies = documents.of_type(TYPES[" ".join(words[1:3])])
        output = bodies if words[3] == "list" else next(b for b in bodies if b["name"] == words[words.index("-n") + 1])
    return {"status": "completed", "exit_code": 0, "audit_id": f"a{len(command)}", "output": json.dumps(output)}


def understood(
    text: str, name: str, options: StatedEnds | None = None, answer: str = "no one can answer"
) -> tuple[Complaint, Case, int]:
    case, calls = Case(text), 0
    steps = understand(case, text, options)
    step = next(steps)
    while True:
        try:
            if isinstance(step, Question):
                step = steps.send(answer)
            else:
                calls += len(step.calls)
                step = steps.send([answered(str(call.arguments["command"]), name) for call in step.calls])
        except StopIteration as done:
            return done.value, case, calls


def expected(said: dict[str, Any]) -> dict[str, Any]:
    return {"from": set(said["from"]), "to": set(said["to"]), "kind": said.get("kind", "unreachable")}


def told(complaint: Complaint) -> dict[str, Any]:
    """Return the first meaning of each flow, in the words of the corpus."""
    firsts = [[each for each in flow if each.meaning == flow[0].meaning] for flow in complaint.flows]
    sources = {label for flow in firsts for each in flow for label in (each.source.label, *each.source.stands_for)}
    ports = {each.destination.label: each.flow.destination_port for flow in firsts for each in flow}
    named = {
        f"{each.destination.label}{'' if port is None else f':{port}'}"
        for flow in firsts
        for each in flow
        for port in [each.flow.destination_port]
    }
    assert ports or complaint.missing
    return {"from": sources if complaint.source_known else set(), "to": named, "kind": complaint.kind}


@pytest.mark.parametrize("said", WORDINGS, ids=lambda said: said["text"][:60])
def test_the_flows_that_are_meant_are_understood(said: dict[str, Any]) -> None:
    complaint, _, calls = understood(said["text"], said["world"])
    assert told(complaint) == expected(said)
    first = complaint.flows[0][0]
    assert first.port_origin == said.get(
        "origin", "stated" if first.flow.has_ports and first.flow.destination_port else ""
    )
    assert first.flow.protocol == said.get("protocol", "Tcp")
    assert calls <= 6


def test_a_machine_and_its_name_in_dns_are_one_flow() -> None:
    """What explains the one ends the search: guests are not read, and captures not taken, for the other."""
    text = "orders cannot reach search, also known as search.retail.internal, on port 9200"
    complaint, _, _ = understood(text, "hub-spoke")
    (flow,) = complaint.flows
    assert [candidate.destination.label for candidate in flow] == ["search", "search.retail.internal"]


def test_options_win_over_words() -> None:
    options = StatedEnds("app-02", "10.50.3.8", 6380, "tcp")
    complaint, _, _ = understood("web-01 cannot reach db-01 on port 5432", "two-tier", options)
    assert [str(each.flow) for flow in complaint.flows for each in flow] == ["TCP 10.50.2.5 -> 10.50.3.8:6380"]


def test_an_option_that_names_nothing_is_told_and_no_other_end_stands_for_it() -> None:
    words = "web-01 cannot reach db-01 on port 5432"
    unknown, _, _ = understood(words, "two-tier", StatedEnds("web-01", "nix", 6380))
    assert (unknown.flows, unknown.missing) == (
        (),
        "the destination of the traffic (there is nothing named nix in what was read)",
    )
    nobody, _, _ = understood(words, "two-tier", StatedEnds("nobody", "db-01", 5432))
    assert (nobody.source_known, nobody.ends_sure) == (False, False)


@pytest.mark.parametrize(
    ("text", "answer", "to"),
    [
        ("nothing works", "app-02", "app-02"),
        ("web-01 cannot reach web-01 on port 443", "app-01", "app-01"),
        ("ops-01 cannot reach the postgres machine in data on 5432", "no one can answer", ""),
        ("web-01 cannot reach app-01 on port 99999", "8080", "app-01"),
    ],
)
def test_what_is_open_is_asked_and_nobody_is_no_dead_end(text: str, answer: str, to: str) -> None:
    complaint, case, _ = understood(text, "two-tier", answer=answer)
    assert case.asked <= 3
    if to:
        assert {each.destination.label for each in complaint.candidates} == {to}
    else:
        assert complaint.flows


STORY = (
    "Ticket of the night shift. db-01 was patched at eight. Users of app-01 complain about slow pages. web-01 is fine. "
    "There was an alert for cache-01 in spring. I think it is the new rule."
)


@pytest.mark.parametrize(
    ("answer", "flow", "is_sure"),
    [
        ("app-01 to db-02 port 5433", "TCP 10.50.2.4 -> 10.50.3.5:5433", True),
        ("yes", "", True),
        ("no one can answer", "", False),
    ],
)
def test_a_story_is_confirmed_before_it_is_investigated(answer: str, flow: str, is_sure: bool) -> None:
    complaint, case, _ = understood(STORY, "two-tier", answer=answer)
    assert complaint.ends_sure is is_sure
    assert {str(each.flow) for each in complaint.candidates} == {flow} or not flow
    assert case.asked == 1 or not is_sure


@pytest.mark.parametrize("answer", ["no", "?", "I don't know", "wrong", "not app-01", "web-09 to db-09", "yesterday"])
def test_an_answer_that_names_no_end_confirms_nothing(answer: str) -> None:
    complaint, case, _ = understood(STORY, "two-tier", answer=answer)
    assert not complaint.ends_sure
    assert complaint == replace(understood(STORY, "two-tier")[0], stated=complaint.stated)
    assert case.asked <= 3


@pytest.mark.parametrize(
    "text",
    [
        "app-01, not web-01, cannot reach db-01 on port 5432",
        "As expected web-01 cannot reach db-01 on port 5432. app-01 hangs when it opens db-01:5432.",
        "Maybe web-01 cannot reach db-01:5432, or is it another one?",
        "Sorry, I meant app-01 cannot reach db-01 on port 5432, not web-01",
        "app-01 can connect to db-01 port 5432, app-02 cannot",
        "db-01:5432 is mentioned in the log. web-01 restarted.",
        "app-01 cannot reach Salesforce on port 443",
        "app-01 cannot reach -x.example.com on port 443",
    ],
)
def test_what_may_mean_something_else_is_not_sure(text: str) -> None:
    assert not understood(text, "two-tier")[0].ends_sure


@pytest.mark.parametrize(
    ("world", "text", "flow"),
    [
        ("two-tier", "flow log: 1732752000,10.50.2.4,10.50.3.4,44931,5432,T,I,D", "TCP 10.50.2.4 -> 10.50.3.4:5432"),
        ("two-tier", "firewall: TCP 10.50.2.4 51000 10.50.3.4 5432 drop", "TCP 10.50.2.4 -> 10.50.3.4:5432"),
        ("hub-spoke", "10.99.1.1 in the office cannot reach sql-vm on port 1433", "TCP 10.99.1.1 -> 10.2.1.4:1433"),
        ("two-tier", "db-01 <- app-01, port 5432 times out", "TCP 10.50.2.4 -> 10.50.3.4:5432"),
    ],
)
def test_addresses_and_records_of_flow_logs_are_taken_at_their_word(world: str, text: str, flow: str) -> None:
    assert {str(each.flow) for each in understood(text, world)[0].candidates} == {flow}


def test_a_sentence_that_names_both_ends_asks_nothing() -> None:
    asked = [said["text"] for said in WORDINGS if not understood(said["text"], said["world"])[0].ends_sure]
    assert len(asked) <= 0.07 * len(WORDINGS), asked


def test_a_tenant_that_may_not_be_listed_leaves_what_the_words_say() -> None:
    text = "10.50.2.4 cannot reach db-01 (10.50.3.4) on port 5432"
    denied = {"status": "completed", "exit_code": 1, "audit_id": "a", "stderr": "AuthorizationFailed"}
    steps = understand(Case(text), text, None)
    step = next(steps)
    while True:
        try:
            step = steps.send("no one" if isinstance(step, Question) else [denied for _ in step.calls])
        except StopIteration as done:
            flows = [str(each.flow) for flow in done.value.flows for each in flow]
            assert flows == ["TCP 10.50.2.4 -> 10.50.3.4:5432"]
            return


def test_a_large_tenant_is_understood_with_two_reads() -> None:
    _, _, calls = understood("vm-portal-01 cannot reach vm-erp-app-01 on port 8443", "nva-hub")
    assert calls == 2


_PIECES = st.sampled_from(
    [
        "web-01 ",
        "10.50.3.4:5432 ",
        "from ",
        "to ",
        "cannot reach ",
        "port ",
        "99999 ",
        "((((",
        "a.b.",
        "-",
        ":",
        "::1",
        "\n",
        "' or ",
        "https://",
    ]
)


@settings(max_examples=40, deadline=2000)
@given(st.one_of(st.text(max_size=2000), st.lists(_PIECES, max_size=200).map("".join)))
def test_any_text_ends_in_bounded_time(text: str) -> None:
    complaint, _, calls = understood(text[:2000], "two-tier")
    assert calls <= 8
    assert all(
        each.flow.destination_port is None or 0 < each.flow.destination_port < 65536 for each in complaint.candidates
    )


@pytest.mark.parametrize(
    "unit",
    ["from a-1 to ", "10.0.0.1 ", "a.", "port 1, ", "(", "web-01 and ", "cannot ", "x://", "1:", "app-", "is not "],
)
def test_repetition_takes_no_more_than_its_length(unit: str) -> None:
    started = time.monotonic()
    understood((unit * 2000)[:2000], "two-tier")
    assert time.monotonic() - started < 3
