"""Secrets in realistic output go, what only looks like one stays, and nothing breaks on what it is fed."""

from __future__ import annotations

import base64
import gzip
import json
import re
import urllib.parse
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.redaction.cut_text import ENDINGS
from ghost.redaction.mentions import MENTIONS
from ghost.redaction.passes import plain
from ghost.redaction.secret_names import secret_kind
from ghost.redaction.secret_values import POLICY, is_open, looks_random
from ghost.redaction.shapes import SHAPES
from ghost.shell import redact
from ghost.shell.record.truncation import _CUT_LINE_NOTE as CUT_NOTE
from ghost.shell.record.truncation import ELISION, MAX_LINES, truncate_text
from ghost.shell.record.truncation import _cut as truncate_string
from ghost.shell.record.truncation import _cut_line as cut_line
from tests.exhaustive import examples, sample

CORPORA = Path(__file__).parent.parent / "corpora"
NOTHING = {"redactions_applied": False, "redaction_count": 0, "redaction_categories": [], "redaction_rules": {}}
CATEGORIES = {"api_key", "password", "bearer_token", "connection_string", "private_key", "storage_key", "sas_token"}


def corpus(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CORPORA / name).read_text(encoding="utf-8").splitlines()]


SECRETS = corpus("secrets.jsonl")
LOOKALIKES = corpus("lookalikes.jsonl")


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def flaws(row: dict[str, Any]) -> list[str]:
    """What is wrong with what `redact` makes of a row of the corpus."""
    text, metadata = redact(row["text"])
    left = row["secret"] in text or ("hex" in row and row["hex"] in text.replace(" ", ""))
    checks = {
        "the secret is left": left,
        "what is around it went": not all(kept in text for kept in row["keep"]),
        "nothing was counted": not (metadata["redactions_applied"] and metadata["redaction_count"] >= 1),
        "another category": not set(metadata["redaction_categories"]) <= CATEGORIES,
        "no rule for each": sum(metadata["redaction_rules"].values()) != metadata["redaction_count"],
        "redacting again changes it": redact(text) != (text, NOTHING),
        "no JSON any more": is_json(row["text"]) and not is_json(text),
    }
    return [flaw for flaw, is_so in checks.items() if is_so]


def test_a_secret_in_realistic_output_goes_and_what_is_around_it_stays() -> None:
    failed = [(row["shape"], row["context"], row["text"], found) for row in SECRETS if (found := flaws(row))]
    assert failed == []


NAMES = st.sampled_from(["name", "value", "password", "token", "secrets", "key", "id", "connectionString"])
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=examples(200))
@given(JSON_VALUES, st.sampled_from([None, 2]))
def test_any_json_stays_json(value: Any, indent: int | None) -> None:
    assert is_json(redact(json.dumps(value, indent=indent))[0])


def test_at_most_two_in_a_hundred_that_only_look_like_a_secret_go() -> None:
    changed = [f"{row['shape']}: {row['context']}" for row in LOOKALIKES if redact(row["text"])[0] != row["text"]]
    assert len(LOOKALIKES) >= 150
    assert len(changed) <= 0.02 * len(LOOKALIKES), changed


BESIDE = corpus("beside_secrets.jsonl")
WORDS = re.compile(r"[^\s\"'<>{}\[\](),;|&?]+")


def lost_beside(row: dict[str, Any]) -> tuple[list[str], int]:
    """The words beside a secret that went with it, and how many words there are."""
    text = redact(row["text"])[0]
    assert row["secret"] not in text, row
    words = [word for word in WORDS.findall(row["text"].replace(row["secret"], "\0")) if "\0" not in word]
    left = Counter(WORDS.findall(text))
    return list((Counter(words) - left).elements()), len(words)


