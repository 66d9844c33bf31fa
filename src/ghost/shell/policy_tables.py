"""The shell's tables: the TOML files in `policy/`, each read once, when it is first needed."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from ghost.policy import load_policy

POLICY = Path(__file__).parent / "policy"


@cache
def policy_table(name: str) -> dict[str, Any]:
    """The content of `policy/NAME`, shared by all callers: not to be changed. Raises `ConfigurationError`."""
    return load_policy(POLICY, name)
