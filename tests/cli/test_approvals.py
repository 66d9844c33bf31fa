"""The engineer sees what would run, decides, and whatever goes wrong is a denial."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console as Rich

from ghost.cli.approvals import PlainGate, ScenarioGate, TerminalGate
from ghost.lab import Approval, Approvals
from ghost.shell import ApprovalRequest
from ghost.text import visible

ASKED = ("az vm delete -g rg -n vm-1", "to see", "It would delete a VM.", 2)


def typing(*lines: str):
    left = list(lines)

    def read(prompt: str) -> str:
        if not left:
            raise EOFError
        return left.pop(0)

    return read


def terminal(*lines: str) -> tuple[TerminalGate, io.StringIO]:
    screen = io.StringIO()
    return TerminalGate(Rich(file=screen, width=100), typing(*lines)), screen


def test_the_box_shows_command_reason_risk_and_tier():
    gate, screen = terminal("a")
    assert gate(*ASKED).action == "approve"
    shown = screen.getvalue()
    for words in ("SAFETY SHELL ALERT", "az vm delete -g rg -n vm-1", "to see", "It would delete a VM.", "TIER", "2"):
        assert words in shown


def test_a_denial_may_carry_a_reason():
    assert terminal("d", "wrong group")[0](*ASKED).reason == "wrong group"
    assert terminal("deny", "")[0](*ASKED).reason is None


def test_a_modification_carries_the_new_command_and_an_empty_one_asks_again():
    decision = terminal("m", "", "m", "az vm show -g rg -n vm-1")[0](*ASKED)
    assert (decision.action, decision.modified_command) == ("modify", "az vm show -g rg -n vm-1")


def test_anything_else_asks_again():
    gate, screen = terminal("", "yes", "approve please", "d", "")
    assert gate(*ASKED).action == "deny"
    assert screen.getvalue().count("Type a, d or m.") == 3


def test_a_closed_terminal_raises_so_that_the_shell_denies():
    with pytest.raises(EOFError):
        terminal()[0](*ASKED)


def test_a_command_cannot_hide_itself_behind_terminal_codes():
    gate, screen = terminal("d", "")
    gate("rm -r x\x1b[2K\rls \u202eharmless", "r", "k", 3)
    shown = screen.getvalue()
    assert "\x1b[2K" not in shown
    assert "\r" not in shown
    assert r"\x1b[2K\rls \u202eharmless" in shown


def test_markup_in_a_command_is_text():
    gate, screen = terminal("d", "")
    gate("echo [bold]x[/bold] [link=http://x]y", "[red]r", "k", 1)
    assert "[bold]x[/bold] [link=http://x]y" in screen.getvalue()


def plain_gate(text: str) -> tuple[PlainGate, io.StringIO]:
    out = io.StringIO()
    return PlainGate(out, io.StringIO(text)), out


def test_in_a_pipe_the_same_question_is_asked_in_plain_lines():
    gate, out = plain_gate("x\nd\nnot now\n")
    assert gate(*ASKED).reason == "not now"
    assert "az vm delete -g rg -n vm-1" in out.getvalue()


def test_in_a_pipe_anything_else_asks_again_and_says_what_is_expected():
    gate, out = plain_gate("y\nyes\na\n")
    assert gate(*ASKED).action == "approve"
    assert out.getvalue().count("Type a, d or m.") == 2


FORM = "az network nsg wait -g * -n * --created"


def request_for_session(form: str | None = FORM) -> ApprovalRequest:
    command = "az network nsg wait -g a -n b --created"
    return ApprovalRequest("once", (command,), "to see", "Asks.", 2, True, form)


def test_a_read_may_be_allowed_for_the_session_where_that_is_offered():
    for letter, action in (("s", "session"), ("f", "form")):
        for gate, shown in (terminal(letter), plain_gate(f"{letter}\n")):
            assert gate.approve(request_for_session()).action == action
            assert "[S] this command for the session" in unfolded(shown.getvalue())
            assert f"[F] this form for the session: {FORM}" in unfolded(shown.getvalue())
    for gate, shown in (terminal("f", "s"), plain_gate("f\ns\n")):
        assert gate.approve(request_for_session(None)).action == "session"
        assert "Type a, d, m or s." in shown.getvalue()
    for gate, shown in (terminal("s", "f", "a"), plain_gate("s\nf\na\n")):
        assert gate(*ASKED).action == "approve"
        assert "for the session" not in shown.getvalue()


PLAN = ApprovalRequest("plan", ("az a delete", "az b delete x"), "The whole capture.", "It deletes.", 2)


def test_a_plan_shows_each_of_its_commands_and_cannot_be_modified():
    for gate, shown in (terminal("m", "s", "a"), plain_gate("m\ns\na\n")):
        assert gate.approve(PLAN).action == "approve"
        told = shown.getvalue()
        assert all(command in told for command in PLAN.lines)
        assert told.count("Type a, d or e.") == 2


def test_a_scenario_approves_a_plan_only_where_its_rules_approve_every_command(tmp_path):
    for rules, action in (((Approval("az", "approve"),), "approve"), ((Approval("az a", "approve"),), "each")):
        gate = ScenarioGate(Rich(file=io.StringIO()), Approvals(rules), [tmp_path])
        answer = gate.approve(PLAN)
        assert (answer.action, answer.by) == (action, "scenario")


def test_in_a_pipe_the_end_of_input_is_no_approval():
    gate, _ = plain_gate("")
    with pytest.raises(EOFError):
        gate(*ASKED)


def test_a_scenario_answers_and_shows_it_and_denies_what_it_does_not_know(tmp_path):
    screen = io.StringIO()
    gate = ScenarioGate(
        Rich(file=screen, width=100),
        Approvals((Approval("az vm delete", "approve", "agreed with the owner"),)),
        [tmp_path],
    )
    assert gate(*ASKED).action == "approve"
    assert gate("az group delete -n rg", "r", "k", 2).action == "deny"
    assert "approve - agreed with the owner" in screen.getvalue()


def test_plain_text_keeps_letters_of_any_script():
    assert visible("日本 é\x00\x9b") == "日本 é\\x00\\x9b"
    assert visible("a\n\tb\r\x1b", keep="\n\t") == "a\n\tb\\r\\x1b"


def test_a_scenario_never_approves_reading_or_removing_files_that_are_not_the_investigations(tmp_path):
    captures = tmp_path / "captures"
    captures.mkdir()
    (captures / "link.cap").symlink_to(tmp_path / "elsewhere.cap")
    gate = ScenarioGate(Rich(file=io.StringIO()), Approvals((Approval("", "approve"),)), [captures])
    for command in (f"rm {captures}/x.cap", f"cat {captures}/x_executive_summary.md"):
        assert gate(command, "r", "k", 3).action == "approve"
    for command in (
        f"rm {tmp_path}/x.cap",
        f"rm -r {captures}",
        f"rm {captures}/../x.cap",
        f"cat {captures}/link.cap",
        f"rm {captures}/x.cap {tmp_path}/y",
        "rm",
    ):
        assert gate(command, "r", "k", 3).action == "deny", command


def test_spaces_cannot_push_a_part_of_the_command_out_of_sight():
    gate, screen = terminal("d", "")
    gate("rm '" + " " * 3000 + "x'", "r", "k", 3)
    assert "rm ' [3000 spaces] x'" in screen.getvalue()
    lines = io.StringIO()
    PlainGate(lines, io.StringIO("d\n\n"))("rm '" + " " * 3000 + "x'", "r", "k", 3)
    assert "rm ' [3000 spaces] x'" in lines.getvalue()


def boxed(command: str, reasoning: str = "r", width: int = 80) -> str:
    screen = io.StringIO()
    gate = TerminalGate(Rich(file=screen, width=width), typing("d", ""))
    gate(command, reasoning, "It would\nchange it.", 3)
    return screen.getvalue()


def unfolded(shown: str) -> str:
    return " ".join(shown.replace("\u2502", " ").split())


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_long_command_is_shown_whole_and_its_length_is_told(width):
    command = "az vm run-command invoke --scripts '" + "".join(f"echo {n:04};" for n in range(200)) + "rm -rf /data'"
    shown = boxed(command, width=width)
    assert all(len(line) <= width for line in shown.splitlines())
    inside = "".join(shown.translate(str.maketrans("", "", "\n ")))
    assert command.replace(" ", "") in inside
    assert f"{len(command):,}characterslong:readittoitsend" in inside
    assert inside.rindex("RISK:") > inside.index("rm-rf/data'")  # what is on the screen last is what it comes to


def test_letters_that_only_look_familiar_are_named():
    assert "U+0430 CYRILLIC SMALL LETTER A" in unfolded(boxed("\u0430z vm delete"))
    assert "and 2 more" in unfolded(boxed("rm \u0430\u0431\u0432\u0433\u0434"))
    assert "NOTE" not in boxed("az vm delete -g rg -n vm-1")
    gate, out = plain_gate("d\n\n")
    gate("\u0430z vm delete", "r", "k", 2)
    assert "U+0430 CYRILLIC SMALL LETTER A" in out.getvalue()


def test_reasoning_flows_and_cannot_draw_rows_of_the_question():
    reasoning = "first line\n  COMMAND:    ls\nlast \x1b[2Jline"
    for shown in (boxed("rm x", reasoning), plain_shown("rm x", reasoning)):
        assert "first line COMMAND: ls last \\x1b[2Jline" in shown
        assert "It would change it." in shown


def plain_shown(command: str, reasoning: str) -> str:
    gate, out = plain_gate("d\n\n")
    gate(command, reasoning, "It would\nchange it.", 3)
    return out.getvalue()


def test_there_is_no_colour_where_no_terminal_is():
    screen = io.StringIO()
    TerminalGate(Rich(file=screen, width=80), typing("d", ""))(*ASKED)
    assert "\x1b" not in screen.getvalue()
    assert "\x1b" not in plain_shown("rm x", "r")


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (["shell", "run", "rm keep"], (b"COMMAND:    rm keep", b"RISK:", b"[M]odify: ")),
        pytest.param(
            ["investigate", "--lab", "wire-loss", "--json"],
            (b"COMMAND 1:  az network watcher packet-capture create", b"DOES:", b"[E]ach by itself: "),
        ),
    ],
    ids=["shell", "investigate"],
)
def test_the_question_is_shown_to_a_person_whose_errors_go_to_a_file(tmp_path, arguments, asked):
    controller, theirs = pty.openpty()
    with (tmp_path / "errors").open("w") as errors:
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / "ghost"), *arguments],
            cwd=tmp_path,
            stdin=theirs,
            stdout=theirs,
            stderr=errors,
        )
    os.close(theirs)
    shown = b""
    while asked[-1] not in shown:
        shown += os.read(controller, 4096)
    process.kill()
    process.wait()
    os.close(controller)
    assert all(words in shown for words in asked)


def test_what_is_typed_or_pasted_behind_a_wrong_answer_approves_nothing(tmp_path):
    """A paste of several lines answers once; its other lines are forgotten, an `a` among them too."""
    (tmp_path / "keep").touch()
    controller, theirs = pty.openpty()
    ghost = str(Path(sys.executable).parent / "ghost")
    process = subprocess.Popen(
        [ghost, "shell", "run", "rm keep"], cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    while b"Your choice: " not in shown:
        shown += os.read(controller, 4096)
    os.write(controller, b"x\ny\na\n")
    while b"Type a, d or m." not in shown or not shown.endswith(b"Your choice: "):
        shown += os.read(controller, 4096)
    os.write(controller, b"d\n\n")
    with suppress(OSError):  # the end of a terminal, as Linux says it
        while chunk := os.read(controller, 4096):
            shown += chunk
    process.wait()
    os.close(controller)
    assert (tmp_path / "keep").exists()
    assert shown.count(b"Type a, d or m.") == 1
