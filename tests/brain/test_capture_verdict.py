"""Captures that the lab draws, read by the engine and judged: which fault, at which end, and what is no fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ghost.brain.offline.capture_verdict import examine_wire, vetoed
from ghost.brain.offline.case import Case, Cause
from ghost.net import Machine
from tests.brain.wire_lab import LabTools, Result, case_of, complained, run_steps, world_of

RESULTS, QUEUE = "10.80.2.5", "10.80.3.6"
BROKER = ("guest-broker-queue", "results", "queue", 5672)


def examined(
    scenario: str, source: str, destination: str, port: int | None, kind: Any = "unreachable",
    case: Case | None = None, denied: tuple[str, ...] = (), findings: Any = None, compared: Any = None, **more: Any
) -> tuple[Case, LabTools, list[str]]:  # fmt: skip
    world = world_of(scenario)
    case, tools = case or case_of(world), LabTools(scenario, denied, findings or {}, compared)
    complaint, candidate = complained(world, source, destination, port, kind, **more)
    return case, tools, [str(each) for each in run_steps(examine_wire(case, complaint, candidate), tools)]


def told(case: Case) -> list[tuple[str, str]]:
    """Kind and resource of each cause; the first words of what has no kind."""
    return [(each.kind or each.layer, each.resource.rpartition("/")[2]) for each in case.causes]


@pytest.mark.parametrize(
    ("scenario", "source", "destination", "port", "kind", "captured", "causes"),
    [
        (*BROKER, "unreachable", ["results", "queue"], [("guest_firewall", "queue")]),
        ("guest-portal-ban", "portal-02", "records", 8443, "refused", ["portal-02"], [("guest_firewall", "records")]),
        ("wire-loss", "app-vm-01", "db-vm-01", 5432, "slow", ["app-vm-01", "db-vm-01"], [("packet_loss", "app-vm-01")]),
        ("wire-lab-values", "portal-01", "results", 8443, "unreachable", ["portal-01", "results"],
         [("tls_failure", "results")]),
        ("wire-study-transfer", "scanner", "results", 8443, "unreachable", ["scanner", "results"],
         [("mtu_black_hole", "scanner")]),
        ("two-late-shift", "results", "queue", 5672, "unreachable", ["results", "queue"],
         [("idle_timeout", "results")]),
        ("calm-sql-graph", "orders", "sql-vm", 1433, "slow", ["orders", "sql-vm"], []),
        # What lies beyond the internet, and which member of a pool refuses, a capture at the source does not tell.
        ("nat-nightly-feed", "nightly", "51.140.84.20", 443, "unreachable", ["nightly"], []),
        ("lb-orders-half", "app-01", "10.50.3.100", 5432, "intermittent", ["app-01"], []),
        # Behind a load balancer, connections that go to the member itself look the same there.
        ("lb-portal-checks", "nightly", "10.80.1.100", 443, "unreachable", ["nightly", "portal-01"], []),
        ("nat-nightly-feed", "nightly", "feeds.example.org", 443, "unreachable", [], []),
        # Ends swapped, and another port than the stated one.
        ("guest-broker-queue", "queue", "results", 5672, "unreachable", ["queue", "results"], []),
        ("guest-broker-queue", "results", "queue", 5671, "unreachable", ["results", "queue"], []),
    ],
)  # fmt: skip
def test_a_capture_tells_the_fault_and_where_it_is(
    scenario: str, source: str, destination: str, port: int, kind: str, captured: list[str],
    causes: list[tuple[str, str]],
) -> None:  # fmt: skip
    case, tools, _ = examined(scenario, source, destination, port, kind)
    assert (tools.captured, told(case)) == (captured, causes)
    assert tools.asked[:1] == [2 if captured[1:2] not in ([], ["portal-01"]) else 1][: len(captured)]
    wire = case.layers["wire"].status
    if not causes:
        assert ("H4" in case.resolved) is scenario.startswith("calm")
        assert wire == ("cleared" if scenario.startswith(("calm", "lb-orders")) else "not_verified")


def half_open(document: Result) -> Result:
    """Return the document as if the destination's SYN-ACKs were never acknowledged."""
    found = {"kind": "syn_unanswered", "severity": "HIGH", "blame": "network", "protocol": "TCP", "confidence": "high",
             "who": {"src": RESULTS, "dst": QUEUE, "port": 5672},
             "measured": {"syn": 12, "syn_retransmitted": 8, "answered": 0, "syn_ack": 30}}  # fmt: skip
    return {**document, "findings": [found]}


