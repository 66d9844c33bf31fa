"""Shows what earlier sessions left in Azure and here, and offers to delete it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ghost.agent import ORPHAN_KINDS, Orphan, Session, choose_and_clean
from ghost.cli.narration import NarratedShell, Narration
from ghost.cloud import CloudOrchestrator

UNTRACKED: Final = "untracked_azure"


def offer_orphans(
    orphans: Sequence[Orphan],
    orchestrator: CloudOrchestrator,
    shell: NarratedShell,
    session: Session,
    narration: Narration,
    where: str,
) -> None:
    if not orphans:
        narration.detail(f"[OK] No captures are left {where}.")
    for kind, words in ORPHAN_KINDS.items():
        of_kind = [o for o in orphans if o.kind == kind]
        if of_kind:
            narration.line(f"  [{len(of_kind)}] {words}: {', '.join(o.name for o in of_kind[:5])}")
    for warning in choose_and_clean(orphans, orchestrator, shell, session, narration):
        narration.line(f"  [WARN] {warning}", style="yellow")
