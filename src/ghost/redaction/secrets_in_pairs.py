"""Secrets whose name is beside them by the grammar of what printed them: calls of two strings, answers of a store of
settings, keys of a storage account, fields of dissected packets, elements of XML. What stands in fields called `name`
and `value`, in any notation, is found by `secrets_in_fields.py`. Every look is bounded.
"""

from __future__ import annotations

import base64
import re

from ghost.redaction.bigram_filter import sieve
from ghost.redaction.secret_names import secret_kind
from ghost.redaction.secret_values import MARKER, Counts, is_open, looks_random


def redact_pairs(text: str, counts: Counts) -> str:
    """Replaces values whose name stands in the field beside them."""
    may_hold = sieve(text)
    for anchors, pattern in _PAIRS:
        if any(anchor in text for anchor in anchors if may_hold(anchor)):
            text = pattern.sub(lambda match: _pair(match, counts), text)
    return text


def _pair(match: re.Match[str], counts: Counts) -> str:
    name, value = match["name"], match["value"]
    if "encoded" in match.re.groupindex:
        name = _decoded(name)
    kind = ("storage_key", True) if '"keyName"' in match[0] else _PROTOCOL.get(name) or secret_kind(name)
    if kind is None or not value.strip() or is_open(value) or not (kind[1] or looks_random(value)):
        return match[0]
    counts[kind[0]] += 1
    start, end = match.start("value") - match.start(), match.end("value") - match.start()
    return match[0][:start] + MARKER + match[0][end:]


def _decoded(name: str) -> str:
    """A name that is written in base64; nothing where it is not text."""
    try:
        return base64.b64decode(name, validate=True).decode()
    except ValueError:
        return ""


