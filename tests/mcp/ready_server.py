"""`ghost mcp` whose shell runs the programs of a lab in its own process: for tests to which they are only the way."""

import sys

from ghost.cli import main
from ghost.shell import SafeExecShell
from tests.lab import in_process

if __name__ == "__main__":
    SafeExecShell.__init__.__kwdefaults__["runner"] = in_process.run
    sys.exit(main(["mcp", *sys.argv[1:]]))
