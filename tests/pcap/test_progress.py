"""Progress: a moving bar for a person at a terminal, one line for a log."""

from __future__ import annotations

import io

from ghost.pcap.analysis import Progress as Done
from ghost.pcap.report.progress_bar import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown_on(stream: io.StringIO) -> str:
    with Progress(stream, "web.pcap") as progress:
        for part in range(1, 5):
            progress.show(Done("reading", part * 1000, part * 250_000, 1_000_000))
        progress.stage("judging")
    return stream.getvalue()


def test_a_terminal_sees_stage_share_packets_and_speed() -> None:
    shown = shown_on(Terminal())
    assert "reading ████" in shown
    assert "judging ██████████████████████████████ 4,000 packets" in shown
    assert "MB/s" in shown
    assert shown.endswith("\n")


def test_a_pipe_sees_one_line_without_control_characters() -> None:
    shown = shown_on(io.StringIO())
    assert shown.startswith("web.pcap: 4,000 packets, 1.0 MB in ")
    assert shown.count("\n") == 1
    assert shown.strip().isprintable()


def test_a_failure_leaves_the_line_to_the_error() -> None:
    stream = Terminal()
    try:
        with Progress(stream, "web.pcap"):
            raise ValueError
    except ValueError:
        pass
    assert "packets," not in stream.getvalue().split("\r")[-1]


def test_one_compilation_of_the_kernels_is_announced_before_it_begins() -> None:
    stream = io.StringIO()
    with Progress(stream, "web.pcap") as progress:
        progress.show(Done("reading", 1000, 1000, 10_000))
        progress.show(Done("compiling", 1000, 0, 10_000))
        assert "compiling the analysis kernels once" in stream.getvalue()
        progress.show(Done("reading", 2000, 2000, 10_000))
    assert stream.getvalue().count("compiling") == 1
