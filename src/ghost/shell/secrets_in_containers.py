"""Secrets that are known by what they stand in: the data of a Kubernetes Secret, an object called `tokens`.

Whatever the entries are called, their values are secrets. Every look is bounded.
"""

from __future__ import annotations

import re

from ghost.shell.secret_values import MARKER, Counts, is_guid, is_mixed, is_open, looks_random

_REACH = 16_384  # how far from its data a manifest says that it is a Secret
_KIND = re.compile(r"(?m)^[ \t]{0,40}kind:[ \t]+Secret[ \t]*$|\"kind\"\s{0,8}:\s{0,8}\"Secret\"")
_END = re.compile(r"(?m)^---")
_DATA = re.compile(r"(?m)^(?P<indent>[ ]{0,40})(?P<dash>- )?(?:data|stringData):[ \t]*\n")
_ENTRY = re.compile(r"[ ]{1,80}(?P<name>[\w.-]{1,250}):[ \t]+(?P<value>[^\n]+)|(?P<blank>[ ]{1,80}[^\n]*)")
_OBJECT = re.compile(
    r"\"(?P<name>data|stringData|tokens|secrets|passwords|credentials|[a-z]{1,20}-(?:oauth|token))\"\s{0,8}:\s{0,8}\{(?P<entries>[^{}\[\]]{1,16384})\}"
)
_MEMBER = re.compile(r"(?<=:)(?P<before>\s{0,8})\"(?P<value>(?:[^\"\\\n]|\\.)*+)\"")


def redact_containers(text: str, counts: Counts) -> str:
    """Replaces the values of what holds nothing but secrets."""
    if _KIND.search(text) is not None:
        text = _manifests(text, counts)
    return _OBJECT.sub(lambda match: _object(match, counts), text)


def _manifests(text: str, counts: Counts) -> str:
    pieces: list[str] = []
    done = 0
    for data in _DATA.finditer(text):
        if data.start() < done or not _is_of_a_secret(text, data.start(), data.end()):
            continue
        pieces.append(text[done : data.end()])
        block, done = _block(text, data.end(), len(data["indent"]), counts)
        pieces.append(block)
    return "".join([*pieces, text[done:]])


def _is_of_a_secret(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - _REACH) : start]
    after = text[end : end + _REACH]
    before = before[before.rfind("\n---") + 1 :]
    following = _END.search(after)
    return (
        _KIND.search(before) is not None
        or _KIND.search(after[: following.start() if following else _REACH]) is not None
    )


def _block(text: str, start: int, indent: int, counts: Counts) -> tuple[str, int]:
    """The entries below a line, more indented than it, without their values; and where they end."""
    lines: list[str] = []
    of_entry = indent  # the indentation of the entry whose block of lines is being left out
    inside = False
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = text[start:end]
        depth = len(line) - len(line.lstrip(" "))
        if line.strip() and depth <= indent:
            break
        if not (inside and (depth > of_entry or not line.strip())):
            entry = _ENTRY.match(line)
            inside = False
            if entry is not None and entry["name"] is not None and not is_open(entry["value"]):
                inside = entry["value"][0] in "|>"
                of_entry = depth
                counts["api_key"] += 1
                line = line[: entry.start("value")] + MARKER
            lines.append(line + text[end : end + 1])
        start = end + 1
    return "".join(lines), min(start, len(text))


def _object(match: re.Match[str], counts: Counts) -> str:
    of_secret = match["name"] in ("data", "stringData")
    if of_secret and not _is_of_a_secret(match.string, match.start(), match.end()):
        return match[0]

    def replace(member: re.Match[str]) -> str:
        value = member["value"]
        telling = of_secret or looks_random(value) or is_guid(value) or (len(value) >= 8 and is_mixed(value))
        if not value or is_open(value) or not telling:
            return member[0]
        counts["api_key"] += 1
        return f'{member["before"]}"{MARKER}"'

    start, end = match.start("entries") - match.start(), match.end("entries") - match.start()
    return match[0][:start] + _MEMBER.sub(replace, match["entries"]) + match[0][end:]
