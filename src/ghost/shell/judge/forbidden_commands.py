"""Tier 0: commands that destroy a machine and reads of credential material. Refused whoever asks; there is no prompt.

Commands are found also as one segment of a chain, behind programs that run other programs, inside the code given to a
shell and in strings given to an interpreter. Paths are judged normalised, and `credential_behind` judges real ones.
Policy: `policy/forbidden.toml`. Finding too much costs a refusal of what nobody runs in an investigation.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice, pairwise
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ghost.patterns import lazy
from ghost.shell.judge.command_line import CommandLine, parse
from ghost.shell.judge.grammar import Refusal
from ghost.shell.judge.value_types import real_path
from ghost.shell.policy_tables import policy_table

_DEPTH = 4
"""How many quoted commands inside one another are opened: sudo sh -c "bash -c '...'"."""
_WORDS_WITH_REAL_PATHS = 256
_LONGEST_CLUSTER = 32
"""Characters of short options in one word before the value of the last."""

_ASSIGNMENT = lazy(r"[A-Za-z_][A-Za-z0-9_]*=")
_DURATION = lazy(r"[0-9][0-9.]*[smhd]?")
KEYWORDS = frozenset(("{", "}", "!", "then", "do", "else", "elif", "if", "while", "until", "for", "function", "coproc"))
_NESTED = lazy(r"[ ;|&$`'\"()\n<>]")
_STRING = lazy(r"'([^']*)'|\"([^\"]*)\"|`([^`]*)`")
_BREAKS = lazy(r"[=@:,<>]")
_SCHEME = lazy(r"[A-Za-z][A-Za-z0-9+.-]*://")
_FILE_SCHEME = lazy(r"file:(?://[^/]*)?/+", re.IGNORECASE)
_GLOB = lazy(r"[][{}\\]")
_PATH_LIKE = lazy(r"[/~@]")
_SPACE = lazy(r"\s+")

_DESTROYS = "Refused: {what}. Nothing in a network investigation needs it, so there is no prompt."
_CREDENTIALS = (
    "Refused: {path} holds credentials, which no command may print. There is no prompt; read it yourself if you must."
)


class _Policy(NamedTuple):
    wrappers: dict[str, int]
    shells: frozenset[str]
    interpreters: frozenset[str]
    removers: frozenset[str]
    formatters: frozenset[str]
    power: frozenset[str]
    power_words: frozenset[str]
    root: re.Pattern[str]
    device: re.Pattern[str]
    fork_bombs: tuple[re.Pattern[str], ...]
    destroyers: tuple[re.Pattern[str], ...]
    credential: re.Pattern[str]
    hint: re.Pattern[str]
    public: re.Pattern[str]
    tell_no_content: frozenset[str]
    not_content_options: frozenset[str]
    identity_programs: frozenset[str]
    take_names: frozenset[str]
    az_text_options: frozenset[str]
    lookup_programs: frozenset[str]
    lookup_databases: frozenset[str]


@cache
def _policy() -> _Policy:
    table = policy_table("forbidden.toml")
    programs, credentials = table["programs"], table["credentials"]
    return _Policy(
        wrappers=table["wrappers"],
        root=lazy(table["roots"]["path"]),
        device=lazy(table["roots"]["device"]),
        fork_bombs=tuple(map(lazy, table["code"]["fork_bombs"])),
        destroyers=tuple(map(lazy, table["code"]["destroyers"])),
        credential=lazy(credentials["path"]),
        hint=lazy(credentials["hint"]),
        public=lazy(credentials["public"]),
        **{name: frozenset(words.split()) for name, words in programs.items()},
        **{
            name: frozenset(credentials[name].split())
            for name in (
                *("tell_no_content", "not_content_options", "identity_programs", "take_names", "az_text_options"),
                *("lookup_programs", "lookup_databases"),
            )
        },
    )


@cache
def programs_never_allowed() -> frozenset[str]:
    """Programs that run code or other programs, or change what their operands name; no user's table may allow them."""
    policy = _policy()
    named = policy.shells | policy.interpreters | policy.removers | policy.formatters | policy.power
    return named | policy.wrappers.keys() | _POWER_MANAGERS | _WRITERS | _dangerous() | {"cat", "ssh"}


