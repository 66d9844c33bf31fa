"""Secrets that are known by the name beside them, however the two are written together.

JSON, also inside JSON strings, YAML, environment files, headers, command options, XML and statements.
Beside a name that is not always a secret's, only what looks random is taken out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ghost.shell.secret_values import MARKER, POLICY, PRIVATE_KEY, Counts, is_guid, is_mixed, is_open, looks_random
from ghost.shell.secrets_in_statements import is_sentence, operand

_CERTAIN = {category: tuple(names) for category, names in POLICY["names"]["certain"].items()}
_LIKELY = {category: tuple(names) for category, names in POLICY["names"]["likely"].items()}
_WEAK = frozenset(POLICY["names"]["weak"]["names"])
_NEVER = tuple(POLICY["names"]["never"]["names"])
_SUFFIXES = tuple(POLICY["names"]["suffixes"])
_ALL_NAMES = tuple(name for table in (_CERTAIN, _LIKELY) for names in table.values() for name in names)

_CORE = re.compile(
    r"\[redacted[a-z_]{0,24}\]"  # passed over whole
    "|pass|pwd|secret|token|key|psk|credential|community|cookie|signature|auth|connectionstring|connection_string"
    "|connection-string|connection string|connstr|session|azurewebjobsstorage|assertion|jwt|userpw|nonce|salt|code|sas"
    "|userdata|customdata|pin|sid|login|kennwort|mot de passe|contrase|senha|wachtwoord|protectedsettings"
    "|saml|verifier|encrypt|sshpass|ext_pat|devops_pat|bindpw|rootpw|phash|priv|privacy|_pw|dbpw|dockerconfigjson|preshare|cipher|ascii|-pw|authbasic"
)
_NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-. "
_NAME_REACH = 48
_REST_OF_NAME = re.compile(r"[\w.-]{0,40}+(?: (?i:string|phrase|hash|\d{1,2})(?=[ \t]{0,40}[:=]))?")
_PROBE_REACH = 128  # how far a value is looked at to tell whether it is random

_SEPARATOR = (
    r"(?:\\{0,7}[\"']|\])?(?:\[[\"']?\w{0,20}[\"']?\])?(?:[ \t]{0,40}(?:=>|:=|==?|:|%3[dDaA]|\\u003[dD])|\((?=[\"']))"
    r"[ \t]{0,40}(?:\n[ \t]{0,40}(?=[\"\[]))?"
)
_QUOTED = (
    r"\"\"\"(?P<triple>[^\"\n]{1,400})(?:\"\"\"|(?=\n)|$)|[NUubBrEf]?\"(?P<double>(?:[^\"\\\n]|\\.)*+)(?:\"|(?=\n)|$)"
    r"|(?P<edge>\\{1,7}\")(?P<escaped>(?:(?!\\{1,7}\")[^\n]|\\{2,7}\"(?![,}\]:\s]))*+)(?:\\{1,7}\"|$)"
    r"|[NUubBrEf]?'(?P<single>(?:[^'\\\n]|\\.|'')*+)(?:'|(?=\n)|$)"
)
_LIST = r"\[(?P<list>(?:[^\[\]{}\"]|\"(?:[^\"\\\n]|\\.)*+(?:\"|$)){0,8192}+)(?:\]|$)"
_BLOCK = r"[|>][+-]?[ \t]*\n(?P<block>(?P<indent>[ \t]+)[^\n]+(?:\n(?P=indent)[^\n]*)*)"
_BARE = (  # a `;`, `&` or `,` ends a value only where another name follows, a bracket only where nothing does
    r"(?P<bare>(?:[^\s\"'<>;&,(){}\[\]\\]|;(?!\s|$|[A-Za-z_][\w .%-]{0,30}=)|[&,](?!\s|$|[A-Za-z_][\w.%-]{0,30}=)"
    r"|[(){}\[\]](?![\s,;)}\]\"']|$)|\\(?![nrt\"'u]))++)"
)
_CONTINUED = (  # base64 that was wrapped
    r"(?P<continued>(?:\\?\n[ \t]{0,40}(?=[A-Za-z0-9+/]*[0-9+/=])[A-Za-z0-9+/]{16,}+={0,2}(?=[\s\"']|$)"
    r"|(?<=[A-Za-z0-9+/]{40})\n[ \t]{0,40}(?:[A-Za-z0-9+/]{1,76}={1,2}|[A-Za-z0-9+/]{12,76})(?=[\s\"']|$))*)"
)
_ASSIGNMENT = re.compile(f"{_SEPARATOR}(?:{_QUOTED}|{_LIST}|{_BLOCK}|{_BARE}){_CONTINUED}")
_JSON_SCALAR = re.compile(r"\"[ \t]{0,40}:[ \t]{0,40}(?P<bare>[A-Za-z0-9_.+-]+)")
_TWO_COLUMNS = re.compile(  # and nothing else on the line; no header, and after a single blank no ordinary word
    r"(?:[ ]{2,40}|\t{1,8})(?P<bare>(?![A-Z][A-Za-z]{0,40}\s)[^\s:=|\"'-][^\s\"']{2,400})[ \t]{0,8}"
    r"(?=\n(?![ \t]{0,8}--)|$)"
    r"|[ ](?P<single>(?=[^\s\"'=]{0,400}[0-9!@#$%^&*])[^\s:=|\"'-][^\s\"'=]{3,400})[ \t]{0,8}(?=\n|$)"
)
_REST_OF_LINE = re.compile(r"[ \t]*[:=][ \t]*(?![|>][+-]?[ \t]*\n)(?P<bare>[^\s\"'\[{\\][^\n]*)" + _CONTINUED)
_LINE_START = re.compile(r"[ \t#]*(?:[<>*|+-][ \t]+)?(?:Header:[ ]|export[ \t]+|set[ \t]+|env[ \t]+|setx[ \t]+)?", re.I)
_OPTION_VALUE = re.compile(rf"(?:[ \t]+|[\"'],?[ \t]{{0,4}}(?=[\"']))(?:{_QUOTED}|(?P<bare>[^\s\"'-][^\s\"']*))")
_ELEMENT = re.compile(r"[^<>]{0,200}>(?P<bare>[^<>\n]++|[^<>]++(?=</))")
_OPTION_NAME = re.compile(r"--|-[A-Z]?[a-z]{3}")
_VARIABLE = re.compile(r"[A-Z0-9]{1,40}(?:_[A-Z0-9]{1,40}){0,8}")
_CERTAIN_OPTIONS = ("pass", "token", "jwt")
_BEHIND_A_NAME = frozenset(" \t\"'=:[]%\\(>")  # nothing is beside a name that something else follows
_DONE = re.compile(r"[\"']?[ \t]{0,4}[:=]?[ \t]{0,4}[\"']?\[REDACTED[A-Z_]{0,24}\][\"']?(?:[\s,;&})]|$)")
_NESTED = re.compile(r"[ \t]{0,4}=[A-Za-z_.-]{1,40}+=[^=\s]")  # `key=name=x`: the last of the names counts
_ARN = re.compile(r"\barn:[^\s\"]{1,110}:$")
_ASSIGNED = re.compile(r"[ \t]{0,8}(?:=(?!=)|%3[dD])")
_SECRET_VARIABLES = ("PASS", "TOKEN", "_AUTH", "_PW")
_SHORT_NAMES = ("pass", "pw", "_auth", "PASS")
_HEADER_NAMES = ("cookie", "setcookie")
_VALUE_GROUPS = ("triple", "double", "escaped", "single", "list", "block", "bare")


def redact_named_values(text: str, counts: Counts) -> str:
    """Replaces the values that stand beside a secret's name, however the two are written together."""
    pieces: list[str] = []
    done = 0
    for core in _CORE.finditer(lowered(text)):
        if core.start() < done or core[0][0] == "[":
            continue
        name = _name_around(text, core, done)
        if name is None or (found := _secret_beside(name)) is None:
            continue
        start, end, replacement = found
        pieces += [text[done:start], replacement]
        counts[name.meaning.category] += 1
        done = end
    return "".join([*pieces, text[done:]])


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What the words of a name say, wherever they stand."""

    category: str
    certain: bool
    is_weak: bool  # `auth`: a secret's name only where a word says how the secret is written
    is_keyword: bool  # `cipher`: no more than a keyword of a statement
    is_option: bool  # `--password`, `-Password`
    is_header: bool  # `Cookie`, which is a secret's name only where it starts a line
    may_be_path: bool  # `PWD`, `credentials`
    is_variable: bool  # `SMTP_PASS`, as variables of the environment are spelled


@dataclass(frozen=True, slots=True)
class _Name:
    """A secret's name in a text, from `start` to `end`."""

    text: str
    start: int
    end: int
    meaning: _Meaning

    @property
    def quoted(self) -> bool:
        """Whether it stands in double quotes, as a key of JSON does."""
        return self.text.endswith('"', 0, self.start) and self.text.startswith('"', self.end)

    @property
    def is_parameter(self) -> bool:
        """Whether it is one of a URL."""
        return self.text.endswith(("?", "&", "#"), 0, self.start)

    @property
    def is_element(self) -> bool:
        return self.text.endswith("<", 0, self.start)

    @property
    def starts_line(self) -> bool:
        """Whether it is one word and first on its line, but for an indentation, a mark, or `export`."""
        words = self.text[self.start : self.end]
        start = self.end - len(words.lstrip())
        line = self.text.rfind("\n", max(0, start - 80), start) + 1
        if " " in words.strip() or (line == 0 and start > 80):
            return False
        return _LINE_START.fullmatch(self.text, line, start) is not None


