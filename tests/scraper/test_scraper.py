"""A plan carried out against real servers on loopback: what is read, in which order, and what is left alone."""

from __future__ import annotations

import gzip
import hashlib
import socket
import threading
import time
import zlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.errors import ConfigurationError, ScrapeError
from ghost.scraper import Ended, Progress, ScrapePlan, Scraper, plan_from, seeds_in
from tests.exhaustive import examples
from tests.scraper import site as sites
from tests.scraper.site import PUBLIC, Answer, ManualClock, Site, World, page

HOME = "http://site.example/"


@pytest.fixture
def world():
    return World()


def scraper_for(world: World, allowlist: str = "site.example", clock: ManualClock | None = None, **changes) -> Scraper:
    return Scraper(sites.settings(allowlist, **changes), clock, resolve=world.resolve, connect=world.connect)


def read(world: World, *seeds: str, clock: ManualClock | None = None, allowlist: str = "site.example", **changes):
    """The result of reading from these seeds (the home page where none is named)."""
    scraper = scraper_for(world, allowlist, clock, **changes)
    return scraper.execute(plan_from(scraper.settings, "why does it fail", seeds or (HOME,)))


def reasons(result) -> dict[str, str]:
    return {refusal.url: refusal.reason for refusal in result.refusals}


def urls(result) -> list[str]:
    return [document.url for document in result.documents]


@pytest.fixture
def site(world):
    with Site() as running:
        world.put(running, "site.example")
        yield running


# --- what a page becomes ---


def test_a_page_becomes_text_with_where_and_when_it_was_read(world, site):
    body = page("Connections are refused when the backend pool is empty. " * 5, "/a", title="Load &amp; balance")
    headers = {"ETag": '"v1"', "Last-Modified": "Tue, 14 Nov 2023 22:30:00 GMT"}
    site.routes["/"] = Answer(body, headers=headers)
    document = read(world).documents[0]
    assert document.url == document.final_url == HOME
    assert document.title == "Load & balance"
    assert "backend pool is empty" in document.text
    assert "<" not in document.text
    assert (document.content_type, document.truncated) == ("text/html", False)
    assert (document.etag, document.last_modified) == ('"v1"', "Tue, 14 Nov 2023 22:30:00 GMT")
    assert document.sha256 == hashlib.sha256(body.encode()).hexdigest()
    assert document.links == ("http://site.example/a",)
    assert abs(document.fetched_at - time.time()) < 60


def test_the_program_names_itself_and_sends_nothing_else(world, site):
    site.routes["/"] = Answer(page("x"), headers={"Set-Cookie": "a=b", "ETag": '"1"'})
    site.routes["/a"] = page("x")
    read(world, HOME, HOME + "a", GHOST_SCRAPER_CONTACT="https://ops.example/bot")
    for request in site.requests:
        assert request["User-Agent"].startswith("GhostBot/")
        assert request["User-Agent"].endswith(" (+https://ops.example/bot)")
        assert set(request) == {"Host", "User-Agent", "Accept", "Accept-Encoding", "Connection"}


def test_the_environment_names_no_proxy(world, site, monkeypatch):
    site.routes["/"] = page("x")
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert urls(read(world)) == [HOME]


def test_plain_text_is_kept_as_it_is(world, site):
    site.routes["/"] = Answer(
        "if a < b:\x00\x1b[31m\u202e\n\n\n\n    print(b)\r\n", content_type="text/plain; charset=utf-8"
    )
    document = read(world).documents[0]
    assert (document.text, document.title, document.links) == ("if a < b:[31m\n\nprint(b)", "", ())


@pytest.mark.parametrize(
    ("content_type", "status"),
    [("text/html", True), ("TEXT/HTML;charset=utf-8", True), ("text/plain", True), (None, False), ("", False)]
    + [(kind, False) for kind in ("application/pdf", "application/xhtml+xml", "image/png", "text/css", "text/htmlx")],
)
def test_only_html_and_plain_text_are_read(world, site, content_type, status):
    site.routes["/"] = Answer(page("Some text"), content_type=content_type)
    result = read(world)
    assert (urls(result) == [HOME]) is status
    assert status or "not HTML or plain text" in reasons(result)[HOME]


