"""Exfiltration: text that looks like encoded data in a URL or a host's name. Limits are `policy/exfiltration.toml`.

A URL tells its server every word of it; a name sends to whoever answers for its zone every label. Hashes and serial
numbers are in ordinary names too, so a name may hold some bits that look encoded, and no more. Text that was
encoded is data whatever its length, once it can be told. What is split into labels of five characters, or spelled in
plain words, cannot be told from a name.
"""

from __future__ import annotations

import base64
import ipaddress
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby, pairwise
from typing import NamedTuple

from ghost.patterns import lazy
from ghost.shell.policy_tables import policy_table

_PIECE = lazy(r"[A-Za-z0-9]+")
_HEX_RUN = lazy(r"(?<![^.])(?:[0-9A-Fa-f]+\.)+")
_BASE32_RUN = lazy(r"(?<![^.])(?:[A-Za-z2-7]+\.)+")
_BASE32 = lazy(r"[A-Z2-7]+|[a-z2-7]+")
_STRETCH = lazy(r"[0-9]+|[A-Z]*[a-z]+|[A-Z]+")
_HEX = lazy(r"[0-9A-Fa-f]*")
_PREFIX = lazy(r"(?:[a-z0-9]?0?x|[g-z_-]{1,3})(?=[0-9a-f]{12,}$)", re.IGNORECASE)
"""What may stand before hex: `0x`, `x0x`, `h-`."""
_MARK_OF_BYTE = lazy(r"(?:\\|(?<![0-9A-Za-z])0)[xX]")
_BASE64_PIECE = lazy(r"[A-Za-z0-9_/+-]+")
_NEEDLESS_ESCAPE = lazy(r"%(?:25)*(?:3[0-9]|[46][1-9a-f]|[57][0-9a])", re.IGNORECASE)
"""A letter or digit of ASCII, which RFC 3986 (2.3) wants written as itself."""
_MEDIA_TYPE = lazy(
    r" *(?:\*|application|audio|font|image|message|model|multipart|text|video)/(?:\*|[a-z0-9]+(?:[.+-][a-z0-9]+)*)"
    r"(?: *; *[a-z.-]{1,16}=[a-z0-9.-]{1,16})* *",
    re.IGNORECASE,
)
_DIGITS_OF_NO_SUBTYPE = lazy(r"[0-9][a-z]*[0-9][a-z]*[0-9]", re.IGNORECASE)
_MIXED = lazy(r"(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])[A-Za-z0-9_-]+")
_PRINTABLE = lazy(rb"[\t\n\r\x20-\x7e]+")
_OF_WORDS = lazy(rb"[A-Za-z0-9 ._:=/@-]")
_IN_EVERY_SCRIPT = frozenset("0123456789-")
_LONGEST_NAME = 254
_SHORTEST_TOKEN = 16
_LABELS_OF_A_ZONE = 5
_LETTERS_OF_A_TEXT = 9
_DIGITS_OF_NO_NUMBER = 24
"""Of the ids of 18 or 19 digits one in two hundred is text in hex by chance."""
_MOST_NEEDLESS_ESCAPES = 2
_OF_A_NAME = "a name sends to whoever answers for its zone"
_WHY = f"holds what looks like encoded data, of which {_OF_A_NAME}"
_SENT = "holds what looks like encoded data, which is sent to the server"


class _Urls(NamedTuple):
    longest_url: int
    longest_query: int
    encoded: re.Pattern[str]
    unbroken: re.Pattern[str]
    content: re.Pattern[str]


class _Names(NamedTuple):
    shortest_piece: int
    odd_steps: int
    odd_steps_of_words: int
    shortest_hash: int
    most_bits: int
    most_bits_in_zones: int
    most_bits_together: int
    most_bits_in_header: int
    id: re.Pattern[str]
    longest_number: int
    bits_of_punycode: int
    shortest_text: Mapping[str, int]
    zones: tuple[str, ...]
    pairs: frozenset[str]


class _Limits(NamedTuple):
    urls: _Urls
    names: _Names


@cache
def _limits() -> _Limits:
    table = policy_table("exfiltration.toml")
    urls, names = table["urls"], table["names"]
    return _Limits(
        urls=_Urls(
            longest_url=urls["longest_url"],
            longest_query=urls["longest_query"],
            encoded=lazy(urls["encoded"]),
            unbroken=lazy(urls["unbroken"]),
            content=lazy(urls["content"], re.IGNORECASE),
        ),
        names=_Names(
            **{
                **names,
                "id": lazy(names["id"], re.IGNORECASE),
                "zones": tuple(f".{zone}" for zone in names["zones"].split()),
                "pairs": frozenset(first + letter for first, *others in names["pairs"].split() for letter in others),
            }
        ),
    )


def fault_of_length(url_rest: str, query: str) -> str | None:
    """Why the path or query of a URL is too long."""
    urls = _limits().urls
    if len(url_rest) > urls.longest_url:
        return f"has more than {urls.longest_url} characters, which may carry data to its server"
    if len(query) > urls.longest_query:
        return f"has a query of more than {urls.longest_query} characters, which may carry data to its server"
    return None


