"""curl goes where its host resolved to before the run, and never to a metadata service."""

from __future__ import annotations

from typing import Any

import pytest

from ghost.shell.judge.network.host_pinning import Pinned, pin_hosts
from tests.each_row import each

NAMES = {
    "web.internal": ["10.0.2.4", "fd00::4"],
    "evil.example": ["93.184.216.34", "169.254.169.254"],
    "wire.example": ["168.63.129.16"],
    "mapped.example": ["::ffff:169.254.169.254"],
    "link.example": ["fe80::1%eth0"],
    "aws6.example": ["fd00:ec2::254"],
    "odd.example": ["not an address"],
}


def resolve(host: str) -> list[str]:
    if host not in NAMES:
        raise OSError("Name or service not known")
    return NAMES[host]


def pin(*arguments: str, hosts: tuple[str, ...] = ()) -> Pinned:
    return pin_hosts(("curl", "-q", *arguments), hosts, resolve)


def test_a_name_is_pinned_to_what_it_resolved_to_on_every_port_of_the_command() -> None:
    pinned = pin("-s", "http://web.internal:8080/x", hosts=("web.internal",))
    assert pinned.arguments == (
        *("curl", "-q"),
        *("--resolve", "web.internal:80:10.0.2.4,[fd00::4]"),
        *("--resolve", "web.internal:443:10.0.2.4,[fd00::4]"),
        *("--resolve", "web.internal:8080:10.0.2.4,[fd00::4]"),
        *("-s", "http://web.internal:8080/x"),
    )


@each("host", ["evil.example", "wire.example", "mapped.example", "link.example", "aws6.example"])
def test_a_name_that_leads_to_a_metadata_service_is_refused(host: str) -> None:
    assert pin(f"http://{host}/", hosts=(host,)).forbidden is not None
    assert pin("-X", "POST", f"http://u:p@{host}/x").forbidden is not None


@each(
    "word",
    [
        *("http://169.254.169.254/metadata", "169.254.169.254/metadata", "http://2852039166/", "0xA9FEA9FE"),
        *("0251.0376.0251.0376", "http://[::ffff:169.254.169.254]/", "[::ffff:a9fe:a9fe]"),
        *("http://168.63.129.16./", "http://u@169.254.169.254:80/"),
    ],
)
def test_a_metadata_address_is_refused_in_any_spelling(word: str) -> None:
    assert pin(word).forbidden is not None


@each("host", ["nowhere.example", "odd.example"])
def test_a_name_that_does_not_resolve_is_not_left_to_the_program(host: str) -> None:
    pinned = pin(f"http://{host}/", hosts=(host,))
    assert (pinned.unresolved, pinned.forbidden) == (host, None)


def test_an_address_is_not_looked_up() -> None:
    def never(host: str) -> Any:
        pytest.fail(f"looked up {host}")

    words = ("curl", "-q", "http://127.0.0.1:8080/", "http://[::1]/")
    assert pin_hosts(words, ("127.0.0.1", "::1"), never).arguments == words


def test_a_safe_command_leads_only_where_its_url_does_whatever_its_other_words_spell() -> None:
    words = ("-A", "169.254.169.254", "-H", "Referer: http://evil.example/", "http://web.internal/")

    pinned = pin(*words, hosts=("web.internal",))

    assert (pinned.forbidden, pinned.unresolved) == (None, None)
    assert pin(*words).forbidden is not None


@each(
    "words",
    [
        ("--resolve", "a.example:80:169.254.169.254"),
        ("--resolve=+a.example:80:10.0.0.4,168.63.129.16",),
        ("--resolve", "*:80:[fd00:ec2::254]"),
        ("--connect-to", "::169.254.169.254:80"),
        ("--connect-to", "a.example:80:[::ffff:a9fe:a9fe]:80"),
        ("--connect", "::0xA9FEA9FE:"),
    ],
)
def test_an_approved_command_is_not_steered_to_a_metadata_address(words: tuple[str, ...]) -> None:
    assert pin("-X", "POST", *words, "http://web.internal/").forbidden is not None


def test_where_an_option_names_who_is_asked_that_host_is_resolved_and_pinned_at_its_port() -> None:
    pinned = pin("--connect-to", "::web.internal:8443", "https://a.example/", hosts=("web.internal",))

    assert "web.internal:8443:10.0.2.4,[fd00::4]" in pinned.arguments
    assert not any(word.startswith("a.example:") for word in pinned.arguments)
    assert pin("--connect-to", "::evil.example:", "https://a.example/", hosts=("evil.example",)).forbidden is not None
