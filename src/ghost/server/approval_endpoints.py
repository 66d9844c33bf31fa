"""`GET /approvals` and its answer: what running investigations wait for, the same rows that a terminal may answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from ghost.agent import Waiting
from ghost.server.dependencies import Services, services
from ghost.server.openapi import errors
from ghost.server.problems import Refused
from ghost.server.request_limits import ANSWER_CHARACTERS, ID_CHARACTERS
from ghost.shell import HitlDecision

router = APIRouter(tags=["approvals"])

ANYBODY = (
    "Without a token anybody on this machine could answer. Start ghost serve with GHOST_API_TOKEN (at least 16 "
    "characters), or answer at the terminal of the investigation."
)
WORDS = "answer"
RowId = Annotated[str, Path(min_length=1, max_length=ID_CHARACTERS)]


class Asked(BaseModel):
    """Something that an investigation waits for."""

    id: str = Field(examples=["a:1732264000000"])
    session_id: str
    symptom: str
    kind: Literal["once", "plan", "question"] = Field(description="`plan`: all commands at once; `question`: in words.")
    lines: tuple[str, ...] = Field(description="The exact commands, or the question.")
    answers: list[str] = Field(description="What may be answered: `answer` is with words.")
    reasoning: str
    risk: str
    classification: Literal["RISKY", ""]
    tier: int | None
    form: str | None = Field(description="What `form` allows.")
    times: tuple[int, ...] = Field(description="How often each command of a plan may run.")
    sha256: str = Field(description="Of all that is shown: the answer must name it.")
    asked_ts: float = Field(description="Epoch seconds.")
    expires_ts: float | None = Field(description="Then it is a denial; null without limit.")


class AllAsked(BaseModel):
    approvals: list[Asked] = Field(description="Oldest first.")
    can_answer: bool = Field(description="False without a token.")


class Decision(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sha256: str = Field(min_length=64, max_length=64, pattern=r"^[0-9a-f]{64}$", description="As it was shown.")
    answer: Literal["approve", "deny", "each", "session", "form", "answer"]
    text: str = Field("", max_length=ANSWER_CHARACTERS, description="Why it is denied, or the answer to a question.")


class Decided(BaseModel):
    id: str
    answer: str


class Became(BaseModel):
    id: str
    is_open: bool
    said: str = Field(description="Who answered what, in words; empty while it is open.")


@router.get("/approvals", summary="What investigations wait for", responses=errors(503))
def list_approvals(request: Request) -> AllAsked:
    to = services(request)
    return AllAsked(approvals=[shown(waiting) for waiting in to.room.open()], can_answer=to.has_token)


@router.get("/approvals/{row_id}", summary="What became of one", responses=errors(404, 503))
def what_became(request: Request, row_id: RowId) -> Became:
    to = services(request)
    refused = _too_late(to, row_id)
    if refused.status_code == 404:
        raise refused
    is_open = to.room.find(row_id) is not None
    return Became(id=row_id, is_open=is_open, said="" if is_open else refused.detail)


@router.post(
    "/approvals/{row_id}/answer", summary="Approve, deny or answer", responses=errors(403, 404, 409, 413, 415, 503)
)
def answer(request: Request, row_id: RowId, body: Decision) -> Decided:
    """The first answer counts, whether it was given here or at the terminal; a later one is told of it."""
    to = services(request)
    if not to.has_token:
        raise Refused(403, ANYBODY)
    waiting = to.room.find(row_id)
    if waiting is not None:
        if body.answer not in shown(waiting).answers:
            raise Refused(422, f"{row_id} may be answered by: {', '.join(shown(waiting).answers)}.")
        if body.answer == WORDS and not body.text.strip():
            raise Refused(422, "An answer in words needs words.")
        given = (
            body.text
            if body.answer == WORDS
            else HitlDecision(body.answer, reason=body.text.strip() or None, by="dashboard")
        )
        if to.room.answer(row_id, body.sha256, given, by="dashboard"):
            return Decided(id=row_id, answer=body.answer)
    raise _too_late(to, row_id)


def _too_late(to: Services, row_id: str) -> Refused:
    closed = to.room.closed(row_id)
    if closed is None:
        if to.room.find(row_id) is not None:
            return Refused(409, "What is asked is not what you were shown: load it again and read it.")
        return Refused(404, f"Nobody waits for {row_id!r}. GET /approvals lists what is open.")
    return Refused(409, f"{row_id} {closed.told}.")


def shown(waiting: Waiting) -> Asked:
    asked = waiting.asked
    about: dict[str, Any] = {
        "id": waiting.id,
        "session_id": waiting.session_id,
        "symptom": waiting.symptom,
        "sha256": waiting.sha256,
        "asked_ts": waiting.asked_at,
        "expires_ts": waiting.expires_at,
    }
    if isinstance(asked, str):
        nothing: dict[str, Any] = {
            "reasoning": "",
            "risk": "",
            "classification": "",
            "tier": None,
            "form": None,
            "times": (),
        }
        return Asked(kind="question", lines=(asked,), answers=[WORDS], **nothing, **about)
    answers = ["approve", "deny"]
    answers += ["each"] if asked.kind == "plan" else []
    answers += ["session"] if asked.session else []
    answers += ["form"] if asked.form is not None else []
    of_commands: dict[str, Any] = {
        name: getattr(asked, name) for name in ("kind", "lines", "reasoning", "risk", "tier", "form", "times")
    }
    return Asked(answers=answers, classification="RISKY", **of_commands, **about)
