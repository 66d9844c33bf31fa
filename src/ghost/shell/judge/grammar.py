"""Option grammars of the allowed programs, read from `policy/programs/*.toml` and `policy/host_reads.toml`.

A table lists a program's flags, its options with typed values and its operands; a command is SAFE when every word of
it is one the table holds. What the table does not hold is refused with a reason. Each table carries examples that
must match and that must not; the tests judge them, and those of a user's table are judged when it is read.

    program     the name in the allowlist                  about     what it does, in words
    flags       options without a value: "-s --silent"     values    options with one: "-c" = "INT 1..100"
    clusters    letters may be joined: -4nc3               equals    --name=value
    joined      prefixes of options that take a value by '=' alone: dig's +name=value, nslookup's -name=value
    optional    valued options whose value may be left out: lsof -i, lsof -i :443
    early       options that may stand before the first operand; default all. The program may take the word behind
                another one for its value, and so run another sub-command
    options_first  no option after the first operand       repeatable  valued options allowed more than once
    requires    [{any, why}]: one of these must be there   only_with   option = [others, one of which must be there:
                                                                       "-o /dev/null", "-I without -X GET"]
    not_with    option = [others, none of which may be there]
    operands    the type of each operand; the last one holds for all further ones up to `at_most`
    forms       [{lead, pairs, words, operands, at_least, at_most, needs, without}] where the first operands are
                sub-commands; `needs` are options that must be there, `without` those that must not
    dashes      `--` ends the options where the word behind it would else be one
    also        other names under which the program is called and means the same: ping6
    risks       option or word = why it is not SAFE        harden    words put behind the program's name when SAFE
    defaults    [{unless, add}]: words put there too where none of these options is given: a count, a report mode
    alone       options that are SAFE as the only word, such as --version
    variables   environment variables the run must have, so that no file of the user adds options or code
    spellings   other first words that mean this program, as regular expressions over the first words
    sentence    the type of all operands together, joined by blanks: tcpdump's filter, the names that dig asks for
    payload     of a reader of captures: what it must be told so that packets that its filter lets through are shown
                without their payload: `packet_protocols`
    open        an expression for options that need no row of their own: every one that it matches is SAFE, since the
                sandbox keeps all of them harmless; `flags` and `values` then hold those that take a value or are looked
                at by another key. Built-in tables only: `policy/host_reads.toml`
    operands_are_urls  the operands' hosts must be resolved and judged before the run, those too to which --resolve and
                --connect-to lead in their place: `curl_resolve`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ghost.errors import ConfigurationError
from ghost.patterns import lazy
from ghost.policy import load_policy
from ghost.shell.judge.command_line import parse
from ghost.shell.judge.network.curl_resolve import OPTIONS, fault_of_target, target_hosts
from ghost.shell.judge.network.packet_protocols import PayloadRules, parse_payload_rules
from ghost.shell.judge.network.request_urls import host_of
from ghost.shell.judge.value_types import Check, Roots, parse_type

PROGRAMS = Path(__file__).parents[1] / "policy" / "programs"
HOST_READS = "host_reads.toml"

EXAMPLE_ROOTS = Roots((Path("/tmp/captures"),))  # noqa: S108 - never opened: the examples' captures need not exist


@dataclass(frozen=True)
class Refusal:
    rule: str
    explanation: str


class Admitted(NamedTuple):
    """A SAFE command: the hardening options added when it runs, and the hosts it connects to (curl)."""

    hardening: tuple[str, ...]
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Form:
    """One shape of a program's operands: leading sub-command words, then keywords, pairs and typed operands."""

    lead: tuple[frozenset[str], ...]
    words: frozenset[str]
    pairs: Mapping[str, Check]
    operands: tuple[Check, ...]
    at_least: int
    at_most: int
    needs: frozenset[str]
    without: frozenset[str]

    def leads(self, operands: Sequence[str]) -> bool:
        return len(operands) >= len(self.lead) and all(
            word in allowed for word, allowed in zip(operands, self.lead, strict=False)
        )

    def fault(self, operands: Sequence[str], seen: Set[str], roots: Roots) -> str | None:
        if missing := sorted(self.needs - seen):
            return f"{' '.join(operands[: len(self.lead)])!r} is SAFE only with {' and '.join(missing)}"
        if stray := sorted(self.without & seen):
            return f"{' '.join(operands)[:80]!r} is SAFE only without {' and '.join(stray)}"
        rest = iter(operands[len(self.lead) :])
        count = 0
        for word in rest:
            if word in self.words:
                continue
            if (check := self.pairs.get(word)) is not None:
                value = next(rest, None)
                if value is None:
                    return f"{word!r} needs a value after it"
                if reason := check(value, roots):
                    return f"the value {_shown(value)} of {word!r} {reason}"
                continue
            if count >= self.at_most:
                return f"{_shown(word)} is one word too many, or is not in the table here"
            if reason := self.operands[min(count, len(self.operands) - 1)](word, roots):
                return f"{_shown(word)} {reason}"
            count += 1
        return f"it needs {self.at_least} operand(s) here: what it is asked about" if count < self.at_least else None


