"""The sandbox around SAFE commands: what a program in it can and cannot do, tried by real programs."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ghost.shell.run.kernel as kernel_module
import ghost.shell.run.sandbox as sandbox_module
from ghost.cli import shell_commands
from ghost.shell import HitlDecision, SafeExecShell, explain
from ghost.shell.run.execution import Programs, Run, child_environment, run
from ghost.shell.run.launcher_program import remove_tree
from ghost.shell.run.sandbox import Sandbox, SandboxUnavailableError, this_kernel
from tests.each_row import each

CONFINED = this_kernel().landlock >= 6
needs_landlock = pytest.mark.skipif(not CONFINED, reason="the kernel has no Landlock of version 6")
LAYERS = ("no_new_privs", "capabilities", "landlock", "seccomp")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """What commands may look for: notes to change, a secret to read, a directory to write."""
    for name in ("prefix/bin", "work", "home", "captures"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "work" / "notes.txt").write_text("notes\n")
    (tmp_path / "home" / "secret").write_text("hunter2hunter\n")
    return tmp_path


def go(place: Path, words: list[str], *, mode: str = "auto", timeout_seconds: float = 20, **variables: str) -> Run:
    programs = Programs((place / "prefix" / "bin", *Programs().directories))
    environment = {**child_environment(programs, "local", {}), "HOME": str(place / "home"), **variables}
    environment.pop("TMPDIR", None)
    sandbox = Sandbox(mode, (str(place / "captures"),), programs.search_path)
    return run(words, programs=programs, environment=environment, timeout_seconds=timeout_seconds, sandbox=sandbox)


def python(place: Path, code: str, name: str = "prober", **options: Any) -> Run:
    """Runs code as the program `name`: the profile is chosen by it."""
    path = place / "prefix" / "bin" / name
    path.write_text(f"#!{sys.executable} -IS\nimport os, socket, sys, ctypes\nplace = {str(place)!r}\n{code}\n")
    path.chmod(0o755)
    return go(place, [name], **options)


def state_of(directory: Path) -> dict[str, tuple[Any, ...]]:
    """Everything but the times of access, and but the directory in which the probes themselves are written."""
    entries = [directory, *directory.rglob("*")]
    kept = [path for path in entries if "prefix" not in path.relative_to(directory).parts and path != directory]
    facts = {str(path): path.lstat() for path in kept}
    return {p: (f.st_mode, f.st_uid, f.st_gid, f.st_size, f.st_mtime_ns, f.st_ctime_ns) for p, f in facts.items()}


# Files

CHANGES = [
    "open(place + '/work/new', 'w')",
    "open(place + '/work/notes.txt', 'a').write('x')",
    "os.open(place + '/work/notes.txt', os.O_RDONLY | os.O_TRUNC)",
    "os.truncate(place + '/work/notes.txt', 0)",
    "os.unlink(place + '/work/notes.txt')",
    "os.rename(place + '/work/notes.txt', place + '/work/other')",
    "os.rename(place + '/work/notes.txt', os.environ['TMPDIR'] + '/stolen')",
    "os.link(place + '/work/notes.txt', place + '/work/other')",
    "os.symlink('/etc', place + '/work/link')",
    "os.mkdir(place + '/work/new')",
    "os.mkfifo(place + '/work/pipe')",
    "os.chmod(place + '/work/notes.txt', 0o777)",
    "os.chown(place + '/work/notes.txt', os.getuid(), os.getgid())",
    "os.utime(place + '/work/notes.txt')",
    "os.setxattr(place + '/work/notes.txt', 'user.x', b'y')",
    "assert ctypes.CDLL(None).syscall(452, -100, (place + '/work/notes.txt').encode(), 0o777, 0) == 0",
    "open('/dev/shm/ghost-test-new', 'w')",
    "open('/tmp/ghost-test-new', 'w')",
]


@needs_landlock
@pytest.mark.parametrize("change", CHANGES)
def test_nothing_outside_the_private_directory_can_be_changed(place: Path, change: str) -> None:
    before = state_of(place)
    result = python(place, change)
    assert (result.layers[:4], result.exit_code) == (LAYERS, 1), result.stderr.head
    assert state_of(place) == before


@pytest.mark.parametrize("change", CHANGES[:14])
def test_the_same_changes_work_without_a_sandbox(place: Path, change: str) -> None:
    """The control: a probe that fails for another reason would prove nothing."""
    result = python(place, f"os.environ['TMPDIR'] = place + '/home'\n{change}", mode="off")
    assert (result.layers, result.exit_code) == ((), 0), result.stderr.head


@needs_landlock
def test_the_private_directory_is_writable_and_goes_with_the_command(place: Path) -> None:
    code = (
        "d = os.environ['TMPDIR']; os.mkdir(d + '/x'); open(d + '/x/y', 'w').write('z')\n"
        "os.rename(d + '/x', d + '/w'); print(d)"
    )
    result = python(place, code)
    assert result.exit_code == 0, result.stderr.head
    directory = Path(result.stdout.head.decode().strip())
    assert directory.name.startswith("ghost-")
    assert not directory.exists()


@needs_landlock
def test_a_private_directory_of_any_depth_is_removed_and_the_output_kept(place: Path) -> None:
    """3,000 directories in each other ended the shell's own call with a RecursionError."""
    code = (
        "d = os.environ['TMPDIR']; print(d); at = os.open(d, os.O_RDONLY)\n"
        "for n in range(3000):\n"
        "    os.mkdir('x', dir_fd=at); inner = os.open('x', os.O_RDONLY, dir_fd=at); os.close(at); at = inner\n"
        "os.mkdir('closed', 0, dir_fd=at); os.symlink(place, d + '/link')"
    )
    before = state_of(place)
    result = python(place, code)
    assert result.exit_code == 0, result.stderr.head
    assert not Path(result.stdout.head.decode().strip()).exists()
    assert state_of(place) == before


