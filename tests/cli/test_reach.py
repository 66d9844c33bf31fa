"""`ghost reach` on both networks of the lab, through the lab's az."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

from ghost.cli import reach_command
from ghost.net import Answer, Missing
from ghost.net.az_reads import is_readable
from ghost.net.resources import RuleSet
from tests.cli.test_commands import ghost

FAST = {"GHOST_LAB_SPEED": "1000", "COLUMNS": "200"}
BLOCKED = ("reach", "web-vm-01", "10.20.2.5", "6379", "--lab", "blocked-port")


def test_the_first_blocker_and_what_mends_it_are_told(tmp_path):
    result = ghost(*BLOCKED, cwd=tmp_path, in_process=True, **FAST)
    assert result.returncode == 4, result.stderr
    assert (
        "BLOCKED: close-legacy-ports (priority 200, Deny Tcp 10.20.1.0/24 -> *:6000-6500) of cache-nsg" in result.stdout
    )
    assert "without rule close-legacy-ports of cache-nsg: it passes" in result.stdout
    assert "--assume 'no-rule cache-nsg close-legacy-ports'" in result.stdout
    session = result.stdout.rsplit("ghost audit show ", 1)[1].strip()
    listed = ghost("sessions", cwd=tmp_path, in_process=True).stdout
    assert re.search(rf"{session}  \S+ \S+Z  web-vm-01 → 10.20.2.5 tcp/6379  6 reads", listed)
    assert ghost("audit", "verify", session, cwd=tmp_path, in_process=True).returncode == 0


def test_a_proposed_change_is_walked(tmp_path):
    mended = ("--assume", "no-rule cache-nsg close-legacy-ports")
    opened = ("--assume", "rule cache-nsg x 100 Inbound Allow Tcp 10.20.1.4 10.20.2.5 6379")
    for change in (mended, opened):
        result = ghost(*BLOCKED, *change, cwd=tmp_path, in_process=True, **FAST)
        assert result.returncode == 0
        assert result.stdout.splitlines()[1].startswith("assumed: with")
    routed = ghost(
        *BLOCKED, *opened, "--assume", "route prod-routes hole 10.20.2.0/24 None", cwd=tmp_path, in_process=True, **FAST
    )
    assert routed.returncode == 4
    assert "hole" in routed.stdout
    wrong = ghost(*BLOCKED, "--assume", "no-rule cache-nsg nothing", cwd=tmp_path, in_process=True, **FAST)
    assert (wrong.returncode, "close-legacy-ports" in wrong.stderr) == (2, True)


def test_where_configuration_lets_it_pass_it_says_what_it_does_not_show(tmp_path):
    result = ghost(
        "reach", "app-vm-01", "db-vm-01", "5432", "--lab", "wire-loss", "--json", cwd=tmp_path, in_process=True, **FAST
    )
    assert result.returncode == 0, result.stderr
    (walked,) = json.loads(result.stdout)
    assert (walked["outcome"], walked["faults"]) == ("passes", [])
    assert {hop["verdict"] for hop in walked["hops"]} == {"pass"}
    assert all(hop["references"] for hop in walked["hops"])
    assert "loss" in walked["not_shown"]


def test_all_tells_who_reaches_a_destination(tmp_path):
    asked = ("reach", "any", "redis-cache-01", "6379", "--lab", "blocked-port", "--all")
    result = ghost(*asked, cwd=tmp_path, in_process=True, **FAST)
    assert result.returncode == 4, "the highest of the sources"
    title, _, *rows, records = result.stdout.splitlines()
    assert "(SIMULATED)" in title
    assert records.startswith("Records: ghost audit show reach_")
    assert [row.split()[0] for row in rows] == ["jobs-vm-01", "web-vm-01"]
    assert ["BLOCKED" in row for row in rows] == [False, True]
    told = json.loads(ghost(*asked, "--json", cwd=tmp_path, in_process=True, **FAST).stdout)
    assert [(part["sources"], part["outcome"]) for part in told] == [
        (["10.20.1.4/32"], "blocked"),
        (["10.20.3.10/32"], "passes"),
    ]


def test_without_a_port_all_are_walked(tmp_path):
    result = ghost(
        *("reach", "web-vm-01", "redis-cache-01", "--lab", "blocked-port", "--json"),
        cwd=tmp_path, in_process=True, **FAST,
    )  # fmt: skip
    assert result.returncode == 4
    assert [(part["ports"], part["outcome"]) for part in json.loads(result.stdout)] == [
        (["1-5999", "6501-65535"], "passes"),
        (["6000-6500"], "blocked"),
    ]


def test_an_unknown_name_lists_the_known_ones(tmp_path):
    result = ghost(
        "reach", "nobody", "10.20.2.5", "6379", "--lab", "blocked-port", cwd=tmp_path, in_process=True, **FAST
    )
    assert result.returncode == 2
    assert "redis-cache-01" in result.stderr


def test_icmp_has_no_port_and_all_sources_need_one(tmp_path):
    for question in (("any", "redis-cache-01", "--all"), ("web-vm-01", "redis-cache-01", "80", "--protocol", "icmp")):
        result = ghost("reach", *question, "--lab", "blocked-port", cwd=tmp_path, in_process=True, **FAST)
        assert (result.returncode, "port" in result.stderr) == (2, True)


def test_interfaces_that_cannot_be_read_are_an_error_not_an_empty_answer(tmp_path):
    az = tmp_path / "az"
    az.write_text("#!/bin/sh\necho 'ERROR: AuthorizationFailed: no right to read' >&2\nexit 1\n")
    az.chmod(0o755)
    result = ghost("reach", "any", "10.0.0.4", "80", "--all", cwd=tmp_path, GHOST_AZ=str(az))
    assert result.returncode == 1, result.stdout
    assert "AuthorizationFailed" in result.stderr


def test_a_name_is_resolved_before_the_walk(tmp_path):
    asked = ("db.internal.example", "443", "--lab", "blocked-port")
    result = ghost("reach", "web-vm-01", *asked, "--json", cwd=tmp_path, in_process=True, **FAST)
    assert result.returncode == 3, result.stderr
    (walked,) = json.loads(result.stdout)
    assert walked["name"] == "db.internal.example"
    assert walked["hops"][0]["kind"] == "name"
    wrong = ghost("reach", "web-vm-01", "a..b", "443", "--lab", "blocked-port", cwd=tmp_path, in_process=True, **FAST)
    assert (wrong.returncode, "not a DNS name" in wrong.stderr) == (2, True)


def test_names_of_azure_are_shown_as_text_and_never_taken_for_options(tmp_path, monkeypatch, capsys):
    place = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network"
    subnet = {"id": f"{place}/virtualNetworks/v/subnets/s"}
    nics = [
        {"id": f"{place}/networkInterfaces/{name}", "ipConfigurations": [{"privateIPAddress": to, "subnet": subnet}]}
        for name, to in (("[/]\x1b[2J", "10.0.0.4"), ("[red]", "10.0.0.5"), ("six", "fd00::4"))
    ]
    answers = iter([Answer(json.dumps(nics), "r_1")])
    reader = SimpleNamespace(
        execute=lambda read: next(answers, Answer("", failure="[/] \u202e no right")), asked_of="[/]", session_id="r"
    )
    monkeypatch.setattr(reach_command, "_Reader", lambda *_: reader)
    asked = reach_command.Question("any", "10.0.0.4", 80, "tcp", None, (), True, False)
    assert reach_command.reach(asked, tmp_path) == 3
    shown = capsys.readouterr().out
    assert "[red] (10.0.0.5)" in shown
    assert "fd00" not in shown  # no packet is of both families
    assert not {"\x1b", "\u202e"} & set(shown)
    assert not any(is_readable(Missing(RuleSet, f"{place}/networkSecurityGroups/{name}")) for name in ("-h", "a\x1b"))
    assert not is_readable(Missing(RuleSet, "--help"))
