"""Scenes with a fault that TLS or HTTP tells of."""

from __future__ import annotations

from .. import messages
from ..issued_certificates import issued
from ..office import Exchange, Office, talk
from ..scene import FAULTS
from .usual import other_port


def _failed_tls(office: Office, exchanges: list[Exchange], n: int, by_server: bool = True) -> None:
    one = talk(office.client, office.server, 8443, exchanges, begin=1.0 + n, ends="open")
    # The side that alerts closes at once.
    office.world.later(1.5 + n, one.server.close if by_server else one.client.close)


@FAULTS.add("tls_failure", "server_application")
def version_refused(office: Office) -> None:
    """The server speaks nothing that the client offers."""
    office.background(server_port=other_port(office))
    for n in range(3):
        hello = messages.client_hello(office.name("old"), messages.TLS_1_2, office.dice)
        _failed_tls(office, [Exchange(hello, ((0.002, messages.alert("protocol_version")),), 0.001)], n)


@FAULTS.add("tls_failure", "server_application")
def certificate_expired(office: Office) -> None:
    office.background(server_port=other_port(office))
    chain = [issued(office, office.name("shop"), days=-3)]
    for n in range(3):
        hello = messages.client_hello(office.name("shop"), messages.TLS_1_2, office.dice)
        flight = messages.server_flight(messages.TLS_1_2, office.dice, chain)
        refusal = Exchange(messages.alert("certificate_expired"), ((9.0, b""),), 0.001)
        _failed_tls(office, [Exchange(hello, ((0.002, flight),), 0.001), refusal], n, by_server=False)


@FAULTS.add("tls_failure", "client")
def client_certificate_refused(office: Office) -> None:
    office.background(server_port=other_port(office))
    for n in range(3):
        hello = messages.client_hello(office.name("partner"), messages.TLS_1_2, office.dice)
        flight = messages.server_flight(messages.TLS_1_2, office.dice, asks_client=True)
        key = messages.client_flight(messages.TLS_1_2, office.dice, office.dice.randbytes(700))
        refusal = messages.alert(office.dice.choice(["bad_certificate", "unknown_ca"]))
        _failed_tls(office, [Exchange(hello, ((0.002, flight),), 0.001), Exchange(key, ((0.002, refusal),), 0.001)], n)


@FAULTS.add("tls_failure", "server_application")
def hello_never_answered(office: Office) -> None:
    """The hello is acknowledged and nothing follows."""
    office.background(server_port=other_port(office))
    for n in range(3):
        hello = messages.client_hello(office.name("hung"), messages.TLS_1_3, office.dice)
        one = talk(
            office.client, office.server, 8443, [Exchange(hello, ((99.0, b"x"),), 0.001)], begin=1.0 + n, ends="open"
        )
        office.world.later(11.0 + n, one.client.close)


@FAULTS.add("tls_failure", "server_application")
def port_speaks_no_tls(office: Office) -> None:
    """A web server without TLS says so in a page, a mail server in its own way; the client resets, or closes."""
    office.background(server_port=other_port(office))
    said = office.dice.choice(
        [
            messages.answer(60, "400 Bad Request"),
            b"<!DOCTYPE html><title>400</title>" * 4,
            b"500 5.5.1 unrecognized\r\n",
        ]
    )
    for n in range(3):
        hello = messages.client_hello(office.name("shop"), messages.TLS_1_3, office.dice)
        one = talk(
            office.client, office.server, 8443, [Exchange(hello, ((0.002, said),), 0.001)], begin=1.0 + n,
            ends=office.dice.choice(["client", "reset", "open"]),
        )  # fmt: skip
        office.world.later(1.6 + n, one.server.close)


@FAULTS.add("http_5xx", "server_application")
def backend_broken(office: Office) -> None:
    office.background(server_port=other_port(office))
    status = office.dice.choice(
        ["502 Bad Gateway", "503 Service Unavailable", "500 Internal Server Error", "504 Gateway Timeout"]
    )
    for n in range(4):
        failing = [
            Exchange(messages.get(office.name("shop")), ((0.02, messages.answer(300, status)),), 0.2) for _ in range(3)
        ]
        talk(office.client, office.server, 8080, failing, begin=1.0 + n)


@FAULTS.add("http_4xx", "policy")
def forbidden_by_a_gateway(office: Office) -> None:
    office.background(server_port=other_port(office))
    for n in range(4):
        refused = [
            Exchange(messages.get(office.name("shop")), ((0.02, messages.answer(300, "403 Forbidden")),), 0.2)
            for _ in range(3)
        ]
        talk(office.client, office.server, 8080, refused, begin=1.0 + n)


@FAULTS.add("http_slow", "server_application")
def pages_late(office: Office) -> None:
    office.background(server_port=other_port(office))
    for n in range(4):
        slow = [
            Exchange(messages.get(office.name("report")), ((office.dice.uniform(1.5, 4), messages.answer(5000)),), 0.2)
            for _ in range(2)
        ]
        talk(office.client, office.server, 8080, slow, begin=1.0 + n)
