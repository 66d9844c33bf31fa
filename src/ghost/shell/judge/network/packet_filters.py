"""Packet filters: headers may be compared with anything, payload only tested for presence.

A filter is a question with a yes or no for each packet, and `frame contains "pw=a"` asked often enough spells a secret
out, past redaction. Which fields are headers is data: `policy/packet_fields.toml`. The languages are those of
wireshark-filter(4) and pcap-filter(7); what this reading of them does not know is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from ghost.patterns import lazy
from ghost.shell.judge.network.exfiltration import fault_of_name
from ghost.shell.policy_tables import policy_table

_TOKEN = lazy(
    r"""(?P<space>[ ]+)|(?P<text>[rR]?"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\[^']{1,4}|\\')')"""
    r"""|(?P<number>0[xX][0-9a-fA-F]{1,8}(?![\w.:-])|[0-9]{1,10}(?:\.[0-9]{1,9})?(?![\w:/-]|\.(?!\.)))"""
    r"""|(?P<address>(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?:/[0-9]{1,2})?(?![\w.:-])"""
    r"""|(?=[0-9A-Fa-f]+[:.-]|::)(?:[0-9A-Fa-f]{0,4}[:.-]){1,15}[0-9A-Fa-f]{0,4}(?:/[0-9]{1,3})?(?![\w.:-]))"""
    r"""|(?P<name>[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*)"""
    r"""|(?P<operator>===|!==|==|!=|~=|>=|<=|&&|\|\||\^\^|\.\.|[><!~&()\[\]{},:+*/%\#-])"""
)
_LOGIC = frozenset(("and", "or", "xor", "&&", "||", "^^"))
_NOT = frozenset(("not", "!"))
_WORDS = frozenset(("eq", "ne", "gt", "lt", "ge", "le", "contains", "matches", "in", "any", "all", "any_eq", "all_eq",
    "any_ne", "all_ne", "bitwise_and", "True", "False", "TRUE", "FALSE", "true", "false"))  # fmt: skip
