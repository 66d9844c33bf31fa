"""Secrets after a keyword and blanks: `enable secret 5 X`, `requirepass X`.

Configurations of network devices and daemons are statements: one word names a secret, others say how it is written
(`7`, `md5`, `encrypted`, `ascii-text`), and one is the secret. `[statement]` of `redaction.toml` is the vocabulary; no
vendor has its own rule. Prose is recognised by its function words. Every search is bounded.
"""

from __future__ import annotations

import re

from ghost.patterns import lazy
from ghost.redaction.secret_names import secret_kind
from ghost.redaction.secret_values import POLICY, any_of, is_generated, is_inflected, is_mixed, is_open, looks_random

Span = tuple[int, int]

_VOCABULARY: dict[str, list[str]] = POLICY["statement"]
_ORDINARY = frozenset(_VOCABULARY["ordinary"])
_NEEDS = {name: frozenset(words) for name, words in POLICY["statement"]["needs"].items()}
_TOLD_BY = {name: tuple(words) for name, words in POLICY["statement"]["told_by"].items()}
_LINE_REACH = 240  # how far before a name its line is read
_INDENTED = ("key", "pass")  # `key X` below what it is the key of
_QUALIFIERS = 6  # at most so many words between a name and its operand


_HEADS = frozenset(_VOCABULARY["heads"])
_HEAD = lazy(r"(?<![\w.-])[\w-]++")
_PROSE = frozenset(_VOCABULARY["prose"])
_SPOKEN = lazy(r"(?<![\w.'-])[\w'-]++")
_VERBS = "|".join(
    rf"(?<={name})[ \t]{{1,40}}(?:{'|'.join(patterns)})" for name, patterns in POLICY["statement"]["verbs"].items()
)
_QUALIFIER = lazy(
    rf"(?:{_VERBS}|[ \t]{{1,40}}(?:(?P<number>\d{{1,5}})"
    rf"|(?P<form>{any_of(_VOCABULARY['forms'])}|(?:hmac|sha|aes|reg_)[\w-]{{0,20}})"
    rf"|(?:{any_of(_VOCABULARY['qualifiers'])})"
    rf"|(?:{any_of(_VOCABULARY['qualifiers_with_value'])})[ \t]{{1,40}}\"?[\w.:@-]{{1,60}}\"?"
    rf"|(?:{any_of(_VOCABULARY['qualifiers_with_address'])})[ \t]{{1,40}}(?=[\da-f]*[.:])[\da-f.:]{{3,45}}"
    r"(?:/\d{1,3})?))"
    r"(?=[ \t])",
    re.IGNORECASE,
)
_REST = (  # quotation marks, `;` and backslashes are of the word only where it goes on behind them
    r"[^\s\"'`;\\]{0,400}+(?:(?:[\"'`;](?![\s,;)}\]\\]|$|[\"'`](?:[\s,;:)}\]\"'`\\]|$))|\\(?![\s,;)}\]\"'\\n]|$))"
    r"[^\s\"'`;\\]{0,400}+){0,8}"
)
_OPERAND = lazy(
    r"[ \t]{1,40}(?:\"(?P<double>(?:[^\"\\\n]|\\.){1,400}+)(?:\"|$)|'(?P<single>(?:[^'\n]|'\\''){1,400}+)(?:'|$)"
    r"|\\\"(?P<escaped>[^\"\\\n]{1,400})"
    rf"|(?P<bare>[^\s\"'`;,|(){{}}<>\[\]\\=:]{_REST})|(?P<marked>(?!\\[\"'nrtu\\])[\"'`;,|(){{}}<>\[\]\\=:]{_REST}))"
)
_BEHIND_ADDRESS = lazy(  # `server 1 address 10.0.0.5 secret X`
    r"[ \t]*(?:[\w-]{1,20}[ ]){0,3}(?:server|address|host|client|peer)[ ]"
    r"(?=[\da-f]*[.:])[\da-f.:]{3,45}(?:/\d{1,3})?[ ]"
    r"(?:(?:port|auth-port|acct-port|timeout|retries|priority|vrf)[ ][\w.-]{1,40}[ ]){0,4}"
)
_ALL_BUT_FIRST = lazy(r"[ \t]*(?:[<>*|+-][ \t]+)?(?:[\w.@()~:/-]{1,60}[#>$%][ \t]?)?(?:(?:no|set|option|list)[ \t]+)?")
_TAIL = lazy(
    r"[\"']?[ \t]*(?:;|,|;?[ \t]*\}|#[^\n]{0,80}|\\n[^\n]*|encrypted|\d|\[truncated: \d+ characters omitted\])?"
    r"[ \t;]*(?:##[^\n]{0,80})?(?:\n|$)"
)
_ONE_MORE = lazy(r"[\"']?(?:[ ][\w.:/-]{1,60})?[ \t]*(?:\n|$)")
_SUBJECT = lazy(r"[ \t*-]{0,8}(?:[0-9a-f]{7,40}[ ](?:\([^()\n]{1,80}\)[ ])?[A-Za-z]{2,12}|[A-Z][a-z]{1,12})[ ]")
_ONE_WORD = lazy(r"[ \t]*[a-z]{3,12}[ ]")
_FURTHER = lazy(r"[ ](?P<word>[a-z]{3,20})(?![\w-])")
_FORMS = frozenset(_VOCABULARY["forms"])
_OPTION = lazy(r"-{1,2}[A-Za-z]")
_NUMBER = lazy(r"\d{1,5}(?:[.:/]\d{1,5})*\.?")
_PATH = lazy(r"[~.]{0,2}/[\w.-]|[A-Za-z]:\\|https?://")
_NAME = lazy(r"[^=]{1,60}:|[A-Za-z_.-]{1,60}=|[A-Za-z][\w.-]{0,40}=[^=].*")
_ASSIGNED_WORD = lazy(  # `abc=defghijk1`
    r"[^\s=:/[-][^\s=:/]{0,40}=(?!\d{1,6}$)(?!\S{0,80}&\w{1,20}=)\S{0,80}(?<=.{8})"
)
_LABEL = lazy(r"[A-Za-z][\w-]*[:=]")
_FILE = lazy(r"[\w.-]+\.(?:key|pem|crt|cer|txt|conf|json|ya?ml|db|py|log|sh|go|js)")


