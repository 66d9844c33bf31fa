"""Tables of settings are read against a schema, and an error names the file and the key."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal

import pytest

import ghost
from ghost.errors import ConfigurationError, LabError
from ghost.policy import from_dict, load_policy, to_dict


class Side(StrEnum):
    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True)
class Limit:
    name: str
    seconds: float = 5.0
    side: Side = Side.LEFT
    unit: Literal["s", "ms"] = "s"
    tags: frozenset[str] = frozenset()
    note: str | None = None


SCHEMA = dict[str, tuple[Limit, ...]]


def written(tmp_path: Path, text: str) -> Path:
    (tmp_path / "limits.toml").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_table_is_built_as_its_schema_says(tmp_path):
    place = written(tmp_path, 'limits = [{ name = "a", seconds = 1, side = "right", tags = ["x"] }, { name = "b" }]')
    assert load_policy(place, "limits.toml", SCHEMA)["limits"] == (
        Limit("a", 1.0, Side.RIGHT, tags=frozenset({"x"})),
        Limit("b"),
    )
    assert load_policy(place, "limits.toml")["limits"][1] == {"name": "b"}
    assert load_policy(str(place / "module.py"), "limits.toml", SCHEMA)["limits"][1] == Limit("b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("limits = [{}]", r"limits\.toml\.limits\[0\]: the field 'name' is missing"),
        ('limits = [{ name = "a", second = 1 }]', r"limits\.toml\.limits\[0\]: unknown field 'second'; known are name"),
        ('limits = [{ name = "a", seconds = "1" }]', r"limits\.toml\.limits\[0\]\.seconds: expected float, got '1'"),
        ('limits = [{ name = "a", seconds = true }]', r"limits\[0\]\.seconds: expected float, got True"),
        ('limits = [{ name = "a", side = "up" }]', r"limits\[0\]\.side: 'up' is not one of 'left', 'right'"),
        ('limits = [{ name = "a", unit = "h" }]', r"limits\[0\]\.unit: 'h' is not one of 's', 'ms'"),
        ("limits = [", r"limits\.toml: "),
    ],
)
def test_an_error_names_the_file_and_the_key(tmp_path, text, message):
    with pytest.raises(ConfigurationError, match=message):
        load_policy(written(tmp_path, text), "limits.toml", SCHEMA)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"absent\.toml"):
        load_policy(tmp_path, "absent.toml")


def test_data_from_elsewhere_is_read_and_written_alike_with_an_error_of_its_room():
    limit = Limit("a", note="n")
    assert from_dict(Limit, {"name": "a", "note": "n"}, "limit") == limit
    assert from_dict(Limit, {**to_dict(limit), "tags": []}, "limit") == limit
    with pytest.raises(LabError, match="limit: expected dict, got 1"):
        from_dict(Limit, 1, "limit", LabError)


def test_no_line_of_a_table_is_longer_than_160_characters():
    tables = sorted(Path(ghost.__file__).parent.rglob("*.toml"))
    long = [
        f"{table.name}:{number}"
        for table in tables
        for number, line in enumerate(table.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 160
    ]
    assert len(tables) > 60
    assert long == []
