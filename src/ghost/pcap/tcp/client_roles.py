"""Client and server of streams that began before the capture, from what other streams show of their endpoints."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ghost.pcap import layout as L
from ghost.pcap.array_queries import distinct
from ghost.pcap.array_types import Array
from ghost.pcap.tcp.packed_rows import PackedRows

if TYPE_CHECKING:
    from ghost.pcap.tcp.stream_state import StreamState

_FIRST_PACKET, _BY_PORT, _HANDSHAKE = 3, 2, 2
_LEAST_PEERS = 3
"""A client may use one port of its own for two servers at once; a port that three ends talk to is a server's."""


def with_roles(state: StreamState) -> StreamState:
    """Return the streams with client and server corrected where only the first packet suggested them.

    A port that is a server's by its handshake is one in every stream, and so is one that several endpoints talk to.
    """
    known_by, client = state.stream(L.S_KNOWN_BY), state.stream(L.S_CLIENT)
    guessed = np.flatnonzero(known_by == _FIRST_PACKET)
    if not len(guessed):
        return state
    ends, which = np.unique(np.stack([state.stream(L.S_LOW), state.stream(L.S_HIGH)], axis=1), return_inverse=True)
    which = which.reshape(-1, 2)
    known = np.flatnonzero(known_by < _HANDSHAKE)
    serves = np.zeros(len(ends), np.bool_)
    serves[which[known, 1 - client[known]]] = True
    peers = _peers(which, len(ends))
    pairs = which[guessed]
    certain = serves[pairs]
    shared = np.where(peers[pairs] >= _LEAST_PEERS, peers[pairs], 0)
    weight = shared + certain * (len(state) + 1)
    server = np.where(weight[:, 0] > weight[:, 1], 0, 1)
    told = weight[:, 0] != weight[:, 1]
    if not told.any():
        return state
    mended = state.rows.take(state.places[guessed[told]])
    mended[:, L.S_KNOWN_BY] = _BY_PORT
    turned = np.flatnonzero(mended[:, L.S_CLIENT] == server[told])
    mended[turned, L.S_CLIENT] = 1 - mended[turned, L.S_CLIENT]
    mended[turned, L.S_REQUEST_OPEN : L.S_REQUEST_OPEN + L.REQUEST] = mended[
        turned, L.S_MIRRORED : L.S_MIRRORED + L.REQUEST
    ]
    mended[turned, L.S_UNPROMPTED], mended[turned, L.S_NOTICES], mended[turned, L.S_GREETING] = 0, 0, -1
    rows, places = PackedRows(), state.places.copy()
    rows.extend(state.rows)
    places[guessed[told]] = rows.add(mended)
    return replace(state, rows=rows, places=places)


def _peers(which: Array, count: int) -> Array:
    """Return how many different endpoints each endpoint talks to."""
    pairs = distinct(which[:, 0] * count + which[:, 1])
    peers: Array = np.bincount(pairs // count, minlength=count) + np.bincount(pairs % count, minlength=count)
    return peers
