"""Each demand of the specifications names a test that is there, or says how and why the product differs."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "requirements.md"
ROW = re.compile(r"\| ([A-Z]-\d+) \| (.+) \| (.*) \|")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
SHORTEST_REASON = 20
ROWS = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
DEMANDS = [match.groups() for row in ROWS if (match := ROW.fullmatch(row))]


@cache
def functions_of(path: str) -> set[str]:
    """Names of the functions of a module, and of those in its classes."""
    body = ast.parse((ROOT / path).read_text(encoding="utf-8")).body if (ROOT / path).is_file() else []
    body += [node for owner in body if isinstance(owner, ast.ClassDef) for node in owner.body]
    return {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@cache
def decisions() -> set[str]:
    """The anchors of the page's headings, as GitHub makes them."""
    text = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def fault_of(cell: str) -> str | None:
    if cell.startswith("deviation: "):
        unknown = set(re.findall(r"decisions\.md#([\w-]+)", cell)) - decisions()
        gone = [path for path in re.findall(r"`(tests/[\w/]+\.py)", cell) if not (ROOT / path).is_file()]
        return (
            f"is not there: {unknown or gone}" if unknown or gone else None if len(cell) > SHORTEST_REASON else "why?"
        )
    if TEST.sub("", cell).strip() or not cell:
        return "names neither a test nor a deviation"
    missing = [name for path, name in TEST.findall(cell) if name not in functions_of(path)]
    return f"no such test: {missing}" if missing else None


def test_each_demand_names_a_test_or_a_deviation() -> None:
    assert {identifier: fault for identifier, _, cell in DEMANDS if (fault := fault_of(cell))} == {}


def test_each_row_is_read_and_each_id_stands_once() -> None:
    tables = sum(row.startswith("| id |") for row in ROWS)
    assert len(DEMANDS) == len(ROWS) - 2 * tables
    assert [identifier for identifier, count in Counter(row[0] for row in DEMANDS).items() if count > 1] == []


def test_what_is_wrong_with_a_row_is_found() -> None:
    cells = [
        "",
        "open: later",
        "`tests/test_docs.py::test_no_such`",
        "`tests/no.py::test_x`",
        "deviation: ",
        "some words",
    ]
    cells += ["deviation: [a heading](decisions.md#that-is-not-there)", "deviation: see the rows of `tests/no_such.py`"]
    assert [cell for cell in cells if fault_of(cell) is None] == []
