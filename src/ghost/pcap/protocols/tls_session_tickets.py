"""Session tickets of TLS 1.3 (RFC 8446, 4.6.1), which a server sends after the handshake and which are no answers.

They are encrypted like answers, but recognisable: only whole records, the first that the server sends to a client that
finished, and two of one length, since each holds the same session. (OpenSSL sends two, others up to four. A single one
is recognised only if it acknowledges less than the request.) So a waiting request does not count as answered.

In TLS 1.2 and older (RFC 5246, 7) the end of a handshake and alerts have their own record types: a server that sends
nothing else after a request has not answered it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ghost.pcap import layout as L
from ghost.pcap.array_types import FileBytes, PacketRows, StreamTable

# What a segment's payload holds: the length of its last record, and these.
SEVERAL = 1 << 15
ALIKE = 1 << 16  # nothing but whole encrypted records, of one length
WHOLE = 1 << 17  # nothing but whole encrypted records, but for a change of cipher before them
CHANGE = 1 << 18  # begins with a change of cipher
HELLO = 1 << 19  # begins with a client's hello, or with what announces its second
ALERT = 1 << 20  # begins with an alert that is none of TLS 1.3
OLDER = 1 << 23  # begins, but for a change of cipher, with a message of a handshake that is no client's hello
DATA = 1 << 24  # application data begins in it
SPOKEN = 1 << 25  # nothing but whole records, of which none is application data
_LENGTH = 0x7FFF

# How far a stream is.
_SAID_HELLO = 1
_CHANGED = 2
_FINISHED = 3
_TICKET = 4
_TICKETS = 5
_PAST = 6
_GOODBYE = 7
_OLDER_SHAKES = 8
"""TLS 1.2 or older: the client sent its keys, and the server has answered nothing that was asked inside."""
_OLDER_PAST = 9
_OTHER = -1

_CHANGE_CIPHER, _ALERT, _HANDSHAKE, _DATA = 20, 21, 22, 23
_CLIENT_HELLO = 1
_MOST_RECORDS = 8
_LAST_WORDS = 19
"""Length of an alert in TLS 1.3, which hides that it is one."""
_LEAST_TICKET = 60
"""Its own fields, what names the session, and what encryption adds: 58 bytes with a name of 16."""
_BLOCK = 16
"""Tickets are encrypted for the server alone, in blocks, and a number in them may need a byte more."""


def records_in(buf: FileBytes, at: int, end: int, length: int) -> int:
    """Return which TLS records the payload of a segment holds, whose six or more captured bytes begin at `at`; 0 if
    nothing distinguishes tickets from answers."""
    if buf[at + 1] != 3 or buf[at] < _CHANGE_CIPHER or buf[at] > _DATA:
        return 0
    found = 0
    place = 0
    if buf[at] == _CHANGE_CIPHER:
        found = CHANGE
        place = 6
        if length == place:
            return found
    if at + place + 6 > end:
        return 0
    if buf[at + place] == _ALERT:
        return ALERT
    if buf[at + place] == _HANDSHAKE:
        # Three bytes tell how long a hello is. The first of what is sealed may be anything.
        short = at + place + 7 > end or buf[at + place + 6] == 0
        if buf[at + place + 5] == _CLIENT_HELLO and short:
            return HELLO
        return found | OLDER | older_records_in(buf, at + place, end, length - place)
    found |= DATA
    first = 0
    last = 0
    alike = True
    records = 0
    while place < length:
        record = at + place
        if records == _MOST_RECORDS or record + 5 > end or buf[record] != _DATA or buf[record + 1] != 3:
            return DATA
        last = ((buf[record + 3] << 8) | buf[record + 4]) & _LENGTH
        if records == 0:
            first = last
        alike = alike and one_length(first, last)
        records += 1
        place += 5 + last
    if place != length:
        return DATA
    if records > 1:
        found |= SEVERAL
    if alike:
        found |= ALIKE
    return found | WHOLE | last


def older_records_in(buf: FileBytes, at: int, end: int, length: int) -> int:
    """Return DATA if application data follows handshake messages, SPOKEN if only these fill the segment, else 0."""
    place = 0
    for _ in range(_MOST_RECORDS):
        record = at + place
        if record + 5 > end or buf[record + 1] != 3 or buf[record] < _CHANGE_CIPHER or buf[record] > _DATA:
            return 0
        if buf[record] == _DATA:
            return DATA
        place += 5 + ((buf[record + 3] << 8) | buf[record + 4])
        if place == length:
            return SPOKEN
        if place > length:
            return 0
    return 0


def one_length(one: int, other: int) -> bool:
    return one == other or one - other == _BLOCK or other - one == _BLOCK


def asks(p: int, stream: int, rows: PacketRows, streams: StreamTable) -> int:
    """Return 1 if new data of the client may expect an answer; an alert expects none.

    Tracks what a client sends first, up to its first request in an encrypted connection: in TLS 1.3 a change of cipher
    is followed by encrypted data, in older versions by the rest of the handshake.
    """
    phase = streams[stream + L.S_TLS]
    held = rows[p + L.RECORDS]
    if held & ALERT:
        return 0
    if phase >= _OLDER_SHAKES:
        if held & DATA:
            streams[stream + L.S_ASKED] = 1
    elif phase >= _FINISHED:
        if held & WHOLE and held & (SEVERAL | _LENGTH) == _LAST_WORDS:
            return 0
        streams[stream + L.S_ASKED] = 1
    elif held & HELLO:
        streams[stream + L.S_TLS] = _SAID_HELLO
    elif phase == _SAID_HELLO and held & (CHANGE | WHOLE | OLDER | DATA) == CHANGE:
        streams[stream + L.S_TLS] = _CHANGED
    elif held & WHOLE and (phase == _CHANGED or (phase == _SAID_HELLO and held & CHANGE)):
        streams[stream + L.S_TLS] = _FINISHED
        # 32 or 48 bytes of a hash end the handshake, in a message and a record; what lies behind them is a request.
        finished = held & _LENGTH
        streams[stream + L.S_ASKED] = 0 if finished in (53, 69) else 1
    elif held & OLDER and phase in (_SAID_HELLO, _CHANGED):
        streams[stream + L.S_TLS] = _OLDER_SHAKES
        streams[stream + L.S_ASKED] = 1 if held & DATA else 0
        if held & SPOKEN and (phase == _CHANGED or held & CHANGE):
            # The client changes to encryption without having sent a key: it resumes a session, and has the last word.
            streams[stream + L.S_REQUEST_OPEN] = 0
            return 0
    elif phase == 0 and held & DATA:
        # From the middle of a connection, and of any version: an alert in clear is no answer all the same.
        streams[stream + L.S_TLS] = _OLDER_PAST
    else:
        streams[stream + L.S_TLS] = _OTHER
    return 1


def is_ticket(p: int, stream: int, behind: int, rows: PacketRows, streams: StreamTable) -> int:
    """Return 1 if new data of the server is a session ticket or an alert, and no answer.

    `behind`: it follows at once on what the server sent before, as a third and fourth ticket do.
    """
    phase = streams[stream + L.S_TLS]
    held = rows[p + L.RECORDS]
    if phase >= _OLDER_SHAKES:
        return answers_nothing(stream, phase, held, streams)
    if phase != _FINISHED and phase != _TICKET and phase != _TICKETS:
        return 0
    size = held & _LENGTH
    if held & WHOLE and held & (SEVERAL | _LENGTH) == _LAST_WORDS:
        # An alert before anything was answered: who asked something waits still.
        streams[stream + L.S_TLS] = _GOODBYE
        return 1
    if not held & ALIKE or size < _LEAST_TICKET:
        streams[stream + L.S_TLS] = _PAST
        return 0
    if phase != _FINISHED:
        first = streams[stream + L.S_TICKET]
        found = one_length(size, first) if phase == _TICKET else behind and size == first
        streams[stream + L.S_TLS] = _TICKETS if found else _PAST
        return 1 if found else 0
    streams[stream + L.S_TICKET] = size
    streams[stream + L.S_TLS] = _TICKETS if held & SEVERAL else _TICKET
    if held & SEVERAL:
        return 1
    # What was sent before all of the request had come is no answer to it.
    unasked = (streams[stream + L.S_REQUEST_END] - rows[p + L.ACKNOWLEDGED] - 1) & L.SEQ < L.HALF
    return 1 if streams[stream + L.S_ASKED] and unasked else 0


def answers_nothing(stream: int, phase: int, held: int, streams: StreamTable) -> int:
    """Return 1, for TLS 1.2 and older, if new data of the server is an alert, or ends a handshake after which the
    client has already asked."""
    if held & ALERT:
        if phase == _OLDER_PAST:
            streams[stream + L.S_ASKED] = streams[stream + L.S_REQUEST_OPEN]
        return 1
    if phase == _OLDER_PAST:
        return 0
    if held & SPOKEN:
        return streams[stream + L.S_ASKED]
    if held & DATA or streams[stream + L.S_ASKED]:
        streams[stream + L.S_TLS] = _OLDER_PAST
    return 0


def is_opening(phases: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return, for streams by `S_TLS`, whether the client finished and the server sent only tickets, the end of the
    handshake and an alert since."""
    return np.asarray((phases >= _FINISHED) & (phases != _PAST) & (phases != _OLDER_PAST), np.bool_)


KERNELS = (one_length, older_records_in, records_in, asks, answers_nothing, is_ticket)
