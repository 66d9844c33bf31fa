"""State of the TCP streams of a capture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from ghost.pcap import layout as L
from ghost.pcap.array_types import Array, RowIndices, interpreted_vector
from ghost.pcap.model import Occurrences, TcpSection
from ghost.pcap.sample_statistics import Samples
from ghost.pcap.tcp.client_roles import with_roles
from ghost.pcap.tcp.evidence_frames import Evidence
from ghost.pcap.tcp.packed_rows import PackedRows
from ghost.pcap.tcp.stream_endings import End, Ending, Endings
from ghost.pcap.tcp.stream_view import StreamView

_ISSUES = 200


@dataclass(frozen=True, slots=True)
class StreamState:
    rows: PackedRows
    """Of streams; a row has the fields of a stream, then those of each side."""
    places: RowIndices
    """Of each stream in `rows`, in the order of their first frames."""
    evidence: Evidence
    samples: Samples

    def __len__(self) -> int:
        return len(self.places)

    def stream(self, field: int) -> Array:
        """Return int64[streams], a field of each stream."""
        return self.rows.column(field)[self.places]

    def sides(self, field: int) -> Array:
        """Return int64[streams, 2], a field of each side."""
        return np.stack([self.stream(L.STREAM + field), self.stream(L.STREAM + L.SIDE + field)], axis=1)

    def event(self, kind: int) -> Array:
        """Return int64[streams, 2], how often each side had an event."""
        return self.sides(L.D_EVENTS + kind)

    def row(self, number: int) -> tuple[list[int], list[list[int]]]:
        """Return the fields of a stream and of its sides."""
        row = self.rows.take(self.places[number : number + 1])[0].tolist()
        sides = [row[begin : begin + L.SIDE] for begin in (L.STREAM, L.STREAM + L.SIDE)]
        return row[: L.STREAM], sides

    def endings(self) -> Endings:
        """Return how streams ended, by number; made from columns once, when the first is asked for."""

        @cache
        def tables() -> tuple[Array, Array]:
            fins, resets = (self.evidence.first(kind, 2 * len(self)).reshape(-1, 2) for kind in (L.E_FIN, L.E_RST))
            following = self.sides(L.D_NEXT)
            behind = np.where((fins > 0) & (following >= 0), (following - 1) & 0xFFFFFFFF, following)
            ends = np.stack([self.stream(L.S_LOW), self.stream(L.S_HIGH)], axis=1)
            last = [self.sides(field) for field in (L.D_LAST_TIME, L.D_PAYLOAD, L.D_LAST_WORDS)]
            times = np.ascontiguousarray(self.stream(L.S_LAST_TIME))
            return np.stack([ends, behind, fins, resets, *last], axis=2), interpreted_vector(times)

        def ending(stream: int) -> Ending:
            table, last = tables()
            one, other = table[stream].tolist()
            return Ending((End(*one), End(*other)), last[stream])  # a memoryview hands out plain integers

        return ending

    def copies(self) -> Occurrences:
        """Return the number of copied data segments."""
        count = int(self.event(L.E_COPY).sum())
        return Occurrences(count, self.evidence.earliest(L.E_COPY, L.SAMPLE_FRAMES) if count else ())

    def section(
        self, names: Mapping[int, str], address: Callable[[int], str], capture_end_ns: int
    ) -> TcpSection | None:
        """Return the section. `names`: server names by stream."""
        if not len(self):
            return None
        view = StreamView(with_roles(self), names, address, capture_end_ns)
        return TcpSection(
            totals=view.totals(),
            connections=view.connections(),
            handshake_rtt_ms=view.handshake_rtt(),
            ack_rtt_ms=self.samples.of_all(L.SAMPLE_RTT, L.SAMPLES),
            streams=view,
            streams_with_issues=view.select(view.worst()[:_ISSUES]),
            conversations=view.select(np.argsort(-self.stream(L.S_WIRE_BYTES), kind="stable")[:10]),
        )
