"""Takes secrets out of text before anybody, or anything, reads it.

A secret is known by the name beside it, by its shape, or, beside a name that is not always a secret's, by looking
random; also where it is wrapped in base64 or URL encoding. What is not a secret stays: addresses, GUIDs, hashes, etags.
Which names and shapes is in `policy/redaction.toml`. Linear in the length of the text: no pattern may backtrack
over more than a bounded stretch.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import tomllib
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

MARKER = "[REDACTED]"
CONNECTION_STRING = "[REDACTED_CONNECTION_STRING]"
PRIVATE_KEY = "[REDACTED_PRIVATE_KEY]"

_MAX_PASSES = 4
_MAX_WRAPPINGS = 2

Counts = Counter[str]


def redact(text: str) -> tuple[str, dict[str, Any]]:
    """`text` without its secrets, colour codes and invisible characters, and what was found.

    Redacting the result again changes nothing: passes are made until one finds nothing.
    """
    counts: Counts = Counter()
    text = plain(text)
    for _ in range(_MAX_PASSES):
        found: Counts = Counter()
        text = _one_pass(text, found)
        if not found:
            break
        counts += found
    return text, {
        "redactions_applied": bool(counts),
        "redaction_count": counts.total(),
        "redaction_categories": sorted(counts),
    }


def plain(text: str) -> str:
    """`text` without what a terminal would obey and what nobody can see: a secret may be split by either."""
    if text.isascii() and not _CONTROL.search(text):
        return text
    text = _ANSI.sub("", text)
    text = _OVERSTRUCK.sub("", text)
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _one_pass(text: str, counts: Counts, depth: int = 0) -> str:
    text = _private_keys(text, counts)
    text = _connection_strings(text, counts)
    text = _shapes(text, counts)
    text = _named_values(text, counts)
    if depth < _MAX_WRAPPINGS:
        text = _wrapped(text, counts, depth)
    return text


# Private keys: whole blocks, and blocks whose beginning or end was cut.

_PEM_EDGE = re.compile(r"-----(BEGIN|END) (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-{1,5}|PuTTY-User-Key-File-\d")
_PEM_BODY = re.compile(
    r"(?:\\[nrt]|\s|[A-Za-z0-9+/=_-]{16,}+|[A-Za-z0-9+/]{1,76}={1,2}"
    r"|(?:Proc-Type|DEK-Info|Version|Comment|Private-Lines|Public-Lines|Private-MAC|Encryption|Key-Derivation)\b[^\n]{0,200})*+"
)
_PEM_LINE_REST = re.compile(r"[^\n\"'<]{0,16384}")
_PEM_REACH = 32_768


def _private_keys(text: str, counts: Counts) -> str:
    if "PRIVATE KEY" not in text and "PuTTY-User-Key" not in text:
        return text
    pieces: list[str] = []
    done = 0
    for edge in _PEM_EDGE.finditer(text):
        if edge.start() < done:
            continue
        if edge[1] == "END":
            start = _body_before(text, done, edge.start())
            end = edge.end()
        else:
            start, end = edge.start(), _end_of_block(text, edge.end())
        pieces += [text[done:start], PRIVATE_KEY]
        counts["private_key"] += 1
        done = end
    return "".join([*pieces, text[done:]])


def _end_of_block(text: str, start: int) -> int:
    """Where the block that begins before `start` ends: after its END line, or where its base64 stops."""
    closing = _PEM_EDGE.search(text, start, start + _PEM_REACH)
    if closing is not None and closing[1] == "END":
        return closing.end()
    body = _PEM_BODY.match(text, start, start + _PEM_REACH)
    assert body is not None
    end = body.end()
    last = re.compile(r"[A-Za-z0-9+/=]+").match(text, end)  # the last line of a cut block may be short
    return last.end() if last is not None and text[end - 1 : end] in ("\n", "n") and end > start + 60 else end


def _body_before(text: str, earliest: int, end: int) -> int:
    """Where the base64 lines before a lone END line begin."""
    start = end
    while start > earliest:
        line_end = start - 1 if text[start - 1] == "\n" else start
        line_start = text.rfind("\n", max(earliest, line_end - 4096), line_end) + 1
        line = text[max(line_start, earliest) : line_end]
        if not re.fullmatch(r"[ \t>|\"']*(?:[A-Za-z0-9+/=]|\\[nr])*[ \t]*", line) or not line.strip():
            break
        start = max(line_start, earliest)
        if line_start <= earliest or end - start > _PEM_REACH:
            break
    return start


# Connection strings: a run of `key=value;` with a secret among the keys goes whole.

_CONNECTION_RUN = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:Data Source|User ID|[A-Za-z]{1,40}+)[ ]?(?:=|\\u003[dD])[^;\"'\r\n<>]{0,1000}+;[ ]?){1,40}+"
    r"(?:[A-Za-z][A-Za-z ]{0,40}+(?:=|\\u003[dD])[^;\"'\s<>]{0,1000}+)?"
)
_CONNECTION_SEGMENT = re.compile(r"(?:^|;)\s*([A-Za-z ]{1,41})\s?(?:=|\\u003[dD])")
_CONNECTION_SECRETS = {"accountkey", "sharedaccesskey", "sharedaccesssignature", "password", "pwd", "sharedsecretvalue"}
_REDIS_RUN = re.compile(
    r"(?<![\w.-])[\w.-]{1,253}:\d{1,5},(?:[\w-]{1,40}=[^,\s\"']{0,400},){0,10}password=[^,\s\"'\[][^\s\"']*", re.I
)


def _connection_strings(text: str, counts: Counts) -> str:
    def replace(match: re.Match[str]) -> str:
        names = {name.replace(" ", "").lower() for name in _CONNECTION_SEGMENT.findall(match[0])}
        if len(names) < 2 or not names & _CONNECTION_SECRETS:
            return match[0]
        counts["connection_string"] += 1
        return CONNECTION_STRING

    if ";" in text:
        text = _CONNECTION_RUN.sub(replace, text)
    if ",password=" in text.lower():
        text, number = _REDIS_RUN.subn(CONNECTION_STRING, text)
        counts["connection_string"] += number
    return text


# Shapes


@dataclass(frozen=True)
class Shape:
    category: str
    pattern: re.Pattern[str]
    anchors: tuple[str, ...]
    ignore_case: bool
    marker: str
    must: tuple[str, ...]
    must_not: tuple[str, ...]


def _shapes(text: str, counts: Counts) -> str:
    lowered = text.lower()
    for shape in SHAPES:
        if any(anchor in (lowered if shape.ignore_case else text) for anchor in shape.anchors):
            text = shape.pattern.sub(_replacement(shape, counts), text)
    return text


def _replacement(shape: Shape, counts: Counts) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        name = "secret" if shape.pattern.groupindex and match["secret"] is not None else 0
        start, end = match.span(name)
        if _is_open(match[name]):
            return match[0]
        counts[shape.category] += 1
        whole = match[0]
        if match[0][:6].lower() == "bearer":
            return f"Bearer {MARKER}"
        return whole[: start - match.start()] + shape.marker + whole[end - match.start() :]

    return replace


# Values beside a name

_CORE = re.compile(
    "pass|pwd|secret|token|key|psk|credential|community|cookie|signature|auth|connectionstring|connection_string"
    "|connection-string|connection string|connstr|session|azurewebjobsstorage|assertion|jwt|userpw|nonce|salt|code|sas"
    "|userdata|customdata|pin|sid|login"
)
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-. ")
_NAME_REACH = 48
_REST_OF_NAME = re.compile(r"[A-Za-z0-9_.-]{0,40}+")

_SEPARATOR = r"(?:\\{0,7}[\"'])?(?:\[[\"']?\w{0,20}[\"']?\])?[ \t]{0,40}(?:=>|:=|==?|:|%3[dDaA]|\\u003[dD])[ \t]{0,40}(?:\n[ \t]{0,40}(?=[\"\[]))?"
_QUOTED = (
    r"\"(?P<double>(?:[^\"\\\n]|\\.)*+)(?:\"|(?=\n)|$)"
    r"|(?P<edge>\\{1,7}\")(?P<escaped>(?:(?!\\{1,7}\")[^\n]|\\{2,7}\"(?![,}\]:\s]))*+)(?:\\{1,7}\"|$)"
    r"|'(?P<single>(?:[^'\\\n]|\\.)*+)(?:'|(?=\n)|$)"
)
_LIST = r"\[(?P<list>[^\[\]{}]{0,8192}+)(?:\]|$)"
_BLOCK = r"[|>][+-]?[ \t]*\n(?P<block>(?P<indent>[ \t]+)[^\n]+(?:\n(?P=indent)[^\n]*)*)"
_BARE = r"(?P<bare>(?:[^\s\"'<>;&,(){}\[\]\\]|[;&,](?![\s]|$|[A-Za-z_][\w .%-]{0,30}=)|[(){}\[\]](?![\s,;)}\]\"']|$)|\\(?![nrt\"'u]))++)"
_CONTINUED = r"(?P<continued>(?:\\?\n[ \t]{0,40}(?=[A-Za-z0-9+/]*[0-9+/=])[A-Za-z0-9+/]{16,}+={0,2}(?=\s|$)|(?<=[A-Za-z0-9+/]{40})\n[ \t]{0,40}[A-Za-z0-9+/]{1,76}={1,2}(?=\s|$))*)"
_ASSIGNMENT = re.compile(f"{_SEPARATOR}(?:{_QUOTED}|{_LIST}|{_BLOCK}|{_BARE}{_CONTINUED})")
_JSON_SCALAR = re.compile(r"\"[ \t]{0,40}:[ \t]{0,40}(?P<bare>[A-Za-z0-9_.+-]+)")
_REST_OF_LINE = re.compile(r"[ \t]*[:=][ \t]*(?P<bare>[^\s\"'\[{(|>&;,\\][^\n\"'\\]*)")
_LINE_START = re.compile(r"(?:^|\n)[ \t#]*(?:-[ \t]+)?(?:export[ \t]+|set[ \t]+|env[ \t]+|setx[ \t]+)?$", re.I)
_OPTION_VALUE = re.compile(rf"[ \t]+(?:{_QUOTED}|(?P<bare>[^\s\"'-][^\s\"']*))")
_ELEMENT = re.compile(r"[^<>]{0,200}>(?P<bare>[^<>]+)(?=<|$)")
_HEADER_NAMES = frozenset({"cookie", "setcookie"})


def _named_values(text: str, counts: Counts) -> str:
    """Replaces the values that stand beside a secret's name, however the two are written together."""
    text = _PAIR.sub(lambda match: _pair(match, counts), text)
    lowered = _lower(text)
    pieces: list[str] = []
    done = 0
    for core in _CORE.finditer(lowered):
        if core.start() < done:
            continue
        rest = _REST_OF_NAME.match(text, core.end())
        assert rest is not None
        found = _value_beside(text, core.start(), rest.end(), done)
        if found is None:
            continue
        start, end, category, marker = found
        pieces += [text[done:start], marker]
        counts[category] += 1
        done = end
    return "".join([*pieces, text[done:]])


