"""What the server is asked to investigate, and who does it: the command line wires an `Investigator`."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field


class OrderState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


WAITING: Final = (OrderState.QUEUED, OrderState.RUNNING)


class Order(BaseModel):
    """An investigation that somebody asked the server for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(examples=["i:1732264000000"])
    source: Literal["dashboard", "incident"]
    symptom: str | None = Field(None, description="Null where a session is resumed, or a lab brings its own.")
    lab: str | None = Field(None, description="A scenario of the lab; null for the network that az asks.")
    resume: str | None = Field(None, description="The session that goes on.")
    read_only: bool = False
    alert_id: str | None = None
    state: OrderState = OrderState.QUEUED
    queued_at: float = Field(description="Epoch seconds.")
    ended_at: float | None = None
    session_id: str | None = Field(None, description="Null until it has begun.")
    outcome: str | None = Field(None, description="Of its report, where there is one.")
    error: str | None = Field(None, description="Why it failed, or why it waits.")
    can_resume: bool = Field(True, description="False where it failed so that there is nothing to go on with.")


class Investigator(Protocol):
    """Runs one investigation to its report. `tell` gets its events."""

    def __call__(
        self, order: Order, tell: Callable[[str, dict[str, Any]], None], is_stopped: Callable[[], bool]
    ) -> None:
        """Raises `GhostError`, and `KeyboardInterrupt` soon after `is_stopped()`."""
