"""The SQLite store keeps what every store promises, in the clear and sealed."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ghost.errors import StoreError
from ghost.mind import Changes, Filter, MemoryStore, MemoryType, sqlite_connections
from ghost.mind.encryption import KeySeal, NoSeal, Seal
from ghost.mind.sqlite_connections import Connections
from ghost.mind.sqlite_file import connect, make_private
from ghost.mind.sqlite_store import SqliteStore
from tests.exhaustive import EXHAUSTIVE
from tests.mind.store_promises import DIM, SPACE, Open, StorePromises, memory, names, unit

KEY = bytes(range(32))
ROOT = Path(__file__).parents[2]


def _opener(path: Path, seal: Seal) -> Iterator[Open]:
    opened: list[MemoryStore] = []

    def open_one(space: str = SPACE, dim: int = DIM) -> MemoryStore:
        store = SqliteStore(path, space, dim, seal)
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


class TestInTheClear(StorePromises):
    seal: Seal = NoSeal()

    @pytest.fixture
    def open_one(self, tmp_path: Path) -> Iterator[Open]:
        yield from _opener(tmp_path / "data" / "one.sqlite3", self.seal)

    @pytest.fixture
    def open_other(self, tmp_path: Path) -> Iterator[Open]:
        yield from _opener(tmp_path / "data" / "other.sqlite3", self.seal)


class TestSealed(TestInTheClear):
    seal = KeySeal(KEY)


def _store(path: Path, seal: Seal | None = None, **options: Any) -> SqliteStore:
    return SqliteStore(path, SPACE, DIM, seal, **options)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "ghost.sqlite3"


def _files(path: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in path.parent.iterdir()}


@pytest.mark.parametrize("seal", [NoSeal(), KeySeal(KEY)], ids=["clear", "sealed"])
def test_every_file_is_its_owners_alone(path: Path, seal: Seal) -> None:
    path.parent.mkdir(mode=0o700)
    path.touch(mode=0o644)
    store = _store(path, seal)
    store.apply(Changes(memories=[memory("m", embedding=unit(1))]))
    store.new_ids("mem", 1.0)
    store.vector_ids(unit(1), 1)
    modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()}
    store.close()
    assert len(modes) >= 4
    assert set(modes.values()) == {0o600}


def test_a_missing_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    _store(tmp_path / "a" / "b" / "ghost.sqlite3").close()
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "a/b")] == [0o700, 0o700]


def test_every_write_waits_for_the_disk(path: Path) -> None:
    store = _store(path)
    with store._connections.writer() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA secure_delete").fetchone() == (1,)
    store.close()


@pytest.mark.parametrize(
    "content", [b"no database at all, but long enough to be looked at " * 20, b"SQLite format 3\0x"]
)
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    path.chmod(0o644)
    with pytest.raises(StoreError, match="not a database"):
        _store(path)
    assert path.read_bytes() == content
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_what_a_link_leads_to_is_left_as_it_is_where_it_is_no_memory(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "precious").chmod(0o644)
    os.mkfifo(tmp_path / "pipe", 0o644)
    before = {name: (tmp_path / name).stat().st_mode for name in ("precious", "pipe")}
    for name in before:
        path.unlink(missing_ok=True)
        path.symlink_to(tmp_path / name)
        with pytest.raises(StoreError, match=r"not a database|not a regular file"):
            _store(path)
    assert {name: (tmp_path / name).stat().st_mode for name in before} == before


def test_a_database_of_another_program_is_refused_and_left_as_it_is(path: Path) -> None:
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        _store(path)
    assert path.read_bytes() == before


TOGETHER = 8 if EXHAUSTIVE else 3


@pytest.mark.parametrize("key", ["", KEY.hex()], ids=["clear", "sealed"])
def test_processes_that_open_a_new_store_at_once_share_it(path: Path, key: str) -> None:
    program = """
