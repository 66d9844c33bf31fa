"""Stage 3: one program, an argument list, a group of its own, bounded memory, a bounded time. No shell, ever.

The only module of Ghost that starts other programs. It knows nothing of what is safe: it runs the words that
classification judged, of a program found in the program directories, in an environment made from an allowlist.
"""

from __future__ import annotations

import fnmatch
import os
import re
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ghost.patterns import lazy
from ghost.shell.judge.command_line import TO_READER, Sinks
from ghost.shell.policy_tables import policy_table
from ghost.shell.run.launcher import Launcher, StartedProgram, Streams, start_program
from ghost.shell.run.program_directories import changed_by_others, further_directories
from ghost.shell.run.sandbox import Confinement, Sandbox
from ghost.shell.run.warm_az import WarmAz

STDOUT_LIMIT = 16 * 1024 * 1024
STDERR_LIMIT = 256 * 1024
SYSTEM_DIRS = (Path("/usr/bin"), Path("/bin"), Path("/usr/sbin"), Path("/sbin"))
CAPTURE_ENGINE = ("-I", "-m", "ghost.pcap")
NOT_FOUND = 127
TIMED_OUT = 124  # as timeout(1) says it
NOT_EXECUTABLE = 126

_READ_SIZE = 1 << 16
_LINGER_SECONDS = 0.3  # what a program's last words may take once it has ended, where a child holds its pipe

Runner = Callable[..., Any]
"""`subprocess.run`'s calling convention."""


