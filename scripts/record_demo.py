"""Records the demonstration as `docs/demo.svg`, from a real run: `python scripts/record_demo.py`."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

DOCS = Path(__file__).parent.parent / "docs"
WIDTH = 112
SHOWN_FROM = ("GHOST  |", "I test four explanations", "SAFETY SHELL ALERT", "Root cause")
AFTER = (4, 18, 14, 9)


def main() -> None:
    with tempfile.TemporaryDirectory() as workspace:
        run = subprocess.run(
            [Path(sys.executable).with_name("ghost"), "investigate", "--lab", "wire-loss", "--workspace", "demo"],
            cwd=workspace,
            env={**os.environ, "FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm", "COLUMNS": str(WIDTH)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
    lines = run.stdout.splitlines()
    screen = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    screen.print(Text.from_ansi("$ make demo"))
    past = 0
    for beginning, count in zip(SHOWN_FROM, AFTER, strict=True):
        start = next(i for i in range(past, len(lines)) if beginning in Text.from_ansi(lines[i]).plain)
        start = max(start - (1 if beginning == SHOWN_FROM[0] else 0), past)
        if start > past:
            screen.print(Text("   ⋮", style="dim"))
        for line in lines[start : start + count]:
            screen.print(Text.from_ansi(line), soft_wrap=False)
        past = start + count
    screen.save_svg(str(DOCS / "demo.svg"), title="ghost investigate --lab wire-loss (simulated)")


if __name__ == "__main__":
    main()
