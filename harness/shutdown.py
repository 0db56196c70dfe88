"""How commands that call models are stopped: by Ctrl-C, SIGTERM and SIGHUP alike.

The first signal stops new calls and waits for the calls in flight, which are billed even if their
replies are not read. A second signal, or the end of the grace period, cancels these calls; a third
signal ends the process. A signal that was ignored at the start, as `nohup` ignores SIGHUP, stays
ignored.
"""

import os
import signal
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal

import anyio

from podium.harness.context import current, run_context
from podium.harness.text import pluralise

GRACE_S = 20.0
"""Seconds to wait for calls in flight. SLURM kills a job 30 s after its SIGTERM."""
WAITING = (
    "\npodium: {}: no new calls start; waiting up to {:g} s for {}. A second signal ends "
    "the process at once.\n"
)
CUT_OFF = (
    "podium: no longer waiting for {}: they may be billed; `podium audit` shows their maximum "
    "cost.\n"
)


class Interrupted(KeyboardInterrupt):
    """A command was stopped by a signal."""

    def __init__(self, number: int) -> None:
        """Store the number of the signal that stopped the command."""
        super().__init__()
        self.number = number


@dataclass(slots=True)
class Shutdown:
    """Handles the signals that stop a command; each process has one, in its main thread."""

    grace_s: float = GRACE_S
    number: int | None = None
    """Number of the first signal received; None before any."""
    _state: Literal["running", "waiting", "cancelled"] = "running"
    _in_flight: set[int] = field(default_factory=set[int])
    _interrupt: Any = None
    """The event loop's own SIGINT handler, while `_handle` replaces it."""
    _timer: threading.Timer | None = None
    _expired: bool = False
    _before: dict[int, Any] = field(default_factory=dict[int, Any])
    """Signal -> its handler when the command began."""

    async def admit(self, call: object) -> None:
        """Count a call that is about to be sent; if the command was stopped, wait for ever."""
        # A call that is not admitted waits to be cancelled with its sample, and is not recorded.
        if not _in_main_thread():  # signals do not reach loops in other threads
            return
        if self._state != "running":
            await anyio.sleep_forever()
        if not self._in_flight:
            self._take_over()
        self._in_flight.add(id(call))

    def landed(self, call: object) -> None:
        """Remove a call from the calls in flight, after its outcome has been recorded."""
        if id(call) not in self._in_flight:
            return
        self._in_flight.discard(id(call))
        if self._in_flight:
            return
        if self._state == "waiting":
            self._cancel()
        elif self._state == "running" and not self._ignores(signal.SIGINT):
            self._hand_back()

    @contextmanager
    def handlers(self) -> Generator[None]:
        """Handle SIGTERM and SIGHUP like Ctrl-C for the duration of the `with` block."""
        self._before = {number: signal.getsignal(number) for number in ALIKE}
        # Any other handler belongs to a calling program and is kept.
        ours = [number for number in ALIKE[1:] if self._before[number] is signal.SIG_DFL]
        for number in ours:
            signal.signal(number, self._handle)
        try:
            yield
        finally:
            self._stop_timer()
            self._hand_back()
            for number in ours:
                signal.signal(number, self._before[number])

    @contextmanager
    def event_loop(self) -> Generator[None]:
        """Make an event loop inside the block cancellable, even if Ctrl-C is ignored."""
        # asyncio's loop handles SIGINT only if its handler is the default one. `_handle` replaces
        # it from the first call on, and ignores SIGINT again.
        ignored = _in_main_thread() and self._ignores(signal.SIGINT)
        if ignored:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        finally:
            if ignored:
                self._interrupt = None
                signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _ignores(self, number: int) -> bool:
        return self._before.get(number) is signal.SIG_IGN

    def _take_over(self) -> None:
        handler = signal.getsignal(signal.SIGINT)
        usual = self._before.get(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)
        if usual and callable(handler) and handler != self._handle:
            self._interrupt = handler
            signal.signal(signal.SIGINT, self._handle)

    def _hand_back(self) -> None:
        if self._interrupt is not None:
            signal.signal(signal.SIGINT, self._interrupt)
            self._interrupt = None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._expired:  # the timer's own signal
            self._expired = False
            if self._state == "waiting":
                self._cut_off()
            return
        if self._ignores(number):
            return
        self.number = self.number or number
        if self._state == "cancelled":
            os._exit(128 + number)
        if self._state == "waiting":
            self._cut_off()
        elif self._in_flight and self.grace_s > 0:
            self._wait(number)
        else:
            self._cancel()

    def _wait(self, number: int) -> None:
        self._state = "waiting"
        name, calls = signal.Signals(number).name, pluralise(len(self._in_flight), "call")
        _write(WAITING.format(name, self.grace_s, f"{calls} in flight (--grace)"))
        self._timer = threading.Timer(self.grace_s, self._expire, (number,))
        self._timer.daemon = True
        self._timer.start()

    def _expire(self, number: int) -> None:
        self._expired = True
        signal.pthread_kill(threading.main_thread().ident or 0, number)

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()

    def _cut_off(self) -> None:
        _write(CUT_OFF.format(f"{pluralise(len(self._in_flight), 'call')} in flight"))
        self._cancel()

    def _cancel(self) -> None:
        """Cancel the command as Ctrl-C does, so that logs and journals are closed properly."""
        self._state = "cancelled"
        self._stop_timer()
        handler: Any = self._interrupt or signal.getsignal(signal.SIGINT)
        if not callable(handler) or handler == signal.default_int_handler:
            raise Interrupted(self.number or signal.SIGINT)
        handler(signal.SIGINT, None)


ALIKE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that stop a command gracefully."""


def current_shutdown() -> Shutdown | None:
    """Return the current command's `Shutdown`; None outside a `graceful_shutdown` block."""
    stop = current().shutdown
    return stop if isinstance(stop, Shutdown) else None


@contextmanager
def graceful_shutdown(grace_s: float = GRACE_S) -> Generator[None]:
    """Let signals stop the block gracefully; then raise `Interrupted` with the signal's number."""
    if stop := current_shutdown():
        stop.grace_s = grace_s
        yield
        return
    if not _in_main_thread():  # only the main thread may set signal handlers
        yield
        return
    stop = Shutdown(grace_s)
    with stop.handlers(), run_context(shutdown=stop):
        try:
            yield
        except KeyboardInterrupt as error:
            raise Interrupted(stop.number or signal.SIGINT) from error


@contextmanager
def cancellable() -> Generator[None]:
    """Let the signals that stop a command cancel an event loop inside the block."""
    if stop := current_shutdown():
        with stop.event_loop():
            yield
    else:
        yield


def stopping_signals() -> Sequence[int]:
    """Return the signals that stop a service or a training: not SIGHUP if `nohup` ignores it."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return ALIKE[:2] if ignored else ALIKE


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _write(line: str) -> None:
    # No `print`: the signal may have interrupted a `print`.
    os.write(2, line.encode())
