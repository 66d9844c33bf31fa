"""Client messages that expect no answer: reports, control frames, close messages."""

from __future__ import annotations

import numpy as np

from ghost.pcap.array_queries import among
from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.rule_settings import ports_of, threshold
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Mask


def of_protocol(seen: Observed, kind: str) -> Mask:
    """Return bool[streams]: the server port belongs to this kind of protocol (protocols.toml)."""
    return among(seen.columns.ports[:, SERVER], ports_of(kind))


def expects_no_answer(seen: Observed) -> Mask:
    """Return bool[streams]: the client's last message is a report or a control frame.

    HTTP requests expect an answer on any port.
    """
    c = seen.columns
    http = seen.analysis.http
    asked = {exchange.stream_id for exchange in http.unanswered} if http else set()
    silent = c.sides("payload_bytes")[:, SERVER] == 0
    goes_on = c.unprompted >= threshold("early_close.min_unprompted")
    reports = of_protocol(seen, "one_way") | ((silent | c.only_tickets) & goes_on)
    control = of_protocol(seen, "control_frames") & ~silent & is_short_message(seen)
    result: Mask = (reports | control) & ~among(np.arange(len(c)), list(asked))
    return result


def is_short_message(seen: Observed) -> Mask:
    """Return bool[streams]: the pending message is so short that it may not be a request."""
    c = seen.columns
    result: Mask = (c.request_bytes > 0) & (c.request_bytes <= threshold("early_close.control_bytes"))
    return result & ~of_protocol(seen, "always_answers")


def sent_close_message(seen: Observed) -> Mask:
    """Return bool[streams]: the last message before a reset was a close message, of the client, or of the server if the
    protocol has one."""
    c = seen.columns
    rst = c.sides("rst") > 0
    last_words = (c.request_bytes > 0) & (c.request_bytes <= threshold("early_close.goodbye_bytes"))
    soon = np.nan_to_num(c.request_ms, nan=np.inf) < threshold("early_close.goodbye_ms")
    own = rst[:, CLIENT] & ~rst[:, SERVER]
    answered = rst[:, SERVER] & ~rst[:, CLIENT] & of_protocol(seen, "goodbye")
    result: Mask = last_words & soon & (c.sides("payload_bytes")[:, SERVER] > 0) & (own | answered)
    return result
