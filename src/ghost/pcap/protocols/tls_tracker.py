"""TLS handshakes: what was offered and chosen, and where a handshake failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ghost.pcap.model import Side, TlsFailure, TlsSection, TlsStage
from ghost.pcap.protocols.bounded_counts import Tally, Times, round_robin
from ghost.pcap.protocols.tls_certificates import SentCertificate, ServerCertificates
from ghost.pcap.protocols.tls_messages import (
    CLOSURES,
    HARMLESS,
    TLS13,
    alert_name,
    read_client_hello,
    read_server_hello,
    read_ssl2_hello,
    version_name,
)
from ghost.pcap.protocols.tls_record_stream import ALERT, CHANGE_CIPHER, DATA, HANDSHAKE, SSL2, Event, Records
from ghost.pcap.tcp.stream_endings import Ending, Endings, beyond

WAIT_NS = 3_000_000_000
"""Silence for so long is a hung handshake, and a client that closes after it has given up."""
_REFUSAL_NS = 1_000_000_000
"""A server that refuses a client's certificate in TLS 1.3 does so at once."""
_LEAST_FINISHED = 37
"""Bytes on the wire of the smallest message that ends a handshake of TLS 1.3: more than an alert."""
_MOST_STREAMS = 200_000
_MOST_HELD = 32 << 20
"""Bytes of unfinished messages over all streams."""
_MOST_LISTED = 50
_MOST_FAILURES = 20_000
_MOST_NAMES = 20

ENCRYPTED = "encrypted"
"""What an alert says that does not say what it is about."""
_CLIENT_HELLO, _SERVER_HELLO, _CERTIFICATE, _SERVER_HELLO_DONE = 1, 2, 11, 14


class _Party(Records):
    """One side of a handshake."""

    __slots__ = ("changed_ns", "counted", "endpoint", "hello_done", "over", "read_to")

    def __init__(self, endpoint: int) -> None:
        super().__init__()
        self.endpoint = endpoint
        self.read_to = -1
        """Sequence number behind the last record that was read."""
        self.changed_ns = -1
        """When it changed to encryption."""
        self.hello_done = False
        """A server of TLS 1.2 or older said that its flight is over."""
        self.counted = 0
        """Of the bytes that all streams hold, those of this one."""
        self.over = False
        """Nothing more is to be learnt from it."""


@dataclass(slots=True, eq=False)
class _Handshake:
    one: _Party
    other: _Party
    client: int = -1
    """Which of the parties; -1 until a hello says it."""
    server_name: str | None = None
    offered: int = 0
    chosen: int = 0
    retried: bool = False
    """The server asked for another hello, and said so with a change of cipher that means nothing."""
    hello_ns: int = -1
    hello_frame: int = 0
    server_hello_frame: int = 0
    certificate: SentCertificate | None = None
    last_ns: int = -1
    """Of the last packet that belongs to it."""
    last_frame: int = 0
    last_sender: int = -1
    alert: str | None = None
    alert_from: int = -1
    alert_frame: int = 0
    strange_frame: int = 0
    """Where a side began to say something else than TLS."""
    completed_ns: int = -1
    expected_ack: int = -1
    """What the client had acknowledged when it finished a handshake of TLS 1.3."""

    @property
    def parties(self) -> tuple[_Party, _Party]:
        return self.one, self.other