@dataclass(frozen=True)
class Captured:
    """The kept part of a stream: all of it, or its beginning and end."""

    head: bytes = b""
    tail: bytes = b""
    total: int = 0
    lines: int = 0
    cut_short: bool = False
    """Whether its program may have had more to print."""

    @classmethod
    def of(cls, content: bytes | str | None, limit: int, *, cut_short: bool = False) -> Captured:
        raw = content.encode("utf-8", "replace") if isinstance(content, str) else content or b""
        lines = raw.count(b"\n")
        if len(raw) <= limit:
            return cls(raw, b"", len(raw), lines, cut_short)
        return cls(raw[: limit // 2], raw[-(limit // 2) :], len(raw), lines, cut_short)

    @property
    def complete(self) -> bool:
        return len(self.head) + len(self.tail) == self.total

    @property
    def kept(self) -> bytes:
        return self.head + self.tail


@dataclass(frozen=True)
class Run:
    """The result of running a program. `exit_code` is None after a timeout."""

    stdout: Captured
    stderr: Captured
    exit_code: int | None
    timed_out: bool
    duration_seconds: float
    layers: tuple[str, ...] = ()
    """Of the sandbox, those it ran in."""


@dataclass(frozen=True)
class Programs:
    """Where programs are found: a bare name, in fixed directories, as an absolute path."""

    directories: tuple[Path, ...] = SYSTEM_DIRS
    az: Path | None = None
    further: tuple[Path, ...] = ()
    """Directories after those. A program there counts only where nobody but root and the user can change it."""

    @classmethod
    def of_system(cls, az: Path | None = None) -> Programs:
        return cls(az=az, further=further_directories())

    def find(self, name: str) -> Path | None:
        """The program of that name. A path is accepted only where it is the program that its bare name finds."""
        if name == "az" and self.az is not None:
            return self.az.absolute() if _is_program(self.az) else None
        if os.sep in name:
            path = Path(name)
            found = self.find(path.name) if path.is_absolute() and ".." not in path.parts else None
            return found if found is not None and _is_same(found, path) else None
        if name in ("", ".", ".."):
            return None
        return next((d / name for d in self.directories if _is_program(d / name)), None) or next(
            (d / name for d in self.further if _is_program(d / name) and changed_by_others(d / name) is None), None
        )

    def unqualified(self, command: str) -> str:
        """The command with a bare name for the program, where it names that by the path at which it is found."""
        first, blank, rest = command.strip(" ").partition(" ")
        if _PLAIN_PATH.fullmatch(first) is None or self.find(first) is None:
            return command
        return f"{Path(first).name}{blank}{rest}"

    def missing(self, name: str) -> str:
        """Say that no program was found, and of one that was passed over why."""
        for directory in self.further:
            path = directory / name
            if _is_program(path) and (place := changed_by_others(path)) is not None:
                return (
                    f"command not found: {name}. {path} is passed over, since others than you and root could change "
                    f"{place}: take it over and run chmod go-w {place}."
                )
        return f"command not found: {name}"

    @cached_property
    def search_path(self) -> str:
        further = (directory for directory in self.further if changed_by_others(directory) is None)
        return _path_of((*self.directories, *further))

    def search_path_for(self, target: str) -> str:
        """An az that is none of these directories' starts programs of the system's."""
        return _path_of(SYSTEM_DIRS) if target == "azure" and self.az is not None else self.search_path


def _path_of(directories: Sequence[Path]) -> str:
    return os.pathsep.join(str(directory) for directory in directories)


def child_environment(
    programs: Programs, target: str, extra: Mapping[str, str] | None, inherited: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The environment of a child: allowlisted variables, fixed ones and `extra`; never a key or a token."""
    variables = {n: v for n, v in inherited.items() if _INHERITED[target].match(n)}
    variables.update(_ENVIRONMENT_POLICY["set"])
    variables["PATH"] = programs.search_path_for(target)
    variables.update(extra or {})
    return {n: v for n, v in variables.items() if not _NEVER.match(n)}


def run(
    arguments: Sequence[str],
    *,
    programs: Programs,
    environment: Mapping[str, str],
    timeout_seconds: float,
    runner: Runner | None = None,
    sandbox: Sandbox | None = None,
    profile: str | None = None,
    warm_az: WarmAz | None = None,
    cancelled: int | None = None,
    given: bytes | None = None,
    sinks: Sinks = TO_READER,
) -> Run:
    """Runs `arguments[0]` of the program directories with the rest as its arguments, in a sandbox where one is given.

    `profile`: of the sandbox, where it is not that of the program. `given`: what the program reads on standard input;
    default nothing. `warm_az`: what `az` commands in a sandbox are started from, if it can. `cancelled`: a descriptor;
    once it can be read the program is ended, with `KeyboardInterrupt`.

    A program that is missing or cannot be started is a run that ended with 127 or 126, as a shell says it. Raises
    `SandboxUnavailableError` where the sandbox cannot be had as its mode requires it, or a layer cannot be applied.
    `KeyboardInterrupt` ends the program's whole group, then goes on to the caller.
    """
    name = arguments[0]
    started = time.monotonic()
    if name == "pcap-forensics":
        words = [sys.executable, *CAPTURE_ENGINE, *arguments[1:]]
    elif runner is not None:
        words = list(arguments)  # the runner finds its programs itself
    else:
        program = programs.find(name)
        if program is None:
            return failed_run(NOT_FOUND, programs.missing(name), time.monotonic() - started)
        words = [str(program), *arguments[1:]]
    sandbox = sandbox if sandbox is not None else Sandbox("off", (), programs.search_path)
    try:
        with (
            _standard_input(given) as source,
            sandbox.confine(
                name, words, environment, profile_name=profile, foreign_runner=runner is not None
            ) as confinement,
        ):
            if runner is not None:
                return _run_with(runner, words, environment, timeout_seconds, source, sinks)
            task = _Task(
                words, confinement.environment or environment, timeout_seconds, confinement, cancelled, source, sinks
            )
            if name == "az" and warm_az is not None and confinement.steps is not None:
                return _run_warm(warm_az, task)
            return _run_built_in(task)
    except FileNotFoundError:
        return failed_run(NOT_FOUND, f"command not found: {name}", time.monotonic() - started)
    except (OSError, ValueError) as error:
        return failed_run(
            NOT_EXECUTABLE,
            f"cannot run {name}: {getattr(error, 'strerror', None) or error}",
            time.monotonic() - started,
        )


@contextmanager
def _standard_input(given: bytes | None) -> Iterator[int]:
    """A descriptor to read `given` from: of a file that has no name, or of /dev/null."""
    if given is None:
        source = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield source
        finally:
            os.close(source)
        return
    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        yield file.fileno()


@dataclass(frozen=True)
class _Task:
    """One program to run, and all that it is run with."""

    words: list[str]
    environment: Mapping[str, str]
    timeout_seconds: float
    confinement: Confinement
    cancelled: int | None
    source: int
    sinks: Sinks


def _run_warm(warm_az: WarmAz, task: _Task) -> Run:
    """Run an az command, which only reads, from the warm az, and plainly where there is none or it ended meanwhile."""
    launcher = warm_az.launcher_for(task.words, task.environment)
    if launcher is not None:
        try:
            return _run_built_in(task, launcher)
        except OSError:
            warm_az.failed(launcher)
    return _run_built_in(task)


def _run_built_in(task: _Task, launcher: Launcher | None = None) -> Run:
    started = time.monotonic()
    with _BoundedStream(STDOUT_LIMIT) as stdout, _BoundedStream(STDERR_LIMIT) as stderr, _nowhere() as nowhere:
        ends = {"output": stdout.writing_end, "errors": stderr.writing_end, "nowhere": nowhere}
        streams = Streams(task.source, ends[task.sinks.output], ends[task.sinks.errors])
        program = start_program(task.words, task.environment, task.confinement, streams, launcher)
        try:
            stdout.close_writing_end()
            stderr.close_writing_end()
            timed_out = not _drain(program, (stdout, stderr), started + task.timeout_seconds, task.cancelled)
        finally:
            program.end()
        exit_code = None if timed_out else program.exit_code
        return Run(
            stdout.captured(cut_short=_failed(exit_code) or program.left_descendants),
            stderr.captured(cut_short=_was_ended(exit_code) or program.left_descendants),
            exit_code,
            timed_out,
            time.monotonic() - started,
            (*task.confinement.layers, *program.limits),
        )


@contextmanager
def _nowhere() -> Iterator[int]:
    descriptor = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _was_ended(exit_code: int | None) -> bool:
    """Whether a program was ended while it ran: at its deadline, by a signal, or by `timeout` in its place."""
    return exit_code is None or exit_code < 0 or exit_code == TIMED_OUT or exit_code > 128


def _failed(exit_code: int | None) -> bool:
    """Whether its output may be incomplete: a program that failed may have printed only a part."""
    return exit_code != 0


def _drain(program: StartedProgram, streams: Sequence[_BoundedStream], deadline: float, cancelled: int | None) -> bool:
    """Read both pipes until the program has ended. Returns False at the deadline.

    The pipes may outlive the program, held open by a child of its own, so their end is not waited for.
    """
    with selectors.DefaultSelector() as selector:
        selector.register(program.control, selectors.EVENT_READ)
        if cancelled is not None:
            selector.register(cancelled, selectors.EVENT_READ)
        beside = len(selector.get_map())
        for stream in streams:
            selector.register(stream.reading_end, selectors.EVENT_READ, stream)
        while program.exit_code is None or len(selector.get_map()) > beside:
            left = deadline - time.monotonic()
            if left <= 0:
                return program.exit_code is not None
            for key, _ in selector.select(left):
                if key.fd == cancelled:
                    raise KeyboardInterrupt
                if key.data is None:
                    program.read_answers()
                    if program.exit_code is not None:
                        deadline = time.monotonic() + _LINGER_SECONDS
                elif not key.data.read():
                    selector.unregister(key.fileobj)
    return True


class _BoundedStream:
    """A pipe of which at most `limit` bytes are kept: half from the beginning, half from the end."""

    def __init__(self, limit: int) -> None:
        self.reading_end, self.writing_end = os.pipe()
        os.set_blocking(self.reading_end, False)
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._lines = 0
        self._ended = False

    def __enter__(self) -> _BoundedStream:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.reading_end)
        self.close_writing_end()

    def close_writing_end(self) -> None:
        if self.writing_end >= 0:
            os.close(self.writing_end)
            self.writing_end = -1

    def read(self) -> bool:
        """Takes what is there; False at the end of the stream."""
        try:
            chunk = os.read(self.reading_end, _READ_SIZE)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self._ended = not chunk
        self._total += len(chunk)
        self._lines += chunk.count(b"\n")
        half = self._limit // 2
        room = half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:] if room else chunk
        if len(self._tail) > half:
            del self._tail[:-half]
        return bool(chunk)

    def captured(self, *, cut_short: bool) -> Captured:
        """Return what was kept and release it, to avoid a second copy."""
        head = bytes(self._head)
        self._head.clear()
        tail = bytes(self._tail)
        self._tail.clear()
        return Captured(head, tail, self._total, self._lines, cut_short or not self._ended)


def _run_with(
    runner: Runner,
    words: list[str],
    environment: Mapping[str, str],
    timeout_seconds: float,
    source: int,
    sinks: Sinks,
) -> Run:
    started = time.monotonic()
    errors = {"output": subprocess.STDOUT, "errors": subprocess.PIPE, "nowhere": subprocess.DEVNULL}[sinks.errors]
    try:
        result = runner(
            words,
            shell=False,
            stdin=source,
            stdout=subprocess.DEVNULL if sinks.output == "nowhere" else subprocess.PIPE,
            stderr=errors,
            env=dict(environment),
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        stdout = Captured.of(late.stdout, STDOUT_LIMIT, cut_short=True)
        stderr = Captured.of(late.stderr, STDERR_LIMIT, cut_short=True)
        return Run(stdout, stderr, None, True, time.monotonic() - started)
    exit_code = int(result.returncode)
    return Run(
        Captured.of(result.stdout, STDOUT_LIMIT, cut_short=_failed(exit_code)),
        Captured.of(result.stderr, STDERR_LIMIT, cut_short=_was_ended(exit_code)),
        exit_code,
        False,
        time.monotonic() - started,
    )


def joined(runs: Sequence[Run]) -> Run:
    """One line's result: the output of its last command, the errors of all, and the layers that each ran in."""
    last = runs[-1]
    if len(runs) == 1:
        return last
    errors = Captured.of(b"".join(run.stderr.kept for run in runs), STDERR_LIMIT, cut_short=last.stderr.cut_short)
    layers = tuple(layer for layer in last.layers if all(layer in run.layers for run in runs))
    return replace(last, stderr=errors, layers=layers, duration_seconds=sum(run.duration_seconds for run in runs))


def failed_run(exit_code: int, message: str, duration_seconds: float = 0.0) -> Run:
    """A run that failed before the program started, reported as a shell would."""
    return Run(Captured(), Captured.of(message, STDERR_LIMIT), exit_code, False, duration_seconds)


_PLAIN_PATH = lazy(r"/[A-Za-z0-9._+/-]+")


def _is_same(found: Path, path: Path) -> bool:
    """Whether a path leads to the program that was found: /bin may be a link to /usr/bin."""
    return found == path or (_is_program(path) and os.path.realpath(found) == os.path.realpath(path))


def _is_program(path: Path) -> bool:
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False


_ENVIRONMENT_POLICY: dict[str, Any] = policy_table("environment.toml")


def _any_of(*lists: str) -> re.Pattern[str]:
    """One expression for the patterns of some lists of the policy."""
    return lazy("|".join(fnmatch.translate(pattern) for name in lists for pattern in _ENVIRONMENT_POLICY[name]))


_INHERITED = {
    "local": _any_of("inherit"),
    "azure": _any_of("inherit", "inherit_azure"),
    "kubernetes": _any_of("inherit", "inherit_kubernetes"),
}
_NEVER = _any_of("never")
