"""Ctrl-C, SIGTERM and SIGHUP: each ends the program once, by `KeyboardInterrupt`, so that results are saved."""

from __future__ import annotations

import atexit
import signal
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

HELD_SECONDS: Final = 2.0
"""A signal this soon after an interrupt belongs to it: what the first one saves on the way out is not cut off."""
_RAISED_AGAIN_SECONDS: Final = 0.01
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Turns signals into `KeyboardInterrupt`."""

    def __init__(self) -> None:
        self._last = -HELD_SECONDS

    def take(self) -> None:
        for number in _ENDING:
            signal.signal(number, self._interrupt)
        signal.signal(signal.SIGALRM, self._interrupt)
        sys.unraisablehook = self._swallowed
        atexit.register(_ignore)

    def hold(self) -> None:
        """Drop the signals of the next moments: the program ends, and its exit status stands."""
        self._last = time.monotonic()

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if time.monotonic() - self._last >= HELD_SECONDS:
            self.hold()
            raise KeyboardInterrupt

    def _swallowed(self, ignored: UnraisableHookArgs) -> None:
        """An interrupt in a finalizer reaches nobody: raise it again, outside."""
        if not issubclass(ignored.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(ignored)
            return
        self._last = -HELD_SECONDS
        signal.setitimer(signal.ITIMER_REAL, _RAISED_AGAIN_SECONDS)


def _ignore() -> None:
    """Python gives signals their default action, to end the process, before it has ended."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
