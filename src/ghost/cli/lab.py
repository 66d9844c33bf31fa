"""`ghost lab list` and `ghost lab show`. Everything shown says that it is simulated."""

from __future__ import annotations

import json

from ghost.lab import load_scenario, scenario_names


def list_scenarios(*, as_json: bool) -> None:
    scenarios = [load_scenario(name) for name in scenario_names()]
    if as_json:
        print(json.dumps([{"name": s.name, "title": s.title, "symptom": s.symptom} for s in scenarios], indent=2))
        return
    print("Simulated networks (SIMULATED: nothing here touches Azure):\n")
    for scenario in scenarios:
        print(f"  {scenario.name:<16} {scenario.title}\n  {'':<16} ghost investigate --lab {scenario.name}\n")


def show_scenario(name: str) -> None:
    scenario = load_scenario(name)
    world = scenario.world
    print(f"{scenario.name} (SIMULATED): {scenario.title}")
    print(f'symptom: "{scenario.symptom}"\n')
    for network in world.networks:
        print(f"network {network.name} {', '.join(network.prefixes)}")
        for subnet in network.subnets:
            print(f"  subnet {subnet.name} {subnet.prefix}")
            for interface in world.interfaces:
                if (interface.network, interface.subnet) == (network.name, subnet.name):
                    vms = [m.name for m in world.machines if m.interface == interface.name]
                    print(f"    {interface.address:<15} {', '.join(vms) or interface.name}")
    print(f"\nTry it: ghost investigate --lab {scenario.name}")
