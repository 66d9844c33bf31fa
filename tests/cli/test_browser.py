"""A report is shown where there is a display, and its place is said where there is none."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path

import pytest

from ghost.cli.browser import has_display, open_page


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Addresses that a browser was asked for; it says that it opened them."""
    asked: list[str] = []

    def browser(address: str) -> bool:
        asked.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", browser)
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    return asked


def test_without_a_display_no_browser_is_started_and_the_address_is_said(
    opened: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not has_display()
    open_page(tmp_path / "a b\x1b[2J_report.html")
    assert opened == []
    said = capsys.readouterr().err
    assert said == f"no display here: open {tmp_path.as_uri()}/a%20b%1B%5B2J_report.html in a browser\n"


@pytest.mark.parametrize("name", ["DISPLAY", "WAYLAND_DISPLAY"])
def test_with_a_display_the_page_is_opened_as_a_file(
    name: str, opened: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, ":0")
    open_page(tmp_path / "report.html")
    assert opened == [f"{tmp_path.as_uri()}/report.html"]
    assert capsys.readouterr().err == ""


def test_where_no_browser_is_installed_the_address_is_said(
    opened: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    open_page(tmp_path / "report.html")
    assert "report.html" in capsys.readouterr().err
