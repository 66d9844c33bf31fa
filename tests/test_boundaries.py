"""Who may start a program, who may know whom, and how modules are named, beside the import contract."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "ghost"
STARTS_PROGRAMS = {"subprocess", "pty", "multiprocessing", "concurrent", "popen2", "pexpect", "sh", "ctypes"}
STARTING_CALLS = {"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "startfile"}

ALLOWED = {
    "shell": {"subprocess", "ctypes"},  # the only room that starts programs
    "lab": {"subprocess"},  # starts a server of its own, for a person's az
    "mcp": {"subprocess"},  # starts Ghost itself, for an investigation
    "pcap": {"concurrent", "ctypes", "multiprocessing"},  # threads and processes of its own code, compiled kernels
}

BACKGROUND_WORK = {"threading", "asyncio", "concurrent"}
KEPT_FROM = {
    "shell": {"ghost.agent", "ghost.brain", "ghost.cloud", "ghost.mind", "ghost.pcap", "ghost.providers"},
    "cloud": {"ghost.agent", "ghost.brain", "ghost.shell", "ghost.pcap", *BACKGROUND_WORK},
    "agent": {"ghost.lab", "ghost.pcap", *BACKGROUND_WORK},
}


FILES = sorted(SOURCE.rglob("*.py"))


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


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


def test_only_the_shell_starts_programs() -> None:
    wrong = []
    for path, tree in trees().items():
        room, nodes = room_of(path), list(ast.walk(tree))
        starting = {name.split(".")[0] for name in imports_of(tree)} & STARTS_PROGRAMS - ALLOWED.get(room, set())
        of_os = {n.attr for n in nodes if isinstance(n, ast.Attribute) and getattr(n.value, "id", "") == "os"}
        if room != "shell":
            starting |= {name for name in of_os if name in STARTING_CALLS or name.startswith(("exec", "spawn"))}
        starting |= {n.id for n in nodes if isinstance(n, ast.Name)} & {"__import__", "eval", "exec"}
        wrong += [f"{path}: {sorted(starting)}"] if starting else []
    assert wrong == []


def test_no_room_imports_what_its_specification_keeps_from_it() -> None:
    wrong = []
    for path, tree in trees().items():
        kept = imports_of(tree) & KEPT_FROM.get(room_of(path), set())
        wrong += [f"{path}: {sorted(kept)}"] if kept else []
    assert wrong == []


def test_other_rooms_are_entered_by_their_face() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    wrong = []
    for path, tree in trees().items():
        for node in ast.walk(tree):
            parts = (node.module or "").split(".") if isinstance(node, ast.ImportFrom) else []
            if len(parts) > 2 and parts[0] == "ghost" and parts[1] in rooms - {room_of(path)}:
                wrong.append(f"{path} reaches into {node.module}")
    assert wrong == []


def test_every_module_can_be_imported_first() -> None:
    done = subprocess.run([sys.executable, "-m", "tests.first_imports"], cwd=SOURCE.parents[1], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_no_module_has_the_name_of_a_function_of_its_package() -> None:
    assert [str(path) for path in trees() if path.stem in _functions_beside(path)] == []


def _functions_beside(path: Path) -> Iterator[str]:
    """Of the package, and of its modules."""
    for beside in path.parent.glob("*.py"):
        yield from (node.name for node in trees()[beside].body if isinstance(node, ast.FunctionDef))


def test_no_two_rooms_have_a_file_of_one_name() -> None:
    rooms = defaultdict(set)
    for path in FILES:
        if not path.stem.startswith("__"):
            rooms[path.stem].add(room_of(path))
    assert {stem: found for stem, found in rooms.items() if len(found) > 1} == {}


def test_the_scan_sees_the_whole_house() -> None:
    assert {"agent", "brain", "cli", "cloud", "lab", "net", "pcap", "records", "shell"} <= set(map(room_of, FILES))