class TlsTracker:
    """Reads segments with handshake records; addresses are ids until the section is made."""

    def __init__(self) -> None:
        self._handshakes: dict[int, _Handshake | None] = {}
        """By stream; None where nothing more is to be learnt."""
        self._names: dict[int, str] = {}
        self._client_hellos = self._server_hellos = self._retries = self._completed = 0
        self._offered, self._chosen, self._alerts = Tally(100), Tally(100), Tally(500)
        self._server_names = Tally(100_000)
        self._certificates = ServerCertificates()
        self._times = Times()
        self._held = 0

    # -------------------------------------------------------------------------------------------------- packets

    def packet(
        self, stream: int, ends: tuple[int, int], sequence: int, acknowledged: int, payload: bytes, length: int,
        frame: int, now: int,
    ) -> None:  # fmt: skip
        """Read one segment; `ends`: source and destination, address id << 16 | port each."""
        handshake = self._handshakes.get(stream)
        if handshake is None:
            if stream in self._handshakes or len(self._handshakes) >= _MOST_STREAMS or not _opens(payload):
                return
            handshake = _Handshake(_Party(ends[0]), _Party(ends[1]))
            self._handshakes[stream] = handshake
        sender, party, peer = 0, handshake.one, handshake.other
        if party.endpoint != ends[0]:
            sender, party, peer = 1, peer, party
        if party.over:
            return
        events = party.take(sequence, payload, length)
        party.read_to = party.next
        held = party.held_bytes
        if held != party.counted:
            self._count(party, held)
        if handshake.completed_ns >= 0:
            self._after(stream, handshake, sender, events, sequence, frame, now)
            return
        if party.strange and not handshake.strange_frame:
            handshake.strange_frame = frame
        if events:
            handshake.last_ns, handshake.last_frame, handshake.last_sender = now, frame, sender
        for number, event in enumerate(events, 1):
            self._event(stream, handshake, sender, event, frame, now)
            # Behind a change of cipher an alert may follow instead of what ends the handshake.
            if handshake.alert is None and (event.kind != CHANGE_CIPHER or number == len(events)):
                self._judge(stream, handshake, sender, event, acknowledged, now)
            if handshake.completed_ns >= 0:
                # A segment may hold the end of the handshake and a goodbye behind it.
                self._after(stream, handshake, sender, events[number:], sequence, frame, now)
                break
        if sender == handshake.client and peer.next < 0 and acknowledged and not peer.over:
            peer.starts_at(acknowledged)

    def _count(self, party: _Party, held: int) -> None:
        self._held += held - party.counted
        party.counted = held
        if self._held > _MOST_HELD:
            self._held -= held
            party.counted = 0
            party.forget()

    def _event(self, stream: int, handshake: _Handshake, sender: int, event: Event, frame: int, now: int) -> None:
        kind = event.kind
        if kind in (HANDSHAKE, SSL2):
            self._message(stream, handshake, sender, event, frame, now)
        elif kind == CHANGE_CIPHER:
            handshake.parties[sender].changed_ns = now
        elif kind == ALERT:
            self._alert(handshake, sender, event, frame)

    def _message(self, stream: int, handshake: _Handshake, sender: int, event: Event, frame: int, now: int) -> None:
        if event.kind == SSL2 or event.detail == _CLIENT_HELLO:
            hello = read_ssl2_hello(event.body) if event.kind == SSL2 else read_client_hello(event.body)
            if hello is None:
                return
            self._client_hellos += 1
            self._offered.add(version_name(hello.version))
            handshake.client, handshake.offered = sender, hello.version
            if handshake.hello_ns < 0:
                handshake.hello_ns, handshake.hello_frame = now, frame
            if hello.server_name is not None and handshake.server_name is None:
                handshake.server_name = hello.server_name
                self._server_names.add(hello.server_name.lower())
                self._names[stream] = hello.server_name
        elif event.detail == _SERVER_HELLO:
            answer = read_server_hello(event.body)
            if answer is None:
                return
            handshake.client = 1 - sender
            if answer.retry:
                self._retries += 1
                handshake.retried = True
                return
            self._server_hellos += 1
            self._chosen.add(version_name(answer.version))
            handshake.chosen, handshake.server_hello_frame = answer.version, frame
        elif event.detail == _SERVER_HELLO_DONE:
            handshake.parties[sender].hello_done = True
        elif event.detail == _CERTIFICATE and handshake.client == 1 - sender:
            endpoint = handshake.parties[sender].endpoint
            handshake.certificate = self._certificates.add(endpoint, event.body, frame, now, handshake.server_name)

    def _alert(self, handshake: _Handshake, sender: int, event: Event, frame: int) -> None:
        if event.detail < 0:
            name = ENCRYPTED if event.adjacent else None
        else:
            level, description = divmod(event.detail, 256)
            if description in CLOSURES:
                return
            name = alert_name(description)
            side = "client" if sender == handshake.client else "server" if handshake.client >= 0 else "unknown"
            self._alerts.add(f"{side}: {name}")
            if level == 1 and description in HARMLESS:
                return
        if name is not None and handshake.alert is None:
            handshake.alert, handshake.alert_from, handshake.alert_frame = name, sender, frame

    def _judge(
        self, stream: int, handshake: _Handshake, sender: int, event: Event, acknowledged: int, now: int
    ) -> None:
        """Judge whether the handshake ends with this event."""
        if handshake.chosen >= TLS13:
            if sender != handshake.client:
                return
            if event.kind == DATA and event.detail > _LEAST_FINISHED - 5:
                self._complete(handshake, now)
                handshake.expected_ack = acknowledged
            elif handshake.parties[sender].skipped >= _LEAST_FINISHED:
                self._complete(handshake, -1)
            return
        changed = handshake.one.changed_ns >= 0 and handshake.other.changed_ns >= 0
        if changed and (handshake.chosen or not handshake.retried):
            self._complete(handshake, now)
            self._handshakes[stream] = None

    def _complete(self, handshake: _Handshake, now: int) -> None:
        """`now`: -1 where what ended it was passed over."""
        self._completed += 1
        handshake.completed_ns = max(now, 0)
        if 0 <= handshake.hello_ns <= now:
            self._times.add(now - handshake.hello_ns)
        for party in handshake.parties:
            self._held -= party.counted
            party.counted = 0
            party.skip()

    def _after(
        self, stream: int, handshake: _Handshake, sender: int, events: list[Event], sequence: int, frame: int, now: int
    ) -> None:
        """Handle an alert as the server's first record after the client finished: it refuses the client."""
        if not any(event.kind == ALERT for event in events):
            return
        refusal = sender != handshake.client and sequence == handshake.expected_ack
        if refusal and now - handshake.completed_ns <= _REFUSAL_NS:
            handshake.alert, handshake.alert_from, handshake.alert_frame = ENCRYPTED, sender, frame
            handshake.last_ns, handshake.last_frame, handshake.last_sender = now, frame, sender
            for party in handshake.parties:
                party.over = True
        else:
            self._handshakes[stream] = None

    # -------------------------------------------------------------------------------------------------- results

    def server_names(self) -> dict[int, str]:
        """Return server names by stream."""
        return self._names

    def section(self, address: Callable[[int], str], ending: Endings, capture_end_ns: int) -> TlsSection | None:
        self._finish()
        if not (self._client_hellos or self._server_hellos or self._alerts):
            return None
        completed = self._completed
        certificates = self._certificates.read(address)
        failures = []
        for stream in sorted(number for number, each in self._handshakes.items() if each is not None):
            handshake = self._handshakes[stream]
            assert handshake is not None
            if handshake.hello_ns < 0 or (handshake.completed_ns >= 0 and handshake.alert is None):
                continue
            end = ending(stream)
            if handshake.completed_ns >= 0:
                client = end.of(handshake.parties[handshake.client].endpoint)
                if 0 < client.fin_frame < handshake.alert_frame:
                    continue  # the server's answer to the client's close
                completed -= 1
            elif handshake.alert is None and _went_on(handshake, end):
                completed += 1
                continue
            elif _left_out(handshake, end):
                continue
            failure = _failure(stream, handshake, end, capture_end_ns, address)
            if failure is not None:
                sent = handshake.certificate
                failures.append(replace(failure, certificate=certificates.get(sent)) if sent else failure)
        failures.sort(key=lambda each: each.frames)
        listed = sorted(certificates.values(), key=lambda each: (each.not_after_ns, each.frame, each.server))
        return TlsSection(
            client_hellos=self._client_hellos,
            server_hellos=self._server_hellos,
            hello_retries=self._retries,
            handshakes_completed=completed,
            versions_offered=self._offered.most(),
            versions_chosen=self._chosen.most(),
            server_names=self._server_names.most(_MOST_NAMES),
            distinct_server_names=len(self._server_names),
            alerts=self._alerts.most(),
            failures=tuple(
                round_robin(failures, _MOST_FAILURES, lambda one: (one.server, one.port, one.stage, one.alert))
            ),
            failures_total=len(failures),
            certificates=tuple(listed[:_MOST_LISTED]),
            handshake_ms=self._times.statistics(),
        )

    def _finish(self) -> None:
        """Read data kept for segments that never came."""
        for stream, handshake in self._handshakes.items():
            if handshake is None or handshake.completed_ns >= 0:
                continue
            for sender, party in enumerate(handshake.parties):
                if party.counted and not party.over:
                    party.over = True
                    for event in party.rest():
                        self._event(stream, handshake, sender, event, handshake.last_frame, handshake.last_ns)


