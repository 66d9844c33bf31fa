"""Secrets in the field next to their name, by the output format of particular tools.

Keys of a storage account, header conditions of gateways, settings of an app, fields of dissected packets, properties
in XML. Fields called `name` and `value`, in any notation, are read in `fields.py`. Every search is bounded.
"""

from __future__ import annotations

import re

from ghost.patterns import lazy
from ghost.redaction.bigram_filter import sieve
from ghost.redaction.secret_names import secret_kind
from ghost.redaction.secret_values import MARKER, Counts, Rule, is_open, looks_random


def redact_pairs(text: str, counts: Counts) -> str:
    """Return `text` without values whose name is in the neighbouring field."""
    may_hold = sieve(text)
    for anchors, pattern in _PAIRS:
        if any(anchor in text for anchor in anchors if may_hold(anchor)):
            text = pattern.sub(lambda match: _pair(match, counts), text)
    return text


def _pair(match: re.Match[str], counts: Counts) -> str:
    name, value = match["name"], match["value"]
    kind = ("storage_key", True) if '"keyName"' in match[0] else _PROTOCOL.get(name) or secret_kind(name)
    if kind is None or not value.strip() or is_open(value) or not (kind[1] or looks_random(value)):
        return match[0]
    counts[Rule(kind[0], "field-pair")] += 1
    start, end = match.start("value") - match.start(), match.end("value") - match.start()
    return match[0][:start] + MARKER + match[0][end:]


_PROTOCOL = {"PASS": ("password", True)}  # a command of FTP and POP
_PAIRS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (
        ("Request command", "request.command", "Value: "),
        lazy(  # fields of a dissected packet
            r"(?:Request command|Key|Name|request\.command\")[ \t]{0,4}:[ \t]{0,4}"
            r"\"?(?P<name>[\w.-]{1,100})\"?,?\s{1,80}"
            r"(?:Request arg|Value|\"\w{1,20}\.request\.arg\")[ \t]{0,4}:[ \t]{0,4}\"?(?P<value>[^\s\"]{1,400})"
        ),
    ),
    (
        ('"keyName"',),
        lazy(
            r"\"keyName\"\s{0,40}:\s{0,40}\"(?P<name>[^\"\\\n]{1,200})\"[^{}]{0,400}?"
            r"\"value\"\s{0,40}:\s{0,40}"
            r"\"(?P<value>(?:[^\"\\\n]|\\.|\n[ \t]{0,40}(?=[A-Za-z0-9+/]{4,100}={0,2}\"))*+)(?:\"|$)"
        ),
    ),
    (
        ('"selector"',),
        lazy(  # a condition on a header, as gateways and front doors have it
            r"\"selector\"\s{0,8}:\s{0,8}\"(?P<name>[\w.-]{1,100})\"[^{}]{0,200}?"
            r"\"match[vV]alues?\"\s{0,8}:\s{0,8}(?:\[\s{0,40})?\"(?P<value>[^\"\n]{3,400})\""
        ),
    ),
    (
        ('"selector"',),
        lazy(  # the same, in the order of letters
            r"\"match[vV]alues?\"\s{0,8}:\s{0,8}(?:\[\s{0,40})?\"(?P<value>[^\"\n]{3,400})\"[^{}]{0,200}?"
            r"\"selector\"\s{0,8}:\s{0,8}\"(?P<name>[\w.-]{1,100})\""
        ),
    ),
    (
        ("False", "True"),
        lazy(  # settings of an application as az prints them: the second column says whether one is of its slot
            r"(?m:^)(?P<name>[\w.:-]{1,120})(?:[ ]{2,80}|\t)(?:True|False)(?:[ ]{2,80}|\t)"
            r"(?P<value>(?![a-z]{4,12}/[a-z])[^\s\[](?:[^\n\t ]|[ ](?![ ])){0,2000}+)(?=[ ]{0,80}(?:\n|$))"
        ),
    ),
    (
        ('ame="', 'ey="'),
        lazy(  # a property in XML
            r"(?i:\b(?:name|key))=\"(?P<name>[\w.:-]{1,200})\"[^<>\"]{0,40}>(?:\s{0,80}<(?i:value|string|text)>)?"
            r"(?P<value>[^<>\n]{1,2000})<"
        ),
    ),
)
