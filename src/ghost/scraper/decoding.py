"""Bounded decoding of content codings and character sets."""

from __future__ import annotations

import codecs
import re
import zlib

from ghost.errors import ScrapeError

ACCEPTED_CODINGS = "gzip, deflate"
_STEP = 64 * 1024

# What a page may call its characters, and the codec that browsers take for it (https://encoding.spec.whatwg.org/#names-and-labels).
# A name that is not listed is not looked up: Python knows codecs that are no character sets (`idna`, `unicode_escape`).
_CHARSETS = {
    "cp1252": "ascii us-ascii iso-8859-1 iso8859-1 iso_8859-1 latin1 latin-1 l1 windows-1252 cp1252 x-cp1252",
    "utf-8": "utf-8 utf8 unicode-1-1-utf-8 x-unicode20utf8",
    "utf-16-le": "utf-16 utf-16le unicode ucs-2",
    "utf-16-be": "utf-16be",
    "iso8859-2": "iso-8859-2 iso8859-2 latin2",
    "iso8859-3": "iso-8859-3 latin3",
    "iso8859-4": "iso-8859-4 latin4",
    "iso8859-5": "iso-8859-5 cyrillic",
    "iso8859-6": "iso-8859-6 arabic",
    "iso8859-7": "iso-8859-7 greek",
    "iso8859-8": "iso-8859-8 iso-8859-8-i hebrew",
    "cp1254": "iso-8859-9 latin5 windows-1254",
    "iso8859-10": "iso-8859-10 latin6",
    "iso8859-13": "iso-8859-13",
    "iso8859-14": "iso-8859-14",
    "iso8859-15": "iso-8859-15 latin9",
    "iso8859-16": "iso-8859-16",
    "cp874": "windows-874 tis-620 iso-8859-11",
    "cp1250": "windows-1250",
    "cp1251": "windows-1251",
    "cp1253": "windows-1253",
    "cp1255": "windows-1255",
    "cp1256": "windows-1256",
    "cp1257": "windows-1257",
    "cp1258": "windows-1258",
    "koi8-r": "koi8-r koi8",
    "koi8-u": "koi8-u",
    "mac-roman": "macintosh mac",
    "cp866": "ibm866 cp866",
    "gb18030": "gb2312 gbk gb18030 chinese x-gbk",
    "big5hkscs": "big5 big5-hkscs",
    "cp932": "shift_jis shift-jis sjis windows-31j ms_kanji",
    "euc_jp": "euc-jp",
    "iso2022_jp": "iso-2022-jp",
    "cp949": "euc-kr ks_c_5601-1987 korean windows-949",
}
_CODEC = {label: codec for codec, labels in _CHARSETS.items() for label in labels.split()}
_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_DECLARED = re.compile(
    rb"<meta[^>]{0,200}?charset\s{0,20}=\s{0,20}[\"']?\s{0,20}([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE
)


class TooLargeError(ScrapeError):
    pass


class DamagedBodyError(ScrapeError):
    pass


class BodyDecoder:
    """Decodes one content coding incrementally, up to `limit` bytes of output."""

    def __init__(self, coding: str, limit: int) -> None:
        """Select the coding. Raises `DamagedBodyError` for one that was not requested, or for several."""
        self.limit = limit
        self.body = bytearray()
        self._coding = coding.strip().lower()
        if self._coding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
            raise DamagedBodyError(f"the content coding {self._coding[:40]!r} was not requested")
        self._inflater = self._new_inflater(zlib.MAX_WBITS)
        self._started = False

    def feed(self, octets: bytes) -> None:
        """Decode bytes. Raises `TooLargeError` with `body` filled to the limit, `DamagedBodyError` for invalid data."""
        if self._coding in {"", "identity"}:
            self._keep(octets)
            return
        while octets:
            try:
                plain = self._inflater.decompress(octets, _STEP)
            except zlib.error as error:
                if self._coding != "deflate" or self._started:
                    raise DamagedBodyError(f"the {self._coding} coding is damaged: {error}") from None
                self._inflater = self._new_inflater(-zlib.MAX_WBITS)  # many servers send it without its frame
                self._started = True
                continue
            self._started = True
            self._keep(plain)
            octets = self._inflater.unconsumed_tail
            if self._inflater.eof:
                octets = self._inflater.unused_data
                if octets and self._coding == "deflate":
                    raise DamagedBodyError("data follows the deflate stream")
                if octets:
                    self._inflater = self._new_inflater(zlib.MAX_WBITS)  # RFC 1952: members may follow each other

    def finish(self) -> bytes:
        """Return the whole body. Raises `DamagedBodyError` if it is incomplete."""
        if self._started and not self._inflater.eof:
            raise DamagedBodyError(f"the {self._coding} coding is incomplete")
        return bytes(self.body)

    def _keep(self, plain: bytes) -> None:
        space = self.limit - len(self.body)
        self.body += plain[:space]
        if len(plain) > space:
            raise TooLargeError(f"the page is larger than {self.limit} bytes")

    def _new_inflater(self, window: int) -> zlib._Decompress:
        return zlib.decompressobj(window | 16 if self._coding in {"gzip", "x-gzip"} else window)


def text_of(body: bytes, charset: str | None, *, html: bool) -> str:
    """Decode a body by byte order mark, header charset, page charset, UTF-8, or Windows-1252.

    Never fails for an unknown or wrong charset: undecodable bytes become U+FFFD.
    """
    for mark, codec in _BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace")
    named = _CODEC.get((charset or "").strip().strip("\"'").lower())
    if named is None and html and (declared := _DECLARED.search(body[:1024])):
        named = _CODEC.get(declared[1].decode("ascii").lower())
        if named is not None and named.startswith("utf-16"):
            named = "utf-8"  # the declaration could be read, so it is not UTF-16
    if named is not None:
        return body.decode(named, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")
