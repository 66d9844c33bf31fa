"""The seccomp filter, run by an interpreter of its byte code, for both machines: what each call is answered."""

from __future__ import annotations

import errno
import struct
from collections.abc import Sequence

import pytest

from ghost.errors import ConfigurationError
from ghost.shell.run.sandbox_filter import MACHINES, _table, compile_filter
from ghost.shell.run.sandbox_policy import read_sandbox_policy

ALLOW, KILL, ERRNO, ASK = 0x7FFF0000, 0x80000000, 0x00050000, 0x7FC00000


def answer(code: bytes, arch: int, number: int, arguments: Sequence[int] = ()) -> int | None:
    """The errno of a call, None where allowed, -1 where the process is ended, -2 where the shell is asked."""
    call = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, arch, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    accumulator, at = 0, 0
    while True:
        operation, if_true, if_false, value = struct.unpack_from("=HBBI", code, at * 8)
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("<I", call, value)
        elif operation == 0x54:
            accumulator &= value
        elif operation in (0x15, 0x35, 0x45):
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[operation]
            at += if_true if holds else if_false
        else:
            assert operation == 0x06
            return {ALLOW: None, KILL: -1, ASK: -2}.get(value, value & 0xFFFF)


def filter_for(machine: str, **options: object) -> bytes:
    policy = read_sandbox_policy()
    settings: dict[str, object] = {"sockets": ("inet", "inet6", "netlink"), "read_only": False, "forks": False}
    return compile_filter(
        machine,
        denied=policy.denied,
        ioctls=policy.ioctls,
        fcntls=policy.fcntls,
        locks=policy.locks,
        netlink=policy.netlink,
        **{**settings, **options},
    )


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    return request.param


class Calls:
    def __init__(self, machine: str, **options: object) -> None:
        self.column, self.arch = MACHINES[machine]
        self.code = filter_for(machine, **options)

    def __call__(self, name: str, *arguments: int) -> int | None:
        number = _table()[1][name][self.column]
        assert number >= 0
        return answer(self.code, self.arch, number, arguments)


def test_every_denied_call_is_denied(machine: str) -> None:
    calls = Calls(machine)
    for group, names in read_sandbox_policy().denied.items():
        for name in names.split():
            if _table()[1][name][calls.column] >= 0:
                assert calls(name) == (errno.ENOSYS if group == "absent" else errno.EPERM), name


def test_calls_that_programs_need_are_allowed(machine: str) -> None:
    common = {
        "x86_64": [0, 1, 3, 9, 11, 39, 59, 202, 231, 257, 318],
        "aarch64": [63, 64, 57, 222, 215, 172, 221, 98, 94, 56, 278],
    }
    calls = Calls(machine)
    for number in common[machine]:
        assert answer(calls.code, calls.arch, number) is None, number


def test_another_architecture_ends_the_process(machine: str) -> None:
    calls = Calls(machine)
    assert answer(calls.code, 0x40000003, 1) == -1


@pytest.mark.parametrize("number", [470, 500, 0x40000000, 0x40000001, 0x4000003B, 2**32 - 1])
def test_unknown_calls_and_the_x32_interface_do_not_exist(machine: str, number: int) -> None:
    calls = Calls(machine)
    assert answer(calls.code, calls.arch, number) == errno.ENOSYS


def test_sockets_are_of_the_listed_families_and_protocols(machine: str) -> None:
    calls = Calls(machine)
    assert [calls("socket", family, 1, 0) for family in (2, 10, 16)] == [None] * 3
    assert [calls("socket", family, 3, 0) for family in (0, 1, 17, 38, 40)] == [errno.EAFNOSUPPORT] * 5
    assert [calls("socket", 16, 3, protocol) for protocol in (0, 4, 12, 16)] == [None] * 4
    assert [calls("socket", 16, 3, protocol) for protocol in (6, 9, 15)] == [errno.EPROTONOSUPPORT] * 3
    assert calls("socket", 2, 3, 6) is None  # a protocol of another family is not netlink's
    none = Calls(machine, sockets=())
    assert {none("socket", family, 1, 0) for family in (1, 2, 10, 16, 17)} == {errno.EAFNOSUPPORT}


def test_processes_are_made_only_where_the_profile_allows_it(machine: str) -> None:
    thread, child = 0x3D0F00, 0x1200011
    single, many = Calls(machine), Calls(machine, forks=True)
    assert (single("clone", thread), single("clone", child)) == (None, errno.EPERM)
    assert (many("clone", thread), many("clone", child)) == (None, None)
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert many("clone", child | flag) == errno.EPERM


def test_a_read_only_profile_opens_nothing_for_writing(machine: str) -> None:
    calls = Calls(machine, read_only=True)
    assert calls("openat", 0, 0, 0o2000000) is None
    for flags in (0o1, 0o2, 0o100, 0o1000, 0o2 | 0o20000000, 0o101):
        assert calls("openat", 0, 0, flags) == errno.EROFS
        assert Calls(machine)("openat", 0, 0, flags) is None
    for name in ("unlinkat", "renameat2", "mkdirat", "symlinkat", "linkat", "mknodat", "truncate"):
        assert calls(name) == errno.EROFS


def test_no_read_only_profile_lets_a_file_be_opened_for_writing(machine: str) -> None:
    """Of any of them: a profile that left it in could write through what stands at its output."""
    policy = read_sandbox_policy()
    profiles = [rule.profile for rule in policy.rules if rule.profile.read_only]
    assert {"processes", "processes_by_files", "tables", "probe"} <= {profile.name for profile in profiles}
    for asks in {profile.asks_before_writing for profile in profiles}:  # nothing else of a profile is in these answers
        calls = Calls(machine, read_only=True, asks_before_writing=asks)
        for flags in range(0o10000):
            if flags & (0o3 | 0o100 | 0o1000):
                for extra in (0, 0o2000000, 0o20000000, 1 << 32):
                    answered = calls("openat", 0, 0, flags | extra)
                    assert answered in (errno.EROFS, -2 if asks else errno.EROFS), (asks, flags)


def test_who_listens_is_asked_only_about_opening_to_read_and_write(machine: str) -> None:
    calls = Calls(machine, read_only=True, asks_before_writing=True)
    assert (calls("openat", 0, 0, 0o2), calls("openat", 0, 0, 0)) == (-2, None)
    assert {calls("openat", 0, 0, flags) for flags in (0o1, 0o3, 0o102, 0o1002)} == {errno.EROFS}


def test_limits_and_terminals_of_others_are_out_of_reach(machine: str) -> None:
    calls = Calls(machine)
    assert (calls("prlimit64", 0, 7), calls("prlimit64", 42, 7)) == (None, errno.EPERM)
    assert (calls("ioctl", 0, 0x5413), calls("ioctl", 0, 0x5412)) == (None, errno.EPERM)


def test_what_is_pretended_succeeds(machine: str) -> None:
    assert Calls(machine, pretends="fchmodat")("fchmodat") == 0


def test_a_call_without_a_number_is_a_fault_of_the_policy() -> None:
    with pytest.raises(ConfigurationError, match="'no_such_call'"):
        compile_filter(
            "x86_64",
            denied={"x": "no_such_call"},
            **dict.fromkeys(("ioctls", "fcntls", "locks", "sockets", "netlink"), ()),
            read_only=False,
            forks=False,
        )


def test_the_numbers_differ_within_a_machine() -> None:
    newest, numbers = _table()
    for column in (0, 1):
        known = [pair[column] for pair in numbers.values() if pair[column] >= 0]
        assert len(known) == len(set(known))
        assert max(known) < newest
