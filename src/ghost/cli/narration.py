"""Terminal output of an investigation: the brain's text, one line a command, hypotheses, and the conclusion.

`verbose` shows each command whole, with its reason, class and full audit id, and every step of the orchestrator.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from rich.console import Console as Rich
from rich.console import RenderableType
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from ghost.agent import Tools
from ghost.azure import AzureError, ErrorKind, error_of
from ghost.brain import Brain, Message, ToolCall, ToolResult, Turn
from ghost.cli.command_lines import CLASS_STYLE, RanCommand, outcome_of
from ghost.cli.command_words import label, shortened
from ghost.cli.event_lines import EventLines, told_of
from ghost.cloud import is_routine
from ghost.errors import LoginError
from ghost.net import name_of
from ghost.records import Clock, Head
from ghost.report import next_commands, place_of
from ghost.shell import ApprovalRequest, Approve, HitlDecision, SafeExecShell
from ghost.text import map_text, one_line, short_id, short_ids, visible

RULE_WIDTH = 70
MAX_WIDTH = 120
"""Of lines that are wrapped: wider ones are hard to read."""
MAX_SAID = 2
"""Lines of what a brain says before it calls tools; a question to the engineer is shown whole."""
CAPTURE_TOOLS = ("capture_traffic", "check_task", "cancel_task", "cleanup_task")
THROTTLED_WAITS = (10.0, 20.0, 40.0)
"""Seconds before each repetition of a throttled read, where Azure names none. az itself has repeated it before."""
LONGEST_THROTTLED_WAIT = 120.0
"""Where Azure names more, the read fails."""


class TerminalGoneError(KeyboardInterrupt):
    """The terminal is gone. Ends the investigation like Ctrl-C; it is not a tool result."""


_ACTION = {
    "auto_approved": "auto-approved",
    "user_approved": "approved",
    "user_denied": "denied",
    "user_modified": "modified",
    "user_abandoned": "not answered, denied",
}


class Narration:
    """The agent's console. `interactive` says whether someone can answer questions."""

    def __init__(
        self, rich: Rich, *, interactive: bool, read: Callable[[str], str] = input, verbose: bool = False
    ) -> None:
        self.rich = rich
        self.real: Callable[[str], str] = str
        """Shows the values behind the placeholders of private mode."""
        self.simulated = False
        """Whether the orchestrator's clock is a lab's."""
        self._interactive = interactive
        self._read = read
        self._verbose = verbose
        self._progress: Progress | None = None
        self._modified: str | None = None
        self._last: RanCommand | None = None
        """The last command, not yet shown, while a capture is waited for: its polls are shown as one."""
        self.polling = False
        self._concluding, self._explained = False, True
        """Whether the turn concludes; whether it has said why it does what it does."""
        self.answers: Callable[[str], str | None] = lambda _: None
        """Answers to questions where nobody is there: a scenario's."""
        self.ask: Callable[[str], str | None] | None = None
        """Asks a question that may be answered elsewhere, too."""
        self.events: EventLines | None = None
        """Where events are told to programs."""

    def event(self, name: str, **fields: Any) -> None:
        if self.events is not None:
            try:
                self.events.tell(name, fields)
            except OSError as gone:
                raise TerminalGoneError from gone

    def decide(self, approve: Approve, request: ApprovalRequest) -> HitlDecision:
        """Ask for approval. A modified command is remembered, to show what really ran."""
        asked = {"command": "\n".join(request.lines), "kind": request.kind, "form": request.form}
        self.event("approval_asked", **asked, reasoning=request.reasoning, risk=request.risk, tier=request.tier)
        with self.quiet():
            decision = approve(request)
        self._modified = decision.modified_command or self._modified
        self.event("approval_answered", **asdict(decision))
        return decision

    def banner(self, *lines: str) -> None:
        width = min(RULE_WIDTH, self.rich.width)
        first, *others = (visible(line) for line in lines)
        for line in (f"══ {first} ".ljust(width, "═"), *(f"  {line}" for line in others)):
            self.line(line, style="bold")

    def line(self, text: str, style: str | None = None) -> None:
        """Show a text; where it is folded, its further lines stand two columns behind its first."""
        self.show(Text(self._folded(_indented(self.real(text))), style=style or ""))

    def detail(self, text: str) -> None:
        if self._verbose:
            self.line(text, style="dim")

    def show(self, what: RenderableType) -> None:
        """Everything shown passes here. Raises `TerminalGoneError` where it cannot be written."""
        last, self._last = self._last, None
        try:
            if last is not None:
                self.rich.print(last.line(self.rich.width), highlight=False, soft_wrap=True)
            self.rich.print(what, highlight=False, soft_wrap=isinstance(what, Text))  # texts are folded already
        except OSError as gone:
            raise TerminalGoneError from gone

    def flush(self) -> None:
        """Show the last command before something else writes to the terminal."""
        if self._last is not None:
            last, self._last = self._last, None
            self.show(last.line(self.rich.width))

    def _folded(self, text: str) -> str:
        """Fold at spaces only: an id that is broken cannot be copied. A pipe gets each line whole."""
        if self.rich.soft_wrap or not self.rich.is_terminal:
            return text
        width = min(self.rich.width, MAX_WIDTH)
        folded = []
        for line in text.split("\n"):
            lead = line[: len(line) - len(line.lstrip())]
            folded += textwrap.wrap(
                line, width, initial_indent="", subsequent_indent=f"{lead}  ", drop_whitespace=True,
                break_long_words=False, break_on_hyphens=False, replace_whitespace=False,
            ) or [""]  # fmt: skip
        return "\n".join(folded)

    def announce(self, text: str) -> None:
        """Lines of the orchestrator (`[Cloud Orchestrator] ...`); its routine is what the commands show."""
        if self._verbose or not is_routine(text):
            told = text.replace("Duration: ", "Simulated duration: ") if self.simulated else text
            self.line(told, style="cyan")  # whole: a remedy in it is to be copied

    def said(self, turn: Turn) -> None:
        self.event("turn", text=turn.text, calls=len(turn.tool_calls))
        self._concluding = any(call.name == "complete_investigation" for call in turn.tool_calls)
        self._explained = bool(turn.text.strip())
        if self._explained and (self._verbose or not self._concluding):  # what it concludes is shown at the end
            folded = self._folded(f"[Ghost Agent] {_indented(self.real(turn.text.strip()))}").split("\n")
            if turn.tool_calls and not self._verbose and len(folded) > MAX_SAID:
                last = folded[MAX_SAID - 1][: min(self.rich.width, MAX_WIDTH) - 2].rstrip()
                folded = [*folded[: MAX_SAID - 1], f"{last} …"]
            told = Text("\n".join(folded))
            told.stylize("bold magenta", 0, len("[Ghost Agent]"))
            self.show(told)

        used = turn.usage
        if used.input_tokens or used.output_tokens:
            self.line(f"  {used_up([turn])}", style="dim")

    def calling(self, call: ToolCall) -> None:
        self.event("call", id=call.id, tool=call.name, arguments=call.arguments)

    def returned(self, call: ToolCall, result: dict[str, Any]) -> None:
        self.event("result", id=call.id, tool=call.name, **told_of(result))
        if call.name == "manage_hypotheses":
            self._hypothesis(call, result)
        elif result.get("status") == "error" and call.name != "run_shell_cmd":
            told = "; ".join(result.get("problems") or []) or result.get("message") or result.get("error")
            if self._verbose or call.name != "complete_investigation":
                self.line(f"  {call.name}: {told}", style="red")
            else:
                self.line("  The conclusion goes back: the records do not say all of it.", style="yellow")
        elif result.get("error") == "preflight":
            self.line(f"  not run: {result.get('suggestion')}", style="yellow")
        elif result.get("error") in {"invalid_arguments", "investigation_complete"}:
            self.line(f"  not run: {result.get('message')}", style="yellow")
        meta = result.get("_meta", {})
        for key in ("warning", "instruction"):
            if key in meta:
                self.line(f"  {meta[key]}", style="yellow")

    def answer(self, question: str) -> str | None:
        self.event("question", text=question)
        answer = self._answer(question)
        self.event("answer", text=answer)
        return answer

    def _answer(self, question: str) -> str | None:
        if self.ask is not None:
            return self.ask(question)
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

    def choose_each(self, question: str, items: Sequence[str]) -> list[bool] | None:
        """Ask once for a yes or no for each item; None if nobody answers or the answer is left for later."""
        listed = "\n".join([question, *(f"  {number}. {item}" for number, item in enumerate(items, 1))])
        self.event("question", text=listed)
        answer = self._each(listed, len(items)) if self._interactive else None
        self.event("answer", text=answer)
        return [letter == "y" for letter in answer] if answer else None

    def _each(self, listed: str, count: int) -> str | None:
        self.line(listed)
        form = "y or n for all" + (f", or {count} letters for each in turn" if count > 1 else "")
        try:
            while True:
                answer = self._read(f"{form}; Enter: ask next time > ").strip().lower()
                answer = answer * count if len(answer) == 1 else answer
                if not answer or (len(answer) == count and set(answer) <= {"y", "n"}):
                    return answer or None
        except EOFError:
            return None

    def ran(self, response: dict[str, Any], command: str, reason: str) -> None:
        """Show a command that ended: one line, and what a program that failed said."""
        classification = str(response.get("classification"))
        action = _ACTION.get(str(response.get("action")), "not run")
        changed = response.get("action") == "user_modified" and self._modified
        ran = str(changed or command)
        self._modified = None
        self.event("command", command=ran, **told_of(response))
        if self._verbose:
            why = f"another command was asked for: {reason}" if changed else reason
            self.line(shortened(f"      why: {why}"), style="dim")
            whole = one_line(shortened(visible(self.real(ran))), None)
            self.line(f"[Shell] {classification} — {action}: {whole}", style=CLASS_STYLE.get(classification))
            self.line(f"      {response.get('audit_id')}  {outcome_of(response)}", style="dim")
            return
        if not self._explained:  # a model that says nothing: the reason that it gives for its first command
            self._explained = True
            self.line(f"[Ghost Agent] {reason}")
        asked = "" if classification == "SAFE" and not changed else f"{classification}, {action}"
        told = RanCommand.of(response, label(self.real(ran)), asked)
        if self._last is not None and self._last.is_repeated_by(told):
            self._last = self._last.repeated(told)
            return
        self.flush()
        self._last = told
        if told.complaint or not self.polling:
            self.flush()
        if told.complaint:
            self.line(f"    {told.complaint}", style="yellow")

    def conclusion(self, report: dict[str, Any]) -> None:
        supported, outcome = report["summary"]["supported"], str(report["outcome"]).replace("_", " ")
        doubt = "" if supported else " (NOT supported by the records)"
        causes = "; ".join(_named(map_text(cause, self.real), report["confidence"]) for cause in report["causes"])
        found = report["outcome"] == "cause_found" and supported
        style = "bold red" if found else "bold green" if report["outcome"] == "healthy" else "bold yellow"
        first = f"{outcome.capitalize()}{doubt}, {report['confidence']} confidence"
        self.line(f"{first}: {causes}" if causes else first, style=style)
        self.line(f"  {short_ids(report['summary']['text'], report['session_id'])}")
        states = ", ".join(_settled(hypothesis) for hypothesis in report["hypotheses"])
        if states:
            self.line(f"  Hypotheses: {states}", style="dim")
        if report["actions"]:
            self.line("What to do", style="bold")
        for action in report["actions"]:
            of = f" ({action['classification']})" if action["classification"] else ""
            self.line(f"  - {action['text']}{of}")
        for run_on, command in next_commands(report):
            self.line(f"  - on {visible(run_on)}: {visible(command)}")
        for note in report["advisories"]:
            self.line(f"! {short_ids(note, report['session_id'])}", style="yellow")
        unverified = [row["layer"].replace("_", " ") for row in report["coverage"] if row["status"] == "not_verified"]
        if unverified:
            self.line(f"Not verified: {', '.join(unverified)}", style="dim")

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """A progress line with the time it takes, while a command runs or a model answers; on a terminal only."""
        if not (self.rich.is_terminal and sys.stdout.isatty()):
            yield
            return
        fits = visible(self.real(what))[: min(self.rich.width - 16, MAX_WIDTH)]
        if self._progress is not None:  # a command of a tool that waits
            task = self._progress.tasks[0]
            before = task.description
            self._progress.update(task.id, description=fits)
            yield
            self._progress.update(task.id, description=before)
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}", style="dim", markup=False), TimeElapsedColumn())
        self._progress = Progress(*columns, console=self.rich, transient=True)
        self._progress.add_task(fits, total=None)
        try:
            with self._progress:
                yield
        finally:
            self._progress = None

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Hide the progress line during a prompt."""
        self.flush()
        progress = self._progress
        if progress is not None:
            progress.stop()
        yield
        if progress is not None:  # not after an exception: a progress line started then would outlive the command
            progress.start()

    def _hypothesis(self, call: ToolCall, result: dict[str, Any]) -> None:
        action, identity = str(call.arguments.get("action")), str(call.arguments.get("id"))
        if result.get("status") != "ok":
            self.line(f"  {identity}: {result.get('message')}", style="red")
        elif action == "register":
            self.line(f"  ? {identity}  {call.arguments.get('description')}", style="bold")
            if self._verbose:
                self.line(f"      refuted by: {call.arguments.get('refuted_by')}", style="dim")
        elif self._verbose or not self._concluding:
            state = {"confirm": "CONFIRMED", "refute": "REFUTED", "contradict": "CONTRADICTED"}.get(action, "ACTIVE")
            style = {"CONFIRMED": "bold green", "REFUTED": "dim", "CONTRADICTED": "yellow"}.get(state)
            cited = _cited(call.arguments.get("audit_ids") or [])
            self.line(f"  {_STATE_MARK.get(state, '?')} {identity} {state}{cited}", style=style)


_STATE_MARK = {"CONFIRMED": "✓", "REFUTED": "✗", "CONTRADICTED": "!"}


def _settled(hypothesis: dict[str, Any]) -> str:
    state = "not settled" if hypothesis["state"] == "ACTIVE" else hypothesis["state"]
    return f"{hypothesis['id']} {state}"


def _cited(audit_ids: Sequence[str]) -> str:
    if not audit_ids:
        return ""
    more = f" and {len(audit_ids) - 3} more" if len(audit_ids) > 3 else ""
    return f" by {', '.join(short_id(each) for each in audit_ids[:3])}{more}"


class ShownBrain:
    """A brain, with a progress line while it decides."""

    def __init__(self, brain: Brain, narration: Narration) -> None:
        self.name = brain.name
        self.prompt_hash = brain.prompt_hash
        self._brain = brain
        self._narration = narration

    def next_turn(self, conversation: Sequence[Message]) -> Turn:
        self._narration.flush()
        with self._narration.waiting(f"waiting for {self.name}"):
            return self._brain.next_turn(conversation)


class ShownTools(Tools):
    """The tools of an investigation, with a progress line while a capture is waited for."""

    narration: Narration

    def call(self, call: ToolCall) -> ToolResult:
        if call.name not in CAPTURE_TOOLS:
            return super().call(call)
        with self.narration.waiting(f"{call.name.replace('_', ' ')}: waiting for Azure"):
            self.narration.polling = True
            try:
                return super().call(call)
            finally:
                self.narration.polling = False


class NarratedShell:
    """The shell of an investigation, with each command shown as it runs. Repeats reads that Azure throttled."""

    def __init__(self, shell: SafeExecShell, narration: Narration, clock: Clock) -> None:
        """`clock`: that of the network, which may be a lab's."""
        self._shell = shell
        self._narration = narration
        self._clock = clock

    @property
    def audit_head(self) -> Head:
        return self._shell.audit_head

    @property
    def approvals_head(self) -> Head:
        return self._shell.approvals_head

    def runs_unasked(self, command: str) -> bool:
        return self._shell.runs_unasked(command)

    def approve_plan(self, commands: Sequence[str], reasoning: str) -> str | None:
        return self._shell.approve_plan(commands, reasoning)

    def execute(self, request: dict[str, Any]) -> dict[str, Any]:
        return self.execute_all([request])[0]

    def execute_all(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Run commands as `SafeExecShell` does. Raises `LoginError` where Azure asks for a new login."""
        responses = list(self._run(requests))
        for wait in THROTTLED_WAITS:
            again = [n for n, response in enumerate(responses) if self._may_repeat(requests[n], response)]
            if not again:
                break
            errors = [_error(requests[n], responses[n]) for n in again]
            seconds = max(error.retry_after_seconds or wait for error in errors if error)
            if seconds > LONGEST_THROTTLED_WAIT:
                break
            self._narration.line(f"  Azure throttles this login: asking again in {seconds:g} s.", style="yellow")
            with self._narration.waiting(f"waiting {seconds:g} s, as Azure asks"):
                self._clock.sleep(seconds)
            for n, response in zip(again, self._run([requests[n] for n in again]), strict=True):
                responses[n] = response
        for request, response in zip(requests, responses, strict=True):
            error = _error(request, response)
            if error is not None and error.needs_login:
                self._narration.flush()
                why = f"{error.meaning} ({error.code})" if error.code else error.meaning
                raise LoginError(f"{why}: run az login, then --resume this session or start anew")
        return responses

    def _may_repeat(self, request: dict[str, Any], response: dict[str, Any]) -> bool:
        error = _error(request, response)
        throttled = error is not None and error.kind is ErrorKind.THROTTLED
        return throttled and self._shell.runs_unasked(str(request.get("command") or ""))

    def _run(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        commands = [str(request.get("command") or "") for request in requests]
        counted = f" {len(commands)} commands" if len(commands) > 1 else ""
        with self._narration.waiting(
            f"running{counted}: {', '.join(label(self._narration.real(each)) for each in commands)}"
        ):
            responses = self._shell.execute_all(requests)
        for request, command, response in zip(requests, commands, responses, strict=True):
            self._narration.ran(response, command, str(request.get("reasoning") or ""))
        for context in self._shell.contexts():
            self._narration.line(f"  {context}")
        for note in self._shell.notes():
            self._narration.detail(f"      {note}")
        return responses


def _error(request: dict[str, Any], response: dict[str, Any]) -> AzureError | None:
    return error_of(str(request.get("command") or ""), response)


def _named(cause: dict[str, Any], confidence: str) -> str:
    place = " ".join(filter(None, (name_of(cause["resource"]), cause["rule"], cause["direction"])))
    doubt = cause["confidence"] if cause["supported"] else "unsupported"
    where = place_of(cause) if place else ""
    return f"{cause['kind'].replace('_', ' ')}{where}{place}{f' ({doubt})' if doubt != confidence else ''}"


def used_up(turns: Sequence[Turn]) -> str:
    """Return the tokens and the price of turns in words; a price that is not known for each is left out."""
    tokens_in, tokens_out = (sum(getattr(t.usage, f"{way}_tokens") for t in turns) for way in ("input", "output"))
    costs = [turn.usage.cost for turn in turns]
    price = "" if None in costs else f", ${sum(cost or 0.0 for cost in costs):.4f}"
    return f"{tokens_in:,} tokens in, {tokens_out:,} out{price}"


def _indented(text: str) -> str:
    """`text` for the terminal, its further lines indented: none of a model's looks like one of the shell's."""
    return visible(text, keep="\n\t").replace("\n", "\n    ")
