"""Traffic matrix of the busiest hosts, in bytes, with the retransmitted share."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ghost.page import Markup, element, scrolling
from ghost.pcap.findings.phrasing import count, percent, rate
from ghost.pcap.kernels.time_series import PairTraffic, Series

_WORTH_TELLING_PCT = 0.5
"""Retransmissions from which a cell says so."""


def conversation_matrix(series: Series) -> Markup | None:
    """Return the matrix: senders in rows, receivers in columns."""
    if not series.traffic:
        return None
    cells = {(pair.source, pair.destination): pair for pair in series.traffic}
    senders = [host for host in series.hosts if any(host == source for source, _ in cells)]
    receivers = [host for host in series.hosts if any(host == destination for _, destination in cells)]
    most = max(pair.wire_bytes for pair in series.traffic)
    head = element("tr", element("td", "from ↓ to →"), [element("th", host, scope="col") for host in receivers])
    rows = [
        element("tr", element("th", host, scope="row"), [_cell(cells, host, peer, most) for peer in receivers])
        for host in senders
    ]
    shown = f"the {len(series.hosts)} busiest of {count(series.hosts_total, 'host')}"
    caption = (
        f"Bytes from row to column, {shown}; the retransmitted share in red where it is {_WORTH_TELLING_PCT}% or more"
    )
    return scrolling(
        "Conversation matrix",
        element("table", element("caption", caption), element("thead", head), element("tbody", rows), class_="matrix"),
    )


def _cell(cells: Mapping[tuple[str, str], PairTraffic], source: str, destination: str, most: int) -> Markup:
    pair = cells.get((source, destination))
    if pair is None:
        return element("td", "·" if source != destination else "", class_="self")
    again = percent(pair.retransmissions, pair.packets)
    told = again >= _WORTH_TELLING_PCT
    heat = math.log1p(pair.wire_bytes) / math.log1p(most)
    style = f"--h:{heat:.2f}" + (
        f";box-shadow:inset 0 0 0 99px rgb(var(--loss)/{min(again / 20, 1) * 0.3 + 0.06:.2f})" if told else ""
    )
    return element("td", size(pair.wire_bytes), element("small", f"{rate(again)} again") if told else None, style=style)


def size(number: float) -> str:
    """Return bytes with three digits and a decimal unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            break
        number /= 1000
    return f"{number:.3g} {unit}" if number < 1000 else f"{number:,.0f} {unit}"
