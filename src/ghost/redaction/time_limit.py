"""A limit on the processor time of redaction for one output."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ends_at: ContextVar[float] = ContextVar("ends_at", default=float("inf"))


@contextmanager
def processor_seconds(limit: float) -> Iterator[None]:
    """Limit the processor time of the block, by thread; `check_time` enforces it."""
    token = _ends_at.set(min(_ends_at.get(), time.thread_time() + limit))
    try:
        yield
    finally:
        _ends_at.reset(token)


def check_time() -> None:
    """Raise `TimeoutError` if the processor time is used up."""
    if time.thread_time() > _ends_at.get():
        raise TimeoutError("more processor time is used up than is given")
