"""How long a call waits before its next attempt: as its provider asks, up to a limit; printed.

Inspect's own backoff ignores what a provider asks for. It stays for failures that ask for nothing,
or for what cannot be obeyed.
"""

import math
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from inspect_ai._util.http import parse_retry_after
from inspect_ai.model import Model
from tenacity import RetryCallState, wait_exponential_jitter
from tenacity.wait import WaitBaseT, wait_base

from podium.harness.ledger.hooks import kind_and_status
from podium.harness.ledger.recorder import call_in_flight
from podium.harness.pool_config import provider_of

LONGEST_S = 120.0
"""The longest wait that is obeyed. Asked for more, a call waits this long and tries again."""
SHORTEST_S = 0.02
"""A shorter wait is none, and retries without one would be a loop."""
ABSURD_S = 86_400.0
"""A longer wait than a day is taken for a mistake, such as a time of day in seconds."""
SPREAD = 0.1
"""Part of a wait that is added at random, below the limit: calls that were refused together do
not all come back at once."""


def requested_wait(error: BaseException) -> float | None:
    """Return how many seconds a failure's headers or body ask to wait; None without a usable wait.

    `retry-after-ms` is more exact than `retry-after` (seconds, or a date), which comes next, then
    what Google says in the body.
    """
    waits = (seconds for seconds in _waits(error) if seconds is not None)
    usable = (seconds for seconds in waits if SHORTEST_S <= seconds <= ABSURD_S)
    return next(usable, None)


def _waits(error: BaseException | None) -> Iterator[float | None]:
    while error is not None:
        response: Any = getattr(error, "response", None)
        headers = _object(getattr(response, "headers", None) or getattr(error, "headers", None))
        if headers:
            named = {name.lower(): str(value) for name, value in headers.items()}
            yield _milliseconds(named.get("retry-after-ms", ""))
            yield parse_retry_after({"retry-after": named.get("retry-after", "")})
        yield from (parse_retry_after({"retry-after": text}) for text in _delays(error))
        error = error.__cause__


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _milliseconds(text: str) -> float | None:
    try:
        return float(text) / 1000
    except ValueError:
        return None


def _delays(error: BaseException) -> Iterator[str]:
    """Yield the delays of Google's `RetryInfo`, e.g. `34s`."""
    body = _object(getattr(error, "details", None))
    details: object = _object(body.get("error", body)).get("details")
    for detail in cast("list[object]", details) if isinstance(details, list) else ():
        if isinstance(delay := _object(detail).get("retryDelay"), str):
            yield delay


@dataclass(slots=True)
class RetryWait(wait_base):
    """How long a model's call waits before its next attempt."""

    who: str
    backoff: WaitBaseT
    """For failures that ask for nothing."""
    clock: Callable[[], float] = time.monotonic
    printed_until: float = -math.inf
    """Until when a printed wait lasts: others of that time are not printed."""

    def __call__(self, retry_state: RetryCallState) -> float:
        """Return the seconds to wait."""
        outcome = retry_state.outcome
        error = outcome.exception() if outcome else None
        seconds = requested_wait(error) if error else None
        call = call_in_flight()
        if call:
            call.asked_wait = ""
        if error is None:
            return self.backoff(retry_state)
        if seconds is None:
            waited = self.backoff(retry_state)
            sentence = f"{self.who}: {_failure(error)}, trying again in {_shown(waited)}"
        else:
            waited = min(seconds * (1 + SPREAD * random.random()), LONGEST_S)
            sentence = self._sentence(seconds, kind_and_status(error)[1])
        if call and self.clock() >= self.printed_until:
            self.printed_until = self.clock() + waited
            call.asked_wait = sentence
        return waited

    def _sentence(self, seconds: float, status: int | None) -> str:
        reason = f" ({status})" if status else ""
        asked = f"{self.who}: asked to wait {_shown(seconds)}{reason}"
        if seconds > LONGEST_S:
            asked += f", waiting {_shown(LONGEST_S)}, the longest wait"
        return f"{asked}; trying again"


def _failure(error: BaseException) -> str:
    """Return in a few words how an attempt failed: its HTTP status, else what kind it was."""
    kind, status = kind_and_status(error)
    if status:
        return f"HTTP {status}"
    if "Timeout" in kind:
        return "no reply in time"
    return "connection error" if "Connect" in kind else kind


def _shown(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def obey_waits(model: Model) -> Model:
    """Let a model wait as long as its provider asks before it tries again; the same model."""
    # Inspect's own wait, which has no name, unless the provider has another.
    backoff = model.api.retry_wait() or wait_exponential_jitter(initial=3, max=30 * 60, jitter=3)
    wait = RetryWait(provider_of(str(model)), backoff)
    cast(Any, model.api).retry_wait = lambda: wait
    return model
