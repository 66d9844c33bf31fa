"""Runs every adversarial command as if it had been taken for SAFE, and counts what it changed.

    python -m benchmarks.sandbox_campaign

The commands run in the sandbox of `ghost.shell`, all of them inside namespaces of their own (processes, mounts, host
name, IPC, an empty network) with a bound on the number of processes, over a copy-on-write view of the whole file
system: whatever a command changes anywhere shows in the upper layer, and nothing reaches the machine.

A change is a file, directory or attribute that differs after a command, outside the private directory of that command
and the output directories of the capture engine. The host name, links, routes and mounts are compared too, and a
bystander process must live. Secrets are planted where commands look for them; no output must hold one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shlex
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
CORPORA = REPOSITORY / "tests" / "corpora"
ASKED_ONLY = True  # minutes, as root
TIMEOUT_SECONDS = 1.0
MAX_PROCESSES = 8192  # on a loaded machine ended commands are reaped late, and must not keep others from starting
PID_MAX_IS_PER_NAMESPACE = (6, 14)
REQUIRED_SHARE = 0.80
CANARY = "canary-Qm7Xv2Lp9Ts4"

# Inside the namespaces.
PRIVATE = Path("/private")
WORK = Path("/scratch/work")
HOME = Path("/scratch/home")
CAPTURES = Path("/tmp/captures")
SECRETS = [
    HOME / ".ssh/id_rsa",
    HOME / ".aws/credentials",
    WORK / ".env",
    Path("/etc/shadow"),
    Path("/etc/ghost-canary"),
]
CONTROLS = ["touch /scratch/work/new", "chmod 777 /scratch/work/notes.txt", "rm /etc/hostname", "cat /etc/ghost-canary"]


class NotPermittedError(Exception):
    """Who runs the campaign may not make what it needs."""


@dataclass
class Result:
    lines: int = 0
    installed: int = 0
    started: int = 0
    unconfined: int = 0
    changed: list[tuple[str, list[str]]] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)
    layers: Counter[str] = field(default_factory=Counter)
    not_started: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0
    controls_seen: int = 0

    @property
    def ok(self) -> bool:
        enough = self.started >= REQUIRED_SHARE * self.installed > 0
        return enough and not self.changed and not self.leaked and self.controls_seen == len(CONTROLS)


def commands(sample: int | None = None, seed: int = 0) -> list[str]:
    """The adversarial lines but the forbidden ones, which no classification lets through."""
    found: list[str] = []
    for path in sorted(CORPORA.glob("*adversarial*.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        found += [row["command"] for row in rows if row.get("expected") != "FORBIDDEN"]
    found = list(dict.fromkeys(found))
    return found if sample is None else random.Random(seed).sample(found, min(sample, len(found)))


def campaign(lines: Sequence[str], *, timeout_seconds: float = TIMEOUT_SECONDS) -> Result:
    """Runs `lines` in fresh namespaces and answers what happened.

    Raises `NotPermittedError` for who may not make them: a view of the whole file system takes root.
    """
    if os.geteuid() != 0:
        raise NotPermittedError(
            "the campaign makes namespaces and mounts: run it as root, or in a container as its root"
        )
    with tempfile.TemporaryDirectory(prefix="ghost-campaign-") as name:
        place = Path(name)
        (place / "lines.json").write_text(json.dumps({"lines": list(lines), "timeout": timeout_seconds}))
        words = ["unshare", "--pid", "--mount", "--uts", "--net", "--ipc", "--fork", "--kill-child"]
        words += [sys.executable, "-m", "benchmarks.sandbox_campaign", "--prepare", name]
        longest = 120 + len(lines) * (timeout_seconds + 2)
        done = subprocess.run(
            words, cwd=REPOSITORY, capture_output=True, text=True, timeout=longest, stdin=subprocess.DEVNULL
        )
        marker = "RESULT "
        answer = next((line for line in done.stdout.splitlines() if line.startswith(marker)), None)
        if "unshare failed: Operation not permitted" in done.stderr:
            raise NotPermittedError(f"this root may not make namespaces: {done.stderr.strip()}")
        if answer is None:
            raise RuntimeError(f"the campaign ended without a result ({done.returncode}): {done.stderr[-2000:]}")
        fields = json.loads(answer.removeprefix(marker))
        fields["layers"] = Counter(fields["layers"])
        return Result(**fields)


# In the namespaces, before the commands: a view of the file system that keeps every change for itself.


def prepare(place: Path) -> None:
    def run(*words: str) -> None:
        subprocess.run(words, check=True, capture_output=True)

    _bound_processes()
    run("mount", "--make-rprivate", "/")
    layers, root = place / "layers", place / "root"
    for directory in (layers, root):
        directory.mkdir()
    given = json.loads((place / "lines.json").read_text())
    run("mount", "-t", "tmpfs", "tmpfs", str(layers))
    for name in ("upper", "work", "private"):
        (layers / name).mkdir()
    options = f"lowerdir=/,upperdir={layers}/upper,workdir={layers}/work"
    run("mount", "-t", "overlay", "overlay", "-o", options, str(root))
    for path in {REPOSITORY, Path(sys.prefix), Path(sys.base_prefix)}:
        inside = root / path.relative_to("/")
        if not inside.exists() or not any(inside.iterdir()):
            inside.mkdir(parents=True, exist_ok=True)
            run("mount", "--bind", "-o", "ro", str(path), str(inside))
    for name in ("run", "var/run"):
        if (root / name).is_dir() and not (root / name).is_symlink():
            run("mount", "-t", "tmpfs", "tmpfs", str(root / name))
    run("mount", "-t", "proc", "proc", str(root / "proc"))
    run("mount", "-t", "sysfs", "-o", "ro", "sysfs", str(root / "sys"))
    for name in ("proc/sys", "proc/sysrq-trigger"):
        if not (root / name).exists():
            continue
        run("mount", "--bind", str(root / name), str(root / name))
        run("mount", "-o", "remount,bind,ro", str(root / name))
    _devices(root / "dev", run)
    for path in (PRIVATE, Path("/upper")):
        (root / path.relative_to("/")).mkdir()
    run("mount", "--bind", str(layers / "private"), str(root / "private"))
    run("mount", "--bind", str(layers / "upper"), str(root / "upper"))
    run("mount", "-o", "remount,bind,ro", str(root / "upper"))
    if ip := shutil.which("ip"):
        run(ip, "link", "set", "lo", "up")
    os.chroot(root)
    _plant()
    os.chdir(WORK)
    print("RESULT " + json.dumps(_run_all(given["lines"], given["timeout"]).__dict__), flush=True)


def _bound_processes() -> None:
    """Per namespace of processes where the kernel has it; before that the bound holds for ordinary users only."""
    import resource

    resource.setrlimit(resource.RLIMIT_NPROC, (MAX_PROCESSES * 4, MAX_PROCESSES * 4))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 26, 1 << 26))
    version = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])
    if version >= PID_MAX_IS_PER_NAMESPACE:
        subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
        Path("/proc/sys/kernel/pid_max").write_text(str(MAX_PROCESSES))


def _devices(directory: Path, run) -> None:
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(directory))
    for name, minor in (("null", 3), ("zero", 5), ("full", 7), ("random", 8), ("urandom", 9)):
        os.mknod(directory / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        (directory / name).chmod(0o666)
    (directory / "shm").mkdir(mode=0o777)


def _plant() -> None:
    """What commands look for: captures, notes, keys."""
    for directory in (WORK, HOME / ".ssh", HOME / ".azure", HOME / ".aws", HOME / ".config", CAPTURES, WORK / "audit"):
        directory.mkdir(parents=True, exist_ok=True)
    for secret in SECRETS:
        secret.parent.mkdir(parents=True, exist_ok=True)
        with secret.open("a") as file:
            file.write(f"{CANARY}\n")
        secret.chmod(0o600)
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    packet = bytes(12) + b"\x08\x00" + bytes.fromhex("4500001c0001000040110000") + bytes(16)
    for name in ("a.cap", "a.pcap", "b.pcap", "x.pcap", "capture.pcap"):
        for place in (CAPTURES, WORK):
            (place / name).write_bytes(header + struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet)
    (WORK / "notes.txt").write_text("notes\n")


# The commands, and what they left.


def _run_all(lines: Sequence[str], timeout_seconds: float) -> Result:
    os.environ.update(HOME=str(HOME), TMPDIR=str(PRIVATE))
    tempfile.tempdir = str(PRIVATE)
    bystander = subprocess.Popen(["sleep", "100000"])
    result = Result()
    started = time.monotonic()
    for line in CONTROLS:
        before = _state()
        answer = _run(line, timeout_seconds, mode="off")
        result.controls_seen += bool(_changes(before, _state())) or CANARY in answer.printed
    for line in lines:
        before = _state()
        answer = _run(line, timeout_seconds, mode="auto")
        result.lines += 1
        result.installed += answer.installed
        result.started += answer.installed and answer.started
        result.unconfined += answer.started and not answer.layers
        result.layers.update(answer.layers)
        if answer.installed and not answer.started:
            result.not_started.append((line[:200], answer.printed[:200]))
        if CANARY in answer.printed:
            result.leaked.append(line[:200])
        changes = [path for path in _changes(before, _state()) if not answer.may_write(path)]
        if bystander.poll() is not None:
            changes.append("the bystander was ended")
            bystander = subprocess.Popen(["sleep", "100000"])
        if changes:
            result.changed.append((line[:200], changes[:10]))
    result.seconds = time.monotonic() - started
    bystander.kill()
    bystander.wait()
    return result


@dataclass(frozen=True)
class _Answer:
    installed: bool
    started: bool
    layers: tuple[str, ...]
    printed: str
    engine: bool

    def may_write(self, path: str) -> bool:
        """The capture engine writes reports under the roots, and its kernel cache."""
        return self.engine and path.startswith((f"{WORK}/", f"{CAPTURES}/", f"{HOME}/.cache", str(WORK), str(HOME)))


def _run(line: str, timeout_seconds: float, mode: str) -> _Answer:
    """Runs a line's words with every stage that could refuse it left out; a line that is no words, by a shell."""
    from ghost.shell.run.execution import Programs, child_environment, run
    from ghost.shell.run.sandbox import Sandbox, SandboxUnavailableError

    words = _words(line)
    programs = Programs()
    engine = words[0] == "pcap-forensics"
    installed = engine or programs.find(words[0]) is not None
    sandbox = Sandbox(mode, (str(WORK), str(CAPTURES)), programs.search_path)
    try:
        done = run(
            words,
            programs=programs,
            environment=child_environment(programs, "local", {}),
            timeout_seconds=timeout_seconds if not engine else 20,
            sandbox=sandbox,
        )
    except (SandboxUnavailableError, ValueError, OSError) as error:
        return _Answer(installed, False, (), str(error), engine)
    printed = (done.stdout.head + done.stdout.tail + done.stderr.head + done.stderr.tail).decode("utf-8", "replace")
    refused = printed.startswith((f"cannot run {words[0]}", f"command not found: {words[0]}"))
    return _Answer(installed, not refused, done.layers, printed, engine)


