"""Approvals with real runs: what they cover, what they do not, and that none of it can be changed unseen."""

from __future__ import annotations

import gc
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghost.agent import SessionPaths, verify_commands
from ghost.agent.denials import was_denied
from ghost.records import read_records
from ghost.shell import ApprovalRequest, HitlDecision, SafeExecShell, missing_sandbox
from ghost.shell.judge.classification import decide
from ghost.shell.run.sandbox import ask_by_form

needs_sandbox = pytest.mark.skipif(missing_sandbox() is not None, reason="forms of local reads need the sandbox")


class Person:
    """Answers requests from a list, and keeps them."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[ApprovalRequest] = []

    def __call__(self, request: ApprovalRequest) -> HitlDecision:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, HitlDecision) else HitlDecision(answer)


Make = Callable[..., SafeExecShell]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    (tmp_path / "bin").mkdir()
    for name in ("az", "mytool"):
        program = tmp_path / "bin" / name
        program.write_text('#!/bin/sh\necho "$0 $*"\n')
        program.chmod(0o755)

    def make(approve: Any = None, **options: Any) -> SafeExecShell:
        gc.collect()  # an earlier shell of the session ends with its process
        directories = [tmp_path / "bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
        given_options = {"program_dirs": directories, "roots": [tmp_path], "approve": approve, **options}
        return SafeExecShell("s1", audit_dir=tmp_path / "audit", **given_options)

    return make


def run(shell: SafeExecShell, command: str, **more: Any) -> dict[str, Any]:
    return shell.execute({"command": command, "reasoning": "to see", **more})


def approvals(place: Path) -> list[dict[str, Any]]:
    return list(read_records(place / "audit" / "approvals_s1.jsonl"))


def records(place: Path) -> list[dict[str, Any]]:
    return list(read_records(place / "audit" / "shell_audit_s1.jsonl"))


def problems(place: Path) -> list[str]:
    return [p for check in verify_commands(SessionPaths(place / "audit", "s1")) for p in check.problems]


# Once


def test_each_answer_is_on_record_and_its_run_names_it(make: Make, tmp_path: Path) -> None:
    person = Person(
        HitlDecision("approve", by="scenario"), HitlDecision("deny", reason="not now"), HitlDecision("modify", "uname"),
        HitlDecision("modify", "mytool b"), "approve", OSError(),
    )  # fmt: skip
    shell = make(person)
    for command in ("mytool 1", "mytool 2", "mytool 3", "mytool 4", "mytool 5", "uname"):
        run(shell, command)
    told = [(a["id"], a["kind"], a["answer"], a["by"], a["reason"], len(a["argv_sha256"])) for a in approvals(tmp_path)]
    assert told == [
        ("s1_a001", "once", "approve", "scenario", None, 1),
        ("s1_a002", "once", "deny", "terminal", "not now", 1),
        ("s1_a003", "once", "modify", "terminal", None, 1),
        ("s1_a004", "once", "modify", "terminal", None, 0),
        ("s1_a005", "once", "approve", "terminal", None, 1),
        ("s1_a006", "once", "abandoned", None, None, 1),
    ]
    assert [r["approval_id"] for r in records(tmp_path)] == [
        *("s1_a001", "s1_a002", "s1_a003", "s1_a005", "s1_a006", None)
    ]
    assert records(tmp_path)[0]["argv_sha256"] == approvals(tmp_path)[0]["argv_sha256"][0]
    assert approvals(tmp_path)[0]["asked_at"] <= approvals(tmp_path)[0]["answered_at"]
    assert problems(tmp_path) == []


def test_an_answer_that_was_not_offered_is_none(make: Make, tmp_path: Path) -> None:
    shell = make(Person("session", "form", HitlDecision("approve", by="nobody")))  # type: ignore[arg-type]
    for _ in range(3):
        assert run(shell, "mytool 1")["action"] == "user_abandoned"
    assert {a["answer"] for a in approvals(tmp_path)} == {"abandoned"}


def test_secrets_and_hidden_names_are_on_record_as_in_the_audit(make: Make, tmp_path: Path) -> None:
    shell = make(Person(HitlDecision("deny", reason="10.1.2.3 is ours")), anonymization_enabled=True)
    run(shell, "mytool --password=hunter2hunter 10.1.2.3")
    text = (tmp_path / "audit" / "approvals_s1.jsonl").read_text()
    assert "hunter2" not in text
    assert "10.1.2.3" not in text
    assert "[INTERNAL_IP_1]" in text


# For the session

WAIT = "az network nsg wait -g {} -n {} --created"


def test_an_exact_read_is_allowed_until_the_process_ends(make: Make, tmp_path: Path) -> None:
    person = Person("session", "deny")
    shell = make(person)
    command = WAIT.format("rg1", "web")
    assert [run(shell, command)["action"] for _ in range(3)] == ["user_approved"] * 3
    assert run(shell, WAIT.format("rg1", "db"))["action"] == "user_denied"
    assert [r["approval_id"] for r in records(tmp_path)] == ["s1_a001"] * 3 + ["s1_a002"]
    assert problems(tmp_path) == []
    del shell
    later = Person("deny")
    assert run(make(later), command)["action"] == "user_denied"


def test_a_form_covers_other_values_and_nothing_else(make: Make, tmp_path: Path) -> None:
    person = Person("form", *["deny"] * 20)
    shell = make(person)
    run(shell, WAIT.format("rg1", "web"))
    assert person.asked[0].form == "az network nsg wait -g '*' -n '*' --created".replace("'*'", "*")
    assert run(shell, WAIT.format("rg2", "db"))["action"] == "user_approved"
    others = (
        "az network nsg wait -n db -g rg2 --created",  # another order
        "az network nsg wait -g rg2 --created",
        "az network nsg wait -g rg2 -n db --created --exists",
        "az network nsg wait -g rg2 -n db --deleted",
        "az network nsg wait --ids /subscriptions/1/x --created",
        "az network nsg wait -g @file -n db --created",
        "az network nsg wait -g x=@file -n db --created",
        "az network nsg wait -g https://evil.example -n db --created",
        "az network nsg wait -g '' -n db --created",
        "az network nsg wait -g rg2 -n db --created --debug",
        "az network nsg wait -g rg2 -g rg3 -n db --created",
        "az network nsg wait -g rg2 rg3 -n db --created",
        "az network nsg wait --resource-group rg2 -n db --created",
        "az network nsg delete -g rg2 -n db",
        "az network vnet wait -g rg2 -n db --created",
    )
    assert [run(shell, line)["action"] for line in others] == ["user_denied"] * len(others)
    assert run(shell, "az network nsg wait -g -n db --created")["action"] == "user_denied"
    assert approvals(tmp_path)[0]["form"] == "az network nsg wait -g * -n * --created"
    assert approvals(tmp_path)[0]["argv_sha256"] == []
    assert problems(tmp_path) == []


@needs_sandbox
def test_a_local_read_that_is_allowed_by_its_form_runs_in_its_sandbox(make: Make, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "ss"
    program.write_text(f'#!/bin/sh\necho written > {tmp_path}/written\necho "$*"\n')
    program.chmod(0o755)
    person = Person("form", "approve")
    shell = make(person)
    told = [run(shell, f"ss -f {family} --no-queues -tln") for family in ("inet", "inet6")]
    assert [r["output"] for r in told] == ["-f inet --no-queues -tln\n", "-f inet6 --no-queues -tln\n"]
    assert person.asked[0].form == "ss -f * --no-queues -tln"
    assert all("seccomp" in r["sandbox"] for r in told)
    assert not (tmp_path / "written").exists()
    assert run(shell, "mytool")["sandbox"] == []


def test_what_writes_or_is_unknown_is_offered_neither(make: Make) -> None:
    lines = (
        "az network nsg delete -g a -n b", "az vm run-command invoke -g a -n b --command-id RunShellScript",
        "az keyvault secret show -n a --vault-name b", "az network nsg show -g a -n b --debug",
        "az storage account keys list -g a -n b", "az rest --method get --url https://x",
        "curl -d x http://127.0.0.1:1/", "nc 127.0.0.1 1", "ping -f 127.0.0.1", "ip link set lo down", "ss -K",
        "arp -d 10.0.0.1", "rm x", "mytool", "tcpdump -i lo -w x", "dig -f names", "systemctl restart x",
        "ip netns exec a ip addr", "kubectl get pods",
    )  # fmt: skip
    person = Person(*["deny"] * len(lines))
    shell = make(person)
    for line in lines:
        run(shell, line)
    assert [(r.lines[0], r.session, r.form) for r in person.asked] == [(line, False, None) for line in lines]


VALUE = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1, max_size=12)


@given(VALUE, VALUE)
def test_a_form_matches_only_words_in_the_same_places(group: str, name: str) -> None:
    """Whatever stands in a slot, the command has the same words around it, and a value that is no option or file."""
    words = ["az", "network", "nsg", "wait", "-g", group, "-n", name, "--created"]
    decision = decide(shlex.join(words))
    if decision.form == "az network nsg wait -g * -n * --created":
        assert decision.arguments == tuple(words)
        assert not any(value.startswith(("-", "@")) or "://" in value for value in (group, name))


@given(st.lists(st.sampled_from(["-g", "-n", "a", "*", "--created", "--ids", "@x", "-o", "json", "'*'"]), max_size=8))
def test_a_form_has_as_many_words_as_its_command(words: list[str]) -> None:
    decision = decide(shlex.join(["az", "network", "nsg", "wait", *words]))
    if decision.form is not None:
        shown = shlex.split(decision.form)
        assert len(shown) == len(decision.arguments or ())
        assert all(a in ("*", b) for a, b in zip(shown, decision.arguments or (), strict=True))


@given(st.lists(st.sampled_from(["-f", "inet", "--no-queues", "-tln", "*", "--x", "-A", "tcp"]), max_size=8))
def test_nothing_differs_behind_an_unknown_option_of_a_local_program(words: list[str]) -> None:
    form = ask_by_form(decide(shlex.join(["ss", *words]))).form
    if form is not None and "--x" in words:
        at = words.index("--x") + 1
        assert shlex.join(words[at:]) == " ".join(form.split(" ")[at + 1 :])


# Plans


def test_a_plan_covers_each_of_its_commands_once(make: Make, tmp_path: Path) -> None:
    person = Person("approve", "deny", "deny")
    shell = make(person)
    plan = shell.approve_plan(["mytool 1", "mytool 2", "mytool 2", "uname"], "A capture's life.")
    assert plan == "s1_a001"
    assert person.asked[0].lines == ("mytool 1", "mytool 2", "uname")
    assert person.asked[0].times == (1, 2, 1)
    actions = [run(shell, f"mytool {n}")["action"] for n in (2, 1, 2, 2, 3)]
    assert actions == ["user_approved"] * 3 + ["user_denied"] * 2
    assert [r["approval_id"] for r in records(tmp_path)] == [plan] * 3 + ["s1_a002", "s1_a003"]
    assert problems(tmp_path) == []


def test_a_plan_with_a_line_that_is_forbidden_or_cannot_run_asks_nobody(make: Make) -> None:
    person = Person()
    shell = make(person)
    for line in ("rm -rf /", "mytool > file", "", "x" * 20_000):
        assert shell.approve_plan(["mytool 1", line], "why") is None
    assert shell.approve_plan([], "why") is None
    assert shell.approve_plan(["mytool"] * 51, "why") is None
    assert person.asked == []


def test_without_approve_there_are_no_plans_and_one_question_a_command(make: Make) -> None:
    asked: list[str] = []

    def callback(command: str, *_: Any) -> HitlDecision:
        asked.append(command)
        return HitlDecision("approve")

    shell = make(None, hitl_callback=callback)
    assert shell.approve_plan(["mytool 1"], "why") is None
    assert [run(shell, "mytool 1")["action"] for _ in range(2)] == ["user_approved"] * 2
    assert asked == ["mytool 1"] * 2


def test_a_denied_plan_covers_nothing(make: Make) -> None:
    for answer in ("deny", "modify", "session", OSError()):
        shell = make(Person(answer, "deny"))
        assert shell.approve_plan(["mytool 1"], "why") is None
        assert run(shell, "mytool 1")["action"] == "user_denied"


def test_a_plan_goes_on_after_a_resume_with_what_has_not_run(make: Make, tmp_path: Path) -> None:
    shell = make(Person("approve"))
    plan = shell.approve_plan(["mytool 1", "mytool 2", "mytool 2"], "why")
    run(shell, "mytool 2")
    del shell
    person = Person("deny", "deny")
    again = make(person)
    assert [run(again, f"mytool {n}")["action"] for n in (1, 2, 2, 1)] == [*["user_approved"] * 2, *["user_denied"] * 2]
    assert [r["approval_id"] for r in records(tmp_path)][:3] == [plan] * 3
    assert problems(tmp_path) == []


def test_of_a_plan_that_is_put_again_only_what_no_plan_covers_is_asked(make: Make, tmp_path: Path) -> None:
    shell = make(Person("approve"))
    shell.approve_plan(["mytool 1", "mytool 2", "mytool 2"], "why")
    run(shell, "mytool 2")
    del shell
    person = Person("approve", "deny", "deny")
    again = make(person)
    assert again.approve_plan(["mytool 1", "mytool 2"], "why") is None
    assert person.asked == []
    assert again.approve_plan(["mytool 1", "mytool 2", "mytool 2", "mytool 3"], "why") == "s1_a002"
    assert [(each.lines, each.times) for each in person.asked] == [(("mytool 2", "mytool 3"), (1, 1))]
    actions = [run(again, f"mytool {n}")["action"] for n in (1, 2, 2, 3, 2, 3)]
    assert actions == [*["user_approved"] * 4, *["user_denied"] * 2]
    assert problems(tmp_path) == []


def test_a_plan_of_private_mode_goes_on_by_its_placeholders(make: Make) -> None:
    shell = make(Person("approve"), anonymization_enabled=True)
    assert shell.approve_plan(["mytool 10.1.2.3"], "why")
    del shell
    again = make(Person("deny"), anonymization_enabled=True)
    assert run(again, "mytool 10.1.2.4")["action"] == "user_denied"
    assert run(again, "mytool [INTERNAL_IP_1]")["action"] == "user_approved"


KILLED = """
import os, sys
from ghost.shell import HitlDecision, SafeExecShell
at = sys.argv[2]
shell = SafeExecShell("s1", audit_dir=sys.argv[1] + "/audit", program_dirs=[sys.argv[1] + "/bin"],
                      approve=lambda _: HitlDecision("approve"))
