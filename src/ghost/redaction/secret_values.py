"""Tests of a value next to a secret's name: empty, redacted already, random, chosen by a person."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from ghost.patterns import lazy
from ghost.policy import load_policy

MARKER = "[REDACTED]"
CONNECTION_STRING = "[REDACTED_CONNECTION_STRING]"
PRIVATE_KEY = "[REDACTED_PRIVATE_KEY]"


class Rule(NamedTuple):
    """The rule that found a secret: its category and its id, as the audit shows it."""

    category: str
    id: str


Counts = Counter[Rule]
"""Rule to how many secrets were taken out by it."""

POLICY = load_policy(__file__, "redaction.toml")


def any_of(words: Iterable[str]) -> str:
    """Return a pattern of literal words, longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_OPEN = frozenset(POLICY["values"]["open"])
_PARTICIPLE = r"[a-z]{2,20}(?:ed|ing|able|ible)"
_COUNTED = lazy(
    rf"\d{{1,4}}(?:[ ,/]{{1,3}}(?:\d{{1,4}}|{any_of(POLICY['values']['counted'])}|{_PARTICIPLE})(?![\w-])){{1,8}}\.?"
)
_ALGORITHM = lazy(rf"(?i:(?:{any_of(POLICY['values']['algorithms'])}|[-_/.])++)[0-9]{{0,4}}")

_GUID = lazy(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_GUID_LENGTH = 36


_DENSE = lazy(r"[A-Za-z0-9+/=_.~%-]{16,}+")
_DENSE_LENGTH = 16
_HEX = lazy(r"[0-9a-f]++|[0-9A-F]++")
_KINDS = (lazy("[a-z]"), lazy("[A-Z]"), lazy("[0-9]"))
_JUDGED = 256  # as much of a value as is looked at


def looks_random(value: str) -> bool:
    """Whether a value looks random: mixed and dense, and no GUID, path or name."""
    if len(value) < _DENSE_LENGTH:
        return False
    value = value.strip().strip("\"'")[:_JUDGED]
    if _DENSE.fullmatch(value) is None or _ALGORITHM.fullmatch(value) is not None:
        return False
    kinds = sum(kind.search(value) is not None for kind in _KINDS)
    padded = _PADDED.fullmatch(value) is not None
    if kinds < 2 or _GUID.fullmatch(value) or (value.startswith(("/", "http")) and not padded):
        return False
    if value.count("/") > len(value) / 12 and not (padded or is_base64_with_slashes(value)):
        return False
    if _HEX.fullmatch(value):
        return len(value) >= 20
    return (kinds == 3 and entropy(value) >= 3.2) or is_of_one_case(value)


def is_of_one_case(value: str) -> bool:
    """Whether letters of one case and digits alternate, unlike words followed by numbers."""
    if len(value) < 20 or _ONE_CASE.fullmatch(value) is None:
        return False
    return len(_TO_DIGITS.findall(value)) >= max(5, len(value) / 5) and entropy(value) >= 3.2


_ONE_CASE = lazy(r"[a-z0-9]+|[A-Z0-9]+")
_TO_DIGITS = lazy(r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])")


_PADDED = lazy(r"(?=.{24})(?:[A-Za-z0-9+/]{4})*[A-Za-z0-9+/]{2}(?:==|[A-Za-z0-9+/]=)")  # no path ends so


def is_base64_with_slashes(value: str) -> bool:
    """Whether a value with slashes is base64, not a path: each longer part has all character classes."""
    stretches = [stretch for stretch in value.rstrip("=").split("/") if len(stretch) > 4]
    return len(value) >= 24 and bool(stretches) and all(kind.search(s) for s in stretches for kind in _KINDS)


def is_count(value: str) -> bool:
    """Whether a value is a count: `4 configured`, `3 active, 1 expired`."""
    return _COUNTED.fullmatch(value.strip().lower()) is not None


def is_mixed(value: str) -> bool:
    """Whether a value mixes letters with digits or marks, unlike a word."""
    return _MIXED.match(value) is not None and _WORD.fullmatch(value) is None


