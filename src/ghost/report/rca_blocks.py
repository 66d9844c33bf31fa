"""The blocks of a report: what is said, apart from how a form writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Code:
    text: str


@dataclass(frozen=True)
class Strong:
    text: str


Span: TypeAlias = str | Code | Strong
Spans: TypeAlias = tuple[Span, ...]


@dataclass(frozen=True)
class Heading:
    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    spans: Spans


@dataclass(frozen=True)
class Items:
    rows: tuple[Spans, ...]
    numbered: bool = False


@dataclass(frozen=True)
class Command:
    """A command to copy."""

    text: str


@dataclass(frozen=True)
class Table:
    header: tuple[str, ...]
    rows: tuple[tuple[Spans, ...], ...]


@dataclass(frozen=True)
class Quote:
    """Lines of the capture engine's summary."""

    lines: tuple[Spans, ...]


@dataclass(frozen=True)
class PathPicture:
    path: Mapping[str, Any]
    in_words: str


@dataclass(frozen=True)
class CapturePlots:
    """The plots of a capture, where its page still lies."""

    report_path: str


Block: TypeAlias = Heading | Paragraph | Items | Command | Table | Quote | PathPicture | CapturePlots


@dataclass(frozen=True)
class Files:
    """Where a session's records lie, as a reader may open them."""

    shell_audit: str
    tasks: str
    workspace: str


@dataclass(frozen=True)
class Content:
    title: str
    main: tuple[Block, ...]
    annex: tuple[Block, ...]
