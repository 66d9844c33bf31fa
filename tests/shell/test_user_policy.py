"""A user's tables add programs and nothing else, and a broken one is a clear error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ghost.errors import ConfigurationError
from ghost.shell.classify import decide
from ghost.shell.explain import explain
from ghost.shell.user_policy import VARIABLE, grammars, user_grammars

IPCALC = """
program = "ipcalc"
about = "computes with addresses"
clusters = true
flags = ["-b", "-n"]
operands = ["PREFIX"]
at_least = 1

[examples]
safe = ["ipcalc 10.0.0.0/8", "ipcalc -b 10.0.0.0/8", "ipcalc -bn 10.0.0.0/8"]
risky = ["ipcalc", "ipcalc -s 10.0.0.0/8", "ipcalc 10.0.0.0/8 10.1.0.0/16"]
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    tmp_path.chmod(0o700)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    grammars.cache_clear()
    yield tmp_path
    grammars.cache_clear()


def write(directory: Path, text: str, name: str = "ipcalc.toml") -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return path


def test_a_users_program_is_judged_by_the_users_table(directory: Path) -> None:
    write(directory, IPCALC)

    assert decide("ipcalc -b 10.0.0.0/8").classification == "SAFE"
    assert decide("ipcalc -s 10.0.0.0/8").classification == "RISKY"
    assert decide("ping -c 1 127.0.0.1").classification == "SAFE"


@pytest.mark.parametrize("program", ["ping", "az", "bash", "python3", "rm", "env", "cat", "tee", "find", "docker"])
def test_a_users_table_neither_changes_a_program_nor_allows_one_that_does_more(directory: Path, program: str) -> None:
    write(directory, IPCALC.replace("ipcalc", program), f"{program}.toml")

    with pytest.raises(ConfigurationError, match=r"built-in table|always asks"):
        user_grammars(directory)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("flags", "flagz"), "unknown key 'flagz'"),
        (('"PREFIX"', '"NUMBER"'), "needs bounds"),
        (('"ipcalc -b 10', '"ipcalc -z 10'), "contradicts its example"),
        (('"ipcalc -bn 10.0.0.0/8"', ""), "needs 3 safe examples"),
        (('program = "ipcalc"', 'program = "other"'), "named after its program"),
        (('about = "computes with addresses"', ""), "has no 'about'"),
        (("clusters = true", "clusters = "), "cannot be read"),
        (("clusters = true", 'spellings = [".*"]'), "leave it out"),
        (("clusters = true", "operands_are_urls = true"), "leave it out"),
        (('flags = ["-b", "-n"]', "flags = 3"), "'flags' of a policy table is no list"),
        (('flags = ["-b", "-n"]', 'flags = "-b -n"'), "'flags' of a policy table is no list"),
        (('operands = ["PREFIX"]', "at_most = 3"), "'at_most' without 'operands'"),
        (('"PREFIX"', '"MATCH ("'), "cannot be read"),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(directory: Path, change: tuple[str, str], message: str) -> None:
    path = write(directory, IPCALC.replace(*change))

    with pytest.raises(ConfigurationError, match=message) as raised:
        user_grammars(directory)
    assert str(path) in str(raised.value)


def test_a_broken_file_makes_every_command_ask_and_say_why(directory: Path) -> None:
    write(directory, "program = ")

    decision = decide("ping -c 1 127.0.0.1")

    assert (decision.classification, decision.rule, decision.arguments) == ("RISKY", "policy: unusable", None)
    assert "ipcalc.toml" in decision.explanation
    assert decide("rm -rf /").classification == "FORBIDDEN"


def test_a_broken_file_is_explained_with_its_fault_and_nobody_is_asked(directory: Path) -> None:
    path = write(directory, "program = ")

    told = explain("ping -c 1 127.0.0.1 | tee x")
    assert (told["classification"], told["rule"], told["safe_form"]) == ("RISKY", "pattern: operator", None)
    told = explain("ping -c 1 127.0.0.1")
    assert (told["classification"], told["rule"], told["safe_form"]) == ("RISKY", "policy: unusable", None)
    assert str(path) in told["explanation"]
    assert "Mend the policy file" in told["fix"]
    assert told["parse"]["options"] == [{"option": "-c", "value": "1"}]
    assert decide("ping -c 1 127.0.0.1").refused_unasked


def test_a_directory_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/nonexistent/policy")
    grammars.cache_clear()

    told = explain("dig example.com")

    assert (told["classification"], told["rule"]) == ("RISKY", "policy: unusable")
    assert "/nonexistent/policy cannot be read" in told["explanation"]


def test_what_others_can_write_is_not_read(directory: Path) -> None:
    path = write(directory, IPCALC)
    path.chmod(0o666)
    with pytest.raises(ConfigurationError, match="others can write"):
        user_grammars(directory)

    path.chmod(0o600)
    directory.chmod(0o777)
    with pytest.raises(ConfigurationError, match="others can write"):
        user_grammars(directory)


def test_a_link_a_missing_directory_and_a_relative_path_are_refused(directory: Path) -> None:
    (directory / "link.toml").symlink_to(write(directory, IPCALC, "real.txt"))
    with pytest.raises(ConfigurationError, match="no regular file"):
        user_grammars(directory)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        user_grammars(directory / "absent")
    with pytest.raises(ConfigurationError, match="absolute path"):
        user_grammars(Path("policy"))
