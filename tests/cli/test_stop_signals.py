"""Ctrl-C and its kin end the program once, wherever they come."""

from __future__ import annotations

import atexit
import signal
import sys
import time

import pytest

import ghost.cli
from ghost.cli.stop_signals import Interrupts

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


@pytest.fixture(autouse=True)
def signals_as_before(monkeypatch):
    before = {number: signal.getsignal(number) for number in SIGNALS}
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.setattr(atexit, "register", lambda _: None)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS[:3])
def test_a_second_signal_in_quick_succession_does_not_cut_off_what_the_first_saves(number):
    interrupts = Interrupts()
    interrupts.take()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    signal.raise_signal(number)
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_that_a_finalizer_swallows_is_raised_again(capsys):
    class Swallows:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    Interrupts().take()
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        swallows = Swallows()
        del swallows
        time.sleep(5)
    assert capsys.readouterr().err == ""


def test_an_interrupt_at_any_place_of_the_program_ends_with_one_line_and_130(monkeypatch, capsys):
    def press(*_args, **_kwargs):
        signal.raise_signal(signal.SIGINT)

    for place in ("_open_closed_streams", "_run"):  # among the imports, and anywhere else
        with monkeypatch.context() as patched:
            patched.setattr(ghost.cli, place, press)
            assert ghost.cli.main(["--help"]) == 130
        assert capsys.readouterr().err == "ghost: interrupted.\n"
    with monkeypatch.context() as patched:
        patched.setattr("ghost.cli.typer_app.app", lambda **_: 130)  # what Typer makes of one in a command
        assert ghost.cli.main([]) == 130
    assert capsys.readouterr().err == "ghost: interrupted.\n"
