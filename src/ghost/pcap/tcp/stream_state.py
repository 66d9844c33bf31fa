"""State of the TCP streams of a capture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ghost.pcap import layout as L
from ghost.pcap.array_types import SideArray, StreamArray, interpreted_vector
from ghost.pcap.model import Occurrences, TcpSection
from ghost.pcap.sample_statistics import Samples
from ghost.pcap.tcp.client_roles import with_roles
from ghost.pcap.tcp.evidence_frames import Evidence
from ghost.pcap.tcp.stream_endings import End, Ending, Endings
from ghost.pcap.tcp.stream_view import StreamView

_ISSUES = 200


@dataclass(frozen=True, slots=True)
class StreamState:
    streams: StreamArray
    """A row a stream, in the order of their first frames."""
    sides: SideArray
    """By stream and side."""
    evidence: Evidence
    samples: Samples

    def endings(self) -> Endings:
        """Return how streams ended, by number; made from columns once."""
        sides = self.sides.reshape(-1, L.SIDE)
        fins, resets = (self.evidence.first(kind, len(sides)) for kind in (L.E_FIN, L.E_RST))
        following = sides[:, L.D_NEXT]
        behind = np.where((fins > 0) & (following >= 0), (following - 1) & 0xFFFFFFFF, following)
        columns = (
            self.streams[:, (L.S_LOW, L.S_HIGH)].ravel(),
            behind,
            fins,
            resets,
            sides[:, L.D_LAST_TIME],
            sides[:, L.D_PAYLOAD],
            sides[:, L.D_LAST_WORDS],
        )
        table = np.stack(columns, axis=1).reshape(-1, 2, len(columns))
        last = interpreted_vector(np.ascontiguousarray(self.streams[:, L.S_LAST_TIME]))  # hands out plain integers

        def ending(stream: int) -> Ending:
            one, other = table[stream].tolist()
            return Ending((End(*one), End(*other)), last[stream])

        return ending

    def copies(self) -> Occurrences:
        """Return the number of copied data segments."""
        count = int(self.sides.reshape(-1, L.SIDE)[:, L.D_EVENTS + L.E_COPY].sum())
        return Occurrences(count, self.evidence.earliest(L.E_COPY, L.SAMPLE_FRAMES) if count else ())

    def section(
        self, names: Mapping[int, str], address: Callable[[int], str], capture_end_ns: int
    ) -> TcpSection | None:
        """Return the section. `names`: server names by stream."""
        if not len(self.streams):
            return None
        view = StreamView(
            with_roles(self.streams), self.sides, self.evidence, self.samples, names, address, capture_end_ns
        )
        return TcpSection(
            totals=view.totals(),
            connections=view.connections(),
            handshake_rtt_ms=view.handshake_rtt(),
            ack_rtt_ms=self.samples.of_all(L.SAMPLE_RTT, L.SAMPLES),
            streams=view,
            streams_with_issues=view.select(view.worst()[:_ISSUES]),
            conversations=view.select(np.argsort(-self.streams[:, L.S_WIRE_BYTES], kind="stable")[:10]),
        )
