from __future__ import annotations

import json
from pathlib import Path

import pytest

from ghost.azure import read_configuration


def test_without_settings_nothing_is_configured(tmp_path: Path) -> None:
    found = read_configuration({"AZURE_CONFIG_DIR": str(tmp_path)}, tmp_path)

    assert not found.has_defaults
    assert not found.extended
    assert not found.unknown_extensions


@pytest.mark.parametrize("text", ["[defaults]\ngroup = prod-rg\n", "[local_context]\nuser = on\n"])
def test_a_default_in_the_users_or_the_directorys_settings_is_found(text: str, tmp_path: Path) -> None:
    home, here = tmp_path / "home", tmp_path / "work" / "deep"
    for directory in (home, here.parent / ".azure"):
        directory.mkdir(parents=True)
        (directory / "config").write_text(text)
        assert read_configuration({"AZURE_CONFIG_DIR": str(home)}, here).has_defaults
        (directory / "config").unlink()
    assert not read_configuration({"AZURE_CONFIG_DIR": str(home)}, here).has_defaults


def test_a_default_in_the_environment_is_found(tmp_path: Path) -> None:
    assert read_configuration({"AZURE_CONFIG_DIR": str(tmp_path), "AZURE_DEFAULTS_GROUP": "g"}, tmp_path).has_defaults


@pytest.mark.parametrize("text", ["[core]\noutput = table\n", "[defaults]\n"])
def test_other_settings_are_no_defaults(text: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(text)

    assert not read_configuration({"AZURE_CONFIG_DIR": str(tmp_path)}, tmp_path).has_defaults


def test_settings_that_cannot_be_read_may_hold_defaults(tmp_path: Path) -> None:
    (tmp_path / "config").write_bytes(b"\xff\xfe no section")

    assert read_configuration({"AZURE_CONFIG_DIR": str(tmp_path)}, tmp_path).has_defaults


def test_the_clis_index_tells_what_extensions_add_to(tmp_path: Path) -> None:
    index = {
        "commandIndex": {"vm": ["azure.cli.command_modules.vm"], "kusto": ["azext_kusto"], "aks": ["azext_aks", "x"]}
    }
    (tmp_path / "commandIndex.json").write_text(json.dumps(index))
    (tmp_path / "cliextensions" / "kusto").mkdir(parents=True)

    found = read_configuration({"AZURE_CONFIG_DIR": str(tmp_path)}, tmp_path)

    assert found.extended == {"kusto", "aks"}
    assert not found.unknown_extensions


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"commandIndex": {"vm": 1}}', '{"commandIndex": null}'])
def test_extensions_without_a_usable_index_may_add_anything(text: str, tmp_path: Path) -> None:
    (tmp_path / "commandIndex.json").write_text(text)
    (tmp_path / "cliextensions" / "kusto").mkdir(parents=True)

    assert read_configuration({"AZURE_CONFIG_DIR": str(tmp_path)}, tmp_path).unknown_extensions
