"""The help texts: every example runs as printed, every flag is a sentence, `ghost --help` fits on a screen.

Examples are collected from the commands themselves: a new one is run, or listed here with the reason why not.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import shlex
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from ghost.cli.typer_app import PANELS, app
from ghost.pcap import main as pcap

from .ready_ghost import run_ghost

NOT_RUN = {
    "ghost investigate --source web-vm-01 --dest 10.20.2.5 --port 6379": "asks an Azure account",
    "ghost watch add web-vm-01 redis-cache-01 6379": "asks an Azure account",
    'ghost ask last "which rule allows port 443?" --brain gemini': "asks a model",
    'ghost investigate "vm-a cannot reach vm-b on 443" --brain gemini': "asks a model, and an Azure account",
    "ghost serve --workspace prod": "serves until Ctrl-C; tests/server does so",
    'ghost answer q:1732264000000 "port: 6379"': "answers a question that the background loop asked",
    'ghost scrape "what an NSG evaluates first" --seed https://example.com/nsg': "reads a page of the internet",
    **dict.fromkeys(
        (
            "ghost capture fetch last",
            "ghost capture check last",
            "ghost capture cancel last",
            "ghost capture cleanup last",
        ),
        "needs a capture that was started; test_capture_command.py does so",
    ),
    "ghost capture start app-vm-01 --pair db-vm-01 --capture-filter 'tcp * * * 5432' --lab wire-loss": (
        "test_capture_command.py does so"
    ),
    "tcpdump -i eth0 -w - | ghost pcap - --findings": "records packets, as root, until Ctrl-C",
    "ghost pcap web.pcap --open": "opens a browser; tests/cli/test_browser.py does so",
}
FOUND = {"ghost reach ": (0, 3, 4), "ghost doctor": (0, 1), "ghost apply last --check": (4,), "ghost apply ": (1,)}
"""Exit statuses that tell what was found, or that nobody is there to approve; every other example ends with 0."""
LAB = 'eval "$(ghost lab up blocked-port)"'
BIN = Path(sys.executable).parent


def commands(command: Any, path: str = "ghost") -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, f"{path} {name}")


def examples(text: str) -> Iterator[str]:
    """The commands below the heading of examples, without their comments; one behind a backslash is one."""
    lines = iter(text.replace("\\\n", "").splitlines())
    for line in itertools.dropwhile(lambda line: not re.match(r"\s*examples?\b.*:$", line, re.IGNORECASE), lines):
        command = line.partition("  #")[0].strip()
        if re.match(r"(ghost|eval|tcpdump) ", command):
            yield command


def help_of_pcap() -> str:
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        pcap(["--help"], program="ghost pcap", open_page=lambda page: None)
    return shown.getvalue()


COMMANDS = dict(commands(typer.main.get_command(app)))
EXAMPLES = {path: list(examples(command.epilog or "")) for path, command in COMMANDS.items()}
EXAMPLES["ghost pcap"] += examples(help_of_pcap())
ALL = dict.fromkeys(example for found in EXAMPLES.values() for example in found)


def environment(home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "PATH": f"{BIN}:/usr/bin:/bin",
        "GHOST_LAB_SPEED": "500",
        "COLUMNS": "80",
    }


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a session of the lab, a watch of it, captures, memories and a scenario."""
    directory = tmp_path_factory.mktemp("prepared")
    for line in ("investigate --lab blocked-port --brain offline", "watch add last", "export memories.jsonl"):
        words = line.split()
        in_process = words[0] == "investigate"
        run = run_ghost(*words, cwd=directory, environment=environment(directory), in_process=in_process)
        assert run.returncode == 0, run.stderr
    udp = bytes.fromhex("020000000001020000000002080045000020000040004011000000000a0000010a0000020035003500080000")
    capture = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    capture += struct.pack("<IIII", 1_700_000_000, 0, len(udp), len(udp)) + udp
    (directory / "captures").mkdir(exist_ok=True)
    for name in ("capture", "web", "before", "after", "client", "server", "captures/one"):
        (directory / f"{name}.pcap").write_bytes(capture)
    (directory / "web.cap").write_bytes(capture)
    scenario = Path(__file__).parents[2] / "src/ghost/lab/scenarios/blocked-port.toml"
    shutil.copy(scenario, directory / "my-scenario.toml")
    return directory


@pytest.mark.parametrize("example", [each for each in ALL if each not in NOT_RUN], ids=str)
def test_an_example_runs(example: str, prepared: Path, tmp_path: Path) -> None:
    directory = tmp_path / "workspace"
    shutil.copytree(prepared, directory)
    around = environment(tmp_path)
    before = f"{LAB}; " if "lab down" in example else ""
    if before or re.search(r"[$>|]", example):
        after = "; status=$?; ghost lab down blocked-port >&2; exit $status" if example == LAB else ""
        words = ["bash", "-c", f"{before}{example}{after}"]
        run = subprocess.run(words, cwd=directory, env=around, capture_output=True, text=True, timeout=120, check=False)
    else:
        words = shlex.split(example)[1:]
        run = run_ghost(*words, cwd=directory, environment=around, in_process="--lab" in words)
    allowed = next((found for beginning, found in FOUND.items() if example.startswith(beginning)), (0,))
    assert run.returncode in allowed, run.stderr or run.stdout
    assert "Traceback" not in run.stderr


def test_every_command_has_an_example_and_what_is_not_run_is_one() -> None:
    assert [path for path, found in EXAMPLES.items() if not found] == []
    assert set(NOT_RUN) <= set(ALL)


def test_an_example_is_of_its_command() -> None:
    for path, found in EXAMPLES.items():
        assert [example for example in found if path not in example] == []


def test_every_flag_is_one_sentence() -> None:
    helps = {
        f"{path} {parameter.name}": parameter.help or ""
        for path, command in COMMANDS.items()
        for parameter in command.params
        if not getattr(parameter, "hidden", False)
    }
    assert len(helps) > 80
    assert [name for name, text in helps.items() if not re.fullmatch(r"[A-Z`].*[^.]\.", text)] == []
    assert [name for name, text in helps.items() if ". " in text] == []


def test_the_help_fits_on_a_screen_with_every_command_in_a_panel(tmp_path: Path) -> None:
    shown = run_ghost("--help", cwd=tmp_path, environment=environment(tmp_path)).stdout
    assert len(shown.splitlines()) <= 45
    assert [line for line in shown.splitlines() if len(line) > 80] == []
    assert "\x1b" not in shown
    assert "..." not in shown.replace("[ARGS]...", ""), "a summary is cut off"
    named = [name for names in PANELS.values() for name in names]
    assert sorted(named) == sorted(COMMANDS["ghost"].commands)
