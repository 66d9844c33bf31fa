"""Stub embeddings: length 1, the same everywhere, nearer for texts that say nearly the same."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.providers.stub import StubEmbeddings
from ghost.providers.stub import embeddings as stub_embeddings
from ghost.providers.stub.concept_index import concepts, concepts_of, stem
from ghost.providers.stub.tokenizer import inner_terms, terms
from tests.exhaustive import examples

SYMPTOM = "web-vm cannot reach db-vm on port 6379, db-nsg denies it"

# (a text, one that says nearly the same, one that does not)
NEARER = [
    (SYMPTOM, "db-nsg blocks redis on 6379 from web-vm", "The certificate of the gateway expired on Sunday"),
    ("the NSG denies inbound", "a network security group rule blocked it: nsg", "packets retransmitted after a loss"),
    ("prod-subnet", "the subnet of prod", "the network of staging"),
    ("10.0.1.4 does not answer", "no answer from 10.0.1.9", "no answer from 172.16.3.4"),
    ("NetworkSecurityGroup", "network security group", "route table"),
    ("6379/tcp refused", "port 6379 resets", "port 6380 resets"),
    ("name resolution fails on app-vm", "app-vm gets NXDOMAIN from DNS", "web-vm has a full disk"),
    ("hub-vnet peering disconnected", "the peering of hub-vnet is down", "spoke route table lost"),
]


def likeness(embeddings: StubEmbeddings, one: str, other: str) -> float:
    first, second = embeddings.embed([one, other])
    return sum(a * b for a, b in zip(first, second, strict=True))


@settings(max_examples=examples(200))
@given(text=st.text(), dim=st.sampled_from([8, 128, 384]))
def test_any_text_gives_dim_finite_numbers_of_length_one_and_the_same_again(text, dim):
    (vector,) = StubEmbeddings(dim).embed([text])
    assert len(vector) == dim
    assert math.isclose(math.hypot(*vector), 1.0, abs_tol=1e-5)
    assert StubEmbeddings(dim).embed(["before", text, text])[1:] == [vector, vector]


# Features that fall together by chance move a likeness by about 1 / sqrt(dim): little is promised in a small space.
@pytest.mark.parametrize(("dim", "by"), [(128, 0.05), (384, 0.1)])
@pytest.mark.parametrize(("text", "near", "far"), NEARER)
def test_a_text_that_says_nearly_the_same_is_nearer(text, near, far, dim, by):
    embeddings = StubEmbeddings(dim)
    assert likeness(embeddings, text, near) > likeness(embeddings, text, far) + by


def test_the_space_changes_only_with_its_name():
    """Stored vectors would be compared with new ones under the same name. Where this fails, `SPACE` needs another."""
    folder = Path(stub_embeddings.__file__).parent
    words = {name: _digest_of_words(folder / name) for name in WORDS}
    assert (stub_embeddings.SPACE, words) == ("stub2", WORDS)
    (vector,) = StubEmbeddings(8).embed(["db-nsg denies 10.0.1.4 port 6379"])
    assert vector == pytest.approx(SMALL, abs=1e-5)
    for dim, expected in SAMPLES.items():
        vectors = np.array(StubEmbeddings(dim).embed([text for near in NEARER for text in near]))
        assert vectors @ np.cos(np.arange(dim)) == pytest.approx(expected, abs=1e-4)


def _digest_of_words(path: Path) -> str:
    """Of the lines that are no comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return sha256("\n".join(line for line in lines if line and not line.startswith("#")).encode()).hexdigest()


