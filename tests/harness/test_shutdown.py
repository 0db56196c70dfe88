"""Ctrl-C, SIGTERM and SIGHUP stop a command alike: calls in flight end, and no new one begins.

Signals go to this very process. What they do to a whole run is run/test_stopped_run.py.
"""

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import anyio
import pytest

from podium.harness.shutdown import (
    ALIKE,
    Interrupted,
    cancellable,
    current_shutdown,
    graceful_shutdown,
)

SHORT_S, LONG_S = 0.05, 60.0
NUMBERS = pytest.mark.parametrize("number", ALIKE, ids=["int", "term", "hup"])


@dataclass(slots=True)
class Calls:
    """What became of some calls, in order."""

    begun: list[str] = field(default_factory=list[str])
    ended: list[str] = field(default_factory=list[str])

    async def make(self, name: str, takes_s: float, sent: Callable[[], object] = str) -> None:
        """Make a call; `sent` is called once it is in flight."""
        stop = current_shutdown()
        assert stop
        try:
            await stop.admit(self)
            self.begun.append(name)
            sent()
            await anyio.sleep(takes_s)
            self.ended.append(name)
        finally:
            stop.landed(self)


@contextmanager
def usual_signals(**ignored: bool) -> Generator[None]:
    """Let signals do what they do by default, whatever began the tests, but for ignored ones."""
    usual = dict(zip(ALIKE, (signal.default_int_handler, *[signal.SIG_DFL] * 2), strict=True))
    usual |= {signal.Signals[name]: signal.SIG_IGN for name in ignored}
    before = {number: signal.signal(number, how) for number, how in usual.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stopped(
    calls: Calls, takes_s: float, *numbers: int, grace_s: float = LONG_S, **ignored: bool
) -> int | None:
    """Let a call be in flight when signals come, and another follow it; say which one ended it."""

    def send() -> None:
        for number in numbers:
            signal.raise_signal(number)

    async def make_both() -> None:
        await calls.make("first", takes_s, send)
        await calls.make("second", 0)

    try:
        with usual_signals(**ignored), graceful_shutdown(grace_s), cancellable():
            anyio.run(make_both)
    except Interrupted as stop:
        return stop.number
    return None


@NUMBERS
def test_a_signal_lets_the_call_in_flight_end_and_no_other_begin(
    number: int, capfd: pytest.CaptureFixture[str]
) -> None:
    calls = Calls()
    assert stopped(calls, SHORT_S, number) == number
    assert (calls.begun, calls.ended) == (["first"], ["first"])
    said = capfd.readouterr().err.strip()
    assert said.startswith(f"podium: {signal.Signals(number).name}: no new calls start")
    assert "up to 60 s for 1 call in flight (--grace)" in said
    assert "\n" not in said


@NUMBERS
def test_a_second_signal_waits_for_nobody(number: int, capfd: pytest.CaptureFixture[str]) -> None:
    calls = Calls()
    assert stopped(calls, LONG_S, number, signal.SIGTERM) == number
    assert (calls.begun, calls.ended) == (["first"], [])
    assert "no longer waiting for 1 call in flight" in capfd.readouterr().err


@NUMBERS
def test_no_call_is_waited_for_longer_than_the_grace_period(number: int) -> None:
    calls = Calls()
    assert stopped(calls, LONG_S, number, grace_s=SHORT_S) == number
    assert (calls.begun, calls.ended) == (["first"], [])


@NUMBERS
def test_a_grace_period_of_nothing_waits_for_nobody(number: int) -> None:
    calls = Calls()
    assert stopped(calls, LONG_S, number, grace_s=0) == number
    assert calls.ended == []


def test_what_was_ignored_at_the_start_stays_ignored() -> None:
    calls = Calls()
    ignored = {"SIGINT": True, "SIGHUP": True}
    assert stopped(calls, SHORT_S, signal.SIGHUP, signal.SIGINT, **ignored) is None
    assert calls.ended == ["first", "second"]


def test_a_command_that_ignores_ctrl_c_is_stopped_by_sigterm_in_good_order() -> None:
    calls = Calls()
    assert stopped(calls, SHORT_S, signal.SIGTERM, SIGINT=True) == signal.SIGTERM
    assert (calls.begun, calls.ended) == (["first"], ["first"])


@NUMBERS
def test_a_signal_while_nothing_is_in_flight_ends_at_once(number: int) -> None:
    with usual_signals(), pytest.raises(Interrupted) as stop, graceful_shutdown():
        signal.raise_signal(number)
    assert stop.value.number == number


@NUMBERS
def test_a_signal_between_two_calls_cancels_the_event_loop(number: int) -> None:
    cleaned: list[str] = []

    async def make_none() -> None:
        calls = Calls()
        await calls.make("first", 0)
        try:
            signal.raise_signal(number)
            await anyio.sleep(LONG_S)
        finally:
            cleaned.append("in good order")

    with usual_signals(), pytest.raises(Interrupted), graceful_shutdown(), cancellable():
        anyio.run(make_none)
    assert cleaned == ["in good order"]


def test_signals_do_what_they_did_once_the_command_has_ended() -> None:
    with usual_signals():
        before = [signal.getsignal(number) for number in ALIKE]
        with graceful_shutdown(), cancellable():
            anyio.run(partial(Calls().make, "first", 0))
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert [signal.getsignal(number) for number in ALIKE] == before


def test_a_program_that_handles_a_signal_itself_goes_on_doing_so() -> None:
    heard: list[int] = []
    with usual_signals():
        signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
        with graceful_shutdown():
            signal.raise_signal(signal.SIGTERM)
    assert heard == [signal.SIGTERM]
