"""Position and notation of the value next to a name.

`[places]` of `redaction.toml` lists separators and wrappers; this module builds the patterns. A value may be as long as
the text, or have no end. So each is matched within a short reach first, and further only while it is accepted: see
`extend_reach`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ghost.patterns import lazy
from ghost.redaction.secret_names import Name
from ghost.redaction.secret_values import POLICY, REFERENCE, any_of

_PLACES: dict[str, list[str]] = POLICY["places"]


_BLANK = r"[ \t]{0,40}"
_CLOSERS = r"(?:\\{0,15}[\"'`]|\]|\)(?=[ \t\xa0]{0,4}[:=])|\*{1,3}|</b>){0,2}"  # what may close around a name
_SUBSCRIPT = r"(?:\[[\"']?\w{0,20}[\"']?\])?"
_TYPE = rf"(?:{_BLANK}:[ ]?[A-Za-z][\w.<>?]{{0,40}}(?:\[\])?(?=[ ]?=[^=>])|[ ]?\([^(),\n]{{1,40}}\)(?=[ ]?[:=]))?"
_LEADERS = r"(?:[ \t]?(?:\.|_|·|…)){3,80}+[ \t]{0,40}:?"  # `Password . . . . : X`
_NO_PATH = (
    r"(?!::(?:[A-Za-z_]\w{0,60}(?:::|[(;<])|(?:[a-z_]{1,40}|(?:[A-Z][a-z]{1,20}){1,4})(?![\w=+/-])))"  # of Rust, C++
)
_MARK = (
    rf"(?:{_LEADERS}|[ \t=]{{1,4}}\"?[<$]\((?:echo|printf)[ ](?:-[neE]{{1,3}}[ ])?(?:'%s(?:\\n)?'[ ])?"
    rf"|(?<=[\"'])\s{{0,40}}(?:=>|[:=])\s{{0,40}}(?=[\"'])|{_BLANK}{_NO_PATH}(?:{any_of(_PLACES['separators'])})"
    r"|[ ]?!==?[ ]?(?=[\"'])|[ ]{0,4}\((?=[\"'])|(?<=\w)[ ]\.(?=[ ]\"))"
)
_OPENERS = (  # what may open around a value
    rf"(?:{_BLANK}(?:\*{{1,3}}[ \t]{{1,4}}|!!\w{{1,20}}[ ]|@(?=[\"'])"
    rf"|(?P<array>\(\s{{0,40}}(?=[\"']))|(?:{any_of(_PLACES['wrappers'])})"
    rf"\(?{_BLANK}(?=\\?[\"'])|(?:new[ ])?[A-Za-z_.:]{{0,30}}Secret\w{{0,10}}\((?=[\"'])"
    r"|\[\[(?=[^\s\[\]]{1,400}\]\]))){0,2}"
)
_BREAK = r"(?:\n[ \t]{0,40}(?=[\"\[]))?"
SEPARATOR = rf"{_CLOSERS}{_SUBSCRIPT}{_TYPE}{_MARK}{_OPENERS}{_BLANK}{_BREAK}"

_QUOTED = (
    r"\"\"\"\s{0,40}(?P<triple>[^\"\s](?:[^\"]|\"(?!\"\")){0,4000}+)(?:\"\"\")?"
    r"|'''\s{0,40}(?P<tripled>[^'\s](?:[^']|'(?!'')){0,4000}+)(?:''')?|[NUubBrEf]?\"(?P<double>(?:[^\"\\\n]|\\.)*+)(?:\"|(?=\n)|$)"
    r"|(?P<edge>\\{1,15}+)\"(?P<escaped>(?:[^\\\"\n]|(?P=edge)\\++\"|\\++(?!\"))*+)(?:(?P=edge)\")?"
    r"|[NUubBrEf]?'(?P<single>(?:[^'\\\n]|'\\''|\\.|'')*+)(?:'|(?=\n)|$)"
)
_LIST = r"\[(?P<list>(?:[^\[\]{}\"]++|\"(?:[^\"\\\n]|\\.)*+(?:\"|$))*+)(?:\]|$)"
_BLOCK = r"[|>][+-]?[ \t]*\n(?P<block>(?P<indent>[ \t]+)[^\n]+(?:\n(?P=indent)[^\n]*)*)"
_ITEMS = r"\n(?P<items>(?P<dent>[ \t]{0,40})-[ ][^\n:{]{1,400}(?=\n|$)(?:\n(?P=dent)-[ ][^\n:{]{1,400}(?=\n|$))*+)"
_BARE = (  # a `;`, `&` or `,` ends a value only where another name follows, a bracket only where nothing does
    r"(?P<bare>(?:[^\s\"'<>;&,(){}\[\]\\]|;(?!\s|$|[A-Za-z_][\w .%-]{0,30}=)|[&,](?!\s|$|[A-Za-z_][\w.%-]{0,30}=)"
    r"|[(){}\[\]](?![\s,;)}\]\"']|$)|\\(?![nrt\"'u]))++)"
)
_JOINED = r"(?:[+.&~]|\.\.|<>|\|\|)"
_MORE = (  # strings that belong to the same value: `"abc" + "def"`, also on the next line, and without an operator
    rf"(?P<more>(?:(?<=[\"'])(?:[ \t]{{0,8}}{_JOINED}[ \t]{{0,8}}\n?|[ \t]{{0,8}}\\?\n"
    r"|[ ](?=[\"'][^\"'\n]{1,400}[\"'][ \t]*[;)\n])|(?(array)[ \t\n]{1,40}(?=[\"'])|(?!)))"  # an array of a shell
    r"[ \t]{0,40}(?:\"[^\"\n]{1,400}\"|'[^'\n]{1,400}')(?![ \t]{0,8}[:=])){1,400}+)?"
)
_ALONE = r"(?=[ \t]{0,8}(?:[\r\n\"']|$))"
_CONTINUED = (  # base64 that was wrapped: nothing else stands on its lines
    r"(?P<continued>(?:\\?\n[ \t]{0,40}(?=[A-Za-z0-9+/]*[0-9+/=])[A-Za-z0-9+/]{16,}+={0,2}"
    + _ALONE
    + r"|(?<=[A-Za-z0-9+/]{40})\n[ \t]{0,40}(?:[A-Za-z0-9+/]{1,76}={1,2}|[A-Za-z0-9+/]{12,76})"
    + _ALONE
    # and of the kind that tokens are written in: whole lines, and what is left of it on the last
    + r"|(?<=[A-Za-z0-9_.-]{40})\r?\n[ \t]{0,16}(?=[a-z0-9_.-]{0,60}[A-Z])(?=[A-Z0-9_.-]{0,60}[a-z])"
    + r"(?:(?=[A-Za-z_.-]{0,60}[0-9])[A-Za-z0-9_.-]{40,}+|[A-Za-z0-9_-]{4,39}(?<![a-z]{8}))"
    + _ALONE
    + ")*)"
)
_FOLDED = (  # a string that ends some lines further down, where nothing but its rest stands
    r"(?P<folded>(?(double)(?<!\")|(?(single)(?<!')|(?!)))"
    r"(?:\n[ \t]{0,40}(?:[^\"'\n\\{}\[\]:]|:(?![ \t])){1,160}+){1,3}"
    r"(?=(?(double)\"|')[ \t]{0,8}(?:[,}\]);]|\n|$)))?"
)
_ASSIGNMENT = lazy(f"{SEPARATOR}(?:{_QUOTED}|{_LIST}|{_BLOCK}|{_ITEMS}|{_BARE}){_MORE}{_CONTINUED}{_FOLDED}")
_JSON_SCALAR = lazy(r"\"[ \t]{0,40}:[ \t]{0,40}(?P<bare>[A-Za-z0-9_.+-]+)")
_TWO_COLUMNS = lazy(  # and nothing else on the line; no header, and after a single blank no ordinary word
    r"(?:[ ]{2,40}|\t{1,8})(?P<bare>(?![A-Z][A-Za-z]{0,40}\s)[^\s:=|\"'-][^\s\"']{2,400})[ \t]{0,8}"
    r"(?=\n(?![ \t]{0,8}--)|$)"
    r"|[ ](?P<single>(?=[^\s\"'=]{0,400}[0-9!@#$%^&*])[^\s:=|\"'-][^\s\"'=]{3,400})[ \t]{0,8}(?=\n|$)"
)
_NEXT_LINE = lazy(
    r"[\"']?[ ]?[:=?][ \t]{0,8}\n[ \t]{0,40}(?![A-Z][a-z]{1,40}[.!][ \t]{0,8}(?:\n|$))"
    r"(?P<bare>[^\s:=#\"'<>|-][^\s:=]{2,400})[ \t]{0,8}(?=\n|$)"
)
# What begins the next thing on a line: another setting, or the message of a program (`curl: (28) ...`).
_ANOTHER = r"(?:[A-Za-z_][\w.-]{0,40}=(?!=)|[a-z][\w.-]{0,20}: ?[\w(])"
_BEFORE_REST = r"[ \t]*[:=][ \t]*(?![|>][+-]?[ \t]*\n|>[ ]|\(\s{0,40}[\"']|\*\*[ ]|!!\w|::)"
_FIRST_OF_REST = r"(?:[^\s\"'\[{\\]|\{[{%])"
_REST_OF_LINE = lazy(
    rf"{_BEFORE_REST}(?P<bare>{_FIRST_OF_REST}(?:[^\n, \t]|(?!,?[ \t]{{1,4}}{_ANOTHER})[, \t])*+){_CONTINUED}"
)
# A cookie holds `name=value` itself. Behind that of `Set-Cookie` only attributes may follow (RFC 6265, 4.1).
_ATTRIBUTE = (
    r"[ ]?(?i:(?:path|domain)=[^;,\s\"']{0,200}|expires=[A-Z0-9 ,:-]{0,40}|max-age=-?\d{1,10}|secure|httponly"
    r"|samesite=[a-z]{1,10}|partitioned|priority=[a-z]{1,10})"
)
_COOKIE_ATTRIBUTES = rf"(?:;{_ATTRIBUTE}){{1,10}};?[ \t]*(?=\r?\n|[\"']|$)"
_REST_OF_HEADER = lazy(rf"{_BEFORE_REST}(?P<bare>{_FIRST_OF_REST}(?:[^\n;]|(?!{_COOKIE_ATTRIBUTES});)*+){_CONTINUED}")
_SETS_COOKIE = ("Set-Cookie", "set-cookie", "SET-COOKIE")
_REST_OF_REQUEST_COOKIE = lazy(rf"{_BEFORE_REST}(?P<bare>{_FIRST_OF_REST}[^\n]*){_CONTINUED}")
_REST_OF_STRING = lazy(r"[ ]?:[ ](?P<bare>[^\s\"'\[{\\|>!&][^\"\\\n,;]{0,400})(?=[\"\\\n,;]|$)")
_OPTION_VALUE = lazy(
    r"(?:[ \t]+(?:\\\n[ \t]*)?|[\"'],?[ \t]{0,4}(?=[\"'])|,[ ]?(?=\w)|[\"']?[ \t]{0,8}\n[ \t]{0,40}-[ ]"
    r"|[\"'],[ \t]{0,8}\n[ \t]{0,40}(?=[\"']))"
    rf"(?:{_QUOTED}|(?P<bare>[^\s\"'-][^\s\"']*))"
)
_ELEMENT = lazy(
    r"(?![ \t]{0,4}=)[^<>]{0,200}>(?:\s{0,80}<!\[CDATA\[\s{0,80})?(?P<bare>[^<>\n](?:(?!\]\]>)[^<>\n])*+|[^<>]++(?=</))"
)
_VALUE_GROUPS = ("triple", "tripled", "double", "escaped", "single", "list", "items", "block", "bare")
_RESTS = ("continued", "folded")

Found = tuple[int, int, str]
"""Where a secret begins and ends, and what replaces it."""

_FIRST_REACH = 2_048
_DOUBTED = 4_096
_LOOKED_BEHIND = 768  # no pattern looks further than this behind what it takes


def extend_reach(start: int, limit: int, find: Callable[[int], Found | None]) -> Found | None:
    """Return what `find(reach)` finds, with the reach doubled while the match extends to its limit.

    A value that was accepted for more than 4,096 characters and then fails to match is taken as far as it matched:
    otherwise each of many names could read the whole rest. This keeps redaction linear in the length of the text.
    """
    reach, found = _FIRST_REACH, None
    while True:
        end = min(start + reach, limit)
        further = find(end)
        if reach > _DOUBTED and found is not None and (further is None or further[1] < found[1]):
            return found
        found = further
        if found is None or end == limit or found[1] < end - _LOOKED_BEHIND:
            return found
        reach *= 2


_REFERENCE = lazy(
    rf"(?:{_CLOSERS}{_BLANK}[:=]{_BLANK}|[ \t]{{1,8}})\\?[\"']?{REFERENCE}"
    r"\\?[\"']?[ \t]{0,8}(?=[,;)}\]]|&(?=[\s&]|$|[\w.%-]{1,30}=)|\\n|[ \t](?:#|->)|\n|$)"
)


_VARIABLE = lazy(r"=\"?\$(?:[A-Za-z_]\w{0,60}|\{[A-Za-z_]\w{0,60}\}|\d)\"?(?=[ ][a-z./-]|[ ]?(?:[;|]|&[\s&]))")


def is_reference(name: Name) -> bool:
    """Whether the value is only a template reference, or a shell variable set for the command after it."""
    if name.meaning.is_variable and _VARIABLE.match(name.text, name.end) is not None:
        return True
    return _REFERENCE.match(name.text, name.end) is not None


def assigned_value(text: str, end: int, reach: int) -> re.Match[str] | None:
    """Match the value assigned to a name that ends at `end`, up to `reach`."""
    return _ASSIGNMENT.match(text, end, reach)


def value_of(name: Name, reach: int) -> re.Match[str] | None:
    """Match the value next to a name by its notation, up to `reach`."""
    text, end, certain = name.text, name.end, name.certain
    if name.meaning.is_option and (option := _OPTION_VALUE.match(text, end, reach)) is not None:
        return option
    if name.is_element and (element := _ELEMENT.match(text, end, reach)) is not None:
        return element
    first = certain and name.starts_line
    rest_of_line = _REST_OF_LINE
    if name.meaning.is_header:
        rest_of_line = _REST_OF_HEADER if text.endswith(_SETS_COOKIE, 0, end) else _REST_OF_REQUEST_COOKIE
    if (first or (certain and _is_label(name))) and (line := rest_of_line.match(text, end, reach)) is not None:
        return line
    if first and (column := _TWO_COLUMNS.match(text, end, reach)) is not None:
        return column
    if certain and text.endswith('"', 0, name.start) and (said := _REST_OF_STRING.match(text, end, reach)) is not None:
        return said
    match = assigned_value(text, end, reach)
    if match is not None and name.quoted and match["bare"] is not None and not text.startswith("=", end + 1):
        return _JSON_SCALAR.match(text, end, reach)  # no more than the number or word, so that JSON stays JSON
    if match is None and first:
        return _NEXT_LINE.match(text, end, reach)
    return match


def _is_label(name: Name) -> bool:
    """Whether a name of several words is the only label on its line: `    Key Content    : harbour anchor`."""
    if _BEHIND_LABEL.match(name.text, name.end) is None:
        return False
    line = name.text.rfind("\n", max(0, name.start - 80), name.end) + 1
    return _LABEL.fullmatch(name.text, line, name.end) is not None


_LABEL = lazy(r"[ \t]{0,40}[^\W\d_][\w-]{1,20}(?:[ ][\w'’-]{1,20}){1,4}")
_BEHIND_LABEL = lazy(r"[ \t]{1,40}:[ ][^\s:=,;]{2,60}(?:[ ][^\s:=,;]{2,60}){1,7}[ \t]*(?:\n|$)")


def value_group(match: re.Match[str]) -> str:
    """Return the notation of a value: the name of its group."""
    groups = match.groupdict()
    return next(group for group in _VALUE_GROUPS if groups.get(group) is not None)


def end_of(match: re.Match[str], group: str) -> int:
    """Return the end of a value, with its folded lines."""
    groups = match.groupdict()
    return max(match.end(part) for part in (group, *(rest for rest in _RESTS if groups.get(rest))))


def strings_of(match: re.Match[str]) -> list[str]:
    """Return the value, or the parts of a list."""
    group = value_group(match)
    if group == "items":
        return [item.lstrip(" \t-") for item in match[group].split("\n")]
    return re.findall(r"[^\s,\"']+", match[group]) if group == "list" else [match[group]]
