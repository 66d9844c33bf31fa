from __future__ import annotations

import re
import shlex

from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.shell.judge.command_line import parse
from tests.each_row import each
from tests.exhaustive import examples

PRINTABLE = st.characters(min_codepoint=0x20, max_codepoint=0x7E)
PLAIN_WORDS = st.lists(st.text(PRINTABLE, max_size=12), min_size=1, max_size=8)


@settings(deadline=None)
@given(PLAIN_WORDS)
def test_quoting_words_and_parsing_them_gives_the_same_words(words: list[str]) -> None:
    line = parse(shlex.join(words))

    assert line.fault is None
    assert list(line.words) == words
    assert not any(stage.backticked for stage in line.stages)


@settings(deadline=None)
@given(st.text(PRINTABLE, max_size=60))
def test_a_line_without_fault_is_read_as_a_posix_shell_reads_it(command: str) -> None:
    line = parse(command)

    plain = line.fault is None and not line.operators and "/dev/null" not in command
    if plain and not re.search(r"\\[$`]", command):  # shlex keeps these backslashes in double quotes
        assert list(line.words) == shlex.split(command, comments=False)


@settings(max_examples=examples(150))
@given(st.text(max_size=80))
def test_any_text_parses(command: str) -> None:
    line = parse(command)

    if line.fault is None:
        assert all(word == "" or word.isprintable() for word in line.words)


@each(
    "command, words",
    [
        ("ping -c 4 10.0.0.1", ("ping", "-c", "4", "10.0.0.1")),
        ("  ping   10.0.0.1 ", ("ping", "10.0.0.1")),
        ("p'in'g \"10.0\".0.1", ("ping", "10.0.0.1")),
        (r"ss \( dport = :443 \)", ("ss", "(", "dport", "=", ":443", ")")),
        ("dig '' x", ("dig", "", "x")),
        (r'az --query "a \"b\" \$c \` \x"', ("az", "--query", 'a "b" $c ` \\x')),
        ("az --query '[?a && b | c > `1`; $d]'", ("az", "--query", "[?a && b | c > `1`; $d]")),
        ("ping x #y", ("ping", "x", "#y")),
        ("az --query 'Zürich'", ("az", "--query", "Zürich")),
    ],
)
def test_quoted_text_is_text(command: str, words: tuple[str, ...]) -> None:
    line = parse(command)

    assert line.fault is None
    assert line.words == words


@each(
    "command, rule",
    [
        ("| b", "pattern: operator"),
        ("a |", "pattern: operator"),
        ("a | | b", "pattern: operator"),
        ("a || b", "pattern: operator"),
        ("a && b", "pattern: operator"),
        ("a ; b", "pattern: operator"),
        ("a &", "pattern: operator"),
        ("a\nb", "pattern: operator"),
        ("(a)", "pattern: operator"),
        ("a > b", "pattern: redirection"),
        ("a >/dev/nullx", "pattern: redirection"),
        ("a >>/dev/null", "pattern: redirection"),
        ("a 3>/dev/null", "pattern: redirection"),
        ("a >&2", "pattern: redirection"),
        ("a 2>&1x", "pattern: redirection"),
        ("a 'b'2>/dev/null", "pattern: redirection"),
        ("a | b </dev/null", "pattern: redirection"),
        ("a 2>/dev/null; b", "pattern: operator"),
        ("a << b", "pattern: redirection"),
        ("a $(b)", "pattern: substitution"),
        ("a `b`", "pattern: substitution"),
        ("a $b", "pattern: substitution"),
        ("a <(b)", "pattern: substitution"),
        ('a "$b"', "pattern: substitution"),
        ('a "`b` $c"', "pattern: substitution"),
        ("a 'b", "syntax: quotes"),
        ('a "b', "syntax: quotes"),
        ("a\\", "syntax: quotes"),
        ("a\tb", "syntax: control character"),
        ("a\x00b", "syntax: control character"),
        ("a 'b\nc'", "syntax: control character"),
        ('a "b\x1b"', "syntax: control character"),
        ("a '\u200b'", "syntax: control character"),
        ("ｐing", "syntax: character"),
        ("a \ud800", "syntax: control character"),
    ],
)
def test_what_a_shell_would_interpret_is_a_fault(command: str, rule: str) -> None:
    fault = parse(command).fault

    assert fault is not None
    assert fault.rule == rule


@each(
    "command, stages",
    [
        ("a", [("a", "output", "errors")]),
        ("a|b -c 'x|y' | c", [("a", "output", "errors"), ("b -c x|y", "output", "errors"), ("c", "output", "errors")]),
        ("a 2>/dev/null", [("a", "output", "nowhere")]),
        ("a 2> /dev/null | b 2>&1", [("a", "output", "nowhere"), ("b", "output", "output")]),
        ("a >/dev/null 2>&1", [("a", "nowhere", "nowhere")]),
        ("a 2>&1 >/dev/null", [("a", "nowhere", "output")]),
        ("a &>/dev/null", [("a", "nowhere", "nowhere")]),
        ("2>/dev/null a </dev/null b", [("a b", "output", "nowhere")]),
        ("a |& b", [("a", "output", "output"), ("b", "output", "errors")]),
        ("a b2>/dev/null", [("a b2", "nowhere", "errors")]),
        ("a '2>/dev/null'", [("a 2>/dev/null", "output", "errors")]),
    ],
)
def test_a_pipe_makes_stages_and_what_discards_or_joins_their_output_is_understood(
    command: str, stages: list[tuple[str, str, str]]
) -> None:
    line = parse(command)

    assert line.fault is None
    assert [(" ".join(one.words), one.sinks.output, one.sinks.errors) for one in line.stages] == stages
    assert line.segments == tuple(one.words for one in line.stages)


WORDS = st.lists(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1), min_size=1, max_size=4)


@settings(max_examples=examples(150))
@given(st.lists(WORDS, min_size=1, max_size=4))
def test_the_stages_of_a_line_are_those_that_were_joined(stages: list[list[str]]) -> None:
    line = parse(" | ".join(map(shlex.join, stages)))

    assert [list(stage.words) for stage in line.stages] == stages


def test_backticks_in_double_quotes_are_reported_with_their_word() -> None:
    assert parse('az --query "[?a==`b`]"').stages[0].backticked == {2}
    assert parse(r'az --query "[?a==\`b\`]"').stages[0].backticked == frozenset()
    assert parse("az --query '[?a==`b`]'").stages[0].backticked == frozenset()


def test_the_commands_of_a_chain_and_the_targets_of_redirections_are_kept() -> None:
    line = parse("ping x && rm -rf / > /dev/sda; echo $(id)")

    assert line.segments == (("ping", "x"), ("rm", "-rf", "/"), ("echo",), ("id",))
    assert line.targets == ("/dev/sda",)