@cache
def _dangerous() -> frozenset[str]:
    table = policy_table("patterns.toml")
    return frozenset(program for row in table["patterns"].values() for program in row["programs"].split())


def forbidden(command: str, line: CommandLine) -> Refusal | None:
    """Why this command is never run; None when Tier 0 has nothing against it."""
    return _forbidden(command, line, _DEPTH)


def _forbidden(command: str, line: CommandLine, depth: int) -> Refusal | None:
    policy = _policy()
    if line.fault is not None:
        squeezed = _SPACE.sub("", command.lower())
        if any(pattern.search(squeezed) for pattern in policy.fork_bombs):
            return _destroys("fork bomb", "it starts processes endlessly")
        for target in line.targets:
            if policy.device.fullmatch(_normal(target)):
                return _destroys("device", f"it overwrites the device {target}")
            if _is_credential(target):
                return _secret(target)
    if line.fault is not None or any(stage.backticked and stage.words[0] != "az" for stage in line.stages):
        for text in line.nested:
            if found := _inside(text, depth):
                return found
    whole = _Chain(line.segments)
    for segment in dict.fromkeys(map(tuple, line.segments)):  # what is there twice is judged once
        found = _judge(segment, whole, depth) or _credential_word(segment)
        if found:
            return found
    return None


@dataclass(frozen=True)
class _Chain:
    """All commands of a line, since one may name what another removes."""

    segments: Sequence[Sequence[str]]

    @cached_property
    def root_operand(self) -> str | None:
        """The first word that names the system's root or a home."""
        return next(filter(_is_root, (word for segment in self.segments for word in segment)), None)


def _inside(text: str, depth: int) -> Refusal | None:
    return _forbidden(text, parse(text), depth - 1) if depth > 0 else None


def _judge(segment: Sequence[str], everywhere: _Chain, depth: int) -> Refusal | None:
    policy = _policy()
    start = 0
    while start < len(segment) and (segment[start] in KEYWORDS or _ASSIGNMENT.match(segment[start])):
        start += 1
    if start == len(segment):
        return None
    name = _program(segment[start])
    runs_others = name in policy.wrappers or name in policy.shells
    if not runs_others and name not in policy.interpreters:
        return _destroyer(name, segment, start, everywhere)
    if name == "find" and (found := _find(segment)):
        return found
    if name == "az":  # only what it runs on a machine counts: az vm run-command invoke --scripts ...
        if _AZ_CODE_OPTIONS.isdisjoint(segment):
            return None
        start = next(index for index, word in enumerate(segment) if word in _AZ_CODE_OPTIONS)
    seen: set[str] = set()
    for position in _command_positions(segment, start) if runs_others else ():
        inner = _program(segment[position])
        if inner not in seen:
            seen.add(inner)
            if found := _destroyer(inner, segment, position, everywhere):
                return found
    alone = _Chain([segment])
    # Behind some words of their own these are still never meant otherwise: az --scripts, find -exec, docker exec NAME.
    for position in range(start + 1, len(segment)):
        inner = _program(segment[position])
        if inner in policy.removers | policy.formatters | {"dd"} and inner not in seen:
            seen.add(inner)
            if found := _destroyer(inner, segment, position, everywhere if name == "xargs" else alone):
                return found
    return _nested_code(segment[start + 1 :], is_code=name in policy.interpreters, depth=depth)


def _nested_code(words: Sequence[str], *, is_code: bool, depth: int) -> Refusal | None:
    policy = _policy()
    for word in words:
        if not _NESTED.search(word):
            continue
        squeezed = _SPACE.sub("", word.lower())
        if any(pattern.search(squeezed) for pattern in policy.fork_bombs):
            return _destroys("fork bomb", "it starts processes endlessly")
        if any(pattern.search(squeezed) for pattern in policy.destroyers):
            return _destroys("file system", "its code deletes a whole file system")
        if found := _inside(word, depth):
            return found
        if is_code:
            strings = ["".join(groups) for groups in _STRING.findall(word)]
            for text in (*strings, " ".join(strings)):
                if found := _inside(text, depth):
                    return found
    return None


