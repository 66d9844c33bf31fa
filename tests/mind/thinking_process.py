"""A mind that takes in and thinks as fast as it can, and says what it acknowledged: `python -m ... FOLDER`."""

from __future__ import annotations

import itertools
import re
import sys
import threading
import time
from pathlib import Path

from ghost.mind import Stimulus
from ghost.records import SystemClock
from tests.mind.minds import SpeakingModel, keep, mind


class Echo(SpeakingModel):
    """A thought that names the stimuli it is of."""

    def generate(self, system: str, prompt: str, max_tokens: int, **kwargs: object) -> str:
        if system.startswith("SOC"):
            section = prompt.partition("## Stimuli")[2].partition("##")[0]
            return "#insight of " + " ".join(dict.fromkeys(re.findall(r"stim-\w+", section)))
        return keep()


def main(folder: Path) -> None:
    engine = mind(folder, Echo(), SystemClock(), wm_max_thoughts=100_000, wm_max_chars=10**8, wm_max_tokens=10**8)

    def think() -> None:
        while True:
            engine.cycle()

    threading.Thread(target=think, daemon=True).start()
    for number in itertools.count():
        name = f"stim-{time.time_ns()}x{number}"
        engine.ingest([Stimulus(id=name, source="test", content=name, ts=time.time())])
        print(name, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
