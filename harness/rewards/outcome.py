"""What a reward is asked and what it says: items in, outcomes out, here or over HTTP.

    reward = RewardClient("http://127.0.0.1:8000")
    outcomes = await reward.score(items)

Standard library only: it is imported in a trainer's own environment, whose pins need not be ours.
"""

import asyncio
import json
import random
import re
import urllib.error
import urllib.request
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from enum import StrEnum
from http.client import HTTPException
from threading import Lock
from typing import Any, Protocol, cast

from podium.harness.errors import PodiumError, TooManyMasked, UserError
from podium.harness.records import EMPTY, Question, Usage


class Status(StrEnum):
    """Why an outcome has its value, or none. The first three are the policy's own doing."""

    SCORED = "scored"
    INVALID_ACTION = "invalid_action"
    """The completion is no workflow, where one was wanted: valued, as the settings say."""
    POLICY_FAULT = "policy_fault"
    """A workflow that cannot be carried out, by its own making (a context too long): valued."""
    WORKER_ERROR = "worker_error"  # a worker gave no reply after its retries
    SCORER_ERROR = "scorer_error"
    """Grading failed: a sandbox is down, a disk is full, only a model could judge."""
    TIMEOUT = "timeout"
    """The item's deadline passed and what ran for it was ended (a program's own limits: graded)."""
    BUDGET = "budget"  # the money was spent before this item's turn


VALUED = (Status.SCORED, Status.INVALID_ACTION, Status.POLICY_FAULT)
"""The statuses that say something about the policy; all others have no value and are masked."""


@dataclass(frozen=True, slots=True)
class RewardItem:
    """One completion to reward, for a question that is addressed by id, never by its text."""

    suite: str
    question: str
    completion: str  # a reply to the question, or a workflow where the reward carries workflows out
    epoch: int = 1  # which epoch's form of the question was asked, in suites that vary it
    replicate: int = 0  # the k-th equal completion of a group: carried out anew, though graded once
    workers: tuple[str, ...] = ()
    """The workers that the policy was shown, in the order of their numbers; empty: the pool's."""
    first: str = ""
    """Where the policy was asked again: the id of the first round (conductor/policy.py)."""


@dataclass(frozen=True, slots=True)
class PlanTrace:
    """The workflow that was carried out for an item, for logs."""

    workers: tuple[str, ...]  # who does its steps, in order; empty where an earlier answer is kept
    plan: str = ""  # the workflow as JSON; empty where the suite's questions may not be published
    cached: int = 0  # calls that were not made, for the same reply had been paid for
    leaked: bool | None = None
    """Whether a subtask already holds the answer (splits.py); None where that is not known."""


@dataclass(frozen=True, slots=True)
class RewardOutcome:
    """What one item came to."""

    value: float | None
    """None exactly when the status is not one of `VALUED`: no statement about the policy."""
    status: Status
    components: Mapping[str, float | None] = field(default_factory=lambda: EMPTY)
    """Always the keys `correct` and `parsed`; None where unknown, never a silent 0."""
    usage: Usage | None = None
    """Worker tokens; None when a worker reported none. All zero when no worker was asked."""
    usd: Decimal | None = None  # would-be dollars; None when a call had no price
    calls: int = 0
    latency_s: float = 0.0
    grading_s: float = 0.0
    """Seconds of `latency_s` that went by until it was graded, after it was answered."""
    shared: bool = False
    reason: str = ""  # one sentence; never a question's text
    work: PlanTrace | None = None
    """None where no workflow was read, or the completion is the answer."""
    rule: str = ""  # the rule that read the reply (`podium suites SUITE --rules`), if any did