_FUNCTIONS = frozenset(("len", "count", "upper", "lower", "string", "max", "min", "abs"))
_CONSTANT = lazy(r"[A-Z][A-Z0-9]{0,9}", re.ASCII)
_SEVERITIES = frozenset(("error", "warn", "warning", "note", "chat", "comment"))
_COMPARES = frozenset(("eq", "ne", "gt", "lt", "ge", "le", "==", "!=", ">", "<", ">=", "<=", "&", "bitwise_and", "~="))
_EQUALS = frozenset(("==", "!=", "eq", "ne"))
_CODE_NAME = lazy(r'"[A-Za-z][A-Za-z /_-]{0,30}"', re.ASCII)
_BEGINNING_OF_PATH = lazy(r'"/[A-Za-z0-9_./-]{0,40}"', re.ASCII)
_STATISTIC_OF_FIELD = lazy(
    r"(?P<function>COUNT|SUM|MIN|MAX|AVG|LOAD|BYTES|FRAMES)\((?P<field>[A-Za-z0-9_.-]*)\)(?P<filter>.*)", re.DOTALL
)
_INDEX = lazy(
    r"(?<![A-Za-z0-9_.])(?P<layer>[a-z0-9]{1,8}) ?\[ ?(?P<first>[a-z0-9]{1,12}) ?(?:: ?(?P<width>[124]) ?)?\]", re.ASCII
)
_MOVES_THE_BASE = lazy(r"\b(?:pppoe[ds]|vlan|mpls|geneve|vxlan)\b", re.ASCII)
"""Behind one of these words pcap-filter(7) counts from further inside the packet, also behind 'not' and 'or'."""
_NAME_OF_HOST = lazy(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+|[A-Za-z0-9_-]{16,}", re.ASCII)
_NAMED_OFFSETS = frozenset(("tcpflags", "icmptype", "icmpcode", "icmp6type", "icmp6code"))

_PAYLOAD = (
    "asks about the bytes of {name}, which may be payload: asked often enough, that reveals a secret. "
    "Headers may be asked about, such as tcp.flags, http.host or dns.qry.name"
)


class _Fields(NamedTuple):
    headers: re.Pattern[str]
    addresses: re.Pattern[str]
    printed: re.Pattern[str]
    numbers: re.Pattern[str]
    codes: re.Pattern[str]
    statistics: re.Pattern[str]
    withheld: re.Pattern[str]


@cache
def _fields() -> _Fields:
    table = policy_table("packet_fields.toml")
    printed = dict(table["printed"])
    protocols = printed.pop("protocols")
    kinds = "|".join(f"(?P<{kind}>{''.join(heads.split())})" for kind, heads in table["statistics"].items())
    return _Fields(
        headers=lazy(
            rf"(?!(?:.*[._])?(?:{table['payload']['parts']})(?:\.|$))(?:{_by_protocol(table['headers']).pattern})",
            re.ASCII,
        ),
        addresses=_by_protocol(table["addresses"]),
        printed=lazy(f"{_by_protocol(printed).pattern}|{protocols}", re.ASCII),
        numbers=_by_protocol(table["numbers"]),
        codes=lazy(
            rf"(?!.*(?:{table['codes']['never']}))(?:.*[._-])?(?:{table['codes']['endings']})", re.ASCII | re.IGNORECASE
        ),
        statistics=lazy(rf"(?:{kinds})(?:,(?P<rest>.*))?", re.ASCII | re.DOTALL),
        withheld=lazy(table["withheld"]["statistics"], re.ASCII),
    )


def _by_protocol(table: Mapping[str, str]) -> re.Pattern[str]:
    return lazy("|".join(rf"(?:{protocol})\.(?:{fields})" for protocol, fields in table.items()), re.ASCII)


def fault_of_field(name: str) -> str | None:
    """Why `tshark -e` of this field is not SAFE."""
    fields = _fields()
    known = (fields.headers, fields.addresses, fields.printed, fields.numbers)
    return None if any(pattern.fullmatch(name) for pattern in known) else "is not a header field in the table"


def fault_of_display_filter(text: str) -> str | None:
    """Why a display filter may reveal more than headers."""
    if not text.strip(" ") or text.startswith("-"):
        return "is empty or begins with '-'"
    tokens: list[tuple[str, str]] = []
    end = 0
    while match := _TOKEN.match(text, end):
        end = match.end()
        if match.lastgroup != "space":
            tokens.append((match.lastgroup or "", match[0]))
    if end != len(text):
        return f"holds {text[end : end + 20]!r}, which is not part of a display filter known to the table"
    return next(filter(None, map(_fault_of_term, _terms(tokens))), None)


def _terms(tokens: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """The terms between 'and', 'or' and 'not', without enclosing brackets."""
    term: list[tuple[str, str]] = []
    for token in (*tokens, ("operator", "and")):
        if token[1] not in _LOGIC or token[0] not in ("operator", "name"):
            term.append(token)
            continue
        start, end = 0, len(term)
        while start < end and (term[start][1] == "(" or (term[start][1] in _NOT and term[start][0] != "text")):
            start += 1
        inside = term[start:end]
        surplus = inside.count(("operator", ")")) - inside.count(("operator", "("))
        end = len(inside)
        while surplus > 0 and end and inside[end - 1] == ("operator", ")"):
            end -= 1
            surplus -= 1
        yield inside[:end]
        term = []


def _fault_of_term(term: Sequence[tuple[str, str]]) -> str | None:
    fields = _fields()
    names = [(at, name) for at, (kind, name) in enumerate(term) if kind == "name" and not _is_word(term, at)]
    unknown = [name for _, name in names if not fields.headers.fullmatch(name)]
    if not unknown:
        brackets = [text for kind, text in term if kind == "operator" and text in "()"]
        return None if brackets.count("(") == brackets.count(")") else "has ambiguous brackets"
    name = unknown[0]
    if len(term) == 1:
        return None  # is it there?
    if len(names) == 1 and names[0][0] == 0 and _compares_safely(fields, name, term[1][1], term[2:]):
        return None
    return _PAYLOAD.format(name=name)


def _is_word(term: Sequence[tuple[str, str]], at: int) -> bool:
    """Whether this name is a word of the language, a function or a constant behind a comparison, and no field."""
    name = term[at][1]
    if name in _WORDS:
        return True
    following = term[at + 1][1] if at + 1 < len(term) else ""
    if following == "(":
        return name in _FUNCTIONS
    if at < 2 or term[at - 1][1] not in _COMPARES:
        return False
    return _CONSTANT.fullmatch(name) is not None or (
        name.lower() in _SEVERITIES and term[at - 2][1] == "_ws.expert.severity"
    )


def _compares_safely(fields: _Fields, name: str, comparison: str, values: Sequence[tuple[str, str]]) -> bool:
    if fields.addresses.fullmatch(name):
        return comparison in ("contains", "==") and len(values) == 1 and _is_match(_BEGINNING_OF_PATH, values[0])
    if not fields.codes.fullmatch(name):
        return False
    if comparison == "in":
        return all(kind == "number" or token in ("{", "}", ",", "..") for kind, token in values)
    return len(values) == 1 and (
        (comparison in _COMPARES and (values[0][0] == "number" or _CONSTANT.fullmatch(values[0][1]) is not None))
        or (comparison in _COMPARES and values[0][1].lower() in ("true", "false"))
        or (comparison in _EQUALS and _is_match(_CODE_NAME, values[0]))
    )


def _is_match(pattern: re.Pattern[str], token: tuple[str, str]) -> bool:
    return token[0] == "text" and pattern.fullmatch(token[1]) is not None


def fault_of_statistic(text: str) -> str | None:
    """Why `tshark -z` with this value is not SAFE: its kind, or the filters behind it."""
    match = _fields().statistics.fullmatch(text)
    if match is None:
        told = _fields().withheld.fullmatch(text) is not None
        return "prints the contents of packets, not counts" if told else "is not a statistic in the table"
    if not match["rest"]:
        return None
    if match["filter"] is not None:
        return fault_of_display_filter(match["rest"])
    return next(filter(None, map(_fault_of_column, match["rest"].split(","))), None)


def _fault_of_column(text: str) -> str | None:
    """One column of `io,stat`: a filter, perhaps with a function of a field before it."""
    computed = _STATISTIC_OF_FIELD.fullmatch(text)
    if computed is None:
        return fault_of_display_filter(text) if text else None
    field, rest = computed["field"], computed["filter"]
    function = computed["function"]
    of_packets = (function == "COUNT" and "." not in field) or (function in ("BYTES", "FRAMES") and not field)
    if not (of_packets or _fields().headers.fullmatch(field) or _fields().codes.fullmatch(field)):
        return _PAYLOAD.format(name=field)
    return fault_of_display_filter(rest) if rest.strip(" ") else None


def fault_of_packet_filter(headers: Mapping[str, int], text: str) -> str | None:
    """Why a filter of pcap-filter(7) may reveal more than headers; `headers` gives their bytes per layer."""
    if "[" in text and (moved := _MOVES_THE_BASE.search(text)):
        return f"asks about bytes beside {moved[0]}, which moves where they are counted from, perhaps into the payload"
    for match in _INDEX.finditer(text):
        layer, first = match["layer"], match["first"]
        width = int(match["width"] or 1)
        if first in _NAMED_OFFSETS and width == 1 and layer in headers:
            continue
        if not first.isdigit() or len(first) > 4 or int(first) + width > headers.get(layer, 0):
            return f"asks about {match[0]}, after the header: asked often enough, that reveals the payload"
    if fault := next(filter(None, map(fault_of_name, _NAME_OF_HOST.findall(text))), None):
        return fault  # tcpdump resolves it
    rest = _INDEX.sub("", text)
    if "[" in rest or "]" in rest:
        return "computes the position of the bytes that it asks about, which may be payload"
    return None
