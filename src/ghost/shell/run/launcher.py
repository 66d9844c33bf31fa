"""The shell's side of the launcher: one small process per Ghost process, started with the first command.

Programs are not started from here: this process has threads, and what must happen in a new process before it executes
needs one that has none. See `launcher_program.py`.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ghost.shell.run.launcher_program import ANSWER, LENGTH, LIMITS
from ghost.shell.run.sandbox import Confinement, SandboxUnavailableError

_PROGRAM = Path(__file__).parent / "launcher_program.py"
_STEPS = {b"n": "no_new_privs", b"m": "read_only_mounts", b"c": "capabilities", b"l": "landlock", b"s": "seccomp"}
_END_SECONDS = 2.0
_LOOK_UP_MS = 1000
# linux/seccomp.h: struct seccomp_notif, struct seccomp_notif_resp, and the requests
_QUESTION_SIZE = 80
_CALL_ANSWER = struct.Struct("=8sqiI")
_RECEIVE_QUESTION, _SEND_ANSWER = 0xC0502100, 0xC0182101
_NO_DESCRIPTOR = 0x7FFFFFFE
"""A number that no open file has: the bound on them is lower. A program that only closes it does not notice."""


class Streams(NamedTuple):
    """Descriptors of a program's standard streams."""

    input: int
    output: int
    errors: int


class StartedProgram:
    """A program that the launcher runs. `control` becomes readable when it has ended."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.exit_code: int | None = None
        self.left_descendants = False
        """Whether it ended before its descendants, which may have had more to print."""
        self.limits: tuple[str, ...] = ()
        """Those of the sandbox that apply to it."""
        self._answers = b""
        self._step: str | None = None
        self._over = threading.Event()

    def read_answers(self) -> None:
        """Takes what the launcher says. Raises the error that kept the program from beginning."""
        with suppress(BlockingIOError):
            chunk, descriptors, _, _ = socket.recv_fds(self.control, 256, 1)
            self._answers += chunk
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)
                self._answer_calls_on(descriptor)
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
            elif letter == b"B":
                self.limits = tuple(name for bit, name in enumerate(LIMITS) if number >> bit & 1)
            elif letter == b"K":
                self.left_descendants = True
            elif letter == b"X":
                self.exit_code = number

    def _answer_calls_on(self, listener: int) -> None:
        """By a thread of its own: a program that is gone in the wrong moment leaves who answers it waiting."""
        try:
            threading.Thread(target=_answer_calls, args=(listener, self._over), daemon=True).start()
        except RuntimeError:  # no thread is left: the calls fail
            os.close(listener)

    def end(self) -> None:
        """End the program's process group and wait for it, for a limited time."""
        self.control.setblocking(True)
        self.control.settimeout(_END_SECONDS)  # a program of another user may refuse to be ended
        with suppress(OSError):
            self.control.send(b"end")
            while self.control.recv(256):
                pass
        self.control.close()
        self._over.set()


def _answer_calls(listener: int, over: threading.Event) -> None:
    """Answers each call the kernel asks about, until the program is gone: it gave a descriptor, and gives none.

    The call is an opening of a file to read and write. What the program names is not looked at, so that it cannot
    name another afterwards.
    """
    waiting = select.poll()
    waiting.register(listener, select.POLLIN)
    try:
        while not over.is_set():
            for _, event in waiting.poll(_LOOK_UP_MS):
                if not event & select.POLLIN:
                    return
                question = bytearray(_QUESTION_SIZE)
                with suppress(OSError):  # it was interrupted, and waits for no answer
                    fcntl.ioctl(listener, _RECEIVE_QUESTION, question)
                    fcntl.ioctl(listener, _SEND_ANSWER, _CALL_ANSWER.pack(bytes(question[:8]), _NO_DESCRIPTOR, 0, 0))
    finally:
        os.close(listener)


class Launcher:
    """The launcher process and the socket to it. `command`: what runs the program of the launcher, or one like it."""

    def __init__(self, command: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, on a file of this package
                [*(command or (sys.executable, "-I", "-S", str(_PROGRAM))), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                cwd="/",
                env=environment or {n: v for n, v in os.environ.items() if n == "LD_LIBRARY_PATH"},
            )
        self._socket = ours
        self._one_at_a_time = threading.Lock()
        self.owner = os.getpid()
        self.close = weakref.finalize(self, _close, ours, self._process, self.owner)

    def memory_bytes(self) -> int:
        """Return what its process holds in memory; 0 once it has ended, or where the system does not tell."""
        if self._process.poll() is not None:
            return 0
        try:
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1])
        except OSError:
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    def start(
        self, words: Sequence[str], environment: Mapping[str, str], confinement: Confinement, streams: Streams
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
                    descriptors = [here, streams.output, streams.errors, theirs.fileno(), streams.input]
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
    words: Sequence[str],
    environment: Mapping[str, str],
    confinement: Confinement,
    streams: Streams,
    launcher: Launcher | None = None,
) -> StartedProgram:
    """Start a program through the launcher, restarting the launcher if it is gone; one that is given is not."""
    if launcher is not None:
        return launcher.start(words, environment, confinement, streams)
    try:
        return _launcher().start(words, environment, confinement, streams)
    except (BrokenPipeError, ConnectionResetError):
        return _launcher(anew=True).start(words, environment, confinement, streams)


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
