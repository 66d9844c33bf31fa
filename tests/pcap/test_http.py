"""HTTP/1 exchanges: paired, timed and judged without a byte of a body, a path or a cookie."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.pcap.analysis import analyse
from ghost.pcap.model import HttpSection
from ghost.pcap.protocols.http_errors import ErrorAnswers
from ghost.pcap.protocols.http_tracker import HttpTracker, read_head
from ghost.pcap.tcp.stream_endings import End, Ending
from tests.exhaustive import examples

from .agreement import captures_with
from .talks import Connection, later
from .wire import Record, pcap


def request(
    method: str = "GET", path: str = "/", host: str = "api.example", body: bytes = b"", more: str = ""
) -> bytes:
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{length}{more}\r\n".encode() + body


def answer(status: int = 200, body: bytes = b"", *, promised: int | None = None, more: str = "") -> bytes:
    length = len(body) if promised is None else promised
    return f"HTTP/1.1 {status} Said\r\nContent-Length: {length}\r\n{more}\r\n".encode() + body


def talk(port: int = 80, client_port: int = 40_000) -> Connection:
    return Connection(server_port=port, client_port=client_port).opened()


def section(tmp_path: Path, *records: Record) -> HttpSection:
    path = tmp_path / "http.pcap"
    path.write_bytes(pcap(sorted(records)))
    found = analyse(path).http
    assert found is not None
    return found


def test_exchanges_of_a_kept_connection_are_paired_in_order(tmp_path: Path) -> None:
    spoken = talk(8123)
    for status, wait in ((200, 10), (404, 20), (503, 30)):
        spoken.asks(request()).waits(wait).answers(answer(status, b"x" * 3000))
    found = section(tmp_path, *spoken.closes().records, later(60_000))
    assert (found.requests, found.responses, found.methods) == (3, 3, {"GET": 3})
    assert found.status_distribution == {"200": 1, "404": 1, "503": 1}
    assert found.hosts == {"api.example": 3}
    assert found.response_ms is not None
    assert (found.response_ms.min, found.response_ms.max) == (12, 32)
    assert [(one.status, one.count, one.host, one.port) for one in found.errors] == [
        (404, 1, "api.example", 8123), (503, 1, "api.example", 8123),
    ]  # fmt: skip
    assert (found.unanswered, found.incomplete, found.slow, found.unpaired_responses) == ((), (), (), 0)


def test_errors_are_told_by_client_and_method_with_what_the_host_serves_otherwise(tmp_path: Path) -> None:
    spoken = talk().asks(request(path="/a?n=1")).answers(answer(429, more="Retry-After: 30\r\n"))
    for path, status in (("/a?n=2", 429), ("/b", 429), ("/", 200), ("/", 403)):
        spoken.asks(request(path=path)).answers(answer(status, more="Retry-After: 9\r\n"))
    spoken.asks(request("POST", host="API.example", body=b"x")).answers(answer(403))
    errors = section(tmp_path, *spoken.closes().records).errors
    assert [(one.method, one.status, one.count, one.answers, one.paths, one.retry_after_s) for one in errors] == [
        ("GET", 429, 3, 5, 2, 30), ("GET", 403, 1, 5, 1, None), ("POST", 403, 1, 1, 1, None),
    ]  # fmt: skip
    assert {(one.client, one.host, one.served) for one in errors} == {("10.0.1.4", "api.example", 1)}


def test_errors_of_more_clients_than_there_is_room_for_are_counted_as_one_clients() -> None:
    answers = ErrorAnswers()
    for client in range(20_300):
        answers.add((client, 7 << 16 | 80, "api.example", "GET"), 503, client, client, None)
    errors = answers.listed(str)
    assert (errors[0].client, errors[0].server, errors[0].count) == (None, "7", 300)
    assert sum(one.count for one in errors) == 20_300


def test_pipelined_requests_in_one_segment_are_each_answered(tmp_path: Path) -> None:
    spoken = talk().asks(request() + request("POST", body=b"abc") + request("HEAD"))
    spoken.answers(answer(200, b"one") + answer(201, b"two") + answer(200, promised=9_999))
    found = section(tmp_path, *spoken.closes().records)
    assert (found.requests, found.responses) == (3, 3)
    assert (found.status_distribution, found.unanswered, found.incomplete) == ({"200": 2, "201": 1}, (), ())


def test_a_slow_answer_is_listed_with_its_frames(tmp_path: Path) -> None:
    spoken = talk().asks(request("GET", "/report?token=secret")).waits(2_500).answers(answer(200, b"done"))
    (slow,) = section(tmp_path, *spoken.closes().records).slow
    assert (slow.method, slow.host, slow.status, slow.response_ms) == ("GET", "api.example", 200, 2502)
    assert slow.frames == (4, 6)


def test_an_upload_is_not_held_against_the_server(tmp_path: Path) -> None:
    spoken = talk().asks(request("PUT", body=b"x" * 50_000)).waits(3_000).answers(answer(201))
    found = section(tmp_path, *spoken.closes().records)
    assert (found.slow, found.response_ms, found.responses) == ((), None, 1)


def test_an_answer_cut_before_its_length_is_incomplete_and_says_who_ended_it(tmp_path: Path) -> None:
    cut = talk().asks(request()).answers(answer(200, b"x" * 5_000, promised=20_000)).closes(False)
    reset = talk(client_port=40_001).asks(request()).answers(answer(200, b"x" * 100, promised=200)).resets(False)
    found = section(tmp_path, *cut.records, *reset.records)
    assert found.incomplete_total == 2
    by_length = {one.promised_bytes: one for one in found.incomplete}
    assert (by_length[20_000].came_bytes, by_length[20_000].ended_by, by_length[20_000].reset) == (
        5_000,
        "server",
        False,
    )
    assert (by_length[200].came_bytes, by_length[200].ended_by, by_length[200].reset) == (100, "server", True)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("HEAD", answer(200, promised=5_000)),
        ("GET", answer(304, promised=5_000)),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n"),
        ("GET", b"HTTP/1.0 200 OK\r\n\r\nuntil it closes"),
        ("GET", b"HTTP/1.1 100 Continue\r\n\r\n" + answer(200, b"ok")),
        ("GET", answer(103) + answer(200, b"ok")),
    ],
    ids=["head", "not modified", "no content", "chunked", "event stream", "until close", "continue", "early hints"],
)
def test_answers_without_a_length_to_keep_are_complete(tmp_path: Path, method: str, said: bytes) -> None:
    spoken = talk().asks(request(method)).answers(said).waits(10_000).closes(False)
    found = section(tmp_path, *spoken.records, later(60_000))
    assert (found.responses, found.incomplete, found.unanswered, found.slow) == (1, (), (), ())


def test_a_transfer_still_under_way_is_not_incomplete(tmp_path: Path) -> None:
    spoken = talk().asks(request()).answers(answer(200, b"x" * 5_000, promised=20_000))
    assert section(tmp_path, *spoken.records).incomplete == ()


def test_websockets_and_tunnels_are_no_exchanges_any_more(tmp_path: Path) -> None:
    socket = talk().asks(request(more="Upgrade: websocket\r\n")).answers(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
    socket.waits(5_000).asks(b"GET but in a frame").answers(b"HTTP/1.1 500 in a frame\r\n\r\n")
    tunnel = talk(3128, 40_001).asks(request("CONNECT", "far.example:443")).answers(b"HTTP/1.1 200 Connected\r\n\r\n")
    tunnel.asks(request()).waits(9_000)
    found = section(tmp_path, *socket.records, *tunnel.records, later(60_000))
    assert (found.requests, found.responses, found.upgraded) == (2, 2, 2)
    assert (found.unanswered, found.status_distribution) == ((), {"101": 1, "200": 1})


def test_a_request_without_any_answer_is_told_with_how_long_it_waited(tmp_path: Path) -> None:
    quiet = talk().asks(request())
    closed = talk(client_port=40_001).asks(request()).closes(False)
    found = section(tmp_path, *quiet.records, *closed.records, later(30_000))
    assert found.unanswered_total == 2
    assert {one.ended_by for one in found.unanswered} == {None, "server"}
    waited = next(one.response_ms for one in found.unanswered if one.ended_by is None)
    assert waited is not None
    assert waited > 29_000


def test_repeated_and_foreign_segments_change_nothing(tmp_path: Path) -> None:
    spoken = talk().asks(request()).answers(answer(200, b"x" * 3_000)).closes()
    again = [(when + 1, frame) for when, frame in spoken.records]
    found = section(tmp_path, *spoken.records, *again)
    assert (found.requests, found.responses, found.unpaired_responses) == (1, 1, 0)
    rtsp = talk(554).asks(b"OPTIONS rtsp://camera RTSP/1.0\r\n\r\n").closes()
    path = tmp_path / "rtsp.pcap"
    path.write_bytes(pcap(rtsp.records))
    assert analyse(path).http is None


def test_bodies_reach_no_reader() -> None:
    import numpy as np

    from ghost.pcap.array_types import interpreted_kernel, interpreted_vector
    from ghost.pcap.kernels.decoder import Decoder
    from ghost.pcap.layout import CAPTURED, LINK, MARK, OFFSET, PACKET, WIRE

    frames = [frame for _, frame in talk().asks(request()).answers(answer(200, b"\x16body" * 200_000)).records]
    rows = np.zeros((len(frames), PACKET), np.int64)
    at = 0
    for row, frame in zip(rows, frames, strict=True):
        row[OFFSET], row[CAPTURED], row[WIRE], row[LINK] = at, len(frame), len(frame), 1
        at += len(frame)
    buffer = np.frombuffer(b"".join(frames), np.uint8).copy()
    Decoder(interpreted_vector, interpreted_kernel).decode(
        interpreted_vector(buffer), interpreted_vector(rows.reshape(-1)), len(rows)
    )
    assert len(frames) > 500
    assert int((rows[:, MARK] > 0).sum()) == 2


@settings(max_examples=examples(40))
@given(st.lists(st.one_of(
    st.binary(min_size=1, max_size=60),
    st.sampled_from([request(), request("HEAD"), answer(200, b"x"), answer(200, promised=7)[:40], b"HTTP/1.1 20"]),
), max_size=20), st.integers(0, 3))  # fmt: skip
def test_arbitrary_segments_never_break_the_tracker(segments: list[bytes], cut: int) -> None:
    tracker = HttpTracker()
    for frame, payload in enumerate(segments, 1):
        payload = payload[cut:] or b"x"
        ends = (1 << 16 | 40_000, 2 << 16 | 80)
        sender = ends[::-1] if payload.startswith(b"HTTP") else ends
        tracker.packet(0, sender, frame * 50, 0, payload, len(payload) + cut, frame, frame * 1_000)
        head = read_head(payload)
        assert head is None or 0 < head.end <= len(payload)
    end = End(1 << 16 | 40_000, 5_000, 9, 0, 0, 100)
    tracker.section(str, lambda _: Ending((end, end._replace(endpoint=2 << 16 | 80)), 0), 10**10)


def assert_agrees(path: Path) -> int:
    # Left to itself, tshark shows no head whose body was not captured whole; told not to wait, it counts repeats.
    alone = ["-o", "http.desegment_body:FALSE", "-o", "tcp.desegment_tcp_streams:FALSE"]
    alone += ["-Y", "!tcp.analysis.retransmission"]
    command = ["tshark", "-r", str(path), "-2", *alone, "-T", "fields", "-E", "separator=|"]
    command += ["-e", "http.request.method", "-e", "http.response.code", "-e", "http.host"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    methods, codes, hosts = (
        [value for line in lines for value in line.split("|")[column].split(",") if value] for column in range(3)
    )
    found = analyse(path).http or HttpSection()
    assert found.requests == len(methods)
    assert sum(found.status_distribution.values()) == len(codes)
    assert sum(found.hosts.values()) == len(hosts)
    return found.requests


@pytest.mark.needs("tshark")
def test_requests_and_answers_agree_with_tshark_on_real_captures(shared_captures: Path) -> None:
    assert sum(map(assert_agrees, captures_with("http", "http_requests", shared_captures))) >= 40


LOOKS_LIKE_ONE = b"GET /secret HTTP/1.1\r\nHost: in-the-upload.example\r\n\r\n"


@pytest.mark.parametrize("body", [LOOKS_LIKE_ONE * 200, (LOOKS_LIKE_ONE + b"and more of a log ") * 100])
@pytest.mark.parametrize("chunked", [False, True])
def test_an_upload_that_holds_what_looks_like_requests_holds_none(
    tmp_path: Path, body: bytes, *, chunked: bool
) -> None:
    spoken = talk()
    head = "Transfer-Encoding: chunked\r\n" if chunked else f"Content-Length: {len(body)}\r\n"
    spoken.asks(request("PUT", more=head))
    for at in range(0, len(body), len(LOOKS_LIKE_ONE) * 20):  # each segment begins like a request
        spoken.asks(body[at : at + len(LOOKS_LIKE_ONE) * 20])
    spoken.waits(2_000).answers(answer(201)).asks(request(host="next.example")).answers(answer(500))
    found = section(tmp_path, *spoken.closes().records, later(60_000))
    assert found.methods == {"PUT": 1, "GET": 1}
    assert found.hosts == {"api.example": 1, "next.example": 1}
    assert (found.unanswered, found.status_distribution) == ((), {"201": 1, "500": 1})
    assert [one.host for one in found.errors] == ["next.example"]


def test_data_of_another_protocol_that_begins_like_a_request_is_none(tmp_path: Path) -> None:
    sent = talk(2121).asks(LOOKS_LIKE_ONE + b"rest of a file").waits(5_000).closes()
    path = tmp_path / "ftp.pcap"
    path.write_bytes(pcap([*sent.records, later(60_000)]))
    assert analyse(path).http is None


def test_a_request_that_was_refused_before_its_body_may_be_followed_by_the_next(tmp_path: Path) -> None:
    spoken = talk().asks(request("PUT", more="Expect: 100-continue\r\nContent-Length: 90000\r\n"))
    spoken.answers(answer(401)).asks(request("GET")).waits(4_000).answers(answer(200))
    found = section(tmp_path, *spoken.closes().records)
    assert (found.requests, found.responses, len(found.slow)) == (2, 2, 1)


def test_requests_behind_an_upload_of_unknown_length_are_seen_where_one_way_was_captured_alone(tmp_path: Path) -> None:
    spoken = talk()
    for _ in range(3):
        spoken.asks(request("POST", more="Transfer-Encoding: chunked\r\n")).asks(b"5\r\nhello\r\n0\r\n\r\n")
        spoken.answers(answer(200))
    there = [record for record in spoken.closes().records if record[1][34:36] == (40_000).to_bytes(2, "big")]
    assert section(tmp_path, *there).requests == 3


def test_after_100_continue_an_upload_of_unknown_length_is_still_an_upload(tmp_path: Path) -> None:
    spoken = talk().asks(request("PUT", more="Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n"))
    spoken.answers(b"HTTP/1.1 100 Continue\r\n\r\n").asks(LOOKS_LIKE_ONE).answers(answer(200))
    found = section(tmp_path, *spoken.closes().records)
    assert (found.requests, found.hosts) == (1, {"api.example": 1})
