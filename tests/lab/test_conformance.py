"""The real az against the emulator, and the lab's az: the same exit code and JSON, for every command that Ghost uses.

`conformance.toml` lists them; what the brain asks is put in by its own templates, and a scan of the source says that no
command of the brain and of the orchestrator is missing. The lab stands still, so that both see the same moment.
"""

from __future__ import annotations

import ast
import contextlib
import re
import shlex
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

import pytest

import ghost
from ghost import lab
from ghost.azure import catalogue
from ghost.brain.offline.azure_reads import query
from ghost.lab import Scenario, world_from_dict
from ghost.lab.arm.local_emulator import emulator
from ghost.lab.az_cli.command_table import COMMANDS
from ghost.lab.directory import LabClock, LabDirectory
from ghost.lab.launchers import write_programs
from ghost.lab.network_services import (
    AddressRecord,
    BalancingRule,
    LoadBalancer,
    PrivateEndpoint,
    PrivateZone,
    PublicAddress,
)
from ghost.lab.programs import az as lab_az
from ghost.lab.scenario import world_from_source
from ghost.lab.world import Machine, NetworkInterface, Peering, ScaleSet, Subnet, VirtualNetwork
from tests.exhaustive import EXHAUSTIVE
from tests.lab import real_az
from tests.lab.in_process import run_main
from tests.lab.real_az import Ran

assert lab_az.MODULES, "importing the program fills the table of commands"
REAL = real_az.find()
needs_az = pytest.mark.skipif(REAL is None, reason=real_az.why_not())

STARTED = 1_700_000_000.0
SUBSCRIPTION = "/subscriptions/3f6c1c7e-52a1-4c3b-9d0e-7b8a54f0d211"
HUB = "/subscriptions/2b7d4e91-0a5c-4f38-9e6d-7c1b3a5d9f20"
COMPUTE = f"{SUBSCRIPTION}/resourceGroups/prod-rg/providers/Microsoft.Compute"
PLACES = {
    "sub": SUBSCRIPTION,
    "vm": f"{COMPUTE}/virtualMachines/web-vm-01",
    "set": f"{COMPUTE}/virtualMachineScaleSets/batch-set",
    "nic": f"{SUBSCRIPTION}/resourceGroups/prod-rg/providers/Microsoft.Network/networkInterfaces/web-vm-01-nic",
    "account": f"{SUBSCRIPTION}/resourceGroups/prod-rg/providers/Microsoft.Storage/storageAccounts/prodforensics01",
    "url": "https://prodforensics01.blob.core.windows.net/captures/new.cap",
    "hub": HUB,
    "net": f"{HUB}/resourceGroups/hub-rg/providers/Microsoft.Network",
}
OF_EXTENSIONS = {"monitor log-analytics query", "network manager list-effective-security-admin-rule"}
"""What the plain az does not have."""
OF_THE_PROFILE = ("environmentName", "cloudName", "user")
"""Fields of az's own settings: the emulator's cloud has a name of its own, and its profile an identity of its own."""


# --- the commands ---


def _listed() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "conformance.toml").read_text(encoding="utf-8"))


def _of_the_brain() -> list[str]:
    """Its templates, each with the words it is used with and values of this world."""
    used = [
        ("network watcher list", "watchers"),
        ("vm extension list -g prod-rg --vm-name web-vm-01", "extensions"),
    ]
    return [f"{words} --query {shlex.quote(query(name))}" for words, name in used]


def _of_the_preflight() -> list[str]:
    """The orchestrator's table of reads before a capture, for a machine, an instance of a scale set, and both modes."""
    file = Path(ghost.__file__).parent / "cloud" / "preflight.toml"
    known = {
        "target_id": PLACES["vm"],
        "resource_group": "prod-rg",
        "scale_set": "batch-set",
        "instance": "0",
        "location": "eastus",
        "storage_account": "prodforensics01",
        "storage_container": "captures",
        "network_interface": PLACES["nic"],
        "storage_account_id": PLACES["account"],
        "principal": "0f8d6a2c-3b1e-4f7a-9c5d-2e4b6a8c0d13",  # a name would be looked up in the directory
        "capture_name": "ghost_web-vm-01_20260101T000000_ab12",
    }
    every = tomllib.loads(file.read_text(encoding="utf-8"))["checks"]
    checks = [check for check in every if check["check"] != "identity"]  # the profile's own: OF_THE_PROFILE
    return [
        shlex.join(Template(word).substitute(known, storage_auth_mode=mode) for word in check["words"][1:])
        for check in checks
        for mode in (("login", "key") if "$storage_auth_mode" in check["words"] else ("login",))
    ]