def test_a_tree_that_cannot_be_removed_in_time_is_left_and_nothing_is_raised(tmp_path: Path) -> None:
    (tmp_path / "tree" / "inner").mkdir(parents=True)
    remove_tree(str(tmp_path / "tree"), seconds=-1)
    assert (tmp_path / "tree" / "inner").exists()
    remove_tree(str(tmp_path / "tree"))
    remove_tree(str(tmp_path / "tree"))
    assert not (tmp_path / "tree").exists()


@needs_landlock
def test_what_lies_in_the_private_directory_cannot_be_executed(place: Path) -> None:
    code = (
        "p = os.environ['TMPDIR'] + '/tool'\n"
        "with open(p, 'wb', opener=lambda n, f: os.open(n, f, 0o700)) as f: f.write(open('/bin/true', 'rb').read())\n"
        "os.execv(p, [p])"
    )
    assert b"Permission denied" in python(place, code).stderr.head


@needs_landlock
@pytest.mark.parametrize("path", ["{place}/home/secret", "{place}/work/notes.txt", "/etc/shadow", "/proc/1/environ"])
def test_files_that_no_profile_needs_cannot_be_read(place: Path, path: str) -> None:
    result = python(place, f"print(open({path.format(place=place)!r}).read())")
    assert (result.exit_code, result.stdout.head) == (1, b"")


@needs_landlock
def test_the_environment_of_ghost_cannot_be_read(place: Path) -> None:
    result = python(place, f"print(open('/proc/{os.getpid()}/environ').read())")
    assert b"Permission denied" in result.stderr.head


# Privileges, processes, the machine


