"""`GET /investigations`, one of them, and its report. Read only.

Texts may be external; paths are built from validated ids, never from file content.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from ghost.agent import Evidence, Session, SessionPaths, tag_of
from ghost.errors import RecordError
from ghost.records import read_json, read_lines, read_valid_records
from ghost.report import page_of, path_picture
from ghost.server.dependencies import Services, services
from ghost.server.openapi import errors
from ghost.server.problems import Refused
from ghost.server.request_limits import MAX_PAGE_BYTES
from ghost.server.sessions import InvestigationRow, OfFile, whole

router = APIRouter(tags=["investigations"])

SessionId = Annotated[
    str, Path(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", examples=["ghost_20250115_143200"])
]
TaskId = Annotated[
    str,
    Path(
        min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", examples=["ghost_vm-a_20250115T143200"]
    ),
]
AuditId = Annotated[
    str,
    Path(min_length=1, max_length=120, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", examples=["ghost_20250115_143200_003"]),
]


class Investigations(BaseModel):
    investigations: list[InvestigationRow] = Field(description="Newest first.")
    count: int = Field(description="Total number.")


class HypothesisNow(OfFile):
    id: str
    description: str
    refuted_by: str = Field(description="The observation that would refute the hypothesis.")
    state: str = Field(examples=["CONFIRMED"])
    active: bool = Field(description="True while it is being tested.")
    denial_count: int
    audit_ids: list[str] = Field(description="The audit records that support the resolution.")
    created_at: str
    resolved_at: str | None


class EvidenceRow(OfFile):
    """A record of the shell audit: the command and its rank. Output is processed and truncated."""

    audit_id: str
    timestamp: str
    command: str
    reasoning: str
    context: Literal["[LOCAL]", "[CLOUD]"]
    tier: int = Field(description="1 capture, 2 Azure API, 3 active probe, 4 host state: lower is more reliable.")
    classification: str
    status: str = Field(examples=["completed"])
    action: str | None
    error: str | None
    denial_reason: str | None
    exit_code: int | None
    duration_seconds: float | None
    output_summary: str
    output_bytes: int | None = Field(
        description="Size of the whole output, where the record holds a part and it is kept."
    )


class CaptureRow(OfFile):
    task_id: str
    state: str
    target: str | None
    outcome: str | None
    cleanup_status: str | None
    page: str | None = Field(description="Name of its page, if any: captures that were compared share one.")


class Investigation(BaseModel):
    investigation: InvestigationRow
    hypotheses: list[HypothesisNow]
    evidence: list[EvidenceRow] = Field(description="In order of time.")
    evidence_count: int = Field(description="Total number of records.")
    unreadable_lines: list[int] = Field(description="Unreadable lines of the audit.")
    captures: list[CaptureRow]


class ReportFormat(StrEnum):
    JSON = "json"
    MARKDOWN = "markdown"


@router.get("/investigations", summary="Investigations of the workspace", responses=errors())
def list_investigations(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
) -> Investigations:
    rows = services(request).sessions.rows()
    return Investigations(investigations=rows[offset : offset + limit], count=len(rows))


@router.get("/investigations/{session_id}", summary="One investigation", responses=errors(404))
def get_investigation(
    request: Request,
    session_id: SessionId,
    limit: Annotated[int, Query(ge=1, le=2000, description="Records of evidence.")] = 500,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
) -> Investigation:
    """Return hypotheses with their states, commands in order of time, and captures."""
    to = services(request)
    session, paths = _found(to, session_id)
    row = to.sessions.row(session_id)
    if row is None:
        raise _unknown(session_id)
    evidence = Evidence(paths.shell_audit)
    page = list(evidence.values())[offset : offset + limit]
    return Investigation(
        investigation=row,
        hypotheses=list(_hypotheses(session)) if session else [],
        evidence=[_evidence_row(record) for record in page],
        evidence_count=len(evidence),
        unreadable_lines=evidence.broken_lines[:100],
        captures=_captures(to, paths),
    )


@router.get(
    "/investigations/{session_id}/report",
    summary="Its report",
    response_class=Response,
    responses={
        200: {
            "description": "The root-cause report as written.",
            "content": {
                "application/json": {"schema": {"type": "object"}},
                "text/markdown": {"schema": {"type": "string"}},
            },
        },
        **errors(404),
    },
)
def get_report(
    request: Request,
    session_id: SessionId,
    format: Annotated[ReportFormat, Query(description="Two forms of one report.")] = ReportFormat.JSON,
) -> Response:
    _, paths = _found(services(request), session_id)
    try:
        if format is ReportFormat.JSON:
            return Response(_as_json(paths.report_json), media_type="application/json")
        if paths.report.is_file():
            return Response(b"\n".join(read_lines(paths.report)) + b"\n", media_type="text/markdown; charset=utf-8")
    except FileNotFoundError:
        pass
    raise Refused(404, f"The investigation {session_id} has no report yet. One is written when it concludes.")


@router.get(
    "/investigations/{session_id}/path.svg",
    summary="The path of its traffic as a picture",
    response_class=Response,
    responses={
        200: {"description": "A picture.", "content": {"image/svg+xml": {"schema": {"type": "string"}}}},
        **errors(404),
    },
)
def get_path_picture(
    request: Request,
    session_id: SessionId,
    n: Annotated[int, Query(ge=0, le=9, description="Of several paths, which one, from 0.")] = 0,
) -> Response:
    """Return one of the paths in the report, hop by hop, with the fault in its place."""
    _, paths = _found(services(request), session_id)
    try:
        report = read_json(paths.report_json)
        found = report["path"][n]
        if isinstance(found, dict):
            return Response(path_picture(found), media_type="image/svg+xml")
    except (FileNotFoundError, LookupError, TypeError):
        pass
    raise Refused(404, f"The report of {session_id} has no path {n}. GET /investigations/{session_id} shows its state.")


@router.get(
    "/investigations/{session_id}/captures/{task_id}/page",
    summary="The page of a capture, with its plots",
    response_class=HTMLResponse,
    responses=errors(404),
)
def get_capture_page(request: Request, session_id: SessionId, task_id: TaskId) -> HTMLResponse:
    """Return the page that was written beside the capture's report: a file of the workspace, and no record.

    A private session has none here: its pages hold real names.
    """
    to = services(request)
    _, paths = _found(to, session_id)
    task = next((record for record in _last_records(paths) if record["task_id"] == task_id), {})
    if (page := _page(to, paths, task)) is None:
        raise Refused(404, f"The capture {task_id!r} of {session_id} has no page here.")
    return HTMLResponse(page.read_bytes())


@router.get(
    "/investigations/{session_id}/evidence/{audit_id}/output",
    summary="The whole output of a record",
    response_class=PlainTextResponse,
    responses=errors(404),
)
def get_output(request: Request, session_id: SessionId, audit_id: AuditId) -> PlainTextResponse:
    """Return all that the command printed, redacted, after its SHA-256 was checked: at most 16 MiB."""
    _, paths = _found(services(request), session_id)
    evidence = Evidence(paths.shell_audit)
    if audit_id not in evidence:
        raise Refused(404, f"The investigation {session_id} has no record {audit_id!r}.")
    try:
        return PlainTextResponse(whole(evidence.whole_output(audit_id)))
    except RecordError as error:
        raise Refused(404, f"{str(error)[:1].upper()}{str(error)[1:]}.") from error


def _as_json(report: FilePath) -> bytes:
    """Parse JSON strictly. Raises `RecordError` for `NaN`, `Infinity`, and excessive nesting, which Python accepts."""
    try:
        return json.dumps(read_json(report), allow_nan=False).encode("ascii")
    except (ValueError, RecursionError) as error:
        raise RecordError(f"cannot show {report} ({error}): restore it from a copy") from error


def _found(to: Services, session_id: str) -> tuple[Session | None, SessionPaths]:
    found = to.sessions.find(session_id)
    if found is None:
        raise _unknown(session_id)
    return found


def _unknown(session_id: str) -> Refused:
    return Refused(404, f"There is no investigation {session_id!r} in this workspace. GET /investigations lists them.")


def _hypotheses(session: Session) -> Iterable[HypothesisNow]:
    for hypothesis in session.hypothesis_log:
        yield HypothesisNow(
            active=hypothesis.id in session.active_hypothesis_ids,
            **hypothesis.model_dump(mode="json", include=set(HypothesisNow.model_fields)),
        )


def _evidence_row(record: Mapping[str, Any]) -> EvidenceRow:
    """Return a row from a record that may have been modified: fields of another type are omitted."""
    tag = tag_of(record)
    return EvidenceRow(
        audit_id=str(record["audit_id"]),
        timestamp=_text(record, "timestamp") or "",
        command=_text(record, "modified_command") or _text(record, "command") or "",
        reasoning=_text(record, "reasoning") or "",
        context=tag.context,
        tier=tag.tier,
        classification=_text(record, "classification") or "",
        status=_text(record, "status") or "",
        action=_text(record, "action"),
        error=_text(record, "error"),
        denial_reason=_text(record, "denial_reason"),
        exit_code=_number(record.get("exit_code"), int),
        duration_seconds=_number(record.get("duration_seconds"), int | float),
        output_summary=(_text(record, "output_summary") or "")[:1000],
        output_bytes=_number(record.get("output_bytes"), int),
    )


def _text(record: Mapping[str, Any], name: str) -> str | None:
    value = record.get(name)
    return value if isinstance(value, str) else None


def _number(value: Any, kind: Any) -> Any:
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def _captures(to: Services, paths: SessionPaths) -> list[CaptureRow]:
    return [
        CaptureRow(
            task_id=record["task_id"],
            state=_text(record, "state") or "",
            target=_text(record, "target"),
            outcome=_text(record, "outcome"),
            cleanup_status=_text(record, "cleanup_status"),
            page=page.name if (page := _page(to, paths, record)) else None,
        )
        for record in _last_records(paths)
    ]


def _page(to: Services, paths: SessionPaths, task: Mapping[str, Any]) -> FilePath | None:
    """Return the page beside the report of a capture; None unless it lies in the directory of captures itself."""
    report = _text(task, "report_path")
    if not report or paths.anonymization_map.exists():
        return None
    try:
        page = page_of(report)
        inside = page.resolve() == to.settings.capture_dir.resolve() / page.name
        return page if inside and page.is_file() and page.stat().st_size <= MAX_PAGE_BYTES else None
    except (OSError, ValueError):  # of a name that no file may have
        return None


def _last_records(paths: SessionPaths) -> list[dict[str, Any]]:
    """Return the last record of each capture task."""
    try:
        records, _ = read_valid_records(paths.tasks)
    except RecordError:
        return []
    return list({task_id: record for record in records if (task_id := _text(record, "task_id"))}.values())
