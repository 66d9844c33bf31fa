"""Shared facts for the rules, computed once per capture: services, directions between hosts, symptoms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ghost.pcap.array_queries import among, distinct, narrow
from ghost.pcap.array_types import Array
from ghost.pcap.findings.phrasing import FRAMES, percent
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Columns, Floats, Mask, PerStream, StreamRows, columns_of
from ghost.pcap.model import Analysis, Direction, IcmpError, Stream, UnansweredArp

MOST_BULK = 100
MOST_GROUPS = 50
"""Services, hosts or pairs looked at one by one; the rest says nothing that fifty have not said."""
MOST_PATHS = 300
"""Directions between hosts looked at one by one, those with most trouble first."""
FIRST_TTLS = (64, 128, 255)
"""What systems choose: a packet that still carries one has passed no router."""
Path = tuple[str, str]
"""Sender and receiver address."""


def observe(analysis: Analysis) -> Observed:
    summary = analysis.summary
    too_big: dict[Path, list[IcmpError]] = {}
    for error in analysis.icmp.errors if analysis.icmp else ():
        if says_too_big(error):
            too_big.setdefault((error.dst, error.unreachable_dst or error.src), []).append(error)
    return Observed(
        analysis=analysis,
        columns=columns_of(analysis.tcp.streams if analysis.tcp else ()),
        first_ns=summary.first_ns or 0,
        last_ns=summary.last_ns or 0,
        copies_pct=percent(summary.duplicate_packets.count, summary.total_packets),
        too_big=too_big,
    )


def says_too_big(error: IcmpError) -> bool:
    """Return whether the error is "packet too big" (ICMPv6) or "fragmentation needed" (RFC 1191)."""
    return error.kind == "packet_too_big" or (error.kind == "unreachable" and (error.version, error.code) == (4, 4))


def directions(stream: Stream) -> Iterator[tuple[Direction, Direction]]:
    """Sender and receiver, both ways."""
    yield stream.client, stream.server
    yield stream.server, stream.client


def sent_by(address: str, streams: Sequence[Stream]) -> list[Direction]:
    """Return the side of each stream that has this address."""
    return [s.client if s.client.endpoint.address == address else s.server for s in streams]


@dataclass(frozen=True)
class Traffic:
    """What one host sent to another, over all their streams."""

    source: str
    destination: str
    streams: int
    packets: int
    data_segments: int
    sent: int
    """Segments with data, SYN or FIN that left the sender, repeats included: what a loss rate is a share of."""
    retransmissions: int
    fast: int
    rto: int
    lost_upstream: int
    lost_downstream: int
    reordered: int
    needless: int
    capture_gaps: int
    doubtful: int
    """Repeats that may be copies."""
    duplicate_acks_back: int

    @property
    def lost(self) -> int:
        return self.lost_upstream + self.lost_downstream

    @property
    def loss_pct(self) -> float:
        return percent(self.lost, self.sent)


_SUMS = {
    "retransmissions": "retransmissions", "fast": "fast_retransmissions", "rto": "rto_retransmissions",
    "lost_upstream": "lost_upstream", "lost_downstream": "lost_downstream", "needless": "needless",
    "capture_gaps": "capture_gaps", "doubtful": "doubtful_repeats",
}  # fmt: skip


@dataclass
class Observed:
    analysis: Analysis
    columns: Columns
    first_ns: int
    last_ns: int
    copies_pct: float
    """Packets captured more than once."""
    too_big: dict[Path, list[IcmpError]] = field(default_factory=dict)
    """What routers told a sender about its packets being too big for the way to a receiver."""

    # ----------------------------------------------------------------------------------------- masks of streams

    @cached_property
    def one_sided(self) -> Mask:
        packets = self.columns.sides("packets")
        result: Mask = (packets == 0).any(axis=1)
        return result

    @cached_property
    def only_syn(self) -> Mask:
        """bool[streams]: only SYNs (also with data, RFC 7413) and the client's resets, and nothing back."""
        packets, syn, rst = (self.columns.sides(name) for name in ("packets", "syn", "rst"))
        asked = (syn[:, CLIENT] > 0) & (packets[:, CLIENT] <= syn[:, CLIENT] + rst[:, CLIENT])
        result: Mask = (packets[:, SERVER] == 0) & asked
        return result

    @cached_property
    def served(self) -> Mask:
        """bool[streams]: the server sent more than the handshake."""
        c = self.columns
        known = (c.handshake == "not_seen") & (c.sides("packets")[:, SERVER] > 0)
        result: Mask = (c.handshake == "completed") | known
        return result

    @cached_property
    def foreign_reset(self) -> Mask:
        """bool[streams, 2]: the side's RST has a TTL that none of its other packets has: a third device sent it."""
        low, high, ttl = (self.columns.sides(name) for name in ("ttl_min", "ttl_max", "rst_ttl"))
        tolerance = threshold("third_party_reset.ttl_tolerance")
        known = (low >= 0) & (ttl >= 0)
        elsewhere = (ttl < low - tolerance) | (ttl > high + tolerance) | self.reset_beside
        result: Mask = known & elsewhere & ~self.traced[:, np.newaxis]
        return result

    @cached_property
    def reset_beside(self) -> Mask:
        """bool[streams, 2]: the side's RST was sent on the captured segment although all other packets of that host
        have passed a router."""
        c = self.columns
        low, high, ttl = (c.sides(name) for name in ("ttl_min", "ttl_max", "rst_ttl"))
        far = np.ones(len(c.addresses), np.bool_)
        heard = np.zeros(len(c.addresses), np.bool_)
        heard[c.hosts[low >= 0]] = True
        for values in (low, high):
            far[c.hosts[(low >= 0) & among(values, FIRST_TTLS)]] = False
        here = among(low, FIRST_TTLS)[:, ::-1]
        result: Mask = among(ttl, FIRST_TTLS) & here & (heard & far)[c.hosts]
        return result

    @cached_property
    def traced(self) -> Mask:
        """bool[streams]: probes of a TCP traceroute, whose hop limits start at the lowest and climb."""
        c = self.columns
        limits = np.stack([c.sides("ttl_min")[:, CLIENT], c.sides("ttl_max")[:, CLIENT]], axis=1)
        low = (limits > 0) & (limits <= threshold("traceroute.max_hops"))
        pair = c.hosts[:, CLIENT] * max(len(c.addresses), 1) + c.hosts[:, SERVER]
        known = distinct((np.stack([pair, pair], axis=1) * 256 + limits)[low])
        pairs, begin, hops = np.unique(known // 256, return_index=True, return_counts=True)
        lowest = known[begin] % 256 if len(known) else known
        climbing = pairs[(hops >= threshold("traceroute.min_hops")) & (lowest <= threshold("traceroute.lowest_hop"))]
        result: Mask = low.any(axis=1) & among(pair, climbing)
        return result

    # ---------------------------------------------------------------------------------------------------- services

    @cached_property
    def service(self) -> PerStream:
        """int[streams]: server address id and port as one number."""
        result: Array = self.columns.hosts[:, SERVER] << 16 | self.columns.ports[:, SERVER]
        return result

    def name_of(self, service: int) -> tuple[str, int]:
        return self.columns.host(service >> 16), service & 0xFFFF

    def to_service(self, host: str, port: int | None) -> Mask:
        """Streams to a server address and port."""
        c = self.columns
        mine = c.hosts[:, SERVER] == self.number_of.get(host, -1)
        return np.asarray(mine if port is None else mine & (c.ports[:, SERVER] == port), np.bool_)

    def answering_ports(self, host: int) -> list[int]:
        """Return the ports on which a host answered, refusals included, resets of third devices not."""
        c = self.columns
        mine = (c.hosts[:, SERVER] == host) & (c.sides("packets")[:, SERVER] > 0)
        return [int(port) for port in distinct(c.ports[mine, SERVER])]

    def ttls(self, host: int) -> list[int]:
        """Return the TTLs of a host's packets other than resets."""
        c = self.columns
        ttl = c.sides("ttl_min")
        return [int(value) for value in distinct(ttl[(c.hosts == host) & (ttl >= 0)])]

    # ------------------------------------------------------------------------------------------------------- paths

    @cached_property
    def path_keys(self) -> tuple[StreamRows, Array]:
        """Directed host pairs, and for each side of each stream the index of its pair."""
        hosts = self.columns.hosts
        count = max(len(self.columns.addresses), 1)
        keys = hosts * count + hosts[:, ::-1]
        known, inverse = np.unique(keys, return_inverse=True)
        return known, inverse.reshape(-1, 2)

    @cached_property
    def _sums(self) -> dict[str, Array]:
        """Sums of `Traffic` for every directed pair; streams captured in one direction count for packets only."""
        c = self.columns
        known, which = self.path_keys
        both = np.repeat(~self.one_sided, 2).reshape(-1, 2)

        def add(values: Array, mask: Mask | None = None) -> Array:
            weights = values if mask is None else values * mask
            return narrow(np.bincount(which.ravel(), weights.ravel(), len(known)).astype(np.int64))

        packets, data = c.sides("packets"), c.sides("data_segments")
        sent = data + sum(c.sides(name) for name in ("syn", "syn_ack", "fin", "lost_upstream"))
        return {
            "streams": add((packets > 0).astype(np.int64)),
            "packets": add(packets),
            "data_segments": add(data),
            "reordered": add(c.sides("reordered")),
            "sent": add(sent, both),
            "duplicate_acks_back": add(c.sides("duplicate_acks")[:, ::-1], both),
            **{name: add(c.sides(column), both) for name, column in _SUMS.items()},
        }

    @property
    def sent_on(self) -> Array:
        """Packets on each of `path_keys`."""
        return self._sums["packets"]

    def _traffic_at(self, at: int) -> Traffic:
        key, hosts = int(self.path_keys[0][at]), max(len(self.columns.addresses), 1)
        numbers = {name: int(values[at]) for name, values in self._sums.items()}
        return Traffic(self.columns.host(key // hosts), self.columns.host(key % hosts), **numbers)

    def traffic(self, source: str, destination: str) -> Traffic | None:
        """Return what one host sent to another; None if nothing was captured."""
        at = self._place_of(source, destination)
        return self._traffic_at(at) if at >= 0 and self._sums["packets"][at] else None

    def impaired_directions(self) -> Iterator[Traffic]:
        """Directions with lost, late or repeated segments."""
        trouble = self._impairments
        for at in np.argsort(-trouble, kind="stable")[:MOST_PATHS].tolist():
            if trouble[at] < self._least_impairment:
                return
            yield self._traffic_at(at)

    @property
    def directions_skipped(self) -> int:
        """Return how many impaired directions are left out for their number."""
        return max(int((self._impairments >= self._least_impairment).sum()) - MOST_PATHS, 0)

    @cached_property
    def _impairments(self) -> Array:
        sums = self._sums
        counted = (sums[name] for name in ("lost_upstream", "lost_downstream", "reordered", "needless"))
        return sum(counted, np.zeros(1, np.int64))

    @property
    def _least_impairment(self) -> float:
        return min(threshold("loss.min_segments"), threshold("reordering.min_segments"))

    def _place_of(self, source: str, destination: str) -> int:
        """Return the index of a directed pair in `path_keys`, or -1."""
        ends = self.number_of.get(source, -1), self.number_of.get(destination, -1)
        key = ends[0] * max(len(self.columns.addresses), 1) + ends[1]
        known = self.path_keys[0]
        at = int(np.searchsorted(known, key))
        return at if min(ends) >= 0 and at < len(known) and known[at] == key else -1

    def of_path(self, path: Path) -> tuple[StreamRows, Array]:
        """Return the streams of a directed pair, and the sending side of each."""
        at = self._place_of(*path)
        if at < 0:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        order, starts = self._sorted_sides
        mine = np.sort(order[starts[at] : starts[at + 1]])
        return mine // 2, mine % 2

    @cached_property
    def number_of(self) -> dict[str, int]:
        """Indexes of addresses."""
        return {address: number for number, address in enumerate(self.columns.addresses)}

    @cached_property
    def _sorted_sides(self) -> tuple[StreamRows, Array]:
        """Sides of all streams sorted by pair, and the start of each pair."""
        known, which = self.path_keys
        order = np.argsort(which.ravel(), kind="stable").astype(np.int64)
        counts = np.bincount(which.ravel(), minlength=len(known))
        return order, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    @cached_property
    def one_way_streams(self) -> dict[Path, StreamRows]:
        """Streams captured in one direction only, by directed pair; mere SYNs are left out."""
        c = self.columns
        rows = np.flatnonzero(self.one_sided & ~self.only_syn)
        sender = (c.sides("packets")[rows, CLIENT] == 0).astype(np.int64)
        groups: dict[Path, list[int]] = {}
        for row, side in zip(rows.tolist(), sender.tolist(), strict=True):
            ends = c.hosts[row]
            groups.setdefault((c.host(ends[side]), c.host(ends[1 - side])), []).append(row)
        return {path: np.array(found, np.int64) for path, found in groups.items()}

    @cached_property
    def uncaptured_replies(self) -> set[Path]:
        """(host, peer) pairs where the peer's packets were not captured although the host receives them: it continues
        after its SYN, or acknowledges data that is not in the capture."""
        c = self.columns
        packets, syn, rst, acked = (c.sides(name) for name in ("packets", "syn", "rst", "acked_unseen"))
        alone = (packets > 0) & (packets[:, ::-1] == 0)
        # The side that opens sends its first ACK when the answer has come.
        goes_on = (syn > 0) & (packets > syn + rst)
        rows, sides = np.nonzero(alone & (goes_on | (acked > 0)))
        hosts = max(len(c.addresses), 1)
        pairs = distinct(c.hosts[rows, sides] * hosts + c.hosts[rows, 1 - sides]).tolist()
        return {(c.host(pair // hosts), c.host(pair % hosts)) for pair in pairs}

    @cached_property
    def send_only_hosts(self) -> set[str]:
        """Hosts that receive answers of which none was captured: only their own packets pass the capture point."""
        c, analysis = self.columns, self.analysis
        told = {c.host(number) for number in distinct(c.hosts[c.sides("packets")[:, ::-1] > 0]).tolist()}
        if analysis.dns is not None:
            told |= analysis.dns.answered_clients
        for talk in (*analysis.udp.conversations, *analysis.udp.unanswered) if analysis.udp else ():
            told.update([talk.server.address] * bool(talk.client_packets))
            told.update([talk.client.address] * bool(talk.server_packets))
        told.update(path.src for path in (analysis.icmp.echo_paths if analysis.icmp else ()) if path.replies)
        told.update(error.dst for error in (analysis.icmp.errors if analysis.icmp else ()))
        return {host for host, _ in self.uncaptured_replies} - told

    @cached_property
    def unanswered_requests(self) -> tuple[UnansweredArp, ...]:
        """Addresses of the segment with unanswered ARP requests or neighbour solicitations."""
        arp, icmp = self.analysis.arp, self.analysis.icmp
        return (arp.unanswered_requests if arp else ()) + (icmp.unanswered_solicitations if icmp else ())

    @cached_property
    def speakers(self) -> set[str]:
        """Addresses that sent a TCP packet."""
        c = self.columns
        return {c.host(number) for number in distinct(c.hosts[c.sides("packets") > 0]).tolist()}

    @cached_property
    def pair_bytes(self) -> dict[Path, Floats]:
        """Bytes per bin of the busiest pairs, by direction."""
        series = self.analysis.series
        ways: dict[Path, Floats] = {}
        for pair in series.busiest if series else ():
            ways[pair.a, pair.b] = np.array(pair.a_to_b, np.float64)
            ways[pair.b, pair.a] = np.array(pair.b_to_a, np.float64)
        return ways

    @cached_property
    def bulk(self) -> list[Stream]:
        """The largest transfers, for rules that judge single streams."""
        pair_bytes = self.columns.sides("payload_bytes").max(axis=1)
        rows = np.flatnonzero((pair_bytes >= threshold("bufferbloat.min_bytes")) & ~self.one_sided)
        return self.worst(rows, pair_bytes[rows], MOST_BULK)

    # ---------------------------------------------------------------------------------------------------- evidence

    def frames(self, rows: StreamRows, name: str, side: int) -> list[tuple[int, ...]]:
        """Of one kind of event of a side of a few streams."""
        return [self.columns.frames(int(row), name, side) for row in rows[:FRAMES]]

    def worst(self, rows: StreamRows, weight: PerStream | None = None, most: int = FRAMES) -> list[Stream]:
        """Return the first few streams of `rows`, which are in order of weight."""
        if weight is not None:
            rows = rows[np.argsort(-weight, kind="stable")]
        return self.columns.make(rows[:most])


def groups_of(rows: StreamRows, *keys: Array) -> Iterator[tuple[tuple[int, ...], StreamRows]]:
    """Yield (key values, rows) for each combination of `keys`, largest group first."""
    if not len(rows):
        return
    values = [key[rows] for key in keys]
    order = np.lexsort(values[::-1])
    ordered = [column[order] for column in values]
    fresh = np.ones(len(rows), np.bool_)
    fresh[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in ordered])
    starts = np.flatnonzero(fresh)
    counts = np.diff(np.append(starts, len(rows)))
    for number in np.argsort(-counts, kind="stable").tolist():
        begin = starts[number]
        group = rows[order[begin : begin + counts[number]]]
        yield tuple(int(column[begin]) for column in ordered), group
