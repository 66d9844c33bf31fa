"""One investigation from its set-up to its report, at a terminal or for a server. The workspace is locked around it."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ghost.agent import (
    Evidence,
    Investigation,
    SessionPaths,
    TurnLog,
    WaitingRoom,
    Workspace,
    earlier_session,
    find_orphans,
    fix_of,
    read_conversation,
    without_secrets,
    write_report,
)
from ghost.brain import EarlierSession, Message, StatedEnds, ToolCall, Turn, Usage
from ghost.cli.approvals import Gate, TerminalGate, gate_of
from ghost.cli.az_access import check_access
from ghost.cli.brain_choice import ChosenBrain
from ghost.cli.capture_settings import orchestrator_of
from ghost.cli.event_lines import told_of
from ghost.cli.investigation_request import SYMPTOM_NEEDED, Request, Served
from ghost.cli.leftovers import UNTRACKED, of_this_network, offer_orphans
from ghost.cli.narration import NarratedShell, Narration, ShownBrain, ShownTools, used_up
from ghost.cli.report_command import rendered
from ghost.cli.session_memory import SessionMemory
from ghost.cli.session_opening import OpenedSession, network_of_az
from ghost.cli.session_records import option_of, shortened
from ghost.cli.shared_questions import RoomOnly, SharedTerminal
from ghost.cloud import CloudOrchestrator
from ghost.config import Settings
from ghost.errors import BrainError, GhostError, LoginError, RecordError, SessionError, UsageError
from ghost.lab import lab_programs
from ghost.records import Clock, SystemClock, elapsed, isoformat, read_json, write_text
from ghost.shell import ApprovalRequest, HitlDecision, SafeExecShell, missing_sandbox
from ghost.text import map_text

PRIVATE_MODE = (
    "Private mode: in the records, and for a model, addresses, subnets, ids and machines are placeholders, which {map} "
    "explains. The offline brain reasons on what is real."
)
READ_ONLY_MODE = "Read-only: nobody is asked, and commands that need an approval are refused."


class InvestigationRun:
    def __init__(
        self,
        request: Request,
        settings: Settings,
        workspace: Workspace,
        chosen: ChosenBrain,
        narration: Narration,
        opened: OpenedSession,
        served: Served | None = None,
    ) -> None:
        self.request = request
        self.settings = settings
        self.workspace = workspace
        self.chosen = chosen
        self.clock: Clock = SystemClock()
        self.narration = narration
        self.session, self.lab, self.lab_behind_az = opened.session, opened.lab, opened.lab_behind_az
        self.paths = self.session.paths(workspace.root)
        self._records = Evidence(self.paths.shell_audit)
        narration.real = self._records.restored
        damaged = SessionPaths(workspace.audit_dir, self.session.resumed_from or self.session.session_id)
        was_private = self.paths.anonymization_map.exists() or damaged.anonymization_map.exists()
        self.is_private = request.private or settings.private or was_private
        nobody = served is not None and self.is_private  # what a private session asks stays at its terminal
        self.is_read_only = request.read_only or settings.read_only or nobody
        self.session.read_only |= self.is_read_only and self.session.rca_report_path is None
        self.briefing = self.lab.briefing if self.lab else None
        if self.briefing is not None:
            narration.answers = self.briefing.answer
        self.room = WaitingRoom(workspace.root, self.clock)
        self.gate = self._gate(served)
        if isinstance(self.gate, SharedTerminal | RoomOnly):
            narration.ask = self.gate.answer

    def carry_out(self) -> str:
        """Return the outcome of the report."""
        began = self.clock.monotonic()
        self._banner()
        if self.session.rca_report_path is not None:
            self._tell_session()
            self.narration.line(f"This session is finished. Its report: {self.session.rca_report_path}")
            return self._hand_over(read_json(self.paths.report_json))
        safe_shell = self._shell()
        hide, real = (safe_shell.anonymized, safe_shell.real) if self.is_private else (str, str)
        if self.narration.events:
            self.narration.events.hide = hide
        self.chosen.outgoing.hide = hide
        self.narration.real = real
        self._tell_session()
        conversation, unanswered = self._conversation()
        before = set(self._evidence()) if conversation else set()
        shell = NarratedShell(safe_shell, self.narration, self._network_clock())
        check_access(shell, simulated=self.lab is not None)
        if self.is_private:
            self._hide_symptom(shell, lambda text: hide(real(text)))
        orchestrator = self._orchestrator(shell)
        memory = None if self.is_private else self._memory()
        investigation = self._investigation(shell, orchestrator, conversation, unanswered, hide, real)
        try:
            orphans = of_this_network(find_orphans(orchestrator), self.workspace, self.session, self.narration)
            of = "on record from earlier sessions"
            offer_orphans(orphans, orchestrator, shell, self.session, self.narration, of, self.workspace.audit_dir)
            self.session.startup_audit_ids += [i for i in self._evidence() if i not in before]
            if not conversation:
                symptom = self.session.symptom = self.session.symptom or hide(self._asked_symptom())
                investigation.save()  # before memory is asked, which takes its time
                asked = None if self.request.fresh else memory
                investigation.begin(symptom, asked.hints(symptom, self.session.network) if asked else None)
            elif self.session.completion is None:
                investigation.resume()
            investigation.run()
            self._search_azure(orchestrator, shell)
            report, markdown = write_report(self.session, self.paths, shell, self.clock.now(), hide)
            if memory:
                memory.keep(report)  # before the session says that it is finished: after a kill it is kept again
            investigation.save()
        except (KeyboardInterrupt, BrainError, LoginError):
            investigation.save()
            raise
        model_turns = [m for m in conversation if isinstance(m, Turn) and m.usage != Usage()]
        outcome = self._hand_over(report)
        if self.request.html:
            write_text(self.paths.report_page, rendered(report, "html", self.paths))
        self._show_end(report, markdown, self.clock.monotonic() - began, model_turns)
        return outcome

    # -- setting up

    def _network_clock(self) -> Clock:
        return self.lab.clock if self.lab else self.clock

    def _orchestrator(self, shell: NarratedShell) -> CloudOrchestrator:
        self.narration.simulated = self.lab is not None
        sid, announce = self.session.session_id, self.narration.announce
        approve_plan = None if self.request.approve_each else shell.approve_plan
        clock, network = self._network_clock(), self.session.network
        return orchestrator_of(self.settings, shell, sid, clock, announce, approve_plan, network)

    def _investigation(
        self,
        shell: NarratedShell,
        orchestrator: CloudOrchestrator,
        conversation: list[Message],
        unanswered: list[ToolCall],
        hide: Callable[[str], str],
        real: Callable[[str], str],
    ) -> Investigation:
        clock = self._network_clock()
        tools = ShownTools(shell, orchestrator, self.session, self._evidence, self._now, clock, hide, real)
        tools.narration = self.narration
        return Investigation(
            brain=ShownBrain(self.chosen.brain, self.narration),
            tools=tools,
            session=self.session,
            session_file=self.workspace.session_file,
            turns=TurnLog(self.paths.turns, hide, real),
            shell=shell,
            orchestrator=orchestrator,
            console=self.narration,
            clock=self.clock,
            conversation=conversation,
            unanswered=unanswered,
            max_turns=self.request.max_turns or self.settings.max_turns,
            max_denials=self.settings.max_denials_per_hypothesis,
        )

    def _shell(self) -> SafeExecShell:
        return SafeExecShell(
            self.session.session_id,
            approve=None if self.is_read_only else self._decide,
            read_only=self.is_read_only,
            audit_dir=str(self.workspace.audit_dir),
            timeout_seconds=self.settings.command_timeout_seconds,
            anonymization_enabled=self.is_private,
            placeholders=self.chosen.outgoing.placeholders,
            roots=self._roots(),
            reads_only=[self.settings.capture_dir],
            **lab_programs(self.lab or self.lab_behind_az, own_az=self.lab is None),
        )

    def _gate(self, served: Served | None) -> Gate:
        """Who is asked."""
        gate = gate_of(self.narration.rich, self.lab, self.settings)
        if self.is_private or not (served or isinstance(gate, TerminalGate)):
            return gate
        if served is not None:
            return RoomOnly(self.room, self.session, self.settings.approval_expiry_seconds, served.is_stopped)
        return SharedTerminal(self.narration.rich, self.room, self.session)

    def asking(self) -> contextlib.ExitStack:
        """Around it: what is asked may be answered on the dashboard, where the workspace can hold that."""
        asked = contextlib.ExitStack()
        if self.narration.ask is not None:
            with contextlib.suppress(RecordError):
                asked.enter_context(self.room.occupied())
        return asked

    def _decide(self, request: ApprovalRequest) -> HitlDecision:
        return self.narration.decide(self.gate.approve, request)

    def _roots(self) -> list[Path]:
        return [Path.cwd(), self.workspace.root, self.settings.capture_dir]

    def _conversation(self) -> tuple[list[Message], list[ToolCall]]:
        if not self.paths.turns.exists():
            return [], []
        messages, unanswered, turns = read_conversation(self.paths.turns, self._evidence(), self._earlier)
        self.session.turn_count = turns
        return messages, unanswered

    def _asked_symptom(self) -> str:
        self.narration.line("What network problem should I investigate?")
        try:
            typed = _prompt().strip()
        except EOFError:
            typed = ""
        if not typed:
            raise UsageError(SYMPTOM_NEEDED)
        return without_secrets(typed)

    def _memory(self) -> SessionMemory:
        option = option_of(self.workspace.root)
        return SessionMemory(self.settings, self.workspace.root, self.narration, option, self._earlier)

    def _earlier(self, session_id: str) -> EarlierSession | None:
        """Return a session whose records may stand for reads of this one; a model reads all by itself."""
        if self.session.prompt_sha256 is not None:
            return None
        return earlier_session(self.workspace.audit_dir, session_id, self.session.network, self.clock.now())

    def _evidence(self) -> Evidence:
        return self._records.refreshed()

    def _now(self) -> str:
        return isoformat(self.clock.now())

    # -- what a person sees

    def _banner(self) -> None:
        speed = f"{self.settings.lab_speed:g} times as fast"
        where = (
            f"lab {self.briefing.name} (SIMULATED, time passes {speed})"
            if self.briefing
            else network_of_az(self.lab_behind_az)
            if self.lab_behind_az
            else "Azure, through your az login"
        )
        self.narration.banner(
            f"GHOST  Session: {self.session.session_id}  |  Brain: {self.session.model}",
            f"Network: {where}",
            *([f"Symptom: {self.session.symptom}"] if self.session.symptom else []),
            *(
                [f"Stated: {stated}"]
                if (stated := str(self.session.stated)) not in (self.session.symptom or "")
                else []
            ),
        )
        for note in (*self.chosen.notes, *filter(None, [missing_sandbox()])):
            self.narration.line(note, style="yellow")
        self.chosen.told()
        if self.is_read_only:
            self.narration.line(READ_ONLY_MODE)
        if self.is_private:
            self.narration.line(PRIVATE_MODE.format(map=shortened(self.paths.anonymization_map)))

    def _hide_symptom(self, shell: NarratedShell, hide: Callable[[str], str]) -> None:
        """Read the names of machines, so that what was typed is recorded without them."""
        command = "az resource list --query \"[?starts_with(type, 'Microsoft.Compute/virtualMachine')].id\" -o json"
        response = shell.execute({"command": command, "reasoning": "Which names of machines private mode hides."})
        if response["exit_code"] != 0:
            unread = "The names of machines could not be read: the records hold them as they are typed."
            self.narration.line(f"  [WARN] {unread}", style="yellow")
        self.session.symptom = self.session.symptom and hide(self.session.symptom)
        self.session.stated = StatedEnds(**map_text(asdict(self.session.stated), hide, keys=False))

    def _search_azure(self, orchestrator: CloudOrchestrator, shell: NarratedShell) -> None:
        """After an investigation that captured: a read per region, which the others are spared."""
        if self.session.active_task_ids:
            before = set(self._evidence())
            orchestrator.search_azure()
            found = [orphan for orphan in find_orphans(orchestrator) if orphan.kind in UNTRACKED]
            where = "in Azure without a record"
            offer_orphans(found, orchestrator, shell, self.session, self.narration, where, self.workspace.audit_dir)
            self.session.startup_audit_ids += [i for i in self._evidence() if i not in before]

    def _tell_session(self) -> None:
        """Tell who investigates what; not yet the symptom of private mode, whose names are not known to be hidden."""
        told = ["session_id", "model", "network", "is_resume", "resumed_from"]
        told += [] if self.is_private else ["symptom", "stated"]
        self.narration.event("session", **{name: getattr(self.session, name) for name in told})
        for record in self._evidence().values():  # a process that was killed may not have told of its last ones
            self.narration.event("command", command=record.get("command"), **told_of(record))

    def _hand_over(self, report: dict[str, Any]) -> str:
        """Give the report to programs. Returns its outcome."""
        if self.request.as_json:
            print(json.dumps(report, indent=2))  # a terminal obeys some characters beyond ASCII
        told = ("session_id", "outcome", "confidence", "causes", "summary")
        self.narration.event(
            "report", json=str(self.paths.report_json), markdown=str(self.paths.report), **{n: report[n] for n in told}
        )
        return str(report["outcome"])

    def _show_end(self, report: dict[str, Any], markdown: str, seconds: float, model_turns: list[Turn]) -> None:
        written = self.session.rca_report_path
        self.narration.line("")
        self.narration.conclusion(report)
        if written is None:
            print(markdown, file=sys.stderr if self.request.for_programs else sys.stdout)
            raise GhostError(f"the report could not be written to {self.paths.report}: it is printed above instead")
        self.narration.banner(
            f"RCA REPORT WRITTEN: {shortened(self.paths.report)}",
            *([f"Page: {shortened(self.paths.report_page)}"] if self.request.html else []),
            *_captures_kept(report),
            f"Confidence: {report['confidence']}  |  Turns: {self.session.turn_count}  |  Duration: {elapsed(seconds)}",
            *([f"Model: {used_up(model_turns)}"] if model_turns else []),
        )
        of = f"{self.session.session_id}{option_of(self.workspace.root)}"
        self.narration.line(f"  Ticket text: ghost report {of}", style="dim")
        with contextlib.suppress(SessionError):
            if not self.is_private and fix_of(self.session, self._evidence()):
                self.narration.line(f"  Run the fix: ghost apply {of}", style="dim")


def _captures_kept(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the captures that are still there, each with its page; two ends share one."""
    pages: set[str] = set()
    for row in report["captures"]:
        if row["local_pcap_exists"]:
            page = row["page_path"]
            told = f" (page: {shortened(Path(page))})" if page and page not in pages else ""
            pages.add(page)
            yield f"Capture: {shortened(Path(row['local_pcap_path']))}{told}"


def _prompt() -> str:
    """Read a line. The prompt mark goes to the same stream as the question."""
    sys.stderr.write("> ")
    sys.stderr.flush()
    return input()
