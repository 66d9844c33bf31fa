"""Connections themselves: certificates, names, deadlines. Servers are on loopback, certificates the test's own."""

from __future__ import annotations

import socket
import ssl
import threading
import time

import pytest
import trustme

from ghost.errors import ScrapeError
from ghost.records import SystemClock
from ghost.scraper import Allowlist, Reach, ScrapePlan, Scraper, parse
from ghost.scraper.fetcher import Fetcher
from ghost.scraper.http_response import OutOfTimeError, UnreachableError
from ghost.scraper.network_io import system_resolve, tcp_connect
from ghost.scraper.rate_limit import RateLimit
from tests.scraper import site as sites
from tests.scraper.site import Answer, ManualClock, Site, World, page


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def served_as(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


def fetched(world: World, url: str, tls: ssl.SSLContext | None, within: float = 5):
    fetcher = Fetcher(SystemClock(), "GhostBot/0", resolve=world.resolve, connect=world.connect, tls=tls)
    return fetcher.get(parse(url), Reach.PUBLIC, within=within, stop=lambda: False, limit=10_000)


def test_a_page_is_read_over_tls_by_the_name_that_was_asked_for(authority):
    world, names = World(), []
    server = served_as(authority, "site.example")
    server.sni_callback = lambda connection, name, context: names.append(name)
    with Site({"/": page("secured")}, tls=server) as site:
        world.put(site, "site.example", port=443)
        settings = sites.settings("site.example")
        scraper = Scraper(settings, resolve=world.resolve, connect=world.connect, tls=trusting(authority))
        result = scraper.execute(ScrapePlan(seeds=("https://site.example./",)))
        assert [document.url for document in result.documents] == ["https://site.example/"]
        assert set(names) == {"site.example"}
        assert set(world.connected) == {(sites.PUBLIC, 443)}


@pytest.mark.parametrize("name", ["other.example", "example", "*.site.example"])
def test_a_certificate_for_another_name_is_refused(authority, name):
    world = World()
    with Site({"/": page("secured")}, tls=served_as(authority, name)) as site:
        world.put(site, "site.example", port=443)
        with pytest.raises(UnreachableError, match=r"(?i)hostname mismatch"):
            fetched(world, "https://site.example/", trusting(authority))
        assert site.asked == []


def test_a_certificate_of_an_unknown_authority_is_refused(authority):
    world = World()
    with Site({"/": page("secured")}, tls=served_as(trustme.CA(), "site.example")) as site:
        world.put(site, "site.example", port=443)
        for tls in (trusting(authority), None):
            with pytest.raises(UnreachableError, match="CERTIFICATE_VERIFY_FAILED"):
                fetched(world, "https://site.example/", tls)
        assert site.asked == []


def test_an_address_has_a_certificate_of_its_own(authority):
    world = World()
    with Site({"/": page("secured")}, tls=served_as(authority, sites.PUBLIC)) as site:
        world.put(site, "unused.example", port=443)
        assert fetched(world, f"https://{sites.PUBLIC}/", trusting(authority)).status == 200


def test_a_context_that_checks_nothing_is_not_used():
    world = World()
    careless = ssl.create_default_context()
    careless.check_hostname = False
    with Site({"/": page("plain")}) as site:
        world.put(site, "site.example", port=443)
        with pytest.raises(ScrapeError, match="does not check"):
            fetched(world, "https://site.example/", careless)


def test_a_server_that_speaks_no_tls_is_unreachable(authority):
    world = World()
    with Site({"/": page("plain")}) as site:
        world.put(site, "site.example", port=443)
        with pytest.raises(UnreachableError):
            fetched(world, "https://site.example/", trusting(authority))


def test_a_handshake_that_never_ends_ends_with_the_deadline(authority):
    world = World()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        world.names["site.example"] = [sites.PUBLIC]
        world.places[sites.PUBLIC, 443] = silent.getsockname()[1]
        began = time.monotonic()
        with pytest.raises(OutOfTimeError):
            fetched(world, "https://site.example/", trusting(authority), within=0.3)
        assert time.monotonic() - began < 4


def test_a_large_page_over_tls_arrives_whole_though_it_comes_slowly(authority):
    world = World()
    body = "<p>" + "word " * 1500

    def slowly(handler: sites.Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body))
        for begin in range(0, len(body), 2000):
            time.sleep(0.13)  # longer than one wait for the peer lasts
            handler.wfile.write(body[begin : begin + 2000].encode())

    with Site({"/": slowly}, tls=served_as(authority, "site.example")) as site:
        world.put(site, "site.example", port=443)
        assert fetched(world, "https://site.example/", trusting(authority)).body == body.encode()


