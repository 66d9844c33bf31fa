"""The schedule of watches beside a server or the background loop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from ghost.agent import WatchRuns
from ghost.errors import GhostError, WorkspaceError

LOOK_SECONDS: Final = 5.0
"""Between looks for a watch that is due, and before a turn that the workspace's lock refused."""
END_SECONDS: Final = 5.0
"""That a run may take to end once it was told to."""

_log = logging.getLogger(__name__)


@contextmanager
def scheduled(runs: WatchRuns, end_command: Callable[[], object], look_seconds: float = LOOK_SECONDS) -> Iterator[None]:
    """Run due watches on one thread, one at a time. `end_command` ends the command that runs at the end."""
    stop = threading.Event()

    def turns() -> None:
        with suppress(KeyboardInterrupt):  # the command that ran was ended
            while not stop.is_set():
                _turn(runs)
                stop.wait(look_seconds)

    thread = threading.Thread(target=turns, name="drift-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        end_command()
        thread.join(END_SECONDS)


def _turn(runs: WatchRuns) -> None:
    try:
        runs.ask_open()
        runs.run_due()
    except WorkspaceError:  # an investigation works here: the next turn
        return
    except GhostError as error:
        _log.warning("a watch did not run: %s", error)
    except Exception:  # noqa: BLE001  one mistake must not end the schedule
        _log.exception("a watch failed")
