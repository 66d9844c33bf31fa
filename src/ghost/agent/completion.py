"""Checks of a conclusion before it stands: citations, causes, hypotheses, and how confident the records allow it to be.

A conclusion with problems goes back to the brain twice; then it stands, with what is unsupported printed as such. The
reasons for the bounds are in `docs/decisions.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from ghost.agent.audit_evidence import Evidence, ages, cited_ids, tag_of
from ghost.agent.facts import UNCITED, Proof, proofs_of
from ghost.agent.hypotheses import State
from ghost.agent.session import Session
from ghost.net import known_kinds
from ghost.shell import FORBIDDEN, classify

MAX_RETURNS: Final = 2
"""How often a conclusion with problems goes back to the brain."""
MAX_LISTED: Final = 12
LEVELS: Final = ("low", "medium", "high")
_COMMAND: Final = re.compile(
    r"(?:^|[\s:`“])(?P<command>(?:az|sudo|rm|dd|mkfs\S*|systemctl|iptables|nft|curl|shutdown|reboot) [^`”]+)"
)
"""The command in a recommendation, after the words that lead to it."""
_HEALTHY_NEEDS: Final = ("vm_state", "nsg_outbound", "nsg_inbound", "routes", "wire")
_LISTED: Final = {"confirmed": State.CONFIRMED, "refuted": State.REFUTED}


def summary_ids(completion: Mapping[str, Any], session: Session) -> list[str]:
    """Return the records the summary rests on: those it names, else those of confirmed hypotheses or of statements."""
    confirmed = (h for h in session.hypothesis_log if h.state == State.CONFIRMED)
    return (
        cited_ids(str(completion.get("root_cause_summary", "")), session.session_id)
        or [audit_id for h in confirmed for audit_id in h.audit_ids]
        or [audit_id for s in completion.get("statements") or [] for audit_id in s.get("audit_ids", [])]
    )


def problems(completion: Mapping[str, Any], session: Session, evidence: Evidence) -> list[str]:
    """Return what the brain must correct before the conclusion stands; each names its place."""
    proofs, ids = proofs_of(evidence, session.session_id, session.meant), summary_ids(completion, session)
    wrong = [("root_cause_summary", proofs.text_problems(completion["root_cause_summary"]))]
    if ids or completion["confidence"] != "low":
        wrong.append(("root_cause_summary", _unsupported(ids, evidence)))
    wrong += [(f"statement {n}", proofs.statement_problems(s)) for n, s in enumerate(completion["statements"], 1)]
    wrong += [(f"coverage of {row['layer']}", proofs.coverage_problems(row)) for row in completion["coverage"]]
    found = list(dict.fromkeys(f"{place}: {problem}" for place, problems in wrong for problem in problems))
    found += [
        f"recommended_actions: {action['command']} is FORBIDDEN ({action['why']}): leave it out"
        for action in classified_actions(completion["recommended_actions"])
        if action["classification"] == FORBIDDEN
    ]
    found += _cause_problems(completion, session, evidence)
    states = {h.id: h.state for h in session.hypothesis_log}
    for name in ("confirmed", "refuted", "unverifiable", "contradicted"):
        for identity in completion[f"{name}_hypotheses"]:
            if identity not in states:
                found.append(
                    f"{name}_hypotheses: no hypothesis {identity!r}; registered: {', '.join(states) or 'none'}"
                )
            elif states[identity] != _LISTED.get(name, states[identity]):
                found.append(
                    f"{name}_hypotheses: {identity} is {states[identity].value}; settle it with manage_hypotheses "
                    "and the records that decide"
                )
    if completion["confidence"] == "high" and not _at_fault(completion, evidence, _confirming(session, evidence)):
        found.append(
            "confidence: high needs a layer at_fault in coverage that cites a [CLOUD] record, ended with exit 0, of a "
            "CONFIRMED hypothesis"
        )
    return found[:MAX_LISTED]


def bounded_confidence(completion: Mapping[str, Any], session: Session, evidence: Evidence) -> tuple[str, list[str]]:
    """Return the confidence that the records allow, at most the stated one, and why it is lower."""
    stated = str(completion["confidence"])
    bounds = [(bound, why) for bound, why in _bounds(completion, session, evidence) if _below(bound, stated)]
    level = min([stated, *(bound for bound, _ in bounds)], key=LEVELS.index)
    return level, [why for _, why in bounds]


def _bounds(completion: Mapping[str, Any], session: Session, evidence: Evidence) -> list[tuple[str, str]]:
    states = {h.id: h.state for h in session.hypothesis_log}
    confirmed = _confirming(session, evidence)
    settled = {State.CONFIRMED, State.REFUTED}
    denied = {i for i, state in states.items() if state == State.UNVERIFIABLE}
    untested = denied | {i for i in completion["unverifiable_hypotheses"] if states.get(i) not in settled}
    contradicted = {i for i, state in states.items() if state == State.CONTRADICTED}
    contradicted |= {i for i in completion["contradicted_hypotheses"] if states.get(i) not in settled}
    bounds = []
    if _unsupported(summary_ids(completion, session), evidence):
        bounds.append(("low", "the summary is not supported by the records"))
    proofs = proofs_of(evidence, session.session_id, session.meant)
    if any(proofs.statement_problems(statement) for statement in completion["statements"]):
        bounds.append(("medium", "a statement is not supported by the records"))
    causes = judged_causes(completion, session, evidence)
    if any(not cause["supported"] for cause in causes):
        bounds.append(("medium", "a cause is not supported by the records"))
    if not confirmed:
        bounds.append(("medium", "no hypothesis is CONFIRMED by a [CLOUD] record"))
    elif not _at_fault(completion, evidence, confirmed):
        bounds.append(("medium", "no layer at fault rests on a record of a CONFIRMED hypothesis"))
    else:
        levels = [cause["confidence"] for cause in causes if cause["supported"]]
        best = max(levels, key=LEVELS.index, default="medium")
        bounds.append((best, f"no cause is more than {best}" if levels else "no supported cause is named"))
    if untested and not confirmed:
        bounds.append(("low", f"{', '.join(sorted(untested))} could not be verified"))
    elif denied:
        bounds.append(("medium", f"{', '.join(sorted(denied))} could not be verified"))
    if evidence.earlier is not None and (old := evidence.minutes_since_earlier()) > ages().fresh_minutes:
        why = f"the rest of the path rests on records of an earlier session, read {old:.0f} minutes before"
        bounds.append(("medium", why))
    if contradicted:
        bounds.append(("medium", f"contradicting results of {', '.join(sorted(contradicted))} are not resolved"))
    return bounds


def judged_causes(completion: Mapping[str, Any], session: Session, evidence: Evidence) -> list[dict[str, Any]]:
    """Return the stated causes, each with its `problems` and no more confident than its own records allow."""
    blamed = {i for ids in _printed(completion, evidence, "at_fault").values() for i in ids}
    deciding = blamed & _confirming(session, evidence)
    judged = []
    for cause in completion.get("causes") or []:
        proof = proof_of(cause, session, evidence)
        certain = deciding.intersection(cause["audit_ids"]) and not proof.limit
        bound = "low" if proof.problems else "high" if certain else "medium"
        level = min(bound, cause["confidence"], key=LEVELS.index)
        supported = {"supported": not proof.problems, "problems": list(proof.problems), "checked": proof.checked}
        supported |= {"limit": proof.limit} if proof.limit else {}
        kind = known_kinds().get(str(cause["kind"]))
        layer = {"layer": kind.layer} if kind is not None else {}
        judged.append({**cause, "confidence": level, **layer, **supported})
    return judged


def classified_actions(actions: Iterable[str]) -> list[dict[str, Any]]:
    """Return the recommended actions, each with its command, if it is one, and the shell's classification of it."""
    rows = []
    for text in actions:
        found = _COMMAND.search(text)
        command = found["command"].rstrip("`”. ") if found else None
        classification, _, why = classify(command) if command else (None, None, "")
        rows.append({"text": text, "command": command, "classification": classification, "why": why})
    return rows


