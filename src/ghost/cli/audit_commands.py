"""`ghost sessions`, `ghost audit show`, `verify` and `export`.

Nothing of a session is changed, but that a command whose process was ended is put on record as interrupted.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ghost import __version__
from ghost.agent import Check, Evidence, SessionPaths, Workspace, load_session, tag_of
from ghost.cli.session_records import NEEDS, REACH, Recorded, open_workspace, recorded
from ghost.config import Settings
from ghost.errors import RecordError, UsageError
from ghost.records import is_locked, open_regular, read_json, valid_session_id
from ghost.redaction import Placeholders, for_outside
from ghost.shell import SafeExecShell
from ghost.text import visible


def list_sessions(workspace_option: Path | None, *, as_json: bool) -> None:
    workspace = open_workspace(workspace_option, Settings())
    running = is_locked(workspace.root)
    rows = [_row(workspace, session_id, running=running) for session_id in workspace.session_ids()]
    listed = {row["session_id"] for row in rows}
    rows += [
        {"session_id": session_id, "state": "session file missing or damaged: ghost audit show still works"}
        for session_id in workspace.recorded_ids()
        if session_id not in listed
    ]
    commands = list(_single_commands(workspace.audit_dir))
    walks = list(_walks(workspace.audit_dir))
    if as_json:
        print(json.dumps([*rows, *commands, *walks], indent=2, ensure_ascii=False))
        return
    if not rows:
        print(f"No sessions in {workspace.root}. Start one: ghost investigate --lab blocked-port")
    for row in rows:
        report = f"  {row['report']}" if row.get("report") else ""
        print(visible(f"{row['session_id']}  {row.get('turns', 0):>3} turns  {row['state']}{report}"))
    if commands:
        print(f"Single commands of ghost shell run{_count_text(len(commands))}:")
    for row in commands[-LATEST:]:
        print(visible(f"{row['session_id']}  {row['state']}  $ {row['command']}"))
    if walks:
        print(f"Walks of ghost reach{_count_text(len(walks))}:")
    for row in walks[-LATEST:]:
        print(visible(f"{row['session_id']}  {row['reads']:>3} reads  {row['question']}"))


LATEST = 20


def _count_text(count: int) -> str:
    return f", the latest {LATEST} of {count} (all: --json)" if count > LATEST else ""


def _walks(audit_dir: Path) -> Iterator[dict[str, Any]]:
    """Sessions of `ghost reach`, oldest first."""
    for session_id in _ids(audit_dir, REACH):
        audit = SessionPaths(audit_dir, session_id).shell_audit
        records = list(Evidence(audit).values()) if audit.is_file() else []
        first = records[0] if records else {}
        yield {
            "session_id": session_id,
            "created_at": first.get("timestamp"),
            "reads": len(records),
            "question": str(first.get("reasoning", "")).partition(NEEDS)[0],
        }


def _ids(audit_dir: Path, beginning: str) -> list[str]:
    names = [path.name for path in audit_dir.glob(f"shell_audit_{beginning}*")]
    return sorted(filter(valid_session_id, {name.removeprefix("shell_audit_").partition(".")[0] for name in names}))


def _single_commands(audit_dir: Path) -> Iterator[dict[str, Any]]:
    """Recorded and running commands of `ghost shell run`, oldest first."""
    for session_id in _ids(audit_dir, "shell_"):
        paths = SessionPaths(audit_dir, session_id)
        records = list(Evidence(paths.shell_audit).values()) if paths.shell_audit.is_file() else []
        if not records:
            state = "running, or cut off: see ghost audit show" if paths.intent.exists() else "cannot be read"
            yield {"session_id": session_id, "state": state, "command": ""}
        for record in records:
            decided = record.get("action") or record.get("error") or "-"
            exit_code = record.get("exit_code")
            ended = "" if exit_code is None else f"  exit {exit_code}"
            yield {
                "session_id": session_id,
                "created_at": record.get("timestamp"),
                "state": f"{record.get('classification')}/{decided}{ended}",
                "command": _command(record),
            }


def _row(workspace: Workspace, session_id: str, *, running: bool) -> dict[str, Any]:
    path = workspace.find(session_id)
    session, _ = load_session(path)
    state = "finished" if session.rca_report_path else "can be resumed"
    if running and path == workspace.session_file:
        state = "running"
    return {
        "session_id": session.session_id,
        "created_at": session.created_at,
        "brain": session.model,
        "turns": session.turn_count,
        "state": state,
        "report": session.rca_report_path,
    }


def show(session_id: str, workspace_option: Path | None, *, full: str | None, as_json: bool) -> None:
    """List the records of a session, or print the `full` output of one of them."""
    paths = _open_records(session_id, workspace_option).paths
    session_id = paths.session_id
    evidence = Evidence(paths.shell_audit)
    if full is not None:
        text = evidence.whole_output(_audit_id(full, evidence, session_id))
        sys.stdout.write(json.dumps(text) if as_json else visible(text, keep="\n\t"))
        sys.stdout.write("" if text.endswith("\n") and not as_json else "\n")
        return
    if as_json:
        print(json.dumps(list(evidence.values()), ensure_ascii=False, indent=2))
        return
    for record in evidence.values():
        tag = tag_of(record)
        decided = record.get("action") or record.get("error") or "-"
        exit_code = record.get("exit_code")
        ended = "" if exit_code is None else f"  exit {exit_code}"
        print(visible(f"{record['audit_id']}  {tag.context} {record.get('classification')}/{decided}{ended}"))
        print(f"    $ {visible(_command(record))}")
        print(f"    why: {visible(str(record.get('reasoning')))}")
        if record.get("output_sha256"):
            size = f"{record.get('output_bytes') or '?'} bytes"
            print(f"    output: whole in {size}: ghost audit show {session_id} --full {record.get('sequence')}")
        elif record.get("output_truncated"):
            print(f"    output: only a part: {visible(str(record.get('output_missing') or 'the rest was not kept'))}")
        if _is_interrupted(record):
            print(f"    {CUT_OFF}")
    if paths.intent.exists():
        for line in _open_intent(paths.intent):
            print(line)
    for number in evidence.broken_lines:
        print(f"line {number} cannot be read")
    print(f"{len(evidence)} records. Check them: ghost audit verify {session_id}")


def _audit_id(name: str, evidence: Evidence, session_id: str) -> str:
    """The audit id of a record, of which `name` may be the number at its end."""
    audit_id = f"{session_id}_{name:0>3}" if name.isdecimal() else name
    if audit_id not in evidence:
        raise UsageError(f"{session_id} has no record {name!r}: name one as in ghost audit show {session_id}")
    return audit_id


CUT_OFF = "cut off while it ran: what it did, and whether it finished, is not known"


def _open_records(session_id: str, workspace_option: Path | None) -> Recorded:
    """The records of a session, after interrupted commands were recorded."""
    records = recorded(session_id, workspace_option, Settings())
    SafeExecShell.record_interrupted(records.paths.audit_dir)
    return records


def _is_interrupted(record: Mapping[str, Any]) -> bool:
    return record.get("error") == "interrupted"


def _command(record: Mapping[str, Any]) -> str:
    return str(record.get("modified_command") or record.get("command"))


def _open_intent(path: Path) -> Iterator[str]:
    """The intent record of a command that is running or whose end was not recorded."""
    try:
        begun = read_json(path)
    except (FileNotFoundError, RecordError) as error:
        yield f"a command was begun, and which cannot be read: {visible(str(error))}"
        return
    known = begun if isinstance(begun, dict) else {}
    yield f"running, or not to be recorded, since {visible(str(known.get('timestamp')))}: its end is not on record"
    yield f"    $ {visible(_command(known))}"


def export(session_id: str, target: Path | None, workspace_option: Path | None, *, local: bool, as_json: bool) -> int:
    """One file that holds all that a session put on record, and whether it holds. Exit status as of `verify`.

    Unless it stays `local`, tokens that look like secrets have placeholders in it; the check is made before.
    """
    records = _open_records(session_id, workspace_option)
    session_id = records.paths.session_id
    checks = records.checks()
    ok = all(check.ok for check in checks)
    changed: list[str] = []
    files: dict[str, dict[str, Any]] = {}
    manifest = {"session_id": session_id, "ghost_version": __version__, "files": files}

    def contents() -> Iterator[tuple[str, bytes]]:
        placeholders = Placeholders()
        for name, content in _originals(records):
            clean = content if local else _for_outside(name, content, placeholders)
            if clean != content:
                changed.append(name)
            yield name, clean
        if local:  # packets cannot have placeholders
            yield from _captures(records.paths)
        changed.sort()
        verification = {"session_id": session_id, "ok": ok, "checks": _list_of(checks), "with_placeholders": changed}
        yield "verification.json", _document(verification)

    def described() -> Iterator[tuple[str, bytes]]:
        for name, content in contents():
            files[name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            yield name, content
        yield "manifest.json", _document(manifest)

    target = target or Path(f"ghost_export_{session_id}.zip")
    _write_new(target, described())
    if as_json:
        print(json.dumps({"path": str(target), "verified": ok, **manifest}, indent=2))
    else:
        print(f"{target}: {len(files)} files of {session_id}, with their SHA-256 in manifest.json")
        if changed:
            print(
                f"{', '.join(changed)}: tokens that look like secrets have placeholders, so the chain of hashes holds"
                " only here; --local keeps them"
            )
        if not ok:
            print(f"NOT trustworthy: see verification.json, or ghost audit verify {session_id}")
    return 0 if ok else 1


_OUTPUTS = "output/"
_MAX_CAPTURE_BYTES = 64 * 1024 * 1024


def _originals(records: Recorded) -> Iterator[tuple[str, bytes]]:
    """The files of a session by their names in `audit/`; of whole outputs those that hold."""
    paths = records.paths
    head = paths.shell_audit.with_name(f"{paths.shell_audit.name}.head")
    for file in (records.file, paths.shell_audit, head, paths.tasks, paths.turns, paths.report, paths.report_json):
        if file is not None and file.is_file():
            yield file.name, file.read_bytes()
    evidence = Evidence(paths.shell_audit)
    for audit_id, record in evidence.items():
        if record.get("output_sha256"):
            with suppress(RecordError):
                yield f"{_OUTPUTS}{audit_id}.txt", evidence.whole_output(audit_id).encode()


def _captures(paths: SessionPaths) -> Iterator[tuple[str, bytes]]:
    """The captures that the session downloaded and did not remove, none over 64 MiB."""
    commands = [_command(record) for record in Evidence(paths.shell_audit).values()]
    for name in sorted({name for command in commands if (name := _downloaded_file(command))}):
        with suppress(OSError), open_regular(Workspace(paths.audit_dir.parent).capture_dir / name) as file:
            if len(content := file.read(_MAX_CAPTURE_BYTES + 1)) <= _MAX_CAPTURE_BYTES:
                yield f"captures/{name}", content


def _downloaded_file(command: str) -> str | None:
    words = shlex.split(command) if command.startswith("az storage blob download ") else []
    return Path(words[words.index("--file") + 1]).name if "--file" in words[:-1] else None


def _for_outside(name: str, content: bytes, placeholders: Placeholders) -> bytes:
    """A file as it may leave this machine. Hashes and ids stay, so the records still name each other."""
    text = content.decode()
    parts = [text] if name.startswith(_OUTPUTS) else text.splitlines(keepends=True)
    return "".join(for_outside(part, placeholders) for part in parts).encode()


_EARLIEST = (1980, 1, 1, 0, 0, 0)  # that a zip can state: the same session makes the same file


def _write_new(target: Path, contents: Iterator[tuple[str, bytes]]) -> None:
    """Create a new zip, mode 0600: whole or not at all."""
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as exists:
        raise RecordError(
            f"{target} is there already and is not overwritten: name another file with --output"
        ) from exists
    except OSError as error:
        raise RecordError(f"cannot write {target}: {error.strerror}: name another file with --output") from error
    try:
        with os.fdopen(descriptor, "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
            for name, content in contents:
                entry = zipfile.ZipInfo(name, _EARLIEST)
                entry.external_attr = 0o600 << 16
                archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    except BaseException as failed:
        target.unlink(missing_ok=True)
        if isinstance(failed, OSError):
            raise RecordError(f"cannot write {target}: {failed.strerror}: make room on the disk") from failed
        raise


def _document(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def _list_of(checks: list[Check]) -> list[dict[str, Any]]:
    return [{"name": c.name, "ok": c.ok, "detail": c.detail, "problems": list(c.problems)} for c in checks]


def check(session_id: str, workspace_option: Path | None, *, as_json: bool) -> int:
    """Verify a session. Returns exit status 0, or 1 where a check fails."""
    records = _open_records(session_id, workspace_option)
    session_id = records.paths.session_id
    checks = records.checks()
    ok = all(check.ok for check in checks)
    cut_off = [record for record in Evidence(records.paths.shell_audit).values() if _is_interrupted(record)]
    if as_json:
        interrupted = [record["audit_id"] for record in cut_off]
        answer = {"session_id": session_id, "ok": ok, "checks": _list_of(checks), "interrupted": interrupted}
        print(json.dumps(answer, indent=2))
        return 0 if ok else 1
    for item in checks:
        print(f"{'OK  ' if item.ok else 'FAIL'}  {item.name}: {visible(item.detail)}")
        for problem in item.problems:
            print(f"        {visible(problem)}")
    for record in cut_off:
        print(f"NOTE  {record['audit_id']}: {CUT_OFF}")
        print(f"        $ {visible(_command(record))}")
    if records.paths.intent.exists():
        for line in _open_intent(records.paths.intent):
            print(f"      {line}")
    print(f"{session_id}: {'every record and citation holds' if ok else 'NOT trustworthy: see FAIL above'}")
    return 0 if ok else 1
