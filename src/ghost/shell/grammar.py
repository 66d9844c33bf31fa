"""Option grammars: what each allowed program may be told, read from `policy/programs/*.toml`.

A table lists a program's flags, its options with typed values and its operands; a command is SAFE when every word of
it is one the table holds. What the table does not hold is refused with a reason. Each table carries examples that
must match and that must not, and they are checked when it is loaded.

    program     the name in the allowlist                  about     what it does, in words
    flags       options without a value: "-s --silent"     values    options with one: "-c" = "INT 1..100"
    clusters    letters may be joined: -4nc3               equals    --name=value, +name=value
    options_first  no option after the first operand       repeatable  valued options allowed more than once
    requires    [{any, why}]: one of these must be there   only_with   option = [others, one of which must be there]
    operands    the type of each operand; the last one holds for all further ones up to `at_most`
    forms       [{lead, pairs, words, operands, at_least, at_most}] where the first operands are sub-commands
    risks       option or word = why it is not SAFE        harden    words put behind the program's name when SAFE
    spellings   other first words that mean this program, as regular expressions over the first words
    operands_are_urls  the operands' hosts must be resolved and judged before the run
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ghost.errors import ConfigurationError
from ghost.shell.parse import parse
from ghost.shell.values import Check, Roots, parse_type

PROGRAMS = Path(__file__).parent / "policy" / "programs"

EXAMPLE_ROOTS = Roots((Path("/tmp/captures"),))  # noqa: S108 - never opened: the examples' captures need not exist


@dataclass(frozen=True)
class Refusal:
    rule: str
    explanation: str


@dataclass(frozen=True)
class Form:
    """One shape of a program's operands: leading sub-command words, then keywords, pairs and typed operands."""

    lead: tuple[frozenset[str], ...]
    words: frozenset[str]
    pairs: Mapping[str, Check]
    operands: tuple[Check, ...]
    at_least: int
    at_most: int

    def leads(self, operands: Sequence[str]) -> bool:
        return len(operands) >= len(self.lead) and all(
            word in allowed for word, allowed in zip(operands, self.lead, strict=False)
        )

    def fault(self, operands: Sequence[str], roots: Roots) -> str | None:
        rest = iter(operands[len(self.lead) :])
        count = 0
        for word in rest:
            if word in self.words:
                continue
            if (check := self.pairs.get(word)) is not None:
                value = next(rest, None)
                if value is None:
                    return f"{word!r} needs a value behind it"
                if reason := check(value, roots):
                    return f"the value {_shown(value)} of {word!r} {reason}"
                continue
            if count >= self.at_most:
                return f"{_shown(word)} is one word too many, or not a word the table holds here"
            if reason := self.operands[min(count, len(self.operands) - 1)](word, roots):
                return f"{_shown(word)} {reason}"
            count += 1
        return f"it needs {self.at_least} operand(s), such as a host" if count < self.at_least else None


@dataclass(frozen=True)
class Grammar:
    program: str
    about: str
    flags: frozenset[str]
    values: Mapping[str, Check]
    canonical: Mapping[str, str]
    clusters: bool
    equals: bool
    options_first: bool
    repeatable: frozenset[str]
    requires: tuple[tuple[frozenset[str], str], ...]
    only_with: Mapping[str, tuple[str, ...]]
    forms: tuple[Form, ...]
    risks: Mapping[str, str]
    harden: tuple[str, ...]
    spelling_patterns: tuple[re.Pattern[str], ...]
    operands_are_urls: bool
    prefixes: tuple[str, ...]

    def judge(self, words: Sequence[str], roots: Roots) -> Refusal | tuple[str, ...]:
        """Why these words, the program's name first, are not SAFE; their operands when they are."""
        reading = _Reading(self, words, roots)
        return reading.refusal() or tuple(reading.operands)


