"""How a server runs an investigation: as `ghost investigate` does, without a terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ghost.cli.brain_choice import Wish
from ghost.cli.investigation_command import investigate
from ghost.cli.investigation_request import Request, Served
from ghost.server import Order


class ServedInvestigator:
    """Runs the investigations of one workspace. One that an alert started has the offline brain: nobody chose it."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __call__(
        self, order: Order, tell: Callable[[str, dict[str, Any]], None], is_stopped: Callable[[], bool]
    ) -> None:
        brain = "offline" if order.source == "incident" else None
        request = Request(
            symptom=order.symptom,
            lab=order.lab,
            resume=order.resume,
            wish=Wish(brain=brain, resume=order.resume),
            max_turns=None,
            private=False,
            as_json=False,
            html=True,
            read_only=order.read_only,
        )
        investigate(request, self._root, Served(tell, is_stopped))
