"""`ghost doctor`: what this machine and its az lack for an investigation. Every command is SAFE and on record."""

from __future__ import annotations

import json
import os
import platform
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ghost.agent import Workspace
from ghost.azure import PROGRAM_MISSING, error_of
from ghost.cli.az_access import AZ_NEEDED
from ghost.cli.brain_choice import Wish, choose_brain
from ghost.cli.shell_errors import error_text
from ghost.config import Settings
from ghost.errors import ConfigurationError, GhostError, LabError
from ghost.lab import RunningLab, lab_behind_az, lab_programs
from ghost.providers import VENDORS, embeddings
from ghost.records import SystemClock, is_locked, new_command_id
from ghost.shell import HitlDecision, Programs, SafeExecShell, missing_sandbox
from ghost.text import one_line, sentence, visible

OK, WARNING, FAILED = "ok", "warning", "failed"
MARKS: Final = {OK: "✓", WARNING: "!", FAILED: "✗"}
TOOLS: Final = ("dig", "ping", "ss", "ip", "curl", "traceroute")
OPTIONAL_TOOLS: Final = ("tshark",)
BEST_STUB_DIM: Final = 384
"""Finds more than the default of 128: docs/mind.md."""
EXTRAS: Final = {"mind": "fastapi", "models": "pydantic_ai", "fast": "numba"}
"""Extras of the package, and the module that shows that each is installed."""
VERSION = "az version -o json"
ACCOUNT = "az account show --query '{name:name,id:id,user:user.name}' -o json"
READS: Final = (
    ("networks", "az network vnet list --query '{count:length(@),first:[:5].name}' -o json", FAILED),
    ("Network Watcher", "az network watcher list --query '{count:length(@),first:[:5].location}' -o json", WARNING),
)
"""Checks of rights: name, a read that needs them, and what it means where it fails."""
READER_NEEDED: Final = "ask for the role Reader on the subscription"


@dataclass(frozen=True)
class Finding:
    check: str
    status: str
    detail: str
    advice: str = ""

    def __str__(self) -> str:
        advice = f": {self.advice}" if self.advice else ""
        return visible(sentence(f"{MARKS[self.status]} {self.check:<16} {self.detail}{advice}"))


def doctor(workspace_option: Path | None, *, as_json: bool) -> int:
    """Print each check. Returns 0 if all that an investigation needs is there, else 1."""
    found: list[Finding] = []
    for finding in _findings(workspace_option):
        found.append(finding)
        if not as_json:
            print(finding, flush=True)
    ready = all(finding.status != FAILED for finding in found)
    if as_json:
        print(json.dumps({"ready": ready, "checks": [asdict(finding) for finding in found]}, indent=2))
    elif ready:
        print("Everything an investigation needs is present: ghost investigate.")
    else:
        print("An investigation of Azure needs the lines marked ✗; without them: ghost investigate --lab blocked-port.")
    return 0 if ready else 1


def _findings(workspace_option: Path | None) -> Iterator[Finding]:
    yield _python()
    try:
        settings = Settings(workspace=workspace_option) if workspace_option else Settings()
    except ConfigurationError as unusable:
        yield Finding("settings", FAILED, str(unusable))
        return
    settings = replace(settings, workspace=settings.workspace.absolute())
    yield _keys(settings)
    yield _embeddings(settings)
    workspace = _workspace(settings.workspace)
    yield workspace
    yield _sandbox()
    try:
        lab = lab_behind_az()
    except LabError as down:
        yield Finding("lab", FAILED, str(down))
        return
    yield _programs(lab)
    with ExitStack() as stack:
        writable = workspace.status != FAILED
        records = settings.audit_dir if writable else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        yield from _azure(settings, lab, records)


def _python() -> Finding:
    missing = [extra for extra, module in EXTRAS.items() if find_spec(module) is None]
    there = ", ".join(extra for extra in EXTRAS if extra not in missing) or "none"
    detail = f"{platform.python_version()}; extras: {there}"
    if not missing:
        return Finding("Python", OK, detail)
    return Finding("Python", WARNING, detail, f"pip install 'ghost-investigator[{','.join(missing)}]' adds the others")


def _embeddings(settings: Settings) -> Finding:
    try:
        model = embeddings(settings)
    except GhostError as wrong:
        return Finding("memory search", WARNING, str(wrong).rstrip("."))
    better = settings.provider_embed == "stub" and model.dim < BEST_STUB_DIM
    advice = f"VECTOR_DIM={BEST_STUB_DIM} finds more, and memories are embedded anew by themselves" if better else ""
    return Finding("memory search", OK, f"{model.name}, {model.dim} numbers", advice)


def _keys(settings: Settings) -> Finding:
    keys = {f"{vendor.upper()}_API_KEY": settings.vendor_key(vendor) for vendor in VENDORS}
    keys |= {"GHOST_LLM_KEY": settings.llm_key, "GHOST_EMBED_KEY": settings.embed_key}
    names = ", ".join(name for name, key in keys.items() if key is not None)
    detail = f"set: {names}" if names else "none set"
    try:
        brain = choose_brain(Wish(), settings, Workspace(settings.workspace.absolute())).brain.name
    except GhostError as wrong:
        return Finding("model keys", FAILED, f"{detail}; {str(wrong).rstrip('.')}")
    detail += f"; {brain} investigates"
    file = settings.workspace / ".env"
    if file.is_file() and (mode := file.stat().st_mode & 0o777) & 0o077:
        return Finding("model keys", WARNING, f"{detail}; {file} has mode {mode:04o}", f"chmod 600 {file}")
    return Finding("model keys", OK, detail)


