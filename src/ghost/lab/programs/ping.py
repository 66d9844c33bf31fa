"""A simulated ping of iputils 20221126."""

from __future__ import annotations

import getopt
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

from ghost.lab.programs.laptop import InterruptError, Laptop, complain, run

OPTIONS = "aAbBc:Cde:DfhF:i:I:l:Lm:M:nN:Op:qQ:rRs:S:t:T:UvVw:W:46"
USAGE = "\nUsage\n  ping [options] <destination>\n\nFor more details see ping(8)."
VERSION = "ping from iputils 20221126"
LARGEST = 9223372036854775807
LINGER_SECONDS = 10.0
INTERFACE_MTU = 1500
IP_AND_ICMP_BYTES = 28
REPLY_TTL = 64


class BadArgumentError(Exception):
    """The message ping prints after its name, and its exit status."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Request:
    destination: str
    count: int | None = None
    interval: float = 1.0
    deadline: float | None = None
    timeout: float | None = None
    size: int = 56
    ttl: int = 64
    quiet: bool = False
    numeric: bool = False
    timestamps: bool = False
    outstanding: bool = False
    dont_fragment: bool = False


@dataclass
class Tally:
    sent: int = 0
    received: int = 0
    errors: int = 0
    rtts_ms: list[float] = field(default_factory=list)


def main(argv: Sequence[str] | None = None) -> int:
    return run("ping", execute, argv)


def execute(laptop: Laptop, argv: Sequence[str]) -> int:
    try:
        request = parse(argv, laptop)
    except getopt.GetoptError as error:
        missing = "requires argument" in error.msg
        complain(f"ping: {'option requires an argument' if missing else 'invalid option'} -- '{error.opt[:1] or '-'}'")
        complain(USAGE)
        return 2
    except BadArgumentError as error:
        complain(f"ping: {error}")
        return error.status
    if request is None:
        return 0
    addresses = [a for a in laptop.resolve(request.destination) if ip_address(a).version == 4]
    if not addresses:
        complain(f"ping: {request.destination}: Name or service not known")
        return 2
    return _probe(laptop, request, addresses[0])


def parse(argv: Sequence[str], laptop: Laptop) -> Request | None:
    """Parse arguments; None if ping prints something else and exits. Raises `GetoptError` and `BadArgumentError`."""
    found, words = getopt.gnu_getopt(list(argv), OPTIONS)
    options = dict(found)
    if "-h" in options:
        raise getopt.GetoptError("help requested", "h")
    if "-V" in options:
        print(VERSION)
        return None
    if not words:
        raise BadArgumentError("usage error: Destination address required", 1)
    if "-6" in options:
        raise BadArgumentError(f"{words[-1]}: Address family for hostname not supported", 2)
    if options.get("-t") == "0":
        raise BadArgumentError("cannot set unicast time-to-live: Invalid argument", 2)
    interval = _real(options.get("-i", "1"), "bad timing interval")
    if interval < 0.002 or "-f" in options:
        raise BadArgumentError("cannot flood, minimal interval for user must be >= 2 ms, use -i 0.002 (or higher)", 2)
    interface = options.get("-I")
    if interface is not None and interface not in (laptop.machine.interface, "lo", laptop.address):
        raise BadArgumentError(f"SO_BINDTODEVICE {interface}: No such device", 2)
    return Request(
        destination=words[-1],
        count=_whole(options["-c"], 1, LARGEST) if "-c" in options else None,
        interval=interval,
        deadline=_whole(options["-w"], 0, 2147483647) if "-w" in options else None,
        timeout=_real(options["-W"], "bad linger time") if "-W" in options else None,
        size=_whole(options.get("-s", "56"), 0, 65507),
        ttl=_whole(options.get("-t", "64"), 0, 255),
        quiet="-q" in options,
        numeric="-n" in options,
        timestamps="-D" in options,
        outstanding="-O" in options,
        dont_fragment=options.get("-M") == "do",
    )


def _probe(laptop: Laptop, request: Request, address: str) -> int:
    clock, tally = laptop.clock, Tally()
    print(f"PING {request.destination} ({address}) {request.size}({request.size + IP_AND_ICMP_BYTES}) bytes of data.")
    started_at = clock.monotonic()
    last_sent = started_at
    try:
        while True:
            tally.sent += 1
            last_sent = clock.monotonic()
            answered = _one(laptop, request, address, tally)
            sys.stdout.flush()
            enough = request.count is not None and (
                tally.received >= request.count if request.deadline else tally.sent >= request.count
            )
            if enough:
                break
            if request.deadline and clock.monotonic() - started_at + request.interval > request.deadline:
                break
            clock.sleep(request.interval)
            if request.outstanding and not answered:
                print(f"{_stamp(laptop, request)}no answer yet for icmp_seq={tally.sent}")
        if not tally.received and not tally.errors:
            seconds_left = math.inf if request.deadline is None else request.deadline - (clock.monotonic() - started_at)
            clock.sleep(max(0.0, min(request.timeout or LINGER_SECONDS, seconds_left)))
    except InterruptError:
        pass
    _summary(request, tally, last_sent - started_at)
    required = request.count if request.deadline and request.count else 1
    return 0 if tally.received >= required else 1


def _one(laptop: Laptop, request: Request, address: str, tally: Tally) -> bool:
    """Send one echo request; return whether a reply arrived."""
    sequence, start = f"icmp_seq={tally.sent}", _stamp(laptop, request)
    path, host = laptop.path(address), laptop.echoes(address)
    line = ""
    if request.dont_fragment and request.size + IP_AND_ICMP_BYTES > INTERFACE_MTU:
        tally.errors += 1
        complain(f"ping: local error: message too long, mtu={INTERFACE_MTU}")
        return True
    if request.ttl <= len(path):
        tally.errors += 1
        line = f"{start}From {path[request.ttl - 1]} {sequence} Time to live exceeded"
    elif host is None and laptop.is_neighbour(address):
        tally.errors += 1
        line = f"{start}From {laptop.address} {sequence} Destination Host Unreachable"
    elif host is not None:
        rtt = laptop.rtt_ms(host.rtt_ms)
        laptop.clock.sleep(rtt / 1000)
        tally.received += 1
        tally.rtts_ms.append(rtt)
        numeric = request.numeric or request.destination == address
        name = None if numeric else laptop.name_of(address)
        source = f"{name} ({address})" if name else address
        octets, ttl = request.size + 8, REPLY_TTL - len(path)
        line = f"{_stamp(laptop, request)}{octets} bytes from {source}: {sequence} ttl={ttl} time={_time(rtt)} ms"
    if line and not request.quiet:
        print(line)
    return bool(line)


def _summary(request: Request, tally: Tally, seconds: float) -> None:
    print(f"\n--- {request.destination} ping statistics ---")
    errors = f", +{tally.errors} errors" if tally.errors else ""
    loss = f"{100 * (tally.sent - tally.received) / tally.sent:.6g}"
    print(
        f"{tally.sent} packets transmitted, {tally.received} received{errors}, {loss}% packet loss, "
        f"time {round(seconds * 1000)}ms"
    )
    if tally.rtts_ms:
        mean = sum(tally.rtts_ms) / len(tally.rtts_ms)
        deviation = math.sqrt(max(0.0, sum(rtt * rtt for rtt in tally.rtts_ms) / len(tally.rtts_ms) - mean * mean))
        spread = "/".join(f"{value:.3f}" for value in (min(tally.rtts_ms), mean, max(tally.rtts_ms), deviation))
        print(f"rtt min/avg/max/mdev = {spread} ms")
    else:
        print()


def _stamp(laptop: Laptop, request: Request) -> str:
    return f"[{laptop.clock.now().timestamp():.6f}] " if request.timestamps else ""


def _time(rtt: float) -> str:
    """Format with three digits like ping: 0.047, 1.23, 12.3, 123."""
    if rtt >= 100:
        return f"{rtt:.0f}"
    return f"{rtt:.1f}" if rtt >= 10 else f"{rtt:.2f}" if rtt >= 1 else f"{rtt:.3f}"


def _whole(text: str, low: int, high: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise BadArgumentError(f"invalid argument: '{text}'", 1) from None
    if not low <= value <= high:
        raise BadArgumentError(f"invalid argument: '{text}': out of range: {low} <= value <= {high}", 1)
    return value


def _real(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise BadArgumentError(f"option argument contains garbage: {text}", 2) from None
    if not 0 <= value <= 2147483647:
        raise BadArgumentError(f"{what}: {text}", 2)
    return value


if __name__ == "__main__":
    sys.exit(main())
