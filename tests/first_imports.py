"""Imports each module of `ghost` before any other of its room, in a fork: `python -m tests.first_imports`.

Prints what cannot be imported first, and why. What is imported before in any case stays imported: a module's packages,
the lower rooms, which import from no higher one (the import contract), and the libraries.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pkgutil
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]


def rooms() -> Iterator[str]:
    """From the lowest floor up."""
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    for floor in reversed(settings["tool"]["importlinter"]["contracts"][0]["layers"]):
        yield from floor.split(" | ")


def forked(work: Callable[[], object]) -> bool:
    """Whether it went well; imports here the libraries that it imported."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        status, before = 0, set(sys.modules)
        try:
            work()
        except BaseException:  # noqa: BLE001 - whatever it is, it is told
            traceback.print_exc()
            status = 1
        libraries = (name for name in sys.modules if name not in before and name.split(".")[0] != "ghost")
        os.write(writing, " ".join(libraries).encode())
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as imported:
        for library in imported.read().split():
            with contextlib.suppress(ImportError):
                importlib.import_module(library)
    return os.waitpid(pid, 0)[1] == 0


def import_each_first(name: str) -> None:
    """The module; if it is a package, also each that lies in it, after the package alone."""
    module = importlib.import_module(name)
    inner = pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}.")
    left = [found.name for found in inner if found.ispkg or found.name not in sys.modules]
    gc.freeze()
    if sum(not forked(lambda each=each: import_each_first(each)) for each in left):
        raise ImportError(f"one that lies in {name} cannot be imported first")


def import_all(name: str) -> None:
    module = importlib.import_module(name)
    for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{name}."):
        importlib.import_module(found.name)


def main() -> int:
    for room in rooms():
        forked(lambda room=room: import_all(room))  # for its libraries
        if not forked(lambda room=room: import_each_first(room)):
            return 1
        import_all(room)
    return 0


if __name__ == "__main__":
    sys.exit(main())
