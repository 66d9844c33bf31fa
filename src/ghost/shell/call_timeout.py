"""Timeouts for calls that the shell waits for: a person's answer, name resolution."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def call_within(seconds: float | None, function: Callable[[], T]) -> T:
    """Call `function` with a timeout. Raises `TimeoutError` after `seconds`; None waits without limit.

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
