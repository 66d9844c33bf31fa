"""The case file of one investigation: statements, findings, and which layers are cleared by which record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ghost.brain.offline.azure_reads import Read, Reading, reading_of
from ghost.brain.offline.steps import Call, Question, Step, Steps
from ghost.net import Direction, Flow, Mend, Missing, Network

LAYERS = (
    "local_probe",
    "vm_state",
    "nsg_outbound",
    "nsg_inbound",
    "routes",
    "peering",
    "dns",
    "service_endpoints",
    "load_balancer",
    "guest_firewall",
    "wire",
)
Status = Literal["cleared", "at_fault", "not_verified"]


@dataclass(frozen=True)
class Cause:
    """A fault that explains the symptom."""

    layer: str
    hypothesis: str
    text: str
    audit_ids: tuple[str, ...]
    actions: tuple[str, ...] = ()
    conclusive: bool = False
    """Proven by itself, independent of layers that could not be verified."""
    kind: str = ""
    """Of `ghost.net`'s kinds of fault; empty if the records do not tell one."""
    resource: str = ""
    """Id or name of what is to be corrected."""
    rule: str = ""
    direction: Direction | None = None
    port: int | None = None
    """Of the flow, where it is not the symptom's."""
    likely: bool = False
    """The records leave another kind possible."""
    flow: Flow | None = None
    """What it stops, where configuration tells it."""
    seen_on: Flow | None = None
    """The traffic on which a capture shows it."""
    mend: Mend | None = None
    """The change with which the flow was walked again and passes."""

    @property
    def identity(self) -> tuple[str, ...] | None:
        """What makes two causes the same fault; None where the kind is not known."""
        return (self.kind, self.resource.casefold(), self.rule, self.direction or "") if self.kind else None


@dataclass(frozen=True)
class Layer:
    status: Status
    audit_ids: tuple[str, ...]
    note: str


@dataclass
class Case:
    symptom: str
    notes: list[str] = field(default_factory=list)
    """Sentences for the next turn."""
    statements: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    layers: dict[str, Layer] = field(default_factory=dict)
    by_source: set[str] = field(default_factory=set)
    """Layers that stop some of the possible sources and let others pass: no walk of one of these clears them."""
    gaps: list[tuple[str, str]] = field(default_factory=list)
    """Layers that could not be verified, and why."""
    observations: list[str] = field(default_factory=list)
    """Faults of other traffic than the symptom's. They do not affect the verdict."""
    actions: list[str] = field(default_factory=list)
    reads: dict[str, Reading] = field(default_factory=dict)
    """Results by command. A command runs once, in particular one that was denied."""
    earlier: dict[str, Reading] = field(default_factory=dict)
    """Records of an earlier session, by command, that answer reads in place of Azure."""
    earlier_wire: dict[str, Any] | None = None
    """What that session says of the wire, in place of another capture: status, audit_ids, note."""
    answered: dict[str, str] = field(default_factory=dict)
    """What a person said, by question: what is walked a second time does not ask again."""
    resolved: dict[str, str] = field(default_factory=dict)
    """Hypothesis to confirm or refute."""
    captures: dict[tuple[str, int], Any] = field(default_factory=dict)
    """Of `wire_captures`: what became of the capture of so many seconds at a machine."""
    contradicted: set[str] = field(default_factory=set)
    """Hypotheses about which evidence disagrees."""
    verdicts: list[Call] = field(default_factory=list)
    """Hypothesis changes that the next turn makes before its calls."""
    asked: int = 0
    ends_confirmed: bool = False
    """Whether a person said which traffic is meant."""
    network: Network = field(default_factory=Network)
    """What was read of the tenant; `reference` of each resource is the audit id of its read."""
    asked_of_azure: set[Missing] = field(default_factory=set)
    """What was read, or tried to be, for `network`."""

    @property
    def explained(self) -> bool:
        """Whether a cause is known by its kind; what a capture shows may leave several open."""
        return any(cause.kind for cause in self.causes)

    def say(self, text: str) -> None:
        self.notes.append(text)

    def state(self, text: str, *audit_ids: str) -> None:
        """Add a finding to the report and to the next turn's text."""
        self.statements.append((text, tuple(dict.fromkeys(audit_ids))))
        self.notes.append(text)

    def cover(self, layer: str, status: Status, audit_ids: Iterable[str], note: str) -> None:
        """Set a layer's status. A fault is never overwritten, and "not verified" is not overwritten by weaker
        evidence.
        """
        before = self.layers.get(layer)
        if status != "not_verified":
            self.gaps = [gap for gap in self.gaps if gap[0] != layer]
        if before is None or before.status != "at_fault":
            self.layers[layer] = Layer(status, tuple(dict.fromkeys(audit_ids)), note)
        elif status == "at_fault":
            both = tuple(dict.fromkeys((*before.audit_ids, *audit_ids)))
            self.layers[layer] = Layer("at_fault", both, f"{before.note}; {note}")

    def cover_as_stated(self, row: Mapping[str, Any]) -> None:
        """Set a layer's status to a row of a report's coverage."""
        if row["status"] == "not_verified":
            self.not_verified(row["layer"], row["note"], row["audit_ids"])
        else:
            self.cover(row["layer"], row["status"], row["audit_ids"], row["note"])

    def not_verified(self, layer: str, note: str, audit_ids: Iterable[str] = ()) -> None:
        self.cover(layer, "not_verified", audit_ids, note)
        gap = (layer, note)
        if gap not in self.gaps:
            self.gaps.append(gap)

    def blame(self, cause: Cause) -> None:
        """Add a cause. One of the same fault, as more is known by now, takes the place of the earlier one."""
        known = [each.identity for each in self.causes]
        if cause.identity is not None and cause.identity in known:
            self._blame_anew(known.index(cause.identity), cause)
            return
        self.causes.append(cause)
        self.cover(cause.layer, "at_fault", cause.audit_ids, cause.text)
        self.state(cause.text, *cause.audit_ids)
        self.actions.extend(action for action in cause.actions if action not in self.actions)

    def _blame_anew(self, place: int, cause: Cause) -> None:
        before, self.causes[place] = self.causes[place], cause
        self.actions = [action for action in self.actions if action not in before.actions]
        self.actions.extend(action for action in cause.actions if action not in self.actions)
        layer = self.layers[before.layer]
        both = tuple(dict.fromkeys((*layer.audit_ids, *cause.audit_ids)))
        self.layers[before.layer] = Layer("at_fault", both, layer.note.replace(before.text, cause.text))
        self.statements = [
            (cause.text, cause.audit_ids) if text == before.text else (text, ids) for text, ids in self.statements
        ]

    def spoken(self, purpose: str) -> str:
        """Return the pending sentences and `purpose` as the text of a turn."""
        text = " ".join([*self.notes, purpose]).strip()
        self.notes.clear()
        return text


