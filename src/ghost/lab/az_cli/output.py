"""Output formats of the Azure CLI: `-o json`, `tsv`, `table`, `yaml`, `none`. A null result prints nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

TABLE_SKIPS = frozenset({"id", "type", "etag", "revision"})


def render(result: Any, output: str) -> str:
    """Return the text for standard output, with its final line feed."""
    if result is None or output == "none":
        return ""
    if output == "tsv":
        return _tsv(result)
    if output == "table":
        return _table(result)
    if output in ("yaml", "yamlc"):
        return "\n".join(_yaml(result)) + "\n"
    return json.dumps(result, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def in_order(value: Any) -> Any:
    """Return objects with fields sorted by name, like the CLI's; tags keep their order."""
    if isinstance(value, Mapping):
        return {name: value[name] if name == "tags" else in_order(value[name]) for name in sorted(value)}
    return [in_order(item) for item in value] if isinstance(value, list) else value


def _tsv(result: Any) -> str:
    rows = result if isinstance(result, list) else [result]
    return "".join(_tsv_row(row) + "\n" for row in rows)


def _tsv_row(row: Any) -> str:
    if isinstance(row, Mapping):
        return "\t".join(_tsv_cell(cell) for cell in row.values())
    return "\t".join(map(_tsv_cell, row)) if isinstance(row, list) else _tsv_cell(row)


def _tsv_cell(cell: Any) -> str:
    """Return a cell; a list gives its length and an object nothing, so the number of columns is constant."""
    if isinstance(cell, list):
        return str(len(cell))
    return "" if isinstance(cell, Mapping) else str(cell)


def _table(result: Any) -> str:
    rows = [_table_row(row) for row in (result if isinstance(result, list) else [result])]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    if not columns:
        return ""
    widths = [max(len(column), *(len(row.get(column, "")) for row in rows)) for column in columns]
    lines = [columns, ["-" * width for width in widths], *([row.get(column, "") for column in columns] for row in rows)]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n" for line in lines
    )


def _table_row(row: Any) -> dict[str, str]:
    if isinstance(row, list):
        return {f"Column{index}": str(cell) for index, cell in enumerate(row, 1)}
    if not isinstance(row, Mapping):
        return {"Result": str(row)}
    return {
        name[:1].upper() + name[1:]: str(cell)
        for name, cell in row.items()
        if name not in TABLE_SKIPS and not isinstance(cell, (Mapping, list)) and cell is not None
    }


def _yaml(value: Any, indent: str = "") -> list[str]:
    if isinstance(value, Mapping) and value:
        named = sorted(value.items())
        return [line for name, item in named for line in _yaml_item(f"{indent}{name}:", item, indent + "  ")]
    if isinstance(value, list) and value:
        lines: list[str] = []
        for item in value:
            inner = _yaml(item, indent + "  ")
            lines += [f"{indent}- {inner[0].lstrip()}", *inner[1:]]
        return lines
    return [indent + json.dumps(value, ensure_ascii=False)]


def _yaml_item(key: str, value: Any, indent: str) -> list[str]:
    nested = _yaml(value, indent)
    return [key, *nested] if isinstance(value, (Mapping, list)) and value else [f"{key} {nested[0].lstrip()}"]
