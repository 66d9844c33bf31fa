"""Progress on standard error: a bar that moves on a terminal, with the time left; one line at the end elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from ghost.pcap.analysis import Progress as Done

_WIDTH = 30
_BETWEEN_DRAWINGS = 0.1
_COMPILING = 30
_WORTH_AN_ESTIMATE = 2.0
"""Seconds after which the time left is told."""


class Progress:
    """Shows stage, packets and MB/s of one capture: `show` what is done; leaving the block ends the line."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream = stream
        self._name = name
        self._moving = stream.isatty()
        self._stage = "reading"
        self._packets = self._bytes = self._size = 0
        self._began = self._read_until = time.monotonic()
        self._drawn = 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if self._moving:
            self._stream.write("\r\x1b[K")
        if kind is None:
            self._stream.write(f"{self._name}: {self._packets:,} packets, {self._speed()}\n")
        self._stream.flush()

    def stage(self, stage: str) -> None:
        self._stage = stage
        self._draw(force=True)

    def show(self, done: Done) -> None:
        """Show how far the analysis has come."""
        self._stage, self._packets, self._bytes, self._size = (
            done.stage,
            done.packets,
            done.bytes_read,
            done.bytes_total,
        )
        self._read_until = time.monotonic()
        if done.stage == "compiling":
            start = "\r\x1b[K" if self._moving else ""
            self._stream.write(f"{start}{self._name}: compiling the analysis kernels once, about {_COMPILING} s\n")
        self._draw(force=done.stage == "compiling")

    def _speed(self) -> str:
        seconds = max(self._read_until - self._began, 1e-3)
        return f"{self._bytes / 1e6:.1f} MB in {seconds:.1f} s ({self._bytes / 1e6 / seconds:.0f} MB/s)"

    def _draw(self, *, force: bool = False) -> None:
        now = time.monotonic()
        if not self._moving or (not force and now - self._drawn < _BETWEEN_DRAWINGS):
            return
        self._drawn = now
        done = min(self._bytes / self._size, 1.0) if self._size else 0.0
        bar = "█" * round(done * _WIDTH) + "░" * (_WIDTH - round(done * _WIDTH))
        moved = f"{self._packets:,} packets, {self._speed()}{self._left(done, now)}"
        self._stream.write(f"\r\x1b[K{self._name} {self._stage} {bar} {moved}")
        self._stream.flush()

    def _left(self, done: float, now: float) -> str:
        """Return the time left at the speed so far."""
        spent = now - self._began
        if self._stage != "reading" or not 0 < done < 1 or spent < _WORTH_AN_ESTIMATE:
            return ""
        return f", {spent * (1 - done) / done:.0f} s left"
