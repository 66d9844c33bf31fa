"""The PostgreSQL store keeps what every store promises, on a real server with pgvector."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from ghost.config import Settings
from ghost.errors import ConfigurationError, StoreError
from ghost.mind import Changes, MemoryStore, open_store
from ghost.mind.postgres_store import PostgresStore
from tests.mind.store_promises import DIM, SPACE, Open, StorePromises, memory, unit

if TYPE_CHECKING:
    from pgserver import PostgresServer

MEMORY = Path("/dev/shm")
_numbers = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """Its own directory, since a server that root starts runs as another user, who may not enter root's.

    In memory where there is room: each database is 300 files, and removing them takes a slow disk most of a minute.
    """
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 2**31
    with (
        tempfile.TemporaryDirectory(dir=MEMORY if roomy else None) as directory,
        pytest.MonkeyPatch.context() as environment,
    ):
        Path(directory).chmod(0o755)
        (Path(directory) / "run").mkdir(mode=0o700)
        environment.setenv("XDG_RUNTIME_DIR", f"{directory}/run")
        import pgserver

        running = pgserver.get_server(Path(directory) / "data", cleanup_mode=None)
        yield running
        # Nothing of it is wanted any more, so it writes nothing out first: SIGQUIT (PostgreSQL documentation, 19.5).
        os.kill(running.get_pid(), signal.SIGQUIT)
        wait_until_gone(Path(directory) / "data" / "postmaster.pid")


def wait_until_gone(path: Path) -> None:
    for _ in range(400):
        if not path.exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} is still there")


@pytest.fixture
def url(server: PostgresServer) -> str:
    """Of an empty database."""
    name = f"ghost_{os.getpid()}_{next(_numbers)}"
    server.psql(f"CREATE DATABASE {name};")
    return server.get_uri(database=name)


def _opener(url: str) -> Iterator[Open]:
    opened: list[MemoryStore] = []

    def open_one(space: str = SPACE, dim: int = DIM) -> MemoryStore:
        store = PostgresStore(url, space, dim)
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


class TestPostgres(StorePromises):
    @pytest.fixture
    def open_one(self, url: str) -> Iterator[Open]:
        yield from _opener(url)

    @pytest.fixture
    def open_other(self, server: PostgresServer) -> Iterator[Open]:
        name = f"other_{os.getpid()}_{next(_numbers)}"
        server.psql(f"CREATE DATABASE {name};")
        yield from _opener(server.get_uri(database=name))


def test_the_address_chooses_it(url: str, tmp_path: Path) -> None:
    store = open_store(Settings(workspace=tmp_path, database_url=url), SPACE, DIM)
    assert isinstance(store, PostgresStore)
    store.close()
    assert list(tmp_path.iterdir()) == []


def test_a_memory_key_is_refused_for_a_server(url: str) -> None:
    with pytest.raises(ConfigurationError, match="GHOST_MEMORY_KEY"):
        open_store(Settings(database_url=url, memory_key="ab" * 32), SPACE, DIM)


def test_a_server_that_cannot_be_reached_is_said_without_the_password() -> None:
    with pytest.raises(StoreError, match="cannot be reached") as raised:
        PostgresStore("postgresql://ghost:s3cr3t-pass@127.0.0.1:1/none", SPACE, DIM)
    assert "s3cr3t" not in str(raised.value)


def test_an_address_that_is_none_is_said_without_its_password() -> None:
    with pytest.raises(StoreError) as raised:
        PostgresStore("postgresql://ghost:s3cr3t-pass@[broken/none", SPACE, DIM)
    assert "s3cr3t" not in str(raised.value)


def test_a_name_that_a_server_cannot_hold_is_said(url: str) -> None:
    store = PostgresStore(url, SPACE, DIM)
    with pytest.raises(StoreError, match="cannot contain NUL"):
        store.get(["mem:1\0"])
    store.close()


def test_memory_of_a_newer_version_is_left_alone(url: str) -> None:
    PostgresStore(url, SPACE, DIM).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE ghost.fact SET value = '99' WHERE name = 'version'")
    with pytest.raises(StoreError, match="newer Ghost"):
        PostgresStore(url, SPACE, DIM)


def test_it_goes_on_after_the_server_ended_its_connections(url: str) -> None:
    store = PostgresStore(url, SPACE, DIM)
    store.apply(Changes(memories=[memory("a", "alpha", embedding=unit(1))]))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid != pg_backend_pid()"
        )
    assert store.keyword_ids("alpha", 5) == ["a"]
    store.close()


def test_several_open_an_empty_database_at_once(url: str) -> None:
    program = f"from ghost.mind.postgres_store import PostgresStore; PostgresStore({url!r}, {SPACE!r}, {DIM}).close()"
    running = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
    assert [process.wait(timeout=60) for process in running] == [0, 0, 0]


def test_what_was_acknowledged_survives_the_death_of_the_writer(url: str) -> None:
    program = textwrap.dedent(f"""
        from ghost.mind import Changes
        from ghost.mind.postgres_store import PostgresStore
        from tests.mind.store_promises import memory, unit
        store = PostgresStore({url!r}, {SPACE!r}, {DIM})
        for n in range(100000):
            store.apply(Changes(memories=[memory(f"k{{n}}", f"word{{n}}", embedding=unit(1, n)), memory(f"l{{n}}")]))
            print(n, flush=True)
    """)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=Path.cwd())
    assert process.stdout is not None
    acknowledged = [int(process.stdout.readline()) for _ in range(50)]
    with process:
        process.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in process.stdout.read().splitlines()]
    store = PostgresStore(url, SPACE, DIM)
    kept = {one.id for one in store.memories()}
    assert {f"{kind}{n}" for n in acknowledged for kind in "kl"} <= kept
    assert len(kept) % 2 == 0
    assert store.keyword_ids(f"word{acknowledged[-1]}", 5) == [f"k{acknowledged[-1]}"]
    store.close()