def holds_content(text: str) -> bool:
    """Whether a decoded part of a URL looks like a line of a file or names a file."""
    return _limits().urls.content.search(text) is not None


def is_encoded(text: str) -> bool:
    """Whether a part of a URL has the length and mix of characters of encoded data."""
    urls = _limits().urls
    for run in urls.encoded.findall(text):
        mixed = run.lower() != run and run.upper() != run and any(letter.isdecimal() for letter in run)
        if mixed or urls.unbroken.search(run):
            return True
    return False


def hides_letters(text: str) -> bool:
    """Whether letters or digits are percent-encoded, which is never needed."""
    return len(_NEEDLESS_ESCAPE.findall(text)) > _MOST_NEEDLESS_ESCAPES


def spells_text(parts: Sequence[str]) -> bool:
    """Whether parts of a URL or a header, alone or all joined, are text of nine letters in hex, base32 or base64."""
    pieces = [piece for part in parts for piece in _PIECE.findall(_MARK_OF_BYTE.sub("", part))]
    hexes = [bare for piece in pieces if _HEX.fullmatch(bare := _PREFIX.sub("", piece)) and not _is_short_number(bare)]
    base64s = [piece for part in parts for piece in _BASE64_PIECE.findall(part)]
    return (
        any(
            _is_text(one, _DIGITS_OF_NO_NUMBER if one.isdecimal() else 2 * _LETTERS_OF_A_TEXT, _from_hex)
            for one in (*_each_and_joined(hexes), "".join(filter(_is_printable_hex, hexes)))
        )
        or any(_BASE32.fullmatch(one) and _is_text(one, 16, _from_base32) for one in _each_and_joined(pieces))
        or any(_is_base64_of_text(one) for one in (*pieces, *_each_and_joined(base64s)))
    )


def holds_secret(text: str) -> bool:
    """Whether redaction would take something out of a text that leaves the machine."""
    from ghost.redaction import may_hold_secret, redact  # late: most commands carry nothing to look at

    return may_hold_secret(text) and bool(redact(text)[1]["redactions_applied"])


def _is_secret_by_shape(name: str) -> bool:
    """`holds_secret` for a single name, by shape alone; fast enough for thousands in a line."""
    if len(name) < _SHORTEST_TOKEN:
        return False
    from ghost.redaction import Counts, has_anchor, redact_shapes

    if not has_anchor(name):
        return False
    found: Counts = Counter()
    redact_shapes(name, found)
    return bool(found)


def fault_of_name(name: str) -> str | None:
    """Why a host name that is resolved or sent may carry data to the owner of its zone."""
    if len(name) > _LONGEST_NAME:
        return f"has more than {_LONGEST_NAME} characters"
    names = _limits().names
    if _is_secret_by_shape(name):
        return f"holds a secret, of which {_OF_A_NAME}"
    most = names.most_bits_in_zones if _is_in_zone(name) else names.most_bits
    return _WHY if _spells_text(name.removesuffix(".")) or _bits_of_name(name) > most else None


def fault_of_names(names: Sequence[str]) -> str | None:
    """Why the names of one command may carry data together although each is allowed alone."""
    bits = sum(_bits_of_name(name) for name in names if not _is_in_zone(name))
    return f"together {_WHY}" if bits > _limits().names.most_bits_together else None


