"""`GET /interrupts`, closed ones, and answers: questions to a person."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from ghost.mind import MissingFields, QueryStatus
from ghost.mind import Query as Question
from ghost.server.dependencies import Services, services
from ghost.server.openapi import errors
from ghost.server.problems import Refused
from ghost.server.request_limits import ANSWER_CHARACTERS, ID_CHARACTERS

router = APIRouter(tags=["interrupts"])


class OpenQuestion(BaseModel):
    id: str = Field(examples=["q:1732264000000"])
    question: str
    rationale: str
    required_fields: tuple[str, ...] = Field(description="Fields that an answer must contain.")
    status: QueryStatus
    created_ts: float = Field(description="Epoch seconds.")
    expires_ts: float = Field(description="Epoch seconds of expiry.")


class OpenQuestions(BaseModel):
    interrupts: list[OpenQuestion] = Field(description="Oldest first.")
    count: int


class ClosedQuestion(OpenQuestion):
    answer: str | None = Field(description="Without secrets; null if the question expired.")
    answered_ts: float | None = Field(description="Epoch seconds.")


class ClosedQuestions(BaseModel):
    interrupts: list[ClosedQuestion] = Field(description="Most recently closed first.")
    count: int = Field(description="Total number.")


class Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=ANSWER_CHARACTERS, pattern=r"\S", examples=["It is 10.2.0.0/16"])


class Answered(BaseModel):
    id: str
    status: QueryStatus = Field(description="`answered`: the answer is a stimulus of the next cycle.")


@router.get("/interrupts", summary="Open questions", responses=errors(503))
def list_open(request: Request) -> OpenQuestions:
    found = services(request).engine.interrupts.list_open()
    questions = [OpenQuestion(**{name: getattr(query, name) for name in OpenQuestion.model_fields}) for query in found]
    return OpenQuestions(interrupts=questions, count=len(questions))


@router.get("/interrupts/closed", summary="Questions that were answered, withdrawn or expired", responses=errors(503))
def list_closed(request: Request, limit: Annotated[int, Query(ge=1, le=200)] = 50) -> ClosedQuestions:
    now = services(request).now()
    closed = [
        query if query.status is not QueryStatus.OPEN else query.model_copy(update={"status": QueryStatus.EXPIRED})
        for query in services(request).engine.store.queries()
        if query.status is not QueryStatus.OPEN or query.expires_ts <= now
    ]
    closed.sort(key=lambda query: (query.answered_ts or query.expires_ts, query.id), reverse=True)
    questions = [
        ClosedQuestion(**{name: getattr(each, name) for name in ClosedQuestion.model_fields}) for each in closed
    ]
    return ClosedQuestions(interrupts=questions[:limit], count=len(questions))


@router.post("/interrupts/answer", summary="Answer a question", responses=errors(404, 409, 503))
def answer(
    request: Request,
    qid: Annotated[str, Query(min_length=1, max_length=ID_CHARACTERS, description="Its id.", examples=["q:123"])],
    text: Annotated[str, Query(min_length=1, max_length=ANSWER_CHARACTERS, pattern=r"\S", description="The answer.")],
) -> Answered:
    """Answer a question; the answer reaches the next cycle. Send long or sensitive answers in a body, see below."""
    return _answer(services(request), qid, text)


@router.post(
    "/interrupts/{qid}/answer", summary="Answer a question, in a body", responses=errors(404, 409, 413, 415, 503)
)
def answer_in_body(
    request: Request, qid: Annotated[str, Path(min_length=1, max_length=ID_CHARACTERS)], body: Answer
) -> Answered:
    return _answer(services(request), qid, body.text)


def _answer(to: Services, qid: str, text: str) -> Answered:
    try:
        answered = to.engine.interrupts.answer(qid, text)
    except MissingFields as lacking:
        raise Refused(
            422, str(lacking), kind="urn:ghost:problem:missing-fields", extension={"missing": list(lacking.fields)}
        ) from lacking
    if answered:
        return Answered(id=qid, status=QueryStatus.ANSWERED)
    query: Question | None = to.engine.interrupts.get(qid)
    if query is None:
        raise Refused(404, f"There is no question {qid!r}. GET /interrupts lists those that are open.")
    was = "expired" if query.status is QueryStatus.OPEN else query.status.value
    raise Refused(409, f"The question {qid!r} is {was} already.")