def test_at_most_three_in_a_hundred_words_beside_a_secret_go_with_it() -> None:
    found = [lost_beside(row) for row in BESIDE]
    lost = [word for words, _ in found for word in words]
    assert len(lost) <= 0.03 * sum(number for _, number in found), lost


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DB_PASSWORD=x1 DB_HOST=10.0.0.7 DB_PORT=5432", "DB_PASSWORD=[REDACTED] DB_HOST=10.0.0.7 DB_PORT=5432"),
        (
            "APP_SECRET=Heron#Lake44 curl: (28) Connection timed out to 10.0.0.5:443",
            "APP_SECRET=[REDACTED] curl: (28) Connection timed out to 10.0.0.5:443",
        ),
        ("password: correct horse battery", "password: [REDACTED]"),
        ("Cookie: theme=dark; sid=hunter2", "Cookie: [REDACTED]"),
        ("redis secret=Ouzel-Beck-7 host=cache", "redis secret=[REDACTED] host=cache"),
        ("Cookie: a=1; path=/; session=hunter2", "Cookie: [REDACTED]"),
        ("Set-Cookie: a=1; Path=/; HttpOnly", "Set-Cookie: [REDACTED]; Path=/; HttpOnly"),
        ("Set-Cookie: a=1; Path=/, session=hunter2; Path=/", "Set-Cookie: [REDACTED]; Path=/"),
        (
            '{"c":"Server=a;Password=ab\'cd9;Encrypt=True","host":"10.0.0.9"}',
            '{"c":"Server=a;Password=[REDACTED_CONNECTION_STRING];Encrypt=True","host":"10.0.0.9"}',
        ),
        (
            '<a c="Server=a;Password=a&amp;b9;Encrypt=True"/>',
            '<a c="Server=a;Password=[REDACTED_CONNECTION_STRING];Encrypt=True"/>',
        ),
    ],
)
def test_what_stands_behind_a_value_stays_and_all_of_the_value_goes(text: str, expected: str) -> None:
    assert redact(text)[0] == expected


def test_the_corpus_is_wide() -> None:
    assert len(SECRETS) >= 250
    assert len({row["shape"] for row in SECRETS}) >= 65
    assert len({row["context"] for row in SECRETS}) >= 60


NOISE = "\n".join(f"14:32:00.{n:06} IP 10.0.1.4.43210 > 10.0.2.4.6379: Flags [.], seq {n}" for n in range(40))


def test_a_secret_among_many_ordinary_lines_goes() -> None:
    failed = []
    for row in sample(SECRETS, 200):
        is_end = row["shape"].startswith("cut short")  # the text ends inside the secret: nothing follows
        text, _ = redact(f"{NOISE}\n{row['text']}" + ("" if is_end else f"\n{NOISE}"))
        if row["secret"] in text or not text.startswith(NOISE[:1000]) or not (is_end or text.endswith(NOISE[-1000:])):
            failed.append((row["shape"], row["context"], row["text"]))
    assert failed == []


def test_the_examples_beside_each_shape_hold() -> None:
    failed = []
    for shape in SHAPES:
        for example in shape.must:
            known = any(a in (example.lower() if shape.ignore_case else example) for a in shape.anchors)
            if not known or shape.pattern.search(example) is None or not redact(example)[1]["redactions_applied"]:
                failed.append((shape.rule.id, example))
        failed += [(shape.rule.id, example) for example in shape.must_not if redact(example)[0] != example]
    assert failed == []


def test_every_rule_has_an_id_of_its_own_and_its_patterns_compile() -> None:
    ids = [shape.rule.id for shape in SHAPES]
    assert sorted(ids) == sorted(set(ids))
    for shape in SHAPES:
        assert [shape.pattern.groupindex] + [p.groupindex for p in (shape.probe, shape.unless) if p is not None]
    for mention in MENTIONS:
        assert [p.groupindex for p in (mention.name, mention.before, mention.behind) if p is not None]
    for ending in ENDINGS:
        assert ending.when.groupindex or ending.add


