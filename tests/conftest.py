"""Skips what needs an absent program, fails a CI run that skipped anything without a written reason, lets no test be
named after the moment it was collected in, and gives Ctrl-C its usual effect where the parent ignores it."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from tests.exhaustive import EXHAUSTIVE, examples

HERE = Path(__file__).parent
SHARED_CAPTURES = HERE.parent.parent / "shared" / "data" / "pcaps"


# `make test` tries the same examples each time; what a random run finds is pinned with `@example`.
settings.register_profile("same", max_examples=examples(100), derandomize=True, database=None, deadline=None)
settings.register_profile("random", max_examples=examples(100), deadline=None, print_blob=True)
settings.load_profile("random" if EXHAUSTIVE else "same")

# What the parent ignores (`nohup`, some CI), every program that a test starts would ignore, too; what a handler
# is for has its default effect there.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


@pytest.fixture(scope="session")
def shared_captures() -> Path:
    """Real captures with the totals tshark counts in them; they are not part of the product."""
    if not SHARED_CAPTURES.is_dir():
        pytest.skip("no shared captures beside this checkout")
    return SHARED_CAPTURES


GZIP = r"\x1f\x8b"


# Begun first, so that no worker is left alone with one of them at the end.
LONGEST = (
    "test_conformance.py",
    "test_end_to_end.py",
    "test_investigation_by_real_az.py",
    "test_investigations.py",
    "test_protocol_server.py",
    "test_whole_capture.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in LONGEST)
    for item in items:
        if GZIP in item.nodeid:  # it holds the second of its making (RFC 1952): each worker would find another test
            raise pytest.UsageError(f"{item.nodeid}: gzip data as a parameter needs an id that says what it is")
        for marker in item.iter_markers("needs"):
            absent = [program for program in marker.args if shutil.which(program) is None]
            if absent:
                item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(absent)}"))


def _allowed_skips() -> set[str]:
    """Test ids from `allowed_skips.txt`: one a line, ` # ` and the reason behind it."""
    lines = (HERE / "allowed_skips.txt").read_text(encoding="utf-8").splitlines()
    return {line.split(" # ")[0].strip() for line in lines if line.strip() and not line.startswith("#")}


_forbidden_skips: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and os.environ.get("CI") and report.nodeid not in _allowed_skips():
        _forbidden_skips.append(f"{report.nodeid}: {report.longrepr[2] if isinstance(report.longrepr, tuple) else ''}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _forbidden_skips and not hasattr(session.config, "workerinput"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter) -> None:
    if _forbidden_skips:
        terminalreporter.section("skipped in CI without a reason in tests/allowed_skips.txt", red=True)
        for line in _forbidden_skips:
            terminalreporter.write_line(line)
