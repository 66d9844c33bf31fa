from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ghost.scraper import UrlRefused, normalise, parse
from ghost.scraper.urls import MAX_LENGTH, join
from tests.exhaustive import examples

SAME = [
    ("http://example.com", "http://example.com/"),
    ("HTTP://EXAMPLE.COM/", "http://example.com/"),
    ("http://example.com:80/", "http://example.com/"),
    ("http://example.com:/", "http://example.com/"),
    ("https://example.com:443/a", "https://example.com/a"),
    ("https://example.com:80/", "https://example.com:80/"),
    ("http://example.com./", "http://example.com/"),
    ("  http://example.com/\n", "http://example.com/"),
    ("http://example.com/#part", "http://example.com/"),
    ("http://example.com/?#part", "http://example.com/?"),
    ("http://example.com/a/./b/../c", "http://example.com/a/c"),
    ("http://example.com/../../a", "http://example.com/a"),
    ("http://example.com/a/..", "http://example.com/"),
    ("http://example.com/a/.", "http://example.com/a/"),
    ("http://example.com/%2e%2E/a", "http://example.com/a"),
    ("http://example.com/%7Euser/%61", "http://example.com/~user/a"),
    ("http://example.com/%c3%bc", "http://example.com/%C3%BC"),
    ("http://example.com/ü", "http://example.com/%C3%BC"),
    ("http://example.com/a b?c d", "http://example.com/a%20b?c%20d"),
    ("http://example.com/%", "http://example.com/%25"),
    ("http://example.com/%zz", "http://example.com/%25zz"),
    ("http://example.com/%%34%31", "http://example.com/%2541"),
    ("http://example.com/a%2Fb", "http://example.com/a%2Fb"),
    ("http://example.com/a;b=c,d@e:f", "http://example.com/a;b=c,d@e:f"),
    ('http://example.com/"<>{}|^`', "http://example.com/%22%3C%3E%7B%7D%7C%5E%60"),
    ("http://example.com?a=b", "http://example.com/?a=b"),
    ("http://example.com/?a=/?b", "http://example.com/?a=/?b"),
    ("http://example.com//a", "http://example.com//a"),
    ("http://bücher.example/", "http://xn--bcher-kva.example/"),
    ("http://BÜCHER.example/", "http://xn--bcher-kva.example/"),
    ("http://example。com/", "http://example.com/"),
    ("http://faß.example/", "http://xn--fa-hia.example/"),
    ("http://[2001:4860:0:0::8888]/", "http://[2001:4860::8888]/"),
    ("http://[2A00::1]:8080/", "http://[2a00::1]:8080/"),
    ("http://8.8.8.8/", "http://8.8.8.8/"),
    ("http://under_score.example/", "http://under_score.example/"),
]


@pytest.mark.parametrize(("text", "expected"), SAME)
def test_an_address_is_written_in_one_way(text, expected):
    assert normalise(text) == expected
    assert normalise(expected) == expected


NO_PAGES = [
    "",
    "/",
    "example.com",
    "mailto:a@b.example",
    "http://",
    "http://?",
    "http://a" * 400,
    "http://" + "a" * 64 + ".example/",
    "http://" + "ü" * 300 + "/",
    "http://" + ".".join(["a" * 60] * 5) + "/",
    "http://xn--/",
    "http://a.xn--zzzzzzzzzz99/",
]


@pytest.mark.parametrize("text", NO_PAGES, ids=lambda text: text[:30])
def test_what_is_no_address_of_a_page_is_refused(text):
    with pytest.raises(UrlRefused):
        parse(text)


BASE = "http://example.com/a/b?c"
REFERENCES = [
    ("d", "http://example.com/a/d"),
    ("../d", "http://example.com/d"),
    ("/d", "http://example.com/d"),
    ("?", "http://example.com/a/b?"),
    ("/?", "http://example.com/?"),
    ("d;e=f/..", "http://example.com/a/"),
    ("?d", "http://example.com/a/b?d"),
    ("#d", "http://example.com/a/b?c"),
    ("", "http://example.com/a/b?c"),
    ("//other.example/d", "http://other.example/d"),
    ("https://other.example", "https://other.example/"),
    (" d ", "http://example.com/a/d"),
    ("./../../../d", "http://example.com/d"),
    ("a:b", None),
    ("http:d", None),
    ("http:///d", None),
    ("///d", None),
    ("/\\other.example", None),
    ("\\\\other.example", None),
    ("javascript:alert(1)", None),
    ("//user@other.example", None),
    ("d\nd", None),
    ("//[", None),
    ("d" * (MAX_LENGTH + 1), None),
]


@pytest.mark.parametrize(("reference", "expected"), REFERENCES)
def test_a_reference_is_read_against_its_page(reference, expected):
    if expected is None:
        with pytest.raises(UrlRefused):
            join(parse(BASE), reference)
    else:
        assert str(join(parse(BASE), reference)) == expected


NUMBERS = st.sampled_from(["0", "127", "0x7f", "0177", "1", "256", "4294967295"])
HOSTS = st.one_of(
    st.text(alphabet="abcxyz019-._ÜßéⓔA。．１Ａ%@[]:", min_size=1, max_size=20),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(lambda address: f"[{address}]"),
    st.lists(NUMBERS, min_size=1, max_size=5).map(".".join),
)
PORTS = st.sampled_from(["", ":", ":80", ":443", ":8080"])
PATHS = st.text(alphabet="ab./%25eE?#&=;~ü \\@:\u2028", max_size=30)
URLS = st.builds("{}://{}{}/{}".format, st.sampled_from(["http", "HTTPS"]), HOSTS, PORTS, PATHS)


@settings(max_examples=examples(300))
@given(URLS)
def test_normalising_twice_changes_nothing(text):
    try:
        once = normalise(text)
    except UrlRefused:
        assume(False)
    assert normalise(once) == once
    assert once.isascii()
    assert once.isprintable()
    assert parse(once) == parse(text)


@settings(max_examples=examples(300))
@given(URLS)
def test_normalising_never_turns_a_name_into_an_address(text):
    try:
        url = parse(text)
    except UrlRefused:
        assume(False)
    authority = text.strip().split("://", 1)[1]
    written = authority.split("/")[0].split("?")[0].split("#")[0]
    looks_like_v4 = written.partition(":")[0].replace(".", "").isdecimal() and written[:1].isascii()
    if written.startswith("["):
        assert ":" in url.host
    else:
        assert (url.address is not None) == looks_like_v4
        if url.address is not None:
            assert url.host == written.partition(":")[0]


@settings(max_examples=examples(300))
@given(URLS)
def test_the_standard_library_reads_the_same_host_and_port(text):
    try:
        url = parse(text)
    except UrlRefused:
        assume(False)
    again = urlsplit(str(url))
    port = again.port or {"http": 80, "https": 443}[url.scheme]
    assert (again.scheme, again.hostname, port) == (url.scheme, url.host, url.port)
    assert (again.username, again.password) == (None, None)
    assert again.path == url.path
