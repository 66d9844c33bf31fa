"""Investigations: the loop, its tools, hypotheses, denials, the session and the report.

Starts no program and reads no capture: both go through the shell and the orchestrator.
"""

from ghost.agent.audit_evidence import Evidence, tag_of
from ghost.agent.investigation_memory import finished
from ghost.agent.loop import Console, Investigation
from ghost.agent.open_work import OpenInvestigations, PendingCleanups
from ghost.agent.rca_report import files_of, report_of_records, write_report
from ghost.agent.resumption import reissue
from ghost.agent.session import AZURE, NO_RECORDS, Session, SessionPaths, Workspace, load_session, save_session
from ghost.agent.startup import KINDS as ORPHAN_KINDS
from ghost.agent.startup import Orphan, choose_and_clean, find_orphans
from ghost.agent.tool_arguments import tool_declarations
from ghost.agent.tools import Tools
from ghost.agent.turns import TurnLog, read_conversation, recorded_symptom, without_secrets
from ghost.agent.verification import Check, verify_commands, verify_session

__all__ = [
    "AZURE",
    "NO_RECORDS",
    "ORPHAN_KINDS",
    "Check",
    "Console",
    "Evidence",
    "Investigation",
    "OpenInvestigations",
    "Orphan",
    "PendingCleanups",
    "Session",
    "SessionPaths",
    "Tools",
    "TurnLog",
    "Workspace",
    "choose_and_clean",
    "files_of",
    "find_orphans",
    "finished",
    "load_session",
    "read_conversation",
    "recorded_symptom",
    "reissue",
    "report_of_records",
    "save_session",
    "tag_of",
    "tool_declarations",
    "verify_commands",
    "verify_session",
    "without_secrets",
    "write_report",
]
