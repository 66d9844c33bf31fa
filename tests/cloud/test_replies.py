"""Answers of the shell become events; anything else it may say becomes a failure in words."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghost.cloud import task_events
from ghost.cloud.capture_commands import Purpose, ShellCommand
from ghost.cloud.replies import event_of
from ghost.cloud.resource_names import BlobPlace
from ghost.cloud.shell_reply import Reply
from ghost.cloud.task import CaptureTask, CleanupStep, State

from .scripted import broken, failed, ran, refused

TASK = CaptureTask(
    task_id="ghost_a",
    session_id="s1",
    state=State.DETECTING,
    target="web",
    storage_account="forensics",
    cleanup_plan=(CleanupStep(command="rm /captures/x.cap"),),
)


def event(purpose: Purpose, response: dict[str, object]) -> task_events.Event:
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
    assert isinstance(happened, get_args(task_events.Event))
    assert getattr(happened, "detail", "x").isprintable()


@pytest.mark.parametrize(
    ("stderr", "detail"),
    [
        ("WARNING: slow\nERROR: (AuthorizationFailed) no rights", "(AuthorizationFailed) no rights"),
        ("ERROR: (Code) Message\nCode: Code\nMessage: Message", "(Code) Message"),
        ("reading\n10%\n100%\nx.cap is no capture", "x.cap is no capture"),
        ("\x1b[31mbad\x1b[0m", "[31mbad [0m"),
        ("", "exit status 1 and no message"),
    ],
)
def test_a_failure_is_told_in_its_own_last_words(stderr: str, detail: str) -> None:
    assert event(Purpose.POLL, failed(stderr)) == task_events.PollFailed(detail)


@pytest.mark.parametrize("response", [broken("timeout"), broken("forbidden_command"), failed("az: not found", 127)])
def test_what_the_shell_could_not_run_is_never_a_missing_resource(response: dict[str, object]) -> None:
    assert isinstance(event(Purpose.CLEAN_UP, {**response, "stderr": "not found"}), task_events.StepKept)
    assert event(Purpose.POLL, {**response, "stderr": "not found"}).absent is False


def test_a_prompt_that_nobody_answered_is_a_denial_but_no_persons() -> None:
    reply = Reply.of(refused(action="user_abandoned"))
    assert (reply.denied, reply.user_denied) == (True, False)
    assert Reply.of(refused()).user_denied


@pytest.mark.parametrize("output", ["[]", "{}", "null", "Succeeded", '"Stopped"', '{"provisioningState": "Succeeded"}'])
def test_only_the_capture_status_tells_that_a_capture_stopped(output: str) -> None:
    """provisioningState is Succeeded from the start, while the capture still writes its blob."""
    assert isinstance(event(Purpose.POLL, ran(output)), task_events.PollFailed)


PLACE = "https://forensics.blob.core.windows.net/captures/ghost_a.cap"
LOCATION = {"storageId": "x", "storagePath": PLACE}


@pytest.mark.parametrize(
    "shown",
    [
        {"name": "ghost_a", "provisioningState": "Succeeded", "storageLocation": LOCATION},
        {"name": "ghost_a", "properties": {"provisioningState": "Succeeded", "storageLocation": LOCATION}},
        {"name": "ghost_a", "etag": "x", "target": "y", "properties": None, "storageLocation": LOCATION},
    ],
)
def test_a_capture_is_understood_as_either_group_of_commands_shows_it(shown: dict[str, object]) -> None:
    place = BlobPlace("forensics", "captures", "ghost_a.cap")
    assert event(Purpose.CREATE, ran(shown)) == task_events.CaptureCreated("ghost_a", place)
    assert event(Purpose.LOCATE_BLOB, ran(shown)) == task_events.BlobLocated(place)


@pytest.mark.parametrize("shown", [{}, {"name": "-x"}, {"name": 5, "storageLocation": []}, {"storageLocation": {}}, []])
def test_a_capture_that_does_not_say_where_it_is_changes_nothing(shown: object) -> None:
    assert event(Purpose.CREATE, ran(shown)) == task_events.CaptureCreated(None, None)


@pytest.mark.parametrize(
    "shown",
    [
        {"name": "x", "packetCaptureStatus": "Stopped", "stopReason": "TimeExceeded", "packetCaptureError": []},
        {"properties": {"packetCaptureStatus": "Stopped", "stopReason": "TimeExceeded", "packetCaptureError": []}},
        {"packetCaptureStatus": "Stopped", "stopReason": "TimeExceeded", "packetCaptureError": None},
    ],
)
def test_a_status_is_understood_from_show_status_and_from_query_status(shown: dict[str, object]) -> None:
    assert event(Purpose.POLL, ran(shown)) == task_events.Polled("Stopped", "TimeExceeded")


@pytest.mark.parametrize("name", ["InternalError", "AgentStopped", "CaptureFailed", "LocalFileFailed", "StorageFailed"])
def test_azures_errors_of_a_capture_are_told(name: str) -> None:
    shown = {"packetCaptureStatus": "Error", "packetCaptureError": [name]}
    assert event(Purpose.POLL, ran(shown)) == task_events.Polled("Error", None, (name,))


def test_a_cut_list_is_no_list() -> None:
    cut = {**ran([{"name": "a"}]), "output_metadata": {"truncation_applied": True}}
    assert event(Purpose.LOOK_FOR_CAPTURE, cut) == task_events.CaptureListed(None)
    assert event(
        Purpose.DETECT, {**ran([]), "output_metadata": {"truncation_applied": True}}
    ) == task_events.TargetUnusable(
        "Resource not found: web in resource group . Name another group, or give the full resource id"
    )
