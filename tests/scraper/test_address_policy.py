"""Addresses that no page is read from, in every spelling; and those that are. Nothing here leaves loopback."""

from __future__ import annotations

import json
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.errors import ConfigurationError
from ghost.records import SystemClock
from ghost.scraper import Allowlist, Reach, ScrapePlan, Scraper, UrlRefused, parse
from ghost.scraper.address_policy import Kind, judge
from ghost.scraper.fetcher import AddressRefusedError, Fetcher
from ghost.scraper.http_response import Deadline
from tests.exhaustive import examples
from tests.scraper import site as sites
from tests.scraper.site import Answer, Site, World, page

CORPUS = Path(__file__).with_name("refused_addresses.jsonl")
FORMS = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
NEAR = ("127.0.0.1", "localhost", "10.0.0.5", "[::1]", "wiki.corp.example:8443")
"""What an operator may have named: it opens these places and no other."""


def world_of(forms: list[dict]) -> World:
    world = World()
    for form in forms:
        if "resolves" in form:
            world.names[parse(form["url"]).host] = form["resolves"]
    return world


def test_the_corpus_is_large_and_each_form_stands_once():
    assert len(FORMS) >= 150
    assert sites.repeated([form["url"] for form in FORMS]) == []


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form['why']}: {form['url'][:60]!a}")
def test_no_form_is_connected_to_where_every_public_address_is_allowed(form):
    world = world_of([form])
    result = Scraper(sites.settings("*"), resolve=world.resolve, connect=world.connect).execute(
        ScrapePlan(seeds=(form["url"],))
    )
    assert world.connected == []
    assert result.documents == ()
    assert len(result.refusals) == 1
    assert "resolves" in form or world.looked_up == []


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form['why']}: {form['url'][:60]!a}")
def test_naming_some_places_opens_no_other(form):
    try:
        url = parse(form["url"])
    except UrlRefused:
        return
    if Allowlist(NEAR).reach(url) is Reach.PRIVATE:
        assert url.host in {"127.0.0.1", "localhost", "::1"}
        return
    world = world_of([form])
    result = Scraper(sites.settings("*," + ",".join(NEAR)), resolve=world.resolve, connect=world.connect).execute(
        ScrapePlan(seeds=(form["url"],))
    )
    assert (world.connected, result.documents, len(result.refusals)) == ([], (), 1)


@pytest.fixture(scope="module")
def traps():
    """A public site that redirects to each form, and links to all of them."""
    routes = {
        f"/to/{n}": Answer(status=302, headers={"Location": form["url"]}) for n, form in enumerate(FORMS) if _fits(form)
    }
    routes["/robots.txt"] = _robots
    routes["/links"] = page("Links", *(form["url"].replace('"', "&quot;") for form in FORMS))
    with Site(routes) as site:
        yield site


def _robots(handler: sites.Handler) -> Answer:
    number = handler.headers["Host"].removeprefix("robots").removesuffix(".example")
    return (
        Answer(status=301, headers={"Location": FORMS[int(number)]["url"]}) if number.isdigit() else Answer(status=404)
    )


def _fits(form: dict) -> bool:
    return form["url"].isascii() and form["url"].isprintable()


def test_no_redirect_leads_to_one(traps):
    world = world_of(FORMS)
    world.put(traps, "site.example")
    world.put(traps, "public.example", address="93.184.215.15")
    paths = [path for path in traps.routes if path.startswith("/to/")]
    scraper = Scraper(
        sites.settings("*", SCRAPER_SAME_DOMAIN_ONLY="false"), resolve=world.resolve, connect=world.connect
    )
    for begin in range(0, len(paths), 100):
        seeds = tuple(f"http://public.example{path}" for path in paths[begin : begin + 100])
        result = scraper.execute(ScrapePlan(seeds=seeds, max_pages=500))
        assert len(result.refusals) == len(seeds), result
        assert result.documents == ()
    assert len(paths) > 120
    assert set(world.connected) == {("93.184.215.15", 80)}


