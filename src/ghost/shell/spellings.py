"""Text whose letters are written in another way: escapes of JSON and C, entities of HTML, wide and joined-up forms.

A name or a separator that is spelled so is not found by its letters. So such text is redacted once more as it reads,
and of the lines in which something is found the reading is kept. Lines in which nothing is found stay as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from html import unescape

_PLAIN = re.compile(r"[\x00-\x7f]*+")
_ESCAPE = re.compile(
    r"(?<!\\)((?:\\\\)*+)\\(?:u(?:00|\{0{0,4})([2-7][0-9a-fA-F])\}?|x([2-7][0-9a-fA-F])|([01][0-7][0-7]))"
)
_ENTITY = re.compile(r"&(?:#\d{1,4}|#[xX][0-9a-fA-F]{1,3}|quot|apos|amp|lt|gt|equals|colon|nbsp);", re.IGNORECASE)
_LATIN = str.maketrans(  # letters of other alphabets that look like Latin ones
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u043a\u0442\u0442\u051d\u0501\u03bf\u03b1\u03c1\u03bd\u0131\u0261\u026a",
    "aeopcyxsikttwdoapvigi",
)
_LOOKS_LATIN = re.compile("[\u0370-\u03ff\u0400-\u052f\u0131\u0261\u026a]")
_WORD = re.compile(r"(?<!\w)\w++")
_LATIN_LETTER = re.compile("[a-zA-Z]")


def in_plain_spelling(text: str) -> str:
    """`text` with ASCII wherever that is meant. JSON stays JSON: an escaped quotation mark stays escaped."""
    if not text.isascii():
        text = _in_ascii(text)
    if "\\" in text:
        text = _ESCAPE.sub(_unescaped, text)
    if "&" in text:
        text = _ENTITY.sub(lambda entity: unescape(entity[0]).replace("\xa0", " "), text)
    return text


def redact_other_spellings(text: str, redact_text: Callable[[str], str]) -> str:
    """`text` redacted as it reads: the lines that `redact_text` changes are those of the reading."""
    reading = in_plain_spelling(text)
    if reading == text:
        return text
    redacted = redact_text(reading)
    if redacted == reading:
        return text
    lines, read, clean = text.split("\n"), reading.split("\n"), redacted.split("\n")
    if not len(lines) == len(read) == len(clean):
        return redacted
    return "\n".join(line if before == after else after for line, before, after in zip(lines, read, clean, strict=True))


def _in_ascii(text: str) -> str:
    """Compatible forms in ASCII, character by character, and letters that look Latin in words that are."""
    changed = {ord(c): ascii_form for c in set(text) if (ascii_form := _ascii_form(c)) is not None}
    text = text.translate(changed)
    return _WORD.sub(_in_latin, text) if _LOOKS_LATIN.search(text) is not None else text


def _in_latin(word: re.Match[str]) -> str:
    both = _LATIN_LETTER.search(word[0]) is not None and _LOOKS_LATIN.search(word[0]) is not None
    return word[0].translate(_LATIN) if both else word[0]


def _ascii_form(character: str) -> str | None:
    if character.isascii():
        return None
    if character.isspace():
        return "\n" if character in "\x85\u2028\u2029" else " "
    form = unicodedata.normalize("NFKC", character)
    if form.isascii() and form.strip():
        return form if len(form) == 1 else None
    return _MARKS.get(character)


_MARKS = {
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u300c\u300d\u300e\u300f", '"'),
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u2039\u203a", "'"),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u2236\u02d0\ua789\ufe55\u05c3", ":"),
    **dict.fromkeys("\ua78a\u30a0\u2e40", "="),
}


def _unescaped(escape: re.Match[str]) -> str:
    backslashes, short, byte, octal = escape.groups()
    code = int(octal, 8) if octal else int(short or byte, 16)
    character = chr(code)
    if not " " <= character <= "~":
        return escape[0]
    return backslashes + ("\\" if character in '"\\' else "") + character
