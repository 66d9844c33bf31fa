"""The matrix finds the nearest exactly, and its file is right for every process whatever befell it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghost.mind import Changes, Filter
from ghost.mind.data_model import MemoryType
from ghost.mind.sqlite_store import SqliteStore
from ghost.mind.vector_file import VectorFile
from ghost.mind.vector_search import (
    TYPE_CODES,
    Rows,
    RowsInMemory,
    Table,
    marks_of,
    nearest,
    rows_of,
)
from tests.mind.store_promises import memory, unit

DIM = 8
UID = b"0123456789abcdef"


def _rows(count: int, seed: int = 1, tags: tuple[str, ...] = ()) -> Table:
    vectors = np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32)
    return rows_of(DIM, vectors, [1 + n % 3 for n in range(count)], [float(n) for n in range(count)], [tags] * count)


def _file(path: Path, space: str = "s", uid: bytes = UID) -> VectorFile:
    return VectorFile(path / "m-vectors", uid, space, DIM)


def _put(rows: Rows, numbers: list[int], content: Table, applied: int) -> None:
    with rows.exclusive():
        rows.write(np.asarray(numbers, dtype=np.int64), content)
        rows.finish(applied)


# --- search ---


def test_all_come_in_the_order_of_their_cosine_however_many_are_asked_for() -> None:
    table = _rows(3000)
    asked = np.random.default_rng(2).standard_normal(DIM).astype(np.float32)
    exact = np.argsort(-(table["vector"].astype(np.float64) @ asked), kind="stable") + 1
    found = list(nearest(table, asked, Filter()))
    assert len(found) == len(set(found)) == 3000
    assert found[:200] == exact[:200].tolist()


def test_rows_without_an_embedding_are_never_found() -> None:
    table = _rows(600)
    table[100:500] = np.zeros(1, dtype=table.dtype)
    asked = -table["vector"][0]
    assert sorted(nearest(table, asked, Filter())) == [*range(1, 101), *range(501, 601)]
    assert list(nearest(table[100:500], asked, Filter())) == []
    assert list(nearest(table[:0], asked, Filter())) == []


@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=4), min_size=1, max_size=40),
    st.sets(st.sampled_from("abcdefgh")),
)
def test_no_row_with_the_tags_is_passed_over(tags: list[list[str]], wanted: set[str]) -> None:
    table = rows_of(DIM, np.ones((len(tags), DIM), np.float32), [1] * len(tags), [0.0] * len(tags), tags)
    found = set(nearest(table, np.ones(DIM, np.float32), Filter(tags=frozenset(wanted))))
    assert {n for n, of in enumerate(tags, start=1) if wanted <= set(of)} <= found


def test_few_rows_have_the_marks_of_a_tag_by_chance() -> None:
    low, high = marks_of(["wanted"])
    others = [marks_of([f"tag{n}", f"team{n % 40}", "network", f"session{n * 7}", "lab"]) for n in range(5000)]
    by_chance = sum((one & low) == low and (two & high) == high for one, two in others)
    assert by_chance < 5000 * 0.02


# --- the file ---


def test_what_one_process_writes_another_reads_while_the_file_grows(tmp_path: Path) -> None:
    one, other = _file(tmp_path), _file(tmp_path)
    assert (one.applied, len(one.table())) == (-1, 0)
    content = _rows(5000)
    for n, first in enumerate(range(0, 5000, 500)):
        _put(one, list(range(first, first + 500)), content[first : first + 500], n)
        assert other.applied == n
        assert np.array_equal(other.table(), content[: first + 500])
    _put(other, [7, 4999, 8, 3], content[:4], 99)
    assert one.applied == 99
    assert np.array_equal(one.table()[[7, 4999, 8, 3]], content[:4])
    assert np.array_equal(one.table()[9:4999], content[9:4999])
    assert stat.S_IMODE((tmp_path / "m-vectors").stat().st_mode) == 0o600
    one.close()
    other.close()


def test_rows_in_memory_are_as_those_in_a_file(tmp_path: Path) -> None:
    for rows in (RowsInMemory(DIM), _file(tmp_path)):
        content = _rows(2500)
        _put(rows, list(range(1500)), content[:1500], 1)
        _put(rows, list(range(1500, 2500)), content[1500:], 2)
        _put(rows, [2, 1], content[[5, 6]], 3)
        assert rows.applied == 3
        assert np.array_equal(rows.table()[3:], content[3:])
        assert np.array_equal(rows.table()[[1, 2]], content[[6, 5]])
        rows.close()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"GHOST"),
        lambda path: path.write_bytes(b"\0" * 100_000),
        lambda path: path.unlink(),
        lambda path: os.truncate(path, 4096 + 50),
    ],
    ids=["empty", "short", "zeros", "gone", "cut"],
)
def test_a_file_that_is_damaged_is_made_anew(tmp_path: Path, spoil: object) -> None:
    rows = _file(tmp_path)
    _put(rows, list(range(3000)), _rows(3000), 5)
    rows.close()
    spoil(tmp_path / "m-vectors")  # type: ignore[operator]
    again = _file(tmp_path)
    assert (again.applied, len(again.table())) == (-1, 0)
    _put(again, [0], _rows(1), 1)
    again.close()
    assert _file(tmp_path).applied == 1


def test_a_file_of_another_database_space_or_start_of_the_machine_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _file(tmp_path)
    _put(first, [0], _rows(1), 5)
    assert _file(tmp_path).applied == 5
    assert _file(tmp_path, space="other").applied == -1
    assert _file(tmp_path).applied == -1
    assert _file(tmp_path, uid=b"another database").applied == -1
    assert first.applied == 5  # who has the old one open keeps it
    (tmp_path / "boot_id").write_text("another start")
    _put(_file(tmp_path), [0], _rows(1), 6)
    monkeypatch.setattr("ghost.mind.vector_file._BOOT", tmp_path / "boot_id")
    assert _file(tmp_path).applied == -1


def test_a_link_in_the_files_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"precious")
    (tmp_path / "m-vectors").symlink_to(tmp_path / "target")
    with pytest.raises(OSError):
        _file(tmp_path)
    assert (tmp_path / "target").read_bytes() == b"precious"


# --- with the database ---


def test_only_what_changed_is_written_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "g.sqlite3", "one/8", DIM)
    store.apply(Changes(memories=[memory(f"m{n}", embedding=unit(1, n)) for n in range(50)]))
    store.vector_ids(unit(1), 1)
    wrong = store._matrix.table()[[10]].copy()
    wrong["created"] = 123.0
    with store._matrix.exclusive():
        store._matrix.write(np.array([10]), wrong)  # would be put right if all were written again
    store.apply(Changes(memories=[memory("m20", embedding=unit(0, 0, 1)), memory("new", embedding=unit(0, 1))]))
    store.apply(Changes(forgotten=["m30"]))
    assert next(iter(store.vector_ids(unit(0, 0, 1), 1)))[0] == "m20"
    table = store._matrix.table()
    assert len(table) == 51
    assert table["created"][10] == 123.0
    assert (table["type"][30], table["vector"][30].any()) == (0, False)
    assert table["type"][50] == TYPE_CODES[MemoryType.SEMANTIC]
    store.apply(Changes(memories=[memory("takes its place", embedding=unit(0, 0, 0, 1))]))
    assert store.vector_ids(unit(0, 0, 0, 1), 1)[0][0] == "takes its place"
    assert len(store._matrix.table()) == 51
    store.close()


def test_an_older_copy_of_the_database_put_back_has_its_own_matrix(tmp_path: Path) -> None:
    path = tmp_path / "g.sqlite3"
    store = SqliteStore(path, "one/8", DIM)
    store.apply(Changes(memories=[memory("old", embedding=unit(1))]))
    store.close()
    copy = path.read_bytes()
    store = SqliteStore(path, "one/8", DIM)
    store.apply(Changes(memories=[memory("old", embedding=unit(0, 1)), memory("late", embedding=unit(0, 0, 1))]))
    assert len(store.vector_ids(unit(1), 5)) == 2
    store.close()
    path.write_bytes(copy)
    store = SqliteStore(path, "one/8", DIM)
    assert store.vector_ids(unit(1), 5) == [("old", pytest.approx(1.0, abs=1e-6))]
    store.close()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: os.truncate(path, 0),
        lambda path: os.truncate(path, 4096 + 50),
        lambda path: path.write_bytes(b"\0" * 2_000_000),
    ],
    ids=["emptied", "cut", "overwritten"],
)
def test_a_file_that_is_spoilt_while_it_is_open_is_made_anew(tmp_path: Path, spoil: object) -> None:
    store = SqliteStore(tmp_path / "m.sqlite3", "one/8", DIM)
    store.apply(Changes(memories=[memory(f"m{n}", embedding=unit(1, n)) for n in range(50)]))
    before = store.vector_ids(unit(1, 7), 5)
    assert before[0][0] == "m7"
    spoil(tmp_path / "m.sqlite3-vectors")  # type: ignore[operator]
    assert store.vector_ids(unit(1, 7), 5) == before
    store.apply(Changes(memories=[memory("new", embedding=unit(1, 7))]))
    assert "new" in dict(store.vector_ids(unit(1, 7), 2))
    store.close()


def test_a_search_goes_on_in_memory_where_another_thread_closed_the_file(tmp_path: Path) -> None:
    """It was called damage, with the advice to restore the database from a copy."""
    store = SqliteStore(tmp_path / "m.sqlite3", "one/8", DIM)
    store.apply(Changes(memories=[memory(f"m{n}", embedding=unit(1, n)) for n in range(5)]))
    store._matrix.close()
    assert store.vector_ids(unit(1, 3), 1)[0][0] == "m3"
    assert isinstance(store._matrix, RowsInMemory)
    store.close()


def test_several_processes_write_and_search_one_matrix(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from ghost.mind import Changes
from ghost.mind.sqlite_store import SqliteStore
from tests.mind.store_promises import memory, unit
store = SqliteStore(Path(sys.argv[1]), "one/8", 8)
for n in range(30):
    names = [f"{sys.argv[2]}-{n}-{k}" for k in range(5)]
    vectors = [unit(1, int(sys.argv[2]), n, k) for k in range(5)]
    store.apply(Changes(memories=[memory(i, embedding=v) for i, v in zip(names, vectors)]))
    for name, vector in zip(names, vectors):
        found, score = store.vector_ids(vector, 1)[0]
        assert found == name or score > 0.999999, (found, name, score)
    if n % 3 == 0:
        store.apply(Changes(forgotten=names[:2]))
"""
    path = tmp_path / "g.sqlite3"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(path), str(child)],
            cwd=Path(__file__).parents[2],
            stderr=subprocess.PIPE,
        )
        for child in range(4)
    ]
    errors = [child.communicate(timeout=120)[1].decode() for child in children]
    assert errors == [""] * 4
    store = SqliteStore(path, "one/8", DIM)
    everything = {one.id: one for one in store.memories()}
    assert len(everything) == 4 * (30 * 5 - 10 * 2)
    for one in islice(everything.values(), 0, None, 7):
        similarities = dict(store.vector_ids(one.embedding, 1000))
        assert similarities.keys() == everything.keys()
        assert similarities[one.id] == pytest.approx(1.0, abs=1e-6)
    kept = store._matrix.table()["type"] != 0
    assert kept.sum() == len(everything)
    store.close()
