"""The storage account of a capture where nobody named one: those of the target's region, the likeliest first.

The preflight checks then decide. Left out, since Network Watcher cannot store a capture there or the engineer cannot
fetch it: premium and file accounts, those with a hierarchical namespace, and those without a public endpoint.
"""

from __future__ import annotations

import shlex
from datetime import datetime

from ghost.cloud import task_events
from ghost.cloud.capture_commands import Purpose, ShellCommand, context, in_subscription
from ghost.cloud.preflight import Check
from ghost.cloud.resource_names import is_storage_account
from ghost.cloud.shell_reply import Reply
from ghost.cloud.task import CaptureTask, Outcome
from ghost.cloud.transitions import Next, end
from ghost.text import one_line, plural

OF_ACCOUNT = frozenset({Check.ACCOUNT, Check.SUBNET, Check.ROLE, Check.STORAGE, Check.BLOBS})
"""The checks that another account may pass."""
MAX_WITHOUT_CONTAINER = 5
"""Accounts that lack only the container, before it is offered to create it."""
_SHOWN = 5
_MEANT_FOR_CAPTURES = ("captur", "pcap", "forens", "diag")


def list_accounts(task: CaptureTask) -> ShellCommand:
    """Names only, in one text each: hundreds of accounts stay within the shell's output limit."""
    query = (
        f"[?location=='{task.location}'&&!isHnsEnabled&&!starts_with(sku.name,'Premium')&&kind!='FileStorage'"
        "&&publicNetworkAccess!='Disabled']|"
        f"{{own:join(' ',[?resourceGroup=='{task.resource_group}'].name),"
        "open:join(' ',[?networkRuleSet.defaultAction!='Deny'].name),"
        "closed:join(' ',[?networkRuleSet.defaultAction=='Deny'].name)}"
    )
    words = ["az", "storage", "account", "list", *in_subscription(task), "--query", query, "-o", "json"]
    return ShellCommand(
        Purpose.LIST_ACCOUNTS,
        shlex.join(words),
        f"Finding the storage accounts of {task.location} that may take the capture. Investigation: {context(task)}",
    )


def accounts_listed(reply: Reply) -> task_events.AccountsListed:
    found = reply.value
    if reply.cut or not isinstance(found, dict):
        return task_events.AccountsListed((), reply.detail if not reply.succeeded else "the list was truncated")
    names = {kind: str(found.get(kind) or "").split() for kind in ("own", "open", "closed")}

    def rank(name: str) -> tuple[bool, bool, bool]:
        is_meant = any(word in name for word in _MEANT_FOR_CAPTURES)
        return name in names["closed"], name not in names["own"], not is_meant

    every = filter(is_storage_account, sorted({*names["open"], *names["closed"]}))
    return task_events.AccountsListed(tuple(sorted(every, key=rank)))


def none_listed(task: CaptureTask, event: task_events.AccountsListed, at: datetime) -> Next:
    because = event.detail or f"the subscription has none in {task.location} that Network Watcher can write to"
    return end(task, Outcome.FAILED, at, f"No storage account can be chosen: {because}. Name one: --storage-account")


def with_account(task: CaptureTask, names: tuple[str, ...]) -> CaptureTask:
    """Return the task with the first account, of which nothing is known yet; the others are tried after it."""
    return task.having(
        storage_account=names[0],
        other_accounts=names[1:],
        storage_account_id=None,
        storage_location=None,
        storage_endpoint=None,
        storage_is_private=False,
        storage_is_closed=False,
        admitted_subnets=(),
        preflight=tuple(result for result in task.preflight if result.check not in OF_ACCOUNT),
    )


def after_failure(task: CaptureTask, event: task_events.Checked, at: datetime) -> CaptureTask:
    """Return the task with the next account to check, with a container to be created, or ended."""
    account = task.storage_account
    if event.container_missing and task.creates_container:
        return task
    if event.container_missing:
        task = task.having(accounts_without_container=(*task.accounts_without_container, account))
    else:
        task = task.having(unfit_accounts=(*task.unfit_accounts, f"{account}: {one_line(event.detail, 600)}"))
    lacking = task.accounts_without_container
    if task.other_accounts and len(lacking) < MAX_WITHOUT_CONTAINER and not task.creates_container:
        return with_account(task, task.other_accounts)
    if lacking and not task.creates_container:
        task = task.having(creates_container=True)
        return task if lacking[0] == account else with_account(task, lacking[:1])
    if len(task.unfit_accounts) < 2:
        return end(task, Outcome.FAILED, at, event.detail)[0]
    more = len(task.unfit_accounts) - _SHOWN
    others = f"; {plural(more, 'other account')}" if more > 0 else ""
    reasons = "; ".join(f"({n}) {why}" for n, why in enumerate(task.unfit_accounts[:_SHOWN], 1))
    detail = f"No storage account of {task.location} can take the capture: {reasons}{others}"
    return end(task, Outcome.FAILED, at, f"{detail}. Mend one, or name another: --storage-account")[0]
