"""Processes whose imports are made: one that has made them forks another for each start.

A process has streams, words, environment and directory of its own and nothing else of another. The fork only saves the
time of importing. `Starter` is the side of a test; the other calls `serve`, and needs nothing but the standard library.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

MESSAGE = 1 << 20
CHECKOUT = Path(__file__).parents[1]


class Starter:
    """Starts processes one after another; `close` ends what starts them.

    `module` is run by `python` with the number of a socket, for `serve`. `running`: the process of the last start.
    """

    running = 0

    def __init__(self, module: str, python: Path = Path(sys.executable), environment: Mapping[str, str] | None = None):
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [python, "-m", module, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.PIPE,  # pipes, as those that every process gets in their place
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=CHECKOUT,
                env=environment,
            )

    def run(
        self, words: Sequence[str], cwd: Path, environment: Mapping[str, str], stdin: str, seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` with the streams captured: raises `TimeoutExpired`."""
        order = json.dumps({"words": words, "cwd": str(cwd), "environment": dict(environment)}).encode()
        (in_theirs, in_ours), (out_ours, out_theirs), (err_ours, err_theirs) = (os.pipe() for _ in range(3))
        with os.fdopen(in_ours, "w") as to_it, os.fdopen(out_ours, "rb") as out, os.fdopen(err_ours, "rb") as err:
            theirs = [in_theirs, out_theirs, err_theirs]
            socket.send_fds(self._socket, [order], theirs)
            for end in theirs:
                os.close(end)
            self.running = pid = self._answer()
            with contextlib.suppress(BrokenPipeError):
                to_it.write(stdin)
                to_it.close()
            try:
                said = _read_all((out, err), time.monotonic() + seconds)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(words, seconds) from None
            finally:
                status = self._answer()
        return subprocess.CompletedProcess(words, status, *said)

    def close(self) -> None:
        self._socket.close()
        self._process.communicate(timeout=30)

    def _answer(self) -> int:
        answer = self._socket.recv(MESSAGE)
        assert answer, f"the starter ended: {self._process.communicate()[1].decode()}"
        return int(answer)


def _read_all(streams: tuple[IO[bytes], ...], deadline: float) -> list[str]:
    """What each says until it is closed."""
    read = dict.fromkeys(streams, b"")
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(deadline - time.monotonic())
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                if part := os.read(key.fd, 65536):
                    read[key.fileobj] += part
                else:
                    selector.unregister(key.fileobj)
    return [read[stream].decode().replace("\r\n", "\n") for stream in streams]


def serve(number: int, main: Callable[[Sequence[str]], object], *, learn: bool = False) -> None:
    """Forks a process for each order; `main` takes its words and is what `sys.exit` takes, or raises `SystemExit`.

    What it imported is imported here, too, when `learn`, so that the next one has it. Not where a process leaves one
    behind: that one's end would be waited for.
    """
    orders = socket.socket(fileno=number)
    while True:
        order, streams, _, _ = socket.recv_fds(orders, MESSAGE, 3)
        if not order:
            return
        told, tells = os.pipe()
        gc.freeze()  # what is here already is neither looked through nor copied by the collector of a fork
        pid = os.fork()
        if pid == 0:
            orders.close()
            os.close(told)
            _become(json.loads(order), streams, main, tells if learn else None)
        for end in (*streams, tells):
            os.close(end)
        orders.send(str(pid).encode())
        with os.fdopen(told) as imported:
            for module in imported.read().split() if learn else ():
                with contextlib.suppress(ImportError):
                    importlib.import_module(module)
        _, status = os.waitpid(pid, 0)
        orders.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(
    order: Mapping[str, object], streams: list[int], main: Callable[[Sequence[str]], object], tells: int | None
) -> None:
    """Never returns. Ends as the interpreter does, but for freeing what it shares with its parent: that takes longer
    than a short command."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    before = set(sys.modules)
    status: object = 1
    try:
        status = main(order["words"])
    except SystemExit as end:
        status = end.code
    except BaseException:  # noqa: BLE001 - as an interpreter does
        traceback.print_exc()
    if isinstance(status, str):
        print(status, file=sys.stderr)
    if tells is not None:
        os.write(tells, " ".join(name for name in sys.modules if name not in before).encode())
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # a reader that is gone
            stream.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))
