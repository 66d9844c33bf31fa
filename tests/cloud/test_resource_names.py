"""Any text as a target: refused, or exactly one word of a command that no program takes for an option."""

from __future__ import annotations

import re
import shlex
from dataclasses import astuple
from datetime import UTC, datetime
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ghost.cloud import capture_commands, preflight
from ghost.cloud.resource_names import (
    BlobPlace,
    blob_location,
    check_container,
    check_prefix,
    check_resource_group,
    check_storage_account,
    check_target,
    is_capture_name,
    new_task_id,
    one_line,
    random_ending,
)
from ghost.cloud.task import CaptureTask, State
from ghost.errors import UsageError

AT = datetime(2025, 1, 15, 14, 32, tzinfo=UTC)
RG = "/subscriptions/0/resourceGroups/rg"
VM_ID = f"{RG}/providers/Microsoft.Compute/virtualMachines/web-vm-01"

INSTANCE_ID = f"{RG}/providers/Microsoft.Compute/virtualMachineScaleSets/web/virtualMachines/3"
ACCOUNT_ID = f"{RG}/providers/Microsoft.Storage/storageAccounts/forensics"
NIC_ID = f"{RG}/providers/Microsoft.Network/networkInterfaces/nic"

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
        target_id=target if target.startswith("/") else VM_ID,
        network_interface=NIC_ID,
        storage_account=account,
        storage_account_id=ACCOUNT_ID,
        principal="ana@contoso.com",
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


@settings(deadline=None)
@given(targets, targets, targets)
def test_a_command_holds_exactly_the_words_that_were_meant(target: str, group: str, account: str) -> None:
    if not (accepted(check_target, target) and accepted(check_resource_group, group)):
        return
    account = account if accepted(check_storage_account, account) else "forensics"
    task = a_task(target, group, account)
    create = shlex.split(capture_commands.create(task).command)
    url = f"https://{account}.blob.core.windows.net/captures/{task.task_id}.cap"
    assert create == [
        *["az", "network", "watcher", "packet-capture", "create", "-g", group, "-n", task.task_id, "--vm", target],
        *["--storage-account", account, "--storage-path", url, "--time-limit", "60", "-o", "json"],
    ]
    assert_only_the_tables_options(task, "vm")


ids = st.builds(
    "/subscriptions/{}/resourceGroups/{}/providers/{}/{}{}".format,
    near_names,
    targets,
    st.sampled_from(["Microsoft.Compute", "-x", "a b"]),
    st.sampled_from(["virtualMachines/", "virtualMachineScaleSets/s/virtualMachines/", "virtualMachineScaleSets/"]),
    targets,
)


@settings(deadline=None)
@given(ids | st.builds("{}{}".format, st.sampled_from([VM_ID, INSTANCE_ID]), near_names), targets)
@example(INSTANCE_ID, "prod-rg")
@example(VM_ID.replace("/0/", "/--debug/"), "prod-rg")
def test_an_id_that_is_accepted_adds_no_option_to_any_command(target: str, group: str) -> None:
    if accepted(check_target, target) and accepted(check_resource_group, group):
        task = a_task(target, group, "forensics")
        assert_only_the_tables_options(task, "vmss" if task.instance else "vm")


def assert_only_the_tables_options(task: CaptureTask, target_type: str) -> None:
    """Each command reads back as the words that were joined, with no option that a harmless task would not have."""
    like = INSTANCE_ID if target_type == "vmss" else VM_ID if task.subscription else "vm"
    harmless = a_task(like, "rg", "forensics")
    rows = preflight.of_target(target_type)
    builds = [
        capture_commands.create,
        capture_commands.poll,
        capture_commands.locate_blob,
        capture_commands.download,
        capture_commands.analyse,
    ]
    builds += [capture_commands.look_for_capture, *[partial(capture_commands.check, row=row) for row in rows]]
    for build in builds:
        made, expected = build(task), build(harmless)
        assert isinstance(made, capture_commands.ShellCommand)
        words, others = shlex.split(made.command), shlex.split(expected.command)
        assert shlex.join(words) == made.command
        assert len(words) == len(others)
        assert [w for w in words if w.startswith("-")] == [w for w in others if w.startswith("-")]
    for step in capture_commands.cloud_cleanup(task):
        assert len([w for w in shlex.split(step.command) if w.startswith("--debug")]) == 0


urls = st.builds(
    "{}://{}/{}".format,
    st.sampled_from(["https", "http", "file"]),
    st.sampled_from(["forensics.blob.core.windows.net", "u@a.blob.x", "127.0.0.1:8000", "-x.blob.y", ""]),
    st.text(st.sampled_from("aZ09-_./?#% '$\n\u202e"), max_size=40),
)


@given(urls)
@example("https://forensics.blob.core.windows.net/captures/ghost_a.cap")
@example("https://127.0.0.1:8000/forensics/captures/sub/x.cap")
def test_a_blobs_url_is_read_whole_or_not_at_all(url: str) -> None:
    place = blob_location(url)
    if place is not None:
        assert url.startswith("https://")
        assert url.endswith(f"/{place.container}/{place.blob}")
        assert not any(part.startswith(("-", "/")) or not part.isprintable() for part in astuple(place))


@pytest.mark.parametrize(
    ("url", "place"),
    [
        (
            "https://forensics.blob.core.windows.net/network-watcher-logs/subscriptions/x/1.cap",
            BlobPlace("forensics", "network-watcher-logs", "subscriptions/x/1.cap"),
        ),
        ("https://127.0.0.1:8000/forensics/captures/x.cap", BlobPlace("forensics", "captures", "x.cap")),
        ("https://forensics.blob.core.windows.net/captures", None),
        ("https://forensics.blob.core.windows.net/captures/--file", None),
        ("https://forensics.blob.core.windows.net/captures/../x", None),
        ("https://forensics.blob.core.windows.net/captures/x.cap?sig=1", None),
        ("/var/captures/x.cap", None),
        ("https://[forensics/captures/x.cap", None),
        ("https://\u2100.blob.core.windows.net/captures/x.cap", None),
        ("https://forensics.blob.core.windows.net/captures/x\n.cap", None),
    ],
)
def test_a_blobs_place_is_taken_from_its_url(url: str, place: BlobPlace | None) -> None:
    assert blob_location(url) == place


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
    assert len(f"{task_id}_{random_ending()}") == 80
    assert task_id.endswith("v_20250115T143200")


def test_a_task_is_named_after_the_last_segment_of_its_target() -> None:
    assert new_task_id("ghost", VM_ID, AT, lambda _: False) == "ghost_web-vm-01_20250115T143200"


def test_an_instance_of_a_scale_set_is_named_with_its_set() -> None:
    assert new_task_id("ghost", INSTANCE_ID, AT, lambda _: False) == "ghost_web_3_20250115T143200"
