"""Working memory: the newest thoughts, within a budget of count, characters and tokens.

A ring buffer: a new thought pushes out the oldest, whatever its importance. A thought's weight halves with every
half-life; it stays readable. A thought longer than the whole budget is truncated. Thread-safe.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Iterable
from itertools import islice

from ghost.mind.data_model import Thought

CUT = "…"


def estimated_tokens(text: str) -> int:
    """Return an estimate of tokens: one per four ASCII characters, rounded up, and one per other character.

    Independent of any model's vocabulary: overestimates languages with Latin letters, underestimates only dense code,
    and never decreases when text is added.
    """
    plain = sum(map(str.isascii, text))
    return math.ceil(plain / 4) + len(text) - plain


class WorkingMemory:
    """At most `max_thoughts` thoughts with `max_chars` characters and `max_tokens` estimated tokens in total."""

    def __init__(self, max_thoughts: int, max_chars: int, max_tokens: int, half_life_seconds: float) -> None:
        if min(max_thoughts, max_chars, max_tokens) < 1 or not half_life_seconds > 0:
            raise ValueError("working memory needs room for one thought, and a half-life above zero")
        self.max_thoughts = max_thoughts
        self.max_chars = max_chars
        self.max_tokens = max_tokens
        self.half_life_seconds = half_life_seconds
        self._lock = threading.Lock()
        self._thoughts: deque[tuple[Thought, int]] = deque()  # with its tokens
        self._chars = 0
        self._tokens = 0

    def add(self, thought: Thought) -> list[Thought]:
        """Append a thought and return those it pushed out, oldest first. O(1) amortised."""
        with self._lock:
            self._append(thought)
            return self._truncate()

    def restore(self, thoughts: Iterable[Thought]) -> None:
        """Replace the content by these thoughts, oldest first, after a restart."""
        with self._lock:
            self._thoughts.clear()
            self._chars = self._tokens = 0
            for thought in thoughts:
                self._append(thought)
                self._truncate()

    def pushed_out_by(self, thought: Thought) -> list[Thought]:
        """Return what `add` would push out."""
        with self._lock:
            shortened = self._fitting(thought.content)
            chars, tokens = self._chars + len(shortened), self._tokens + estimated_tokens(shortened)
            number = len(self._thoughts) + 1
            out: list[Thought] = []
            for oldest, its_tokens in self._thoughts:
                if number <= self.max_thoughts and chars <= self.max_chars and tokens <= self.max_tokens:
                    break
                out.append(oldest)
                number, chars, tokens = number - 1, chars - len(oldest.content), tokens - its_tokens
            return out

    def truncate_to_budget(self) -> None:
        """Apply the budget, after it was lowered."""
        with self._lock:
            self._truncate()

    def view(self, n: int) -> list[Thought]:
        """Return the newest `n` thoughts, oldest first."""
        with self._lock:
            newest = [thought for thought, _ in islice(reversed(self._thoughts), max(n, 0))]
        return newest[::-1]

    def weights(self, now: float) -> list[tuple[Thought, float]]:
        """Return every thought with `importance x 0.5 ** (age / half-life)`, oldest first; future ones have age 0."""
        with self._lock:
            thoughts = [thought for thought, _ in self._thoughts]
        return [(thought, self._weight(thought, now)) for thought in thoughts]

    def score_decay(self, now: float) -> float:
        """Return the sum of the weights."""
        return math.fsum(weight for _, weight in self.weights(now))

    def __len__(self) -> int:
        return len(self._thoughts)

    @property
    def chars(self) -> int:
        return self._chars

    @property
    def tokens(self) -> int:
        return self._tokens

    # --- steps; the lock is held ---

    def _append(self, thought: Thought) -> None:
        shortened = self._fitting(thought.content)
        if shortened != thought.content:
            thought = thought.model_copy(update={"content": shortened})
        tokens = estimated_tokens(thought.content)
        self._thoughts.append((thought, tokens))
        self._chars += len(thought.content)
        self._tokens += tokens

    def _truncate(self) -> list[Thought]:
        out: list[Thought] = []
        while self._thoughts and self._is_over():
            thought, tokens = self._thoughts.popleft()
            self._chars -= len(thought.content)
            self._tokens -= tokens
            out.append(thought)
        return out

    def _is_over(self) -> bool:
        return len(self._thoughts) > self.max_thoughts or self._chars > self.max_chars or self._tokens > self.max_tokens

    def _fitting(self, text: str) -> str:
        """Return the longest prefix of `text`, with a truncation mark, that fits the budget."""
        if len(text) <= self.max_chars and estimated_tokens(text) <= self.max_tokens:
            return text
        low, high = 0, min(len(text), self.max_chars - len(CUT))  # estimated tokens never shrink with length
        while low < high:
            middle = (low + high + 1) // 2
            if estimated_tokens(text[:middle] + CUT) <= self.max_tokens:
                low = middle
            else:
                high = middle - 1
        return text[:low] + CUT

    def _weight(self, thought: Thought, now: float) -> float:
        age = max(now - thought.ts, 0.0)
        return float(thought.importance * 0.5 ** (age / self.half_life_seconds))
