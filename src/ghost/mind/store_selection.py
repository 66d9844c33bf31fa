"""Selection of the store: PostgreSQL if `GHOST_DATABASE_URL` is set, else a SQLite file; memory in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ghost.config import Settings
from ghost.errors import ConfigurationError
from ghost.mind.encryption import seal_of
from ghost.mind.long_term_memory import LongTermMemory
from ghost.mind.store import MemoryStore
from ghost.records import SystemClock


def open_store(settings: Settings, embeddings_name: str, dim: int) -> MemoryStore:
    """Return a store that compares vectors of `dim` numbers of the space `embeddings_name`.

    Raises `StoreError` if it cannot be opened, `ConfigurationError` for an invalid setting.
    """
    seal = seal_of(settings)
    if settings.database_url is None:
        from ghost.mind.sqlite_store import SqliteStore  # numpy and sqlite3 are wanted by who opens a store only

        return SqliteStore(settings.database, embeddings_name, dim, seal)
    if seal.is_secret:
        raise ConfigurationError(
            "a memory key encrypts a SQLite file only: unset GHOST_MEMORY_KEY and GHOST_MEMORY_KEY_FILE with "
            "GHOST_DATABASE_URL, and let the server's disk be encrypted"
        )
    from ghost.mind.postgres_store import PostgresStore

    return PostgresStore(settings.database_url.get_secret_value(), embeddings_name, dim)


@contextmanager
def opened_memory(settings: Settings) -> Iterator[LongTermMemory]:
    """Raises `StoreError` where the store cannot be opened, `ConfigurationError` where a setting is wrong."""
    from ghost.providers import embeddings

    provider = embeddings(settings)
    store = open_store(settings, provider.name, provider.dim)
    try:
        yield LongTermMemory(store, provider, SystemClock())
    finally:
        store.close()
