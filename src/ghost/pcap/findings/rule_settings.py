"""Thresholds and ports that rules use, from the TOML files beside this module."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from ghost.policy import load_policy


@dataclass(frozen=True)
class _Threshold:
    value: Any
    """int or float."""
    reason: str


@dataclass(frozen=True)
class _Ports:
    ports: tuple[int, ...]
    reason: str


@cache
def _thresholds() -> dict[str, dict[str, _Threshold]]:
    return load_policy(__file__, "thresholds.toml", dict[str, dict[str, _Threshold]])


@cache
def _protocols() -> dict[str, _Ports]:
    return load_policy(__file__, "protocols.toml", dict[str, _Ports])


def threshold(key: str) -> float:
    """Return the value of `section.name` in thresholds.toml. Raises KeyError where there is none."""
    section, name = key.split(".")
    value: int | float = _thresholds()[section][name].value
    return value


def ports_of(kind: str) -> tuple[int, ...]:
    """Return the server ports of a kind of protocol in protocols.toml. Raises KeyError where there is none."""
    return _protocols()[kind].ports
