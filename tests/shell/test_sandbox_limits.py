"""How many processes, how much memory and how many temporary files a sandboxed command may have, by each means."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ghost.shell.run.launcher_program import Cgroups
from ghost.shell.run.sandbox import this_kernel
from tests.shell.test_sandbox_attacks import PROFILES

pytestmark = pytest.mark.skipif(this_kernel().landlock < 6, reason="the kernel has no Landlock of version 6")
ROOT = os.geteuid() == 0
PROCESSES, MEMORY, FILES = 16, 256 << 20, 4 << 20
RUN = f"""
import dataclasses, json, sys
from pathlib import Path
from ghost.shell.run import execution, sandbox
policy = sandbox.read_sandbox_policy()
bounds = {{**policy.bounds, "processes": {PROCESSES}, "memory": {MEMORY}, "temporary_bytes": {FILES}}}
rules = [dataclasses.replace(r, profile=dataclasses.replace(r.profile, memory=0)) for r in policy.rules]
policy = dataclasses.replace(policy, bounds=bounds, rules=tuple(rules))
sandbox.read_sandbox_policy = lambda: policy
sandbox._pings_as_user = lambda: True
place, code, *lines = sys.argv[1:]
execution.CAPTURE_ENGINE = ("-IS", "-c", code)
programs = execution.Programs((Path(place), *execution.Programs().directories))
environment = {{"PATH": programs.search_path, "HOME": place}}
for line in lines:
    box = sandbox.Sandbox("auto", (), programs.search_path)
    done = execution.run(line.split(), programs=programs, environment=environment, timeout_seconds=30, sandbox=box)
    print(json.dumps([line, done.exit_code, done.layers, done.stdout.head.decode(), done.stderr.head.decode()[-300:]]))
"""
NO_CGROUPS = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh"]
WAYS = ["as this user", *(["root without cgroups", "an ordinary user"] if ROOT else [])]


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that other users may read."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def pythons_of(user: int) -> Iterator[str]:
    """Of this Python and the system's, those of this version that the user may start."""
    same = f"import sys; sys.exit(sys.version_info[:2] != {tuple(sys.version_info[:2])})"
    for python in (sys.executable, "/usr/bin/python3"):
        with suppress(OSError):
            if subprocess.run([python, "-c", same], user=user, cwd="/").returncode == 0:
                yield python


def outcomes(
    place: Path, way: str, code: str, lines: list[str] = PROFILES
) -> list[tuple[str, int, list[str], str, str]]:
    """Run the code in the place of the program of each line: line, exit code, layers, output, errors."""
    user = 65534 if way == "an ordinary user" else os.getuid()
    python = next(pythons_of(user), None)
    if python is None:
        pytest.skip("takes a Python that other users may start")
    binaries = place / "bin"
    binaries.mkdir()
    for line in lines:
        program = binaries / line.split()[0]
        program.write_text(f"#!{python} -IS\n{code}\n")
        program.chmod(0o755)
    words = [*(NO_CGROUPS if "without" in way else []), python, "-c", RUN, str(binaries), code, *lines]
    variables = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        words, user=user, extra_groups=[] if ROOT else None, env=variables, capture_output=True, text=True, cwd="/"
    )
    if done.returncode and way == "root without cgroups" and "unshare" in done.stderr + str(shutil.which("unshare")):
        pytest.skip("takes root of a machine that lets it make namespaces")
    assert done.returncode == 0, done.stderr
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def left_cgroups() -> list[Path]:
    place = Cgroups().place
    made = Path(place).glob("ghost-*") if place else ()
    return [path for path in made if not Path("/proc", path.name.removeprefix("ghost-")).exists()]


FORKS = """
import os, resource, signal, time
time.sleep(0.2)  # until the processes of the command before are gone
made = 0
try:
    while made < 2000:
        if os.fork() == 0:
            signal.pause()
        made += 1
    time.sleep(5)
except OSError as error:
    print(made, resource.getrlimit(resource.RLIMIT_NPROC)[0], type(error).__name__)
"""


@pytest.mark.parametrize("way", WAYS)
def test_a_command_cannot_make_more_processes_than_it_may(place: Path, way: str) -> None:
    seen = outcomes(place, way, FORKS)
    assert [line for line, *_ in seen] == PROFILES
    for line, exit_code, layers, output, errors in seen:
        (means,) = [layer for layer in layers if layer.startswith("pids:")]
        if means == "pids:watched":  # it had what it could make in a tenth of a second, and was ended
            assert (exit_code, output, way) == (-9, "", "root without cgroups"), line
            continue
        assert exit_code == 0, (line, errors)
        made, limit, error = output.split()
        most = {"pids:rlimit": int(limit), "pids:seccomp": 0}.get(means, PROCESSES - 1)
        assert int(made) <= most, (line, means)
        assert error == ("PermissionError" if means == "pids:seccomp" else "BlockingIOError"), line
        assert means != "pids:rlimit" or (way, ROOT) != ("as this user", True)
        assert way == "as this user" or means == {"r": "pids:seccomp", "a": "pids:rlimit"}[way[0]]