def _name_around(text: str, core: re.Match[str], done: int) -> _Name | None:
    before = text[max(done, core.start() - _NAME_REACH) : core.start()]
    rest = _REST_OF_NAME.match(text, core.end())
    assert rest is not None
    start, end = core.start() - (len(before) - len(before.rstrip(_NAME_CHARACTERS))), rest.end()
    meaning = _meaning(text[start:end])
    return _Name(text, start, end, meaning) if meaning is not None else None


@lru_cache(maxsize=8192)
def _meaning(words: str) -> _Meaning | None:
    last = words.rpartition(" ")[2]
    is_weak = _normal(last) in _WEAK
    kind = secret_kind(words)
    if kind is None and not is_weak:
        return None
    category, certain = kind or ("password", False)
    normal = _normal(words)
    is_option = _OPTION_NAME.match(last) is not None
    return _Meaning(
        category,
        certain or (is_option and normal.endswith(_CERTAIN_OPTIONS)),
        is_weak,
        kind is None,
        is_option,
        normal in _HEADER_NAMES,
        normal.endswith(("pwd", "credentials")),
        _VARIABLE.fullmatch(last) is not None,
    )


def _secret_beside(name: _Name) -> tuple[int, int, str] | None:
    """Where the secret beside a name is, and what replaces it; None where there is none."""
    if name.text[name.end : name.end + 1] not in _BEHIND_A_NAME or _DONE.match(name.text, name.end) is not None:
        return None
    certain = name.meaning.certain or (name.meaning.is_header and name.starts_line)
    if name.text.endswith("; COOKIE", 0, name.end) and name.text.startswith(":", name.end):
        return None  # of DNS (RFC 7873), as dig shows it
    word = name.text.rfind(" ", name.start, name.end) + 1 or name.start
    if (span := operand(name.text, word, name.end, certain=certain, weak=name.meaning.is_weak)) is not None:
        return *span, MARKER
    if name.meaning.is_keyword:
        return None
    if word > 0 and name.text.startswith("/", word - 1) and name.text[word - 2 : word - 1] not in (" ", '"'):
        return None  # `/etc/ssl/app.key: Permission denied`
    if name.text.startswith(":", name.end) and _ARN.search(name.text, max(0, word - 120), word) is not None:
        return None  # `arn:aws:secretsmanager:eu-west-1:1:secret:name`
    if not certain:
        if _NESTED.match(name.text, name.end) is not None:
            return None
        probe = _value_of(name, certain, name.end + _PROBE_REACH)
        if probe is None or not any(_is_telling(name, value) for value in _strings(probe)):
            return None
    match = _value_of(name, certain, len(name.text))
    if match is None:
        return None
    group = _value_group(match)
    value = match[group]
    if all(map(is_open, _strings(match))):
        return None
    if value.startswith("/") and name.meaning.may_be_path:
        return None
    if is_sentence(value) or (value.isdigit() and len(value) <= 3 and name.text.endswith("s", 0, name.end)):
        return None  # what is said of passwords, and how many there are
    if name.meaning.is_option and _is_placeholder(value, name):
        return None
    start, end = match.span(group)
    if match.groupdict().get("continued"):
        end = match.end("continued")
    marker = PRIVATE_KEY if "PRIVATE KEY" in value else MARKER
    in_quotes = group == "list" or (group == "bare" and name.quoted)
    return start, end, f'"{marker}"' if in_quotes else marker


