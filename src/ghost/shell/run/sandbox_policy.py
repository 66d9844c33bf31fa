"""`policy/sandbox.toml` as types: which profile a command runs under, and what a profile allows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from ghost.errors import ConfigurationError
from ghost.patterns import lazy
from ghost.shell.policy_tables import policy_table
from ghost.shell.run.sandbox_filter import FAMILIES

CAPABILITIES = {"dac_read_search": 2, "net_raw": 13, "sys_ptrace": 19, "syslog": 34}  # linux/capability.h


@dataclass(frozen=True)
class Profile:
    """What a program may do beyond reading the system and writing its private directory."""

    name: str
    about: str
    sockets: tuple[str, ...] = ()
    streams: bool = True
    """May make connections; without, its sockets carry single datagrams."""
    capabilities: tuple[str, ...] = ()
    """Kept where root has them; an ordinary user has none."""
    raw_sockets: bool = False
    """Sends through raw sockets: keeps the capability, or needs that of the program's own file."""
    text_only: bool = False
    """Opens only its own libraries, whatever its words say: it asks where this profile cannot be applied."""
    landlock: bool = True
    signals: bool = True
    """May send signals, which Landlock keeps to its own processes."""
    read_only: bool = False
    """Opens nothing for writing, its private directory included."""
    asks_before_writing: bool = False
    """It is read-only, but opens /dev/null to read and write: it is told that it did, and has no such descriptor."""
    forks: bool = False
    """May start child processes; a script always may."""
    starts: tuple[str, ...] = ()
    """Programs that it may execute, beside itself."""
    python: bool = False
    """Needs the Python that Ghost itself runs on."""
    azure: bool = False
    """Writes the directory of the Azure CLI, and reads its extensions."""
    kubeconfig: bool = False
    """Reads the user's kubeconfig and what belongs to it."""
    reads: tuple[str, ...] = ()
    reads_arguments: bool = False
    """Reads the files its words name, where they lie under the roots."""
    output_options: tuple[str, ...] = ()
    """Options that name a directory to write."""
    writes_nothing_with: tuple[str, ...] = ()
    """With one of these options it needs no such directory."""
    caches: tuple[str, ...] = ()
    """Directories of the user's cache that it writes."""
    pretends: str = ""
    memory: int = 0
    """Bytes, where it needs more than others."""
    runs_unconfined: bool = False
    """Runs unasked also where the system cannot keep it from writing; others ask there."""


@dataclass(frozen=True)
class Rule:
    names: frozenset[str]
    profile: Profile
    with_credentials: Profile
    """Its profile once a person approved the program that gets its credentials."""
    any_argument: re.Pattern[str] | None = None
    every_argument: re.Pattern[str] | None = None

    def holds(self, program: str, arguments: Sequence[str]) -> bool:
        one, each = self.any_argument, self.every_argument
        return (
            program in self.names
            and (one is None or any(one.fullmatch(argument) for argument in arguments))
            and (each is None or all(each.fullmatch(argument) for argument in arguments))
        )


@dataclass(frozen=True)
class Policy:
    reads: tuple[str, ...]
    reads_of_environment: tuple[str, ...]
    script_programs: tuple[str, ...]
    writes: tuple[str, ...]
    libraries: tuple[str, ...]
    netlink: tuple[str, ...]
    limits: tuple[tuple[str, int], ...]
    bounds: Mapping[str, int]
    denied: Mapping[str, str]
    ioctls: tuple[int, ...]
    fcntls: tuple[int, ...]
    locks: tuple[int, ...]
    rules: tuple[Rule, ...]
    profiles: Mapping[str, Profile]

    def profile_of(
        self, program: str, arguments: Sequence[str], named: str | None = None, *, with_credentials: bool = False
    ) -> Profile:
        """The profile of that name, or of a program with its arguments."""
        if named is not None:
            return self.profiles[named]
        rule = next((rule for rule in self.rules if rule.holds(program, arguments)), None)
        if rule is None:
            return self.profiles["default"]
        return rule.with_credentials if with_credentials else rule.profile


@cache
def read_sandbox_policy() -> Policy:
    table = policy_table("sandbox.toml")
    try:
        profiles = {name: _profile(name, row) for name, row in table["profiles"].items()}
        rules = tuple(
            Rule(
                frozenset(row["names"]),
                profiles[row["profile"]],
                profiles[row.get("with_credentials", row["profile"])],
                *(lazy(row[key]) if key in row else None for key in ("any_argument", "every_argument")),
            )
            for row in table["programs"]
        )
        system = table["system"]
        return Policy(
            reads=tuple(system["reads"]),
            reads_of_environment=tuple(system["reads_of_environment"]),
            script_programs=tuple(system["script_programs"]),
            writes=tuple(system["writes"]),
            libraries=tuple(system["libraries"]),
            netlink=tuple(system["netlink"]),
            limits=tuple(table["limits"].items()),
            bounds=table["bounds"],
            denied=table["denied"],
            ioctls=tuple(table["ioctls"]["allowed"]),
            fcntls=tuple(table["fcntls"]["denied"]),
            locks=tuple(table["fcntls"]["locks"]),
            rules=rules,
            profiles=profiles,
        )
    except (KeyError, TypeError) as fault:
        raise ConfigurationError(f"policy/sandbox.toml is invalid: {fault!r}") from fault


def _profile(name: str, row: Mapping[str, object]) -> Profile:
    profile = Profile(name, **{key: tuple(v) if isinstance(v, list) else v for key, v in row.items()})  # type: ignore[arg-type]
    unknown = {*profile.sockets} - {*FAMILIES} | {*profile.capabilities} - {*CAPABILITIES}
    if unknown:
        raise ConfigurationError(f"policy/sandbox.toml: the profile {name} names the unknown {', '.join(unknown)}")
    return profile
