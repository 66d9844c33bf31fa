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
    assert not line.backticked


@settings(deadline=None)
@given(st.text(PRINTABLE, max_size=60))
def test_a_line_without_fault_is_read_as_a_posix_shell_reads_it(command: str) -> None:
    line = parse(command)

    if line.fault is None and not re.search(r"\\[$`]", command):  # shlex keeps these backslashes in double quotes
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
        ("a | b", "pattern: operator"),
        ("a && b", "pattern: operator"),
        ("a ; b", "pattern: operator"),
        ("a &", "pattern: operator"),
        ("a\nb", "pattern: operator"),
        ("(a)", "pattern: operator"),
        ("a > b", "pattern: redirection"),
        ("a 2>&1", "pattern: redirection"),
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


def test_backticks_in_double_quotes_are_reported_with_their_word() -> None:
    assert parse('az --query "[?a==`b`]"').backticked == {2}
    assert parse(r'az --query "[?a==\`b\`]"').backticked == frozenset()
    assert parse("az --query '[?a==`b`]'").backticked == frozenset()


def test_the_commands_of_a_chain_and_the_targets_of_redirections_are_kept() -> None:
    line = parse("ping x && rm -rf / > /dev/sda; echo $(id)")

    assert line.segments == (("ping", "x"), ("rm", "-rf", "/"), ("echo",), ("id",))
    assert line.targets == ("/dev/sda",)
