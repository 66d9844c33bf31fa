"""A tape in a lab's directory, and the answer to a command.

The second identical command gets the second recording, the last one repeats; a command that may not write, so that it
cannot be counted, gets what was recorded as long after the last change. An answer recorded without `--query` serves
every projection and format. A packet capture has the name its caller gives it, in place of the recorded one.
"""

from __future__ import annotations

import errno
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ghost.errors import LabError, RecordError
from ghost.lab.az_cli.output import render
from ghost.lab.briefing import Briefing
from ghost.lab.directory import LabClock, changing_state
from ghost.lab.tapes.command_forms import CommandForm, form_of
from ghost.lab.tapes.recordings import Recording, Tape
from ghost.policy import from_dict, to_dict
from ghost.records import open_regular, private_dir, read_json, write_bytes, write_json
from ghost.text import one_line

NOT_RECORDED = 66
"""Exit status of a command that the tape does not hold."""
TAPE = "tape.json"
_USAGE_ERROR = 2
_CREATE = ("az", "network", "watcher", "packet-capture", "create")
_DOWNLOAD = ("az", "storage", "blob", "download")
_PROGRAM = re.compile(r"[a-z][a-z0-9_.-]{0,31}")
_ADDRESS_RECORD = re.compile(r"^(\S+?)\.?\s+\d+\s+IN\s+A+\s+(\S+)$", re.MULTILINE)
_SUBSCRIPTION = re.compile(r"/subscriptions/([0-9a-fA-F-]{36})/")


@dataclass(frozen=True)
class Played:
    exit_code: int
    output: str = ""
    stderr: str = ""


