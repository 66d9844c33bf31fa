from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghost.brain.offline.symptom import parse_symptom, vocabulary

PHRASINGS = tomllib.loads((Path(__file__).parent / "phrasings.toml").read_text(encoding="utf-8"))["phrasing"]


@pytest.mark.parametrize("said", PHRASINGS, ids=lambda said: said["text"])
def test_what_engineers_say_is_understood(said: dict[str, Any]) -> None:
    symptom = parse_symptom(said["text"])
    source, destination = said["source"], said["destination"]
    assert any(source in way.source and destination in way.destination for way in symptom.ways[:2]), symptom.ways
    assert symptom.kind == said["kind"]
    assert symptom.protocol == said.get("protocol", "Tcp")
    assert symptom.port == said.get("port", said.get("implied"))
    assert symptom.port_stated == ("port" in said)


@pytest.mark.parametrize("number", ["0", "65536", "99999", "1234567"])
@pytest.mark.parametrize("form", ["on port {}", "on tcp/{}", ":{}"])
def test_a_number_that_is_no_port_is_kept_as_such_and_replaced_by_nothing(number: str, form: str) -> None:
    symptom = parse_symptom(f"vm-a cannot reach the Redis cache {form.format(number)}".replace(" :", ":"))
    assert (symptom.port, symptom.invalid_port) == (None, number)


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("the web servers cannot reach the cache", 6379),
        ("the web servers cannot reach batch-1", None),
        ("ssh from web-1 to the redis cache fails", 22),
        ("redis-1 cannot reach the https proxy", 443),
    ],
)
def test_the_service_of_the_source_does_not_imply_the_port_of_the_destination(text: str, port: int | None) -> None:
    symptom = parse_symptom(text)
    assert symptom.port == port
    assert not symptom.port_stated


@pytest.mark.parametrize(
    ("text", "source", "destination"),
    [
        ("VMs in prod-subnet cannot reach the Redis cache on port 6379", "VMs in prod-subnet", "the Redis cache"),
        ("Transfers from app-vm-01 to db-vm-01 on port 5432 stall", "app-vm-01", "db-vm-01 stall"),
        ("Connections between a-1 and b-1 reset", "a-1", "b-1 reset"),
        ("We can't connect to db01 from app01", "app01", "db01"),
        ("10.0.0.4 times out connecting to 10.0.1.5:443", "10.0.0.4", "10.0.1.5"),
        ("orders-db is unreachable from the web servers", "the web servers", "orders-db"),
        ("app01 gets resets from db01", "app01", "db01"),
        ("Reads by app-1 from db-1 on port 5432 stall", "app-1", "db-1 stall"),
        ("x-1 -> y-1 tcp/8443 blocked", "x-1", "y-1 blocked"),
    ],
)
def test_who_cannot_reach_whom_is_read_from_the_sentence(text: str, source: str, destination: str) -> None:
    ways = parse_symptom(text).ways
    assert any((way.source, " ".join(way.destination.split())) == (source, destination) for way in ways)


@pytest.mark.parametrize(
    ("text", "protocol", "port"),
    [
        ("a cannot reach b on port 6379", "Tcp", 6379),
        ("a cannot reach b:5432", "Tcp", 5432),
        ("a cannot reach b on udp port 514", "Udp", 514),
        ("a cannot reach b on 514/udp", "Udp", 514),
        ("a cannot reach b on tcp/8443", "Tcp", 8443),
        ("a cannot reach b (port 53/udp)", "Udp", 53),
        ("a cannot query DNS at b on port 53", "Udp", 53),
        ("a cannot reach b on port 53", "Tcp", 53),
        ("a cannot reach the Redis cache", "Tcp", 6379),
        ("a cannot query Postgres on b", "Tcp", 5432),
        ("a cannot ping b", "Icmp", None),
        ("a cannot reach b", "Tcp", None),
        ("a cannot reach b on port 99999", "Tcp", None),
        ("a cannot reach fd00::5:443 today", "Tcp", None),
        ("a cannot reach 10.0.1.12", "Tcp", None),
    ],
)
def test_protocol_and_port_are_stated_or_implied_by_the_service(text: str, protocol: str, port: int | None) -> None:
    symptom = parse_symptom(text)
    assert (symptom.protocol, symptom.port) == (protocol, port)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a cannot reach b", "unreachable"),
        ("transfers from a to b stall and are slow", "degraded"),
        ("a reaches b only intermittently", "degraded"),
        ("a cannot resolve db.corp.internal", "dns"),
        ("connections from a to b are reset", "reset"),
    ],
)
def test_the_manner_of_failure_is_told_apart(text: str, kind: str) -> None:
    assert parse_symptom(text).kind == kind


@given(st.text(max_size=200))
def test_any_text_is_a_symptom_that_can_be_read_in_some_way(text: str) -> None:
    symptom = parse_symptom(text)
    assert symptom.ways
    assert symptom.port is None or 1 <= symptom.port <= 65535


@given(st.integers(1, 65535), st.sampled_from(["on port {}", "(TCP port {})", "on tcp/{}", "at port {}, since noon"]))
def test_a_stated_port_is_found_whatever_its_number(port: int, form: str) -> None:
    assert parse_symptom(f"vm-a cannot reach vm-b {form.format(port)}").port == port


def test_every_service_has_a_protocol_and_a_port() -> None:
    for word, (protocol, port) in vocabulary()["services"].items():
        assert word == word.lower()
        assert protocol in ("Tcp", "Udp")
        assert 1 <= port <= 65535
