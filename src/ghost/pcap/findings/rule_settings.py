"""Thresholds and ports that rules use, from the TOML files beside this module."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent


@cache
def _table(file: str) -> dict[str, Any]:
    return tomllib.loads((_HERE / file).read_text(encoding="utf-8"))


def threshold(key: str) -> float:
    """The value of `section.name` in thresholds.toml; `KeyError` where there is none."""
    section, name = key.split(".")
    value: int | float = _table("thresholds.toml")[section][name]["value"]
    return value


def ports_of(kind: str) -> list[int]:
    """The server ports of a kind of protocol in protocols.toml; `KeyError` where there is none."""
    ports: list[int] = _table("protocols.toml")[kind]["ports"]
    return ports
