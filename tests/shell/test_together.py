"""Commands that nobody is asked about run beside each other; ids, records and answers are in their order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ghost.records import read_records, verify
from ghost.shell import HitlDecision, SafeExecShell
from ghost.shell.record.audit import AuditRecord

PINGS = [f"ping -c 2 -i {wait} 127.0.0.1" for wait in ("0.9", "0.8", "0.7", "0.6")]
"""Each takes as long as it waits."""
LONG = [f"ping -c 30 -i 0.{n} 127.0.0.1" for n in range(5, 9)]


def shell_in(place: Path, callback: Any = None, **options: Any) -> SafeExecShell:
    return SafeExecShell("s1", callback, place, program_dirs=["/usr/bin", "/bin", "/usr/sbin", "/sbin"], **options)


def requests(*commands: str) -> list[dict[str, Any]]:
    return [{"command": command, "reasoning": "to see"} for command in commands]


def commands_on_record(place: Path) -> list[tuple[str, str, str | None]]:
    return [(r["audit_id"], r["command"], r["error"]) for r in read_records(place / "shell_audit_s1.jsonl")]


def test_reads_take_as_long_as_the_longest_and_stand_in_their_order(tmp_path: Path) -> None:
    asked: list[str] = []

    def person(command: str, *_: Any) -> HitlDecision:
        asked.append(command)
        assert len(commands_on_record(tmp_path)) == 4, "what came before it has ended"
        return HitlDecision("approve")

    shell = shell_in(tmp_path, person)
    responses = shell.execute_all(requests(*PINGS, f"touch {tmp_path}/made", "", "rm -rf /", "ss -tln", "ss -uln"))
    commands = [*PINGS, f"touch {tmp_path}/made", "rm -rf /", "ss -tln", "ss -uln"]
    numbers = [f"s1_{n:03d}" for n in (1, 2, 3, 4, 5, 7, 8, 9)]  # the sixth was empty: no record
    assert [(number, command) for number, command, _ in commands_on_record(tmp_path)] == list(
        zip(numbers, commands, strict=True)
    )
    assert [r["audit_id"] for r in responses] == [*numbers[:5], "s1_006", *numbers[5:]]
    assert asked == [f"touch {tmp_path}/made"]
    assert verify(shell.audit_path, shell.audit_head).ok
    assert shell.execute_all([]) == []


def test_ids_are_given_before_any_starts_and_what_is_asked_about_runs_alone(tmp_path: Path) -> None:
    """`ss` and `touch` are programs that print when they start and end."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("ss", "touch"):
        (programs / name).write_text("#!/bin/sh\ndate +%s.%N\nsleep 0.3\ndate +%s.%N\n")
        (programs / name).chmod(0o755)
    asked: list[tuple[str, float]] = []

    def person(command: str, *_: Any) -> HitlDecision:
        asked.append((command, time.time()))
        return HitlDecision("approve")

    shell = SafeExecShell("s1", person, tmp_path / "audit", program_dirs=[programs, "/usr/bin", "/bin"])
    begun: list[tuple[str, float]] = []
    begin = shell._audit.begin

    def watched(record: AuditRecord) -> None:
        begin(record)
        begun.append((record.audit_id, time.time()))

    shell._audit.begin = watched  # type: ignore[method-assign]
    commands = ["ss -tln", "ss -uln", "ss -tan", "touch a", "touch b", "ss -uan", "ss -xln"]
    ran = [[float(n) for n in r["output"].split()] for r in shell.execute_all(requests(*commands))]
    assert [audit_id for audit_id, _ in begun] == [f"s1_{n:03d}" for n in range(1, 8)]
    assert asked[0][0] == "touch a"
    assert asked[1][0] == "touch b"
    for group in ((0, 1, 2), (3,), (4,), (5, 6)):
        first, last = group[0], group[-1]
        assert begun[last][1] < min(ran[n][0] for n in group), "all intents of a group are written before it starts"
        assert all(ran[n][1] < begun[first][1] for n in range(first)), "nothing of what came before still runs"
    assert ran[2][1] < asked[0][1] < ran[3][0]
    assert ran[3][1] < asked[1][1] < ran[4][0]
    assert max(ran[n][0] for n in (0, 1, 2)) < min(ran[n][1] for n in (0, 1, 2)), "the reads ran beside each other"


def test_four_run_at_once_and_no_more(tmp_path: Path) -> None:
    shell = shell_in(tmp_path)
    started = time.monotonic()
    responses = shell.execute_all(requests(*PINGS, "ping -c 2 -i 0.5 127.0.0.1"))
    took = time.monotonic() - started
    durations = [r["duration_seconds"] for r in responses]
    assert [r["exit_code"] for r in responses] == [0] * 5
    assert took < sum(durations) - 1.0, "they ran beside each other"
    assert took >= max(durations[:4]) + durations[4], "the fifth waited"


def test_an_interruption_ends_all_and_each_is_on_record(tmp_path: Path) -> None:
    shell = shell_in(tmp_path)
    threading.Timer(0.8, os.kill, (os.getpid(), signal.SIGINT)).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        shell.execute_all(requests(*LONG))
    assert time.monotonic() - started < 6
    assert commands_on_record(tmp_path) == [(f"s1_{n:03d}", c, "interrupted") for n, c in enumerate(LONG, 1)]
    assert list(tmp_path.glob("*.intent.json")) == []
    assert shell.execute(requests("ss -tln")[0])["audit_id"] == "s1_005"


def test_a_descriptor_ends_a_command_of_another_thread_until_it_is_read(tmp_path: Path) -> None:
    cancelled, cancel = os.pipe()
    shell = shell_in(tmp_path, cancelled=cancelled)
    timer = threading.Timer(0.5, os.write, (cancel, b"x"))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        shell.execute_all(requests(*LONG))
    timer.join()
    assert commands_on_record(tmp_path) == [("s1_001", LONG[0], "interrupted")]
    os.read(cancelled, 1)
    assert shell.execute(requests("ss -tln")[0])["exit_code"] == 0


def test_a_kill_leaves_an_intent_of_each(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from tests.shell.test_together import LONG, requests, shell_in\n"
        f"shell_in(Path({str(tmp_path)!r})).execute_all(requests(*LONG))"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    while len(list(tmp_path.glob("*.intent.json"))) < len(LONG):
        time.sleep(0.01)
    process.kill()
    process.wait()
    shell = shell_in(tmp_path)
    assert sorted(commands_on_record(tmp_path)) == [(f"s1_{n:03d}", c, "interrupted") for n, c in enumerate(LONG, 1)]
    assert verify(shell.audit_path, shell.audit_head).ok
