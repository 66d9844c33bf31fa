"""Names of secrets: their positions in a text, and how certain it is that they name a secret.

`[names]` of `redaction.toml` lists the names and the letters they are searched by. Names are compared by their end,
without case, blanks, `_`, `-` and `.`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ghost.patterns import lazy
from ghost.redaction.bigram_filter import present
from ghost.redaction.secret_values import POLICY, any_of

_CERTAIN = {category: tuple(names) for category, names in POLICY["names"]["certain"].items()}
_LIKELY = {category: tuple(names) for category, names in POLICY["names"]["likely"].items()}
_WEAK = frozenset(POLICY["names"]["weak"]["names"])
_NEVER = tuple(POLICY["names"]["never"]["names"])
_SPARED = tuple(POLICY["names"]["never"]["spared"])
_OF_OTHERS = tuple(POLICY["names"]["never"]["beginnings"])
_SUFFIXES = tuple(POLICY["names"]["suffixes"])
_ALL_NAMES = tuple(name for table in (_CERTAIN, _LIKELY) for names in table.values() for name in names)

_CORES = tuple(POLICY["names"]["cores"])
_NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-. "
_NAME_REACH = 48
_REST_OF_NAME = lazy(
    r"(?:[\w-]|\.(?!\.)){0,40}+(?: (?:(?i:string|phrase|hash|content|\d{1,2}|(?<=pass )word)(?=[\"']?[ \t]{0,40}[:=])"
    r"|(?i:(?<=pass )(?:phrase|word))(?= for )))?"
)
_LINE_START = lazy(r"[ \t#]*(?:[<>*|+-][ \t]+)?(?:Header:[ ]|export[ \t]+|set[ \t]+|env[ \t]+|setx[ \t]+)?", re.I)
_OPTION_NAME = lazy(r"--|-[A-Z]?[a-z]{3}")
_VARIABLE = lazy(r"[A-Z0-9]{1,40}(?:_[A-Z0-9]{1,40}){0,8}")
_TAG = lazy(r"<(?:[\w-]{1,20}:)?$")
_CLOSED = lazy(r"\)[ \t\xa0]{0,4}[:=]")
_CERTAIN_OPTIONS = ("pass", "token", "jwt")
_HEADER_NAMES = ("cookie", "setcookie")
_SHORT = "|".join(POLICY["names"]["short"])
_SHORT_PASSWORD = lazy(rf"(?:^|[^a-zA-Z])(?i:{_SHORT})$|[a-z]Pw$")  # `DEPLOY_PW`, `common-pw`


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the words of a name mean, independent of their position."""

    category: str
    certain: bool
    is_weak: bool  # `auth`: a secret's name only where a word says how the secret is written
    is_keyword: bool  # `cipher`: no more than a keyword of a statement
    is_option: bool  # `--password`, `-Password`
    is_header: bool  # `Cookie`, which is a secret's name only where it starts a line
    may_be_path: bool  # `PWD`, `credentials`
    is_variable: bool  # `SMTP_PASS`, as variables of the environment are spelled


@dataclass(frozen=True, slots=True)
class Name:
    """A secret's name in a text, from `start` to `end`."""

    text: str
    start: int
    word: int  # where the last word of it begins
    end: int
    meaning: Meaning

    @property
    def certain(self) -> bool:
        """Whether its value is always a secret."""
        return self.meaning.certain or (self.meaning.is_header and self.starts_line)

    def word_in(self, words: tuple[str, ...]) -> bool:
        """Whether its last word is one of these."""
        return self.text[self.word : self.end] in words

    @property
    def quoted(self) -> bool:
        """Whether it is in double quotes, as a JSON key."""
        return self.text.endswith('"', 0, self.start) and self.text.startswith('"', self.end)

    @property
    def in_parentheses(self) -> bool:
        """Whether it explains a name before it: `Schl\u00fcssel (PSK): `."""
        before = self.text[max(0, self.start - 2) : self.start]
        apart = before.endswith("(") and (before[0].isspace() or not before.isascii())
        return apart and _CLOSED.match(self.text, self.end) is not None

    @property
    def is_parameter(self) -> bool:
        """Whether it is a parameter of a URL."""
        return self.text.endswith(("?", "&", "#"), 0, self.start)

    @property
    def is_element(self) -> bool:
        """Whether it opens an XML element. A blank after `<` is the mark of curl before response headers."""
        if self.text.startswith(" ", self.start):
            return False
        return _TAG.search(self.text[max(0, self.start - 24) : self.start]) is not None

    @property
    def starts_line(self) -> bool:
        """Whether it is a single word and first on its line, after indentation, a list mark or `export`."""
        words = self.text[self.start : self.end].lstrip()
        words = words.removeprefix("- ").lstrip()  # of an item
        start = self.end - len(words)
        line = self.text.rfind("\n", max(0, start - 80), start) + 1
        if " " in words.strip() or (line == 0 and start > 80):
            return False
        return _LINE_START.fullmatch(self.text, line, start) is not None


