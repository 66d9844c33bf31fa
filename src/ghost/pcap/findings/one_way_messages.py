"""Which last words of a client want no answer: reports, control frames, goodbyes."""

from __future__ import annotations

import numpy as np

from ghost.pcap.array_queries import among
from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.rule_settings import ports_of, threshold
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Mask


def of_protocol(seen: Observed, kind: str) -> Mask:
    """Connections to a port of a kind of protocol."""
    return among(seen.columns.ports[:, SERVER], ports_of(kind))


def expects_no_answer(seen: Observed) -> Mask:
    """Connections whose client reports, or said nothing but a control frame last. A request of HTTP wants its answer
    on any port."""
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
    """What waits is so short that it may be no question."""
    c = seen.columns
    result: Mask = (c.request_bytes > 0) & (c.request_bytes <= threshold("early_close.control_bytes"))
    return result & ~of_protocol(seen, "always_answers")


def sent_close_message(seen: Observed) -> Mask:
    """The client's last words came right before a reset, behind a dialogue: its own, or the server's where the protocol
    has a word for it."""
    c = seen.columns
    rst = c.sides("rst") > 0
    last_words = (c.request_bytes > 0) & (c.request_bytes <= threshold("early_close.goodbye_bytes"))
    soon = np.nan_to_num(c.request_ms, nan=np.inf) < threshold("early_close.goodbye_ms")
    own = rst[:, CLIENT] & ~rst[:, SERVER]
    answered = rst[:, SERVER] & ~rst[:, CLIENT] & of_protocol(seen, "goodbye")
    result: Mask = last_words & soon & (c.sides("payload_bytes")[:, SERVER] > 0) & (own | answered)
    return result
