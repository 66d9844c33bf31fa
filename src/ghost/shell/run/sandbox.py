"""The operating system's sandbox for SAFE commands: see `docs/sandbox.md`.

It decides what a command may still do, as steps for the launcher to apply; it applies nothing to this process. What
the kernel does not have is left out and not named: `layers` are those that are applied.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from ghost.errors import GhostError
from ghost.shell.judge.decision import RISKY, SAFE, Decision, of_line
from ghost.shell.run.kernel import LANDLOCK_WITH_TRUNCATION, Kernel, missing_sandbox, this_kernel
from ghost.shell.run.kubeconfig import kubeconfig_files
from ghost.shell.run.launcher_program import remove_tree
from ghost.shell.run.sandbox_files import (
    Rights,
    executables,
    gains_privileges,
    home_directories,
    is_script,
    landlock_ruleset,
    tree_of,
)
from ghost.shell.run.sandbox_filter import SECCOMP_CALL, compile_filter
from ghost.shell.run.sandbox_policy import CAPABILITIES, Policy, Profile, read_sandbox_policy

_NET_RAW = CAPABILITIES["net_raw"]
_SYS_ADMIN = 21
_PING_GROUPS = Path("/proc/sys/net/ipv4/ping_group_range")
NO_SANDBOX = "sandbox: none"
"""The rule that asks about a command which would run SAFE in a sandbox."""


class SandboxUnavailableError(GhostError):
    """A sandbox is required, and this system or this program has none."""


@dataclass(frozen=True)
class Confinement:
    """How to start one command. `steps` is None where no layer exists."""

    layers: tuple[str, ...] = ()
    steps: dict[str, Any] | None = None
    umask: int | None = None
    limits: tuple[tuple[str, int], ...] = ()
    environment: Mapping[str, str] | None = None
    private_directory: str | None = None


UNCONFINED = Confinement()


@dataclass(frozen=True)
class Sandbox:
    """`mode` is `auto`, `required` or `off`. Files that commands name are readable where they lie under `roots`."""

    mode: str
    roots: tuple[str, ...]
    search_path: str
    records: Path | None = None
    """Where the audit is: no command may write there."""
    cluster_files: tuple[str, ...] = ()
    """Keys and certificates that the kubeconfig names."""
    credential_program: str | None = None
    """The real path of the program of the kubeconfig that a person approved."""

    @contextmanager
    def confine(
        self,
        name: str,
        words: Sequence[str],
        environment: Mapping[str, str],
        *,
        profile_name: str | None = None,
        foreign_runner: bool = False,
    ) -> Iterator[Confinement]:
        """The confinement of `words`, whose program is `name` in the policy; its private directory ends with it.

        Raises `SandboxUnavailableError` where a sandbox is required and the command would be without.
        """
        if self.mode == "off":
            yield UNCONFINED
            return
        policy = read_sandbox_policy()
        profile = policy.profile_of(name, words[1:], profile_name, with_credentials=self.credential_program is not None)
        kernel = this_kernel()
        nothing = "a custom runner starts it" if foreign_runner else _nothing_applies(kernel, profile, words)
        lacking = nothing or _files_stay_writable(kernel, profile)
        if lacking and self.mode == "required":
            raise SandboxUnavailableError(f"{name} cannot be run in a sandbox: {lacking}")
        if nothing:
            if not foreign_runner:
                list(self._output_directories(profile, words[1:]))  # the records are kept from the engine here too
            yield UNCONFINED
            return
        scratch = None if profile.read_only else tempfile.mkdtemp(prefix="ghost-")
        try:
            yield self._confinement(policy, profile, kernel, words, environment, scratch)
        finally:
            if scratch is not None:
                remove_tree(scratch)

    def _confinement(
        self,
        policy: Policy,
        profile: Profile,
        kernel: Kernel,
        words: Sequence[str],
        environment: Mapping[str, str],
        scratch: str | None,
    ) -> Confinement:
        variables = dict(environment)
        if scratch is not None:
            variables["TMPDIR"] = scratch
            if profile.azure and not os.path.isdir(_azure_directory(variables)):  # noqa: PTH112 - as above, a string
                variables["AZURE_CONFIG_DIR"] = scratch
        landlocked = profile.landlock and kernel.landlock > 0
        rules = self._rules(policy, profile, words, variables, scratch) if landlocked else None
        landlock = None
        if rules is not None:
            ruleset, handled, file_rights = landlock_ruleset(kernel.landlock)
            landlock = (ruleset, file_rights, [(os.fsencode(p), r & handled) for p, r in rules.items() if r & handled])
        capabilities = {*profile.capabilities, *(["net_raw"] if profile.raw_sockets else [])}
        if not landlocked:
            capabilities -= {"dac_read_search"}
        # Where Landlock is not used, root has another way to keep files and devices from a program.
        mounts = not landlocked and profile.read_only and kernel.mount_attributes and kernel.may(_SYS_ADMIN)
        steps = {
            "no_new_privs": True,
            "read_only_mounts": mounts,
            "capabilities": sum(1 << CAPABILITIES[capability] for capability in capabilities),
            "landlock": landlock,
            "seccomp_call": SECCOMP_CALL[kernel.machine] if profile.asks_before_writing else None,
            "seccomp": _filter(
                kernel.machine, profile, profile.forks or (is_script(words[0]) and not profile.text_only)
            ),
            "seccomp_without_forks": _filter(kernel.machine, profile, forks=False),
            "processes": policy.bounds["processes"],
            "forks": profile.forks,
            "memory": profile.memory or policy.bounds["memory"],
            "temporary_bytes": policy.bounds["temporary_bytes"],
            "may_mount": kernel.may(_SYS_ADMIN),
        }
        files = ["landlock"] if landlocked else ["read_only_mounts"] if mounts else []
        layers = ("no_new_privs", "capabilities", *files, "seccomp")
        limits = dict(policy.limits)
        if not (profile.azure or profile.output_options or profile.caches):
            limits["RLIMIT_FSIZE"] = policy.bounds["temporary_bytes"]
        return Confinement(layers, steps, 0o077, tuple(limits.items()), variables, scratch)

    def _rules(
        self,
        policy: Policy,
        profile: Profile,
        words: Sequence[str],
        environment: Mapping[str, str],
        scratch: str | None,
    ) -> dict[str, int]:
        """Paths and what may be done below each; everything else is denied."""
        rules: dict[str, int] = {}

        def allow(rights: int, *paths: str) -> None:
            for path in paths:
                rules[path] = rules.get(path, 0) | rights

        program = words[0]
        if profile.text_only:
            allow(Rights.READ, *policy.libraries, *(f"{tree}/lib" for tree in tree_of(program)))
            allow(Rights.EXECUTE | Rights.READ, *executables(program))
            allow(Rights.WRITE_FILE, *policy.writes)
            allow(Rights.WRITE, *([scratch] if scratch else []))
            return rules
        allow(Rights.READ, *policy.reads, *profile.reads, *tree_of(program))
        allow(Rights.READ, *(environment[n] for n in policy.reads_of_environment if environment.get(n)))
        allow(Rights.EXECUTE | Rights.READ, *executables(program))
        for name in profile.starts:
            found = shutil.which(name, path=self.search_path)
            allow(Rights.EXECUTE | Rights.READ, *(executables(found) if found else ()))
        if is_script(program):
            allow(Rights.EXECUTE | Rights.READ, *policy.script_programs, *tree_of(program))
        if profile.python or is_script(program):
            allow(Rights.EXECUTE | Rights.READ, *python_trees())
        if not profile.read_only:
            allow(Rights.WRITE_FILE, *policy.writes)
            allow(Rights.WRITE, *([scratch] if scratch else []))
        if profile.azure:
            allow(Rights.WRITE, _azure_directory(environment))
            allow(Rights.READ, environment.get("AZURE_EXTENSION_DIR") or _azure_directory(environment))
        if profile.kubeconfig:
            cache = os.path.join(environment.get("HOME", "/"), ".kube", "cache")  # noqa: PTH118
            allow(Rights.READ_FILE, *kubeconfig_files(environment), *self.cluster_files)
            allow(Rights.READ if profile.read_only else Rights.WRITE, cache)
            if self.credential_program is not None:
                allow(Rights.EXECUTE | Rights.READ, *executables(self.credential_program))
        if profile.reads_arguments:
            for path in self._named(words[1:]):
                allow(Rights.READ_DIRECTORY if os.path.isdir(path) else Rights.READ_FILE, path)  # noqa: PTH112
        allow(Rights.WRITE, *self._output_directories(profile, words[1:]), *_caches(profile, environment))
        return rules

    def _named(self, arguments: Sequence[str]) -> Iterator[str]:
        """What an argument names under the roots: as itself, behind `=`, or behind a short option."""
        for argument in arguments:
            spellings = [argument, argument.partition("=")[2], argument[2:] if argument[:1] == "-" else ""]
            for path in filter(None, spellings):
                if "\0" not in path and os.path.exists(path) and self._under_roots(path):  # noqa: PTH110
                    yield path

    def _output_directories(self, profile: Profile, arguments: Sequence[str]) -> Iterator[str]:
        """Directories that the command is told to write, made where they are missing, if they lie under the roots."""
        if not set(profile.writes_nothing_with).isdisjoint(arguments):
            return
        for option in profile.output_options:
            path = _last_value(option, arguments)
            if path is None:
                continue
            if self._holds_records(path):
                raise PermissionError(
                    errno.EACCES, f"{path} holds the records of commands: give another directory to {option}"
                )
            if self._under_roots(path):
                Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
                yield path

    def _holds_records(self, path: str) -> bool:
        """Whether what may write below `path` could write an audit: Landlock takes nothing out of a directory."""
        real = Path(os.path.realpath(path))
        if self.records is not None:
            records = Path(os.path.realpath(self.records))
            if real == records or real in records.parents or records in real.parents:
                return True
        return any(real.glob("shell_audit_*.jsonl"))

    def _under_roots(self, path: str) -> bool:
        real = os.path.realpath(path)
        return any(real == root or real.startswith(root.rstrip("/") + "/") for root in self.roots)


def ask_without_sandbox(decision: Decision, *, applied: bool = True) -> Decision:
    """RISKY instead of SAFE where a command of the line relies on a sandbox that it would not have.

    `applied`: the sandbox is used where the system has one. Without, only what no table holds relies on it.
    """
    if decision.classification != SAFE or (applied and missing_sandbox() is None):
        return decision
    return of_line(tuple(_asked_without(command, applied=applied) for command in decision.commands))


def _asked_without(command: Decision, *, applied: bool) -> Decision:
    if not _relies_on_sandbox(command, applied=applied):
        return command
    why = f"As written it only reads, but the sandbox that enforces this for {command.program} is switched off, "
    why += "missing on this system, or too old. Approve it if you trust the program."
    return replace(command, classification=RISKY, tier=3, rule=NO_SANDBOX, explanation=why)


def _relies_on_sandbox(command: Decision, *, applied: bool) -> bool:
    arguments = command.arguments or ("",)
    profile = read_sandbox_policy().profile_of(arguments[0], arguments[1:], command.profile)
    if not applied:
        return profile.text_only
    kernel = this_kernel()
    return not (profile.runs_unconfined or (kernel.seccomp and _files_stay_writable(kernel, profile) is None))


def ask_by_form(decision: Decision) -> Decision:
    """A decision that asks, with what it may be allowed for: nothing but a local read that its sandbox keeps to it.

    Its profile opens nothing for writing and makes no connection, and such a command runs in it when it is allowed.
    """
    if decision.classification != RISKY or decision.environment == "azure" or decision.arguments is None:
        return decision
    if decision.rule == NO_SANDBOX:
        return replace(decision, reads=True)
    if decision.stages:
        return decision
    profile = read_sandbox_policy().profile_of(decision.arguments[0], decision.arguments[1:], decision.profile)
    speaks = profile.raw_sockets or "unix" in profile.sockets or (profile.streams and "inet" in profile.sockets)
    reads = decision.form is not None and profile.read_only and not speaks and missing_sandbox() is None
    return replace(decision, reads=True) if reads else replace(decision, form=None)


def _last_value(option: str, arguments: Sequence[str]) -> str | None:
    """The value of `option`; the last one counts."""
    value = None
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if word == option:
            value = following
        elif word.startswith(f"{option}="):
            value = word.partition("=")[2]
    return value


def _files_stay_writable(kernel: Kernel, profile: Profile) -> str | None:
    """Why the available layers do not prevent writing; None where they do."""
    if profile.read_only or kernel.landlock >= LANDLOCK_WITH_TRUNCATION:
        return None
    return f"the kernel's Landlock (version {kernel.landlock}) cannot deny all writing; Linux has it since 6.2"


def _nothing_applies(kernel: Kernel, profile: Profile, words: Sequence[str]) -> str | None:
    """Why no layer can be applied to a command; None where some can."""
    if not kernel.seccomp:
        return "this system has no sandbox that Ghost supports"
    if profile.raw_sockets and not kernel.may(_NET_RAW) and not _pings_as_user():
        # Its file's capability, which no_new_privs takes away, is what opens its sockets; without
        # no_new_privs the kernel lets an ordinary user confine nothing.
        programs = [words[0], *(p for p in map(shutil.which, profile.starts) if p)]
        if any(map(gains_privileges, programs)):
            return (
                "an ordinary user can send probes only with the privilege of the program file, which a sandbox removes"
            )
    return None


def _pings_as_user() -> bool:
    """Whether the system lets this user's groups send echo requests without a privilege (icmp(7))."""
    try:
        low, high = map(int, _PING_GROUPS.read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return False
    return any(low <= group <= high for group in {os.getegid(), *os.getgroups()})


@lru_cache(maxsize=32)
def _filter(machine: str, profile: Profile, forks: bool) -> bytes:
    policy = read_sandbox_policy()
    return compile_filter(
        machine,
        denied=policy.denied,
        ioctls=policy.ioctls,
        fcntls=policy.fcntls,
        locks=policy.locks,
        sockets=profile.sockets,
        netlink=policy.netlink,
        read_only=profile.read_only,
        forks=forks,
        asks_before_writing=profile.asks_before_writing,
        streams=profile.streams,
        signals=profile.signals,
        pretends=profile.pretends,
    )


@cache
def python_trees() -> tuple[str, ...]:
    """Directories of the running Python, its packages and Ghost."""
    package = Path(__file__).resolve().parents[3]
    paths = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, str(package)]
    paths += [p for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages")]  # noqa: PTH119
    return tuple(dict.fromkeys(p for p in paths if Path(p) not in home_directories()))


def _azure_directory(environment: Mapping[str, str]) -> str:
    return environment.get("AZURE_CONFIG_DIR") or os.path.join(environment.get("HOME", "/"), ".azure")  # noqa: PTH118


def _caches(profile: Profile, environment: Mapping[str, str]) -> Iterator[str]:
    """The profile's directories in the user's cache; where they cannot be made it goes without."""
    root = Path(environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME", "/")) / ".cache")
    for name in profile.caches:
        try:
            (root / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        yield str(root / name)