_PROTOCOL = {"PASS": ("password", True)}  # a command of FTP and POP
_PAIRS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (
        ('("', "('", "( "),
        re.compile(  # `define('DB_PASSWORD', 'x')`, `setProperty("password", "x")`
            r"\([ \t]{0,8}[\"'](?P<name>[\w.-]{1,100})[\"'],[ \t]{0,8}"
            r"(?P<quote>[\"'])(?P<value>(?:(?!(?P=quote))[^\n]){1,400}+)(?P=quote)"
        ),
    ),
    (
        (') "',),
        re.compile(  # the answers of a store of settings, one string a line
            r"\d\)[ ]\"(?P<name>[\w.-]{1,100})\"\n[ \t]{0,20}\d{1,4}\)[ ]\"(?P<value>[^\"\n]{1,400})\""
        ),
    ),
    (
        ("Request command", "request.command", "Value: "),
        re.compile(  # fields of a dissected packet
            r"(?:Request command|Key|Name|request\.command\")[ \t]{0,4}:[ \t]{0,4}"
            r"\"?(?P<name>[\w.-]{1,100})\"?,?\s{1,80}"
            r"(?:Request arg|Value|\"\w{1,20}\.request\.arg\")[ \t]{0,4}:[ \t]{0,4}\"?(?P<value>[^\s\"]{1,400})"
        ),
    ),
    (
        ("password\n", "passwd\n", "secret\n", "token\n", "pwd\n", "key\n", "pass\n", "credential", "passphrase\n"),
        re.compile(  # the answers of etcd: a key, and its value on the next line
            r"/(?<![^\n]/)(?:[\w.-]{1,60}/){0,12}(?P<name>[\w.-]{1,60})\n"
            r"(?P<value>(?![\w.-]{1,60}[.](?:ya?ml|json|conf|txt|pem|crt|key|sh|py|d)(?:\s|$)|[\w.@-]{0,60}[$#%>:](?:\s|$))[^\s/\[{<-]\S{3,400})"
            r"[ \t]*(?=\n/|\n?\Z)"
        ),
    ),
    (
        ('"mod_revision"',),
        re.compile(  # the same in JSON, both in base64
            r"\"key\"\s{0,8}:\s{0,8}\"(?P<encoded>(?P<name>[A-Za-z0-9+/]{4,1000}={0,2}))\",[^{}]{0,200}?"
            r"\"value\"\s{0,8}:\s{0,8}\"(?P<value>[A-Za-z0-9+/]{4,4000}={0,2})(?:\"|$)"
        ),
    ),
    (
        ('"keyName"',),
        re.compile(
            r"\"keyName\"\s{0,40}:\s{0,40}\"(?P<name>[^\"\\\n]{1,200})\"[^{}]{0,400}?"
            r"\"value\"\s{0,40}:\s{0,40}"
            r"\"(?P<value>(?:[^\"\\\n]|\\.|\n[ \t]{0,40}(?=[A-Za-z0-9+/]{4,100}={0,2}\"))*+)(?:\"|$)"
        ),
    ),
    (
        ('"selector"',),
        re.compile(  # a condition on a header, as gateways and front doors have it
            r"\"selector\"\s{0,8}:\s{0,8}\"(?P<name>[\w.-]{1,100})\"[^{}]{0,200}?"
            r"\"match[vV]alues?\"\s{0,8}:\s{0,8}(?:\[\s{0,40})?\"(?P<value>[^\"\n]{3,400})\""
        ),
    ),
    (
        ('"selector"',),
        re.compile(  # the same, in the order of letters
            r"\"match[vV]alues?\"\s{0,8}:\s{0,8}(?:\[\s{0,40})?\"(?P<value>[^\"\n]{3,400})\"[^{}]{0,200}?"
            r"\"selector\"\s{0,8}:\s{0,8}\"(?P<name>[\w.-]{1,100})\""
        ),
    ),
    (
        ('ame="', 'ey="'),
        re.compile(  # a property in XML
            r"(?i:\b(?:name|key))=\"(?P<name>[\w.:-]{1,200})\"[^<>\"]{0,40}>(?:\s{0,80}<(?i:value|string|text)>)?"
            r"(?P<value>[^<>\n]{1,2000})<"
        ),
    ),
    (
        ("##vso[", "##[set-", "::set-", "::save-state"),
        re.compile(  # what a step of a pipeline sets
            r"(?:##(?:vso)?\[[\w.-]{1,40}[ ](?:variable|name)=|::(?:set-output|set-env|save-state)[ ]name=)"
            r"(?P<name>[\w.-]{1,100})(?:[^\]\n:]{0,100}\]|::)(?P<value>[^\n\"']{1,2000})"
        ),
    ),
    (
        ("False", "True"),
        re.compile(  # settings of an application as az prints them: the second column says whether one is of its slot
            r"(?m:^)(?P<name>[\w.:-]{1,120})(?:[ ]{2,80}|\t)(?:True|False)(?:[ ]{2,80}|\t)"
            r"(?P<value>(?![a-z]{4,12}/[a-z])[^\s\[](?:[^\n\t ]|[ ](?![ ])){0,2000}+)(?=[ ]{0,80}(?:\n|$))"
        ),
    ),
    (
        ("{$",),
        re.compile(  # macros of Zabbix
            r"\{\$(?P<name>[A-Z][A-Z0-9_.]{1,80})\}(?:</macro>\s{0,40}<value>|[ ]?(?:=>|[:=|])[ ]?|\t{1,8}|[ ]{2,80}"
            r"|[ ](?=[^\s]{0,100}[0-9][^\s]{0,100}(?:\n|$))|[\"'],?\s{1,40}[\"']?value[\"']?[ ]?:[ ]?[\"']?"
            r"|[\"'],[\"']value[\"']:[\"'])(?P<value>[^\s\"'<>|{*][^\s\"'<>|]{2,400})"
        ),
    ),
    (
        ("text>", "key>", "hex>", "alue>", "string>", "encrypted>", "clear>"),
        re.compile(  # an element that says how the secret of the element around it is written
            r"<(?:[\w-]{1,30}:)?(?P<name>[\w-]{3,60})>\s{0,80}"
            r"<(?:[\w-]{1,30}:)?(?:key|ascii-text|plain-text|hexadecimal|hex|[Vv]alue|string|clear|encrypted)>(?P<value>[^<>]{1,400})<"
        ),
    ),
)