class RewardScorer(Protocol):
    """Anything that rewards: `Reward` in this process, `RewardClient` in another."""

    async def score(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Return one outcome per item, in order; UserError where one names no known question."""
        ...


@dataclass(frozen=True, slots=True)
class Effort:
    """What an item took, for values that look at more than its grade; unknown dollars are None."""

    usd: Decimal | None = Decimal(0)
    calls: int = 0
    again: bool = False  # true in a later round, where the policy saw what its first plan came to


NO_EFFORT = Effort()


class RewardRule(Protocol):
    """Anything that says what an outcome is worth."""

    def of(self, status: Status, grade: float, effort: Effort = NO_EFFORT) -> float | None:
        """Return the reward; None if it is not known, as for a status that is not the policy's."""
        ...


@dataclass(frozen=True, slots=True)
class OutcomeValues:
    """What is worth how much, whatever it cost; a right answer is worth 1."""

    wrong: float = 0.0  # a reply that was graded and is wrong, or has no answer in it
    invalid_action: float = 0.0
    policy_fault: float = 0.0

    def of(self, status: Status, grade: float, effort: Effort = NO_EFFORT) -> float | None:
        """Return the reward, None for a status that says nothing about the policy.

        >>> PAPER.of(Status.SCORED, 0.0), PAPER.of(Status.INVALID_ACTION, 0.0)
        (0.5, 0.0)
        """
        if status is Status.SCORED:
            return self.wrong + (1 - self.wrong) * grade
        if status is Status.INVALID_ACTION:
            return self.invalid_action
        return self.policy_fault if status is Status.POLICY_FAULT else None


PLAIN = OutcomeValues()  # the grade itself: what an evaluation's mean is made of

PAPER = OutcomeValues(wrong=0.5)
"""1 right, 0.5 well-formed but wrong, 0 unreadable (Conductor, arXiv 2512.04388, section 3.1)."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """What became of a completion before it is graded."""

    text: str | None  # the answer; None exactly when the status is not `SCORED`
    status: Status = Status.SCORED
    """`SCORED`: grade the text. Any other: there is nothing to grade, and this is why."""
    usage: Usage | None = field(default_factory=Usage)
    usd: Decimal | None = Decimal(0)
    calls: int = 0
    reason: str = ""
    work: PlanTrace | None = None
    again: bool = False

    def __post_init__(self) -> None:
        if (self.text is None) == (self.status is Status.SCORED):
            raise ValueError(f"an answer that is {self.status} has text {self.text is not None}")


Sampler = Callable[[RewardItem, Question], Awaitable[Rollout]]
"""Makes an item's completion into an answer; the question comes sealed. WorkerError is a worker's
failure, SpendLimit the money's; a malformed completion is a status, never an exception. A sampler
may have a method `check`, which raises UserError for an item that names what is not there."""


async def as_reply(item: RewardItem, question: Question) -> Rollout:
    """Answer with the completion itself."""
    return Rollout(item.completion)


WINDOW = 512
"""The latest outcomes that the masked share looks back on: in a long run an outage must not hide
behind all that went well before, and a busy hour must not end a run by chance."""


@dataclass(frozen=True, slots=True)
class RewardCounts:
    """What a reward has done so far."""

    by_status: Mapping[Status, int]
    """Always every status, so that a trainer's log has the same keys at every step."""
    usd: Decimal  # would-be dollars of all answers, those with no price left out
    shared: int
    abandoned: int
    """Gradings that outlasted their time and could not be ended: each may still keep a thread."""

    @property
    def items(self) -> int:
        """All items so far."""
        return sum(self.by_status.values())

    @property
    def masked(self) -> int:
        """Items without a value."""
        return self.items - sum(self.by_status[status] for status in VALUED)


class RewardCounter:
    """The running counts, safe to use from several threads."""

    def __init__(self, max_masked: float, masked_after: int) -> None:
        """Refuse once more than `max_masked` of the latest outcomes, if so many, have no value."""
        self._max_masked = max_masked
        self._after = masked_after
        self._by_status: Counter[Status] = Counter()
        self._latest: deque[bool] = deque(maxlen=max(WINDOW, masked_after))
        self.usd = Decimal(0)
        """Dollars so far."""
        self._shared = 0
        self._reason = ""
        self._refusal = ""
        self._lock = Lock()

    def __reduce__(self) -> tuple[type["RewardCounter"], tuple[float, int]]:
        """Begin anew in another process."""
        return RewardCounter, (self._max_masked, self._after)

    def counts(self, abandoned: int = 0) -> RewardCounts:
        """Return what has been counted."""
        with self._lock:
            by_status = {status: self._by_status[status] for status in Status}
            return RewardCounts(by_status, self.usd, self._shared, abandoned)

    def pay(self, usd: Decimal | None) -> None:
        """Add the price of an answer; None is unknown and adds nothing."""
        with self._lock:
            self.usd += usd or 0

    def note(self, outcome: RewardOutcome, *, latest: bool = True) -> None:
        """Count one outcome, and unless told otherwise for the share without a value too."""
        masked = outcome.value is None
        with self._lock:
            self._by_status[outcome.status] += 1
            if latest:
                self._latest.append(masked)
            self._shared += outcome.shared
            if masked:
                self._reason = f"{outcome.status}: {outcome.reason}"

    @property
    def refusal(self) -> str:
        """Say that the share without a value is beyond its limit, or once was; empty if not."""
        with self._lock:
            seen, masked = len(self._latest), sum(self._latest)
            if not self._refusal and seen >= self._after and masked > self._max_masked * seen:
                # Kept: work was cut short, whatever comes of the rest meanwhile.
                self._refusal = (
                    f"{masked} of the latest {seen} rewards have no value, more than the share of "
                    f"{self._max_masked:g} that is allowed. The last one: {self._reason} Mend that "
                    "and resume: what is learned from the rest is noise."
                )
            return self._refusal

    def refuse(self) -> None:
        """Raise TooManyMasked when the share is, or ever was, found beyond its limit."""
        if self.refusal:
            raise TooManyMasked(self.refusal)


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
        """Return one outcome per item, in order; ServiceRefusal for items that it refuses."""
        if not items:
            return []
        try:
            outcomes = await self._tried(json.dumps(items_json(items)).encode())
        except _Unreachable as error:
            reason = f"The reward service at {self.url} gave no rewards: {error}"
            unknown = {"correct": None, "parsed": None}
            lost = RewardOutcome(None, Status.SCORER_ERROR, unknown, reason=reason)
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
                return outcomes_from(json.loads(reply.read()))
        except urllib.error.HTTPError as error:
            raise _status_error(error.code, error.read()) from None
        except (OSError, HTTPException) as error:
            raise _Unreachable(f"{type(error).__name__}: {error}.") from None
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise _Unreachable(f"its reply cannot be read ({type(error).__name__}).") from None


def _status_error(code: int, body: bytes) -> PodiumError:
    """Return what an HTTP status other than 200 means, with the service's own sentence."""
    try:
        read: Any = json.loads(body)
    except ValueError:
        read = {}
    said = cast(dict[str, Any], read) if isinstance(read, dict) else {}
    sentence = str(said.get("error") or f"it answered with status {code}.")
    if said.get("kind") == MASKED:
        return TooManyMasked(sentence)
    return ServiceRefusal(sentence) if 400 <= code < 500 else _Unreachable(sentence)


def items_json(items: Sequence[RewardItem]) -> dict[str, Any]:
    """Return the body of a request to score items; a plain item has no key of a workflow's."""
    optional = ("workers", "first")
    rows = [asdict(item) for item in items]
    return {"items": [{k: v for k, v in row.items() if v or k not in optional} for row in rows]}


def outcomes_from(body: Mapping[str, Any]) -> list[RewardOutcome]:
    """Return the outcomes of a reply; KeyError, TypeError or ValueError where it is none."""
    return [_outcome_from(cast(Mapping[str, Any], row)) for row in body["outcomes"]]


def _outcome_from(row: Mapping[str, Any]) -> RewardOutcome:
    """Return an outcome; services of earlier versions have no `grading_s`, `work` and `rule`."""
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
        rule=str(row.get("rule", "")),
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
