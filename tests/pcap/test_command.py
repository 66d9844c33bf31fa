"""The program as others meet it: files, exit status, one clear line where it fails."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import pty
import re
import signal
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ghost.pcap import main
from ghost.pcap.report.output_files import stem_of
from ghost.pcap.report.semantic import FINDINGS_TOKENS, MOST_TOKENS, estimated_tokens

ENGINE = [sys.executable, "-I", "-m", "ghost.pcap"]
NO_PACKETS = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)


Ran = subprocess.CompletedProcess[str]


def run(*arguments: str | Path, cwd: Path | None = None) -> Ran:
    """Run the program in this process, as if in a process of its own."""
    out, err = io.StringIO(), io.StringIO()
    directory = contextlib.chdir(cwd) if cwd else contextlib.nullcontext()
    with directory, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([*map(str, arguments)])
    return Ran(arguments, status, out.getvalue(), err.getvalue())


def run_apart(*arguments: str | Path, cwd: Path | None = None) -> Ran:
    """Run the program in a process of its own."""
    command = [*ENGINE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=60, check=False)


def captures(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.suffix in {".pcap", ".pcapng"})


WRITTEN = ("_semantic.json", "_forensic_report.md", "_executive_summary.md", "_report.html")


def test_one_capture_gives_a_headline_and_the_paths_of_four_private_files(
    shared_captures: Path, tmp_path: Path
) -> None:
    directories = ("--semantic-dir", tmp_path / "s", "--report-dir", tmp_path / "r")
    ran = run_apart(shared_captures / "wikipedia.pcap", *directories)
    assert ran.returncode == 0, ran.stderr
    headline, time, unusual, *lines = ran.stdout.splitlines()
    assert headline == "INFO: No fault recognised in this capture"
    assert time == "  time: 2011-03-18 19:06:07 to 19:06:13 UTC"
    assert unusual == "  unusual: 4 lookups failed or stayed unanswered at first, and a later one succeeded"
    paths = [Path(line) for line in lines]
    assert paths == [
        tmp_path / "s" / "wikipedia_semantic.json",
        tmp_path / "r" / "wikipedia_forensic_report.md",
        tmp_path / "r" / "wikipedia_executive_summary.md",
        tmp_path / "r" / "wikipedia_report.html",
    ]
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
    assert json.loads(paths[0].read_text())["capture_summary"]["total_packets"] == 136
    assert len(ran.stderr.splitlines()) == 1, "a pipe gets one line of progress"
    assert "136 packets" in ran.stderr
    assert "\x1b" not in ran.stdout + ran.stderr, "a pipe gets no colour"


def test_the_headline_tells_severity_fault_owner_and_first_step(shared_captures: Path, tmp_path: Path) -> None:
    ran = run(shared_captures / "tcp__option-sack.pcap", cwd=tmp_path)
    what, owner, time, first, *_ = ran.stdout.splitlines()
    assert what == "HIGH: 127.0.0.1 gets no answer from 127.0.0.1:80"
    assert owner.startswith("  owner: ")
    assert time == "  time: 2019-10-04 01:23:57 to 01:24:10 UTC"
    assert first.startswith("  first step, on ")


def test_files_go_to_the_current_directory_by_default(shared_captures: Path, tmp_path: Path) -> None:
    assert run(shared_captures / "smtp.pcap", cwd=tmp_path).returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {f"smtp{ending}" for ending in WRITTEN}


def test_a_capture_is_left_exactly_as_it_was(shared_captures: Path, tmp_path: Path) -> None:
    def state(path: Path) -> tuple[str, int, int, int]:
        facts = path.stat()
        return hashlib.sha256(path.read_bytes()).hexdigest(), facts.st_mtime_ns, facts.st_ino, facts.st_mode

    folder = tmp_path / "captures"
    folder.mkdir()
    paths = [folder / "a.pcap", folder / "b.pcap"]
    for path, name in zip(paths, ("smtp.pcap", "wikipedia.pcap"), strict=True):
        path.write_bytes((shared_captures / name).read_bytes())
        path.chmod(0o444)
    before = [state(path) for path in paths]
    for arguments in ([paths[0]], [paths[0], "--compare", paths[1], "--ends"], [folder], [paths[0], "--findings"]):
        assert run(*arguments, cwd=folder).returncode == 0
        assert [state(path) for path in paths] == before


def test_another_capture_of_the_name_of_a_result_is_not_written_over(shared_captures: Path, tmp_path: Path) -> None:
    content = (shared_captures / "smtp.pcap").read_bytes()
    (tmp_path / "x.pcap").write_bytes(content)
    for other in (content, gzip.compress(content), b"\x0a\x0d\x0d\x0a" + bytes(24)):
        (tmp_path / "x_report.html").write_bytes(other)
        ran = run("x.pcap", cwd=tmp_path)
        assert ran.returncode == 2
        assert "x_report.html is a capture and would be written over" in ran.stderr
        assert (tmp_path / "x_report.html").read_bytes() == other
    (tmp_path / "x_report.html").write_text("<!doctype html>")
    assert run("x.pcap", cwd=tmp_path).returncode == 0
    assert (tmp_path / "x_report.html").stat().st_size > 1_000


@pytest.mark.parametrize("other", ["gone.pcap", "notes.txt", "."])
def test_the_second_capture_is_looked_at_before_the_first_is_read(
    other: str, shared_captures: Path, tmp_path: Path
) -> None:
    content = (shared_captures / "smtp.pcap").read_bytes()
    (tmp_path / "x.pcap").write_bytes(content)
    (tmp_path / "notes.txt").write_text("seen on Tuesday")
    ran = run("x.pcap", "--compare", other, "--report-dir", "out", cwd=tmp_path)
    assert ran.returncode == 1
    assert len(ran.stderr.splitlines()) == 1  # and not the line about x.pcap, which would come first
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["x_semantic.json", "x_report.html"])
def test_a_result_that_would_take_the_place_of_a_capture_is_refused(
    name: str, shared_captures: Path, tmp_path: Path
) -> None:
    ending = name.removeprefix("x")
    content = (shared_captures / "smtp.pcap").read_bytes()
    (tmp_path / "x.pcap").write_bytes(content)
    # Its own results would be called otherwise; those of the capture beside it would not.
    (tmp_path / name).symlink_to(tmp_path / "x.pcap")
    ran = run("x.pcap", cwd=tmp_path)
    assert ran.returncode == 2
    assert f"x{ending} is the capture itself" in ran.stderr
    assert (tmp_path / "x.pcap").read_bytes() == content


def test_a_baseline_named_like_a_result_of_the_comparison_is_not_written_over(
    shared_captures: Path, tmp_path: Path
) -> None:
    content = (shared_captures / "smtp.pcap").read_bytes()
    for name in ("b_semantic.json", "b.pcap"):
        (tmp_path / name).write_bytes(content)
    ran = run("b_semantic.json", "--compare", "b.pcap", cwd=tmp_path)
    assert ran.returncode == 2
    assert (tmp_path / "b_semantic.json").read_bytes() == content


def test_findings_alone_are_json_and_write_no_file(shared_captures: Path, tmp_path: Path) -> None:
    ran = run(shared_captures / "smtp.pcap", "--findings", cwd=tmp_path)
    assert ran.returncode == 0
    printed = json.loads(ran.stdout)
    assert printed["capture"]["packets"] == 125
    assert printed["findings"][0]["id"] == "F1"
    assert not list(tmp_path.iterdir())


def test_json_holds_findings_and_the_path_of_each_file(shared_captures: Path, tmp_path: Path) -> None:
    printed = json.loads(run(shared_captures / "smtp.pcap", "--json", cwd=tmp_path).stdout)
    assert printed["capture"]["packets"] == 125
    assert [finding["kind"] for finding in printed["findings"]] == ["none"]
    paths = {key: path for key, path in printed.items() if key.endswith("_path")}
    assert set(paths) == {"semantic_json_path", "report_path", "executive_summary_path", "html_report_path"}
    assert all((tmp_path / path).is_file() for path in paths.values())


def test_two_captures_are_compared(shared_captures: Path, tmp_path: Path) -> None:
    ran = run(shared_captures / "smtp.pcap", "--compare", shared_captures / "wikipedia.pcap", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert [Path(line).name for line in ran.stdout.splitlines()][-5:] == [
        "smtp_semantic.json",
        "wikipedia_semantic.json",
        "smtp_vs_wikipedia_comparison.md",
        "smtp_vs_wikipedia_executive_summary.md",
        "smtp_vs_wikipedia_comparison.html",
    ]
    assert len((tmp_path / "smtp_vs_wikipedia_executive_summary.md").read_text().splitlines()) <= 50


def test_a_comparison_as_json_has_every_metric_with_its_assessment(shared_captures: Path, tmp_path: Path) -> None:
    ran = run(shared_captures / "smtp.pcap", "--compare", shared_captures / "wikipedia.pcap", "--json", cwd=tmp_path)
    printed = json.loads(ran.stdout)
    known = {"STABLE", "REGRESSION", "IMPROVEMENT", "NEW ISSUE", "RESOLVED"}
    assert {row["assessment"] for row in printed["metrics"]} <= known
    assert "two_ends" not in printed, "captures of different places share no packets"


def test_captures_of_the_same_name_do_not_overwrite_each_other(shared_captures: Path, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for directory, source in ((tmp_path, "smtp.pcap"), (tmp_path / "b", "wikipedia.pcap")):
        (directory / "x.pcap").write_bytes((shared_captures / source).read_bytes())
    assert run("x.pcap", "--compare", "b/x.pcap", cwd=tmp_path).returncode == 0
    semantic = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("*_semantic.json"))]
    assert sorted(each["capture_summary"]["total_packets"] for each in semantic) == [125, 136]


def test_every_shared_capture_is_summed_up_within_the_limits_with_the_counts_of_tshark(
    shared_captures: Path, tmp_path: Path
) -> None:
    same = {
        "retransmissions_total": "retransmission", "fast_retransmissions": "fast_retransmission",
        "spurious_retransmissions": "spurious_retransmission", "duplicate_ack_total": "duplicate_ack",
        "out_of_order_total": "out_of_order", "zero_window_total": "zero_window", "lost_segments_total": "lost_segment",
        "keepalives": "keep_alive", "window_full_total": "window_full", "rst_count": "rst",
        "streams_total": "tcp_streams", "acked_unseen_total": "ack_lost_segment",
    }  # fmt: skip
    for capture in captures(shared_captures):
        ran = run(capture, "--semantic-dir", tmp_path, "--report-dir", tmp_path)
        assert ran.returncode == 0, capture.name
        semantic = (tmp_path / f"{stem_of(capture)}_semantic.json").read_text()
        assert estimated_tokens(semantic) <= MOST_TOKENS, capture.name
        assert len((tmp_path / f"{stem_of(capture)}_executive_summary.md").read_text().splitlines()) <= 50
        assert estimated_tokens(run(capture, "--findings").stdout) <= FINDINGS_TOKENS, capture.name
        told = json.loads(semantic)
        counted = json.loads((shared_captures / f"{capture.stem}.tshark.json").read_text())
        assert told["capture_summary"]["total_packets"] == counted["packets"]
        tcp = told.get("tcp", {})
        differ = {ours for ours, theirs in same.items() if tcp.get(ours, 0) != counted[theirs]}
        assert not differ, f"{capture.name}: {differ}"
        arp = told.get("arp", {"total_requests": 0, "total_replies": 0})
        assert (arp["total_requests"], arp["total_replies"]) == (counted["arp_requests"], counted["arp_replies"])
        dns = told.get("dns", {"queries_total": 0, "responses_total": 0})
        by_protocol = counted["dns_by_protocol_query_response"]
        asked = [by_protocol.get(protocol, [0, 0]) for protocol in ("dns", "dns_over_tcp")]
        assert dns["queries_total"] == sum(queries for queries, _ in asked), capture.name
        assert dns["responses_total"] == sum(responses for _, responses in asked), capture.name


CONCLUDED = {
    "communityid__icmp6.pcap": ["none"],
    "dns-edns-ecs.pcap": ["dns_timeout", "dns_timeout"],  # queries of several captures, some without their answers
    "ftp__cwd-navigation.pcap": ["capture_incomplete", "none"],
    "http__206_example_a.pcap": ["loss"],
    "http__bro.org.pcap": ["none"],
    "http__m57-long-49600-80.pcap": ["duplicate_packets", "none"],
    "linuxsll-arp.pcap": ["none"],  # ARP requests of strangers: their replies do not pass here
    "mysql__auth.pcap": ["none"],
    "smtp.pcap": ["none"],  # path MTU discovery that works
    "ssh__ssh.client-side-half-duplex.pcap": ["asymmetric"],
    "tcp__option-sack.pcap": ["syn_unanswered"],
    "tcp__retransmit-timeout.pcapng": ["none"],
    "tls__ssl.v3.pcap": ["none"],  # resets after complete exchanges
    "tunnels__gre-sample.pcap": ["port_unreachable"],
    "wikipedia.pcap": ["none"],  # a search list, and a capture that begins in mid-stream
}


def test_a_real_capture_leads_to_its_conclusion_and_no_other(shared_captures: Path) -> None:
    printed = {name: json.loads(run(shared_captures / name, "--findings").stdout) for name in CONCLUDED}
    assert {name: [each["kind"] for each in document["findings"]] for name, document in printed.items()} == CONCLUDED


# ------------------------------------------------------------------------------------------------ what may go wrong


def failure(ran: subprocess.CompletedProcess[str]) -> str:
    """The one line on standard error of a run that failed."""
    assert ran.returncode == 1
    assert ran.stdout == ""
    lines = ran.stderr.splitlines()
    assert len(lines) == 1, ran.stderr
    assert lines[0].startswith("pcap-forensics: ")
    return lines[0]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "nowhere.pcap" in failure(run(tmp_path / "nowhere.pcap"))


def test_a_file_that_is_no_capture_gets_one_line(tmp_path: Path) -> None:
    (tmp_path / "notes.pcap").write_text("these are notes, not packets\n" * 10)
    assert "notes.pcap" in failure(run(tmp_path / "notes.pcap", cwd=tmp_path))
    assert not list(tmp_path.glob("*_semantic.json"))


@pytest.mark.parametrize("compressed", [False, True])
def test_standard_input_is_read_like_a_file(compressed: bool, shared_captures: Path, tmp_path: Path) -> None:
    content = (shared_captures / "smtp.pcap").read_bytes()
    piped = [
        subprocess.run([*ENGINE, "-", *options], input=gzip.compress(content) if compressed else content, cwd=tmp_path,
                       capture_output=True, env={**os.environ, "TMPDIR": str(tmp_path)}, timeout=60, check=True)
        for options in (["--findings"], ["--compare", str(shared_captures / "smtp.pcap")], [])
    ]  # fmt: skip
    file = run(shared_captures / "smtp.pcap", "--findings").stdout
    assert piped[0].stdout.decode().replace("stdin", "smtp.pcap") == file
    assert piped[2].stdout.decode().splitlines()[-4:] == [f"stdin{ending}" for ending in WRITTEN]
    assert not list(tmp_path.glob("pcap-forensics-*")), "the copy is deleted"


def test_standard_input_that_is_a_terminal_or_no_capture_gets_one_line(tmp_path: Path) -> None:
    near, far = pty.openpty()
    at_terminal = subprocess.run([*ENGINE, "-"], stdin=far, capture_output=True, text=True, timeout=60, check=False)
    os.close(near)
    os.close(far)
    assert (at_terminal.returncode, len(at_terminal.stderr.splitlines())) == (2, 1)
    assert "tcpdump -w - | pcap-forensics -" in at_terminal.stderr
    with Path("/dev/zero").open() as endless:
        zeros = subprocess.run([*ENGINE, "-"], stdin=endless, capture_output=True, text=True, timeout=60, check=False)
    assert "stdin is not a packet capture (it begins with 00 00 00 00)" in failure(zeros)
    twice = run("-", "--compare", "-")
    assert (twice.returncode, twice.stderr.count("\n")) == (2, 1)


def test_a_folder_without_captures_says_so(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no packets")
    assert "holds no packet capture (1 other file)" in failure(run(tmp_path, cwd=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_directory_that_cannot_be_made_is_named(shared_captures: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = run(shared_captures / "smtp.pcap", "--report-dir", tmp_path / "file", cwd=tmp_path)
    assert ran.returncode == 1
    assert str(tmp_path / "file") in ran.stderr.splitlines()[-1]
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    "content", [b"", NO_PACKETS, gzip.compress(NO_PACKETS, mtime=0)], ids=["0 bytes", "none", "gzip"]
)
def test_a_capture_without_packets_says_so_and_succeeds(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "idle.cap").write_bytes(content)
    ran = run("idle.cap", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "no packets" in (tmp_path / "idle_executive_summary.md").read_text().splitlines()[0]


@pytest.mark.parametrize(
    "arguments", [[], ["a.pcap", "b.pcap"], ["--wrong", "a.pcap"], ["a.pcap", "--narrator", "gemini"]]
)
def test_wrong_usage_ends_with_status_2(arguments: Sequence[str]) -> None:
    ran = run(*arguments)
    assert ran.returncode == 2
    assert re.fullmatch(r"pcap-forensics: .*see pcap-forensics --help\.\n", ran.stderr)


def test_a_number_of_jobs_that_cannot_be_is_answered_with_those_that_can() -> None:
    for jobs in ("0", "65", "-1", "many", "", "1.5"):
        ran = run("web.pcap", f"--jobs={jobs}")
        assert ran.returncode == 2
        assert "argument --jobs: expected a number from 1 to 64: see " in ran.stderr


def test_findings_of_a_comparison_are_json_and_write_no_file(shared_captures: Path, tmp_path: Path) -> None:
    captures = [str(shared_captures / name) for name in ("smtp.pcap", "wikipedia.pcap")]
    ran = run(captures[0], "--compare", captures[1], "--ends", "--findings", cwd=tmp_path)
    assert (ran.returncode, list(tmp_path.iterdir())) == (0, [])
    told = json.loads(ran.stdout)
    assert told["two_ends"]["matched_packets"] == 0
    assert not any(name.endswith("_path") for name in told)


def test_help_has_an_example_of_each_mode() -> None:
    shown = run("--help").stdout
    for example in (
        "--compare after.pcap",
        "--ends\n",
        "--findings\n",
        "--json\n",
        "--semantic-dir out",
        "captures/\n",
    ):
        assert example in shown


def test_both_programs_say_the_same_of_themselves_but_that_one_opens_pages(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    engine = capsys.readouterr().out
    main(["--help"], program="ghost pcap", open_page=lambda page: None)
    ghost = capsys.readouterr().out
    assert "--open" in ghost
    assert "--open" not in engine, "the engine starts no program"
    told = set(engine.replace("pcap-forensics", "ghost pcap").split())
    assert told - set(ghost.split()) == set()


def test_the_page_is_opened_when_it_is_written_and_not_where_it_failed(shared_captures: Path, tmp_path: Path) -> None:
    opened: list[Path] = []
    places = ["--semantic-dir", str(tmp_path), "--report-dir", str(tmp_path), "--open"]
    assert main([str(shared_captures / "smtp.pcap"), *places], open_page=opened.append) == 0
    assert opened == [tmp_path / "smtp_report.html"]
    assert opened[0].read_text().startswith("<!doctype html>")
    assert main([str(tmp_path / "nowhere.pcap"), *places], open_page=opened.append) == 1
    assert len(opened) == 1


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Programs started here heed an interrupt, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_with_status_130_and_without_a_traceback(tmp_path: Path) -> None:
    slow = tmp_path / "slow.pcap"
    slow.write_bytes(NO_PACKETS)
    os.truncate(slow, 1 << 30)  # zeros are records of empty packets: minutes of work, and no blocks on the disk
    interpreted = "from ghost.pcap.kernels import compilation; compilation.worth_it = lambda _: False"
    command = [
        sys.executable,
        "-c",
        f"{interpreted}; import ghost.pcap; raise SystemExit(ghost.pcap.main())",
        str(slow),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as engine:
        deadline = time.monotonic() + 30
        while not position_in(slow, engine.pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        engine.send_signal(signal.SIGINT)
        _, said = engine.communicate(timeout=30)
    assert engine.returncode == 130
    assert said.splitlines() == ["pcap-forensics: interrupted."]


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_standard_input_is_read_ends_its_writer_and_the_rest_is_analysed(
    shared_captures: Path, tmp_path: Path
) -> None:
    content = (shared_captures / "smtp.pcap").read_bytes()
    with subprocess.Popen([*ENGINE, "-", "--findings"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env={**os.environ, "TMPDIR": str(tmp_path)}) as engine:  # fmt: skip
        assert engine.stdin is not None
        engine.stdin.write(content[:5000])
        engine.stdin.flush()
        deadline = time.monotonic() + 30
        while not list(tmp_path.glob("*/stdin")) and time.monotonic() < deadline:
            time.sleep(0.02)
        engine.send_signal(signal.SIGINT)
        time.sleep(0.1)
        out, _ = engine.communicate(content[5000:], timeout=30)
    assert engine.returncode == 0
    assert json.loads(out)["capture"]["packets"] == 125


def position_in(path: Path, pid: int) -> int:
    """How far the process has read; 0 before it opens the file."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it opens and closes others meanwhile
            if link.readlink() == path.resolve():
                return int(Path(f"/proc/{pid}/fdinfo/{link.name}").read_text().split()[1])
    return 0


