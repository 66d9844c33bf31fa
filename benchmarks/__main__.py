"""Runs every benchmark module of this directory, or those named: `python -m benchmarks classify`.

A benchmark is a module with `main() -> int`, 0 where every bound it states holds. One that needs minutes or a prepared
machine sets `ASKED_ONLY = True` and runs only when it is named.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path


def names() -> list[str]:
    found = (module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return sorted(name for name in found if not name.startswith("_"))


def main(asked: list[str]) -> int:
    unknown = sorted(set(asked) - set(names()))
    if unknown:
        print(f"There is no benchmark {', '.join(unknown)}; there are: {', '.join(names())}", file=sys.stderr)
        return 2
    failed: list[str] = []
    for name in asked or names():
        module = importlib.import_module(f"benchmarks.{name}")
        run = getattr(module, "main", None)
        if run is None or (not asked and getattr(module, "ASKED_ONLY", False)):
            continue
        print(f"## {name}", flush=True)
        if run():
            failed.append(name)
        print(flush=True)
    if failed:
        print(f"bounds not held: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