_MIXED = lazy(r"(?=.{0,200}[0-9!@#$%^&*])(?=.{0,200}[A-Za-z]).{6}")
_WORD = lazy(r"[A-Za-z]+[.,;:!?)]*|[A-Za-z][a-z-]*\d?|[\w.-]+\.(?:key|pem|crt|cer|txt|conf|json|ya?ml|db|py|log|sh)")


def before_escapes(text: str, start: int, end: int) -> int:
    """Return the end of a secret without the backslashes that escape a following quotation mark."""
    quoted = _QUOTE_BEHIND.match(text, end) is not None
    return start + len(text[start:end].rstrip("\\")) if quoted else end


_QUOTE_BEHIND = lazy(r"\\{0,15}\"")


def is_inflected(word: str) -> bool:
    """Whether a word has the ending of a participle, adverb, adjective or noun of action: `scanning`, `weekly`."""
    return _INFLECTED.fullmatch(word) is not None


_INFLECTED = lazy(r"[a-z]+(?:ed|ing|tion|sion|ment|able|ible|ness|ful|less|ly|ity|ous|ive|ory|al|ic|ant|ent)")


def is_made_up(value: str) -> bool:
    """Whether a value looks like a chosen password: letters, digits and marks mixed."""
    return 6 <= len(value) <= 64 and _MADE_UP.fullmatch(value) is not None and len(_CHANGES.findall(value)) >= 3


_MADE_UP = lazy(r"(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])(?=.*[!#$%^&*+=?@~_-])(?![0-9]+[-/:])[!-~]+")
_CHANGES = lazy(r"[a-z](?=[^a-z])|[A-Z](?=[^A-Za-z])|[0-9](?=[^0-9])|[!#$%^&*+=?@~_-](?=[\w])")


def is_generated(value: str) -> bool:
    """Whether a value looks like a generated password: capitals, small letters and digits mixed, any marks.

    No path, and nothing in brackets.
    """
    if not 8 <= len(value) <= 64 or _BRACKETED.fullmatch(value) or _GENERATED.fullmatch(value) is None:
        return False
    return len(_TURNS.findall(value)) >= max(4, len(value) // 4)


_GENERATED = lazy(r"(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])(?!https?:|.*\[REDACTED|(?:~|\.{0,2})/.*/|--|[A-Z]:\\)[!-~]+")
_BRACKETED = lazy(r"\(.*\)[,.;:]?|\[.*\][,.;:]?|\{.*\}[,.;:]?|<.*>[,.;:]?")
_TURNS = lazy(r"[a-z](?=[^a-z])|[A-Z](?=[^A-Za-z])|[0-9](?=[^0-9])|[^A-Za-z0-9](?=[A-Za-z0-9])|[a-z](?=[A-Z])")


def is_scrambled(value: str) -> bool:
    """Whether a long value mixes letters, digits and marks all along."""
    if not 16 <= len(value) <= _JUDGED or _SCRAMBLED.fullmatch(value) is None:
        return False
    return len(_CHANGES.findall(value)) >= 0.4 * len(value)


_SCRAMBLED = lazy(r"(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])(?=.*[!#$^&*?@~])(?!https?:|/)[!#$%&*+,./0-9:;=?@A-Z^_a-z~-]+")


def is_guid(value: str) -> bool:
    return len(value) >= _GUID_LENGTH and _GUID.fullmatch(value.strip().strip("\"'")) is not None


def entropy(value: str) -> float:
    """Return the Shannon entropy in bits per character."""
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())


def is_open(value: str) -> bool:
    """Whether a value says that there is no secret or that it was redacted already."""
    value = value.strip().strip("\"'").rstrip(",;:")
    if _SETTING_BEHIND.match(value):
        return True
    if len(value) > _JUDGED:
        return set(value) <= _MASKS
    lowered = value.lower()
    if lowered in _OPEN or lowered.strip("()[]<>{}") in _OPEN or set(value) <= _MASKS:
        return True
    return _NO_VALUE.fullmatch(value) is not None


