"""Ghost in a shell that ran `ghost lab up`: what az sees is simulated, so every other program is too."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ghost.errors import LabError
from ghost.lab import lab_behind_az, load_scenario
from ghost.lab.arm.profile import write_profile
from tests.cli.test_lab_commands import GHOST, Person

WORLD = load_scenario("blocked-port").world


class InLab(Person):
    """Someone whose shell ran what `ghost lab up blocked-port` printed."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.outside = dict(self.environment)
        self.up: dict[str, Any] = json.loads(self("lab", "up", "blocked-port", "--json").stdout)
        self.environment |= self.up["environment"]

    def shell(self, command: str, status: int = 0) -> dict[str, Any]:
        done = self("shell", "run", command, "--json", "-w", self.environment["HOME"], status=status)
        response: dict[str, Any] = json.loads(done.stdout)
        return response


@pytest.fixture
def person(tmp_path: Path) -> Iterator[InLab]:
    someone = InLab(tmp_path)
    yield someone
    if any(row["up"] for row in json.loads(someone("lab", "list", "--json").stdout)):
        someone("lab", "down", "blocked-port")


def test_programs_are_those_of_the_labs_machine_and_no_others(person: InLab) -> None:
    answer = person.shell("ip -br address show")
    assert WORLD.local.address in answer["output"]
    absent = person.shell("tracepath 127.0.0.1", status=127)
    assert absent["stderr"].strip() == "command not found: tracepath"


def test_az_is_the_persons_own_and_starts_programs_of_the_system(person: InLab, tmp_path: Path) -> None:
    own = tmp_path / "own-az"
    own.write_text('#!/bin/sh\necho "$0 $PATH $AZURE_CONFIG_DIR"\n')
    own.chmod(0o700)
    person.environment["GHOST_AZ"] = str(own)
    program, path, settings = person.shell("az vm list")["output"].split()
    assert (program, settings) == (str(own), person.up["environment"]["AZURE_CONFIG_DIR"])
    assert path == "/usr/bin:/bin:/usr/sbin:/sbin"


def test_a_lab_that_is_down_is_not_mistaken_for_a_network(person: InLab) -> None:
    person("lab", "down", "blocked-port")
    refused = person("shell", "run", "ip -br address show", status=1)
    assert "simulated Azure" in refused.stderr
    assert "which is not up" in refused.stderr
    assert refused.stdout == ""


def test_an_investigation_says_that_it_is_simulated_and_stays_so(person: InLab, tmp_path: Path) -> None:
    person.environment["PATH"] = "/usr/bin:/bin"
    done = subprocess.run(
        [GHOST, "investigate", person.up["symptom"], "--brain", "offline"],
        cwd=tmp_path,
        env=person.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-1500:]
    assert "Network: lab blocked-port (SIMULATED, asked by az)" in done.stdout
    (report,) = (tmp_path / "audit").glob("ghost_rca_*.json")
    assert json.loads(report.read_text())["network"] == "lab blocked-port (SIMULATED, asked by az)"
    assert "close-legacy-ports" in report.read_text()

    session = report.stem.removeprefix("ghost_rca_")
    person.environment = person.outside
    elsewhere = person("investigate", "--resume", session, "-w", str(tmp_path), status=1)
    assert "go on with it in a shell whose az uses the same network" in elsewhere.stderr


# --- whom az talks to ---


def test_a_shell_of_no_lab_has_none_behind_its_az(tmp_path: Path) -> None:
    assert lab_behind_az({}) is None
    assert lab_behind_az({"AZURE_CONFIG_DIR": str(tmp_path / "absent")}) is None
    for text in ("[cloud]\nname = AzureCloud\n", "[core]\noutput = table\n", "no settings", "[cloud\n", "\xff"):
        (tmp_path / "config").write_text(text, encoding="latin-1")
        assert lab_behind_az({"AZURE_CONFIG_DIR": str(tmp_path)}) is None, text


def test_settings_of_a_lab_without_the_lab_are_refused(tmp_path: Path) -> None:
    settings = tmp_path / "somewhere" / "azure" / "config"
    settings.parent.mkdir(parents=True)
    write_profile(settings, WORLD)
    with pytest.raises(LabError, match="not up"):
        lab_behind_az({"AZURE_CONFIG_DIR": str(settings)})