class Part(NamedTuple):
    """One option with its value, or an operand: then `option` is None."""

    option: str | None
    value: str | None
    word: str
    """The word it was read from."""
    takes_next: bool = False
    """Whether the value is the word behind it."""


@dataclass(frozen=True)
class Grammar:
    program: str
    about: str
    flags: frozenset[str]
    values: Mapping[str, Check]
    canonical: Mapping[str, str]
    clusters: bool
    equals: bool
    joined: tuple[str, ...]
    optional: frozenset[str]
    options_first: bool
    early: frozenset[str] | None
    dashes: bool
    repeatable: frozenset[str]
    requires: tuple[tuple[frozenset[str], str], ...]
    only_with: Mapping[str, tuple[str, ...]]
    not_with: Mapping[str, tuple[str, ...]]
    forms: tuple[Form, ...]
    risks: Mapping[str, str]
    harden: tuple[str, ...]
    defaults: tuple[tuple[frozenset[str], tuple[str, ...]], ...]
    alone: frozenset[str]
    variables: tuple[tuple[str, str], ...]
    spelling_patterns: tuple[re.Pattern[str], ...]
    operands_are_urls: bool
    sentence: Check | None
    prefixes: tuple[str, ...]
    payload: PayloadRules | None
    open: re.Pattern[str] | None = None
    longest_word: int | None = None
    """Of a user's table, whose expressions were judged for words of at most that length."""

    def read(self, words: Sequence[str]) -> tuple[Part, ...]:
        """The words after the program's name, parsed as the program would."""
        parts: list[Part] = []
        position = 1
        has_operand = False
        while position < len(words):
            word = words[position]
            position += 1
            if word == "--" and self.dashes and words[position : position + 1] and words[position].startswith("-"):
                parts += [Part(None, operand, operand) for operand in words[position:]]
                break
            if len(word) < 2 or not word.startswith(self.prefixes) or (self.options_first and has_operand):
                has_operand = True
                parts.append(Part(None, word, word))
                continue
            following = words[position] if position < len(words) else None
            read = self._read_option(word, following)
            parts += read
            position += bool(read and read[-1].takes_next)
        return tuple(parts)

    def _read_option(self, word: str, following: str | None) -> list[Part]:
        if word in self.flags:
            return [Part(word, None, word)]
        if word in self.values and not word.startswith(self.joined):
            return [self._with_next(word, following, word)]
        if "=" in word and (word.startswith(self.joined) or (self.equals and word.startswith("--"))):
            name, _, value = word.partition("=")
            return [Part(name, value, word)]
        if self.clusters and not word.startswith(("--", *self.joined)):
            return self._read_cluster(word, following)
        return [Part(word, None, word)]

    def _read_cluster(self, word: str, following: str | None) -> list[Part]:
        parts: list[Part] = []
        for index, letter in enumerate(word[1:], start=1):
            option = f"{word[0]}{letter}"
            if option in self.values:
                joined = word[index + 1 :]
                parts.append(Part(option, joined, word) if joined else self._with_next(option, following, word))
                break
            parts.append(Part(option, None, word))
            if option not in self.flags:
                break  # what the letters behind an unknown one are, no one knows
        return parts

    def _with_next(self, option: str, following: str | None, word: str) -> Part:
        """The option with the next word as its value; an optional value is not taken from another option."""
        if following is None or (option in self.optional and following.startswith(self.prefixes)):
            return Part(option, None, word)
        return Part(option, following, word, takes_next=True)

    def judge(self, words: Sequence[str], roots: Roots) -> Refusal | Admitted:
        """Why these words, the program's name first, are not SAFE; what to run them with when they are."""
        if len(words) == 2 and words[1] in self.alone:
            return Admitted(self.harden)
        if self.longest_word is not None and len(max(words, key=len)) > self.longest_word:
            return self._refuse("length", f"a word of it has more than {self.longest_word} characters.")
        operands: list[str] = []
        seen: set[str] = set()
        for part in self.read(words):
            if part.option is None:
                operands.append(part.value or "")
            elif refusal := self._fault_of_option(part, seen, roots):
                return refusal
            elif not (operands or self.early is None or self.canonical[part.option] in self.early):
                return self._refuse(f"option {part.option}", f"{part.option} is SAFE only behind the sub-command.")
        refusal = self._unmet_condition(seen) or self._operand_fault(operands, seen, roots)
        return refusal or self._admit(operands, seen)

    def _admit(self, operands: Sequence[str], seen: Set[str]) -> Refusal | Admitted:
        if self.operands_are_urls:
            return self._admit_urls(operands, seen)
        if self.payload is None:
            missing = (words for options, words in self.defaults if not options & seen)
            return Admitted((*self.harden, *(word for words in missing for word in words)))
        hardening = self.payload.hardening(" ".join(operands), seen)
        if hardening is None:
            return self._refuse("payload", self.payload.why)
        return Admitted((*self.harden, *hardening))

    def _admit_urls(self, urls: Sequence[str], seen: Set[str]) -> Refusal | Admitted:
        hosts = [host_of(url) for url in urls]
        for option in OPTIONS:
            for value in (one.removeprefix(f"{option} ") for one in seen if one.startswith(f"{option} ")):
                if fault := next(filter(None, (fault_of_target(url, option, value) for url in urls)), None):
                    return self._refuse(f"option {option}", f"{fault}.")
                hosts = list(target_hosts(option, value))
        return Admitted(self.harden, tuple(hosts))

    def _fault_of_option(self, part: Part, seen: set[str], roots: Roots) -> Refusal | None:
        """`seen` takes the canonical option, and with a value also `-o VALUE`."""
        option, value = part.option or "", part.value
        check = self.values.get(option)
        if check is None or (value is None and option in self.optional):
            if value is not None or (option not in self.flags and option not in self.optional):
                if self.open is not None and self.open.fullmatch(part.word):
                    return None
                return self._unknown(option, inside=part.word)
            seen.add(self.canonical[option])
            return None
        name = self.canonical[option]
        if value is None:
            return self._refuse("option", f"{option} needs a value after it.")
        if reason := check(value, roots):
            known = self.risks.get(option, "")
            why = f" Otherwise it {known}" if known else ""
            return self._refuse(f"option {option}", f"the value {_shown(value)} of {option} {reason}.{why}")
        if name not in self.repeatable and any(other.startswith(f"{name} ") for other in seen):
            return self._refuse(f"option {option}", f"{option} is given twice.")
        seen.update((name, f"{name} {value}"))
        return None

    def _unknown(self, option: str, inside: str = "") -> Refusal:
        where = f" (in {_shown(inside)})" if inside and inside != option else ""
        known = self.risks.get(option)
        reason = known or "is not in the table of options known to only read. Leave it out if it is not needed."
        return self._refuse(f"option {_shown(option)}", f"{_shown(option)}{where} {reason}")

    def _unmet_condition(self, seen: set[str]) -> Refusal | None:
        for options, why in self.requires:
            if not options & seen:
                return self._refuse("requires " + " or ".join(sorted(options)), why)
        for option, others in self.only_with.items():
            if option in seen and not any(_is_met(other, seen) for other in others):
                return self._refuse(f"option {option}", f"{option} is SAFE only together with {' or '.join(others)}.")
        for option, others in self.not_with.items():
            if option in seen and (both := seen.intersection(others)):
                return self._refuse(f"option {option}", f"{option} is SAFE only without {min(both)}.")
        return None

    def _operand_fault(self, operands: Sequence[str], seen: Set[str], roots: Roots) -> Refusal | None:
        forms = [form for form in self.forms if form.leads(operands)]
        faults = [form.fault(operands, seen, roots) for form in forms]
        if None in faults:
            reason = self._fault_of_sentence(" ".join(operands), roots) if operands else None
            return self._refuse("words", f"{_shown(' '.join(operands))} {reason}.") if reason else None
        shown = " ".join(operands[:3])
        for words in (" ".join(operands[:2]), *operands[:1], *operands[1:3]):
            if known := self.risks.get(words):
                return self._refuse(f"word {_shown(words)}", f"{_shown(words)} {known}")
        if faults:
            return self._refuse("operand", f"{faults[-1]}.")
        return self._refuse("operand", f"{_shown(shown)} is not a form of it that is known to only read.")

    def _fault_of_sentence(self, sentence: str, roots: Roots) -> str | None:
        if self.sentence is None:
            return None
        if self.longest_word is not None and len(sentence) > self.longest_word:
            return f"has more than {self.longest_word} characters"
        return self.sentence(sentence, roots)

    def _refuse(self, rule: str, reason: str) -> Refusal:
        return Refusal(f"{self.program}: {rule}", f"{self.program} is allowed, but {reason}")


