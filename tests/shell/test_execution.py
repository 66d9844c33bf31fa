"""Programs run as they were judged: no shell, nothing inherited but an allowlist, bounded in time and in memory."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ghost.shell.run.execution import STDOUT_LIMIT, Programs, Run, child_environment, run
from ghost.shell.run.program_directories import changed_by_others, further_directories


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs((tmp_path, *Programs().directories))


@pytest.fixture
def script(tmp_path: Path) -> Any:
    def write(name: str, body: str, interpreter: str = "/bin/sh") -> str:
        path = tmp_path / name
        path.write_text(f"#!{interpreter}\n{body}\n")
        path.chmod(0o755)
        return name

    return write


def go(programs: Programs, *arguments: str, timeout_seconds: float = 20, **options: Any) -> Run:
    environment = child_environment(programs, "local", {})
    return run(arguments, programs=programs, environment=environment, timeout_seconds=timeout_seconds, **options)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def gone(pid: int) -> bool:
    for _ in range(100):
        if not alive(pid):
            return True
        time.sleep(0.02)
    return False


def launchers() -> list[int]:
    """The processes that this one starts programs with."""
    mine = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in mine if b"launcher_program.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def children_of_launcher() -> list[str]:
    return [
        pid
        for launcher in launchers()
        for pid in Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    ]


def test_output_errors_and_exit_status_are_kept_apart(programs: Programs, script: Any) -> None:
    result = go(programs, script("both", "echo out; echo err >&2; exit 3"))
    assert (result.stdout.head, result.stderr.head, result.exit_code, result.timed_out) == (
        b"out\n",
        b"err\n",
        3,
        False,
    )


def test_arguments_reach_the_program_as_they_are(programs: Programs, script: Any) -> None:
    result = go(programs, script("show", 'for a in "$@"; do echo "[$a]"; done'), "a b", "$HOME", "*", ";", "x\ny", "")
    assert result.stdout.head == b"[a b]\n[$HOME]\n[*]\n[;]\n[x\ny]\n[]\n"


def test_a_missing_program_ends_with_127(programs: Programs) -> None:
    result = go(programs, "no-such-program", "-x")
    assert (result.exit_code, result.stderr.head) == (127, b"command not found: no-such-program")


def test_a_program_that_cannot_start_ends_with_126(programs: Programs, script: Any, tmp_path: Path) -> None:
    result = go(programs, script("broken", "", "/no/such/interpreter"))
    assert result.exit_code == 127
    (tmp_path / "garbage").write_bytes(b"\x7fELF garbage")
    (tmp_path / "garbage").chmod(0o755)
    assert go(programs, "garbage").exit_code == 126


@pytest.mark.parametrize("name", ["./tool", "../tool", "sub/tool", "", ".", "..", "tool\0x"])
def test_only_a_bare_name_finds_a_program(tmp_path: Path, script: Any, name: str) -> None:
    script("tool", "echo ran")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "tool").symlink_to(tmp_path / "tool")
    assert Programs((tmp_path,)).find(name) is None


def test_a_path_finds_a_program_only_where_it_lies_in_the_directories(tmp_path: Path, script: Any) -> None:
    script("tool", "echo ran")
    assert Programs((tmp_path,)).find(str(tmp_path / "tool")) == tmp_path / "tool"
    assert Programs((tmp_path,)).find("/bin/sh") is None
    assert Programs((tmp_path,)).find(f"{tmp_path}/../{tmp_path.name}/tool") is None


def test_a_file_that_may_not_run_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("x")
    (tmp_path / "folder").mkdir()
    assert Programs((tmp_path,)).find("notes") is None
    assert Programs((tmp_path,)).find("folder") is None


def test_the_configured_az_is_the_one_that_runs(tmp_path: Path, script: Any) -> None:
    script("my-az", "echo az")
    assert Programs(az=tmp_path / "my-az").find("az") == tmp_path / "my-az"


def test_standard_input_is_empty(programs: Programs) -> None:
    assert go(programs, "cat").stdout.total == 0


def test_a_timeout_ends_the_whole_group_and_keeps_what_was_printed(programs: Programs, script: Any) -> None:
    result = go(programs, script("slow", "sleep 60 & echo $!; sleep 60"), timeout_seconds=0.5)
    assert result.timed_out
    assert result.exit_code is None
    assert 0.4 < result.duration_seconds < 5
    assert gone(int(result.stdout.head))


def test_a_child_that_holds_the_pipe_open_does_not_hold_the_command(programs: Programs, script: Any) -> None:
    result = go(programs, script("parent", "sleep 60 & echo $!"))
    assert (result.exit_code, result.timed_out) == (0, False)
    assert result.duration_seconds < 5
    assert gone(int(result.stdout.head))


@pytest.mark.parametrize("end", ["pass", "time.sleep(60)", "os.kill(os.getppid(), 9); time.sleep(60)", "os.kill(0, 9)"])
def test_a_daemon_ends_with_the_approved_command_that_made_it(programs: Programs, script: Any, end: str) -> None:
    """It ends, runs into its timeout, kills what supervises it, or kills its own group. A daemon of another stays."""
    body = (
        "import os, time\nif not (first := os.fork()):\n  os.setsid()\n  if os.fork(): os._exit(0)\n  os.setsid()\n"
        "  print(os.getpid(), flush=True)\n  time.sleep(60)\nos.waitpid(first, 0); time.sleep(0.2)\n"
    )
    others: list[Run] = []
    alive_yet = f"{body}time.sleep(1.5); os.kill(int(open(__file__ + '.pid').read()), 0)".replace(
        "  print(os.getpid(), flush=True)", "  open(__file__ + '.pid', 'w').write(str(os.getpid()))"
    )
    name = script("other", alive_yet, sys.executable)
    with_another = threading.Thread(target=lambda: others.append(go(programs, name)))
    with_another.start()
    result = go(programs, script("daemon", f"{body}{end}", sys.executable), timeout_seconds=1)
    assert result.timed_out == (end == "time.sleep(60)")
    assert result.duration_seconds < 3
    assert gone(int(result.stdout.head))
    with_another.join()
    assert others[0].exit_code == 0, others[0].stderr.head


def test_a_program_that_ignores_signals_is_ended_at_the_timeout_like_any_other(programs: Programs, script: Any) -> None:
    name = script("deaf", "trap '' TERM INT HUP QUIT PIPE; echo $$; while :; do echo x; done")
    result = go(programs, name, timeout_seconds=0.3)
    assert result.timed_out
    assert result.duration_seconds < 2
    assert gone(int(result.stdout.head.split()[0]))


def test_what_left_its_group_cannot_write_to_the_shell_after_the_timeout(programs: Programs, script: Any) -> None:
    """A command that a person approved may leave its group; a SAFE one may not (see the sandbox)."""
    body = (
        "import os, signal, time\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
        "if os.fork() == 0:\n  os.setsid()\n  os.write(1, b'%d\\n' % os.getpid())\n"
        "  while True: os.write(1, bytes(65536))\ntime.sleep(60)"
    )
    result = go(programs, script("daemon", body, sys.executable), timeout_seconds=0.5)
    assert result.timed_out
    assert result.duration_seconds < 2.5
    assert gone(int(result.stdout.head.split(b"\n")[0]))


def test_a_program_that_closes_its_output_is_still_waited_for(programs: Programs, script: Any) -> None:
    result = go(programs, script("quiet", "exec >&- 2>&-; sleep 0.3; exit 4"))
    assert result.exit_code == 4
    assert result.duration_seconds >= 0.3


def test_a_program_ended_by_a_signal_says_so(programs: Programs, script: Any) -> None:
    assert go(programs, script("crash", "kill -SEGV $$")).exit_code == -11


def test_a_hundred_megabytes_of_output_stay_in_bounded_memory(programs: Programs, script: Any) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = go(programs, script("flood", "echo first; head -c 100000000 /dev/zero; echo; echo last"))
    assert result.stdout.total == 100_000_012
    assert result.stdout.head.startswith(b"first\n")
    assert result.stdout.tail.endswith(b"\nlast\n")
    assert len(result.stdout.head) + len(result.stdout.tail) == STDOUT_LIMIT
    assert not result.stdout.complete
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 120 * 1024


def test_both_pipes_are_drained_at_once(programs: Programs, script: Any) -> None:
    body = "i=0; while [ $i -lt 40 ]; do head -c 100000 /dev/zero >&2; head -c 100000 /dev/zero; i=$((i+1)); done"
    result = go(programs, script("both", body))
    assert (result.stdout.total, result.stderr.total) == (4_000_000, 4_000_000)
    assert len(result.stderr.head) + len(result.stderr.tail) == 256 * 1024


def test_children_see_an_allowlist_of_variables_only(programs: Programs) -> None:
    inherited = {
        "HOME": "/home/x", "LC_TIME": "C", "GEMINI_API_KEY": "k", "AWS_SESSION_TOKEN": "t", "LD_PRELOAD": "/x.so",
        "PYTHONPATH": "/x", "PATH": "/evil", "HTTPS_PROXY": "http://u:p@proxy", "AZURE_CONFIG_DIR": "/a",
    }  # fmt: skip
    local = child_environment(programs, "local", {"GHOST_LAB_DIR": "/lab", "OPENAI_API_KEY": "k"}, inherited)
    assert set(local) & {*inherited, "GHOST_LAB_DIR", "OPENAI_API_KEY"} == {
        *("HOME", "LC_TIME", "PATH", "AZURE_CONFIG_DIR", "GHOST_LAB_DIR"),
    }
    assert local["PATH"] == os.pathsep.join(map(str, programs.directories))
    assert (local["TERM"], local["NO_COLOR"], local["AZURE_EXTENSION_USE_DYNAMIC_INSTALL"]) == ("dumb", "1", "no")
    assert child_environment(programs, "azure", {}, inherited)["HTTPS_PROXY"] == "http://u:p@proxy"


def test_what_az_needs_in_cloud_shell_other_clouds_and_behind_proxies_reaches_az_alone(programs: Programs) -> None:
    of_proxies = ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "ALL_PROXY", "all_proxy", "REQUESTS_CA_BUNDLE")
    of_logins = ("IDENTITY_ENDPOINT", "IDENTITY_HEADER", "IDENTITY_SERVER_THUMBPRINT", "IMDS_ENDPOINT", "MSI_SECRET")
    of_clouds = ("ACC_CLOUD", "AZUREPS_HOST_ENVIRONMENT", "AZURE_CLOUD_NAME", "MSI_ENDPOINT")
    inherited = dict.fromkeys((*of_proxies, *of_logins, *of_clouds), "x")
    assert inherited.items() <= child_environment(programs, "azure", {}, inherited).items()
    assert not inherited.keys() & child_environment(programs, "local", {}, inherited).keys()


def test_the_environment_is_that_of_the_child(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "model-key-value")
    assert b"model-key-value" not in go(programs, "env").stdout.head


def test_the_capture_engine_is_this_packages_whatever_the_directories_hold(script: Any, tmp_path: Path) -> None:
    script("pcap-forensics", "echo impostor")
    calls: list[list[str]] = []

    def runner(words: list[str], **_: Any) -> SimpleNamespace:
        calls.append(words)
        return SimpleNamespace(stdout=b"", stderr=b"", returncode=0)

    go(Programs((tmp_path,)), "pcap-forensics", "a.cap", runner=runner)
    assert calls == [[sys.executable, "-I", "-m", "ghost.pcap", "a.cap"]]


def test_a_runner_is_called_as_subprocess_run_is(programs: Programs) -> None:
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def runner(*arguments: Any, **options: Any) -> SimpleNamespace:
        calls.append((arguments, options))
        return SimpleNamespace(stdout="text", stderr=None, returncode=5)

    result = go(programs, "az", "vm", "list", runner=runner, timeout_seconds=7)
    ((arguments, options),) = calls
    assert arguments == (["az", "vm", "list"],)
    assert options["shell"] is False
    assert options["timeout"] == 7
    assert "preexec_fn" not in options
    assert (result.stdout.head, result.stderr.head, result.exit_code) == (b"text", b"", 5)


def test_the_real_subprocess_run_serves_as_a_runner(programs: Programs, script: Any) -> None:
    result = go(programs, script("both", "echo out; exit 3"), runner=subprocess.run)
    assert (result.stdout.head, result.exit_code) == (b"out\n", 3)
    assert go(programs, "sleep", "5", runner=subprocess.run, timeout_seconds=0.2).timed_out
    assert go(programs, "no-such-program", runner=subprocess.run).exit_code == 127


def test_an_interruption_ends_the_group_and_goes_on(programs: Programs, script: Any, tmp_path: Path) -> None:
    name = script("long", f"echo $$ > {tmp_path}/pid; sleep 60")

    def interrupt() -> None:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        go(programs, name)
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_process_that_waited_for_the_next_command_may_be_gone(programs: Programs, script: Any) -> None:
    name = script("quick", "echo x")
    for _ in range(3):
        assert go(programs, name).stdout.head == b"x\n"
        for _ in range(100):  # it is made once nobody waits for it
            if waiting := children_of_launcher():
                break
            time.sleep(0.01)
        (spare,) = waiting
        os.kill(int(spare), signal.SIGKILL)
        assert gone(int(spare))
    assert go(programs, name).stdout.head == b"x\n"


def test_a_command_ends_at_once_while_another_one_runs(programs: Programs, script: Any, tmp_path: Path) -> None:
    """No process that waits may hold the socket by which the end of a command is seen."""
    name = script("quick", "echo x")
    waits = script("long", f"for i in $(seq 300); do [ -e {tmp_path}/go-on ] && exit; sleep 0.05; done")
    long = threading.Thread(target=go, args=(programs, waits))
    long.start()
    for _ in range(4):
        go(programs, name)
    assert long.is_alive()
    (tmp_path / "go-on").touch()
    long.join()


def test_no_process_and_no_descriptor_is_left_behind(programs: Programs, script: Any) -> None:
    name = script("quick", "echo x")
    go(programs, name)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        go(programs, name)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert len(children_of_launcher()) <= 1  # the one that waits for the next command


# Program directories


@pytest.fixture
def own() -> Iterator[Path]:
    """A directory to which nobody else can change the way: in the home directory, since /tmp is everybody's."""
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix=".ghost-test-") as directory:
        yield Path(directory)


