"""Secrets typed at a prompt: `Enter password:`, and on the next line, alone, what was typed.

A terminal mostly shows nothing of it; records of sessions, of serial consoles and of `expect` do. What answers a prompt
stands on that line too (`Login incorrect`), so only one word is taken, and no word that a program says.
"""

from __future__ import annotations

import re

from ghost.redaction.secret_names import Name
from ghost.redaction.secret_values import is_mixed, is_open
from ghost.redaction.secrets_in_statements import Span, is_ordinary

_REACH = 80
_ASKS = re.compile(
    r"(?:^|[\s\[(>])(?:enter|type|input|provide|supply|give|retype|re-?enter|re-?type|repeat|confirm|verify|new|old|current)\b"
    r"[^\n:=;|]{0,40}$",
    re.IGNORECASE,
)
_NAMES_WHOSE = re.compile(r"(?:^|\n)(?:\[sudo\][ ]|\S{1,60}'s[ ]|[A-Za-z]{2,16}[ ]|\(current\)[ ]UNIX[ ])?$")
"""What may stand alone before the name: `[sudo] `, `bob@host's `, `Vault `, or nothing."""
_TYPED = re.compile(
    r"(?:[ ](?:for|of)[ ][^\n:=]{1,60})?(?:[ ]?\([^()\n]{1,30}\))?[ \t]{0,2}[:?][ \t]{0,8}\r?\n"
    r"(?P<typed>[^\s\[-]\S{3,127})[ \t]{0,8}(?=\r?\n|$)"
)
_SAID = re.compile(r".*[$#>%:]|.*\.\.\.|[A-Z][a-z]+[.!]*|https?:.*|[\w.@-]+:[~/].*|\|.*|\(.*", re.DOTALL)
"""A shell's prompt, a heading, a word with which a program answers, an address, a path."""


def typed_at_prompt(name: Name) -> Span | None:
    """Where the word stands that was typed when `name` was asked for."""
    answer = _TYPED.match(name.text, name.end)
    if answer is None:
        return None
    start = name.text.rfind("\n", max(0, name.start - _REACH), name.start) + 1
    before = name.text[max(start - 1, name.start - _REACH, 0) : name.start] + name.text[name.start : name.word]
    typed = answer["typed"]
    if is_open(typed) or is_ordinary(typed) or _SAID.fullmatch(typed) is not None:
        return None
    first_of_name = name.text[name.start : name.end]
    asked = _ASKS.search(before) is not None or _ASKS.match(first_of_name) is not None
    if asked or (is_mixed(typed) and _NAMES_WHOSE.search(before) is not None):
        return answer.span("typed")
    return None
