"""Secrets that a program announces: `Please use the following password to proceed:`, and below it, alone, the secret.

A line that ends in a colon may head anything, so what stands below is taken where it looks made by chance, or where
the line says that what follows is the secret. Every look is bounded.
"""

from __future__ import annotations

import re

from ghost.redaction.secret_names import Name
from ghost.redaction.secret_values import is_guid, is_made_up, is_mixed, is_open, looks_random
from ghost.redaction.secrets_in_sentences import is_plain
from ghost.redaction.secrets_in_statements import Span, is_ordinary

_REACH = 160
_BELOW = re.compile(
    r"(?P<rest>[^\n]{0,160}?):[ \t]{0,8}\n(?:[ \t]{0,8}\n){0,2}[ \t]{0,16}(?:[>*-][ ])?"
    r"(?P<secret>[^\s\[][^\s]{5,399})[ \t]{0,8}(?=\n|$)"
)
_OF_ANOTHER_THING = re.compile(
    r"(?i:\b(?:fingerprints?|hash(?:es)?|checksums?|digests?|public|certificates?(?![ ]$)|expir\w+|invalid|fail\w*"
    r"|wrong|errors?|cannot|denied|not|no|unable|polic(?:y|ies)|users|accounts|names?|ids?|identifiers?|files?|paths?|hosts?|located"
    r"|found|stored|written|saved|rotat\w+|missing|usage|example|see|visit|url|command|run)\b)"
)
_TELLS = re.compile(r"(?i:\b(?:following|your|generated|temporary|initial|one-time|use|copy|here is|here's)\b)")
_TOLD_BEHIND = re.compile(
    r"(?i:[ ](?:is|are)|[ ]for[ ](?:the[ ]|user[ ])?['\"\[]?[\w.@-]{1,60}['\"\]]?(?:[ ]user)?"
    r"(?:[ ]\([^()\n]{1,100}\))?)?"
)


def secret_announced(name: Name) -> Span | None:
    """Where the secret stands below the line that announces it by `name`; None where there is none."""
    below = _BELOW.match(name.text, name.end)
    if below is None:
        return None
    start = name.text.rfind("\n", max(0, name.start - _REACH), name.start) + 1
    before = name.text[max(start, name.start - _REACH) : name.word]
    secret, rest = below["secret"], below["rest"]
    if _OF_ANOTHER_THING.search(before) or _OF_ANOTHER_THING.search(re.sub(r"\([^()]*\)", "", rest)):
        return None
    if is_open(secret) or is_ordinary(secret) or is_plain(secret) or secret.endswith((":", "{", "[", "(", ",", ";")):
        return None
    if looks_random(secret) and not is_guid(secret):
        return below.span("secret")
    if not name.certain or "/" in secret or "=" in secret[:-2]:
        return below.span("secret") if name.certain and is_made_up(secret) and "/" not in secret else None
    told = _TELLS.search(before) is not None or _TOLD_BEHIND.fullmatch(rest) is not None
    return below.span("secret") if is_made_up(secret) or (told and is_mixed(secret)) else None
