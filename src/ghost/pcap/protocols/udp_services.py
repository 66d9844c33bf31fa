"""UDP services whose protocol answers each request, by port: how many requests there were, and who answers none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from ghost.pcap import layout as L
from ghost.pcap.array_queries import distinct
from ghost.pcap.array_types import Array
from ghost.pcap.model import SilentServer, UdpService
from ghost.pcap.protocols.udp_conversations import (
    U_FIRST,
    U_FIRST_SIDE,
    U_FRAME,
    U_HIGH,
    U_LOW,
    U_PACKETS,
    expects_answer,
)

_SERVICES = {88: "kerberos", 123: "ntp", 443: "quic", 500: "ike", 1812: "radius"}
_MOST_SILENT = 20


def service_rows(table: Array, address: Callable[[int], str]) -> tuple[UdpService, ...]:
    """Return the services of a table of UDP conversations, in which the first sender is the client."""
    servers = np.where(table[:, U_FIRST_SIDE] == 0, table[:, U_HIGH], table[:, U_LOW])
    return tuple(
        _service(name, table[here], servers[here], address)
        for port, name in _SERVICES.items()
        if (here := servers & 0xFFFF == port).any()
    )


def _service(name: str, table: Array, servers: Array, address: Callable[[int], str]) -> UdpService:
    rows, client = np.arange(len(table)), table[:, U_FIRST_SIDE]
    requests, responses = table[rows, U_PACKETS + client], table[rows, U_PACKETS + 1 - client]
    known = distinct(servers)
    which = known.searchsorted(servers)
    asked, told = np.bincount(which, requests), np.bincount(which, responses)
    silent = np.flatnonzero(told == 0)

    def silent_servers() -> Iterator[SilentServer]:
        for place in silent[np.argsort(-asked[silent], kind="stable")].tolist():
            host, mine = address(int(known[place]) >> 16), np.flatnonzero(which == place)
            if expects_answer(host):
                yield SilentServer(
                    address=host,
                    port=int(known[place]) & 0xFFFF,
                    client=address(int(table[mine[0], U_LOW + client[mine[0]]]) >> 16),
                    requests=int(asked[place]),
                    first_ns=int(table[mine, U_FIRST].min()),
                    frames=tuple(table[mine[: L.SAMPLE_FRAMES], U_FRAME].tolist()),
                )

    return UdpService(
        name=name,
        conversations=len(table),
        requests=int(requests.sum()),
        responses=int(responses.sum()),
        unanswered=int((responses == 0).sum()),
        silent_servers=tuple(islice(silent_servers(), _MOST_SILENT)),
    )
