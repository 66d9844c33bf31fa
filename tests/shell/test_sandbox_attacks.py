"""A hostile program in the place of a SAFE one: what it tries through the kernel, and that the same works outside."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ghost.shell.run.execution import Programs, Run, child_environment, run
from ghost.shell.run.sandbox import Sandbox, this_kernel
from ghost.shell.run.sandbox_policy import read_sandbox_policy

needs_landlock = pytest.mark.skipif(this_kernel().landlock < 6, reason="the kernel has no Landlock of version 6")
ROOT = os.geteuid() == 0
PROLOGUE = """
import ctypes, fcntl, os, signal, socket, struct, sys, termios, time
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    result = libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if result < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
"""


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs code under the profile that a command line takes: its first word is the program that the code replaces."""
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    (tmp_path / "notes.txt").write_text("notes\n")
    # Where an ordinary user may ping only by a program's own privilege, mtr runs with no layer: docs/sandbox.md.
    monkeypatch.setattr("ghost.shell.run.sandbox._pings_as_user", lambda: True)

    def attack(line: str, code: str, mode: str = "auto") -> Run:
        words = line.split()
        path = bin_directory / words[0]
        program = f"{PROLOGUE}place = {str(tmp_path)!r}\n{code}\n"
        path.write_text(f"#!{sys.executable} -IS\n{program}")
        path.chmod(0o755)
        monkeypatch.setattr(
            "ghost.shell.run.execution.CAPTURE_ENGINE", ("-IS", "-c", program)
        )  # it is not looked up by name
        programs = Programs((bin_directory, *Programs().directories))
        environment = child_environment(programs, "local", {})
        sandbox = Sandbox(mode, (), programs.search_path)
        return run(words, programs=programs, environment=environment, timeout_seconds=20, sandbox=sandbox)

    return attack


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


PROFILES = [
    *("ping -c 1 127.0.0.1", "mtr x", "dig x", "ip addr", "ss -tlnp", "lsof -i", "resolvectl x", "tcpdump -r x"),
    *("pcap-forensics x", "az vm list", "systemctl x", "ps aux", "dmesg", "journalctl", "cat x", "other"),
    *("openssl x509", "kubectl get pods"),
]
"""One command line of each."""

# On x86_64, by number where Python and the C library have no name for it.
SYSTEM = {
    "keys": "call(250, 3, -4, 1)",
    "bpf": "call(321, 0, (ctypes.c_uint32 * 32)(2, 4, 4, 1), 72)",
    "ring": "call(425, 8, (ctypes.c_uint32 * 64)())",
    "page faults": "call(323, 1)",
    "code in memory": (
        "fd = call(319, b'x', 0); os.write(fd, open('/bin/true', 'rb').read())\nos.execv(f'/proc/self/fd/{fd}', ['x'])"
    ),
    "tracing": "pid = os.getppid(); call(101, 16, pid, 0, 0); call(101, 17, pid, 0, 0)",
    "mounts": "assert libc.unshare(0x20000) == 0; assert libc.mount(b'x', b'/mnt', b'tmpfs', 0, None) == 0",
    "host name": "assert libc.unshare(0x4000000) == 0; socket.sethostname('other')",
    "users": "os.setuid(65534)",
    "a sibling": "call(56, 0x8000 | 17, 0, 0, 0, 0) == 0 and os._exit(0)",
    "abstract sockets": "s = socket.socket(socket.AF_UNIX); s.bind(b'\\0ghost-test-' + str(os.getpid()).encode())",
    "a pair of datagrams": "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "a lease": "fcntl.fcntl(os.open(sys.argv[0], os.O_RDONLY), 1024, 0)",
    "group": "os.waitpid(os.fork() or (os.setsid(), os._exit(0)), 0)[1] and sys.exit(1)",
}
NEED_ROOT = {"bpf", "mounts", "host name", "users"}
DENIED_BY_THE_MACHINE = {"ring", "page faults", "keys", "tracing"}  # some systems turn them off for all
CONTROLS = [a for a in SYSTEM if a not in DENIED_BY_THE_MACHINE and (ROOT or a not in NEED_ROOT)]


def test_every_profile_has_a_line_here() -> None:
    policy = read_sandbox_policy()
    names = {policy.profile_of(program, arguments).name for program, *arguments in map(str.split, PROFILES)}
    assert len(names) == len(PROFILES)
    with_attacks_elsewhere = {"filter", "cluster_with_credentials"}  # test_pipelines.py, test_kubeconfig.py
    assert names == {*policy.profiles} - with_attacks_elsewhere