_SETTING_BEHIND = lazy(
    r"(?:files|compat)(?:[ \t]+(?:sss|systemd|ldap|nis))*$|!(?:Ref|Sub|GetAtt|vault)\b|ENC\["
    r"|(?:no|yes|none|true|false)[ \t]+[\w.-]{1,40}=|<[^<>]{1,200}>[ \t]"
    r"|(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp\d{3})[ ]AAAA"  # a public key, where a password might stand as well
)  # what follows belongs to another name
_MASKS = frozenset("*xX•")
# References of templates, of Jinja, Go, ERB, Ruby, Python and of those that mark by `__` or `@`: what stands there
# later is not in the text, unless a default does.
REFERENCE = (
    r"(?:\{\{(?![^{}\n]{0,200}\bdefault\b)[^{}\n]{1,200}\}\}|\{%(?:[^{}%\n]|%(?!\})){1,200}%\}|%\([A-Za-z_][\w.]{0,80}\)s"
    r"|\$\{\{[^{}\n\"']{1,200}\}\}|<<[ ]?[\w.]{1,80}[ ]?>>|\(\([\w./:-]{1,80}\)\)"
    r"|[\[(](?i:sensitive(?: value)?|known after apply|not shown|unchanged|masked|filtered|secure|hidden)[\])]"
    r"|#\{[A-Za-z_@$][\w.()\[\]]{0,80}\}|<%=[^<>\n]{1,200}%>|@@?[A-Z][A-Z0-9_]{1,80}@@?|__[A-Z][A-Z0-9_]{1,80}__)"
)
_NO_VALUE = lazy(
    r"\[REDACTED[A-Z_]*\][\])}]*|<[^<>]*>|\$(?!(?=\w*[a-z])(?=\w*[A-Z])[A-Za-z_]*\d+[A-Za-z]\w*\d)\{?[A-Za-z_]\w*\}?|%[A-Za-z_]\w*%|\$\([^()]*\)|\{\$\w+\}?|"
    + "|".join([REFERENCE, *POLICY["values"]["references"]])
    + r"|\((?:sensitive|hidden|known after apply|redacted|none)[^()]*\)|@Microsoft\.KeyVault\([^()]*\)"
    # no day: a day alone may be chosen as a password
    r"|\d{4}-\d\d-\d\d[T_ ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:[ ]?(?:Z|UTC|[+-]\d\d:?\d\d))?"
    r"|\d{1,5} bytes|\d{1,5}/(?:tcp|udp|sctp)|\d{1,10}(?::\d{1,10}){1,2}"
    r"(?:[ ,]+(?:\d{1,10}(?::\d{1,10}){1,2}|no-export|no-advertise|local-as|internet|additive))*"  # BGP communities
    r"|(?:os\.environ|os\.getenv|process\.env|System\.getenv|ENV|getpass|config|settings|var)[.(\[][\w.\[\]()\"', ]*"
    r"|(?:module|local|data|self|args|opts|options|params|request)(?:\.[a-z_]{1,40}){0,4}\.[a-z_]{0,40}"  # references
    r"(?:password|passwd|pwd|pw|secret|token|key|credentials?)|random_password\.\w{1,60}\.result"
    # expressions of ARM, references of Terraform, types of SQL and of Python
    r"|\[(?:parameters|variables|reference|list[A-Z]\w{1,40}|resourceId|uniqueString|newGuid)\([^=\n]{0,250}\)[\w.\[\]]{0,60}\]"
    r"|(?:\$\{)?(?:data\.)?(?:azurerm|azuread|azapi|aws|google|random|tls|vault|kubernetes|helm|cloudflare|github|gitlab)_[a-z0-9_]{1,60}"
    r"(?:\[[^\[\]\n]{1,40}\])?(?:\.[a-z][a-z0-9_-]{0,60}(?:\[[^\[\]\n]{1,40}\])?){2,5}\}?"
    r"|(?i:n?varchar2?|n?char|varbinary|binary|raw|character[ ]varying|string)"
    r"\([ ]?(?:\d{1,5}|max)(?:[ ,]{1,2}\w{1,5})?[ ]?\){0,2}"
    r"|(?:str|bytes|SecretStr|(?:Optional|list|List|Sequence)\[(?:str|bytes|SecretStr)\])(?: \| None)?"
    r"(?: = None)?(?:\)(?: -> [\w\[\], |.]{1,60})?)?"
)
