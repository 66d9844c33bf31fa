"""Pipelines: how their commands are judged together, what a filter may do, and what passes from one to the next."""

from __future__ import annotations

import base64
import codecs
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ghost.shell import FORBIDDEN, RISKY, SAFE, HitlDecision, SafeExecShell
from ghost.shell.judge.classification import decide
from ghost.shell.run import kernel, sandbox
from ghost.shell.run.kernel import Kernel, this_kernel
from tests.each_row import each

pytestmark = pytest.mark.skipif(this_kernel().landlock < 3, reason="the kernel has no Landlock of version 3")
SECRET = "b7Kf93mZq0LxT2vNw8RyEs5Uc1Hd6JpA"


def never(*question: Any) -> HitlDecision:
    pytest.fail(f"asked about {question[0]!r}")


def approve(*_: Any) -> HitlDecision:
    return HitlDecision("approve")


@pytest.fixture
def make(tmp_path: Path):
    def make(callback: Any = never, **options: Any) -> SafeExecShell:
        directories = [tmp_path / "bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
        return SafeExecShell(
            "s1", callback, tmp_path / "audit", **{"program_dirs": directories, "roots": [tmp_path], **options}
        )

    return make


@pytest.fixture
def program(tmp_path: Path):
    """Put a program in the place of one that a table allows."""

    def write(name: str, body: str) -> None:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    return write


def ask(shell: SafeExecShell, command: str, **more: Any) -> dict[str, Any]:
    return shell.execute({"command": command, "reasoning": "to see", **more})


def record(shell: SafeExecShell) -> dict[str, Any]:
    return json.loads(shell.audit_path.read_text().splitlines()[-1])


@each(
    "command, verdict, rule",
    [
        ("ss -s | head -2", SAFE, "ss: allowed"),
        ("dig a.example | awk 'BEGIN{system(\"id\")}' | sort -o /x | tee", RISKY, "pattern: write"),
        ("ss -s 2>/dev/null | grep -c x 2>&1", SAFE, "ss: allowed"),
        ("az vm list | jq -r '.[].name'", SAFE, "az: read"),
        ("az vm delete -n x | jq .", RISKY, "az: vm delete"),
        ("ss -s | egrep -v x", SAFE, "ss: allowed"),
        ("ss -s | nc 10.0.0.4 80", RISKY, "nc: requires -z"),
        ("ss -s | dig a.example", RISKY, "pipe: not a filter"),
        ("ss -s | xargs ping -c 1", RISKY, "pattern: wrapper"),
        ("ss -s | sh", RISKY, "pattern: shell"),
        ("ss -s | ./grep x", RISKY, "not in the allowlist"),
        ("ss -s | X=1 grep x", RISKY, "pattern: environment"),
        ("ss -s | LC_ALL=C sort", SAFE, "ss: allowed"),
        ("grep x | ss -s", RISKY, "grep: operand"),
        ("ss -s | rm -rf /", FORBIDDEN, "forbidden: file system"),
        ("ss -s | sort | cat /etc/shadow", FORBIDDEN, "forbidden: credentials"),
        ('ss -s | grep "`id`"', RISKY, "pattern: substitution"),
        ("echo | openssl s_client -connect a.example:443", SAFE, "pipe: filter"),
        ("ss -s | openssl s_client -connect a.example:443", RISKY, "pipe: not a filter"),
        ("echo | sort | openssl s_client -connect a.example:443", RISKY, "pipe: not a filter"),
        ("echo | openssl s_client -connect a:443 2>/dev/null | openssl x509 -noout -dates", SAFE, "pipe: filter"),
        ("echo x | base64", RISKY, "not in the allowlist"),
        ("echo -n | sort", SAFE, "pipe: filter"),
    ],
)
def test_a_line_gets_the_worst_verdict_of_its_commands(command: str, verdict: str, rule: str) -> None:
    decision = decide(command)

    assert (decision.classification, decision.rule) == (verdict, rule)


def test_one_line_is_one_record_and_shows_what_the_last_command_prints(make: Any, program: Any) -> None:
    program("ss", "echo 1; echo 2; echo problem >&2; exit 3")
    shell = make()
    answer = ask(shell, "ss -s | tr 12 ab | grep -v a")

    assert (answer["status"], answer["output"], answer["stderr"], answer["exit_code"]) == (
        "completed", "b\n", "problem\n", 0,
    )  # fmt: skip
    written = record(shell)
    assert [one["argv"] for one in written["stages"]] == [["ss", "-s"], ["tr", "12", "ab"], ["grep", "-v", "a"]]
    assert [one["exit_code"] for one in written["stages"]] == [3, 0, 0]
    assert all({*answer["sandbox"]} <= {*one["sandbox"]} for one in written["stages"])
    assert "landlock" in answer["sandbox"]
    assert len(shell.audit_path.read_text().splitlines()) == 1
    assert [one["argv"] for one in (ask(shell, "ss -s"), record(shell))[1]["stages"]] == [["ss", "-s"]]


@each(
    "sinks, output, errors",
    [
        ("", "out\n", "err\n"),
        ("2>/dev/null", "out\n", ""),
        (">/dev/null", "", "err\n"),
        ("2>&1 >/dev/null", "err\n", ""),
        ("&> /dev/null", "", ""),
        ("2>&1 | sort", "err\nout\n", ""),
        ("|& sort -r", "out\nerr\n", ""),
        ("</dev/null", "out\n", "err\n"),
    ],
)
def test_streams_go_where_the_line_says(tmp_path: Path, sinks: str, output: str, errors: str) -> None:
    path = tmp_path / "ss"
    path.write_text("#!/bin/sh\necho out; echo err >&2; cat\n")
    path.chmod(0o755)
    shell = SafeExecShell("s1", never, tmp_path / "audit", program_dirs=[tmp_path, "/usr/bin"], roots=[tmp_path])
    answer = ask(shell, f"ss -s {sinks}")

    assert (answer["output"], answer["stderr"]) == (output, errors)


def test_a_secret_is_taken_out_before_a_filter_can_take_its_name_off(make: Any, program: Any) -> None:
    program("ss", f"echo 'password: {SECRET}'; echo plain: text")
    shown = {
        "cut -d' ' -f2": SECRET,
        "awk '{print $2}'": SECRET,
        "grep -o 'b7.*'": SECRET,
        "rev": SECRET[::-1],
        "base64 -w0": base64.b64encode(f"password: {SECRET}".encode()).decode()[:40],
        "tr a-zA-Z n-za-mN-ZA-M": codecs.encode(SECRET, "rot13"),
    }
    for line, spelling in shown.items():
        answer = ask(make(), f"ss -s | {line}")
        assert (answer["exit_code"] in (0, 1), spelling in answer["output"]) == (True, False), line
    assert ask(make(), "ss -s | rev")["output"] == "]DETCADER[ :drowssap\ntxet :nialp\n"


def test_of_an_output_that_was_cut_no_value_passes_whose_name_may_be_gone(make: Any, program: Any) -> None:
    program("ss", f"""printf '[{{"value": "{SECRET}", "type": "x"' ; sleep 20""")
    answer = ask(make(), "timeout 0.5 ss -s | cut -d '\"' -f 4")
    assert (answer["status"], SECRET in answer["output"]) == ("completed", False)


def test_what_cannot_be_redacted_whole_goes_to_no_filter(make: Any, program: Any) -> None:
    program("ss", "head -c 17000000 /dev/zero | tr '\\0' 'x'")
    answer = ask(make(), "ss -s | wc -c")
    assert (answer["status"], answer["error"], answer["output"]) == ("error", "pipe", "")
    program("ss", "printf 'a\\0b'")
    assert ask(make(), "ss -s | wc -c")["error"] == "pipe"
    assert "run it on its own" in ask(make(), "ss -s | wc -c")["message"]


def test_the_time_is_that_of_the_whole_line(make: Any, program: Any) -> None:
    program("ss", "echo begun; sleep 20")
    answer = ask(make(), "ss -s | sort", timeout_seconds=1)
    assert (answer["status"], answer["error"]) == ("error", "timeout")
    assert answer["duration_seconds"] < 10


def test_an_approved_line_runs_its_filters_confined_and_its_risky_command_not(make: Any, tmp_path: Path) -> None:
    shell = make(approve)
    answer = ask(shell, f"ss -s | tee {tmp_path}/made | sort -o {tmp_path}/not-made")
    assert (answer["action"], answer["exit_code"]) == ("user_approved", 2)
    assert (tmp_path / "made").exists()
    assert not (tmp_path / "not-made").exists()
    assert [bool(one["sandbox"]) for one in record(shell)["stages"]] == [True, False, True]


@each(
    "line",
    [
        """awk 'BEGIN{system("touch PLACE")}'""",
        """awk '{print > "PLACE"}'""",
        """awk 'BEGIN{"touch PLACE" | getline}'""",
        """sed 'w PLACE'""",
        """sed '1e touch PLACE'""",
        """sed -i s/a/b/ SEEN""",
        """sort -o PLACE""",
        """sort --compress-program=/bin/touch -S 1k""",
        """uniq - PLACE""",
        """jq -n '$__loc__' PLACE""",
        """less -o PLACE""",
        """cat SEEN""",
        """grep -r . /etc /proc /home /root""",
        """head -c 100 SEEN""",
        """jq -n input SEEN""",
        """awk '{getline line < "SEEN"; print line}'""",
        """awk 'BEGIN{getline line < "/inet/tcp/0/127.0.0.1/1"; print line}'""",
        """tail --pid=1 -n 1 SEEN""",
        """wc --files0-from=SEEN""",
        """join - SEEN""",
    ],
)
def test_a_filter_changes_and_reads_nothing_whatever_its_words_say(tmp_path: Path, line: str) -> None:
    place, seen = tmp_path / "place", tmp_path / "seen"
    seen.write_text("what nobody may read\n")
    before = seen.stat()
    shell = SafeExecShell("s1", never, tmp_path / "audit", roots=[tmp_path])
    answer = ask(shell, "uname | " + line.replace("PLACE", str(place)).replace("SEEN", str(seen)))

    assert answer["action"] == "auto_approved"
    assert not place.exists()
    assert "nobody may read" not in answer["output"] + answer["stderr"]
    assert (seen.read_text(), seen.stat().st_mtime_ns) == ("what nobody may read\n", before.st_mtime_ns)


HOSTILE = {
    "reads": "print(open('/etc/passwd').read())",
    "lists": "import os; print(os.listdir('/etc'))",
    "reads processes": "print(open('/proc/1/cmdline').read())",
    "writes": "open(PLACE, 'w')",
    "forks": "import os; os.fork() or os._exit(0)",
    "starts": "import os; os.execv('/usr/bin/true', ['true'])",
    "connects": "import socket; socket.create_connection(('127.0.0.1', 1))",
    "sends": "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
    "asks the bus": "import socket; socket.socket(socket.AF_UNIX)",
    "asks the bus by a pair": "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "asks netlink": "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
    "kills": "import os; os.kill(os.getppid(), 9)",
    "links": "import os; os.symlink('/etc/passwd', PLACE)",
    "changes modes": "import os; os.chmod(SEEN, 0o777)",
}


@pytest.mark.parametrize("attack", HOSTILE)
def test_a_hostile_program_in_the_place_of_a_filter_is_held(tmp_path: Path, attack: str) -> None:
    seen = tmp_path / "seen"
    seen.write_text("x")
    code = HOSTILE[attack].replace("PLACE", repr(str(tmp_path / "made"))).replace("SEEN", repr(str(seen)))
    words = [sys.executable, "-IS", "-c", f"try:\n    {code}\nexcept OSError as e:\n    print('held', e.errno)"]
    place = sandbox.Sandbox("required", (str(tmp_path),), "/usr/bin")
    answer = sandbox_run(words, place)

    assert answer.strip().startswith("held") or (answer.strip() == "" and attack == "forks"), answer
    assert not (tmp_path / "made").exists()


def sandbox_run(words: list[str], place: sandbox.Sandbox) -> str:
    from ghost.shell.run.execution import Programs, run

    programs = Programs((Path(words[0]).parent,))
    done = run(
        [Path(words[0]).name, *words[1:]], programs=programs, environment={}, timeout_seconds=20, sandbox=place,
        profile="filter", given=b"text\n",
    )  # fmt: skip
    return (done.stdout.kept + done.stderr.kept).decode()


def test_where_the_profile_cannot_be_applied_a_filter_asks(
    make: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert ask(make(None, sandbox="off"), "ss -s | sort")["status"] == "denied"
    assert ask(make(None, sandbox="off"), "ss -s")["status"] == "completed"
    for old in (Kernel(this_kernel().machine, 1, True, 0), Kernel("arm64", 0, False, 0)):
        for module in (kernel, sandbox):
            monkeypatch.setattr(module, "this_kernel", lambda old=old: old)
        answer = ask(SafeExecShell("s2", None, tmp_path / "audit"), "ss -s | sort")
        assert (answer["status"], answer["classification"]) == ("denied", RISKY)


def test_in_private_mode_a_pipe_asks(make: Any) -> None:
    answer = ask(make(None, anonymization_enabled=True), "ss -s | sort")
    assert (answer["status"], answer["classification"]) == ("denied", RISKY)
    assert "no placeholder" in answer["message"]


def test_timeout_before_a_command_bounds_it_alone(make: Any, program: Any) -> None:
    program("ss", "echo begun; sleep 20")
    answer = ask(make(), "timeout 0.5 ss -s | wc -l")
    assert (answer["status"], answer["output"].strip(), answer["duration_seconds"] < 10) == ("completed", "1", True)
    answer = ask(make(), "timeout 0.5s ss -s")
    assert (answer["exit_code"], answer["output"]) == (124, "begun\n")
    for line in (
        "timeout 5 sh -c id",
        "timeout -s KILL 5 ss",
        "timeout 5",
        "timeout x ss -s",
        "timeout 5 timeout 5 ss",
    ):
        assert decide(line).classification == RISKY, line
    assert decide("timeout 5 rm -rf /").classification == FORBIDDEN