def _is_telling(name: _Name, value: str) -> bool:
    """Whether a value beside a name that is not always a secret's shows that it is one here."""
    if looks_random(value) or (name.meaning.category == "bearer_token" and is_guid(value)):
        return True
    if name.meaning.category == "password" and name.text[name.start : name.end].endswith("pass") and is_mixed(value):
        return True
    assigned = _ASSIGNED.match(name.text, name.end) is not None
    if not assigned or is_guid(value) or value.startswith(("/", "http", "file:")) or value.isdigit():
        return False
    if name.text.endswith(_SECRET_VARIABLES, name.start, name.end) and name.meaning.is_variable:
        return True
    if name.text[name.start : name.end].rpartition(" ")[2] in _SHORT_NAMES:
        return True
    return len(value) >= 8 and is_mixed(value) and (name.meaning.category != "api_key" or name.is_parameter)


def _is_placeholder(value: str, name: _Name) -> bool:
    """`--password PASSWORD`, as a program's help writes it."""
    word = value.strip("[]<>()")
    return word.isupper() and word.lower() in name.text[name.start : name.end].lower()


def _value_of(name: _Name, certain: bool, reach: int) -> re.Match[str] | None:
    """The value beside a name, by the way the two are written together, looked for up to `reach`."""
    text, end = name.text, name.end
    if name.meaning.is_option and (option := _OPTION_VALUE.match(text, end, reach)) is not None:
        return option
    if name.is_element and (element := _ELEMENT.match(text, end, reach)) is not None:
        return element
    if certain and name.starts_line and (line := _REST_OF_LINE.match(text, end, reach)) is not None:
        return line
    if certain and name.starts_line and (column := _TWO_COLUMNS.match(text, end, reach)) is not None:
        return column
    match = _ASSIGNMENT.match(text, end, reach)
    if match is not None and name.quoted and match["bare"] is not None and not text.startswith("=", end + 1):
        return _JSON_SCALAR.match(text, end, reach)  # no more than the number or word, so that JSON stays JSON
    return match


