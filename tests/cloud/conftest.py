from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .scripted import Desk, ScriptedShell

MakeDesk = Callable[..., Desk]


@pytest.fixture
def desk(tmp_path: Path) -> MakeDesk:
    """A desk whose shell answers as a healthy Azure, but for the given answers."""

    def make(*answers: Any, **options: Any) -> Desk:
        return Desk(tmp_path, ScriptedShell(*answers), options=options)

    return make
