"""Secrets that stand on another line than their name, and numbers and messages of tools that are none."""

from __future__ import annotations

import pytest

from ghost.redaction.passes import redact


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
