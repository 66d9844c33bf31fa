"""What a `--query` of az takes from an answer: fields named like secrets, values without their names, or nothing but
listed fields.

Redaction knows most secrets by the name beside them and the rest by their shape. `*` and `values` drop the names;
`to_string`, `map`, `reverse` and `join` may make one text of many values, of another shape; `contains` of a whole
answer asks for its letters. So a query may call what leaves names and shapes alone, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from ghost.patterns import lazy

_TOKEN = lazy(
    r"""'[^'\\]*+(?:\\.[^'\\]*+)*+'?|`[^`\\]*+(?:\\.[^`\\]*+)*+`?|"(?P<quoted>[^"\\]*+(?:\\.[^"\\]*+)*+)"?"""
    r"|(?P<plain>[A-Za-z_]\w*+)",
    re.DOTALL,
)
"""A text that nothing ends goes to the end, so that no letter is looked at twice."""
_TEXT = lazy(r"'[^']*'")
_RENAMES_OR_CALLS = lazy(r"\s{0,8}[:(]")
_ESCAPE = lazy(r"\\u([0-9A-Fa-f]{4})")
_STEM = lazy(
    r"key|secret|passw|pwd|passphrase|token|credential|connectionstring|sas|signature|userdata|customdata"
    r"|protectedsettings|commandtoexecute"
)
"""One of these is in every name that `_SECRET` knows. Most queries hold none, and are not read further."""
_SECRET = lazy(
    r".*(?:(?:key|secret|password|passwd|pwd|passphrase|token|credential|connectionstring|sas)s?(?:value|data)?"
    r"|sas(?:uri|url)|signature|userdata|customdata|protectedsettings|commandtoexecute)"
)
_PUBLIC = lazy(r".*(?:publickey|nexttoken|skiptoken|monkey|turkey)s?")
_NO_LETTERS = str.maketrans(dict.fromkeys(chr(code) for code in range(128) if not chr(code).isalnum()))

_INDEX = r"\[(?:\*|-?[0-9]{0,4})\]"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*+"
_PATH = rf"{_NAME}(?:\.{_NAME}|{_INDEX})*+"


def _several(one: str) -> str:
    """A multiselect: `[a, b]` or `{x: a, y: b}`."""
    return rf"\[ ?{one}(?: ?, ?{one})*+ ?\]|\{{ ?{_NAME} ?: ?{one}(?: ?, ?{_NAME} ?: ?{one})*+ ?\}}"


_DEEPER = rf"{_PATH}(?:\.(?:{_several(_PATH)}))?"
_PROJECTION = lazy(rf"(?:(?:{_INDEX})++\.)?(?:{_DEEPER}|{_several(_DEEPER)})(?: ?\| ?{_INDEX})?")
"""Paths of names, alone, side by side or one level deeper; every value of it ends in a name."""
_TAKEN = lazy(rf"({_NAME})(?! ?:)")
_GOES_ON = lazy(rf"(?:{_INDEX})*+\.")
_PIECE = lazy(rf"(?P<key>{_NAME})(?= ?:)|(?P<name>{_NAME})|{_INDEX}|(?P<mark>[\[\]{{}},|])")

_TEXTS = r"""'[^'\\]*+(?:\\.[^'\\]*+)*+'|`[^`\\]*+(?:\\.[^`\\]*+)*+`"""
_WORD = r"[A-Za-z_]\w*+"
_STEP = rf"\.{_WORD}|\[(?:\*|-?[0-9]{{0,4}})\]"
_NAMED = rf"(?:@\.)?{_WORD}(?:{_STEP})*+"
_LISTED = r"\[ ?'[^'\\]*+'(?: ?, ?'[^'\\]*+')*+ ?\]|`\[[^`\\\]]*+\]`"
_TOLD = rf"to_string\( ?\[ ?{_NAMED}(?: ?, ?{_NAMED})*+ ?\] ?\)"
_FILTER = r"\[\?(?:[^\[\]()'`\"*]|'[^'\\]*+')*+\]"
_JOINED = rf"(?:{_WORD}|\[\*?\]|{_FILTER})(?:{_STEP}|{_FILTER})*+|\[ ?{_NAMED}(?: ?, ?{_NAMED})*+ ?\]"
_FUNCTIONS = "length|sort|sort_by|max_by|min_by|keys|not_null|type|to_number|sum|avg|max|min|abs|ceil|floor"
_KEEPS_NAMES = lazy(
    rf"""(?:[^'`"*(A-Za-z_]++|{_TEXTS}|"[^"\\]*+(?:\\.[^"\\]*+)*+"(?!\s*\()|{_WORD}(?!\s*\()|(?<=\[)\*(?=\])"""
    rf"""|(?:{_FUNCTIONS})\(|\((?!\*)|to_string\( ?(?=\{{)"""
    rf"""|(?:contains|starts_with|ends_with)\( ?(?:{_NAMED}|{_LISTED}|{_TOLD}) ?,"""
    rf"""|join\( ?'[^A-Za-z0-9'\\]{{0,4}}' ?, ?(?:{_JOINED}) ?\)"""
    rf"""|reverse\( ?sort(?:_by)?\((?:[^'`"()*]|{_TEXTS})*+\) ?\))*+""",
    re.DOTALL,
)
"""As far as a query neither drops names nor rewrites values: `*` is one of `[*]`, and each call one that is known.

`to_string` of `{name: field}` is a row of JSON on one line, with its names; of anything else it is a text without."""
_LIST_OF_VALUES = lazy(r"\.\s*+\[\*")
"""Behind a dot `[*]` is no projection but a list of one element, all values of an object."""


def fault_of_query(query: str) -> str | None:
    """Why the result of the query could hide a secret from redaction; None where it cannot."""
    if name := secret_field(query):
        return f"takes the field {name[:80]}, which looks like a secret"
    if "*" not in query and "(" not in query:
        return None
    listed = _LIST_OF_VALUES.search(query)
    kept = _KEEPS_NAMES.match(query, 0, listed.end() - 1 if listed else len(query))
    end = kept.end() if kept else 0
    if end == len(query):
        return None
    return (
        f"holds {query[end : end + 40]!r}, which drops the names of fields or rewrites their values, by which secrets "
        "are known. Name the fields: '[].{name:name}'; contains, starts_with and ends_with ask about a named field"
    )


def secret_field(query: str) -> str | None:
    """The first field in the query that is named like a secret; literals are not fields."""
    return None if _names_no_secret(query) else first_secret_field(query)


def _names_no_secret(query: str) -> bool:
    """Fast check by letters alone; never misses what `first_secret_field` finds."""
    if not query.isascii() or "\\" in query:
        return False
    if not _STEM.search(query.lower().translate(_NO_LETTERS)):
        return True
    if '"' in query or "`" in query:
        return False
    return not _STEM.search(_TEXT.sub(" ", query).lower().translate(_NO_LETTERS))


def first_secret_field(query: str) -> str | None:
    for name in fields_named(query):
        squeezed = _letters(name)
        if _STEM.search(squeezed) and _SECRET.fullmatch(squeezed) and not _PUBLIC.fullmatch(squeezed):
            return name
    return None


def fields_named(query: str) -> Iterator[str]:
    """The names of fields in the query, without literals, new names and functions."""
    for match in _TOKEN.finditer(query):
        name = match["plain"] or _ESCAPE.sub(lambda code: chr(int(code[1], 16)), match["quoted"] or "")
        if name and not _RENAMES_OR_CALLS.match(query, match.end()):
            yield name


def _letters(name: str) -> str:
    return name.lower() if name.isascii() and name.isalnum() else re.sub(r"[^a-z0-9]", "", name.lower())


def projects_only(fields: Set[str], query: str, through: Set[str] = frozenset()) -> bool:
    """Whether nothing but these fields can come out of the query, whatever the answer holds; `through` are objects
    that are not taken whole: `properties.state`."""
    return _PROJECTION.fullmatch(query) is not None and all(
        match[1] in fields or (match[1] in through and _GOES_ON.match(query, match.end()) is not None)
        for match in _TAKEN.finditer(query)
    )


def projected_paths(query: str) -> Iterator[list[str]] | None:
    """The path of each value that comes out of the query, by the names of its fields: `a[].{x: b.c, y: d}` takes
    `a.b.c` and `a.d`. None where the query does more than to take fields by name."""
    return _paths(query) if _PROJECTION.fullmatch(query) else None


def _paths(query: str) -> Iterator[list[str]]:
    path: list[str] = []
    before: list[list[str]] = []
    for piece in _PIECE.finditer(query):
        mark = piece["mark"]
        if piece["name"]:
            path.append(piece["name"])
        elif mark == "|":
            break
        elif mark in ("[", "{"):
            before.append(path)
            path = list(path)
        elif mark:
            yield path
            path = list(before[-1]) if mark == "," else before.pop()[:0]
    yield path
