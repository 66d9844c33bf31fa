"""Results that may contradict a resolved hypothesis, as far as code can tell.

Told are two cases: a command that decided a hypothesis now answers differently, and a capture arrives after one was
decided without any. What the results mean is for the brain, which records a contradiction with `manage_hypotheses`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ghost.agent.audit_evidence import CAPTURE, Evidence, tag_of
from ghost.agent.hypotheses import Hypothesis, State

INSTRUCTION: Final = (
    "If this contradicts the hypothesis: (1) name the evidence tier of each result; (2) trust the lower tier number, "
    "and say which result you rely on and why; (3) call manage_hypotheses with action contradict and both audit_ids, "
    "then confirm or refute by the trusted one; (4) list a hypothesis left open in contradicted_hypotheses, with both "
    "audit_ids in the root_cause_summary."
)


def possible_conflicts(
    hypotheses: Iterable[Hypothesis], evidence: Evidence, audit_ids: Iterable[str]
) -> dict[str, Any]:
    """Return the fields of `_meta` that tell what the new records `audit_ids` may contradict; empty if nothing."""
    resolved = [h for h in hypotheses if h.state in (State.CONFIRMED, State.REFUTED)]
    found = []
    for audit_id in audit_ids:
        new = evidence.get(audit_id)
        for hypothesis in resolved if new is not None and new.get("status") == "completed" else ():
            assert new is not None
            if reason := _reason(hypothesis, evidence, new):
                found.append({"hypothesis_id": hypothesis.id, "state": hypothesis.state.value, **reason})
    return {"possible_conflicts": found, "conflict_instruction": INSTRUCTION} if found else {}


def _reason(hypothesis: Hypothesis, evidence: Evidence, new: Mapping[str, Any]) -> dict[str, Any] | None:
    records = [evidence[i] for i in hypothesis.audit_ids if i in evidence and i != new["audit_id"]]
    same = [record for record in records if _command(record) == _command(new)][-1:]
    if same and _differ(same[0], new):
        return {"audit_ids": [same[0]["audit_id"], new["audit_id"]], "reason": "the same command answers differently"}
    if records and tag_of(new) == CAPTURE and all(tag_of(record) != CAPTURE for record in records):
        decided = records[-1]["audit_id"]
        return {"audit_ids": [decided, new["audit_id"]], "reason": "a capture (tier 1) arrived after the decision"}
    return None


def _command(record: Mapping[str, Any]) -> str:
    return str(record.get("modified_command") or record.get("command"))


def _differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two runs of a command answer differently; of a probe, whose times always do, its exit status."""
    if one.get("exit_code") != other.get("exit_code"):
        return True
    of_whole = {record["output_sha256"] for record in (one, other) if record.get("output_sha256")}
    return tag_of(one).tier <= 2 and (one.get("output") != other.get("output") or len(of_whole) == 2)