READS = [*(text.format(**PLACES) for text in _listed()["reads"]), *_of_the_brain(), *_of_the_preflight()]
WRITES = [tuple(text.format(**PLACES) for text in row) for row in _listed()["writes"]]
OF_HUB = {name: [text.format(**PLACES) for text in _listed()["hub"][name]] for name in ("reads", "changes")}
ALL = [*READS, *(text for row in WRITES for text in row), *OF_HUB["reads"], *OF_HUB["changes"]]


# --- the two labs ---


def _scenario() -> Scenario:
    """`blocked-port` with a peering, a scale set, a stopped machine and one without the agent."""
    scenario = lab.load_scenario("blocked-port")
    world = scenario.world
    (network,) = world.networks
    far = VirtualNetwork("far-vnet", "prod-rg", ("10.99.0.0/16",), (Subnet("far-subnet", "10.99.1.0/24"),))
    interfaces = [
        NetworkInterface(
            f"{name}-nic", "prod-rg", "far-vnet", "far-subnet", f"10.99.1.{number}", f"00-0D-3A-00-00-0{number}"
        )
        for number, name in enumerate(("stopped-vm-01", "bare-vm-01", "batch-0"), 4)
    ]
    agent = ("NetworkWatcherAgentLinux",)
    machines = (
        Machine("stopped-vm-01", "prod-rg", "stopped-vm-01-nic", power="deallocated", extensions=agent),
        Machine("bare-vm-01", "prod-rg", "bare-vm-01-nic", os="Windows"),
        Machine("batch-0", "prod-rg", "batch-0-nic", extensions=agent),
    )
    changed = replace(
        world,
        networks=(replace(network, peerings=(Peering("prod-to-far", "far-vnet"),)), far),
        interfaces=(*world.interfaces, *interfaces),
        machines=(*world.machines, *machines),
        scale_sets=(ScaleSet("batch-set", "prod-rg", ("batch-0",)),),
        load_balancers=(
            LoadBalancer(
                *("jobs-lb", "prod-rg", "prod-vnet", "jobs-subnet", "10.20.3.100"),
                members=("jobs-vm-01-nic",),
                rules=(BalancingRule("web", 443, 8443),),
            ),
        ),
        public_addresses=(
            PublicAddress("web-ip", "prod-rg", "203.0.113.9", "web-vm-01-nic", "web.eastus.cloudapp.azure.com"),
        ),
        private_endpoints=(PrivateEndpoint("blob-endpoint", "prod-rg", "bare-vm-01-nic", "prodforensics01"),),
        private_zones=(
            PrivateZone(
                *("privatelink.blob.core.windows.net", "prod-rg"),
                records=(AddressRecord("prodforensics01", ("10.99.1.5",)),),
                networks=("prod-vnet",),
            ),
        ),
    )
    return replace(scenario, world=world_from_dict(changed.to_dict()))


def hub_scenario() -> Scenario:
    """`hub-spoke` with one of each type of resource that it lacks."""
    listed = _listed()["hub"]
    world = world_from_source({name: listed[name] for name in ("base", "edits")}, "hub.")
    return replace(lab.load_scenario("blocked-port"), world=world)


