"""An investigation with the real az on an emulated tenant that logs out, throttles, refuses or is not reached."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ghost import lab
from ghost.azure import ErrorKind, read_error
from ghost.errors import GhostError, LoginError
from ghost.lab.arm.emulator_state import LOCK
from ghost.lab.directory import LabDirectory
from ghost.lab.tenant import guid
from ghost.lab.tenant_conditions import TenantConditions
from tests.lab import real_az
from tests.lab.emulated import SUBSCRIPTION, Client, emulated

GHOST = Path(sys.executable).parent / "ghost"
REAL = real_az.find()
pytestmark = pytest.mark.skipif(REAL is None, reason=real_az.why_not())
CAPTURE = "network watcher packet-capture create -g prod-rg -n {} --vm web-vm-01 --time-limit 3 --file-path /x.cap"
VM = f"{SUBSCRIPTION}/resourceGroups/prod-rg/providers/Microsoft.Compute/virtualMachines/web-vm-01"
USER = guid("engineer@contoso.example")
SYMPTOM = "web-vm-01 cannot reach redis-cache-01 on 6379"
NO_PROXY_THERE = dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), "http://127.0.0.1:9")


def ghost(up: Client, here: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    own = {"HOME": str(here), "PATH": "/usr/bin:/bin", "GHOST_AZ": str(REAL), "GHOST_WORKSPACE": str(here / "work")}
    return subprocess.run(
        [GHOST, "investigate", *words, "--brain", "offline"],
        cwd=here,
        env={**own, **up.up.environment, **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def tenant(**conditions: object) -> lab.Scenario:
    return replace(lab.load_scenario("blocked-port"), tenant=TenantConditions(**conditions))  # type: ignore[arg-type]


def reports(here: Path) -> list[dict[str, object]]:
    return [json.loads(file.read_text()) for file in (here / "work" / "audit").glob("ghost_rca_*.json")]


@contextmanager
def running(directory: Path, scenario: lab.Scenario, speed: float) -> Iterator[Client]:
    """The emulator as `ghost lab up` keeps it: Ghost sees that az talks to a lab."""
    with emulated(directory, scenario, speed) as up, (directory / LOCK).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield up


def without_login(environment: Mapping[str, str]) -> dict[str, str]:
    settings = Path(environment["AZURE_CONFIG_DIR"])
    nobody = shutil.copytree(settings, settings.with_name("nobody"))
    (nobody / "azureProfile.json").unlink()
    return {"AZURE_CONFIG_DIR": str(nobody)}


def test_who_never_logged_in_and_who_has_no_network_is_told_so_before_anything_is_read(tmp_path: Path) -> None:
    with running(tmp_path / "lab", tenant(), 20) as up:
        nobody = ghost(up, tmp_path, SYMPTOM, **without_login(up.up.environment))
        cut_off = ghost(up, tmp_path, SYMPTOM, **NO_PROXY_THERE)
    assert (nobody.returncode, cut_off.returncode) == (LoginError.exit_status, GhostError.exit_status)
    assert "nobody is logged in to az" in nobody.stderr
    assert "run az login" in nobody.stderr
    assert "this machine cannot reach Azure" in cut_off.stderr
    assert "HTTPS_PROXY" in cut_off.stderr
    assert reports(tmp_path) == []


def test_a_login_that_expires_midway_pauses_the_session_and_it_goes_on_after_a_new_one(tmp_path: Path) -> None:
    with running(tmp_path / "lab", tenant(login_expires_after=11), 0.01) as up:
        paused = ghost(up, tmp_path, SYMPTOM)
        assert paused.returncode == LoginError.exit_status, paused.stderr[-1500:]
        assert "run az login" in paused.stderr
        assert reports(tmp_path) == []
        session = json.loads((tmp_path / "work" / "ghost_session.json").read_text())["session_id"]
        assert f"--resume {session}" in paused.stderr
        still_out = ghost(up, tmp_path, "--resume", session)
        assert still_out.returncode == LoginError.exit_status, still_out.stderr[-1500:]
        ended = [LoginError.exit_status]
        while ended[-1] == LoginError.exit_status and len(ended) < 9:
            with LabDirectory.open(tmp_path / "lab").changing() as state:
                state["requests"] = 0  # logged in anew
            resumed = ghost(up, tmp_path, "--resume", session)
            ended.append(resumed.returncode)
    assert ended[-1] == 0, (ended, resumed.stderr[-1500:])
    (report,) = reports(tmp_path)
    assert (report["session_id"], report["outcome"]) == (session, "cause_found")


REFUSED = [  # a command, and Azure's code for what it comes to; no code where it succeeds
    ("network nsg delete -g prod-rg -n prod-nsg", "ScopeLocked"),
    (CAPTURE.format("a"), "PacketCaptureAlreadyExists"),  # the answer was lost, and az repeated the request
    (CAPTURE.format("b"), "PacketCaptureCountLimitReached"),
    ("network watcher packet-capture delete -l eastus -n a", None),
    (f"resource show --ids {VM} --api-version 2099-01-01", "NoRegisteredProviderFound"),
    (f"resource show --ids {VM} --api-version next", "InvalidApiVersionParameter"),
]


def test_the_real_az_meets_locks_quotas_lost_answers_unknown_versions_and_missing_roles(tmp_path: Path) -> None:
    assert REAL is not None
    hostile = tenant(locked=("/resourceGroups/prod-rg",), captures_per_region=1, lost_answers=1, roles=("Contributor",))
    with emulated(tmp_path / "lab", hostile, speed=20) as up:

        def az(command: str) -> real_az.Ran:
            return real_az.run_ready(REAL, command.split(), up.up.environment, tmp_path)

        for command, code in REFUSED:
            ran = az(command)
            assert (ran.status, ran.error_code) == (int(code is not None), code), ran.err
        listed = az("storage blob list --account-name prodforensics01 -c captures --auth-mode login")
        roles = az(f"role assignment list --assignee {USER} --all --query [].roleDefinitionName").json
        extensions = az("vm show -g prod-rg -n web-vm-01 --query resources[].name").json
    assert read_error(listed.err, listed.status).kind is ErrorKind.FORBIDDEN
    assert (roles, extensions) == (["Contributor"], ["AzureNetworkWatcherExtension"])


def test_a_read_that_is_throttled_is_repeated_and_one_that_is_forbidden_names_its_permission(tmp_path: Path) -> None:
    conditions = {"throttle": 15, "forbidden_reads": ("Microsoft.Network/routeTables/read",)}
    with running(tmp_path / "lab", tenant(**conditions), 50) as up:
        done = ghost(up, tmp_path, SYMPTOM)
        throttled = [row["path"] for row in up.asked() if row["status"] == 429]
    assert throttled
    assert done.returncode in (0, 3), done.stderr[-1500:]
    (report,) = reports(tmp_path)
    assert "Microsoft.Network/routeTables/read" in json.dumps(report)
