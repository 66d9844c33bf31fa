"""The seccomp filter of a profile: classic BPF that looks at the number and the plain arguments of a system call.

See seccomp(2) and linux/seccomp.h. The filter denies by list, and whatever is newer than the list; another
architecture's calls end the process.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable, Mapping
from functools import cache

from ghost.errors import ConfigurationError
from ghost.shell.policy_tables import policy_table

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""The column of `system_calls.toml`, and the AUDIT_ARCH of linux/audit.h."""

SECCOMP_CALL = {"x86_64": 317, "aarch64": 277}

FAMILIES = {"unix": 1, "inet": 2, "inet6": 10, "netlink": 16}
NETLINK_PROTOCOLS = {"route": 0, "sock_diag": 4, "netfilter": 12, "generic": 16}

# linux/bpf_common.h and linux/seccomp.h
_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL_PROCESS, _ERRNO, _ASK = 0x7FFF0000, 0x80000000, 0x00050000, 0x7FC00000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16

_NEW_NAMESPACES = 0x7E020000
_CLONE_PARENT = 0x00008000  # a child that would be the launcher's
_CLONE_THREAD = 0x00010000
_OPENS_TO_WRITE = 0o3 | 0o100 | 0o1000  # O_ACCMODE, O_CREAT, O_TRUNC
_READ_AND_WRITE = 0o2
_CHANGES_FILES = [
    *("creat", "mkdir", "mkdirat", "mknod", "mknodat", "unlink", "unlinkat", "rmdir", "rename", "renameat"),
    *("renameat2", "link", "linkat", "symlink", "symlinkat", "truncate"),
]
_SIGNALS = ["kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"]
_SOCK_TYPE, _SOCK_STREAM, _SOCK_DGRAM = 0xF, 1, 2
_ABSENT = "absent"


@cache
def _table() -> tuple[int, Mapping[str, list[int]]]:
    table = policy_table("system_calls.toml")
    return table["newest"], table["numbers"]


