"""Questions that are held on purpose until there is news, or a time that was agreed is over (long polls)."""

from __future__ import annotations

import numpy as np

from ghost.pcap.arrays import among
from ghost.pcap.findings.columns import SERVER, Floats, Ints
from ghost.pcap.findings.observed import Observed
from ghost.pcap.findings.policy import threshold

HELD = " Many waits end at the same time, as those of questions do that are held until there is news."
_SAME = 0.02
"""Share by which a timer's waits differ."""


def is_long_poll(times: Floats) -> bool:
    """A server that holds every question for the same long time is waiting for news, as was agreed."""
    if len(times) < 2 or times.min() < threshold("slow_application.long_poll_ms"):
        return False
    return bool(times.max() - times.min() <= threshold("slow_application.long_poll_jitter") * times.min())


def may_be_long_poll(times: Floats) -> bool:
    """Half of the answers and more come after the same long time, and none comes later: the others had news. An
    overload that a time-out cuts off looks the same."""
    if not len(times) or times.max() < threshold("slow_application.long_poll_ms"):
        return False
    at_the_end = int((times >= (1 - _SAME) * times.max()).sum())
    return at_the_end >= max(threshold("slow_application.min_polls"), len(times) / 2)


def answers_nothing(seen: Observed, rows: Ints, times: Floats) -> bool:
    """Every wait is the same, and what comes behind it is too short to be more than that there is nothing."""
    if len(times) < threshold("slow_application.min_polls") or times.max() - times.min() > _SAME * times.max():
        return False
    c = seen.columns
    streams = np.unique(rows, return_counts=True)[0]
    answers = int(among(c.samples("response_ms")[0], streams).sum())
    size = int(c.sides("payload_bytes")[streams, SERVER].sum())
    return size <= threshold("slow_application.nothing_bytes") * answers
