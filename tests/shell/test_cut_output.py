"""Output that ends anywhere, since its program was stopped: nothing of a secret is left, wherever the end is."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.redaction.passes import plain
from ghost.shell import HitlDecision, SafeExecShell, redact
from ghost.shell.record.command_output import Output, process_output
from ghost.shell.record.cut_output import REACH, UNFINISHED, prints_a_part
from ghost.shell.run.execution import STDERR_LIMIT, STDOUT_LIMIT, Captured
from tests.each_row import each
from tests.exhaustive import examples, sample

CORPUS = Path(__file__).parent.parent / "corpora" / "secrets.jsonl"
SECRETS: list[dict[str, Any]] = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
ONE_OF_EACH_SHAPE = [row for row in {row["shape"]: row for row in SECRETS}.values() if "cut begin" not in row["shape"]]


def stopped(text: str) -> Output:
    return process_output(Captured.of(text, STDOUT_LIMIT, cut_short=True), Captured(), None)


# The end of a text, whoever ended it


@each("text", ["amqps://u:hunter2", ': RSA f "hunter2', "bob * 'hunter2"])
def test_only_an_end_is_read_as_if_it_went_on(text: str) -> None:
    assert "hunter2" not in redact(text)[0]
    assert redact(f"{text}\n")[0] == f"{text}\n"
    assert redact(f"{text}\nand more")[0] == f"{text}\nand more"


def test_of_a_login_that_ends_the_text_what_stands_before_it_stays() -> None:
    text = "10:02 INFO start\n10:03 connecting to amqps://orders:Saffron_Kite"
    assert redact(text)[0] == "10:02 INFO start\n10:03 connecting to amqps://orders:[REDACTED]"


@settings(max_examples=examples(80))
@given(st.sampled_from(SECRETS), st.floats(0, 1))
def test_redacting_a_text_that_ends_anywhere_twice_is_redacting_it_once(row: dict[str, Any], share: float) -> None:
    once, _ = redact(row["text"][: int(len(row["text"]) * share)])
    assert redact(once)[0] == once


# Output of a program that was stopped


def cuts(text: str, start: int) -> list[int]:
    """Places behind `start` at which the text may end: eight of them, all when exhaustive."""
    return sample(range(start + 1, len(text) + 1), 8, seed=len(text))


def is_left(secret: str, text: str, others: str) -> bool:
    size = min(12, max(5, len(secret) // 2))
    parts = {secret[start : start + size] for start in range(len(secret) - size + 1)}
    return any(part in text and part not in others for part in parts if "OPENSSH" not in part)


CLOSED_LATER = {
    "a login in a URL": ("amqps://orders:Saffron_Kite-7@mq01:5671/%2Fprod", "Saffron_Kite-7"),
    "a login without a name": ("cache redis://:Jl2v.QxRk@10.30.8.4:6379/0 up", "Jl2v.QxRk"),
    "a key file's passphrase": (': RSA server.pem "Tupelo! Hare1"\nnext', "Tupelo! Hare1"),
    "a line of chap-secrets": ('"dialin"\t*\t"C0pper Kettle"\t*\n', "C0pper Kettle"),
    "a login of IMAP": ('a1 LOGIN anna@corp.example "Zaatar,Vi cuna"\r\n', "Zaatar,Vi cuna"),
    "a password that is piped": ("+ echo ZaatarVicuna | docker login --password-stdin\n", "ZaatarVicuna"),
    "a connection string": ('Server=s;UID=app;PWD="Plum; Stoat";Trusted=no', "Plum; Stoat"),
    "a login of docker": ('{"auths":{"cr.io":{"auth":"YWNyOlplZG9hcnkrR2F5YWw="}}}', "YWNyOlplZG9hcnkrR2F5YWw="),
    "a shared key": ('{\n  "value": "fjord-Otter",\n  "id": "/s/connections/c/sharedkey"\n}\n', "fjord-Otter"),
    "a variable named behind its value": ('"env": [{"value": "fjordOtter",\n "name": "DB_PASS"}]', "fjordOtter"),
    "a variable of YAML": ("env:\n- value: fjordOtter\n  name: DB_PASS\n", "fjordOtter"),
    "a logon of Windows": ("<Value>fjordOtter</Value>\n  <PlainText>true</PlainText>", "fjordOtter"),
    "a hash of Windows": (
        "bob:500:aad3b435b51404eeaad3b435b51404ee:8846f7eaee8fb117ad06bdd830b7586c:::",
        "8846f7eaee8fb117ad06bdd830b7586c",
    ),
}


@each("kind", CLOSED_LATER)
@each("before", ["", "10:02 INFO start\n", "word " * 200 + "\n"])
def test_nothing_is_left_of_a_secret_wherever_its_program_is_stopped(kind: str, before: str) -> None:
    text, secret = CLOSED_LATER[kind]
    start = text.index(secret)
    others = text.replace(secret, "")
    for position in cuts(text, start):
        for stream in ("text", "stderr"):
            captured = Captured.of(before + text[:position], STDERR_LIMIT, cut_short=True)
            output = process_output(*((captured, Captured()) if stream == "text" else (Captured(), captured)), None)
            shown = getattr(output, stream)
            assert not is_left(secret, shown, others), (position, shown[-200:])
            assert shown.startswith(before[:10])


@each("kind", ["a login in a URL", "a login without a name", "a connection string", "a shared key"])
def test_nothing_is_left_of_a_secret_in_a_long_line_either(kind: str) -> None:
    text, secret = CLOSED_LATER[kind]
    text = " ".join(text.split("\n"))
    for position in cuts(text, text.index(secret)):
        shown = stopped("word " * 200 + text[:position]).text
        assert not is_left(secret, shown, text.replace(secret, "")), (position, shown[-200:])


def left_where_stopped(row: dict[str, Any], seed: int) -> list[str]:
    """What is shown of a text, stopped at some positions, where a part of its secret is left."""
    text, secret = plain(row["text"]), plain(row["secret"])
    others = text.replace(secret, "")
    positions = sample(range(text.index(secret) + 1, len(text) + 1), 8, seed)
    return [shown for end in positions if is_left(secret, shown := stopped(text[:end]).text, others)]


def test_nothing_of_the_corpus_is_left_wherever_its_program_is_stopped() -> None:
    rows = sample(list(enumerate(ONE_OF_EACH_SHAPE)), 200)
    failed = [(row["shape"], row["context"], left[0][-200:]) for n, row in rows if (left := left_where_stopped(row, n))]
    assert failed == []


def test_what_is_left_out_is_said() -> None:
    output = stopped("first line\nsecond li")
    assert output.text == f"first line\n[truncated: 9{UNFINISHED}"
    assert output.metadata["truncation_applied"] is True
    assert stopped("first line\nsecond line\n").text == "first line\nsecond line\n"
    assert stopped("first line\n").metadata["truncation_applied"] is False


def test_of_a_long_line_only_its_end_goes() -> None:
    shown = stopped("word " * 1_000 + "user bob").text
    assert shown.startswith("word word")
    assert 5_008 - REACH - 8 < len(shown.removesuffix(shown[shown.index(" [truncated") :])) <= 5_008 - REACH


@each(
    "text",
    [
        "PING 10.0.0.4 (10.0.0.4) 56(84) bytes of data.\n64 bytes from 10.0.0.4: icmp_seq=1 ttl=64 time=0.3 ms\n",
        " 6  10.0.0.1  0.9 ms\n 7  10.0.0.4  1.2 ms  *",
        "000 5.001234",
        "code=000 total=5.001",
        '{"error": {"code": "Forbidden", "message": "no access"}}',
        '[{"name": "x", "value": "plain"}]',
        "<html><body>502 Bad Gateway</body></html>",
        "* note - see\nFrom: bob\ntext: hello there\n",
        "routes:\n- name: a\n  value: plain\n- to: 10.0.0.4\n  metric: 3\n",
        "[sudo] password for bob: ",
        "Are you sure you want to continue connecting (yes/no)? ",
    ],
)
def test_what_cannot_be_a_part_of_a_secret_stays(text: str) -> None:
    assert stopped(text).text == text


@each("text", ["password=4921", "PIN: 4921", "pin=4921", "PIN 49"])
def test_a_number_that_a_name_makes_a_secret_is_no_plain_number(text: str) -> None:
    assert "49" not in stopped(text).text


def test_of_unfinished_json_what_is_named_or_harmless_stays() -> None:
    text = (
        '[\n{"value": "one", "n": {}},\n{"name": "vnet", "value": "two"},\n{"value": "10.0.0.4",\n"other": "three",\n'
    )
    assert stopped(text).text == text
    assert "secretive" not in stopped('[\n{"value": "secretive",\n"tags": {"a": 1,\n').text
    assert "secretive" not in stopped('{"tags": {"a": "b"}, "value": "secretive",\n').text


def test_where_the_middle_of_errors_was_cut_out_no_word_is_broken_either() -> None:
    """They are never shortened. The login lies across the place 4,096 bytes before the end of what was kept first."""
    limit = 200_000
    start = limit // 2 - 4_096 - len("redis://:Jl2v")
    text = ("y " * limit)[:start] + "redis://:Jl2vQxRk@10.30.8.4 " + "y " * limit
    output = process_output(Captured(), Captured.of(text, limit), None)
    assert "bytes omitted]" in output.stderr
    assert UNFINISHED in output.stderr
    assert "redis://:Jl2v" not in output.stderr


def test_the_time_is_bounded_however_hostile_the_end_is() -> None:
    for unit in ('{"value": "', '"', '\\"', "{", "[", '{"', "a://b:", "'"):
        text = '{"' + unit * (400_000 // len(unit)) + "\\"
        assert len(stopped(text).text) <= 16_100


@each(
    "command, is_part",
    [
        ("curl -s -r 0-99 https://h/x", True),
        ("curl -sr 0-99 https://h/x", True),
        ("curl --range 0-99 https://h/x", True),
        ("head -c 100 f", True),
        ("head --bytes=100 f", True),
        ("head -n 3 f", False),
        ("curl -s --retry 3 https://h/-r", False),
        ("curl -X PUT https://h/x", False),
        ("dig example.com", False),
    ],
)
def test_a_command_that_asks_for_a_part_is_known(command: str, is_part: bool) -> None:
    assert prints_a_part(command.split()) is is_part
    whole = Captured.of("postgres up\nuser ann", STDOUT_LIMIT)
    assert (UNFINISHED in process_output(whole, Captured(), None, command.split()).text) is is_part


# The whole shell


@pytest.fixture
def shell(tmp_path: Path) -> SafeExecShell:
    return SafeExecShell(
        "s1", lambda *_: HitlDecision("approve"), tmp_path / "audit", roots=[tmp_path], program_dirs=[tmp_path / "bin"]
    )


SLOW_LOGIN = """
import sys, time
sys.stdout.write("10:02 INFO start\\n10:03 connecting to amqps://orders:Saffron_Kite")
sys.stderr.write('warn: carol : EAP "Alder/Wisent')
sys.stdout.flush(); sys.stderr.flush()
{then}
"""


@pytest.mark.parametrize(
    ("then", "error"),
    [
        ("time.sleep(30)", "timeout"),
        ("import os; os.kill(os.getpid(), 9)", None),
        ("import os\nif os.fork() == 0: time.sleep(3)\nelse: os._exit(0)", None),
    ],
)
def test_a_program_that_is_stopped_while_it_prints_a_secret_shows_nothing_of_it(
    shell: SafeExecShell, tmp_path: Path, then: str, error: str | None
) -> None:
    program = tmp_path / "bin" / "slow-login"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable} -I\n{SLOW_LOGIN.format(then=then)}", encoding="utf-8")
    program.chmod(0o755)
    answer = shell.execute({"command": "slow-login", "reasoning": "to see", "timeout_seconds": 2})
    assert answer["error"] == error
    assert answer["output"].startswith("10:02 INFO start\n")
    assert answer["output"].endswith(UNFINISHED)
    assert answer["output_metadata"]["truncation_applied"] is True
    written = shell.audit_path.read_text(encoding="utf-8")
    for part in ("Saff", "Kite", "Alder", "Wisent"):
        assert part not in json.dumps(answer)
        assert part not in written


def test_what_a_failed_program_says_of_it_is_shown_whole(shell: SafeExecShell) -> None:
    answer = shell.execute({"command": "no-such-program-here", "reasoning": "to see"})
    assert answer["exit_code"] == 127
    assert answer["stderr"] == "command not found: no-such-program-here"