def test_a_further_directory_counts_after_the_others_and_only_where_nobody_else_can_write(
    own: Path,
) -> None:
    (own / "tool").symlink_to(own / "real-tool")
    for name in ("real-tool", "ls", "open-to-others"):
        (own / name).write_text("#!/bin/sh\necho own\n")
        (own / name).chmod(0o755)
    programs = Programs(further=(own / "missing", own))
    assert programs.find("tool") == own / "tool"
    assert programs.find("ls") in (Path("/usr/bin/ls"), Path("/bin/ls"))
    assert str(own) in programs.search_path
    assert go(programs, "tool").stdout.head == b"own\n"

    (own / "real-tool").chmod(0o775)
    assert programs.find("tool") is None
    assert programs.find(str(own / "tool")) is None
    told = go(programs, "tool")
    assert told.exit_code == 127
    assert str(own / "real-tool").encode() in told.stderr.head
    assert b"passed over" in told.stderr.head


@pytest.mark.parametrize("fault", ["directory", "above", "link", "sticky"])
def test_a_directory_that_others_can_write_is_passed_over(own: Path, fault: str) -> None:
    (own / "sub").mkdir()
    (own / "sub" / "tool").write_text("#!/bin/sh\n")
    (own / "sub" / "tool").chmod(0o755)
    asked = own / "sub"
    assert changed_by_others(asked / "tool") is None
    if fault == "link":
        (own / "shared").mkdir(mode=0o700)
        (own / "shared" / "bin").symlink_to(own / "sub")
        (own / "shared").chmod(0o777)
        asked = own / "shared" / "bin"
    else:
        (own if fault == "above" else own / "sub").chmod(0o1777 if fault == "sticky" else 0o775)
    assert changed_by_others(asked / "tool") is not None
    assert Programs(further=(asked,)).find("tool") is None
    assert str(asked) not in Programs(further=(asked,)).search_path


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_program_of_another_user_is_passed_over(own: Path) -> None:
    (own / "tool").write_text("#!/bin/sh\n")
    (own / "tool").chmod(0o755)
    os.chown(own / "tool", 65534, 65534)
    assert Programs(further=(own,)).find("tool") is None


def test_further_directories_are_the_usual_ones_and_those_of_the_variable() -> None:
    found = further_directories({"GHOST_PROGRAM_DIRS": "/opt/tools/bin:relative:/usr/local/bin:"})
    assert [*map(str, found)] == ["/usr/local/bin", "/snap/bin", "/opt/homebrew/bin", "/opt/tools/bin"]


def test_a_program_named_by_a_path_is_the_one_that_is_found_or_none(own: Path) -> None:
    for name in ("tool", "ls"):
        (own / name).write_text("#!/bin/sh\n")
        (own / name).chmod(0o755)
    programs = Programs(further=(own,))
    assert programs.unqualified(f"{own}/tool -x 'a  b'") == "tool -x 'a  b'"
    for command in (f"{own}/ls -l", f"{own}/../{own.name}/tool", f"'{own}/tool'", "./tool", "tool x", ""):
        assert programs.unqualified(command) == command
    assert programs.unqualified("/bin/ls -l") == programs.unqualified("/usr/bin/ls -l") == "ls -l"