@pytest.mark.parametrize(
    ("home", "replaced", "program"),
    [("ghost.pcap.command", "_run", "ghost.pcap.command"), ("ghost.cli.typer_app", "app", "ghost.cli")],
)
def test_an_interrupt_amid_code_made_from_a_string_ends_with_status_130(
    tmp_path: Path, home: str, replaced: str, program: str
) -> None:
    (tmp_path / "interrupted.py").write_text(
        f"import sys\nimport {home} as home\nfrom {program} import main\n"
        f"home.{replaced} = lambda *_, **__: exec('raise KeyboardInterrupt')\n"
        "sys.exit(main(['x.pcap']))\n"
    )
    command = [sys.executable, "-m", "interrupted"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.split()[-1]) == (130, "interrupted.")


def test_a_reader_that_goes_away_causes_no_traceback(shared_captures: Path) -> None:
    with subprocess.Popen(
        [*ENGINE, str(shared_captures / "smtp.pcap"), "--findings"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as engine:
        assert engine.stdout is not None
        assert engine.stderr is not None
        engine.stdout.close()
        said = engine.stderr.read().decode()
    assert "Traceback" not in said
    assert "BrokenPipe" not in said


def test_a_file_name_cannot_disturb_the_terminal(shared_captures: Path, tmp_path: Path) -> None:
    hostile = tmp_path / "a\x1b[2J\nb.pcap"
    hostile.write_bytes((shared_captures / "smtp.pcap").read_bytes())
    ran = run_apart(hostile, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "\x1b" not in ran.stdout + ran.stderr
    assert len(ran.stdout.splitlines()) == 8, "a headline, its time, what is unusual, and four paths"
    missing = run(tmp_path / "c\x1b[2J\nd.pcap")
    assert "\x1b" not in failure(missing)


def test_a_file_name_that_is_no_text_in_a_locale_without_unicode_is_no_obstacle(
    shared_captures: Path, tmp_path: Path
) -> None:
    name = os.fsdecode(b"caf\xe9.pcap")
    (tmp_path / name).write_bytes((shared_captures / "smtp.pcap").read_bytes())
    command = [sys.executable, "-X", "utf8=0", "-m", "ghost.pcap", name]
    environment = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii:strict", "PATH": os.environ["PATH"]}
    ran = subprocess.run(command, capture_output=True, cwd=tmp_path, env=environment, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) == 8


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("web.pcap", "web"),
        ("web.pcapng", "web"),
        ("web.cap", "web"),
        ("web.pcap.gz", "web"),
        ("WEB.PCAP", "WEB"),
        ("web.2025.pcap", "web.2025"),
        ("web", "web"),
        (".pcap", ".pcap"),
        ("a\nb.cap", "a_b"),
    ],
)
def test_the_stem_of_a_capture_is_its_name_without_endings(name: str, stem: str) -> None:
    assert stem_of(Path("/some/where") / name) == stem
