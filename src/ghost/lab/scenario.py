"""Scenarios: a world and what went wrong in it, how people say so, and the truth; or a tape in place of the world.

Each is a TOML file in `scenarios/` or `tapes/library/`; `docs/lab.md` tells its format, `ghost lab schema` describes it
to an editor. Files of the first format (`first_format.py`) load as well.
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, Literal

from ghost.errors import LabError
from ghost.lab.briefing import Answer, Approvals, Briefing
from ghost.lab.edits import Edit, edited
from ghost.lab.tapes.recordings import read_tape
from ghost.lab.tenant_conditions import TenantConditions, check_tenant
from ghost.lab.truth import FlowEnds, HandVerdict, NamedFlow, Symptom, Truth
from ghost.lab.world import World
from ghost.lab.world_validation import check_world
from ghost.net import dns_name
from ghost.policy import from_dict, to_dict
from ghost.text import did_you_mean

SCENARIOS = Path(__file__).parent / "scenarios"
TAPES = Path(__file__).parent / "tapes" / "library"
LARGEST_FILE_BYTES: Final = 4 << 20
LONGEST_SYMPTOM: Final = 20_000
NUMBERED: Final = r"^edits\[\d+\]: "
"""The place of an edit in a world, whose base may have edits of its own."""
WORLDS = Path(__file__).parent / "worlds"
"""Base worlds: files of `base`, `world` and `edits`, as in a scenario."""


@dataclass(frozen=True)
class WorldSource:
    """Where a world comes from: a base world, or one in full; then edits."""

    base: str | None = None
    """A world of Ghost's own, or a file (`./my-world.toml`)."""
    world: World | None = None
    edits: tuple[Edit, ...] = ()
    """What went wrong, on top of the world."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a scenario and a tape have in common."""

    name: str
    title: str
    flows: tuple[NamedFlow, ...]
    """What people complain about; the first is the default."""
    symptoms: tuple[Symptom, ...]
    """Wordings of the complaint."""
    truth: Truth = field(default_factory=Truth)
    answers: tuple[Answer, ...] = ()
    approvals: Approvals = field(default_factory=Approvals)
    format: Literal[2] = 2

    @property
    def symptom(self) -> str:
        return self.symptoms[0].text if self.symptoms else ""

    @property
    def briefing(self) -> Briefing:
        """Who complains knows the ends of the traffic; the scenario's own answers may say it otherwise."""
        ends = [
            Answer(word, str(told))
            for flow in self.flows[:1]
            for word, told in (("source", flow.source), ("destination", flow.destination), ("port", flow.port))
            if told is not None
        ]
        own = {answer.match for answer in self.answers}
        answers = (*(end for end in ends if end.match not in own), *self.answers)
        return Briefing(self.name, self.symptom, self.approvals, answers)

    def flow(self, name: str | None) -> NamedFlow:
        """Return the flow of that name, which must be one; the first for None."""
        return next(flow for flow in self.flows if name in (None, flow.name))


@dataclass(frozen=True, kw_only=True)
class TapeScenario(Case):
    tape: Path
    """The recordings: an export, or lines of JSON."""

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], place: str, beside: Path) -> TapeScenario:
        """Build and check it; the tape is a file of the directory `beside`. Raises `LabError`."""
        case = from_dict(Case, {key: item for key, item in value.items() if key != "tape"}, place, LabError)
        _check(case, None, place)
        tape = value["tape"]
        if not isinstance(tape, str) or Path(tape).name != tape or Path(tape).suffix not in {".zip", ".jsonl"}:
            raise LabError(f"{place}tape: name a file beside it: an export (.zip) or lines of JSON (.jsonl)")
        return cls(tape=beside.absolute() / tape, **{each.name: getattr(case, each.name) for each in fields(Case)})


@dataclass(frozen=True, kw_only=True)
class Scenario(Case):
    world: World
    """With all faults."""
    verdicts: tuple[HandVerdict, ...] = ()
    tenant: TenantConditions = field(default_factory=TenantConditions)

    def to_dict(self) -> dict[str, Any]:
        content: dict[str, Any] = to_dict(self)
        return content

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], place: str = "scenario: ", beside: Path | None = None) -> Scenario:
        """Build and check a scenario of either format. `beside`: the directory of files that it names.

        Raises `LabError` with the place that does not fit.
        """
        if value.get("format", 1) == 1:
            from ghost.lab.first_format import from_first_format

            value = from_first_format(value, place)
        source = {key: value[key] for key in ("base", "world", "edits") if key in value}
        rest = {key: item for key, item in value.items() if key not in ("base", "edits")}
        rest["world"] = world_from_source(source, place, beside)
        scenario = from_dict(cls, rest, place, LabError)
        _check(scenario, scenario.world, place)
        check_tenant(scenario.tenant, f"{place}tenant")
        return scenario


