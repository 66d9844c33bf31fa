"""A corpus as one test: `@each(names, rows)` runs the test for every row and lists those that fail."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

MOST_SHOWN = 20


def each(names: str, rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `pytest.mark.parametrize`, but one test for all rows. Fixtures are shared by them."""
    keys = [name.strip() for name in names.split(",")]
    listed = list(rows)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def over_all_rows(**others: Any) -> None:
            failures = []
            for row in listed:
                values = row if len(keys) > 1 else (row,)
                try:
                    test(**dict(zip(keys, values, strict=True)), **others)
                except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 - listed below
                    failures.append(f"{row!r:.300}: {type(failure).__name__}: {failure}")
            if failures:
                pytest.fail(
                    "\n".join([f"{len(failures)} of {len(listed)} rows:", *failures[:MOST_SHOWN]]), pytrace=False
                )

        left = [one for name, one in signature.parameters.items() if name not in keys]
        over_all_rows.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return over_all_rows

    return decorate