def _opens(payload: bytes) -> bool:
    """Return whether the bytes may begin a handshake: a cleartext record, or an SSL 2 hello."""
    return payload[0] == HANDSHAKE or payload[0] >= 0x80 or (payload[0] == ALERT and payload[3:5] == b"\0\2")


def _went_on(handshake: _Handshake, end: Ending) -> bool:
    """Return whether the connection was used, so that the capture only lacks a part of the handshake."""
    client, server = handshake.one, handshake.other
    if handshake.client:
        client, server = server, client
    answered_to = end.of(server.endpoint).next_sequence
    if answered_to < 0:
        return True  # one side was captured; it does not say what the other lacked
    ours = beyond(end.of(client.endpoint).next_sequence, client.read_to) + client.skipped
    if handshake.chosen >= TLS13:
        return ours >= _LEAST_FINISHED
    theirs = beyond(answered_to, server.read_to) + server.skipped
    # One side changed to encryption, and the other's change lies in what could not be read, or data does.
    changed = max(client.changed_ns, server.changed_ns) >= 0
    return changed and (max(ours, theirs) >= _LEAST_FINISHED or not handshake.server_hello_frame)


def _left_out(handshake: _Handshake, end: Ending) -> bool:
    """Return whether the end of the handshake may be in the cut part of packets, and no cleartext alert shows a
    failure."""
    client, server = (handshake.parties[each] for each in (handshake.client, 1 - handshake.client))
    if handshake.alert not in (None, ENCRYPTED) or (server.strange and not handshake.chosen):
        return False
    if not end.of(server.endpoint).payload_bytes:
        return False  # what the client said, whole or not, was not answered
    # In TLS 1.3 it is the client alone that tells.
    return client.cut or (server.cut and handshake.chosen < TLS13)