def test_the_examples_beside_each_ending_hold() -> None:
    for ending in ENDINGS:
        for example in ending.must:
            once, metadata = redact(example)
            assert ending.when.search(example), example
            assert metadata["redactions_applied"], example
            assert "hunt" not in once, once
            assert redact(once)[0] == once
        assert [example for example in ending.must_not if redact(example)[0] != example] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password=hunter2", "password=[REDACTED]"),
        ("Authorization: Bearer abc123def456", "Authorization: Bearer [REDACTED]"),
        ("AccountName=a;AccountKey=abcd==;", "AccountName=a;AccountKey=[REDACTED_CONNECTION_STRING];"),
        ("?sv=2022&sig=abcdefghijkl", "?sv=2022&sig=[REDACTED_SAS_TOKEN]"),
        (
            "-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEAabcd\n-----END PRIVATE KEY-----",
            "[REDACTED_PRIVATE_KEY]",
        ),
    ],
)
def test_the_markers_are_those_of_the_documentation(text: str, expected: str) -> None:
    assert redact(text)[0] == expected


@pytest.mark.parametrize(
    "value", ["null", "None", "", "***", "$DB_PASSWORD", "${DB_PASSWORD}", "(hidden)", "<password>"]
)
def test_a_name_without_a_value_stays(value: str) -> None:
    assert redact(f"password: {value}\nport: 1")[0] == f"password: {value}\nport: 1"


def test_subscription_ids_stay() -> None:
    text = "/subscriptions/7f3c1a52-9b64-4d0e-8f1a-2b6c7d8e9f00/resourceGroups/rg"
    assert redact(text)[0] == text


def test_colours_and_invisible_characters_are_taken_out() -> None:
    assert plain("\x1b[1;32mok\x1b[0m \x1b]0;title\x07a\u200bb\u202ec\r\nd\x00") == "ok abc\nd"


def test_names_are_compared_by_their_end_whatever_joins_their_words() -> None:
    assert secret_kind("DB_PASSWORD") == ("password", True)
    assert secret_kind("primaryKey") == secret_kind("primary key") == secret_kind("PRIMARY-KEY") == ("api_key", True)
    assert secret_kind("sessionId") == ("api_key", False)
    assert secret_kind("publicKey") is None
    assert secret_kind("passwordExpiry") is None


CERTAIN = [name for names in POLICY["names"]["certain"].values() for name in names]


def test_every_name_of_the_table_is_found_by_letters_of_it() -> None:
    """Names stand in the table without blanks and marks; in a text they are looked for with those of their letters."""

    def is_found(name: str) -> bool:
        cores = [(re.sub("[ _.-]", "", core), core) for core in POLICY["names"]["cores"]]
        spellings = {name, *(name.replace(letters, core) for letters, core in cores if letters in name)}
        return any("Kx7qW2zB9mPq" not in redact(f"{spelling}: Kx7qW2zB9mPq")[0] for spelling in spellings)

    assert [name for name in CERTAIN if not is_found(name)] == []


def test_no_name_stands_twice_and_no_ordinary_word_in_a_spelling_that_is_never_compared() -> None:
    assert sorted(CERTAIN) == sorted(set(CERTAIN))
    assert [word for word in POLICY["statement"]["ordinary"] if word != word.lower().rstrip(".,;:")] == []


def test_random_is_told_from_chosen() -> None:
    assert looks_random("kJ8sLq2PzX9vBn4MtR7w")
    assert not looks_random("web-vm-01-prod-eastus2")
    assert not looks_random("7f3c1a52-9b64-4d0e-8f1a-2b6c7d8e9f00")
    assert not looks_random("/subscriptions/x/resourceGroups/Prod1")


