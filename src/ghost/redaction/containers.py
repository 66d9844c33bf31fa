"""Secrets known by the structure around them: data of a Kubernetes Secret, an object named `tokens`, a JSON Web Key.

All values in it are secrets, whatever their names. Every search is bounded.
"""

from __future__ import annotations

import re
from bisect import bisect, bisect_left

from ghost.patterns import lazy
from ghost.redaction.bigram_filter import present
from ghost.redaction.secret_values import MARKER, PRIVATE_KEY, Counts, Rule, is_guid, is_mixed, is_open, looks_random

_OF_A_SECRET = Rule("api_key", "kubernetes-secret")
_OF_TOKENS = Rule("api_key", "container-of-secrets")
_OF_A_KEY = Rule("private_key", "json-web-key")
_REACH = 16_384  # how far from its data a manifest says that it is a Secret
_KIND = lazy(r"(?m)^[ \t]{0,40}kind:[ \t]+Secret[ \t]*$|\"kind\"\s{0,8}:\s{0,8}\"Secret\"")
_END = lazy(r"(?m)^---")
_DATA = lazy(r"(?m)^(?P<indent>[ ]{0,40})(?P<dash>- )?(?:data|stringData):[ \t]*\n")
_ENTRY = lazy(r"[ ]{1,80}(?P<name>[\w.-]{1,250}):[ \t]+(?P<value>[^\n]+)|(?P<blank>[ ]{1,80}[^\n]*)")
_OBJECT = lazy(
    r"\"(?P<name>data|stringData|tokens|secrets|passwords|credentials|[a-z]{1,20}-(?:oauth|token))\"\s{0,8}:\s{0,8}\{"
    r"(?P<entries>[^{}\[\]]++)(?:\}|$|(?=\[truncated: ))"
)
_BLOCK = lazy(  # of HCL: `tokens { agent = "X" }`
    r"[tspc](?<![\w.-].)(?:okens?|ecrets?|asswords?|redentials?)(?:[ ]=[ ]|[ =]?)"
    r"\{(?P<entries>[^{}\[\]]{1,4000}+)(?:\}|$)"
)
_HEADS = tuple(
    f"{word}{mark}"
    for word in ("token", "secret", "password", "credential")
    for mark in (" {", "s {", "{", "s{", " = {", "s = {", "={", "s={")
)
_WORD = lazy(r"[\w.-]+")
_ASSIGNED = lazy(r"(?<==)(?P<before>[ \t]{0,8})\"(?P<value>(?:[^\"\\\n]|\\.)*+)\"")
_MEMBER = lazy(r"(?<=:)(?P<before>\s{0,8})\"(?P<value>(?:[^\"\\\n]|\\.)*+)\"")


def redact_containers(text: str, counts: Counts) -> str:
    """Return `text` without the values of structures that hold only secrets."""
    secrets = _Manifests(text)
    if secrets:
        text = _data_blocks(text, secrets, counts)
        secrets = _Manifests(text)
    if "kty" in text:
        text = _keys(text, counts)
    text = _OBJECT.sub(lambda match: _object(match, secrets, counts), text)
    if not present(text, _HEADS):
        return text
    return _BLOCK.sub(lambda match: _members(match, _ASSIGNED, counts, of_secret=False), text)


class _Manifests:
    """Positions of `kind: Secret` and of the ends of YAML documents in a text."""

    def __init__(self, text: str) -> None:
        self._kinds = [kind.start() for kind in _KIND.finditer(text)] if "Secret" in text else []
        self._ends = [end.start() for end in _END.finditer(text)] if self._kinds else []

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def hold(self, position: int) -> bool:
        """Whether a position lies in the manifest of a Secret."""
        document = bisect(self._ends, position)
        first = max(self._ends[document - 1] if document else 0, position - _REACH)
        last = min(self._ends[document] if document < len(self._ends) else position + _REACH, position + _REACH)
        kind = bisect_left(self._kinds, first)
        return kind < len(self._kinds) and self._kinds[kind] <= last


def _data_blocks(text: str, secrets: _Manifests, counts: Counts) -> str:
    pieces: list[str] = []
    done = 0
    for data in _DATA.finditer(text):
        if data.start() < done or not secrets.hold(data.start()):
            continue
        pieces.append(text[done : data.end()])
        block, done = _block(text, data.end(), len(data["indent"]), counts)
        pieces.append(block)
    return "".join([*pieces, text[done:]])


def _block(text: str, start: int, indent: int, counts: Counts) -> tuple[str, int]:
    """Return the entries indented below a line, without their values, and the position where they end."""
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
                counts[_OF_A_SECRET] += 1
                line = line[: entry.start("value")] + MARKER
            lines.append(line + text[end : end + 1])
        start = end + 1
    return "".join(lines), min(start, len(text))


def _object(match: re.Match[str], secrets: _Manifests, counts: Counts) -> str:
    of_secret = match["name"] in ("data", "stringData")
    if of_secret and not secrets.hold(match.start()):
        return match[0]
    return _members(match, _MEMBER, counts, of_secret=of_secret)


def _members(match: re.Match[str], members: re.Pattern[str], counts: Counts, *, of_secret: bool) -> str:
    def replace(member: re.Match[str]) -> str:
        value = member["value"]
        chosen = len(value) >= 8 and is_mixed(value) and (members is _MEMBER or _WORD.fullmatch(value) is None)
        telling = of_secret or looks_random(value) or is_guid(value) or chosen
        if not value or is_open(value) or not telling:
            return member[0]
        counts[_OF_A_SECRET if of_secret else _OF_TOKENS] += 1
        return f'{member["before"]}"{MARKER}"'

    start, end = match.start("entries") - match.start(), match.end("entries") - match.start()
    return match[0][:start] + members.sub(replace, match["entries"]) + match[0][end:]


# JSON Web Keys (RFC 7517): what is private of a key are members of one and two letters (RFC 7518, section 6).

_QUOTE = r"(?:\\{0,3}[\"'])?"
_MEMBER_OF_KEY = rf"(?<![\w-]){_QUOTE}(?:@){_QUOTE}[ \t]{{0,8}}(?:=>|[:=])\s{{0,8}}{_QUOTE}"
_KEY_TYPE = lazy(_MEMBER_OF_KEY.replace("@", "kty") + r"(?:RSA|EC|OKP|oct|AKP)\b")
_PRIVATE_MEMBER = lazy(_MEMBER_OF_KEY.replace("@", "d|p|q|dp|dq|qi|k|priv") + r"(?P<value>[A-Za-z0-9_+/-]{16,}+)")
_KEY_REACH = 8_192


def _keys(text: str, counts: Counts) -> str:
    """Return `text` without the private members of its JSON Web Keys."""
    pieces: list[str] = []
    done = 0
    for kind in _KEY_TYPE.finditer(text):
        if kind.start() < done:
            continue
        first = max(done, kind.start() - _KEY_REACH)
        start = max(first, text.rfind("{", first, kind.start()) + 1)
        end = min(len(text), kind.end() + _KEY_REACH)
        closing = text.find("}", kind.end(), end)
        end = closing if closing >= 0 else end
        pieces += [text[done:start], _without_private_members(text[start:end], counts)]
        done = end
    return "".join([*pieces, text[done:]])


def _without_private_members(members: str, counts: Counts) -> str:
    def replace(member: re.Match[str]) -> str:
        counts[_OF_A_KEY] += 1
        return member[0][: member.start("value") - member.start()] + PRIVATE_KEY

    return _PRIVATE_MEMBER.sub(replace, members)