def _command_positions(segment: Sequence[str], start: int) -> Iterator[int]:
    """Positions at which the wrapped command may begin: after the wrapper's options, values and own words."""
    policy = _policy()
    own_words = policy.wrappers.get(_program(segment[start]), 0)
    after_option = False
    for position in range(start + 1, len(segment)):
        word = segment[position]
        yield position
        if word.startswith("-") or after_option or _ASSIGNMENT.match(word) or _DURATION.fullmatch(word):
            after_option = word.startswith("-")
            continue
        inner = _program(word)
        if inner in policy.wrappers:
            own_words += policy.wrappers[inner]
        elif inner not in policy.shells:
            if own_words == 0:
                return
            own_words -= 1


def _destroyer(name: str, segment: Sequence[str], position: int, everywhere: _Chain) -> Refusal | None:
    """Judge one command: its program `name` stands at `position`, its arguments behind."""
    policy = _policy()
    if name in policy.removers:
        return _remover(name, segment[position + 1 :], everywhere)
    if name in policy.power:
        return _destroys("power", f"{name} shuts the machine down")
    if name in policy.formatters or name.startswith(("mkfs.", "newfs_")):
        return _destroys("format", f"{name} destroys a file system")
    arguments = segment[position + 1 :] if name in _JUDGED_BY_ARGUMENTS else ()
    if name in ("init", "telinit") and any(word in ("0", "6") for word in arguments):
        return _destroys("power", f"{name} shuts the machine down")
    if name in _POWER_MANAGERS and any(word.lower() in policy.power_words for word in arguments):
        return _destroys("power", f"{name} shuts the machine down")
    if name in _WRITERS:
        reads_only = {"-l", "--list", "print"} & set(arguments)
        for word in arguments:
            path = word.removeprefix("of=")
            if (name != "dd" or path != word) and not reads_only and policy.device.fullmatch(_normal(path)):
                return _destroys("device", f"{name} writes onto the device {path[:80]}")
    if name == "diskutil" and any(word.lower().startswith(("erase", "zero", "secureerase")) for word in arguments):
        return _destroys("format", "diskutil destroys a file system")
    if name == "kexec" and any(word.startswith(("-e", "--exec")) for word in arguments):
        return _destroys("power", "kexec shuts the machine down")
    return None


_AZ_CODE_OPTIONS = frozenset(("--scripts", "--script", "--command"))
_POWER_MANAGERS = frozenset(("systemctl", "loginctl", "busctl", "launchctl"))
_WRITERS = frozenset(("dd", "tee", "cp", "install", "fdisk", "parted", "sfdisk", "gdisk", "cfdisk"))
_JUDGED_BY_ARGUMENTS = _POWER_MANAGERS | _WRITERS | {"init", "telinit", "diskutil", "kexec"}


def _remover(name: str, arguments: Sequence[str], everywhere: _Chain) -> Refusal | None:
    policy = _policy()
    options = [word for word in arguments if word.startswith("-") and len(word) > 1]
    recursive = any(
        option.startswith(("--r", "--no-preserve", "--delete"))
        or (not option.startswith("--") and {"r", "R"} & set(option))
        for option in options
    )
    if name == "rm" and any(option.startswith("--no-preserve") for option in options):
        return _destroys("file system", "--no-preserve-root allows deleting the whole file system")
    if name in ("chmod", "chown", "chgrp") and not recursive:
        return None
    if name == "rsync" and not any(option.startswith("--del") for option in options):
        return None
    operands = [word for word in arguments if not word.startswith("-")]
    if name == "rm" and recursive and not operands and everywhere.root_operand:
        operands = [everywhere.root_operand]  # echo / | xargs rm -rf
    if name == "mv":
        operands = operands[:-1]
    for operand in operands:
        path = _normal(operand)
        if _is_root(operand):
            return _destroys("file system", f"{name} would destroy {operand[:80]}, the system or a home directory")
        if name in ("shred", "truncate", "wipe") and policy.device.fullmatch(path):
            return _destroys("device", f"{name} overwrites the device {operand[:80]}")
    return None


