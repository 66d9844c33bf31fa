"""`POST /stimuli`: external input of the mind."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ghost.mind import Stimulus
from ghost.server.dependencies import services
from ghost.server.openapi import errors
from ghost.server.request_limits import METADATA_CHARACTERS, METADATA_DEPTH, STIMULI_AT_ONCE, STIMULUS_CHARACTERS

router = APIRouter(tags=["stimuli"])

KNOWN_SOURCES = frozenset({"cli", "dashboard", "audit", "api"})
"""Known sources; any other is counted as `other`, so that clients cannot create metrics."""


def _storable(metadata: dict[str, Any]) -> dict[str, Any]:
    """Check that every store can keep the JSON: no NaN, no lone surrogates, bounded depth and length."""
    try:
        text = json.dumps(metadata, allow_nan=False, ensure_ascii=False)
        text.encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise ValueError("metadata holds values that are not JSON: NaN, Infinity or a lone surrogate") from error
    if len(text) > METADATA_CHARACTERS or _depth(metadata) > METADATA_DEPTH or "\\u0000" in text:
        raise ValueError(
            f"metadata may be {METADATA_CHARACTERS} characters of JSON, {METADATA_DEPTH} levels deep, without NUL"
        )
    return metadata


def _depth(value: Any, level: int = 0) -> int:
    if level > METADATA_DEPTH or not isinstance(value, dict | list):
        return level
    inner = value.values() if isinstance(value, dict) else value
    return max((_depth(each, level + 1) for each in inner), default=level + 1)


class NewStimulus(BaseModel):
    """An input for the mind's next cycle."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"source": "cli", "content": "Plan: review clinic notes", "metadata": {}}]},
    )

    source: str = Field("api", min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.:-]+$", description="The source.")
    content: str = Field(
        min_length=1, max_length=STIMULUS_CHARACTERS, pattern=r"\S", description="Stored without secrets."
    )
    metadata: Annotated[dict[str, Any], AfterValidator(_storable)] = Field(default_factory=dict)


class Accepted(BaseModel):
    accepted: int = Field(description="Number of stimuli stored for the next cycle.", examples=[1])
    ids: list[str] = Field(examples=[["stim:1732264000000"]])


@router.post("/stimuli", summary="Add stimuli", responses=errors(413, 415, 503))
def post_stimuli(
    request: Request,
    body: Annotated[
        NewStimulus | Annotated[list[NewStimulus], Field(min_length=1, max_length=STIMULI_AT_ONCE)],
        Body(description=f"One stimulus, or a list of up to {STIMULI_AT_ONCE}."),
    ],
) -> Accepted:
    """Accept one stimulus or a whole list, or none. Accepted ones are stored until a cycle has processed them."""
    to = services(request)
    new = body if isinstance(body, list) else [body]
    now = to.now()
    ids = to.engine.store.new_ids("stim", now, len(new))
    stimuli = [
        Stimulus(id=name, source=each.source, content=each.content, metadata=each.metadata, ts=now)
        for name, each in zip(ids, new, strict=True)
    ]
    to.engine.ingest(stimuli)
    for each in new:
        to.metrics.stimuli.labels(each.source if each.source in KNOWN_SOURCES else "other").inc()
    return Accepted(accepted=len(stimuli), ids=ids)
