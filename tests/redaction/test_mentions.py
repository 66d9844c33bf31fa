"""A secret's name that is only mentioned: nothing beside it goes, and beside a like form a secret does."""

from __future__ import annotations

import pytest

from ghost.redaction.mentions import MENTIONS
from ghost.shell import redact


def test_the_examples_beside_each_mention_hold() -> None:
    for mention in MENTIONS:
        assert [example for example in mention.must if redact(example)[0] != example] == []
        assert [example for example in mention.must_not if redact(example)[0] == example] == []


@pytest.mark.parametrize(
    "text",
    [
        "87f8544 password: require twelve characters",
        "87f8544 fix(secrets): rotate weekly",
        "| * 77ac01e credentials: load lazily",
        "[main 4f2a1bc] password: reject reuse of the last five",
        "- password: drop legacy hashing (#412)",
        "panic: secret: environment variable not set",
        "password (string): Password of the account",
    ],
)
def test_what_is_told_of_a_secret_behind_a_colon_stays(text: str) -> None:
    assert redact(text)[1]["redaction_count"] == 0
    assert redact(text)[0] == text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("password: correct mallet otter staple", "otter"),
        ("2026-11-22T10:00:01Z login: password: tamarack user: bob", "tamarack"),
        ("ERROR auth: password: tamarack is wrong for bob", "tamarack"),
        ("ERROR auth: password: tamarack and user bob do not fit", "tamarack"),
        ("id=4 password: tamarack the", "tamarack"),
        ("87f8544 password: tamarack", "tamarack"),
    ],
)
def test_a_password_is_no_clause(text: str, secret: str) -> None:
    assert secret not in redact(text)[0]


@pytest.mark.parametrize(
    "text",
    [
        "const password = req.body.password;",
        'password := r.FormValue("password")',
        "secret = Configuration['Secret']",
        "password = models.CharField(max_length=128)",
        "String password = user.getPassword();",
        "token = params[:token]",
    ],
)
def test_a_variable_that_is_read_from_another_stays(text: str) -> None:
    assert redact(text)[0] == text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("password = hunter.two", "hunter.two"),
        ('password = SecretStr("mysecretpassword")', "mysecretpassword"),
        ('password = req.body.password || "tamarackvole"', "tamarackvole"),
        ("password=hello(world", "hello(world"),
        ("login.password=Winterpassword", "Winterpassword"),
    ],
)
def test_a_value_that_only_looks_like_a_variable_goes(text: str, secret: str) -> None:
    assert secret not in redact(text)[0]
