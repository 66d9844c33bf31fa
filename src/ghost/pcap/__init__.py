"""The capture engine: a packet capture in; a compact summary and a diagnosis an engineer can act on out.

It runs as a program (`pcap-forensics`, `python -m ghost.pcap`); other rooms do not import it. It reads the capture it
is given and writes its result files, opens no connection and starts no program.
"""

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit status."""
    from ghost.pcap.command import main as run  # here, so that importing a part of the engine loads no more

    return run(argv)


__all__ = ["main"]
