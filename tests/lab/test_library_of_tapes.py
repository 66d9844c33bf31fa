"""The tapes made of what Azure answered: complete, true to their sources, and judged as Azure itself judged."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from ghost.lab.directory import LabClock
from ghost.lab.scenario import TAPES, TapeScenario, load_case, tape_names
from ghost.lab.tapes import TapeDirectory, read_tape
from ghost.net import (
    Answer,
    Flow,
    Network,
    Read,
    ServiceTags,
    collect,
    evaluate_group,
    explain,
    group_from_arm,
    read_interfaces,
    walk,
)
from tests.net.description import described

RECORDED = Path(__file__).parents[3] / "shared" / "data" / "azure-recorded"
STYLES = {"vague", "error", "address", "service", "ticket"}


def opened(name: str, directory: Path) -> TapeDirectory:
    case = load_case(name)
    assert isinstance(case, TapeScenario)
    return TapeDirectory.create(directory, read_tape(case.tape), case.briefing, LabClock(0.0, 1.0))


def test_each_tape_is_complete(tmp_path):
    assert len(tape_names()) >= 6
    for name in tape_names():
        case = load_case(name)
        assert {symptom.style for symptom in case.symptoms} == STYLES, name
        assert len({symptom.text for symptom in case.symptoms}) == len(case.symptoms), name
        tape = opened(name, tmp_path / name)
        account = tape.play(shlex.split("az account show --query '{name:name,id:id,user:user.name}' -o json"))
        assert json.loads(account.output)["name"] == "recorded"
        for recording in tape.recordings:
            played = tape.play(shlex.split(recording.command))
            assert (played.exit_code, played.output) == (recording.exit_code, recording.output), recording.command


@pytest.mark.skipif(not RECORDED.is_dir(), reason="takes answers that Azure gave, which are not in the project")
def test_a_tape_holds_what_was_recorded_and_names_where():
    answers = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(RECORDED.glob("*.json"))]
    known = {answer["source"].split(" ")[0]: answer for answer in answers}
    compared = 0
    for file in sorted(TAPES.glob("*.jsonl")):
        for row in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            assert row["source"], row["command"]
            answer = known.get(row["source"].split(" ")[-2].rstrip(",") if "#" in row["source"] else "")
            answer = answer or next((known[source] for source in known if row["source"].startswith(f"{source},")), None)
            if answer is not None and "body" in row:
                assert row["body"] == answer["body"], row["command"]
                compared += 1
    assert compared >= 4


def read_of(tape: TapeDirectory, read: Read) -> Answer:
    played = tape.play(read.argv)
    return Answer(played.output, " ".join(read.argv), None if played.exit_code == 0 else played.stderr.strip())


def network_of(tape: TapeDirectory, flow: Flow) -> Network:
    return collect([flow], lambda read: read_of(tape, read), read_interfaces(lambda read: read_of(tape, read)))


def told(tape: TapeDirectory, command: str) -> Any:
    return json.loads(tape.play(shlex.split(command)).output)


VM = (
    "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/cli_test_nw_vm000001"
    "/providers/Microsoft.Compute/virtualMachines/vm1"
)
WATCHER = "az network watcher"
RULES = [  # Azure's verdict, and the flow that it was asked about
    (
        f"{WATCHER} test-ip-flow --vm {VM} --direction Inbound --protocol TCP --local 10.0.0.9:22 --remote 100.1.2.3:*",
        "access",
        "ruleName",
        Flow("Tcp", "100.1.2.3", None, "10.0.0.9", 22),
    ),
    (
        f"{WATCHER} run-configuration-diagnostic --resource {VM} --direction Inbound --protocol TCP --port 12100"
        " --source 12.11.12.14 --destination 10.1.1.4 --query results[0].networkSecurityGroupResult",
        "securityRuleAccessResult",
        "evaluatedNetworkSecurityGroups[0].matchedRule.ruleName",
        Flow("Tcp", "12.11.12.14", None, "10.1.1.4", 12100),
    ),
]
HERE, THERE = "10.0.0.8", "10.1.0.8"
CHECK = f"{WATCHER} test-connectivity -g rg163717709f --dest-port 22"
CONNECTIONS = [
    (f"{CHECK} --source-resource vm70058400c6 --dest-resource vm70070412b5", HERE, THERE),
    (f"{CHECK} --source-resource vm70070412b5 --dest-resource vm70058400c6", THERE, HERE),
]


def test_the_model_judges_as_azure_did(tmp_path):
    """IP flow verify, configuration diagnostic, and connection checks: verdicts that are not ours."""
    import jmespath

    tape = opened("denied-by-default", tmp_path / "rules")
    (interface,) = told(tape, f"{WATCHER} show-security-group-view --vm {VM}")["networkInterfaces"]
    group = group_from_arm(interface["securityRuleAssociations"], "nic")
    tags = ServiceTags(virtual_network=("10.0.0.0/24",))  # the diagnostic says that 10.1.1.4 is outside
    for command, access, rule, flow in RULES:
        verdict = told(tape, command)
        ours = evaluate_group(group, flow, "Inbound", tags)
        assert ours.certain, command
        assert ("Allow" if ours.allowed else "Deny") == jmespath.search(access, verdict), command
        assert ours.rule is not None
        assert jmespath.search(rule, verdict).endswith(ours.rule.name), command

    hop = told(
        tape, f"{WATCHER} show-next-hop -g cli_test_nw_vm000001 --vm vm1 --source-ip 10.0.0.9 --dest-ip 10.0.0.6"
    )
    assert hop == {"nextHopType": "VirtualNetwork", "routeTableId": "System Route"}
    network = described(["vnet v 10.0.0.0/24", "subnet v/s 10.0.0.0/24", "vm vm1 10.0.0.9 v/s", "vm vm2 10.0.0.6 v/s"])
    walked = walk(network, Flow("Tcp", "10.0.0.9", None, "10.0.0.6", 22))
    assert next(hop.rule for hop in walked.hops if hop.kind == "route") == "10.0.0.0/24 -> VnetLocal, Default route"
    check = told(
        tape, f"{WATCHER} test-connectivity --source-resource {VM} --dest-address www.microsoft.com --dest-port 80"
    )
    assert (check["connectionStatus"], check["hops"][-1]["type"]) == ("Reachable", "Internet")
    outbound = walk(network, Flow("Tcp", "10.0.0.9", None, check["hops"][-1]["address"], 80))
    assert not [hop for hop in outbound.hops if hop.stops]

    tape = opened("peering-without-access", tmp_path / "peering")
    for command, source, destination in CONNECTIONS:
        assert told(tape, command)["connectionStatus"] == "Unreachable"
        flow = Flow("Tcp", source, None, destination, 22)
        network = network_of(tape, flow)
        (fault,) = explain(network, flow)
        assert (fault.kind, fault.hop.verdict) == ("peering_no_access", "drop")
        assert fault.mend is not None
        # Before access was turned off Azure's check from vm70058400c6 to vm70070412b5 said Reachable.
        assert not [hop for hop in walk(fault.mend.applied(network), flow).hops if hop.stops]


def test_the_walk_finds_no_other_fault_than_the_truth_and_lets_nothing_pass_where_bodies_are_missing(tmp_path):
    flows = {
        "peering-half-made": (Flow("Tcp", HERE, None, THERE, 22), {"peering_disconnected"}),
        "peering-without-access": (Flow("Tcp", HERE, None, THERE, 22), {"peering_no_access"}),
        "port-closed-by-default": (Flow("Tcp", "100.1.2.3", None, "20.124.206.60", 80), {"security_rule"}),
        "private-range-to-nowhere": (Flow("Tcp", "10.0.0.4", None, "192.168.10.20", 1433), {"route_none"}),
        "ssh-is-let-in": (Flow("Tcp", "100.1.2.3", None, "20.124.206.60", 22), set[str]()),
    }
    for name, (flow, expected) in flows.items():
        network = network_of(opened(name, tmp_path / name), flow)
        found = {fault.kind for fault in explain(network, flow)}
        assert found == expected <= {fault.kind for fault in load_case(name).truth.faults}, name
        assert walk(network, flow).outcome != "passes", name