@needs_landlock
@pytest.mark.skipif(this_kernel().machine != "x86_64", reason="the numbers are of x86_64")
@pytest.mark.parametrize("attack", SYSTEM)
def test_the_machine_is_out_of_reach_under_every_profile(hostile, attack: str) -> None:
    for line in PROFILES:
        if attack == "users" and line.startswith("tcpdump"):
            continue  # it is told that it changed its user, and did not
        if attack == "abstract sockets" and line.startswith(("resolvectl", "systemctl")):
            continue  # it speaks to a service over a socket of that family
        inside = hostile(line, SYSTEM[attack])
        assert inside.exit_code == 1, (line, inside.stderr.head)
        assert b"Error" in inside.stderr.head


@pytest.mark.skipif(this_kernel().machine != "x86_64", reason="the numbers are of x86_64")
@pytest.mark.parametrize("attack", CONTROLS)
def test_the_same_reaches_the_machine_without_a_sandbox(hostile, attack: str) -> None:
    outside = hostile("other", SYSTEM[attack], mode="off")
    assert outside.exit_code == 0, outside.stderr.head


@pytest.mark.skipif(this_kernel().machine != "x86_64", reason="the numbers are of x86_64")
def test_a_sibling_that_an_approved_command_makes_ends_with_it(hostile) -> None:
    told = hostile("other", "print(call(56, 0x8000 | 17, 0, 0, 0, 0) or time.sleep(60))", mode="off")
    assert not Path(f"/proc/{int(told.stdout.head)}").exists()


SIGNALS = {
    "kill": "os.kill(PID, signal.SIGKILL)",
    "one thread": "call(234, PID, PID, 9)",
    "queued": "call(129, PID, 9, struct.pack('<iii', 9, 0, -1) + bytes(116))",
    "owner of a descriptor": (
        "r, w = os.pipe(); fcntl.fcntl(r, 10, 9); fcntl.fcntl(r, 8, PID)\n"
        "fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC); os.write(w, b'x')"
    ),
    "priority": "os.setpriority(os.PRIO_PROCESS, PID, 19); sys.exit(9)",
}


@needs_landlock
@pytest.mark.skipif(this_kernel().machine != "x86_64", reason="the numbers are of x86_64")
@pytest.mark.parametrize("attack", SIGNALS)
@pytest.mark.parametrize("line", ["ss -tlnp", "dig x", "az vm list"])
def test_no_other_process_can_be_signalled(hostile, bystander, line: str, attack: str) -> None:
    inside = hostile(line, SIGNALS[attack].replace("PID", str(bystander.pid)))
    time.sleep(0.05)
    assert (inside.exit_code, bystander.poll()) == (1, None)


@pytest.mark.skipif(this_kernel().machine != "x86_64", reason="the numbers are of x86_64")
@pytest.mark.parametrize("attack", [a for a in SIGNALS if a != "priority"])
def test_without_a_sandbox_the_same_signals_arrive(hostile, bystander, attack: str) -> None:
    hostile("other", SIGNALS[attack].replace("PID", str(bystander.pid)), mode="off")
    assert bystander.wait(5) == -signal.SIGKILL


def test_a_program_has_no_descriptor_but_its_own_three(hostile) -> None:
    """The launcher's socket, on which all commands are sent, was inherited once."""
    code = "print(sorted(int(n) for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}')))"
    for mode in ("auto", "off"):
        assert hostile("other", code, mode).stdout.head == b"[0, 1, 2]\n"


@needs_landlock
def test_what_was_inherited_is_a_pipe_to_the_shell_and_an_empty_input(hostile) -> None:
    code = "print([os.readlink(f'/proc/self/fd/{n}').split(':')[0] for n in range(3)]); os.write(0, b'x')"
    done = hostile("other", code)
    assert done.stdout.head == b"['/dev/null', 'pipe', 'pipe']\n"
    assert b"Bad file descriptor" in done.stderr.head


@needs_landlock
@pytest.mark.parametrize("line", PROFILES)
def test_memory_of_other_processes_cannot_be_written(hostile, bystander, line: str) -> None:
    for pid in ("self", str(bystander.pid)):
        assert hostile(line, f"open('/proc/{pid}/mem', 'r+b')").exit_code == 1


