"""A small name server for a scene, and lookups to it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

import dns.flags
import dns.message
import dns.rcode
import dns.rrset

from tests.pcap.netns.space import Space

Answer = Callable[[str], tuple[str, float] | None]
"""From a name to a response code and seconds of waiting; None for no answer at all."""


def knows_all(_: str) -> tuple[str, float]:
    return "NOERROR", 0.001


def serve_names(space: Space, address: str, answer: Answer = knows_all, port: int = 53) -> None:
    sock = space.socket(socket.SOCK_DGRAM)
    sock.bind((address, port))

    def reply(wire: bytes, asker: tuple[str, int]) -> None:
        query = dns.message.from_wire(wire)
        name = query.question[0].name
        verdict = answer(name.to_text(omit_final_dot=True))
        if verdict is None:
            return
        code, wait = verdict
        time.sleep(wait)
        response = dns.message.make_response(query)
        response.flags |= dns.flags.RA
        response.set_rcode(dns.rcode.from_text(code))
        if code == "NOERROR":
            response.answer.append(dns.rrset.from_text(name, 300, "IN", "A", "10.9.8.7"))
        sock.sendto(response.to_wire(), asker)

    def listen() -> None:
        while True:
            wire, asker = sock.recvfrom(4096)
            threading.Thread(target=reply, args=(wire, asker), daemon=True).start()

    threading.Thread(target=listen, daemon=True).start()


def lookup(space: Space, server: str, name: str, *, timeout: float = 3.0, tries: int = 1, kind: str = "A") -> str:
    """The response code, or "TIMEOUT" after `tries` of `timeout` seconds."""
    query = dns.message.make_query(name, kind)
    with space.socket(socket.SOCK_DGRAM) as sock:
        sock.settimeout(timeout)
        sock.connect((server, 53))
        for _ in range(tries):
            sock.send(query.to_wire())
            try:
                return dns.rcode.to_text(dns.message.from_wire(sock.recv(4096)).rcode())
            except TimeoutError:
                continue
    return "TIMEOUT"
