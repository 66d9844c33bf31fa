"""The hosts of a scene: clients on one segment, a router, an impaired link, and a server. Addresses come from the seed.

client, second, third ... -- bridge "lan" of router -- "wan" == user-space link == "eth0" of server
"""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.pcap.netns.link import Impairment, start_link
from tests.pcap.netns.space import Space

LONGEST_SECONDS = 100.0
"""No scene lasts longer: the link ends then."""


@dataclass(frozen=True)
class Layout:
    """What lies between the router and the server, and how the hosts send."""

    there: Impairment = field(default_factory=Impairment)  # towards the server
    back: Impairment = field(default_factory=Impairment)
    wan_mtu: int = 1500
    neighbours: int = 0  # further hosts beside the client
    offload: bool = False
    ipv6: bool = False


class Stage:
    """Builds the hosts, hands out addresses and ports, records."""

    def __init__(self, seed: int, layout: Layout, directory: Path) -> None:
        self.dice = random.Random(seed)
        self.directory = directory
        self.layout = layout
        self._ports: set[int] = set()
        self._pool = ThreadPoolExecutor(64)
        self._working: list[Future[object]] = []
        self._recordings: list[_Recording] = []
        self._draw_addresses()
        self.client, self.router, self.server = Space("client"), Space("router"), Space("server")
        self.neighbours = [Space(f"neighbour{n}") for n in range(layout.neighbours)]
        self._build(seed)

    # ------------------------------------------------------------------------------------------------ addresses

    def _draw_addresses(self) -> None:
        dice = self.dice
        lan = f"10.{dice.randrange(1, 250)}.{dice.randrange(250)}"
        far = dice.choice((f"172.{dice.randrange(16, 32)}.{dice.randrange(250)}", f"192.168.{dice.randrange(250)}"))
        hosts = dice.sample(range(10, 240), 12)
        self.lan, self.far = f"{lan}.0/24", f"{far}.0/24"
        self.lan_gateway, self.far_gateway = f"{lan}.1", f"{far}.1"
        self.client_ip = f"{lan}.{hosts[0]}"
        self.neighbour_ips = [f"{lan}.{host}" for host in hosts[1:5]]
        self.free_lan_ip = f"{lan}.{hosts[5]}"
        self.server_ip, self.other_ip, self.dns_ip, self.free_far_ip = (f"{far}.{host}" for host in hosts[6:10])
        site = dice.randrange(0x1000, 0xFFFF)
        self.client_ip6, self.server_ip6 = f"fd00:{site:x}:1::{hosts[0]}", f"fd00:{site:x}:2::{hosts[6]}"
        self._site = f"fd00:{site:x}"

    def _mac(self) -> str:
        return "02:" + ":".join(f"{self.dice.randrange(256):02x}" for _ in range(5))

    def port(self, low: int = 2000, high: int = 30000) -> int:
        while (port := self.dice.randrange(low, high)) in self._ports:
            pass
        self._ports.add(port)
        return port

    # ------------------------------------------------------------------------------------------------- building

    def _build(self, seed: int) -> None:
        layout, router = self.layout, self.router
        router.ip("link add lan type bridge", f"link set lan address {self._mac()} up")
        hosts = [(self.client, self.client_ip), *zip(self.neighbours, self.neighbour_ips, strict=False)]
        for number, (host, address) in enumerate(hosts):
            host.cable("eth0", self._mac(), router, f"port{number}", self._mac())
            router.ip(f"link set port{number} master lan")
            host.ip(f"address add {address}/24 dev eth0", f"route add default via {self.lan_gateway}")
            if not layout.offload:
                host.whole_segments_only("eth0")
                router.whole_segments_only(f"port{number}")
        near = router.tap("wan", self._mac(), layout.wan_mtu)
        end = self.server.tap("eth0", self._mac(), layout.wan_mtu)
        router.ip(f"address add {self.lan_gateway}/24 dev lan", f"address add {self.far_gateway}/24 dev wan")
        addresses = (self.server_ip, self.other_ip, self.dns_ip)
        self.server.ip(*(f"address add {address}/24 dev eth0" for address in addresses))
        self.server.ip(f"route add default via {self.far_gateway}")
        router.sysctl({"net.ipv4.ip_forward": 1, "net.ipv4.icmp_ratelimit": 0})
        # Seconds of waiting for a neighbour that is not there would only lengthen the recording.
        for host, device in ((self.client, "eth0"), (router, "wan")):
            host.sysctl({f"net.ipv4.neigh.{device}.retrans_time_ms": 350})
        if layout.ipv6:
            self._build_ipv6()
        self._link = start_link(
            near, end, layout.there, layout.back, seed, LONGEST_SECONDS, self.directory / "link.json"
        )
        os.close(near)
        os.close(end)

    def _build_ipv6(self) -> None:
        for host in (self.client, self.router, self.server):
            host.sysctl({f"net.ipv6.conf.{which}.disable_ipv6": 0 for which in ("all", "default")})
        for host, device, address in (
            (self.client, "eth0", self.client_ip6), (self.router, "lan", f"{self._site}:1::1"),
            (self.router, "wan", f"{self._site}:2::1"), (self.server, "eth0", self.server_ip6),
        ):  # fmt: skip
            host.sysctl({f"net.ipv6.conf.{device}.disable_ipv6": 0})
            host.ip(f"address add {address}/64 dev {device} nodad")
        self.router.sysctl({"net.ipv6.conf.all.forwarding": 1})
        self.client.run("ip", "-6", "route", "add", "default", "via", f"{self._site}:1::1")
        self.server.run("ip", "-6", "route", "add", "default", "via", f"{self._site}:2::1")

    # ------------------------------------------------------------------------------------------------ recording

    def record(self, space: Space, device: str = "eth0", name: str = "capture", wanted: str = "") -> Path:
        """Begin to record; `close` ends it."""
        recording = _Recording(space, device, self.directory / f"{name}.pcap", wanted, self.layout.offload)
        self._recordings.append(recording)
        return recording.file

    # -------------------------------------------------------------------------------------------------- playing

    def beside(self, work: Callable[[], object], *, times: int = 1) -> None:
        """Begin work in threads; `together` waits for it and raises what went wrong in it."""
        self._working += [self._pool.submit(work) for _ in range(times)]

    def together(self, seconds: float = 30.0) -> None:
        done, late = wait(self._working, seconds, FIRST_EXCEPTION)
        for each in done:
            each.result()
        if late:
            raise TimeoutError(f"{len(late)} parts of the scene did not end within {seconds:.0f} s")
        self._working.clear()

    def leave(self) -> None:
        """Wait for nothing that still works."""
        self._working.clear()

    def close(self) -> None:
        for recording in self._recordings:
            recording.stop()
        os.kill(self._link, signal.SIGTERM)
        os.waitpid(self._link, 0)


