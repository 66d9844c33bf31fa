"""Frame by frame beside TShark: which analysis flags each sets, and what each counts."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ghost.pcap import layout as L
from ghost.pcap.analysis import analyse
from ghost.pcap.array_types import interpreted_kernel, interpreted_vector
from ghost.pcap.file.capture_reader import CaptureReader
from ghost.pcap.kernels.decoder import Decoder
from ghost.pcap.tcp.stream_tracker import Streams

# tshark's field to the bit of FLAGS.
FIELDS = {
    "retransmission": 0, "fast_retransmission": 1, "spurious_retransmission": 2, "out_of_order": 4, "lost_segment": 5,
    "ack_lost_segment": 6, "duplicate_ack": 7, "zero_window": 8, "zero_window_probe": 9, "window_full": 10,
    "window_update": 11, "keep_alive": 12, "keep_alive_ack": 13, "zero_window_probe_ack": 14, "reused_ports": 15,
    "ack_rtt": L.E_ACK_RTT,
}  # fmt: skip

_COLUMNS = (
    "frame.number", "frame.protocols", "tcp.flags.syn", "tcp.flags.ack", "tcp.flags.reset", "tcp.flags.fin",
    "dns.flags.response", "arp.opcode",
)  # fmt: skip
_COUNTED = ("syn", "syn_ack", "rst", "fin", "dns_queries", "dns_responses", "icmp", "arp_requests", "arp_replies")


def flags_by_engine(path: Path) -> dict[int, set[str]]:
    flagged: dict[int, set[str]] = {}
    decoder = Decoder(interpreted_vector, interpreted_kernel)
    streams = Streams(interpreted_vector, interpreted_kernel)
    for batch in CaptureReader(path, interpreted_vector, interpreted_kernel).batches():
        rows = interpreted_vector(batch.rows)
        decoder.decode(interpreted_vector(batch.buffer), rows, batch.count)
        streams.follow(rows, batch.count)
        for row in batch.rows[: batch.count * L.PACKET].reshape(-1, L.PACKET).tolist():
            if row[L.PROTOCOL] == 6 and row[L.FRAGMENT] != 2:
                flagged[row[L.FRAME]] = {name for name, bit in FIELDS.items() if row[L.FLAGS] >> bit & 1}
    return flagged


@cache
def _dissected(path: Path) -> tuple[tuple[list[str], list[str]], ...]:
    """What TShark says of each frame, in one pass: the general columns, and one for each flag."""
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "separator=|"]
    command += [word for name in (*_COLUMNS, *(f"tcp.analysis.{flag}" for flag in FIELDS)) for word in ("-e", name)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = (line.split("|") for line in output.splitlines())
    return tuple((row[: len(_COLUMNS)], row[len(_COLUMNS) :]) for row in rows)


def captures_with(section: str, counted: str, directory: Path) -> list[Path]:
    """Return the captures in which TShark counted something by this name, or the engine found such a section."""
    return [
        path
        for path in sorted([*directory.glob("*.pcap"), *directory.glob("*.pcapng")])
        if json.loads((directory / f"{path.stem}.tshark.json").read_text())[counted] or getattr(analyse(path), section)
    ]


def _is_icmp(protocols: str) -> bool:
    """Headers quoted in ICMP errors are dissected as well, and are not packets of their own."""
    return not {"icmp", "icmpv6"}.isdisjoint(protocols.split(":"))


def flags_by_tshark(path: Path) -> dict[int, set[str]]:
    return {
        int(columns[0]): {name for name, value in zip(FIELDS, flags, strict=True) if value}
        for columns, flags in _dissected(path)
        if "tcp" in columns[1].split(":") and not _is_icmp(columns[1])
    }


def counts_by_engine(path: Path) -> dict[str, int]:
    found = analyse(path)
    totals, dns, icmp, arp = found.tcp and found.tcp.totals, found.dns, found.icmp, found.arp
    return {
        "syn": totals.syn if totals else 0,
        "syn_ack": totals.syn_ack if totals else 0,
        "rst": totals.rst if totals else 0,
        "fin": totals.fin if totals else 0,
        "dns_queries": dns.queries_total if dns else 0,
        "dns_responses": dns.responses_total if dns else 0,
        "icmp": icmp.packets if icmp else 0,
        "arp_requests": arp.total_requests if arp else 0,
        "arp_replies": arp.total_replies if arp else 0,
    }


def counts_by_tshark(path: Path) -> dict[str, int]:
    counts = dict.fromkeys(_COUNTED, 0)
    for (_, protocols, syn, ack, rst, fin, response, opcode), _flags in _dissected(path):
        if _is_icmp(protocols):
            counts["icmp"] += 1
            continue
        counts["syn"] += syn == "1" and ack == "0"
        counts["syn_ack"] += syn == "1" and ack == "1"
        counts["rst"] += rst == "1"
        counts["fin"] += fin == "1"
        if "dns" in protocols.split(":"):
            counts["dns_queries"] += response.split(",").count("0")
            counts["dns_responses"] += response.split(",").count("1")
        counts["arp_requests"] += opcode == "1"
        counts["arp_replies"] += opcode == "2"
    return counts


@dataclass
class Tally:
    """Frames over many captures, flag by flag."""

    both: Counter[str] = field(default_factory=Counter)
    either: Counter[str] = field(default_factory=Counter)
    captures: Counter[str] = field(default_factory=Counter)  # in how many a flag occurs
    differences: list[tuple[str, int, tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    """Capture, frame, the flags that the engine alone sets, those that TShark alone sets."""
    frames: int = 0

    def add(self, path: Path) -> None:
        ours, theirs = flags_by_engine(path), flags_by_tshark(path)
        self.frames += len(theirs)
        seen: set[str] = set()
        for frame in sorted(ours.keys() | theirs.keys()):
            one, other = ours.get(frame, set()), theirs.get(frame, set())
            self.both.update(one & other)
            self.either.update(one | other)
            seen |= one | other
            if one != other:
                self.differences.append((path.name, frame, tuple(sorted(one - other)), tuple(sorted(other - one))))
        self.captures.update(seen)

    def below(self, share: float, least: int) -> dict[str, tuple[int, int]]:
        """Flags of at least `least` frames on which fewer than `share` of them agree."""
        return {
            name: (self.both[name], count)
            for name, count in self.either.items()
            if count >= least and self.both[name] < share * count
        }

    def table(self) -> Iterable[str]:
        yield f"{'flag':<24}{'both':>9}{'either':>9}{'share':>9}{'captures':>10}"
        for name in FIELDS:
            if self.either[name]:
                share = self.both[name] / self.either[name]
                yield f"{name:<24}{self.both[name]:9}{self.either[name]:9}{share:9.2%}{self.captures[name]:10}"