@cache
def _state() -> dict[str, Any]:
    """Of a lab at a moment when the capture `done` has stopped and `busy` runs."""
    with tempfile.TemporaryDirectory() as directory:
        lab = LabDirectory.create(Path(directory) / "lab", _scenario(), LabClock(STARTED, 1e-12))
        for name, limit in (("done", 10), ("busy", 900)):
            url = PLACES["url"].replace("new", name)
            words = f"network watcher packet-capture create -g prod-rg -n {name} --vm web-vm-01 --storage-path {url}"
            words += f" --storage-account prodforensics01 --time-limit {limit} -o none"
            found, rest = lab_az.find(shlex.split(words))
            lab_az.answer(found, lab, lab_az.read_options(found, rest))
        return lab.state()


def _still_lab(directory: Path) -> LabDirectory:
    return LabDirectory.create(directory, _scenario(), LabClock(STARTED + 60, 1e-12), state=_state())


def still_hub(directory: Path) -> LabDirectory:
    return LabDirectory.create(directory, hub_scenario(), LabClock(STARTED + 60, 1e-12))


@dataclass(frozen=True)
class Both:
    """The real az against an emulator, and the lab's az, each with a directory to work in."""

    real: Mapping[str, str]
    own: Mapping[str, str]
    program: Path
    real_home: Path
    own_home: Path

    def run(self, command: str, *, fresh: bool) -> tuple[Ran, Ran]:
        """In interpreters that are loaded, or by the two programs as they are installed."""
        words = shlex.split(command)
        words += [] if {"-o", "--output"} & set(words) else ["-o", "json"]
        assert REAL is not None
        if fresh:
            real = real_az.run(REAL, words, self.real, self.real_home)
            return real, real_az.run(self.program, words, self.own, self.own_home)
        return real_az.run_ready(REAL, words, self.real, self.real_home), _run_here(words, self.own, self.own_home)


def _run_here(words: list[str], environment: Mapping[str, str], cwd: Path) -> Ran:
    """The lab's az in this process."""
    with contextlib.chdir(cwd):
        done = run_main("ghost.lab.programs.az", words, environment)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("az")


@contextlib.contextmanager
def _two_labs(here: Path, settings: Path, made: Callable[[Path], LabDirectory] = _still_lab) -> Iterator[Both]:
    """The same lab twice: what a command changes in one is to be changed in the other."""
    emulated, own = made(here / "emulated"), made(here / "own")
    homes = here / "real-home", here / "own-home"
    for home in homes:
        home.mkdir()
    with emulator(emulated) as up:
        real, program = real_az.settings(settings, up.environment), write_programs(own) / "az"
        yield Both(real, {"GHOST_LAB_DIR": str(own.path)}, program, *homes)


# --- both agree ---


@needs_az
def test_every_read_says_the_same(tmp_path: Path, settings: Path) -> None:
    with _two_labs(tmp_path / "labs", settings) as labs:
        wrong = list(_differences(labs, READS))
    assert not wrong, "\n".join(wrong)


@needs_az
def test_every_read_and_change_of_a_hub_says_the_same(tmp_path: Path, settings: Path) -> None:
    with _two_labs(tmp_path / "labs", settings, still_hub) as labs:
        wrong = list(_differences(labs, [*OF_HUB["reads"], *OF_HUB["changes"]], filled=True))
    assert not wrong, "\n".join(wrong)


@needs_az
def test_a_fresh_az_says_the_same(tmp_path: Path, settings: Path) -> None:
    """The first of each group of commands, by programs that start anew."""
    first = {text.split()[0]: text for text in reversed(READS)}.values()
    with _two_labs(tmp_path / "labs", settings) as labs:
        wrong = list(_differences(labs, first, fresh=True))
    assert not wrong, "\n".join(wrong)


@needs_az
def test_every_change_says_the_same_and_changes_the_same(tmp_path: Path, settings: Path) -> None:
    wrong = []
    for number, commands in enumerate(WRITES):
        with _two_labs(tmp_path / str(number), settings) as labs:
            wrong += _differences(labs, commands)
        downloads = "download" in commands[0] and "nope" not in commands[0]
        files = [home / "got.cap" for home in (labs.real_home, labs.own_home)]
        got = [file.read_bytes() if file.exists() else b"" for file in files]
        if got[0] != got[1] or (len(got[0]) > 1000) != downloads:
            wrong.append(f"{commands[0]}: {[len(content) for content in got]} bytes")
    assert not wrong, "\n".join(wrong)