def settled_outcome(completion: Mapping[str, Any], session: Session, evidence: Evidence) -> str:
    """Return the outcome that the records allow: of older brains, which state none, too.

    A supported cause is found, whatever is stated; `healthy` stands only while nothing speaks against it.
    """
    if any(cause["supported"] for cause in judged_causes(completion, session, evidence)):
        return "cause_found"
    stated = completion.get("outcome")
    if stated == "healthy" and not list(_against_health(completion, session, evidence)):
        return "healthy"
    ran = any(r.get("status") == "completed" for i, r in evidence.items() if i not in session.startup_audit_ids)
    return "not_investigated" if stated == "not_investigated" or not (stated or ran) else "inconclusive"


def _cause_problems(completion: Mapping[str, Any], session: Session, evidence: Evidence) -> Iterator[str]:
    judged, outcome = judged_causes(completion, session, evidence), completion["outcome"]
    for number, (cause, stated) in enumerate(zip(judged, completion["causes"], strict=True), 1):
        yield from (f"cause {number}: {problem}" for problem in cause["problems"])
        if cause["supported"] and cause["confidence"] != stated["confidence"] and "limit" in cause:
            yield f"cause {number}: high needs {cause['limit']}"
        elif cause["supported"] and cause["confidence"] != stated["confidence"]:
            yield (
                f"cause {number}: high needs a [CLOUD] record, ended with exit 0, of a CONFIRMED hypothesis, that a "
                "layer at_fault in coverage cites too"
            )
    if judged and outcome not in (None, "cause_found"):
        yield f"outcome: {outcome} has no causes; one that is not certain is cause_found with confidence low"
    elif outcome == "cause_found" and not judged:
        yield "outcome: cause_found needs a cause in causes"
    elif outcome == "healthy":
        yield from (f"outcome: healthy, but {why}" for why in _against_health(completion, session, evidence))
    elif not judged and session.meant is not None and session.meant.sure and outcome is not None:
        stopped = proofs_of(evidence, session.session_id, session.meant).stopped()
        yield from (f"outcome: {outcome}, but {walk}: name the cause in causes" for walk in stopped)
    elif outcome is None and not judged and (blamed := list(_printed(completion, evidence, "at_fault"))):
        yield f"causes: coverage blames {', '.join(blamed)}; name the cause, with outcome cause_found"


