"""Turns of work beside others, on one thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def background_turns(
    name: str,
    turn: Callable[[Callable[[], bool]], None],
    pause_seconds: float,
    end_seconds: float,
    end: Callable[[], object] = lambda: None,
) -> Iterator[None]:
    """Make turns, one at a time, until the context ends. `turn` is given what tells that it is to end.

    `end`: ends what a turn waits for; the last one may take `end_seconds` then.
    """
    stop = threading.Event()

    def turns() -> None:
        with suppress(KeyboardInterrupt):  # the command that ran was ended
            while not stop.is_set():
                turn(stop.is_set)
                stop.wait(pause_seconds)

    thread = threading.Thread(target=turns, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        end()
        thread.join(end_seconds)
