"""Shows what sessions left in Azure and here, and offers to delete what earlier ones did."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ghost.agent import ORPHAN_KINDS, Orphan, Session, Workspace, choose_and_clean, load_session
from ghost.cli.narration import NarratedShell, Narration
from ghost.cli.session_records import option_of
from ghost.cli.terminal import to_stderr
from ghost.cloud import CloudOrchestrator, capture_tasks
from ghost.config import Settings
from ghost.errors import GhostError

UNTRACKED: Final = frozenset({"untracked_azure", "untracked_blob"})


def of_this_network(
    orphans: Sequence[Orphan], workspace: Workspace, session: Session, narration: Narration
) -> list[Orphan]:
    """Return what earlier sessions of the same network left; the others are told, and not deleted through this one."""
    here, elsewhere = [], []
    for orphan in orphans:
        if orphan.session_id == session.session_id:
            continue  # resumed: its brain goes on with them
        network = _network(orphan, workspace)
        if network in (None, session.network):
            here.append(orphan)
            if network is None and orphan.session_id:
                narration.line(f"  {orphan.name}: in which network it was made is not on record.", style="yellow")
        else:
            elsewhere.append(f"{orphan.name} ({network})")
    if elsewhere:
        narration.line(f"  Left in other networks, not offered here: {', '.join(elsewhere)}", style="dim")
    return here


def _network(orphan: Orphan, workspace: Workspace) -> str | None:
    """Return the network of the session that left it; None where that is not on record."""
    with suppress(GhostError, OSError, ValueError):
        if orphan.session_id:
            return load_session(workspace.find(orphan.session_id))[0].network
    return None


def offer_orphans(
    orphans: Sequence[Orphan],
    orchestrator: CloudOrchestrator,
    shell: NarratedShell,
    session: Session,
    narration: Narration,
    where: str,
    audit_dir: Path,
) -> None:
    if not orphans:
        narration.detail(f"[OK] No captures are left {where}.")
    for kind, words in ORPHAN_KINDS.items():
        of_kind = [o for o in orphans if o.kind == kind]
        if of_kind:
            narration.line(f"  [{len(of_kind)}] {words}: {', '.join(o.name for o in of_kind[:5])}")
    for orphan in orphans:
        if orphan.is_running:
            narration.line(f"  {orphan} may still be recording: it is not offered for deletion.", style="yellow")
    for warning in choose_and_clean(orphans, orchestrator, shell, session, narration, audit_dir):
        narration.line(f"  [WARN] {warning}", style="yellow")
    if any(o.kind in UNTRACKED and o.name not in session.manual_cleanup_pending for o in orphans):
        orchestrator.search_azure()  # so that nobody is told of what was deleted


def tell_what_is_left(settings: Settings, session_id: str) -> None:
    """Say on standard error which captures of a session still run or are stored, what they cost, how to end them."""
    with suppress(OSError, GhostError):  # where the terminal is gone nobody is to be told
        for task in capture_tasks(settings.audit_dir):
            if task.session_id != session_id or not any(step.in_cloud for step in task.remaining):
                continue
            where = f"{task.storage_account}/{task.storage_container}"
            verb, does = (
                ("cancel", "may run" if task.creation_unanswered else "runs") if task.active else ("cleanup", "")
            )
            runs = f"{does} for up to {task.duration_limit_seconds} s and is stored" if does else "is still stored"
            to_stderr().print(
                f"The capture {task.task_id} {runs} in {where}, which costs until it is deleted: "
                f"ghost capture {verb} {task.task_id}{option_of(settings.workspace)}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
