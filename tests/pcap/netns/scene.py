"""A scene is a layout, a play and a label. Playing one leaves captures and `truth.json` in a directory."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.pcap.netns.peers import fetch, serve, web
from tests.pcap.netns.resolver import lookup, serve_names
from tests.pcap.netns.stage import Layout, Stage, staged

Play = Callable[[Stage], None]


@dataclass(frozen=True)
class Scene:
    name: str
    kind: str  # of the finding that must come first; "none" where all is well
    blame: str
    play: Play
    layout: Layout | Callable[[random.Random], Layout] = field(default_factory=Layout)  # a function draws one
    at: tuple[str, ...] = ("client",)  # where tcpdump listens: client, server, wan; the first is judged
    recorded: bool = True  # from the beginning; else the play begins to record


SCENES: dict[str, Scene] = {}


def scene(
    kind: str,
    blame: str,
    layout: Layout | Callable[[random.Random], Layout] | None = None,
    *,
    at: tuple[str, ...] = ("client",),
    recorded: bool = True,
) -> Callable[[Play], Play]:
    """Register a play under its function's name."""

    def register(play: Play) -> Play:
        name = play.__name__
        assert name not in SCENES, name
        SCENES[name] = Scene(name, kind, blame, play, layout or Layout(), at, recorded)
        return play

    return register


def healthy(
    layout: Layout | Callable[[random.Random], Layout] | None = None,
    *,
    at: tuple[str, ...] = ("client",),
    recorded: bool = True,
) -> Callable[[Play], Play]:
    return scene("none", "none", layout, at=at, recorded=recorded)


class Ordinary:
    """Everyday traffic beside the fault: names, pages over kept connections, pings."""

    def __init__(self, stage: Stage, page: int = 4000) -> None:
        self._stage = stage
        self._port = stage.port(8000, 8999)
        serve_names(stage.server, stage.dns_ip)
        serve(stage.server, stage.other_ip, self._port, web(page))

    def some(self, rounds: int = 2) -> None:
        stage = self._stage
        for n in range(rounds):
            lookup(stage.client, stage.dns_ip, f"host{n}.{stage.dice.randrange(1000)}.example.net")
            fetch(stage.client, stage.other_ip, self._port, requests=2)
        stage.client.run("ping", "-n", "-q", "-c", "2", "-i", "0.05", "-W", "2", stage.other_ip)


def play(name: str, seed: int, directory: Path) -> Scene:
    """Records the scene's captures and writes its label."""
    chosen = SCENES[name]
    layout = chosen.layout if isinstance(chosen.layout, Layout) else chosen.layout(random.Random(seed))
    with staged(seed, layout, directory) as stage:
        if chosen.recorded:
            record(stage, *chosen.at)
        chosen.play(stage)
        stage.together()
    truth = {"name": name, "seed": seed, "kind": chosen.kind, "blame": chosen.blame, "at": chosen.at}
    (directory / "truth.json").write_text(json.dumps(truth))
    return chosen


def record(stage: Stage, *places: str) -> None:
    where = {"client": (stage.client, "eth0"), "server": (stage.server, "eth0"), "wan": (stage.router, "wan")}
    for place in places:
        stage.record(*where[place], name=place)
