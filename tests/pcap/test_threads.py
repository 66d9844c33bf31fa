"""Calls made behind their caller: in order, and what one raises is not lost."""

from __future__ import annotations

import threading

import pytest

from ghost.pcap.kernels.background_thread import BackgroundCalls


def test_calls_are_made_in_their_order() -> None:
    made: list[int] = []
    behind = BackgroundCalls(made.append)
    for number in range(50):
        behind(number)
    behind.finish()
    assert made == list(range(50))


@pytest.mark.parametrize("error", [KeyError, MemoryError, SystemExit, KeyboardInterrupt])
def test_what_the_last_call_raises_is_raised_when_all_is_done(error: type[BaseException]) -> None:
    def fail(number: int) -> None:
        if number == 2:
            raise error

    behind = BackgroundCalls(fail)
    for number in range(3):
        behind(number)
    with pytest.raises(error):
        behind.finish()
    behind.abandon()


def test_what_a_call_raised_stops_its_caller_before_the_end() -> None:
    def fail(number: int) -> None:
        raise ValueError(number)

    behind = BackgroundCalls(fail)

    def call_often() -> None:
        for number in range(100):
            behind(number)

    with pytest.raises(ValueError, match="0"):
        call_often()
    behind.abandon()


def test_calls_that_have_not_begun_are_forgotten() -> None:
    begun, go_on = threading.Event(), threading.Event()
    made: list[int] = []

    def wait(number: int) -> None:
        begun.set()
        go_on.wait(10)
        made.append(number)

    behind = BackgroundCalls(wait)
    for number in range(3):
        behind(number)
    assert begun.wait(10)
    threading.Timer(0.05, go_on.set).start()
    behind.abandon()
    assert made == [0]