def _value_beside(text: str, core: int, name_end: int, done: int) -> tuple[int, int, str, str] | None:
    """Where the value of the name around `core` is, with its category and what replaces it; None for no secret."""
    name_start = core
    while name_start > max(done, core - _NAME_REACH) and text[name_start - 1] in _NAME_CHARACTERS:
        name_start -= 1
    name = text[name_start:name_end]
    kind = secret_kind(name)
    if kind is None:
        return None
    category, certain = kind
    before = text[max(0, name_start - 2) : name_start]
    words = name.strip().split(" ")
    if words[-1].startswith("--") or (before.endswith("--")):
        match = _OPTION_VALUE.match(text, name_end) or _ASSIGNMENT.match(text, name_end)
    elif before.endswith("<") and (element := _ELEMENT.match(text, name_end)) is not None:
        match = element
    elif (
        (certain or _normal(name) in _HEADER_NAMES)
        and (line := _REST_OF_LINE.match(text, name_end)) is not None
        and _starts_line(text, name_start + len(name) - len(name.lstrip()), name)
    ):
        match = line
    else:
        match = _ASSIGNMENT.match(text, name_end)
    if match is None:
        return None
    if before.endswith('"') and text.startswith('"', name_end) and match.re.groupindex.get("bare") and match["bare"]:
        match = _JSON_SCALAR.match(text, name_end)  # JSON: no more than the number or word, so that it stays JSON
        if match is None:
            return None
    for group in ("double", "escaped", "single", "list", "block", "bare"):
        if match.re.groupindex.get(group) and match[group] is not None:
            break
    else:
        return None
    value = match[group]
    if group == "list":
        return _list_value(match, category, certain)
    if not value.strip() or _is_open(value) or (not certain and not looks_random(value)):
        return None
    if _normal(name).endswith("pwd") and value.startswith("/"):
        return None  # the working directory
    start, end = match.span(group)
    if group == "bare" and match.re.groupindex.get("continued"):
        end = match.end("continued")
    quote_number = group == "bare" and before.endswith('"') and text[name_end : name_end + 1] == '"'
    marker = PRIVATE_KEY if "PRIVATE KEY" in value else MARKER
    return start, end, category, f'"{marker}"' if quote_number else marker