import sys
from pathlib import Path
from ghost.mind import Changes
from ghost.mind.encryption import KeySeal, NoSeal
from ghost.mind.sqlite_store import SqliteStore
from tests.mind.store_promises import memory, unit
path, key, child = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
store = SqliteStore(Path(path), "one/8", 8, KeySeal(bytes.fromhex(key)) if key else NoSeal())
store.apply(Changes(memories=[memory(child, child, embedding=unit(1, int(child)))]))
assert store.vector_ids(unit(1, int(child)), 1)[0][0] == child
"""
    command = [sys.executable, "-c", program, str(path), key]
    children = [
        subprocess.Popen(
            [*command, str(n)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for n in range(TOGETHER)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
    for child in children:  # all are told to go before any is waited for
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.flush()
    errors = [child.communicate(timeout=60)[1].decode() for child in children]
    assert errors == [""] * TOGETHER
    store = _store(path, KeySeal(bytes.fromhex(key)) if key else None)
    assert sorted(names(store.memories())) == [str(n) for n in range(TOGETHER)]
    assert sorted(name for name, _ in store.vector_ids(unit(1), 9)) == [str(n) for n in range(TOGETHER)]
    store.close()


def test_a_newer_schema_is_refused(path: Path) -> None:
    _store(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match=r"newer Ghost \(schema 99"):
        _store(path)


def test_a_damaged_file_is_a_store_error(path: Path) -> None:
    store = _store(path)
    store.apply(Changes(memories=[memory(f"m{n}", "word " * 50) for n in range(300)]))
    store.close()
    content = bytearray(path.read_bytes())
    for page in range(2, len(content) // 4096):
        content[page * 4096 : page * 4096 + 200] = b"\xff" * 200
    path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged"):
        list(_store(path).memories())


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE memory SET metadata = '{'",
        "UPDATE memory SET metadata = '[1]'",
        "UPDATE memory SET tags = '5'",
        "UPDATE memory SET content = x'fffe'",
        "UPDATE memory SET content = 5",
        "UPDATE memory SET type = 'rumour'",
        "UPDATE memory SET importance = 99",
        "UPDATE memory SET created_at = 'soon'",
        "UPDATE memory SET created_at = 1e20",
    ],
)
def test_a_row_that_no_memory_left_is_a_store_error(path: Path, spoil: str) -> None:
    store = _store(path)
    store.apply(Changes(memories=[memory("m", "word", embedding=unit(1))]))
    _written(path, spoil)
    with pytest.raises(StoreError, match="restore"):
        store.get(["m"])
    with pytest.raises(StoreError, match="restore"):
        list(store.memories())
    store.close()


@pytest.mark.parametrize(
    ("spoil", "read"),
    [
        ("INSERT INTO query VALUES ('q:1', x'7b')", lambda store: store.queries()),
        ("INSERT INTO task VALUES ('task:1', 'garbage')", lambda store: store.tasks()),
        ("INSERT INTO thought VALUES ('thought:1', 1, 'garbage')", lambda store: store.thoughts(5)),
        ("INSERT INTO preference VALUES ('a', 'garbage')", lambda store: store.preferences()),
        ("UPDATE embedding SET vector = x'000080'", lambda store: store.get(["m"])),
        ("DELETE FROM counter", lambda store: store.vector_ids(unit(1), 5)),
        ("DELETE FROM fact", lambda store: _store(store.path)),
    ],
    ids=["query", "task", "thought", "preference", "embedding", "counter", "fact"],
)
def test_whatever_else_is_damaged_is_a_store_error(path: Path, spoil: str, read: Callable[[SqliteStore], object]):
    store = _store(path)
    store.apply(Changes(memories=[memory("m", "word", embedding=unit(1))]))
    _written(path, spoil)
    with pytest.raises(StoreError, match="restore"):
        read(store)
    store.close()


def _written(path: Path, sql: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(sql)
    connection.close()


def test_a_place_where_no_file_can_be_made_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError):
        _store(tmp_path / "file" / "ghost.sqlite3")
    (tmp_path / "directory").mkdir()
    with pytest.raises(StoreError):
        _store(tmp_path / "directory")


def test_a_directory_that_may_not_be_written_to_is_a_store_error() -> None:
    """As another user than root, whom no permission stops."""
    with tempfile.TemporaryDirectory() as made:
        closed = Path(made)
        closed.chmod(0o555)
        found = _as_nobody(
            f"""
            from ghost.mind.sqlite_store import SqliteStore
            from ghost.errors import StoreError
            try:
                SqliteStore(Path({str(closed / "ghost.sqlite3")!r}), "s", 8)
            except StoreError as error:
                print("refused:", error)
            """
        )
    assert "refused: cannot open the memory" in found
    assert "Permission denied" in found


def _as_nobody(program: str) -> str:
    """What the program prints; it drops root's rights once everything is imported."""
    head = "import os, ghost.mind.sqlite_store, ghost.mind.encryption\nfrom pathlib import Path\n"
    head += "if os.geteuid() == 0:\n    os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
    source = head + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.stdout