WORDS = {
    "words.toml": "8e84ac7699a7ab4ecebd9ef7caa5d8eec0aa9f5cafa8e328dc1944aacd1bf97d",
    "concepts.txt": "6499003a5d8980bf28a46c0af34c2acd56dffa6a39f58c398fdf98a23c26080f",
}
SMALL = [0.459414, 0.0, 0.528213, 0.264634, 0.30681, -0.081928, -0.347009, -0.467588]
SAMPLES = {
    128: [
        0.41601,
        0.33374,
        -0.59332,
        0.64899,
        0.12152,
        -1.06168,
        -0.82693,
        -0.58137,
        1.01755,
        0.88635,
        0.42422,
        0.00163,
        -1.13622,
        0.60654,
        -0.02956,
        0.19099,
        0.03653,
        0.83791,
        -0.54126,
        -0.97117,
        0.43234,
        0.63364,
        0.44715,
        -0.10871,
    ],
    384: [
        0.54002,
        0.34529,
        -0.54703,
        0.08902,
        1.0338,
        -0.58866,
        0.71814,
        0.33993,
        -0.0683,
        -0.71906,
        -0.02074,
        0.369,
        0.52132,
        1.69246,
        1.02764,
        0.72467,
        1.26235,
        0.82307,
        -0.77241,
        -0.60439,
        -0.43079,
        0.63439,
        0.94419,
        0.84253,
    ],
}
"""The three texts of each row of `NEARER`, projected on one fixed direction."""


def test_the_name_tells_the_space():
    assert StubEmbeddings(128).name == "stub2-128"


def test_identifiers_hold_their_parts():
    assert terms("On prod-subnet (10.0.1.4:6379/tcp)") == ["on", "prod-subnet", "10.0.1.4:6379/tcp"]
    assert inner_terms("10.0.1.4:6379/tcp") == ["10.0.1.4", "10.0.1.", "10.0.", "10.", "6379", "tcp"]
    assert inner_terms("10.0.1.0/24") == ["10.0.1.0", "10.0.1.", "10.0.", "10."]
    assert inner_terms("6379") == []
    assert terms("networkSecurityGroups/db-nsg") == ["network-security-groups/db-nsg"]


def test_texts_without_a_word_differ_where_they_differ():
    embeddings = StubEmbeddings(128)
    assert likeness(embeddings, "!!!", "!!!") == pytest.approx(1.0, abs=1e-5)
    assert likeness(embeddings, "!!!", "???") < 0.9


@pytest.mark.parametrize("dim", [8, 9, 128])
def test_no_text_without_a_word_cancels_itself_out(dim):
    """In a small space two places of one feature fell together with opposite signs, and the vector was not a number."""
    for vector in StubEmbeddings(dim).embed([chr(code) * 3 for code in range(0x2190, 0x2400)]):
        assert math.isclose(math.hypot(*vector), 1.0, abs_tol=1e-5)


def test_nothing_to_embed_gives_nothing():
    assert StubEmbeddings(128).embed([]) == []


def test_what_is_kept_of_words_is_bounded(monkeypatch):
    monkeypatch.setattr(stub_embeddings, "CACHE_BYTES", 100 * (4 * 128 + 200))
    embeddings = StubEmbeddings(128)
    first = embeddings.embed(["word0 word1"])
    embeddings.embed([f"word{n}" for n in range(1000)])
    assert len(embeddings._words) == 100
    assert embeddings.embed(["word0 word1"]) == first


def test_threads_get_the_vectors_that_one_thread_gets():
    texts = [f"vm-{n} cannot reach 10.0.{n % 7}.{n}" for n in range(400)]
    alone = StubEmbeddings(128).embed(texts)
    shared = StubEmbeddings(128)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: shared.embed([text])[0], texts)) == alone


def test_a_text_is_near_one_that_says_it_in_other_words():
    embeddings = StubEmbeddings(384)
    asked = "cert lapsed, clients cannot negotiate"
    assert likeness(embeddings, asked, "certificates expired and the handshake failed") > 0.4
    assert likeness(embeddings, asked, "the printer of the second floor lost its address") < 0.2


@pytest.mark.parametrize("word", ["retransmitted", "retransmits", "retransmit"])
def test_endings_do_not_matter(word):
    assert stem(word) == "retransmit"
    assert concepts_of(word) == concepts_of("retransmission")


def test_no_line_of_the_concepts_names_a_thing_twice():
    for line in concepts():
        assert len(set(line)) == len(line) > 1 or len(line) == 1, line