def _is_met(condition: str, seen: set[str]) -> bool:
    there, _, absent = condition.partition(" without ")
    return there in seen and absent not in seen


def _shown(value: str) -> str:
    return repr(value if len(value) <= 80 else value[:77] + "...")


_KEYS = frozenset((
    "program", "about", "flags", "values", "clusters", "equals", "joined", "optional", "options_first", "dashes",
    "repeatable", "requires", "only_with", "not_with", "operands", "at_least", "at_most", "forms", "risks", "harden",
    "alone", "variables", "spellings", "operands_are_urls", "sentence", "prefixes", "examples",
    "defaults", "early", "payload", "open",
))  # fmt: skip
_LISTS = frozenset((
    "flags", "joined", "optional", "repeatable", "requires", "operands", "forms", "harden", "alone",
    "spellings", "prefixes", "defaults", "early",
))  # fmt: skip
_FORM_KEYS = frozenset(("lead", "pairs", "words", "operands", "at_least", "at_most", "needs", "without"))


def parse_grammar(table: Mapping[str, Any]) -> Grammar:
    for key in (*(set(table) - _KEYS), *(key for form in table.get("forms", ()) for key in set(form) - _FORM_KEYS)):
        raise ConfigurationError(f"A policy table has the unknown key {key!r}; known: {', '.join(sorted(_KEYS))}.")
    for key in _LISTS & table.keys():
        if not isinstance(table[key], list):
            raise ConfigurationError(f"{key!r} of a policy table is not a list: write {key} = [...].")
    canonical: dict[str, str] = {}
    flags: set[str] = set()
    for spellings in table.get("flags", []):
        first, *_ = names = spellings.split()
        flags.update(names)
        canonical.update(dict.fromkeys(names, first))
    values: dict[str, Check] = {}
    for spellings, type_text in table.get("values", {}).items():
        first, *_ = names = spellings.split()
        values.update(dict.fromkeys(names, parse_type(type_text)))
        canonical.update(dict.fromkeys(names, first))
    forms = table.get("forms") or [{key: table[key] for key in ("operands", "at_least", "at_most") if key in table}]
    return Grammar(
        program=table["program"],
        about=table["about"],
        flags=frozenset(flags),
        values=values,
        canonical=canonical,
        clusters=table.get("clusters", False),
        equals=table.get("equals", False),
        joined=tuple(table.get("joined", ())),
        optional=frozenset(table.get("optional", ())),
        options_first=table.get("options_first", False),
        early=frozenset(table["early"]) if "early" in table else None,
        dashes=table.get("dashes", False),
        repeatable=frozenset(table.get("repeatable", ())),
        requires=tuple((frozenset(item["any"]), item["why"]) for item in table.get("requires", ())),
        only_with={option: tuple(others) for option, others in table.get("only_with", {}).items()},
        not_with={option: tuple(others) for option, others in table.get("not_with", {}).items()},
        forms=tuple(_parse_form(form) for form in forms),
        risks=_by_each_name(table.get("risks", {})),
        harden=tuple(table.get("harden", ())),
        defaults=tuple((frozenset(row["unless"]), tuple(row["add"])) for row in table.get("defaults", ())),
        alone=frozenset(table.get("alone", ())),
        variables=tuple(table.get("variables", {}).items()),
        spelling_patterns=tuple(lazy(text) for text in table.get("spellings", ())),
        operands_are_urls=table.get("operands_are_urls", False),
        sentence=parse_type(table["sentence"]) if "sentence" in table else None,
        prefixes=tuple(table.get("prefixes", ("-",))),
        payload=parse_payload_rules(table["payload"]) if "payload" in table else None,
        open=lazy(table["open"], re.ASCII) if "open" in table else None,
    )


