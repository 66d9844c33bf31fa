"""Write `docs/az-table.md`, which az commands run unasked, from the tables of the policy.

python scripts/write_az_table_doc.py
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from ghost.azure import catalogue
from ghost.shell.judge.az.read_commands import reads
from ghost.shell.policy_tables import policy_table

PAGE = Path(__file__).parent.parent / "docs" / "az-table.md"

INTRODUCTION = """\
# The Azure CLI table

Which az commands run without asking. This page is written by `scripts/write_az_table_doc.py` from the tables
`src/ghost/shell/policy/az_*.toml`; edit those. The facts that they judge are `src/ghost/azure/commands.txt`.

## How it is made

    python -m venv AZ && AZ/bin/pip install azure-cli==2.91.0
    AZ/bin/python scripts/generate_az_table.py

The script loads the CLI's command table and starts none of its commands. For each command it writes the path, how it is
made with the HTTP methods it uses, and its options. The same azure-cli writes the same bytes. To take up a new CLI:
generate the table, read the diff, run the tests, and add what yields secrets to `az_risky_reads.toml`.

A command is a read when one of the rows below makes it a candidate and nothing speaks against it. The verb of a command
can make it RISKY and makes nothing SAFE. Options must be spelled in full and be listed in `az_options.toml`; a value
that begins with `@` is a local file to az and asks; nothing may be a URL. No option of one value may stand twice.

Redaction knows secrets by the names of fields, which `--query` with `-o tsv` leaves out. So a `--query` may take no
field that is named like a secret, drop no names (`*`, `values`), and rewrite no values (`map`, `join` of letters).
"""

FREE_FIELDS = """\
## What holds anything

In these fields anything may stand, secrets included, known only by the name beside them. A `--query` may take such a
field whole as JSON (where nothing else is said), or its plain fields, by name. A field that is free text asks always.
"""


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    sections = (INTRODUCTION, counts(), excluded(), projected(), FREE_FIELDS + free_fields(), by_group())
    return "\n".join(section.rstrip() + "\n" for section in sections)


def counts() -> str:
    """How many commands are candidates for each reason, and how many of those are SAFE."""
    safe = set(reads().paths())
    candidates: dict[str, list[str]] = defaultdict(list)
    for path in catalogue().lines:
        if (why := candidacy(path)) is not None:
            candidates[why].append(path)
    rows = [(why, f"{len(paths):,}", f"{len(safe.intersection(paths)):,}") for why, paths in candidates.items()]
    rows.append(("together", f"{sum(map(len, candidates.values())):,}", f"{len(safe):,}"))
    return "## How many\n\n" + table(("candidate, since it", "candidates", "SAFE"), sorted(rows))


def candidacy(path: str) -> str | None:
    command = catalogue().command(path)
    if command is None:
        return None
    if not command.methods:
        reviewed = path in reads().reviewed
        return "is listed in `az_reads.toml` after a review (declares no method)" if reviewed else None
    others = command.methods - {"GET", "HEAD"}
    if not others:
        return "uses no method but GET and HEAD"
    return "uses POST, and `az_post_reads.toml` says why nothing changes" if path in reads().post else None


def excluded() -> str:
    """The reads that ask, by the reason."""
    rows = [
        (", ".join(f"`{part}`" for part in row["path"].split(", ")), row["why"])
        for family in ("holds", "private", "acts")
        for row in policy_table("az_risky_reads.toml")[family]
    ]
    return "## Reads that ask\n\n" + table(("commands that begin with", "why"), rows)


def projected() -> str:
    """The reads that are SAFE with a `--query` of listed fields."""
    rows = []
    for row in policy_table("az_risky_reads.toml")["projected"]:
        fields = f"{len(row['fields'].split())} fields, such as {', '.join(row['shown'].split()) or 'none'}"
        whole = row.get("whole_as", "").replace(" ", ", ") or "no format"
        rows.append((", ".join(f"`{path}`" for path in row["path"].split(", ")), row["why"], fields, whole))
    heads = ("reads", "the whole answer", "SAFE in a `--query`", "whole answer SAFE as")
    return "## Reads that need a `--query` of listed fields\n\n" + table(heads, rows)


def free_fields() -> str:
    rows = [
        (
            " ".join(f"`{name}`" for name in row["fields"].split()),
            row.get("path", "everywhere"),
            row["why"],
            row.get("whole_as", "json jsonc") or "never",
        )
        for row in policy_table("az_free_fields.toml")["free"]
    ]
    return "\n" + table(("fields", "of", "why", "whole as"), rows)


def by_group() -> str:
    """Every SAFE read, by its group."""
    groups: dict[str, list[str]] = defaultdict(list)
    for path in reads().paths():
        group, _, leaf = path.rpartition(" ")
        groups[group].append(leaf)
    rows = [(f"`{group}`" if group else "", " ".join(sorted(leaves))) for group, leaves in sorted(groups.items())]
    return "## Every read that runs unasked\n\n" + table(("group", "commands"), rows)


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    return "\n".join(lines(list(heads), rows)) + "\n"


def lines(heads: list[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


if __name__ == "__main__":
    main()
