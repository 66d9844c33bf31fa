"""Captures made to break the engine: never a crash, never a hang, never a payload byte, always within its budgets."""

from __future__ import annotations

import gzip
import json
import os
import resource
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.errors import CaptureError
from ghost.pcap.analysis import analyse
from ghost.pcap.command import main
from ghost.pcap.report.semantic import AIM_TOKENS, FINDINGS_TOKENS, estimated_tokens
from tests.exhaustive import examples, sample

from .hostile.examine import compare, examine, same
from .hostile.mutations import mutated
from .hostile.seeds import CANARY, SEEDS, seed
from .labelled import messages
from .talks import Connection
from .test_command import run, run_apart
from .wire import CLIENT, MS, SERVER, SYN, Record, Talk, block, ethernet, ip, pcap, pcapng, tcp, udp

START = 1_700_000_000 * 10**9


def saved(tmp_path: Path, octets: bytes, name: str = "hostile.pcap") -> Path:
    path = tmp_path / name
    path.write_bytes(octets)
    return path


def program(directory: Path, *arguments: str | Path, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """The program as a process that may take a gigabyte of memory."""
    limit = 4 << 30  # of addresses: libraries map much that they never touch
    return subprocess.run(
        [sys.executable, "-m", "ghost.pcap", *map(str, arguments)], cwd=directory, capture_output=True, text=True,
        timeout=seconds, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)), check=False,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------ any damage


@pytest.mark.parametrize("name", SEEDS)
def test_damaged_captures_give_sound_results_or_one_clear_refusal(tmp_path: Path, name: str) -> None:
    sound = saved(tmp_path, pcap(seed(name)), "sound.pcap")
    original = examine(sound)
    assert original is not None
    for number in sample(range(24), 3):
        steps = [number * 1009 + n * 7919 for n in range(number % 6 + 1)]
        path = saved(tmp_path, mutated(seed(name), steps))
        examined = examine(path)
        if examined is not None:
            compare(sound, original.capture, path, examined.capture, ends=number % 2 == 1)
            if number % 4 == 0:
                other = analyse(path, compile_kernels=False, buffer_bytes=4096, batch_packets=7)
                assert same(examined.capture.analysis, other)


@settings(max_examples=examples(10), deadline=None)
@given(st.sampled_from(sorted(SEEDS)), st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=6))
def test_no_damage_breaks_the_engine(tmp_path_factory: pytest.TempPathFactory, name: str, steps: list[int]) -> None:
    examined = examine(saved(tmp_path_factory.mktemp("damage"), mutated(seed(name), steps)))
    assert examined is None or all(examined.outputs.values())


