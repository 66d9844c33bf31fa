"""`ghost lab up`, `list`, `show`, `down`: a simulated Azure for a person's own az, and nothing left behind."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .ready_ghost import run_ghost

GHOST = Path(sys.executable).parent / "ghost"


class Person:
    """Someone with a state directory of their own."""

    def __init__(self, home: Path) -> None:
        self.labs = home / "state" / "ghost" / "labs"
        self.environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "XDG_STATE_HOME": str(home / "state"),
            "GHOST_LAB_SPEED": "100",
        }

    def __call__(self, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = run_ghost(*words, cwd=Path.cwd(), environment=self.environment, seconds=60)
        assert done.returncode == status, done.stderr
        return done


def ended(pid: int) -> bool:
    """Within ten seconds; one that nobody has waited for has ended too."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def ghost(tmp_path: Path) -> Iterator[Person]:
    person = Person(tmp_path)
    yield person
    for row in json.loads(person("lab", "list", "--json").stdout):
        if row["up"]:
            person("lab", "down", row["name"])


def test_a_lab_comes_up_is_found_again_and_goes_down(ghost: Person) -> None:
    first = json.loads(ghost("lab", "up", "blocked-port", "--json").stdout)
    again = json.loads(ghost("lab", "up", "blocked-port", "--json").stdout)

    assert first == again, "a lab that is up is not started anew"
    assert first["simulated"] is True
    assert first["speed"] == 100.0
    assert os.kill(first["pid"], 0) is None
    rows = {row["name"]: row["up"] for row in json.loads(ghost("lab", "list", "--json").stdout)}
    assert [name for name, up in rows.items() if up] == ["blocked-port"]
    assert {"wire-loss", "peering-half-made"} <= set(rows)
    shown = json.loads(ghost("lab", "show", "blocked-port", "--json").stdout)
    assert shown["up"]["pid"] == first["pid"]
    assert "close-legacy-ports" not in json.dumps(shown), "the fault is not told"

    down = json.loads(ghost("lab", "down", "blocked-port", "--json").stdout)
    assert (down["simulated"], down["pid"]) == (True, first["pid"])
    assert ended(first["pid"])
    assert [path.name for path in (ghost.labs / "blocked-port").iterdir()] == ["azure"]


@pytest.mark.parametrize("said", ['"$(cat)"', "$(cat)"], ids=["quoted", "on one line"])
def test_a_shell_runs_what_up_prints_and_every_line_of_it_says_what_it_is(said: str, ghost: Person) -> None:
    up = ghost("lab", "up", "wire-loss")
    lines = up.stdout.splitlines()

    assert lines[0].startswith(": 'SIMULATED Azure")
    assert all(line.startswith((": ", "export ", "unset ")) for line in lines)
    assert "SIMULATED" in up.stderr
    assert "ghost lab down wire-loss" in up.stderr
    script = f"AZURE_STORAGE_KEY=k; export AZURE_STORAGE_KEY; eval {said}; env -0"
    done = subprocess.run(
        ["/bin/sh", "-c", script], input=up.stdout, env=ghost.environment, capture_output=True, text=True, check=True
    )
    seen = dict(entry.split("=", 1) for entry in done.stdout.split("\0") if entry)
    assert seen["HTTPS_PROXY"] == seen["https_proxy"]
    assert seen["HTTPS_PROXY"].startswith("http://127.0.0.1:")
    assert seen["NO_PROXY"] == seen["no_proxy"] == ""
    assert "AZURE_STORAGE_KEY" not in seen
    profile = json.loads((Path(seen["AZURE_CONFIG_DIR"]) / "azureProfile.json").read_text(encoding="utf-8-sig"))
    assert profile["subscriptions"][0]["environmentName"] == "GhostLab"

    down = ghost("lab", "down", "wire-loss").stdout
    assert down.startswith("# SIMULATED")
    (unset,) = [shlex.split(line) for line in down.splitlines() if line.startswith("unset ")]
    assert set(unset[1:]) == {line.split("=")[0].split()[1] for line in lines if line.startswith("export ")}


