"""The plots of a capture, taken from the page that the capture engine wrote beside its report.

The page lies in a directory where others may write: only tags and attributes of plots pass, and nothing that acts.
"""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from ghost.page import Markup, element, escaped

REPORT: Final = "_forensic_report.md"
MAX_PLOTS: Final = 6
MAX_BYTES: Final = 4 << 20
_TAGS: Final = {
    *("figure", "figcaption", "b", "ul", "li", "i", "div", "span"),
    *("svg", "g", "path", "line", "rect", "circle", "title"),
}
_ATTRIBUTES: Final = {
    *("class", "viewbox", "preserveaspectratio", "d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r"),
    *("width", "height", "aria-hidden", "aria-label", "role"),
}
_CASED: Final = {"viewbox": "viewBox", "preserveaspectratio": "preserveAspectRatio"}


def page_of(report_path: str) -> Path:
    """Return where the engine writes the page beside the report of a capture, or of two."""
    if report_path.endswith(REPORT):
        return Path(f"{report_path.removesuffix(REPORT)}_report.html")
    return Path(report_path).with_suffix(".html")


def plots_of(report_path: str, directory: Path) -> list[Markup]:
    """Return the figures of the capture whose forensic report lies at `report_path`, directly in `directory`; none
    where its page is gone."""
    page = page_of(report_path)
    try:
        inside = page.resolve() == directory.resolve() / page.name
        if not (inside and report_path.endswith(REPORT) and page.is_file()) or page.stat().st_size > MAX_BYTES:
            return []
        text = page.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    reader = _Figures()
    reader.feed(text)
    return reader.figures[:MAX_PLOTS]


class _Figures(HTMLParser):
    """Collects whole figures, written anew."""

    def __init__(self) -> None:
        super().__init__()
        self.figures: list[Markup] = []
        self._open: list[str] = []
        self._parts: list[str] = []
        self._skipped = 0
        """Depth inside a tag that does not pass."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self._open and tag != "figure":
            return
        if self._skipped or tag not in _TAGS:
            self._skipped += 1
            return
        self._open.append(tag)
        written = "".join(f' {_CASED.get(n, n)}="{escaped(value or "")}"' for n, value in attrs if n in _ATTRIBUTES)
        self._parts.append(f"<{tag}{written}>")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open:
            return
        if self._skipped:
            self._skipped -= 1
        elif tag == self._open[-1]:
            self._parts.append(f"</{self._open.pop()}>")
            if not self._open:
                self.figures.append(Markup("".join(self._parts)))
                self._parts = []

    def handle_data(self, data: str) -> None:
        if self._open and not self._skipped:
            self._parts.append(escaped(data))


def drawn(report_path: str, directory: Path) -> list[Markup]:
    """Return the plots below a heading; nothing where there are none."""
    figures = plots_of(report_path, directory)
    said = element("p", "Plots of the capture's own page, which is a file of the workspace and no record.")
    return [element("h3", "Over time"), said, element("div", figures, class_="grid2")] if figures else []