def _is_root(operand: str) -> bool:
    path = "-" if operand.startswith("-") else _normal(operand)
    return _policy().root.fullmatch(path) is not None or path == _home().lower()


def _find(segment: Sequence[str]) -> Refusal | None:
    policy = _policy()
    starts = [word for word in segment[1:] if not word.startswith("-")]
    removes = "-delete" in segment or any(_program(word) in policy.removers for word in segment[1:])
    first = next((_normal(word) for word in starts[:1]), "/")
    if removes and policy.root.fullmatch(first):
        return _destroys("file system", f"find would delete below {starts[0][:80] if starts else '/'}")
    return None


def _program(word: str) -> str:
    """The program's name without its directory and version: `python3.11` is `python`."""
    name = word.rpartition("/")[2].lower()
    return name.rstrip("0123456789.") or name


@cache
def _home() -> str:
    return os.path.normpath(os.path.expanduser("~"))  # noqa: PTH111 - a text, never opened


def _expanded(path: str) -> str:
    """The path with `~` and `$HOME` replaced by the home directory."""
    for home in ("$HOME", "${HOME}", "~"):
        if path.startswith(home) and path[len(home) : len(home) + 1] in ("", "/", "*"):
            return f"{_home()}{path[len(home) :]}"
    return f"/home/{path[1:]}" if path.startswith("~") else path


def _normal(path: str) -> str:
    """The path in lower case, absolute where it climbs or begins at home, without `.` and `..`."""
    path = _expanded(path)
    if path in (".", "..", "./", "../") or path.startswith(("../", "./")):
        path = f"{Path.cwd()}/{path}"
    normal = os.path.normpath(path) if path else ""
    return normal.replace("//", "/", 1).lower() if normal.startswith("//") else normal.lower()


def _destroys(rule: str, what: str) -> Refusal:
    return Refusal(f"forbidden: {rule}", _DESTROYS.format(what=what))


def _secret(path: str) -> Refusal:
    return Refusal("forbidden: credentials", _CREDENTIALS.format(path=path[:120]))


def _is_credential(path: str) -> bool:
    policy = _policy()
    if not policy.hint.search(path.lower()):
        return False
    normal = _normal(path)
    return policy.credential.fullmatch(normal) is not None and policy.public.fullmatch(normal) is None


def _paths_in(segment: Sequence[str]) -> Iterator[str]:
    """Every piece of every argument that may be read as a local file."""
    policy = _policy()
    name = _program(segment[0]) if segment else ""
    if name in policy.take_names and not _PATH_LIKE.search(" ".join(segment)):
        return
    skip_next = False
    for word in segment:
        option, equals, _ = word.partition("=")
        skip, skip_next = skip_next, False
        if name == "az":
            yield from _files_that_az_opens(word)
            if option in policy.az_text_options:
                skip_next = not equals
                continue
        if option.lower() in policy.not_content_options and (option != "-i" or name in policy.identity_programs):
            skip_next = not equals
            continue
        if _FILE_SCHEME.match(word):
            yield _FILE_SCHEME.sub("/", word, count=1)
        if name in policy.take_names and not _PATH_LIKE.search(word):
            continue
        if skip or (_SCHEME.match(word) and not _FILE_SCHEME.match(word)):
            continue
        yield word
        pieces = _BREAKS.split(word)
        if len(pieces) > 1:
            yield from pieces
        if word.startswith("-"):
            tail = re.search(r"[./~$]", word)
            if tail:
                yield word[tail.start() :]
        if name in ("sh", "bash", "eval") or " " in word:
            yield from re.split(r"[\s;|&()'\"`<>]+", word) if len(word) > len(name) else ()


