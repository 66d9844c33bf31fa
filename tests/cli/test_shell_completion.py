"""Completion in the shells: commands, scenarios, sessions, without the heavy rooms."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
COMPLETE = """
eval "$(ghost --show-completion)" || exit 1
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_ghost_completion ghost
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "audit").mkdir()
    for name in ("ghost_20260101_120000", "reach_20260103_101010_abcdef"):
        (tmp_path / "audit" / f"shell_audit_{name}.jsonl").touch()
    return tmp_path


def environment(**further: str) -> dict[str, str]:
    return {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": os.environ["HOME"], **further}


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("ghost inv", ["investigate"]),
        ("ghost audit ver", ["verify"]),
        ("ghost investigate --la", ["--lab"]),
        ("ghost investigate --lab wire-lo", ["wire-loss"]),
        ("ghost lab show blocked-p", ["blocked-port"]),
        ("ghost investigate --resume ''", ["last", "ghost_20260101_120000"]),
        ("ghost audit show ''", ["last", "ghost_20260101_120000", "reach_20260103_101010_abcdef"]),
        ("ghost audit show -w elsewhere l", ["last"]),
    ],
)
def test_bash_completes(workspace: Path, words: str, completed: list[str]) -> None:
    (workspace / "complete.bash").write_text(COMPLETE.format(words=words))
    done = subprocess.run(
        ["bash", "complete.bash"], cwd=workspace, env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == completed


@pytest.mark.parametrize(
    ("shell", "script"), [("zsh", "compdef _ghost_completion ghost"), ("fish", "complete --command ghost")]
)
def test_zsh_and_fish_get_a_script_and_completions(workspace: Path, shell: str, script: str) -> None:
    def asked(**variables: str) -> str:
        command = [BIN / "ghost"]
        around = environment(_TYPER_COMPLETE_FISH_ACTION="get-args", **variables)
        return subprocess.run(command, cwd=workspace, env=around, capture_output=True, text=True, check=True).stdout

    assert script in asked(_GHOST_COMPLETE=f"source_{shell}")
    line = {"_TYPER_COMPLETE_ARGS": "ghost lab show wire-lo"}
    assert "wire-loss" in asked(_GHOST_COMPLETE=f"complete_{shell}", **line)


def test_completion_imports_nothing_heavy(workspace: Path) -> None:
    program = (
        "import sys\nfrom ghost.cli import main\n"
        "try:\n    main([])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'ghost.lab', 'ghost.agent', 'ghost.shell', 'numpy', 'rich.console'} & sys.modules.keys()))"
    )
    around = environment(_GHOST_COMPLETE="complete_bash", COMP_WORDS="ghost audit show ", COMP_CWORD="3")
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=workspace, env=around, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
    assert "last" in done.stdout
