"""Limits on request size and duration."""

from __future__ import annotations

from typing import Final

MAX_BODY_BYTES: Final = 1_048_576
MAX_URL_BYTES: Final = 16_384
"""Path and query. Percent-encoding triples most of what a person types, and `text=` may hold an answer."""
MAX_HEADER_BYTES: Final = 16_384
MAX_HEADERS: Final = 100
MAX_HEAD_BYTES: Final = MAX_URL_BYTES + MAX_HEADER_BYTES + 4_096
"""Request line and headers together; more is never buffered."""

HEAD_SECONDS: Final = 10.0
"""From a connection, or from the first byte of a request, until its headers are complete."""
REQUEST_SECONDS: Final = 30.0
"""From the first byte of a request until its body is complete."""
KEEP_ALIVE_SECONDS: Final = 15
CONNECTIONS: Final = 256
GRACEFUL_SECONDS: Final = 5
"""Seconds that a shutdown waits for running requests."""

STIMULI_AT_ONCE: Final = 100
STIMULUS_CHARACTERS: Final = 4_000
METADATA_CHARACTERS: Final = 4_000
METADATA_DEPTH: Final = 6
QUERY_CHARACTERS: Final = 1_000
ANSWER_CHARACTERS: Final = 8_000
"""The mind's limits: longer values are refused, not truncated."""
SEEDS: Final = 20
SEED_CHARACTERS: Final = 2_000
SEEDS_CHARACTERS: Final = 10_000
MAX_PAGE_BYTES: Final = 4 << 20
"""Of a capture's page."""
ID_CHARACTERS: Final = 200
SYMPTOM_CHARACTERS: Final = 4_000

SEARCHES_AT_ONCE: Final = 16
"""A search may wait for an embedding model."""
SCRAPES_AT_ONCE: Final = 2
CYCLES_AT_ONCE: Final = 2
EVENT_CLIENTS: Final = 64
EVENT_CHARACTERS: Final = 2_000
"""Of a text in an event of an investigation."""
EVENTS_KEPT: Final = 256
"""Buffered events for `Last-Event-ID`, and for one slow client."""
HEARTBEAT_SECONDS: Final = 15.0
SEND_SECONDS: Final = 20.0
"""Seconds a client may leave an event unread before its connection is closed."""
