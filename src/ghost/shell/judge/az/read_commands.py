"""Which az commands only read: `ghost.azure`'s table of what the CLI offers, and reviewed lists in `policy/az_*.toml`.

An az command is SAFE when its leading words are a read, every option is known for it, admitted by `az_options.toml`
and spelled in full, no word is left over and no value names a file with `@`. A read is a command whose HTTP methods
are GET and HEAD alone, or one that a reviewed list holds; `az_risky_reads.toml` takes away what yields secrets or acts.
The verb of a command can only make it RISKY; it makes nothing SAFE. A `--query` may take no field that is named like a
secret nor leave names out, least of all of a field in which anything may stand (`az_free_fields.toml`), and a read
whose whole answer holds a secret needs a `--query` of listed fields alone. No option of one value may stand twice: az
takes the last, and a reader the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ghost.azure import Catalogue, Command, catalogue, parse_options
from ghost.shell.judge.az.free_fields import FreeFields, parse_free_fields
from ghost.shell.judge.az.jmespath_queries import fault_of_query, projects_only
from ghost.shell.judge.az.read_options import Allowed, Values, parse_values
from ghost.shell.judge.az.risks import Risks, parse_risks
from ghost.shell.judge.grammar import Refusal
from ghost.shell.judge.value_types import Roots
from ghost.shell.policy_tables import policy_table

_NO_ROOTS = Roots(())


@dataclass(frozen=True)
class Reads:
    """The reads of the CLI and of known extensions. A command is judged when it is first asked for."""

    catalogue: Catalogue
    reviewed: frozenset[str]
    """Reads written by hand or of an extension: neither declares its methods."""
    post: Mapping[str, str]
    risks: Risks
    free: FreeFields
    values: Values
    everywhere: Mapping[str, Allowed]
    alone: frozenset[str]
    """Words that are SAFE behind az as the only one."""
    _allowed: dict[str, Mapping[str, Allowed]] = field(default_factory=dict)

    def refusal(self, words: Sequence[str]) -> Refusal | None:
        """Why `az ...` is not SAFE; None when it is."""
        if len(words) == 2 and words[1] in self.alone:
            return None
        given: dict[str, str] = {}
        position = 1
        while position < len(words) and words[position].startswith("-"):
            taken = _take(self.everywhere, self.risks, "", words, position, given)
            if isinstance(taken, Refusal):
                return taken
            position += taken
        start = position
        while position < len(words) and not words[position].startswith("-"):
            position += 1
        path = " ".join(words[start:position])
        options = self.options(path)
        if options is None or path.count(" ") != position - start - 1:  # 'vm list' in quotes is no path
            return None if self._is_help(path, words[position:]) else self._not_a_read(path)
        while position < len(words):
            taken = _take(options, self.risks, path, words, position, given)
            if isinstance(taken, Refusal):
                return taken
            position += taken
        return None if {"--help", "-h"} & set(words) else self._fault_of_answer(path, given)

    def options(self, path: str) -> Mapping[str, Allowed] | None:
        """The options that the read at this path may have, by every spelling; None where it is no read."""
        known = self._allowed.get(path)
        if known is None and self._is_read(path):
            command = self.catalogue.command(path)
            assert command is not None
            known = {**self.everywhere, **self.values.allowed(command.options.values(), path)}
            for short, full in self.values.beginnings.get(path, {}).items():
                known[short] = known[full]
            self._allowed[path] = known
        return known

    def paths(self) -> Iterator[str]:
        return filter(self._is_read, self.catalogue.lines)

    def _is_help(self, path: str, rest: Sequence[str]) -> bool:
        """`az network --help` prints what there is and runs nothing."""
        return list(rest) in (["--help"], ["-h"]) and (path in self.catalogue.lines or bool(self.catalogue.below(path)))

    def _is_read(self, path: str) -> bool:
        command = self.catalogue.command(path)
        if command is None or not self._reads_by_its_methods(command):
            return False
        return self.risks.of_reading(path) is None and path.rpartition(" ")[2] not in self.risks.verbs

    def _reads_by_its_methods(self, command: Command) -> bool:
        if not command.methods:
            return command.path in self.reviewed
        others = command.methods - {"GET", "HEAD"}
        return not others or (others == {"POST"} and command.path in self.post)

    def _not_a_read(self, path: str) -> Refusal:
        if not path:
            return Refusal("az: no command", "az without a command shows nothing. Name one, such as az account show.")
        if known := self.risks.of_path(path):
            return Refusal(f"az: {path[:80]}", f"az {path[:80]} {known}.")
        return Refusal(
            "az: not a known read",
            f"az {path[:80]} is not in the table of az commands known to only read.{self._suggestion(path)}",
        )

    def _suggestion(self, path: str) -> str:
        if path in self.catalogue.lines:
            return ""
        near = self.catalogue.nearest_by_group(path) if len(path) <= 80 else None
        return f" Did you mean az {near}?" if near is not None and self._is_read(near) else ""

    def _fault_of_answer(self, path: str, given: Mapping[str, str]) -> Refusal | None:
        """Redaction goes by the names of fields, which a --query may leave out: so it may neither ask for secrets by
        name nor drop the names of what may be one."""
        option, why = self.risks.needs.get(path, ("", ""))
        if option and option not in given:
            return Refusal(f"az: without {option}", f"az {path} only reads, but it {why}.")
        if path.endswith(" wait") and "--timeout" not in given:
            return Refusal(
                "az: without --timeout", f"az {path} only reads, but it waits for an hour. Add --timeout 60."
            )
        query = given.get("--query")
        if query is not None and (fault := fault_of_query(query)):
            return _refuse("--query", f"{fault}.")
        output = given.get("--output", "json").lower()
        projected = self.risks.projected.get(path)
        if projected is None or (query is not None and projects_only(projected.fields, query, projected.through)):
            if fault := self.free.fault_of_yaml(path, query, output):
                return _refuse("--output", f"{fault}.")
            fault = self.free.fault_of_query(path, query, output) if query is not None else None
            return _refuse("--query", f"{fault}.") if fault else None
        if query is None and output in projected.whole_as:
            return None
        return Refusal("az: whole answer", f"az {path} only reads, but it {projected.why}. {projected.safe}")


def _take(
    options: Mapping[str, Allowed],
    risks: Risks,
    path: str,
    words: Sequence[str],
    position: int,
    given: dict[str, str],
) -> int | Refusal:
    """Judge the option at `position` with its values, noting in `given` what has no more than one; how many words it
    takes."""
    name, joined = words[position], None
    option = options.get(name)
    if option is None:
        name, joined = _split(name, options)
        option = options.get(name)
    if option is None:
        return _unknown_option(name, options, risks, path)
    if option.arity == "none":
        given[option.name] = ""
        return _refuse(name, "takes no value.") if joined is not None else 1
    if joined is not None:
        values, width = [joined], 1
    else:
        end = position + 1
        limit = len(words) if option.arity in ("any", "some") else position + 2
        while end < min(limit, len(words)) and not words[end].startswith("-"):
            end += 1
        values, width = list(words[position + 1 : end]), end - position
    if not values and option.arity != "optional":
        return _refuse(name, "needs a value after it.")
    for value in values:
        if reason := _fault_of_value(option, value):
            return _refuse(name, f"has the value {value[:80]!r}, which {reason}.")
    if option.arity in ("one", "optional"):
        if option.name in given:
            return _refuse(name, "is given twice; only the last one counts. Give it once.")
        given[option.name] = values[0] if values else ""
    return width


def _split(word: str, options: Mapping[str, Allowed]) -> tuple[str, str | None]:
    """The option of a word and the value joined to it, as argparse takes them: --output=json, -ojson, -dojson."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, value if equals else None
    while len(word) > 2 and word not in options:
        option = options.get(word[:2])
        if option is None:
            break
        if option.arity != "none":
            return word[:2], word[2:].removeprefix("=")
        word = f"-{word[2:]}"
    return word, None


