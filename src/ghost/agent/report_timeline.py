"""The timeline of a report, from the records only: changes in Azure, captures and findings, and what a person decided.

All times are of the network's clock. Azure's is everybody's; a lab's runs faster than that of the commands' records,
which are converted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from ghost.agent.audit_evidence import CAPTURE, Evidence, tag_of
from ghost.agent.captured_findings import captures_read, cited_in, place_of_capture
from ghost.agent.facts import Proofs
from ghost.agent.facts.recorded_facts import argv_in
from ghost.agent.session import Session
from ghost.net import Flow, is_change, key, met, name_of, walk
from ghost.records import isoformat
from ghost.text import one_line, plural

MAX_ROWS: Final = 15
MAX_CHANGES: Final = 6
_VERBS: Final = {"write": "changed", "delete": "deleted"}
_USER: Final = re.compile(r"(?<=^.).*(?=@)")
_SAID: Final = {
    "user_approved": "Ran, approved",
    "user_modified": "Ran, changed and approved",
    "user_denied": "Denied",
    "user_abandoned": "Not answered",
}

Kind = Literal["change", "finding", "command", "investigation"]


@dataclass(frozen=True)
class _Row:
    time: datetime
    what: str
    kind: Kind
    audit_ids: tuple[str, ...] = ()
    weight: int = 0
    """The lighter is left out first, where there are too many."""


def timeline_of(
    report: Mapping[str, Any], session: Session, evidence: Evidence, proofs: Proofs, now: datetime
) -> list[dict[str, Any]]:
    """Return at most `MAX_ROWS` rows in order of time. `report`: its causes, path and captures, with real values."""
    rows = [
        *_investigation(report, session, now),
        *_changes(report, evidence, proofs),
        *_captured(report, evidence),
        *_decided(session, evidence),
    ]
    kept = sorted(rows, key=lambda row: row.weight, reverse=True)[:MAX_ROWS]
    return [
        {"time": isoformat(row.time), "what": row.what, "kind": row.kind, "audit_ids": list(row.audit_ids)}
        for row in sorted(kept, key=lambda row: row.time)
    ]


def _investigation(report: Mapping[str, Any], session: Session, now: datetime) -> Iterator[_Row]:
    if (began := _moment(session.created_at)) is not None:
        yield _Row(session.on_network_clock(began), "The investigation started.", "investigation", weight=9)
    outcome = str(report["outcome"]).replace("_", " ")
    told = f"The investigation concluded: {outcome}, confidence {report['confidence']}."
    yield _Row(session.on_network_clock(now), told, "investigation", weight=9)


# Azure's activity log


def _changes(report: Mapping[str, Any], evidence: Evidence, proofs: Proofs) -> Iterator[_Row]:
    """Yield the last change of each kind to what the path meets or a cause is at, the newest first."""
    path = frozenset(key(each) for each in _met(report, proofs) if "/providers/" in each.casefold())
    has_run_commands = any("run-command invoke" in str(record.get("command")) for record in evidence.values())
    newest: dict[tuple[str, str], _Row] = {}
    for audit_id, entry in _logged(evidence):
        time, resource, operation = (str(entry.get(name) or "") for name in ("time", "resource", "operation"))
        own = has_run_commands and "/runcommand/" in operation.casefold()
        moment = _moment(time)
        if moment is not None and is_change(entry, path) and not own:
            row = _Row(moment, _changed(resource, operation, str(entry.get("caller") or "")), "change", (audit_id,), 6)
            place = key(resource), operation.casefold()
            newest[place] = max(newest.get(place, row), row, key=lambda each: each.time)
    yield from sorted(newest.values(), key=lambda row: row.time, reverse=True)[:MAX_CHANGES]


def _met(report: Mapping[str, Any], proofs: Proofs) -> Iterator[str]:
    yield from (str(cause["resource"]) for cause in report["causes"] if cause["supported"])
    for path in report["path"]:
        ends = path["flow"]
        flow = Flow(ends["protocol"], ends["source"], None, ends["destination"], ends["port"])
        yield from (hop["resource"] for hop in path["hops"])
        yield from met(proofs.network, walk(proofs.network, flow))


def _logged(evidence: Evidence) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the entries of changes that succeeded: as Azure lists them, or as the offline brain asks for them."""
    for audit_id, record in evidence.items():
        if argv_in(record)[:4] != ["az", "monitor", "activity-log", "list"]:
            continue
        told = _json(evidence, audit_id)
        for entry in told.get("changes") or () if isinstance(told, dict) else told if isinstance(told, list) else ():
            if not isinstance(entry, dict):
                continue
            if "eventTimestamp" not in entry:
                yield audit_id, entry
            elif _value(entry.get("status")) == "Succeeded":
                operation = _value(entry.get("operationName"))
                named = {"operation": operation, "resource": entry.get("resourceId"), "time": entry["eventTimestamp"]}
                yield audit_id, {**named, "caller": entry.get("caller")}