def _list_value(match: re.Match[str], category: str, certain: bool) -> tuple[int, int, str, str] | None:
    strings = [s for s in re.findall(r"[^\s,\"']+", match["list"]) if not _is_open(s)]
    if not strings or not (certain or any(map(looks_random, strings))):
        return None
    start, end = match.span("list")
    return start, end, category, f'"{MARKER}"'


def _starts_line(text: str, name_start: int, name: str) -> bool:
    """Whether the name stands first on its line, but for an indentation, a list's dash or `export`."""
    line_start = text.rfind("\n", max(0, name_start - 80), name_start) + 1
    if line_start == 0 and name_start > 80:
        return False
    before = text[line_start:name_start]
    return " " not in name.strip() and _LINE_START.search("\n" + before) is not None


_PAIR = re.compile(
    r"\"(?:name|key|keyName|displayName)\"\s{0,40}:\s{0,40}\"(?P<name>[^\"\\\n]{1,200})\"(?P<between>[^{}]{0,400}?)"
    r"\"value\"\s{0,40}:\s{0,40}\"(?P<value>(?:[^\"\\\n]|\\.)*+)(?:\"|$)"
    r"|\"value\"\s{0,40}:\s{0,40}\"(?P<value2>(?:[^\"\\\n]|\\.)*+)\"(?P<between2>[^{}\"]{0,100})"
    r"\"(?:name|key|keyName)\"\s{0,40}:\s{0,40}\"(?P<name2>[^\"\\\n]{1,200})\""
)


