"""The capture engine: a packet capture in; a compact summary and a diagnosis an engineer can act on out.

It runs as a program (`pcap-forensics`, `ghost pcap`, `python -m ghost.pcap`); other rooms do not import it. It reads
the capture it is given and writes its result files, opens no connection and starts no program.

    command             the program: options, files, exit status
    analysis            one capture as an `Analysis`, batch by batch
    layout              the fields of rows and tables that kernels share
    file/               capture files as rows of packets
    kernels/            headers, counts and series; how kernels run
    tcp/                streams, retransmissions, round trips
    protocols/          trackers of ARP, ICMP, DNS, TLS, HTTP, DHCP and UDP
    model/              the values of an `Analysis`
    findings/           rules, from an analysis to causes
    report/             Markdown, HTML and JSON of one capture or a folder
    compare/            two captures
    array_types         the arrays that kernels take
    array_queries       distinct values, percentiles
    sample_statistics   statistics of many samples
    garbage_collection  when memory is given back
    safe_text           text safe to show
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
