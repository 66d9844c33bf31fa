"""JSON log lines in `LOG_DIR/ghost.log`: one object per line, rotated by size, readable by the owner only.

The loop queues a line; a thread redacts it with the shell's patterns and writes it. If the queue is full the newest
lines are dropped, and their number is in the next line.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
import queue
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final, cast

import structlog
from structlog.tracebacks import ExceptionDictTransformer

from ghost.records import isoformat, private_dir
from ghost.shell import redact
from ghost.text import map_text

LOG_FILE: Final = "ghost.log"
MAX_BYTES: Final = 10_000_000
KEPT_FILES: Final = 5
WAITING_LINES: Final = 10_000
MAX_TEXT: Final = 8_000
"""Maximum characters of one value."""
MAX_ITEMS: Final = 100
MAX_DEPTH: Final = 6
LOGGERS: Final = ("ghost", "uvicorn.error", "asyncio")

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
"""The current request's id, added to its log lines."""

_traceback = ExceptionDictTransformer(show_locals=False, max_frames=20)  # locals hold what nobody redacted


def logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return a structured logger: `log.info("cycle ended", seconds=0.02)`. It adds the current request's id."""
    bound = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[
            _with_request,
            structlog.processors.ExceptionRenderer(_traceback),
            _as_record,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    return cast("structlog.stdlib.BoundLogger", bound)


def _with_request(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if (current := request_id.get()) is not None:
        event["request_id"] = current
    return event


def _as_record(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> tuple[tuple[str], dict[str, Any]]:
    """Attach the fields of an event to a standard log record."""
    message = str(event.pop("event", ""))
    return (message,), {"extra": {"fields": dict(event)}}


@contextmanager
def logging_to(directory: Path) -> Iterator[Path]:
    """Write logs of Ghost and its server to `directory/ghost.log` inside the block.

    Raises `RecordError` if the directory cannot be created, `OSError` if the file cannot be opened.
    """
    path = private_dir(directory) / LOG_FILE
    writer = _PrivateFile(path, maxBytes=MAX_BYTES, backupCount=KEPT_FILES, encoding="utf-8")
    writer.setFormatter(_JsonLine())
    lines: queue.Queue[Any] = queue.Queue(WAITING_LINES)
    handing_over = _QueueHandler(lines)
    listener = logging.handlers.QueueListener(lines, writer)
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [(each.handlers[:], each.level, each.propagate) for each in loggers]
    for each in loggers:
        each.handlers, each.propagate = [handing_over], False
        each.setLevel(logging.INFO)
    listener.start()
    try:
        yield path
    finally:
        for each, (handlers, level, propagate) in zip(loggers, before, strict=True):
            each.handlers, each.propagate = handlers, propagate
            each.setLevel(level)
        listener.stop()
        writer.close()


class _QueueHandler(logging.handlers.QueueHandler):
    """Queues a record; never waits or formats."""

    _dropped = 0

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        if record.exc_info and record.exc_info[0] is not None:
            record.exception = _traceback(record.exc_info)
        record.msg, record.args, record.exc_info = record.getMessage(), None, None
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        record.dropped = self._dropped
        try:
            self.queue.put_nowait(record)
            self._dropped = 0
        except queue.Full:
            self._dropped += 1


class _JsonLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "timestamp": isoformat(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if hasattr(record, "exception"):
            line["exception"] = record.exception
        if dropped := getattr(record, "dropped", 0):
            line["dropped_before"] = dropped
        return redacted_line(line)


def redacted_line(fields: dict[str, Any]) -> str:
    """Return one line of JSON without secrets.

    Each text is redacted, then the whole line: a field's name may identify a secret.
    """
    clean = map_text(fields, _text, depth=MAX_DEPTH, items=MAX_ITEMS)
    line = json.dumps(clean, ensure_ascii=False)
    redacted = redact(line)[0]
    if redacted == line:
        return line
    try:
        whole = json.loads(redacted)
    except ValueError:  # a secret ran over the end of its text
        whole = None
    if isinstance(whole, dict) and "\n" not in redacted:
        return redacted
    safe = {name: clean[name] for name in ("timestamp", "level", "logger") if name in clean}
    return json.dumps({**safe, "event": "a line that held a secret was omitted"})


def _text(text: str) -> str:
    """Redact before truncation: a truncated token may not be recognisable."""
    redacted = redact(text[: 4 * MAX_TEXT].encode("utf-8", "replace").decode("utf-8"))[0]
    return redacted if len(redacted) <= MAX_TEXT else f"{redacted[:MAX_TEXT]}…"


class _PrivateFile(logging.handlers.RotatingFileHandler):
    """A log file readable by its owner only and never written through a link."""

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(self.baseFilename, flags, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8", newline="")
