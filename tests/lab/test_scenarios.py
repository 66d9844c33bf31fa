"""Each scenario's world has the fault it is about, and so has each variation of it."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost import lab
from ghost.errors import LabError
from ghost.lab.flow_sight import look
from ghost.lab.scenario import SCENARIOS, TAPES, WORLDS, world_from_source
from ghost.lab.truth import Edit, FlowEnds
from tests.exhaustive import examples
from tests.lab.variations import renamed, with_deny_at_other_end, with_loss_in_other_direction, without_fault

NAMES = ["blocked-port", "wire-loss"]
"""Scenarios with a world of their own, which can be varied."""


def wrong_with(scenario: lab.Scenario) -> list[lab.Finding]:
    return [finding for finding in lab.findings(scenario) if not finding.passed]


def test_the_world_of_each_scenario_has_the_faults_it_states() -> None:
    assert {name: wrong for name in lab.scenario_names() if (wrong := wrong_with(lab.load_scenario(name)))} == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_server_listens_where_the_complaint_is_about_and_a_client_asks_it(name: str) -> None:
    scenario = lab.load_scenario(name)
    flow, world = scenario.flows[0], scenario.world

    assert flow.port in [listener.port for listener in world.machine(flow.destination).listeners]
    assert (flow.source, flow.destination, flow.port) in [(t.client, t.server, t.port) for t in world.traffic]
    assert world.machine(flow.source).power == world.machine(flow.destination).power == "running"


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_can_be_taken_at_both_ends(name: str) -> None:
    scenario = lab.load_scenario(name)
    world = scenario.world
    watched = {world.location_of(watcher.resource_group) for watcher in world.watchers}

    for machine in (world.machine(scenario.flows[0].source), world.machine(scenario.flows[0].destination)):
        assert machine.has_capture_agent
        assert world.location_of(machine.resource_group) in watched
    assert any("captures" in account.containers for account in world.storage_accounts)


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_not_obvious(name: str) -> None:
    """Other groups, other denying rules and other allowing rules for the port stand beside the cause."""
    scenario = lab.load_scenario(name)
    groups = scenario.world.security_groups
    denies = [rule for group in groups for rule in group.rules if rule.access == "Deny"]

    assert len(groups) >= 3
    assert len([rule for rule in denies if rule.name not in [f.rule for f in scenario.truth.faults]]) >= 2
    assert len(scenario.world.machines) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_round_trips_through_a_dict_and_through_json(name: str) -> None:
    scenario = lab.load_scenario(name)

    assert lab.Scenario.from_dict(scenario.to_dict()) == scenario
    assert lab.world_from_dict(json.loads(json.dumps(scenario.world.to_dict()))) == scenario.world


def test_an_unknown_scenario_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(LabError, match=r"no scenario 'blockedport': did you mean blocked-port\? see ghost lab list"):
        lab.load_scenario("blockedport")


GOOD = (SCENARIOS / "blocked-port.toml").read_text(encoding="utf-8")
WORLD = GOOD[GOOD.index("[approvals]") :]
FIRST = """
title = "A cache"
symptom = "no cache on port 6379"
expected = { kind = "nsg_deny", source = "web-vm-01", destination = "redis-cache-01", port = 6379, resource = "cache-nsg", rule = "close-legacy-ports", direction = "Inbound" }
"""  # noqa: E501
DATED = 'format = 2\nedits = [{ put = "natGateways/x", properties = { x = 2026-01-01 } }]'
MISSHAPEN = (
    'format = 2\nedits = [{ put = "loadBalancers/x", properties = { probes = [{ name = "x", properties = 1 }] } }]'
)
KIND, RULE = 'kind = "security_rule"', 'rule = "close-legacy-ports"'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title = ", "titel = ", r"bad.toml: unknown field 'titel'; .* \(did you mean 'title'\?\)"),
        ("format = 2", "format = 3", r"bad.toml: format: 3 is not one of 2"),
        ("title = ", "# title = ", r"bad.toml: the field 'title' is missing"),
        (KIND, 'kind = "nsg"', r"bad.toml: truth.faults\[0\].kind: 'nsg' is not one of 'machine_stopped', "),
        (KIND, 'kind = "security_rules"', r"truth.faults\[0\].kind: .* \(did you mean 'security_rule'\?\)"),
        (RULE, 'flow = "mian"', r"bad.toml: truth.faults\[0\].flow: there is no flow 'mian'; there are main, site"),
        ('resource = "networkSecurityGroups/cache-nsg"', "resource = 5", r"truth.faults\[0\].resource: expected"),
        ("delete = ", "delet = ", r"truth.faults\[0\].mend\[0\]: unknown field 'delet'; .*\(did you mean 'delete'"),
        ('style = "vague"', 'style = "curt"', r"bad.toml: symptoms\[1\].style: 'curt' is not one of 'vague'"),
        (
            'source = "web-vm-01"',
            'source = "web-vm-1"',
            r"bad.toml: flows\[0\].source: .* no machine 'web-vm-1'; it has",
        ),
        (
            'source = "web-vm-01"',
            'source = "10.20.1.256"',
            r"bad.toml: flows\[0\].source: '10.20.1.256' is not an address",
        ),
        ("port = 6379", 'port = "6379"', r"bad.toml: flows\[0\].port: expected int, got '6379'"),
        ("port = 6379", "port = 65536", r"bad.toml: flows\[0\].port: 65536 is not a port"),
        ('name = "site"', 'name = "main"', r"bad.toml: flows\[1\].name: 'main' is there twice"),
        ("[approvals]", 'base = "two-tier"\n[approvals]', r"bad.toml: verdicts\[0\]: unknown field 'base'"),
        ("format = 2", 'format = 2\nbase = "none"', r"bad.toml: base: there is a \[world\] as well"),
        ("format = 2", 'format = 2\nedits = [{ put = "x", delete = "y" }]', r"bad.toml: edits\[0\]: give one of put, "),
        ("format = 2", 'format = 2\nedits = [{ machine = "x" }]', r"bad.toml: edits\[0\]: .* no machine 'x'"),
        (
            "priority = 200",
            "priority = true",
            r"bad.toml: world.security_groups\[0\].rules\[1\].priority: expected int",
        ),
        ('security_group = "cache-nsg"', 'security_group = "cash-nsg"', r"no network security group 'cash-nsg'"),
        ('address = "10.20.1.4"', 'address = "10.20.9.4"', r"bad.toml: world: .* 10.20.9.4 lies outside its subnet"),
        (
            'subnet = "jobs-subnet"\naddress = "10.20.3.10"',
            'subnet = "cache-subnet"\naddress = "10.20.2.5"',
            r"world: interfaces redis-cache-01-nic and jobs-vm-01-nic have one address: 10.20.2.5",
        ),
        ('client = "web-vm-01"', 'client = "web-vm-09"', r"'web-vm-09'"),
        ('resource_group = "prod-rg"\nprefixes', 'resource_group = "x"\nprefixes', r"no resource group 'x'"),
        (
            'destination_ports = ["22"]',
            'destination_ports = ["22-"]',
            r"rule allow-ssh-from-jobs of cache-nsg: .*'22-' is not a port range",
        ),
        ("priority = 110", "priority = 200", r"'Inbound priority 200 in cache-nsg' twice"),
        ("priority = 110", "priority = 99", r"allow-ssh-from-jobs of cache-nsg has priority 99"),
        ('name = "jobs-nsg"', 'name = "cache-nsg"', r"'cache-nsg' twice"),
        ('prefix = "172.20.0.0/16"', 'prefix = "172.20.0.0/33"', r"'172.20.0.0/33' is neither an address nor a prefix"),
        ("format = 2", "format = 2\ntenant.page_size = 0", r"bad.toml: tenant.page_size: 0 is not 1 or more"),
        ("format = 2", "format = 2\ntenant.az_latency_ms = inf", r"bad.toml: tenant.az_latency_ms: inf is not 0 to"),
        (
            "format = 2",
            "format = 2\nedits = [{ world = { rtt_ms = nan } }]",
            r"bad.toml: edits\[0\]: .* nan is not a JSON value",
        ),
        ("format = 2", "format = 2\nedits = [{ world = { rtt_ms = -1 } }]", r"edits\[0\]: world.rtt_ms: -1.0 is not 0"),
        ("format = 2", DATED, r"bad.toml: edits\[0\]: world.edits.properties.x: 2026-01-01 is not a JSON value"),
        ("format = 2", MISSHAPEN, r"bad.toml: edits\[0\]: the world is not valid in Azure"),
        ("[world]", "[world", r"cannot read the scenario .*bad.toml"),
    ],
)
def test_a_file_that_is_not_sound_is_refused_with_the_place(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in GOOD
    path = tmp_path / "bad.toml"
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")

    with pytest.raises(LabError, match=message) as refused:
        lab.read_scenario(path)
    assert "\n" not in str(refused.value)


def test_a_scenario_is_named_after_its_file_and_reads_regular_files_only(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'name = "../../elsewhere"\n{GOOD}')
    assert lab.read_scenario(path).name == "mine"
    os.mkfifo(tmp_path / "pipe.toml")
    long = "x" * 5000
    for base in ("./pipe.toml", "a\\u0000.toml", long, "../scenarios/wire-loss"):
        path.write_text(f'base = "{base}"\n{GOOD[: GOOD.index("[world]")]}')
        with pytest.raises(LabError):
            lab.read_scenario(path)


def test_bases_that_lead_to_each_other_are_refused(tmp_path: Path) -> None:
    header = GOOD[: GOOD.index("[approvals]")]
    for name, base in (("case", "one"), ("one", "two"), ("two", "one")):
        text = f'base = "./{base}.toml"\n' + (header if name == "case" else "")
        (tmp_path / f"{name}.toml").write_text(text)
    with pytest.raises(LabError, match=r"two.toml: base: a loop: one.toml -> two.toml -> one.toml"):
        lab.read_scenario(tmp_path / "case.toml")
    (tmp_path / "one.toml").write_text(WORLD[WORLD.index("[world]") :])
    assert lab.read_scenario(tmp_path / "case.toml").world == lab.load_scenario("blocked-port").world


def test_base_worlds_are_sound() -> None:
    for base in WORLDS.glob("*.toml"):
        world = world_from_source({"base": base.stem}, "x: ")
        for each in world.traffic:
            ends = FlowEnds(source=each.client, destination=each.server, protocol=each.protocol, port=each.port)
            assert look(world, ends).experience == "works", (base.stem, each)


def test_files_of_the_first_format_load_and_mean_the_same(tmp_path: Path) -> None:
    (tmp_path / "old.toml").write_text(FIRST + WORLD)
    old, new = lab.read_scenario(tmp_path / "old.toml"), lab.load_scenario("blocked-port")

    assert (old.truth.faults, old.flows[0], old.world) == (new.truth.faults, new.flows[0], new.world)
    assert wrong_with(old) == []
    for change, message in (
        ('"nsg_deny"', r"old.toml: expected.kind: 'aliens' is not one of"),
        ("6379, ", r"old.toml: expected.port: expected int"),
        ('rule = "close-legacy-ports", ', r"old.toml: expected: .* needs `resource` and `rule`"),
    ):
        wrong = {'"nsg_deny"': '"aliens"', "6379, ": '"6379", '}.get(change, "")
        (tmp_path / "old.toml").write_text(FIRST.replace(change, wrong) + WORLD)
        with pytest.raises(LabError, match=message):
            lab.read_scenario(tmp_path / "old.toml")


def _places(value: object, place: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(inner for key, item in items for inner in _places(item, (*place, key)))]


TREE = tomllib.loads(GOOD)
ANY = st.sampled_from([None, -1, 0, 1e400, "", "x", "/", "10.0.0.0/99", "::1%x", "a/b/c", [], {}, [[]], [{}], {"a": 1}])


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(_places(TREE)[1:]), ANY)
def test_a_damaged_file_is_one_line_of_error_and_never_a_defect(place: tuple[Any, ...], value: object) -> None:
    tree = deepcopy(TREE)
    holder: Any = tree
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    refused = None
    try:
        list(lab.findings(lab.Scenario.from_dict({"name": "x", **tree}, "x.toml: ")))
    except LabError as error:
        refused = str(error)
    assert refused is None or (refused.startswith("x.toml: ") and "\n" not in refused)


def test_the_schema_takes_every_scenario_and_no_typo() -> None:
    validator = jsonschema_rs.validator_for(lab.schema_of_scenarios())
    for path in (*SCENARIOS.glob("*.toml"), *TAPES.glob("*.toml")):
        assert not list(validator.iter_errors(tomllib.loads(path.read_text()))), path
    for old, new in (("title = ", "titel = "), (KIND, 'kind = "nsg"'), ("delete = ", "delet = "), ("[world]", "[w]")):
        assert not validator.is_valid(tomllib.loads(GOOD.replace(old, new, 1)))


def test_a_check_tells_what_does_not_hold() -> None:
    scenario = lab.load_scenario("blocked-port")
    (fault,), flow = scenario.truth.faults, scenario.flows[0]
    twice = replace(
        scenario.truth, faults=(fault, replace(fault, mend=(Edit(machine="web-vm-01", set={"os": "Linux"}),)))
    )
    for changed, check in (
        (replace(scenario, flows=(replace(flow, expect="works"),)), "flow main: works with all faults"),
        (replace(scenario, truth=lab.Truth((replace(fault, mend=()),))), "truth.faults[0].mend"),
        (replace(scenario, truth=lab.Truth((replace(fault, mend=twice.faults[1].mend),))),
         "flow main: works when all faults are corrected"),
        (replace(scenario, truth=twice), "flow main: fails when only fault 1 (security_rule) is corrected"),
        (replace(scenario, truth=lab.Truth((replace(fault, kind="admin_rule"),))),
         "flow main: the walk finds fault 1 (admin_rule)"),
        (replace(scenario, truth=lab.Truth((replace(fault, resource="routeTables/x"),))), "named resources exist"),
        (replace(scenario, verdicts=(replace(scenario.verdicts[0], verdict="pass", rule=None),)), "verdicts[0]: pass"),
        (replace(scenario, symptoms=scenario.symptoms[:4]), "symptoms in five styles"),
    ):  # fmt: skip
        assert check in [finding.check for finding in wrong_with(changed)]


# --- approvals ---

APPROVALS = lab.Approvals(
    (
        lab.Approval("az storage blob delete --account-name keep", "deny", "the owners keep it"),
        lab.Approval("az storage blob", "approve"),
        lab.Approval("rm", "approve"),
    )
)


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("az storage blob delete --account-name keep --name x", False),
        ("az storage blob delete --account-name other --name x", True),
        ("az storage blobs", False),
        ("az storage", False),
        ("rm /tmp/captures/x.cap", True),
        ("rmdir /tmp", False),
        ("rm 'unbalanced", False),
        ("", False),
    ],
)
def test_the_first_approval_that_matches_decides_and_none_denies(command: str, allowed: bool) -> None:
    assert APPROVALS.decide(command).allowed is allowed


def test_a_denial_carries_its_reason() -> None:
    assert APPROVALS.decide("az storage blob delete --account-name keep").reason == "the owners keep it"
    assert "no approval" in APPROVALS.decide("az vm delete").reason


def test_the_first_answer_whose_words_a_question_holds_is_given_and_otherwise_nobody_answers() -> None:
    answers = (lab.Answer("since when", "Tuesday"), lab.Answer("port", "5432"), lab.Answer("when", "never"))
    briefing = lab.Briefing("x", "slow", answers=answers)

    for question, answer in (
        ("Since when does it fail?", "Tuesday"),
        ("Which port, please?", "5432"),
        ("When?", "never"),
        ("Does a report exist?", None),
        ("", None),
    ):
        assert briefing.answer(question) == answer, question


# --- variations ---

ALL_VARIATIONS: list[tuple[str, Callable[[lab.Scenario], lab.Scenario]]] = [
    ("blocked-port", lambda scenario: scenario),
    ("blocked-port", with_deny_at_other_end),
    ("blocked-port", lambda scenario: with_deny_at_other_end(with_deny_at_other_end(scenario))),
    ("blocked-port", without_fault),
    ("wire-loss", lambda scenario: scenario),
    ("wire-loss", with_loss_in_other_direction),
    ("wire-loss", without_fault),
]


@settings(max_examples=examples(6), deadline=None)
@given(st.sampled_from(ALL_VARIATIONS), st.integers(0, 10_000))
def test_every_variation_has_the_fault_it_states(
    variation: tuple[str, Callable[[lab.Scenario], lab.Scenario]], seed: int
) -> None:
    name, change = variation
    scenario = renamed(change(lab.load_scenario(name)), seed)

    assert wrong_with(scenario) == []
    assert lab.world_from_dict(scenario.world.to_dict()) == scenario.world


def test_the_deny_moves_to_the_other_group_and_back() -> None:
    original = lab.load_scenario("blocked-port")
    moved = with_deny_at_other_end(original)
    (fault,) = moved.truth.faults

    assert (fault.resource, fault.direction) == ("networkSecurityGroups/prod-nsg", "Outbound")
    assert with_deny_at_other_end(moved).truth == original.truth


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [str(value)]


@settings(max_examples=examples(10))
@given(st.sampled_from(NAMES), st.integers(0, 10_000))
def test_no_name_address_or_faulty_port_survives_a_renaming(name: str, seed: int) -> None:
    before = lab.load_scenario(name)
    after = renamed(before, seed)
    world = before.world
    gone = {body["name"] for body in world.documents if body["type"].count("/") == 1}
    gone -= {item.name for item in world.watchers}
    gone |= {rule.name for group in world.security_groups for rule in group.rules}
    gone |= {subnet.name for network in world.networks for subnet in network.subnets}
    gone |= {subnet.prefix for network in world.networks for subnet in network.subnets}
    gone |= {interface.address for interface in world.interfaces}
    gone |= {value for machine in world.machines for value in machine.tags.values()}
    gone |= {str(before.flows[0].port)}

    texts = _texts({**after.to_dict(), "name": "", "approvals": {}})

    assert not {text for text in texts if text in gone}
    for old in gone:
        assert old not in after.symptom
    assert str(after.flows[0].port) in after.symptom
    assert any(item.name in after.symptom for item in (*after.world.machines, *after.world.networks[0].subnets))


def test_a_renaming_is_the_same_for_the_same_seed() -> None:
    scenario = lab.load_scenario("blocked-port")

    assert renamed(scenario, 7) == renamed(scenario, 7)
    assert renamed(scenario, 7) != renamed(scenario, 8)


def loss(world: lab.World, source: str, destination: str) -> float:
    return world.conditions.on_wire(source, (destination,)).loss


def test_loss_in_the_other_direction_is_felt_by_the_larger_part_of_the_data() -> None:
    after = with_loss_in_other_direction(lab.load_scenario("wire-loss"))
    traffic = next(t for t in after.world.traffic if t.client == after.flows[0].source)

    assert loss(after.world, "app-vm-01", "db-vm-01") == 0.0
    assert loss(after.world, "db-vm-01", "app-vm-01") > 0.0
    assert traffic.response_bytes > traffic.request_bytes


def test_faults_on_one_way_add_up() -> None:
    world = lab.load_scenario("wire-loss").world
    fault = replace(world.faults[0], loss=0.5)

    assert loss(replace(world, faults=(fault, fault)), fault.source, fault.destination) == 0.75