def _fault_of_value(option: Allowed, value: str) -> str | None:
    """az reads a word, or what follows its first '=', as a file's name where it begins with '@'; a bare '@' is text."""
    if value == "@" and option.name in ("--query", "--name"):
        return None
    if value.startswith("@") or value.partition("=")[2].startswith("@"):
        return "az may read as '@FILE', a local file. In a --query put something before '@'"
    return option.check(value, _NO_ROOTS) if option.check else None


def _unknown_option(name: str, options: Mapping[str, Allowed], risks: Risks, path: str) -> Refusal:
    if known := risks.options.get(name):
        return _refuse(name, f"{known}.")
    where = f"az {path}" if path else "az before the command"
    full = sorted(long for long in options if name.startswith("--") and long.startswith(name))
    hint = f" Write it in full: {full[0]}." if full else ""
    return _refuse(name, f"is not an option that {where} is known to only read with.{hint}")


def _refuse(option: str, reason: str) -> Refusal:
    return Refusal(f"az: option {option[:80]}", f"The az command only reads, but {option[:80]} {reason}")


@cache
def reads() -> Reads:
    """The table of reads, read once."""
    return parse_reads(policy_table("az_reads.toml"))


def parse_reads(table: Mapping[str, Any]) -> Reads:
    options = policy_table("az_options.toml")
    values = parse_values(options)
    return Reads(
        catalogue=catalogue(),
        reviewed=frozenset(_leaves(table["hand_written"])).union(_leaves(table["extensions"])),
        post=policy_table("az_post_reads.toml")["post_reads"],
        risks=parse_risks(policy_table("az_risky_reads.toml"), policy_table("az_risks.toml")),
        free=parse_free_fields(policy_table("az_free_fields.toml")),
        values=values,
        everywhere=values.allowed(parse_options(options["everywhere"]["options"].split())),
        alone=frozenset(table["alone"].split()),
    )


def _leaves(groups: Mapping[str, str]) -> Iterator[str]:
    return (f"{group} {leaf}".strip() for group, leaves in groups.items() for leaf in leaves.split())
