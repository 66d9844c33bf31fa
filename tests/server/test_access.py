"""Who may ask: Host, Origin, fetch metadata and token, decided without a server."""

from __future__ import annotations

import pytest

from ghost.hosts import is_loopback
from ghost.server.access import Access

HERE = ("127.0.0.1", 8000)


def refused(
    access: Access, *headers: tuple[str, str], method: str = "GET", path: str = "/wm", server=HERE
) -> int | None:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    found = access.refusal(method, path, raw, server, "http")
    return found.status if found else None


LOOPBACK = Access.of("127.0.0.1", None)


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST:8000"])
def test_this_machines_own_names_are_answered(host: str) -> None:
    assert refused(LOOPBACK, ("host", host)) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8000",
        "localhost.evil.example:8000",
        "localhost",
        "localhost:8001",
        "localhost:80",
        "127.0.0.1",
        "127.1:8000",
        "0x7f.1:8000",
        "2130706433:8000",
        "10.0.0.1:8000",
        "[::2]:8000",
        "::1:8000",
        "localhost.:8000",
        "localhost:8000:8000",
        "localhost:",
        "localhost:080000",
        "user@localhost:8000",
        "localhost:8000/",
        " localhost:8000",
        "",
    ],
)
def test_a_name_that_a_page_could_point_here_is_refused(host: str) -> None:
    assert refused(LOOPBACK, ("host", host)) == 421


def test_a_request_without_a_host_or_with_two_is_refused() -> None:
    assert refused(LOOPBACK) == 421
    assert refused(LOOPBACK, ("host", "localhost:8000"), ("host", "evil.example")) == 421


def test_the_default_port_may_be_left_out() -> None:
    assert refused(LOOPBACK, ("host", "localhost"), server=("127.0.0.1", 80)) is None


def test_an_address_at_which_the_connection_arrived_is_ours() -> None:
    everywhere = Access.of("0.0.0.0", "t" * 32)
    host, token = ("host", "192.0.2.7:8000"), ("authorization", "Bearer " + "t" * 32)
    assert refused(everywhere, host, token, server=("192.0.2.7", 8000)) is None
    assert refused(everywhere, host, token, server=("192.0.2.8", 8000)) == 421
    assert refused(everywhere, ("host", "0.0.0.0:8000"), token, server=("192.0.2.8", 8000)) == 421
    by_name = Access.of("ghost.example", "t" * 32)
    assert refused(by_name, ("host", "ghost.example:8000"), token, server=("192.0.2.8", 8000)) is None
    assert refused(by_name, ("host", "www.ghost.example:8000"), token, server=("192.0.2.8", 8000)) == 421


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://localhost:8001",
        "https://localhost:8000",
        "http://127.0.0.1:8000",
        "null",
        "",
        "http://localhost:8000.evil.example",
    ],
)
def test_a_page_of_another_origin_is_refused(method: str, origin: str) -> None:
    assert refused(LOOPBACK, ("host", "localhost:8000"), ("origin", origin), method=method) == 403


def test_the_dashboard_itself_is_answered() -> None:
    host, origin = ("host", "localhost:8000"), ("origin", "http://localhost:8000")
    assert refused(LOOPBACK, host, origin, ("sec-fetch-site", "same-origin"), method="POST") is None


def test_a_browser_that_sends_no_origin_is_known_by_its_fetch_metadata() -> None:
    host = ("host", "localhost:8000")
    assert refused(LOOPBACK, host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")) == 403
    assert refused(LOOPBACK, host, ("sec-fetch-site", "same-site"), method="POST") == 403
    assert refused(LOOPBACK, host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")) is None
    assert (
        refused(LOOPBACK, host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), method="POST") == 403
    )
    assert refused(LOOPBACK, host, ("sec-fetch-site", "none")) is None


TOKEN = "correct horse battery staple ä".encode().decode("latin-1")
SECURED = Access.of("127.0.0.1", "correct horse battery staple ä")


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-2]}",
    ],
)
def test_without_the_token_nothing_but_health_and_the_dashboards_files_is_answered(authorization: str | None) -> None:
    headers = [("host", "localhost:8000")]
    if authorization is not None:
        headers.append(("authorization", authorization))
    for path in ("/wm", "/events", "/metrics", "/readyz", "/openapi.json", "/healthz/", "/uix", "/ui.json", "//ui/"):
        assert refused(SECURED, *headers, path=path) == 401
    for path in ("/", "/healthz", "/ui", "/ui/", "/ui/app.js"):
        assert refused(SECURED, *headers, path=path) is None


def test_the_token_opens_and_two_of_them_do_not() -> None:
    host, right = ("host", "localhost:8000"), ("authorization", f"Bearer {TOKEN}")
    assert refused(SECURED, host, right) is None
    assert refused(SECURED, host, ("authorization", f"bearer {TOKEN}")) is None
    assert refused(SECURED, host, right, ("authorization", "Bearer wrong")) == 401


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost", "LocalHost"])
def test_loopback_is_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "127.1", "localhost.example", "ghost", "", "*"])
def test_what_is_not_surely_loopback_is_not_taken_for_it(host: str) -> None:
    assert not is_loopback(host)
