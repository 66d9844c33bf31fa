"""Network namespaces without a name, the devices between them, and programs started inside. Needs root."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x0002, 0x1000

_libc = ctypes.CDLL(None, use_errno=True)


def _call(function: str, *arguments: int) -> None:
    if getattr(_libc, function)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{function} failed: {os.strerror(number)}; namespaces take root")


def die_with_parent() -> None:
    """For a new child: no program outlives the scene."""
    _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _own_namespace() -> int:
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


class Space:
    """One network namespace: a host of the scene. It lives as long as this process, its children and its devices."""

    def __init__(self, name: str) -> None:
        self.name = name
        before = _own_namespace()
        _call("unshare", _CLONE_NEWNET)
        try:
            self._file = _own_namespace()
        finally:
            _call("setns", before, _CLONE_NEWNET)
            os.close(before)
        # No neighbour discovery among the traffic unless a scene asks for IPv6.
        self.sysctl({"net.ipv6.conf.all.disable_ipv6": 1, "net.ipv6.conf.default.disable_ipv6": 1})
        self.ip("link set lo up")

    @contextmanager
    def entered(self) -> Iterator[None]:
        """This thread is in the namespace: what it opens and starts there stays there."""
        before = _own_namespace()
        _call("setns", self._file, _CLONE_NEWNET)
        try:
            yield
        finally:
            _call("setns", before, _CLONE_NEWNET)
            os.close(before)

    def start(self, *command: str, **options: object) -> subprocess.Popen[str]:
        with self.entered():
            return subprocess.Popen(command, text=True, preexec_fn=die_with_parent, **options)  # type: ignore[call-overload,no-any-return]

    def run(self, *command: str, stdin: str = "") -> str:
        with self.entered():
            done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=20)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} in {self.name} failed: {done.stderr.strip()}\n{stdin}")
        return done.stdout

    def ip(self, *commands: str) -> None:
        self.run("ip", "-batch", "-", stdin="\n".join(commands) + "\n")

    def filter(self, hook: str, rule: str) -> None:
        """A rule of the host's packet filter."""
        chain = f"chain {hook} {{ type filter hook {hook} priority 0; {rule}; }}"
        self.run("nft", "-f", "-", stdin=f"table inet guard {{\n{chain}\n}}\n")

    def translate(self, rule: str) -> None:
        """A rule for the source addresses of what leaves."""
        chain = f"chain outward {{ type nat hook postrouting priority 100; {rule}; }}"
        self.run("nft", "-f", "-", stdin=f"table ip translation {{\n{chain}\n}}\n")

    def sysctl(self, settings: dict[str, int | str]) -> None:
        with self.entered():
            for name, value in settings.items():
                Path("/proc/sys", *name.split(".")).write_text(str(value))

    def socket(self, kind: int = socket.SOCK_STREAM, family: int = socket.AF_INET, protocol: int = 0) -> socket.socket:
        with self.entered():
            return socket.socket(family, kind, protocol)

    def tap(self, device: str, mac: str, mtu: int = 1500) -> int:
        """A device whose frames this process reads and writes."""
        with self.entered():
            file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            fcntl.ioctl(file, _TUNSETIFF, struct.pack("16sH", device.encode(), _IFF_TAP | _IFF_NO_PI))
        self.ip(f"link set {device} address {mac} mtu {mtu} txqueuelen 10000 up")
        return file

    def cable(self, device: str, mac: str, other: Space, other_device: str, other_mac: str, mtu: int = 1500) -> None:
        """A pair of devices joined without loss or delay."""
        peer = f"peer name {other_device} address {other_mac} netns /proc/{os.getpid()}/fd/{other._file}"
        self.ip(f"link add {device} address {mac} mtu {mtu} type veth {peer}", f"link set {device} up")
        other.ip(f"link set {other_device} mtu {mtu} up")

    def whole_segments_only(self, *devices: str) -> None:
        """Switch segmentation offload off, so that frames are as on a wire."""
        for device in devices:
            self.run("ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off")
