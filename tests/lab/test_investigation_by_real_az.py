"""An investigation in a shell that ran `ghost lab up`: the offline brain, the real shell, the real az, no account."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import real_az

GHOST = Path(sys.executable).parent / "ghost"
REAL = real_az.find()


@pytest.mark.skipif(REAL is None, reason=real_az.why_not())
def test_the_cause_is_found_with_ones_own_az_on_a_simulated_azure(tmp_path: Path) -> None:
    own = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "XDG_STATE_HOME": str(tmp_path / "state")}

    def ghost(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [GHOST, *words],
            cwd=tmp_path,
            env={**own, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    up = json.loads(ghost("lab", "up", "blocked-port", "--json").stdout)
    try:
        symptom = up["symptom"]
        done = ghost("investigate", symptom, "--brain", "offline", GHOST_AZ=str(REAL), **up["environment"])
        asked = [json.loads(line) for line in Path(up["requests"]).read_text().splitlines()]
    finally:
        ghost("lab", "down", "blocked-port")

    assert done.returncode == 0, done.stderr[-1500:]
    (report,) = (tmp_path / "audit").glob("ghost_rca_*.json")
    assert "close-legacy-ports" in report.read_text()
    hosts = {entry["host"] for entry in asked if "host" in entry}
    assert hosts <= {"management.lab.invalid", "login.lab.invalid"}
    assert len(asked) > 20
    assert not any(entry["changed"] for entry in asked)
