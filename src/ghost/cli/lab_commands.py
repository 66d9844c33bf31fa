"""`ghost lab`: the scenarios, and simulated networks that stand for one's own `az`. All shown says it is simulated."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ghost.errors import GhostError, LabError
from ghost.lab import (
    UNSET_BESIDE_A_LAB,
    Finding,
    RunningEmulator,
    Scenario,
    TapeScenario,
    findings,
    headlines,
    in_foreground,
    load_case,
    load_scenario,
    running_labs,
    scenario_names,
    schema_of_scenarios,
    start_lab,
    stop_lab,
    tape_names,
)
from ghost.text import plural, visible


def list_scenarios(*, as_json: bool) -> None:
    scenarios, up = headlines(), running_labs()
    if as_json:
        rows = [{"name": s.name, "title": s.title, "symptom": s.symptom, "up": s.name in up} for s in scenarios]
        own = [{"name": n, "title": "", "symptom": s.symptom, "up": True} for n, s in up.items()]
        print(json.dumps([*rows, *(row for row in own if row["name"] not in [s.name for s in scenarios])], indent=2))
        return
    width = max(len(scenario.name) for scenario in scenarios)
    for is_tape, head in ((False, "Simulated networks"), (True, "Tapes: what Azure answered, recorded")):
        print(f"{head} (nothing here touches Azure):\n")
        for scenario in scenarios:
            if scenario.is_tape == is_tape:
                print(f"  {scenario.name:<{width}}  {visible(scenario.title)}")
        print()
    print("Try one: ghost investigate --lab NAME     its network: ghost lab show NAME")
    for name, state in up.items():
        print(f"  up for your own az since {state.since}: {name}   (end it: ghost lab down {name})")


def show_scenario(name: str, *, as_json: bool) -> None:
    scenario = load_case(name)
    if isinstance(scenario, TapeScenario):
        _show_tape(scenario, name, as_json=as_json)
        return
    state = running_labs().get(scenario.name)
    if as_json:
        print(json.dumps(_description(scenario, state), indent=2))
        return
    world = scenario.world
    print(f"{visible(scenario.name)} (SIMULATED): {visible(scenario.title)}")
    print(f'symptom: "{visible(scenario.symptom)}"\n')
    for network in world.networks:
        print(f"network {network.name} {', '.join(network.prefixes)}")
        for subnet in network.subnets:
            print(f"  subnet {subnet.name} {subnet.prefix}")
            for interface in world.interfaces:
                if (interface.network, interface.subnet) == (network.name, subnet.name):
                    vms = [m.name for m in world.machines if m.interface == interface.name]
                    print(f"    {interface.address:<15} {', '.join(vms) or interface.name}")
    print(f"\nTry it: ghost investigate --lab {visible(shlex.quote(name))}")
    if state is None:
        print(f'With your own az: eval "$(ghost lab up {visible(shlex.quote(name))})"')
    else:
        print(f"Up since {state.since}, process {state.pid}; what az asked: {state.requests}")


def check_scenarios(names: Sequence[str], *, as_json: bool) -> int:
    """Print each check of the scenarios; without names, of Ghost's own. Returns 1 if one fails."""
    rows: list[dict[str, Any]] = []
    for name in names or [*scenario_names(), *tape_names()]:
        for found in _findings(name):
            rows.append({"scenario": name, **asdict(found)})
            if not as_json:
                why = "" if found.passed else f": {found.detail}"
                print(f"{'ok  ' if found.passed else 'FAIL'} {visible(f'{name}: {found.check}{why}')}")
    failed = sum(not row["passed"] for row in rows)
    print(json.dumps(rows, indent=2) if as_json else f"{plural(len(rows), 'check')}, {failed} failed")
    return int(failed > 0)


def _findings(name: str) -> Iterator[Finding]:
    try:
        yield from findings(load_case(name))
    except LabError as error:
        yield Finding("loads", False, str(error))


def print_schema() -> None:
    print(json.dumps(schema_of_scenarios(), indent=2))


def _show_tape(tape: TapeScenario, name: str, *, as_json: bool) -> None:
    if as_json:
        shown = {"simulated": True, "name": tape.name, "title": tape.title, "symptom": tape.symptom, "up": None}
        print(json.dumps(shown, indent=2))
        return
    print(f"{visible(tape.name)} (tape: what was recorded answers): {visible(tape.title)}")
    print(f'symptom: "{visible(tape.symptom)}"')
    print(f"\nTry it: ghost investigate --lab {visible(shlex.quote(name))}")


def _description(scenario: Scenario, state: RunningEmulator | None) -> dict[str, Any]:
    """Description of the network, without its fault."""
    world = scenario.world
    return {
        "simulated": True,
        "name": scenario.name,
        "title": scenario.title,
        "symptom": scenario.symptom,
        "networks": [
            {
                "name": network.name,
                "prefixes": list(network.prefixes),
                "subnets": [{"name": subnet.name, "prefix": subnet.prefix} for subnet in network.subnets],
            }
            for network in world.networks
        ],
        "machines": [{"name": vm.name, "address": world.address_of(vm.name)} for vm in world.machines],
        "up": None if state is None else {"since": state.since, "pid": state.pid, "requests": state.requests},
    }


def up(name: str, speed: float, *, foreground: bool, as_json: bool) -> None:
    """Where it fails, what a shell runs is `false`: `eval "$(ghost lab up X)" && az ...` must not go on to Azure."""
    try:
        _up(load_scenario(name), speed, foreground=foreground, as_json=as_json)
    except GhostError:
        if not as_json:
            print("false")
        raise


def _up(scenario: Scenario, speed: float, *, foreground: bool, as_json: bool) -> None:
    if not foreground:
        state = start_lab(scenario, speed)
        _print_environment(state, as_json=as_json)
        if state.speed != speed:
            print(
                f"It was up already, since {state.since}, {state.speed:g} times as fast as time outside: "
                f"end it first for {speed:g}.",
                file=sys.stderr,
            )
        return
    told = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: told.set())
    with in_foreground(scenario, speed) as state:
        _print_environment(state, as_json=as_json)
        sys.stdout.flush()
        told.wait()


def _print_environment(state: RunningEmulator, *, as_json: bool) -> None:
    """Statements for a shell to run; what a person should see goes to standard error, where `eval` leaves it.

    Each ends with a semicolon and none is a comment: `eval $(...)` without quotes puts them on one line, and a comment
    would swallow them all and leave az at the real Azure, with no error.
    """
    if as_json:
        print(json.dumps({"simulated": True, **asdict(state), "unset": list(UNSET_BESIDE_A_LAB)}, indent=2))
        return
    name = state.scenario
    print(f": 'SIMULATED Azure of the lab {name}: nothing here touches Azure. End it with: ghost lab down {name}';")
    for variable, value in state.environment.items():
        print(f"export {variable}={shlex.quote(value)};")
    print(f"unset {' '.join(UNSET_BESIDE_A_LAB)};")
    print(
        f'SIMULATED: the lab {name} is up. In a shell that ran  eval "$(ghost lab up {name})"  az answers from it and '
        f"reaches nothing else.\nThe symptom: {visible(state.symptom)}\n"
        f"End it: ghost lab down {name}, and leave that shell.",
        file=sys.stderr,
    )


def down(name: str, *, as_json: bool) -> None:
    state = stop_lab(name)
    if as_json:
        print(json.dumps({"simulated": True, "scenario": state.scenario, "pid": state.pid, "down": True}, indent=2))
        return
    print(f"# SIMULATED Azure of the lab {state.scenario} is down: in a shell that still has its settings az fails.")
    print(f"unset {' '.join(state.environment)}")
