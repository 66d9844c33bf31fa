"""A brain that is a language model: one request with tools a turn, without a loop or a tool of its own.

What it is sent passes `outside` first (redaction with placeholders, for a server elsewhere), and the conversation is
kept within a budget of tokens. What it says is untrusted: the tools check every call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic_ai import ModelResponse
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from ghost.brain.conversation import Message, ToolDeclaration, Turn
from ghost.brain.model.context_budget import ContextBudget, tokens_of
from ghost.brain.model.messages import to_messages, to_turn
from ghost.brain.model.system_prompt import SystemPrompt
from ghost.errors import BrainError, ConfigurationError, ProviderError
from ghost.providers import ChatServer


class ModelBrain:
    def __init__(
        self,
        server: ChatServer,
        tools: Sequence[ToolDeclaration],
        prompt: SystemPrompt,
        *,
        outside: Callable[[str], str],
        context_tokens: int,
        max_output_tokens: int,
        max_cost: float | None = None,
    ) -> None:
        """`outside`: applied to every text that is sent. Raises `ConfigurationError` if `max_cost` cannot be held."""
        self.name = f"{server.name} at {server.host}"
        self.prompt_hash = prompt.sha256
        self._server = server
        self._prompt = prompt.text
        self._outside = outside
        self._max_output_tokens = max_output_tokens
        self._max_cost = max_cost
        self._tools = ModelRequestParameters(
            function_tools=[
                ToolDefinition(
                    name=t.name, description=t.description, parameters_json_schema=t.parameters, strict=False
                )
                for t in tools
            ]
        )
        self._context_tokens = context_tokens
        self._budget = ContextBudget(context_tokens, tokens_of(prompt.text) + tokens_of([vars(t) for t in tools]))
        if max_cost is not None and not server.knows_price():
            raise ConfigurationError(
                f"The price of {self.name} is not known, so its cost cannot be limited: set GHOST_LLM_PRICES to "
                "its US dollars per million tokens (input,output: 0.30,2.50), or leave out the limit."
            )

    def next_turn(self, conversation: Sequence[Message]) -> Turn:
        turns = [message for message in conversation if isinstance(message, Turn)]
        spent = sum(turn.usage.cost or 0.0 for turn in turns)
        if self._max_cost is not None and spent >= self._max_cost:
            raise BrainError(
                f"{self.name} has cost ${spent:.4g} of the ${self._max_cost:g} allowed: resume with a higher "
                "--max-cost, or with --brain offline"
            )
        fitted = self._budget.fitted(conversation)
        if fitted is None:
            raise BrainError(
                f"the conversation does not fit into {self._context_tokens} tokens: raise GHOST_CONTEXT_TOKENS"
            )

        def read(response: ModelResponse) -> Turn:
            turn = to_turn(response, len(turns) + 1, self._server.cost(response))
            used = turn.usage
            if self._max_cost is not None and not (used.input_tokens > 0 and used.cost is not None and used.cost >= 0):
                raise ProviderError(
                    f"{self.name} does not report the tokens that it uses, so its cost cannot be limited: leave "
                    "--max-cost out"
                )
            if not turn.tool_calls:
                self._check_text_only(turn, response)
            return turn

        messages = to_messages(fitted, self._outside(self._prompt), self._outside)
        try:
            return self._server.request(messages, self._tools, self._max_output_tokens, read)
        except ProviderError as failed:
            wait = f" (it asks to wait {failed.retry_after_seconds:.0f} s)" if failed.retry_after_seconds else ""
            raise BrainError(f"{str(failed).rstrip('.')}{wait}") from None

    def _check_text_only(self, turn: Turn, response: ModelResponse) -> None:
        if response.finish_reason == "length":
            raise ProviderError(
                f"{self.name} used all its {self._max_output_tokens} tokens before it called a tool: raise "
                "GHOST_MAX_OUTPUT_TOKENS, or choose another --model"
            )
        if not turn.text:
            why = (response.provider_details or {}).get("finish_reason")
            raise ProviderError(
                f"{self.name} gave an empty answer{f' ({str(why)[:40]})' if why else ''}: choose another --model, or "
                "resume later",
                transient=True,
            )