def name_cores(text: str) -> Iterator[re.Match[str]]:
    """Yield the positions of letters that names of secrets contain, from left to right."""
    small = lowered(text)
    cores = present(small, _CORES)
    return (core for core in _any_core(cores).finditer(small) if core[0][0] != "[") if cores else iter(())


@lru_cache(maxsize=256)
def _any_core(cores: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of the given letters only: a pattern of all would take many times as long."""
    return re.compile(rf"\[redacted[a-z_]{{0,24}}\]|{any_of(cores)}")  # what is redacted is passed over whole


def name_around(text: str, core: re.Match[str], done: int) -> Name | None:
    """Return the name around these letters, beginning after `done`; None if it names no secret."""
    before = text[max(done, core.start() - _NAME_REACH) : core.start()]
    rest = _REST_OF_NAME.match(text, core.end())
    assert rest is not None
    start, end = core.start() - (len(before) - len(before.rstrip(_NAME_CHARACTERS))), rest.end()
    if text.startswith("->", end - 1):
        end -= 1  # of an arrow
    meaning = _meaning(text[start:end])
    if meaning is None:
        return None
    return Name(text, start, text.rfind(" ", start, end) + 1 or start, end, meaning)


@lru_cache(maxsize=8192)
def _meaning(words: str) -> Meaning | None:
    last = words.rpartition(" ")[2]
    is_weak = _normal(last) in _WEAK
    kind = secret_kind(words)
    if kind is None and not is_weak:
        return None
    category, certain = kind or ("password", False)
    normal = _normal(words)
    is_option = _OPTION_NAME.match(last) is not None
    return Meaning(
        category,
        certain or (is_option and normal.endswith(_CERTAIN_OPTIONS)),
        is_weak,
        kind is None,
        is_option,
        normal in _HEADER_NAMES,
        normal.endswith(("pwd", "credentials")),
        _VARIABLE.fullmatch(last) is not None,
    )


@lru_cache(maxsize=4096)
def secret_kind(name: str) -> tuple[str, bool] | None:
    """Return the category of what a name names and whether it is certainly a secret; None if it names none."""
    words = name.split(" ")
    if _normal(words[-1]).startswith(_OF_OTHERS) or _is_never(words):
        return None
    for count in (4, 3, 2, 1):  # `Contenu de la clé` is a name of four words; in `the access key` only two are the name
        normal = _normal(" ".join(words[-count:]))
        for category, endings in _CERTAIN.items():
            if normal.endswith(endings) or normal.removesuffix("s").endswith(endings):
                return category, True
    if _SHORT_PASSWORD.search(words[-1]) is not None:
        return "password", True
    last = _normal(words[-1])
    if last.startswith("x") and last.endswith("token"):
        return "bearer_token", True  # `X-Vault-Token`
    for category, endings in _LIKELY.items():
        if last.endswith(endings):
            return category, False
    return None


def _is_never(words: list[str]) -> bool:
    """Whether a name ends in one that is never a secret's; across words only from the start of a word.

    `foreign key` is such a name, `redis secret` does not end in `isSecret`.
    """
    last = _normal(words[-1])
    if last.endswith(_NEVER):
        return not last.endswith(_SPARED)
    for count in range(2, min(4, len(words)) + 1):
        parts = re.split(r"[_-]", words[-count])
        rest = "".join(words[1 - count :])
        if any(_normal("".join(parts[first:]) + rest) in _NEVER for first in range(len(parts))):
            return True
    return False


def _normal(name: str) -> str:
    normal = re.sub(r"[ _.-]", "", name).lower()
    shorter = normal.rstrip("0123456789")
    if shorter.endswith(_SUFFIXES) and not shorter.endswith(_ALL_NAMES):
        for suffix in _SUFFIXES:
            cut = shorter.removesuffix(suffix)
            if cut != shorter and cut.endswith(_ALL_NAMES):
                return cut
    return shorter or normal


def lowered(text: str) -> str:
    """Return the text in lower case, character by character, so that offsets stay."""
    whole = text.lower()
    return whole if len(whole) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
