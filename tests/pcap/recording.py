"""Plays scenes in processes of their own, a few at a time, and says where their captures lie."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_CHECKOUT = Path(__file__).parent.parent.parent
_LONGEST_SECONDS = 120
_TRIES = 3
"""On a busy machine the kernel may drop frames before tcpdump reads them: such a recording is made again."""


def play(name: str, seed: int, directory: Path) -> Path:
    """Record one scene into a directory of its own below `directory`; returns that."""
    place = directory / f"{name}-{seed}"
    place.mkdir(parents=True)
    command = [sys.executable, "-m", "tests.pcap.netns", name, str(seed), str(place)]
    for _ in range(_TRIES):
        done = subprocess.run(command, cwd=_CHECKOUT, capture_output=True, text=True, timeout=_LONGEST_SECONDS)
        if done.returncode != os.EX_TEMPFAIL:
            break
    if done.returncode:
        raise RuntimeError(f"the scene {name} with seed {seed} was not played to its end:\n{done.stderr}")
    return place


def play_all(scenes: Iterable[tuple[str, int]], directory: Path, *, at_once: int = 4) -> list[Path]:
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda scene: play(scene[0], scene[1], directory), scenes))
