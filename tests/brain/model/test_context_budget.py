"""The budget of a conversation: old results are shortened, nothing cited is lost."""

from __future__ import annotations

from ghost.brain import Message, ToolCall, ToolResult, ToolResults, Turn, UserMessage
from ghost.brain.model.context_budget import KEPT_WHOLE, ContextBudget, tokens_of


def conversation_of(turns: int, cited: int) -> list[Message]:
    messages: list[Message] = [UserMessage("symptom")]
    for n in range(1, turns + 1):
        command = ToolCall(f"t{n}.1", "run_shell_cmd", {"command": "az x"})
        resolve = ToolCall(f"t{n}.2", "manage_hypotheses", {"audit_ids": [f"s_{cited:03}"]})
        output = "\n".join(f"line {line} of {n}" for line in range(200))
        result = {"status": "completed", "exit_code": 0, "audit_id": f"s_{n:03}", "output": output}
        messages += [
            Turn(f"turn {n}", (command, resolve)),
            ToolResults(
                (ToolResult(command.id, "run_shell_cmd", result), ToolResult(resolve.id, "m", {"status": "ok"}))
            ),
        ]
    return messages


def outputs_of(messages: list[Message] | None) -> dict[str, str]:
    assert messages is not None
    results = [r.result for m in messages if isinstance(m, ToolResults) for r in m.results]
    return {result["audit_id"]: result["output"] for result in results if "audit_id" in result}


def size_of(messages: list[Message]) -> int:
    return sum(tokens_of(message) for message in messages)


def test_within_the_budget_nothing_is_changed():
    conversation = conversation_of(5, 1)
    assert ContextBudget(size_of(conversation), 0).fitted(conversation) == conversation


def test_the_oldest_results_become_their_record_and_first_lines_the_cited_and_newest_stay():
    conversation = conversation_of(20, cited=2)
    whole = outputs_of(conversation)
    limit = size_of(conversation) * 2 // 3
    fitted = ContextBudget(limit, 0).fitted(conversation)
    assert size_of(fitted or []) <= limit
    sent = outputs_of(fitted)
    assert sent.keys() == whole.keys()
    shortened = [audit_id for audit_id in whole if sent[audit_id] != whole[audit_id]]
    assert "s_001" in shortened
    assert not {"s_002", "s_019", "s_020"} & set(shortened)
    assert all(sent[audit_id] == "\n".join(whole[audit_id].splitlines()[:3]) for audit_id in shortened)


def test_what_was_shortened_stays_so_and_there_is_room_for_the_next_turns():
    conversation = conversation_of(20, cited=1)
    budget = ContextBudget(size_of(conversation) - 1, 0)
    first = outputs_of(budget.fitted(conversation))
    later = outputs_of(budget.fitted(conversation_of(22, cited=1)))
    assert [audit_id for audit_id in first if later[audit_id] != first[audit_id]] == []


def test_a_verbose_model_and_many_large_answers_at_once_still_fit():
    def calls(n: int) -> tuple[ToolCall, ...]:
        return tuple(ToolCall(f"t{n}.{c}", "x", {"command": "x" * 8000, "more": ["y"] * 500}) for c in range(16))

    state = {"parts": [{"part_kind": "thinking", "content": "z" * 20_000}]}
    conversation: list[Message] = [UserMessage("symptom")]
    for n in range(3):
        answers = tuple(ToolResult(call.id, "x", {"output": "o" * 8000}) for call in calls(n))
        conversation += [Turn("t" * 20_000, calls(n), state=state), ToolResults(answers)]
    conversation.append(Turn("t" * 20_000, state=state))
    fitted = ContextBudget(20_000, 0).fitted(conversation)
    assert fitted is not None
    assert [type(message) for message in fitted] == [type(message) for message in conversation]
    assert fitted[-2] != conversation[-2]
    assert ContextBudget(size_of(conversation) // 2, 0).fitted(conversation)[-2] == conversation[-2]


def test_where_even_short_turns_are_too_many_the_oldest_are_left_out():
    conversation = conversation_of(200, cited=2)
    budget = ContextBudget(8_000, 0)
    first = budget.fitted(conversation)
    assert first is not None
    assert first[0] == UserMessage("symptom")
    assert isinstance(first[1], UserMessage)
    assert "s_002" in first[1].text
    assert [type(m) for m in first[2:]] == [Turn, ToolResults] * (len(first) // 2 - 1)
    later = budget.fitted([*conversation, *conversation_of(1, 1)[1:]])
    assert later is not None
    assert later[: len(first) - 2 * KEPT_WHOLE] == first[: len(first) - 2 * KEPT_WHOLE]


def test_a_conversation_that_cannot_be_made_to_fit_is_refused():
    conversation = conversation_of(KEPT_WHOLE, 1)
    assert ContextBudget(200, 100).fitted(conversation) is None
