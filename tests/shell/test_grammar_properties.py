"""What no table holds is never SAFE, wherever it stands in a command; how words are quoted changes nothing."""

from __future__ import annotations

import json
import re
import shlex
import string
from itertools import takewhile
from pathlib import Path

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ghost.shell.judge.classification import classify, decide
from ghost.shell.judge.decision import RISKY, SAFE
from ghost.shell.judge.grammar import Grammar, built_in
from tests.each_row import each
from tests.exhaustive import examples

CAPTURES = [Path("/tmp/captures")]
CORPUS = Path(__file__).parent.parent / "corpora" / "commands_benign.jsonl"
BENIGN = [json.loads(line)["command"] for line in CORPUS.read_text(encoding="utf-8").splitlines()]
OF_TABLES = [c for c in BENIGN if shlex.split(c)[0] in built_in() and shlex.split(c)[0] != "az"]
LETTERS = string.ascii_letters + string.digits + "#?@%"


def table_of(words: list[str]) -> Grammar:
    return built_in()[words[0]]


def holds(grammar: Grammar, option: str) -> bool:
    return option in grammar.flags or option in grammar.values or option in grammar.alone


@settings(max_examples=examples(120))
@given(
    st.sampled_from(OF_TABLES),
    st.from_regex(r"-[A-Za-z0-9#?@]|--[a-z][a-z0-9-]{1,12}(?:=[ -~]{0,8})?|-[a-z]{2,8}=[a-z]{1,4}", fullmatch=True),
    st.data(),
)
def test_an_option_that_the_table_does_not_hold_is_never_safe_anywhere(
    command: str, option: str, data: st.DataObject
) -> None:
    words = shlex.split(command)
    grammar = table_of(words)
    name = option.partition("=")[0]
    assume(not holds(grammar, name) and not holds(grammar, option) and grammar.open is None)
    if grammar.clusters and not name.startswith("--"):
        assume(not holds(grammar, name[:2]))
    position = data.draw(st.integers(1, len(words)))

    assert classify(shlex.join([*words[:position], option, *words[position:]]), CAPTURES)[0] != SAFE


@settings(max_examples=examples(100))
@given(st.sampled_from(OF_TABLES), st.sampled_from(LETTERS), st.data())
def test_a_letter_that_the_table_does_not_hold_joined_to_others_is_never_safe(
    command: str, letter: str, data: st.DataObject
) -> None:
    words = shlex.split(command)
    grammar = table_of(words)
    assume(grammar.clusters and not holds(grammar, f"-{letter}"))
    joined = [i for i, word in enumerate(words) if i and word.startswith("-") and word[1:2] not in ("", "-")]
    assume(joined)
    index = data.draw(st.sampled_from(joined))
    word = words[index]
    only_flags = all(f"-{other}" in grammar.flags for other in word[1:])
    changed = data.draw(st.sampled_from([f"-{letter}{word[1:]}", *([f"{word}{letter}"] if only_flags else [])]))
    assume(changed not in grammar.flags)

    assert classify(shlex.join([*words[:index], changed, *words[index + 1 :]]), CAPTURES)[0] != SAFE


@settings(max_examples=examples(100))
@given(st.sampled_from(OF_TABLES), st.data())
def test_an_abbreviated_long_option_is_never_safe(command: str, data: st.DataObject) -> None:
    words = shlex.split(command)
    grammar = table_of(words)
    long_options = sorted(o for o in {*grammar.flags, *grammar.values} if o.startswith("--") and len(o) > 4)
    assume(long_options)
    option = data.draw(st.sampled_from(long_options))
    short = option[: data.draw(st.integers(3, len(option) - 1))]
    assume(not holds(grammar, short))
    position = data.draw(st.integers(1, len(words)))

    assert classify(shlex.join([*words[:position], short, *words[position:]]), CAPTURES)[0] != SAFE


@settings(max_examples=examples(80))
@given(st.sampled_from(BENIGN), st.text(string.printable[:95], min_size=1, max_size=12))
def test_no_word_behind_the_end_of_options_is_safe(command: str, word: str) -> None:
    table = built_in().get(command.split()[0])
    assume(table is None or table.open is None)  # what its sandbox alone keeps harmless may have further operands
    assert classify(f"{command} -- {shlex.quote(word)}", CAPTURES)[0] != SAFE


def requoted(word: str, data: st.DataObject) -> str:
    """The same word, quoted in another way piece by piece."""
    pieces: list[str] = []
    rest = word
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        piece, rest = rest[:size], rest[size:]
        style = data.draw(st.sampled_from(["bare", "single", "double", "escaped", "empty"]))
        if style == "single" and "'" not in piece:
            pieces.append(f"'{piece}'")
        elif style == "double" and not set(piece) & set('"\\$`'):
            pieces.append(f'"{piece}"')
        elif style == "escaped" and all(" " <= c <= "~" for c in piece):
            pieces.append("".join(f"\\{c}" for c in piece))
        elif style == "empty":
            pieces.append("''" + shlex.quote(piece))
        else:
            pieces.append(shlex.quote(piece))
    return "".join(pieces) or "''"


@settings(max_examples=examples(100))
@given(st.sampled_from([c for c in BENIGN if "`" not in c]), st.data())
def test_quoting_a_safe_command_differently_makes_no_other_command_of_it(command: str, data: st.DataObject) -> None:
    words = shlex.split(command)
    variables = list(takewhile(re.compile(r"\w+=").match, words))  # in quotes it is a word to the shell, and asks
    again = " ".join([*variables, *(requoted(word, data) for word in words[len(variables) :])])

    assert shlex.split(again) == words
    assert decide(again, CAPTURES) == decide(shlex.join(words), CAPTURES)


@each("command", ["'NO_COLOR=1' ip route", "NO_COLOR='1' ip route", r"NO_C\OLOR=1 ip route"])
def test_a_variable_in_quotes_asks(command: str) -> None:
    assert classify(command, CAPTURES)[0] == RISKY


OWN_NAME = [c for c in BENIGN if "`" not in c and shlex.split(c)[0] in {*built_in(), "az"}]


@settings(max_examples=examples(100))
@given(st.sampled_from(OWN_NAME), st.data())
def test_what_runs_of_a_command_with_a_quote_more_is_what_a_shell_would_read(command: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(command)))
    changed = command[:position] + data.draw(st.sampled_from(["'", '"', "\\"])) + command[position:]
    decision = decide(changed, CAPTURES)

    if decision.classification == SAFE:
        assert decision.arguments is not None
        program, *words = shlex.split(changed)
        assert decision.arguments == (program, *decision.hardening, *words)


ANYTHING = st.text(st.characters(exclude_categories=()), max_size=120)


@settings(max_examples=examples(80))
@given(ANYTHING, st.sampled_from(["", "ping -c 1 ", "az vm list --query ", "curl '", 'rm "', "tshark -r ", "sh -c '"]))
@example("\x00" * 100, "")
@example("\ud800\udfff", "cat ")
@example("'" * 999, "")
@example("\\", "ping ")
@example("$(" * 500, "")
@example("/" * 5000, "cat ")
def test_classify_never_raises(text: str, before: str) -> None:
    classification, tier, explanation = classify(before + text)

    assert (tier is None) == (classification == SAFE)
    assert explanation


def test_a_megabyte_of_anything_is_judged() -> None:
    for piece in ("a", " ", "'", "\x00", "\ud800", "$(", "| id ", "rm -rf / ; ", "\n"):
        assert classify(piece * (1_000_000 // len(piece)))[0] != SAFE
