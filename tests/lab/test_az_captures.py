"""What captures of the lab's `az` can be limited to, on what they can be taken, and their newer group of commands."""

from __future__ import annotations

import io
import json
import shlex
import struct
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from ghost import lab
from ghost.errors import LabError
from ghost.lab.directory import LabClock, LabDirectory
from ghost.lab.programs import az
from ghost.lab.world import ScaleSet, World
from ghost.lab.world_validation import world_from_dict

STARTED = 1_700_000_000.0
WATCHER = "-g NetworkWatcherRG --network-watcher-name NetworkWatcher_eastus"
NEWER = "az network network-watcher packet-capture"
CREATE = (
    "az network watcher packet-capture create -g prod-rg -n cap1 --vm web-vm-01 --storage-account prodforensics01 "
    "--storage-path https://prodforensics01.blob.core.windows.net/captures/cap1.cap --time-limit 60"
)
DOWNLOAD = "az storage blob download --account-name prodforensics01 -c captures -n cap1.cap -f {} --auth-mode login"

Call = Callable[..., tuple[int, Any, str]]


def _lab(directory: Path, world: World, *, passed: float = 0.0) -> None:
    """A lab that stands still `passed` seconds after its start."""
    scenario = replace(lab.load_scenario("blocked-port"), world=world)
    kept = directory / "state.json"
    state = kept.read_text() if kept.exists() else "{}"
    LabDirectory.create(directory, scenario, LabClock(STARTED + passed, 1e-12))
    kept.write_text(state)


@pytest.fixture
def world() -> World:
    return lab.load_scenario("blocked-port").world


