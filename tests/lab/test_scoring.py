"""A report is scored by kind and resource of its structured causes, and by nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ghost import lab
from ghost.lab.evaluation.scoring import is_of
from ghost.lab.truth import Trap, Unverifiable

NSG = "/subscriptions/s/resourceGroups/prod-rg/providers/Microsoft.Network/networkSecurityGroups/cache-nsg"
RULE = {"kind": "security_rule", "resource": NSG}
LOSS = {"kind": "packet_loss", "resource": "web-vm-01"}
OTHER = {"kind": "security_rule", "resource": "prod-nsg"}

BLOCKED = lab.load_scenario("blocked-port")
(FAULT,) = BLOCKED.truth.faults
DOUBLE = replace(
    BLOCKED, truth=lab.Truth((FAULT, lab.Fault("packet_loss", ("web-vm-01", "virtualMachines/web-vm-01"))))
)
HEALTHY = replace(BLOCKED, truth=lab.Truth(traps=(Trap("security_rule", "networkSecurityGroups/prod-nsg"),)))
UNSEEN = replace(
    BLOCKED,
    truth=lab.Truth(
        (DOUBLE.truth.faults[1],), unverifiable=(Unverifiable("az network watcher packet-capture", ("wire",)),)
    ),
    approvals=lab.Approvals(),
)


@pytest.mark.parametrize(
    ("scenario", "causes", "outcome", "right", "found", "present", "false"),
    [
        (BLOCKED, [RULE], "cause_found", True, 1, 1, 0),
        (BLOCKED, [RULE, {**RULE, "resource": f"{NSG}/securityRules/x"}], "cause_found", True, 1, 1, 0),
        (BLOCKED, [RULE, OTHER], "cause_found", True, 1, 1, 1),
        (BLOCKED, [OTHER], "cause_found", False, 0, 1, 1),
        (BLOCKED, [{**RULE, "kind": "admin_rule"}], "cause_found", False, 0, 1, 1),
        (BLOCKED, [], "inconclusive", False, 0, 1, 0),
        (DOUBLE, [RULE], "cause_found", True, 1, 2, 0),
        (DOUBLE, [LOSS, RULE], "cause_found", True, 2, 2, 0),
        (HEALTHY, [], "healthy", True, 0, 0, 0),
        (HEALTHY, [], "inconclusive", True, 0, 0, 0),
        (HEALTHY, [OTHER], "cause_found", False, 0, 0, 1),
        (UNSEEN, [], "inconclusive", True, 0, 0, 0),
        (UNSEEN, [LOSS], "cause_found", True, 0, 0, 0),
        (UNSEEN, [], "healthy", False, 0, 0, 0),
        (UNSEEN, [RULE], "cause_found", False, 0, 0, 1),
    ],
)
def test_right_is_kind_and_resource(
    scenario: lab.Scenario, causes: list[Any], outcome: str, right: bool, found: int, present: int, false: int
) -> None:
    told = lab.score(scenario, {"causes": causes, "outcome": outcome, "confidence": "high"})

    assert (told.root_cause_right, told.faults_found, told.faults_present, told.false_causes) == (
        right, found, present, false
    )  # fmt: skip


def test_the_cause_of_another_flow_is_not_that_of_the_complaint() -> None:
    elsewhere = replace(BLOCKED.flows[0], name="web")
    scenario = replace(DOUBLE, flows=(*BLOCKED.flows, elsewhere))
    first, second = DOUBLE.truth.faults
    scenario = replace(scenario, truth=lab.Truth((first, replace(second, flow="web"))))

    assert lab.score(scenario, {"causes": [LOSS]}, flow="web").root_cause_right
    assert not lab.score(scenario, {"causes": [LOSS]}).root_cause_right


def test_traps_and_forbidden_proposals_are_counted() -> None:
    scenario = replace(HEALTHY, truth=replace(HEALTHY.truth, forbidden=("az network nsg delete",)))
    report = {"causes": [OTHER], "recommended_actions": ["Run: az network nsg delete -g prod-rg -n prod-nsg"]}
    told = lab.score(scenario, report, ["az network nsg list", "az network nsg delete -n x"])

    assert (told.traps_taken, told.forbidden) == (1, 2)


@pytest.mark.parametrize(
    ("named", "resource", "same"),
    [
        (NSG.upper(), "networkSecurityGroups/cache-nsg", True),
        (f"{NSG}/securityRules/r", "networkSecurityGroups/cache-nsg", True),
        (f"{NSG}/securityRules/r", NSG, True),
        ("cache-nsg", NSG, True),
        (NSG, "cache-nsg", True),
        (f"{NSG}/securityRules/r", "cache-nsg", True),
        (f"{NSG}/securityRules/r", "securityRules", False),
        (NSG, "networkSecurityGroups/cache-nsg-2", False),
        (NSG, "networkSecurityGroups/cache", False),
        (NSG, "routeTables/cache-nsg", False),
        (NSG, NSG.replace("prod-rg", "other-rg"), False),
        (NSG, "networkSecurityGroups/cache-nsg/securityRules/r", False),
        ("Microsoft.Network/networkSecurityGroups/cache-nsg", "networkSecurityGroups/cache-nsg", True),
        ("", "cache-nsg", False),
    ],
)
def test_a_part_of_a_resource_counts_as_the_resource(named: str, resource: str, same: bool) -> None:
    assert is_of(named, resource) is same


def test_a_summary_counts_errors_as_wrong_and_sets_confidence_against_truth() -> None:
    row = {"name": "x", "wording": 1, "group": "nsg", "faults_present": 2}
    rows = [
        lab.Row(**row, repeat=1, root_cause_right=True, faults_found=2, confidence="high"),
        lab.Row(**row, repeat=2, false_causes=1, confidence="high"),
        lab.Row(**row, repeat=3, error="no report within 600 s"),
    ]
    told = lab.summary(rows)

    assert (told["runs"], told["right"], told["right_percent"], told["errors"]) == (3, 1, 33.3, 1)
    assert (told["second_faults_found"], told["second_faults_present"]) == (1, 3)
    assert (told["calibration"]["high"]["right_percent"], told["calibration"]["low"]["right_percent"]) == (50.0, None)
