"""Requests of a cycle to the language model, and parsing of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ghost.errors import ProviderError, UnusableAnswer
from ghost.mind.data_model import SelfModel, Stimulus, Task, Thought
from ghost.mind.decisions import SCHEMA, StoreDecision, decision
from ghost.mind.long_term_memory import Hit
from ghost.mind.prompts import system_prompt
from ghost.mind.thought_parsing import ParsedThought, Redact, spoken
from ghost.providers import Item, LLMProvider, write_prompt

THOUGHT_TOKENS = 200
DECISION_TOKENS = 400
DECISION_TRIES = 2
STIMULUS_CHARS = 1500
"""Maximum characters of a stimulus in the prompt; more are stored."""
MEMORY_CHARS = 600


@dataclass(frozen=True)
class Context:
    """The input of one thought: newest and most similar first."""

    self_model: SelfModel
    stimuli: Sequence[Stimulus]
    thoughts: Sequence[Thought]
    hits: Sequence[Hit]
    task: Task | None

    @property
    def memories(self) -> list[Item]:
        return [Item(hit.memory.id, hit.memory.content[:MEMORY_CHARS]) for hit in self.hits]

    @property
    def sources(self) -> list[Item]:
        """Return what a thought may rest on: recent thoughts are none."""
        stimuli = [Item(each.id, each.content[:STIMULUS_CHARS]) for each in self.stimuli]
        return [*stimuli, *([Item(self.task.id, _in_words(self.task))] if self.task else []), *self.memories]

    def prompt(self) -> str:
        me = [f"I am {self.self_model.name}.", *self.self_model.principles, *self.self_model.long_term_goals]
        return write_prompt(
            {
                "Self": [Item(f"self:{n}", line) for n, line in enumerate(me, 1)],
                "Stimuli": [Item(each.id, each.content[:STIMULUS_CHARS]) for each in self.stimuli],
                "Recent thoughts": [Item(each.id, each.content) for each in self.thoughts],
                "Memories": self.memories,
                "Task": [Item(self.task.id, _in_words(self.task))] if self.task else [],
            }
        )


class Thinking:
    def __init__(self, llm: LLMProvider, redact: Redact) -> None:
        self._llm = llm
        self._redact = redact

    def thought(self, context: Context) -> ParsedThought | None:
        """Return the thought; None if the model gave no usable word. Raises `ProviderError`."""
        try:
            answer = self._llm.generate(system_prompt("soc"), context.prompt(), THOUGHT_TOKENS)
        except UnusableAnswer:
            return None
        return spoken(answer, self._redact)

    def decision(self, thought: ParsedThought, context: Context) -> tuple[StoreDecision | None, int]:
        """Return the store decision and the number of malformed answers; None if all were, or the server refuses the
        request. Raises `ProviderError` for an outage.
        """
        prompt = write_prompt({"Thought": [Item("thought", thought.content)], "Memories": context.memories})
        for malformed in range(DECISION_TRIES):
            try:
                answer = self._llm.generate(system_prompt("store_decider"), prompt, DECISION_TOKENS, json_schema=SCHEMA)
            except UnusableAnswer:
                continue
            except ProviderError as error:
                if error.transient:
                    raise
                return None, malformed + 1
            if (decided := decision(answer)) is not None:
                return decided, malformed
        return None, DECISION_TRIES


def _in_words(task: Task) -> str:
    head = f"{task.title}: {task.goal}" if task.goal else task.title
    return f"{head} {task.context}".strip()[:STIMULUS_CHARS]
