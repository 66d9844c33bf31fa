"""`ghost audit show`, `verify` and `export`.

Nothing of a session is changed, but that a command whose process was ended is put on record as interrupted.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ghost import __version__
from ghost.agent import Check, Evidence, SessionPaths, tag_of, verify_head
from ghost.cli.session_records import Recorded, option_of, recorded
from ghost.cli.terminal import line_width
from ghost.config import Settings
from ghost.errors import RecordError, UsageError
from ghost.records import head_path, open_regular, read_json, read_valid_records
from ghost.redaction import Placeholders, for_outside
from ghost.shell import READ_ONLY, SafeExecShell
from ghost.text import one_line, plural, short_id, visible


def show(session_id: str, workspace_option: Path | None, *, record: str | None, as_json: bool) -> None:
    """List the records of a session, one line each, or print one of them with its whole output."""
    paths = _open_records(session_id, workspace_option).paths
    session_id = paths.session_id
    evidence = Evidence(paths.shell_audit)
    if record is not None:
        approvals = {a.get("id"): a for a in read_valid_records(paths.approvals)[0]}
        _show_record(evidence, _audit_id(record, evidence, session_id), approvals, as_json=as_json)
        return
    calls = read_valid_records(paths.calls)[0]
    if as_json:
        print(json.dumps([*evidence.values(), *calls], ensure_ascii=False, indent=2))
        return
    for line in _call_lines(calls, line_width()):
        print(line)
    for line in _record_lines(list(evidence.values()), line_width()):
        print(line)
    if paths.intent.exists():
        for line in _open_intent(paths.intent):
            print(line)
    for number in evidence.broken_lines:
        print(f"line {number} cannot be read")
    option = option_of(paths.audit_dir.parent)
    last = next(reversed(list(evidence.values())), None)
    if last is not None:
        print(f"One record with its output: ghost audit show {session_id} {last.get('sequence')}{option}")
    print(f"{plural(len(evidence), 'record')}. Check them: ghost audit verify {session_id}{option}")


def _call_lines(calls: Sequence[Mapping[str, Any]], width: int) -> Iterator[str]:
    """`call 2  reach {"source": ...}  ok, #003 to #009, for my-agent 1.2`, of a connection of `ghost mcp`."""
    ends = {each.get("call"): each for each in calls if "status" in each}
    made = [each for each in calls if "tool" in each]
    told = [_call_ending(call, ends.get(call.get("call"), {})) for call in made]
    room = max(width - max(map(len, told), default=0) - 1, 20)
    for call, end in zip(made, told, strict=True):
        asked = f"call {call.get('call')}  {call.get('tool')} {json.dumps(call.get('arguments'), ensure_ascii=False)}"
        yield f"{one_line(visible(asked), room):<{room}} {end}"


def _call_ending(call: Mapping[str, Any], end: Mapping[str, Any]) -> str:
    ids = [short_id(str(each)) for each in end.get("audit_ids") or ()]
    made = end.get("session_id") or " to ".join(dict.fromkeys((*ids[:1], *ids[-1:])))
    told = ", ".join(filter(None, (str(end.get("status") or "did not end"), made)))
    return one_line(visible(f"{told}, for {call.get('client')}"), 70)


def _audit_id(name: str, evidence: Evidence, session_id: str) -> str:
    """The audit id of a record, of which `name` may be the number at its end: `18`, `018`, `#018`."""
    number = name.removeprefix("#")
    audit_id = f"{session_id}_{int(number):03}" if re.fullmatch("[0-9]{1,9}", number) else name
    if audit_id not in evidence:
        numbers = sorted(int(record.get("sequence") or 0) for record in evidence.values())
        whole = numbers == list(range(1, len(numbers) + 1))
        known = f"1 to {numbers[-1]}" if whole and numbers[1:] else ", ".join(map(str, numbers)) or "none"
        raise UsageError(f"{session_id} has no record {name!r}: its records are {known}.")
    return audit_id


def _record_lines(records: Sequence[Mapping[str, Any]], width: int) -> Iterator[str]:
    """`#018 ✓ az network nic list …  SAFE  0.9 s  exit 0`; the command is cut, how it ended is not."""
    ends = [_ending(record) for record in records]
    room = max(width - 8 - max(map(len, ends), default=0) - 1, 20)
    for record, end in zip(records, ends, strict=True):
        mark = "–" if _was_stopped(record) else "✓" if record.get("exit_code") == 0 else "✗"
        command = one_line(visible(_command(record), keep="\n\t"), room)
        yield f"#{int(record.get('sequence') or 0):03} {mark} {command:<{room}}  {end}".rstrip()


def _ending(record: Mapping[str, Any]) -> str:
    exit_code, seconds = record.get("exit_code"), record.get("duration_seconds")
    decided = _decision(record).replace(" by the engineer", "")
    ended = f"exit {exit_code}" if exit_code is not None else str(record.get("error") or "").replace("_", " ")
    told = (
        str(record.get("classification") or "-"),
        f"{seconds:.1f} s" if seconds is not None else "",
        "" if _was_stopped(record) else ended,
        "" if record.get("action") == "auto_approved" or decided == "-" else decided,
    )
    return one_line(visible(" ".join(filter(None, told))), 50)


_DECISIONS: Final = {
    "auto_approved": "ran unasked, by rule",
    "user_approved": "approved by the engineer",
    "user_modified": "changed and approved by the engineer",
    "user_denied": "denied by the engineer",
    "user_abandoned": "denied, nobody answered",
}


_FORBIDDEN: Final = "forbidden_command"


def _was_stopped(record: Mapping[str, Any]) -> bool:
    """Whether a person or a rule did not let the command run."""
    return record.get("status") == "denied" or record.get("error") in (_FORBIDDEN, READ_ONLY)


def _refused(record: Mapping[str, Any]) -> str:
    if record.get("error") == READ_ONLY:
        return "refused, read-only"
    return "refused by rule" if _was_stopped(record) else "-"


def _decision(record: Mapping[str, Any]) -> str:
    """Who let the command run, or did not, and why not."""
    words = _DECISIONS.get(str(record.get("action")), _refused(record))
    return f"{words}: {record['denial_reason']}" if record.get("denial_reason") else words


_KINDS: Final = {"once": "for this once", "session": "for the session", "plan": "in a plan"}


def _answered(approval: Mapping[str, Any]) -> str:
    """How far an approval goes, who gave it, and when."""
    kind = _KINDS.get(str(approval.get("kind")), str(approval.get("kind")))
    form = f" as {approval['form']}" if approval.get("form") is not None else ""
    by = f"by {approval['by']}, " if approval.get("by") else ""
    at = str(approval.get("answered_at")).replace("T", " ").removesuffix("Z")
    return f"{kind}{form} ({by}{at} UTC, {approval.get('id')})"


def _show_record(evidence: Evidence, audit_id: str, approvals: Mapping[Any, Any], *, as_json: bool) -> None:
    """Raises `RecordError`, after what is on record was printed, where that is only a part of the output."""
    record, missing = evidence[audit_id], None
    try:
        output = evidence.whole_output(audit_id)
    except RecordError as error:
        output, missing = str(record.get("output") or ""), error
    if as_json:
        print(json.dumps({**record, "whole_output": None if missing else output}, ensure_ascii=False, indent=2))
    else:
        print(f"#{int(record.get('sequence') or 0):03}  {visible(audit_id)}\n")
        print(f"{visible(_command(record), keep=chr(10))}\n")
        for name, words in _about_record(record, approvals.get(record.get("approval_id"))):
            print(f"{name + ':':<10}{visible(words)}")
        for name, text in (("output", output), ("stderr", str(record.get("stderr") or ""))):
            if text:
                print(f"\n{name}, {plural(len(text.encode('utf-8', 'replace')), 'byte')}:")
                print(visible(text.removesuffix("\n"), keep="\n\t"))
    if missing is not None:
        raise missing


def _about_record(record: Mapping[str, Any], approval: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """What a person asks of a record, by name."""
    if (asked := record.get("command")) != _command(record):
        yield "asked for", str(asked)
    yield "why", str(record.get("reasoning"))
    tier = record.get("tier_triggered")
    yield "class", f"{record.get('classification')}{f', by tier {tier}' if tier is not None else ''}"
    yield "approval", f"{_decision(record)}{f', {_answered(approval)}' if approval is not None else ''}"
    seconds, stamp = record.get("duration_seconds"), str(record.get("timestamp")).replace("T", " ").removesuffix("Z")
    yield "when", f"{stamp} UTC{f', took {seconds:.1f} s' if seconds is not None else ''}"
    yield "exit", str(record["exit_code"]) if record.get("exit_code") is not None else "none"
    yield "sandbox", ", ".join(map(str, record.get("sandbox") or ())) or "none"
    yield "evidence", tag_of(record).context
    if record.get("redactions_applied"):
        yield "redacted", ", ".join(map(str, record.get("redaction_categories") or ()))
    if error := CUT_OFF if _is_interrupted(record) else record.get("message") or record.get("error"):
        yield "error", str(error)


CUT_OFF = "interrupted while it ran: its effect is not known, nor whether it finished"


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
        yield f"a command was started, but which one cannot be read: {visible(str(error))}"
        return
    known = begun if isinstance(begun, dict) else {}
    yield f"running, or interrupted, since {visible(str(known.get('timestamp')))}: its end is not on record"
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
    head = head_path(paths.shell_audit)
    approvals = (paths.approvals, head_path(paths.approvals))
    calls = (paths.calls, head_path(paths.calls))
    others = (*approvals, *calls, paths.tasks, paths.turns, paths.report, paths.report_json, paths.watch_result)
    for file in (records.file, paths.shell_audit, head, *others):
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
        with suppress(OSError), open_regular(Settings(workspace=paths.audit_dir.parent).capture_dir / name) as file:
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
            f"{target} exists already and is not overwritten: name another file with --output"
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


def check(session_id: str, workspace_option: Path | None, *, as_json: bool, head: str | None = None) -> int:
    """Verify a session, and against a `head` kept elsewhere. Returns exit status 0, or 1 where a check fails."""
    records = _open_records(session_id, workspace_option)
    session_id = records.paths.session_id
    checks = [*records.checks(), *([verify_head(records.paths, head)] if head is not None else [])]
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
