"""Files are whole or not there, and one process at a time works in a workspace."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from ghost.errors import RecordError, WorkspaceError
from ghost.records import (
    SERVER_LOCK,
    elapsed,
    isoformat,
    new_session_id,
    read_json,
    valid_session_id,
    workspace_lock,
    write_json,
    write_text,
)


def test_a_written_value_is_read_back(tmp_path):
    write_json(tmp_path / "a" / "b.json", {"ü": [1, None]})
    assert read_json(tmp_path / "a" / "b.json") == {"ü": [1, None]}
    assert stat.S_IMODE((tmp_path / "a" / "b.json").stat().st_mode) == 0o600
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["b.json"]


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    write_text(tmp_path / "f", "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "f", "\ud800")
    assert (tmp_path / "f").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_what_is_no_json_is_a_clear_error(tmp_path):
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(RecordError, match="cannot read"):
        read_json(tmp_path / "x.json")
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "missing.json")


def test_a_file_where_a_directory_should_be_is_a_clear_error(tmp_path):
    (tmp_path / "f").write_text("")
    with pytest.raises(RecordError, match="cannot create the directory"):
        write_text(tmp_path / "f" / "g", "x")


HOLD = "import sys;from pathlib import Path;from ghost.records import workspace_lock\n\
with workspace_lock(Path(sys.argv[1])):\n print('held', flush=True); sys.stdin.read()"


def test_a_second_process_is_told_who_holds_the_workspace(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(WorkspaceError, match=f"process {holder.pid}.*--workspace"), workspace_lock(tmp_path):
            pass
        holder.kill()
        holder.wait()
    with workspace_lock(tmp_path):  # the kernel dropped the lock of the killed process
        pass


def test_who_finds_a_server_at_work_is_told_of_its_queue(tmp_path):
    told = r"ghost serve .*queue, on the dashboard \(http://127.0.0.1:8000/ui\) or by POST /investigations.*--workspace"
    server = workspace_lock(tmp_path, SERVER_LOCK, "http://127.0.0.1:8000")
    with workspace_lock(tmp_path):
        with server, pytest.raises(WorkspaceError, match=told), workspace_lock(tmp_path):
            pass
        with pytest.raises(WorkspaceError, match=r"in use by process \d+: wait"), workspace_lock(tmp_path):
            pass  # that server has ended


def test_what_is_no_address_in_a_lock_is_not_shown(tmp_path):
    with workspace_lock(tmp_path, SERVER_LOCK), workspace_lock(tmp_path):
        for line in ("http://x\x1b]0;title\x07", "http://x\nhttp://y", "javascript:alert(1)", f"http://x/{'a' * 500}"):
            (tmp_path / SERVER_LOCK).write_text(f"{os.getpid()}\n{line}\n")
            with pytest.raises(WorkspaceError, match=r"on the dashboard or by POST"), workspace_lock(tmp_path):
                pass


def test_session_ids_name_their_second_and_never_collide():
    moment = datetime(2025, 1, 15, 14, 30, 22, tzinfo=UTC)
    assert new_session_id(moment) == "ghost_20250115_143022"
    taken = {"ghost_20250115_143022", "ghost_20250115_143022_2"}
    assert new_session_id(moment, taken.__contains__) == "ghost_20250115_143022_3"


@pytest.mark.parametrize("text", ["", "../x", "a/b", "a..b", ".hidden", "-x", "a b", "ü", "x" * 101, "a\n"])
def test_what_is_no_session_id_never_becomes_a_file_name(text):
    assert not valid_session_id(text)


def test_times_are_written_for_machines_and_people():
    assert isoformat(datetime(2025, 1, 15, 14, 30, 22, 5678, tzinfo=UTC)) == "2025-01-15T14:30:22.005Z"
    assert [elapsed(s) for s in (0.2, 59, 60, 512, 7500)] == ["0s", "59s", "1m 00s", "8m 32s", "2h 05m"]


def test_a_pipe_or_device_is_never_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RecordError, match="not a regular file"):
        write_json(tmp_path / "pipe", {})
    assert (tmp_path / "pipe").is_fifo()