def _value_group(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return next(group for group in _VALUE_GROUPS if groups.get(group) is not None)


def _strings(match: re.Match[str]) -> list[str]:
    """The value, or, where it is a list, its parts."""
    group = _value_group(match)
    return re.findall(r"[^\s,\"']+", match[group]) if group == "list" else [match[group]]


_SHORT_PASSWORD = re.compile(r"[_-](?:pw|PW)$|[a-z]Pw$")  # `DEPLOY_PW`, `common-pw`


@lru_cache(maxsize=4096)
def secret_kind(name: str) -> tuple[str, bool] | None:
    """What stands beside a name: its category and whether it is a secret for certain; None where it is none."""
    words = name.split(" ")
    for count in (3, 2, 1):  # `primary key` is a name of two words; in `the access key` only two are the name
        normal = _normal(" ".join(words[-count:]))
        if normal.endswith(_NEVER):
            return None
        for category, endings in _CERTAIN.items():
            if normal.endswith(endings) or normal.removesuffix("s").endswith(endings):
                return category, True
    if _SHORT_PASSWORD.search(words[-1]) is not None:
        return "password", True
    last = _normal(words[-1])
    if last.startswith("x") and last.endswith("token"):
        return "bearer_token", True  # `X-Vault-Token`
    for category, endings in _LIKELY.items():
        if last.endswith(endings):
            return category, False
    return None


def _normal(name: str) -> str:
    normal = re.sub(r"[ _.-]", "", name).lower()
    shorter = normal.rstrip("0123456789")
    if shorter.endswith(_SUFFIXES) and not shorter.endswith(("connectionstring", "communitystring", "keystring")):
        for suffix in _SUFFIXES:
            cut = shorter.removesuffix(suffix)
            if cut != shorter and cut.endswith(_ALL_NAMES):
                return cut
    return shorter or normal


def lowered(text: str) -> str:
    """Lower case, character by character: offsets stay."""
    whole = text.lower()
    return whole if len(whole) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