def operand(text: str, start: int, end: int, *, certain: bool, weak: bool = False) -> Span | None:
    """Return the span of the operand of the keyword at `start` to `end`; None if this is no statement.

    A `weak` name, such as `auth`, is a keyword only if a word says how its operand is written.
    """
    if text[end : end + 1] not in (" ", "\t"):
        return None
    name = text[start:end].lower().strip("-")
    line = max(text.rfind("\n", max(0, start - _LINE_REACH), start) + 1, start - _LINE_REACH, 0)
    before = text[line:start].lower()
    indented = before[:1] in (" ", "\t")
    needed = _NEEDS.get(name)
    if needed is not None and not any(word in before for word in needed):
        return None
    if not needed:  # else it stands in the block of the word before it: `snmp { community X`
        before = before[max(before.rfind(";"), before.rfind("{")) + 1 :]  # a statement of its own
    position, said = _behind_qualifiers(text, end, certain=certain)
    found = _OPERAND.match(text, position)
    if found is None or found.lastgroup is None:
        return None
    span, value = found.span(found.lastgroup), found[found.lastgroup]
    quoted = found.lastgroup not in ("bare", "marked")
    if found.lastgroup == "marked" and not is_generated(value):
        return None
    if not quoted and _is_keyword_itself(text, position, span):
        return None
    if weak and not quoted and _NAME.fullmatch(value) and not is_generated(value):
        return None
    said = said or (weak and any(word in before for word in _TOLD_BY.get(name, ())))
    if not _may_be_secret(value, name, quoted=quoted, certain=certain, said=said):
        whole = not weak and is_mixed(value) and _is_whole(text, before, name, span, certain=certain)
        if not whole or _ASSIGNED_WORD.fullmatch(value) is None:
            return None
    if said:
        return span
    if weak:
        return None
    if certain and _BEHIND_ADDRESS.fullmatch(before) is not None:
        return span
    if not quoted and _is_sentence_part(text, line, start, span):
        return None
    around = before + text[end : min(len(text), span[1] + 60)].partition("\n")[0].lower()
    if is_prose(around):
        return span if (certain and is_mixed(value)) or ("/" not in value and looks_random(value)) else None
    head = next((word for word in _HEAD.finditer(before) if word[0] in _HEADS), None)
    if head is not None and (certain or (name in _INDENTED and (is_mixed(value) or _begins_statement(before, head)))):
        return span
    first = _ALL_BUT_FIRST.fullmatch(before) is not None
    last = _TAIL.match(text, span[1]) is not None
    if certain:
        alone = last and len(before.split()) <= 1
        short = first and text[start].islower() and _ONE_MORE.match(text, span[1]) is not None
        return span if quoted or is_mixed(value) or alone or short else None
    return span if first and last and indented and not quoted and name in _INDENTED else None


