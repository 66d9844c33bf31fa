"""System prompts as files beside this one; the first line of each names the request."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ghost.mind.data_model import SelfModel
from ghost.policy import load_policy

_HERE = Path(__file__).parent


@cache
def system_prompt(name: str) -> str:
    """Return the prompt `soc`, `store_decider` or `consolidate`."""
    return (_HERE / f"{name}.txt").read_text(encoding="utf-8")


@cache
def default_self() -> SelfModel:
    return SelfModel.model_validate({"id": "self", "last_review_ts": 0.0, **load_policy(_HERE, "self.toml")})