@pytest.fixture
def call(tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    monkeypatch.setenv("GHOST_LAB_DIR", str(tmp_path / "lab"))

    def ask(command: str, *, after: float = 0.0, of: World = world) -> tuple[int, Any, str]:
        _lab(tmp_path / "lab", of, passed=after)
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            status = az.main(shlex.split(command)[1:])
        return status, json.loads(out.getvalue() or "null"), err.getvalue()

    return ask


def _frames(path: Path) -> list[tuple[bytes, int]]:
    """Frames as kept, with their length on the wire."""
    data, position, frames = path.read_bytes(), 24, []
    while position < len(data):
        _, _, kept, length = struct.unpack_from("<IIII", data, position)
        frames.append((data[position + 16 : position + 16 + kept], length))
        position += 16 + kept
    return frames


def _downloaded(call: Call, tmp_path: Path, create: str, name: str = "cap1", **more: Any) -> list[tuple[bytes, int]]:
    status, _, said = call(create.replace("cap1", name), **more)
    assert status == 0, said
    target = tmp_path / "x.cap"
    assert call(DOWNLOAD.format(target).replace("cap1", name), after=100, **more)[0] == 0
    return _frames(target)


def test_a_filter_keeps_the_packets_that_fit_and_no_others(call: Call, tmp_path: Path) -> None:
    filters = '[{"protocol":"TCP","remoteIPAddress":"10.20.2.1-10.20.2.9","remotePort":"6379"}]'
    everything = _downloaded(call, tmp_path, CREATE)
    kept = _downloaded(call, tmp_path, f"{CREATE} --filters {shlex.quote(filters)}", "cap2")

    def fits(frame: bytes) -> bool:
        if frame[12:14] != b"\x08\x00" or frame[23] != 6:
            return False
        ends = zip((frame[26:30], frame[30:34]), struct.unpack_from(">HH", frame, 34), strict=True)
        return (ip_address("10.20.2.5").packed, 6379) in list(ends)

    assert kept == [frame for frame in everything if fits(frame[0])]
    assert 0 < len(kept) < len(everything)


def test_a_filter_that_cannot_be_read_is_refused(call: Call) -> None:
    status, _, said = call(f"""{CREATE} --filters '[{{"remoteIPAddress":"nowhere"}}]'""")

    assert status == 1
    assert "packet capture filter" in said


def test_a_capture_of_few_bytes_a_packet_keeps_their_lengths(call: Call, tmp_path: Path) -> None:
    frames = _downloaded(call, tmp_path, f"{CREATE} --capture-size 64")

    assert max(len(frame) for frame, _ in frames) == 64
    assert max(length for _, length in frames) > 500


def test_a_capture_that_has_used_up_its_bytes_stops_and_says_why(call: Call, tmp_path: Path) -> None:
    frames = _downloaded(call, tmp_path, f"{CREATE} --capture-limit 20000")
    status = call("az network watcher packet-capture show-status -l eastus -n cap1", after=61)[1]

    assert (status["packetCaptureStatus"], status["stopReason"]) == ("Stopped", "MaxSizeExceeded")
    size = (tmp_path / "x.cap").stat().st_size
    assert 15_000 < size <= 20_000
    assert frames


def test_a_capture_into_a_file_of_the_machine_leaves_no_blob(call: Call) -> None:
    place = CREATE[CREATE.index("--storage-account") : CREATE.index(" --time-limit")]
    status, created, _ = call(CREATE.replace(place, "--file-path /var/captures/x.cap"))

    assert status == 0
    assert created["storageLocation"] == {"filePath": "/var/captures/x.cap", "storagePath": ""}
    assert call("az storage blob list --account-name prodforensics01 -c captures", after=200)[1] == []


def test_the_newer_commands_show_the_same_captures(call: Call) -> None:
    created = call(CREATE)[1]

    assert call(f"{NEWER} list {WATCHER}")[1] == [created]
    assert call(f"{NEWER} show {WATCHER} -n cap1")[1] == created
    assert call(f"{NEWER} show --ids {created['id']}")[1] == created
    status = call(f"{NEWER} query-status {WATCHER} --packet-capture-name cap1", after=10)[1]
    assert status == call("az network watcher packet-capture show-status -l eastus -n cap1", after=10)[1]
    assert call(f"{NEWER} stop {WATCHER} --packet-capture-name cap1", after=10)[0] == 0
    assert call(f"{NEWER} delete {WATCHER} -n cap1", after=20) == (1, None, "ERROR: Operation cancelled.\n")
    assert call(f"{NEWER} delete {WATCHER} -n cap1 --yes", after=20)[0] == 0
    assert call(f"{NEWER} list {WATCHER}", after=30)[1] == []


# --- scale sets ---


@pytest.fixture
def with_set(world: World) -> World:
    return replace(world, scale_sets=(ScaleSet("jobs-set", "prod-rg", ("jobs-vm-01",)),))


def test_the_machines_of_a_scale_set_are_listed_nowhere_else(call: Call, with_set: World) -> None:
    machines = call("az vm list --query [].name", of=with_set)[1]
    interfaces = call("az network nic list --query [].name", of=with_set)[1]
    (listed,) = call("az resource list -n jobs-set", of=with_set)[1]
    (instance,) = call("az vmss list-instances -g prod-rg -n jobs-set", of=with_set)[1]
    shown = call(f"az resource show --ids {instance['id']}", of=with_set)[1]

    assert machines == ["web-vm-01", "redis-cache-01"]
    assert "jobs-vm-01-nic" not in interfaces
    assert listed["type"] == "Microsoft.Compute/virtualMachineScaleSets"
    assert (instance["name"], instance["instanceId"]) == ("jobs-set_0", "0")
    assert (shown["name"], shown["location"]) == ("jobs-set_0", "eastus")


def test_an_instance_of_a_scale_set_tells_its_power_and_its_agent(call: Call, with_set: World) -> None:
    view = call("az vmss get-instance-view -g prod-rg -n jobs-set --instance-id 0", of=with_set)[1]
    status, _, said = call("az vmss get-instance-view -g prod-rg -n jobs-set --instance-id 7", of=with_set)

    assert "PowerState/running" in [item["code"] for item in view["statuses"]]
    assert [item["type"] for item in view["extensions"]] == ["Microsoft.Azure.NetworkWatcher.NetworkWatcherAgentLinux"]
    assert status == 3
    assert "entity 7 was not found" in said


def test_a_capture_on_one_instance_of_a_scale_set_sees_its_packets(call: Call, with_set: World, tmp_path: Path) -> None:
    target = "--target jobs-set --target-type AzureVMSS --include 0"
    frames = _downloaded(call, tmp_path, CREATE.replace("--vm web-vm-01", target), of=with_set)
    shown = call("az network watcher packet-capture show -l eastus -n cap1", of=with_set)[1]

    assert shown["targetType"] == "AzureVMSS"
    assert shown["scope"] == {"exclude": [], "include": ["0"]}
    addresses = {frame[26:30] for frame, _ in frames if frame[12:14] == b"\x08\x00"}
    assert ip_address("10.20.3.10").packed in addresses


def test_a_scale_set_of_machines_that_are_not_there_is_not_sound(world: World) -> None:
    broken = replace(world, scale_sets=(ScaleSet("jobs-set", "prod-rg", ("nobody",)),))
    with pytest.raises(LabError, match="no machine 'nobody'"):
        world_from_dict(broken.to_dict())
