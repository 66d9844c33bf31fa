"""The program that starts programs: a small process with one thread, to which the shell sends what is to run.

It is run by its path with `python -I -S` and imports nothing of Ghost. A process that has one thread may fork and
then run Python before it executes, which the shell itself may not: it has threads. Between the two a command
is confined, step by step, as the request says; a step that fails ends the command before its program has begun.
One process is always forked ahead, so that a command does not wait for that.

A request is a length of four bytes, a marshalled dict, and five descriptors: the working directory, standard output,
standard error, the command's control socket, and standard input. On the control socket the answers are a letter and a
number each: `F` an errno (a letter before it names the step), `X` how the program ended, `R` once nothing of its group
is left; `L` comes with a descriptor, on which the kernel asks what the filter leaves to the shell; `B` tells which of
`LIMITS` apply, a bit each; `K` that descendants of a program that has ended are ended.
Whatever the shell sends there, and the end of that socket, ends the group. The end of the shell ends every group.

An unconfined command may leave its group, so it runs below a process of this program that adopts its descendants and
ends them with it (PR_SET_CHILD_SUBREAPER of prctl(2)).
"""

from __future__ import annotations

import ctypes
import gc
import marshal
import os
import resource
import select
import signal
import socket
import stat
import struct
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

ANSWER = struct.Struct("<ci")
LENGTH = struct.Struct("<I")
DESCRIPTORS = 5
LIMITS = (
    *("pids:cgroup2", "pids:cgroup1", "pids:rlimit", "pids:watched", "pids:seccomp"),
    *("memory:cgroup2", "memory:rlimit", "files:tmpfs", "files:watched"),
)
MOST_LEFT = 64
WATCH_MS = 100
MOST_TEMPORARY_FILES = 1 << 16
DESCENDANTS_END_SECONDS = 2.0

# linux/prctl.h, linux/capability.h, linux/mount.h, linux/landlock.h
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 1, 24, 22, 38, 47
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
PR_CAP_AMBIENT_CLEAR_ALL, SECCOMP_MODE_FILTER, CAPABILITY_VERSION_3 = 4, 2, 0x20080522
SECCOMP_SET_MODE_FILTER, SECCOMP_NEW_LISTENER = 1, 8
CLONE_NEWNS, MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE = 0x20000, 442, -100, 0x8000
MOUNT_READ_ONLY, MOUNT_NO_SET_ID, MOUNT_NO_DEVICES, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 1 << 12, 1 << 14, 1 << 18
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF, LANDLOCK_RULE_PATH_BENEATH = 444, 445, 446, 1


class StepFailedError(Exception):
    """A failed step of a start; `step` is the letter reported to the shell."""

    def __init__(self, step: bytes, number: int) -> None:
        super().__init__(step, number)
        self.step = step
        self.number = number