def _pair(match: re.Match[str], counts: Counts) -> str:
    """`{"name": "DB_PASSWORD", "value": "..."}` and `{"keyName": "key1", "value": "..."}`."""
    group = "value" if match["value"] is not None else "value2"
    name, value = match["name"] or match["name2"], match[group]
    kind = ("storage_key", True) if '"keyName"' in match[0] else secret_kind(name)
    if kind is None or not value.strip() or _is_open(value) or not (kind[1] or looks_random(value)):
        return match[0]
    counts[kind[0]] += 1
    start, end = match.start(group) - match.start(), match.end(group) - match.start()
    return match[0][:start] + MARKER + match[0][end:]


@lru_cache(maxsize=4096)
def secret_kind(name: str) -> tuple[str, bool] | None:
    """What stands beside a name: its category and whether it is a secret for certain; None where it is none."""
    words = name.split(" ")
    for count in (3, 2, 1):  # `primary key` is a name of two words; in `the access key` only two are the name
        normal = _normal(" ".join(words[-count:]))
        if normal.endswith(_NEVER):
            return None
        for category, endings in _CERTAIN.items():
            if normal.endswith(endings):
                return category, True
    last = _normal(words[-1])
    for category, endings in _LIKELY.items():
        if last.endswith(endings):
            return category, False
    return None


def _normal(name: str) -> str:
    normal = re.sub(r"[ _.-]", "", name).lower()
    shorter = normal.rstrip("0123456789")
    if shorter.endswith(_SUFFIXES) and not shorter.endswith(("connectionstring", "communitystring")):
        for suffix in _SUFFIXES:
            cut = shorter.removesuffix(suffix)
            if cut != shorter and cut.endswith(_ALL_NAMES):
                return cut
    return shorter or normal


_GUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def looks_random(value: str) -> bool:
    """Whether a value looks made by chance rather than chosen by a person: mixed, dense, no GUID, no path, no name."""
    value = value.strip().strip("\"'")
    if len(value) < 16 or len(value) > 8192 or not re.fullmatch(r"[A-Za-z0-9+/=_.~%-]+", value):
        return False
    if _GUID.fullmatch(value) or value.startswith(("/", "http")) or value.count("/") > len(value) / 12:
        return False
    kinds = sum(any(test(c) for c in value) for test in (str.islower, str.isupper, str.isdigit))
    if re.fullmatch(r"[0-9a-f]+|[0-9A-F]+", value):
        return len(value) >= 20 and kinds >= 2
    return kinds == 3 and _entropy(value) >= 3.2


def _entropy(value: str) -> float:
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())