@pytest.mark.parametrize("way", WAYS)
def test_a_command_cannot_take_more_memory_than_it_may(place: Path, way: str) -> None:
    code = f"print(len(bytearray({MEMORY} // 4)), flush=True)\nbytearray(2 * {MEMORY})"
    for line, exit_code, layers, output, errors in outcomes(place, way, code):
        assert output == f"{MEMORY // 4}\n", (line, errors)
        if "memory:rlimit" in layers:
            assert (exit_code, "MemoryError" in errors) == (1, True), line
        else:
            assert ("memory:cgroup2" in layers, exit_code) == (True, -9), line


WRITES = f"""
import os, time
directory = os.environ["TMPDIR"]
open(directory + "/little", "wb").write(bytes({FILES} // 8))
print("little", flush=True)
if DELETED:
    kept = [open(directory + f"/{{n}}", "wb", buffering=0) for n in range(8)]
    [os.unlink(file.name) for file in kept]
for n in range(8):
    file = kept[n] if DELETED else open(directory + f"/{{n}}", "wb", buffering=0)
    assert file.write(bytes({FILES} // 4)) == {FILES} // 4
print("written", flush=True)
time.sleep(10)
"""
WITH_FILES = [line for line in PROFILES if line.split()[0] in ("dig", "tcpdump", "pcap-forensics", "az", "other")]


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_command_cannot_fill_its_private_directory(place: Path, way: str, deleted: bool) -> None:
    seen = outcomes(place, way, f"DELETED = {deleted}\n{WRITES}", WITH_FILES[: 1 if deleted else None])
    for line, exit_code, layers, output, errors in seen:
        if "files:tmpfs" in layers:
            assert (exit_code, output) == (1, "little\n"), (line, errors)
        elif not deleted:  # docs/sandbox.md: those are not seen
            assert (layers[-1], exit_code) == ("files:watched", -9), (line, errors)
        assert output.startswith("little\n")
        assert ("files:tmpfs" in layers) == (ROOT and way != "an ordinary user" and this_kernel().may(21)), line


def test_a_single_file_ends_at_the_bound(place: Path) -> None:
    code = (
        f"import os; f = open(os.environ['TMPDIR'] + '/x', 'wb', buffering=0); f.truncate({FILES}); print(1, flush=1)"
    )
    ((_, exit_code, _, output, _),) = outcomes(place, "as this user", f"{code}\nf.truncate({FILES} + 1)", ["other"])
    assert (exit_code, output) == (1, "1\n")


def test_an_approved_command_has_no_limits(tmp_path: Path) -> None:
    """Its cgroup, if any, bounds nothing, and neither do the limits of its process."""
    code = f"import resource; print(resource.getrlimit(resource.RLIMIT_AS) == (-1, -1))\nbytearray(2 * {MEMORY})"
    script = RUN.replace('Sandbox("auto"', 'Sandbox("off"')
    (tmp_path / "other").write_text(f"#!{sys.executable} -IS\n{code}\n")
    (tmp_path / "other").chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), "", "other"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)[1:4] == [0, [], "True\n"]


@pytest.mark.parametrize("signal_number", [0, 9])
def test_no_cgroup_is_left_behind_by_a_ghost_that_ends_or_is_killed(tmp_path: Path, signal_number: int) -> None:
    code = RUN + f"\nimport os\nos.kill(os.getpid(), {signal_number})"
    (tmp_path / "other").write_text("#!/bin/sh\nsleep 60 &\n")
    (tmp_path / "other").chmod(0o755)
    subprocess.run([sys.executable, "-c", code, str(tmp_path), "", "other", "other"], timeout=60, capture_output=True)
    deadline = time.monotonic() + 5
    while left_cgroups() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left_cgroups() == []


def cgroup_tree(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


VERSION_2 = {"a/cgroup.subtree_control": "cpu memory pids\n", "a/cgroup.procs": "", "a/b/cgroup.subtree_control": "\n"}


@pytest.mark.parametrize(
    ("own", "files", "found"),
    [
        ("0::/a/b\n", VERSION_2, ("a", 2, True)),
        ("0::/a\n", VERSION_2, ("a", 2, True)),
        ("0::/a/b/c\n", VERSION_2, ("", 0, False)),
        ("0::/a/b\n", {**VERSION_2, "a/cgroup.subtree_control": "pids"}, ("a", 2, False)),
        ("0::/a/b\n", {**VERSION_2, "a/cgroup.subtree_control": "memory"}, ("", 0, False)),
        ("8:pids:/u\n0::/\n", {"pids/u/cgroup.procs": ""}, ("pids/u", 1, False)),
        ("8:pids:/other\n0::/\n", {"pids/u/cgroup.procs": ""}, ("", 0, False)),
        ("", {}, ("", 0, False)),
    ],
)
def test_cgroups_are_made_where_their_controllers_are_on(
    tmp_path: Path, own: str, files: dict[str, str], found: tuple[Any, ...]
) -> None:
    cgroup_tree(tmp_path, files)
    (tmp_path / "own").write_text(own)
    cgroups = Cgroups(str(tmp_path), str(tmp_path / "own"))
    assert (cgroups.place.removeprefix(f"{tmp_path}/"), cgroups.version, cgroups.memory) == found