def main(descriptor: int, execute: Callable[[dict[str, Any]], None]) -> None:
    gc.disable()  # a new process that looks through all objects would copy them
    shell = socket.socket(fileno=descriptor)
    shell.set_inheritable(False)  # it came over an exec, and no program may have it: other commands are sent on it
    woken, wake = socket.socketpair()
    for end in (woken, wake):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    if libc is not None:
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # what runs as the same user may not look into this process
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    cgroups = Cgroups()
    running: dict[int, RunningCommand] = {}
    left: deque[str] = deque(maxlen=MOST_LEFT)
    """Private directories of the last commands that are over, which the shell removes. One that is killed may not come
    to it; and its end of a control closes before it is gone itself, so that a command seems over in order."""
    spares: list[SpareChild] = []

    def ready() -> SpareChild:
        not_its_own = [shell, *(command.control for command in running.values())]
        return spares.pop() if spares else SpareChild(libc, not_its_own, execute, cgroups)

    def own() -> set[int]:
        return {*(command.pid for command in running.values()), *(spare.pid for spare in spares)}

    waiting = select.poll()
    waiting.register(shell, select.POLLIN)
    waiting.register(woken, select.POLLIN)
    parent = _descriptor_of(os.getppid())
    if parent is not None:
        waiting.register(parent, select.POLLIN)  # a child of the shell may hold the socket open when the shell ends
    try:
        while True:
            watched = [command for command in running.values() if command.temporary_bytes or command.processes]
            for number, _ in waiting.poll(WATCH_MS if watched else None):
                if number == shell.fileno():
                    started = _take(shell, ready)
                    if started is not None:
                        running[started.control.fileno()] = started
                        waiting.register(started.control, select.POLLIN)
                elif number == woken.fileno():
                    with suppress(BlockingIOError):
                        woken.recv(4096)
                    _reap_adopted_children(own())
                elif number == parent:
                    return
                elif number in running:
                    running[number].end()
                    waiting.unregister(number)
            for command in watched:
                command.end_if_it_takes_too_much()
            for number, command in list(running.items()):
                if command.is_over():
                    with suppress(KeyError):
                        waiting.unregister(number)
                    command.control.close()
                    del running[number]
                    if command.private_directory is not None:
                        left.append(command.private_directory)
                    if not spares:
                        with suppress(OSError):
                            spares.append(ready())  # now that nobody waits for it
            cgroups.remove_all_but(own())
    finally:
        for command in running.values():
            command.end()
        for spare in spares:
            os.kill(spare.pid, signal.SIGKILL)
        for command in running.values():
            command.remove_private_directory()
        for directory in left:
            remove_tree(directory)
        deadline = time.monotonic() + 1.0
        while not cgroups.remove_all_but(set()) and time.monotonic() < deadline:
            time.sleep(0.01)  # until what was killed is gone


def _reap_adopted_children(own: set[int]) -> None:
    """Reap orphans of commands. Those outside a command's group have lost their supervisor, and are ended."""
    for pid in set(_children()) - own:
        with suppress(OSError):
            if os.getpgid(pid) not in own:
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, os.WNOHANG)


def _children() -> list[int]:
    with suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as children:  # noqa: PTH123 - no pathlib here
        return list(map(int, children.read().split()))
    return []