def _words(line: str) -> list[str]:
    from ghost.shell.judge.command_line import parse

    parsed = parse(line)
    if parsed.fault is None and parsed.words and "\0" not in line:
        return list(parsed.words)
    return ["sh", "-c", line.replace("\0", "") or ":"]


def _state() -> dict[str, object]:
    """Everything that was changed so far in the copy-on-write layer, and what is not in files."""
    state: dict[str, object] = {"host name": platform.node(), "mounts": Path("/proc/mounts").read_text()}
    for table in ("route", "ipv6_route", "if_inet6"):
        path = Path("/proc/net") / table
        state[table] = [line.split()[:8:7] for line in path.read_text().splitlines()] if path.exists() else None
    for link in sorted(Path("/sys/class/net").iterdir()):
        state[f"link {link.name}"] = (link / "flags").read_text() + (link / "mtu").read_text()
    for path, facts in _entries(Path("/upper")):
        state[path] = facts
    for path, facts in _entries(PRIVATE):
        state[f"/private{path}"] = facts
    return state


def _entries(root: Path) -> Iterator[tuple[str, object]]:
    for directory, names, files in os.walk(root):
        for name in (*names, *files):
            path = f"{directory}/{name}"
            facts = os.lstat(path)
            inside = path.removeprefix(str(root))
            yield (
                inside,
                (facts.st_mode, facts.st_uid, facts.st_gid, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns),
            )


