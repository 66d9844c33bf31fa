"""`GET /ltm/search` and `/memories/{memory_id}`: searching, reading and forgetting memories."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from ghost.mind import RANK_CONSTANT, Filter, Memory, MemoryType
from ghost.server.dependencies import Services, services
from ghost.server.openapi import errors
from ghost.server.problems import Refused
from ghost.server.request_limits import ID_CHARACTERS, QUERY_CHARACTERS
from ghost.server.worker_threads import detached

router = APIRouter(tags=["long-term memory"])

MemoryId = Annotated[
    str, Path(min_length=1, max_length=ID_CHARACTERS, pattern=r"^[^\x00-\x1f]+$", examples=["mem:1732264000000"])
]
EpochSeconds = Annotated[float | None, Query(ge=0, le=1e11, allow_inf_nan=False, description="Epoch seconds.")]


Tag = Annotated[str, Field(min_length=1, max_length=64)]


class Mode(StrEnum):
    HYBRID = "hybrid"
    KEYWORD = "keyword"
    VECTOR = "vector"


class RememberedMemory(BaseModel):
    """A memory without its embedding. Its text may be external: data, not evidence."""

    id: str
    type: MemoryType
    content: str
    tags: tuple[str, ...]
    importance: float
    created_at: float = Field(description="Epoch seconds.")
    last_access: float = Field(description="Epoch seconds.")
    embedding_model: str = Field(description="The embedding space of its vector; empty without one.")
    metadata: dict[str, Any] = Field(description="`audit_ids`, `session_id`, `url`, `sources`, ...")

    @classmethod
    def of(cls, memory: Memory) -> RememberedMemory:
        return cls.model_construct(**{name: getattr(memory, name) for name in cls.model_fields})


class Found(BaseModel):
    memory: RememberedMemory
    score: float = Field(description="hybrid: by both (docs/mind.md); vector: similarity; keyword: 1 / (5 + rank).")
    keyword_rank: int | None = Field(description="From 1; null if not found by keywords.")
    vector_rank: int | None = Field(description="From 1; null if not found by similarity.")
    similarity: float | None = Field(description="Cosine; null without an embedding of this space, or by keyword.")


class SearchResult(BaseModel):
    query: str
    mode: Mode
    count: int = Field(description="0: nothing is close.")
    floor: float = Field(description="The cosine that chance gives; less is returned for words of the query alone.")
    hits: list[Found] = Field(description="Best first.")


@router.get("/ltm/search", summary="Search memory", responses=errors(502, 503))
async def search(
    request: Request,
    q: Annotated[str, Query(min_length=1, max_length=QUERY_CHARACTERS, description="Words or a sentence.")],
    k: Annotated[int, Query(ge=1, le=100, description="Maximum number of results.")] = 10,
    mode: Annotated[Mode, Query(description="hybrid combines the other two.")] = Mode.HYBRID,
    type: Annotated[list[MemoryType] | None, Query(max_length=3, description="Any of these types.")] = None,
    tag: Annotated[list[Tag] | None, Query(max_length=8, description="All of these tags.")] = None,
    since: EpochSeconds = None,
    until: EpochSeconds = None,
) -> SearchResult:
    """Search by keywords, by similarity, or both. `since` is inclusive, `until` exclusive."""
    where = Filter(frozenset(type or ()), frozenset(tag or ()), since, until)
    to = services(request)
    hits = await detached(to.searches, "Searches are running", partial(_SEARCHES[mode], to, q, k, where))
    return SearchResult(query=q, mode=mode, count=len(hits), floor=to.engine.ltm.floor, hits=hits)


def _hybrid(to: Services, q: str, k: int, where: Filter) -> list[Found]:
    return [
        Found(
            memory=RememberedMemory.of(hit.memory),
            score=hit.score,
            keyword_rank=hit.keyword_rank,
            vector_rank=hit.vector_rank,
            similarity=hit.similarity,
        )
        for hit in to.engine.ltm.search(q, k, where)
    ]


def _keyword(to: Services, q: str, k: int, where: Filter) -> list[Found]:
    return [
        Found(
            memory=RememberedMemory.of(memory),
            score=1 / (RANK_CONSTANT + rank),
            keyword_rank=rank,
            vector_rank=None,
            similarity=None,
        )
        for rank, memory in enumerate(to.engine.ltm.keyword_search(q, k, where), 1)
    ]


def _vector(to: Services, q: str, k: int, where: Filter) -> list[Found]:
    ltm = to.engine.ltm
    near = ltm.vector_search(to.embeddings.embed([q], "query")[0], k, where)
    return [
        Found(
            memory=RememberedMemory.of(memory),
            score=similarity,
            keyword_rank=None,
            vector_rank=rank,
            similarity=similarity,
        )
        for rank, (memory, similarity) in enumerate(near, 1)
        if similarity > ltm.floor
    ]


_SEARCHES = {Mode.HYBRID: _hybrid, Mode.KEYWORD: _keyword, Mode.VECTOR: _vector}


@router.get("/memories/{memory_id}", summary="One memory", responses=errors(404, 503))
def get_memory(request: Request, memory_id: MemoryId) -> RememberedMemory:
    memory = services(request).engine.ltm.get_memory(memory_id)
    if memory is None:
        raise _unknown(memory_id)
    return RememberedMemory.of(memory)


@router.delete("/memories/{memory_id}", summary="Forget a memory", status_code=204, responses=errors(404, 503))
def forget(request: Request, memory_id: MemoryId) -> Response:
    """Remove a memory from search and file. A summary made from it remains; forget that separately."""
    if not services(request).engine.ltm.forget([memory_id]):
        raise _unknown(memory_id)
    return Response(status_code=204)


def _unknown(memory_id: str) -> Refused:
    return Refused(404, f"There is no memory {memory_id!r}. GET /ltm/search finds ids.")
