"""Terminal output of an investigation: the brain's text, each command with its class and outcome."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from rich.console import Console as Rich
from rich.console import RenderableType
from rich.status import Status
from rich.text import Text

from ghost.brain import Brain, Message, ToolCall, Turn
from ghost.cli.event_lines import EventLines, told_of
from ghost.net import name_of
from ghost.patterns import lazy
from ghost.records import Head
from ghost.shell import HitlCallback, HitlDecision, SafeExecShell
from ghost.text import map_text, plural, visible

RULE_WIDTH = 70


class TerminalGoneError(KeyboardInterrupt):
    """The terminal is gone. Ends the investigation like Ctrl-C; it is not a tool result."""


_CLASS_STYLE = {"SAFE": "green", "RISKY": "yellow", "FORBIDDEN": "bold red"}
_ACTION = {
    "auto_approved": "auto-approved",
    "user_approved": "approved",
    "user_denied": "denied",
    "user_modified": "modified",
    "user_abandoned": "not answered, denied",
}


class Narration:
    """The agent's console. `interactive` says whether someone can answer questions."""

    def __init__(self, rich: Rich, *, interactive: bool, read: Callable[[str], str] = input) -> None:
        self.rich = rich
        self.real: Callable[[str], str] = str
        """Shows the values behind the placeholders of private mode."""
        self._interactive = interactive
        self._read = read
        self._status: Status | None = None
        self._modified: str | None = None
        self.answers: Callable[[str], str | None] = lambda _: None
        """Answers to questions where nobody is there: a scenario's."""
        self.events: EventLines | None = None
        """Where events are told to programs."""

    def event(self, name: str, **fields: Any) -> None:
        if self.events is not None:
            try:
                self.events.tell(name, fields)
            except OSError as gone:
                raise TerminalGoneError from gone

    def decide(self, gate: HitlCallback, command: str, reasoning: str, risk: str, tier: int | None) -> HitlDecision:
        """Ask for approval. A modified command is remembered, to show what really ran."""
        self.event("approval_asked", command=command, reasoning=reasoning, risk=risk, tier=tier)
        with self.quiet():
            decision = gate(command, reasoning, risk, tier)
        self._modified = decision.modified_command or self._modified
        self.event("approval_answered", **asdict(decision))
        return decision

    def banner(self, *lines: str) -> None:
        rule = "═" * min(RULE_WIDTH, self.rich.width)
        for line in (rule, *(f"  {visible(line)}" for line in lines), rule):
            self.line(line, style="bold")

    def line(self, text: str, style: str | None = None) -> None:
        self.show(Text(_indented(self.real(text)), style=style or ""))

    def show(self, what: RenderableType) -> None:
        """Everything shown passes here. Raises `TerminalGoneError` where it cannot be written."""
        try:
            self.rich.print(what, highlight=False)
        except OSError as gone:
            raise TerminalGoneError from gone

    def announce(self, text: str) -> None:
        """Lines of the orchestrator (`[Cloud Orchestrator] ...`)."""
        self.line(short(text), style="cyan")

    def said(self, turn: Turn) -> None:
        self.event("turn", text=turn.text, calls=len(turn.tool_calls))
        if turn.text.strip():
            self.show(Text.assemble("\n", ("[Ghost Agent] ", "bold magenta"), _indented(self.real(turn.text.strip()))))

        used = turn.usage
        if used.input_tokens or used.output_tokens:
            self.line(f"      {used_up([turn])}", style="dim")

    def calling(self, call: ToolCall) -> None:
        self.event("call", id=call.id, tool=call.name, arguments=call.arguments)

    def returned(self, call: ToolCall, result: dict[str, Any]) -> None:
        self.event("result", id=call.id, tool=call.name, **told_of(result))
        if call.name == "manage_hypotheses":
            self._hypothesis(call, result)
        elif result.get("status") == "error" and call.name != "run_shell_cmd":
            told = "; ".join(result.get("problems") or []) or result.get("message") or result.get("error")
            self.line(f"      {call.name}: {told}", style="red")
        elif result.get("error") == "preflight":
            self.line(f"      not run: {result.get('suggestion')}", style="yellow")
        elif result.get("error") in {"invalid_arguments", "investigation_complete"}:
            self.line(f"      not run: {result.get('message')}", style="yellow")
        meta = result.get("_meta", {})
        for key in ("warning", "instruction"):
            if key in meta:
                self.line(f"      {meta[key]}", style="yellow")

    def answer(self, question: str) -> str | None:
        self.event("question", text=question)
        answer = self._answer(question)
        self.event("answer", text=answer)
        return answer

    def _answer(self, question: str) -> str | None:
        if not self._interactive:
            answer = self.answers(question)
            if answer is not None:
                self.line(f"Your answer (answered by the scenario): {answer}")
            return answer
        try:
            return self._read("Your answer (Enter alone ends the investigation) > ")
        except EOFError:
            return None

    def choose(self, question: str, choices: dict[str, str]) -> str | None:
        self.event("question", text=question, choices=choices)
        choice = self._choice(question, choices)
        self.event("answer", text=choice)
        return choice

    def _choice(self, question: str, choices: dict[str, str]) -> str | None:
        if not self._interactive:
            return None
        self.line(question)
        offered = "  ".join(f"[{key.upper()}] {words}" for key, words in choices.items())
        try:
            while True:
                choice = self._read(f"{offered} > ").strip().lower()[:1]
                if choice in choices:
                    return choice
        except EOFError:
            return None

    def ran(self, response: dict[str, Any], command: str) -> None:
        """One line for one command of the shell, and a second where it did not simply succeed."""
        classification = str(response.get("classification"))
        action = _ACTION.get(str(response.get("action")), "not run")
        ran = self._modified if response.get("action") == "user_modified" and self._modified else command
        self._modified = None
        self.event("command", command=ran, **told_of(response))
        self.show(
            Text.assemble(
                ("[Shell] ", "bold"),
                (classification, _CLASS_STYLE.get(classification, "")),
                f" — {action}: ",
                (short(visible(self.real(ran))), "bold"),
            )
        )
        outcome = _outcome(response)
        self.line(f"      {response.get('audit_id')}  {outcome}", style="dim")

    def conclusion(self, report: dict[str, Any], bounds: Sequence[str]) -> None:
        """`bounds`: why the confidence was lowered."""
        found = report["outcome"] == "cause_found" and report["summary"]["supported"]
        label = "Root cause" if found else "Conclusion"
        doubt = "" if report["summary"]["supported"] else " (NOT supported by the records)"
        self.line(f"{label}{doubt}: {report['summary']['text']}", style="bold")
        self.line(f"Outcome: {report['outcome'].replace('_', ' ')}")
        for cause in report["causes"]:
            self.line(f"  {_named(map_text(cause, self.real))}")
        if bounds:
            self.line(f"Confidence was lowered to {report['confidence']}: {'; '.join(bounds)}", style="yellow")
        for action in report["recommended_actions"]:
            self.line(f"  - {action}")

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """A progress line while a command runs or a model answers, on a terminal only."""
        if not (self.rich.is_terminal and sys.stdout.isatty()):
            yield
            return
        fits = visible(self.real(what))[: min(self.rich.width - 4, 100)]
        self._status = self.rich.status(Text(fits, style="dim"), spinner="dots")
        try:
            with self._status:
                yield
        finally:
            self._status = None

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Hide the progress line during a prompt."""
        status = self._status
        if status is not None:
            status.stop()
        yield
        if status is not None:  # not after an exception: a progress line started then would outlive the command
            status.start()

    def _hypothesis(self, call: ToolCall, result: dict[str, Any]) -> None:
        action, identity = str(call.arguments.get("action")), str(call.arguments.get("id"))
        if result.get("status") != "ok":
            self.line(f"      {identity}: {result.get('message')}", style="red")
        elif action == "register":
            self.line(f"      Hypothesis {identity}: {call.arguments.get('description')}", style="bold")
            self.line(f"         refuted by: {call.arguments.get('refuted_by')}", style="dim")
        else:
            state = {"confirm": "CONFIRMED", "refute": "REFUTED", "contradict": "CONTRADICTED"}.get(action, "ACTIVE")
            style = {"CONFIRMED": "bold green", "REFUTED": "dim", "CONTRADICTED": "yellow"}.get(state)
            audit_ids = call.arguments.get("audit_ids") or []
            cited = ", ".join(audit_ids[:3]) + (f" and {len(audit_ids) - 3} more" if len(audit_ids) > 3 else "")
            self.line(f"      {identity} {state}{f' by {cited}' if cited else ''}", style=style)


class ShownBrain:
    """A brain, with a progress line while it decides."""

    def __init__(self, brain: Brain, narration: Narration) -> None:
        self.name = brain.name
        self.prompt_hash = brain.prompt_hash
        self._brain = brain
        self._narration = narration

    def next_turn(self, conversation: Sequence[Message]) -> Turn:
        with self._narration.waiting(f"waiting for {self.name}"):
            return self._brain.next_turn(conversation)


class NarratedShell:
    """The shell of an investigation, with each command shown as it runs."""

    def __init__(self, shell: SafeExecShell, narration: Narration) -> None:
        self._shell = shell
        self._narration = narration

    @property
    def audit_head(self) -> Head:
        return self._shell.audit_head

    def runs_unasked(self, command: str) -> bool:
        return self._shell.runs_unasked(command)

    def execute(self, request: dict[str, Any]) -> dict[str, Any]:
        return self.execute_all([request])[0]

    def execute_all(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        commands = [str(request.get("command") or "") for request in requests]
        others = f" (and {len(commands) - 1} beside it)" if len(commands) > 1 else ""
        with self._narration.waiting(f"running: {commands[0]}{others}"):
            responses = self._shell.execute_all(requests)
        for request, command, response in zip(requests, commands, responses, strict=True):
            self._narration.line(short(f"      why: {request.get('reasoning')}"), style="dim")
            self._narration.ran(response, command)
        return responses


def _named(cause: dict[str, Any]) -> str:
    place = " ".join(filter(None, (name_of(cause["resource"]), cause["rule"], cause["direction"])))
    return (
        f"{cause['kind'].replace('_', ' ')}: {place} ({cause['confidence'] if cause['supported'] else 'unsupported'})"
    )


def used_up(turns: Sequence[Turn]) -> str:
    """Return the tokens and the price of turns in words; a price that is not known for each is left out."""
    tokens_in, tokens_out = (sum(getattr(t.usage, f"{way}_tokens") for t in turns) for way in ("input", "output"))
    costs = [turn.usage.cost for turn in turns]
    price = "" if None in costs else f", ${sum(cost or 0.0 for cost in costs):.4f}"
    return f"{tokens_in:,} tokens in, {tokens_out:,} out{price}"


_QUERY = lazy(r"(--query )'([^']{60})[^']*'")
_RESOURCE_ID = lazy(r"/subscriptions/[^/\s]+/resourceGroups/[^/\s]+/providers/[\w./-]+/([\w.-]+)")


def short(text: str) -> str:
    """The text with a long `--query` and resource ids shortened; approvals and the audit hold the whole command."""
    return _RESOURCE_ID.sub(r"…/\1", _QUERY.sub(r"\1'\2…'", text))


def _indented(text: str) -> str:
    """`text` for the terminal, its further lines indented: none of a model's looks like one of the shell's."""
    return visible(text, keep="\n\t").replace("\n", "\n    ")


def _outcome(response: dict[str, Any]) -> str:
    status, exit_code = response.get("status"), response.get("exit_code")
    if status == "denied":
        reason = response.get("denial_reason")
        return f"denied{f': {reason}' if reason else ''}"
    if status == "error":
        why = visible(str(response.get("message") or ""))[:200]
        return f"error: {response.get('error')}{f': {why}' if why else ''}"
    lines = (response.get("output_metadata") or {}).get("total_lines")
    seconds = response.get("duration_seconds") or 0.0
    words = f"exit {exit_code}, {seconds:.1f} s" + (f", {plural(lines, 'line')}" if lines else "")
    if not response.get("audit_written", True):
        words = f"NOT ON RECORD (the audit could not be written): {words}"
    complaint = str(response.get("stderr") or "").strip().splitlines()
    return words + (f": {visible(complaint[-1])[:160]}" if exit_code and complaint else "")
