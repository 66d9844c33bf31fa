"""The tools: their arguments, what they do, and what they tell.

Each answers a `dict` with a `status`: `ok`, or `refused`, `failed` or `busy` with the reason. What a tool cannot be
asked is a `GhostError`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, Final, Literal

import anyio.from_thread
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ghost.agent import reads_through
from ghost.errors import UsageError
from ghost.mcp.connection import Connection, Tell
from ghost.mcp.workspace_records import record_of, records_of
from ghost.mind import opened_memory, recall
from ghost.net import (
    ACTIVITY_LOG,
    CHANGE_FORMS,
    MAX_EVENTS,
    NOT_SHOWN,
    Answer,
    Reach,
    ReachQuestion,
    Read,
    Walk,
    described_change,
    key,
    met,
    newest_changes,
    reach_of,
)
from ghost.policy import load_policy
from ghost.shell import whole_output
from ghost.text import one_line, visible

REFUSED: Final = ("refused", "failed", "busy")
MAX_PARTS: Final = 60
MAX_CHANGES: Final = 60
MAX_REASONS: Final = 3
HINTS_ONLY: Final = "Hints from earlier investigations, never evidence: the network may differ now."


@dataclass(frozen=True)
class Call:
    """What a tool works with. `client` asks."""

    connection: Connection
    client: str
    tell: Tell

    def because(self, reason: str) -> str:
        """Return the reasoning of a command for the record."""
        return f"{self.client}: {reason}"


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)


def _text(description: str, longest: int = 200, **limits: Any) -> Any:
    return Field(max_length=longest, description=description, **limits)


Protocol = Annotated[
    Literal["tcp", "udp", "icmp"],
    BeforeValidator(lambda given: given.casefold() if isinstance(given, str) else given),  # answers have Azure's `Tcp`
]


class FlowArguments(Arguments):
    source: str = _text("The sender: a machine, an interface or a private address.", min_length=1)
    destination: str = _text("A machine, an interface, an address or a DNS name.", min_length=1)
    port: int | None = Field(None, ge=1, le=65535, description="The destination port; every port if left out.")
    protocol: Protocol = "tcp"


class ReachArguments(FlowArguments):
    source: str = _text("The sender: a machine, an interface or a private address; `any` with from_all.", min_length=1)
    assume: list[str] = Field(
        [],
        max_length=20,
        description=f"Walk as if this were changed. Nothing is. Each is one of: {'; '.join(CHANGE_FORMS)}.",
    )
    from_all: bool = Field(False, description="From every source that could send to the destination, not `source`.")


class WhatChangedArguments(Arguments):
    source: str = _text("With a destination: only changes on the path between the two.", default="")
    destination: str = _text("See source.", default="")
    port: int | None = Field(None, ge=1, le=65535, description="The destination port.")
    protocol: Protocol = "tcp"


class InvestigateArguments(Arguments):
    symptom: str = _text("What fails, in words: who cannot reach whom, on which port, since when.", 4000, min_length=1)
    source: str = _text("The sender, if it is known.", default="")
    destination: str = _text("The destination, if it is known.", default="")
    port: int | None = Field(None, ge=1, le=65535, description="The destination port, if it is known.")
    protocol: Protocol | None = None


class ShellReadArguments(Arguments):
    command: str = _text("One command, such as `az network nic list -o json` or `dig example.com`.", 8000, min_length=1)
    reason: str = _text("Why it is run, for the record.", 1000, min_length=1)


class PcapFindingsArguments(Arguments):
    capture: str = _text("A capture of the workspace by its name, or one that is allowed by its path.", 1000)


class PcapCompareArguments(Arguments):
    baseline: str = _text("A capture, as in pcap_findings: before, or one end.", 1000)
    current: str = _text("A capture: after, or the other end.", 1000)
    ends: bool = Field(False, description="The captures are the two ends of one path.")


class RecallArguments(Arguments):
    symptom: str = _text("What fails, in words.", 4000, min_length=1)


class AuditShowArguments(Arguments):
    session: str = _text(
        "The id of a session, its unique beginning, or `last` for the newest investigation.", min_length=1
    )
    record: int | None = Field(None, ge=1, description="The number of a record, to read it with its output.")


def reach(call: Call, asked: ReachArguments) -> dict[str, Any]:
    from_all = asked.from_all or asked.source.casefold() == "any"
    question = ReachQuestion(asked.source, asked.destination, asked.port, asked.protocol, tuple(asked.assume), from_all)
    found = _walked(call, question)
    told = {"status": "ok", "network": call.connection.network, "assumed": list(found.assumed)}
    if found.of:
        rows = [
            {found.of: part.of[:MAX_PARTS], "outcome": part.walk.outcome, "why": _why(part.walk)}
            for part in found.parts[:MAX_PARTS]
        ]
        left_out = len(found.parts) - len(rows)
        return {**told, "parts": rows, **({"left_out": left_out} if left_out else {}), "not_shown": NOT_SHOWN}
    (walked,) = found.as_dicts()
    walked["hops"] = [{name: value for name, value in hop.items() if value} for hop in walked["hops"]]
    return {**told, "why": _why(found.walks[0]), **walked}


def _walked(call: Call, question: ReachQuestion) -> Reach:
    question.checked()
    read = reads_through(call.connection, call.because(str(question)))

    def execute(each: Read) -> Answer:
        anyio.from_thread.check_cancelled()
        call.tell(f"reading {each.missing}")
        return read(each)

    return reach_of(question, execute)


def _why(walked: Walk) -> str:
    if walked.blocker is not None:
        return walked.blocker.reason
    unknown = dict.fromkeys(hop.reason for hop in walked.hops if hop.verdict == "unknown")
    return "; ".join(list(unknown)[:MAX_REASONS])


def what_changed(call: Call, asked: WhatChangedArguments) -> dict[str, Any]:
    ends = [end for end in (asked.source, asked.destination) if end]
    if len(ends) == 1 or (asked.port and not ends):
        raise UsageError("changes on a path need both of its ends: give source and destination, or neither, nor a port")
    path = None
    if asked.source:
        question = ReachQuestion(asked.source, asked.destination, asked.port, asked.protocol)
        found = _walked(call, question)
        seen = {each for walked in found.walks for each in met(found.network, walked)}
        path = frozenset(key(each) for each in seen if "/providers/" in each.casefold())
    response = call.connection.run(ACTIVITY_LOG, call.because("changes of the last 24 hours"))
    if (refused := _not_done(response)) is not None:
        return refused
    told = json.loads(whole_output(response))
    changes = newest_changes((row for row in told["changes"] if isinstance(row, dict)), path)
    rows = [{"what": described_change(row), "resource": row["resource"]} for row in changes[:MAX_CHANGES]]
    return {
        "status": "ok",
        "hours": 24,
        "changes": rows,
        "left_out": len(changes) - len(rows),
        "log_is_whole": told["entries"] < MAX_EVENTS,
        "audit_id": response["audit_id"],
    }


def shell_read(call: Call, asked: ShellReadArguments) -> dict[str, Any]:
    request = {"command": asked.command, "reasoning": call.because(asked.reason)}
    response = call.connection.execute(request)
    told = {name: response[name] for name in ("classification", "exit_code", "output", "stderr", "audit_id")}
    shown = {"shown_in_part": True} if response["output_metadata"]["truncation_applied"] else {}
    return _not_run(response) or {"status": "ok", **told, **shown}


def _not_run(response: dict[str, Any]) -> dict[str, Any] | None:
    """Return why a command did not complete; None if it did."""
    if response["status"] == "completed":
        return None
    ran = response["error"] in ("timeout", "pipe", "redaction_failure")
    why = response["message"] or str(response["error"]).replace("_", " ")
    told = {name: response[name] for name in ("classification", "error", "audit_id")}
    output = {name: response[name] for name in ("output", "stderr") if response[name]}
    return {"status": "failed" if ran else "refused", "reason": why, **told, **output}


def _not_done(response: dict[str, Any]) -> dict[str, Any] | None:
    """Return why a command of a tool's own did not do its work; None if it did."""
    if response["status"] == "completed" and response["exit_code"] != 0:
        words = [line for line in str(response["stderr"] or response["output"]).split("\n") if line.strip()]
        reason = one_line(visible(words[-1]), 500) if words else f"it ended with status {response['exit_code']}"
        return {"status": "failed", "reason": reason, "audit_id": response["audit_id"]}
    return _not_run(response)


