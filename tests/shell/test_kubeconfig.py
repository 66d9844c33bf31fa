"""kubectl in its sandbox: a program in its place tries what it may not, and asks an API server on loopback."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ghost.shell import HitlDecision, SafeExecShell
from ghost.shell.run.execution import SYSTEM_DIRS
from tests.each_row import each
from tests.shell.test_sandbox import needs_landlock

STAND_IN = """
import json, os, sys, urllib.request
words = sys.orig_argv[1:]
config = json.load(open(os.environ["KUBECONFIG"]))
def named(kind, name):
    return [entry for entry in config[kind] if entry["name"] == name]
chosen = words[words.index("--context") + 1] if "--context" in words else config["current-context"]
context = named("contexts", chosen)[0]["context"]
cluster, user = named("clusters", context["cluster"]), named("users", context["user"])
if "view" in words:
    print(json.dumps({"clusters": cluster, "users": user, "current-context": chosen}))
    sys.stdout.flush()
    os._exit(0)
told = {}
def attempt(name, do):
    try:
        told[name] = do()
    except OSError as error:
        told[name] = error.strerror
def output_of(program):
    reading, writing = os.pipe()
    child = os.posix_spawn(program, [program], dict(os.environ), file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1)])
    os.close(writing)
    os.waitpid(child, 0)
    return os.read(reading, 99).decode()
home = os.environ["HOME"]
attempt("server", lambda: urllib.request.urlopen(cluster[0]["cluster"]["server"]).read().decode())
attempt("key", lambda: open(home + "/client.key").read())
attempt("outside", lambda: open(home + "/secret").read())
attempt("write", lambda: open(home + "/written", "w").name)
attempt("write the kubeconfig", lambda: open(os.environ["KUBECONFIG"], "a").name)
attempt("program", lambda: output_of("/bin/pwd"))
attempt("credential program", lambda: output_of(home + "/get-token"))
print(json.dumps(told))
sys.stdout.flush()
os._exit(0)
"""
DENIED = {"Permission denied", "Operation not permitted", "Read-only file system"}


class _Api(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"pods")

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Person:
    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def __call__(self, command: str, reasoning: str, risk: str, tier: int | None) -> HitlDecision:
        self.asked.append(risk)
        return HitlDecision(self.answer)


@pytest.fixture
def server() -> Iterator[str]:
    api = HTTPServer(("127.0.0.1", 0), _Api)
    thread = threading.Thread(target=api.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{api.server_port}/"
    api.shutdown()
    thread.join()
    api.server_close()


@pytest.fixture
def home(tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a kubeconfig (JSON is YAML too), and kubectl: this Python, told by its own tree what to do."""
    packages = tmp_path / f"kubectl/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    packages.mkdir(parents=True)
    (packages / "sitecustomize.py").write_text(STAND_IN)
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    (tmp_path / "kubectl/pyvenv.cfg").write_text(f"home = {python.parent}\n")
    (tmp_path / "kubectl/bin").mkdir()
    (tmp_path / "kubectl/bin/kubectl").symlink_to(python)
    home = tmp_path / "home"
    (home / ".kube/cache").mkdir(parents=True)
    for name in ("client.key", "secret"):
        (home / name).write_text(name)
    (home / "get-token").write_text("#!/bin/sh\necho token-for-$1\n")
    (home / "get-token").chmod(0o755)
    config = {
        "current-context": "files",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": name}} for name in ("files", "program", "old")],
        "users": [
            {"name": "files", "user": {"client-key": "client.key"}},
            {"name": "program", "user": {"exec": {"command": str(home / "get-token"), "args": ["--login", "me"]}}},
            {
                "name": "old",
                "user": {"auth-provider": {"name": "gcp", "config": {"cmd-path": str(home / "get-token")}}},
            },
        ],
    }
    (home / "config").write_text(json.dumps(config))
    (home / "config").chmod(0o600)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("KUBECONFIG", str(home / "config"))
    return home


def shell_of(home: Path, person: _Person) -> SafeExecShell:
    return SafeExecShell(
        "s-kube", person, home.parent / "audit", program_dirs=[home.parent / "kubectl/bin", *SYSTEM_DIRS], roots=[]
    )


