"""The unmodified Azure CLI as a process whose imports are made, most of a short command. Az's own Python runs it."""

from __future__ import annotations

import importlib
import runpy
import sys
from collections.abc import Sequence

from tests.starter import serve

PRELOADED = (
    *("azure.cli.core", "azure.cli.core.commands", "azure.cli.core.aaz", "azure.cli.core._profile"),
    *("azure.cli.core.telemetry", "azure.core.polling", "msal", "requests"),
    *(f"azure.cli.command_modules.{name}.commands" for name in ("network", "resource", "storage", "vm")),
)

POLL_MS = 20.0
"""How often az looks whether an operation is done, in place of every half second."""


def _main(words: Sequence[str]) -> None:
    sys.argv = ["az", *words]
    runpy.run_module("azure.cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    for module in PRELOADED:
        importlib.import_module(module)
    from azure.cli.core.commands import LongRunningOperation

    LongRunningOperation.__init__.__defaults__ = ("", "", POLL_MS, None)
    serve(int(sys.argv[1]), _main, learn=True)