@pytest.mark.parametrize("form", ["pcap", "pcapng", "gzip"])
def test_a_file_cut_anywhere_gives_its_valid_part(tmp_path: Path, form: str) -> None:
    records = Talk().opened().c(1, 1, size=40).s(1, 41, size=40).records
    ng = pcapng([(0, when // 1000, frame) for when, frame in records], [(1, b"")])
    octets = {"pcap": pcap(records), "pcapng": ng, "gzip": gzip.compress(pcap(records), mtime=0)}[form]
    counts: list[int] = []
    for end in sample(range(60, len(octets), 3), 40):
        facts = analyse(saved(tmp_path, octets[:end]), compile_kernels=False).summary
        counts.append(facts.total_packets)
    assert counts == sorted(counts)
    assert set(counts) >= set(range(1, len(records))) | ({0} if form == "pcap" else set())


# --------------------------------------------------------------------------------------------- what fuzzing has found


def test_members_of_a_gzip_file_longer_than_the_buffer_are_read_once_and_to_the_end(tmp_path: Path) -> None:
    """The leftover of one member was taken for data twice: packets doubled, or reading never ended."""
    records = Talk().opened().c(1, 1, size=1400).s(1, 1401).records * 3
    octets = pcap(records)
    middle = len(octets) // 2
    members = [octets[:middle], octets[middle:], b"", b""]
    path = saved(tmp_path, b"\0".join(gzip.compress(each, mtime=0) for each in members))
    for size in (64, 100, 4096, 1 << 20):
        facts = analyse(path, compile_kernels=False, buffer_bytes=size).summary
        assert (facts.total_packets, facts.truncated_record) == (len(records), False), size


def test_zeros_between_gzip_members_are_padding_wherever_reading_stops(tmp_path: Path) -> None:
    octets = pcap(Talk().opened().records)
    squeezed = gzip.compress(octets[:60], mtime=0) + bytes(70_000) + gzip.compress(octets[60:], mtime=0)
    for size in (64, 4096, 1 << 20):
        assert analyse(saved(tmp_path, squeezed), buffer_bytes=size).summary.total_packets == 3


def test_packets_before_damage_in_gzip_data_are_kept_whatever_the_buffer(tmp_path: Path) -> None:
    """zlib throws away what it made of a piece when the end of the piece is damaged."""
    records = [(START + n * MS, ethernet(ip(CLIENT, SERVER, 17, udp(9, 9, os.urandom(300))))) for n in range(60)]
    squeezed = bytearray(gzip.compress(pcap(records), mtime=0))
    squeezed[len(squeezed) * 3 // 4 :] = b"\xff" * 64
    path = saved(tmp_path, bytes(squeezed))
    found = [analyse(path, compile_kernels=False, buffer_bytes=size).summary for size in (512, 4096, 4 << 20)]
    assert 40 < found[0].total_packets < 60
    assert {each.total_packets for each in found} == {found[0].total_packets}
    assert all(each.truncated_record for each in found)


def test_gzip_data_that_expands_as_no_capture_does_is_left_with_a_note(tmp_path: Path) -> None:
    frame = ethernet(ip(CLIENT, SERVER, 17, udp(9, 9, bytes(60_000))))
    packets = gzip.compress(pcap([(START, frame)])) + gzip.compress(pcap([(START, frame)] * 100)[24:]) * 60
    facts = analyse(saved(tmp_path, packets), compile_kernels=False).summary
    assert facts.total_packets < 3000
    assert any("expands to" in note for note in facts.notes)


def test_as_many_interfaces_as_packets_take_no_longer_than_the_packets(tmp_path: Path) -> None:
    interface = block(1, struct.pack("<HHI", 1, 0, 262_144))
    body = ethernet(ip(CLIENT, SERVER, 17, udp(9, 9)))
    parts = [pcapng([], [])]
    for n in range(3000):
        parts += [interface, block(6, struct.pack("<IIIII", n, 0, n, len(body), len(body)) + body)]
    facts = analyse(saved(tmp_path, b"".join([*parts, interface * 20_000])), compile_kernels=False).summary
    assert (facts.total_packets, facts.interfaces, facts.truncated_record) == (3000, 23_000, False)


def test_findings_keep_their_budget_also_where_names_are_written_as_escapes(tmp_path: Path) -> None:
    records: list[Record] = []
    for server in range(9):
        for n in range(8):
            name = bytes([40]) + f"{n}é{server}".encode().ljust(40, "ü".encode()[:1]) + b"\0"
            asked = struct.pack(">HHHHHH", n, 0x100, 1, 0, 0, 0) + name + b"\0\1\0\1"
            ends = f"2001:db8:1111:2222:3333:4444:5555:{server}", f"2001:db8:aaaa:bbbb:cccc:dddd:eeee:{server}"
            records.append((START + n * 3000 * MS, ethernet(ip(*ends, 17, udp(40_000 + n, 53, asked)))))
    examined = examine(saved(tmp_path, pcap(sorted(records))))
    assert examined is not None
    assert FINDINGS_TOKENS * 0.7 < estimated_tokens(examined.outputs["findings"]) <= FINDINGS_TOKENS


# ------------------------------------------------------------------------------------------------- files of all kinds


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "fifo.pcap")
    for path in (tmp_path / "fifo.pcap", Path("/dev/zero")):
        assert main([str(path)]) == 1
        assert "is a pipe or a device" in capsys.readouterr().err


def test_the_program_says_in_one_line_what_it_cannot_read(tmp_path: Path) -> None:
    saved(tmp_path, b"\x1f\x8b\x08\0", "cut.gz")
    for name in ("cut.gz", "absent.pcap"):
        ran = program(tmp_path, name)
        assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (1, "", 1), ran
        assert "Traceback" not in ran.stderr


def test_a_file_name_acts_nowhere(tmp_path: Path) -> None:
    for number, name in enumerate(
        ("\x1b]0;owned\x07.pcap", "<q x>|`x`.pcap", "=cmd|'A1.pcap", "\u202efdp.pcap", "\udcff")
    ):
        directory = tmp_path / str(number)
        directory.mkdir()
        saved(directory, pcap(seed("web")), name)
        ran = run_apart(name, cwd=directory) if name == "\udcff" else run(name, cwd=directory)
        assert ran.returncode == 0, ran.stderr
        shown = [ran.stdout, ran.stderr] + [
            path.read_text("utf-8") for path in directory.iterdir() if path.suffix in (".md", ".html", ".json")
        ]
        assert len(shown) == 6
        assert not any(c in text for text in shown for c in "\x1b\x07\u202e")
        (page,) = directory.glob("*.html")
        assert "<q x>" not in page.read_text("utf-8")


def test_a_capture_that_grows_while_it_is_read_gives_what_was_there(tmp_path: Path) -> None:
    path = saved(tmp_path, pcap(seed("web")))

    def grows(_: object) -> None:
        with path.open("ab") as file:
            file.write(b"\1\2\3")

    facts = analyse(path, progress=grows, compile_kernels=False, buffer_bytes=512, batch_packets=4).summary
    assert facts.total_packets >= len(seed("web"))


# ------------------------------------------------------------------------------------------------------------ canary


@pytest.mark.parametrize("name", SEEDS)
def test_no_payload_byte_reaches_any_output(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path, pcap(seed(name)), "sound.pcap")
    examined = examine(path)
    assert examined is not None
    other = examine(saved(tmp_path, mutated(seed(name), [5]), "other.pcap"))
    assert other is not None
    told = {**examined.outputs, **compare(path, examined.capture, tmp_path / "other.pcap", other.capture, ends=True)}
    for what, content in told.items():
        assert CANARY.decode()[:9] not in content, what
        assert CANARY.hex()[:18] not in content, what


def test_the_files_and_streams_of_the_program_hold_no_payload_byte(tmp_path: Path) -> None:
    records = sorted(record for name in SEEDS for record in seed(name))
    assert sum(CANARY in frame for _, frame in records) > 50
    saved(tmp_path, pcap(records), "all.pcap")
    for arguments in (["all.pcap"], ["all.pcap", "--json"], ["all.pcap", "--findings"]):
        ran = program(tmp_path, *arguments)
        assert ran.returncode == 0, ran.stderr
        assert b"CANARY" not in (ran.stdout + ran.stderr).encode()
    written = [path for path in tmp_path.iterdir() if path.name != "all.pcap"]
    assert len(written) == 4
    assert not any(b"CANARY" in path.read_bytes() for path in written)


# ------------------------------------------------------------------------------------------------------------ budgets


def broken_streams(count: int) -> Sequence[Record]:
    records: list[Record] = []
    for n in range(count):
        ends = f"2001:db8:{n % 97:x}::{n:x}", f"2001:db8:ffff:ffff:ffff::{n % 31:x}"
        ports, kind = (1024 + n % 60_000, 443 + n % 13), n % 4
        now = START + n * MS
        there = [tcp(*ports, 100, 0, SYN)] * 2
        back = [tcp(*reversed(ports), 500, 101, 20 if kind == 1 else 18)] if kind else []
        there += [tcp(*ports, 101, 501, 16, b"x" * 500)] * 3 if kind > 1 else []
        back += [tcp(*reversed(ports), 501, 101, 16 if kind == 2 else 4, window=0)] * 3 if kind > 1 else []
        records += [(now + k * 1000 * MS, ethernet(ip(*ends, 6, each))) for k, each in enumerate(there)]
        records += [(now + k * 1000 * MS + MS, ethernet(ip(ends[1], ends[0], 6, each))) for k, each in enumerate(back)]
    return sorted(records)


def many_names(count: int) -> Sequence[Record]:
    records: list[Record] = []
    for n in range(count):
        name = ".".join([f"{n:06}" + "a" * 56, *("b" * 60 for _ in range(3))])[:250]
        asked = messages.query(name, n & 0xFFFF)
        records.append((START + n * MS, ethernet(ip(CLIENT, SERVER, 17, udp(1024 + n, 53, asked)))))
        if n % 3:
            told = asked[:2] + (b"\x81\x83" if n % 3 == 1 else b"\x81\x82") + asked[4:]
            when = START + (n + 900) * MS
            records.append((when, ethernet(ip(SERVER, CLIENT, 17, udp(53, 1024 + n, told)))))
    return sorted(records)


def many_hosts(count: int) -> Sequence[Record]:
    records: list[Record] = []
    for n in range(count):
        talk = Connection(server=f"10.{n % 200}.0.9", server_port=80, client_port=1024 + n, now=START + n * MS).opened()
        host = f"host-{n:05}-{'h' * 150}.{'d' * 60}.example"
        talk.asks(messages.get(host, "/a")).waits(1500).answers(messages.answer(20, "503 No"))
        records += talk.closes().records
    return sorted(records)


@pytest.mark.parametrize(
    "records", [broken_streams(1200), many_names(600), many_hosts(250)], ids=["streams", "names", "hosts"]
)
def test_the_summary_keeps_its_budget_whatever_is_broken(tmp_path: Path, records: Sequence[Record]) -> None:
    examined = examine(saved(tmp_path, pcap(records)))
    assert examined is not None
    assert len(examined.capture.findings) >= 1
    summary = examined.outputs["semantic.json"]
    assert json.loads(summary)["capture_summary"]["total_packets"] == len(records)
    assert estimated_tokens(summary) <= AIM_TOKENS
    assert estimated_tokens(examined.outputs["findings"]) <= FINDINGS_TOKENS


def test_what_is_no_capture_is_refused(tmp_path: Path) -> None:
    for octets in (b"\0" * 100, b"GET / HTTP/1.1\r\n", gzip.compress(b"\0" * 100), b"\x1f\x8b"):
        with pytest.raises(CaptureError):
            analyse(saved(tmp_path, octets))