def _differences(
    labs: Both, commands: Iterable[str], *, fresh: bool = EXHAUSTIVE, filled: bool = False
) -> Iterator[str]:
    """`filled`: an empty list would compare nothing."""
    for command in commands:
        real, own = labs.run(command, fresh=fresh)
        if (own.status, own.error_code) != (real.status, real.error_code):
            yield f"az {command}\n  real: {real.status} {real.err[-600:]}\n  own: {own.status} {own.err[-600:]}"
        elif (one := _comparable(command, real.json)) != (other := _comparable(command, own.json)):
            yield f"az {command}\n  real: {one}\n  own: {other}"
        elif filled and real.json == []:
            yield f"az {command}: both list nothing"


def _comparable(command: str, answer: Any) -> Any:
    if not command.startswith("account "):
        return answer
    rows = answer if isinstance(answer, list) else [answer]
    return [{name: value for name, value in row.items() if name not in OF_THE_PROFILE} for row in rows]


# --- nothing is left out ---

ADVICE = {
    "network nic update",
    "network nsg rule create",
    "network nsg rule update",
    "network private-dns link vnet create",
    "network private-dns record-set a add-record",
    "network route-table route delete",
    "network route-table route update",
    "network vnet peering create",
    "network watcher configure",
    "role assignment create",
    "vm extension set",
    "vm start",
    "vmss extension set",
}
"""What a report advises a person to do; Ghost runs none of it."""


def test_every_command_of_the_brain_and_of_the_orchestrator_is_compared() -> None:
    compared = {_words(text) for text in ALL}
    used = {words for room in ("brain", "cloud") for words in _used(Path(ghost.__file__).parent / room)}

    assert len(used) > 15
    assert {words for words in used - ADVICE if words not in compared} == set()


def test_every_template_of_the_brain_is_compared() -> None:
    file = Path(ghost.__file__).parent / "brain" / "offline" / "queries.toml"
    templates = tomllib.loads(file.read_text(encoding="utf-8"))
    assert len(_of_the_brain()) == len(templates)


def test_every_command_of_the_labs_az_is_compared() -> None:
    compared = {_words(text) for text in ALL}
    assert set(COMMANDS) - compared == OF_EXTENSIONS


def _words(command: str) -> str:
    """The longest command of the lab's az that a line begins with; its own leading words where it is none."""
    leading = re.split(r" -", command, maxsplit=1)[0].split()
    for length in range(len(leading), 0, -1):
        if " ".join(leading[:length]) in COMMANDS:
            return " ".join(leading[:length])
    return " ".join(leading)


@cache
def _used(room: Path) -> frozenset[str]:
    """Commands in the source: `az("network", ...)`, `["az", "network", ...]`, `[*_PACKET_CAPTURE, "list", ...]`."""
    found = set()
    for path in room.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        constants: dict[str, list[str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Tuple, ast.List)):
                words = _strings(node.value.elts, {})
                if words[:1] == ["az"]:
                    constants |= {target.id: words for target in node.targets if isinstance(target, ast.Name)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "az":
                found.add(" ".join(_strings(node.args, constants)))
            elif isinstance(node, (ast.List, ast.Tuple)):
                words = _strings(node.elts, constants)
                if words[:1] == ["az"] and words[1:] != constants.get("_PACKET_CAPTURE", [])[1:]:
                    found.add(" ".join(words[1:]))
    paths = (words.removeprefix("az ") for words in found)
    return frozenset(words for words in paths if catalogue().command(words) is not None)


def _strings(nodes: list[ast.expr], constants: Mapping[str, list[str]]) -> list[str]:
    """The leading words that are written out, as far as the first option."""
    words: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Starred) and isinstance(node.value, ast.Name) and node.value.id in constants:
            words += constants[node.value.id]
        elif isinstance(node, ast.Starred) and isinstance(node.value, ast.Tuple):
            words += _strings(node.value.elts, constants)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not node.value.startswith("-"):
            words.append(node.value)
        else:
            break
    return words
