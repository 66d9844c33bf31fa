"""Detection of the target, and checks that a capture of it can work, before anything is created. Reads only; see
`preflight`.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from ghost.cloud import capture_commands, preflight, storage_choice, task_events
from ghost.cloud.preflight import Check
from ghost.cloud.task import CaptureTask, CheckResult, Outcome, State
from ghost.cloud.transitions import Next, end, to

VIRTUAL_MACHINE = "microsoft.compute/virtualmachines"
SCALE_SET_INSTANCE = "microsoft.compute/virtualmachinescalesets/virtualmachines"
SCALE_SET = "microsoft.compute/virtualmachinescalesets"
AKS_CLUSTER = "microsoft.containerservice/managedclusters"
_TARGET_TYPES = {VIRTUAL_MACHINE: "vm", SCALE_SET_INSTANCE: "vmss"}


def registered(task: CaptureTask, _: task_events.Registered, _at: datetime) -> Next:
    return begin(task)


def begin(task: CaptureTask) -> Next:
    """Start from the beginning, also after a crash: these commands only read, and results may have changed."""
    task = task if task.state is State.DETECTING else to(task, State.DETECTING)
    if task.chooses_account:
        task = task.having(storage_account="", other_accounts=(), unfit_accounts=(), accounts_without_container=())
    task = task.having(preflight=(), error_detail=None, creates_container=False)
    return task, capture_commands.detect(task)


def target_found(task: CaptureTask, event: task_events.TargetFound, at: datetime) -> Next:
    kind = event.resource_type.lower()
    task = task.having(location=event.location, target_id=event.resource_id, network_interface=None)
    if kind in _TARGET_TYPES and not (kind == SCALE_SET_INSTANCE and task.instance is None):
        return _next_check(task.having(target_type=_TARGET_TYPES[kind], preflight=()), None, at)
    if kind == AKS_CLUSTER:
        task = task.having(target_type="aks")
    return end(task, Outcome.FAILED, at, _not_captured(task, event.resource_type))


def _not_captured(task: CaptureTask, resource_type: str) -> str:
    kind = resource_type.lower()
    if kind == AKS_CLUSTER:
        return (
            f"AKS capture pipeline not yet available: {task.target} is an AKS cluster. "
            "Capture on the VM at the other end of the path, or on a node's VM"
        )
    if kind == SCALE_SET:
        return (
            f"{task.target} is a scale set, not one machine. Name one instance by its full id: the set's id and "
            f"/virtualMachines/ID; az vmss list-instances -g {task.resource_group} -n {task.target_name} lists them"
        )
    if kind == SCALE_SET_INSTANCE:
        return f"{task.target} is a scale set instance: only its full id identifies it"
    return f"{task.target} is a {resource_type}: packets are captured on virtual machines"


def target_missing(task: CaptureTask, event: task_events.TargetMissing, _at: datetime) -> Next:
    return task.having(error_detail=event.detail), capture_commands.search_other_groups(task)


def target_unusable(task: CaptureTask, event: task_events.TargetUnusable, at: datetime) -> Next:
    return end(task, Outcome.FAILED, at, event.detail)


def checked(task: CaptureTask, event: task_events.Checked, at: datetime) -> Next:
    learned = {name: fact for name, fact in asdict(event.learned).items() if fact is not None}
    result = CheckResult(check=event.check, passed=event.passed, detail=event.detail)
    task = task.having(preflight=(*task.preflight, result), **learned)
    if event.passed is False or (event.passed is None and preflight.required(event.check)):
        if event.check not in storage_choice.OF_ACCOUNT:
            return end(task, Outcome.FAILED, at, event.detail)
        before, task = task, storage_choice.after_failure(task, event, at)
        if not task.active:
            return task, None
        if task.storage_account != before.storage_account:
            return _next_check(task, Check.IDENTITY, at)
        made = CheckResult(check=Check.STORAGE, passed=None, detail="the container is to be created")
        return _next_check(task.having(preflight=(*before.preflight[:-1], made)), Check.STORAGE, at)
    return _next_check(task, event.check, at)


def accounts_listed(task: CaptureTask, event: task_events.AccountsListed, at: datetime) -> Next:
    if not event.names:
        return storage_choice.none_listed(task, event, at)
    return _next_check(storage_choice.with_account(task, event.names), Check.IDENTITY, at)


def _next_check(task: CaptureTask, made: Check | None, at: datetime) -> Next:
    """Return the next check whose command can be built; after the last one, the creation of the capture."""
    for row in preflight.after(made, task.target_type):
        if row.check is Check.ACCOUNT and not task.storage_account:
            return task, storage_choice.list_accounts(task)
        if not _plays_a_part(row, task):
            continue
        command = capture_commands.check(task, row)
        if isinstance(command, capture_commands.ShellCommand):
            return task, command
        detail = f"the {command} is not known"
        task = task.having(preflight=(*task.preflight, CheckResult(check=row.check, passed=None, detail=detail)))
        if row.required:
            return end(task, Outcome.FAILED, at, f"{row.check} could not be checked: {detail}")
    # The plan is in the registry before the first resource exists: whatever happens next can be undone.
    task = to(task, State.APPROVED).having(cleanup_plan=capture_commands.cloud_cleanup(task))
    return task, capture_commands.creations(task)[0]


def _plays_a_part(row: preflight.CheckCommand, task: CaptureTask) -> bool:
    if row.login_only and task.storage_auth_mode != "login":
        return False
    if row.needs is not None and not getattr(task, row.needs):
        return False
    return not any(made.check is row.unless and made.passed for made in task.preflight)
