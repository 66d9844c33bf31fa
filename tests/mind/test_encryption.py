"""With a key, nothing that a memory says lies in any file; with a wrong one, nothing is opened and nothing damaged."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest

from ghost.config import SecretStr, Settings
from ghost.errors import ConfigurationError, StoreError
from ghost.mind import Changes, Filter, Query, Task, Thought, open_store
from ghost.mind.encryption import KeySeal, NoSeal, seal_of
from ghost.mind.sqlite_store import SqliteStore
from tests.mind.store_promises import DIM, SPACE, memory, names, unit

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
SECRET = "xylophonequartz"


def _store(path: Path, key: bytes | None) -> SqliteStore:
    return SqliteStore(path, SPACE, DIM, KeySeal(key) if key else NoSeal())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "ghost.sqlite3"


def _files(path: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in path.parent.iterdir()}


def test_nothing_that_is_kept_can_be_read_in_any_file(path: Path) -> None:
    store = _store(path, KEY)
    vector = unit(0.3, 0.5, 0.7)
    store.apply(
        Changes(
            memories=[memory("mem:1", f"{SECRET} one", tags=(f"{SECRET}tag",), metadata={SECRET: 1}, embedding=vector)],
            thoughts=[Thought(id="thought:1", content=f"#plan {SECRET}", ts=1.0)],
            tasks=[Task(id="t", title=SECRET, created_ts=1.0, last_update_ts=1.0)],
            queries=[Query(id="q:1", question=SECRET, created_ts=1.0, expires_ts=2.0)],
            preferences={"self": {"name": SECRET}},
        )
    )
    assert store.keyword_ids(SECRET, 5) == ["mem:1"]
    assert store.vector_ids(vector, 5, Filter(tags=frozenset({f"{SECRET}tag"})))[0][0] == "mem:1"
    store.touch(["mem:1"], 5.0)
    open_files = _files(path)
    store.close()
    wanted = [SECRET.encode(), b"xylophon", np.array(vector, "<f4").tobytes(), np.array(vector, "<f4").tobytes()[:8]]
    for files in (open_files, _files(path)):
        assert not any(name.endswith("-vectors") for name in files)
        assert [(name, word) for name, content in files.items() for word in wanted if word in content] == []
    assert b"mem:1" in _files(path)["ghost.sqlite3"]  # ids, types and times are not sealed
    store = _store(path, KEY)
    assert store.keyword_ids(SECRET, 5) == ["mem:1"]
    assert (store.thoughts(1)[0].content, store.tasks()[0].title) == (f"#plan {SECRET}", SECRET)
    assert (store.queries()[0].question, store.preferences()) == (SECRET, {"self": {"name": SECRET}})
    store.close()


@pytest.mark.parametrize(
    ("written_with", "opened_with", "said"),
    [
        (KEY, OTHER, "a different key"),
        (KEY, None, "is encrypted: set GHOST_MEMORY_KEY"),
        (None, KEY, "`ghost export` without the key, then `ghost import` with the key"),
    ],
    ids=["wrong key", "no key", "a key for what is not encrypted"],
)
def test_the_wrong_key_is_said_and_damages_nothing(
    path: Path, written_with: bytes | None, opened_with: bytes | None, said: str
) -> None:
    store = _store(path, written_with)
    store.apply(Changes(memories=[memory("a", "alpha", embedding=unit(1))]))
    store.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=said):
        _store(path, opened_with)
    assert path.read_bytes() == before
    store = _store(path, written_with)
    assert store.keyword_ids("alpha", 5) == ["a"]
    store.close()


def test_a_store_is_encrypted_and_decrypted_by_export_and_import(path: Path, tmp_path: Path) -> None:
    plain = _store(path, None)
    plain.apply(Changes(memories=[memory("a", "alpha", embedding=unit(1), tags=("x",))]))
    plain.export_jsonl(tmp_path / "one.jsonl")
    sealed = _store(tmp_path / "sealed.sqlite3", KEY)
    sealed.import_jsonl(tmp_path / "one.jsonl")
    assert list(sealed.memories()) == list(plain.memories())
    sealed.export_jsonl(tmp_path / "two.jsonl")
    assert (tmp_path / "two.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()
    sealed.close()
    plain.close()


def test_what_was_exchanged_or_altered_in_the_file_is_not_believed(path: Path) -> None:
    store = _store(path, KEY)
    store.apply(Changes(memories=[memory("a", "alpha"), memory("b", "beta"), memory("c", "gamma")]))
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE memory SET content = (SELECT content FROM memory WHERE id = 'b') WHERE id = 'a'")
    connection.execute("UPDATE memory SET metadata = zeroblob(60) WHERE id = 'b'")
    connection.commit()
    connection.close()
    store = _store(path, KEY)
    with pytest.raises(StoreError, match="memory content a: it holds a value of another owner"):
        store.get(["a"])
    with pytest.raises(StoreError, match="cannot decrypt memory metadata b"):
        store.get(["b"])
    assert store.get(["c"])["c"].content == "gamma"
    store.close()


def test_words_are_indexed_for_each_change_of_another_process(path: Path) -> None:
    one, other = _store(path, KEY), _store(path, KEY)
    one.apply(Changes(memories=[memory("a", "alpha"), memory("b", "beta", tags=("t",))]))
    assert other.keyword_ids("alpha beta", 5, Filter(tags=frozenset({"t"}))) == ["b"]
    one.apply(Changes(memories=[memory("a", "changed")], forgotten=["b"]))
    assert (other.keyword_ids("alpha", 5), other.keyword_ids("beta", 5)) == ([], [])
    assert other.keyword_ids("changed", 5) == ["a"]
    assert names(other.memories()) == ["a"]
    one.close()
    other.close()


# --- the key ---


def _settings(tmp_path: Path, **fields: object) -> Settings:
    return Settings(workspace=tmp_path, **fields)  # type: ignore[arg-type]


def test_the_key_comes_from_the_environment_or_from_a_file_of_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY.hex().upper() + "\n")
    file.chmod(0o600)
    for settings in (
        _settings(tmp_path, memory_key=SecretStr(KEY.hex())),
        _settings(tmp_path, memory_key_file=file),
    ):
        seal = seal_of(settings)
        assert seal.is_secret
        assert KeySeal(KEY).read("x", seal.write("x", b"content")) == b"content"
    assert not seal_of(_settings(tmp_path)).is_secret


@pytest.mark.parametrize("text", ["", "abc", "z" * 64, KEY.hex()[:-1], KEY.hex() + "00"])
def test_what_is_no_key_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    file = tmp_path / "key"
    file.write_text(text)
    file.chmod(0o600)
    for settings in (_settings(tmp_path, memory_key_file=file), _settings(tmp_path, memory_key=SecretStr(text or "x"))):
        with pytest.raises(ConfigurationError, match="64 hexadecimal digits") as refused:
            seal_of(settings)
        assert not text or text not in str(refused.value)


def test_a_key_file_that_others_may_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY.hex())
    for mode in (0o640, 0o604):
        file.chmod(mode)
        with pytest.raises(ConfigurationError, match="chmod 600"):
            seal_of(_settings(tmp_path, memory_key_file=file))
    with pytest.raises(ConfigurationError, match="cannot read the memory key"):
        seal_of(_settings(tmp_path, memory_key_file=tmp_path / "none"))
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigurationError, match="not a regular file"):
        seal_of(_settings(tmp_path, memory_key_file=tmp_path / "pipe"))
    file.chmod(0o600)
    with pytest.raises(ConfigurationError, match="set one of them"):
        seal_of(_settings(tmp_path, memory_key_file=file, memory_key=SecretStr(KEY.hex())))


def test_without_pynacl_a_key_is_refused_and_no_plain_file_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nacl.secret", None)
    with pytest.raises(ConfigurationError, match="PyNaCl"):
        open_store(_settings(tmp_path, memory_key=SecretStr(KEY.hex())), SPACE, DIM)
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_opened_by_the_settings(tmp_path: Path) -> None:
    store = open_store(_settings(tmp_path, memory_key=SecretStr(KEY.hex())), SPACE, DIM)
    store.apply(Changes(memories=[memory("a", SECRET)]))
    store.close()
    assert SECRET.encode() not in (tmp_path / "data" / "ghost.sqlite3").read_bytes()
    with pytest.raises(StoreError, match="is encrypted"):
        open_store(_settings(tmp_path), SPACE, DIM)
    url = SecretStr("postgresql://localhost/none")
    with pytest.raises(ConfigurationError, match="SQLite file only"):
        open_store(_settings(tmp_path, memory_key=SecretStr(KEY.hex()), database_url=url), SPACE, DIM)
