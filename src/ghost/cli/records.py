"""`ghost sessions`, `ghost audit show`, `verify` and `export`. Nothing of a session is changed."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from ghost import __version__
from ghost.agent import Check, Evidence, load_session, tag_of, verify_session
from ghost.cli.wiring import load_settings, open_workspace, to_stdout, workspace_of
from ghost.cli.words import plain
from ghost.errors import RecordError, SessionError


def list_sessions(workspace_option: Path | None, *, as_json: bool) -> None:
    workspace = open_workspace(workspace_option, load_settings())
    rows: list[dict[str, Any]] = []
    for session_id in workspace.session_ids():
        try:
            session, _ = load_session(workspace.find(session_id))
        except SessionError as broken:
            rows.append({"session_id": session_id, "state": "unreadable", "problem": str(broken)})
            continue
        rows.append(
            {
                "session_id": session.session_id,
                "created_at": session.created_at,
                "brain": session.model,
                "turns": session.turn_count,
                "state": "finished" if session.rca_report_path else "can be resumed",
                "report": session.rca_report_path,
            }
        )
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    if not rows:
        print(f"No sessions in {workspace.root}. Start one: ghost investigate --lab blocked-port")
        return
    table = Table("Session", "Created", "Turns", "State", "Report", box=None, pad_edge=False)
    for row in rows:
        cells = (row["session_id"], row.get("created_at"), row.get("turns"), row["state"], row.get("report"))
        table.add_row(*(Text(plain(str(cell or ""))) for cell in cells))
    to_stdout().print(table)


def show(session_id: str, workspace_option: Path | None, *, as_json: bool) -> None:
    workspace, path = workspace_of(session_id, workspace_option, load_settings())
    session, _ = load_session(path)
    evidence = Evidence(session.paths(workspace.root).shell_audit)
    if as_json:
        print(json.dumps(list(evidence.values()), ensure_ascii=False, indent=2))
        return
    for record in evidence.values():
        tag = tag_of(record)
        decided = record.get("action") or record.get("error") or "-"
        exit_code = record.get("exit_code")
        print(
            f"{record['audit_id']}  {tag.context} {record.get('classification')}/{decided}"
            f"{'' if exit_code is None else f'  exit {exit_code}'}"
        )
        print(f"    $ {plain(str(record.get('modified_command') or record.get('command')))}")
        print(f"    why: {plain(str(record.get('reasoning')))}")
    for number in evidence.broken_lines:
        print(f"line {number} cannot be read")
    print(f"{len(evidence)} records. Check them: ghost audit verify {session_id}")


def export(session_id: str, target: Path | None, workspace_option: Path | None, *, as_json: bool) -> int:
    """One file that holds all that a session put on record, and whether it holds. Exit status as of `verify`."""
    workspace, path = workspace_of(session_id, workspace_option, load_settings())
    session, checksum_holds = load_session(path)
    paths = session.paths(workspace.root)
    checks = verify_session(session, paths, checksum_holds=checksum_holds)
    recorded = (path, paths.shell_audit, paths.tasks, paths.turns, paths.report, paths.report_json)
    contents = {file.name: file.read_bytes() for file in recorded if file.is_file()}
    ok = all(check.ok for check in checks)
    verification = {"session_id": session_id, "ok": ok, "checks": _listed(checks)}
    contents["verification.json"] = _document(verification)
    manifest = {
        "session_id": session_id,
        "ghost_version": __version__,
        "files": {
            name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in contents.items()
        },
    }
    target = target or Path(f"ghost_export_{session_id}.zip")
    _write_new(target, {"manifest.json": _document(manifest), **contents})
    if as_json:
        print(json.dumps({"path": str(target), "verified": ok, **manifest}, indent=2))
    else:
        print(f"{target}: {len(contents)} files of {session_id}, with their SHA-256 in manifest.json")
        if not ok:
            print(f"NOT trustworthy: see verification.json, or ghost audit verify {session_id}")
    return 0 if ok else 1


_EARLIEST = (1980, 1, 1, 0, 0, 0)  # that a zip can state: the same session makes the same file


def _write_new(target: Path, contents: dict[str, bytes]) -> None:
    """Writes a zip that was not there before, readable by its owner only."""
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as exists:
        raise RecordError(
            f"{target} is there already and is not overwritten: name another file with --output"
        ) from exists
    except OSError as error:
        raise RecordError(f"cannot write {target}: {error.strerror}: name another file with --output") from error
    with os.fdopen(descriptor, "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, _EARLIEST)
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)


def _document(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def _listed(checks: list[Check]) -> list[dict[str, Any]]:
    return [{"name": c.name, "ok": c.ok, "detail": c.detail, "problems": list(c.problems)} for c in checks]


def check(session_id: str, workspace_option: Path | None, *, as_json: bool) -> int:
    """Exit status 0 where everything holds, 1 where not."""
    workspace, path = workspace_of(session_id, workspace_option, load_settings())
    session, checksum_holds = load_session(path)
    checks = verify_session(session, session.paths(workspace.root), checksum_holds=checksum_holds)
    ok = all(check.ok for check in checks)
    if as_json:
        print(json.dumps({"session_id": session_id, "ok": ok, "checks": _listed(checks)}, indent=2))
        return 0 if ok else 1
    for item in checks:
        print(f"{'OK  ' if item.ok else 'FAIL'}  {item.name}: {plain(item.detail)}")
        for problem in item.problems:
            print(f"        {plain(problem)}")
    print(f"{session_id}: {'every record and citation holds' if ok else 'NOT trustworthy: see FAIL above'}")
    return 0 if ok else 1
