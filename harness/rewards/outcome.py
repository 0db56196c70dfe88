"""Completions to reward (items), their outcomes, and a client that requests outcomes over HTTP.

    reward = RewardClient("http://127.0.0.1:8000")
    outcomes = await reward.score(items)

The module needs the standard library only: trainers import it into their own environments.
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
    """Why an item has a reward or none; the policy (model in training) causes the first three."""

    SCORED = "scored"
    INVALID_ACTION = "invalid_action"
    """The completion should be a valid workflow, but is not; the reward rule sets its value."""
    POLICY_FAULT = "policy_fault"
    """The workflow caused its own failure, e.g. by too long a request; it has a value, too."""
    WORKER_ERROR = "worker_error"  # a worker gave no reply after its retries
    SCORER_ERROR = "scorer_error"
    """Grading failed: a sandbox is down, a disk is full, or only a model could judge the reply."""
    TIMEOUT = "timeout"
    """The item's deadline passed. (A program that exceeds its own limits gets a grade instead.)"""
    BUDGET = "budget"  # the dollar limit was reached before this item started


VALUED = (Status.SCORED, Status.INVALID_ACTION, Status.POLICY_FAULT)
"""Statuses that the policy (the model in training) causes. An outcome with any other status has no
value: it is masked, that is, a trainer leaves its item out."""


@dataclass(frozen=True, slots=True)
class RewardItem:
    """One completion to reward, for a question that is named by its id, never by its text."""

    suite: str
    question: str
    completion: str  # a reply to the question, or a workflow if the reward executes workflows
    epoch: int = 1  # in some suites, a question's form depends on it
    replicate: int = 0  # the k-th equal completion of a group: executed again, but graded once
    workers: tuple[str, ...] = ()
    """Names of the workers in the policy's prompt, in its order; empty: all workers of the pool."""
    first: str = ""
    """Id of the round (an earlier plan and its result) that this completion continues, if any."""


@dataclass(frozen=True, slots=True)
class PlanTrace:
    """A record, for logs, of the workflow that was executed for one item."""

    workers: tuple[str, ...]  # worker of each step; empty if an earlier answer is kept
    plan: str = ""  # the workflow as JSON; empty if the suite's questions must not be published
    cached: int = 0  # calls that were not made, because the same reply had been paid for
    leaked: bool | None = None
    """Whether a subtask of the plan contains the question's target (splits.py); None if unknown."""


@dataclass(frozen=True, slots=True)
class RewardOutcome:
    """The reward of one item (a completion) with its cost, or the reason why it has no reward."""

    value: float | None
    """The reward; None for every status outside `VALUED`, which the policy did not cause."""
    status: Status
    components: Mapping[str, float | None] = field(default_factory=lambda: EMPTY)
    """`correct`: the grade; `parsed`: 1 if an answer was found, else 0. Each is None if unknown."""
    usage: Usage | None = None
    """Tokens of all worker calls, zero if there was no call; None if a worker's are unknown."""
    usd: Decimal | None = None  # at list prices; None if a call had no price
    calls: int = 0
    latency_s: float = 0.0
    grading_s: float = 0.0
    """Seconds from the answer to the end of its grading; part of `latency_s`, the item's total."""
    shared: bool = False  # whether the grade is that of an equal reply
    reason: str = ""  # one sentence; never a question's text
    work: PlanTrace | None = None
    """The executed workflow; None if none could be read, or if the completion is the answer."""
    rule: str = ""  # the rule that read the reply (`podium suites SUITE --rules`), if any did