def _value(told: Any) -> str:
    return str(told.get("value") if isinstance(told, dict) else told)


def _changed(resource: str, operation: str, caller: str) -> str:
    *kinds, verb = operation.split("/")
    what = _VERBS.get(verb.casefold()) or f"asked for {kinds.pop()} of"
    owner = resource.rpartition("/providers/")[2].split("/")
    of = f" of {owner[2]}" if len(owner) > 3 else ""
    who = _USER.sub("...", caller) or "An unknown caller"
    return one_line(f"{who} {what} {kinds[-1]} {name_of(resource)}{of}.", 200)


# Captures


def _captured(report: Mapping[str, Any], evidence: Evidence) -> Iterator[_Row]:
    """Yield when each capture began and ended, and when what causes cite of it was seen first and last."""
    for audit_id, told in captures_read(evidence):
        capture, where = told["capture"], place_of_capture(report, told)
        packets = plural(int(capture.get("packets") or 0), "packet")
        yield from _rows(capture, "first_utc", f"The capture at {where} begins.", (audit_id,))
        yield from _rows(capture, "last_utc", f"The capture at {where} ends, with {packets}.", (audit_id,))
        for finding in cited_in(report, audit_id, told):
            title = one_line(str(finding.get("title")), 160)
            yield from _rows(finding, "first_utc", f"Seen first at {where}: {title}.", (audit_id,), 8)
            yield from _rows(finding, "last_utc", f"Seen last at {where}: {title}.", (audit_id,), 8)


def _rows(told: Mapping[str, Any], name: str, what: str, audit_ids: tuple[str, ...], weight: int = 7) -> Iterator[_Row]:
    if (moment := _moment(str(told.get(name)))) is not None:
        yield _Row(moment, what, "finding", audit_ids, weight)


# Commands


def _decided(session: Session, evidence: Evidence) -> Iterator[_Row]:
    """Yield the commands that a person was asked about."""
    for audit_id, record in evidence.items():
        said, moment = _SAID.get(str(record.get("action"))), _moment(str(record.get("timestamp")))
        if said is None or moment is None or tag_of(record) == CAPTURE:  # reading what a capture showed is no event
            continue
        denied = record.get("status") == "denied"
        why = one_line(str(record.get("denial_reason") or ""), 100)
        what = f"{said}: {_brief(argv_in(record), evidence.restored)}{f' ({why})' if denied and why else ''}."
        weight = 5 if denied else 3
        yield _Row(session.on_network_clock(moment), what, "command", (audit_id,), weight)


def _brief(argv: Iterable[str], real: Callable[[str], str]) -> str:
    """Return what a command does and to what: its words up to the first option, and the name that it gives."""
    words = [real(word) for word in argv]
    options = [n for n, word in enumerate(words) if word.startswith("-")]
    named = next((words[n + 1] for n in options if words[n] in ("-n", "--name") and n + 1 < len(words)), "")
    doing = words[: options[0]] if options else words
    return one_line(" ".join([*(name_of(word) for word in doing), *([named] if named else [])]), 120)


def _json(evidence: Evidence, audit_id: str) -> Any:
    try:
        return json.loads(evidence.real_output(audit_id) or "") if evidence[audit_id].get("exit_code") == 0 else None
    except (ValueError, RecursionError):
        return None


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
