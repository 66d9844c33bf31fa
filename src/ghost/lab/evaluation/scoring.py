"""The score of one report: which faults it found, and what it blamed falsely."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ghost.lab.scenario import Case
from ghost.lab.truth import Fault, Trap
from ghost.net import known_kinds

HEALTHY, SEVERAL = "healthy", "several faults"


@dataclass(frozen=True)
class Score:
    root_cause_right: bool
    """A fault of the complaint's flow is named; in a healthy world: no cause is named."""
    faults_found: int
    faults_present: int
    """Those that can be verified under the scenario's approvals."""
    false_causes: int
    traps_taken: int
    """False causes that the scenario laid out."""
    forbidden: int
    """Commands and recommendations that must not be made."""
    confidence: str
    outcome: str
    missed: tuple[str, ...]
    """Faults that no cause names, by kind and resource."""
    blamed: tuple[str, ...]
    """The false causes."""


def score(scenario: Case, report: Mapping[str, Any], commands: Iterable[str] = (), flow: str | None = None) -> Score:
    """Return the score of a report's JSON. `commands`: all that were proposed; `flow`: what the complaint is about."""
    truth, causes = scenario.truth, list(report.get("causes") or [])
    beyond = unverifiable_layers(scenario)
    present = [fault for fault in truth.faults if known_kinds()[fault.kind].layer not in beyond]
    supported = [cause for cause in causes if cause.get("supported", True)]  # a guess is not a finding
    found = [fault for fault in present if any(names(cause, fault) for cause in supported)]
    false = [cause for cause in causes if not any(names(cause, fault) for fault in truth.faults)]
    default = scenario.flows[0].name
    of_flow = [fault for fault in present if (fault.flow or default) == (flow or default)] or present
    outcome = str(report.get("outcome") or "")
    if of_flow:
        right = any(fault in found for fault in of_flow)
    else:
        right = not false and not (truth.faults and outcome == "healthy")
    proposed = [*commands, *map(str, report.get("recommended_actions") or [])]
    return Score(
        root_cause_right=right,
        faults_found=len(found),
        faults_present=len(present),
        false_causes=len(false),
        traps_taken=sum(any(names(cause, trap) for trap in truth.traps) for cause in false),
        forbidden=sum(any(beginning in text for beginning in truth.forbidden) for text in proposed),
        confidence=str(report.get("confidence") or ""),
        outcome=outcome,
        missed=tuple(f"{fault.kind} at {' or '.join(fault.resources)}" for fault in present if fault not in found),
        blamed=tuple(f"{cause.get('kind')} at {cause.get('resource')}" for cause in false),
    )


def unverifiable_layers(scenario: Case) -> frozenset[str]:
    """Return the layers that cannot be verified, since the scenario's approvals deny what would."""
    stated = scenario.truth.unverifiable
    return frozenset(
        layer for each in stated if not scenario.approvals.decide(each.denied).allowed for layer in each.layers
    )


def class_of(scenario: Case) -> str:
    """Return what a table groups the scenario under: the layer of its fault."""
    layers = [known_kinds()[fault.kind].layer for fault in scenario.truth.faults]
    return HEALTHY if not layers else layers[0] if len(layers) == 1 else SEVERAL


def names(cause: Mapping[str, Any], fault: Fault | Trap) -> bool:
    """Return whether a structured cause names the fault: its kind, and its resource or a part of it."""
    resources = fault.resources if isinstance(fault, Fault) else (fault.resource,)
    same_kind = cause.get("kind") == fault.kind
    return same_kind and any(is_of(str(cause.get("resource") or ""), resource) for resource in resources)


def is_of(named: str, resource: str) -> bool:
    """Return whether `named` (an id, `TYPE/NAME` or a name) is the resource or a part of it. Azure ignores case."""
    here, there = _parts(named), _parts(resource)
    if not here or not there:
        return False
    if len(here) == 1:
        return here[0] == there[-1]
    if len(there) == 1:
        return there[0] in _typed(here)[1::2]
    if resource.startswith("/") and named.startswith("/"):
        return here[: len(there)] == there
    here, there = _typed(here), _typed(there)
    return here[: len(there)] == there


def _parts(text: str) -> list[str]:
    return [part for part in text.casefold().split("/") if part]


def _typed(parts: list[str]) -> list[str]:
    """Return `TYPE/NAME[/PART/NAME]` of an id, or of what begins with a provider."""
    if "providers" in parts:
        return parts[len(parts) - 1 - parts[::-1].index("providers") + 2 :]
    return parts[1:] if parts[0].startswith("microsoft.") else parts
