"""The schedule of watches and of checks of fixes, beside a server or the background loop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Final

from ghost.errors import GhostError, WorkspaceError
from ghost.server import background_turns

LOOK_SECONDS: Final = 5.0
"""Between looks for what is due, and before a turn that the workspace's lock refused."""
END_SECONDS: Final = 5.0
"""That a run may take to end once it was told to."""

_log = logging.getLogger(__name__)


def scheduled(
    steps: Sequence[Callable[[], object]], end_command: Callable[[], object], look_seconds: float = LOOK_SECONDS
) -> AbstractContextManager[None]:
    """Run what is due on one thread, one at a time. `end_command` ends the command that runs at the end."""

    def turn(ends: Callable[[], bool]) -> None:
        for step in steps:
            if not ends():
                _tried(step)

    return background_turns("schedule", turn, look_seconds, END_SECONDS, end_command)


def _tried(step: Callable[[], object]) -> None:
    try:
        step()
    except WorkspaceError:  # an investigation works here: the next turn
        return
    except GhostError as error:
        _log.warning("a watch, or a check of a fix, did not run: %s", error)
    except Exception:  # noqa: BLE001  one mistake must not end the schedule
        _log.exception("a watch, or a check of a fix, failed")