def test_no_link_leads_to_one(traps):
    world = world_of(FORMS)
    world.put(traps, "public.example")
    scraper = Scraper(
        sites.settings("*", SCRAPER_SAME_DOMAIN_ONLY="false"), resolve=world.resolve, connect=world.connect
    )
    result = scraper.execute(ScrapePlan(seeds=("http://public.example/links",), max_pages=500))
    assert {document.url for document in result.documents} == {"http://public.example/links"}
    assert {address for address, _ in world.connected} == {sites.PUBLIC}


@pytest.mark.parametrize(
    "number", [n for n, form in enumerate(FORMS) if _fits(form)], ids=lambda n: FORMS[n]["url"][:60]
)
def test_a_robots_txt_that_redirects_to_one_forbids_its_site(number, traps):
    world = world_of([FORMS[number]])
    world.put(traps, f"robots{number}.example")
    scraper = Scraper(sites.settings("*"), resolve=world.resolve, connect=world.connect)
    before = len(traps.asked)
    result = scraper.execute(ScrapePlan(seeds=(f"http://robots{number}.example/links",)))
    assert (result.documents, len(result.refusals)) == ((), 1)
    assert "robots.txt" in result.refusals[0].reason
    assert {address for address, _ in world.connected} == {sites.PUBLIC}
    assert {path for _, path in traps.asked[before:]} == {"/robots.txt"}


# --- addresses alone ---

words = str.split

PUBLIC_ADDRESSES = words("""
1.1.1.1 8.8.8.8 9.9.9.9 11.0.0.1 93.184.215.14 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 168.63.129.15
168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 192.169.0.0 192.31.196.1
192.52.193.1 192.175.48.1 198.17.255.255 198.20.0.0 203.0.112.255 203.0.114.0 223.255.255.255
2001:4860:4860::8888 2606:4700:4700::1111 2620:fe::fe 2a00:1450:4001:81b::200e 2400:cb00:2048:1::c629:d7a2 2001:200::1
2003::1 2620:4f:8000::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 64:ff9b:1::8.8.8.8 2002:808:808::1 2001:0:808:808::f7f7:f7f7
2a00:1450::5efe:808:808
""")
PRIVATE_ADDRESSES = words("""
10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255 127.0.0.1 127.255.255.255 169.254.0.1
169.254.168.255 169.254.171.0 ::1 fc00::1 fdff::1 fe80::1 febf::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1
""")
NEVER_ADDRESSES = words("""
0.0.0.0 100.64.0.0 100.127.255.255 168.63.129.16 169.254.169.254 169.254.170.2 192.0.0.1 192.0.2.1 192.88.99.1
198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::8.8.8.8
::127.0.0.1 ::ffff:168.63.129.16 ::ffff:0:8.8.8.8 64:ff9b::10.0.0.1 64:ff9b:1:808:8:800::
2002:a00:1::1 2001:0:a00:1::f7f7:f7f7
2001:0:808:808::80ff:fffe 2001:2::1 2001:1::1 2001:db8::1 3fff::1 fec0::1 ff02::1 100::1 fd00:ec2::254 fd20:ce::254
fd00:c1::a9fe:a9fe fe80::a9fe:a9fe 4000::1 fe80::1%eth0 fe80::5efe:a00:1 nonsense 127.1 0x7f.0.0.1 127.0.0.01
""")


@pytest.mark.parametrize(
    ("address", "kind"),
    [(a, Kind.PUBLIC) for a in PUBLIC_ADDRESSES]
    + [(a, Kind.PRIVATE) for a in PRIVATE_ADDRESSES]
    + [(a, Kind.NEVER) for a in NEVER_ADDRESSES],
)
def test_an_address_is_of_one_kind(address, kind):
    judgement = judge(address)
    assert judgement.kind is kind, judgement
    assert judgement.within(Reach.PUBLIC) == (kind is Kind.PUBLIC)
    assert judgement.within(Reach.PRIVATE) == (kind is not Kind.NEVER)
    assert not judgement.within(Reach.NOWHERE)


@settings(max_examples=examples(300))
@given(st.ip_addresses(v=4))
def test_what_python_holds_for_private_is_never_public(address: IPv4Address):
    if not address.is_global or address.is_multicast:
        assert judge(address).kind is not Kind.PUBLIC


