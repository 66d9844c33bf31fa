"""Sets of addresses: cut, none is lost, and each part is on one side of every cut."""

from __future__ import annotations

from ipaddress import IPv4Address, ip_network

from hypothesis import given
from hypothesis import strategies as st

from ghost.net.address_sets import Span, address_spans, joined, port_spans, public_spans

prefixes = st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 32)).map(
    lambda drawn: str(ip_network((drawn[0], drawn[1]), strict=False))), max_size=12)  # fmt: skip


@given(prefixes, prefixes)
def test_spans_hold_the_space_and_no_prefix_cuts_one(within, cut_by):
    spans = address_spans(within, cut_by)
    whole = {edge for span in joined(spans) for edge in (span.first, span.last)}
    assert joined(spans) == address_spans(within, [])
    assert whole <= {edge for span in spans for edge in (span.first, span.last)}
    for prefix in map(ip_network, cut_by):
        assert all((IPv4Address(span.first) in prefix) == (IPv4Address(span.last) in prefix) for span in spans)


@given(st.integers(0, 2**32 - 1), prefixes)
def test_the_internet_is_what_is_global_but_the_host_and_multicast(number, cut_by):
    address = IPv4Address(number)
    inside = any(span.first <= number <= span.last for span in public_spans(cut_by))
    assert inside == (address.is_global and not address.is_multicast and str(address) != "168.63.129.16") or (
        address in ip_network("192.0.0.0/24")
    )


def test_ports_are_cut_and_joined():
    spans = port_spans(["443", "8000-8999", "*"])
    assert [span.ports() for span in spans] == ["0-442", "443", "444-7999", "8000-8999", "9000-65535"]
    assert joined(spans) == [Span(0, 65535)]
    assert Span(0, 255).prefixes() == ["0.0.0.0/24"]
