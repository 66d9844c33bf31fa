"""The state machine as tables: every transition of the specification, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest

from ghost.cloud import task_events as e
from ghost.cloud.capture_commands import Purpose, clean_up, cloud_cleanup
from ghost.cloud.lifecycle import advance, follow_up, news_of_partner
from ghost.cloud.preflight import Check
from ghost.cloud.task import CaptureTask, CleanupStatus, Mode, Outcome, State, Timestamps
from ghost.cloud.transitions import LEGAL, IllegalTransition, to

CREATED_AT = datetime(2025, 1, 15, 14, 32, tzinfo=UTC)
AT = CREATED_AT + timedelta(seconds=90)


def a_task(state: State, **fields: object) -> CaptureTask:
    task = CaptureTask(
        task_id="ghost_web_20250115T143200",
        session_id="s1",
        target="web",
        state=state,
        resource_group="rg",
        location="eastus",
        storage_account="forensics",
        storage_blob_name="ghost_web_20250115T143200.cap",
        blob_located=True,
        target_type="vm",
        capture_dir="/captures",
        timestamps=Timestamps(created=CREATED_AT),
    )
    if state not in {State.CREATED, State.DETECTING, State.APPROVED}:
        task = task.stamped(provisioned=CREATED_AT)
    if state not in {State.CREATED, State.DETECTING}:
        task = task.having(cleanup_plan=cloud_cleanup(task))
    if state in {State.ANALYZING, State.COMPLETED}:
        task = task.having(local_pcap_path=task.download_path)
    ended = {
        State.COMPLETED: Outcome.COMPLETED,
        State.FAILED: Outcome.FAILED,
        State.TIMED_OUT: Outcome.TIMED_OUT,
        State.CANCELLED: Outcome.CANCELLED,
        State.ABANDONED: Outcome.CANCELLED,
        State.CLEANING_UP: Outcome.COMPLETED,
        State.DONE: Outcome.COMPLETED,
    }
    return task.having(outcome=ended.get(state), **fields)


VM_FOUND = e.TargetFound("Microsoft.Compute/virtualMachines", "eastus")
SET_FOUND = e.TargetFound("Microsoft.Compute/virtualMachineScaleSets", "eastus")
AKS_FOUND = e.TargetFound("microsoft.containerservice/managedclusters", "eastus")

PLAYBOOK = [
    (State.CREATED, e.Registered(), State.DETECTING, Purpose.DETECT),
    (State.CREATED, e.Resumed(), State.DETECTING, Purpose.DETECT),
    (State.DETECTING, e.Resumed(), State.DETECTING, Purpose.DETECT),
    (State.DETECTING, VM_FOUND, State.DETECTING, Purpose.PREFLIGHT),
    (State.DETECTING, SET_FOUND, State.FAILED, None),
    (State.DETECTING, e.TargetMissing("no"), State.DETECTING, Purpose.SEARCH_OTHER_GROUPS),
    (State.DETECTING, AKS_FOUND, State.FAILED, None),
    (State.DETECTING, e.TargetUnusable("no"), State.FAILED, None),
    *[(State.DETECTING, e.Checked(check, False, "no"), State.FAILED, None) for check in Check],
    *[(State.DETECTING, e.Checked(check, True), State.DETECTING, Purpose.PREFLIGHT) for check in list(Check)[:3]],
    (State.DETECTING, e.Checked(Check.MACHINE, None, "?"), State.DETECTING, Purpose.PREFLIGHT),
    (State.DETECTING, e.Checked(Check.STORAGE, None, "?"), State.FAILED, None),
    (State.DETECTING, e.Checked(Check.STORAGE, True), State.DETECTING, Purpose.PREFLIGHT),
    (State.DETECTING, e.Checked(Check.BLOBS, True), State.APPROVED, Purpose.CREATE),
    (State.DETECTING, e.Checked(Check.GATES, True), State.APPROVED, Purpose.CREATE),
    (State.DETECTING, e.Denied(), State.CANCELLED, None),
    (State.APPROVED, e.CaptureCreated(), State.PROVISIONING, None),
    (State.APPROVED, e.Denied("no"), State.CANCELLED, None),
    (State.APPROVED, e.CreationFailed("no"), State.APPROVED, Purpose.IDENTIFY),
    (State.APPROVED, e.CaptureIdentified(True, ours=True), State.PROVISIONING, None),
    (State.APPROVED, e.CaptureIdentified(True, ours=True, usable=False), State.FAILED, None),
    (State.APPROVED, e.CaptureIdentified(True, ours=False), State.FAILED, None),
    (State.APPROVED, e.CaptureIdentified(True), State.FAILED, None),
    (State.APPROVED, e.CaptureIdentified(False), State.FAILED, None),
    (State.APPROVED, e.CaptureIdentified(None), State.FAILED, None),
    (State.WAITING, e.CaptureListed(False), State.DOWNLOADING, Purpose.DOWNLOAD),
    (State.WAITING, e.CaptureListed(None), State.WAITING, None),
    (State.APPROVED, e.Resumed(), State.APPROVED, Purpose.POLL),
    (State.APPROVED, e.PollFailed("gone", absent=True), State.APPROVED, Purpose.CREATE),
    (State.APPROVED, e.PollFailed("network"), State.APPROVED, None),
    (State.APPROVED, e.Polled("Running"), State.WAITING, None),
    (State.APPROVED, e.Polled("Stopped"), State.DOWNLOADING, Purpose.DOWNLOAD),
    (State.PROVISIONING, e.Resumed(), State.PROVISIONING, Purpose.POLL),
    (State.PROVISIONING, e.Polled("NotStarted"), State.WAITING, None),
    (State.PROVISIONING, e.PollFailed("network"), State.WAITING, None),
    (State.WAITING, e.Resumed(), State.WAITING, Purpose.POLL),
    (State.WAITING, e.Polled("Running"), State.WAITING, None),
    (State.WAITING, e.Polled("Unknown"), State.WAITING, None),
    (State.WAITING, e.Polled("Stopped"), State.DOWNLOADING, Purpose.DOWNLOAD),
    (State.WAITING, e.Polled("Error"), State.FAILED, None),
    (State.WAITING, e.PollFailed("gone", absent=True), State.WAITING, None),
    (State.DOWNLOADING, e.BlobLocated(None), State.DOWNLOADING, Purpose.DOWNLOAD),
    (State.DOWNLOADING, e.Resumed(), State.DOWNLOADING, Purpose.DOWNLOAD),
    (State.DOWNLOADING, e.Downloaded(1, "x"), State.ANALYZING, Purpose.ANALYSE),
    (State.DOWNLOADING, e.DownloadFailed("no"), State.DOWNLOADING, Purpose.DOWNLOAD),
    (State.DOWNLOADING, e.Denied(), State.CANCELLED, None),
    (State.ANALYZING, e.Resumed(), State.ANALYZING, Purpose.ANALYSE),
    (State.ANALYZING, e.Analysed(), State.COMPLETED, None),
    (State.ANALYZING, e.AnalysisFailed("no"), State.FAILED, None),
    (State.ANALYZING, e.Denied(), State.CANCELLED, None),
    (State.COMPLETED, e.CleanupRequested(), State.CLEANING_UP, Purpose.CLEAN_UP),
    (State.FAILED, e.CleanupRequested(), State.CLEANING_UP, Purpose.CLEAN_UP),
    (State.TIMED_OUT, e.CleanupRequested(), State.CLEANING_UP, Purpose.CLEAN_UP),
    (State.CANCELLED, e.CleanupRequested(), State.CLEANING_UP, Purpose.CLEAN_UP),
    (State.ABANDONED, e.CleanupRequested(), State.CLEANING_UP, Purpose.CLEAN_UP),
    (State.CLEANING_UP, e.CleanupRequested(), State.CLEANING_UP, Purpose.CLEAN_UP),
    (State.CLEANING_UP, e.StepCleaned(0), State.CLEANING_UP, Purpose.CLEAN_UP),
    (State.CLEANING_UP, e.StepKept(0, "denied"), State.CLEANING_UP, Purpose.CLEAN_UP),
    (State.CLEANING_UP, e.StepKept(1, "denied"), State.CLEANING_UP, None),
    *[(s, e.CancelRequested(), State.CANCELLED, None) for s in State if a_task(s).active],
    *[(s, e.SessionEnded(), State.ABANDONED, None) for s in State if a_task(s).active],
    *[(s, e.CancelRequested(), s, None) for s in State if not a_task(s).active],
    *[(s, e.Resumed(), s, None) for s in State if not a_task(s).active],
]


@pytest.mark.parametrize(("state", "event", "after", "purpose"), PLAYBOOK)
def test_an_event_moves_the_task_as_the_table_says(
    state: State, event: e.Event, after: State, purpose: Purpose | None
) -> None:
    task, command = advance(a_task(state), event, AT)
    assert task.state is after
    assert (command.purpose if command else None) == purpose


def test_what_the_table_does_not_name_is_refused() -> None:
    samples: dict[type, e.Event] = {type(event): event for _, event, _, _ in PLAYBOOK}
    samples[e.StepBusy] = e.StepBusy(0, "busy")
    for sample in (e.AccountsListed(("a",)), e.ContainerCreated(), e.ContainerFailed("x")):
        samples[type(sample)] = sample
    samples[e.PartnerReady] = e.PartnerReady("/b.cap")
    samples[e.PartnerLost] = e.PartnerLost()
    samples[e.ComparedByPartner] = e.ComparedByPartner("/b.cap")
    assert set(samples) == set(get_args(e.Event))
    allowed = {(state, type(event)) for state, event, _, _ in PLAYBOOK}
    allowed |= {(State.CLEANING_UP, each) for each in (e.StepBusy, e.CaptureIdentified)}
    allowed |= {(State.APPROVED, each) for each in (e.ContainerCreated, e.ContainerFailed)}
    allowed |= {(State.DETECTING, e.AccountsListed), (State.DONE, e.CleanupRequested)}
    for state in State:
        for kind, event in samples.items():
            if (state, kind) not in allowed:
                with pytest.raises(IllegalTransition, match="ghost_web"):
                    advance(a_task(state), event, AT)


@pytest.mark.parametrize("state", [s for s in State if a_task(s).active])
def test_an_active_task_cannot_be_cleaned_up(state: State) -> None:
    with pytest.raises(IllegalTransition):
        advance(a_task(state), e.CleanupRequested(), AT)


def test_a_state_is_entered_only_from_where_it_may_be() -> None:
    for before in State:
        for after in set(State) - LEGAL[before]:
            with pytest.raises(IllegalTransition, match=f"{before} to {after}"):
                to(a_task(before), after)


def test_no_input_is_changed() -> None:
    for state, event, _, _ in PLAYBOOK:
        task = a_task(state)
        copy = task.model_copy(deep=True)
        advance(task, event, AT)
        assert task == copy


def test_the_cleanup_plan_is_registered_with_the_approval_before_the_creation() -> None:
    task, command = advance(a_task(State.DETECTING), e.Checked(Check.GATES, True), AT)
    assert [step.command.split()[1] for step in task.cleanup_plan] == ["network", "storage"]
    assert command is not None
    assert command.purpose is Purpose.CREATE


def test_every_ending_has_an_outcome_a_time_and_a_duration() -> None:
    for state, event, after, _ in PLAYBOOK:
        if a_task(state).active and after in {State.COMPLETED, State.FAILED, State.CANCELLED, State.ABANDONED}:
            task, _ = advance(a_task(state), event, AT)
            assert task.outcome is not None
            assert (task.timestamps.completed, task.duration_seconds) == (AT, 90.0)


def test_the_last_poll_times_the_task_out() -> None:
    task = a_task(State.WAITING, poll_count=19)
    for event in (e.Polled("Running"), e.PollFailed("network")):
        ended, _ = advance(task, event, AT)
        assert (ended.state, ended.outcome, ended.poll_count) == (State.TIMED_OUT, Outcome.TIMED_OUT, 20)
        assert isinstance(follow_up(ended), e.CleanupRequested)


def test_a_second_failed_download_is_the_last_and_the_first_waits_five_seconds() -> None:
    task, command = advance(a_task(State.DOWNLOADING), e.DownloadFailed("one"), AT)
    assert command is not None
    assert command.delay_seconds == 5.0
    task, command = advance(task, e.DownloadFailed("two"), AT)
    assert (task.state, command) == (State.FAILED, None)


@pytest.mark.parametrize(
    ("exists", "follows"), [(True, e.CleanupRequested()), (None, e.CleanupRequested()), (False, None)]
)
def test_after_a_failed_creation_only_what_may_exist_is_cleaned_up(
    exists: bool | None, follows: e.Event | None
) -> None:
    task, _ = advance(a_task(State.APPROVED), e.CreationFailed("no"), AT)
    assert follow_up(task) is None
    task, _ = advance(task, e.CaptureIdentified(exists), AT)
    assert follow_up(task) == follows


def test_a_round_of_cleanup_goes_on_past_what_is_kept_and_the_next_takes_only_that() -> None:
    task, command = advance(a_task(State.COMPLETED), e.CleanupRequested(), AT)
    task, command = advance(task, e.StepKept(0, "denied"), AT)
    assert command is not None
    assert command.step == 1
    task, command = advance(task, e.StepCleaned(1), AT)
    assert (task.state, task.cleanup_status, command) == (State.CLEANING_UP, CleanupStatus.PARTIAL, None)
    task, command = advance(task, e.CleanupRequested(), AT)
    assert command is not None
    assert command.step == 0
    task, command = advance(task, e.StepCleaned(0), AT)
    assert (task.state, task.cleanup_status, command) == (State.DONE, CleanupStatus.COMPLETED, None)


@pytest.mark.parametrize("state", [State.FAILED, State.CANCELLED, State.ABANDONED])
def test_a_task_without_resources_is_done_with_its_cleanup_skipped(state: State) -> None:
    task, command = advance(a_task(state, cleanup_plan=()), e.CleanupRequested(), AT)
    assert (task.state, task.cleanup_status, command) == (State.DONE, CleanupStatus.SKIPPED, None)


# --- pairs -------------------------------------------------------------------------------------------------------


def an_end(role: str, state: State = State.COMPLETED, **fields: object) -> CaptureTask:
    other = {"source": "ghost_b", "destination": "ghost_a"}[role]
    mine = {"source": "ghost_a", "destination": "ghost_b"}[role]
    pair = {"task_id": mine, "paired_task_id": other, "pair_role": role, "outcome": None}
    return a_task(state).having(**{**pair, "local_pcap_path": f"/captures/{mine}.cap", **fields})


def test_a_downloaded_end_waits_completed_for_the_other() -> None:
    task, command = advance(an_end("source", State.DOWNLOADING), e.Downloaded(), AT)
    assert (task.state, task.active, command) == (State.COMPLETED, True, None)


@pytest.mark.parametrize("role", ["source", "destination"])
def test_both_ends_are_compared_source_first(role: str) -> None:
    other = {"source": "/captures/ghost_b.cap", "destination": "/captures/ghost_a.cap"}[role]
    task, command = advance(an_end(role), e.PartnerReady(other), AT)
    assert command is not None
    assert command.command == (
        "pcap-forensics /captures/ghost_a.cap --compare /captures/ghost_b.cap --ends "
        "--semantic-dir /captures --report-dir /captures"
    )
    task, _ = advance(task, e.Analysed(), AT)
    assert (task.outcome, task.mode) == (Outcome.COMPLETED, Mode.COMPARISON)
    assert task.report_path == "/captures/ghost_a_vs_ghost_b_comparison.md"


def test_an_end_whose_other_is_lost_is_analysed_alone() -> None:
    task, command = advance(an_end("source"), e.PartnerLost(), AT)
    assert command is not None
    assert "--compare" not in command.command
    assert task.mode is Mode.SINGLE_END_FALLBACK


@pytest.mark.parametrize(
    ("partner", "news"),
    [
        (None, e.PartnerLost()),
        (an_end("destination", State.WAITING), None),
        (an_end("destination", State.ANALYZING), None),
        (an_end("destination"), e.PartnerReady("/captures/ghost_b.cap")),
        (an_end("destination", State.FAILED, outcome=Outcome.FAILED), e.PartnerLost()),
        (an_end("destination", State.DONE, outcome=Outcome.TIMED_OUT), e.PartnerLost()),
        (
            an_end("destination", outcome=Outcome.COMPLETED, mode=Mode.COMPARISON),
            e.ComparedByPartner("/captures/ghost_b.cap"),
        ),
    ],
)
def test_the_other_ends_state_decides_what_happens_to_this_one(
    partner: CaptureTask | None, news: e.Event | None
) -> None:
    assert news_of_partner(partner) == news


def test_an_analysed_end_is_not_analysed_again() -> None:
    for event in (e.PartnerReady("/b.cap"), e.PartnerLost(), e.ComparedByPartner("/b.cap")):
        with pytest.raises(IllegalTransition):
            advance(an_end("source", outcome=Outcome.COMPLETED), event, AT)


def test_what_a_record_names_that_the_task_did_not_make_is_asked_about() -> None:
    own, blob = cloud_cleanup(task := a_task(State.COMPLETED))
    capture = own.having(command="az network watcher packet-capture delete -l eastus -n somebody-elses")
    other = blob.having(command="az storage blob delete --account-name backups --container-name db --name all.bak")
    asked = [clean_up(task.having(cleanup_plan=(step,)), 0).asks for step in (own, blob, capture, other)]
    assert asked == [False, False, True, True]
    named = task.having(azure_operation_id="somebody-elses", storage_blob_name="all.bak")
    assert all(clean_up(named.having(cleanup_plan=cloud_cleanup(named)), step).asks for step in (0, 1))
