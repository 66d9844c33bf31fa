"""What leaves this machine has a placeholder for every token that looks random; evidence in it stays."""

from __future__ import annotations

import json
import pickle
import random
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.errors import UsageError
from ghost.redaction import Placeholders, for_outside, redact
from ghost.redaction.fallback import looks_secret
from tests.exhaustive import examples

TOKEN = "q7RkLm92Pw4RtVbZ81Tx"
LOOKALIKES = Path(__file__).parent.parent / "corpora" / "lookalikes.jsonl"

EVIDENCE = [
    "10.0.2.4:6379 fd00:10:2::4 00:0d:3a:1b:2c:3d /subscriptions/7f3c1a52-9b64-4d0e-8f1a-2b6c7d8e9f00/resourceGroups/"
    "prod-rg/providers/Microsoft.Network/networkSecurityGroups/cacheNsg01Prod/securityRules/AllowHttpsInbound443",
    "DenyAllInboundFromInternet443 P2SConnectionConfigWestEurope1 aks-nodepool1-12345678-vmss000001 Standard_D2s_v3",
    "checkout-7f9c6d5b8-x2x4q stprodweu0a1b2c.blob.core.windows.net kv-prod-weu.vault.azure.net:443",
    '"serialNumber": "0A9F3C7D21E4B8560A9F3C7D21E4B856", "etag": "W/\\"7f3c1a52-9b64-4d0e-8f1a-2b6c7d8e9f00\\""',
    'x-ms-request-id: 7f3c1a52-9b64-4d0e-8f1a-2b6c7d8e9f00 "thumbprint": "A94A8FE5CCB19BA61C4C0873D391E987982FBBD3"',
    "app@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "commit 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
    "example.com. 3600 IN DS 31406 8 2 F78CF3344F72137235098ECBBD08947C2C9001C7F6A085A17F518B5D8F6B916D",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl bob@host",
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUf3kQ9Zx7\n-----END CERTIFICATE-----",
    "[INTERNAL_IP_1] [TOKEN_4] [REDACTED_PRIVATE_KEY]",
]


def test_a_token_that_nothing_announces_gets_the_same_placeholder_each_time() -> None:
    mapping = Placeholders()
    text = for_outside(f"got {TOKEN} from 10.0.0.4; again {TOKEN}, then h7Gq2tR4w9Zk2LpXy8Qn", mapping)
    assert text == "got [TOKEN_1] from 10.0.0.4; again [TOKEN_1], then [TOKEN_2]"
    assert for_outside(text, mapping) == text
    assert mapping.restore("use [TOKEN_2]") == "use h7Gq2tR4w9Zk2LpXy8Qn"
    assert mapping.hide(f"x {TOKEN}") == "x [TOKEN_1]"
    assert (mapping.unknown("[TOKEN_1]"), mapping.unknown("[TOKEN_3]")) == (None, "[TOKEN_3]")


def test_what_redact_knows_is_redacted_and_no_token() -> None:
    mapping = Placeholders()
    assert for_outside(f"password={TOKEN}", mapping) == "password=[REDACTED]"
    assert mapping.unknown("[TOKEN_1]") == "[TOKEN_1]"


def test_evidence_stays() -> None:
    assert [text for text in EVIDENCE if for_outside(text, Placeholders()) != text] == []


@pytest.mark.parametrize(
    "text",
    [
        "10.0.0.5/@",
        "10.0.0.5-@",
        "http://10.0.0.5:8080/@",
        "fe80::1/@",
        "eth0/@",
        "https://internal-host:8443/reset/@?x=1",
    ],
)
def test_what_stands_before_a_token_stays_and_its_placeholder_is_the_same(text: str) -> None:
    mapping = Placeholders()
    mapping.placeholder(TOKEN)
    assert for_outside(text.replace("@", TOKEN), mapping) == text.replace("@", "[TOKEN_1]")


def test_a_token_that_was_hidden_once_is_hidden_behind_every_name() -> None:
    mapping = Placeholders()
    assert for_outside(f"id: {TOKEN}", mapping) == f"id: {TOKEN}"
    assert for_outside(f"saw {TOKEN}", mapping) == "saw [TOKEN_1]"
    assert for_outside(f"id: {TOKEN}", mapping) == "id: [TOKEN_1]"


@settings(max_examples=examples(100))
@given(st.text(max_size=12), st.text(max_size=12))
def test_json_stays_json_and_keeps_what_it_says(before: str, behind: str) -> None:
    mapping = Placeholders()
    said = f"{before} {TOKEN} {behind}\n{TOKEN}"
    for ascii_only in (True, False):
        shown = json.loads(for_outside(json.dumps({"output": said}, ensure_ascii=ascii_only), mapping))
        assert TOKEN not in shown["output"]
        assert mapping.restore(shown["output"]).count(TOKEN) == 2


def test_the_mapping_is_written_nowhere() -> None:
    with pytest.raises(UsageError, match="stay in memory"):
        pickle.dumps(Placeholders())


def test_of_what_only_looks_like_a_secret_less_than_one_in_fifteen_has_a_placeholder() -> None:
    rows = [json.loads(line)["text"] for line in LOOKALIKES.read_text(encoding="utf-8").splitlines()]
    changed = [text for text in rows if for_outside(text, Placeholders()) != redact(text)[0]]
    assert len(changed) < len(rows) / 15


@settings(max_examples=examples(200))
@given(st.integers(0, 1 << 32), st.sampled_from([string.ascii_letters + string.digits, "0123456789abcdef"]))
def test_a_random_token_of_forty_characters_is_seldom_taken_for_a_name(seed: int, alphabet: str) -> None:
    source = random.Random(seed)
    tokens = ["".join(source.choices(alphabet, k=40)) for _ in range(25)]
    assert sum(map(looks_secret, tokens)) >= 23


@settings(max_examples=examples(150))
@given(st.lists(st.sampled_from([TOKEN, "a", "/", " ", "[TOKEN_1]", "=", "\n", "Abc1", "-----BEGIN CERTIFICATE-----"])))
def test_doing_it_again_changes_nothing(parts: list[str]) -> None:
    mapping = Placeholders()
    once = for_outside("".join(parts), mapping)
    assert for_outside(once, mapping) == once
