"""Imports each module of `ghost` before any other of its room, in a fork: `python -m tests.first_imports`.

Prints what cannot be imported first, and why, or what imports in a circle. What is imported before in any case stays
imported: what the module itself imports, its packages, the lower rooms, which import from no higher one (the import
contract), and the libraries.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import sys
import tomllib
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[1]
Imports = dict[str, list[str]]
"""The modules of its room that each module imports while it is imported itself, its own packages left out."""


def rooms() -> Iterator[str]:
    """From the lowest floor up."""
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    for floor in reversed(settings["tool"]["importlinter"]["contracts"][0]["layers"]):
        yield from floor.split(" | ")


def forked(work: Callable[[], Any]) -> Any:
    """What the work returns, None where it failed; imports here the libraries that it imported."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        done, before = None, set(sys.modules)
        try:
            done = work()
        except BaseException:  # noqa: BLE001 - whatever it is, it is told
            traceback.print_exc()
        libraries = [name for name in sys.modules if name not in before and name.split(".")[0] != "ghost"]
        with os.fdopen(writing, "w") as told:
            json.dump([done, libraries], told)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        done, libraries = json.load(told)
    for library in libraries:
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    os.waitpid(pid, 0)
    return done


def import_all(room: str) -> Imports:
    """Raises ImportError where modules import each other in a circle: whether they can depends on which is first."""
    imports = defaultdict(set)
    original = builtins.__import__

    def recorded(name, importing=None, local=None, names=(), level=0):
        module = original(name, importing, local, names, level)
        importer = (importing or {}).get("__name__", "")
        for other in [*ancestors(name), name, *(f"{name}.{each}" for each in names or ())] if begun(importer) else ():
            if other in sys.modules and within(other, room) and not within(importer, other):
                imports[importer].add(other)
                if begun(other):
                    raise ImportError(f"{importer} imports {other}, which imports it")
        return module

    builtins.__import__ = recorded
    try:
        module = importlib.import_module(room)
        for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{room}."):
            importlib.import_module(found.name)
    finally:
        builtins.__import__ = original
    return {name: sorted(imports[name]) for name in sys.modules if within(name, room)}


def ancestors(name: str) -> list[str]:
    return [name[:end] for end, letter in enumerate(name) if letter == "."]


def within(name: str, package: str) -> bool:
    return f"{name}.".startswith(f"{package}.")


def begun(name: str) -> bool:
    """Whether the module is being imported."""
    return name in sys.modules and getattr(sys.modules[name].__spec__, "_initializing", False)


def followers(room: str, imports: Imports) -> Imports:
    """A tree: each module of the room below that one of what it imports that imports the most in its turn."""

    def direct(name: str) -> list[str]:
        return imports[name] if name == room else [*imports[name], name.rpartition(".")[0]]

    @functools.cache
    def count(name: str) -> int:
        found, left = {name}, [name]
        while left:
            new = set(direct(left.pop())) - found
            found |= new
            left += new
        return len(found)

    tree = defaultdict(list)
    for name in imports.keys() - {room}:
        others = [other for other in direct(name) if not other.startswith(f"{name}.")]
        tree[max(others, key=count)].append(name)
    return tree


def import_each_first(name: str, tree: Mapping[str, list[str]]) -> int:
    """The module, then those that follow it, in forks but for the last: what is imported by then, they import in any
    case. How many could be imported."""
    importlib.import_module(name)
    count, left, others = 1, [*tree.get(name, ())], []
    while left:
        other = left.pop()
        if other in sys.modules:  # it imports no more than what is here
            count += 1
            left += tree.get(other, ())
        else:
            others.append(other)
    gc.freeze()
    count += sum(forked(lambda other=other: import_each_first(other, tree)) or 0 for other in others[1:])
    return count + sum(import_each_first(other, tree) for other in others[:1])


def main() -> int:
    for room in rooms():
        imports = forked(lambda room=room: import_all(room))
        if imports is None:
            return 1
        tree = followers(room, imports)
        count = forked(lambda room=room, tree=tree: import_each_first(room, tree)) or 0
        if count != len(imports):
            print(f"{len(imports) - count} modules of {room} cannot be imported first", file=sys.stderr)
            return 1
        import_all(room)
    return 0


if __name__ == "__main__":
    sys.exit(main())
