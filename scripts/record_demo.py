"""Records `make demo` as `docs/demo.svg`, from a real run: `python scripts/record_demo.py`.

With `--check` it writes nothing and fails if the picture is not what the present code shows, times and ids aside.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).parent.parent / "docs" / "demo.svg"
SCENARIO = "blocked-port"
WIDTH = 112
FIRST, LAST = 24, 20  # lines shown of the beginning and of the end
TEXT = re.compile(r"<text[^>]*>(.*?)</text>", re.DOTALL)


def main() -> int:
    picture = drawn(demonstration())
    if "--check" not in sys.argv:
        PICTURE.write_text(picture, encoding="utf-8")
    elif shown(picture) != shown(PICTURE.read_text(encoding="utf-8")):
        print(f"{PICTURE} is out of date: run python scripts/record_demo.py.", file=sys.stderr)
        return 1
    return 0


def demonstration() -> list[str]:
    with tempfile.TemporaryDirectory() as directory:
        words = ("investigate", "--lab", SCENARIO, "--brain", "offline", "--workspace", "demo")
        run = subprocess.run(
            [Path(sys.executable).with_name("ghost"), *words],
            cwd=directory,
            env={**os.environ, "FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm", "COLUMNS": str(WIDTH)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return run.stdout.splitlines()


def drawn(lines: list[str]) -> str:
    screen = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    screen.print("$ make demo", highlight=False)
    left_out = len(lines) > FIRST + LAST
    for line in lines[:FIRST] if left_out else lines:
        screen.print(Text.from_ansi(line))
    if left_out:
        screen.print(Text("   ⋮", style="dim"))
        for line in lines[-LAST:]:
            screen.print(Text.from_ansi(line))
    return screen.export_svg(title=f"ghost investigate --lab {SCENARIO} (simulated)", unique_id="demo")


def shown(picture: str) -> list[str]:
    """Return the words of a picture, with 0 for every number: times, ids and durations differ from run to run."""
    return re.sub(r"\d+(\.\d+)?", "0", " ".join(TEXT.findall(picture)).replace("&#160;", " ")).split()


if __name__ == "__main__":
    sys.exit(main())
