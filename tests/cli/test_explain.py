"""`ghost shell explain` prints how a command is taken apart, what decided, and what would be SAFE."""

from __future__ import annotations

import json

import pytest

from ghost.cli.shell_commands import explain


def test_explain_prints_parse_rule_and_the_way_to_be_safe(capsys: pytest.CaptureFixture[str]) -> None:
    explain("ping -4f '10.0.0.1' -W 2 | sort", as_json=False)

    lines = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["program"].strip() == "ping"
    assert lines["options"].split("  ")[-3:] == ["-4", "-f", "-W 2"]
    assert lines["operands"].strip() == "10.0.0.1"
    assert lines["operators"].strip() == "|"
    assert lines["then"].strip() == "sort"
    assert lines["classification"].strip() == "RISKY"
    assert lines["rule"].strip() == "ping: option '-f'"
    assert lines["how to be SAFE"].strip().startswith("This would be SAFE: ping -4 10.0.0.1 -W 2 | sort  (")


def test_explain_prints_what_a_safe_command_runs_with(capsys: pytest.CaptureFixture[str]) -> None:
    explain("curl -sI https://a.example/health", as_json=False)

    out = capsys.readouterr().out
    assert "tier:           passes all" in out
    assert "would run:      curl -q --proto =http,https" in out
    assert "resolves first: a.example" in out


def test_explain_writes_control_characters_out(capsys: pytest.CaptureFixture[str]) -> None:
    explain("ping '\x1b[2J' -c 1", as_json=False)

    assert "\x1b" not in capsys.readouterr().out


def test_explain_as_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    explain("az vm list -g x --debug", as_json=True)

    told = json.loads(capsys.readouterr().out)
    assert (told["classification"], told["safe_form"]) == ("RISKY", "az vm list -g x")
    assert told["parse"]["options"][1] == {"option": "--debug", "value": None}
