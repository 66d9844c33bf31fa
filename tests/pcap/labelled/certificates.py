"""Certificates in clear: clients that leave because of one, those that do not care, those that say nothing of why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from . import messages
from .faults.usual import other_port
from .issued_certificates import issued
from .office import Exchange, Office, talk, tls
from .scene import Scenes

SCENES = Scenes()
_V = messages.TLS_1_2


def _ordinary(office: Office) -> None:
    office.background(server_port=other_port(office))


def _chain(office: Office, *names: str, days: float = 90, since: float = -30) -> list[bytes]:
    return [issued(office, *names, days=days, since=since, issuer="Issuing CA 3"), issued(office, "Issuing CA 3")]


def _leaves(
    office: Office, chain: Sequence[bytes], *, name: str = "shop", times: int = 1, version: int = _V, alert: str = ""
) -> None:
    """The client reads the server's flight and closes or resets the connection, without a word unless it alerts."""
    for n in range(times):
        flight = messages.server_flight(version, office.dice, chain)
        asked = [Exchange(messages.client_hello(office.name(name), version, office.dice), ((0.002, flight),), 0.001)]
        if alert:
            asked.append(Exchange(messages.alert(alert), ((9.0, b""),), 0.001))
        one = talk(office.client, office.server, 8443, asked, begin=1.0 + n, ends="open" if alert else "client")
        if alert:
            office.world.later(1.5 + n, one.client.close)
        elif n % 2:
            one.ends = "reset"


def _stays(office: Office, chain: Sequence[bytes], *, name: str = "shop") -> None:
    for n in range(3):
        hello, *rest = tls(office.dice, office.name(name), [900, 4000], version=_V)
        hello = replace(hello, pieces=((0.002, messages.server_flight(_V, office.dice, chain)),))
        talk(office.client, office.server, 8443, [hello, *rest], begin=1.0 + n)


@SCENES.add("tls_failure", "server_application")
def certificate_of_another_site(office: Office) -> None:
    """A wildcard covers one label, and neither the domain itself nor what is two labels deeper."""
    _ordinary(office)
    _leaves(
        office, _chain(office, office.name("www"), office.name("*.shop")), name=office.dice.choice(["shop", "a.b.shop"])
    )


@SCENES.add("tls_failure", "server_application")
def certificate_ended(office: Office) -> None:
    _ordinary(office)
    _leaves(office, _chain(office, office.name("shop"), days=-2))


@SCENES.add("tls_failure", "server_application")
def certificate_of_tomorrow(office: Office) -> None:
    _ordinary(office)
    _leaves(office, _chain(office, office.name("shop"), since=1))


@SCENES.add("tls_failure", "server_application")
def intermediate_left_out(office: Office) -> None:
    _ordinary(office)
    _leaves(office, _chain(office, office.name("shop"))[:1], alert="unknown_ca", times=2)


@SCENES.add("tls_failure", "server_application")
def self_signed(office: Office) -> None:
    _ordinary(office)
    _leaves(office, [issued(office, office.name("shop"))])


@SCENES.add("tls_failure", "server_application", severity="MEDIUM")
def left_once_without_a_reason(office: Office) -> None:
    _ordinary(office)
    _leaves(office, _chain(office, office.name("*")))


@SCENES.add("tls_failure", "server_application", measured={"failed": 4})
def left_each_time_without_a_reason(office: Office) -> None:
    _ordinary(office)
    _leaves(office, _chain(office, office.name("*")), times=4)


@SCENES.add("tls_failure", "server_application", severity="MEDIUM")
def left_once_behind_an_encrypted_certificate(office: Office) -> None:
    _ordinary(office)
    _leaves(office, (), version=messages.TLS_1_3)


@SCENES.add("none", "none", low=())
def certificate_in_order(office: Office) -> None:
    _ordinary(office)
    _stays(office, _chain(office, office.name("*"), office.zone))


@SCENES.add("none", "none", low=())
def private_authority(office: Office) -> None:
    """Clients that know the issuer, or the very certificate, need nothing else."""
    _ordinary(office)
    own = issued(office, office.name("shop"))
    _stays(office, office.dice.choice([[own], _chain(office, office.name("shop"))[:1]]))


@SCENES.add("none", "none", low=(("tls_failure", "server_application"),))
def clients_that_do_not_care(office: Office) -> None:
    _ordinary(office)
    names = office.dice.choice([office.name("www"), office.name("shop")])
    _stays(office, _chain(office, names, days=90 if names.startswith("www") else -9))
