"""However much a program prints: what is shown is what redacting all of it would show, in a bounded time."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.shell import explain, redact, truncate
from ghost.shell.record.command_output import Output, process_output
from ghost.shell.record.truncation import WINDOW, shorten
from ghost.shell.run.execution import STDERR_LIMIT, STDOUT_LIMIT, Captured
from tests.each_row import each
from tests.exhaustive import examples, sample

NOTHING = Captured()
PASSWORD = "h7Gq-tR4w9Zk2"
PEM = "\n".join(
    ["-----BEGIN RSA PRIVATE KEY-----", *["MIIEowIBAAKCAQEAvx7u" * 3] * 300, "-----END RSA PRIVATE KEY-----"]
)


def processed(text: str) -> Output:
    return process_output(Captured.of(text, STDOUT_LIMIT), NOTHING, None)


@pytest.fixture
def parts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """To redact all of any output takes too long."""
    monkeypatch.setattr("ghost.shell.record.command_output._WHOLE_SECONDS", 0.0)


def log(lines: int) -> str:
    return "\n".join(f"14:32:00.{n:06} INFO session {n} of 10.0.1.{n % 250} password={PASSWORD}" for n in range(lines))


def test_a_cut_answer_of_az_names_the_option_that_shows_the_next_rows() -> None:
    rows = Captured.of(
        json.dumps({"value": [{"name": f"rule{n}", "text": "x" * 900} for n in range(106)]}), STDOUT_LIMIT
    )
    read = ("az", "network", "nsg", "list", "-g", "rg")
    for asked, next_rows in (
        ((), "--query 'value[15:30]'"),
        (("--query", "[].{value:securityRules}"), "--query '[].{value:securityRules} | value[15:30]'"),
    ):
        metadata = process_output(rows, NOTHING, None, (*read, *asked)).metadata
        assert metadata["narrowing_query"] == next_rows
        assert explain(f"{' '.join(read)} {next_rows}")["classification"] == "SAFE"
    assert "narrowing_query" not in process_output(rows, NOTHING, None, ("curl", "http://a/")).metadata


TEXTS = {
    "a log": log(13_000),
    "long lines": "\n".join(f"{n} {'a b ' * 6_000} password={PASSWORD}" for n in range(60)),
    "one line": f"a password={PASSWORD} " * 40_000,
    "a key at its end": log(13_000) + "\n" + PEM,
    "a key that never ends": log(13_000) + "\n" + PEM[:15_000],
    "a table": "Name    Password\n------  ------\n" + "\n".join(f"host{n}  password={PASSWORD}" for n in range(34_000)),
    "an array": json.dumps([{"n": n, "adminPassword": PASSWORD, "text": "x" * 50} for n in range(20_000)]),
    "an object": json.dumps({f"k{n}": {"password": PASSWORD, "list": list(range(4_000))} for n in range(60)}),
}


@pytest.mark.usefixtures("parts_only")
@each("kind", sample(TEXTS, 2))
def test_of_a_long_output_the_same_is_shown_as_where_all_of_it_were_redacted(kind: str) -> None:
    text = TEXTS[kind]
    assert len(text) > 2 * WINDOW
    output = processed(text)
    assert (output.full, output.missing) == (None, "redacting all of it takes more than 45 s")
    expected, metadata = truncate(redact(text)[0])
    if kind == "a key at its end":  # a key becomes one line, and lines are counted before
        assert output.text.splitlines()[:20] == expected.splitlines()[:20]
        assert output.text.splitlines()[21:] == expected.splitlines()[21:]
    elif kind == "an array":
        assert json.loads(output.text) == json.loads(expected)
    else:
        assert output.text.splitlines()[-1][:40] == expected.splitlines()[-1][:40]
        assert len(output.text.splitlines()) == len(expected.splitlines())
    assert PASSWORD not in output.text
    assert "MIIEowIBAAKCAQEA" not in output.text
    same = ("output_type", "truncation_applied", "items_total", "items_shown", "lines_shown")
    assert {k: output.metadata.get(k) for k in same} == {k: metadata.get(k) for k in same}
    assert output.metadata["total_bytes"] == len(text)
    assert output.metadata["total_lines"] == len(text.splitlines())


@each("unit", sample(["key=", "h:1,password=,", '"', "eyJ", "-----BEGIN", "[{", "a\n", "\x1b[1m", "x"], 2))
def test_hostile_output_stays_within_the_budget(unit: str) -> None:
    text = unit * (2 * STDERR_LIMIT // len(unit))
    output = processed(text)
    assert len(output.text) <= 16_000
    assert output.metadata["total_bytes"] == len(text)


def test_of_a_line_that_began_before_what_was_kept_nothing_is_shown() -> None:
    text = f"{'x' * 2_000_000}password={PASSWORD * 40_000}\nlast line"
    output = process_output(Captured.of(text, 1_000_000), NOTHING, None)
    assert PASSWORD[:6] not in output.text
    assert output.text.endswith("last line")
    whole_line = process_output(Captured.of(PASSWORD * 200_000, 1_000_000), NOTHING, None)
    assert "bytes omitted]" in whole_line.text


def test_what_is_written_to_standard_error_is_redacted_and_not_cut() -> None:
    errors = log(1_000)
    output = process_output(NOTHING, Captured.of(errors, STDERR_LIMIT), None)
    assert 16_000 < len(errors) < STDERR_LIMIT
    assert len(output.stderr.splitlines()) == 1_000
    assert PASSWORD not in output.stderr


def test_of_endless_errors_the_beginning_and_the_end_are_kept() -> None:
    output = process_output(NOTHING, Captured.of(f"first\n{log(30_000)}\nlast", STDERR_LIMIT), None)
    assert output.stderr.startswith("first\n")
    assert output.stderr.endswith("\nlast")
    assert "bytes omitted]" in output.stderr
    assert len(output.stderr) < STDERR_LIMIT
    assert PASSWORD not in output.stderr


@settings(max_examples=examples(8))
@given(
    st.lists(st.sampled_from(["a" * 3_000, "b\n" * 400, "\n", f"password={PASSWORD} ", '{"', "x\ty\n"]), max_size=60),
    st.integers(20, 60),
)
def test_foreshortening_keeps_the_first_and_last_lines(parts: list[str], times: int) -> None:
    text = "".join(parts) * times
    shortened, extent = shorten(text)
    if extent is None:
        assert shortened == text
        return
    assert len(shortened) <= 2 * WINDOW + 100_000
    lines, original = shortened.splitlines(), text.splitlines()
    assert [line[:16_000] for line in lines[:20]] == [line[:16_000] for line in original[:20]]
    assert [line[:16_000] for line in lines[-10:]] == [line[:16_000] for line in original[-10:]]


def test_an_empty_last_line_of_a_long_output_stays() -> None:
    assert shorten("b\n" * WINDOW * 2 + "\n")[0].endswith("b\n\n")


def secret(n: int) -> str:
    return f"q7Rk{n:06}Lm9Pw"


def rows(form: str, count: int) -> str:
    return "".join(form.format(n=n, secret=secret(n)) for n in range(count))


OPENED = {
    "an aligned table below a heading": ("Report\n\nid      username      password\n", "{n:<8}user{n:<10}{secret}\n"),
    "an aligned table below a heading line": (
        "Report:\nid      username      password\n",
        "{n:<8}user{n:<10}{secret}\n",
    ),
    "the data of a Secret": ("kind: Secret\ndata:\n", "  k{n}: {secret}\n"),
    "two columns": ("name,password\n", "u{n},{secret}\n"),
    "a block of a password": ("passwords:\n  first: a\n  password: |\n", "    {secret}xxxxxx\n"),
    "items below a name": ("passwords:\n", "- {secret}\n"),
    "tabs": ("Report\n\nid\tusername\tpassword\n", "{n}\tuser{n}\t{secret}\n"),
    "bars": ("| id | password |\n", "| {n} | {secret} |\n"),
}


@pytest.mark.usefixtures("parts_only")
@each("kind, before", sample(itertools.product(OPENED, (0, 1_000_000)), 4))
def test_the_end_of_a_long_output_is_read_below_what_opens_it(kind: str, before: int) -> None:
    opening, row = OPENED[kind]
    text = "a line\n" * (before // 7) + "\n" * bool(before) + opening + rows(row, 60_000)
    assert len(text) > 2 * WINDOW
    output = processed(text)
    assert "q7Rk" not in output.text
    assert output.metadata["total_lines"] == text.count("\n")


@each("kind", sample(OPENED, 1))
def test_the_end_of_an_endless_output_is_read_below_what_opens_it(kind: str) -> None:
    opening, row = OPENED[kind]
    assert "q7Rk" not in processed(opening + rows(row, 17_000_000 // len(row.format(n=1, secret=secret(1))))).text


@pytest.mark.usefixtures("parts_only")
def test_lines_below_a_table_that_has_ended_stay() -> None:
    text = f"id,username,password\n1,bob,{secret(1)}\n\n" + "host-01,10.0.2.4,ready\n" * 60_000
    assert processed(text).text.splitlines()[-10:] == ["host-01,10.0.2.4,ready"] * 10


def test_output_that_takes_too_long_is_not_shown_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ghost.shell.record.command_output._MOST_SECONDS", 0.02)
    with pytest.raises(TimeoutError):
        processed("key=password " * 20_000)
    assert processed("one line").text == "one line"
    assert PASSWORD not in redact(f"password={PASSWORD}\n" * 2_000)[0]  # nor does that bound hold elsewhere
