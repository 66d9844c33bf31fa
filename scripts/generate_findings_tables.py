"""Write the generated tables of docs/findings.md (kinds, cases and thresholds) from the TOML files of the rules.

    python scripts/generate_findings_tables.py

`tests/pcap/test_finding_cases.py` checks that the page is current.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "findings.md"
RULES = ROOT / "src" / "ghost" / "pcap" / "findings"


def main() -> None:
    PAGE.write_text(current(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def current(page: str) -> str:
    """Return the page with every table made anew. Raises ValueError where a marker is missing."""
    for name, rows in {"kinds": kinds(), "cases": cases(), "thresholds": thresholds()}.items():
        begin, end = f"<!-- {name}: generated -->", f"<!-- {name}: end -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"{PAGE.name} must hold one block {begin} ... {end}")
        before, after = page.split(begin)[0], page.split(end)[1]
        page = before + "\n".join([begin, *rows, end]) + after
    return page


def kinds() -> Iterable[str]:
    yield from _head("kind", "evidence", "blame", "severity", "what it is not")
    for kind, row in _table("kinds.toml").items():
        yield _row(f"`{kind}`", row["evidence"], row["blame"], row["severity"], row["excludes"])


def cases() -> Iterable[str]:
    yield from _head("case", "kind", "blame", "protocol", "cause")
    for case, row in _table("findings.toml").items():
        yield _row(
            f"`{case}`", f"`{row['kind']}`", row.get("blame", "by rule"), row.get("protocol", "by rule"), row["cause"]
        )


def thresholds() -> Iterable[str]:
    yield from _head("threshold", "value", "reason")
    for section, entries in _table("thresholds.toml").items():
        for name, entry in entries.items():
            yield _row(f"`{section}.{name}`", str(entry["value"]), entry["reason"])


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((RULES / name).read_text(encoding="utf-8"))


def _head(*columns: str) -> list[str]:
    return [_row(*columns), _row(*("---" for _ in columns))]


def _row(*cells: str) -> str:
    return f"| {' | '.join(' '.join(cell.split()) for cell in cells)} |"


if __name__ == "__main__":
    main()
