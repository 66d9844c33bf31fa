"""The time that redaction takes grows as the length of a text does, whatever is repeated in it and however it ends."""

from __future__ import annotations

import random
import time

import pytest
from benchmarks.redact import ENDED, HOSTILE, repeated

from ghost.shell import redact
from tests.exhaustive import sample

REPEATED = {
    name: shape
    for name, shape in (HOSTILE | ENDED).items()
    if name in ENDED or name.startswith(("blocks", "folded b", "rows of"))
}


def seconds(text: str) -> float:
    """Processor time of one thread, the least of three readings."""
    readings = []
    for _ in range(3):
        started = time.thread_time()
        redact(text)
        readings.append(time.thread_time() - started)
    return min(readings)


@pytest.mark.parametrize("shape", sample(REPEATED, 12))
def test_four_times_the_length_takes_less_than_eight_times_as_long(shape: str) -> None:
    redact(repeated(REPEATED[shape], 1_000))
    short, long = (seconds(repeated(REPEATED[shape], size)) for size in (16_000, 64_000))
    assert long < 8 * max(short, 0.03)


@pytest.mark.parametrize(
    "text",
    [
        "password=[" + "h7Gq-tR4w9Zk2, " * 2_000 + "]",
        'password=["' + "h7Gq-tR4w9Zk2 " * 2_000 + "\n",
        "password: |\n" + "  h7Gq-tR4w9Zk2\n" * 2_000,
        'password="' + "h7Gq-tR4w9Zk2 " * 2_000,
    ],
)
def test_a_secret_that_is_longer_than_is_looked_at_first_goes_as_far_as_it_goes(text: str) -> None:
    assert "h7Gq-tR4w9Zk2" not in redact(text)[0]


def test_a_list_of_open_values_is_read_until_one_is_a_secret() -> None:
    assert "h7Gq-tR4w9Zk2" not in redact(f'password: [{"none, " * 1_000}"h7Gq-tR4w9Zk2"]')[0]


FRAGMENTS = [
    *(
        '"',
        "'",
        '\\"',
        '\\\\"',
        '\\\\\\"',
        "\\'",
        "\\",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        ",",
        ":",
        "=",
        ";",
        " ",
        "\t",
        "\n",
        "\n  ",
        "\\\n",
    ),
    *(
        "|",
        " |\n",
        " >-\n",
        "- ",
        "\n- ",
        "->",
        '"""',
        "'''",
        "{{ ",
        "}}",
        "[[",
        "${A}",
        "&quot;",
        "\\u0061",
        "\\n",
        "%3D",
        "\uff50",
        "\x00a",
    ),
    *(
        "password",
        "token",
        "secret",
        "key",
        "password: ",
        "password=",
        "password=[",
        "password: |\n",
        "secret: >-\n",
        "tokens: [",
    ),
    *(
        '"tokens": {',
        '"password": ',
        '"name": "password", ',
        '"value": ',
        "name: password\n",
        "<password>",
        "<td>password</td>",
    ),
    *("name  password  key\n",),
    *(
        "id,name,password\n",
        "password,",
        "password|",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "kind: Secret\n",
        "data:\n",
    ),
    *(
        '"kty": "RSA"',
        "a",
        "x1A",
        "none",
        "***",
        "the is of ",
        "no x=",
        "<a> ",
        "files sss ",
        "a://b:c",
        "@",
        "C=",
        "h:1,password=",
    ),
    *(
        "Enter password:\n",
        "-u a -p ",
        "--password ",
        "enable secret 5 ",
        "md5 ",
        "7 ",
        "is ",
        "[REDACTED]",
        '" + "',
        "eyJ",
        "QUJDZGVmZ2hpamtsbW5v",
    ),
]


@pytest.mark.parametrize("seed", sample(range(60), 6))
def test_whatever_is_repeated_the_time_grows_as_the_length_does(seed: int) -> None:
    source = random.Random(seed)
    head, unit, end = (
        "".join(source.choices(FRAGMENTS, k=source.randint(*count))) for count in ((0, 2), (1, 5), (0, 2))
    )
    short, long = (seconds(head + unit * (size // len(unit)) + end) for size in (8_000, 32_000))
    assert long < 8 * max(short, 0.04), (head, unit, end)
