"""What stands beside a secret's name since a tool is called so, or counts with it: `passwd: no changes`, `cookie=0x2b`.

Cookies of DNS (RFC 7873) and IKE (RFC 2408, 2.5.3) are sent in clear with every packet; those of Open vSwitch and of
sockets are numbers of at most 64 bits, which no session is kept by.
"""

from __future__ import annotations

import re

from ghost.redaction.secret_names import Name
from ghost.redaction.secret_values import POLICY, any_of

_COOKIE = re.compile(r"(?i:cookie)[ \t]?[:=]?[ \t]{0,4}(?P<value>0x[0-9a-fA-F]{1,16}|[0-9a-fA-F]{16,80})(?![\w/+=-])")
_OF_A_PROTOCOL = re.compile(r"(?i:\b(?:dns|edns|client|server|initiator|responder|socket|syn)[ _-]|; |\bopt: ?)$")

_WELL_KNOWN = (
    r"(?i:no-export(?:-subconfed)?|no-advertise|no-peer|local-as|internet|blackhole|graceful-shutdown|accept-own)"
)
_OF_ROUTES = re.compile(
    rf"(?i:communit(?:y|ies))[\"']?[ \t]{{0,4}}[:=]?[ \t]{{0,4}}[\[\"']?[ ]?"
    rf"(?:{_WELL_KNOWN}|\d{{1,10}}:\d{{1,10}}(?::\d{{1,10}})?)(?![\w.:@-])"
)
"""Communities of BGP routes, RFC 1997 and those registered since."""
_EXTENDED = re.compile(
    r"(?i:(?:ext(?:ended)?[ _-]?)?communit(?:y|ies))[\"']?[ \t]{0,4}[:=]?[ \t]{0,4}"
    r"(?i:(?:rt|soo|ro|et|rmac|target|origin|route-target|color|encapsulation|bandwidth):[\w.:-]{1,60}"
    r"|0x[0-9a-f]{1,16})(?![\w@:.-])"
)
"""Extended communities as routers write them (RFC 4360): `RT:65000:100`, `target:65000:100`, `0x8800`."""

_THING = r"(?:[A-Za-z][a-z'-]*|'[^'\n]{1,60}'|/[\w./-]{1,80})"
_TOLD = r"(?:no|not|changed|unchanged|updated|unlocking|locking|cannot|error|manipulation|permission|denied|does)"
_MESSAGE = re.compile(rf"(?:ch|g)?passwd: (?=[^\n]{{0,160}}\b{_TOLD}\b){_THING}(?:[ ,]+{_THING}){{1,20}}[.!]?(?=\n|$)")

_COUNTED_EVENT = re.compile(
    rf"(?:.*[^A-Za-z])?(?:{any_of(POLICY['values']['events'])})(?:[ _.-]?(?:user|root|login|auth|ssh|client))?"
    r"[ _.-]?[A-Za-z]{3,16}(?:[_.-](?:total|count))?",
    re.IGNORECASE,
)
_COUNT = re.compile(r"(?:\{[^{}\n]{0,120}\})?[\"']?[ \t]{0,4}[:=]?[ \t]{0,40}\"?\d{1,5}\"?(?![\w@:/+-]|\.\w)")
"""A counter, also as Prometheus writes one: `bad_password_total{realm="x"} 31`."""


_OF_TLS = re.compile(
    r"Session-ID[ ]?: [0-9A-F]{32,64}[ \t]*\n[ \t]*(?:Session-ID-ctx|Cipher|Master-Key|Resumption PSK|Start Time)\b"
)
"""The id of a session of TLS as OpenSSL prints it: it is sent in clear, and resumes nothing without the master key."""

