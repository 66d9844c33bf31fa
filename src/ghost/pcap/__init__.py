"""The capture engine: a packet capture in; a compact summary and a diagnosis an engineer can act on out.

It runs as a program (`pcap-forensics`, `ghost pcap`, `python -m ghost.pcap`); other rooms do not import it. It reads
the capture it is given and writes its result files, opens no connection and starts no program.
"""

from collections.abc import Callable, Sequence
from pathlib import Path


def main(
    argv: Sequence[str] | None = None,
    *,
    program: str = "pcap-forensics",
    open_page: Callable[[Path], None] | None = None,
) -> int:
    """Runs the program and returns its exit status. `--open` is offered where `open_page` is given."""
    from ghost.pcap.command import main as run  # here, so that importing a part of the engine loads no more

    return run(argv, program=program, open_page=open_page)


__all__ = ["main"]
