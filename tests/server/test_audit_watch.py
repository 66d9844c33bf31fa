"""New audit records as stimuli: each once, over restarts, half lines, rotation and what is no record."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.server import audit_watch
from ghost.server.audit_watch import AuditStimulus, AuditWatch, of_capture, of_command, program_of
from ghost.shell import redact
from tests.exhaustive import examples
from tests.server.conftest import append, command_record

SID = "ghost_20250115_143200"


class Watched:
    """A watch and what it handed over."""

    def __init__(self, root: Path) -> None:
        self.audit = root / "audit"
        self.state = root / "data" / "audit_watch.json"
        self.shell = self.audit / f"shell_audit_{SID}.jsonl"
        self.tasks = self.audit / f"orchestrator_tasks_{SID}.jsonl"
        self.restart()

    def restart(self) -> None:
        self.watch = AuditWatch(self.audit, self.state, lambda text: redact(text)[0])

    def look(self) -> list[str]:
        taken: list[AuditStimulus] = []
        self.watch.look(taken.extend)
        return [str(seen.about.get("audit_id") or seen.about.get("task_id")) for seen in taken]


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def numbers(*given: int) -> list[str]:
    return [f"{SID}_{number:03d}" for number in given]


def test_a_record_is_a_short_sentence_without_arguments_and_output() -> None:
    record = command_record(SID, 1, command="az network nsg rule list -g secret-group --query x", output="TOP SECRET")
    seen = of_command(record, SID)
    assert seen.text == (
        f"Investigation {SID} ran a command that ended with exit status 0: az network nsg rule list (safe), "
        f"record {SID}_001."
    )
    assert seen.about == {"kind": "command", "session_id": SID, "audit_id": f"{SID}_001"}
    refused = of_command(command_record(SID, 2, status="denied", classification="RISKY", exit_code=None), SID)
    assert "had a command refused: az network nsg rule list (risky)" in refused.text
    failed = of_command(command_record(SID, 3, status="error", error="timeout", exit_code=None), SID)
    assert "failed with timeout" in failed.text
    capture = of_capture({"task_id": "cap_vm_1", "state": "TIMED_OUT", "outcome": "timed_out"}, SID)
    assert capture.text == f"Capture task cap_vm_1 of investigation {SID} is timed out, outcome timed_out."


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("az vm show --name x", "az vm show"),
        ("az network watcher packet-capture create -n x", "az network watcher packet-capture create"),
        ("az rest --url https://secret", "az rest"),
        ("az vm SECRET show", "az vm"),
        ("/usr/bin/ping -c 1 10.0.0.4", "ping"),
        ("cat /etc/passwd", "cat"),
        ("$(evil) x", "a program"),
        ("", "no program"),
    ],
)
def test_of_a_command_only_its_name_is_said(command: str, name: str) -> None:
    assert program_of(command) == name


def test_records_are_seen_once(watched: Watched) -> None:
    append(watched.shell, command_record(SID, 1), command_record(SID, 2))
    assert watched.look() == numbers(1, 2)
    assert watched.look() == []
    append(watched.shell, command_record(SID, 3))
    append(watched.tasks, {"task_id": "cap_1", "state": "WAITING"})
    assert sorted(watched.look()) == ["cap_1", *numbers(3)]
    assert watched.look() == []


def test_what_was_there_at_the_very_first_start_is_not_news(tmp_path: Path) -> None:
    audit = tmp_path / "audit" / f"shell_audit_{SID}.jsonl"
    append(audit, command_record(SID, 1))
    with audit.open("a") as file:
        file.write('{"audit_id": "')  # a record that is being written
    watched = Watched(tmp_path)
    assert watched.look() == []
    with audit.open("a") as file:
        file.write(f'{SID}_002"}}\n')
    assert watched.look() == numbers(2)


def test_a_restart_neither_repeats_nor_loses(watched: Watched) -> None:
    append(watched.shell, command_record(SID, 1))
    assert watched.look() == numbers(1)
    append(watched.shell, command_record(SID, 2))
    watched.restart()
    append(watched.shell, command_record(SID, 3))
    assert watched.look() == numbers(2, 3)
    watched.restart()
    assert watched.look() == []
    assert watched.state.stat().st_mode & 0o777 == 0o600


def test_what_could_not_be_taken_comes_again(watched: Watched) -> None:
    append(watched.shell, command_record(SID, 1))

    def full(_seen: list[AuditStimulus]) -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        watched.watch.look(full)
    assert watched.look() == numbers(1)


def test_half_a_line_waits_for_its_end(watched: Watched) -> None:
    line = json.dumps(command_record(SID, 1)) + "\n"
    watched.audit.mkdir()
    for cut in range(0, len(line), 50):
        with watched.shell.open("a") as file:
            file.write(line[cut : cut + 50])
        assert watched.look() == (numbers(1) if cut + 50 >= len(line) else [])


def test_lines_that_are_no_records_are_passed_over(watched: Watched) -> None:
    watched.audit.mkdir()
    good = json.dumps(command_record(SID, 1)).encode()
    watched.shell.write_bytes(
        b"\n{\n[]\nnull\n\xff\xfe\n{}\n" + b"[" * 10_000 + b"\n" + good + b"\n" + b'{"audit_id": 7}\n'
    )
    assert watched.look() == numbers(1)
    assert watched.look() == []


def test_a_file_that_was_cut_or_replaced_is_read_from_its_start(watched: Watched) -> None:
    append(watched.shell, command_record(SID, 1), command_record(SID, 2))
    watched.look()
    os.truncate(watched.shell, 0)
    append(watched.shell, command_record(SID, 3))
    assert watched.look() == numbers(3)
    watched.shell.rename(watched.shell.with_suffix(".old"))
    append(watched.shell, *(command_record(SID, number) for number in (4, 5, 6)))
    assert watched.look() == numbers(4, 5, 6)


def test_a_file_that_comes_and_goes_is_followed(watched: Watched) -> None:
    assert watched.look() == []
    append(watched.shell, command_record(SID, 1))
    assert watched.look() == numbers(1)
    watched.shell.unlink()
    assert watched.look() == []
    append(watched.shell, command_record(SID, 1))
    assert watched.look() == numbers(1)


def test_much_at_once_comes_in_turns(watched: Watched) -> None:
    append(watched.shell, *(command_record(SID, number) for number in range(1, 121)))
    looks = [watched.look() for _ in range(4)]
    assert [len(look) for look in looks] == [50, 50, 20, 0]
    assert [audit_id for look in looks for audit_id in look] == numbers(*range(1, 121))


def test_a_line_that_is_too_long_is_passed_over(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_watch, "BYTES_AT_ONCE", 2_000)
    append(
        watched.shell,
        command_record(SID, 1),
        command_record(SID, 2, output="x" * 10_000),
        command_record(SID, 3),
    )
    looks = [watched.look() for _ in range(12)]
    assert [audit_id for look in looks for audit_id in look] == numbers(1, 3)


def test_the_end_of_a_line_that_is_too_long_is_no_record(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_watch, "BYTES_AT_ONCE", 2_000)
    watched.audit.mkdir()
    forged = json.dumps(command_record(SID, 2))
    watched.shell.write_text("x" * 2_000 + forged + "\n" + json.dumps(command_record(SID, 3)) + "\n")
    assert watched.look() == []
    watched.restart()  # within the line
    assert watched.look() == numbers(3)


def test_links_pipes_and_other_names_are_not_read(watched: Watched, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.jsonl"
    append(elsewhere, command_record(SID, 9))
    watched.audit.mkdir()
    (watched.audit / "shell_audit_linked.jsonl").symlink_to(elsewhere)
    os.mkfifo(watched.audit / "shell_audit_pipe.jsonl")
    (watched.audit / "shell_audit_folder.jsonl").mkdir()
    for name in ("shell_audit_a..b.jsonl", "shell_audit_-x.jsonl", "other.jsonl", f"shell_audit_{SID}.jsonl.head"):
        append(watched.audit / name, command_record(SID, 9))
    assert watched.look() == []


def test_a_lost_or_damaged_place_counts_what_is_there_as_seen(watched: Watched) -> None:
    append(watched.shell, command_record(SID, 1))
    watched.look()
    for damaged in ("{", "[]", '{"files": {"x": 1}}'):
        watched.state.write_text(damaged)
        watched.restart()
        assert watched.look() == []
    append(watched.shell, command_record(SID, 2))
    assert watched.look() == numbers(2)


def test_a_secret_in_a_field_does_not_pass(watched: Watched) -> None:
    secret = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
    record = command_record(SID, 1, classification=secret, error=secret, status="error", command=f"{secret} -x")
    append(watched.shell, record)
    taken: list[AuditStimulus] = []
    watched.watch.look(taken.extend)
    assert "eyJ" not in taken[0].text


@given(
    st.dictionaries(
        st.sampled_from(sorted(command_record(SID, 1))), st.none() | st.text() | st.integers() | st.lists(st.text())
    )
)
@settings(max_examples=examples(200))
def test_any_record_is_a_sentence_or_nothing(given_fields: dict[str, object]) -> None:
    record = {**command_record(SID, 1), **given_fields}
    for described in (
        of_command(record, SID),
        of_capture({"task_id": record["command"], "state": record["status"]}, SID),
    ):
        if described is not None:
            assert len(described.text) < 600
            assert "\n" not in described.text
