"""Client and server of streams that began before the capture, from what other streams show of their endpoints."""

from __future__ import annotations

import numpy as np

from ghost.pcap import layout as L
from ghost.pcap.array_queries import distinct
from ghost.pcap.array_types import Array, StreamArray

_FIRST_PACKET, _BY_PORT, _HANDSHAKE = 3, 2, 2
_LEAST_PEERS = 3
"""A client may use one port of its own for two servers at once; a port that three ends talk to is a server's."""


def with_roles(streams: StreamArray) -> Array:
    """Return the streams with client and server corrected where only the first packet suggested them.

    A port that is a server's by its handshake is one in every stream, and so is one that several endpoints talk to.
    """
    guessed = np.flatnonzero(streams[:, L.S_KNOWN_BY] == _FIRST_PACKET)
    if not len(guessed):
        return streams
    ends, which = np.unique(streams[:, [L.S_LOW, L.S_HIGH]], return_inverse=True)
    which = which.reshape(-1, 2)
    known = np.flatnonzero(streams[:, L.S_KNOWN_BY] < _HANDSHAKE)
    serves = np.zeros(len(ends), np.bool_)
    serves[which[known, 1 - streams[known, L.S_CLIENT]]] = True
    peers = _peers(which, len(ends))
    pairs = which[guessed]
    certain = serves[pairs]
    shared = np.where(peers[pairs] >= _LEAST_PEERS, peers[pairs], 0)
    weight = shared + certain * (len(streams) + 1)
    server = np.where(weight[:, 0] > weight[:, 1], 0, 1)
    told = weight[:, 0] != weight[:, 1]
    mended = streams.copy()
    mended[guessed[told], L.S_KNOWN_BY] = _BY_PORT
    turned = guessed[told & (streams[guessed, L.S_CLIENT] == server)]
    mended[turned, L.S_CLIENT] = 1 - streams[turned, L.S_CLIENT]
    mended[turned, L.S_REQUEST_OPEN : L.S_REQUEST_OPEN + L.REQUEST] = streams[
        turned, L.S_MIRRORED : L.S_MIRRORED + L.REQUEST
    ]
    mended[turned, L.S_UNPROMPTED], mended[turned, L.S_NOTICES], mended[turned, L.S_GREETING] = 0, 0, -1
    return mended


def _peers(which: Array, count: int) -> Array:
    """Return how many different endpoints each endpoint talks to."""
    pairs = distinct(which[:, 0] * count + which[:, 1])
    peers: Array = np.bincount(pairs // count, minlength=count) + np.bincount(pairs % count, minlength=count)
    return peers