def test_the_body_of_another_type_is_not_waited_for(world, site):
    def endless(handler: sites.Handler) -> None:
        handler.send(Answer(b"x", content_type="video/mp4", headers={"Content-Length": "1000000000"}))
        time.sleep(8)

    site.routes["/"] = endless
    began = time.monotonic()
    assert "video/mp4" in reasons(read(world))[HOME]
    assert time.monotonic() - began < 6


def test_text_is_cut_at_a_word(world, site):
    site.routes["/"] = page("abcdefghi " * 100)
    document = read(world, SCRAPER_DOC_MAX_CHARS=205).documents[0]
    assert document.truncated
    assert 164 <= len(document.text) <= 205
    assert document.text.endswith("abcdefghi")


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("Größe é 漢".encode(), "text/html; charset=utf-8"),
        ("Größe é 漢".encode(), "text/html"),
        ("Größe é 漢".encode(), "text/html; charset=nonsense"),
        ("Größe é 漢".encode(), "text/html; charset=punycode"),
        ("Größe é".encode("latin-1"), "text/html; charset=ISO-8859-1"),
        ("Größe é".encode("latin-1"), "text/html"),
        (b"<meta charset='windows-1252'>" + "Größe é".encode("cp1252"), "text/html"),
        ("Größe é 漢".encode("utf-16"), "text/html"),
        ("\ufeffGröße é 漢".encode(), "text/html; charset=latin-1"),
        ("Größe é 漢".encode("gb18030"), "text/html; charset=gbk"),
    ],
)
def test_characters_are_read_in_their_own_set(world, site, body, content_type):
    site.routes["/"] = Answer(body, content_type=content_type)
    assert "Größe é" in read(world).documents[0].text


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "GZIP", "deflate", "raw deflate", "two members", "identity"])
def test_a_content_coding_is_undone(world, site, coding):
    plain = page("Compressed text").encode()
    raw = zlib.compressobj(wbits=-15)
    bodies = {
        "deflate": zlib.compress(plain),
        "raw deflate": raw.compress(plain) + raw.flush(),
        "two members": gzip.compress(plain[:40]) + gzip.compress(plain[40:]),
        "identity": plain,
    }
    name = {"raw deflate": "deflate", "two members": "gzip"}.get(coding, coding)
    site.routes["/"] = Answer(bodies.get(coding, gzip.compress(plain)), headers={"Content-Encoding": name})
    document = read(world).documents[0]
    assert "Compressed text" in document.text
    assert document.sha256 == hashlib.sha256(plain).hexdigest()


# --- where it goes ---


def test_links_are_followed_breadth_first_and_each_page_once(world, site):
    site.routes |= {
        "/": page("home", "/a", "b#part", "/A/../a", "HTTP://SITE.example:80/a", "/", "/?", "mailto:x@y.example"),
        "/a": page("a", "/c", "/"),
        "/b": page("b", "/d"),
        "/c": page("c"),
        "/d": page("d"),
        "/?": page("query"),
    }
    result = read(world)
    assert [url.removeprefix("http://site.example") for url in urls(result)] == ["/", "/a", "/b", "/?", "/c", "/d"]
    assert sites.repeated(site.paths) == []
    assert (result.ended, result.pages_read) == (Ended.DONE, 6)


def test_links_are_read_against_the_base_of_the_page(world, site):
    site.routes |= {"/": page("home", "a", head='<base href="/deep/">'), "/deep/a": page("a")}
    assert urls(read(world)) == [HOME, HOME + "deep/a"]


@pytest.mark.parametrize(
    ("one_domain", "expected"),
    [
        ("true", ["site.example", "docs.site.example"]),
        ("false", ["site.example", "docs.site.example", "other.example"]),
    ],
)
def test_links_to_another_domain_are_followed_only_when_asked(world, site, one_domain, expected):
    for name in ("docs.site.example", "other.example", "foreign.example"):
        world.put(site, name)
    links = [f"http://{name}/x" for name in ("docs.site.example", "other.example", "foreign.example")]
    site.routes |= {"/": page("home", *links), "/x": page("x")}
    result = read(world, allowlist="site.example,other.example", SCRAPER_SAME_DOMAIN_ONLY=one_domain)
    assert [url.split("/")[2] for url in urls(result)] == expected
    assert result.links_passed_over == 4 - len(expected)
    assert "foreign.example" not in world.looked_up


