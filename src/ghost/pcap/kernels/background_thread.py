"""Background threads in one process.

Compiled kernels, reading and hashing run in parallel with the interpreter, which itself does one thing at a time.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Generic, ParamSpec

P = ParamSpec("P")

_WAITING = 4
"""Calls that may wait: a bound on memory."""
_SWITCH_SECONDS = 0.0001
"""A kernel works a few milliseconds and then needs the interpreter; Python's own 5 ms would make it wait as long."""


class BackgroundCalls(Generic[P]):
    """Runs calls in a thread, one after the other, while the caller continues."""

    def __init__(self, function: Callable[P, object]) -> None:
        self._function = function
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="behind")
        self._waiting: deque[Future[object]] = deque()

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> None:
        """Queue a call. Raises what an earlier one raised; blocks if too many are queued."""
        self._waiting.append(self._thread.submit(self._function, *arguments, **named))
        if len(self._waiting) > _WAITING:
            self._waiting.popleft().result()

    def finish(self) -> None:
        """Wait for all calls."""
        while self._waiting:
            self._waiting.popleft().result()
        self._thread.shutdown()

    def abandon(self) -> None:
        """Drop the calls that have not begun."""
        self._thread.shutdown(wait=True, cancel_futures=True)


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Shorten the interpreter's switch interval in this block."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