def test_what_a_lab_keeps_is_its_owners_alone(ghost: Person) -> None:
    ghost("lab", "up", "blocked-port")
    for path in (ghost.labs / "blocked-port").rglob("*"):
        if path.is_symlink():
            assert path.resolve().is_relative_to("/usr/bin"), path
            continue
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_lab_in_the_foreground_ends_with_its_terminal_and_keeps_others_out(ghost: Person) -> None:
    words = [GHOST, "lab", "up", "blocked-port", "--foreground"]
    process = subprocess.Popen(words, env=ghost.environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(": 'SIMULATED")
        assert "is already running" in ghost("lab", "up", "blocked-port", "--foreground", status=1).stderr
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert json.loads(ghost("lab", "show", "blocked-port", "--json").stdout)["up"] is None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.communicate()


def test_a_lab_whose_process_was_killed_is_not_up_and_can_be_put_up_anew(ghost: Person) -> None:
    first = json.loads(ghost("lab", "up", "blocked-port", "--json").stdout)
    os.kill(first["pid"], signal.SIGKILL)
    assert ended(first["pid"])

    assert "no lab 'blocked-port' is up: see ghost lab list." in ghost("lab", "down", "blocked-port", status=1).stderr
    assert [path.name for path in (ghost.labs / "blocked-port").iterdir()] == ["azure"], "its secret does not stay"
    second = json.loads(ghost("lab", "up", "blocked-port", "--json").stdout)
    assert second["pid"] != first["pid"]
    assert second["environment"]["IDENTITY_HEADER"] != first["environment"]["IDENTITY_HEADER"]


def test_a_scenario_of_ones_own_comes_up_under_its_own_name(ghost: Person, tmp_path: Path) -> None:
    from ghost.lab.scenario import SCENARIOS

    own = tmp_path / "mine.toml"
    own.write_text((SCENARIOS / "blocked-port.toml").read_text())
    assert json.loads(ghost("lab", "up", str(own), "--json").stdout)["scenario"] == "mine"
    assert {"name": "mine", "up": True}.items() <= next(
        row for row in json.loads(ghost("lab", "list", "--json").stdout) if row["name"] == "mine"
    ).items()
    ghost("lab", "down", "mine")


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["up", "no-such"], 1, "there is no scenario 'no-such'"),
        (["down", "no-such"], 1, "no lab 'no-such' is up"),
        (["down", "../.."], 1, "is not a valid directory name"),
        (["up", "blocked-port", "--speed", "0"], 2, "speed"),
        (["up"], 2, "scenario"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(words: list[str], status: int, said: str, ghost: Person) -> None:
    failed = ghost("lab", *words, status=status)
    assert said in failed.stderr
    assert "Traceback" not in failed.stderr
    assert failed.stdout == ("false\n" if words[0] == "up" and status == 1 else ""), "a shell that runs it fails too"


def test_several_put_up_at_once_are_one_lab_and_one_process(ghost: Person) -> None:
    words = [GHOST, "lab", "up", "blocked-port", "--json"]
    each = [subprocess.Popen(words, env=ghost.environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    seen = [json.loads(process.communicate(timeout=60)[0]) for process in each]

    assert seen[0] == seen[1] == seen[2]
    (process,) = _processes_of(ghost.labs)
    ghost("lab", "down", "blocked-port")
    assert ended(int(process))
    assert _processes_of(ghost.labs) == []


def _processes_of(labs: Path) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            if "ghost.lab.arm.daemon" in words and str(labs / "blocked-port") in words:
                found.append(path.parent.name)
    return found


def test_another_world_is_not_taken_for_the_one_that_is_up_under_its_name(ghost: Person, tmp_path: Path) -> None:
    from ghost.lab.directory import changing_state
    from ghost.lab.scenario import SCENARIOS

    own = tmp_path / "blocked-port.toml"
    own.write_text((SCENARIOS / "wire-loss.toml").read_text())
    ghost("lab", "up", "blocked-port")
    with changing_state(ghost.labs / "blocked-port") as state:
        state["edits"] = [{"delete": "networkSecurityGroups/cache-nsg/securityRules/close-legacy-ports"}]
    ghost("lab", "up", "blocked-port")
    assert "another lab is running under the name blocked-port" in ghost("lab", "up", str(own), status=1).stderr


def test_a_lab_that_is_up_keeps_its_speed_and_says_so(ghost: Person) -> None:
    ghost("lab", "up", "blocked-port", "--speed", "5")
    assert "was up already" not in ghost("lab", "up", "blocked-port", "--speed", "5").stderr
    assert "5 times as fast" in ghost("lab", "up", "blocked-port").stderr


def test_scenarios_are_listed_and_shown_where_nothing_can_be_written(ghost: Person, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ghost.environment["XDG_STATE_HOME"] = str(tmp_path / "file")
    assert "wire-loss" in ghost("lab", "list").stdout
    assert "10.20.1.4" in ghost("lab", "show", "blocked-port").stdout
    assert "name another" in ghost("lab", "up", "blocked-port", status=1).stderr


def test_a_relative_state_directory_is_ignored_as_its_specification_says(ghost: Person, tmp_path: Path) -> None:
    ghost.environment["XDG_STATE_HOME"] = "relative"
    state = json.loads(ghost("lab", "up", "blocked-port", "--json").stdout)
    ghost("lab", "down", "blocked-port")
    assert state["requests"].startswith(str(tmp_path / ".local" / "state" / "ghost" / "labs"))


def test_a_scenario_of_somebody_else_writes_no_setting_and_moves_no_cursor(ghost: Person, tmp_path: Path) -> None:
    from ghost.lab.scenario import SCENARIOS

    text = (SCENARIOS / "blocked-port.toml").read_text()
    own = tmp_path / "theirs.toml"
    own.write_text(text.replace('name = "Production"', r'name = "P\n[AzureCloud]"'))
    assert "invisible characters" in ghost("lab", "up", str(own), status=1).stderr
    own.write_text(text.replace('symptom = "', r"""symptom = "\u001b[2J\n'; exit 3; '$(exit 3) """, 1))
    up = ghost("lab", "up", str(own))
    assert "\x1b" not in up.stdout + up.stderr + ghost("lab", "show", str(own)).stdout
    ran = subprocess.run(["/bin/sh", "-c", 'eval "$(cat)"; exit 7'], input=up.stdout, text=True, check=False)
    assert ran.returncode == 7


def test_a_state_directory_open_to_others_is_refused(ghost: Person) -> None:
    ghost.labs.mkdir(parents=True)
    ghost.labs.chmod(0o777)
    try:
        assert "is open to others" in ghost("lab", "up", "blocked-port", status=1).stderr
    finally:
        ghost.labs.chmod(0o700)