def _is_keyword_itself(text: str, position: int, span: Span) -> bool:
    """Whether a word is a keyword itself, and another word follows: `auth plaintext-password X`, `md5 1 start-time X`.

    After a number for the encryption it is the secret nevertheless: `password 7 X`."""
    if _ANOTHER.match(text, span[1]) is None or text.endswith(_ENCRYPTED_AS, 0, position):
        return False
    word = text[slice(*span)]
    if _KEYWORD.fullmatch(word) is None:
        return False
    return is_ordinary(word.rpartition("-")[2]) or secret_kind(word) is not None


_ANOTHER = lazy(r"[ \t]{1,40}(?:[^\s;,|&)}\]>#!]|\[REDACTED)")
_KEYWORD = lazy(r"[a-z][a-z0-9]{1,20}(?:[-_][a-z0-9]{1,20}){1,4}")
_ENCRYPTED_AS = tuple(f" {number}" for number in "056789")


def _is_whole(text: str, before: str, name: str, span: Span, *, certain: bool) -> bool:
    """Whether the line is a statement from its first word, with the operand last."""
    if _TAIL.match(text, span[1]) is None:
        return False
    if not before.strip():
        return certain or name in _INDENTED
    head = _HEAD.search(before)
    begins = head is not None and head[0] in _HEADS and not before[: head.start()].strip()
    return begins and (certain or name in _INDENTED)


def _is_sentence_part(text: str, line: int, start: int, span: Span) -> bool:
    """Whether the name is part of a sentence, by its grammar: `Add secret scanning`, `rotate secret weekly`, `secret
    scanning enabled`. No statement begins with a capital letter or a commit."""
    if not is_inflected(text[slice(*span)].rstrip(".,;:)")):
        return False
    before = text[line:start]
    if _SUBJECT.fullmatch(before) is not None:
        return True
    if any(word in _HEADS for word in _HEAD.findall(before.lower())):
        return False
    if _ONE_WORD.fullmatch(before) is not None and text.endswith("ly", 0, span[1]):
        return True
    further = _FURTHER.match(text, span[1])
    return further is not None and is_inflected(further["word"]) and further["word"] not in _FORMS


def is_description(value: str) -> bool:
    """Whether a value describes a secret in words: `managed identity`, `rotated externally`."""
    words = value.split(" ")
    return (
        2 <= len(words) <= 6
        and any(map(is_inflected, words))
        and all(is_inflected(word) or (word.isalpha() and word.islower() and is_ordinary(word)) for word in words)
    )


def _begins_statement(before: str, head: re.Match[str]) -> bool:
    """Whether the word begins a statement: first on its line, after a log prefix or prompt, or `radius-server`."""
    prefix = before[: head.start()].strip()
    return not prefix or prefix.endswith((":", "#", ">")) or head[0].endswith("-server")


def is_ordinary(value: str) -> bool:
    """Whether a value is a word of the vocabulary of settings."""
    return value.lower().rstrip(".,;:") in _ORDINARY


def is_sentence(value: str) -> bool:
    """Whether a value is several words of prose."""
    lowered = value[:_LINE_REACH].lower()
    return lowered.count(" ") >= 2 and is_prose(lowered) and not any(c.isdigit() for c in value.split(" ")[0])


def is_prose(lowered: str) -> bool:
    """Whether lower-case words include a function word."""
    return not _PROSE.isdisjoint(_SPOKEN.findall(lowered))


def _behind_qualifiers(text: str, position: int, *, certain: bool) -> tuple[int, bool]:
    """Return the position after the words that say how an operand is written, and whether they are unambiguous."""
    said, start = False, position
    for _ in range(_QUALIFIERS):
        word = _QUALIFIER.match(text, position)
        if word is None or (word["number"] and certain and _TAIL.match(text, word.end())):
            break
        said = said or word["form"] is not None or (word["number"] in _TYPES and (certain or position == start))
        position = word.end()
    return position, said


_TYPES = ("0", "5", "6", "7", "8", "9")


def _may_be_secret(value: str, name: str, *, quoted: bool, certain: bool, said: bool) -> bool:
    bare = value.strip("\"'").rstrip(",.;:)")
    if len(bare) < 3 or is_open(bare) or bare.lower() in _ORDINARY or bare.lower() == name:
        return False
    if not quoted and _LABEL.fullmatch(value) and not is_generated(value):
        return False
    if quoted or is_generated(value) or (said and not _NUMBER.fullmatch(bare)):
        return True
    if _NUMBER.fullmatch(bare):
        return certain and bare.isdigit() and len(bare) > 2
    return not (
        (_OPTION.match(bare) and len(bare) < 24 and "==" not in bare)
        or (_PATH.match(bare) and not looks_random(bare))
        or _FILE.fullmatch(bare)
        or _NAME.fullmatch(value)
    )
