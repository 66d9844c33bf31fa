"""One direction of a TLS connection, from its TCP segments to records and handshake messages (RFC 8446, 5).

Only what is sent in clear is put together, in order, and never more of it than one long handshake message; of what is
encrypted only the records' headers are looked at. Segments may come late, twice or never.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ghost.pcap.tcp.stream_endings import beyond

CHANGE_CIPHER, ALERT, HANDSHAKE, DATA = 20, 21, 22, 23
SSL2 = -1
_MODULO = 1 << 32
_LONGEST_RECORD = 16_640
_LONGEST_MESSAGE = 1 << 16
_MOST_SEGMENTS = 16
"""Kept for one direction while an earlier one is missing."""
_HELLOS = (1, 2)
_CLIENT_HELLO = 1
_head = struct.Struct(">BBBH").unpack_from
_ENCRYPTED_ALERT = 19
"""Length of an alert that TLS 1.3 hides as application data: two bytes, the true type, an AEAD tag of 16."""


class Event(NamedTuple):
    kind: int
    """A record type, or SSL2."""
    detail: int
    """Of a handshake message its type; of an alert level << 8 | description, or -1 where it is encrypted; of others the
    record's length."""
    body: bytes = b""
    adjacent: bool = True
    """Nothing was sent between this and what was read before."""


