"""Rewriting of a robots.txt, as RFC 9309 groups it, for protego and one agent.

protego matches paths as in the RFC. These differences in grouping are corrected first:

- an agent's name ends at the first character other than a letter, `-` or `_` (protego matches prefixes of the line);
- lines that are not rules neither end a group nor separate two of its agents;
- a line ends at CR, LF or CRLF only, and octets outside printable ASCII are percent-encoded before comparison;
- groups of other agents are dropped, so that their number costs nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MAX_BYTES = 1024 * 1024
"""RFC 9309, section 2.5, requires at least 500 KiB. The rest is not read."""

_FIELDS = {
    "user-agent": b"user-agent useragent user_agent",
    "allow": b"allow",
    "disallow": b"disallow dissallow dissalow disalow diasllow disallaw",
    "crawl-delay": b"crawl-delay crawldelay",
    "request-rate": b"request-rate requestrate",
}
_FIELD_OF = {spelling: name for name, spellings in _FIELDS.items() for spelling in spellings.split()}
_FIELD_OF[b"user agent"] = "user-agent"
_FIELD_OF[b"crawl delay"] = "crawl-delay"
_FIELD_OF[b"request rate"] = "request-rate"
_LINE_END = re.compile(rb"\r\n|\r|\n")
_NAME = re.compile(rb"[A-Za-z_-]*")
_TO_ENCODE = re.compile(rb"[^\x21-\x7e]")


@dataclass
class _Group:
    agents: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    closed: bool = False
    """True if the next agent line begins a new group."""


def for_agent(text: bytes, agent: str) -> str:
    """Return the groups of `agent` (without version) and of `*` in protego's syntax."""
    known = {agent.lower(): agent, "*": "*"}
    lines = []
    for group in _groups(text.removeprefix(b"\xef\xbb\xbf")):
        agents = [known[name] for name in sorted(group.agents) if name in known]
        if agents:
            lines += [f"User-agent: {name}" for name in agents]
            lines += group.lines or ["Disallow:"]
    return "\n".join(lines)


def _groups(text: bytes) -> list[_Group]:
    """Return groups of rules, and groups of lines outside the RFC.

    A delay must not separate two agents of one group (section 2.2.4), but applies to the agents directly above: both
    readings are used.
    """
    rules, pace = _Group(), _Group()
    groups = [rules, pace]
    for line in _LINE_END.split(text):
        field_name, value = _read_line(line)
        if field_name == "user-agent":
            if rules.closed:
                groups.append(rules := _Group())
            if pace.closed:
                groups.append(pace := _Group())
            rules.agents.add(_agent_name(value))
            pace.agents.add(_agent_name(value))
        elif field_name in {"allow", "disallow"} and rules.agents:  # before the first agent it concerns nobody
            rules.lines.append(f"{field_name}: {_encoded(value)}")
            rules.closed = pace.closed = True
        elif field_name is not None and pace.agents:
            pace.lines.append(f"{field_name}: {' '.join(_encoded(word) for word in value.split())}")
            pace.closed = True
    return groups


def _read_line(line: bytes) -> tuple[str | None, bytes]:
    """Return field and value; no field if the line is not a rule. A missing colon between two words is accepted."""
    line = line.partition(b"#")[0].strip()
    name, colon, value = line.partition(b":")
    if colon and (known := _FIELD_OF.get(name.strip().lower())):
        return known, value.strip()
    words = line.split(None, 1)
    if len(words) == 2 and (known := _FIELD_OF.get(words[0].lower())):
        return known, words[1].strip()
    return None, b""


def _agent_name(value: bytes) -> str:
    if value[:1] == b"*" and (len(value) == 1 or value[1:2].isspace()):
        return "*"
    match = _NAME.match(value)
    return match[0].decode("ascii").lower() if match else ""


def _encoded(value: bytes) -> str:
    return _TO_ENCODE.sub(lambda match: b"%%%02X" % match[0][0], value).decode("ascii")