def proof_of(cause: Mapping[str, Any], session: Session, evidence: Evidence) -> Proof:
    """Return what the records say to a cause; one that names or cites nothing usable is not compared with them."""
    found, kind, known = [], str(cause["kind"]), known_kinds()
    if kind not in known:
        near = get_close_matches(kind, known, 3, 0.4)
        found.append(
            f"unknown kind {kind!r}; " + (f"near: {', '.join(near)}" if near else f"known: {', '.join(known)}")
        )
    if not cause["resource"].strip():
        found.append("names no resource")
    found += _unsupported(cause["audit_ids"], evidence)
    return Proof(tuple(found)) if found else proofs_of(evidence, session.session_id, session.meant).proof_of(cause)


def _against_health(completion: Mapping[str, Any], session: Session, evidence: Evidence) -> Iterator[str]:
    if blamed := list(_printed(completion, evidence, "at_fault")):
        yield f"coverage blames {', '.join(blamed)}"
    cleared = _printed(completion, evidence, "cleared")
    proofs = proofs_of(evidence, session.session_id, session.meant)
    yield from proofs.not_passing()
    if "wire" in cleared and not proofs.clears_the_wire(cleared["wire"]):
        yield "no capture clears the wire"
    if unclear := [layer for layer in _HEALTHY_NEEDS if not _in_cloud(cleared.get(layer, []), session, evidence)]:
        yield f"no [CLOUD] record clears {', '.join(unclear)}"
    open_ones = [h.id for h in session.hypothesis_log if h.state != State.REFUTED]
    if not session.hypothesis_log:
        yield "no hypothesis was tested"
    elif open_ones:
        yield f"{', '.join(open_ones)} {'is' if len(open_ones) == 1 else 'are'} not refuted"


def _below(bound: str, stated: str) -> bool:
    return LEVELS.index(bound) < LEVELS.index(stated)


def _unsupported(audit_ids: list[str], evidence: Evidence) -> list[str]:
    return evidence.problems(audit_ids) if audit_ids else [UNCITED]


def _confirming(session: Session, evidence: Evidence) -> set[str]:
    """Return the records of CONFIRMED hypotheses whose command the brain asked for, ran in the cloud and succeeded."""
    cited = {audit_id for h in session.hypothesis_log if h.state == State.CONFIRMED for audit_id in h.audit_ids}
    return _in_cloud(cited, session, evidence)


def _in_cloud(audit_ids: Iterable[str], session: Session, evidence: Evidence) -> set[str]:
    records = {i: evidence[i] for i in {*audit_ids} - {*session.startup_audit_ids} if i in evidence}
    return {i for i, r in records.items() if tag_of(r).context == "[CLOUD]" and r.get("exit_code") == 0}


def _at_fault(completion: Mapping[str, Any], evidence: Evidence, confirming: set[str]) -> bool:
    """Return whether the report will print a layer at fault that rests on one of these records."""
    return any(confirming.intersection(ids) for ids in _printed(completion, evidence, "at_fault").values())


def _printed(completion: Mapping[str, Any], evidence: Evidence, status: str) -> dict[str, list[str]]:
    """Return the layers that the report will print with this status, and their records."""
    last = {c["layer"]: c for c in completion.get("coverage") or []}  # of two rows of a layer, the last
    return {
        layer: c["audit_ids"]
        for layer, c in last.items()
        if c["status"] == status and c["audit_ids"] and not evidence.problems(c["audit_ids"])
    }
