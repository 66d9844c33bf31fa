"""Plays one scene: `python -m tests.pcap.netns NAME SEED DIRECTORY`. Its captures and `truth.json` are left there."""

from __future__ import annotations

import os
import signal
import sys
import types
from pathlib import Path

from tests.pcap.netns import plays  # noqa: F401  # registers the scenes
from tests.pcap.netns.scene import play
from tests.pcap.netns.stage import NotWholeError

LONGEST_SECONDS = 90


def _stop(number: int, frame: types.FrameType | None) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, _stop)
    signal.alarm(LONGEST_SECONDS)
    name, seed, directory = sys.argv[1:]
    try:
        play(name, int(seed), Path(directory))
    except NotWholeError as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(os.EX_TEMPFAIL)
    os._exit(0)  # threads that still wait for a path that loses everything end with the scene
