"""The reward service seen from a trainer's own environment: `Scores` over HTTP.

    reward = RewardClient("http://127.0.0.1:8000")
    outcomes = await reward.score(items)

Standard library only, and picklable: a trainer may hand it to another process, and its pins need
not be ours. It decides nothing: what an outcome means is said by the service (service.py).
"""

import asyncio
import json
import random
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, cast

from harness.errors import PodiumError, TooManyMasked, UserError
from harness.rewards.items import RewardItem, RewardOutcome, Status
from harness.rewards.tally import Tally
from harness.rewards.wire import MASKED, items_json, outcomes_from

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""No proxy: the service is on this machine or in this cluster, whatever `http_proxy` says."""

MOST_UNREACHED, UNREACHED_AFTER = 0.3, 32
"""The share of items that may find no service, and how many items before it means anything: a
service that is gone cannot say itself that too many have no value."""

LONGEST_WAIT_S = 30.0
"""Seconds between two tries, at most."""


class ServiceRefusal(UserError, ValueError):
    """The service refused a request as wrong; it would refuse it again."""


class _Unreachable(PodiumError):
    """No reply, or none that can be read: another try may get one."""


@dataclass(frozen=True, slots=True)
class RewardClient:
    """Rewards from a `podium reward serve` somewhere else; same values, same outcomes."""

    url: str
    """Where it listens, e.g. `http://127.0.0.1:8000`."""
    timeout_s: float = 600.0
    """Seconds to wait for the reply to a whole batch; the service has a deadline per item."""
    retries: int = 5
    """Tries after the first; before them some random part of 1, 2, 4, ... seconds passes."""
    token: str = field(default="", repr=False)
    """What the service's `--token-file` holds; empty where it asks for none."""

    _tally: Tally = field(
        default_factory=lambda: Tally(MOST_UNREACHED, UNREACHED_AFTER),
        init=False,
        repr=False,
        compare=False,
    )

    def __post_init__(self) -> None:
        """Refuse what could never be asked."""
        if not self.url.startswith(("http://", "https://")):
            raise ServiceRefusal(f"A reward service's URL begins with http://, not {self.url!r}.")
        if self.timeout_s <= 0 or self.retries < 0:
            raise ServiceRefusal(
                "A reward client needs timeout_s above 0 and retries of 0 or more."
            )

    async def score(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Return one outcome per item, in order.

        A service that cannot be reached gives outcomes without a value (`scorer_error`), not an
        exception, until they are too large a share of the latest: TooManyMasked, as when it has
        stopped for good. ValueError (a UserError) has its own sentence for items it refuses.
        """
        if not items:
            return []
        body = json.dumps(items_json(items)).encode()
        try:
            outcomes = await self._tried(body)
        except _Unreachable as error:
            reason = f"The reward service at {self.url} gave no rewards: {error}"
            outcomes = [RewardOutcome(None, Status.SCORER_ERROR, _UNKNOWN, reason=reason)] * len(
                items
            )
            self._noted(outcomes)
            self._tally.refuse()
            return outcomes
        if len(outcomes) != len(items):
            raise ServiceRefusal(
                f"{self.url} sent {len(outcomes)} outcomes for {len(items)} items."
            )
        self._noted([_REACHED] * len(items))
        return outcomes

    def _noted(self, outcomes: Sequence[RewardOutcome]) -> None:
        for outcome in outcomes:
            self._tally.note(outcome)

    async def _tried(self, body: bytes) -> list[RewardOutcome]:
        for tried in range(self.retries + 1):
            try:
                return await asyncio.to_thread(self._posted, body)
            except _Unreachable:
                if tried == self.retries:
                    raise
                await asyncio.sleep(min(2.0**tried, LONGEST_WAIT_S) * random.uniform(0.5, 1.0))
        raise AssertionError("the last try returns or raises")

    def _posted(self, body: bytes) -> list[RewardOutcome]:
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(f"{self.url.rstrip('/')}/score", body, headers)
        try:
            with _DIRECT.open(request, timeout=self.timeout_s) as reply:
                return outcomes_from(_object(reply.read()))
        except urllib.error.HTTPError as error:
            raise _refusal(error.code, error.read()) from None
        except (OSError, HTTPException) as error:
            raise _Unreachable(f"{type(error).__name__}: {error}.") from None
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise _Unreachable(f"its reply cannot be read ({type(error).__name__}).") from None


_UNKNOWN: Mapping[str, float | None] = {"correct": None, "parsed": None}

_REACHED = RewardOutcome(0.0, Status.SCORED)
"""Stands for any outcome of a service that was there: it counts its own."""


def _refusal(code: int, body: bytes) -> PodiumError:
    """Return what an HTTP status other than 200 means, with the service's own sentence."""
    try:
        said = _object(body)
    except ValueError:
        said = {}
    sentence = str(said.get("error") or f"it answered with status {code}.")
    if said.get("kind") == MASKED:
        return TooManyMasked(sentence)
    if 400 <= code < 500:
        return ServiceRefusal(sentence)
    return _Unreachable(sentence)


def _object(body: bytes) -> dict[str, Any]:
    read = json.loads(body)
    if not isinstance(read, dict):
        raise ValueError("no JSON object")
    return cast(dict[str, Any], read)
