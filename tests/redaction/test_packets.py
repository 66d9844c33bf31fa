"""Logins that decoders of packets print go, in each protocol's own words; and tokens of keys, URLs and headers."""

from __future__ import annotations

import json

import pytest

from ghost.shell import redact

SECRET = "hunter2x"

DECODED = {
    "PAP": "22:13:20.000000 PAP, Auth-Req (0x01), id 1, Peer bob, Name @",
    "PAP with a length": "PAP, Auth-Req (0x01), id 1, length 19: Peer bob, Name @",
    "SNMP": ' 10.0.0.4.50022 > 10.0.0.5.161:  { SNMPv2c C="@" { GetRequest(25) R=1  .1.3.6.1.2.1.1.1.0 } } ',
    "SNMP 1": ' { SNMPv1 C="@" { GetRequest(25) R=1 } }',
    "HSRP": 'HSRPv0-hello 20: state=active group=1 addr=10.0.0.1 hellotime=3s holdtime=10s priority=100 auth="@"',
    "VRRP": '10.0.0.4 > 10.0.0.5: VRRPv2, Advertisement, authtype simple, intvl 1s, addrs: 10.0.0.1 auth "@"',
    "VRRP with a quote in it": 'VRRPv2, Advertisement, authtype simple, length 20, addrs: 10.0.0.1 auth "a"@"',
    "RIP": "\tRIPv2, Response, length: 44, routes: 2 or less\n\t  Simple Text Authentication data: @\n",
    "OSPF": "\tAuthentication Type: simple (1)\n\tSimple text password: @\n",
    "IS-IS": "\t    Authentication TLV #10, length: 9\n\t      simple text password: @",
    "BFD": "\tAuthentication: Simple Password (1), length: 9\n\t  Auth Key ID: 1, Password: @",
    "L2TP": "l2tp:[TLS](1/0)Ns=0,Nr=1 *MSGTYPE(ICCN) *PROXY_AUTH_RESP(@)",
    "VRRP of tshark": "    Authentication String: @",
    "OSPF of tshark": "        Auth Data (Simple): @",
    "IRC of tshark": "        Command: PASS\n        Parameter: @",
    "change of a password": "FTP: SITE CPWD @",
}


@pytest.mark.parametrize("protocol", DECODED)
def test_a_login_that_a_decoder_prints_goes(protocol: str) -> None:
    text, found = redact(DECODED[protocol].replace("@", SECRET))
    assert SECRET not in text
    assert found["redactions_applied"]
    assert redact(text)[0] == text


def test_the_words_of_a_process_are_parted_where_it_ends_them() -> None:
    assert redact("HOME=/root\0MYSQL_PWD=a0glG8I8Fh\0TERM=xterm\0")[0] == "HOME=/root\nMYSQL_PWD=[REDACTED]\nTERM=xterm"
    assert redact("sshpass\0-p\0hunter2\0ssh\0bob@10.0.0.4\0")[0] == "sshpass -p [REDACTED] ssh bob@10.0.0.4"


PRIVATE = "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X5fCE9-E9LI"
KEYS = {
    "RSA": {"kty": "RSA", "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx", "e": "AQAB", "d": PRIVATE},
    "primes": {"kty": "RSA", "e": "AQAB", "p": PRIVATE, "q": PRIVATE, "dp": PRIVATE, "dq": PRIVATE, "qi": PRIVATE},
    "EC": {"d": PRIVATE, "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "kty": "EC"},
    "oct": {"kty": "oct", "k": PRIVATE},
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("indent", [None, 2])
def test_what_is_private_of_a_json_web_key_goes_and_the_rest_stays(kind: str, indent: int | None) -> None:
    key = KEYS[kind]
    clean = json.loads(redact(json.dumps({"keys": [key, key]}, indent=indent))[0])
    for shown in clean["keys"]:
        assert PRIVATE not in shown.values()
        assert {name: value for name, value in key.items() if value != PRIVATE}.items() <= shown.items()


def test_what_is_private_of_a_json_web_key_goes_in_a_string_and_where_the_key_is_cut() -> None:
    assert PRIVATE not in redact(json.dumps({"jwk": json.dumps(KEYS["EC"])}))[0]
    assert PRIVATE[:30] not in redact('{"kty":"oct","k":"' + PRIVATE[:30])[0]


TOKENS = {
    "user of a URL": ("https://@@git.example.com/x.git", "W8RsKd3bTYxAdnaQjsXLNu3Mg08MKrhFTLqbGNuB"),
    "of lower case": ("https://@@dev.azure.com/org", "35p89bo09hp40ji8d4bvgou9icyfi42qcfsz21dskzu1cxd0l24y"),
    "with a word for a password": ("https://@:x-oauth-basic@github.com/x.git", "glpxt7Kq2Zm9Xv4Rb8Nc1Hd3"),
    "bot": ("https://api.telegram.org/bot123456789:@/getMe", "AAnRIQjxJl0YQYIlpC6WnLIfIdBgJiVRhZo"),
    "folded header": ("Authorization: Bearer\n @", "abcdefghijklmnop"),
    "folded scheme": ("authorization:\r\n\tBasic @", "Ym9iOmh1bnRlcjJ4"),
    "negotiation": ("WWW-Authenticate: Negotiate @", "YIIGmm7eHnqepn7xOjmUxHVPyKzlSz6IcnWKc/LU2Jfiyh4EMjBl"),
    "private key without its head": ('"admin_ssh_key_private": "@"', "BqEJS5MrAHOz07o94346nHpjDtbonX3qCDivrU24"),
    "login in base64": ("auth=@", "X6quOlDbzQkL3//dwZ/88BTsZU2o2Nqv"),
    "file of clusters": (
        '"kubeConfigs":[{"name":"u","value":"@"}]',
        "o4Zdo5qYu75TBeSM+M0+F1Q3MGaYa5PCZFOt36dbF/IOTts2XtCY",
    ),
}


@pytest.mark.parametrize("place", TOKENS)
def test_a_token_goes_by_its_place(place: str) -> None:
    text, token = TOKENS[place]
    clean = redact(text.replace("@", token, 1))[0]
    assert token not in clean
    assert redact(clean)[0] == clean
