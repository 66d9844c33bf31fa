"""Secrets that stand on another line than their name, and numbers and messages of tools that are none."""

from __future__ import annotations

import time

import pytest

from ghost.redaction.passes import redact

KEY = "OLTmUuRNp/I3DZ4mDicTZVCko6bQf1wMMy+LEiQIP9IrkC+JEegYGPjJnV1dmDGVdQTZDpRd4uj1TueBzHX2Ng=="


@pytest.mark.parametrize("cut", range(1, len(KEY), 7))
@pytest.mark.parametrize("continues", ["\\\n", "\\\n    ", "`\n", "\\\r\n  "])
def test_a_key_that_a_continued_line_cuts_goes_whole(cut: int, continues: str) -> None:
    text = f"export C=AccountName=a;AccountKey={KEY[:cut]}{continues}{KEY[cut:]};EndpointSuffix=x\nnext line"

    clean, _ = redact(text)

    assert KEY[:cut][-12:] not in clean or cut < 12
    assert KEY[cut:][:12] not in clean
    assert clean.endswith("\nnext line")


def test_continued_lines_keep_their_lines_where_joining_them_tells_no_more() -> None:
    text = "curl -sS \\\n  -H 'Authorization: Bearer abcdef1234567890' \\\n  https://a.example/"

    assert redact(text)[0] == "curl -sS \\\n  -H 'Authorization: Bearer [REDACTED]' \\\n  https://a.example/"
    assert redact("ip route \\\n  show")[0] == "ip route \\\n  show"


def test_a_secret_of_continued_lines_counts_once() -> None:
    """What was found in the lines as they stand, and as they are joined, was added up."""
    for end in ("\n", " \\\n "):
        assert redact(f"psql --host a{end}--password=hunter2hunter8{end}--port 1")[1]["redaction_count"] == 1


def test_continued_lines_cost_no_more_in_a_text_of_long_ones() -> None:
    """Each character of a line was tried as the beginning of a run: minutes for such a line."""
    started = time.process_time()
    assert redact("a b" * 100_000 + "\nip \\\n route")[1]["redaction_count"] == 0
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "prompt",
    [
        *("Enter password:", "Password: ", "bob@10.0.0.4's password:", "[sudo] password for bob: ", "New password:"),
        *("Retype new password: ", "Enter pass phrase for server.key:", "Please enter your password:", "SMB Password?"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_word_typed_at_a_prompt_goes_and_what_the_program_answers_stays(prompt: str, end: str) -> None:
    assert "X9dfj33k" not in redact(f"{prompt}{end}X9dfj33k{end}Welcome")[0]
    for answer in ("Login incorrect", "Sorry, try again.", "bob@web01:~$ ls", "Permission denied", "Authenticated."):
        text = f"{prompt}\n{answer}\nnext"
        assert redact(text)[0] == text


@pytest.mark.parametrize(
    "text",
    [
        *("cookie: 0x5f3a9c1b22d4e6f8", " cookie=0x0, duration=1s, table=0", "Initiator cookie: 5f3a9c1b22d4e6f8"),
        *("; COOKIE: 9d8c7b6a5f4e3d2c9d8c7b6a5f4e3d2c (good)", "DNS COOKIE: 9d8c7b6a5f4e3d2c9d8c7b6a5f4e3d2c"),
        *("passwd: no changes", "passwd: password expiry information changed.", "passwd: user 'bob' does not exist"),
    ],
)
def test_a_number_or_a_message_of_a_tool_stays(text: str) -> None:
    assert redact(text)[0] == text


@pytest.mark.parametrize(
    "text",
    [
        *("Cookie: session=hunter2x", "cookie: 5f3a9c1b22d4e6f85f3a9c1b22d4e6f8", "passwd: hunter2x"),
        *("cookie=0x5f3a9c1b22d4e6f85f3a9c1b22d4e6f8aa", "passwd: no-hunter2x changed4U"),
    ],
)
def test_a_cookie_of_a_session_and_a_password_called_as_the_tool_go(text: str) -> None:
    assert redact(text)[0].endswith("[REDACTED]")
