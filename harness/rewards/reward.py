"""The reward: items in, one outcome each, by the function that scores the evaluation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache, partial
from time import monotonic
from typing import Any, Protocol

import anyio
from anyio.lowlevel import RunVar

from harness.errors import SpendLimit, UserError, WorkerError
from harness.parallel import cores
from harness.records import Question
from harness.rewards.grading import Deadline, Graders, GradingResult, GradingTask, public_reason
from harness.rewards.outcome import PAPER as PAPER
from harness.rewards.outcome import PLAIN as PLAIN
from harness.rewards.outcome import (
    VALUED,
    Effort,
    ItemCheck,
    RewardCounter,
    RewardCounts,
    RewardItem,
    RewardOutcome,
    RewardRule,
    Status,
)
from harness.rewards.outcome import OutcomeValues as OutcomeValues
from harness.rewards.outcome import Rollout as Rollout
from harness.rewards.outcome import Sampler as Sampler
from harness.rewards.outcome import as_reply as as_reply
from harness.rewards.splits import describe_plan
from harness.suite import Rewarding, Suite, at_epoch

# § The reward: items in, one outcome each, by the function that scores the evaluation.
# §
# § `Reward` answers, grades and counts. With `as_reply` the completion is the answer; another
# § `Answerer` makes the answer of it, as a workflow's is made by carrying it out. Not here:
# § threads and
# § shared work (grading.py), counting (tally.py), what a trainer wants to hear (for_*.py).


FORMS = 1 << 13
"""Forms of questions that are kept: a group of completions asks for the same one each time."""


class AskedSplit(Protocol):
    """An exam as a reward needs it; `exams.Exam` is one."""

    @property
    def suite(self) -> Suite[Any]:
        """Who grades."""
        ...

    @property
    def questions(self) -> Mapping[str, Question]:
        """The questions that may be asked, unsealed, by id."""
        ...


@dataclass(frozen=True, slots=True)
class RewardSettings:
    """How a reward works, and when it gives up."""

    most: int | None = None
    """Items an event loop works on at once; None: as many as cores, of which no more are graded."""
    timeout_s: float = 120.0
    """Seconds an item may take, from when its turn comes; then what runs for it is ended."""
    max_usd: Decimal | None = None
    """Once answers have cost so much, items whose turn has not come have no value."""
    max_masked: float = 0.3
    """The largest share of outcomes without a value; beyond it `score` raises TooManyMasked."""
    masked_after: int = 32
    """Outcomes before that share means anything."""
    values: RewardRule = PLAIN
    budget_masks: bool = True
    """Whether an item for which no money was left counts as one without a value. False for a
    trainer that looks whether the money is spent, and ends for that."""

    def __post_init__(self) -> None:
        if self.most is not None and self.most < 1:
            raise UserError(f"A reward works on at least 1 item at once, not {self.most}.")
        if not 0 <= self.max_masked <= 1:
            raise UserError(f"max_masked is a share from 0 to 1, not {self.max_masked}.")
        if not self.timeout_s > 0:
            raise UserError(f"timeout_s must be more than 0 seconds, not {self.timeout_s}.")


class Reward:
    """Rewards completions for the questions of some exams; usable from any event loop, or several.

    `box` is where programs run, open and asked for its facts. A suite that rewards in another way
    than it scores (`Rewarding`) is taken at its word, once, here.
    """

    def __init__(
        self,
        exams: Mapping[str, AskedSplit],
        answer: Sampler = as_reply,
        settings: RewardSettings = RewardSettings(),
        box: Any | None = None,
    ) -> None:
        """Keep the exams by name; UserError when one runs programs and there is no box."""
        self._suites = {name: _for_reward(exam.suite) for name, exam in exams.items()}
        self._questions = {name: exam.questions for name, exam in exams.items()}
        self._answer = answer
        self._settings = settings
        self._tally = RewardCounter(settings.max_masked, settings.masked_after)
        self._graders = Graders(box, settings.most, settings.timeout_s)
        self._form = lru_cache(FORMS)(self._at_epoch)
        self._turns: RunVar[anyio.CapacityLimiter] = RunVar("podium reward")
        for name, suite in self._suites.items():
            if suite.needs_box and box is None:
                raise UserError(f"Suite {name!r} runs programs: open a box and pass it as box=.")

    def __reduce__(self) -> Any:
        raise TypeError("A Reward is at work in its process: hand over a function that makes one.")

    @property
    def counts(self) -> RewardCounts:
        """What has been rewarded so far."""
        return self._tally.counts(self._graders.abandoned)

    async def score(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Return one outcome per item, in order.

        UserError for an item that names no known question, before anything is done; TooManyMasked
        as soon as the share without a value is beyond its limit. Whatever else goes wrong is an
        outcome.
        """
        questions = [self._asked(item) for item in items]
        made: dict[int, RewardOutcome] = {}
        with anyio.CancelScope() as scope:
            note = partial(self._note, made, scope)
            if self._answer is as_reply:
                await self._grade_all(items, questions, note)
            else:
                async with anyio.create_task_group() as tasks:
                    for at, (item, question) in enumerate(zip(items, questions, strict=True)):
                        tasks.start_soon(self._in_turn, at, item, question, note)
        self._tally.refuse()
        return [made[at] for at in range(len(items))]

    def _asked(self, item: RewardItem) -> Question:
        """Return the question an item is about, as its epoch asks it."""
        if item.suite not in self._suites:
            known = ", ".join(sorted(self._suites))
            raise UserError(f"There is no exam {item.suite!r} to reward; there are: {known}.")
        question = self._questions[item.suite].get(item.question)
        if question is None or item.epoch < 1:
            what = f"question {item.question!r}" if question is None else f"epoch {item.epoch}"
            raise UserError(f"The exam {item.suite!r} has no {what} to reward.")
        if isinstance(self._answer, ItemCheck):
            self._answer.check(item)
        if item.epoch == 1:
            return question
        return self._form(item.suite, item.question, item.epoch)

    def _at_epoch(self, suite: str, question: str, epoch: int) -> Question:
        return at_epoch(self._suites[suite], self._questions[suite][question], epoch)

    def _note(
        self,
        made: dict[int, RewardOutcome],
        scope: anyio.CancelScope,
        at: int,
        outcome: RewardOutcome,
    ) -> None:
        made[at] = outcome
        spent = outcome.status is Status.BUDGET and not self._settings.budget_masks
        self._tally.note(outcome, latest=not spent)
        if outcome.value is None and self._tally.too_many:
            scope.cancel()

    async def _grade_all(
        self, items: Sequence[RewardItem], questions: Sequence[Question], note: "Note"
    ) -> None:
        sheets = [
            GradingTask(self._suites[item.suite], question, item.epoch, item.completion)
            for item, question in zip(items, questions, strict=True)
        ]

        def tell(at: int, verdict: GradingResult) -> None:
            outcome = self._outcome(verdict, _REPLY, verdict.seconds)
            note(at, replace(outcome, grading_s=verdict.seconds))

        await self._graders.grade(sheets, tell)

    async def _in_turn(self, at: int, item: RewardItem, question: Question, note: "Note") -> None:
        """Answer and grade one item when its turn comes."""
        async with self._limiter():
            started = monotonic()
            if self._spent():
                over = GradingResult(Status.BUDGET, reason="The money was spent before its turn.")
                note(at, self._outcome(over, _NOTHING, 0.0))
                return
            answered = await self._answered(item, question)
            self._tally.pay(answered.usd)
            if answered.text is None:
                said = public_reason(self._suites[item.suite], answered.reason)
                verdict = GradingResult(answered.status, reason=said)
                note(at, self._outcome(verdict, answered, monotonic() - started))
                return
            suite, until = self._suites[item.suite], Deadline(started + self._settings.timeout_s)
            sheet = GradingTask(suite, question, item.epoch, answered.text, until)
            begun = monotonic()

            def tell(_: int, verdict: GradingResult) -> None:
                ended = monotonic()
                outcome = self._outcome(verdict, answered, ended - started)
                note(at, replace(outcome, grading_s=ended - begun))

            await self._graders.grade([sheet], tell)

    async def _answered(self, item: RewardItem, question: Question) -> Rollout:
        """Return the item's answer, or why there is none; what was spent on that is unknown."""
        with anyio.move_on_after(self._settings.timeout_s):
            try:
                answered = await self._answer(item, question.sealed())
                return self._described(item, question, answered)
            except SpendLimit as error:
                return _failed(Status.BUDGET, str(error))
            except WorkerError as error:
                return _failed(Status.WORKER_ERROR, str(error))
            except Exception as error:
                return _failed(Status.WORKER_ERROR, f"Answering failed ({type(error).__name__}).")
        return _failed(Status.TIMEOUT, "The time for this item was over before it was answered.")

    def _described(self, item: RewardItem, question: Question, answered: Rollout) -> Rollout:
        if answered.work is None:
            return answered
        publishable = self._suites[item.suite].publishable
        return replace(
            answered, work=describe_plan(answered.work, question, publishable=publishable)
        )

    def _outcome(self, verdict: GradingResult, answered: Rollout, seconds: float) -> RewardOutcome:
        effort = Effort(answered.usd, answered.calls, answered.again)
        value = self._settings.values.of(verdict.status, verdict.value, effort)
        if value is None and verdict.status in VALUED:
            verdict = _UNKNOWN_COST
        known = verdict.status in VALUED
        correct = verdict.value if known else None
        return RewardOutcome(
            value=value,
            status=verdict.status,
            components={"correct": correct, "parsed": float(verdict.parsed) if known else None},
            usage=answered.usage,
            usd=answered.usd,
            calls=answered.calls,
            latency_s=seconds,
            shared=verdict.shared,
            reason=verdict.reason,
            work=answered.work,
        )

    def _spent(self) -> bool:
        most = self._settings.max_usd
        return most is not None and self._tally.usd >= most

    def _limiter(self) -> anyio.CapacityLimiter:
        turns = self._turns.get(None)
        if turns is None:
            turns = anyio.CapacityLimiter(self._settings.most or cores())
            self._turns.set(turns)
        return turns


Note = Callable[[int, RewardOutcome], None]

_REPLY = Rollout("")
"""A completion that is the answer: nobody was asked, and nothing was paid."""

_NOTHING = Rollout(None, Status.BUDGET)

_UNKNOWN_COST = GradingResult(
    Status.SCORER_ERROR, reason="What it cost is unknown, and so its value."
)


def _failed(status: Status, reason: str) -> Rollout:
    return Rollout(None, status, usage=None, usd=None, reason=reason)


def _for_reward(suite: Suite[Any]) -> Suite[Any]:
    return suite.for_reward() if isinstance(suite, Rewarding) else suite
