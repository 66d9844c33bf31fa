"""Who may start a program, and who may know whom: read from the source itself, beside the import contract."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "ghost"
STARTS_PROGRAMS = {"subprocess", "pty", "multiprocessing", "concurrent", "popen2", "pexpect", "sh", "ctypes"}
STARTING_CALLS = {"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "startfile"}

ALLOWED = {
    "shell": {"subprocess", "ctypes"},  # the only room that starts programs
    "lab": {"subprocess"},  # starts a server of its own, for a person's az
    "pcap": {"concurrent", "ctypes"},  # threads of its own code, and its own compiled kernels
}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_only_the_shell_starts_programs(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    allowed = ALLOWED.get(room_of(path), set())
    imported = {name.split(".")[0] for name in imports_of(tree)} & STARTS_PROGRAMS
    assert imported <= allowed
    called = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
    }
    starting = {c for c in called if c in STARTING_CALLS or c.startswith(("exec", "spawn"))}
    if room_of(path) != "shell":
        assert not starting
    dynamic = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} & {"__import__", "eval", "exec"}
    assert not dynamic


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_other_rooms_are_entered_by_their_face(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    room = room_of(path)
    rooms = {p.name for p in SOURCE.iterdir() if p.is_dir() and (p / "__init__.py").exists()}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("ghost."):
            parts = node.module.split(".")
            if parts[1] in rooms and parts[1] != room:
                assert len(parts) == 2, f"{path.name} reaches into {node.module}"


def test_the_scan_sees_the_whole_house():
    assert {"agent", "brain", "cli", "cloud", "lab", "net", "pcap", "records", "shell"} <= {
        room_of(path) for path in modules()
    }
