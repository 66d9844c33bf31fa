"""Investigations: the loop, its tools, hypotheses, denials, the session, the report and answers from it.

Starts no program and reads no capture: both go through the shell and the orchestrator.
"""

from ghost.agent.answers import ANSWER_PROMPT, DO_NOT_SAY, Answer, SessionRecords, ask_model, look_up
from ghost.agent.audit_evidence import Evidence, tag_of
from ghost.agent.earlier_sessions import earlier_session
from ghost.agent.fix_check_runs import FixCheckRuns, check_records
from ghost.agent.fix_log import APPLY, CHECK, FixLog, check_question, checked, read_again, verdict, walked
from ghost.agent.fixes import Fix, Step, drift, failing_traffic, fix_of, steps_for
from ghost.agent.investigation_memory import finished
from ghost.agent.loop import Console, Investigation
from ghost.agent.network_reads import NEEDS, reads_through
from ghost.agent.open_work import OpenInvestigations, PendingCleanups, UncheckedFixes, first_fault
from ghost.agent.rca_report import files_of, report_of_records, write_report
from ghost.agent.resumption import reissue
from ghost.agent.session import AZURE, NO_RECORDS, Session, SessionPaths, Workspace, load_session, save_session
from ghost.agent.startup import KINDS as ORPHAN_KINDS
from ghost.agent.startup import Orphan, choose_and_clean, find_orphans
from ghost.agent.tool_arguments import tool_declarations
from ghost.agent.tools import Tools
from ghost.agent.turns import TurnLog, read_conversation, recorded_symptom, without_secrets
from ghost.agent.verification import Check, verify_commands, verify_head, verify_session
from ghost.agent.waiting_room import LOOK_SECONDS, Closed, Waiting, WaitingRoom
from ghost.agent.watches import (
    WATCH,
    DriftTasks,
    KeptPath,
    NetworkRead,
    OpenShell,
    Snapshot,
    Watch,
    Watches,
    WatchResult,
    WatchRuns,
    open_snapshot,
    snapshot_of,
)

__all__ = [
    "ANSWER_PROMPT",
    "APPLY",
    "AZURE",
    "CHECK",
    "DO_NOT_SAY",
    "LOOK_SECONDS",
    "NEEDS",
    "NO_RECORDS",
    "ORPHAN_KINDS",
    "WATCH",
    "Answer",
    "Check",
    "Closed",
    "Console",
    "DriftTasks",
    "Evidence",
    "Fix",
    "FixCheckRuns",
    "FixLog",
    "Investigation",
    "KeptPath",
    "NetworkRead",
    "OpenInvestigations",
    "OpenShell",
    "Orphan",
    "PendingCleanups",
    "Session",
    "SessionPaths",
    "SessionRecords",
    "Snapshot",
    "Step",
    "Tools",
    "TurnLog",
    "UncheckedFixes",
    "Waiting",
    "WaitingRoom",
    "Watch",
    "WatchResult",
    "WatchRuns",
    "Watches",
    "Workspace",
    "ask_model",
    "check_question",
    "check_records",
    "checked",
    "choose_and_clean",
    "drift",
    "earlier_session",
    "failing_traffic",
    "files_of",
    "find_orphans",
    "finished",
    "first_fault",
    "fix_of",
    "load_session",
    "look_up",
    "open_snapshot",
    "read_again",
    "read_conversation",
    "reads_through",
    "recorded_symptom",
    "reissue",
    "report_of_records",
    "save_session",
    "snapshot_of",
    "steps_for",
    "tag_of",
    "tool_declarations",
    "verdict",
    "verify_commands",
    "verify_head",
    "verify_session",
    "walked",
    "without_secrets",
    "write_report",
]