@needs_landlock
def test_no_capability_is_left_and_none_can_be_gained(place: Path) -> None:
    status = python(place, "print(open('/proc/self/status').read())").stdout.head.decode()
    facts = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    masks = {name: int(facts[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
    assert masks == {"CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapAmb": 0}
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")


FORBIDDEN_CALLS = [
    "os.kill({ghost}, 0)",
    "os.setpriority(os.PRIO_PROCESS, {ghost}, 19)",
    "__import__('resource').prlimit({ghost}, __import__('resource').RLIMIT_NOFILE, (64, 64))",
    "socket.sethostname('other')",
    "socket.socket(socket.AF_UNIX)",
    "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)",
    "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()",
    "os.unshare(os.CLONE_NEWUSER) if hasattr(os, 'unshare') else sys.exit(1)",
    "assert ctypes.CDLL(None).unshare(0x10000000) == 0",
    "assert ctypes.CDLL(None).ptrace(16, {ghost}, 0, 0) == 0",
    "assert ctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, None) == 0",
    "assert ctypes.CDLL(None).syscall(425, 8, None) >= 0",
    "os.waitpid(os.fork() or (os.setsid(), os._exit(0)), 0)[1] and sys.exit(1)",
    "os.setpgid(0, 0)",
    "assert ctypes.CDLL(None).syscall(600) == 0",
]


@needs_landlock
@pytest.mark.parametrize("call", FORBIDDEN_CALLS)
def test_nothing_else_on_the_machine_can_be_touched(place: Path, call: str) -> None:
    assert python(place, call.format(ghost=os.getpid())).exit_code == 1


@needs_landlock
def test_a_program_starts_no_other_one(place: Path) -> None:
    for words in (["env", "true"], ["nice", "true"], ["sh", "-c", "exec /bin/true"]):
        assert go(place, words).exit_code in (126, 127), words
        assert go(place, words, mode="off").exit_code == 0


@needs_landlock
def test_a_program_without_need_of_children_forks_none(place: Path) -> None:
    result = go(place, ["sh", "-c", "(echo child)"])
    assert result.stdout.head == b""
    assert go(place, ["sh", "-c", "(echo child)"], mode="off").stdout.head == b"child\n"


# Profiles


@needs_landlock
@pytest.mark.needs("tcpdump")
def test_a_reader_reads_the_captures_it_names_and_nothing_beside(place: Path) -> None:
    header = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")
    for name in ("a.cap", "b.cap"):
        (place / "captures" / name).write_bytes(header)
    (place / "work" / "c.cap").write_bytes(header)
    read = ["tcpdump", "-n", "-r"]
    assert go(place, [*read, f"{place}/captures/a.cap"]).exit_code == 0
    assert go(place, [*read, f"{place}/work/c.cap"]).exit_code == 1
    writes = go(place, [*read, f"{place}/captures/a.cap", "-w", f"{place}/captures/new.cap"])
    assert writes.exit_code == 1
    assert not (place / "captures" / "new.cap").exists()
    assert python(place, "socket.socket()", "tshark").exit_code == 1


@needs_landlock
def test_the_engine_writes_where_it_is_told_under_the_roots_only(place: Path) -> None:
    header = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")
    capture = place / "captures" / "a.cap"
    capture.write_bytes(header)
    good = place / "captures" / "reports"
    done = go(place, ["pcap-forensics", str(capture), "--semantic-dir", str(good), f"--report-dir={good}"])
    assert (done.exit_code, done.layers[:4]) == (0, LAYERS), done.stderr.head
    assert {".json", ".md"} <= {path.suffix for path in good.iterdir()}
    outside = place / "work" / "reports"
    done = go(place, ["pcap-forensics", str(capture), "--semantic-dir", str(good), "--report-dir", str(outside)])
    assert done.exit_code != 0
    assert not outside.exists()


@needs_landlock
@pytest.mark.parametrize("target", ["work/audit", "work", "work/audit/inner", "work/link", "work/other"])
def test_the_engine_is_not_let_write_where_audits_lie(place: Path, target: str) -> None:
    """It reads hostile input; Landlock takes nothing out of a directory, so what holds an audit is out too."""
    audit, other = place / "work" / "audit", place / "work" / "other"
    for directory in (audit, other):
        directory.mkdir()
    (place / "work" / "link").symlink_to("audit")
    (other / "shell_audit_s9.jsonl").write_text("{}\n")  # another workspace's
    capture = place / "captures" / "a.cap"
    capture.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    sandbox = Sandbox("auto", (str(place),), "/usr/bin", audit)
    before = state_of(place)

    def engine(*options: str) -> Run:
        words = ["pcap-forensics", str(capture), *options]
        environment = child_environment(Programs(), "local", {"HOME": str(place / "home")})
        return run(words, programs=Programs(), environment=environment, timeout_seconds=60, sandbox=sandbox)

    good = str(place / "captures" / "reports")
    refused = engine("--semantic-dir", good, "--report-dir", str(place / target))
    assert (refused.exit_code, b"holds the records of commands" in refused.stderr.head) == (126, True)
    assert {p: f for p, f in state_of(place).items() if "/captures" not in p} == {
        p: f for p, f in before.items() if "/captures" not in p
    }
    assert engine("--semantic-dir", good, "--report-dir", good).exit_code == 0


@needs_landlock
def test_az_writes_its_own_directory_and_no_other(place: Path) -> None:
    (place / "home" / ".azure").mkdir()
    code = "p = os.environ['HOME'] + '/.azure/az.json'; open(p, 'w').write('{}'); os.chmod(p, 0o644)"
    assert python(place, code, "az").exit_code == 0
    assert (place / "home" / ".azure" / "az.json").stat().st_mode & 0o777 == 0o600
    assert python(place, "open(os.environ['HOME'] + '/.bashrc', 'w')", "az").exit_code == 1
    assert python(place, "print(open(os.environ['HOME'] + '/secret').read())", "az").exit_code == 1
    other = place / "work" / "azure"
    other.mkdir()
    code = "open(os.environ['AZURE_CONFIG_DIR'] + '/x', 'w')"
    assert python(place, code, "az", AZURE_CONFIG_DIR=str(other)).exit_code == 0
    assert (
        python(place, "open(os.environ['HOME'] + '/.azure/y', 'w')", "az", AZURE_CONFIG_DIR=str(other)).exit_code == 1
    )


@needs_landlock
def test_where_az_has_no_directory_it_gets_a_private_one(place: Path) -> None:
    result = python(place, "open(os.environ['AZURE_CONFIG_DIR'] + '/x', 'w')", "az")
    assert result.exit_code == 0, result.stderr.head
    assert not (place / "home" / ".azure").exists()


@needs_landlock
def test_naming_processes_costs_landlock_but_still_writes_nothing(place: Path) -> None:
    probe = python(place, "print(sys.argv)", "ss")
    assert probe.layers[:4] == LAYERS
    before = state_of(place)
    mounts = ("read_only_mounts",) if os.geteuid() == 0 and this_kernel().mount_attributes else ()
    without_landlock = ("no_new_privs", "capabilities", *mounts, "seccomp")
    for change in CHANGES[:14]:
        path = place / "prefix" / "bin" / "ss"
        path.write_text(
            f"#!{sys.executable} -IS\nimport os, ctypes\nplace = {str(place)!r}\nos.environ['TMPDIR'] = place\n{change}"
        )
        result = go(place, ["ss", "-tlnp"])
        assert (result.layers[: len(without_landlock)], result.exit_code) == (without_landlock, 1), change
    assert state_of(place) == before


@each(
    "command, profile",
    [
        ("ping -c 1 127.0.0.1", "probe"),
        ("dig localhost", "query"),
        ("curl -q http://127.0.0.1/", "query"),
        ("ss -tan", "tables"),
        ("ss -tulpn", "processes"),
        ("ss -tn --processes dst 10.0.0.1", "processes"),
        ("ss -tpF /etc/shadow", "tables"),
        ("ss -tp -F /etc/shadow", "tables"),
        ("ss -tp --filter=/etc/shadow", "tables"),
        ("ss -tp --fil /etc/shadow", "tables"),
        ("ss -pD /tmp/x", "tables"),
        ("lsof -nP -iTCP:80", "processes_by_files"),
        ("lsof -nP -Dr/etc/shadow", "tables"),
        ("lsof -i -D r/etc/shadow", "tables"),
        ("netstat -tlnp", "processes"),
        ("netstat -rn", "tables"),
        ("ip addr", "tables"),
        ("tcpdump -r a.cap", "reader"),
        ("pcap-forensics a.cap", "engine"),
        ("az vm list", "az"),
        ("nmap localhost", "default"),
    ],
)
def test_the_profile_is_chosen_by_the_program_and_its_options(command: str, profile: str) -> None:
    name, *arguments = shlex.split(command)
    assert sandbox_module.read_sandbox_policy().profile_of(name, arguments).name == profile


@pytest.mark.needs("ping", "dig", "ss", "ip", "traceroute", "curl")
@pytest.mark.parametrize(
    ("command", "exit_code"),
    [
        *[(c, 0) for c in ("ping -c 1 127.0.0.1", "traceroute -n 127.0.0.1", "ss -tulpn", "ss -tan", "ip -br addr")],
        *[(c, 0) for c in ("ip route get 127.0.0.1", "ip -s link")],
        ("dig -r @127.0.0.1 -p 9 +time=1 +tries=1 localhost", 9),
        ("curl -q -s -o /dev/null http://127.0.0.1:9/", 7),
    ],
)
def test_real_programs_do_in_it_what_they_do_outside(place: Path, command: str, exit_code: int) -> None:
    words = shlex.split(command)
    outside, inside, again = (go(place, words, mode=mode) for mode in ("off", "auto", "off"))
    assert (inside.exit_code, inside.stderr.head) == (exit_code, outside.stderr.head)
    lines = sorted((outside.stdout.lines, again.stdout.lines))  # connections of the machine come and go meanwhile
    assert lines[0] - 3 <= inside.stdout.lines <= lines[1] + 3


# Modes


def test_required_refuses_where_the_system_has_no_sandbox(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = sandbox_module.Kernel("x86_64", 0, False, 0)
    monkeypatch.setattr(sandbox_module, "this_kernel", lambda: bare)
    with pytest.raises(SandboxUnavailableError, match="no sandbox that Ghost supports"):
        go(place, ["true"], mode="required")
    assert go(place, ["true"]).layers == ()


def test_an_old_landlock_is_used_but_is_not_enough_where_one_is_required(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not CONFINED:
        pytest.skip("the kernel has no Landlock of version 6")
    old = sandbox_module.Kernel(this_kernel().machine, 1, True, 0)
    monkeypatch.setattr(sandbox_module, "this_kernel", lambda: old)
    assert go(place, ["true"]).layers[:4] == LAYERS
    with pytest.raises(SandboxUnavailableError, match="cannot deny all writing"):
        go(place, ["true"], mode="required")
    assert go(place, ["ip", "-V"], mode="required").layers[:4] == LAYERS  # its filter denies writing by itself


@pytest.mark.parametrize(("landlock", "seccomp", "asked"), [(0, False, {"ss", "tshark"}), (2, True, {"tshark"})])
def test_what_relies_on_a_missing_sandbox_asks_and_all_say_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    landlock: int,
    seccomp: bool,
    asked: set[str],
) -> None:
    """macOS has no layer at all; before Linux 6.2 only programs that open nothing for writing are held to reading."""
    lacking = sandbox_module.Kernel(this_kernel().machine, landlock, seccomp, 0)
    for module in (kernel_module, sandbox_module):
        monkeypatch.setattr(module, "this_kernel", lambda: lacking)
    (tmp_path / "a.pcap").write_bytes(b"")
    shell = SafeExecShell("s1", audit_dir=tmp_path / "audit", roots=[tmp_path])
    commands = ("ss -tan", f"tshark -r {tmp_path}/a.pcap", "dig example.com", "az vm list", "pcap-forensics --help")
    risky = {command.split()[0] for command in commands if not shell.runs_unasked(command)}
    assert risky == asked
    assert {
        command.split()[0] for command in commands if explain(command, [tmp_path])["rule"] == "sandbox: none"
    } == risky
    over_audit = f"pcap-forensics {tmp_path}/a.pcap --report-dir {tmp_path}"
    assert "holds the records" in shell.execute({"command": over_audit, "reasoning": "x"})["stderr"] or landlock
    refused = shell.execute({"command": commands[1], "reasoning": "x"})
    assert (refused["status"], refused["action"]) == ("denied", "user_abandoned")
    shell_commands.explain("az vm list", as_json=False)
    assert "sandbox:        Th" in capsys.readouterr().out


@needs_landlock
@pytest.mark.needs("tshark")
def test_a_command_approved_for_want_of_a_layer_runs_in_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = sandbox_module.Kernel(this_kernel().machine, 1, True, 0)
    for module in (kernel_module, sandbox_module):
        monkeypatch.setattr(module, "this_kernel", lambda: old)
    shell = SafeExecShell("s1", lambda *_: HitlDecision("approve"), tmp_path / "audit")
    response = shell.execute({"command": "tshark --version", "reasoning": "x"})
    assert (response["classification"], response["action"]) == ("RISKY", "user_approved")
    assert response["sandbox"][:4] == list(LAYERS)


@needs_landlock
def test_the_response_and_the_record_name_the_layers(tmp_path: Path) -> None:
    shell = SafeExecShell("s1", lambda *_: HitlDecision("approve"), tmp_path / "audit", sandbox="required")
    safe = shell.execute({"command": "ss -tan", "reasoning": "x"})
    risky = shell.execute({"command": "seq 1", "reasoning": "x"})
    assert (safe["sandbox"][:4], risky["sandbox"]) == (list(LAYERS), [])
    assert [limit.partition(":")[0] for limit in safe["sandbox"][4:]] in (
        ["pids", "memory"],
        ["pids", "memory", "files"],
    )
    assert f'"sandbox": {json.dumps(safe["sandbox"])}' in shell.audit_path.read_text()
    off = SafeExecShell("s2", audit_dir=tmp_path / "audit", sandbox="off").execute(
        {"command": "ss -tan", "reasoning": "x"}
    )
    assert (off["exit_code"], off["sandbox"]) == (0, [])


# The process that starts programs


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _comes_true(wanted: Callable[[], bool]) -> bool:
    """Within half a minute, for a busy machine."""
    for _ in range(1500):
        if wanted():
            return True
        time.sleep(0.02)
    return False


def _ends(pid: int) -> bool:
    return _comes_true(lambda: not _alive(pid))


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_when_ghost_is_killed_its_commands_end(place: Path, mode: str) -> None:
    script = place / "prefix" / "bin" / "az"
    pids = place / "home" / ".azure" / "pids"
    pids.parent.mkdir()
    leaves = "setsid" if mode == "off" else ""  # in the sandbox it cannot
    script.write_text(f"#!/bin/sh\necho $TMPDIR > {pids}.tmp\n{leaves} sleep 60 &\necho $$ $! > {pids}\nwait\n")
    script.chmod(0o755)
    code = (
        "from ghost.shell.run.execution import *\nfrom ghost.shell.run.sandbox import Sandbox\n"
        "from pathlib import Path\n"
        f"p = Programs((Path({str(script.parent)!r}), *Programs().directories))\n"
        f"run(['az'], programs=p, environment={{'HOME': {str(place / 'home')!r}, 'PATH': p.search_path}},"
        f" timeout_seconds=60, sandbox=Sandbox({mode!r}, (), p.search_path))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    assert _comes_true(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    process.kill()
    process.wait()
    assert all(_ends(int(pid)) for pid in pids.read_text().split())
    private = Path(f"{pids}.tmp").read_text().strip()
    assert bool(private) == (mode == "auto")
    assert not private or _comes_true(lambda: not Path(private).exists())


def test_a_command_whose_control_closes_before_its_shell_is_gone_leaves_no_directory(tmp_path: Path) -> None:
    """The kernel closes what a killed process held, one after another, before it tells that the process is gone."""
    private = tmp_path / "private"
    private.mkdir()
    code = (
        "import os, signal, time\nfrom ghost.shell.run.launcher import Launcher, Streams\n"
        "from ghost.shell.run.sandbox import Confinement\n"
        "told, tells = os.pipe()\n"
        "words = ['/bin/sh', '-c', 'echo $$; exec sleep 60']\n"
        f"confinement = Confinement(private_directory={str(private)!r})\n"
        "launcher = Launcher()\n"
        "program = launcher.start(words, {'PATH': '/usr/bin:/bin'}, confinement, Streams(0, tells, tells))\n"
        "pid = int(os.read(told, 16))\n"
        "program.control.close()\n"
        "while os.path.exists(f'/proc/{pid}'):\n    time.sleep(0.01)\n"  # until the launcher took note of its end
        f"assert os.path.isdir({str(private)!r}), 'the directory of a living shell is the shell\\'s'\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == -9
    assert _comes_true(lambda: not private.exists())


def test_a_killed_launcher_is_replaced(place: Path) -> None:
    assert go(place, ["true"]).exit_code == 0
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            if b"launcher_program.py" in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(int(child), 9)
    results = [go(place, ["true"]).exit_code for _ in range(3)]
    assert results[-2:] == [0, 0]  # the one that was being sent when it ended may fail, and says so


WAITS_FOR_EIGHT = (
    'cd $1; touch r$0; for i in $(seq 900); do [ "$(ls r? | wc -l)" = 8 ] && exec echo $0; sleep 0.05; done'
)


def test_commands_of_several_threads_run_at_once(place: Path) -> None:
    """Each waits until all eight have begun."""
    results: list[Run] = []
    threads = [
        threading.Thread(target=lambda words=words: results.append(go(place, words, mode="off")))
        for words in (["sh", "-c", WAITS_FOR_EIGHT, str(n), str(place)] for n in range(8))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(result.stdout.head) for result in results) == list(range(8))


def test_arguments_and_variables_that_are_no_text_arrive_unchanged(place: Path) -> None:
    odd = os.fsdecode(b"\xff\xfe\xc3\xa4")
    result = go(place, ["printf", "%s", odd], ODD=odd)
    assert result.stdout.head == b"\xff\xfe\xc3\xa4"
    big = "x" * 120_000
    assert go(place, ["printf", "%s", big]).stdout.total == len(big)


# Reads of this machine's state

HOST_READS = """
uptime|date|id|whoami|who|w|ps aux|ps -eo pid,comm|df -h|free -m|lscpu|vmstat 1 2|dmesg|sysctl net.ipv4.ip_forward
nstat -az|which -a ls|top -b -n 1|pgrep -c python|cat /etc/hosts|cat /proc/net/dev|cat /sys/class/net/lo/mtu
ls -l /sys/class/net
grep -c 127 /etc/hosts|head -2 /etc/services|cat /proc/sys/net/ipv4/ip_forward
"""


@needs_landlock
def test_reads_of_this_machine_work_in_the_sandbox(tmp_path: Path) -> None:
    shell = SafeExecShell("s", audit_dir=tmp_path / "audit", roots=[tmp_path], timeout_seconds=30)
    commands = [c for line in HOST_READS.split("\n") for c in line.split("|") if c and Programs().find(c.split()[0])]
    if os.geteuid() != 0:
        commands.remove("dmesg")  # the machine decides who may read /dev/kmsg
    responses = {c: shell.execute({"command": c, "reasoning": "to see"}) for c in commands}
    assert len(commands) > 10
    assert {c: r["stderr"] for c, r in responses.items() if (r["exit_code"], r["action"]) != (0, "auto_approved")} == {}
    assert {c for c, r in responses.items() if r["sandbox"][:4] != list(LAYERS)} == set()
    assert {c for c, r in responses.items() if not r["output"]} <= {"who"}


@needs_landlock
@pytest.mark.needs("ps")
def test_environments_of_other_processes_are_hidden_from_ps(place: Path) -> None:
    bystander = subprocess.Popen(["sleep", "60"], env={"CANARY": "hunter2hunter"})
    try:
        shown = {mode: go(place, ["ps", "eww", str(bystander.pid)], mode=mode).stdout.head for mode in ("off", "auto")}
    finally:
        bystander.kill()
        bystander.wait()
    assert b"CANARY=hunter2hunter" in shown["off"]
    assert b"sleep 60" in shown["auto"]
    assert b"CANARY" not in shown["auto"]


@needs_landlock
@pytest.mark.parametrize(
    "command",
    [
        *(
            "date -s 2001-01-01",
            "sysctl -w kernel.hostname=ghost-test",
            "dmesg -n 1",
            "dmesg -C",
            "nstat -d 9",
            "df --output=x",
        ),
        *(
            "cat /etc/shadow",
            "cat {place}/work/notes.txt",
            "grep -r hunter {place}/home",
            "conntrack -F",
            "top -b -n x",
        ),
    ],
)
def test_what_their_tables_refuse_fails_in_their_sandbox_too(place: Path, command: str) -> None:
    before = (state_of(place), os.uname().nodename)
    result = go(place, command.format(place=place).split())
    assert result.exit_code != 0
    assert b"hunter" not in result.stdout.head
    assert (state_of(place), os.uname().nodename) == before


@needs_landlock
def test_a_link_among_own_files_leads_nowhere_else(place: Path) -> None:
    """Landlock holds what the link led to when the command was judged; a secret beside it stays closed."""
    audit = place / "captures" / "audit"
    audit.mkdir()
    (audit / "shell_audit_s.jsonl").write_text("{}\n")
    (audit / "ghost_rca_s.md").symlink_to(place / "home" / "secret")
    assert shell_judges("cat {0}/shell_audit_s.jsonl {0}/ghost_rca_s.md", audit) == "RISKY"
    assert shell_judges("cat {0}/shell_audit_s.jsonl", audit) == "SAFE"
    result = go(place, ["cat", str(audit / "shell_audit_s.jsonl"), str(audit / "ghost_rca_s.md")])
    assert (result.exit_code, result.stdout.head) == (1, b"{}\n")


def shell_judges(command: str, audit: Path) -> str:
    return str(explain(command.format(audit), [audit.parent])["classification"])