def _descriptor_of(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    except OSError:
        return None


class Cgroups:
    """A cgroup for each command, where this process may make some (cgroups(7)).

    Version 2: beside its own, or below it where that is the root, if the controllers are turned on there already.
    Version 1: below its own.
    """

    def __init__(self, root: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> None:
        self.place, self.version, self.memory = "", 0, False
        self._made: set[int] = set()
        with suppress(OSError, ValueError), open(own) as file:  # noqa: PTH123 - as below
            for line in file:
                _, controllers, path = line.rstrip("\n").split(":", 2)
                if controllers == "pids":
                    self._take_place(f"{root}/pids{path}", 1, memory=False)
                elif not controllers:
                    for place in (root + path, os.path.dirname(root + path)):  # noqa: PTH120
                        with suppress(OSError), open(f"{place}/cgroup.subtree_control") as enabled:  # noqa: PTH123
                            here = enabled.read().split()
                            if "pids" in here:
                                self._take_place(place, 2, memory="memory" in here)
        if self.place:
            self._remove_those_of_the_dead()

    def _take_place(self, place: str, version: int, *, memory: bool) -> None:
        if not self.place and all(os.access(path, os.W_OK) for path in (place, f"{place}/cgroup.procs")):
            self.place, self.version, self.memory = place, version, memory

    def _remove_those_of_the_dead(self) -> None:
        """What a launcher that was killed left; a directory that still has processes cannot be removed."""
        for name in os.listdir(self.place):  # noqa: PTH208
            if name.startswith("ghost-") and not os.path.exists(f"/proc/{name[6:]}"):  # noqa: PTH110
                with suppress(OSError):
                    os.rmdir(f"{self.place}/{name}")  # noqa: PTH106

    def join(self) -> bool:
        """Move this process to a cgroup of its own. It may take 10 ms, so it is done before a command waits for it."""
        with suppress(OSError):
            os.mkdir(self._directory(os.getpid()))  # noqa: PTH102
        return self.write("cgroup.procs", 0)

    def write(self, name: str, number: int) -> bool:
        """Set `name` of this process's cgroup; False where that is impossible."""
        try:
            file = os.open(f"{self._directory(os.getpid())}/{name}", os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(file, b"%d" % number)
            finally:
                os.close(file)
        except OSError:
            return False
        return True

    def made_for(self, pid: int) -> None:
        self._made.add(pid)

    def remove_all_but(self, pids: set[int]) -> bool:
        """Remove cgroups of processes that are gone; whether none is left."""
        for pid in self._made - pids:
            with suppress(FileNotFoundError):
                try:
                    os.rmdir(self._directory(pid))  # noqa: PTH106
                except OSError:  # it still has processes
                    continue
            self._made.discard(pid)
        return not self._made

    def _directory(self, pid: int) -> str:
        return f"{self.place}/ghost-{pid}"


def _count_of_group(leader: int) -> int:
    count = 0
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - as above
        with suppress(OSError):
            count += os.getpgid(int(name)) == leader
    return count


class RunningCommand:
    """A started command, until its process group is gone."""

    def __init__(
        self,
        pid: int,
        control: socket.socket,
        private_directory: str | None,
        *,
        supervised: bool = False,
        temporary_bytes: int = 0,
        processes: int = 0,
    ) -> None:
        self.pid = pid
        self.control = control
        self.private_directory = private_directory
        self.temporary_bytes = temporary_bytes if private_directory is not None else 0
        """How much its private directory may hold; 0 where that is not looked at."""
        self.processes = processes
        """How many its group may be; 0 where that is not looked at."""
        self._supervised = supervised
        self._told = False
        self._ending = False
        self._reaped = False
        self._exit_code: int | None = None

    def end(self) -> None:
        """Ends its whole group. Its leader is not reaped before, so that the number is still its own."""
        self._ending = True
        with suppress(ProcessLookupError, PermissionError):
            if self._supervised:
                os.kill(self.pid, signal.SIGTERM)  # the supervisor ends what it supervises, and itself
            else:
                os.killpg(self.pid, signal.SIGKILL)

    def end_if_it_takes_too_much(self) -> None:
        directory, most = self.private_directory, self.temporary_bytes
        if self._ending:
            return
        if (most and directory is not None and holds_more_than(most, directory)) or (
            self.processes and _count_of_group(self.pid) > self.processes
        ):
            self.end()

    def remove_private_directory(self) -> None:
        """What the shell does with it when a command is over, for a shell that ended before."""
        if self.private_directory is not None:
            with suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            remove_tree(self.private_directory)

    def is_over(self) -> bool:
        """Tells the shell how the program ended, once; true when it was told to end and has been reaped."""
        exit_code = self._ended()
        if exit_code is None:
            return False
        if not self._told:
            self._told = True
            self._answer(b"X", exit_code)
        if not self._ending:
            return False
        self.end()
        if not self._reaped:
            os.waitid(os.P_PID, self.pid, os.WEXITED)
        self._answer(b"R", 0)
        return True

    def _ended(self) -> int | None:
        """The exit status, negative for a signal; None while it runs. Not reaped yet, where the system has waitid."""
        if self._exit_code is None and hasattr(os, "waitid"):
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                self._exit_code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        elif self._exit_code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._reaped, self._exit_code = True, os.waitstatus_to_exitcode(status)
        return self._exit_code

    def _answer(self, letter: bytes, number: int) -> None:
        with suppress(OSError):
            self.control.send(ANSWER.pack(letter, number))


class SpareChild:
    """A forked child that waits to become the next command, prepared as far as possible."""

    def __init__(
        self,
        libc: Any,
        not_its_own: list[socket.socket],
        execute: Callable[[dict[str, Any]], None],
        cgroups: Cgroups,
    ) -> None:
        ours, theirs = socket.socketpair()
        launcher = os.getpid()
        try:
            self.pid = os.fork()
        except OSError:
            ours.close()
            theirs.close()
            raise
        if self.pid == 0:
            for other in (ours, *not_its_own):
                other.close()
            _run_spare_child(theirs, libc, launcher, execute, cgroups)
        theirs.close()
        if cgroups.place:
            cgroups.made_for(self.pid)
        self._socket = ours

    def become(self, request: bytes, descriptors: list[int]) -> None:
        with self._socket:
            socket.send_fds(self._socket, [LENGTH.pack(len(request))], descriptors)
            self._socket.sendall(request)


def _take(shell: socket.socket, ready: Callable[[], SpareChild]) -> RunningCommand | None:
    """Receives one request and has it carried out. The end of the shell ends this process."""
    request, descriptors = _receive(shell)
    control = descriptors[3]
    for _ in range(2):
        try:
            spare = ready()
            spare.become(request, descriptors)
        except BrokenPipeError:  # it was ended while it waited
            os.waitpid(spare.pid, 0)
            continue
        except OSError as failure:  # too many processes: this command's misfortune alone
            os.write(control, ANSWER.pack(b"F", failure.errno or 0))
            break
        for descriptor in (*descriptors[:3], descriptors[4]):
            os.close(descriptor)
        # From the process that started this one, over a socket of the two alone.
        told = marshal.loads(request)  # noqa: S302
        steps = told["confinement"] or {}
        watched = steps.get("forks") and os.getuid() == 0
        return RunningCommand(
            spare.pid,
            socket.socket(fileno=control),
            told["private_directory"],
            supervised=_is_supervised(told),
            temporary_bytes=steps.get("temporary_bytes", 0),
            processes=steps["processes"] if watched else 0,
        )
    for descriptor in descriptors:
        os.close(descriptor)
    return None


def _receive(sender: socket.socket) -> tuple[bytes, list[int]]:
    header, descriptors, _, _ = socket.recv_fds(sender, LENGTH.size, DESCRIPTORS)
    if len(header) < LENGTH.size or len(descriptors) != DESCRIPTORS:
        raise SystemExit
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    (left,) = LENGTH.unpack(header)
    body = bytearray()
    while len(body) < left:
        chunk = sender.recv(min(left - len(body), 1 << 20))
        if not chunk:
            raise SystemExit
        body += chunk
    return bytes(body), descriptors


def _run_spare_child(
    launcher_end: socket.socket,
    libc: Any,
    launcher: int,
    execute: Callable[[dict[str, Any]], None],
    cgroups: Cgroups,
) -> None:
    """The life of a spare process, to its end or to that of the command it became."""
    try:
        _prepare(libc, launcher)
        joined = bool(cgroups.place) and cgroups.join()
        body, descriptors = _receive(launcher_end)
    except BaseException:  # noqa: BLE001 - nothing may go on as a second launcher
        os._exit(127)
    try:
        request = marshal.loads(body)  # noqa: S302 - as in _take
        request["cgroups"] = cgroups if joined else None
        _become(request, descriptors, libc)
        if _is_supervised(request):
            _supervise(libc, launcher, descriptors[3])
        execute(request)
    except StepFailedError as failure:
        os.write(descriptors[3], ANSWER.pack(failure.step, 0) + ANSWER.pack(b"F", failure.number))
    except OSError as failure:
        os.write(descriptors[3], ANSWER.pack(b"F", failure.errno or 0))
    except BaseException:  # noqa: BLE001 - as above
        os.write(descriptors[3], ANSWER.pack(b"F", 0))
    finally:
        os._exit(127)


def _prepare(libc: Any, launcher: int) -> None:
    """Its own session, and an end with the launcher."""
    os.setsid()
    if libc is not None:
        _prctl(libc, b"d", PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != launcher:
            os._exit(127)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # what Python ignores, the program would inherit as ignored
        signal.signal(number, signal.SIG_DFL)


def _become(request: dict[str, Any], descriptors: list[int], libc: Any) -> None:
    """The spare process gets the directory, the input, the outputs and the confinement of the command."""
    os.fchdir(descriptors[0])
    os.dup2(descriptors[4], 0)
    os.dup2(descriptors[1], 1)
    os.dup2(descriptors[2], 2)
    if request["umask"] is not None:
        os.umask(request["umask"])
    for name, limit in request["limits"]:
        _limit(name, limit)
    if (steps := request["confinement"]) is not None:
        if libc is not None:
            libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # else its own files in /proc are root's; so it is when it executes
        _prefer_for_oom_kill()
        applied = _bound(steps, request["cgroups"])
        if request["private_directory"] is not None:
            applied.append(_bound_files(libc, steps, request["private_directory"]))
        os.write(descriptors[3], ANSWER.pack(b"B", sum(1 << LIMITS.index(name) for name in applied)))
        _confine(libc, steps, descriptors[3])


def _is_supervised(request: dict[str, Any]) -> bool:
    return request["confinement"] is None and sys.platform == "linux"


class _EndedByLauncherError(Exception):
    """The launcher ended, or told the supervisor to end its command."""


def _supervise(libc: Any, launcher: int, control: int) -> None:
    """Return in a new process, which becomes the command.

    This one adopts its descendants, whatever session they are in, and ends as the command did once none is left.
    """

    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise _EndedByLauncherError

    supervisor, status = os.getpid(), int(signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    signal.signal(signal.SIGTERM, end)
    _prctl(libc, b"d", PR_SET_CHILD_SUBREAPER, 1)
    _prctl(libc, b"d", PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != launcher:
        os._exit(127)
    command = os.fork()
    if command == 0:
        os.setsid()
        _prctl(libc, b"d", PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(127)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        return
    os.closerange(0, control)  # the output ends with the command
    os.closerange(control + 1, 4096)
    with suppress(_EndedByLauncherError):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        ended = 0
        while ended != command:
            ended, status = os.wait()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if _children():
            os.write(control, ANSWER.pack(b"K", 0))
    _end_children()
    if os.WIFSIGNALED(status):
        _limit("RLIMIT_CORE", 0)
        with suppress(OSError):
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(supervisor, os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


def _end_children() -> None:
    """End all descendants: of a child that ends, the children become this process's. Those of another user may stay."""
    deadline = time.monotonic() + DESCENDANTS_END_SECONDS
    with suppress(ChildProcessError):
        while time.monotonic() < deadline:
            for pid in _children():
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(0.001)


def execute_program(request: dict[str, Any]) -> None:
    os.execve(request["program"], request["words"], request["environment"])  # noqa: S606 - what a launcher is for


def _prefer_for_oom_kill() -> None:
    """Make the kernel's OOM killer prefer the command over other processes."""
    with suppress(OSError):
        descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        os.write(descriptor, b"1000")
        os.close(descriptor)


def _limit(name: str, limit: int) -> None:
    number = getattr(resource, name)
    _, hard = resource.getrlimit(number)
    bound = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(number, (bound, bound))


def _bound(steps: dict[str, Any], cgroups: Cgroups | None) -> list[str]:
    """Bound the number of processes and the memory by the best means there is, and return which."""
    processes, memory = steps["processes"], steps["memory"]
    if cgroups is not None and cgroups.write("pids.max", processes):
        applied = [f"pids:cgroup{cgroups.version}"]
    elif os.getuid() != 0:
        with open("/proc/loadavg") as file:  # noqa: PTH123 - as above
            tasks = int(file.read().split()[3].partition("/")[2])
        _limit("RLIMIT_NPROC", tasks + processes)  # it counts the user's, which are no more than the machine's
        applied = ["pids:rlimit"]
    elif steps["forks"] and cgroups is None:  # the limit does not hold for root (getrlimit(2)): the launcher looks
        applied = ["pids:watched"]
    else:
        steps["seccomp"] = steps["seccomp_without_forks"]
        applied = ["pids:seccomp"]
    if cgroups is not None and cgroups.memory and cgroups.write("memory.max", memory):
        cgroups.write("memory.swap.max", 0)  # not every kernel has it
        return [*applied, "memory:cgroup2"]
    _limit("RLIMIT_AS", memory)
    return [*applied, "memory:rlimit"]


def _bound_files(libc: Any, steps: dict[str, Any], directory: str) -> str:
    """Bound what the private directory may hold by a file system of its own, else the launcher looks at its size."""
    if steps["may_mount"] and libc.unshare(CLONE_NEWNS) == 0:
        options = f"mode=700,size={steps['temporary_bytes']},nr_inodes={MOST_TEMPORARY_FILES}"
        flags = ctypes.c_ulong(MOUNT_NO_SET_ID | MOUNT_NO_DEVICES)
        of_its_own = libc.mount(None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None) == 0
        if of_its_own and libc.mount(b"tmpfs", os.fsencode(directory), b"tmpfs", flags, options.encode()) == 0:
            return "files:tmpfs"
    return "files:watched"


def _confine(libc: Any, steps: dict[str, Any], control: int) -> None:
    """Apply the confinement `steps` to this process and its children. Irreversible."""
    if steps["no_new_privs"]:
        _prctl(libc, b"n", PR_SET_NO_NEW_PRIVS, 1)
    if steps["read_only_mounts"]:
        _make_mounts_read_only(libc)
    if steps["capabilities"] is not None:
        _drop_capabilities(libc, steps["capabilities"])
    if steps["landlock"] is not None:
        _restrict_files(libc, *steps["landlock"])
    if steps["seccomp"] is not None:
        code = ctypes.create_string_buffer(steps["seccomp"], len(steps["seccomp"]))
        program = struct.pack("@HP", len(code) // 8, ctypes.addressof(code))
        if steps["seccomp_call"] is None or not _filter_and_tell(libc, steps["seccomp_call"], program, control):
            _prctl(libc, b"s", PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(program))


def _filter_and_tell(libc: Any, number: int, program: bytes, control: int) -> bool:
    """Applies a filter that leaves some calls for the shell to answer, and sends the shell what it answers them on.

    False where the kernel has no such thing or another one listens already: without, those calls fail.
    """
    arguments = (ctypes.c_ulong(SECCOMP_SET_MODE_FILTER), ctypes.c_ulong(SECCOMP_NEW_LISTENER))
    listener = libc.syscall(ctypes.c_long(number), *arguments, ctypes.c_char_p(program))
    if listener < 0:
        return False
    with socket.socket(fileno=os.dup(control)) as shell:
        socket.send_fds(shell, [ANSWER.pack(b"L", 0)], [listener])
    os.close(listener)
    return True


def _drop_capabilities(libc: Any, kept: int) -> None:
    """Keeps of the capabilities there are only those of the mask `kept`, in every set."""
    data = (ctypes.c_uint32 * 6)()
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    _check(libc.capget(header, data), b"c")
    _prctl(libc, b"c", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    for capability in range(64):
        if not kept >> capability & 1 and libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break  # past the last capability, or no right to change the set: without new privileges it gives none
    for half in range(2):
        mask = data[3 * half + 1] & (kept >> 32 * half & 0xFFFFFFFF)
        data[3 * half], data[3 * half + 1], data[3 * half + 2] = mask, mask, 0
    _check(libc.capset(header, data), b"c")


def _make_mounts_read_only(libc: Any) -> None:
    """In a view of the file system of its own: nothing can be written, and no device be opened but /dev/null."""

    def set_attributes(path: bytes, given: int, taken: int, propagation: int, flags: int) -> None:
        attributes = struct.pack("=QQQQ", given, taken, propagation, 0)
        size = ctypes.c_size_t(len(attributes))
        _check(libc.syscall(MOUNT_SETATTR, AT_FDCWD, path, ctypes.c_uint32(flags), attributes, size), b"m")

    _check(libc.unshare(CLONE_NEWNS), b"m")
    set_attributes(b"/", 0, 0, MS_PRIVATE, AT_RECURSIVE)
    null = os.fsencode(os.devnull)
    _check(libc.mount(null, null, None, ctypes.c_ulong(MS_BIND), None), b"m")
    set_attributes(b"/", MOUNT_READ_ONLY | MOUNT_NO_SET_ID | MOUNT_NO_DEVICES, 0, 0, AT_RECURSIVE)
    set_attributes(null, 0, MOUNT_NO_DEVICES, 0, 0)


def _restrict_files(libc: Any, ruleset: bytes, file_rights: int, rules: list[tuple[bytes, int]]) -> None:
    """Landlock: denies what `ruleset` handles but for the rights below each path of `rules` that there is."""
    descriptor = _check(libc.syscall(LANDLOCK_CREATE_RULESET, ruleset, ctypes.c_size_t(len(ruleset)), 0), b"l")
    for path, rights in rules:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= file_rights
        rule = struct.pack("=Qi", rights, place)
        if rights:
            _check(libc.syscall(LANDLOCK_ADD_RULE, descriptor, LANDLOCK_RULE_PATH_BENEATH, rule, 0), b"l")
        os.close(place)
    _check(libc.syscall(LANDLOCK_RESTRICT_SELF, descriptor, 0), b"l")
    os.close(descriptor)


def remove_tree(directory: str, seconds: float = 30.0) -> None:
    """Remove a directory tree of any depth with two descriptors and no recursion.

    What lies deeper is moved to the top first. It raises nothing; what is not removed in `seconds` stays.
    """
    deadline = time.monotonic() + seconds
    with suppress(OSError):
        top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _empty_directory(top, deadline)
        finally:
            os.close(top)
        os.rmdir(directory)  # noqa: PTH106 - nothing that takes time is imported here


def _empty_directory(top: int, deadline: float) -> None:
    prefix, moved, removed = os.urandom(8).hex(), 0, 1
    while removed and (names := _remove_files(top, deadline)):
        removed = 0
        for name in names:
            with suppress(OSError):
                _make_accessible(name, top)
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
                try:
                    for deeper in _remove_files(inner, deadline):
                        moved += 1
                        _make_accessible(deeper, inner)  # a directory that changes place is written
                        os.rename(deeper, f"{prefix}-{moved}", src_dir_fd=inner, dst_dir_fd=top)
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=top)
                removed += 1


def _remove_files(descriptor: int, deadline: float) -> list[str]:
    """Remove all files; return the names of the directories."""
    directories = []
    with os.scandir(descriptor) as entries:
        for entry in entries:
            if time.monotonic() > deadline:
                return []
            if entry.is_dir(follow_symlinks=False):
                directories.append(entry.name)
            else:
                with suppress(OSError):
                    os.unlink(entry.name, dir_fd=descriptor)
    return directories


def _make_accessible(name: str, directory: int) -> None:
    with suppress(OSError):
        os.chmod(name, 0o700, dir_fd=directory)  # a directory, not a link: nobody is left who could change that


def holds_more_than(limit: int, directory: str) -> bool:
    """Whether the files below `directory` take more bytes. Too many files, or what cannot be listed, count as more."""
    total, number, waiting = 0, 0, [directory]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
                    number += 1
                    if total > limit or number > MOST_TEMPORARY_FILES:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except FileNotFoundError:
            continue
        except OSError:
            return True
    return False


def _prctl(libc: Any, step: bytes, option: int, *arguments: Any) -> None:
    words = [a if isinstance(a, ctypes.c_char_p) else ctypes.c_ulong(a) for a in (*arguments, 0, 0, 0, 0)[:4]]
    _check(libc.prctl(option, *words), step)


def _check(result: int, step: bytes) -> int:
    if result < 0:
        raise StepFailedError(step, ctypes.get_errno())
    return result


if __name__ == "__main__":
    main(int(sys.argv[1]), execute_program)