if at == "begin":  # killed once the intent is written, before the command runs
    shell._run = lambda *_: os._exit(9)
shell.approve_plan(["mytool 1", "mytool 2"], "why")
if at == "approved":
    os._exit(9)
shell.execute({"command": "mytool 1", "reasoning": "why"})
"""


@pytest.mark.parametrize(("at", "left"), [("approved", ["mytool 1", "mytool 2"]), ("begin", ["mytool 2"])])
def test_a_kill_between_approval_and_run(make: Make, tmp_path: Path, at: str, left: list[str]) -> None:
    """What began before a kill may have run: its approval is used up."""
    assert subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), at], check=False).returncode == 9
    shell = make(Person(*["deny"] * 4))
    lines = ["mytool 1", "mytool 2", "mytool 1", "mytool 2"]
    assert [line for line in lines if run(shell, line)["action"] == "user_approved"] == left
    assert problems(tmp_path) == []


# Tampering


def test_a_changed_file_of_approvals_is_found_and_covers_nothing(make: Make, tmp_path: Path) -> None:
    shell = make(Person("approve", "deny"))
    shell.approve_plan(["mytool 1"], "why")
    run(shell, "mytool 2")
    run(shell, "mytool 1")
    del shell
    path = tmp_path / "audit" / "approvals_s1.jsonl"
    original = path.read_bytes()
    first, second = original.splitlines(keepends=True)
    more = json.loads(second) | {"kind": "plan", "answer": "approve"}
    changed = {
        "a byte": original.replace(b"mytool 1", b"mytool 3"),
        "the last line": first,
        "an answer": first + second.replace(b'"deny"', b'"approve"'),
        "a new plan": first + (json.dumps(more) + "\n").encode(),
        "all of it": b"",
    }
    for what, content in changed.items():
        path.write_bytes(content)
        assert problems(tmp_path), what
        assert run(make(Person("deny")), "mytool 1")["action"] == "user_denied", what
    path.unlink()
    assert problems(tmp_path)


def test_a_plan_covers_nothing_where_the_audit_no_longer_says_what_has_run(make: Make, tmp_path: Path) -> None:
    shell = make(Person("approve"))
    shell.approve_plan(["mytool 1", "mytool 2"], "why")
    run(shell, "mytool 1")
    del shell
    audit = tmp_path / "audit" / "shell_audit_s1.jsonl"
    original, head = audit.read_bytes(), audit.with_name(f"{audit.name}.head").read_bytes()
    for content in (b"", original.replace(b'"s1_a001"', b"null"), None):
        audit.unlink() if content is None else audit.write_bytes(content)
        audit.with_name(f"{audit.name}.head").write_bytes(head)
        assert run(make(Person("deny")), "mytool 1")["action"] == "user_denied", content


def test_a_run_that_no_approval_covers_is_found(make: Make, tmp_path: Path) -> None:
    """A record of a run is compared with what was approved, also where both chains hold."""
    run(make(Person("deny")), "mytool 1")
    shell = make(Person("approve"))
    record = records(tmp_path)[0] | {"action": "user_approved", "status": "completed"}
    record.pop("prev")
    shell._audit._hold.log.append(record | {"audit_id": "s1_009"})
    from ghost.shell.record.audit import save_head

    save_head(shell._audit._hold.log)
    assert any("s1_009" in problem for problem in problems(tmp_path))


# Read only


def test_read_only_refuses_what_would_ask_and_asks_nobody(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = make(Person("approve"))
    assert shell.approve_plan(["mytool 1"], "why")
    del shell
    person = Person()
    for options, variable in (({"read_only": True}, "0"), ({}, "1")):
        monkeypatch.setenv("GHOST_READ_ONLY", variable)
        shell = make(person, **options)
        refused = run(shell, "mytool 1")
        assert (refused["status"], refused["error"], refused["action"], refused["exit_code"]) == (
            *("error", "read_only", None, None),
        )
        assert "read-only" in refused["message"]
        assert run(shell, "uname")["status"] == "completed"
        assert run(shell, "rm -rf /")["error"] == "forbidden_command"
        assert shell.approve_plan(["mytool 1"], "why") is None
    assert person.asked == []


def test_a_refusal_of_read_only_is_no_denial(make: Make) -> None:
    refused = run(make(Person(), read_only=True), "mytool 1")
    denied = run(make(Person("deny")), "mytool 1")
    assert (was_denied(refused), was_denied(denied)) == (False, True)


def test_of_a_denied_plan_nothing_runs_and_nobody_is_asked_again(make: Make, tmp_path: Path) -> None:
    person = Person(HitlDecision("deny", reason="not tonight"), "approve")
    shell = make(person)
    assert shell.approve_plan(["mytool 1", "mytool 2"], "why") is None
    answers = [run(shell, f"mytool {n}") for n in (1, 2)]
    assert [(a["status"], a["action"], a["denial_reason"]) for a in answers] == [
        ("denied", "user_denied", "not tonight")
    ] * 2
    assert run(shell, "mytool 1")["action"] == "user_approved"  # asked for anew, it is a new question
    assert len(person.asked) == 2
    assert problems(tmp_path) == []


def test_a_command_of_a_plan_asks_where_it_is_told_to_and_each_by_itself_covers_none(make: Make) -> None:
    person = Person("approve", "deny", "each", "deny")
    shell = make(person)
    assert shell.approve_plan(["mytool 1"], "why") is not None
    assert run(shell, "mytool 1", asks=True)["action"] == "user_denied"
    assert run(shell, "mytool 1")["action"] == "user_approved"
    assert shell.approve_plan(["mytool 1"], "why") is None
    assert run(shell, "mytool 1")["action"] == "user_denied"


def test_an_approval_covers_a_command_with_what_stands_around_it(make: Make) -> None:
    person = Person("approve", "deny", "deny", "deny")
    shell = make(person)
    assert shell.approve_plan(["timeout 5 mytool 1"], "why") is not None
    for line in ("mytool 1", "LC_ALL=C timeout 5 mytool 1", "timeout 5 mytool 1 2>/dev/null"):
        assert run(shell, line)["action"] == "user_denied", line
    assert run(shell, "timeout 5 mytool 1")["action"] == "user_approved"
