"""Lines of JSON, private, without secrets, bounded, and never in the way of who writes them."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.server import logs
from ghost.server.logs import logger, logging_to, redacted_line, request_id
from tests.exhaustive import examples

TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
_log = logger("ghost.test")


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_is_one_json_object_that_its_owner_alone_reads(tmp_path: Path) -> None:
    with logging_to(tmp_path / "logs") as path:
        token = request_id.set("abc")
        _log.info("cycle ended\nreally", seconds=0.5, ids=["a", "b"], 名="ä")
        request_id.reset(token)
        logging.getLogger("ghost.mind").warning("a plain %s", "one")
    first, second = lines(path)
    assert first["event"] == "cycle ended\nreally"
    assert (first["seconds"], first["ids"], first["名"], first["request_id"]) == (0.5, ["a", "b"], "ä", "abc")
    assert (first["level"], first["logger"]) == ("info", "ghost.test")
    assert (second["event"], second["level"], second["logger"]) == ("a plain one", "warning", "ghost.mind")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_an_exception_is_structured_and_tells_no_local_variable(tmp_path: Path) -> None:
    def fails(hidden: str) -> None:
        raise ValueError(f"no {len(hidden)}")

    with logging_to(tmp_path) as path:
        for write in (_log.error, logging.getLogger("ghost.mind").error):
            try:
                fails("do-not-show-this-local")
            except ValueError as error:
                write("failed", exc_info=error)
    for line in lines(path):
        (exception,) = line["exception"]
        assert (exception["exc_type"], exception["exc_value"]) == ("ValueError", "no 22")
        assert exception["frames"][-1]["name"] == "fails"
    assert "do-not-show" not in path.read_text()


@pytest.mark.parametrize(
    "fields",
    [
        {"event": f"token {TOKEN}"},
        {"event": "x", "header": f"Authorization: Bearer {TOKEN}"},
        {"event": "x", "deep": {"list": [{"more": TOKEN}]}},
        {"event": "x", "password": TOKEN},
        {"event": "x", "nested": {"client_secret": TOKEN}},
        {"event": "x", TOKEN: 1},
        {"event": f"postgresql://ghost:{TOKEN}@127.0.0.1/x"},
        {"event": "x", "cut": "a " * 4000 + TOKEN},
    ],
)
def test_no_secret_reaches_the_file(tmp_path: Path, fields: dict[str, object]) -> None:
    with logging_to(tmp_path) as path:
        _log.info(**fields)
    assert "eyJ" not in path.read_text()
    assert len(lines(path)) == 1


def test_a_secret_that_only_its_name_gives_away_is_taken() -> None:
    assert "hunter2-hunter2" not in redacted_line({"event": "x", "password": "hunter2-hunter2"})
    assert "hunter2-hunter2" not in redacted_line({"event": "x", "a": {"api_key": "hunter2-hunter2"}})


@given(
    st.dictionaries(
        st.text(max_size=20),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers() | st.text(st.characters()),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=8,
        ),
        max_size=5,
    )
)
@settings(max_examples=examples(150))
def test_whatever_is_logged_is_one_line_of_json(fields: dict[str, object]) -> None:
    line = redacted_line(fields)
    assert "\n" not in line
    assert isinstance(json.loads(line), dict)


def test_a_long_text_is_cut(tmp_path: Path) -> None:
    with logging_to(tmp_path) as path:
        _log.info("x", text="ab " * 100_000, many=list(range(1_000)))
    assert path.stat().st_size < 2 * logs.MAX_TEXT
    assert len(lines(path)[0]["many"]) == logs.MAX_ITEMS


def test_files_are_rotated_by_size_and_bounded_in_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_BYTES", 2_000)
    monkeypatch.setattr(logs, "KEPT_FILES", 2)
    with logging_to(tmp_path):
        for number in range(200):
            _log.info("a line", number=number)
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == ["ghost.log", "ghost.log.1", "ghost.log.2"]
    assert all(path.stat().st_size <= 2_000 and path.stat().st_mode & 0o777 == 0o600 for path in files)
    newest = lines(files[0])[-1]
    assert newest["number"] == 199


def test_the_log_is_not_written_through_a_link(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "ghost.log").symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"), logging_to(tmp_path / "logs"):
        _log.info("x")
    assert target.read_text() == "mine"


def test_who_writes_never_waits_and_what_was_dropped_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "WAITING_LINES", 3)
    held, writing = threading.Event(), threading.Event()
    format_line = logs.redacted_line

    def slow(fields: dict[str, object]) -> str:
        writing.set()
        held.wait(10)
        return format_line(fields)

    monkeypatch.setattr(logs, "redacted_line", slow)
    with logging_to(tmp_path) as path:
        _log.info("first")
        assert writing.wait(10)
        for number in range(10):
            _log.info("more", number=number)
        held.set()
        while handler_queue().qsize():
            pass
        _log.info("last")
    written = lines(path)
    assert [line.get("number") for line in written] == [None, 0, 1, 2, None]
    assert written[-1]["dropped_before"] == 7


def handler_queue():
    return logging.getLogger("ghost").handlers[0].queue


def test_logging_is_as_it_was_when_it_ends(tmp_path: Path) -> None:
    before = [(logging.getLogger(name).handlers[:], logging.getLogger(name).level) for name in logs.LOGGERS]
    with logging_to(tmp_path):
        pass
    assert before == [(logging.getLogger(name).handlers[:], logging.getLogger(name).level) for name in logs.LOGGERS]