def overtaken(document: Result) -> Result:
    """Return the document as if many segments were overtaken, and some of them passed for lost."""
    who = {"src": RESULTS, "dst": QUEUE, "port": 5672}
    shared = {"severity": "MEDIUM", "blame": "network", "protocol": "TCP", "confidence": "high", "who": who}
    lost = {"kind": "loss", "measured": {"loss_pct": 1.2, "lost_before_capture_point": 12}}
    return {**document, "findings": [{**shared, "kind": "reordering", "measured": {"reordered": 104}},
                                     {**shared, **lost}]}  # fmt: skip


def test_segments_that_were_overtaken_are_not_counted_as_lost() -> None:
    case, _, _ = examined(*BROKER, "slow", findings={"results": overtaken})
    assert told(case) == [("packet_reordering", "results")]


@pytest.mark.parametrize("where", ["results", "queue"])
def test_answers_that_get_lost_on_the_way_back_are_not_the_guests_silence(where: str) -> None:
    case, _, _ = examined(*BROKER, findings={where: half_open})
    assert told(case) == [("wire", "")]
    (cause,) = case.causes
    assert ("whose guest does not accept them" if where == "results" else "lost on the return path") in cause.text
    assert cause.likely


def test_a_port_that_only_the_capture_shows_is_walked_and_an_unknown_one_blames_nobody_unread() -> None:
    case, _, observed = examined(*BROKER[:3], None)
    assert observed == ["TCP port 5672 from results to queue"]
    assert told(case) == [("guest_firewall", "queue")]
    case, tools, observed = examined(*BROKER[:3], 5671, port_origin="usual")
    assert (tools.captured, observed) == (["results", "queue"], ["TCP port 5672 from results to queue"])


def test_a_source_that_was_not_named_is_looked_for_at_the_destination() -> None:
    case, tools, _ = examined("guest-broker-queue", "portal-01", "queue", 5672, source_known=False)
    assert (tools.captured, told(case)) == (["queue"], [("guest_firewall", "queue")])
    assert "from results to queue" in case.causes[0].text


def test_a_denied_capture_is_replaced_by_the_guests_and_the_layer_says_why() -> None:
    case, tools, again = examined(*BROKER, denied=("capture",))
    assert (tools.asked, tools.inspected, again) == ([2], ["queue"], ["TCP port 5672 from results to queue"])
    assert 'the capture at results and queue was denied (reason given: "not now")' in case.layers["wire"].note
    assert not case.causes


def test_a_denial_that_names_the_other_end_is_taken_at_its_word() -> None:
    world = world_of(BROKER[0])
    case, tools = case_of(world), LabTools(BROKER[0], ("capture at results",), reason="results is frozen, use queue")
    run_steps(examine_wire(case, *complained(world, *BROKER[1:], kind="refused")), tools)
    assert (tools.captured, told(case)) == (["results", "queue"], [("guest_firewall", "queue")])


def test_a_pair_of_which_one_end_is_denied_is_judged_by_the_other_alone() -> None:
    case, tools, _ = examined("wire-loss", "app-vm-01", "db-vm-01", 5432, "slow", denied=("capture at db-vm-01",))
    assert (tools.asked, told(case)) == ([2], [("packet_loss", "app-vm-01")])
    (cause,) = case.causes
    assert "remains undecided: no capture was completed at db-vm-01" in cause.text
    assert any("Narrow down" in action for action in cause.actions)
    case, tools, _ = examined(*BROKER, denied=("capture at results",))
    assert (tools.asked, told(case)) == ([2], [("guest_firewall", "queue")])