def scenario_names() -> list[str]:
    return sorted(path.stem for path in SCENARIOS.glob("*.toml"))


def tape_names() -> list[str]:
    return sorted(path.stem for path in TAPES.glob("*.toml"))


@dataclass(frozen=True)
class Headline:
    """What a list shows of a scenario or tape."""

    name: str
    title: str
    symptom: str
    is_tape: bool


def headlines() -> list[Headline]:
    """Return those of Ghost's own, scenarios first: their worlds are not built."""
    tables = [(path, _read_table(path)) for folder in (SCENARIOS, TAPES) for path in sorted(folder.glob("*.toml"))]
    return [
        Headline(path.stem, table["title"], table["symptoms"][0]["text"], path.parent == TAPES)
        for path, table in tables
    ]


def load_case(name: str) -> Scenario | TapeScenario:
    """Load a scenario or tape by name, or a user's own by path (`./mine.toml`, `./mine.json`, `./export.zip`).

    Raises `LabError` if it does not exist or its file is invalid.
    """
    path = Path(name)
    if path.suffix == ".zip":
        symptom = read_tape(path).symptom
        wordings = (Symptom(symptom),) if symptom else ()
        return TapeScenario(
            name=path.stem, title=f"the export {path.name}", flows=(), symptoms=wordings, tape=path.absolute()
        )
    if path.suffix in {".toml", ".json"}:
        return read_case(path)
    known = dict.fromkeys(scenario_names(), SCENARIOS) | dict.fromkeys(tape_names(), TAPES)
    if name not in known:
        raise LabError(f"there is no scenario {name!r}: {did_you_mean(name, known)}see ghost lab list")
    return read_case(known[name] / f"{name}.toml")


def load_scenario(name: str) -> Scenario:
    """As `load_case`, of what has a world. Raises `LabError` for a tape."""
    case = load_case(name)
    if isinstance(case, TapeScenario):
        raise LabError(f"{case.name} is a tape, which has no world: ghost investigate --lab {name}")
    return case


def read_case(path: Path) -> Scenario | TapeScenario:
    """Read a TOML or JSON scenario, named after the file. Raises `LabError` if it is invalid."""
    content = {**_read_table(path), "name": path.stem}
    if "tape" in content:
        return TapeScenario.from_dict(content, f"{path.name}: ", path.parent)
    return Scenario.from_dict(content, f"{path.name}: ", path.parent)


def read_scenario(path: Path) -> Scenario:
    """Read a scenario with a world. Raises `LabError` if it is invalid."""
    return load_scenario(str(path))


def world_from_source(
    value: Mapping[str, Any], place: str, beside: Path | None = None, within: tuple[Path, ...] = ()
) -> World:
    """Return the world that `base`, `world` and `edits` make. `within`: the files whose base this is."""
    source = from_dict(WorldSource, value, place, LabError)
    if source.base is not None and source.world is not None:
        raise LabError(f"{place}base: there is a [world] as well: keep one of them")
    world = source.world if source.base is None else _base_world(source.base, f"{place}base", beside, within)
    if world is None:
        raise LabError(f"{place}world: missing: give [world], or the name of a base world in `base`")
    changed: World = edited(world, source.edits, f"{place}edits")
    if _wrong_with(changed) is None:
        return changed

    def wrong_after(count: int) -> str | None:
        return _wrong_with(edited(world, source.edits[:count]))

    number = bisect_left(range(len(source.edits)), True, key=lambda count: wrong_after(count) is not None)
    wrong = wrong_after(number)
    raise LabError(f"{place}{f'edits[{number - 1}]' if number else 'world'}: {wrong}")


def _wrong_with(world: World) -> str | None:
    """Return how a world contradicts itself, or what Azure would not take of its resources."""
    try:
        check_world(world)
        _ = world.network
    except LabError as error:
        return re.sub(NUMBERED, "", str(error))
    return None


