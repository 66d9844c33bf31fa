"""What keeps `ghost mcp` from starting is one line with the way out."""

from __future__ import annotations

import pytest

import ghost.mcp
from ghost.cli import main


def test_a_missing_extra_is_named(monkeypatch, capsys):
    monkeypatch.setattr(ghost.mcp, "find_spec", lambda _: None)
    assert main(["mcp"]) == 1
    said = capsys.readouterr()
    assert (said.out, "pip install 'ghost-investigator[mcp]'" in said.err) == ("", True)


@pytest.mark.parametrize(
    ("words", "environment", "said"),
    [
        ([], {"GHOST_PRIVATE": "1"}, "unset GHOST_PRIVATE for ghost mcp."),
        (["--allow-captures", "gone.pcap"], {}, "gone.pcap does not exist: allow captures that are there."),
        (["--lab", "blockedport"], {}, "did you mean blocked-port? "),
    ],
)
def test_a_setting_that_does_not_fit_is_named(monkeypatch, capsys, tmp_path, words, environment, said):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    assert main(["mcp", *words]) in (1, 2)
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
