"""Allowed options of az reads and the types of their values: `policy/az_options.toml`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ghost.azure import Arity, Option
from ghost.errors import ConfigurationError
from ghost.shell.judge.value_types import Check, parse_type


@dataclass(frozen=True)
class Allowed:
    """An option of a read, with what its values may be."""

    name: str
    arity: Arity
    check: Check | None


@dataclass(frozen=True)
class Values:
    """`az_options.toml`: the type of each option, and where a command or group has another one for it."""

    types: Mapping[str, str]
    meaning: Mapping[str, str]
    only: Mapping[str, Mapping[str, str]]
    beginnings: Mapping[str, Mapping[str, str]]
    """Of a command, the cut spellings that az takes for an option and its documents write."""
    _checks: dict[str, Check] = field(default_factory=dict)

    def allowed(self, options: Iterable[Option], path: str = "") -> dict[str, Allowed]:
        """The allowed options of a command, by every spelling."""
        allowed: dict[str, Allowed] = {}
        for option in options:
            kind = self._kind(path, option)
            if kind is None or kind == "never" or option.may_name_a_file:
                continue
            one = Allowed(option.names[0], option.arity, self._check(kind, option))
            allowed.update(dict.fromkeys(option.names, one))
        return allowed

    def is_never(self, path: str, option: Option) -> bool:
        """Whether an option makes a read of this command something else."""
        return self._kind(path, option) == "never"

    def _kind(self, path: str, option: Option) -> str | None:
        """The type of an option, from the innermost group that lists it."""
        scope = path
        while scope:
            own = self.only.get(scope, {})
            for name in option.names:
                if name in own:
                    return own[name]
            scope = scope.rpartition(" ")[0]
        return next((self.types[name] for name in option.names if name in self.types), None)

    def _check(self, kind: str, option: Option) -> Check | None:
        if option.arity == "none":
            return None
        if option.choices and kind not in ("directions", "sign_in"):
            return _one_of(option.choices)
        text = self.meaning[kind]
        if text not in self._checks:
            self._checks[text] = parse_type(text)
        return self._checks[text]


def _one_of(choices: Sequence[str]) -> Check:
    """A check for one of az's choices, ignoring case as az does."""
    known = frozenset(choice.lower() for choice in choices)
    return lambda value, _: None if value.lower() in known else f"is not one of: {' '.join(choices)}"


def parse_values(table: Mapping[str, Any]) -> Values:
    def by_option(kinds: Mapping[str, str]) -> dict[str, str]:
        unknown = kinds.keys() - table["meaning"].keys()
        if unknown:
            raise ConfigurationError(f"az_options.toml gives no meaning to {', '.join(sorted(unknown))}.")
        return {name: kind for kind, names in kinds.items() for name in names.split()}

    return Values(
        types=by_option(table["types"]),
        meaning=table["meaning"],
        only={scope: by_option(kinds) for scope, kinds in table["only"].items()},
        beginnings=table["beginnings"],
    )