def _base_world(name: str, place: str, beside: Path | None, within: tuple[Path, ...]) -> World:
    own_file = Path(name).suffix in {".toml", ".json"} and name.isprintable()
    path = ((beside or Path()) / name).resolve() if own_file else WORLDS / f"{name}.toml"
    if path in within:
        loop = " -> ".join(each.name for each in (*within[within.index(path) :], path))
        raise LabError(f"{place}: a loop: {loop}")
    known = sorted(each.stem for each in WORLDS.glob("*.toml"))
    if not own_file and name not in known:
        raise LabError(f"{place}: there is no world {name!r}; there are {', '.join(known)}, or give a file")
    return _own_world(path) if not own_file else world_from_source(*_source_of(path), (*within, path))


@cache
def _own_world(path: Path) -> World:
    """Return a world of Ghost's own, which many scenarios share."""
    return world_from_source(*_source_of(path), (path,))


def _source_of(path: Path) -> tuple[dict[str, Any], str, Path]:
    return _read_table(path), f"{path.name}: ", path.parent


def _read_table(path: Path) -> dict[str, Any]:
    try:
        if path.exists() and not path.is_file():
            raise ValueError("it is not a regular file")
        with path.open("rb") as file:
            text = file.read(LARGEST_FILE_BYTES + 1).decode("utf-8")
        if len(text) > LARGEST_FILE_BYTES:
            raise ValueError(f"it is longer than {LARGEST_FILE_BYTES >> 20} MiB")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        json.dumps(
            content, ensure_ascii=False, default=str
        ).encode()  # JSON may hold halves of characters, which no terminal can show
    except (OSError, ValueError, RecursionError) as error:
        raise LabError(f"cannot read the scenario {path} ({error}): correct the file") from error
    if not isinstance(content, dict):
        raise LabError(f"the scenario {path} is not a TOML table of settings: correct the file")
    return content


def _check(scenario: Case, world: World | None, place: str) -> None:
    """Raise `LabError` where a name leads nowhere or an address is impossible."""
    for name in ("flows", "symptoms"):
        if not getattr(scenario, name):
            raise LabError(f"{place}{name}: none is given; add one")
    for index, symptom in enumerate(scenario.symptoms):
        if not symptom.text.strip() or "\0" in symptom.text or len(symptom.text) > LONGEST_SYMPTOM:
            raise LabError(f"{place}symptoms[{index}].text: give 1 to {LONGEST_SYMPTOM} characters, none of them NUL")
    names = [flow.name for flow in scenario.flows]
    for index, flow in enumerate(scenario.flows):
        if flow.name in names[:index]:
            raise LabError(f"{place}flows[{index}].name: {flow.name!r} is there twice; rename one")
        _check_ends(world, flow, f"{place}flows[{index}]")
    used = [(f"truth.faults[{i}].flow", fault.flow) for i, fault in enumerate(scenario.truth.faults)]
    used += [(f"symptoms[{i}].flow", symptom.flow) for i, symptom in enumerate(scenario.symptoms)]
    for i, verdict in enumerate(scenario.verdicts if isinstance(scenario, Scenario) else ()):
        if isinstance(verdict.flow, str):
            used.append((f"verdicts[{i}].flow", verdict.flow))
        else:
            _check_ends(world, verdict.flow, f"{place}verdicts[{i}].flow")
    for where, named in used:
        if named is not None and named not in names:
            raise LabError(f"{place}{where}: there is no flow {named!r}; there are {', '.join(names)}")


def _check_ends(world: World | None, flow: FlowEnds, place: str) -> None:
    if flow.port is not None and not 1 <= flow.port <= 65535:
        raise LabError(f"{place}.port: {flow.port} is not a port: give 1 to 65535")
    for end, text in (("source", flow.source), ("destination", flow.destination)):
        machines = [machine.name for machine in world.machines] if world is not None else [text]
        if text.casefold() in map(str.casefold, machines):
            continue
        is_number = ":" in text or text.replace(".", "").isdigit()
        if not is_number and (end == "source" or "." not in text):
            raise LabError(f"{place}.{end}: the world has no machine {text!r}; it has {', '.join(machines)}")
        try:
            _ = ip_address(text) if is_number else dns_name(text)
        except ValueError as error:
            raise LabError(f"{place}.{end}: {text!r} is not {'an address' if is_number else 'a DNS name'}") from error