def _party_to_answer(handshake: _Handshake, end: Ending) -> int:
    """Return the side that should have sent the next message."""
    server = handshake.parties[1 - handshake.client]
    if handshake.last_sender == handshake.client:
        return 1 - handshake.client
    cut_short = beyond(server.read_to, end.of(server.endpoint).next_sequence) > 0
    more_to_say = handshake.chosen < TLS13 and not server.hello_done and server.changed_ns < 0
    return 1 - handshake.client if cut_short or more_to_say else handshake.client


def _failure(
    stream: int, handshake: _Handshake, end: Ending, capture_end_ns: int, address: Callable[[int], str]
) -> TlsFailure | None:
    client, server = (handshake.parties[each] for each in (handshake.client, 1 - handshake.client))
    sides: dict[int, Side] = {handshake.client: "client", 1 - handshake.client: "server"}
    ended = end.first_close(client.endpoint, server.endpoint)
    ended_by = ended.side if ended is not None else None
    until = end.last_ns if ended is not None else capture_end_ns
    waited = max(until - handshake.last_ns, 0)
    silent = sides[_party_to_answer(handshake, end)]
    stalled: TlsStage = "hung" if handshake.chosen else "no_server_hello"
    stage: TlsStage
    if handshake.alert is not None:
        stage = "alert"
    elif server.strange and not handshake.chosen:
        stage = "not_tls"
    elif waited >= WAIT_NS and ended_by != silent:
        stage = stalled
    elif ended is None:
        return None  # the capture stopped too early to tell
    elif not handshake.chosen and end.of(server.endpoint).payload_bytes:
        stage = "no_server_hello"
    else:
        stage = "reset_in_handshake" if ended.reset else "closed_in_handshake"
    frames = {handshake.hello_frame, handshake.server_hello_frame, handshake.alert_frame, handshake.last_frame}
    frames.add(handshake.strange_frame)
    if ended is not None:
        frames.add(ended.frame)
    return TlsFailure(
        stream_id=stream,
        client=address(client.endpoint >> 16),
        server=address(server.endpoint >> 16),
        port=server.endpoint & 0xFFFF,
        server_name=handshake.server_name,
        stage=stage,
        alert=handshake.alert,
        alert_from=sides[handshake.alert_from] if handshake.alert is not None else None,
        offered_version=version_name(handshake.offered) if handshake.offered else None,
        chosen_version=version_name(handshake.chosen) if handshake.chosen else None,
        ended_by=ended_by,
        silent=silent if stage == stalled else None,
        waited_ms=round(waited / 1e6, 3),
        frames=tuple(sorted(frames - {0})),
    )