def test_a_locked_database_is_waited_for_and_then_said_to_be_in_use(path: Path) -> None:
    store = _store(path, busy_seconds=0.3)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    with pytest.raises(StoreError, match="another process is writing"):
        store.apply(Changes(memories=[memory("m")]))
    assert time.monotonic() - began >= 0.25
    store.touch(["m"], 1.0)  # waits for nobody
    assert store.counts()[MemoryType.SEMANTIC] == 0
    timer = threading.Timer(0.1, other.execute, ["ROLLBACK"])
    timer.start()
    store.apply(Changes(memories=[memory("m")]))
    timer.join()
    other.close()
    store.close()


def test_no_connection_fails_to_open_since_another_process_makes_the_same_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who turns a new file into one with a write-ahead log has it alone for a moment, whichever moment that is."""

    def connect_meanwhile(path: Path, busy_seconds: float) -> sqlite3.Connection:
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN EXCLUSIVE")
        threading.Timer(0.2, other.close).start()
        return connect(path, busy_seconds)

    monkeypatch.setattr(sqlite_connections, "connect", connect_meanwhile)
    make_private(path)
    connections = Connections(path, 5.0)
    with connections.transaction() as connection:
        connection.execute("CREATE TABLE t (n)")
    assert connections.note(lambda noter: noter.execute("INSERT INTO t VALUES (7)") and None)
    with connections.writer() as connection:
        assert connection.execute("SELECT n FROM t").fetchall() == [(7,)]
    connections.close()


def test_a_second_store_of_a_process_leaves_the_first_its_locks(path: Path) -> None:
    """Else another process takes the log away at its end, and what the first store writes then is lost."""
    first = _store(path)
    first.apply(Changes(memories=[memory("before")]))
    _store(path).close()
    script = textwrap.dedent(f"""
        import sys
        from pathlib import Path
        from ghost.mind.sqlite_store import SqliteStore
        store = SqliteStore(Path(sys.argv[1]), {SPACE!r}, {DIM})
        print(*sorted(each.id for each in store.memories()))
        store.close()
    """)
    reader = [sys.executable, "-c", script, str(path)]
    told = []
    for name in ("then", "later"):
        told.append(subprocess.run(reader, capture_output=True, text=True, check=True, timeout=60, cwd=ROOT).stdout)
        first.apply(Changes(memories=[memory(name)]))
    told.append(subprocess.run(reader, capture_output=True, text=True, check=True, timeout=60, cwd=ROOT).stdout)
    first.close()
    assert [each.split() for each in told] == [["before"], ["before", "then"], ["before", "later", "then"]]


def test_what_was_looked_at_while_somebody_wrote_is_noted_with_the_next_change(path: Path) -> None:
    store = _store(path)
    store.apply(Changes(memories=[memory("m")]))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store.touch(["m"], 99.0)
    other.execute("ROLLBACK")
    other.close()
    store.apply(Changes(preferences={"a": 1}))
    assert store.get(["m"])["m"].last_access == 99.0
    store.close()


def test_a_full_disk_is_a_store_error_and_nothing_is_lost(path: Path) -> None:
    store = _store(path)
    store.apply(Changes(memories=[memory("m")]))
    with store._connections.writer() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StoreError, match="disk is full"):
        store.apply(Changes(memories=[memory(f"n{n}", "x" * 4000) for n in range(50)]))
    assert names(store.memories()) == ["m"]
    with store._connections.writer() as connection:
        connection.execute("PRAGMA max_page_count = 1000000")
    store.apply(Changes(memories=[memory("n")]))
    assert names(store.memories()) == ["m", "n"]
    store.close()


def test_where_no_file_may_grow_writing_fails_in_words_and_search_goes_on(path: Path) -> None:
    """A real limit of the system (`RLIMIT_FSIZE`) in place of a full disk: the matrix moves into memory."""
    program = f"""
        import resource
        from pathlib import Path
        from ghost.errors import StoreError
        from ghost.mind import Changes
        from ghost.mind.sqlite_store import SqliteStore
        from tests.mind.store_promises import memory, unit
        path = Path({str(path)!r})
        store = SqliteStore(path, {SPACE!r}, {DIM})
        store.apply(Changes(memories=[memory(f"m{{n}}", embedding=unit(1, n)) for n in range(5)]))
        print(len(store.vector_ids(unit(1), 9999)), type(store._matrix).__name__)
        store.apply(Changes(memories=[memory(f"n{{n}}", embedding=unit(1, n)) for n in range(2000)]))
        room = path.with_name(path.name + "-vectors").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        print(len(store.vector_ids(unit(1), 9999)), type(store._matrix).__name__)
        try:
            store.apply(Changes(memories=[memory("big", "x" * 1000000)]))
        except StoreError as error:
            print("refused:", error)
        print(len(store.get(["m0", "n1999", "big"])), len(store.vector_ids(unit(1), 9999)))
        resource.setrlimit(resource.RLIMIT_FSIZE, (60000, room))
        path.with_name(path.name + "-vectors").unlink()
        other = SqliteStore(path, {SPACE!r}, {DIM})
        print(len(other.vector_ids(unit(1), 9999)), type(other._matrix).__name__)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    first, second, refused, third, fourth = done.stdout.splitlines()
    assert (first, second) == ("5 VectorFile", "2005 RowsInMemory")
    assert refused.startswith("refused: cannot write the memory")
    assert (third, fourth) == ("2 2005", "2005 RowsInMemory")