def fault_of_address(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str | None:
    """Why a reverse lookup of this address may carry data: an IPv6 address can be 16 letters."""
    return _WHY if address.version == 6 and _PRINTABLE.fullmatch(address.packed) else None


def fault_of_accept(value: str) -> str | None:
    """Why the value of `Accept` is more than media types (RFC 9110, 12.5.1) as they are registered."""
    types = value.split(",")
    if all(_MEDIA_TYPE.fullmatch(one) and not _DIGITS_OF_NO_SUBTYPE.search(one.partition(";")[0]) for one in types):
        return None
    return "is not a list of media types"


def fault_of_header(value: str) -> str | None:
    """Why the value of a header of a request may carry data to its server. Some hold an id or a hash."""
    if holds_secret(value):
        return "holds a secret, which is sent to the server"
    if hides_letters(value) or spells_text([value]):
        return _SENT
    return _SENT if _bits_of_pieces(value) > _limits().names.most_bits_in_header else None


def _is_in_zone(name: str) -> bool:
    return f".{name.lower().removesuffix('.')}".endswith(_limits().names.zones)


def _bits_of_name(name: str) -> int:
    without_id = _limits().names.id.sub("", name, count=1)
    labels = without_id.split(".")
    words = [label for label in labels if _is_word_of_a_script(label)]
    others = [label for label in labels if label not in words]
    of_words = _limits().names.bits_of_punycode * sum(map(len, words))
    return of_words + _bits_of_pieces(".".join(_with_hex_joined(others)))


def _with_hex_joined(labels: Sequence[str]) -> Iterator[str]:
    """The labels, with adjacent labels of hex digits joined: a hash may be split over them."""
    for is_hex, side_by_side in groupby(labels, _is_piece_of_hex):
        yield ("" if is_hex else ".").join(side_by_side)


def _is_piece_of_hex(label: str) -> bool:
    return len(label) >= _limits().names.shortest_piece and _HEX.fullmatch(label) is not None


def _bits_of_pieces(text: str) -> int:
    return sum(map(_bits, _PIECE.findall(text)))


def _is_word_of_a_script(label: str) -> bool:
    """Whether the label is the punycode (RFC 3492) of letters of one script, with digits and hyphens among them."""
    if not label.lower().startswith("xn--"):
        return False
    try:
        word = label[4:].encode("ascii").decode("punycode")
    except UnicodeError:
        return False
    letters = [letter for letter in word if letter not in _IN_EVERY_SCRIPT]
    scripts = {unicodedata.name(letter, "none").partition(" ")[0] for letter in letters}
    return all(letter.isalpha() or unicodedata.combining(letter) for letter in letters) and len(scripts) == 1


def _bits(piece: str) -> int:
    """Bits of data that the piece could hold; 0 for a word or a number."""
    names = _limits().names
    if piece.isdecimal():
        return 3 * len(piece) if len(piece) > names.longest_number else 0
    if len(piece) < names.shortest_piece:
        return 0
    odd = sum(1 for pair in pairwise(piece) if _is_odd(*pair))
    is_hex = _HEX.fullmatch(piece) is not None
    is_like_a_word = not is_hex and len(_STRETCH.findall(piece)) <= 2
    enough = names.odd_steps_of_words if is_like_a_word else names.odd_steps
    is_hash = is_hex and len(piece) >= names.shortest_hash and not piece.isalpha()
    if not is_hash and 100 * odd < enough * (len(piece) - 1):
        return 0
    if is_hex:
        return 4 * len(piece)
    return 5 * len(piece) if piece in (piece.lower(), piece.upper()) else 8 * len(piece)


def _is_odd(first: str, second: str) -> bool:
    if first.isdecimal() or second.isdecimal():
        return first.isdecimal() != second.isdecimal()
    return (first.islower() and second.isupper()) or (first + second).lower() not in _limits().names.pairs


def _spells_text(name: str) -> bool:
    """Whether labels of it, alone or joined, decode to printable text."""
    if name.lower().endswith(".arpa"):
        return False
    name = ".".join(_PREFIX.sub("", label) for label in name.split("."))
    shortest = _limits().names.shortest_text
    if len(name) < min(shortest.values()):
        return False
    return (
        any(_is_text(joined, shortest["hex"], _from_hex) for joined in _runs(_HEX_RUN, name))
        or any(_is_text(joined, shortest["base32"], _from_base32) for joined in _runs(_BASE32_RUN, name))
        or any(
            _MIXED.fullmatch(label) and _is_text(label, shortest["base64"], _from_base64) for label in name.split(".")
        )
    )


def _runs(pattern: re.Pattern[str], name: str) -> Iterator[str]:
    """Labels that stand side by side and are all of one alphabet: each alone, and joined. What numbers the message
    before them, and the zone behind them, may be of it too."""
    for run in pattern.findall(f"{name}."):
        labels = run.removesuffix(".").split(".")
        yield from labels
        for first in (0, 1):
            for behind in range(_LABELS_OF_A_ZONE + 1):
                yield "".join(labels[first : len(labels) - behind])


def _each_and_joined(pieces: Sequence[str]) -> Iterator[str]:
    yield from pieces
    yield "".join(pieces)


def _is_short_number(piece: str) -> bool:
    """Whether it is a short number such as a size, a year or a page."""
    return len(piece) < 6 and piece.isdecimal()


def _is_printable_hex(piece: str) -> bool:
    """Whether four letters or more are in it: what stands between such pieces does not hide that they are one text."""
    return len(piece) >= 8 and _PRINTABLE.fullmatch(_from_hex(piece)) is not None


def _is_base64_of_text(encoded: str) -> bool:
    urlsafe = encoded.replace("+", "-").replace("/", "_")
    return _MIXED.fullmatch(urlsafe) is not None and _is_text(urlsafe, 12, _from_base64)


def _is_text(encoded: str, shortest: int, decode: Callable[[str], bytes]) -> bool:
    if len(encoded) < shortest:
        return False
    decoded = decode(encoded)
    return _PRINTABLE.fullmatch(decoded) is not None and 5 * len(_OF_WORDS.findall(decoded)) >= 4 * len(decoded)


def _from_hex(text: str) -> bytes:
    return bytes.fromhex(text[: len(text) // 2 * 2])


def _from_base32(text: str) -> bytes:
    return base64.b32decode(text[: len(text) // 8 * 8].upper())


def _from_base64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text[: len(text) // 4 * 4])