def test_nofollow_and_noindex_are_respected(world, site):
    site.routes |= {
        "/": '<a rel="external NoFollow" href="/a">a</a><a href="/b">b</a><a href="/c">c</a><a href="/e">e</a><p>x',
        "/b": page("b", "/secret", head='<meta name="Robots" content="NOINDEX, nofollow">'),
        "/c": Answer(page("c", "/d"), headers={"X-Robots-Tag": "noindex"}),
        "/d": Answer(page("d", "/secret"), headers={"X-Robots-Tag": "otherbot: noindex, ghostbot: nofollow"}),
        "/e": page("e", "/secret", head='<meta name="ghostbot" content="none"><meta name="otherbot" content="all">'),
    }
    result = read(world)
    assert urls(result) == [HOME, HOME + "d"]
    assert set(reasons(result)) == {HOME + "b", HOME + "c", HOME + "e"}
    assert all("noindex" in reason for reason in reasons(result).values())
    assert not {"/a", "/secret"} & set(site.paths)


def test_robots_txt_is_obeyed_page_by_page(world, site):
    site.routes |= {
        "/robots.txt": Answer("User-agent: *\nDisallow: /private\n"),
        "/": page("home", "/private/a", "/public", "/moved"),
        "/public": page("public"),
        "/moved": Answer(status=302, headers={"Location": "/private/b"}),
    }
    result = read(world)
    assert urls(result) == [HOME, HOME + "public"]
    assert "disallows" in reasons(result)[HOME + "private/a"]
    assert "disallows" in reasons(result)[HOME + "moved"]
    assert site.paths.count("/robots.txt") == 1
    assert not any("private" in path for path in site.paths)


# --- redirects ---


def test_redirects_are_followed_five_times(world, site):
    for n in range(1, 8):
        site.routes[f"/{n}"] = Answer(status=301 + n % 2, headers={"Location": f"/{n + 1}"})
    site.routes["/6"] = page("the end")
    result = read(world, HOME + "1", HOME + "7")
    assert [(d.url, d.final_url) for d in result.documents] == [(HOME + "1", HOME + "6")]
    site.routes["/6"] = Answer(status=308, headers={"Location": "/9"})
    assert "more than 5 times" in reasons(read(world, HOME + "1"))[HOME + "1"]


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("/a", "circle"),
        ("/b", "circle"),
        ("http://foreign.example/", "allowlist"),
        ("http://other.example/", "another domain"),
        ("http://127.0.0.1/", "allowlist"),
        ("https://site.example:8443/", "allowlist"),
        ("file:///etc/passwd", "only http and https"),
        ("http://user@site.example/", "user info"),
        ("//[", "bracket"),
        ("", "redirect without a target"),
        (None, "redirect without a target"),
    ],
)
def test_a_redirect_is_checked_like_any_address(world, site, location, reason):
    world.put(site, "other.example")
    site.routes["/a"] = Answer(status=302, headers={"Location": "/b"})
    site.routes["/b"] = Answer(status=302, headers={} if location is None else {"Location": location})
    result = read(world, HOME + "a", allowlist="site.example,other.example")
    assert reason in reasons(result)[HOME + "a"]
    assert (result.documents, set(world.looked_up)) == ((), {"site.example"})


def test_a_redirect_to_a_name_in_the_own_network_is_not_followed(world, site):
    world.names["inside.site.example"] = ["10.0.0.8"]
    site.routes["/"] = Answer(status=302, headers={"Location": "http://inside.site.example/admin"})
    assert "10.0.0.8" in reasons(read(world))[HOME]
    assert {address for address, _ in world.connected} == {PUBLIC}


