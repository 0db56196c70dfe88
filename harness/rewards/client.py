"""The reward service seen from a trainer's own environment, and what both sides say as JSON.

    reward = RewardClient("http://127.0.0.1:8000")
    outcomes = await reward.score(items)

Standard library only: a trainer's pins need not be ours.
"""

import asyncio
import json
import random
import re
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal
from http.client import HTTPException
from typing import Any, cast

from harness.errors import PodiumError, TooManyMasked, UserError
from harness.records import Usage
from harness.rewards.outcome import PlanTrace, RewardCounter, RewardItem, RewardOutcome, Status

MASKED = "too_many_masked"
"""The `kind` of the 503 that says: too large a share has no value, and this will not pass."""
BUSY = "unscored"  # the `kind` of a 503 that says: this item has no value; another try may

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""No proxy: the service is on this machine or in this cluster, whatever `http_proxy` says."""

MOST_UNREACHED, UNREACHED_AFTER = 0.3, 32
"""The share of items that may find no service, and how many items before it means anything: a
service that is gone cannot say itself that too many have no value."""

LONGEST_WAIT_S = 30.0  # seconds between two tries, at most


class NoValue(PodiumError):
    """An item has no value, and its trainer has no word for that: status 503, for a retry."""


class ServiceRefusal(UserError, ValueError):
    """The service refused a request as wrong; it would refuse it again."""


class BadBody(UserError):
    """What a trainer sent cannot be read as what it should be: one sentence."""


class _Unreachable(PodiumError):
    """No reply, or none that can be read: another try may get one."""


@dataclass(frozen=True, slots=True)
class RewardClient:
    """Rewards from a `podium reward serve` somewhere else; same values, same outcomes."""

    url: str
    timeout_s: float = 600.0
    """Seconds to wait for the reply to a whole batch; the service has a deadline per item."""
    retries: int = 5
    """Tries after the first; before them some random part of 1, 2, 4, ... seconds passes."""
    token: str = field(default="", repr=False)
    """What the service's `--token-file` holds; empty where it asks for none."""

    _counter: RewardCounter = field(
        default_factory=lambda: RewardCounter(MOST_UNREACHED, UNREACHED_AFTER),
        init=False,
        repr=False,
        compare=False,
    )

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ServiceRefusal(f"A reward service's URL begins with http://, not {self.url!r}.")
        if self.timeout_s <= 0 or self.retries < 0:
            said = "A reward client needs timeout_s above 0 and retries of 0 or more."
            raise ServiceRefusal(said)

    async def score(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Return one outcome per item, in order; ServiceRefusal for items that it refuses.

        A service that cannot be reached gives outcomes without a value (`scorer_error`), not an
        exception, until they are too large a share of the latest: TooManyMasked, as when it stops.
        """
        if not items:
            return []
        try:
            outcomes = await self._tried(json.dumps(items_json(items)).encode())
        except _Unreachable as error:
            reason = f"The reward service at {self.url} gave no rewards: {error}"
            lost = RewardOutcome(None, Status.SCORER_ERROR, _UNKNOWN, reason=reason)
            for _ in items:
                self._counter.note(lost)
            self._counter.refuse()
            return [lost] * len(items)
        if len(outcomes) != len(items):
            said = f"{self.url} sent {len(outcomes)} outcomes for {len(items)} items."
            raise ServiceRefusal(said)
        for _ in items:  # whatever they came to: a service that is there counts its own
            self._counter.note(RewardOutcome(0.0, Status.SCORED))
        return outcomes

    async def _tried(self, body: bytes) -> list[RewardOutcome]:
        for tried in range(self.retries):
            try:
                return await asyncio.to_thread(self._posted, body)
            except _Unreachable:
                await asyncio.sleep(min(2.0**tried, LONGEST_WAIT_S) * random.uniform(0.5, 1.0))
        return await asyncio.to_thread(self._posted, body)

    def _posted(self, body: bytes) -> list[RewardOutcome]:
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(f"{self.url.rstrip('/')}/score", body, headers)
        try:
            with _DIRECT.open(request, timeout=self.timeout_s) as reply:
                return outcomes_from(_json_object(reply.read()))
        except urllib.error.HTTPError as error:
            raise _status_error(error.code, error.read()) from None
        except (OSError, HTTPException) as error:
            raise _Unreachable(f"{type(error).__name__}: {error}.") from None
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise _Unreachable(f"its reply cannot be read ({type(error).__name__}).") from None


_UNKNOWN: Mapping[str, float | None] = {"correct": None, "parsed": None}


def _status_error(code: int, body: bytes) -> PodiumError:
    """Return what an HTTP status other than 200 means, with the service's own sentence."""
    try:
        said = _json_object(body)
    except ValueError:
        said = {}
    sentence = str(said.get("error") or f"it answered with status {code}.")
    if said.get("kind") == MASKED:
        return TooManyMasked(sentence)
    return ServiceRefusal(sentence) if 400 <= code < 500 else _Unreachable(sentence)


def _json_object(body: bytes) -> dict[str, Any]:
    read = json.loads(body)
    if not isinstance(read, dict):
        raise ValueError("no JSON object")
    return cast(dict[str, Any], read)


def items_json(items: Sequence[RewardItem]) -> dict[str, Any]:
    """Return the body of a request to score items; a plain item has no key of a workflow's."""
    optional = ("workers", "first")
    rows = [asdict(item) for item in items]
    return {"items": [{k: v for k, v in row.items() if v or k not in optional} for row in rows]}


def outcomes_json(outcomes: Sequence[RewardOutcome]) -> dict[str, Any]:
    """Return the body of the reply to it; dollars are a string, for they are exact."""
    return {"outcomes": [_outcome_json(outcome) for outcome in outcomes]}


def _outcome_json(outcome: RewardOutcome) -> dict[str, Any]:
    return {
        **{one.name: getattr(outcome, one.name) for one in fields(outcome)},
        "status": outcome.status.value,
        "components": dict(outcome.components),
        "usage": outcome.usage and asdict(outcome.usage),
        "usd": None if outcome.usd is None else str(outcome.usd),
        "work": outcome.work and asdict(outcome.work),
    }


def outcomes_from(body: Mapping[str, Any]) -> list[RewardOutcome]:
    """Return the outcomes of a reply; KeyError, TypeError or ValueError where it is none."""
    return [_outcome_from(cast(Mapping[str, Any], row)) for row in body["outcomes"]]


def _outcome_from(row: Mapping[str, Any]) -> RewardOutcome:
    """Return an outcome; services of earlier versions say nothing of `grading_s` and `work`."""
    value, usd, work = row["value"], row["usd"], row.get("work")
    parts = cast(Mapping[str, Any], row["components"])
    if work is not None:
        workers = tuple(str(name) for name in work["workers"])
        work = PlanTrace(workers, str(work["plan"]), int(work["cached"]), work["leaked"])
    return RewardOutcome(
        value=None if value is None else float(value),
        status=Status(row["status"]),
        components={k: None if part is None else float(part) for k, part in parts.items()},
        usage=None if row["usage"] is None else Usage(**row["usage"]),
        usd=None if usd is None else Decimal(usd),
        calls=int(row["calls"]),
        latency_s=float(row["latency_s"]),
        grading_s=float(row.get("grading_s", 0.0)),
        shared=bool(row["shared"]),
        reason=str(row["reason"]),
        work=work,
    )


def item_of(label: str, completion: str) -> RewardItem:
    """Return the item that a label names; ids may hold slashes, suite names hold none.

    >>> item_of("humaneval/HumanEval/0", "...").question
    'HumanEval/0'
    """
    suite, slash, question = label.partition("/")
    if not slash or not suite or not question:
        raise BadBody(f"A label is SUITE/QUESTION, as in aime25/aime25-I-1, not {label!r:.80}.")
    return RewardItem(suite, question, completion)


_ENDINGS = re.compile(
    r"(?:\s*(?:<\|[^|<>\s]{1,40}\|>|<\uff5c[^\uff5c<>]{1,40}\uff5c>|</s>|<eos>|<pad>|<end_of_turn>))+"
    r"\s*\Z"
)
"""Special tokens at the very end: OpenRLHF decodes with them, and no one meant to say them."""

_TAIL_LENGTH = 200
"""So many last characters are looked at: of a prompt whose beginning was cut off, of a reply."""


def completion_of(query: str, prompt: str) -> str:
    """Return what the policy said: the query without its prompt and without ending tokens.

    OpenRLHF cuts a prompt that is too long at its left. BadBody where the prompt is not there: a
    prompt that is graded along could hold the answer's form.

    >>> completion_of("<s>Q: 2+2?A: 4</s>", "<s>Q: 2+2?A:")
    ' 4'
    """
    if not query.startswith(prompt):
        tail = prompt[-_TAIL_LENGTH:]
        at = query.find(tail) + len(tail)
        if not tail or at < len(tail) or not prompt.endswith(query[:at]):
            raise BadBody(
                "A query does not begin with its prompt, so nobody can tell what the policy said: "
                "send prompts as the tokenizer decodes them."
            )
        prompt = query[:at]
    said = query[len(prompt) :]
    return said[:-_TAIL_LENGTH] + _ENDINGS.sub("", said[-_TAIL_LENGTH:])
