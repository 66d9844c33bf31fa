"""Placeholders for random tokens in text that leaves this machine: `for_outside(text, mapping)`.

`redact` finds a secret by its name, shape or place. A random token without any of these stays on this machine, because
it may be evidence; a model, a notification or an exported file gets a placeholder. The same token always has the same
placeholder, so tokens stay distinguishable. The mapping is in memory only.

Addresses, resource ids, hashes, certificates and resource names stay (`fallback.toml`).
"""

from __future__ import annotations

import re
from functools import cache

from ghost.errors import UsageError
from ghost.patterns import lazy
from ghost.policy import load_policy
from ghost.redaction.passes import redact
from ghost.redaction.secret_values import entropy, is_base64_with_slashes, is_guid, is_of_one_case

_MIN_LENGTH = 16
"""Characters of a token: shorter ones are seldom distinguishable from names."""
_MIN_BITS = 3.3
"""Shannon entropy in bits per character. Names in camel case reach it too, so words are counted as well."""
_MAX_WORDS = 0.45
"""Share of a token in runs of three small letters or more: 0.16 in random base62, 0.7 in names."""
_MIN_TURNS = 0.22
"""Changes of character class per character, except a capital before a small letter: 0.45 in random base62."""
_NAME_REACH = 96
"""Characters before a token that are searched for its name."""
_PLACEHOLDER = lazy(r"\[TOKEN_(\d{1,9})\]")
_WORD = lazy(r"[a-z]{3,}")
_TURN = lazy(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])|[A-Z](?=[A-Z][a-z][A-Z0-9])")
_KINDS = (lazy("[a-z]"), lazy("[A-Z]"), lazy("[0-9]"))
_HEX = lazy(r"[0-9a-f]{32,}+|[0-9A-F]{32,}+")
_PADDED = lazy(r"[A-Za-z0-9+/]{22,}={1,2}")
_NAME_BEFORE = lazy(r"(?P<name>[A-Za-z][\w.-]{0,80})[\"'\]\\]{0,4}[ \t]{0,4}(?P<mark>[:=]|)[ \t\"'\[(\\]{0,6}$")
_FILE_NAME = lazy(r"\.[a-z]{2,6}$")
# A JSON escape is matched first: its letter is not part of the token after it.
_RUN_OR_ESCAPE = (
    r"\\(?:u[0-9a-fA-F]{4}|[\"\\/bfnrt])"
    r"|(?P<token>(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=\\u[0-9a-fA-F]{4}))[A-Za-z0-9][A-Za-z0-9+/_~-]{15,}+={0,2})"
)


class Placeholders:
    """Tokens and their placeholders (`[TOKEN_1]`) of one session. In memory only: cannot be pickled or copied."""

    def __init__(self) -> None:
        self._placeholders: dict[str, str] = {}
        self._tokens: dict[str, str] = {}

    def placeholder(self, token: str) -> str:
        """Return the placeholder of a token, the same each time."""
        if token not in self._placeholders:
            placeholder = f"[TOKEN_{len(self._placeholders) + 1}]"
            self._placeholders[token] = placeholder
            self._tokens[placeholder] = token
        return self._placeholders[token]

    def hide(self, text: str) -> str:
        """Return `text` with known tokens replaced by their placeholders."""
        for token in sorted((token for token in self._placeholders if token in text), key=len, reverse=True):
            text = text.replace(token, self._placeholders[token])
        return text

    def restore(self, text: str) -> str:
        """Return `text` with placeholders replaced by their tokens. Unknown placeholders stay."""
        return _PLACEHOLDER.sub(lambda match: self._tokens.get(match[0], match[0]), text)

    def unknown(self, text: str) -> str | None:
        """Return the first unknown placeholder in `text`, or None. After a resume all are unknown."""
        return next((m[0] for m in _PLACEHOLDER.finditer(text) if m[0] not in self._tokens), None)

    def __reduce__(self) -> str:
        raise UsageError("placeholders stay in memory: the tokens they stand for are written nowhere")


def for_outside(text: str, mapping: Placeholders) -> str:
    """Return `text` redacted, with placeholders for random tokens outside of known structure. Idempotent."""
    text, _ = redact(text)
    return mapping.hide(_scan().sub(lambda match: _outside(match, mapping), text))


def looks_secret(token: str) -> bool:
    """Whether a token looks random: 16 characters or more, several character classes mixed, no words."""
    if len(token) < _MIN_LENGTH or is_guid(token):
        return False
    if _HEX.fullmatch(token):
        return all(kind.search(token.lower()) for kind in (_KINDS[0], _KINDS[2]))
    if is_of_one_case(token):
        return True
    if not all(kind.search(token) for kind in _KINDS) or entropy(token) < _MIN_BITS:
        return False
    words = sum(len(word) for word in _WORD.findall(token))
    return words <= _MAX_WORDS * len(token) and len(_TURN.findall(token)) >= _MIN_TURNS * len(token)


def _outside(match: re.Match[str], mapping: Placeholders) -> str:
    token = match["token"]
    if token is None or _is_named(match):
        return match[0]
    if "/" in token and not (_PADDED.fullmatch(token) or ("+" in token and is_base64_with_slashes(token))):
        return "/".join(mapping.placeholder(part) if looks_secret(part) else part for part in token.split("/"))
    return mapping.placeholder(token) if looks_secret(token.rstrip("=")) else token


def _is_named(match: re.Match[str]) -> bool:
    """Whether the name before a token marks it as public; without `:` or `=` between them, only a hash is."""
    before = match.string[max(0, match.start() - _NAME_REACH) : match.start()]
    found = _NAME_BEFORE.search(before)
    is_hash = _HEX.fullmatch(match["token"]) is not None
    if found is None or not (found["mark"] or is_hash):
        return False
    if is_hash and _FILE_NAME.search(found["name"]) is not None:
        return True  # the checksum of a file
    name = re.sub(r"[\W_]", "", found["name"]).lower()
    return name.endswith(_public_names()) or name.rstrip("0123456789").endswith(_public_names())


@cache
def _scan() -> re.Pattern[str]:
    """Return a pattern that matches known structure or a token, whichever comes first."""
    return re.compile(f"{'|'.join(_inline(each) for each in _policy()['structure'])}|{_RUN_OR_ESCAPE}")


def _inline(pattern: str) -> str:
    """Return a pattern as a group, with its global flag limited to the group."""
    return f"(?i:{pattern.removeprefix('(?i)')})" if pattern.startswith("(?i)") else f"(?:{pattern})"


@cache
def _public_names() -> tuple[str, ...]:
    return tuple(_policy()["names"])


@cache
def _policy() -> dict[str, list[str]]:
    return load_policy(__file__, "fallback.toml", dict[str, list[str]])