def test_a_redirect_in_raw_utf_8_is_understood(world, site):
    def moved(handler: sites.Handler) -> None:
        handler.wfile.write("HTTP/1.1 302 Found\r\nLocation: /größe\r\n\r\n".encode())

    site.routes |= {"/": moved, "/gr%C3%B6%C3%9Fe": page("size")}
    assert [d.final_url for d in read(world).documents] == [HOME + "gr%C3%B6%C3%9Fe"]


def test_what_a_stranger_wrote_is_quoted_without_control_characters(world, site):
    site.routes["/"] = Answer("x", content_type="\x9b31mtext/x")
    result = read(world, HOME, "http://\x1b[31m/")
    assert all((refusal.reason + refusal.url).isprintable() for refusal in result.refusals)
    assert len(result.refusals) == 2


def test_two_redirects_to_one_page_read_it_once(world, site):
    site.routes |= {
        "/": page("home", "/x", "/y", "/real"),
        "/x": Answer(status=301, headers={"Location": "/real"}),
        "/y": Answer(status=301, headers={"Location": "/real"}),
        "/real": page("real"),
    }
    assert [d.final_url for d in read(world).documents] == [HOME, HOME + "real"]
    assert site.paths.count("/real") == 1


# --- limits and traps ---


def test_an_endless_calendar_ends_at_the_page_limit(world, site):
    def month(handler: sites.Handler) -> Answer:
        number = int(handler.path.partition("=")[2] or 0)
        return Answer(page(f"Month {number}", *(f"/?month={number + n}" for n in range(1, 40))))

    site.routes["*"] = month
    result = read(world, SCRAPER_MAX_PAGES=12)
    assert (len(result.documents), result.pages_read, len(site.pages)) == (12, 12, 12)
    assert result.ended is Ended.PAGE_LIMIT


def test_pages_that_fail_count_too(world, site):
    site.routes["/"] = page("home", *(f"/{n}" for n in range(100)))
    result = read(world, SCRAPER_MAX_PAGES=10)
    assert (len(result.documents), result.pages_read, len(site.pages)) == (1, 10, 10)
    assert set(reasons(result).values()) == {"answered 404"}


def test_the_queue_does_not_grow_without_bound(world, site):
    site.routes["*"] = lambda handler: Answer("x" + "".join(f"<a href='{handler.path}{n}/'>" for n in range(1200)))
    scraper, queued = scraper_for(world), []
    scraper.execute(ScrapePlan(seeds=(HOME,)), progress=lambda step: queued.append(step.queued))
    assert max(queued) == 5000  # of 8,000: the first thousand links of each of eight pages


@pytest.mark.parametrize("status", [204, 206, 304, 400, 403, 404, 410, 418, 500, 502, 503])
def test_an_answer_without_a_page_is_said(world, site, status):
    site.routes["/"] = Answer("x", status)
    assert reasons(read(world)) == {HOME: f"answered {status}"}


def test_a_bomb_is_cut_off_while_it_unfolds(world, site):
    bomb = gzip.compress(b"\0" * 60_000_000)
    site.routes["/"] = Answer(bomb, headers={"Content-Encoding": "gzip"})
    assert reasons(read(world, GHOST_SCRAPER_MAX_BYTES=100_000)) == {HOME: "the page is larger than 100000 bytes"}