@needs_landlock
@pytest.mark.parametrize("line", PROFILES)
def test_terminals_are_neither_typed_into_nor_changed(hostile, line: str) -> None:
    """A terminal of the same user can be opened for reading where Landlock is not used."""
    controller, terminal = pty.openpty()
    try:
        before = os.ttyname(terminal)
        for change in (
            "fcntl.ioctl(fd, 0x5412, b'x')",
            "m = termios.tcgetattr(fd); m[3] &= ~termios.ECHO; termios.tcsetattr(fd, termios.TCSANOW, m)",
            "fcntl.ioctl(fd, 0x5423, struct.pack('i', 5))",
            "fcntl.ioctl(fd, termios.TIOCSWINSZ, bytes(8))",
        ):
            assert hostile(line, f"fd = os.open({before!r}, os.O_RDONLY)\n{change}").exit_code == 1, change
        control = f"fd = os.open({before!r}, os.O_RDWR)\nfcntl.ioctl(fd, termios.TIOCSWINSZ, bytes(8))"
        assert hostile("other", control, mode="off").exit_code == 0
    finally:
        os.close(controller)
        os.close(terminal)


NAMES_PROCESSES = ["ss -tlnp", "netstat -tlnp", "lsof -i"]


@needs_landlock
@pytest.mark.parametrize("line", NAMES_PROCESSES)
def test_who_may_read_every_file_can_tell_nobody(hostile, line: str) -> None:
    """These run without Landlock: what they read must not leave but as output, which is redacted."""
    for family in ("socket.AF_INET, socket.SOCK_STREAM", "socket.AF_INET6, socket.SOCK_DGRAM", "socket.AF_UNIX"):
        done = hostile(line, f"socket.socket({family})")
        assert b"Address family not supported" in done.stderr.head


WAYS_TO_OPEN = [
    "os.open(victim, os.O_RDWR)",
    "os.open(victim, os.O_WRONLY)",
    "os.open(victim, os.O_RDWR | os.O_APPEND)",
    "os.open(victim, os.O_RDWR | os.O_TRUNC)",
    "call(2, ctypes.c_char_p(victim.encode()), 2, 0)",
    "call(257, -100, ctypes.c_char_p(victim.encode()), 2 | 0o2000000, 0)",
    "call(257, -100, ctypes.c_char_p(victim.encode()), 2 | 1 << 32, 0)",
    "call(437, -100, ctypes.c_char_p(victim.encode()), struct.pack('QQQ', 2, 0, 0), 24)",
    "call(85, ctypes.c_char_p(victim.encode()), 0o600)",
]
WAYS_TO_FREE_THE_OUTPUT = {
    "nothing": "",
    "closed": "os.close(1)",
    "closed by an exec": "fcntl.fcntl(1, fcntl.F_SETFD, fcntl.FD_CLOEXEC)",
    "closed by an exec, asked otherwise": "fcntl.ioctl(1, 0x5451)",
    "closed in a range": "call(436, 1, 1, 0)",
}
FREED = """
if sys.argv[-1] != 'again':
    {free}
    os.execv(sys.executable, [sys.executable, '-IS', sys.argv[0], *sys.argv[1:], 'again'])
"""


@needs_landlock
@pytest.mark.skipif(this_kernel().machine != "x86_64", reason="the numbers are of x86_64")
@pytest.mark.parametrize("free", WAYS_TO_FREE_THE_OUTPUT)
@pytest.mark.parametrize("line", NAMES_PROCESSES)
def test_no_file_comes_to_stand_where_the_output_was(hostile, tmp_path: Path, line: str, free: str) -> None:
    """A file opened to read and write became descriptor 1, once an exec had closed the pipe there."""
    notes = tmp_path / "notes.txt"
    code = FREED.format(free=WAYS_TO_FREE_THE_OUTPUT[free] or "pass") + f"victim = {str(notes)!r}\n"
    for way in WAYS_TO_OPEN:
        code += (
            f"\ntry:\n    fd = {way}\n    os.write(fd, b'PWNED')\nexcept OSError as e: os.write(2, str(e).encode())\n"
        )
    code += "\ntry: os.write(1, b'PWNED')\nexcept OSError: pass\n"
    inside = hostile(line, code, "required")
    assert inside.stderr.head.count(b"[Errno") == len(WAYS_TO_OPEN), inside.stderr.head
    assert notes.read_text() == "notes\n"
    hostile("other", code, "off")
    assert "PWNED" in notes.read_text()


