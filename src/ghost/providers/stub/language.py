"""The stub language model: answers the mind's prompts from their content alone."""

from __future__ import annotations

import json
from typing import Any

from ghost.errors import ProviderError
from ghost.providers.prompt import read_prompt
from ghost.providers.stub.store_decision import decision_on
from ghost.providers.stub.summary_generator import summary_of
from ghost.providers.stub.thought_generator import thought_on


class StubLLM:
    """Answers by the first line of `system`: see `docs/providers.md`. Deterministic."""

    name = "stub"

    def generate(self, system: str, prompt: str, max_tokens: int, **kwargs: Any) -> str:
        """Return an answer; JSON is never truncated by `max_tokens`. For unknown prompts return their beginning;
        raise `ProviderError` if JSON is requested.
        """
        request = system.split("\n", 1)[0].strip()
        if request == "SOC":
            return thought_on(read_prompt(prompt), max_words=min(60, max(2, max_tokens * 3 // 4)))
        if request == "STORE_DECIDER":
            return json.dumps(decision_on(read_prompt(prompt)), ensure_ascii=False)
        if request == "CONSOLIDATE":
            return json.dumps(summary_of(read_prompt(prompt)), ensure_ascii=False)
        if kwargs.get("json_schema") is not None:
            raise ProviderError(
                f"The stub model has no answer in JSON to {request[:40]!r}: set PROVIDER_LLM to a real model."
            )
        return " ".join(prompt.split()[: max(1, max_tokens * 3 // 4)])