@dataclass(frozen=True)
class TapeDirectory:
    path: Path
    clock: LabClock
    briefing: Briefing
    recordings: tuple[Recording, ...]

    @classmethod
    def create(cls, path: Path, tape: Tape, briefing: Briefing, clock: LabClock) -> TapeDirectory:
        lab = cls(path, clock, briefing, tape.recordings)
        private_dir(path)
        write_json(path / TAPE, {name: to_dict(getattr(lab, name)) for name in ("clock", "briefing", "recordings")})
        write_json(path / "state.json", {"asked": {}, "captures": {}, "last": {"moment": clock.monotonic(), "at": 0.0}})
        for name, content in (tape.captures or {}).items():
            write_bytes(path / "captures" / name, content)
        return lab

    @classmethod
    def open(cls, path: Path) -> TapeDirectory:
        """Raises `LabError` if there is none."""
        try:
            content = read_json(path / TAPE)
        except (FileNotFoundError, RecordError) as error:
            raise LabError(f"there is no tape in {path} ({error}): start one first") from error
        return cls(
            path,
            from_dict(LabClock, content["clock"], "clock", LabError),
            from_dict(Briefing, content["briefing"], "briefing", LabError),
            from_dict(tuple[Recording, ...], content["recordings"], "recordings", LabError),
        )

    @property
    def programs(self) -> list[str]:
        """The recorded programs, by names that a file may have."""
        names = {shlex.split(recording.command)[0] for recording in self.recordings}
        return sorted(name for name in names if _PROGRAM.fullmatch(name))

    def resolve(self, name: str) -> list[str]:
        """Return the addresses that a recorded `dig` told of a name."""
        wanted = name.rstrip(".").casefold()
        told = [found for one in self.recordings for found in _ADDRESS_RECORD.findall(one.output)]
        return list(dict.fromkeys(address for owner, address in told if owner.casefold() == wanted))

    @cached_property
    def _forms(self) -> list[tuple[CommandForm, Recording]]:
        home = self._home
        return [(form_of(shlex.split(one.command), home), one) for one in self.recordings]

    @cached_property
    def _home(self) -> frozenset[str]:
        """Id and name of the login's own subscription."""
        ids = (found[1] for one in self.recordings if (found := _SUBSCRIPTION.search(one.output)))
        names = {next(ids, "")}
        for one in self.recordings:
            if one.command.startswith("az account show"):
                try:
                    account = json.loads(one.output)
                    names |= {str(account.get("id")), str(account.get("name"))}
                except (ValueError, AttributeError, RecursionError):
                    continue
        return frozenset(names)

    def play(self, argv: Sequence[str]) -> Played:
        """Return what was recorded of a command, and count that it was asked."""
        try:
            with changing_state(self.path) as state:
                return self._played(argv, state)
        except OSError as error:
            if error.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
                raise
        return self._played(argv, read_json(self.path / "state.json"))

    def _played(self, argv: Sequence[str], state: dict[str, Any]) -> Played:
        renamed: dict[str, str] = state["captures"]
        asked, found = self._find(_replaced(argv, renamed))
        if not found and asked.words == _CREATE:
            asked, found = self._find_creation(argv, renamed)
        if not found:
            command = one_line(shlex.join(argv), 300)
            return Played(NOT_RECORDED, stderr=f"ERROR: not recorded: this tape holds no answer to: {command}\n")
        times = state["asked"].get(key := repr(asked), 0)
        form, recording = found[min(max(times, self._passed(found, state)), len(found) - 1)]
        state["asked"][key] = times + 1
        state["last"] = {"moment": self.clock.monotonic(), "at": recording.at}
        if asked.words[: len(_DOWNLOAD)] == _DOWNLOAD and recording.exit_code == 0:
            self._download(recording, argv)
        back = {old: new for new, old in renamed.items()}
        output, stderr = _replaced((self._output(recording, form, asked), recording.stderr), back)
        return Played(recording.exit_code, output, stderr)

    def _passed(self, found: Sequence[tuple[CommandForm, Recording]], state: Mapping[str, Any]) -> int:
        """Return how many of several recordings were replaced by the next one in the time since the last change."""
        last = state["last"]
        now = self.clock.monotonic() - last["moment"] + (last["at"] or 0.0)
        return sum(recording.at is not None and recording.at <= now for _, recording in found[1:])

    def _find(self, argv: Sequence[str]) -> tuple[CommandForm, list[tuple[CommandForm, Recording]]]:
        asked = form_of(argv, self._home)
        same = [(form, one) for form, one in self._forms if form.asks_like(asked)]
        exact = [(form, one) for form, one in same if form == asked]
        serving = [(form, one) for form, one in same if _serves_every_projection(form, one)]
        return asked, exact or serving

    def _find_creation(
        self, argv: Sequence[str], renamed: dict[str, str]
    ) -> tuple[CommandForm, list[tuple[CommandForm, Recording]]]:
        """Find a recorded creation that differs only in the name of the capture, and remember the name."""
        asked = form_of(argv, self._home)
        new = _raw_name(argv, asked)
        for form, one in self._forms:
            if form.words == _CREATE and (old := _raw_name(shlex.split(one.command), form)):
                found = self._find(_replaced(argv, {new: old})) if new else (asked, [])
                if found[1]:
                    renamed[new] = old
                    return found
        return asked, []

    def _output(self, recording: Recording, form: CommandForm, asked: CommandForm) -> str:
        if recording.missing:
            raise LabError(f"recorded, but only a part of the output: {one_line(recording.missing)}")
        if form == asked or recording.exit_code:
            return recording.output
        try:
            answer = json.loads(recording.output) if recording.output.strip() else None
        except (ValueError, RecursionError) as error:
            raise LabError(
                f"recorded, but the answer is not JSON, so --query cannot apply: {one_line(str(error))}"
            ) from error
        return render(_projection(asked.query, answer), asked.output)

    def _download(self, recording: Recording, argv: Sequence[str]) -> None:
        """Write the capture of the export where the caller wants the blob."""
        kept = self.path / "captures" / Path(_value("--file", shlex.split(recording.command)) or "-").name
        target = _value("--file", argv)
        try:
            with open_regular(kept) as file:
                content = file.read()
        except OSError as error:
            raise LabError(f"recorded, but the export does not hold the capture {one_line(kept.name)}") from error
        if target:
            write_bytes(Path(target).absolute(), content)


def _serves_every_projection(form: CommandForm, recording: Recording) -> bool:
    """Whether it is whole JSON of az, or an error that no projection changes."""
    if recording.exit_code:
        return form.of_az and recording.exit_code != _USAGE_ERROR
    return form.of_az and form.query is None and form.output == "json"


def _projection(query: str | None, answer: Any) -> Any:
    import jmespath
    from jmespath.exceptions import JMESPathError

    if query is None:
        return answer
    try:
        return jmespath.search(query, answer)
    except JMESPathError as error:
        raise LabError(f"Invalid jmespath query supplied for `--query`: {one_line(str(error))}") from error


def _replaced(texts: Sequence[str], names: Mapping[str, str]) -> list[str]:
    replaced = list(texts)
    for old, new in names.items():
        replaced = [text.replace(old, new) for text in replaced]
    return replaced


def _raw_name(argv: Sequence[str], form: CommandForm) -> str:
    """The name of a capture as it was written: the form has it in one case."""
    folded = dict(form.options).get("--name", ("",))[0]
    return next((word for word in argv if folded and word.casefold() == folded), "")


def _value(option: str, argv: Sequence[str]) -> str | None:
    words = list(argv)
    return words[words.index(option) + 1] if option in words[:-1] else None