def pcap_findings(call: Call, asked: PcapFindingsArguments) -> dict[str, Any]:
    return _analysed(call, asked.capture)


def pcap_compare(call: Call, asked: PcapCompareArguments) -> dict[str, Any]:
    current = str(call.connection.captures.path_of(asked.current))
    return _analysed(call, asked.baseline, "--compare", current, *(["--ends"] if asked.ends else []))


def _analysed(call: Call, capture: str, *options: str) -> dict[str, Any]:
    argv = ("pcap-forensics", str(call.connection.captures.path_of(capture)), *options, "--findings")
    response = call.connection.run(argv, call.because("what the capture shows"))
    done = {"status": "ok", "audit_id": response["audit_id"]}
    return _not_done(response) or {**done, "document": json.loads(whole_output(response))}


def recalled(call: Call, asked: RecallArguments) -> dict[str, Any]:
    settings, network = call.connection.settings, call.connection.network
    if not (settings.database_url or settings.database.exists()):
        return {"status": "ok", "hints": [], "note": "There is no memory in this workspace yet."}
    with opened_memory(settings) as memory:
        hints = recall(memory, asked.symptom, network)
    rows = [
        {
            "memory_id": hint.memory_id,
            "session": hint.session_id,
            "day": datetime.fromtimestamp(hint.created_at, UTC).date().isoformat(),
            "symptom": hint.symptom,
            "conclusion": hint.conclusion,
            "settled_by": hint.settled_by,
            "times": hint.times,
        }
        for hint in hints
    ]
    return {"status": "ok", "hints": rows, "note": HINTS_ONLY if rows else "No earlier investigation is similar."}