class RewardScorer(Protocol):
    """Protocol of objects that reward items: `Reward` in this process, `RewardClient` over HTTP."""

    async def score(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Return one outcome per item, in order; UserError if an item's question is unknown."""
        ...


@dataclass(frozen=True, slots=True)
class Effort:
    """The cost of one item, for rewards that depend on cost; `usd` is None if it is unknown."""

    usd: Decimal | None = Decimal(0)
    calls: int = 0
    again: bool = False  # true in a later round, whose prompt has the first plan's result


NO_EFFORT = Effort()


class RewardRule(Protocol):
    """Protocol of a rule that computes an item's reward from its status, grade and cost."""

    def of(self, status: Status, grade: float, effort: Effort = NO_EFFORT) -> float | None:
        """Return an item's reward; None if unknown, or if the policy did not cause the status."""
        ...


@dataclass(frozen=True, slots=True)
class OutcomeValues:
    """A rule for rewards that depend on status and grade, not on cost; a right answer gets 1."""

    wrong: float = 0.0  # a reply that was graded and is wrong, or has no answer in it
    invalid_action: float = 0.0
    policy_fault: float = 0.0

    def of(self, status: Status, grade: float, effort: Effort = NO_EFFORT) -> float | None:
        """Return an item's reward; None if the policy did not cause the status.

        >>> PAPER.of(Status.SCORED, 0.0), PAPER.of(Status.INVALID_ACTION, 0.0)
        (0.5, 0.0)
        """
        if status is Status.SCORED:
            return self.wrong + (1 - self.wrong) * grade
        if status is Status.INVALID_ACTION:
            return self.invalid_action
        return self.policy_fault if status is Status.POLICY_FAULT else None


PLAIN = OutcomeValues()  # the grade itself, as in an evaluation's mean

PAPER = OutcomeValues(wrong=0.5)
"""Rewards of the Conductor paper (arXiv 2512.04388, section 3.1): 1 for a right answer, 0.5 for a
wrong answer of a well-formed plan, 0 for an unreadable plan."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """The answer to an item's question before grading, or the reason why there is none."""

    text: str | None  # the answer; None exactly if the status is not `SCORED`
    status: Status = Status.SCORED
    """`SCORED` if there is a text to grade; any other status is the reason why there is none."""
    usage: Usage | None = field(default_factory=Usage)
    usd: Decimal | None = Decimal(0)
    calls: int = 0
    reason: str = ""
    work: PlanTrace | None = None
    again: bool = False

    def __post_init__(self) -> None:
        if (self.text is None) == (self.status is Status.SCORED):
            raise ValueError(
                f"A Rollout has a text if its status is 'scored', else none; this is {self.status}."
            )


Sampler = Callable[[RewardItem, Question], Awaitable[Rollout]]
"""Function that turns an item's completion into an answer; its question has no target. It raises
WorkerError if a worker fails and SpendLimit at the dollar limit; a malformed completion gives a
status, never an exception. Its optional method `check` raises UserError if an item names an
unknown worker or an unknown earlier round."""


async def as_reply(item: RewardItem, question: Question) -> Rollout:
    """Return the item's completion itself as the answer to its question."""
    return Rollout(item.completion)


WINDOW = 512
"""Number of latest outcomes of which the masked share (without a value) is computed: enough that a
busy hour does not end a run by chance, few enough that earlier successes do not hide an outage."""


@dataclass(frozen=True, slots=True)
class RewardCounts:
    """Counts of the outcomes that one `Reward` has returned so far."""

    by_status: Mapping[Status, int]
    """Status -> number of items; every status is a key, so that logs always have equal keys."""
    usd: Decimal  # list prices of all answers that have one
    shared: int  # items that got the grade of an equal reply
    abandoned: int
    """Number of gradings past their time that could not be ended: each may block a thread."""

    @property
    def items(self) -> int:
        """Number of items with an outcome so far."""
        return sum(self.by_status.values())

    @property
    def masked(self) -> int:
        """Number of items whose outcome has no value (reward)."""
        return self.items - sum(self.by_status[status] for status in VALUED)


class RewardCounter:
    """Counts outcomes and dollars, and refuses if too many outcomes have no value; thread-safe."""

    def __init__(self, max_masked: float, masked_after: int) -> None:
        """Take the maximum share without a value; it is checked after `masked_after` outcomes."""
        self._max_masked = max_masked
        self._after = masked_after
        self._by_status: Counter[Status] = Counter()
        self._latest: deque[bool] = deque(maxlen=max(WINDOW, masked_after))
        self.usd = Decimal(0)
        """List price of all answers so far, in dollars."""
        self._shared = 0
        self._reason = ""
        self._refusal = ""
        self._lock = Lock()

    def __reduce__(self) -> tuple[type["RewardCounter"], tuple[float, int]]:
        """Pickle the limits only: in another process, counts of outcomes start from zero."""
        return RewardCounter, (self._max_masked, self._after)

    def counts(self, abandoned: int = 0) -> RewardCounts:
        """Return the counts of outcomes so far, with the given number of `abandoned` gradings."""
        with self._lock:
            by_status = {status: self._by_status[status] for status in Status}
            return RewardCounts(by_status, self.usd, self._shared, abandoned)

    def pay(self, usd: Decimal | None) -> None:
        """Add the price of an answer to the total; an unknown price (None) adds nothing."""
        with self._lock:
            self.usd += usd or 0

    def note(self, outcome: RewardOutcome, *, latest: bool = True) -> None:
        """Count one outcome; if `latest`, also for the masked share (outcomes without a value)."""
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
        """The error once too large a share of the latest outcomes has no value; else empty."""
        with self._lock:
            size, masked = len(self._latest), sum(self._latest)
            if not self._refusal and size >= self._after and masked > self._max_masked * size:
                # Kept even if later outcomes have values: work was already cut short.
                self._refusal = (
                    f"{masked} of the latest {size} rewards have no value, more than the allowed "
                    f"share of {self._max_masked:g}. The last reason: {self._reason} Fix the "
                    "cause and resume: training on the rest would learn noise."
                )
            return self._refusal

    def refuse(self) -> None:
        """Raise TooManyMasked if too large a share of the latest outcomes ever had no value."""
        if self.refusal:
            raise TooManyMasked(self.refusal)


MASKED = "too_many_masked"
"""Field `kind` in the body of a permanent HTTP 503: too large a share of items has no value."""
BUSY = "unscored"  # the `kind` of a temporary 503: this item has no value; a retry may help

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Opens URLs without the proxy `http_proxy`: a reward service is on this machine or cluster."""

MOST_UNREACHED, UNREACHED_AFTER = 0.3, 32
"""Maximum share of items without a reply from the service, and number of items before the client
checks it: a service that is down cannot report that items have no value."""

LONGEST_WAIT_S = 30.0  # maximum seconds between two tries


class NoValue(PodiumError):
    """An item has no value (reward), and its trainer cannot mask it. HTTP 503: a retry may help."""


class ServiceRefusal(UserError, ValueError):
    """A reward service refused a request, or a client's setting is invalid: a retry fails, too."""


class BadBody(UserError):
    """A trainer's request body is malformed; the error's message is one sentence."""


class _Unreachable(PodiumError):
    """The reward service sent no readable reply: a retry may help."""


@dataclass(frozen=True, slots=True)
class RewardClient:
    """Requests the outcomes of items from a running `podium reward serve`: a `Reward` over HTTP."""

    url: str
    timeout_s: float = 600.0
    """Seconds to wait for the reply to a batch of items; the service has a deadline per item."""
    retries: int = 5
    """Maximum retries, after waits of 1, 2, 4, ... s, randomly shortened by up to half."""
    token: str = field(default="", repr=False)
    """The token in the service's `--token-file`; empty if the service needs none."""

    _counter: RewardCounter = field(
        default_factory=lambda: RewardCounter(MOST_UNREACHED, UNREACHED_AFTER),
        init=False,
        repr=False,
        compare=False,
    )

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ServiceRefusal(
                f"A reward service's URL must begin with http:// or https://, not {self.url!r}."
            )
        if self.timeout_s <= 0 or self.retries < 0:
            message = "A reward client needs timeout_s above 0 and retries of 0 or more."
            raise ServiceRefusal(message)

    async def score(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Return one outcome per item, in order; ServiceRefusal if the service refuses items."""
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
            message = f"{self.url} sent {len(outcomes)} outcomes for {len(items)} items."
            raise ServiceRefusal(f"{message} Use the same version of podium on both sides.")
        for _ in items:  # whatever their status, the service was reached; it counts statuses
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
    """Return the exception for an HTTP error status, with the reward service's own sentence."""
    try:
        read: Any = json.loads(body)
    except ValueError:
        read = {}
    answer = cast(dict[str, Any], read) if isinstance(read, dict) else {}
    sentence = str(answer.get("error") or f"it returned status {code}.")
    if answer.get("kind") == MASKED:
        return TooManyMasked(sentence)
    return ServiceRefusal(sentence) if 400 <= code < 500 else _Unreachable(sentence)


def items_json(items: Sequence[RewardItem]) -> dict[str, Any]:
    """Return the JSON body of a request to score items, without `workers` and `first` if empty."""
    optional = ("workers", "first")
    rows = [asdict(item) for item in items]
    return {"items": [{k: v for k, v in row.items() if v or k not in optional} for row in rows]}


def outcomes_from(body: Mapping[str, Any]) -> list[RewardOutcome]:
    """Return the outcomes in a service's reply; KeyError, TypeError, ValueError if malformed."""
    return [_outcome_from(cast(Mapping[str, Any], row)) for row in body["outcomes"]]


def _outcome_from(row: Mapping[str, Any]) -> RewardOutcome:
    """Return the outcome in a reply's row; older services omit `grading_s`, `work` and `rule`."""
    value, usd, work = row["value"], row["usd"], row.get("work")
    components = cast(Mapping[str, Any], row["components"])
    if work is not None:
        workers = tuple(str(name) for name in work["workers"])
        work = PlanTrace(workers, str(work["plan"]), int(work["cached"]), work["leaked"])
    return RewardOutcome(
        value=None if value is None else float(value),
        status=Status(row["status"]),
        components={k: None if score is None else float(score) for k, score in components.items()},
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
    """Return the item (completion to reward) for a label `SUITE/QUESTION`; SUITE has no slash.

    >>> item_of("humaneval/HumanEval/0", "...").question
    'HumanEval/0'
    """
    suite, slash, question = label.partition("/")
    if not slash or not suite or not question:
        raise BadBody(
            f"A label must be SUITE/QUESTION, as in aime25/aime25-I-1, not {label!r:.80}."
        )
    return RewardItem(suite, question, completion)


_ENDINGS = re.compile(
    r"(?:\s*(?:<\|[^|<>\s]{1,40}\|>|<\uff5c[^\uff5c<>]{1,40}\uff5c>|</s>|<eos>|<pad>|<end_of_turn>))+"
    r"\s*\Z"
)
"""A model's special tokens at the end of a text: OpenRLHF keeps them, but graders must not."""

_TAIL_LENGTH = 200
"""Characters compared at the end of a prompt (to find it) and of a reply (for special tokens)."""


def completion_of(query: str, prompt: str) -> str:
    """Return the policy's reply: a query without its prompt and without special tokens at its end.

    OpenRLHF cuts off the beginning of a prompt that is too long. BadBody if the prompt is missing:
    a prompt that is graded with the reply could be mistaken for the answer.

    >>> completion_of("<s>Q: 2+2?A: 4</s>", "<s>Q: 2+2?A:")
    ' 4'
    """
    if not query.startswith(prompt):
        tail = prompt[-_TAIL_LENGTH:]
        end = query.find(tail) + len(tail)
        if not tail or end < len(tail) or not prompt.endswith(query[:end]):
            raise BadBody(
                "A query does not begin with its prompt, so the policy's reply cannot be "
                "separated: send prompts as the tokenizer decodes them."
            )
        prompt = query[:end]
    reply = query[len(prompt) :]
    return reply[:-_TAIL_LENGTH] + _ENDINGS.sub("", reply[-_TAIL_LENGTH:])
