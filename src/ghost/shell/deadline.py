"""A bound on what the shell waits for: a person's answer, a name's addresses, and what it makes of an output."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


def call_within(seconds: float | None, function: Callable[[], T]) -> T:
    """What `function` returns or raises, or `TimeoutError` once `seconds` have passed; None waits for ever.

    A call that is too late is left to end by itself in a daemon thread: what it returns is dropped.
    """
    if seconds is None:
        return function()
    results: list[T] = []
    failures: list[BaseException] = []

    def call() -> None:
        try:
            results.append(function())
        except BaseException as failure:  # noqa: BLE001 - it is raised again in the caller's thread
            failures.append(failure)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    if results:
        return results[0]
    if failures:
        raise failures[0]
    raise TimeoutError(f"no answer within {seconds:g} s")


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
