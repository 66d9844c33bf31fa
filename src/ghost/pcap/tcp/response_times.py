"""Response times: from a request to its ACK and to the first byte of the answer."""

from __future__ import annotations

from ghost.pcap import layout as L
from ghost.pcap.array_types import Counters, PacketRows, SampleLog, SideTable, StreamTable
from ghost.pcap.protocols.tls_session_tickets import asks, is_ticket
from ghost.pcap.tcp.scoreboard import sample

_AGAIN_NS = 500_000_000
"""Who says more so long after the last word was acknowledged does not go on with it, but begins anew."""
_BEHIND_NS = 20_000_000
"""What is sent at once in several packets comes within that."""
_PAUSE_NS = 1_000_000_000
"""A server that goes on with an answer pauses less."""
_NOTICE = 600
"""Bytes of what is told unasked; answers worth waiting for fill segments."""


def time_response(
    p: int, stream: int, sender: int, client: int, block: int, new_data: int, rows: PacketRows, streams: StreamTable,
    sides: SideTable, samples: SampleLog, counts: Counters,
) -> None:  # fmt: skip
    """Measure the time from the last byte of a request to its ACK and to the first byte of the answer, where side
    `client` asks. `block`: where the five columns of the request begin."""
    t = stream * L.STREAM
    now = rows[p + L.TIME]
    primary = block == t + L.S_REQUEST_OPEN
    if sender == client:
        if new_data and (not primary or asks(p, t, rows, streams)):
            if streams[block] == 0:
                streams[block + L.S_REQUEST_START - L.S_REQUEST_OPEN] = rows[p + L.SEQUENCE]
            elif (
                streams[block + L.S_REQUEST_UNACKED - L.S_REQUEST_OPEN] == 0
                and now - streams[block + L.S_REQUEST_TIME - L.S_REQUEST_OPEN] >= _AGAIN_NS
                and primary
            ):
                streams[t + L.S_UNPROMPTED] = streams[t + L.S_UNPROMPTED] + 1
            streams[block] = 1
            streams[block + L.S_REQUEST_UNACKED - L.S_REQUEST_OPEN] = 1
            streams[block + L.S_REQUEST_TIME - L.S_REQUEST_OPEN] = now
            streams[block + L.S_REQUEST_END - L.S_REQUEST_OPEN] = (rows[p + L.SEQUENCE] + rows[p + L.LENGTH]) & L.SEQ
        return
    server = stream * 2 + sender
    asked = streams[block + L.S_REQUEST_TIME - L.S_REQUEST_OPEN]
    waited = max(now - asked, 0)
    if (
        streams[block + L.S_REQUEST_UNACKED - L.S_REQUEST_OPEN]
        and rows[p + L.CONTROL] & L.ACK
        and (rows[p + L.ACKNOWLEDGED] - streams[block + L.S_REQUEST_END - L.S_REQUEST_OPEN]) & L.SEQ < L.HALF
    ):
        streams[block + L.S_REQUEST_UNACKED - L.S_REQUEST_OPEN] = 0
        sample(L.SAMPLE_REQUEST_ACKED, server, waited, samples, counts)
    behind = 1 if now - sides[server * L.SIDE + L.D_NEXT_TIME] < _BEHIND_NS else 0
    if new_data and primary and is_ticket(p, t, behind, rows, streams):
        # Nobody waits for it; who asked something does so still.
        streams[block] = streams[t + L.S_ASKED]
    elif new_data and streams[block]:
        streams[block] = 0
        sample(L.SAMPLE_RESPONSE, server, waited, samples, counts)
    elif new_data and asked == 0 and streams[t + L.S_GREETING] < 0 and streams[t + L.S_TO_CLIENT] >= 0:
        streams[t + L.S_GREETING] = max(now - streams[t + L.S_SYN_ACK_TIME] - streams[t + L.S_TO_CLIENT], 0)
    elif new_data and primary and asked and rows[p + L.LENGTH] < _NOTICE:
        paused = now - sides[server * L.SIDE + L.D_NEXT_TIME] >= _PAUSE_NS
        streams[t + L.S_NOTICES] = streams[t + L.S_NOTICES] + (
            1 if paused and sides[server * L.SIDE + L.D_NEXT] >= 0 else 0
        )


KERNELS = (time_response,)
