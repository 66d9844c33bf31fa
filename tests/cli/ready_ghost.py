"""`ghost` as a process whose imports are made: `python -m tests.cli.ready_ghost SOCKET` forks one for each start.

Each process has streams, words, environment and directory of its own and nothing else of another. The fork only saves
the time of importing, most of what a refusal takes. What a start itself promises is tested with the program.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

MESSAGE = 1 << 20


def run_ghost(
    *words: str, cwd: Path, environment: Mapping[str, str], stdin: str = "", seconds: float = 120
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` of the program with its streams captured: raises `TimeoutExpired`."""
    return _starter().run(words, cwd, environment, stdin, seconds)


@functools.cache
def _starter() -> Starter:
    """One for all the tests of a worker."""
    starter = Starter()
    atexit.register(starter.close)
    return starter


class Starter:
    """Starts processes one after another; `close` ends what starts them."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd=Path(__file__).parents[2],
            )

    def run(
        self, words: Sequence[str], cwd: Path, environment: Mapping[str, str], stdin: str, seconds: float
    ) -> subprocess.CompletedProcess[str]:
        order = json.dumps({"words": words, "cwd": str(cwd), "environment": dict(environment)}).encode()
        (in_theirs, in_ours), (out_ours, out_theirs), (err_ours, err_theirs) = (os.pipe() for _ in range(3))
        with os.fdopen(in_ours, "w") as to_it, os.fdopen(out_ours, "rb") as out, os.fdopen(err_ours, "rb") as err:
            theirs = [in_theirs, out_theirs, err_theirs]
            socket.send_fds(self._socket, [order], theirs)
            for end in theirs:
                os.close(end)
            pid = int(self._socket.recv(MESSAGE))
            with contextlib.suppress(BrokenPipeError):
                to_it.write(stdin)
                to_it.close()
            try:
                said = _read_all((out, err), time.monotonic() + seconds)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(["ghost", *words], seconds) from None
            finally:
                status = int(self._socket.recv(MESSAGE))
        return subprocess.CompletedProcess(["ghost", *words], status, *said)

    def close(self) -> None:
        self._socket.close()
        self._process.wait(timeout=30)


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


def _serve(orders: socket.socket) -> None:
    import ghost.cli

    for module in pkgutil.iter_modules(ghost.cli.__path__):
        __import__(f"ghost.cli.{module.name}")
    while True:
        order, streams, _, _ = socket.recv_fds(orders, MESSAGE, 3)
        if not order:
            return
        pid = os.fork()
        if pid == 0:
            orders.close()
            _become(json.loads(order), streams)
        for stream in streams:
            os.close(stream)
        orders.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        orders.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(order: Mapping[str, object], streams: list[int]) -> None:
    """Never returns."""
    from ghost.cli import main

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = os.fdopen(0, closefd=False)  # anew, as those of the starter know what theirs were: a terminal, a file
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = ["ghost", *order["words"]]
    sys.exit(main())


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