@pytest.mark.parametrize("announced", [True, False])
def test_a_page_that_is_too_large_is_not_read(world, site, announced):
    def large(handler: sites.Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")
        handler.wfile.write(b"Content-Length: 900000000\r\n\r\n" if announced else b"\r\n")
        for _ in range(200):
            handler.wfile.write(b"x" * 10_000)

    site.routes["/"] = large
    assert "larger than 50000" in reasons(read(world, GHOST_SCRAPER_MAX_BYTES=50_000))[HOME]


@pytest.mark.parametrize(
    ("body", "coding", "reason"),
    [
        (b"no gzip at all", "gzip", "damaged"),
        (gzip.compress(b"x" * 5000, mtime=0)[:-20], "gzip", "is incomplete"),
        (zlib.compress(b"x" * 5000) + b"more", "deflate", "follows"),
        (b"x", "br", "was not requested"),
        (gzip.compress(gzip.compress(b"x", mtime=0), mtime=0), "gzip, gzip", "was not requested"),
    ],
    ids=["no gzip", "cut", "more follows", "brotli", "twice"],
)
def test_a_damaged_coding_is_said(world, site, body, coding, reason):
    site.routes["/"] = Answer(body, headers={"Content-Encoding": coding})
    assert reason in reasons(read(world))[HOME]


@pytest.mark.parametrize("piece", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"])
def test_an_answer_that_never_begins_is_cut_off_by_its_size(world, site, piece):
    site.routes["/"] = lambda handler: [handler.wfile.write(piece * 1000) for _ in range(200)] and None
    assert reasons(read(world, GHOST_SCRAPER_MAX_BYTES=50_000)) == {HOME: "the response exceeds the size limit"}


RUBBISH = [
    b"",
    b"\x00" * 100,
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"HTTP/1.1 abc\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 50\r\n\r\nshort",
    b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000 + b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(30_000)) + b"\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nxx",
    b"HTTP/1.1 200 OK\r\n folded: \xff\xfe\r\n\r\n",
]


@pytest.mark.parametrize("octets", RUBBISH, ids=lambda octets: repr(octets[:40]))
def test_what_is_no_http_fails_that_page_alone(world, site, octets):
    def rubbish(handler: sites.Handler) -> None:
        handler.wfile.write(octets)

    site.routes |= {"/": rubbish, "/ok": page("fine")}
    result = read(world, HOME, HOME + "ok")
    assert urls(result) == [HOME + "ok"]
    assert list(reasons(result)) == [HOME]


PIECES = [
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 302 Found\r\n",
    b"HTTP/1.1 404 Not Found\r\n",
    b"HTTP/1.0 429 Slow\r\nRetry-After: 0\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"Content-Type: text/html; charset=\x9b31m\r\n",
    b"Content-Type: \x9b31mtext\r\n",
    b"Content-Type: text/plain\r\n",
    b"Content-Encoding: gzip\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Length: 7\r\n",
    b"Location: /next\r\n",
    b"Location: //\xc3\xbc\xff@[\r\n",
    b"X-Robots-Tag: ::,,a:\r\n",
    b"\r\n",
    b"User-agent: *\nDisallow: /*$\xff\n",
    b"<a href='/a'><a href='//['><base href=':'><p>text\x00\x1b",
    b"5\r\nhello\r\n0\r\n\r\n",
    gzip.compress(b"<p>hello", mtime=0),
]
ANSWERS = st.lists(st.sampled_from(PIECES) | st.binary(max_size=9), max_size=9).map(b"".join)


def test_no_answer_whatever_breaks_a_run(world, site):
    """Pieces of HTTP in any order, as robots.txt and as pages."""

    @settings(max_examples=examples(150))
    @given(st.lists(ANSWERS, min_size=3, max_size=3))
    def run(answers):
        def answer(handler: sites.Handler) -> None:
            handler.wfile.write(answers[(handler.path != "/robots.txt") + (len(handler.path) > 1)])

        site.routes = {"*": answer}
        result = read(world, SCRAPER_HTTP_TIMEOUT=0.5, SCRAPER_MAX_RUNTIME_SECONDS=2, SCRAPER_MAX_PAGES=4)
        assert result.pages_read <= 4
        assert {address for address, _ in world.connected} == {PUBLIC}
        for refusal in result.refusals:
            assert refusal.reason.isprintable(), refusal

    run()


def drip(octets: bytes, pause: float = 0.05):
    def route(handler: sites.Handler) -> None:
        for n in range(len(octets)):
            handler.wfile.write(octets[n : n + 1])
            time.sleep(pause)

    return route


SLOW = {
    "status line": drip(b"HTTP/1.1 200 OK\r\n" * 50),
    "headers": drip(b"HTTP/1.1 200 OK\r\nX-Header: " + b"x" * 1000),
    "body": drip(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + b"x" * 1000, 0.02),
    "interim answers": drip(b"HTTP/1.1 100 Continue\r\n\r\n" * 50, 0.02),
    "silence": lambda handler: time.sleep(8),
}


@pytest.mark.parametrize("where", SLOW)
def test_a_slow_drip_ends_with_the_timeout(world, site, where):
    site.routes |= {"/": SLOW[where], "/ok": page("fine")}
    began = time.monotonic()
    result = read(world, HOME, HOME + "ok", SCRAPER_HTTP_TIMEOUT=0.4)
    assert urls(result) == [HOME + "ok"]
    assert "no complete response in time (0.4 s)" in reasons(result)[HOME]
    assert time.monotonic() - began < 6


def test_the_time_of_a_run_ends_it_in_the_middle_of_a_page(world, site):
    site.routes |= {"/": page("home", "/slow"), "/slow": SLOW["silence"]}
    began = time.monotonic()
    result = read(world, SCRAPER_MAX_RUNTIME_SECONDS=0.7)
    assert result.ended is Ended.TIME_LIMIT
    assert urls(result) == [HOME]
    assert time.monotonic() - began < 6


def test_a_stop_ends_it_in_the_middle_of_a_page(world, site):
    stop = threading.Event()

    def silence(handler: sites.Handler) -> None:
        stop.set()
        time.sleep(8)

    site.routes |= {"/": page("home", "/slow"), "/slow": silence}
    scraper = scraper_for(world)
    began = time.monotonic()
    result = scraper.execute(ScrapePlan(seeds=(HOME,)), stop)
    assert (result.ended, urls(result)) == (Ended.STOPPED, [HOME])
    assert time.monotonic() - began < 6
    assert scraper.execute(ScrapePlan(seeds=(HOME,)), lambda: True).ended is Ended.STOPPED
    assert scraper.execute(ScrapePlan(seeds=(HOME,)), stop).pages_read == 0


def test_a_connection_that_drops_fails_that_page_alone(world, site):
    site.routes |= {"/": lambda handler: handler.connection.close(), "/ok": page("fine")}
    assert urls(read(world, HOME, HOME + "ok")) == [HOME + "ok"]


def test_another_address_of_the_name_is_tried(world, site):
    world.names["site.example"] = ["2606:2800:21f::1", PUBLIC]
    dead = Site()
    world.places["2606:2800:21f::1", 80] = dead.port
    dead.server_close()
    site.routes["/"] = page("fine")
    assert urls(read(world)) == [HOME]


# --- turns ---


def test_a_host_is_asked_no_faster_than_it_wants(world, site):
    clock = ManualClock()
    moments = []
    site.routes |= {
        "/robots.txt": Answer("User-agent: *\nCrawl-delay: 5\n"),
        "*": lambda handler: moments.append(clock.seconds) or Answer(page("x", *(f"/{n}" for n in range(3)))),
    }
    result = read(world, clock=clock, SCRAPER_MAX_RUNTIME_SECONDS=60)
    assert (result.ended, len(moments)) == (Ended.DONE, 4)
    assert all(later - earlier >= 5 for earlier, later in pairwise(moments))


def test_the_least_interval_holds_without_robots_txt(world, site):
    clock = ManualClock()
    site.routes["*"] = lambda handler: Answer(page("x", *(f"/{n}" for n in range(3))))
    read(world, clock=clock, GHOST_SCRAPER_INTERVAL=2)
    assert clock.slept == pytest.approx(6, abs=0.5)


def test_a_delay_beyond_the_time_left_ends_the_run_and_says_so(world, site):
    clock = ManualClock()
    site.routes |= {"/robots.txt": Answer("User-agent: *\nCrawl-delay: 600\n"), "/": page("home", "/a", "/b")}
    result = read(world, clock=clock)
    assert (result.ended, urls(result), clock.slept) == (Ended.TIME_LIMIT, [HOME], 0)
    assert "600.0 s" in result.why_ended
    assert "2 known addresses were not visited" in result.why_ended


def test_a_rate_slower_than_a_number_can_say_ends_the_run_and_not_the_process(world, site):
    rate = f"User-agent: *\nRequest-rate: 1/{'9' * 400}\n"
    site.routes |= {"/robots.txt": Answer(rate), "/": page("home", "/a")}
    result = read(world, clock=ManualClock())
    assert (result.ended, urls(result)) == (Ended.TIME_LIMIT, [HOME])


def test_the_next_run_waits_for_its_turn_too(world, site):
    clock = ManualClock()
    site.routes["/"] = page("home")
    scraper = scraper_for(world, clock=clock, GHOST_SCRAPER_INTERVAL=3)
    for _ in range(2):
        assert len(scraper.execute(ScrapePlan(seeds=(HOME,))).documents) == 1
    assert clock.slept == pytest.approx(3, abs=0.3)


def test_two_hosts_take_turns(world, site):
    clock = ManualClock()
    world.put(site, "www.site.example")
    site.routes |= {"/robots.txt": Answer("User-agent: *\nCrawl-delay: 4\n"), "*": page("x")}
    seeds = [f"http://{name}site.example/{n}" for name in ("", "www.") for n in range(3)]
    read(world, *seeds, clock=clock)
    hosts = [host for host, path in site.asked if path != "/robots.txt"]
    assert hosts == ["site.example", "www.site.example"] * 3
    assert clock.slept == pytest.approx(8, abs=0.5)


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_waited_for_once(world, site, status):
    clock = ManualClock()
    answers = iter([Answer("", status, {"Retry-After": "7"}), Answer(page("now"))])
    site.routes["/"] = lambda handler: next(answers)
    result = read(world, clock=clock)
    assert (urls(result), result.pages_read) == ([HOME], 1)
    assert clock.slept == pytest.approx(7, abs=0.3)


def test_a_retry_after_that_is_no_date_ends_no_run(world, site):
    no_date = {"Retry-After": "Tue, 14 Nov 99999999999999999999 22:31:00 GMT"}
    site.routes |= {"/": Answer("", 503, no_date), "/a": page("a")}
    result = read(world, HOME, HOME + "a")
    assert (reasons(result), urls(result)) == ({HOME: "answered 503"}, [HOME + "a"])


def test_retry_after_twice_is_an_answer(world, site):
    clock = ManualClock()
    site.routes |= {"/": Answer("", 429, {"Retry-After": "2"})}
    result = read(world, clock=clock)
    assert reasons(result) == {HOME: "answered 429 and asks to wait 2 s"}
    assert len(site.pages) == 2


def test_retry_after_beyond_the_time_left_holds_the_host_for_the_next_run(world, site):
    clock = ManualClock()
    site.routes |= {"/": Answer("", 503, {"Retry-After": "3600"}), "/a": page("a")}
    scraper = scraper_for(world, clock=clock)
    result = scraper.execute(ScrapePlan(seeds=(HOME, HOME + "a")))
    assert reasons(result) == {HOME: "answered 503 and asks to wait 3600 s"}
    assert (result.ended, len(site.pages)) == (Ended.TIME_LIMIT, 1)
    assert scraper.execute(ScrapePlan(seeds=(HOME + "a",))).ended is Ended.TIME_LIMIT
    assert len(site.pages) == 1
    clock.seconds += 3600
    assert urls(scraper.execute(ScrapePlan(seeds=(HOME + "a",)))) == [HOME + "a"]


# --- what did not change ---


def test_a_page_that_did_not_change_is_not_sent_again(world, site):
    def conditional(handler: sites.Handler) -> Answer:
        fresh = handler.headers.get("If-None-Match") == '"v1"'
        assert not fresh or handler.headers.get("If-Modified-Since") == "Tue, 14 Nov 2023 22:30:00 GMT"
        headers = {"ETag": '"v1"', "Last-Modified": "Tue, 14 Nov 2023 22:30:00 GMT"}
        return Answer(b"" if fresh else page("home", "/a").encode(), 304 if fresh else 200, headers)

    site.routes |= {"/": conditional, "/a": page("a")}
    scraper = scraper_for(world)
    first = scraper.execute(ScrapePlan(seeds=(HOME,)))
    assert (urls(first), first.not_modified) == ([HOME, HOME + "a"], ())
    second = scraper.execute(ScrapePlan(seeds=(HOME,)))
    assert (urls(second), second.not_modified) == ([HOME + "a"], (HOME,)), "its links are known still"
    scraper.pages.forget()
    assert urls(scraper.execute(ScrapePlan(seeds=(HOME,)))) == [HOME, HOME + "a"]


def test_validators_that_cannot_be_sent_back_are_dropped(world, site):
    site.routes["/"] = Answer(page("home"), headers={"ETag": '"' + "x" * 600 + '"', "Last-Modified": "\xff"})
    scraper = scraper_for(world)
    for _ in range(2):
        document = scraper.execute(ScrapePlan(seeds=(HOME,))).documents[0]
        assert (document.etag, document.last_modified) == (None, None)


# --- the plan ---


def test_a_plan_is_within_the_settings():
    settings = sites.settings("a.example,b.example", SCRAPER_MAX_PAGES=3)
    plan = plan_from(settings, "why", ["http://a.example/", " "])
    assert (plan.max_pages, plan.allow_domains, plan.seeds) == (3, ("a.example", "b.example"), ("http://a.example/",))
    assert plan_from(settings, "why", ["x"], max_pages=2).max_pages == 2


@pytest.mark.parametrize("seeds", [[], [""], ["http://a.example/"] * 101, ["x" * 5000]])
def test_what_is_no_plan_is_said(seeds):
    with pytest.raises(ScrapeError, match="seeds"):
        plan_from(sites.settings(), "why", seeds)
    with pytest.raises(ScrapeError, match="max_pages"):
        plan_from(sites.settings(), "why", ["http://a.example/"], max_pages=0)


def test_a_malformed_allowlist_reads_nothing(world):
    with pytest.raises(ConfigurationError, match=r"10\.0\.0\.0/8"):
        scraper_for(world, "site.example,10.0.0.0/8")
    with pytest.raises(ConfigurationError, match="entry"):
        scraper_for(world).execute(ScrapePlan(seeds=(HOME,), allow_domains=("http://x",)))


def test_an_empty_allowlist_reads_nothing(world):
    result = read(world, HOME, allowlist=" , ")
    assert (len(result.refusals), world.looked_up) == (1, [])


def test_one_bad_seed_does_not_spoil_the_others(world, site):
    site.routes["/"] = page("home")
    result = read(world, "nonsense", "http://127.0.0.1/", "javascript:alert(1)", HOME, "http://gone.example/")
    assert urls(result) == [HOME]
    assert len(result.refusals) == 4


def test_addresses_in_a_question_are_found_where_the_allowlist_names_them():
    text = (
        "See http://site.example/a, (https://www.site.example/b?c=d). Not http://evil.example/ nor "
        "http://site.example:22/ nor ftp://site.example/; again http://SITE.example/a and <http://site.example/e> http://site.example"
    )
    assert seeds_in(text, sites.settings("site.example")) == [
        "http://site.example/a",
        "https://www.site.example/b?c=d",
        "http://site.example/e",
        "http://site.example/",
    ]


def test_progress_is_told_as_it_happens(world, site):
    site.routes |= {"/": page("home", "/a"), "/a": Answer(status=404)}
    told: list[Progress] = []
    scraper_for(world).execute(ScrapePlan(seeds=(HOME,)), progress=told.append)
    assert [(step.kind, step.url.removeprefix(HOME)) for step in told] == [
        ("asking", ""),
        ("read", ""),
        ("asking", "a"),
        ("refused", "a"),
    ]


def test_runs_share_one_scraper_from_threads(world, site):
    site.routes["*"] = lambda handler: Answer(page("x", *(f"/{n}" for n in range(5))))
    scraper = scraper_for(world)
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(scraper.execute(ScrapePlan(seeds=(HOME,))))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert [len(result.documents) for result in results] == [6] * 6


def test_a_site_of_the_own_machine_is_read_where_the_allowlist_names_it():
    """With the resolver and the connections of the product."""
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "localhost"), (socket.AF_INET6, "[::1]")):
        with Site({"/": page("home")}, family=family) as local:
            seed = f"http://{host}:{local.port}/"
            settings = sites.settings(f"{host}:{local.port}")
            assert urls(Scraper(settings).execute(plan_from(settings, "why", [seed]))) == [seed]
            refused = Scraper(sites.settings("*,localhost,127.0.0.1")).execute(ScrapePlan(seeds=(seed,)))
            assert refused.documents == ()
            assert local.pages == ["/"]