def run(shell: SafeExecShell, command: str) -> dict[str, Any]:
    return shell.execute({"command": command, "reasoning": "The state of the cluster."})


@needs_landlock
def test_a_kubectl_read_asks_the_api_server_and_can_do_nothing_else(home: Path) -> None:
    person = _Person("deny")

    response = run(shell_of(home, person), "kubectl get pods -A")

    told = json.loads(response["output"])
    assert (told.pop("server"), told.pop("key"), person.asked) == ("pods", "client.key", [])
    assert set(told.values()) <= DENIED, told
    assert not (home / "written").exists()


@needs_landlock
def test_a_credential_program_is_shown_once_a_session_and_then_the_only_one_started(home: Path) -> None:
    person = _Person("approve")
    shell = shell_of(home, person)

    first = run(shell, "kubectl get pods --context program")
    assert "landlock" in first["sandbox"], "a read that was shown for its credential program only is confined"
    told = json.loads(run(shell, "kubectl get nodes --context program")["output"])

    assert len(person.asked) == 1
    assert f"{home}/get-token --login me" in person.asked[0]
    assert told.pop("credential program") == "token-for-\n"
    assert told.pop("server") == "pods"
    assert set(told.values()) <= DENIED, told
    run(shell, "kubectl get pods --context old")
    assert len(person.asked) == 2, "the same program with other arguments was not shown"
    (home / "config").write_text((home / "config").read_text().replace('"me"', '"you"'))
    run(shell, "kubectl get pods --context program")
    assert "--login you" in person.asked[2]
    (home / "config").write_text(
        (home / "config").read_text().replace('"args"', '"env": [{"name": "LD_X", "value": "/y"}], "args"')
    )
    run(shell, "kubectl get pods --context program")
    assert "LD_X=/y" in person.asked[-1], "with other variables it is another program"


@needs_landlock
def test_the_verdict_names_the_context_and_its_server(home: Path, server: str) -> None:
    decision = shell_of(home, _Person("deny"))._judge("kubectl get pods")

    assert f"Context files at {server}" in decision.explanation


@needs_landlock
def test_in_a_pipeline_each_read_is_judged_by_its_kubeconfig_and_its_context_is_told_once(
    home: Path, server: str
) -> None:
    person = _Person("deny")
    shell = shell_of(home, person)

    assert run(shell, "kubectl get pods | grep -o pods")["output"] == "pods\n"
    assert shell.contexts() == [f"kubectl asks the context files at {server}."]
    run(shell, "kubectl get pods")
    assert (shell.contexts(), person.asked) == ([], [])
    assert run(shell, "kubectl get pods --context program | head -1")["status"] == "denied"
    assert f"{home}/get-token --login me" in person.asked[0]


@needs_landlock
@each(
    "spoil, reason",
    [
        (lambda config: config.chmod(0o602), "Anybody can write"),
        (lambda config: config.write_text("{"), "cannot read the context"),
        (lambda config: config.unlink(), "there is none"),
        (lambda config: (config.unlink(), config.mkdir()), "not a regular file"),
        (lambda config: config.write_text(config.read_text().replace("/get-token", "/x")), "was not found"),
    ],
)
def test_an_odd_kubeconfig_asks_with_the_reason(home: Path, spoil: Any, reason: str) -> None:
    original = (home / "config").read_text()
    person = _Person("deny")

    spoil(home / "config")
    response = run(shell_of(home, person), "kubectl get pods --context program")

    assert reason in response["message"]
    assert len(person.asked) == 1
    if (home / "config").is_dir():
        (home / "config").rmdir()
    (home / "config").write_text(original)
    (home / "config").chmod(0o600)


def test_no_other_program_gets_the_kubeconfig(home: Path) -> None:
    shell = shell_of(home, _Person("deny"))

    assert "KUBECONFIG" in shell._variables_for(shell._judge("kubectl config current-context"))
    assert "KUBECONFIG" not in shell._variables_for(shell._judge("openssl version"))
