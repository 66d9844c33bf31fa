"""A hash chain shows every change of what was written."""

from __future__ import annotations

import io
import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.errors import ChainError, RecordError
from ghost.records import ChainedLog, Head, read_records, read_valid_records, verify
from tests.exhaustive import examples

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.lists(st.dictionaries(st.text(max_size=8).filter(lambda k: k != "prev"), JSON, max_size=4), max_size=6)


def written(directory: Path, records: list[dict]) -> ChainedLog:
    log = ChainedLog(directory / "log.jsonl")
    for record in records:
        log.append(record)
    return log


def test_what_was_appended_is_read_back_in_order(tmp_path):
    log = written(tmp_path, [{"n": 1}, {"n": 2, "text": "line\nfeed \u2028 \ud800"}])
    assert [r["n"] for r in read_records(log.path)] == [1, 2]
    assert log.path.read_bytes().count(b"\n") == 2


@given(records=RECORDS)
@settings(max_examples=examples(40))
def test_an_untouched_chain_verifies_against_its_head(tmp_path_factory, records):
    log = written(tmp_path_factory.mktemp("chain"), records)
    result = verify(log.path, log.head)
    assert result.ok, result.errors
    assert result.head == log.head


def test_any_one_byte_changed_anywhere_is_found(tmp_path):
    log = written(tmp_path, [{"n": n, "words": "abc"} for n in range(3)])
    whole = log.path.read_bytes()
    for position in range(len(whole)):
        for value in {(whole[position] + 1) % 256, 0x20, 0x0A} - {whole[position]}:
            log.path.write_bytes(whole[:position] + bytes([value]) + whole[position + 1 :])
            assert not verify(log.path, log.head).ok, f"byte {position} as {value}"


def test_a_cut_end_is_found_wherever_it_is_cut(tmp_path):
    log = written(tmp_path, [{"n": n} for n in range(3)])
    whole = log.path.read_bytes()
    for length in range(len(whole)):
        log.path.write_bytes(whole[:length])
        assert not verify(log.path, log.head).ok, f"cut to {length} bytes"


def test_a_removed_or_swapped_line_is_found(tmp_path):
    log = written(tmp_path, [{"n": n} for n in range(4)])
    lines = log.path.read_bytes().splitlines(keepends=True)
    for order in ([0, 2, 3], [1, 0, 2, 3], [0, 1, 2, 2, 3], [0, 1, 3]):
        log.path.write_bytes(b"".join(lines[i] for i in order))
        assert not verify(log.path, log.head).ok, order


def test_valid_records_after_the_saved_head_pass_with_a_note(tmp_path):
    log = written(tmp_path, [{"n": 1}])
    head = log.head
    log.append({"n": 2})
    result = verify(log.path, head)
    assert result.ok
    assert result.notes == ["1 valid records follow the saved head"]


def test_a_file_that_is_gone_fails_unless_nothing_was_written(tmp_path):
    assert not verify(tmp_path / "none.jsonl", Head(1, "a" * 64)).ok
    assert not verify(tmp_path / "none.jsonl", None).ok
    assert verify(tmp_path / "none.jsonl", Head()).ok


def test_a_chain_without_a_saved_head_does_not_pass(tmp_path):
    log = written(tmp_path, [{"n": 1}])
    assert not verify(log.path, None).ok


def test_a_new_writer_goes_on_where_the_file_ends(tmp_path):
    first = written(tmp_path, [{"n": 1}])
    second = ChainedLog(first.path)
    second.append({"n": 2})
    assert verify(first.path, second.head).ok
    assert second.head.count == 2


def test_after_a_half_written_line_the_next_record_is_whole(tmp_path):
    log = written(tmp_path, [{"n": 1}])
    with log.path.open("ab") as file:
        file.write(b'{"n": 2, "cut')
    again = ChainedLog(log.path)
    again.append({"n": 3})
    records, broken = read_valid_records(log.path)
    assert [r["n"] for r in records] == [1, 3]
    assert broken == [2]
    assert not verify(log.path, again.head).ok
    with pytest.raises(ChainError, match="line 2"):
        list(read_records(log.path))


@given(junk=st.binary(max_size=200))
@settings(max_examples=examples(60))
def test_reading_survives_any_bytes(tmp_path_factory, junk):
    path = tmp_path_factory.mktemp("junk") / "log.jsonl"
    path.write_bytes(junk)
    records, broken = read_valid_records(path)
    assert len(records) + len(broken) == len(io.BytesIO(junk).readlines())
    assert verify(path, Head()).ok == (junk == b"")


def test_what_is_no_json_is_refused_and_nothing_is_written(tmp_path):
    log = ChainedLog(tmp_path / "log.jsonl")
    with pytest.raises(RecordError, match="not JSON"):
        log.append({"value": float("nan")})
    assert not log.path.exists()


def test_files_are_private(tmp_path):
    log = written(tmp_path / "new" / "deep", [{"n": 1}])
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.path.parent.stat().st_mode) == 0o700


def test_a_directory_in_the_way_is_a_clear_error(tmp_path):
    (tmp_path / "log.jsonl").mkdir()
    with pytest.raises(RecordError, match="cannot"):
        ChainedLog(tmp_path / "log.jsonl").append({"n": 1})


def test_one_record_is_one_write(tmp_path, monkeypatch):
    writes = []
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: writes.append(bytes(data)) or real(fd, data))
    written(tmp_path, [{"n": 1}])
    assert len(writes) == 1
    assert json.loads(writes[0])["n"] == 1


def test_nothing_is_appended_through_a_link_or_into_a_pipe(tmp_path):
    (tmp_path / "victim").write_text("untouched")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "victim")
    os.mkfifo(tmp_path / "pipe.jsonl")
    for name in ("link.jsonl", "pipe.jsonl"):
        with pytest.raises(RecordError, match="cannot"):
            ChainedLog(tmp_path / name).append({"n": 1})
        with pytest.raises(RecordError, match="cannot read"):
            list(read_records(tmp_path / name))
    assert (tmp_path / "victim").read_text() == "untouched"


def test_a_full_disk_leaves_no_half_record(tmp_path, monkeypatch):
    log = written(tmp_path, [{"n": 1}])
    whole = log.path.read_bytes()
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[: len(data) // 2]))
    with pytest.raises(RecordError, match="cannot write"):
        log.append({"n": 2})
    monkeypatch.undo()
    assert log.path.read_bytes() == whole
    log.append({"n": 3})
    assert verify(log.path, log.head).ok
