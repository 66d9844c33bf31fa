"""`ghost ask`: a question about one session, answered from its records. Runs nothing and changes no record."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ghost.agent import (
    ANSWER_PROMPT,
    DO_NOT_SAY,
    Answer,
    Evidence,
    SessionRecords,
    Workspace,
    ask_model,
    look_up,
)
from ghost.brain import OfflineBrain
from ghost.cli.brain_choice import ChosenBrain, Wish, choose_brain
from ghost.cli.session_records import Recorded, option_of, recorded
from ghost.config import Settings
from ghost.errors import RecordError, UsageError
from ghost.records import read_json
from ghost.text import plural, short_id, visible

UNANSWERED: Final = 3
MAX_QUESTION: Final = 2_000
_READ_BY_MODEL: Final = (
    "Checked: each cited record exists, and the names used are in it or the report. The rest is the model's reading."
)
_OFFLINE: Final = "Offline answer: looked up in the report, no model was asked; --brain asks one."
_CAN_ASK: Final = (
    "Offline, name a layer (route, NSG, DNS, peering, capture ...), a hypothesis (H2), a record (#006), a resource, or "
    "ask for the cause; --brain asks a model."
)


def ask(session_id: str, question: str, wish: Wish, workspace_option: Path | None, *, as_json: bool) -> int:
    """Exit status: 0 answered, 3 the records do not say."""
    if not question.strip() or len(question) > MAX_QUESTION:
        raise UsageError(f"the question is empty or over {MAX_QUESTION:,} characters: ask one thing, in quotes.")
    settings = Settings()
    found = recorded(session_id, workspace_option, settings)
    paths = found.paths
    evidence = Evidence(paths.shell_audit)
    records = SessionRecords(paths.session_id, _report(found), evidence)
    chosen = choose_brain(wish, settings, Workspace(paths.audit_dir.parent), prompt=ANSWER_PROMPT)
    hold = all(check.ok for check in found.checks())
    if not hold:
        _note(f"NOT trustworthy, the records do not hold: see ghost audit verify {paths.session_id}.")
    offline = isinstance(chosen.brain, OfflineBrain)
    if not offline and (evidence.is_masked or (settings.private and not paths.anonymization_map.exists())):
        raise UsageError(
            "private mode is on and this session has no placeholders: ask with --brain offline, which sends nothing."
        )
    answer = look_up(evidence.hidden(question), records) if offline else _of_model(question, records, chosen, settings)
    if as_json:
        told = {**_as_json(question, records, chosen.brain.name, answer), "records_hold": hold}
        print(json.dumps(told, ensure_ascii=False, indent=2))
    else:
        _print(answer, records, offline=offline, option=option_of(paths.audit_dir.parent))
    return 0 if answer.sentences else UNANSWERED


def _of_model(question: str, records: SessionRecords, chosen: ChosenBrain, settings: Settings) -> Answer:
    chosen.outgoing.hide = records.evidence.hidden
    for note in chosen.notes:
        _note(note)
    chosen.told()
    _note(f"Asking {chosen.brain.name}...")
    answer = ask_model(question, records, chosen.brain, settings.context_tokens)
    used = answer.usage
    cost = f", ${used.cost:.4g}" if used.cost is not None else ""
    _note(f"It took {used.input_tokens:,} tokens in, {used.output_tokens:,} out{cost}.")
    return answer


def _report(found: Recorded) -> dict[str, Any]:
    """The report; of a session without one its symptom and hypotheses."""
    try:
        report = read_json(found.paths.report_json)
    except (FileNotFoundError, RecordError):
        report = None
    if isinstance(report, dict):
        return report
    if found.session is None:
        return {}
    hypotheses = [hypothesis.model_dump(mode="json") for hypothesis in found.session.hypothesis_log]
    return {"symptom": found.session.symptom, "outcome": "not_finished", "hypotheses": hypotheses}


def _print(answer: Answer, records: SessionRecords, *, offline: bool, option: str) -> None:
    real, session = records.evidence.restored, records.session_id
    for sentence in answer.sentences:
        numbers = " ".join(map(short_id, sentence.audit_ids))
        print(f"{visible(real(sentence.text))} [{numbers or 'no record'}]")
    if not answer.sentences:
        print(DO_NOT_SAY)
    if answer.not_in_records:
        print(f"Left out: {plural(len(answer.not_in_records), 'sentence')} not in the records (--json has them).")
    if offline:
        _note(_OFFLINE if answer.sentences else _CAN_ASK)
    elif answer.sentences:
        _note(_READ_BY_MODEL)
    if cited := [audit_id for sentence in answer.sentences for audit_id in sentence.audit_ids]:
        number = int(cited[0].rpartition("_")[2])
        _note(f"See a record: ghost audit show {shlex.quote(session)} {number}{option}")


def _as_json(question: str, records: SessionRecords, brain: str, answer: Answer) -> dict[str, Any]:
    return {
        "session_id": records.session_id,
        "question": question,
        "brain": brain,
        "answered": bool(answer.sentences),
        "sentences": [asdict(sentence) for sentence in answer.sentences],
        "not_in_records": list(answer.not_in_records),
        "usage": asdict(answer.usage),
    }


def _note(text: str) -> None:
    print(visible(text), file=sys.stderr)
