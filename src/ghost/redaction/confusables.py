"""Text whose letters are written in another way: escapes of JSON and C, entities of HTML, wide and joined-up forms.

A name or a separator that is spelled so is not found by its letters. So such text is redacted once more as it reads,
and of the lines in which something is found the reading is kept. Lines in which nothing is found stay as they are.
What a terminal obeys and what nobody sees, where it is written as an escape (`\\u001b[31m`, `\\u200b`), is left out of
the reading. Text stays JSON where it was: also of JSON in a string of JSON, whose backslashes are doubled.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from html import unescape

_PLAIN = re.compile(r"[\x00-\x7f]*+")
INVISIBLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
"""What nobody sees, as a class of characters has it."""
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_BREAKS = "\x85\u2028\u2029"
_ESCAPE = re.compile(
    r"(?<!\\)(?P<run>\\++)(?:u(?:(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\++u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?P<unit>[0-9a-fA-F]{4})|\{0{0,4}(?P<braced>[2-7][0-9a-fA-F])\})"
    r"|x(?P<byte>[2-7][0-9a-fA-F])|(?P<octal>[01][0-7][0-7]))"
)
_HAS_CODE = ("\\u001", "\\x1", "\\033", "\\e[", "\\u009", "\\x9", "\\u2", "\\u00ad", "\\u00AD", "\\uf", "\\uF")
_CODE = re.compile(  # ends and holds neither quotation marks nor backslashes of its own, so that JSON stays JSON
    r"(?<!\\)\\++(?:(?:u001[bB]|x1[bB]|033|e)(?:\[[0-?]{0,32}[A-Za-z]|\([0-9A-Z]"
    r"|\][^\"\\\n]{0,400}\\++(?:u0007|x07|007|a|(?:u001[bB]|x1[bB]|033|e)\\++))"
    r"|(?:u009[bB]|x9[bB])[0-?]{0,32}[A-Za-z]|u(?:00[aA][dD]|200[b-fB-F]|202[a-eA-E]|206[0-9a-fA-F]|[fF][eE][fF]{2}))"
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
    if "\\" in text:
        text = _ESCAPE.sub(_unescaped, without_codes(text))
    if not text.isascii():
        text = _in_ascii(text)
    if "&" in text:
        text = _ENTITY.sub(lambda entity: unescape(entity[0]).replace("\xa0", " "), text)
    return text


def without_codes(text: str) -> str:
    """`text` without the escapes of what a terminal obeys and nobody sees."""
    return _CODE.sub("", text) if any(code in text for code in _HAS_CODE) else text


def redact_around_codes(text: str, redact_text: Callable[[str], str]) -> str:
    """`text` redacted as it reads without codes: they may split a name or a value, of which a part would be left."""
    return _as_read(text, without_codes(text), redact_text) if "\\" in text else text


def redact_other_spellings(text: str, redact_text: Callable[[str], str]) -> str:
    """`text` redacted as it reads: the lines that `redact_text` changes are those of the reading."""
    return _as_read(text, in_plain_spelling(text), redact_text)


def _as_read(text: str, reading: str, redact_text: Callable[[str], str]) -> str:
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
        return "\n" if character in _BREAKS else " "
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
    backslashes = len(escape["run"])
    if escape["high"] is not None:
        code = 0x10000 + ((int(escape["high"], 16) & 0x3FF) << 10) + (int(escape["low"], 16) & 0x3FF)
    elif escape["octal"] is not None:
        code = int(escape["octal"], 8)
    else:
        code = int(escape["unit"] or escape["braced"] or escape["byte"], 16)
    nested = backslashes & (backslashes - 1) == 0 and escape["unit"] is not None  # JSON in strings: each doubles them
    character = chr(code)
    if not (nested or backslashes % 2) or code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000:
        return escape[0]
    if character in _BREAKS:
        return escape[0]
    kept = "" if nested else "\\" * (backslashes - 1)
    if _INVISIBLE.match(character) is not None:
        return kept
    spelled = _ascii_form(character) or character
    if spelled in '"\\':
        kept += "\\" * (2 * backslashes - 1 if nested else 1)
    return kept + spelled
