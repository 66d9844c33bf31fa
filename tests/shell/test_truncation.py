"""Output stays within the budget, whatever it is; below it nothing is cut, and JSON stays JSON."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.shell import truncate
from ghost.shell.record.bounded_json import is_deep, is_too_large, read_first, read_json, written
from ghost.shell.record.truncation import ELISION, MAX_CHARACTERS, MAX_LINES, shorten, truncate_shortened
from tests.each_row import each
from tests.exhaustive import EXHAUSTIVE, examples, sample

RECORDED = Path(__file__).parents[3] / "shared" / "data" / "azure-recorded"


def within_budget(text: str) -> bool:
    return len(text.splitlines()) <= MAX_LINES and len(text) <= MAX_CHARACTERS


def test_nothing_is_cut_below_the_budget() -> None:
    text = "\n".join(f"line {n}" for n in range(200))
    assert truncate(text) == (
        text,
        {
            "truncation_applied": False,
            "total_lines": 200,
            "lines_shown": 200,
            "total_bytes": len(text),
            "output_type": "text",
        },
    )


def test_an_array_keeps_its_first_rows_and_their_number() -> None:
    rows = [{"n": n, "text": "x" * 50} for n in range(500)]
    text, metadata = truncate(json.dumps(rows))
    *items, note = json.loads(text)
    assert items == rows[: len(items)]
    assert len(items) >= 100
    assert note == f"[truncated: showing {len(items)} of 500 items]"
    assert metadata["output_type"] == "json_array"
    assert (metadata["items_total"], metadata["items_shown"]) == (500, len(items))
    assert metadata["truncation_applied"] is True
    assert metadata["narrowing_query"] == f"[{len(items)}:{2 * len(items)}]"


@each("depth", range(4))
def test_a_long_array_in_an_object_keeps_its_rows_and_names_the_query_for_the_next(depth: int) -> None:
    rules: Any = [
        {"name": f"rule-{n}", "priority": n, "ranges": ["0-65535"] * 99, "text": "x" * 200} for n in range(106)
    ]
    value = {"a-b": rules}
    paths = ['"a-b"[{}]', 'value[]."a-b"[] | [{}]', 'x.value[]."a-b"[] | [{}]', 'value[].x.value[]."a-b"[] | [{}]']
    for level in range(depth):
        value = {"x": value} if level % 2 else {"value": [value]}
    text, metadata = truncate(json.dumps(value, indent=2))
    shown = json.loads(text)
    for level in reversed(range(depth)):
        shown = shown["x"] if level % 2 else shown["value"][0]
    *rows, note = shown["a-b"]
    assert [row["name"] for row in rows] == [f"rule-{n}" for n in range(len(rows))]
    assert 20 <= len(rows) < 106
    assert note == f"[truncated: showing {len(rows)} of 106 items]"
    assert rows[0]["ranges"][-1] == "[truncated: showing 5 of 99 items]"
    assert metadata["narrowing_query"] == paths[depth].format(f"{len(rows)}:{2 * len(rows)}")


def test_json_that_fits_once_it_is_compact_loses_nothing() -> None:
    value = {"effectiveSecurityRules": [{"n": n, "access": "Allow"} for n in range(150)]}
    text, metadata = truncate(json.dumps(value, indent=2))
    assert json.loads(text) == value
    assert metadata["truncation_applied"] is False


@pytest.mark.skipif(not RECORDED.is_dir(), reason="recorded bodies of Azure are not here")
def test_what_azure_answered_keeps_its_rows() -> None:
    for path in RECORDED.glob("*.json"):
        body = json.loads(path.read_text()).get("body")
        shown = truncate(json.dumps(body, indent=2))[0]
        assert within_budget(shown)
        if isinstance(body, dict) and body.get("value"):
            assert json.loads(shown)["value"][0].keys() == body["value"][0].keys(), path.name
            assert ELISION not in json.loads(shown)["value"][0].values(), path.name


def test_an_array_below_the_budget_says_that_it_is_whole() -> None:
    _, metadata = truncate("[1, 2, 3, 4, 5]")
    assert (metadata["items_total"], metadata["items_shown"], metadata["truncation_applied"]) == (5, 5, False)


def test_an_object_keeps_every_top_level_key() -> None:
    value = {f"key{n}": {"a": {"b": {"c": {"d": 1}}}, "list": list(range(1000))} for n in range(30)}
    text, metadata = truncate(json.dumps(value, indent=2))
    shown = json.loads(text)
    assert list(shown) == list(value)
    assert shown["key0"]["a"] == value["key0"]["a"]
    assert shown["key0"]["list"] == [*range(100), "[truncated: showing 100 of 1000 items]"]
    assert metadata["output_type"] == "json_object"
    assert "items_total" not in metadata


def test_a_table_keeps_its_header_and_first_rows() -> None:
    rows = [f"rule{n:<12}  10.0.{n % 256}.0/24   Allow" for n in range(900)]
    text, metadata = truncate(
        "\n".join(["Name              Prefix        Access", "----------------  ------------  ------", *rows])
    )
    lines = text.splitlines()
    assert lines[0].startswith("Name")
    assert lines[2] == rows[0]
    shown = len(lines) - 3
    assert lines[-1] == f"[truncated: showing {shown} of 900 rows]"
    assert metadata["output_type"] == "tabular"
    assert within_budget(text)


def test_text_keeps_its_first_twenty_and_last_ten_lines() -> None:
    text, metadata = truncate("\n".join(f"line {n}" for n in range(1000)))
    lines = text.splitlines()
    assert lines[:20] == [f"line {n}" for n in range(20)]
    assert lines[20] == "[truncated: 970 lines omitted]"
    assert lines[21:] == [f"line {n}" for n in range(990, 1000)]
    assert (metadata["total_lines"], metadata["lines_shown"]) == (1000, 30)


def test_one_endless_line_is_cut() -> None:
    text, metadata = truncate("x" * 1_000_000)
    assert within_budget(text)
    assert text.endswith("characters omitted]")
    assert metadata["truncation_applied"] is True


@each(
    "text",
    [
        json.dumps({f"key number {n}" * 10: n for n in range(5000)}),
        json.dumps([["x" * 100_000] * 10] * 10),
        json.dumps({"a": "\ud800" * 20_000}),
        json.dumps([1e300] * 9000),
        "[" * 50_000 + "]" * 50_000,
        "[1e999," + "1," * 9000 + "1]",
        "[NaN]" * 9000,
        "{" * 20_000,
        "\u2028" * 20_000,
        "\n" * 20_000,
        "-" * 30 + "\n" + "--- ---\n" + "a  b\n" * 4000,
        "a\tb\n" * 4000,
    ],
)
def test_no_shape_of_output_exceeds_the_budget(text: str) -> None:
    shortened, metadata = truncate(text)
    assert within_budget(shortened)
    assert metadata["truncation_applied"] is True
    if metadata["output_type"].startswith("json"):
        json.loads(shortened, parse_constant=pytest.fail)
        shortened.encode("utf-8")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=40), inner, max_size=12),
    max_leaves=30,
)


@settings(max_examples=examples(30))
@given(
    value=st.lists(JSON, max_size=4) | st.dictionaries(st.text(max_size=40), JSON, max_size=8),
    times=st.integers(1, 300),
)
def test_valid_json_stays_valid_and_within_the_budget(value: Any, times: int) -> None:
    text = json.dumps(
        value * times if isinstance(value, list) else {f"{k}{n}": v for k, v in value.items() for n in range(times)}
    )
    shortened, metadata = truncate(text)
    assert within_budget(shortened)
    if metadata["output_type"].startswith("json"):
        assert type(json.loads(shortened)) is type(value)
    if within_budget(text):
        assert shortened == text


@settings(max_examples=examples(30))
@given(
    st.lists(st.text(max_size=80) | st.sampled_from(["----  ----", "a  b  c", "{", "[1,", "x" * 5000]), max_size=30),
    st.integers(1, 60),
)
def test_any_text_ends_within_the_budget(lines: list[str], times: int) -> None:
    text = "\n".join(lines * times)
    shortened, metadata = truncate(text)
    assert within_budget(shortened)
    assert metadata["truncation_applied"] is not within_budget(text)


LARGE = {
    "numbers, deep": lambda size: "[" * 900 + "1," * (size // 2) + "1" + "]" * 900,
    "numbers, a hundred deep": lambda size: "[" * 100 + "1," * (size // 2) + "1" + "]" * 100,
    "objects in each other": lambda size: '{"a":' * 300 + "[" + "1," * (size // 2) + "1]" + "}" * 300,
    "lists": lambda size: "[" + "[]," * (size // 3) + "0]",
    "objects": lambda size: "[" + '{"":0},' * (size // 7) + "0]",
    "an object of objects": lambda size: '{"value":[' + '{"":0},' * (size // 7) + "0]}",
    "no JSON": lambda size: "[" + '{"":0},' * (size // 7),
    "a long item": lambda size: "[" + "[" + '{"":0},' * (size // 7) + "0],1]",
    "lines": lambda size: "\n" * size,
}


@each("kind", sample(LARGE, 4))
def test_the_memory_is_bounded_however_much_an_output_holds(kind: str) -> None:
    text = LARGE[kind](1_500_000 if EXHAUSTIVE else 400_000)
    tracemalloc.start()
    try:
        shortened, extent = shorten(text)
        shown = truncate(shortened) if extent is None else truncate_shortened(shortened, extent)
        assert tracemalloc.get_traced_memory()[1] < 64_000_000
    finally:
        tracemalloc.stop()
    assert within_budget(shown[0])
    assert shown[1]["truncation_applied"] is True


def test_of_an_array_that_is_too_large_to_be_read_the_first_items_are_shown_and_all_counted() -> None:
    items = [{"n": n, "text": f"item, [{n}]"} for n in range(100_000)]
    text = json.dumps(items, indent=1)
    assert is_too_large(text)
    with pytest.raises(ValueError, match="larger"):
        read_json(text)
    assert read_first(f" {text}\n", 3) == (items[:3], 100_000)
    shortened, extent = shorten(text)
    assert extent is not None
    shown, metadata = truncate_shortened(shortened, extent)
    assert json.loads(shown) == [*items[:40], "[truncated: showing 40 of 100000 items]"]
    assert (metadata["items_total"], metadata["items_shown"]) == (100_000, 40)


@each("text", ["[1,2", "[1 2]", "[1,]", "[]", "[1] x", "[1]]", "[NaN]", "[", '["' + "x" * 300_000 + '"]'])
def test_what_is_no_array_of_short_items_is_not_read(text: str) -> None:
    with pytest.raises(ValueError):
        read_first(text, 3)


def test_writing_stops_at_the_length_and_at_what_is_deep() -> None:
    value: Any = 1
    for _ in range(48):
        value = [value]
    assert not is_deep(value)
    assert written(value, None, 97) == "[" * 48 + "1" + "]" * 48
    assert written(value, None, 96) is None
    assert is_deep([value])
    assert written([value], None, 1_000) is None