class Records:
    __slots__ = ("_dead", "_held", "_messages", "_partial", "_start", "cut", "encrypted", "next", "skipped", "strange")

    def __init__(self) -> None:
        self.next = -1
        """Sequence number behind what was read; -1 before anything was."""
        self.skipped = 0
        """Bytes of encrypted records that were passed over."""
        self.encrypted = False
        self.strange = False
        """It began with something else than TLS."""
        self.cut = False
        """The capture left out the head of a record, or a part of a message behind the client's hello."""
        self._start = 0
        # Most connections need none of these: a hello comes in one segment.
        self._partial = b""
        """Of a record whose end is still to come."""
        self._messages: bytearray | None = None
        """Of a handshake message whose end is still to come."""
        self._held: dict[int, tuple[bytes, int]] | None = None
        self._dead = False

    @property
    def held_bytes(self) -> int:
        held = len(self._partial)
        if self._messages:
            held += len(self._messages)
        return held + sum(len(each) for each, _ in self._held.values()) if self._held else held

    def forget(self) -> None:
        """Stop reading."""
        self.skip()
        self._dead = True

    def skip(self) -> None:
        """Read only record headers from here on."""
        self._partial, self._messages, self._held, self.encrypted = b"", None, None, True

    def starts_at(self, sequence: int) -> None:
        """Set where the first record begins, unless something was read already."""
        if self.next < 0:
            self.next = self._start = sequence

    def take(self, sequence: int, payload: bytes, length: int) -> list[Event]:
        """Return the events that one segment completes.

        `length`: bytes of its payload on the wire, of which fewer may be captured.
        """
        if self.next < 0:
            self.next = self._start = sequence
            if len(payload) == length and not (self.encrypted or self._dead) and _is_one_message(payload):
                self.next = (sequence + length) % _MODULO
                return [Event(HANDSHAKE, payload[5], payload[9:])]
        events: list[Event] = []
        ahead = beyond(sequence, self.next) if sequence != self.next else 0
        if ahead < 0:
            if beyond(sequence, self._start) < 0:
                # From before the first segment that was seen: reordered on the way.
                self._start = sequence
                return Records().take(sequence, payload, length)
            payload, length, ahead = payload[-ahead:], length + ahead, 0
            if not payload:
                self._left_out(length)
                return events
        if ahead > 0 and not (self.encrypted or self._dead or payload[0] == DATA):
            if self._held is None:
                self._held = {}
            if len(self._held) < _MOST_SEGMENTS and ahead <= _LONGEST_MESSAGE:
                self._held.setdefault(sequence, (payload, length))
            return events
        if ahead > 0:
            self.next, self._partial = sequence, b""
            self.skipped += ahead
        self._consume(payload, length, ahead == 0, events)
        while self._held:
            ready = [each for each in self._held if beyond(each, self.next) <= 0]
            if not ready:
                break
            for each in sorted(ready, key=lambda one: beyond(one, self.next)):
                # Reading may have ended with the segment before.
                later, length = self._held.pop(each, (b"", 0)) if self._held is not None else (b"", 0)
                overlap = -beyond(each, self.next)
                if 0 <= overlap < len(later):
                    self._consume(later[overlap:], length - overlap, True, events)
                elif overlap >= 0:
                    self._left_out(length - overlap)
        return events

    def rest(self) -> list[Event]:
        """Return the events of incomplete messages, and of data after a gap that was never filled."""
        events: list[Event] = []
        self._unfinished(events)
        held = self._held or {}
        for sequence in sorted(held, key=lambda one: beyond(one, self.next)):
            payload, _ = held[sequence]
            after_a_gap = Records().take(sequence, payload, len(payload) + 1)
            events += [event._replace(adjacent=False) for event in after_a_gap]
        return events

    def _left_out(self, length: int) -> None:
        """Skip `length` bytes that are not in the capture."""
        if length > 0:
            self.cut = True
            self.next = (self.next + length) % _MODULO

    def _consume(self, payload: bytes, length: int, adjacent: bool, events: list[Event]) -> None:
        octets, begin, at, there = payload, self.next, 0, len(payload)
        missing = length - there if length > there else 0
        if self._partial:
            octets = self._partial + payload
            begin -= len(self._partial)
            there = len(octets)
            self._partial = b""
        if self.next == self._start and octets[0] & 0x80:
            at = (int.from_bytes(octets[:2], "big") & 0x7FFF) + 2
            events.append(Event(SSL2, at, octets[:at]))
        while there - at >= 5 and not self._dead:
            kind, major, _, size = _head(octets, at)
            if not CHANGE_CIPHER <= kind <= DATA or major != 3 or size > _LONGEST_RECORD:
                self.strange = begin + at == self._start
                self.forget()
                break
            body_from, stop = at + 5, at + 5 + size
            if kind == DATA or (self.encrypted and not _is_hello(kind, octets[body_from:stop], size)):
                if kind == ALERT or (kind == DATA and size == _ENCRYPTED_ALERT):
                    events.append(Event(ALERT, -1, b"", adjacent))
                else:
                    events.append(Event(kind, size, b"", adjacent))
                    self.encrypted = True  # in TLS 1.3 nothing is in clear behind data
            elif there < stop and not (missing and kind == HANDSHAKE):
                break
            elif kind == HANDSHAKE:
                body = octets[body_from + 4 : stop]
                if not self._messages and int.from_bytes(octets[body_from + 1 : body_from + 4], "big") == len(body) > 0:
                    events.append(Event(HANDSHAKE, octets[body_from], body))  # one record, one message
                else:
                    if self._messages is None:
                        self._messages = bytearray()
                    self._messages += octets[body_from:stop]
                    self._whole_messages(events)
                if there < stop:
                    self.cut |= there == body_from or octets[body_from] != _CLIENT_HELLO
                    self._unfinished(events)
            elif kind == ALERT:
                detail = int.from_bytes(octets[body_from:stop], "big") if size == 2 else -1
                events.append(Event(ALERT, detail, b"", adjacent))
            else:
                events.append(Event(CHANGE_CIPHER, size, b"", adjacent))
                self.encrypted = True
            at = stop
        if at < there and not self._dead and not missing:
            self._partial = octets[at:]
        self.cut |= at < there + missing and missing > 0
        self.next = (begin + max(at, there + missing)) % _MODULO

    def _whole_messages(self, events: list[Event]) -> None:
        messages = self._messages
        assert messages is not None
        at = 0
        while len(messages) - at >= 4:
            size = int.from_bytes(messages[at + 1 : at + 4], "big")
            if size > _LONGEST_MESSAGE:
                self.forget()
                return
            if len(messages) - at - 4 < size:
                break
            events.append(Event(HANDSHAKE, messages[at], bytes(messages[at + 4 : at + 4 + size])))
            at += 4 + size
        del messages[:at]
        if not messages:
            self._messages = None

    def _unfinished(self, events: list[Event]) -> None:
        """Return a hello whose end is missing; it may name the server."""
        octets = bytes(self._messages or b"")
        if self._partial[:1] == bytes([HANDSHAKE]):
            octets += self._partial[5:]
        if len(octets) >= 4 and octets[0] in _HELLOS:
            events.append(Event(HANDSHAKE, octets[0], octets[4:]))
        self._messages, self._partial = None, b""


def _is_one_message(payload: bytes) -> bool:
    """Return whether the bytes are one record with one complete handshake message, as most client hellos are."""
    size = len(payload) - 5
    return (
        4 < size <= _LONGEST_RECORD
        and payload[0] == HANDSHAKE
        and payload[1] == 3
        and payload[3] << 8 | payload[4] == size
        and payload[6] << 16 | payload[7] << 8 | payload[8] == size - 4
    )


def _is_hello(kind: int, body: bytes, size: int) -> bool:
    """Return whether a hello is expected: after a hello retry request another one follows in clear, also after a change
    of cipher."""
    return kind == HANDSHAKE and len(body) >= 4 and body[0] in _HELLOS and int.from_bytes(body[1:4], "big") == size - 4
