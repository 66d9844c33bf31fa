"""Made-up TCP streams that meet every rule of the analysis flags, in orders that no real stack would send."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from .wire import ACK, CLIENT, FIN, PSH, RST, SERVER, SYN, Record, ethernet, ip, pcap, tcp

_PAUSES_MS = (0.05, 0.3, 1, 2.5, 4, 10, 19, 21, 40, 200, 300)
_MSS = b"\2\4\5\xb4"


@dataclass
class _Odd:
    """Two ends that mostly continue, and often repeat, skip, probe, close their window or acknowledge anything."""

    dice: random.Random
    port: int
    now: int
    records: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        dice = self.dice
        first = [dice.choice([1000, dice.randrange(1 << 32), 0xFFFFFF00]) for _ in range(2)]
        self.following = [first[0] + 1, first[1] + 1]
        self.acked = [self.following[1], self.following[0]]
        self.window = [500, 500]
        self.sent: list[list[tuple[int, int]]] = [[], []]
        self.scale = dice.choice([None, 0, 2, 7])
        if dice.random() < 0.8:
            self._open(first)
        for _ in range(dice.randrange(4, 40)):
            self._step()

    def _open(self, first: list[int]) -> None:
        dice = self.dice
        scaled = _MSS + (b"\3\3" + bytes([self.scale]) if self.scale is not None else b"")
        self._packet(0, first[0], 0, SYN, 0, dice.choice([500, 1000]), scaled)
        if dice.random() < 0.9:
            answer = scaled if dice.random() < 0.8 else _MSS
            for _ in range(2 if dice.random() < 0.1 else 1):
                self._packet(1, first[1], first[0] + 1, SYN | ACK, 0, dice.choice([500, 1000]), answer)
            if dice.random() < 0.9:
                self._packet(0, first[0] + 1, first[1] + 1, ACK, 0, 500)

    def _step(self) -> None:
        if self.dice.random() < 0.06:
            self._repeat_after_duplicates(self.dice.randrange(2))
            return
        side = self.dice.randrange(2) if self.dice.random() < 0.7 else 0
        seq, length = self._sequence(side)
        ack = self._acknowledgement(side)
        window = self._window(side, ack)
        control = self._control()
        self._packet(side, seq, ack, control, length, window)
        if length:
            self.sent[side].append((seq, length))
        self.following[side] = max(self.following[side], seq + length + (1 if control & (SYN | FIN) else 0))
        if control & ACK:
            self.acked[side] = ack
        self.window[side] = window

    def _repeat_after_duplicates(self, side: int) -> None:
        peer, start = 1 - side, self.acked[1 - side]
        for _ in range(self.dice.randrange(5)):
            self._packet(peer, self.following[peer], start, ACK, 0, self.window[peer])
        self._packet(side, start, self.acked[side], ACK, self.dice.choice([100, 1000]), self.window[side])

    def _sequence(self, side: int) -> tuple[int, int]:
        dice, chance = self.dice, self.dice.random()
        seq, length = self.following[side], dice.choice([0, 0, 0, 1, 2, 100, 1000, 1000])
        if chance < 0.15 and self.sent[side]:
            seq, length = dice.choice(self.sent[side][-5:])
            if dice.random() < 0.2:
                length = dice.choice([length, length + 100, max(length - 1, 0)])
        elif chance < 0.25:
            seq, length = seq - 1, dice.choice([0, 1, 1, 2, 100])
        elif chance < 0.35:
            seq += dice.choice([1, 500, 1000])
        elif chance < 0.40:
            seq, length = self.acked[1 - side], dice.choice([0, 100, 1000])
        elif chance < 0.45:
            length = 1
        return seq, length

    def _acknowledgement(self, side: int) -> int:
        dice, chance = self.dice, self.dice.random()
        sent, before = self.following[1 - side], self.acked[side]
        if chance < 0.35:
            return sent
        if chance < 0.45:
            return before + dice.choice([1, 100, 1000])
        if chance < 0.48:
            return sent + dice.choice([1, 500, 2000])
        if chance < 0.52:
            return before - dice.choice([1, 100, 1000])
        return before

    def _window(self, side: int, ack: int) -> int:
        dice, chance = self.dice, self.dice.random()
        if chance < 0.15:
            return 0
        if chance < 0.3:
            return dice.choice([1, 2, 100, 500, 1000])
        if chance < 0.4:  # ends where the next segment of the peer does
            return max((self.following[1 - side] - ack + 1000) & 0xFFFF, 0) >> max(self.scale or 0, 0)
        return self.window[side]

    def _control(self) -> int:
        chance = self.dice.random()
        if chance < 0.03:
            return ACK | FIN
        if chance < 0.04:
            return ACK | RST
        if chance < 0.05:
            return RST
        return ACK | PSH if chance < 0.2 else ACK

    def _packet(
        self, side: int, seq: int, ack: int, control: int, length: int, window: int, options: bytes = b""
    ) -> None:
        self.now += int(self.dice.choice(_PAUSES_MS) * 1e6)
        ends = (CLIENT, SERVER) if side == 0 else (SERVER, CLIENT)
        ports = (self.port, 80) if side == 0 else (80, self.port)
        acknowledged = ack if control & ACK else 0
        segment = tcp(*ports, seq, acknowledged, control, b"x" * length, window=window, options=options)
        number = self.dice.randrange(1, 65536)
        self.records.append((self.now, ethernet(ip(*ends, 6, segment, number=number))))


def odd_capture(seed: int, path: Path, streams: int = 150) -> Path:
    dice = random.Random(seed)
    begin = 1_700_000_000 * 1_000_000_000
    made = (_Odd(dice, 20_000 + n, begin + n * 10_000_000_000) for n in range(streams))
    path.write_bytes(pcap([record for one in made for record in one.records], nanoseconds=True))
    return path