@dataclass
class _Reading:
    """One pass over a command's words."""

    grammar: Grammar
    words: Sequence[str]
    roots: Roots
    operands: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    """Canonical options, and those with a value also as `-o VALUE`."""

    def refusal(self) -> Refusal | None:
        position = 1
        while position < len(self.words):
            word = self.words[position]
            is_option = len(word) > 1 and word.startswith(self.grammar.prefixes)
            if not is_option or (self.grammar.options_first and self.operands):
                self.operands.append(word)
                position += 1
                continue
            taken = self._option(word, self.words[position + 1] if position + 1 < len(self.words) else None)
            if isinstance(taken, Refusal):
                return taken
            position += taken
        return self._unmet_condition() or self._operand_fault()

    def _option(self, word: str, following: str | None) -> int | Refusal:
        """How many words the option takes (1 or 2)."""
        grammar = self.grammar
        if word in grammar.flags:
            self.seen.add(grammar.canonical[word])
            return 1
        if word in grammar.values and not word.startswith("+"):
            return self._value(word, following, 2)
        if grammar.equals and word.startswith(("--", "+")) and "=" in word:
            name, _, value = word.partition("=")
            if name in grammar.values:
                return self._value(name, value, 1)
            return self._unknown(name)
        if grammar.clusters and not word.startswith(("--", "+")):
            return self._cluster(word, following)
        return self._unknown(word)

    def _cluster(self, word: str, following: str | None) -> int | Refusal:
        for index, letter in enumerate(word[1:], start=1):
            option = f"-{letter}"
            if option in self.grammar.flags:
                self.seen.add(self.grammar.canonical[option])
            elif option in self.grammar.values:
                joined = word[index + 1 :]
                return self._value(option, joined, 1) if joined else self._value(option, following, 2)
            else:
                return self._unknown(option, inside=word)
        return 1

    def _value(self, option: str, value: str | None, width: int) -> int | Refusal:
        name = self.grammar.canonical[option]
        if value is None:
            return self._refuse("option", f"{option} needs a value behind it.")
        if reason := self.grammar.values[option](value, self.roots):
            known = self.grammar.risks.get(option, "")
            why = f" Otherwise it {known}" if known else ""
            return self._refuse(f"option {option}", f"the value {_shown(value)} of {option} {reason}.{why}")
        if any(seen.startswith(f"{name} ") for seen in self.seen) and name not in self.grammar.repeatable:
            return self._refuse(f"option {option}", f"{option} is given twice.")
        self.seen.update((name, f"{name} {value}"))
        return width

    def _unknown(self, option: str, inside: str = "") -> Refusal:
        where = f" (in {_shown(inside)})" if inside and inside != option else ""
        known = self.grammar.risks.get(option)
        reason = known or "is not in the table of options known to only read. Leave it out if it is not needed."
        return self._refuse(f"option {_shown(option)}", f"{_shown(option)}{where} {reason}")

    def _unmet_condition(self) -> Refusal | None:
        for options, why in self.grammar.requires:
            if not options & self.seen:
                return self._refuse("requires " + " or ".join(sorted(options)), why)
        for option, others in self.grammar.only_with.items():
            if option in self.seen and not self.seen.intersection(others):
                return self._refuse(f"option {option}", f"{option} is SAFE only together with {' or '.join(others)}.")
        return None

    def _operand_fault(self) -> Refusal | None:
        forms = [form for form in self.grammar.forms if form.leads(self.operands)]
        faults = [form.fault(self.operands, self.roots) for form in forms]
        if None in faults:
            return None
        shown = " ".join(self.operands[:3])
        for words in (" ".join(self.operands[:2]), *self.operands[:1], *self.operands[1:3]):
            if known := self.grammar.risks.get(words):
                return self._refuse(f"word {_shown(words)}", f"{_shown(words)} {known}")
        if faults:
            return self._refuse("operand", f"{faults[-1]}.")
        return self._refuse("operand", f"{_shown(shown)} is not a form of it that is known to only read.")

    def _refuse(self, rule: str, reason: str) -> Refusal:
        program = self.grammar.program
        return Refusal(f"{program}: {rule}", f"{program} is allowed, but {reason}")


def _shown(value: str) -> str:
    return repr(value if len(value) <= 80 else value[:77] + "...")


def parse_grammar(table: Mapping[str, Any]) -> Grammar:
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
    grammar = Grammar(
        program=table["program"],
        about=table["about"],
        flags=frozenset(flags),
        values=values,
        canonical=canonical,
        clusters=table.get("clusters", False),
        equals=table.get("equals", False),
        options_first=table.get("options_first", False),
        repeatable=frozenset(table.get("repeatable", ())),
        requires=tuple((frozenset(item["any"]), item["why"]) for item in table.get("requires", ())),
        only_with={option: tuple(others) for option, others in table.get("only_with", {}).items()},
        forms=tuple(_parse_form(form) for form in forms),
        risks=_by_each_name(table.get("risks", {})),
        harden=tuple(table.get("harden", ())),
        spelling_patterns=tuple(re.compile(text) for text in table.get("spellings", ())),
        operands_are_urls=table.get("operands_are_urls", False),
        prefixes=tuple(table.get("prefixes", ("-",))),
    )
    _check_examples(grammar, table["examples"])
    return grammar


def _parse_form(form: Mapping[str, Any]) -> Form:
    operands = tuple(parse_type(text) for text in form.get("operands", ()))
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
    )


def _by_each_name(risks: Mapping[str, str]) -> dict[str, str]:
    """`"-o, --output" = why` stands for both."""
    return {name: why for names, why in risks.items() for name in names.split(", ")}


def _check_examples(grammar: Grammar, examples: Mapping[str, Sequence[str]]) -> None:
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


@cache
def grammars() -> Mapping[str, Grammar]:
    """Every table by its program, read and checked once."""
    tables = (tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(PROGRAMS.glob("*.toml")))
    return {grammar.program: grammar for grammar in map(parse_grammar, tables)}