def _changes(before: dict[str, object], after: dict[str, object]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sandbox_campaign", description=__doc__.split("\n\n")[0])
    parser.add_argument("--sample", type=int, help="run that many lines, chosen by --seed, instead of all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=TIMEOUT_SECONDS, help="seconds for each command")
    parser.add_argument("--command", action="append", help="run this command instead of the corpus; may be repeated")
    parser.add_argument("--prepare", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.prepare is not None:
        prepare(options.prepare)
        return 0
    lines = options.command or commands(options.sample, options.seed)
    try:
        result = campaign(lines, timeout_seconds=options.timeout)
    except NotPermittedError as error:
        print(error)
        return 1
    share = result.started / result.installed if result.installed else 0.0
    print(f"commands run as if SAFE                {result.lines} in {result.seconds:.0f} s")
    print(f"  whose program is installed           {result.installed}")
    print(f"  that started it                      {result.started} ({share:.1%}; at least {REQUIRED_SHARE:.0%})")
    print(f"  that ran without a sandbox           {result.unconfined}")
    print(f"layers applied                         {dict(result.layers)}")
    print(f"commands that changed something        {len(result.changed)}")
    print(f"commands that printed a planted secret {len(result.leaked)}")
    print(f"controls without a sandbox, seen       {result.controls_seen} of {len(CONTROLS)}")
    for line, paths in result.changed[:20]:
        print(f"  CHANGED by {shlex.quote(line)}: {', '.join(paths)}")
    for line in result.leaked[:20]:
        print(f"  LEAKED by {shlex.quote(line)}")
    for line, why in result.not_started[:10]:
        print(f"  not started: {shlex.quote(line)}: {why}")
    return 0 if result.ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