def _files_that_az_opens(word: str) -> Iterator[str]:
    """Files that az reads: a word, or the part after its first '=', that is `@FILE`."""
    for text in (word, word.partition("=")[2]):
        if text.startswith("@") and len(text) > 1:
            yield text[1:]


def _credential_word(segment: Sequence[str]) -> Refusal | None:
    policy = _policy()
    if not policy.hint.search(" ".join(segment).lower()) or _tells_no_content(segment):
        return None
    if database := _looked_up(segment):
        return _secret(f"the database {database}")
    return next((_secret(path) for path in _paths_in(segment) if _is_credential(path)), None)


def _looked_up(segment: Sequence[str]) -> str | None:
    """The database of secrets that `getent` or a similar program is asked for, anywhere in the command."""
    policy = _policy()
    words = iter(segment)
    if not any(_program(word) in policy.lookup_programs for word in words):
        return None
    return next((word for word in words if word.lower() in policy.lookup_databases), None)


def _tells_no_content(segment: Sequence[str]) -> bool:
    """Whether the program shows facts about a file and not its content: ls, and find unless it runs something."""
    return _program(segment[0]) in _policy().tell_no_content and not any(
        word.startswith(("-exec", "-ok", "-fprint", "-files")) for word in segment
    )


def credential_behind(words: Sequence[str]) -> Refusal | None:
    """Why a command is never run because a link in it leads to credentials. Looks at the file system."""
    if not words or _tells_no_content(words):
        return None
    for path, real in _existing(islice(_paths_in(words), _WORDS_WITH_REAL_PATHS)):
        if _is_credential(real):
            return _secret(f"{path[:80]} (really {PurePosixPath(real)})")
    return None


def foreign_file(segments: Iterable[Sequence[str]], is_own: Callable[[str], bool]) -> str | None:
    """Why one of the commands of a line that is not SAFE may read a file that is not `is_own` (a real path).

    Each piece of a word that names something on the disk counts. What code opens cannot be told, so it is not run.
    """
    policy = _policy()
    for segment in filter(None, segments):
        if _tells_no_content(segment):
            continue
        if code := next((name for name in _programs(segment) if name in policy.shells | policy.interpreters), None):
            return f"{code} runs code that may read any file."
        if address := next((word for word in segment if _FILE_SCHEME.search(_GLOB.sub("", word))), None):
            return f"{address[:120]} is the address of a file."
        for path, real in _existing(_files_named(segment)):
            if not is_own(real) and real != os.devnull:
                return f"{path[:120]} is a file of this machine (really {real[:160]})."
    return None


def _programs(segment: Sequence[str]) -> Iterator[str]:
    """The program, and what may be the one behind it where it runs another of this machine."""
    name = _program(segment[0])
    yield name
    if _policy().wrappers.get(name, 99) <= 1:
        yield from (_program(segment[position]) for position in _command_positions(segment, 0))


def _files_named(segment: Sequence[str]) -> Iterator[str]:
    """Words and parts of words that may be paths. az: no part of a script or query, whose files are other machines'."""
    is_az = segment[0] == "az"
    for before, word in pairwise(segment):
        if before not in _policy().az_text_options:
            is_cluster = word.startswith("-") and not word.startswith("--")  # -nrFILE
            joined = range(2, min(len(word), _LONGEST_CLUSTER)) if is_cluster else ()
            for path in (word, word.partition("=")[2], *(word[start:] for start in joined)):
                if not is_az or "/" in path or os.path.isfile(path):  # noqa: PTH113 - a directory may share a group's name
                    yield path
    if is_az:
        yield from (path for word in segment for path in _files_that_az_opens(word))
    else:
        yield from (path for path in _paths_in(segment) if path != segment[0])


def _existing(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Those that exist, each with its real path."""
    for path in paths:
        if not path or len(path) >= 4096 or not path.isprintable():
            continue
        expanded = _expanded(path)
        if ".." not in expanded and not os.path.lexists(expanded):
            continue  # most words: nothing is there, so no link either
        real = real_path(expanded)
        if real is not None and os.path.lexists(real):
            yield path, real
