"""Parsing of a page into text, title and links. Markup is hostile: nothing here raises for its content.

The page is read once as a stream of tags, without a tree, for its title, links, robots directives, plain text, and the
size and depth its tree would have. Only a page of acceptable size is passed to trafilatura, which finds the main text;
otherwise, or if that fails, the plain text is used.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

MAX_LINKS = 1000
MAX_DEPTH = 200
MAX_ELEMENTS = 20_000
MAX_ATTRIBUTES = 100
"""Maximum attributes of one element; a tree takes quadratic time in their number."""
MAX_ATTRIBUTE_CHARS = 500_000
MAX_TITLE_CHARS = 300

_SILENT = frozenset(
    {"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "select", "textarea"}
)
_TEXT_BLOCKS = "address blockquote br caption dd div dl dt h1 h2 h3 h4 h5 h6 hr li ol option p pre ul"
_LAYOUT_BLOCKS = "article aside body fieldset figure footer form header main nav section table tbody td tfoot th tr"
_BLOCKS = frozenset(f"{_TEXT_BLOCKS} {_LAYOUT_BLOCKS}".split())
_DIRECTIVE = re.compile(r"[\s,]+")
_BLANK = re.compile(r"[^\S\n]+")
_EMPTY_LINES = re.compile(r"\n{3,}")
_KEPT_FORMAT_CHARACTERS = "\u200c\u200d"  # join and separate letters in several scripts
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class Page:
    title: str
    text: str
    links: tuple[str, ...] = ()
    """As written in the page, without `nofollow` links."""
    base: str | None = None
    """Its `<base href>`, for relative links."""
    index: bool = True
    follow: bool = True


@dataclass(frozen=True)
class RobotsDirectives:
    """Robots directives of a page: `noindex`, `nofollow`, `none`."""

    index: bool = True
    follow: bool = True

    def and_also(self, other: RobotsDirectives) -> RobotsDirectives:
        return RobotsDirectives(self.index and other.index, self.follow and other.follow)


def wishes(directives: str) -> RobotsDirectives:
    words = set(_DIRECTIVE.split(directives.lower()))
    nothing = "none" in words
    return RobotsDirectives(
        index=not nothing and "noindex" not in words, follow=not nothing and "nofollow" not in words
    )


def header_directives(values: Iterable[str], agent: str) -> RobotsDirectives:
    """Return the directives of X-Robots-Tag headers for all robots and for this agent (`ghostbot: noindex`)."""
    found = RobotsDirectives()
    for value in values:
        addressed = True
        for part in value.split(","):
            name, colon, rest = part.partition(":")
            if colon and name.strip().lower() not in {"unavailable_after", "max-snippet", "max-image-preview"}:
                addressed = name.strip().lower() == agent.lower()  # holds for what follows in this header
                part = rest
            if addressed:
                found = found.and_also(wishes(part))
    return found


def read_text(characters: str) -> Page:
    return Page(title="", text=clean(characters))


def read_html(characters: str, agent: str, main_text: Callable[[str], str | None] | None = None) -> Page:
    """Parse a page. `main_text` extracts the main text from markup; by default trafilatura."""
    characters = _CONTROLS.sub(" ", characters)
    outline = _outline(characters, agent)
    text = ""
    if outline.index and outline.parseable:
        text = clean((main_text or _trafilatura)(characters) or "")
    return Page(
        title=cut_at_word(" ".join(clean("".join(outline.title)).split()), MAX_TITLE_CHARS)[0],
        text=text or clean("".join(outline.text)),
        links=tuple(outline.links),
        base=outline.base,
        index=outline.wishes.index,
        follow=outline.wishes.follow,
    )


def clean(text: str) -> str:
    """Return lines without control and invisible characters, repeated blanks and empty lines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    text = "".join(c for c in text if c == "\n" or c == "\t" or c in _KEPT_FORMAT_CHARACTERS or not _is_hidden(c))
    lines = (_BLANK.sub(" ", line).strip() for line in text.split("\n"))
    return _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip()


def cut_at_word(text: str, limit: int) -> tuple[str, bool]:
    """Return at most `limit` characters, ending at a word boundary within the last fifth, and whether it was
    truncated.
    """
    if len(text) <= limit:
        return text, False
    cut = text[: limit + 1]
    space = max(cut.rfind(" "), cut.rfind("\n"))
    return cut[: space if space >= limit * 4 // 5 else limit].rstrip(), True


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn"}


def _trafilatura(characters: str) -> str | None:
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # a page without text is no error of ours
    try:
        return trafilatura.extract(characters, include_comments=False, include_tables=True, with_metadata=False)
    except Exception:  # noqa: BLE001 - a stranger's page may break it in any way; the plain text remains
        return None


class _Outline:
    """The parser's callbacks, in the order of the page."""

    def __init__(self, agent: str) -> None:
        self._robot_names = {"robots", agent.lower()}
        self.title: list[str] = []
        self.text: list[str] = []
        self.links: dict[str, None] = {}
        self.base: str | None = None
        self.wishes = RobotsDirectives()
        self.elements = 0
        self.deepest = 0
        self.most_attributes = 0
        self.attribute_chars = 0
        self._depth = 0
        self._silent = 0
        self._in_title = False
        self._title_done = False

    @property
    def index(self) -> bool:
        return self.wishes.index

    @property
    def parseable(self) -> bool:
        size = self.elements <= MAX_ELEMENTS and self.attribute_chars <= MAX_ATTRIBUTE_CHARS
        return size and self.deepest <= MAX_DEPTH and self.most_attributes <= MAX_ATTRIBUTES

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.elements += 1
        self._depth += 1
        self.deepest = max(self.deepest, self._depth)
        self.most_attributes = max(self.most_attributes, len(attributes))
        self.attribute_chars += sum(len(name) + len(value) for name, value in attributes.items())
        if tag in _BLOCKS:
            self.text.append("\n")
        if tag in _SILENT:
            self._silent += 1
        elif tag == "title":
            self._in_title = not self._silent and not self._title_done
        elif tag == "base" and self.base is None:
            self.base = attributes.get("href")
        elif tag == "meta" and attributes.get("name", "").strip().lower() in self._robot_names:
            self.wishes = self.wishes.and_also(wishes(attributes.get("content", "")))
        elif tag in {"a", "area"} and len(self.links) < MAX_LINKS:
            href = attributes.get("href", "").strip()
            if href and not href.startswith("#") and "nofollow" not in attributes.get("rel", "").lower().split():
                self.links[href] = None

    def end(self, tag: str) -> None:
        self._depth -= 1
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag == "title" and self._in_title:
            self._in_title, self._title_done = False, True
        elif tag in _BLOCKS:
            self.text.append("\n")

    def data(self, text: str) -> None:
        if self._in_title:
            self.title.append(text)
        elif not self._silent:
            self.text.append(text)

    def comment(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass


def _outline(characters: str, agent: str) -> _Outline:
    from lxml import etree  # type: ignore[import-untyped]  # lxml comes without types

    outline = _Outline(agent)
    parser = etree.HTMLParser(target=outline, encoding="utf-8", recover=True, no_network=True)
    try:
        octets = characters.encode("utf-8", "replace")
        for begin in range(0, len(octets), 65536):
            parser.feed(octets[begin : begin + 65536])
        parser.close()
    except etree.LxmlError:
        pass  # what was read before remains
    return outline
