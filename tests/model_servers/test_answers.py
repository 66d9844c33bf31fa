"""What a model's brain makes of each kind of answer, through the real SDKs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from ghost.agent import tool_declarations
from ghost.agent.turns import recordable
from ghost.brain import Brain, Message, ResumeNote, ToolCall, ToolResult, ToolResults, Usage, UserMessage, model_brain
from ghost.errors import BrainError
from ghost.providers.model_server import ModelServer
from ghost.providers.server_models import ServerModel
from ghost.records import Clock
from tests.model_servers.dialects import DIALECTS
from tests.model_servers.exchange import KEY, MODEL, USAGE, Answer, ApiError, Dialect, Reply
from tests.model_servers.server import serving
from tests.providers.servers import Highest, WaitingClock, answer, dripping_body, half_a_body, huge_body

LIST = ToolCall("", "run_shell_cmd", {"command": "az vm list -o json", "reasoning": "Which machines are there?"})
CHECK = ToolCall("", "check_task", {"task_id": "täsk \u202e😀"})
INVALID_UTF8 = b'{"id": "\xff\xfe\xc3(", "choices": []}'
FINE = Reply("Then I look.", (LIST,), "A list first.")
ODD = ToolCall("", "rm -rf /; " + "x" * 300, {"\ud800": ["\ud83d", {"deep": [[[["\udfff"]]]]}]})


@dataclass(frozen=True)
class Row:
    answers: list[Answer]
    outcome: str | list[str]
    """A pattern of the error's line, or the names of the calls in the turn."""
    requests: int | None = 1
    slept_seconds: list[float] | None = None


ROWS = {
    "parallel calls": Row([Reply("I look.", (LIST, CHECK), "Two at once.")], ["run_shell_cmd", "check_task"]),
    "a call without a text": Row([Reply(calls=(CHECK,), thinking="Is it done?")], ["check_task"]),
    "a text without a call": Row([Reply("Which machine do you mean?")], []),
    "a tool made up, half surrogates": Row([Reply("\ud800", (ODD,), "\U0001f600")], ["rm_-rf____" + "x" * 54]),
    "a call and the token limit": Row([Reply("I look.", (LIST,), "Long.", finish="length")], ["run_shell_cmd"]),
    "a text and the token limit": Row([Reply("I would", finish="length")], "raise GHOST_MAX_OUTPUT_TOKENS"),
    "a malformed call": Row([Reply("", (LIST,), "Hm.", finish="malformed_call"), FINE], ["run_shell_cmd"], None),
    "an empty answer": Row([Reply(), FINE], ["run_shell_cmd"], 2, [0.5]),
    "nothing but empty answers": Row([Reply()], "choose another --model", 4),
    "a safety stop": Row([Reply(finish="safety")], "refused to answer"),
    "a limit of rate": Row([ApiError("rate", retry_after_seconds=7), FINE], ["run_shell_cmd"], 2, [7]),
    "a server that fails": Row([ApiError("server"), ApiError("overloaded"), FINE], ["run_shell_cmd"], 3, [0.5, 1]),
    "a connection cut": Row([half_a_body({"id": "x"}), FINE], ["run_shell_cmd"], 2),
    "a quota used up": Row([ApiError("quota")], "quota of this key is used up: raise it"),
    "no such model": Row([ApiError("unknown_model", MODEL)], r"Check the model's name \(model-x\)"),
    "a wrong key": Row([ApiError("wrong_key")], "check GHOST_LLM_KEY"),
    "a schema refused": Row([ApiError("bad_request", "tools.0: bad schema")], "tools.0: bad schema"),
    "an answer without an end": Row([dripping_body], "seconds of GHOST_BRAIN_TIMEOUT", None),
    "an answer of 100 MB": Row([huge_body], "over the size limit"),
    "no UTF-8": Row([answer(200, INVALID_UTF8)], "not usable|empty answer", 4),
}


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_each_answer_becomes_a_turn_or_one_line_that_says_why(dialect: Dialect) -> None:
    wrong = {name: why for name, row in ROWS.items() if (why := "; ".join(_mistakes(dialect, row)))}
    assert not wrong


def _mistakes(dialect: Dialect, row: Row) -> Iterator[str]:
    """Ask for a turn, and for the next one, which holds the first in the form of its API, killed amid its calls."""
    clock = WaitingClock()
    with serving(dialect, row.answers) as server:
        brain = brain_of(dialect, server.url, clock, 0.4 if dripping_body in row.answers else 60.0)
        conversation: list[Message] = [UserMessage("vm-a cannot reach vm-b")]
        try:
            turn = brain.next_turn(conversation)
        except BrainError as error:
            line = str(error)
            if isinstance(row.outcome, list) or not re.search(row.outcome, line) or "\n" in line or KEY in line:
                yield f"failed: {line}"
        else:
            if [call.name for call in turn.tool_calls] != row.outcome:
                yield f"made {turn}"
            server.script = lambda _: FINE
            results = tuple(ToolResult(call.id, call.name, {"status": "ok"}) for call in turn.tool_calls)
            asked = len(server.received)
            killed = ToolResults(results[:1]), ResumeNote("Resumed."), ToolResults(results[1:])
            brain.next_turn([*conversation, recordable(turn), *(killed if results else [UserMessage("Go on.")])])
            del server.received[asked:]
    if row.requests not in (None, len(server.received)):
        yield f"{len(server.received)} requests"
    if row.slept_seconds not in (None, clock.slept):
        yield f"slept {clock.slept}"
    yield from server.refused


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_limit_of_cost_ends_the_turns_also_where_no_tokens_are_reported(dialect: Dialect) -> None:
    for usage, turns, why in (USAGE, 1, r"has cost \$1\.26 of the \$1 "), (Usage(0, 60), 0, "does not report"):
        with serving(dialect, [Reply("I look.", (LIST,), usage=usage)]) as server:
            brain = brain_of(dialect, server.url, prices=(1000, 1000), max_cost=1.0)
            conversation: list[Message] = [UserMessage("vm-a cannot reach vm-b")]
            for _ in range(turns):
                made = brain.next_turn(conversation)
                conversation += [made, ToolResults((ToolResult(made.tool_calls[0].id, "run_shell_cmd", {}),))]
            with pytest.raises(BrainError, match=why):
                brain.next_turn(conversation)
        assert len(server.received) == 1


def brain_of(
    dialect: Dialect,
    url: str,
    clock: Clock | None = None,
    seconds: float = 60.0,
    *,
    prices: tuple[float, float] | None = None,
    max_cost: float | None = None,
) -> Brain:
    address = url + ("/v1" if dialect.name == "openai" else "")
    names = "GHOST_LLM_URL", KEY, "GHOST_LLM_KEY"
    server = ModelServer(
        dialect.name, MODEL, address, *names, seconds, clock or WaitingClock(), Highest(), "GHOST_BRAIN_TIMEOUT"
    )
    limits = {"context_tokens": 60_000, "max_output_tokens": 2000}
    tools = tool_declarations()
    return model_brain(ServerModel(server, prices), tools, outside=str, max_cost=max_cost, **limits)
