"""A secret that stands behind a keyword goes in the configuration of any vendor; settings and sentences stay."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ghost.redaction.secret_names import secret_kind
from ghost.shell import redact
from tests.exhaustive import examples

WORDS = st.text(alphabet="abcdefghijkmnopqrstuvwyzABCDEFGHJKLMNPQRSTUVWYZ23456789", min_size=7, max_size=24).filter(
    lambda word: any(c.isdigit() for c in word) and sum(c.isalpha() for c in word) > 3 and secret_kind(word) is None
)
STATEMENTS = st.sampled_from(
    [
        "enable secret {}",
        "enable secret 5 {}",
        "username bob privilege 15 password 7 {}",
        " neighbor 192.0.2.1 password {}",
        "tacacs-server host 10.0.0.1 key 7 {}",
        "radius-server host 10.0.0.1 auth-port 1812 key {}",
        "ntp authentication-key 1 md5 {}",
        " ip ospf message-digest-key 1 md5 {}",
        "snmp-server community {} RO",
        "snmp-server user bob grp v3 auth sha {} priv aes 128 other1x",
        "crypto isakmp key {} address 203.0.113.9",
        'set snmp community "{}" authorization read-only',
        'set system radius-server 10.0.0.1 secret "{}"',
        "set security ike policy P pre-shared-key ascii-text {}",
        "        set psksecret ENC {}",
        "set vpn ipsec authentication psk site secret '{}'",
        "radius-server shared-key cipher {}",
        "  key-string {}",
        "requirepass {}",
        "rocommunity {} 10.0.0.0/8",
        '    secret "{}";',
    ]
)


@settings(max_examples=examples(100))
@given(
    word=WORDS, statement=STATEMENTS, before=st.sampled_from(["", "hostname r1\n!\n", "<189>1: r1: logged command:"])
)
def test_whatever_stands_behind_a_keyword_goes(word: str, statement: str, before: str) -> None:
    text, metadata = redact(before + statement.format(word) + "\nend\n")
    assert word not in text
    assert metadata["redactions_applied"]
    assert redact(text)[0] == text


@pytest.mark.parametrize(
    "line",
    [
        "aaa authentication login default group tacacs+ local",
        "ip ospf authentication message-digest",
        "ip ospf authentication key-chain OSPF-KC",
        "ntp server 10.0.0.1 key 42",
        "key chain EIGRP-KEYS",
        " match community CUST",
        "set authentication-order [ radius password ];",
        "service password-encryption",
        "crypto key generate rsa modulus 2048",
        "password   requisite   pam_pwquality.so retry=3",
        "FATAL:  password authentication failed for user",
        "RADIUS shared secret mismatch with 10.0.0.5",
        "BAD PASSWORD: The password is shorter than 8 characters",
        "[    1.1] Key type dns_resolver registered",
        'allow-transfer { key "ddns-key"; };',
    ],
)
def test_a_setting_and_a_sentence_stay(line: str) -> None:
    assert redact(line)[1]["redaction_count"] == 0
    assert redact(line)[0] == line


def test_a_working_directory_makes_no_connection_string_of_a_log_line() -> None:
    line = "sudo: bob : TTY=pts/0 ; PWD=/srv ; USER=root ; COMMAND=/usr/bin/id"
    assert redact(line)[0] == line


def test_a_private_key_in_base64_does_not_take_the_next_name_with_it() -> None:
    text = "client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlKS\ntoken: 9d8f7e6c5b4a39281706f5e4d3c2b1a0"
    assert redact(text)[0].count("\ntoken: [REDACTED]") == 1


def test_the_data_of_a_secret_goes_whatever_it_is_called_and_of_no_other_manifest() -> None:
    secret = "kind: Secret\nmetadata:\n  name: db\nstringData:\n  license: LIC-7788\n  app.ini: |\n    [db]\n    x=y\n"
    settings_map = "kind: ConfigMap\ndata:\n  colour: blue\n"
    text = redact(secret + "---\n" + settings_map)[0]
    assert "LIC-7788" not in text
    assert "x=y" not in text
    assert text.endswith(settings_map)
    assert "  name: db\n" in text


@pytest.mark.parametrize(
    "prefix", ["", "<189>1: r1: logged command:", "sw1(config)#", "sw1(config)# ", "Jan 1 10:00 r1 "]
)
@pytest.mark.parametrize("server", ["radius-server", "tacacs-server"])
def test_the_key_of_a_server_goes_also_where_it_is_a_word_and_a_log_stands_before_it(prefix: str, server: str) -> None:
    for statement in (f"{server} host 10.0.0.1 key Summer2", f"{server} key Summer2", f"{server} key sommer"):
        assert redact(f"{prefix}{statement}\nend")[0] == f"{prefix}{statement.rpartition(' ')[0]} [REDACTED]\nend"


MARKS = "=:,;!@#$%^&*()[]{}<>?/|~`'\"+-_."  # a backslash may begin an escape: `\\n` is the end of a line in a string
HOLDING_A_PASSWORD = [
    "enable password {}",
    "enable secret 0 {}",
    "username bob password {}",
    " neighbor 192.0.2.1 password {}",
    "tacacs-server key {}",
    "radius-server host 10.0.0.1 key {}",
    "snmp-server community {} RO",
    " ip ospf message-digest-key 1 md5 {}",
    "crypto isakmp key {} address 203.0.113.9",
    "set snmp community {} authorization read-only",
    "snmp-server user bob grp v3 auth sha {} priv aes 128 other1x",
    "requirepass {}",
    "  key-string {}",
    "DB_PASSWORD={}",
    "password = {}",
]


def generated(random_number: random.Random, mark: str, place: int) -> str:
    """A password as generators make it, with a mark first, last or inside, and sometimes another."""
    kinds = ("abcdefghjkmnopqrstuvwxyz", "ABCDEFGHJKLMNPQRSTUVWXYZ", "23456789")
    letters = [random_number.choice(kinds[n % 3]) for n in range(17)]
    random_number.shuffle(letters)
    if random_number.random() < 0.3:
        letters[random_number.randrange(3, 14)] = random_number.choice("=:@#%^&*+-_.!?")
    letters.insert((0, 17, random_number.randrange(3, 14))[place], mark)
    return "".join(letters)


@settings(max_examples=examples(1_500))
@given(
    statement=st.sampled_from(HOLDING_A_PASSWORD),
    place=st.sampled_from([0, 1, 2]),
    seed=st.integers(0, 1 << 32),
    mark=st.sampled_from(MARKS),
)
@example(statement="DB_PASSWORD={}", place=0, seed=950, mark="$")
def test_a_password_goes_whatever_marks_are_in_it(statement: str, place: int, seed: int, mark: str) -> None:
    password = generated(random.Random(seed), mark, place)
    assume(re.fullmatch(r"\$[A-Za-z]\w*", password) is None)  # it may be a shell's variable
    text = redact(f"{statement.format(password)}\nend\n")[0]
    parts = [password[n : n + 5] for n in range(len(password) - 4)]
    assert [part for part in parts if part in text and part not in statement] == []
    assert redact(text)[0] == text


@pytest.mark.parametrize(
    "line",
    [
        "password requisite pam_pwquality.so retry=3",
        "Failed password rhost=10.0.0.1",
        "invalid password user=bob2",
        "set password --stdin",
        "enable password level=15",
        "key id=4711",
        "ip ospf authentication md5 key-chain KC1",
        "TOKEN=$GH_TOKEN gh api /user",
        "password <value>",
        "password [options] user",
    ],
)
def test_a_word_that_is_assigned_and_what_stands_in_brackets_stay(line: str) -> None:
    assert redact(line)[0] == line


@pytest.mark.parametrize(
    "line",
    [
        "- password: Wq7<hT2mv9",
        "  - db_password: Wq7'hT2mv9",
        "- password: Wq7hB=T2mv9",
        "curl -u 'bob:Wq7\"hT2mv9' https://h/",
        "curl -u 'bob:Wq7'\\''hT2mv9' https://h/",
        'curl --user "bob:Wq7\'hT2mv9" https://h/',
        "curl -u 'bob:Wq7 hT2mv9' https://h/",
        "export DB_PASSWORD='Wq7'\\''hT2mv9'",
    ],
)
def test_a_mark_of_yaml_or_of_a_shell_does_not_end_a_password(line: str) -> None:
    text = redact(line)[0]
    assert "Wq7" not in text
    assert "T2mv9" not in text
    assert redact(text)[0] == text
