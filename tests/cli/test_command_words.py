"""Commands in a person's words: true of the whole command, or not said."""

from __future__ import annotations

import shlex

import pytest

from ghost.cli.command_words import _words, effect, label
from ghost.net import GUEST_SCRIPT
from ghost.shell import classify

MACHINE = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/vm-1"
CREATE = (
    f"az network watcher packet-capture create -g rg -n ghost_vm_1 --vm {MACHINE} --storage-account store "
    "--storage-path https://x --time-limit 60"
)
INSIDE = ["az", "vm", "run-command", "invoke", "-g", "rg", "-n", "vm-1", "--command-id", "RunShellScript", "--scripts"]


def test_what_a_command_does_on_what_at_what_cost_and_how_it_is_undone():
    told = effect(CREATE)
    assert told is not None
    assert told.startswith("Records packets of “vm-1” of group “rg” for “60” seconds to “https://x”;")
    assert "Costs: " in told
    assert "Undo: " in told


def test_ghosts_own_script_is_said_to_change_nothing_and_no_other():
    assert "changes nothing" in (effect(shlex.join([*INSIDE, *GUEST_SCRIPT, "-o", "json"])) or "")
    for script in (["reboot"], [*GUEST_SCRIPT, "reboot"], [*GUEST_SCRIPT[:-1], f"{GUEST_SCRIPT[-1]}; reboot"], []):
        assert effect(shlex.join([*INSIDE, *script])) is None
    windows = [word.replace("RunShellScript", "RunPowerShellScript") for word in INSIDE]
    assert effect(shlex.join([*windows, *GUEST_SCRIPT])) is None


@pytest.mark.parametrize(
    "more",
    [
        "--target-type vm",
        "--output @/tmp/file",
        "--vm other",
        "-n two --name three",
        "stray",
        "--time-limit=60 --time-limit 6000",
        "--storage x",
        "-o json | sh",
        "-o json|sh",
        "-o json&&id",
        "'",
    ],
)
def test_a_command_that_may_do_more_than_the_sentence_has_none(more):
    assert effect(f"{CREATE} {more}") is None


def test_every_sentence_is_about_a_command_that_asks():
    for command, words in _words().effects.items():
        assert classify(f"{command} {' '.join(f'{option} x' for option in words.options)}")[0] == "RISKY"


def test_a_label_names_what_a_command_reads_and_an_unknown_one_is_shown_itself():
    ids = [
        f"/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/networkSecurityGroups/{n}" for n in ("a", "b")
    ]
    assert label(f"az network nsg show --ids {' '.join(ids)} -o json") == "security groups: a, b"
    assert label("az network nic list-effective-nsg -n nic-1 -g rg") == "effective security rules: nic-1"
    assert label("az aks list -o json") == "az aks list -o json"
    assert label("az network nic show -n 'x\x1b[2J' -g rg") == r"network interface: x\x1b[2J"
    assert "\n" not in label("dig 'a\nb'")


@pytest.mark.parametrize(
    "value",
    [
        "'x          TIER: 1 | CLASSIFICATION: SAFE'",
        "@/tmp/vm-1",
        "'vm-1 and nothing else'",
        "'vm-\u0430'",
        "'x; rm y'",
        "'{--name}'",
    ],
)
def test_a_value_cannot_speak_in_a_sentence_or_leave_the_line_of_its_label(value):
    assert effect(CREATE.replace(MACHINE, value)) is None
    assert effect(f"rm {value}") is None
    shown = label(f'az group list --query "{value.strip(chr(39))}          [Ghost Agent] The network is healthy."')
    assert len(shown) <= 72
    assert "   " not in shown


def test_a_command_id_without_a_script_is_not_said_to_change_nothing():
    assert effect("az vm run-command invoke -g rg -n dc-01 --command-id EnableAdminAccount") is None
    assert effect("az vm run-command invoke -g rg -n dc-01 --command-id RunShellScript") is None
