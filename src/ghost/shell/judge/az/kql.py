"""Kusto queries of logs: listed operators and functions on listed tables.

The text is cut into tokens once and the tokens are judged by what stands beside them: `policy/kql.toml`. What the
tokens do not cover is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from ghost.patterns import lazy
from ghost.shell.judge.az.jmespath_queries import secret_field
from ghost.shell.judge.az.log_tables import Token, fault_of_tables
from ghost.shell.policy_tables import policy_table

_TOKEN = lazy(
    r"""[ \n]++|(?P<text>@'[^'\n]*+'|@"[^"\n]*+\""""
    r"""|'[^'\\\n]*+(?:\\[^\n][^'\\\n]*+)*+'|"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+")"""
    r"""|(?P<number>[0-9][0-9A-Za-z.]*+)|(?P<name>in~|\$(?:left|right)\b"""
    r"""|[A-Za-z_]\w*+(?:-(?:away|keep|reorder|rename|series|expand|where|kv|apply)\b)?)"""
    r"""|(?P<sign>=~|!~|==|!=|<=|>=|<>|\.\.|(?!//)[|()\[\],.;:=<>+*/%!-])""",
    re.ASCII,
)
_BEFORE_A_QUERY = (";", "(", "=", ",")


class _Language(NamedTuple):
    steps: frozenset[str]
    never: frozenset[str]
    functions: frozenset[str]
    words: frozenset[str]


@cache
def _language() -> _Language:
    table = policy_table("kql.toml")
    return _Language(**{key: frozenset(text.split()) for key, text in table["logs"].items()})


def tokens_of(text: str) -> list[Token] | str:
    """The tokens of a query, or the text at the first unknown token."""
    tokens: list[Token] = []
    end = 0
    while match := _TOKEN.match(text, end):
        end = match.end()
        if match.lastgroup is not None:
            tokens.append((match.lastgroup, match[0]))
    return tokens if end == len(text) else text[end : end + 20]


def fault_of_logs(text: str) -> str | None:
    """Why a query may leave the workspace, show rows of unlisted tables, or hide a secret from redaction."""
    language = _language()
    tokens = tokens_of(text)
    if isinstance(tokens, str):
        return f"holds {tokens!r}, which the table of Kusto's language does not know"
    if not tokens or tokens[0][0] != "name":
        return "does not begin with the name of a table"
    before: Token = ("sign", ";")
    arguments: list[bool] = []
    """For each open bracket whether it holds the arguments of arg_max or arg_min, where `*` keeps the names."""
    for at, (kind, token) in enumerate(tokens):
        following = tokens[at + 1] if at + 1 < len(tokens) else ("sign", ";")
        if kind == "name":
            fault = _fault_of_name(language, before, token, following)
        elif kind == "text":
            accessed = before[1] == "[" and following[1] == "]"
            hidden = accessed and ("\\" in token or secret_field(token.strip("@'\"")) is not None)
            fault = f"takes the field {token[:80]}, which looks like a secret" if hidden else None
        else:
            fault = _fault_of_sign(language, tokens, at, before, following, arguments)
        if fault:
            return fault
        before = (kind, token)
    return fault_of_tables(tokens, language.words, language.steps)


def _fault_of_name(language: _Language, before: Token, name: str, following: Token) -> str | None:
    if before[1] == "|":
        return None if name in language.steps else f"takes the step {name[:40]}, which is not listed"
    if before[1] in _BEFORE_A_QUERY and name in language.never:
        return f"holds {name}, which reads more than a table"
    if following[1] == "(" and name not in language.functions and name not in language.words:
        return f"calls {name[:40]}, which is not listed"
    if following[1] not in ("(", "=") and name not in language.words and secret_field(name):
        return f"takes the field {name[:80]}, which looks like a secret"
    return None


def _fault_of_sign(
    language: _Language, tokens: Sequence[Token], at: int, before: Token, following: Token, arguments: list[bool]
) -> str | None:
    sign = tokens[at][1]
    if sign == "(":
        arguments.append(before[1] in ("arg_max", "arg_min"))
    elif sign == ")" and arguments:
        arguments.pop()
    elif sign == "*":
        keeps_names = before[1] == "," and following[1] == ")" and bool(arguments) and arguments[-1]
        operand = before[0] != "sign" and before[1] not in language.words and before[1] not in language.steps
        if not (keeps_names or operand or before[1] in (")", "]")):
            return "asks about every column at once with '*'; name the columns"
    elif sign == "[" and (before[0] == "name" or before[1] in ("]", ")")):
        closed = at + 2 < len(tokens) and tokens[at + 2][1] == "]"
        if not (closed and (following[0] == "text" or following[1].isdigit())):
            return "computes the name of a field; write it out"
    return None
