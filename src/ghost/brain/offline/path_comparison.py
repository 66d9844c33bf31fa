"""What the capture engine says of the packets between two ends that were captured at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ghost.net import key, name_of

Row = dict[str, Any]
VARIES_MS: Final = 5
"""From which a delay on the path is told: the slowest twentieth above twice the fastest."""


@dataclass(frozen=True)
class Comparison:
    """What `pcap-forensics A --compare B --ends --findings` printed, A being the capture at the source."""

    source: str
    """Id of the machine."""
    destination: str
    ways: tuple[Row, ...]
    audit_ids: tuple[str, ...]

    def way(self, sender: str) -> Row:
        """Return what is said of the packets from a machine to the other; empty if nothing is."""
        end = {key(self.source): "A", key(self.destination): "B"}.get(key(sender))
        return next((way for way in self.ways if way.get("from") == end), {})

    def losses(self, sender: str) -> dict[str, str]:
        """Return where packets from a machine are lost, with their number: keys `near`, `between`, `far`."""
        way, (near, far) = self.way(sender), self._names(sender)
        before, after = _count(way, f"lost_before_{way.get('from')}"), _count(way, f"lost_after_{way.get('to')}")
        between = _count(way, "lost_between")
        share = f"{between} of {between + _count(way, 'arrived')} packets, {way.get('loss_between_pct', 0):.1f}%"
        told = {
            "near": f"before the capture at {near} ({before} segments)" if before else "",
            "between": f"between {near} and {far} ({share})" if between else "",
            "far": f"behind the capture at {far} ({after} segments)" if after else "",
        }
        return {place: words for place, words in told.items() if words}

    def proof(self, kind: str) -> str:
        """Return what both captures prove of a finding that one of them infers; empty if nothing."""
        told = {"third_party_reset": self._resets, "mtu_black_hole": self._size_limit}.get(kind)
        return ", ".join(filter(None, map(told, (self.source, self.destination)))) if told else ""

    def __str__(self) -> str:
        said = [f"{' to '.join(self._names(end))}: {self._said(end)}" for end in (self.source, self.destination)]
        return f"Packets at both ends, captured at the same time. {'. '.join(said)}."

    def _said(self, sender: str) -> str:
        way = self.way(sender)
        if not way:
            return "none were compared"
        arrived, lost = _count(way, "arrived"), _count(way, "lost_between")
        said = [f"{arrived} of {arrived + lost} packets arrive" if lost else f"all {arrived} packets arrive"]
        said += [f"some are lost {where}" for place, where in self.losses(sender).items() if place != "between"]
        said += filter(None, (self._size_limit(sender), self._resets(sender)))
        delay = way.get("delay_ms") or {}
        if delay and delay["p95"] > 2 * delay["min"] + VARIES_MS:
            said.append(f"one in twenty takes {delay['p95'] - delay['min']:.0f} ms more than the fastest")
        return ", ".join(said)

    def _size_limit(self, sender: str) -> str:
        way, (near, far) = self.way(sender), self._names(sender)
        if "smallest_lost_bytes" not in way:
            return ""
        arrived, lost = way["largest_arrived_bytes"], way["smallest_lost_bytes"]
        return f"packets of {lost} bytes and more are lost between {near} and {far}, those up to {arrived} bytes arrive"

    def _resets(self, sender: str) -> str:
        injected, (near, far) = _count(self.way(sender), "resets_injected"), self._names(sender)
        return f"{injected} resets reach {far} in the name of {near}, which did not send them" if injected else ""

    def _names(self, sender: str) -> tuple[str, str]:
        ends = name_of(self.source), name_of(self.destination)
        return ends if key(sender) == key(self.source) else (ends[1], ends[0])


def _count(way: Row, what: str) -> int:
    """Return a number of packets, which stands alone or with its frames."""
    found = way.get(what)
    number = found.get("count") if isinstance(found, dict) else found
    return number if isinstance(number, int) else 0
