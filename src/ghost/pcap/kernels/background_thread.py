"""Work that goes on beside other work in threads of one process. Compiled kernels, reading and hashing run beside
whatever the interpreter does; the interpreter itself does one thing at a time."""

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
    """Makes calls in a thread of its own, one after the other, while its caller goes on."""

    def __init__(self, function: Callable[P, object]) -> None:
        self._function = function
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="behind")
        self._waiting: deque[Future[object]] = deque()

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> None:
        """Have the call made. Raises what an earlier one raised; waits where too many wait."""
        self._waiting.append(self._thread.submit(self._function, *arguments, **named))
        if len(self._waiting) > _WAITING:
            self._waiting.popleft().result()

    def finish(self) -> None:
        """Wait for every call."""
        while self._waiting:
            self._waiting.popleft().result()
        self._thread.shutdown()

    def abandon(self) -> None:
        """Forget the calls that have not begun."""
        self._thread.shutdown(wait=True, cancel_futures=True)


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Threads get the interpreter soon after they ask for it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
