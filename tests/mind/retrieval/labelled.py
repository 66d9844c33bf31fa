"""The set as files hold it, and the half of its questions that nothing was tuned on.

The frozen half was drawn by chance and committed, with the digests below, before the first search. Its questions are
never looked at one by one: only their means count.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tests.mind.retrieval.distractors import distractors

CORPORA = Path(__file__).parents[2] / "corpora"
NOTES = CORPORA / "retrieval_notes.jsonl"
OPEN = CORPORA / "retrieval_questions_open.jsonl"
FROZEN = CORPORA / "retrieval_questions_frozen.jsonl"
DISTRACTORS, SEED = 1700, 20260
SHA256 = {
    NOTES.name: "dd96741527877fac94beb18d992b11858ff0304468a6bf7dd0c8918e7addec1c",
    OPEN.name: "f36ce8947de8c1cd385116934a692e8cf51613eb66315b88d826ea33332fe2de",
    FROZEN.name: "3ca233b3521ad249e5513c47779f5889edd55a7f826d10f5b1b2d3a67c8e8d8a",
    "distractors": "f8d0f0fcfd23ac9e0ebd1462c5517443d0abf67a89277a4e815a5d7d3678cdd7",
}


@dataclass(frozen=True)
class Question:
    id: str
    text: str
    relevant: frozenset[str]
    """Ids of the notes that answer it, one to four."""


def notes() -> dict[str, str]:
    """Id to text of the written ones."""
    rows = map(json.loads, NOTES.read_text(encoding="utf-8").splitlines())
    return {row["id"]: row["text"] for row in rows}


def made_notes() -> dict[str, str]:
    made = distractors(list(notes().values()), DISTRACTORS, SEED)
    return {f"made-{number:04}": text for number, text in enumerate(made, start=1)}


def questions(path: Path) -> list[Question]:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [Question(row["id"], row["question"], frozenset(row["relevant"])) for row in rows]


def digests() -> dict[str, str]:
    """Of what must not change once it was searched, by the names in `SHA256`."""
    found = {path.name: sha256(path.read_bytes()).hexdigest() for path in (NOTES, OPEN, FROZEN)}
    return found | {"distractors": sha256("\n".join(made_notes().values()).encode()).hexdigest()}