def test_captures_at_both_ends_tell_where_packets_are_lost_and_what_the_path_does_not_do() -> None:
    for scenario, ends, words in (
        ("wire-loss", ("app-vm-01", "db-vm-01", 5432, "slow"), "between app-vm-01 and db-vm-01 (87 of 2429 packets"),
        ("wire-order-answers", ("app-01", "db-01", 5432, "slow"), "between db-01 and app-01 ("),
        ("wire-study-transfer", ("scanner", "results", 8443), "packets of 1500 bytes and more are lost between"),
        ("wire-records-late", ("portal-01", "records", 8443, "slow"), "it does not arise on the path"),
    ):  # fmt: skip
        case, tools, _ = examined(scenario, *ends)
        (cause,) = case.causes
        assert (tools.asked, len(cause.audit_ids)) == ([2], 2)
        assert words in cause.text
        assert not any("Narrow down" in action for action in cause.actions)


def test_a_loss_that_the_other_end_does_not_confirm_is_not_certain() -> None:
    whole = {"from": "A", "to": "B", "arrived": 900, "lost_between": {"count": 0}}
    case, _, _ = examined("wire-loss", "app-vm-01", "db-vm-01", 5432, "slow", compared=[whole])
    (cause,) = case.causes
    assert (cause.likely, cause.conclusive) == (True, False)
    assert "does not confirm it" in cause.text


def test_captures_that_share_no_time_leave_the_side_undecided() -> None:
    case, _, _ = examined("wire-loss", "app-vm-01", "db-vm-01", 5432, "slow", compared=[])
    (cause,) = case.causes
    assert (cause.likely, cause.conclusive) == (False, True)
    assert "remains undecided: the captures of the two ends share no time" in cause.text


def test_only_the_source_is_captured_where_the_other_end_cannot_be() -> None:
    world = world_of("wire-loss")
    case = case_of(world)
    (there,) = [each for each in case.network.all(Machine).values() if each.id.endswith("/db-vm-01")]
    case.network = case.network.with_resources(Machine, [replace(there, power="stopped")])
    _, tools, _ = examined("wire-loss", "app-vm-01", "db-vm-01", 5432, "slow", case)
    assert (tools.captured, told(case)) == (["app-vm-01"], [("packet_loss", "app-vm-01")])
    assert "db-vm-01 is not a running virtual machine" in case.causes[0].text


def test_a_capture_of_working_traffic_overrules_what_configuration_says_of_it() -> None:
    world = world_of("calm-sql-graph")
    case = case_of(world)
    _, candidate = complained(world, "orders", "sql-vm", 1433)
    other = replace(candidate.flow, destination_port=1434)
    for flow, rule in ((candidate.flow, "deny-sql"), (other, "deny-other")):
        text = f"The rule {rule} denies it."
        case.blame(
            Cause("nsg_inbound", "H1", text, ("s_1",), (f"Remove {rule}",), kind="security_rule", rule=rule, flow=flow)
        )
    examined("calm-sql-graph", "orders", "sql-vm", 1433, "slow", case)
    assert [cause.text for cause in case.causes] == ["The rule deny-other denies it."]
    assert case.layers["nsg_inbound"].status == "at_fault"
    assert case.actions == ["Remove deny-other"]
    (call,) = [call for call in case.verdicts if call.arguments.get("action") == "contradict"]
    assert (call.arguments["id"], case.resolved["H1"]) == ("H1", "contradict")
    assert "tier 1" in call.arguments["higher_fidelity_source"]
    assert any("tier 1" in text and "s_1" in ids for text, ids in case.statements)
    assert not vetoed(case, candidate, ("s_9",))


def test_a_name_that_the_capture_shows_to_be_asked_for_in_vain_is_walked() -> None:
    asked = ("orders", "168.63.129.16", 53, "dns")
    case, _, observed = examined("dns-search-host", *asked, protocol="Udp")
    assert observed == ["UDP from orders to search.retail.internal"]
    assert not [cause for cause in case.causes if cause.kind]
