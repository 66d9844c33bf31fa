"""Answers of the shell become events; anything else it may say becomes a failure in words."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghost.cloud import events
from ghost.cloud.commands import Purpose, ShellCommand
from ghost.cloud.replies import Reply, event_of
from ghost.cloud.task import CaptureTask, CleanupStep, State

from .scripted import broken, failed, ran, refused

TASK = CaptureTask(
    task_id="ghost_a",
    session_id="s1",
    state=State.DETECTING,
    target="web",
    storage_account="forensics",
    cleanup_plan=(CleanupStep(command="rm x"),),
)


def event(purpose: Purpose, response: dict[str, object]) -> events.Event:
    return event_of(TASK, ShellCommand(purpose, "x", "y"), Reply.of(response))


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "type", "location", "exists", "packetCaptureStatus", "packetCaptureError"]), inner
        )
    ),
    max_leaves=8,
)
responses = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(["completed", "denied", "error", "", None]),
        "output": st.text(max_size=20) | anything.map(json.dumps),
        "stderr": st.text(max_size=30),
        "exit_code": st.sampled_from([0, 1, 3, 127, None, "0"]),
        "error": st.none() | st.text(max_size=10),
        "action": st.none() | st.sampled_from(["user_denied", "user_abandoned", "user_modified"]),
        "denial_reason": st.none() | st.text(max_size=10),
    },
)


@given(st.sampled_from(list(Purpose)), responses)
def test_any_response_is_an_event(purpose: Purpose, response: dict[str, object]) -> None:
    happened = event(purpose, response)
    assert isinstance(happened, get_args(events.Event))
    assert getattr(happened, "detail", "x").isprintable()


@pytest.mark.parametrize(
    ("stderr", "detail"),
    [
        ("WARNING: slow\nERROR: (AuthorizationFailed) no rights", "(AuthorizationFailed) no rights"),
        ("ERROR: (Code) Message\nCode: Code\nMessage: Message", "(Code) Message Code: Code Message: Message"),
        ("reading\n10%\n100%\nx.cap is no capture", "x.cap is no capture"),
        ("\x1b[31mbad\x1b[0m", "[31mbad [0m"),
        ("", "exit status 1 and no message"),
    ],
)
def test_a_failure_is_told_in_its_own_last_words(stderr: str, detail: str) -> None:
    assert event(Purpose.POLL, failed(stderr)) == events.PollFailed(detail)


@pytest.mark.parametrize("response", [broken("timeout"), broken("forbidden_command"), failed("az: not found", 127)])
def test_what_the_shell_could_not_run_is_never_a_missing_resource(response: dict[str, object]) -> None:
    assert isinstance(event(Purpose.CLEAN_UP, {**response, "stderr": "not found"}), events.StepKept)
    assert event(Purpose.POLL, {**response, "stderr": "not found"}).absent is False


def test_a_prompt_that_nobody_answered_is_a_denial_but_no_persons() -> None:
    reply = Reply.of(refused(action="user_abandoned"))
    assert (reply.denied, reply.user_denied) == (True, False)
    assert Reply.of(refused()).user_denied


@pytest.mark.parametrize("output", ["[]", "{}", "null", "Succeeded", '"Stopped"', '{"provisioningState": "Succeeded"}'])
def test_only_the_capture_status_tells_that_a_capture_stopped(output: str) -> None:
    """provisioningState is Succeeded from the start, while the capture still writes its blob."""
    assert isinstance(event(Purpose.POLL, ran(output)), events.PollFailed)
