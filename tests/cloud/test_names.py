"""Any text as a target: refused, or exactly one word of a command that no program takes for an option."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghost.cloud import commands
from ghost.cloud.names import (
    check_container,
    check_prefix,
    check_resource_group,
    check_storage_account,
    check_target,
    is_capture_name,
    new_task_id,
    one_line,
)
from ghost.cloud.task import CaptureTask, State
from ghost.errors import UsageError

AT = datetime(2025, 1, 15, 14, 32, tzinfo=UTC)
RG = "/subscriptions/0/resourceGroups/rg"
VM_ID = f"{RG}/providers/Microsoft.Compute/virtualMachines/web-vm-01"

near_names = st.text(st.sampled_from("aZ0-_.()/[]'\" $`;|&\n\t\x00\u202eé"), max_size=90)
targets = st.one_of(st.text(max_size=120), near_names, st.from_regex(r"[A-Za-z0-9_.-]{1,90}", fullmatch=True))


def a_task(target: str, group: str, account: str) -> CaptureTask:
    task_id = new_task_id("ghost", target, AT, lambda _: False)
    return CaptureTask(
        task_id=task_id,
        session_id="s1",
        target=target,
        state=State.CREATED,
        resource_group=group,
        location="eastus",
        storage_account=account,
        storage_blob_name=f"{task_id}.cap",
        capture_dir="/captures",
        local_pcap_path=f"/captures/{task_id}.cap",
    )


def accepted(check, text: str) -> bool:
    try:
        check(text)
    except UsageError:
        return False
    return True


@given(targets, targets, targets)
def test_a_command_holds_exactly_the_words_that_were_meant(target: str, group: str, account: str) -> None:
    if not (accepted(check_target, target) and accepted(check_resource_group, group)):
        return
    account = account if accepted(check_storage_account, account) else "forensics"
    task = a_task(target, group, account)
    create = shlex.split(commands.create(task).command)
    url = f"https://{account}.blob.core.windows.net/captures/{task.task_id}.cap"
    assert create == [
        *["az", "network", "watcher", "packet-capture", "create", "-g", group, "-n", task.task_id, "--vm", target],
        *["--storage-account", account, "--storage-path", url, "--time-limit", "60", "-o", "json"],
    ]
    for build in (commands.detect, commands.verify_storage, commands.poll, commands.download, commands.analyse):
        words = shlex.split(build(task).command)
        assert shlex.join(words) == build(task).command
        assert [w for w in words if w.startswith("-")] == [
            w for w in shlex.split(build(a_task("vm", "rg", "forensics")).command) if w.startswith("-")
        ] or target.startswith(("/", "["))


@given(targets)
def test_nothing_accepted_looks_like_an_option_or_holds_what_a_shell_would_read(text: str) -> None:
    for check in (check_target, check_resource_group, check_storage_account, check_container, check_prefix):
        if accepted(check, text):
            assert not text.startswith("-")
            assert not set(text) & set(" \t\r\n\0'\"\\$`;|&<>*?~#!{}@=%")


@given(st.text(max_size=200), st.integers(0, 120))
def test_a_task_id_is_a_capture_name_and_never_one_that_is_taken(target: str, number_taken: int) -> None:
    taken: set[str] = set()
    for _ in range(number_taken % 4 + 1):
        task_id = new_task_id("ghost", target, AT, taken.__contains__)
        assert task_id not in taken
        assert is_capture_name(task_id)
        assert re.fullmatch(r"ghost_.+_20250115T143200(_\d+)?", task_id)
        taken.add(task_id)


@given(st.text(), st.integers(2, 60))
def test_a_line_is_printable_and_bounded(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert line.isprintable()
    assert len(line) <= limit


@pytest.mark.parametrize("target", ["web-vm-01", "a", "WEB_1.prod", VM_ID, VM_ID.upper(), "[AZURE_RESOURCE_12]"])
def test_azures_names_pass(target: str) -> None:
    assert check_target(target) == target


@pytest.mark.parametrize(
    "target",
    [
        *["", " ", "-vm", "--ids", "_vm", "vm.", "vm-", "a b", "a\nb", "vm;rm", "$(id)", "@file", "vm\u202e", "a" * 81],
        *["/", "/etc/passwd", "[AZURE_RESOURCE_1] x", "[OTHER_1]", f"{VM_ID}/", f"{VM_ID} --debug", f"{VM_ID}\n"],
        *[f"{RG}/providers/Microsoft.Compute/virtualMachines/-x", f"{RG}/providers/Microsoft.Compute/virtualMachines"],
        "/subscriptions/0/resourceGroups/-rg/providers/Microsoft.Compute/virtualMachines/vm",
        f"{RG}/../providers/Microsoft.Compute/virtualMachines/vm",
    ],
)
def test_what_is_no_name_is_refused_in_words(target: str) -> None:
    with pytest.raises(UsageError, match="resource name") as refused:
        check_target(target)
    assert str(refused.value).isprintable()


def test_a_long_name_is_cut_so_that_azure_takes_the_capture() -> None:
    task_id = new_task_id("ghost", "v" * 80, AT, lambda _: False)
    assert len(task_id) == 80
    assert task_id.endswith("v_20250115T143200")


def test_a_task_is_named_after_the_last_segment_of_its_target() -> None:
    assert new_task_id("ghost", VM_ID, AT, lambda _: False) == "ghost_web-vm-01_20250115T143200"
