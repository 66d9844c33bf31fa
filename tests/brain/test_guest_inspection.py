"""Machines read inside by run-command: the lab's machines answer the script, and the walk then tells the fault."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ghost.brain.offline.case import Case
from ghost.brain.offline.guest_inspection import inspect_guests
from ghost.net import Machine, explain, read_inside
from tests.brain.wire_lab import LabTools, answered, case_of, complained, printed, run_steps, world_of

Fault = tuple[str, str]
"""Kind and name of the resource."""


def inspected(
    scenario: str, source: str, destination: str, port: int, denied: tuple[str, ...] = ()
) -> tuple[Case, LabTools, list[Fault]]:
    world = world_of(scenario)
    case, tools = case_of(world), LabTools(scenario, denied)
    complaint, candidate = complained(world, source, destination, port)
    run_steps(inspect_guests(case, complaint, [candidate]), tools)
    faults = explain(case.network, candidate.flow)
    return case, tools, [(fault.kind, fault.hop.resource.rpartition("/")[2]) for fault in faults]


@pytest.mark.parametrize(
    ("scenario", "source", "destination", "port", "read", "fault"),
    [
        ("guest-broker-queue", "results", "queue", 5672, ["queue"], [("guest_firewall", "queue")]),
        ("guest-portal-ban", "portal-02", "records", 8443, ["records"], [("guest_firewall", "records")]),
        ("guest-records-static", "records", "patients-db", 5432, ["patients-db", "records"],
         [("guest_route", "records")]),
        ("two-new-image", "app-01", "payments", 8443, ["payments"], [("not_listening", "payments")]),
        ("lb-orders-half", "app-01", "10.50.3.100", 5432, ["db-01", "db-02"], [("not_listening", "db-02")]),
        ("lb-portal-checks", "nightly", "10.80.1.100", 443, ["portal-01", "portal-02"],
         [("balancer_no_healthy_member", "portal-lb")]),
        ("two-portal-erp", "vm-portal-01", "vm-erp-app-01", 8443, ["vm-fw-01"],
         [("ip_forwarding_off", "nic-fw-01"), ("guest_not_forwarding", "nic-fw-01")]),
    ],
)  # fmt: skip
def test_what_a_guest_does_is_told_by_the_walk(
    scenario: str, source: str, destination: str, port: int, read: list[str], fault: list[Fault]
) -> None:
    case, tools, told = inspected(scenario, source, destination, port)
    assert (tools.inspected, told) == (read, fault)
    assert not case.layers


def test_the_layer_is_cleared_by_guests_that_were_read_and_a_denial_is_told_with_its_reason() -> None:
    case, _, _ = inspected("guest-broker-queue", "nightly", "queue", 5672)
    assert case.layers["guest_firewall"].status == "cleared"
    assert case.layers["guest_firewall"].audit_ids == ("s_1", "s_2")
    case, _, _ = inspected("guest-broker-queue", "results", "queue", 5672, denied=("queue",))
    assert case.layers["guest_firewall"].status == "not_verified"
    assert (
        'the guest of queue was not read: the command was denied ("not at night")' in case.layers["guest_firewall"].note
    )


def test_a_windows_machine_is_not_asked_in_the_words_of_linux() -> None:
    world = world_of("guest-broker-queue")
    case, tools = case_of(world), LabTools("guest-broker-queue")
    complaint, candidate = complained(world, "nightly", "queue", 5672)
    machines = case.network.all(Machine).values()
    case.network = case.network.with_resources(Machine, [replace(each, os="Windows") for each in machines])
    run_steps(inspect_guests(case, complaint, [candidate]), tools)
    assert not tools.inspected
    assert "queue runs Windows" in case.layers["guest_firewall"].note


def test_what_run_command_cuts_off_is_unknown_and_only_what_the_rest_drops_is_certain() -> None:
    world = world_of("guest-broker-queue")
    long = json.dumps({"nftables": [{"table": {"family": "inet", "name": f"t{n}", "handle": n}} for n in range(99)]})
    drops = "*filter\n:INPUT DROP [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n"
    inside = read_inside("/m", answered(printed(world, "queue", nft=long, iptables=drops)), "s_1", six=False)
    assert inside is not None
    assert inside.unknown == ("nft -j list ruleset printed more than run-command shows",)
    assert inside.guest.packet_filter is None
    assert inside.guest.listeners
    assert inside.part_of_filter is not None
    assert inside.part_of_filter.packet_filter is not None


@pytest.mark.parametrize(
    ("old", "new", "unknown"),
    [
        ("end tcp: 0", "end tcp: 1", "ss -tlnpH ended with status 1"),
        ("end nft: 0", "end nft: 127", ""),
        ("LISTEN 0 128", "LISTEN ? ?", "ss -tlnpH not in the expected format"),
        ('"beam.smp"', '"x\n----- end tcp\n"', "ss -tlnpH not in the expected format"),
        ("end rules: 0", "end rules: 255", "ip -j rule ended with status 255"),
    ],
)
def test_what_a_guest_prints_is_taken_only_in_the_form_of_its_command(old: str, new: str, unknown: str) -> None:
    text = printed(world_of("guest-broker-queue"), "queue")
    inside = read_inside("/m", answered(text.replace(old, new)), "s_1", six=False)
    assert inside is not None
    assert unknown in "".join(inside.unknown) if unknown else not inside.unknown
    assert (inside.guest.listeners is None) is ("ss" in unknown)
    assert (inside.guest.routes is None) is ("rule" in unknown)
    assert read_inside("/m", answered("hello"), "s_1", six=False) is None