_OF_ADDRESSES = re.compile(r"token (?=[0-9a-f]*:)[0-9a-f:]{2,45} dev [\w.@-]{1,32}(?=\s|$)")
"""The lower half of an address that a host gives itself, as `ip token list` prints it."""
_OF_RESOURCES = re.compile(
    r"(?:\[[^\]\n]{1,80}\])?: (?:(?:Still )?(?i:refreshing|reading|creating|modifying|destroying|importing)\b"
    r"[^.\n]{0,20}\.\.\.|(?:Read|Creation|Modifications|Destruction|Import) (?:complete|prepared)\b)"
)
"""What Terraform does to a resource that is called so."""
_OF_A_KERNEL = re.compile(r"(?i:\bx\.?509 cert(?:ificate)? ['\"][^'\"\n]{0,60})$")
_SERIAL = re.compile(r"(?i:key): (?:[0-9a-f]{40}|[0-9a-f]{64})['\"]")
"""The id of a public key, by which a kernel calls its certificates."""
_CHALLENGE = re.compile(r"(?i:(?:www|proxy)-authenticate[\"']?: ?[\"']?digest )[^\n]*$")
_CHALLENGE_REACH = 400
_COLUMN = re.compile(
    r"(?i:(?:primary|secondary)[ _-]?key)[\"']?[ \t]?[:=][ \t]{0,4}[\"'\[]{0,2}"
    r"(?:[a-z]{1,20}_){0,4}id\b[\"'\]]{0,2}(?=[\s,]|$)"
)
"""The columns of a table, not a key of storage."""
_EXPIRY = re.compile(
    r"[ \t]{0,20}: (?:(?:jamais |déjà )?expirée?(?: le)?|n'expire (?:jamais|pas)"
    r"|läuft (?:nie|nicht|bald|am|in|heute)|abgelaufen(?: am)?"
    r"|(?:no |nunca )?caduc(?:a|ada|ado)(?: el)?|scaduta(?: il)?|non scade(?: mai)?"
    r"|nunca expira|expirada(?: em)?|verlopen(?: op)?)"
    r"(?: [\d./:-]{1,19}){0,2}(?: (?:ab|mai|jamais|Tagen|Tage|Wochen)){0,2}[.]?[ \t]*(?=\r?\n|$)"
)
"""Until when a password holds, in words of other languages."""


_OF_A_WORD = re.compile(
    "|".join(pattern.pattern for pattern in (_OF_ROUTES, _EXTENDED, _OF_TLS, _OF_ADDRESSES, _COLUMN, _SERIAL))
    + r"|(?i:cookie)|nonce"
)
"""Whether one of these may begin with a name's last word: one look for nearly all names, which none of them has."""
_BEHIND = re.compile("|".join(pattern.pattern for pattern in (_COUNT, _OF_RESOURCES, _EXPIRY)))


def is_said_by_tool(name: Name) -> bool:
    """Whether what stands beside the name is a public number of a protocol or tool, or a tool's message in words."""
    if _OF_A_WORD.match(name.text, name.word) is not None and _is_of_a_protocol(name):
        return True
    if _BEHIND.match(name.text, name.end) is not None and _is_of_a_thing(name):
        return True
    return _MESSAGE.match(name.text, name.start) is not None and name.starts_line


def _is_of_a_protocol(name: Name) -> bool:
    """Whether the name's last word begins what routes, sockets, challenges and certificates are told by."""
    text, word = name.text, name.word
    if _OF_ROUTES.match(text, word) is not None or _EXTENDED.match(text, word) is not None:
        return "snmp" not in _before(name)
    if any(said.match(text, word) is not None for said in (_OF_TLS, _OF_ADDRESSES, _COLUMN)):
        return True
    if name.word_in(("nonce",)):
        return _CHALLENGE.search(text[max(0, word - _CHALLENGE_REACH) : word]) is not None
    if _SERIAL.match(text, word) is not None:
        return _OF_A_KERNEL.search(text[max(0, word - 80) : word]) is not None
    cookie = _COOKIE.match(text, word)
    if cookie is None:
        return False
    return cookie["value"].startswith("0x") or _OF_A_PROTOCOL.search(text[max(0, word - 16) : word]) is not None


def _is_of_a_thing(name: Name) -> bool:
    """Whether what follows the name counts events, or tells what was done to a thing of that name."""
    if _COUNT.match(name.text, name.end) is not None and _COUNTED_EVENT.fullmatch(name.text, name.start, name.end):
        return True
    return any(said.match(name.text, name.end) is not None for said in (_OF_RESOURCES, _EXPIRY))


def _before(name: Name) -> str:
    """The line before the name, as far as it matters, in small letters."""
    start = max(0, name.word - 64)
    return name.text[max(start, name.text.rfind("\n", start, name.word) + 1) : name.word].lower()
