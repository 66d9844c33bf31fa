"""Whether a thought is new: near-duplicates of the last day's thoughts are not kept.

Two thoughts are near-duplicates if their words, without tags and stop words, overlap by `SAME_WORDS` (Jaccard), or by
`NEAR_WORDS` with the closeness of duplicates. Questions are compared as questions are: by names and words.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ghost.mind.data_model import Thought
from ghost.mind.facts_in_text import mentions
from ghost.mind.keywords import stop_words
from ghost.mind.long_term_memory import LongTermMemory
from ghost.mind.questions import is_same_question
from ghost.mind.retention import DAY, DUPLICATE_CLOSENESS

SAME_WORDS = 0.7
NEAR_WORDS = 0.35
MAX_HELD = 2000
_FRAME = re.compile(r"^#\w+\s+|\bNeeded:[^?]*$")


@dataclass
class _Held:
    content: str
    at: float
    words: frozenset[str]
    vector: npt.NDArray[np.float32] | None = None
    """Made when it is needed first."""


class DistinctThoughts:
    def __init__(self, thoughts: Iterable[Thought], ltm: LongTermMemory) -> None:
        self._ltm = ltm
        self._held: deque[_Held] = deque(maxlen=MAX_HELD)
        for thought in thoughts:
            self.add(thought)

    def add(self, thought: Thought) -> None:
        self._held.append(_Held(thought.content, thought.ts, _words(thought.content)))

    def holds(self, content: str, now: float) -> bool:
        """Return whether a thought of the last day is a near-duplicate. Raises `ProviderError`."""
        if content.startswith("#question"):
            return any(now - each.at < DAY and is_same_question(each.content, content) for each in self._held)
        words = _words(content)
        overlaps = [(_overlap(words, each.words), each) for each in self._held if now - each.at < DAY]
        if any(overlap >= SAME_WORDS for overlap, _ in overlaps):
            return True
        near = [each for overlap, each in overlaps if overlap >= NEAR_WORDS]
        if not near:
            return False
        new = [each for each in near if each.vector is None]
        vector, *made = self._embedded([content, *(each.content for each in new)])
        for each, its_vector in zip(new, made, strict=True):
            each.vector = its_vector
        cosines = [float(vector @ each.vector) for each in near if each.vector is not None]
        return any(self._ltm.closeness(cosine) >= DUPLICATE_CLOSENESS for cosine in cosines)

    def _embedded(self, texts: list[str]) -> list[npt.NDArray[np.float32]]:
        vectors = np.asarray(self._ltm.embeddings.embed(texts), dtype=np.float32)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return list(vectors / np.where(norms > 0, norms, 1))


def _words(content: str) -> frozenset[str]:
    return mentions(_FRAME.sub("", content)).words - stop_words()


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 1.0