PASSWORDS = st.text(
    alphabet="abcdefghijkmnopqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWYZ0123456789!#@^_+~.,-", min_size=9, max_size=40
).filter(lambda p: p.strip("*xX.,-_") == p and len(set(p)) > 4 and not is_open(p))
KEYS = st.binary(min_size=32, max_size=64).map(lambda raw: base64.b64encode(raw).decode())
CONTEXTS = st.sampled_from(
    [
        lambda s: json.dumps({"a": 1, "adminPassword": s, "b": [1, 2]}),
        lambda s: json.dumps({"outer": json.dumps({"password": s})}),
        lambda s: json.dumps([{"name": "DB_PASSWORD", "slotSetting": False, "value": s}], indent=2),
        lambda s: f"host: db\npassword: {s}\nport: 1",
        lambda s: f"export DB_PASSWORD={s}\nexport A=1",
        lambda s: f'DB_PASSWORD="{s}"',
        lambda s: f"{{'password': '{s}', 'port': 1}}",
        lambda s: f"az vm create --admin-password {s} -g rg" if not s.startswith("-") else f"--password={s}",
        lambda s: f"<password>{s}</password>",
        lambda s: f"Server=db;User ID=sa;Password={s};Encrypt=True",
        lambda s: f"x?password={urllib.parse.quote(s, safe='')}&y=1",
        lambda s: f"log: login failed, password={s} user=bob",
        lambda s: base64.b64encode(f"user: bob\npassword: {s}\n".encode()).decode(),
        lambda s: base64.b64encode(f"# für alle\nexport DB_PASSWORD={s}\n".encode()).decode(),
        lambda s: base64.b64encode(gzip.compress(f"#!/bin/sh\nexport DB_PASSWORD={s}\n".encode())).decode(),
        lambda s: f"\x1b[1mpassword\x1b[0m = {s}",
    ]
)


@settings(max_examples=examples(200))
@given(secret=PASSWORDS, context=CONTEXTS)
def test_a_planted_password_never_survives(secret: str, context: Any) -> None:
    text, metadata = redact(context(secret))
    assert secret not in text
    assert metadata["redactions_applied"]


# Cut by truncation. Of a secret at most this much of its beginning may be seen, where nothing says what it is: the
# mark of who issued it, as in `sk-ant-api03-`.
WINDOW = 12


