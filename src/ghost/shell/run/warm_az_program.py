"""The program that starts `az` commands from a process that has imported the Azure CLI already.

Az's own Python runs it by its path, with the flags of az's own script. It is the launcher with another last step: the
forked process, confined like any other, does not execute a program but runs the module that az's script runs. Of each
command it has the words, the environment, the directory and the streams, and nothing of the command before.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import pkgutil
import runpy
import signal
import sys
import tempfile
import threading
import traceback
from contextlib import suppress
from typing import Any

_CORE = """\
commands commands.transform commands.command_operation aaz aaz._client aaz._http_policy aaz._paging aaz._poller
_profile auth.identity auth.credential_adaptor auth.msal_credentials telemetry style intercept_survey azlogging
command_recommender parser _help _help_loaders _output _breaking_change local_context extension cloud profiles
sdk.policies"""
_MODULES = "azure.cli.command_modules"
_GROUPS = "network vm storage resource monitor privatedns profile"
_PARTS = "_params _help _validators _client_factory _breaking_change commands custom aaz.latest operations"
PRELOADED = (
    *(f"azure.cli.core.{name}" for name in _CORE.split()),
    *("azure.core.polling", "azure.mgmt.core", "msal.managed_identity", "msrest.authentication", "requests", "yaml"),
    *(f"{_MODULES}.{group}.{part}" for group in _GROUPS.split() for part in _PARTS.split()),
)
"""What takes most of the time of a short command. One that a version of az does not have is left out."""
WALKED = (f"{_MODULES}.network.aaz.latest.network", f"{_MODULES}.monitor.aaz.latest.monitor")
"""Packages of which each command imports all modules."""


def execute_az(request: dict[str, Any]) -> None:
    """Be `az` in this process, as a new Python would be; ends the process."""
    gc.enable()
    os.closerange(3, 4096)
    os.environb.update(request["environment"])  # all others are those that this process was started with
    sys.argv = ["az", *map(os.fsdecode, request["words"][1:])]
    tempfile.tempdir = None
    for number, handler in (
        (signal.SIGCHLD, signal.SIG_DFL),
        (signal.SIGPIPE, signal.SIG_IGN),
        (signal.SIGXFSZ, signal.SIG_IGN),
        (signal.SIGINT, signal.default_int_handler),
    ):
        signal.signal(number, handler)
    os._exit(_exit_code())


def _exit_code() -> int:
    code: object = None
    try:
        runpy.run_module("azure.cli", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001 - printed as Python prints what nobody caught
        traceback.print_exc()
        code = 1
    if code is not None and not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        code = 1
    with suppress(Exception):
        threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    return (code or 0) & 0xFF


def main(descriptor: int) -> None:
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as the launcher, of few imports
    sys.path[:] = [here, *(place for place in sys.path if place not in ("", here))]
    launcher = importlib.import_module("launcher_program")
    del sys.path[0]
    importlib.import_module("azure.cli.core")  # without it this is no az: the process ends, and plain az is run
    for module in PRELOADED:
        _import(module)
    for package in filter(None, map(sys.modules.get, WALKED)):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.", onerror=lambda _: None):
            _import(found.name)
    gc.collect()
    gc.freeze()
    launcher.main(descriptor, execute_az)


def _import(module: str) -> None:
    with suppress(Exception):
        importlib.import_module(module)


if __name__ == "__main__":
    main(int(sys.argv[1]))
