"""A bound on the processor time that redaction may take for one output."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ends_at: ContextVar[float] = ContextVar("ends_at", default=float("inf"))


@contextmanager
def processor_seconds(limit: float) -> Iterator[None]:
    """Bounds what is done within by the processor time of its thread, wherever `check_time` is called."""
    token = _ends_at.set(min(_ends_at.get(), time.thread_time() + limit))
    try:
        yield
    finally:
        _ends_at.reset(token)


def check_time() -> None:
    """Raises `TimeoutError` once the processor time that was given is used up."""
    if time.thread_time() > _ends_at.get():
        raise TimeoutError("more processor time is used up than is given")
