"""Strict parsing and normalisation of page addresses (RFC 3986, section 6.2; RFC 5891).

An address is parsed once: the parts of one `Url` are checked, looked up, connected to and requested, so no second
parser can read it differently. Spellings that parsers disagree on are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from ghost.errors import ScrapeError

MAX_LENGTH = 2048
DEFAULT_PORTS = {"http": 80, "https": 443}

_SPACE = " \t\n\r\f"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_START = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_IPV4 = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}")
_ESCAPE_OR_CHARACTER = re.compile(r"%([0-9A-Fa-f]{2})|(.)", re.DOTALL)
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PATH = _UNRESERVED | frozenset("!$&'()*+,;=:@/")
_QUERY = _PATH | {"?"}


class UrlRefused(ScrapeError):  # noqa: N818 - what callers say: a URL is refused
    """The address may not be read, whatever the allowlist says."""


@dataclass(frozen=True, slots=True)
class Url:
    scheme: str
    host: str
    """A name in lower case and ASCII, or an address as `ipaddress` writes it, without brackets."""
    port: int
    path: str
    query: str | None = None

    @property
    def authority(self) -> str:
        """Return host and port as in the Host header: without the scheme's default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def target(self) -> str:
        return self.path if self.query is None else f"{self.path}?{self.query}"

    @property
    def address(self) -> IPv4Address | IPv6Address | None:
        """Return the host as an address; None if it is a name."""
        return address_of(self.host)

    def __str__(self) -> str:
        return self.origin + self.target


def parse(text: str) -> Url:
    """Parse an address. Raises `UrlRefused`: not http or https, user info, invalid host, control characters."""
    text = text.strip(_SPACE)
    if len(text) > MAX_LENGTH:
        raise UrlRefused(f"the address is longer than {MAX_LENGTH} characters")
    if _CONTROL.search(text):
        raise UrlRefused("the address holds a control character")
    if "\\" in text:
        raise UrlRefused("the address holds a backslash, which parsers treat differently")
    start = _START.match(text)
    if start is None:
        raise UrlRefused("the address does not begin with http:// or https://")
    scheme = start[1].lower()
    if scheme not in DEFAULT_PORTS:
        raise UrlRefused(f"only http and https are read, not {scheme}")
    if "@" in start[2]:
        raise UrlRefused("the address holds user info before its host")
    host_text, port = split_port(start[2])
    rest = text[start.end() :].partition("#")[0]
    path, mark, query = rest.partition("?")
    url = Url(
        scheme=scheme,
        host=parse_host(host_text),
        port=DEFAULT_PORTS[scheme] if port is None else port,
        path=_without_dot_segments(_escaped(path, _PATH)) or "/",
        query=_escaped(query, _QUERY) if mark else None,
    )
    if len(str(url)) > MAX_LENGTH:
        raise UrlRefused(f"the address is longer than {MAX_LENGTH} characters")
    return url


def normalise(text: str) -> str:
    """Return the normal form: `HTTP://Example.COM:80/a/../b#c` is `http://example.com/b`."""
    return str(parse(text))


def join(base: Url, reference: str) -> Url:
    """Resolve a reference (a link, a `Location`) against the page `base` (RFC 3986, section 5.2).

    Raises `UrlRefused`, also for `http:/a` and `///a`, which are a host to some parsers and a path to others.
    """
    reference = reference.strip(_SPACE)
    if _SCHEME.match(reference):
        return parse(reference)
    if reference.startswith("//"):
        return parse(f"{base.scheme}:{reference}")
    if reference.startswith("/"):
        return parse(base.origin + reference)
    if reference.startswith("?"):
        return parse(base.origin + base.path + reference)
    if not reference or reference.startswith("#"):
        return base
    folder = base.path[: base.path.rfind("/") + 1]
    return parse(base.origin + folder + reference)


def split_port(authority: str) -> tuple[str, int | None]:
    """Split `host`, `host:port`, `[::1]:port`; an empty port is none. Raises `UrlRefused`."""
    host, mark, port = authority, "", ""
    bracket = authority.rfind("]")
    colon = authority.rfind(":")
    if colon > bracket:
        host, mark, port = authority[:colon], ":", authority[colon + 1 :]
    if not mark or not port:
        return host, None
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 1 <= int(port) <= 65535):
        raise UrlRefused("the port is not a number from 1 to 65535")
    return host, int(port)


def parse_host(text: str) -> str:
    """Return a name or address in its only spelling. Raises `UrlRefused`.

    `127.1`, `0x7f.0.0.1`, `017700000001`, `2130706433` are addresses to some parsers and names to others; a name that
    becomes an address after mapping of its characters (`１２７.0.0.1`, `127。0。0。1`) is refused too.
    """
    if text.startswith("["):
        return _ipv6(text)
    if "%" in text:
        raise UrlRefused("the host is percent-encoded")
    if _IPV4.fullmatch(text):
        try:
            return str(IPv4Address(text))
        except AddressValueError:
            raise UrlRefused("the host is not an IPv4 address") from None
    name = _ascii_name(text)
    name = name.removesuffix(".")
    labels = name.split(".")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise UrlRefused("the host is not a valid name")
    if _NUMBER.fullmatch(labels[-1]):
        raise UrlRefused("the host is an unusual spelling of an IPv4 address")
    return name


def address_of(host: str) -> IPv4Address | IPv6Address | None:
    if ":" in host:
        return IPv6Address(host)
    return IPv4Address(host) if _IPV4.fullmatch(host) else None


def _ipv6(text: str) -> str:
    if not text.endswith("]"):
        raise UrlRefused("the host's bracket is not closed")
    if "%" in text:
        raise UrlRefused("the host names a zone of this machine")
    try:
        return str(IPv6Address(text[1:-1]))
    except AddressValueError:
        raise UrlRefused("the host is not an IPv6 address") from None


def _ascii_name(text: str) -> str:
    if text.isascii() and "xn--" not in text.lower():
        return text.lower()
    if len(text) > 253:  # longer names exist in no zone, and mapping them takes long
        raise UrlRefused("the host is not a valid name")
    import idna

    try:
        return idna.encode(text, uts46=True, std3_rules=True).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError):
        raise UrlRefused("the host is not an internationalised name (RFC 5891)") from None


def _escaped(text: str, safe: frozenset[str]) -> str:
    """Return the path with unreserved characters plain, escapes in capitals, other invalid characters escaped as
    UTF-8.
    """

    def normal_form(match: re.Match[str]) -> str:
        escape, character = match[1], match[2]
        if escape is None:
            return character if character in safe else "".join(f"%{octet:02X}" for octet in character.encode())
        plain = chr(int(escape, 16))
        return plain if plain in _UNRESERVED else f"%{escape.upper()}"

    return _ESCAPE_OR_CHARACTER.sub(normal_form, text)


def _without_dot_segments(path: str) -> str:
    """Apply RFC 3986, section 5.2.4, to a path that begins with a slash or is empty."""
    safe: list[str] = []
    segments = path.split("/")[1:]
    for position, segment in enumerate(segments):
        last = position == len(segments) - 1
        if segment in {".", ".."}:
            if segment == ".." and safe:
                safe.pop()
            if last:
                safe.append("")
        else:
            safe.append(segment)
    return "".join(f"/{segment}" for segment in safe)
