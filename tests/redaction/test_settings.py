"""Lists of names and values, a pair a line: every secret of them goes, and no name of another setting."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.shell import redact
from tests.exhaustive import examples

Pairs = list[tuple[str, str]]


def beside(left: str, between: str, right: str, head: str = "") -> Callable[[Pairs], str]:
    """How a program writes pairs, below what stands at their head."""
    return lambda pairs: head + "".join(f"{left}{name:<16}{between}{value}{right}\n" for name, value in pairs)


LISTS = {
    "tabs": lambda pairs: "".join(f"{name}\t{value}\n" for name, value in pairs),
    "commas": lambda pairs: "name,value\n" + "".join(f"{name},{value}\n" for name, value in pairs),
    "blanks": beside("", "  ", ""),
    "az": beside("", "  ", "", "Name              Value\n----------------  ----------------\n"),
    "az, settings": beside(
        "", "  False  ", "", "Name              SlotSetting  Value\n----------------  -----  -----\n"
    ),
    "kubectl": beside("", " ", "", "NAME             VALUE\n"),
    "psql": beside(" ", "| ", "", "      name       | value \n-----------------+------\n"),
    "mysql": beside("| ", " | ", " |", "+-----+------+\n| name | value |\n+-----+------+\n"),
    "aws": beside("||  ", " |  ", "  ||", "-----\n|  DescribeTaskDefinition  |\n+----+----+\n"),
}
SECRETS = ("DB_PASSWORD", "SESSION_SECRET", "API_TOKEN", "SMTP_PASSWORD", "CLIENT_SECRET")
OTHERS = {"LOG_LEVEL": "debug", "DB_HOST": "db01.corp.example", "PORT": "8080"}
CHOSEN = (
    "Wolkenbruch44",
    "we-sign-everything-7",
    "Sommer-Sturm-31",
    "maple_Harbor!9",
    "Kiesel&Kranich88",
    "q6qlKAYmr3f7gsfZq3a0A5lGaJQ47d2",
)


@pytest.mark.parametrize("written", LISTS.values(), ids=LISTS)
@settings(max_examples=examples(60))
@given(
    names=st.permutations([*SECRETS[:3], *OTHERS]),
    values=st.permutations(CHOSEN),
    small=st.booleans(),
)
def test_every_secret_of_a_list_goes_and_every_name_stays(
    written: Callable[[Pairs], str], names: list[str], values: list[str], small: bool
) -> None:
    pairs = [(name, OTHERS.get(name, value)) for name, value in zip(names, values, strict=True)]
    text, _ = redact(written([(name.lower() if small else name, value) for name, value in pairs]))

    for name, value in pairs:
        assert (name.lower() if small else name) in text
        assert (value in text) is (name in OTHERS)
