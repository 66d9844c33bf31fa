"""When each address last sent a packet: a host that spoke and fell silent may be down like one that never spoke."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ghost.pcap.array_types import Array
from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, SERVER
from ghost.pcap.model import IcmpError, UnansweredArp


class LastHeard:
    """Last packet of each address, by TCP, UDP and pings. A UDP conversation has one latest time for both ends."""

    def __init__(self, seen: Observed) -> None:
        self._seen = seen
        self._by_tcp = _by_tcp(seen)
        self._at: dict[str, int] = {}
        analysis = seen.analysis
        for talk in analysis.udp.conversations if analysis.udp else ():
            self._note(talk.client.address, talk.last_ns)
            if talk.server_packets:
                self._note(talk.server.address, talk.last_ns)
        for path in analysis.icmp.echo_paths if analysis.icmp else ():
            self._note(path.src, path.last_request_ns or seen.last_ns)
            if path.replies:
                self._note(path.dst, path.last_reply_ns)

    def _note(self, address: str, now: int) -> None:
        self._at[address] = max(now, self._at.get(address, 0))

    def _last(self, address: str) -> int:
        number = self._seen.number_of.get(address)
        return max(self._at.get(address, 0), 0 if number is None else int(self._by_tcp[number]))

    def __contains__(self, address: str) -> bool:
        return address in self._at or self._last(address) > 0

    def __iter__(self) -> Iterator[str]:
        yield from map(self._seen.columns.host, np.flatnonzero(self._by_tcp).tolist())
        yield from self._at

    def since(self, address: str, now: int) -> bool:
        """Return whether the address sent a packet after this moment."""
        return self._last(address) > now

    def silent_since(self, address: str, last_ns: int) -> bool:
        """Return whether the address never sent a packet, or none for the minimum silence before it was last reported,
        and none since."""
        if address not in self:
            return True
        return last_ns - self._last(address) >= threshold("host_down.silent_ms") * 1e6

    def reported(self, address: str, errors: list[IcmpError]) -> bool:
        """Return whether routers report the address unreachable; once is enough if it never sent a packet."""
        often = sum(error.count for error in errors) >= threshold("host_down.min_requests")
        last_ns = max((error.last_ns for error in errors), default=0)
        return bool(errors) and (address not in self or often) and self.silent_since(address, last_ns)

    def unanswered_requesters(self, silent: UnansweredArp) -> list[str]:
        """Return the hosts that repeatedly requested the address by ARP or NDP; empty if replies may only be invisible
        here (a switch sends them to the requester)."""
        if silent.at_the_end < threshold("host_down.min_requests"):
            return []
        # Who is heard otherwise, or gets replies of other addresses here: its replies are visible at this point.
        askers = [address for address in silent.asked_by if address in self or address in silent.replied_to]
        if silent.ip not in self and not silent.ever_answered:
            return askers
        if not self.silent_since(silent.ip, silent.last_ns):
            return []
        # What it said to them was seen: its replies would be, too.
        spoken_to = [address for address in askers if self._seen.traffic(silent.ip, address) is not None]
        return spoken_to or self._cut_off_hosts(silent)

    def _cut_off_hosts(self, silent: UnansweredArp) -> list[str]:
        """Return hosts that it answered before and that keep requesting it, if many do or the requester is cut off
        without it. Laptops that leave are requested by few."""
        if silent.at_the_end <= threshold("host_down.requests_an_attempt"):
            return []
        asking = [address for address in silent.asking if address in silent.answered]
        if len(asking) >= threshold("host_down.many_askers"):
            return asking
        least_ns = threshold("host_down.cut_off_ms") * 1e6
        return [address for address in asking if address in self and silent.last_ns - self._last(address) >= least_ns]


def _by_tcp(seen: Observed) -> Array:
    """Return int64[hosts], the time of the last TCP packet; 0 without one."""
    c = seen.columns
    packets, last_ns = c.sides("packets"), c.sides("last_ns")
    latest = np.zeros(len(c.addresses), np.int64)
    for side in (CLIENT, SERVER):
        spoke = packets[:, side] > 0
        np.maximum.at(latest, c.hosts[spoke, side], last_ns[spoke, side])
    return latest