@needs_landlock
@pytest.mark.parametrize("line", [*PROFILES, "netstat -tlnp"])
def test_other_views_of_the_file_system_are_no_way_out(hostile, tmp_path: Path, line: str) -> None:
    """Root's read-only mounts are of one process; those of others can be reached through /proc."""
    notes = tmp_path / "notes.txt"
    code = (
        "for pid in [p for p in os.listdir('/proc') if p.isdigit()] + ['self']:\n"
        "    for path in ('root' + place + '/notes.txt', 'cwd' + place + '/notes.txt',"
        f" 'root/proc/{os.getpid()}/mem', 'root/proc/' + str(os.getppid()) + '/mem', 'mem'):\n"
        "        for flags in (os.O_RDWR, os.O_WRONLY, os.O_RDWR | os.O_CREAT, os.O_TRUNC):\n"
        "            if path == 'mem' and pid == 'self': continue\n"
        "            try: fd = os.open(f'/proc/{pid}/{path}', flags)\n"
        "            except OSError: continue\n"
        "            try: os.write(fd, b'x'); print('wrote', pid, path)\n"
        "            except OSError: os.path.exists(f'/proc/self/fd/{fd}') and print('opened', pid, path)\n"
    )
    done = hostile(line, code, "required" if this_kernel().landlock >= 6 else "auto")
    assert done.stdout.head == b"", done.stdout.head
    assert notes.read_text() == "notes\n"
    control = f"os.write(os.open('/proc/{os.getpid()}/root' + place + '/notes.txt', os.O_WRONLY), b'x')"
    assert hostile("other", control, "off").exit_code == 0
    assert notes.read_text() == "xotes\n"


@pytest.mark.skipif(sys.platform != "linux", reason="prctl(2) is of Linux")
def test_the_process_that_starts_programs_cannot_be_looked_into(hostile) -> None:
    """By who has no privilege; its memory holds the words and variables of all commands."""
    hostile("other", "pass", "off")
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    launchers = [c for c in children if b"launcher_program" in Path(f"/proc/{c}/cmdline").read_bytes()]
    assert launchers
    if ROOT:  # who is not dumpable has files in /proc that belong to root
        pytest.skip("root looks into every process")
    for launcher in launchers:
        with pytest.raises(PermissionError):
            Path(f"/proc/{launcher}/environ").read_bytes()


@needs_landlock
@pytest.mark.parametrize("line", NAMES_PROCESSES)
def test_who_names_processes_holds_no_lock_that_others_wait_for(hostile, tmp_path: Path, line: str) -> None:
    lock = f"fcntl.{{}}(os.open({str(tmp_path / 'notes.txt')!r}, os.O_RDONLY), fcntl.LOCK_SH)"
    for way in ("flock", "lockf"):
        assert hostile(line, lock.format(way)).exit_code == 1
        assert hostile("other", lock.format(way), mode="off").exit_code == 0


@needs_landlock
@pytest.mark.skipif(not ROOT or not this_kernel().mount_attributes, reason="takes root, and Linux 5.12")
@pytest.mark.parametrize("line", NAMES_PROCESSES)
def test_run_by_root_they_open_no_device_either(hostile, line: str) -> None:
    """To open a watchdog for reading is enough to restart a machine."""
    done = hostile(line, "print(open('/proc/self/mounts').read()); os.open('/dev/zero', os.O_RDONLY)")
    assert done.layers[:4] == ("no_new_privs", "capabilities", "read_only_mounts", "seccomp")
    assert b"Permission denied: '/dev/zero'" in done.stderr.head
    mounts = {row.split()[1]: set(row.split()[3].split(",")) for row in done.stdout.head.decode().splitlines() if row}
    assert {"ro", "nosuid"} <= mounts.pop("/dev/null")
    assert all({"ro", "nosuid", "nodev"} <= options for options in mounts.values())
    assert " rw," in Path("/proc/self/mounts").read_text()  # the view is the command's alone


@needs_landlock
def test_who_reads_tables_makes_no_connection(hostile) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"socket.create_connection(('127.0.0.1', {port}), 2)"
        assert b"Permission denied" in hostile("ip addr", connect).stderr.head
        assert hostile("ip addr", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)").exit_code == 0
        assert hostile("dig x", connect).exit_code == 0  # the control: one that may


@needs_landlock
def test_the_first_to_go_when_memory_runs_out_is_the_command(hostile) -> None:
    assert hostile("other", "print(open('/proc/self/oom_score_adj').read())").stdout.head == b"1000\n\n"


@needs_landlock
@pytest.mark.needs("ss", "lsof", "netstat")
def test_the_processes_behind_sockets_are_still_named() -> None:
    programs = Programs()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for line in (f"ss -tlnp sport = {port}", "netstat -tlnp", f"lsof -nP -iTCP:{port}"):
            words = line.split()
            done = run(
                words,
                programs=programs,
                environment=child_environment(programs, "local", {}),
                timeout_seconds=20,
                sandbox=Sandbox("auto", (), programs.search_path),
            )
            rows = [row for row in done.stdout.head.decode().splitlines() if str(port) in row]
            assert rows, line
            assert str(os.getpid()) in rows[0], line
