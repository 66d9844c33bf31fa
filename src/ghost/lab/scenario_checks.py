"""What must hold of a scenario: its faults make flows fail, their mends cure them, hand-written verdicts agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import get_args

from ghost.errors import LabError
from ghost.lab.briefing import NO_RULE
from ghost.lab.edits import edited
from ghost.lab.evaluation.scoring import names
from ghost.lab.flow_sight import UNKNOWN, FlowSight, look
from ghost.lab.scenario import Case, Scenario
from ghost.lab.truth import Fault, FlowEnds, Style
from ghost.lab.world import World
from ghost.net import is_address, known_kinds

UNSEEN_LAYER = "wire"
"""Faults that no configuration tells."""


@dataclass(frozen=True)
class Finding:
    check: str
    passed: bool
    detail: str = ""
    """What was found instead."""


def findings(scenario: Case) -> Iterator[Finding]:
    """Yield each check of a scenario and whether it passed. Of a tape, which has no world, the symptoms."""
    if isinstance(scenario, Scenario):
        yield from _flows(scenario)
        yield from _mends(scenario)
        yield from _blamed(scenario)
        yield from _verdicts(scenario)
        yield _resources(scenario)
        yield _denials(scenario)
    if any(symptom.style for symptom in scenario.symptoms):  # the first format has none
        missing = [style for style in get_args(Style) if style not in {s.style for s in scenario.symptoms}]
        yield Finding(
            "symptoms in five styles",
            not missing,
            f"missing: {', '.join(missing)}; or give none a style" if missing else "",
        )


def _flows(scenario: Scenario) -> Iterator[Finding]:
    for flow in scenario.flows:
        sight = _look(scenario.world, flow)
        found = "" if sight.experience == flow.expect else f"it is {sight.experience}: {sight.why}"
        yield Finding(f"flow {flow.name}: {flow.expect} with all faults", not found, found)


def _mends(scenario: Scenario) -> Iterator[Finding]:
    faults = scenario.truth.faults
    for index, fault in enumerate(faults):
        if not fault.mend:
            yield Finding(f"truth.faults[{index}].mend", False, "no change is given that corrects the fault")
    if not faults or not all(fault.mend for fault in faults):
        return
    hurt = {scenario.flow(fault.flow).name: scenario.flow(fault.flow) for fault in faults}
    for name, flow in hurt.items():
        sight = _sight_after(scenario, faults, flow)
        found = "" if sight.experience == "works" else f"it is {sight.experience}: {sight.why}"
        yield Finding(f"flow {name}: works when all faults are corrected", not found, found)
    if len(faults) == 1 or not scenario.truth.independent:
        return
    for index, fault in enumerate(faults):
        for name in sorted({scenario.flow(other.flow).name for other in faults if other is not fault}):
            flow = hurt[name]
            sight = _sight_after(scenario, [fault], flow)
            check = f"flow {flow.name}: fails when only fault {index + 1} ({fault.kind}) is corrected"
            yield Finding(check, sight.experience not in ("works", UNKNOWN), f"it is {sight.experience}: {sight.why}")


def _sight_after(scenario: Scenario, mended: Iterable[Fault], flow: FlowEnds) -> FlowSight:
    edits = [edit for fault in mended for edit in fault.mend]
    try:
        return _look(edited(scenario.world, edits, "mend"), flow)
    except LabError as error:
        return FlowSight(UNKNOWN, UNKNOWN, why=str(error))


def _look(world: World, flow: FlowEnds) -> FlowSight:
    try:
        return look(world, flow)
    except LabError as error:
        return FlowSight(UNKNOWN, UNKNOWN, why=str(error))


def _blamed(scenario: Scenario) -> Iterator[Finding]:
    """Yield whether the walk blames what the truth states, where configuration tells it. One fault may follow from
    another that the walk of another flow meets, where they are not independent.
    """
    for index, fault in enumerate(scenario.truth.faults):
        flow = scenario.flow(fault.flow)
        sight = _look(scenario.world, flow)
        if known_kinds()[fault.kind].layer == UNSEEN_LAYER or sight.verdict == "pass":
            continue
        others = () if scenario.truth.independent else scenario.flows
        blamed = [each for at in (flow, *others) for each in _look(scenario.world, at).faults]
        found = ", ".join(f"{each['kind']} at {each['resource']}" for each in blamed) or "nothing"
        passed = any(names(each, fault) for each in blamed)
        check = f"flow {flow.name}: the walk finds fault {index + 1} ({fault.kind})"
        yield Finding(check, passed, "" if passed else f"it finds {found}")


def _verdicts(scenario: Scenario) -> Iterator[Finding]:
    for index, hand in enumerate(scenario.verdicts):
        flow = scenario.flow(hand.flow) if isinstance(hand.flow, str) else hand.flow
        sight = _look(scenario.world, flow)
        same_rule = hand.rule is None or (sight.rule or "").casefold() == hand.rule.casefold()
        passed = sight.verdict == hand.verdict and same_rule
        found = "" if passed else f"the walk says {sight.verdict} by {sight.rule or 'no rule'}: {sight.why}"
        yield Finding(f"verdicts[{index}]: {hand.verdict} {hand.rule or ''}".rstrip(), passed, found)


def _resources(scenario: Scenario) -> Finding:
    truth = scenario.truth
    named = [(f"faults[{i}]", name) for i, fault in enumerate(truth.faults) for name in fault.resources]
    named += [(f"traps[{i}]", trap.resource) for i, trap in enumerate(truth.traps)]
    lost = [f"truth.{place}.resource: {name!r}" for place, name in named if not _exists(scenario.world, name)]
    return Finding("named resources exist", not lost, "; ".join(lost))


def _denials(scenario: Scenario) -> Finding:
    """Return whether an approval speaks of each command whose denial hides a layer: others run without one."""
    stated = [each.denied for each in scenario.truth.unverifiable]
    lost = [denied for denied in stated if scenario.approvals.decide(denied) is NO_RULE]
    return Finding("denials are answered", not lost, f"no approval matches {', '.join(lost)}" if lost else "")


def _exists(world: World, name: str) -> bool:
    """Return whether there is a resource of this reference, id or name, or an outside host of this address."""
    if "/" not in name:
        return is_address(name) or any(body["name"].casefold() == name.casefold() for body in world.documents)
    try:
        return bool(world.documents.existing(name))
    except LabError:
        return False
