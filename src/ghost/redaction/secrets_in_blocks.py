"""Secrets that only the head of their block tells: the names below `ValidCommunities`, `name` in `snmp_communities`.

Heads and members are `[[block]]` of `redaction.toml`. A block is the lines below its head that begin with a
blank, a dash or a quotation mark, or the rest of the line; each line is read once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ghost.redaction.bigram_filter import held
from ghost.redaction.secret_values import MARKER, POLICY, Counts, is_open

_LINES = re.compile(r"(?:(?<!\n)[^\n]{0,2000}+(?:\n|\Z))?(?:[ \t\"-][^\n]{0,2000}+(?:\n|\Z))*+")
_DENT = re.compile(r"[ \t-]*")


@dataclass(frozen=True)
class Block:
    category: str
    anchors: tuple[str, ...]
    head: re.Pattern[str]
    member: re.Pattern[str]
    must: tuple[str, ...]
    must_not: tuple[str, ...]


def redact_blocks(text: str, counts: Counts) -> str:
    """Replaces the members of blocks that hold nothing but secrets."""
    for block in BLOCKS:
        if held(text, block.anchors):
            text = _redacted(text, block, counts)
    return text


def _redacted(text: str, block: Block, counts: Counts) -> str:
    def replace(member: re.Match[str]) -> str:
        group = member.lastgroup or 0
        if is_open(member[group]):
            return member[0]
        counts[block.category] += 1
        start, end = member.start(group) - member.start(), member.end(group) - member.start()
        return member[0][:start] + MARKER + member[0][end:]

    pieces: list[str] = []
    done = 0
    for head in block.head.finditer(text):
        if head.start() < done:
            continue
        lines = _LINES.match(text, head.end())
        assert lines is not None
        end = _end_of_block(text, head, lines.end())
        pieces += [text[done : head.end()], block.member.sub(replace, text[head.end() : end])]
        done = end
    return "".join([*pieces, text[done:]])


def _end_of_block(text: str, head: re.Match[str], last: int) -> int:
    """Where the lines end that are indented as the head is, or further and an item of it."""
    line = text.rfind("\n", 0, head.end() - 1) + 1 if head[0].endswith("\n") else text.rfind("\n", 0, head.end()) + 1
    depth = len(text[line : head.end()]) - len(text[line : head.end()].lstrip(" \t"))
    start = head.end()
    while start < last:
        end = text.find("\n", start, last) + 1 or last
        row = text[start:end]
        own = len(row) - len(row.lstrip(" \t"))
        if head[0].endswith("\n") and (own < depth or (own == depth and row[own : own + 1] not in ("-", '"'))):
            return start
        start = end
    return last


def _load_blocks(policy: dict[str, Any]) -> Iterator[Block]:
    for row in policy["block"]:
        head, member = re.compile(row["head"]), re.compile(row["member"])
        yield Block(row["category"], tuple(row["anchors"]), head, member, tuple(row["must"]), tuple(row["must_not"]))


BLOCKS = tuple(_load_blocks(POLICY))
