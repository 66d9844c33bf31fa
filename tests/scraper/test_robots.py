"""robots.txt as RFC 9309 has it, asked of a real server: what permits, what forbids, how long it is remembered."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from ghost.scraper import Allowlist, Reach, RobotsGate
from ghost.scraper.fetcher import Fetcher
from ghost.scraper.http_response import OutOfTimeError, StoppedError
from ghost.scraper.rate_limit import RateLimit, retry_after_seconds
from ghost.scraper.robots import FAILURE_KEPT_SECONDS, KEPT_SECONDS
from ghost.scraper.robots_text import MAX_BYTES, for_agent
from tests.scraper import site as sites
from tests.scraper.site import Answer, ManualClock, Site, World

CASES = [json.loads(line) for line in Path(__file__).with_name("robots.jsonl").read_text(encoding="utf-8").splitlines()]
ASSERTIONS = [
    (number, path, allowed)
    for number, case in enumerate(CASES)
    for allowed in (True, False)
    for path in case["allowed" if allowed else "denied"]
]


def test_there_are_enough_cases():
    assert len(ASSERTIONS) >= 150
    assert sites.repeated([case["why"] for case in CASES]) == []


@pytest.fixture(scope="module")
def library():
    """One server; the host `case7.example` has the robots.txt of case 7."""

    def robots(handler: sites.Handler) -> Answer:
        number = int(handler.headers["Host"].removeprefix("case").removesuffix(".example"))
        return Answer(CASES[number]["robots"].encode("utf-8", "surrogateescape"), content_type="text/plain")

    with Site({"/robots.txt": robots}) as site:
        world = World()
        for number in range(len(CASES)):
            world.put(site, f"case{number}.example")
        yield gate_for(world, ManualClock())


def gate_for(world: World, clock: ManualClock, allowlist: str = "*", timeout: float = 5) -> RobotsGate:
    fetcher = Fetcher(clock, "GhostBot/0", resolve=world.resolve, connect=world.connect)
    return RobotsGate(fetcher, Allowlist(allowlist.split(",")), "GhostBot", RateLimit(clock), timeout)


@pytest.mark.parametrize(("number", "path", "allowed"), ASSERTIONS, ids=lambda value: str(value)[:40])
def test_a_rule_is_read_as_the_rfc_has_it(library, number, path, allowed):
    verdict = library.allowed(f"http://case{number}.example{path}")
    assert verdict.allowed is allowed, f"{CASES[number]['why']}: {path}: {verdict.reason}"
    assert bool(verdict) is allowed


@pytest.fixture
def world():
    return World()


def serve(world: World, answer: sites.Route, **routes: sites.Route) -> Site:
    site = Site({"/robots.txt": answer, **{f"/{name}": route for name, route in routes.items()}})
    world.put(site, "site.example")
    return site


PAGE = "http://site.example/page"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 429, 451, 499])
def test_a_robots_txt_that_is_not_there_permits_everything(world, status):
    with serve(world, Answer("User-agent: *\nDisallow: /", status)):
        assert gate_for(world, ManualClock()).allowed(PAGE)


@pytest.mark.parametrize("status", [500, 501, 502, 503, 504, 599, 300, 304, 305, 201, 206])
def test_a_robots_txt_that_cannot_be_read_permits_nothing(world, status):
    with serve(world, Answer("User-agent: *\nAllow: /", status)):
        verdict = gate_for(world, ManualClock()).allowed(PAGE)
        assert not verdict
        assert str(status) in verdict.reason


def test_a_site_that_does_not_answer_permits_nothing(world):
    world.names["site.example"] = [sites.PUBLIC]
    site = Site()
    world.put(site, "site.example")
    site.server_close()
    verdict = gate_for(world, ManualClock()).allowed(PAGE)
    assert not verdict
    assert "no connection" in verdict.reason
    assert not gate_for(World(), ManualClock()).allowed(PAGE), "a name without address"


@pytest.mark.parametrize(
    "answer",
    [
        Answer("x", headers={"Content-Encoding": "gzip"}),
        Answer("x", headers={"Content-Encoding": "br"}),
        Answer("short", headers={"Content-Length": "500"}),
        Answer(status=302),
        Answer(status=302, headers={"Location": "ftp://site.example/robots.txt"}),
    ],
)
def test_a_damaged_answer_permits_nothing(world, answer):
    with serve(world, answer):
        assert not gate_for(world, ManualClock()).allowed(PAGE)


@pytest.mark.parametrize(("hops", "allowed"), [(1, True), (5, True), (6, False), (60, False)])
def test_five_redirects_are_followed(world, hops, allowed):
    routes = {f"hop{n}": Answer(status=301, headers={"Location": f"/hop{n + 1}"}) for n in range(1, hops)}
    routes[f"hop{hops}"] = Answer("User-agent: *\nDisallow: /other", content_type="text/plain")
    with serve(world, Answer(status=302, headers={"Location": "/hop1"}), **routes) as site:
        gate = gate_for(world, ManualClock())
        assert gate.allowed(PAGE).allowed is allowed
        assert len(site.asked) == min(hops, 5) + 1
        if allowed:
            assert not gate.allowed("http://site.example/other")


def test_a_redirect_to_another_host_counts_for_the_first_one(world):
    elsewhere = Answer(status=301, headers={"Location": "http://two.example/robots.txt"})
    with serve(world, elsewhere) as site, Site({"/robots.txt": Answer("User-agent: *\nDisallow: /page")}) as other:
        world.put(other, "two.example", address="93.184.215.15")
        assert not gate_for(world, ManualClock()).allowed(PAGE)
        assert (len(site.asked), len(other.asked)) == (1, 1)
        assert not gate_for(world, ManualClock(), "site.example").allowed("http://site.example/else")
        assert len(other.asked) == 1, "the allowlist does not name it"


def test_what_lies_behind_the_limit_is_not_read_and_500_kib_are(world):
    padding = b"# " + b"x" * 62 + b"\n"
    near = padding * (500 * 1024 // 65 + 1) + b"User-agent: *\nDisallow: /near\n"
    text = near + padding * (MAX_BYTES // 65) + b"User-agent: *\nDisallow: /far\n"
    assert len(near) > 500 * 1024
    with serve(world, Answer(text, content_type="text/plain")):
        gate = gate_for(world, ManualClock())
        assert not gate.allowed("http://site.example/near")
        assert gate.allowed("http://site.example/far")


def test_a_rule_that_the_limit_cuts_is_not_half_a_rule(world):
    head = b"User-agent: *\nDisallow: /\n"
    text = head + b"#" * (MAX_BYTES - len(head) - 8) + b"\nAllow: /secret-no\n"
    with serve(world, Answer(text)):
        assert not gate_for(world, ManualClock()).allowed("http://site.example/secret")
    with serve(world, Answer(b"a" * (MAX_BYTES + 1))):
        assert not gate_for(world, ManualClock()).allowed(PAGE), "one endless line"


def test_it_is_asked_once_and_anew_after_a_day(world):
    clock = ManualClock()
    with serve(world, Answer("User-agent: *\nDisallow: /page")) as site:
        gate = gate_for(world, clock)
        assert not gate.allowed(PAGE)
        assert gate.allowed("http://site.example/other")
        assert len(site.asked) == 1
        site.routes["/robots.txt"] = Answer("User-agent: *\nDisallow:")
        clock.seconds += KEPT_SECONDS - 1
        assert not gate.allowed(PAGE)
        clock.seconds += 2
        assert gate.allowed(PAGE)
        assert len(site.asked) == 2
        assert KEPT_SECONDS <= 24 * 3600


def test_a_failure_is_remembered_for_minutes_only(world):
    clock = ManualClock()
    with serve(world, Answer(status=500)) as site:
        gate = gate_for(world, clock)
        assert not gate.allowed(PAGE)
        assert not gate.allowed(PAGE)
        assert len(site.asked) == 1
        site.routes["/robots.txt"] = Answer("")
        clock.seconds += FAILURE_KEPT_SECONDS + 1
        assert gate.allowed(PAGE)


def test_each_origin_has_its_own(world):
    with serve(world, Answer("User-agent: *\nDisallow: /")) as site, Site({"/robots.txt": Answer("")}) as other:
        world.places[sites.PUBLIC, 8080] = other.port
        gate = gate_for(world, ManualClock(), "*,site.example:8080")
        assert not gate.allowed(PAGE)
        assert gate.allowed("http://site.example:8080/page")
        assert (len(site.asked), len(other.asked)) == (1, 1)


def test_only_so_much_of_many_sites_is_kept(world):
    text = "User-agent: *\n" + "".join(f"Disallow: /{n:01500d}\n" for n in range(500))
    with Site({"/robots.txt": Answer(text)}) as site:
        gate = gate_for(world, ManualClock())
        for n in range(10):
            world.put(site, f"n{n}.example")
            assert gate.allowed(f"http://n{n}.example/")
        assert len(site.asked) == 10
        assert gate.allowed("http://n9.example/")
        assert len(site.asked) == 10
        assert gate.allowed("http://n0.example/")
        assert len(site.asked) == 11


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("User-agent: *\nCrawl-delay: 7\n", 7),
        ("User-agent: *\nCrawl-delay: 1.5\nDisallow: /x\n", 1.5),
        ("User-agent: *\nRequest-rate: 1/10\n", 10),
        ("User-agent: *\nRequest-rate: 2/10s\n", 5),
        ("User-agent: *\nRequest-rate: 1/1m 0600-0845\n", 60),
        ("User-agent: *\nCrawl-delay: 3\nRequest-rate: 1/10\n", 10),
        ("User-agent: *\nCrawl-delay: 30\nRequest-rate: 1/10\n", 30),
        ("User-agent: GhostBot\nCrawl-delay: 2\n\nUser-agent: *\nCrawl-delay: 9\n", 2),
        ("User-agent: GhostBot\nCrawl-delay: 20\n\nUser-agent: *\nCrawl-delay: 1\nDisallow: /x\n", 20),
        ("User-agent: GhostBot\nUser-agent: other\nCrawl-delay: 4\n", 4),
        ("User-agent: GhostBot\nDisallow: /x\n\nUser-agent: *\nCrawl-delay: 9\n", 0),
        ("User-agent: GhostBot\nCrawl-delay: 2\nDisallow:\n\nUser-agent: *\nCrawl-delay: 9\n", 2),
        ("User-agent: other\nCrawl-delay: 9\nDisallow:\n", 0),
        ("User-agent: *\nCrawl-delay: soon\n", 0),
        ("User-agent: *\nCrawl-delay: -3\n", 0),
        ("User-agent: *\nCrawl-delay: nan\n", 0),
        ("User-agent: *\nCrawl-delay: 1e400\n", 0),
        ("User-agent: *\nRequest-rate: 0/0\n", 0),
        (f"User-agent: *\nRequest-rate: 1/{'9' * 400}\n", math.inf),
    ],
)
def test_a_site_says_how_fast_it_may_be_read(world, text, seconds):
    with serve(world, Answer(text)):
        assert gate_for(world, ManualClock()).allowed(PAGE).delay_seconds == seconds


def test_an_address_outside_the_allowlist_is_refused_without_asking(world):
    verdict = gate_for(world, ManualClock(), "example.com").allowed(PAGE)
    assert (verdict.allowed, verdict.reach, world.looked_up) == (False, Reach.NOWHERE, [])
    assert not gate_for(world, ManualClock()).allowed("no address")
    assert world.looked_up == []


def test_a_stop_and_the_end_of_the_time_say_nothing_about_the_site(world):
    with serve(world, Answer("")) as site:
        gate = gate_for(world, ManualClock())
        with pytest.raises(StoppedError):
            gate.allowed(PAGE, stop=lambda: True)
        with pytest.raises(OutOfTimeError):
            gate.allowed(PAGE, within=0)
        assert site.asked == []
        assert gate.allowed(PAGE)


def test_retry_after_on_robots_txt_holds_the_host(world):
    clock = ManualClock()
    with serve(world, Answer(status=429, headers={"Retry-After": "40"})):
        fetcher = Fetcher(clock, "GhostBot/0", resolve=world.resolve, connect=world.connect)
        pace = RateLimit(clock)
        assert RobotsGate(fetcher, Allowlist(["*"]), "GhostBot", pace, 5).allowed(PAGE)
        assert pace.seconds_until_free("site.example") == 40


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        (" 7 ", 7),
        ("99999999999999999999", 86_400),
        ("Tue, 14 Nov 2023 22:31:00 GMT", 60),
        ("Tue, 14 Nov 2023 22:31:00 -0000", 60),
        ("Tue, 14 Nov 2022 22:31:00 GMT", 0),
        ("Tue, 14 Nov 2923 22:31:00 GMT", 86_400),
        ("-5", None),
        ("Tue, 14 Nov 99999999999999999999 22:31:00 GMT", None),
        ("Tue, 14 Nov 2023 99999999999:31:00 GMT", None),
        ("Tue, 14 Nov 2023 22:31:00 +99999999999999", None),
        ("soon", None),
        ("１２", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value, seconds):
    clock = ManualClock()
    clock.seconds = 1_000.0  # 2023-11-14T22:30:00Z
    assert retry_after_seconds(value, clock.now()) == seconds


def test_groups_of_others_cost_nothing():
    text = b"".join(b"User-agent: other%d\n" % n for n in range(20_000)) + b"Disallow: /\n" * 1000
    assert for_agent(text, "GhostBot") == ""