def _parse_form(form: Mapping[str, Any]) -> Form:
    operands = tuple(parse_type(text) for text in form.get("operands", ()))
    if form.get("at_most", 0) > 0 and not operands:
        raise ConfigurationError("A policy table has 'at_most' without 'operands': say of which type they are.")
    return Form(
        lead=tuple(frozenset(words.split()) for words in form.get("lead", ())),
        words=frozenset(form.get("words", "").split()),
        pairs={
            keyword: parse_type(text)
            for keywords, text in form.get("pairs", {}).items()
            for keyword in keywords.split()
        },
        operands=operands,
        at_least=form.get("at_least", 0),
        at_most=form.get("at_most", len(operands)),
        needs=frozenset(form.get("needs", ())),
        without=frozenset(form.get("without", ())),
    )


def _by_each_name(risks: Mapping[str, str]) -> dict[str, str]:
    """`"-o, --output" = why` stands for both."""
    return {name: why for names, why in risks.items() for name in names.split(", ")}


def check_examples(grammar: Grammar, examples: Mapping[str, Sequence[str]]) -> None:
    """Raises `ConfigurationError` where a table contradicts one of its own examples."""
    for kind in ("safe", "risky"):
        if not examples.get(kind):
            raise ConfigurationError(
                f"The policy table of {grammar.program} has no {kind} examples; give at least one."
            )
        for command in examples[kind]:
            line = parse(command)
            words = (grammar.program, *line.words[1:])
            is_safe = line.fault is None and not isinstance(grammar.judge(words, EXAMPLE_ROOTS), Refusal)
            if is_safe != (kind == "safe"):
                raise ConfigurationError(
                    f"The policy table of {grammar.program} contradicts its example {command!r}, which must be {kind}."
                )


