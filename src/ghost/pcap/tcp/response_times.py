"""How long requests wait: for their ACK, and for the first byte of the answer."""

from __future__ import annotations

from ghost.pcap.array_types import Ints
from ghost.pcap.layout import (
    ACK,
    ACKNOWLEDGED,
    CONTROL,
    D_NEXT,
    D_NEXT_TIME,
    HALF,
    LENGTH,
    S_ASKED,
    S_GREETING,
    S_NOTICES,
    S_REQUEST_END,
    S_REQUEST_OPEN,
    S_REQUEST_START,
    S_REQUEST_TIME,
    S_REQUEST_UNACKED,
    S_SYN_ACK_TIME,
    S_TO_CLIENT,
    S_UNPROMPTED,
    SAMPLE_REQUEST_ACKED,
    SAMPLE_RESPONSE,
    SEQ,
    SEQUENCE,
    SIDE,
    STREAM,
    TIME,
)
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
    p: int, stream: int, sender: int, client: int, block: int, new_data: int, rows: Ints, streams: Ints, sides: Ints,
    samples: Ints, counts: Ints,
) -> None:  # fmt: skip
    """From the last byte of a request to its ACK and to the first byte of the answer, where side `client` asks.

    `block` is where the five columns of the request begin.
    """
    t = stream * STREAM
    now = rows[p + TIME]
    primary = block == t + S_REQUEST_OPEN
    if sender == client:
        if new_data and (not primary or asks(p, t, rows, streams)):
            if streams[block] == 0:
                streams[block + S_REQUEST_START - S_REQUEST_OPEN] = rows[p + SEQUENCE]
            elif (
                streams[block + S_REQUEST_UNACKED - S_REQUEST_OPEN] == 0
                and now - streams[block + S_REQUEST_TIME - S_REQUEST_OPEN] >= _AGAIN_NS
                and primary
            ):
                streams[t + S_UNPROMPTED] = streams[t + S_UNPROMPTED] + 1
            streams[block] = 1
            streams[block + S_REQUEST_UNACKED - S_REQUEST_OPEN] = 1
            streams[block + S_REQUEST_TIME - S_REQUEST_OPEN] = now
            streams[block + S_REQUEST_END - S_REQUEST_OPEN] = (rows[p + SEQUENCE] + rows[p + LENGTH]) & SEQ
        return
    server = stream * 2 + sender
    asked = streams[block + S_REQUEST_TIME - S_REQUEST_OPEN]
    waited = max(now - asked, 0)
    if (
        streams[block + S_REQUEST_UNACKED - S_REQUEST_OPEN]
        and rows[p + CONTROL] & ACK
        and (rows[p + ACKNOWLEDGED] - streams[block + S_REQUEST_END - S_REQUEST_OPEN]) & SEQ < HALF
    ):
        streams[block + S_REQUEST_UNACKED - S_REQUEST_OPEN] = 0
        sample(SAMPLE_REQUEST_ACKED, server, waited, samples, counts)
    behind = 1 if now - sides[server * SIDE + D_NEXT_TIME] < _BEHIND_NS else 0
    if new_data and primary and is_ticket(p, t, behind, rows, streams):
        # Nobody waits for it; who asked something does so still.
        streams[block] = streams[t + S_ASKED]
    elif new_data and streams[block]:
        streams[block] = 0
        sample(SAMPLE_RESPONSE, server, waited, samples, counts)
    elif new_data and asked == 0 and streams[t + S_GREETING] < 0 and streams[t + S_TO_CLIENT] >= 0:
        streams[t + S_GREETING] = max(now - streams[t + S_SYN_ACK_TIME] - streams[t + S_TO_CLIENT], 0)
    elif new_data and primary and asked and rows[p + LENGTH] < _NOTICE:
        paused = now - sides[server * SIDE + D_NEXT_TIME] >= _PAUSE_NS
        streams[t + S_NOTICES] = streams[t + S_NOTICES] + (1 if paused and sides[server * SIDE + D_NEXT] >= 0 else 0)


KERNELS = (time_response,)
