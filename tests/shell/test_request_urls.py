from __future__ import annotations

import ipaddress

from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.shell.judge.network.request_urls import fault_of_url, host_of, parse_ipv4_leniently
from tests.each_row import each

METADATA = ["169.254.169.254", "168.63.129.16"]


def spellings(address: str) -> list[str]:
    """Ways in which programs accept one IPv4 address."""
    number = int(ipaddress.IPv4Address(address))
    a, b, c, d = address.split(".")
    return [
        *(address, f"{address}.", str(number), hex(number), f"0{number:o}", f"{a}.{b}.{int(c) * 256 + int(d)}"),
        *(f"{a}.{number & 0xFFFFFF}", ".".join(hex(int(part)) for part in (a, b, c, d))),
        *(".".join(f"0{int(part):o}" for part in (a, b, c, d)), f"0x{number:X}".upper(), f"00{number:o}"),
        *(f"[::ffff:{address}]", f"[::ffff:{number >> 16:x}:{number & 0xFFFF:x}]", f"[::{address}]"),
        *(f"[64:ff9b::{address}]", f"[2002:{number >> 16:x}:{number & 0xFFFF:x}::1]", f"[64:ff9b:1::{address}]"),
        *(f"[::ffff:0:{address}]", f"[2001:db8::5efe:{address}]", f"[2001:db8::200:5efe:{address}]"),
        *(
            f"[2001:0:{number >> 16:x}:{number & 0xFFFF:x}::1]",
            f"[64:ff9b:1:2:3:4:{number >> 16:x}:{number & 0xFFFF:x}]",
        ),
        *(str(ipaddress.IPv6Address(text)).join("[]") for text in embedded_by_rfc_6052(number)),
    ]


def embedded_by_rfc_6052(number: int) -> list[int]:
    """The address in a prefix of 48, 56 and 64 bits, which leaves out bits 64 to 71."""
    prefix = int(ipaddress.IPv6Address("64:ff9b:1::"))
    return [
        prefix | (number >> 16) << 64 | (number & 0xFFFF) << 40,
        prefix | (number >> 24) << 64 | (number & 0xFFFFFF) << 32,
        prefix | number << 24,
    ]


@each("host", [spelling for address in METADATA for spelling in spellings(address)])
@each("rest", ["", "/", ":80/x", "/x?a=b#c"])
def test_a_metadata_address_is_refused_in_every_spelling(host: str, rest: str) -> None:
    assert fault_of_url(f"http://{host}{rest}") is not None


@each("host", [spelling for address in METADATA for spelling in spellings(address)])
@each("asked", ["/?url=http://{}/x", "/fetch?host={}", "/proxy/http://a:b@{}/"])
def test_a_server_that_fetches_for_others_is_not_sent_to_a_metadata_address(host: str, asked: str) -> None:
    assert fault_of_url("https://app.example.com" + asked.format(host)) is not None


@settings(deadline=None)
@given(st.ip_addresses(v=4), st.data())
def test_every_lenient_spelling_is_read_as_the_address_it_means(
    address: ipaddress.IPv4Address, data: st.DataObject
) -> None:
    host = data.draw(st.sampled_from([text for text in spellings(str(address)) if not text.startswith("[")]))

    assert parse_ipv4_leniently(host.removesuffix(".")) == address


@settings(deadline=None)
@given(st.ip_addresses(v=4).filter(lambda a: not a.is_link_local and str(a) != "168.63.129.16"))
def test_an_ordinary_address_is_fetched_only_in_its_usual_spelling(address: ipaddress.IPv4Address) -> None:
    if str(address) not in ("100.100.100.200", "192.0.0.192"):
        assert fault_of_url(f"http://{address}/") is None
        assert host_of(f"http://{address}/") == str(address)
    assert fault_of_url(f"http://{int(address)}/") is not None


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_judged(url: str) -> None:
    assert fault_of_url(url) is None or fault_of_url(url)


@settings(deadline=None)
@given(st.text(max_size=20))
def test_a_url_that_is_accepted_has_the_host_that_is_written(path: str) -> None:
    url = f"http://web.internal/{path}"
    if fault_of_url(url) is None:
        assert host_of(url) == "web.internal"


@each(
    "url",
    [
        "http://a.example",
        "HTTPS://A.example:8443/status?verbose=1#f",
        "http://a.example./",
        "http://[2001:db8::1]:80/",
        "http://a.example//status/",
        "ifconfig.me",
        "a.example/ip",
    ],
)
def test_ordinary_urls_are_fetched(url: str) -> None:
    assert fault_of_url(url) is None


@each(
    "url",
    [
        "a",
        "a.example:80",
        "ftp.a.example",
        "FTP.a.example/x",
        "pop3.a.example",
        "a.example?x",
        "file:/x",
        "//a.example/",
    ],
)
def test_a_host_without_a_scheme_is_fetched_only_where_curl_asks_it_over_http(url: str) -> None:
    assert fault_of_url(url) is not None
    assert host_of("ifconfig.me/ip") == "ifconfig.me"


@each("url", ["http://localhost/~x/%20", "http://10.0.0.4/x", "http://web/secret", "http://a.example:1234/x"])
def test_of_a_machines_own_address_only_pages_about_its_health_are_fetched(url: str) -> None:
    assert fault_of_url(url) is not None