def _is_open(value: str) -> bool:
    """Whether a value says that there is no secret, or that it was taken out already."""
    value = value.strip().strip("\"'").rstrip(",;")
    if value.lower() in _OPEN or set(value) <= {"*", "x", "X", "•"}:
        return True
    if value.startswith("[REDACTED") or value.startswith("<") and value.endswith(">"):
        return re.fullmatch(r"\[REDACTED[A-Z_]*\][\])}]*|<[^<>]*>", value) is not None
    return re.fullmatch(r"\$\{?[A-Za-z_]\w*\}?|%[A-Za-z_]\w*%|\$\(.*\)|\{\{.*\}\}", value) is not None


# Wrapped: base64 and URL encoding are looked through.

_BASE64_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}+={0,2}")
_URL_ENCODED = re.compile(r"(?<![^\s\"'<>])(?=[^\s\"'<>%]{0,4096}%)[^\s\"'<>]++")


def _wrapped(text: str, counts: Counts, depth: int) -> str:
    text = _BASE64_RUN.sub(lambda match: _look_into_base64(match, counts, depth), text)
    if "%" in text:
        text = _URL_ENCODED.sub(lambda match: _look_into_url(match[0], counts, depth), text)
    return text


def _look_into_base64(match: re.Match[str], counts: Counts, depth: int) -> str:
    run = match[0]
    inner = _decoded(run)
    if inner is None:
        return run
    preceding = match.string[max(0, match.start() - 8) : match.start()].lower()
    found: Counts = Counter()
    if preceding.rstrip().endswith("basic") and ":" in inner:
        found["password"] += 1
    else:
        _one_pass(inner, found, depth + 1)
    if not found:
        return run
    counts.update(dict.fromkeys(found, 1))
    return MARKER


def _decoded(run: str) -> str | None:
    """The text that a base64 run stands for; None where it stands for none."""
    content = run.rstrip("=").replace("-", "+").replace("_", "/")[: 65_536 * 4]
    content = content[: len(content) - (len(content) % 4 == 1)]
    try:
        start = base64.b64decode(content[:24] if len(content) >= 24 else content + "=" * (-len(content) % 4))
        if not _is_text(start):
            return None
        raw = base64.b64decode(content + "=" * (-len(content) % 4))
    except (binascii.Error, ValueError):
        return None
    return raw.replace(b"\0", b"").decode("ascii", "replace") if _is_text(raw) else None


def _is_text(raw: bytes) -> bool:
    if raw[1::2].count(0) > len(raw) // 3:
        raw = raw[0::2]  # UTF-16, as PowerShell encodes commands
    return bool(raw) and all(32 <= byte < 127 or byte in b"\r\n\t\0" for byte in raw)


def _look_into_url(run: str, counts: Counts, depth: int) -> str:
    inner = urllib.parse.unquote(run)
    if inner == run:
        return run
    found: Counts = Counter()
    redacted = _one_pass(inner, found, depth + 1)
    if not found:
        return run
    counts += found
    return redacted


# Policy


def _lower(text: str) -> str:
    """Lower case, character by character: offsets stay."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def _load_shapes(policy: dict[str, Any]) -> Iterator[Shape]:
    for row in policy["shape"]:
        ignore_case = row.get("ignore_case", False)
        yield Shape(
            category=row["category"],
            pattern=re.compile(row["pattern"], re.IGNORECASE if ignore_case else 0),
            anchors=tuple(row["anchors"]),
            ignore_case=ignore_case,
            marker=row.get("marker", MARKER),
            must=tuple(row["must"]),
            must_not=tuple(row["must_not"]),
        )


_POLICY = tomllib.loads((Path(__file__).parent / "policy" / "redaction.toml").read_text(encoding="utf-8"))
SHAPES = tuple(_load_shapes(_POLICY))
_CERTAIN = {category: tuple(names) for category, names in _POLICY["names"]["certain"].items()}
_LIKELY = {category: tuple(names) for category, names in _POLICY["names"]["likely"].items()}
_NEVER = tuple(_POLICY["names"]["never"]["names"])
_SUFFIXES = tuple(_POLICY["names"]["suffixes"])
_ALL_NAMES = tuple(name for table in (_CERTAIN, _LIKELY) for names in table.values() for name in names)
_OPEN = frozenset(_POLICY["values"]["open"])

_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]?|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]*+(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[PX^_][^\x1b\x9c\n]*+(?:\x1b\\|\x9c)?|\x1b[ -/]*+[0-~]?"
)
_OVERSTRUCK = re.compile(r".\x08")
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
