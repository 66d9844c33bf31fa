"""`serve` as a program: what it says, how it ends, when it refuses to start; and the examples of the documentation."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

import ghost.server
from ghost.config import Settings
from ghost.errors import ConfigurationError
from ghost.server.listen_socket import bound_socket, url_of
from ghost.server.server_process import wired
from tests.server.conftest import Live, ask, remember, settings_for, until

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "api.md"
PROGRAM = """
import sys
from pathlib import Path
from ghost.config import Settings
from ghost.server import serve
sys.exit(serve(Settings(), Path(sys.argv[1])))
"""


@contextlib.contextmanager
def program(root: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GHOST_", "SOC_"))}
    command = [sys.executable, "-c", PROGRAM, str(root)]
    environment = {"GHOST_API_PORT": "0", "SOC_CADENCE_SECONDS": "0.2", **environment}
    with subprocess.Popen(command, env=kept | environment, stderr=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            if running.poll() is None:
                running.kill()


def url_said(running: subprocess.Popen[str]) -> str:
    line = running.stderr.readline()
    found = re.search(r"dashboard: (http://\S+)/ui ", line)
    assert found, line + running.stderr.read()
    url = found[1]
    until(lambda: answers(url))
    return url


def answers(url: str) -> bool:
    with contextlib.suppress(httpx2.TransportError):
        return httpx2.get(url + "/healthz", trust_env=False).status_code == 200
    return False


# --- the examples of the documentation ---


def examples() -> str:
    return re.search(r"(?:^    .*\n|^\n)*^    # scraper.*\n    .*\n", DOCUMENTATION.read_text(), re.MULTILINE)[0]


def test_the_default_is_port_8000_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GHOST_API_HOST", "GHOST_API_PORT"):
        monkeypatch.delenv(name, raising=False)
    assert (Settings().api_host, Settings().api_port) == ("127.0.0.1", 8000)
    assert examples().count("http://localhost:8000/") == 6


@pytest.mark.needs("curl", "jq")
def test_the_examples_of_the_documentation_work_as_they_stand(live: Live) -> None:
    ask(live.app, "q:123", "What should I look at?")
    script = examples().replace("localhost:8000", f"localhost:{live.port}")
    done = subprocess.run(["sh", "-e", "-c", script], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    decoder, position, printed = json.JSONDecoder(), 0, []
    while position < len(done.stdout):
        value, position = decoder.raw_decode(done.stdout, position)
        printed.append(value)
        position += len(done.stdout[position:]) - len(done.stdout[position:].lstrip())
    stimuli, wm, found, interrupts, answered, scraped = printed
    assert stimuli["accepted"] == 1
    assert wm["thoughts"] == []
    assert found["query"] == "ophthalmology"
    assert [each["id"] for each in interrupts["interrupts"]] == ["q:123"]
    assert answered == {"id": "q:123", "status": "answered"}
    assert live.app.services.engine.interrupts.get("q:123").answer == "Here you go"
    assert scraped["status"] == 403
    assert scraped["seeds"][0]["url"] == "https://www.who.int/health-topics/influenza"
    assert "ALLOWLIST_DOMAINS" in scraped["detail"]


# --- how it begins and ends ---


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGHUP, 130)])
def test_it_ends_by_a_signal_with_everything_closed(tmp_path: Path, number: int, status: int) -> None:
    with program(tmp_path) as running:
        url = url_said(running)
        httpx2.post(url + "/stimuli", json={"content": "the link of gw-vm-01 flaps since 14:02"}, trust_env=False)
        with httpx2.stream("GET", url + "/events", trust_env=False, timeout=10) as events:
            next(events.iter_raw())
            running.send_signal(number)
            assert running.wait(10) == status
        assert running.stderr.read() == ""
    lines = [json.loads(line) for line in (tmp_path / "logs" / "ghost.log").read_text().splitlines()]
    assert lines[-1]["event"] == "ended"
    assert lines[-1]["by"] == signal.Signals(number).name
    assert not [line for line in lines if line["level"] == "error"]
    with wired(settings_for(tmp_path), tmp_path) as again:
        assert len(again.services.engine.wm)  # the stream thought, and the store kept it


def test_a_second_server_of_a_workspace_says_so_and_reads_only(tmp_path: Path) -> None:
    with program(tmp_path) as first:
        url = url_said(first)
        with program(tmp_path) as second:
            said = second.stderr.readline()
            assert f"Another ghost serve has this workspace (process {first.pid}): this one reads only" in said
            other = url_said(second)
            assert httpx2.get(other + "/wm", trust_env=False).status_code == 200
            assert httpx2.get(other + "/stream", trust_env=False).json()["state"] != "running"
            refused = httpx2.post(other + "/stimuli", json={"content": "a link flaps"}, trust_env=False)
            assert (refused.status_code, "reads only" in refused.json()["detail"]) == (409, True)
            assert httpx2.delete(other + "/memories/mem:1", trust_env=False).status_code == 409
        sent = httpx2.post(url + "/stimuli", json={"content": "a link flaps"}, trust_env=False)
        assert sent.status_code < 300
    with program(tmp_path) as later:
        assert httpx2.post(url_said(later) + "/cycle", trust_env=False).status_code == 200


def test_a_port_in_use_is_said_with_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"port {port} of 127.0.0.1 is in use.*GHOST_API_PORT={port + 1}"):
            ghost.server.serve(Settings(workspace=tmp_path, api_port=port), tmp_path)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "127.1", "ghost.example"])
def test_no_other_bind_than_loopback_without_a_token(host: str) -> None:
    with pytest.raises(ConfigurationError, match="GHOST_API_TOKEN"):
        bound_socket(settings_for(Path(), api_host=host))
    with pytest.raises(ConfigurationError, match="blank"):
        bound_socket(settings_for(Path(), api_host=host, api_token="  "))
    with pytest.raises(ConfigurationError, match="fewer than 16 characters"):
        bound_socket(settings_for(Path(), api_host=host, api_token="fifteen-letters"))


def test_with_a_token_every_address_may_be_bound() -> None:
    settings = settings_for(Path(), api_host="0.0.0.0", api_token="a-token-of-this-test")
    with contextlib.closing(bound_socket(settings)) as listening:
        assert listening.getsockname()[0] == "0.0.0.0"
        assert url_of(listening, settings) == f"http://localhost:{listening.getsockname()[1]}"


def test_localhost_is_this_machine_whatever_a_hosts_file_says() -> None:
    settings = settings_for(Path(), api_host="localhost")
    with contextlib.closing(bound_socket(settings)) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"


def test_an_address_of_another_machine_cannot_be_bound() -> None:
    settings = settings_for(Path(), api_host="192.0.2.1", api_token="a-token-of-this-test")
    with pytest.raises(ConfigurationError, match=r"cannot listen on 192\.0\.2\.1"):
        bound_socket(settings)


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ghost.server, "find_spec", lambda name: None if name == "uvicorn" else name)
    with pytest.raises(ConfigurationError, match=r"needs uvicorn: .*ghost-investigator\[mind\]"):
        ghost.server.serve(Settings(), tmp_path)


def test_nothing_of_the_extra_is_imported_before_it_is_wanted() -> None:
    probe = "import sys, ghost.server; print([m for m in ('fastapi', 'uvicorn', 'structlog') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_memories_of_another_space_are_embedded_anew_beside_the_work(tmp_path: Path) -> None:
    with wired(settings_for(tmp_path, vector_dim=64), tmp_path) as app:
        (name,) = remember(app, "the peering of vnet-b was one-sided")
    with wired(settings_for(tmp_path, vector_dim=128), tmp_path) as app:
        until(lambda: app.services.engine.ltm.get_memory(name).embedding_model == app.services.embeddings.name)
        time.sleep(0.05)
        assert len(app.services.engine.ltm.get_memory(name).embedding) == 128
