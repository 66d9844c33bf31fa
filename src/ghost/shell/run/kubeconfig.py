"""What kubectl and helm would use: the context, its server, and the program that gets its credentials.

kubectl itself merges the files of KUBECONFIG and prints the result without tokens (`kubectl config view --minify`), in
the sandbox: so no other reader of YAML has to merge as it does. A read runs unasked where the files are the user's own
and the credentials are in files; a program that gets them is shown to a person first, once a session.
https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ghost.shell.judge.decision import RISKY, SAFE, Decision

PROGRAMS = ("kubectl", "helm")
CREDENTIAL_PROGRAM = "credential program"
_FILES = ("client-certificate", "client-key", "certificate-authority", "tokenFile")
_MISSING = 127

View = Callable[[Sequence[str]], tuple[int | None, str]]
"""Runs kubectl with these words in the sandbox. Returns its exit code and its output."""


@dataclass(frozen=True)
class Cluster:
    """What one context leads to. `fault` says why that is not known."""

    context: str = ""
    server: str = ""
    program: tuple[str, ...] = ()
    """The real path, the arguments and the variables of the program that gets the credentials."""
    files: tuple[str, ...] = ()
    """Keys and certificates that the kubeconfig names."""
    fault: str | None = None


@dataclass
class Kubeconfigs:
    """The contexts used in a session, read again where a file changed; `approved` are the programs a person allowed."""

    view: View
    find: Callable[[str], Path | None]
    environment: Callable[[Decision], Mapping[str, str]]
    approved: set[tuple[str, ...]] = field(default_factory=set)
    _read: dict[tuple[object, ...], Cluster] = field(default_factory=dict)
    _used: dict[str, bool] = field(default_factory=dict)
    """What a person is told of the contexts, and whether she was."""

    def contexts(self) -> list[str]:
        """The contexts used for the first time since the last call, a sentence each."""
        untold = [told for told, is_told in self._used.items() if not is_told]
        self._used.update(dict.fromkeys(untold, True))
        return untold

    def judged(self, decision: Decision) -> Decision:
        """RISKY where a program must get the credentials or the files are odd; else SAFE, with the context shown."""
        if decision.classification != SAFE or not (cluster := self.cluster_of(decision)):
            return decision
        shown = f" Context {cluster.context} at {cluster.server}."
        if cluster.fault is not None:
            rule, why = "kubeconfig", f"{cluster.fault} Correct the kubeconfig, or approve it once."
        elif not cluster.program or cluster.program in self.approved:
            self._used.setdefault(f"{decision.program} asks the context {cluster.context} at {cluster.server}.", False)
            return replace(decision, explanation=decision.explanation + shown)
        else:
            rule = CREDENTIAL_PROGRAM
            why = "It only reads, but its kubeconfig starts a program that gets the credentials, with your rights: "
            why += f"{shlex.join(cluster.program)}. Once approved, it is started unasked in this session.{shown}"
        return replace(decision, classification=RISKY, tier=1, rule=f"{decision.program}: {rule}", explanation=why)

    def approve(self, decision: Decision) -> None:
        """A person approved this command: the program she was shown may be started for reads of this session."""
        cluster = self.cluster_of(decision) if decision.rule.endswith(f": {CREDENTIAL_PROGRAM}") else None
        if cluster is not None and f" {shlex.join(cluster.program)}. " in decision.explanation:
            self.approved.add(cluster.program)

    def cluster_of(self, decision: Decision) -> Cluster | None:
        """The cluster that a command of kubectl or helm asks; None where it asks none."""
        words = decision.arguments
        if decision.program not in PROGRAMS or words is None or decision.problem is not None:
            return None
        if not {"config", "--client"}.isdisjoint(words):
            return None
        files = kubeconfig_files(self.environment(decision))
        context = _context(words)
        key = (context, *((path, _stamp(path)) for path in files))
        if key not in self._read:
            cluster = self._cluster(context, files)
            if cluster is None:
                return None
            self._read[key] = cluster
        return self._read[key]

    def _cluster(self, context: str | None, files: Sequence[str]) -> Cluster | None:
        if fault := next(filter(None, map(_fault_of_file, files)), None):
            return Cluster(fault=fault)
        chosen = [] if context is None else ["--context", context]
        exit_code, output = self.view(["kubectl", "config", "view", "--minify", "-o", "json", *chosen])
        if exit_code == _MISSING:
            return None  # without kubectl nothing can run, but helm, which then starts no program
        try:
            view = json.loads(output if exit_code == 0 else "{}")
            (of_cluster,), (of_user,) = view["clusters"], view["users"] or [{}]
            return self._read_view(view["current-context"], of_cluster["cluster"], of_user.get("user") or {}, files)
        except (ValueError, KeyError, TypeError, AttributeError):
            where = ", ".join(files) or "a kubeconfig: there is none in KUBECONFIG or ~/.kube/config"
            return Cluster(fault=f"kubectl cannot read the context from {where}.")

    def _read_view(
        self, context: str, cluster: Mapping[str, Any], user: Mapping[str, Any], files: Sequence[str]
    ) -> Cluster:
        named = [str(part[name]) for part in (cluster, user) for name in _FILES if part.get(name)]
        directories = [str(Path(path).parent) for path in files]
        program: list[str] = []
        fault = None
        if plugin := user.get("exec"):
            variables = [f"{each['name']}={each['value']}" for each in plugin.get("env") or ()]
            program = [str(plugin["command"]), *map(str, plugin.get("args") or ()), *variables]
        elif provider := user.get("auth-provider"):
            settings = provider.get("config") or {}
            program = [str(settings.get("cmd-path") or provider["name"]), *str(settings.get("cmd-args") or "").split()]
        if program:
            real = self._real_program(program[0])
            fault = None if real else f"The kubeconfig's credential program {program[0][:160]!r} was not found."
            program[0] = real or program[0]
        return Cluster(
            context=str(context),
            server=str(cluster["server"]),
            program=tuple(program),
            files=tuple(os.path.join(directory, path) for path in named for directory in directories),  # noqa: PTH118
            fault=fault,
        )

    def _real_program(self, name: str) -> str | None:
        """A bare name is found as any program is; a path must be a whole one."""
        found = Path(name) if os.path.isabs(name) else None if os.sep in name else self.find(name)  # noqa: PTH117
        return os.path.realpath(found) if found is not None and found.is_file() else None


def kubeconfig_files(environment: Mapping[str, str]) -> list[str]:
    """The files of KUBECONFIG that exist, or the one in the home directory."""
    named = [path for path in environment.get("KUBECONFIG", "").split(os.pathsep) if path]
    paths = named or [str(Path(environment.get("HOME", "/")) / ".kube" / "config")]
    return [os.path.abspath(path) for path in paths if os.path.exists(path)]  # noqa: PTH100, PTH110


def _context(words: Sequence[str]) -> str | None:
    """The last value of the option that chooses a context."""
    chosen = None
    for word, following in zip(words, [*words[1:], ""], strict=True):
        for option in ("--context", "--kube-context"):
            if word == option:
                chosen = following
            elif word.startswith(f"{option}="):
                chosen = word.partition("=")[2]
    return chosen


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _fault_of_file(path: str) -> str | None:
    try:
        status = Path(path).stat()
    except OSError as error:
        return f"The kubeconfig {path} cannot be read: {error.strerror}."
    if not stat.S_ISREG(status.st_mode):
        return f"The kubeconfig {path} is not a regular file."
    if status.st_uid not in (0, os.geteuid()):
        return f"The kubeconfig {path} belongs to another user."
    if status.st_mode & stat.S_IWOTH:
        return f"Anybody can write the kubeconfig {path}."
    return None
