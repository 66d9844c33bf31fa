"""`ghost` as a process that has imported what a model's brain needs, the SDKs included: they take two seconds."""

from __future__ import annotations

import atexit
import functools
import importlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.cli.ready_ghost import IN_PROCESS, main
from tests.starter import Starter, serve

ALREADY = (
    "ghost.brain.model.model_brain",
    "ghost.cli.investigation_command",
    "ghost.cli.audit_commands",
    "ghost.pcap.__main__",
    "ghost.providers.server_models",
    *(
        f"pydantic_ai.{kind}.{vendor}"
        for kind in ("models", "providers")
        for vendor in ("google", "openai", "anthropic")
    ),
)


def run_ghost(*words: str, cwd: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return starter().run(words, cwd, {**environment, IN_PROCESS: "1"}, "", 60)


@functools.cache
def starter() -> Starter:
    """One for all the tests of a worker."""
    made = Starter(__name__)
    atexit.register(made.close)
    return made


if __name__ == "__main__":
    for module in ALREADY:
        importlib.import_module(module)
    serve(int(sys.argv[1]), main)