@settings(max_examples=examples(300))
@given(st.ip_addresses(v=6))
def test_outside_the_assigned_unicast_range_nothing_is_public(address: IPv6Address):
    translated = int(address) >> 32 in {0xFFFF, 0x0064FF9B << 64, 0x0064FF9B0001 << 48}
    if not translated and int(address) >> 125 != 0b001:
        assert judge(address).kind is not Kind.PUBLIC


@settings(max_examples=examples(300))
@given(st.ip_addresses(v=4), st.integers(0, 2**64 - 1))
def test_an_address_inside_another_counts(inner: IPv4Address, prefix: int):
    v4 = int(inner)
    wrapped = [
        IPv6Address(0x0064FF9B << 96 | v4),
        IPv6Address(0x0064FF9B0001 << 80 | v4),
        IPv6Address(0x2002 << 112 | v4 << 80 | 1),
        IPv6Address(0x20010000 << 96 | v4 << 64 | 0xF7F7F7F7),
        IPv6Address(0x20010000 << 96 | 0x08080808 << 64 | ~v4 & 0xFFFFFFFF),
        IPv6Address((0b001 << 61 | prefix >> 3) << 64 | 0x00005EFE << 32 | v4),
    ]
    if judge(inner).kind is not Kind.PUBLIC:
        assert {judge(address).kind for address in wrapped} == {Kind.NEVER}
    assert judge(IPv6Address(0xFFFF << 32 | v4)).kind is judge(inner).kind


@settings(max_examples=examples(200))
@given(st.lists(st.ip_addresses(), max_size=6), st.sampled_from(Reach))
def test_no_refused_address_reaches_a_connection(addresses, reach):
    tried = []

    def connect(address: str, port: int, timeout: float):
        tried.append(address)
        raise ConnectionRefusedError

    fetcher = Fetcher(
        SystemClock(), "test", resolve=lambda host, port, timeout: [str(a) for a in addresses], connect=connect
    )
    with pytest.raises(Exception) as failure:
        fetcher.get(parse("http://name.example/"), reach, within=5, stop=lambda: False, limit=1000)
    permitted = all(judge(a).within(reach) for a in addresses)
    assert isinstance(failure.value, AddressRefusedError) or permitted
    assert all(judge(a).within(reach) for a in tried)
    assert (tried != []) == (permitted and addresses != [] and reach is not Reach.NOWHERE)


def test_a_name_is_looked_up_once_and_its_address_is_the_one_connected_to():
    """DNS rebinding: the second answer would be another place, and nobody asks for it."""
    answers = iter([[sites.PUBLIC], ["127.0.0.1"]])
    tried = []

    def connect(address: str, port: int, timeout: float):
        tried.append(address)
        raise ConnectionRefusedError

    fetcher = Fetcher(SystemClock(), "test", resolve=lambda *_: next(answers), connect=connect)
    with pytest.raises(Exception, match="no connection"):
        fetcher.get(parse("http://name.example/"), Reach.PUBLIC, within=5, stop=lambda: False, limit=1000)
    assert tried == [sites.PUBLIC]
    with pytest.raises(AddressRefusedError, match="loopback"):
        fetcher.get(parse("http://name.example/"), Reach.PUBLIC, within=5, stop=lambda: False, limit=1000)
    assert tried == [sites.PUBLIC]


def test_what_the_allowlist_refuses_is_not_looked_up():
    """The example of the manual: a page of a domain that the default allowlist does not name."""
    world = World()
    scraper = Scraper(sites.settings("example.com,localhost"), resolve=world.resolve, connect=world.connect)
    result = scraper.execute(ScrapePlan(seeds=("https://www.who.int/health-topics/influenza",)))
    assert [refusal.reason for refusal in result.refusals] == ["not on the allowlist"]
    assert (world.looked_up, world.connected) == ([], [])
    patience = Deadline(SystemClock(), SystemClock().monotonic() + 1, lambda: False)
    with pytest.raises(AddressRefusedError):
        scraper.fetcher.checked_addresses(parse("https://www.who.int/"), Reach.NOWHERE, patience)
    assert world.looked_up == []


# --- the allowlist ---

