"""Reading capture files: formats, clocks, damage."""

from __future__ import annotations

import gzip
import hashlib
import re
import shlex
import struct
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ghost.errors import CaptureError
from ghost.pcap.analysis import Progress, analyse
from ghost.pcap.array_types import interpreted_kernel, interpreted_vector
from ghost.pcap.file import byte_source
from ghost.pcap.file.capture_format import check_capture, no_capture
from ghost.pcap.file.capture_reader import CaptureReader, FileFacts
from ghost.pcap.kernels import pipeline
from tests.exhaustive import examples

from .wire import CLIENT, MS, SERVER, Talk, block, ethernet, ip, pcap, pcapng, transfer, udp

START = 1_700_000_000_123_456_789
FRAME = ethernet(ip(CLIENT, SERVER, 17, udp(1000, 2000, b"payload")))
UNREADABLE = Path("/proc/self/mem")  # opens as a file; nothing lies at its beginning
RESOLUTION = {"micro": b"", "nano": struct.pack("<HHB3x", 9, 1, 9), "binary": struct.pack("<HHB3x", 9, 1, 0x80 | 20)}


def write(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "some.pcap"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_both_byte_orders_and_both_clocks_of_pcap_are_read(tmp_path: Path, big: bool, nanoseconds: bool) -> None:
    records = [(START, FRAME), (START + MS, FRAME)]
    summary = analyse(write(tmp_path, pcap(records, big=big, nanoseconds=nanoseconds))).summary
    assert summary.format == "pcap"
    assert summary.total_packets == 2
    assert summary.first_ns == (START if nanoseconds else START // 1000 * 1000)
    assert summary.duration_seconds == pytest.approx(0.001)
    assert summary.link_types == ("ETHERNET",)


@pytest.mark.parametrize("order", ["<", ">"])
def test_interfaces_of_a_pcapng_have_their_own_link_type_and_clock(tmp_path: Path, order: str) -> None:
    nano = struct.pack(f"{order}HHB3xHH", 9, 1, 9, 0, 0)
    raw = FRAME[14:]
    records = [(0, START // 1000, FRAME), (1, START, raw)]
    summary = analyse(write(tmp_path, pcapng(records, [(1, b""), (101, nano)], order))).summary
    assert (summary.format, summary.interfaces, summary.link_types) == ("pcapng", 2, ("ETHERNET", "RAW"))
    assert (summary.first_ns, summary.last_ns) == (START // 1000 * 1000, START)
    assert summary.protocols_present["udp"] == 2


def test_a_binary_clock_counts_parts_of_a_second(tmp_path: Path) -> None:
    half = (5 << 20) + (1 << 19)
    content = pcapng([(0, half, FRAME)], [(1, RESOLUTION["binary"])])
    assert analyse(write(tmp_path, content)).summary.first_ns == 5_500_000_000


def test_interface_statistics_tell_what_the_capturer_dropped(tmp_path: Path) -> None:
    statistics = struct.pack("<III", 0, 0, 0) + struct.pack("<HHQ", 5, 8, 7) + struct.pack("<HHQ", 7, 8, 2)
    content = pcapng([(0, 1, FRAME)], [(1, b"")]) + block(5, statistics)
    assert analyse(write(tmp_path, content)).summary.dropped_by_capturer == 9
    assert analyse(write(tmp_path, pcap([(1, FRAME)]))).summary.dropped_by_capturer is None


def test_a_simple_packet_block_is_a_packet(tmp_path: Path) -> None:
    content = pcapng([(0, 1, FRAME)], [(1, b"")]) + block(3, struct.pack("<I", len(FRAME)) + FRAME)
    assert analyse(write(tmp_path, content)).summary.protocols_present["udp"] == 2


def test_a_gzip_compressed_capture_reads_as_the_plain_one_and_keeps_its_own_hash(tmp_path: Path) -> None:
    talk, _ = transfer(1, segments=30)
    plain = talk.save(tmp_path / "plain.pcap")
    packed = tmp_path / "packed.pcap.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    one, two = analyse(plain), analyse(packed)
    assert two.summary.compressed
    assert two.summary.sha256 == hashlib.sha256(packed.read_bytes()).hexdigest()
    assert one.tcp is not None
    assert two.tcp is not None
    assert list(one.tcp.streams) == list(two.tcp.streams)


@pytest.mark.parametrize("missing", [1, 7, 20, len(FRAME) + 3])
def test_a_truncated_last_record_is_reported_and_the_rest_analysed(tmp_path: Path, missing: int) -> None:
    content = pcap([(START, FRAME)] * 3)
    summary = analyse(write(tmp_path, content[:-missing])).summary
    assert summary.truncated_record
    assert summary.total_packets == 2
    assert any("ends inside a record" in note for note in summary.notes)


def test_a_truncated_gzip_file_is_reported_and_the_rest_analysed(tmp_path: Path) -> None:
    packed = gzip.compress(pcap([(START, bytes(range(256)) + bytes([n % 251]) * 900) for n in range(400)]))
    summary = analyse(write(tmp_path, packed[: len(packed) * 3 // 4])).summary
    assert summary.truncated_record
    assert 0 < summary.total_packets < 400


def test_a_record_of_impossible_length_ends_the_analysis_and_is_reported(tmp_path: Path) -> None:
    content = pcap([(START, FRAME)]) + struct.pack("<IIII", 0, 0, 0x7FFFFFFF, 60) + b"\0" * 100
    summary = analyse(write(tmp_path, content)).summary
    assert (summary.total_packets, summary.truncated_record) == (1, True)
    assert any("damaged after frame 1" in note for note in summary.notes)


def test_frames_cut_by_the_snap_length_are_counted_and_their_length_kept(tmp_path: Path) -> None:
    long = ethernet(ip(CLIENT, SERVER, 17, udp(1000, 2000, b"p" * 1000)))
    head = pcap([])
    content = head + struct.pack("<IIII", 1, 0, 60, len(long)) + long[:60]
    analysis = analyse(write(tmp_path, content))
    assert analysis.summary.cut_packets == 1
    assert analysis.udp is not None
    assert analysis.udp.payload_bytes == 1000


@pytest.mark.parametrize(
    "content",
    [b"", pcap([]), pcapng([], [(1, b"")]), gzip.compress(b"", mtime=0)],
    ids=["empty", "pcap", "pcapng", "gzip"],
)
def test_a_capture_without_packets_is_an_analysis_that_says_so(tmp_path: Path, content: bytes) -> None:
    analysis = analyse(write(tmp_path, content))
    assert analysis.is_empty
    assert analysis.tcp is analysis.udp is analysis.arp is analysis.icmp is analysis.dns is None
    assert "The capture holds no packets." in analysis.summary.notes


@pytest.mark.parametrize(
    "content",
    [b"GIF89a", b"\x1f\x8b\x08nonsense", b"\0", gzip.compress(b"no capture", mtime=0)],
    ids=["image", "bad gzip", "one byte", "gzip of text"],
)
def test_a_file_that_is_no_capture_gets_one_clear_line(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CaptureError, match=r"some\.pcap is (not a packet capture|damaged gzip data)") as caught:
        analyse(write(tmp_path, content))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("sun web.snoop", b"snoop\0\0\0\0\0\0\2\0\0\0\4", "a snoop capture; convert it first: editcap -F pcapng {} {}"),
        ("x.cap", b"GMBU\0\2\1\0", "a Network Monitor capture; convert it first: editcap -F pcapng {} {}"),
        ("x.etl", b"\0\0\1\0", "a Windows trace; convert it first: pktmon etl2pcap {} -o {} (Windows), or etl2pcapng"),
        ("a'b", b"\0\0\1\0" + bytes(68) + b"\2\0\2\xc0", "a Windows trace; convert it first: pktmon etl2pcap {}"),
    ],
)  # fmt: skip
def test_another_capture_format_is_named_with_the_command_that_converts_it(
    tmp_path: Path, name: str, content: bytes, told: str
) -> None:
    path = tmp_path / name
    names = [shlex.quote(str(path)), shlex.quote(f"{path}.pcapng".replace(".etl.", "."))]
    for each, data in ((path, content), (path, gzip.compress(content + bytes(100), mtime=0))):
        each.write_bytes(data)
        for read in (analyse, check_capture)[: 2 if data is content else 1]:
            with pytest.raises(CaptureError, match=re.escape(f"{name} is " + told.format(*names, *names))):
                read(path)


def test_a_name_that_begins_like_an_option_is_no_option_of_the_command() -> None:
    assert "editcap -F pcapng ./-w ./-w.pcapng" in str(no_capture(Path("-w"), b"snoop\0"))


def test_a_file_that_is_absent_gets_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"cannot read .*absent \(No such file.*: check its name"):
        analyse(tmp_path / "absent")


@pytest.mark.skipif(not UNREADABLE.exists(), reason="needs /proc")
def test_a_file_that_cannot_be_read_gets_one_clear_line_wherever_reading_begins() -> None:
    facts = FileFacts(format="pcap", interfaces=[(1, 10**6, 0, 0)], entries=[(1, 0, 0, False)])
    for read in (CaptureReader.batches, lambda reader: reader.batches_around(1, facts)):
        with pytest.raises(CaptureError, match=r"cannot read /proc/self/mem \(Input/output error\): "):
            list(read(CaptureReader(UNREADABLE, interpreted_vector, interpreted_kernel)))


def test_progress_is_told_while_reading(tmp_path: Path) -> None:
    path = Talk().opened().save(tmp_path / "talk.pcap")
    told: list[Progress] = []
    analyse(path, progress=told.append)
    assert told[-1].stage == "reading"
    assert told[-1].packets == 3
    assert told[-1].bytes_total == path.stat().st_size


def _damaged(content: bytes) -> st.SearchStrategy[bytes]:
    """The content with some bytes replaced and perhaps cut."""

    def damage(edits: list[tuple[int, int]], keep: int) -> bytes:
        changed = bytearray(content)
        for at, value in edits:
            changed[at % len(changed)] = value
        return bytes(changed[: max(keep, 24)])

    edits = st.lists(st.tuples(st.integers(0, len(content)), st.integers(0, 255)), max_size=20)
    return st.builds(damage, edits, st.integers(24, len(content)))


_VALID = (pcap(transfer(3, segments=6)[0].records), pcapng([(0, 9, FRAME)] * 3, [(1, RESOLUTION["nano"]), (113, b"")]))


@settings(max_examples=examples(30), deadline=None)
@given(st.one_of(st.binary(max_size=200), _damaged(_VALID[0]), _damaged(_VALID[1])))
@example(_VALID[1][:40])
def test_arbitrary_bytes_are_analysed_or_refused_and_never_crash(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = write(tmp_path_factory.getbasetemp(), content)
    try:
        analysis = analyse(path)
    except CaptureError:
        return
    if analysis.tcp is not None:
        assert len(list(analysis.tcp.streams)) == len(analysis.tcp.streams)


@settings(max_examples=examples(5), deadline=None)
@given(st.integers(0, 1000), st.integers(64, 3000), st.integers(1, 7))
def test_buffer_and_batch_sizes_never_change_the_result(
    tmp_path_factory: pytest.TempPathFactory, seed: int, buffer_bytes: int, batch_packets: int
) -> None:
    talk, _ = transfer(seed, segments=40, upstream=0.05, downstream=0.05, ack_loss=0.05)
    path = talk.save(tmp_path_factory.getbasetemp() / "sizes.pcap")
    whole, pieces = analyse(path), analyse(path, buffer_bytes=buffer_bytes, batch_packets=batch_packets)
    assert whole.summary == pieces.summary
    assert whole.tcp is not None
    assert pieces.tcp is not None
    assert whole.tcp.totals == pieces.tcp.totals
    assert list(whole.tcp.streams) == list(pieces.tcp.streams)


def _small_blocks(patch: pytest.MonkeyPatch, block: int, carried: int) -> None:
    """Every file is read ahead, in blocks of a few packets."""
    for name, value in (("_WORTH_A_THREAD", 0), ("_BLOCK", block), ("_CARRIED", carried)):
        patch.setattr(byte_source, name, value)


def _other_blocks(order: str = "<") -> bytes:
    """A section between packets, with an interface and names longer than what is carried from block to block."""
    section = block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)
    return section + block(1, struct.pack(f"{order}HHI", 1, 0, 0), order) + block(4, bytes(2000), order)


@settings(max_examples=examples(5), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    size=st.integers(64, 5000),
    carried=st.sampled_from([0, 16, 100, 2000]),
    lengths=st.lists(st.integers(0, 3000), min_size=1, max_size=30),
    kind=st.sampled_from(["pcap", "pcapng", "sections", "gzip", "cut"]),
)
def test_blocks_read_ahead_say_what_one_buffer_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, carried: int, lengths: list[int], kind: str
) -> None:
    frames = [ethernet(ip(CLIENT, SERVER, 17, udp(1000 + n % 3, 2000, bytes(length)))) for n, length in
              enumerate(lengths)]  # fmt: skip
    if kind in ("pcapng", "sections"):
        part = pcapng([(0, (START + n * MS) // 1000, frame) for n, frame in enumerate(frames)], [(1, b"")])
        content = part + _other_blocks() + part if kind == "sections" else part
    else:
        content = pcap([(START + n * MS, frame) for n, frame in enumerate(frames)])
    content = {"gzip": gzip.compress(content), "cut": content[:-7]}.get(kind, content)
    path = write(tmp_path, content)
    whole = analyse(path)
    assert whole.summary.sha256 == hashlib.sha256(content).hexdigest()
    with monkeypatch.context() as patch:
        _small_blocks(patch, size, carried)
        ahead = analyse(path)
    assert (ahead.summary, ahead.udp, ahead.series) == (whole.summary, whole.udp, whole.series)
    assert ahead.file is not None
    assert whole.file is not None
    assert (ahead.file.notes, ahead.file.interfaces) == (whole.file.notes, whole.file.interfaces)


def test_a_thread_that_reads_ahead_ends_where_nobody_reads_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, pcap([(START + n * MS, FRAME) for n in range(2000)]))
    _small_blocks(monkeypatch, 512, 100)
    batches = CaptureReader(path, interpreted_vector, interpreted_kernel).batches()
    next(batches)
    batches.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "read-ahead"]


@pytest.mark.parametrize("at_once", [1, 3])
def test_however_few_packets_go_through_the_kernels_at_once_they_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    talk, _ = transfer(5, segments=80, upstream=0.05, downstream=0.05, ack_loss=0.05)
    path = talk.save(tmp_path / "lossy.pcap")
    whole = analyse(path)
    monkeypatch.setattr(pipeline, "_AT_ONCE", at_once)
    few = analyse(path)
    assert (few.summary, few.series) == (whole.summary, whole.series)
    assert few.tcp is not None
    assert whole.tcp is not None
    assert list(few.tcp.streams) == list(whole.tcp.streams)
