"""The wheel, installed with pipx and with uv as a user installs it, works outside the checkout.

Nothing is downloaded: the packages that it requires are packed again from those that the tests run with.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from ghost import __version__

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
INSTALLERS = {"pipx": ("pipx", "install", "--backend", "uv"), "uv": ("uv", "tool", "install")}


def required_by(requirements: list[Requirement]) -> dict[str, Distribution]:
    """Return what is installed of these requirements, and of theirs."""
    found: dict[str, Distribution] = {}
    left, seen = list(requirements), set()
    while left:
        wanted = left.pop()
        if (key := (wanted.name, *sorted(wanted.extras))) not in seen:
            seen.add(key)
            package = found[wanted.name] = distribution(wanted.name)
            left += [one for one in map(Requirement, package.requires or ()) if applies(one, wanted.extras)]
    return {package.name: package for package in found.values()}


def applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def pack(package: Distribution, directory: Path) -> None:
    """Write an installed package as the wheel it was."""
    tags = [line[5:] for line in (package.read_text("WHEEL") or "").splitlines() if line.startswith("Tag: ")]
    parts = ([*{tag.split("-")[i]: None for tag in tags}] for i in range(3))
    name = f"{package.name.replace('-', '_').replace('.', '_')}-{package.version}-{'-'.join(map('.'.join, parts))}.whl"
    with zipfile.ZipFile(directory / name, "w") as wheel:
        for file in package.files or ():
            if ".." not in file.parts and file.suffix != ".pyc" and file.name not in ("INSTALLER", "REQUESTED"):
                wheel.write(str(file.locate()), file.as_posix())


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that holds Ghost's wheel and those of its packages."""
    directory = tmp_path_factory.mktemp("wheels")
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory))
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = directory.glob("ghost_investigator-*.whl")
    with zipfile.ZipFile(wheel) as content:
        metadata = next(name for name in content.namelist() if name.endswith(".dist-info/METADATA"))
        lines = content.read(metadata).decode().splitlines()
    required = [Requirement(line.removeprefix("Requires-Dist: ")) for line in lines if line.startswith("Requires-Dist")]
    for package in required_by([one for one in required if applies(one, ["mind"])]).values():
        pack(package, directory)
    return directory


@pytest.fixture
def environment(wheels: Path, tmp_path: Path) -> dict[str, str]:
    places = {
        name: str(tmp_path / name.lower())
        for name in ("PIPX_HOME", "UV_TOOL_DIR", "HOME", "PIPX_MAN_DIR", "PIPX_COMPLETION_DIR")
    }
    clean = {n: v for n, v in os.environ.items() if not n.startswith(("GHOST_", "PIP", "UV_", "PYTHON", "XDG_"))}
    return (
        clean
        | places
        | {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "PIPX_BIN_DIR": str(tmp_path / "bin"),
            "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
            "UV_CACHE_DIR": str(wheels / "cache"),
            "UV_OFFLINE": "1",
            "UV_NO_INDEX": "1",
            "UV_NO_CONFIG": "1",
            "UV_FIND_LINKS": str(wheels),
            "GHOST_LAB_SPEED": "200",
        }
    )


def said(environment: dict[str, str], directory: Path, *words: str) -> str:
    done = subprocess.run(
        words, cwd=directory, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_holds_every_file_of_the_package(wheels: Path) -> None:
    (wheel,) = wheels.glob("ghost_investigator-*.whl")
    tracked = subprocess.run(("git", "ls-files", "src/ghost"), cwd=ROOT, check=True, capture_output=True, text=True)
    with zipfile.ZipFile(wheel) as content:
        packed = {f"src/{name}" for name in content.namelist() if name.startswith("ghost/")}
    assert packed >= set(tracked.stdout.split())


@pytest.mark.parametrize("installer", INSTALLERS)
def test_installed_outside_the_checkout_it_investigates(
    installer: str, wheels: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    (wheel,) = wheels.glob("ghost_investigator-*.whl")
    said(environment, tmp_path, *INSTALLERS[installer], "--python", sys.executable, str(wheel))
    ghost = str(tmp_path / "bin" / "ghost")
    assert said(environment, tmp_path, ghost, "--version").split()[-1] == __version__
    assert "blocked-port" in said(environment, tmp_path, ghost, "lab", "list")
    words = ("investigate", "--lab", "blocked-port", "--brain", "offline", "--workspace", "case", "--json")
    report = json.loads(said(environment, tmp_path, ghost, *words))
    assert [cause["rule"] for cause in report["causes"]] == ["close-legacy-ports"]
    assert "usage" in said(environment, tmp_path, str(tmp_path / "bin" / "pcap-forensics"), "--help").lower()


def test_the_extra_mind_resolves(wheels: Path, environment: dict[str, str], tmp_path: Path) -> None:
    (wheel,) = wheels.glob("ghost_investigator-*.whl")
    words = ("uv", "pip", "compile", "--quiet", "--python", sys.executable, "-")
    asked = f"ghost-investigator[mind] @ {wheel.as_uri()}\n"
    done = subprocess.run(words, input=asked, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "fastapi==" in done.stdout
