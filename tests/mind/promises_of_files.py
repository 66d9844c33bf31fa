"""What every store promises of exports and imports."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import numpy as np
import pytest

from ghost.errors import StoreError
from ghost.mind import (
    Changes,
    MemoryStore,
)
from tests.mind.made_memories import (
    DIM,
    FULL,
    Open,
    Opened,
    memory,
)


class FilePromises(Opened):
    # --- files ---

    def test_an_export_of_an_import_is_the_same_bytes(self, store: MemoryStore, open_other: Open, tmp_path: Path):
        random = np.random.default_rng(3)
        vectors = (random.standard_normal((40, DIM)) * 10.0 ** random.integers(-30, 30, (40, DIM))).astype(np.float32)
        store.apply(
            Changes(
                memories=[
                    FULL,
                    memory("other-space", embedding=(1e-45, -0.0, 3.0), embedding_model="other"),
                    memory("a", created_at=0.1),
                    *(memory(f"m{n}", created_at=5.0, embedding=tuple(v)) for n, v in enumerate(vectors.tolist())),
                ]
            )
        )
        first, second = tmp_path / "one" / "first.jsonl", tmp_path / "second.jsonl"
        assert store.export_jsonl(first) == 43
        assert stat.S_IMODE(first.stat().st_mode) == 0o600
        other = open_other()
        assert other.import_jsonl(first) == 43
        assert list(other.memories()) == list(store.memories())
        assert other.export_jsonl(second) == 43
        assert second.read_bytes() == first.read_bytes()
        lines = [json.loads(line) for line in first.read_text(encoding="utf-8").splitlines()]
        assert [line["id"] for line in lines][:1] == ["a"]
        assert [line["created_at"] for line in lines] == sorted(line["created_at"] for line in lines)
        assert other.import_jsonl(first) == 43
        assert sum(other.counts().values()) == 43

    def test_an_import_updates_by_id_and_leaves_the_rest(self, store: MemoryStore, tmp_path: Path):
        store.apply(Changes(memories=[memory("a", "old"), memory("b", "stays")]))
        path = tmp_path / "in.jsonl"
        path.write_text(json.dumps(memory("a", "new").model_dump(mode="json")) + "\n", encoding="utf-8")
        assert store.import_jsonl(path) == 1
        assert {one.id: one.content for one in store.memories()} == {"a": "new", "b": "stays"}
        assert store.keyword_ids("old", 5) == []

    @pytest.mark.parametrize(
        "line",
        [
            b"{",
            b"[]",
            b"",
            b"\xff",
            b'{"id": "x"}',
            b'{"id": "x", "type": "dream", "content": "", "created_at": 1, "last_access": 1}',
            b'{"id": "x", "type": "semantic", "content": "", "created_at": 1, "last_access": 1, "extra": 1}',
            b'{"id": "x", "type": "semantic", "content": "", "created_at": 1, "last_access": 1, "embedding": [1]}',
            b'{"id": "x", "type": "semantic", "content": "", "created_at": NaN, "last_access": 1}',
            b'{"id": "x", "type": "semantic", "content": "\\ud800", "created_at": 1, "last_access": 1}',
        ],
    )
    def test_an_import_that_fails_names_the_line_and_changes_nothing(
        self, store: MemoryStore, tmp_path: Path, line: bytes
    ):
        store.apply(Changes(memories=[memory("a", "old")]))
        good = json.dumps(memory("a", "new").model_dump(mode="json")).encode()
        path = tmp_path / "in.jsonl"
        path.write_bytes(b"\n".join([good, good, line, good]) + b"\n")
        with pytest.raises(StoreError, match="line 3"):
            store.import_jsonl(path)
        assert [one.content for one in store.memories()] == ["old"]

    def test_a_file_without_an_end_of_line_is_not_read_whole(
        self, store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr("ghost.mind.jsonl.LONGEST_LINE", 1000)
        (tmp_path / "in.jsonl").write_bytes(b" " * 100_000)
        with pytest.raises(StoreError, match=r"line 1: it is longer than 1000 bytes: nothing was imported"):
            store.import_jsonl(tmp_path / "in.jsonl")

    def test_an_export_or_import_without_a_file_is_a_store_error(self, store: MemoryStore, tmp_path: Path):
        with pytest.raises(StoreError):
            store.import_jsonl(tmp_path / "none.jsonl")
        (tmp_path / "file").write_text("x")
        with pytest.raises(StoreError):
            store.export_jsonl(tmp_path / "file" / "x.jsonl")

    def test_an_export_that_fails_leaves_the_old_file(
        self, store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        store.apply(Changes(memories=[memory("a"), memory("b")]))
        path = tmp_path / "out.jsonl"
        path.write_text("old")

        def full(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(StoreError, match="No space left"):
            store.export_jsonl(path)
        monkeypatch.undo()
        assert path.read_text() == "old"
        assert sorted(one.name for one in tmp_path.glob(".out.jsonl*")) == []