def run(case: Case, purpose: str, calls: Sequence[Call]) -> Steps[list[dict[str, Any]]]:
    """Run the calls in one turn, after pending hypothesis changes."""
    verdicts = tuple(case.verdicts)
    case.verdicts.clear()
    results: list[dict[str, Any]] = yield Step(case.spoken(purpose), (*verdicts, *calls))
    return results[len(verdicts) :]


def ask(case: Case, question: str) -> Steps[str]:
    case.asked += 1
    if question not in case.answered:
        case.answered[question] = yield Question(case.spoken(question))
    return case.answered[question]


def read(case: Case, purpose: str, *reads: Read) -> Steps[list[Reading]]:
    """Run the reads not yet run, in one turn; those that an earlier session's records answer are not run."""
    case.reads |= {r.command: case.earlier[r.command] for r in reads if r.command in case.earlier.keys() - case.reads}
    new = {item.command: item for item in reads if item.command not in case.reads}
    if new:
        results = yield from run(case, purpose, [shell_call(item) for item in new.values()])
        case.reads |= {command: reading_of(result) for command, result in zip(new, results, strict=True)}
    return [case.reads[item.command] for item in reads]


def shell_call(item: Read) -> Call:
    arguments: dict[str, Any] = {"command": item.command, "reasoning": item.reasoning}
    if item.tests:
        arguments["hypothesis_ids"] = list(item.tests)
    return Call("run_shell_cmd", arguments)


# Hypotheses


def confirm(case: Case, hypothesis: str, audit_ids: Iterable[str]) -> None:
    _resolve(case, hypothesis, "confirm", audit_ids)


def refute(case: Case, hypothesis: str, audit_ids: Iterable[str]) -> None:
    _resolve(case, hypothesis, "refute", audit_ids)


def _resolve(case: Case, hypothesis: str, action: str, audit_ids: Iterable[str]) -> None:
    cited = list(dict.fromkeys(audit_ids))
    if cited and hypothesis not in case.resolved:
        case.resolved[hypothesis] = action
        case.verdicts.append(Call("manage_hypotheses", {"action": action, "id": hypothesis, "audit_ids": cited}))