@contextmanager
def staged(seed: int, layout: Layout, directory: Path) -> Iterator[Stage]:
    stage = Stage(seed, layout, directory)
    try:
        yield stage
    finally:
        stage.close()


class NotWholeError(RuntimeError):
    """The kernel dropped frames before tcpdump read them: the capture is no truth about the scene."""


@dataclass
class _Recording:
    space: Space
    device: str
    file: Path
    wanted: str
    large_frames: bool
    _tcpdump: subprocess.Popen[str] = field(init=False)

    def __post_init__(self) -> None:
        # The ring has a slot of this size for each frame: no larger than frames are, or it overflows.
        size = ["-s", "65535", "-B", "131072"] if self.large_frames else ["-s", "2048", "-B", "32768"]
        command = ["tcpdump", "-i", self.device, "-n", "-U", "--immediate-mode", "-Z", "root", *size]
        self._tcpdump = self.space.start(*command, "-w", str(self.file), self.wanted, stderr=subprocess.PIPE)
        assert self._tcpdump.stderr is not None
        for said in self._tcpdump.stderr:
            if "listening on" in said:
                return
        raise RuntimeError(f"tcpdump does not listen on {self.device} of {self.space.name}")

    def stop(self) -> None:
        """After the last frames were written; fails where the kernel dropped some, the capture would be no truth."""
        _wait_until_quiet(self.file)
        self._tcpdump.send_signal(signal.SIGINT)
        _, said = self._tcpdump.communicate(timeout=10)
        if "0 packets dropped by kernel" not in said:
            raise NotWholeError(f"the recording of {self.device} of {self.space.name} is not whole: {said.strip()}")


def _wait_until_quiet(file: Path, quiet_s: float = 0.12, longest_s: float = 3.0) -> None:
    begun = changed = time.monotonic()
    size = -1
    while time.monotonic() - changed < quiet_s and time.monotonic() - begun < longest_s:
        now = file.stat().st_size
        if now != size:
            size, changed = now, time.monotonic()
        select.select([], [], [], 0.02)
