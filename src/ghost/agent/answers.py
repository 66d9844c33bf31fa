"""Answers to a question about one session, from its report and records alone.

Runs nothing and writes nothing. A model gets the question with a bounded part of the records and no tool; of what it
says only sentences count that cite a record of the session which does not say otherwise. Without a model the report is
looked up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from ghost.agent.audit_evidence import Evidence, cited_ids, tag_of
from ghost.agent.facts import proofs_of
from ghost.brain import Brain, Usage, UserMessage
from ghost.errors import RecordError
from ghost.report import LAYERS
from ghost.text import map_text, one_line

ANSWER_PROMPT: Final = (Path(__file__).parent / "answer_prompt.md").read_text(encoding="utf-8")
DO_NOT_SAY: Final = "The records do not say."
MAX_CHARACTERS: Final = 60_000
"""Of what a model is sent; with a small context fewer, so that the prompt and dense text have room."""
CHARACTERS_PER_TOKEN: Final = 2
MAX_OUTPUT, MAX_COMMAND, MAX_NOTE = 2_000, 500, 400
REPORT_SIZES: Final = ((40, 400), (16, 200), (5, 80))
"""Entries of a list and characters of a text, of the report; the next where it takes over half of the room."""

_LAYER_WORDS: Final = {
    "local_probe": ("probe", "ping", "traceroute"),
    "vm_state": ("vm", "vms", "machine", "running", "stopped"),
    "nsg_outbound": ("nsg", "rule", "securit", "outbound"),
    "nsg_inbound": ("nsg", "rule", "securit", "inbound"),
    "routes": ("rout", "udr", "hop"),
    "peering": ("peer",),
    "dns": ("dns", "name", "resol"),
    "service_endpoints": ("service", "endpoint"),
    "load_balancer": ("balanc", "endpoint", "probe", "nat"),
    "guest_firewall": ("guest", "firewall", "iptables", "listen"),
    "wire": ("wire", "captur", "packet", "pcap", "loss"),
}
"""Beginnings of words by which a question names a layer; short ones are whole words."""
_REFUTES: Final = {True: "Refuted, since", False: "What would refute it"}
_GENERAL: Final = re.compile(r"\b(?:cause|why|fault|wrong|outcome|conclu\w*|summar\w*|happened|found)\b", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W_][\w./:-]*[^\W_]|\w")
_NUMBER: Final = re.compile(r"#(\d{1,9})\b")
_STATED: Final = re.compile(r"\b(h\d+)\b[^.;]{0,40}?\b(confirmed|refuted|contradicted|unverifiable)\b")
_CITATION: Final = r"[\[(]*\s*#\d"
_SENTENCES: Final = re.compile(rf"(?<=[.!?])[\"”)\]]*(?<!e\.g\.)(?<!i\.e\.)\s+(?!{_CITATION})")
_BULLET: Final = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


@dataclass(frozen=True)
class SessionRecords:
    """What an answer may rest on. `report`: of a session without one what its file holds; empty of single commands."""

    session_id: str
    report: Mapping[str, Any]
    evidence: Evidence

    def audit_id(self, number: str) -> str:
        return f"{self.session_id}_{int(number):03}"


@dataclass(frozen=True)
class Sentence:
    """A sentence without its citations. Only what the report says of a thing that was not read has no `audit_ids`."""

    text: str
    audit_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """No sentences: the records do not say."""

    sentences: tuple[Sentence, ...]
    not_in_records: tuple[str, ...] = ()
    """What a model said without a record that carries it."""
    usage: Usage = field(default_factory=Usage)


# With a model


def ask_model(question: str, records: SessionRecords, brain: Brain, context_tokens: int) -> Answer:
    """Return the sentences of one turn that the records carry. Tool calls in it are ignored: no tool was offered.

    Raises `BrainError`.
    """
    limit = min(MAX_CHARACTERS, CHARACTERS_PER_TOKEN * context_tokens)
    turn = brain.next_turn([UserMessage(excerpt(question, records, limit))])
    kept, dropped = checked(turn.text, records)
    return Answer(kept, dropped, turn.usage)


def checked(text: str, records: SessionRecords) -> tuple[tuple[Sentence, ...], tuple[str, ...]]:
    """Return the sentences that cite records of the session, and those that do not or are contradicted by them."""
    kept, dropped = [], []
    lines = (_BULLET.sub("", line) for line in text.splitlines())
    for said in (piece.strip() for line in lines for piece in _SENTENCES.split(line) if piece.strip()):
        if said.strip(' *`"').rstrip(".").casefold() == DO_NOT_SAY.rstrip(".").casefold():
            continue
        ids = _cited(said, records)
        words = _without_citations(said, records.session_id)
        if ids and words and not _problems(words, ids, records):
            kept.append(Sentence(words, ids))
        else:
            dropped.append(said)
    return tuple(kept), tuple(dropped)


def _cited(text: str, records: SessionRecords) -> tuple[str, ...]:
    named = [*map(records.audit_id, _NUMBER.findall(text)), *cited_ids(text, records.session_id)]
    return tuple(dict.fromkeys(named))


def _without_citations(text: str, session_id: str) -> str:
    number = rf"(?:#\d+|{re.escape(session_id)}_\d+)"
    text = re.sub(rf"\s*[\[(](?:records?:?\s+)?{number}(?:[\s,;and–-]+{number})*[\])]", "", text)
    return one_line(text, None)


def _problems(words: str, audit_ids: Sequence[str], records: SessionRecords) -> list[str]:
    """Return why these records do not carry a sentence: one is missing, or what they printed says otherwise."""
    evidence = records.evidence
    if missing := [audit_id for audit_id in audit_ids if audit_id not in evidence]:
        return missing
    if strange := _not_named(words, audit_ids, records):
        return strange
    usable = [audit_id for audit_id in audit_ids if not evidence.problems([audit_id])]
    claim = {"text": words, "audit_ids": usable}  # one that only names denied commands speaks of the denial
    return proofs_of(evidence, records.session_id).statement_problems(claim) if usable else []


def _not_named(words: str, audit_ids: Sequence[str], records: SessionRecords) -> list[str]:
    """Return the names, addresses and states of hypotheses in a sentence that records and report do not hold."""
    told = [f"{_command(records.evidence[i])} {_output(records.evidence, i)}" for i in audit_ids]
    held = " ".join([*told, _json({k: v for k, v in records.report.items() if k != "evidence"})]).casefold()
    strange = [name for name in _names_in(words) if name not in held]
    states = {str(h["id"]).casefold(): str(h["state"]).casefold() for h in records.report.get("hypotheses") or []}
    for identity, state in _STATED.findall(words.casefold()):
        if states.get(identity) != state:
            strange.append(f"{identity} {state}")
    return strange


def excerpt(question: str, records: SessionRecords, limit: int = MAX_CHARACTERS) -> str:
    """Return what a model is sent, as JSON of at most about `limit` characters: the question, the report, and of the
    records those first that the question or the report names.
    """
    report = {name: value for name, value in records.report.items() if name != "evidence"}
    sent: dict[str, Any] = {"question": question, "report": {}, "records": [], "records_not_shown": 0}
    for items, characters in REPORT_SIZES:
        sent["report"] = map_text(report, partial(one_line, limit=characters), items=items, keys=False)
        if len(_json(sent)) <= limit // 2:
            break
    left = limit - len(_json(sent))
    words, cited = _names_in(question), set(cited_ids(_json(report), records.session_id))
    named = set(_cited(question, records))
    rows: dict[str, dict[str, Any]] = {}
    rank = {
        i: (i in named, i in cited, any(w in str(r).casefold() for w in words)) for i, r in records.evidence.items()
    }
    for audit_id in sorted(rank, key=rank.__getitem__, reverse=True):
        row = _row(records, audit_id, words)
        if len(_json(row)) > left:
            del row["untrusted_output"]
        if len(_json(row)) <= left:
            left -= len(_json(row)) + 2
            rows[audit_id] = row
    sent["records"] = [rows[audit_id] for audit_id in records.evidence if audit_id in rows]
    sent["records_not_shown"] = len(records.evidence) - len(rows)
    return _json(sent).replace(f"{records.session_id}_", "#")


def _row(records: SessionRecords, audit_id: str, words: Sequence[str]) -> dict[str, Any]:
    record = records.evidence[audit_id]
    told = ("status", "error", "action", "denial_reason", "exit_code", "timestamp")
    return {
        "record": audit_id,
        "command": one_line(_command(record), MAX_COMMAND),
        "why": one_line(str(record.get("reasoning") or ""), MAX_NOTE),
        "seen_from": tag_of(record).context,
        **{name: record[name] for name in told if record.get(name) is not None},
        "untrusted_output": _part(_output(records.evidence, audit_id), words),
    }


def _output(evidence: Evidence, audit_id: str) -> str:
    try:
        return evidence.whole_output(audit_id)
    except RecordError:
        return str(evidence[audit_id].get("output") or "")


def _part(output: str, words: Sequence[str]) -> str:
    """The beginning of an output, and what stands around the first word of the question behind it."""
    if len(output) <= MAX_OUTPUT:
        return output
    half, lower = MAX_OUTPUT // 2, output.casefold()
    found = min((at for word in words if (at := lower.find(word, half)) >= 0), default=None)
    if found is None:
        return f"{output[:MAX_OUTPUT]} [cut]"
    start = max(half, found - half // 2)
    return f"{output[:half]} [cut] {output[start : start + half]} [cut]"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _command(record: Mapping[str, Any]) -> str:
    return str(record.get("modified_command") or record.get("command"))


# Without a model


def look_up(question: str, records: SessionRecords) -> Answer:
    """Return what the report says of the layers, hypotheses, records and names in the question; if it names none and
    asks for the cause, the conclusion.
    """
    report, words, names = records.report, _words(question), _names_in(question)
    known = f"{_json(report)} {' '.join(_output(records.evidence, i) for i in records.evidence)}".casefold()
    if any(name not in known for name in names):  # the answer would be about something else
        return Answer(())
    layers = [layer for layer, keys in _LAYER_WORDS.items() if _names_layer(words, keys)]
    keys = {key for layer in layers for key in _LAYER_WORDS[layer] if _names_layer(words, (key,))}

    def concerns(text: str) -> bool:
        return any(name in text.casefold() for name in names) or _names_layer(_words(text), tuple(keys))

    def told(text: str, of: Mapping[str, Any]) -> Sentence:
        words = _without_citations(text, records.session_id)
        return Sentence(words.rstrip(".") + ".", tuple(of.get("audit_ids") or ()))

    found = [
        told(f"{LAYERS.get(row['layer'], row['layer'])}, {row['status'].replace('_', ' ')}: {row['note']}", row)
        for row in report.get("coverage") or []
        if row["layer"] in layers or (names and concerns(row["note"]))
    ]
    found += [
        told(f"{h['id']} {h['state']}: {h['description']} {_REFUTES[h['state'] == 'REFUTED']}: {h['refuted_by']}", h)
        for h in report.get("hypotheses") or []
        if h["id"].casefold() in words or concerns(h["description"])
    ]
    found += [told(s["text"], s) for s in report.get("statements") or [] if names and concerns(s["text"])]
    found += [_of_record(records, i) for i in _cited(question, records) if i in records.evidence]
    if not found and _GENERAL.search(question):
        found = [told(text, of) for text, of in _conclusion(report)]
    return Answer(tuple(dict.fromkeys(found)))


def _conclusion(report: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if summary := report.get("summary"):
        doubt = "" if summary["supported"] else "NOT supported by the records: "
        yield f"{report['outcome'].replace('_', ' ')} ({report['confidence']}): {doubt}{summary['text']}", summary
    for cause in report.get("causes") or []:
        if cause["supported"] and cause.get("checked"):
            yield f"{cause['kind'].replace('_', ' ')}: {cause['checked']}", cause


def _of_record(records: SessionRecords, audit_id: str) -> Sentence:
    record = records.evidence[audit_id]
    ended = "" if record.get("exit_code") is None else f", exit {record['exit_code']}"
    return Sentence(f"{record.get('status')}{ended}: {one_line(_command(record), MAX_COMMAND)}", (audit_id,))


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _names_layer(words: Sequence[str], keys: Sequence[str]) -> bool:
    return any(word == key or (len(key) > 3 and word.startswith(key)) for word in words for key in keys)


def _names_in(text: str) -> list[str]:
    """The words that are names or addresses: with a digit or a hyphen, and no hypothesis."""
    return [w for w in _words(text) if len(w) > 2 and re.search(r"[\d-]", w) and not re.fullmatch(r"h?\d+", w)]