def test_what_is_forgotten_is_in_none_of_the_files(path: Path) -> None:
    secret = "xylophonequartz"
    vectors = [unit(0.3, 0.5, n) for n in range(1, 4)]
    store = _store(path)
    filler = [memory(f"f{n}", f"filler number {n}", embedding=unit(1, n)) for n in range(200)]
    store.apply(Changes(memories=filler))
    for n, vector in enumerate(vectors):  # changed twice: each older text has to go as well
        store.apply(
            Changes(memories=[memory("s", f"{secret}{n} of Adelheid", tags=(f"{secret}tag",), embedding=vector)])
        )
        store.apply(Changes(memories=filler[n * 20 : n * 20 + 20]))
    store.apply(Changes(memories=[memory("t", "Adelheid", metadata={"quoted": secret}, embedding=vectors[0])]))
    store.vector_ids(unit(1), 5)
    wanted = [secret.encode(), b"adelheid", b"Adelheid", *(np.array(v, dtype="<f4").tobytes() for v in vectors)]
    assert any(secret.encode() in content for content in _files(path).values())
    assert any(wanted[-1] in content for name, content in _files(path).items() if name.endswith("-vectors"))
    store.apply(Changes(forgotten=["s", "t"]))
    assert [(name, word) for name, content in _files(path).items() for word in wanted if word in content] == []
    store.close()
    assert [(name, word) for name, content in _files(path).items() for word in wanted if word in content] == []


def test_what_a_reader_still_sees_goes_with_the_next_write(path: Path) -> None:
    store = _store(path)
    store.apply(Changes(memories=[memory("a", "xylophonequartz"), memory("b")]))
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM memory").fetchone()
    store.apply(Changes(forgotten=["a"]))
    assert names(store.memories()) == ["b"]
    assert any(b"xylophonequartz" in content for content in _files(path).values())
    reader.execute("COMMIT")
    reader.close()
    store.apply(Changes(preferences={"a": 1}))
    assert not any(b"xylophonequartz" in content for content in _files(path).values())
    store.close()


def test_common_words_are_found_through_the_rarer_ones_and_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ghost.mind.keywords.COMMON", 20)
    store = _store(path)
    store.apply(
        Changes(
            memories=[
                *(memory(f"m{n}", "timeout gateway west", created_at=float(n)) for n in range(60)),
                *(memory(f"o{n}", "timeout", created_at=float(n), tags=("one",) * (n == 3)) for n in range(30)),
                memory("rare", "firmware timeout", created_at=99.0),
            ]
        )
    )
    found = store.keyword_ids("timeout firmware", 50)
    assert found[0] == "rare"
    assert len(found) == len(set(found)) == 50
    both = store.keyword_ids("timeout gateway", 50)
    assert {name[0] for name in both} == {"m"}
    assert store.keyword_ids("timeout", 5, Filter(tags=frozenset({"one"}))) == ["o3"]
    assert sorted(store.keyword_ids("gateway timeout", 9, Filter(until=3.0, types=frozenset(MemoryType)))) == sorted(
        ["m0", "m1", "m2", "o0", "o1", "o2"]
    )
    store.close()