class _BuiltIn(Mapping[str, Grammar]):
    """The tables of this package by the names of their programs, each read when it is first asked for.

    A name that is no file's may be another name of a program (`also`): then all tables are read.
    """

    def __init__(self) -> None:
        self._read: dict[str, Grammar] = {}
        self._unread = {path.stem for path in PROGRAMS.glob("*.toml")}
        for row in load_policy(PROGRAMS.parent, HOST_READS)["reads"]:
            names = row.pop("programs").split()
            grammar = parse_grammar({**row, "program": names[0]})
            self._read.update({name: replace(grammar, program=name) for name in names})

    def __getitem__(self, program: str) -> Grammar:
        if program not in self._read:
            for name in [program] if program in self._unread else sorted(self._unread):
                self._load(name)
        return self._read[program]

    def __iter__(self) -> Iterator[str]:
        for name in sorted(self._unread):
            self._load(name)
        return iter(self._read)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _load(self, name: str) -> None:
        table = load_policy(PROGRAMS, f"{name}.toml")
        also = table.pop("also", ())
        grammar = parse_grammar(table)
        self._read.update({name: grammar, **{other: replace(grammar, program=other) for other in also}})
        self._unread.discard(name)


@cache
def built_in() -> Mapping[str, Grammar]:
    return _BuiltIn()