class _Program:
    """Instructions in the making; after every rule the number of the call is in the accumulator again."""

    def __init__(self, column: int) -> None:
        self._column = column
        self._code: list[bytes] = []

    def add(self, code: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        self._code.append(struct.pack("=HBBI", code, if_true, if_false, value))

    def deny(self, name: str, error: int) -> None:
        if (number := self.number(name)) >= 0:
            self.add(_EQUAL, number, 0, 1)
            self.add(_RETURN, _ERRNO | error)

    def deny_unless_equal(self, name: str, argument: int, allowed: Iterable[int], error: int) -> None:
        values = list(allowed)
        if (number := self.number(name)) >= 0:
            self.add(_EQUAL, number, 0, len(values) + 3)
            self._load_argument(argument)
            for index, value in enumerate(values):
                self.add(_EQUAL, value, len(values) - index, 0)
            self.add(_RETURN, _ERRNO | error)
            self.add(_LOAD, _NUMBER)

    def deny_if_equal(self, name: str, argument: int, denied: Iterable[int], error: int) -> None:
        values = list(denied)
        if (number := self.number(name)) >= 0:
            self.add(_EQUAL, number, 0, 2 * len(values) + 2)
            self._load_argument(argument)
            for value in values:
                self.add(_EQUAL, value, 0, 1)
                self.add(_RETURN, _ERRNO | error)
            self.add(_LOAD, _NUMBER)

    def deny_bits(self, name: str, argument: int, bits: int, error: int, *, when_set: bool = True) -> None:
        if (number := self.number(name)) >= 0:
            self.add(_EQUAL, number, 0, 4)
            self._load_argument(argument)
            self.add(_ANY_BIT, bits, *((0, 1) if when_set else (1, 0)))
            self.add(_RETURN, _ERRNO | error)
            self.add(_LOAD, _NUMBER)

    def ask_if_equal(self, name: str, argument: int, value: int) -> None:
        if (number := self.number(name)) >= 0:
            self.add(_EQUAL, number, 0, 4)
            self._load_argument(argument)
            self.add(_EQUAL, value, 0, 1)
            self.add(_RETURN, _ASK)
            self.add(_LOAD, _NUMBER)

    def deny_masked(self, name: str, argument: int, mask: int, denied: int, error: int) -> None:
        if (number := self.number(name)) >= 0:
            self.add(_EQUAL, number, 0, 5)
            self._load_argument(argument)
            self.add(_AND, mask)
            self.add(_EQUAL, denied, 0, 1)
            self.add(_RETURN, _ERRNO | error)
            self.add(_LOAD, _NUMBER)

    def _load_argument(self, argument: int) -> None:
        """The low half: every argument that is looked at is an int for the kernel."""
        self.add(_LOAD, _ARGUMENTS + 8 * argument)

    def number(self, name: str) -> int:
        try:
            return _table()[1][name][self._column]
        except KeyError:
            raise ConfigurationError(
                f"policy/sandbox.toml denies the system call {name!r}, which policy/system_calls.toml does not number"
            ) from None

    def finished(self) -> bytes:
        self.add(_RETURN, _ALLOW)
        return b"".join(self._code)


def compile_filter(
    machine: str,
    *,
    denied: Mapping[str, str],
    ioctls: Iterable[int],
    fcntls: Iterable[int],
    locks: Iterable[int],
    sockets: Iterable[str],
    netlink: Iterable[str],
    read_only: bool,
    forks: bool,
    asks_before_writing: bool = False,
    streams: bool = True,
    signals: bool = True,
    pretends: str = "",
) -> bytes:
    """The filter as an array of `struct sock_filter`.

    `denied` maps a group's name to calls, separated by spaces. Of ioctl only the requests `ioctls` are allowed, of
    fcntl those of `fcntls` denied. `read_only` denies opening a file for writing, changing a directory and `locks`.
    `asks_before_writing` leaves the opening of a file to read and write to who listens (seccomp_unotify(2)), which
    opens none; where nobody does, it fails.
    Without `forks` only threads may be made, without `streams` no connections, without `signals` none is sent. Calls
    of `pretends` do nothing and succeed.
    """
    column, arch = MACHINES[machine]
    program = _Program(column)
    program.add(_LOAD, _ARCH)
    program.add(_EQUAL, arch, 1, 0)
    program.add(_RETURN, _KILL_PROCESS)
    program.add(_LOAD, _NUMBER)
    program.add(_AT_LEAST, _table()[0], 0, 1)  # unknown here, or of the x32 interface
    program.add(_RETURN, _ERRNO | errno.ENOSYS)

    for name in pretends.split():
        program.deny(name, 0)
    for group, names in denied.items():
        for name in names.split():
            program.deny(name, errno.ENOSYS if group == _ABSENT else errno.EPERM)
    program.deny_unless_equal("ioctl", 1, ioctls, errno.EPERM)
    program.deny_if_equal("fcntl", 1, fcntls, errno.EPERM)
    program.deny_unless_equal("prlimit64", 0, [0], errno.EPERM)
    program.deny_unless_equal("sched_setaffinity", 0, [0], errno.EPERM)

    families = [FAMILIES[name] for name in sockets]
    program.deny_unless_equal("socket", 0, families, errno.EAFNOSUPPORT)
    if "netlink" in sockets:
        _deny_netlink_but(program, [NETLINK_PROTOCOLS[name] for name in netlink])
    # One of a pair of datagram sockets can be sent to any named socket of the system, which Landlock does not know.
    # Any of a pair can be given a name, which is a file.
    if read_only:
        program.deny("socketpair", errno.EACCES)
    program.deny_masked("socketpair", 1, _SOCK_TYPE, _SOCK_DGRAM, errno.EACCES)
    if not streams:
        program.deny_masked("socket", 1, _SOCK_TYPE, _SOCK_STREAM, errno.EACCES)

    if not signals:
        for name in _SIGNALS:
            program.deny(name, errno.EPERM)
    program.deny_bits("clone", 0, _NEW_NAMESPACES | _CLONE_PARENT, errno.EPERM)
    if not forks:
        program.deny("fork", errno.EPERM)
        program.deny("vfork", errno.EPERM)
        program.deny_bits("clone", 0, _CLONE_THREAD, errno.EPERM, when_set=False)
    if read_only:
        for name in _CHANGES_FILES:
            program.deny(name, errno.EROFS)
        program.deny_if_equal("fcntl", 1, locks, errno.EROFS)
        program.deny("flock", errno.EROFS)
        if asks_before_writing:
            program.ask_if_equal("open", 1, _READ_AND_WRITE)
            program.ask_if_equal("openat", 2, _READ_AND_WRITE)
        program.deny_bits("open", 1, _OPENS_TO_WRITE, errno.EROFS)
        program.deny_bits("openat", 2, _OPENS_TO_WRITE, errno.EROFS)
    return program.finished()


def _deny_netlink_but(program: _Program, protocols: list[int]) -> None:
    """socket(AF_NETLINK, ..., protocol): two arguments of one call."""
    number = program.number("socket")
    program.add(_EQUAL, number, 0, len(protocols) + 5)
    program.add(_LOAD, _ARGUMENTS)
    program.add(_EQUAL, FAMILIES["netlink"], 0, len(protocols) + 2)
    program.add(_LOAD, _ARGUMENTS + 16)
    for index, protocol in enumerate(protocols):
        program.add(_EQUAL, protocol, len(protocols) - index, 0)
    program.add(_RETURN, _ERRNO | errno.EPROTONOSUPPORT)
    program.add(_LOAD, _NUMBER)
