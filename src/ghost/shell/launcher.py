"""The shell's end of the launcher: one small process for all shells of this one, started with the first command.

Programs are not started from here: this process has threads, and what must happen in a new process before it executes
needs one that has none. See `launcher_program.py`.
"""

from __future__ import annotations

import marshal
import os
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ghost.shell.launcher_program import ANSWER, LENGTH
from ghost.shell.sandbox import Confinement, SandboxUnavailableError

_PROGRAM = Path(__file__).parent / "launcher_program.py"
_STEPS = {b"n": "no_new_privs", b"m": "read_only_mounts", b"c": "capabilities", b"l": "landlock", b"s": "seccomp"}
_END_SECONDS = 2.0


class StartedProgram:
    """A program that the launcher runs. `control` becomes readable when it has ended."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.exit_code: int | None = None
        self._answers = b""
        self._step: str | None = None

    def read_answers(self) -> None:
        """Takes what the launcher says. Raises the error that kept the program from beginning."""
        with suppress(BlockingIOError):
            chunk = self.control.recv(256)
            self._answers += chunk
            if not chunk and self.exit_code is None:
                raise OSError("the process that starts programs has ended")
        while len(self._answers) >= ANSWER.size:
            letter, number = ANSWER.unpack_from(self._answers)
            self._answers = self._answers[ANSWER.size :]
            if letter in _STEPS:
                self._step = _STEPS[letter]
            elif letter == b"F" and self._step is not None:
                raise SandboxUnavailableError(f"the layer {self._step} cannot be applied: {os.strerror(number)}")
            elif letter == b"F":
                raise OSError(number, os.strerror(number))
            elif letter == b"X":
                self.exit_code = number

    def end(self) -> None:
        """Ends whatever is left of the program's group, and waits for that, but not for ever."""
        self.control.setblocking(True)
        self.control.settimeout(_END_SECONDS)  # a program of another user may refuse to be ended
        with suppress(OSError):
            self.control.send(b"end")
            while self.control.recv(256):
                pass
        self.control.close()


class Launcher:
    """The launcher process and the socket to it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, on a file of this package
                [sys.executable, "-I", "-S", str(_PROGRAM), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                cwd="/",
                env={n: v for n, v in os.environ.items() if n == "LD_LIBRARY_PATH"},
            )
        self._socket = ours
        self._one_at_a_time = threading.Lock()
        self.owner = os.getpid()
        self.close = weakref.finalize(self, _close, ours, self._process, self.owner)

    def start(
        self, words: Sequence[str], environment: Mapping[str, str], confinement: Confinement, stdout: int, stderr: int
    ) -> StartedProgram:
        """Starts a program whose path is `words[0]`. Raises `OSError` where the launcher is gone."""
        request = marshal.dumps(
            {
                "program": os.fsencode(words[0]),
                "words": [os.fsencode(word) for word in words],
                "environment": {os.fsencode(n): os.fsencode(v) for n, v in environment.items()},
                "confinement": confinement.steps,
                "umask": confinement.umask,
                "limits": list(confinement.limits),
                "private_directory": confinement.private_directory,
            }
        )
        ours, theirs = socket.socketpair()
        try:
            here = os.open(".", os.O_RDONLY | os.O_CLOEXEC)
            try:
                with theirs, self._one_at_a_time:
                    descriptors = [here, stdout, stderr, theirs.fileno()]
                    socket.send_fds(self._socket, [LENGTH.pack(len(request))], descriptors)
                    self._socket.sendall(request)
            finally:
                os.close(here)
        except BaseException:
            ours.close()
            raise
        ours.setblocking(False)
        return StartedProgram(ours)


def start_program(
    words: Sequence[str], environment: Mapping[str, str], confinement: Confinement, stdout: int, stderr: int
) -> StartedProgram:
    """Starts a program by this process's launcher, which is started anew where it is gone."""
    try:
        return _launcher().start(words, environment, confinement, stdout, stderr)
    except (BrokenPipeError, ConnectionResetError):
        return _launcher(anew=True).start(words, environment, confinement, stdout, stderr)


_current: list[Launcher] = []
_starting = threading.Lock()


def _launcher(*, anew: bool = False) -> Launcher:
    with _starting:
        if not _current or anew or _current[0].owner != os.getpid():
            for old in _current:
                old.close()
            _current[:] = [Launcher()]
        return _current[0]


def _close(connection: socket.socket, process: subprocess.Popen[bytes], owner: int) -> None:
    """The launcher ends, and all it runs, when the socket to it does."""
    connection.close()
    if os.getpid() != owner:
        process.returncode = 0  # another process's child: not ours to wait for
        return
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
