"""The word index of an encrypted store: in memory only, built from the decrypted memories on first use.

Opening costs one pass over all memories and their size in memory, per process; afterwards only changes are read, and a
search is as fast as in a file.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Sequence

from ghost.mind import keywords
from ghost.mind.memory_rows import MemoryRows
from ghost.mind.sqlite_file import WORDS
from ghost.mind.store import Filter, HeldWord

_MEMORY = """
CREATE TABLE memory (
    place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, type TEXT NOT NULL, created_at REAL NOT NULL, content TEXT,
    tags TEXT
);
"""


class WordsInMemory:
    def __init__(self, rows: MemoryRows) -> None:
        self._rows = rows
        self._lock = threading.Lock()
        self._applied = -1
        self._index = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._index.execute("PRAGMA temp_store = MEMORY")
        self._index.executescript(_MEMORY + WORDS)

    def search(self, connection: sqlite3.Connection, query: str, limit: int, where: Filter) -> list[str]:
        with self._lock:
            self._bring_up_to_date(connection)
            return keywords.search(self._index, query, limit, where)

    def rarer_words(self, connection: sqlite3.Connection, query: str, ids: Sequence[str]) -> list[HeldWord]:
        with self._lock:
            self._bring_up_to_date(connection)
            return keywords.rarer_words(self._index, query, ids)

    def close(self) -> None:
        with self._lock:
            self._index.close()

    def _bring_up_to_date(self, connection: sqlite3.Connection) -> None:
        (changes,) = connection.execute("SELECT changes FROM counter").fetchone()
        if changes <= self._applied:
            return
        self._index.execute("BEGIN")
        try:
            self._take_out(self._rows.released_since(connection, self._applied))
            for place, name, kind, created_at, content, tags in self._rows.words_since(connection, self._applied):
                self._take_out([place])
                row = (place, name, kind, created_at, content, tags)
                self._index.execute("INSERT INTO memory VALUES (?, ?, ?, ?, ?, ?)", row)
                self._index.execute("INSERT INTO words (rowid, content, tags) VALUES (?, ?, ?)", (place, content, tags))
                pairs = ((tag, place) for tag in json.loads(tags))
                self._index.executemany("INSERT OR IGNORE INTO tag VALUES (?, ?)", pairs)
            self._index.execute("COMMIT")
        except BaseException:
            self._index.execute("ROLLBACK")
            raise
        self._applied = changes

    def _take_out(self, places: Iterable[int]) -> None:
        for place in places:
            old = self._index.execute("SELECT content, tags FROM memory WHERE place = ?", (place,)).fetchone()
            if old is not None:
                self._index.execute(
                    "INSERT INTO words (words, rowid, content, tags) VALUES ('delete', ?, ?, ?)", (place, *old)
                )
                self._index.execute("DELETE FROM tag WHERE place = ?", (place,))
                self._index.execute("DELETE FROM memory WHERE place = ?", (place,))
