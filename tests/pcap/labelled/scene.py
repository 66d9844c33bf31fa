"""What a labelled scene is, and how one is played and saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ghost.pcap.analysis import analyse
from ghost.pcap.findings import Finding, find
from ghost.pcap.kernels import compilation
from tests.exhaustive import sample

from ..wire import pcap
from .network import Point
from .office import Office

ANYWHERE: tuple[Point, ...] = ("client", "server", "between")


@dataclass(frozen=True)
class Scene:
    """One fault among ordinary traffic, or none."""

    name: str
    kind: str
    blame: str
    play: Callable[[Office], None]
    points: tuple[Point, ...] = ANYWHERE
    seconds: float = 20.0
    severity: str = "HIGH"
    """Of the first finding, if this is a fault."""
    others: tuple[str, ...] = ()
    """Severity, kind and blame of findings that are no symptoms of the fault."""
    low: tuple[tuple[str, str], ...] | None = None
    """Kind and blame of all LOW findings in a healthy scene, if the scene says which."""
    measured: Mapping[str, int] = field(default_factory=dict)
    """What the first finding must have measured."""

    def save(self, path: Path, seed: int, point: Point) -> Path:
        office = Office(seed, point, seconds=self.seconds)
        self.play(office)
        office.world.run()
        records = sorted(office.world.records, key=lambda record: record[0])
        path.write_bytes(pcap(records, nanoseconds=bool(seed % 2)))
        return path


SEEDS = (11, 402)


def judged_samples(
    scene: Scene, directory: Path, most: int = 1, seeds: Sequence[int] = SEEDS
) -> Iterator[tuple[str, tuple[Finding, ...]]]:
    """Yield capture point and seed with the findings there: `most` of them, all when exhaustive."""
    every = [(point, seed) for point in scene.points for seed in seeds]
    for point, seed in sample(every, most, sum(map(ord, scene.name))):
        yield f"{scene.name} {point} {seed}", judged(scene.save(directory / "scene.pcap", seed, point))


def judged(capture: Path) -> tuple[Finding, ...]:
    """Return the findings of a capture; by compiled kernels where this machine has them, which is much faster."""
    return find(analyse(capture, compile_kernels=compilation.ready()))


def told(found: Iterable[Finding]) -> list[str]:
    return [f"{f.severity} {f.kind} {f.blame} {f.confidence}: {f.title} {f.detail}" for f in found]


class Scenes(dict[str, Scene]):
    """Scenes by name, filled by the decorator."""

    def add(self, kind: str, blame: str, **more: Any) -> Callable[[Callable[[Office], None]], Callable[[Office], None]]:
        def keep(play: Callable[[Office], None]) -> Callable[[Office], None]:
            name = play.__name__
            assert name not in self, name
            self[name] = Scene(name, kind, blame, play, **more)
            return play

        return keep


FAULTS = Scenes()
"""Filled by the modules of `faults`."""
