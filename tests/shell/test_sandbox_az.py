"""The real Azure CLI in the sandbox: it starts, keeps its own directory, writes nothing else, tells its own errors.

Nothing leaves the machine: the proxy that az is given is a closed port of loopback.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ghost.shell import SafeExecShell
from ghost.shell.run.sandbox import this_kernel

pytestmark = [
    pytest.mark.needs("az"),
    pytest.mark.skipif(this_kernel().landlock < 6, reason="the kernel has no Landlock of version 6"),
]
LAYERS = ["no_new_privs", "capabilities", "landlock", "seccomp"]
Ask = Callable[[str], dict[str, Any]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("home", "azure", "work"):
        (tmp_path / name).mkdir()
    (tmp_path / "home" / ".bashrc").write_text("# mine\n")
    return tmp_path


@pytest.fixture
def ask(place: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    monkeypatch.chdir(place / "work")
    monkeypatch.setenv("GHOST_AZ", str(shutil.which("az")))
    monkeypatch.setenv("HOME", str(place / "home"))
    monkeypatch.setenv("AZURE_CONFIG_DIR", str(place / "azure"))
    for name in ("https_proxy", "http_proxy", "HTTPS_PROXY", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    shell = SafeExecShell("s1", audit_dir=place / "audit", roots=[place], sandbox="required")

    def run(command: str) -> dict[str, Any]:
        response = shell.execute({"command": command, "reasoning": "to see"})
        assert (response["classification"], response["action"]) == ("SAFE", "auto_approved")
        assert (response["status"], response["sandbox"]) == ("completed", [*LAYERS, *response["sandbox"][4:]])
        return response

    return run


def state_of(*directories: Path) -> dict[str, tuple[int, ...]]:
    facts = {str(p): p.lstat() for d in directories for p in (d, *d.rglob("*"))}
    return {p: (f.st_mode, f.st_uid, f.st_size, f.st_mtime_ns, f.st_ctime_ns) for p, f in facts.items()}


def installation() -> list[Path]:
    """The tree az is installed in, but not all of /usr."""
    prefix = Path(str(shutil.which("az"))).resolve().parent.parent
    return [] if prefix == Path("/usr") else [prefix]


def test_az_starts_and_writes_its_own_directory_only(place: Path, ask: Ask) -> None:
    before = state_of(place / "home", place / "work", *installation())
    assert "azure-cli" in ask("az --version")["output"]
    accounts = ask("az account list -o json")
    assert (accounts["exit_code"], json.loads(accounts["output"])) == (0, [])
    assert "az login" in accounts["stderr"]
    assert state_of(place / "home", place / "work", *installation()) == before
    written = {path.name for path in (place / "azure").iterdir()}
    assert {"az.json", "versionCheck.json"} <= written
    assert all(path.stat().st_mode & 0o077 == 0 for path in (place / "azure").rglob("*"))
    assert list((place / "work").iterdir()) == []


def test_az_tells_its_own_errors(ask: Ask) -> None:
    answer = ask("az network vnet list -o table")
    assert (answer["exit_code"], answer["output"]) == (1, "")
    assert "az login" in answer["stderr"]
    for traceback in ("Traceback", "PermissionError", "Operation not permitted", "Read-only"):
        assert traceback not in answer["stderr"]


def test_az_without_a_directory_of_its_own_works_and_makes_none(
    place: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_CONFIG_DIR")
    before = state_of(place / "home")
    assert ask("az account list -o json")["output"].strip() == "[]"
    assert state_of(place / "home") == before