def test_a_name_that_is_not_resolved_in_time_is_out_of_time():
    def never(host: str, port: int, timeout: float):
        raise TimeoutError("no answer")

    fetcher = Fetcher(SystemClock(), "GhostBot/0", resolve=never, connect=World().connect)
    with pytest.raises(OutOfTimeError, match="not resolved in time"):
        fetcher.get(parse("http://a.example/"), Reach.PUBLIC, within=5, stop=lambda: False, limit=10)


def test_an_address_that_keeps_silent_leaves_time_for_the_next():
    waited = []

    def connect(address: str, port: int, timeout: float):
        waited.append(timeout)
        raise TimeoutError

    fetcher = Fetcher(SystemClock(), "GhostBot/0", resolve=lambda *_: ["1.1.1.1", "8.8.8.8"], connect=connect)
    with pytest.raises(UnreachableError):
        fetcher.get(parse("http://a.example/"), Reach.PUBLIC, within=5, stop=lambda: False, limit=10)
    assert waited == pytest.approx([2.5, 5], abs=0.2)


def test_the_systems_resolver_knows_this_machine_and_says_what_it_does_not_know():
    assert set(system_resolve("localhost", 80, 5)) <= {"127.0.0.1", "::1"}
    with pytest.raises(OSError):
        system_resolve("a" * 64 + ".localhost", 80, 5)


def test_a_slow_resolver_is_not_waited_for(monkeypatch):
    leave = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: leave.wait(5) and [])
    with pytest.raises(TimeoutError):
        system_resolve("localhost", 80, 0.05)
    leave.set()


def test_a_connection_that_is_refused_leaves_no_socket_behind():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(OSError):
        tcp_connect("127.0.0.1", port, 1)
    with pytest.raises(ValueError, match="localhost"):
        tcp_connect("localhost", port, 1)


def test_names_and_hosts_of_the_allowlist_meet_on_the_wire():
    """The Host header is the name that was checked, with its port where it is not the scheme's own."""
    world = World()
    with Site({"*": Answer("x")}) as site:
        world.put(site, "site.example")
        world.put(site, "site.example", port=8080)
        for url in ("http://SITE.example./a", "http://site.example:8080/a", f"http://{sites.PUBLIC}/a"):
            fetched(world, url, None)
        assert [host for host, _ in site.asked] == ["site.example", "site.example:8080", sites.PUBLIC]
        assert Allowlist(["*"]).reach(parse("http://site.example:8080/")) is Reach.NOWHERE


def test_turns_of_many_hosts_do_not_add_up():
    clock = ManualClock()
    pace = RateLimit(clock)
    for n in range(10_000):
        assert pace.take_turn(f"h{n}.example", 10) == 0
    assert len(pace._free_at) <= 4096
    assert pace.take_turn("h9999.example", 10) == 10
    clock.seconds += 11
    assert pace.take_turn("h9999.example", 10) == 0


def test_a_hold_is_never_shortened():
    clock = ManualClock()
    pace = RateLimit(clock)
    pace.hold("a.example", 100)
    pace.hold("a.example", 5)
    assert pace.seconds_until_free("a.example") == 100
    pace.hold("a.example", 10**9)
    assert pace.seconds_until_free("a.example") == 86_400