def audit_show(call: Call, asked: AuditShowArguments) -> dict[str, Any]:
    workspace = call.connection.workspace
    if asked.record is not None:
        return {"status": "ok", "record": record_of(workspace, asked.session, asked.record)}
    return {"status": "ok", **records_of(workspace, asked.session)}


@dataclass(frozen=True)
class Descriptions:
    """What a client is told: of the server, and of each tool."""

    instructions: str
    tools: dict[str, str]


@cache
def descriptions() -> Descriptions:
    return load_policy(__file__, "descriptions.toml", Descriptions)


@dataclass(frozen=True)
class Tool:
    """`work` runs in a thread; `investigate`, a process, has none."""

    name: str
    arguments: type[Arguments]
    work: Callable[[Call, Any], dict[str, Any]] | None


TOOLS: Final = {
    tool.name: tool
    for tool in (
        Tool("reach", ReachArguments, reach),
        Tool("investigate", InvestigateArguments, None),
        Tool("shell_read", ShellReadArguments, shell_read),
        Tool("pcap_findings", PcapFindingsArguments, pcap_findings),
        Tool("pcap_compare", PcapCompareArguments, pcap_compare),
        Tool("what_changed", WhatChangedArguments, what_changed),
        Tool("recall", RecallArguments, recalled),
        Tool("audit_show", AuditShowArguments, audit_show),
    )
}


def arguments_of(tool: Tool, given: dict[str, Any]) -> Arguments:
    """Return the arguments. Raises `UsageError` naming each that is wrong."""
    try:
        return tool.arguments.model_validate(given)
    except ValidationError as invalid:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))[:80]}: {e['msg'][:200]}" for e in invalid.errors()[:5])
        raise UsageError(f"{tool.name}: {wrong}") from None
