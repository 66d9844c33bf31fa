"""The layers of the sandbox that this system has, and what a person is told where it lacks some.

It imports little: `ghost shell explain` asks it before it loads the sandbox.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_MACHINES = ("x86_64", "aarch64")  # those of sandbox_filter
LANDLOCK_WITH_TRUNCATION = 3
_LANDLOCK_CREATE_RULESET, _MOUNT_SETATTR = 444, 442
_PR_GET_SECCOMP = 21


@dataclass(frozen=True)
class Kernel:
    """The layers this kernel supports. `landlock` is the interface version, 0 for none."""

    machine: str
    landlock: int
    seccomp: bool
    capabilities: int
    """Those that this process has, as a mask."""
    mount_attributes: bool = False
    """Whether a tree of mounts can be made read-only at once (Linux 5.12)."""

    def may(self, capability: int) -> bool:
        return bool(self.capabilities >> capability & 1)


@cache
def this_kernel() -> Kernel:
    """Detect the kernel's layers without affecting this process."""
    machine = os.uname().machine
    if sys.platform != "linux" or machine not in _MACHINES or sys.maxsize < 2**32:
        return Kernel(machine, 0, False, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    seccomp = libc.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    effective = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff"))
    libc.syscall(_MOUNT_SETATTR, -1, None, ctypes.c_uint32(0), None, ctypes.c_size_t(0))  # of no size: never valid
    mount_attributes = ctypes.get_errno() == errno.EINVAL
    return Kernel(machine, max(version, 0), seccomp, int(effective, 16), mount_attributes)


def missing_sandbox() -> str | None:
    """What a person is told where this system cannot keep every SAFE command from writing; None where it can."""
    kernel = this_kernel()
    if kernel.seccomp and kernel.landlock >= LANDLOCK_WITH_TRUNCATION:
        return None
    old = "The sandbox of this kernel cannot deny all writing (Linux 6.2 and newer can)"
    lacking = old if kernel.seccomp else "This system has no sandbox for commands (Linux has one)"
    return f"{lacking}: local commands that rely on it ask first; az, dig and curl do not."
