"""What models are told, as files beside this one; the first line of each is the name of what is asked."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from ghost.mind.model import SelfModel

_HERE = Path(__file__).parent


@cache
def system_prompt(name: str) -> str:
    """`soc`, `store_decider` or `consolidate`."""
    return (_HERE / f"{name}.txt").read_text(encoding="utf-8")


@cache
def default_self() -> SelfModel:
    described = tomllib.loads((_HERE / "self.toml").read_text(encoding="utf-8"))
    return SelfModel.model_validate(
        {
            "id": "self",
            "name": described["name"],
            "principles": tuple(described["principles"]),
            "long_term_goals": tuple(described["long_term_goals"]),
            "last_review_ts": 0.0,
        }
    )
