"""Every program of a tape: `tape PROGRAM ARGUMENTS...` prints what was recorded of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ghost.errors import GhostError
from ghost.lab.directory import VARIABLE
from ghost.lab.tapes.playback import NOT_RECORDED, TapeDirectory


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        played = TapeDirectory.open(Path(os.environ.get(VARIABLE, ""))).play(arguments)
    except GhostError as error:
        sys.stderr.write(f"ERROR: {error}\n")
        return NOT_RECORDED
    sys.stdout.write(played.output)
    sys.stderr.write(played.stderr)
    return played.exit_code


if __name__ == "__main__":
    sys.exit(main())
