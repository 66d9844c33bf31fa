"""The unmodified Azure CLI as a process whose imports are made, most of a short command. Az's own Python runs it."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence

from tests.starter import serve


def _main(words: Sequence[str]) -> None:
    sys.argv = ["az", *words]
    runpy.run_module("azure.cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    serve(int(sys.argv[1]), _main, learn=True)