def _workspace(root: Path) -> Finding:
    place = next((p for p in (root, *root.parents) if p.exists()), root)
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        return Finding("workspace", FAILED, f"{place} cannot be written", "name another with --workspace DIR")
    if is_locked(root):
        detail = f"{root} is in use by another process"
        return Finding("workspace", FAILED, detail, "wait for it to end, or name another with --workspace DIR")
    return Finding("workspace", OK, f"{root} can be written and is free")


def _sandbox() -> Finding:
    lacking = missing_sandbox()
    if lacking is not None:
        return Finding("sandbox", WARNING, lacking.rstrip("."), "use Linux 6.2 or newer for the full sandbox")
    return Finding("sandbox", OK, "Landlock and seccomp hold every SAFE command")


def _programs(lab: RunningLab | None) -> Finding:
    programs = Programs((lab.program_dir,)) if lab else Programs.of_system()
    missing = [name for name in TOOLS if programs.find(name) is None]
    there = [name for name in (*TOOLS, *OPTIONAL_TOOLS) if name not in missing and programs.find(name)]
    passed_over = [
        str(d) for d in programs.further if d.is_dir() and str(d) not in programs.search_path.split(os.pathsep)
    ]
    detail = f"{', '.join(there) or 'none'} in {programs.search_path}"
    detail += f"; passed over, since others can write them: {', '.join(passed_over)}" if passed_over else ""
    if missing:
        return Finding("programs", WARNING, detail, f"install {', '.join(missing)}: tests with them are left out")
    return Finding("programs", OK, detail)


def _azure(settings: Settings, lab: RunningLab | None, records: Path) -> Iterator[Finding]:
    where = f" (SIMULATED, the lab {lab.briefing.name})" if lab else ""
    shell = SafeExecShell(
        new_command_id("doctor_", SystemClock().now()),
        hitl_callback=lambda *_: HitlDecision("deny", reason="ghost doctor runs SAFE commands only"),
        audit_dir=records,
        timeout_seconds=settings.command_timeout_seconds,
        roots=[settings.workspace],
        **lab_programs(lab),
    )

    def answers(*commands: str) -> Sequence[Mapping[str, Any]]:
        return shell.execute_all([{"command": one, "reasoning": "A check of ghost doctor."} for one in commands])

    version, account = answers(VERSION, ACCOUNT)
    if version["exit_code"] == PROGRAM_MISSING:
        yield Finding("az", FAILED, *AZ_NEEDED.split(": ", 1))
        return
    if why := _failure(version):
        yield Finding("az", FAILED, f"it does not start ({why})", "try az version in this shell")
        return
    path = settings.az or (lab and "the lab's") or Programs.of_system().find("az")
    yield Finding("az", OK, f"{_parsed(version).get('azure-cli', 'of an unknown version')}, {path}{where}")
    if why := _failure(account):
        yield Finding("az login", FAILED, f"az cannot name a subscription ({why})", "run az login")
        return
    who = _parsed(account)
    yield Finding("az login", OK, f"{who.get('user')} in {who.get('name')} ({who.get('id')})")
    assigned = shlex.join(["az", "role", "assignment", "list", "--assignee", str(who.get("user")), "--all"])
    assigned += " --query '[:20].roleDefinitionName' -o json"
    *reads, roles = answers(*(command for _, command, _ in READS), assigned)
    for (check, _, failed), answer in zip(READS, reads, strict=True):
        if why := _failure(answer):
            yield Finding(check, failed, f"cannot be read ({why})", _advice(answer, READER_NEEDED))
        else:
            count, first = (_parsed(answer)[name] for name in ("count", "first"))
            yield Finding(check, OK, f"{count} can be read", ", ".join(map(str, first)))
    if why := _failure(roles):
        yield Finding(
            "roles", WARNING, f"cannot be listed ({why})", "an investigation needs Reader; it does without this list"
        )
    else:
        yield Finding("roles", OK, ", ".join(sorted(set(map(str, _parsed(roles))))) or "none of this user's own")


def _failure(answer: Mapping[str, Any]) -> str:
    """Why a command did not complete; empty if it did."""
    if answer["status"] != "completed":
        return error_text(answer)[:200]
    if answer["exit_code"] == 0:
        return ""
    return one_line(str(error_of("az", answer) or f"it ended with status {answer['exit_code']}"), 200)


def _advice(answer: Mapping[str, Any], otherwise: str) -> str:
    error = error_of("az", answer)
    return "run az login" if error is not None and error.needs_login else otherwise


def _parsed(answer: Mapping[str, Any]) -> Any:
    try:
        return json.loads(str(answer["output"]))
    except ValueError:
        raise GhostError("az printed no JSON: try az account show -o json in this shell") from None