def is_left(secret: str, text: str, before: str) -> bool:
    """Whether a part of a secret that would tell something is in a text, and was not beside the secret anyway."""
    size = min(WINDOW, max(5, len(secret) // 2))
    parts = {secret[start : start + size] for start in range(len(secret) - size + 1)}
    return any(part in text and part not in before for part in parts if "OPENSSH" not in part)


def cut_at(text: str, position: int, *, in_a_line: bool) -> list[str]:
    """What the real truncation makes of a text that it cuts at a position: in a string of JSON, and in a line."""
    cut = [json.dumps({"cut": truncate_string(text + " and more", position + len(ELISION) + 1)})]
    if in_a_line:
        start = text.rfind("\n", 0, position) + 1
        line, newline, following = text[start:].partition("\n")
        cut.append(text[:start] + cut_line(line + " and more" * 20, position - start + CUT_NOTE) + newline + following)
    return cut


WITH_AN_EDGE = [row for row in SECRETS if row["context"] != "beginning cut"]
"""A PEM body whose beginning was cut before, cut once more at its end, is base64 like any other: docs/redaction.md."""


CUTS = 8  # positions of a row that are tried, drawn by its number


def left_by_cuts(row: dict[str, Any], seed: int) -> list[str]:
    """What is left of a secret that truncation cuts, at some of its positions."""
    text, secret = plain(row["text"]), plain(row["secret"])
    start = text.index(secret)
    others = text.replace(secret, "")
    kept: set[str] = set()
    for position in sample(range(start + 1, start + len(secret) + 1), CUTS, seed):
        kept.update(cut_at(text, position, in_a_line="\n" not in secret))  # wrapped lines are too short to be cut
    return [cut for cut in kept if is_left(secret, redact(cut)[0], others)]


def test_of_a_secret_that_truncation_cuts_nothing_is_left_wherever_the_cut_is() -> None:
    failed = [
        (row["shape"], row["context"], left[0][-200:])
        for seed, row in sample(list(enumerate(WITH_AN_EDGE)), 1_000)
        if (left := left_by_cuts(row, seed))
    ]
    assert failed == []


ONE_OF_EACH_SHAPE = list({row["shape"]: row for row in SECRETS}.values())
# Lines that name what might be a secret stand where some are shown beside it; those between are left out anyway.
MORE_THAN_IS_SHOWN = "\n".join(
    f"14:32:00.{n:06} {'session' if n < 30 or n >= MAX_LINES else 'flow'} {n}" for n in range(MAX_LINES + 30)
)


def test_nothing_of_a_secret_is_left_by_redacting_truncating_and_redacting_again() -> None:
    failed = []
    for row in sample(ONE_OF_EACH_SHAPE, 20):
        text, secret = plain(row["text"]), plain(row["secret"])
        others = text.replace(secret, "") + MORE_THAN_IS_SHOWN
        for lines_before in (0, 17, 19):
            before = "\n".join(MORE_THAN_IS_SHOWN.splitlines()[:lines_before]) + "\n" * (lines_before > 0)
            for whole in (
                before + text + "\n" + MORE_THAN_IS_SHOWN,
                MORE_THAN_IS_SHOWN + "\n" + text + "\n" + before.rstrip("\n"),
            ):
                shown = redact(truncate_text(redact(whole)[0])[0])[0]
                if is_left(secret, shown, others):
                    failed.append((row["shape"], row["context"], lines_before))
    assert failed == []


@settings(max_examples=examples(100))
@given(
    key=KEYS,
    context=st.sampled_from(
        [
            lambda s: json.dumps({"keyName": "key1", "permissions": "FULL", "value": s}),
            lambda s: json.dumps({"primaryKey": s, "x": 1}),
            lambda s: f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={s};EndpointSuffix=x",
            lambda s: f"Endpoint=sb://n/;SharedAccessKeyName=R;SharedAccessKey={s}",
            lambda s: f"PrivateKey = {s}",
            lambda s: f"--account-key {s}",
            lambda s: f"AccountKey={s[:40]}\n{s[40:]}" if len(s) > 60 else f"AccountKey={s}",
        ]
    ),
    cut=st.integers(0, 20),
)
def test_a_planted_key_never_survives_even_where_the_text_ends_in_it(key: str, context: Any, cut: int) -> None:
    text = context(key)
    end = text.index(key[:40]) + len(key) - cut
    assert key[:20] not in redact(text)[0]
    assert key[:20] not in redact(text[:end])[0]


FRAGMENTS = [
    *("password", "token", "key", "sig", "AccountKey", "Bearer ", "eyJabcdefgh.", "aB3dE5gH7jK9mN1pQ3sT", "a", "Zk1"),
    *("=", ":", '"', "\\", "'", "\n", " ", "[", "]", "{", "}", ";", "&", "%3D", "://", "@", "--", "<", ">", ",", "|"),
    *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "[REDACTED]", "\x1b[", "x" * 20),
]


@settings(max_examples=examples(300))
@given(
    st.lists(
        st.sampled_from(FRAGMENTS),
        max_size=25,
    ).map("".join)
    | st.text(max_size=200)
)
def test_any_text_is_redacted_without_fail_and_once_for_all(text: str) -> None:
    once, metadata = redact(text)
    again, more = redact(once)
    assert (again, more["redaction_count"]) == (once, 0)
    assert metadata["redactions_applied"] is (metadata["redaction_count"] > 0)


@pytest.mark.parametrize("text", ["PASS " * 20, "PASS " * 200 + "\n" + "PASS AUTH " * 20, "PASS x1A\n" * 300])
def test_a_line_in_which_each_pass_uncovers_the_next_secret_goes_whole(text: str) -> None:
    once, metadata = redact(f"first line\n{text}\nlast line")
    assert redact(once)[0] == once
    assert once.startswith("first line\n")
    assert once.endswith("\nlast line")
    assert metadata["redactions_applied"] is True


@pytest.mark.parametrize(
    "shape",
    [
        "change cipher spec",
        "server key exchange",
        "new session ticket",
        "key update",
        "encrypted handshake message",
        "secret name",
    ],
)
def test_what_is_read_every_day_stays_whole(shape: str) -> None:
    rows = [row for row in LOOKALIKES if row["shape"] == shape]
    assert rows
    assert [row["text"] for row in rows if redact(row["text"])[0] != row["text"]] == []
