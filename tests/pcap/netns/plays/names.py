"""Name servers that say no, fail, are slow or silent, and clients that ask strangely."""

from __future__ import annotations

from tests.pcap.netns.peers import fetch, serve, web
from tests.pcap.netns.resolver import Answer, lookup, serve_names
from tests.pcap.netns.scene import scene
from tests.pcap.netns.stage import Stage

_GOOD = ("www.example.net", "api.example.net", "db.example.net", "cache.example.net")


def _everyday(stage: Stage, answer: Answer) -> None:
    serve_names(stage.server, stage.dns_ip, answer)
    port = stage.port(8000, 9000)
    serve(stage.server, stage.server_ip, port, web(4000))
    for name in _GOOD:
        lookup(stage.client, stage.dns_ip, name)
        fetch(stage.client, stage.server_ip, port)


@scene("dns_nxdomain", "dns")
def a_name_that_does_not_exist(stage: Stage) -> None:
    gone = f"billing{stage.dice.randrange(100)}.internal.example.org"
    _everyday(stage, lambda name: ("NXDOMAIN" if name == gone else "NOERROR", 0.001))
    for _ in range(3):
        assert lookup(stage.client, stage.dns_ip, gone) == "NXDOMAIN"


@scene("dns_servfail", "dns")
def a_zone_that_cannot_be_resolved(stage: Stage) -> None:
    _everyday(stage, lambda name: ("SERVFAIL" if name.endswith("broken.org") else "NOERROR", 0.001))
    for n in range(4):
        assert lookup(stage.client, stage.dns_ip, f"host{n}.broken.org") == "SERVFAIL"


@scene("dns_timeout", "dns")
def a_name_server_that_is_silent(stage: Stage) -> None:
    _everyday(stage, lambda name: None if name.startswith("mail") else ("NOERROR", 0.001))
    for n in range(3):
        stage.beside(lambda n=n: lookup(stage.client, stage.dns_ip, f"mail{n}.example.org", timeout=0.6, tries=2))  # type: ignore[misc]


@scene("dns_slow", "dns")
def a_name_server_that_is_slow(stage: Stage) -> None:
    _everyday(stage, lambda name: ("NOERROR", 0.9 if name.endswith("example.org") else 0.001))
    for n in range(5):
        stage.beside(lambda n=n: lookup(stage.client, stage.dns_ip, f"host{n}.example.org"))  # type: ignore[misc]


@scene("dns_suspicious", "client")
def data_leaves_inside_of_names(stage: Stage) -> None:
    _everyday(stage, lambda name: ("NOERROR", 0.001))
    for n in range(60):
        piece = bytes(stage.dice.randrange(256) for _ in range(28)).hex()
        other = bytes(stage.dice.randrange(256) for _ in range(28)).hex()
        lookup(stage.client, stage.dns_ip, f"{piece}.{other}.{n}.t.evil-exit.net", kind="TXT")