REACH = [
    ("example.com", "http://example.com/", Reach.PUBLIC),
    ("example.com", "https://example.com/", Reach.PUBLIC),
    ("example.com", "http://www.example.com/", Reach.PUBLIC),
    ("example.com", "http://a.b.example.com/", Reach.PUBLIC),
    ("Example.COM", "http://EXAMPLE.com./", Reach.PUBLIC),
    ("example.com", "http://notexample.com/", Reach.NOWHERE),
    ("example.com", "http://example.com.evil.example/", Reach.NOWHERE),
    ("example.com", "http://example.org/", Reach.NOWHERE),
    ("example.com", "http://com/", Reach.NOWHERE),
    ("example.com", "http://example.com:8080/", Reach.NOWHERE),
    ("example.com:8080", "http://example.com:8080/", Reach.PRIVATE),
    ("example.com:8080", "http://example.com/", Reach.NOWHERE),
    ("example.com:8080", "http://www.example.com:8080/", Reach.NOWHERE),
    ("example.com:443", "https://example.com/", Reach.PRIVATE),
    ("localhost", "http://localhost/", Reach.PRIVATE),
    ("localhost", "http://localhost:8000/", Reach.NOWHERE),
    ("localhost", "http://a.localhost/", Reach.NOWHERE),
    ("localhost:8000", "http://localhost:8000/", Reach.PRIVATE),
    ("127.0.0.1", "http://127.0.0.1/", Reach.PRIVATE),
    ("127.0.0.1", "http://127.0.0.2/", Reach.NOWHERE),
    ("127.0.0.1", "http://localhost/", Reach.NOWHERE),
    ("127.0.0.1", "http://x.127.0.0.1.example/", Reach.NOWHERE),
    ("[::1]", "http://[::1]/", Reach.PRIVATE),
    ("::1", "http://[0:0::1]/", Reach.PRIVATE),
    ("[::1]:81", "http://[::1]:81/", Reach.PRIVATE),
    ("127.0.0.1", "http://[::ffff:127.0.0.1]/", Reach.NOWHERE),
    ("*", "http://anything.example/", Reach.PUBLIC),
    ("*", "http://anything.example:8080/", Reach.NOWHERE),
    ("*", "http://localhost/", Reach.PUBLIC),
    ("*,localhost", "http://localhost/", Reach.PRIVATE),
    ("bücher.example", "http://xn--bcher-kva.example/", Reach.PUBLIC),
    ("bücher.example", "http://BÜCHER.example/", Reach.PUBLIC),
    ("", "http://example.com/", Reach.NOWHERE),
    (" , ,", "http://example.com/", Reach.NOWHERE),
]


@pytest.mark.parametrize(("entries", "url", "reach"), REACH)
def test_the_allowlist_says_how_far_a_connection_may_go(entries, url, reach):
    assert Allowlist(entries.split(",")).reach(parse(url)) is reach


@pytest.mark.parametrize(
    "entry",
    [
        "*.example.com",
        "http://example.com",
        "example.com/path",
        "10.0.0.0/8",
        "a b",
        "-",
        "127.1",
        "ex:port",
        "user@host",
        "..",
        "0x7f.1",
        "a..b",
    ],
)
def test_an_entry_that_cannot_be_read_is_an_error_not_a_hole(entry):
    with pytest.raises(ConfigurationError, match="entry"):
        Allowlist([entry])


def test_a_plan_narrows_the_allowlist_and_never_widens_it():
    world = World()
    with Site({"/": page("Hello")}) as one:
        world.put(one, "one.example")
        world.put(one, "two.example", address="93.184.215.15")
        scraper = Scraper(sites.settings("one.example,two.example"), resolve=world.resolve, connect=world.connect)
        seeds = ("http://one.example/", "http://two.example/", "http://three.example/")
        result = scraper.execute(ScrapePlan(seeds=seeds, allow_domains=("one.example", "three.example")))
        assert [document.url for document in result.documents] == ["http://one.example/"]
        assert world.looked_up == ["one.example"] * 2
        assert (
            scraper.execute(ScrapePlan(seeds=seeds, allow_domains=("*",))).refusals[-1].url == "http://three.example/"
        )
