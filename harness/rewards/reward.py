"""The reward: items in, one outcome each, by the function that scores the evaluation."""

from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache, partial
from hashlib import blake2b
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from podium.harness.errors import PodiumError, SpendLimit, UserError, WorkerError
from podium.harness.parallel import cores
from podium.harness.records import READ_BY, Question
from podium.harness.rewards.outcome import (
    PLAIN,
    VALUED,
    Effort,
    RewardCounter,
    RewardCounts,
    RewardItem,
    RewardOutcome,
    RewardRule,
    Rollout,
    Sampler,
    Status,
    as_reply,
)
from podium.harness.rewards.splits import SuiteSplit, describe_plan
from podium.harness.suite import Rewarding, Suite, at_epoch

OFFICIAL = "official"
"""The runner that takes all inputs in one process: its limits hold for all of them together."""


class DeadlinePassed(PodiumError):
    """The time that an item had is over; whatever ran for it was ended."""


@dataclass(slots=True)
class Deadline:
    """A moment on the monotonic clock, in seconds; `expire` brings it forward from any thread."""

    at: float

    @property
    def left_s(self) -> float:
        """Seconds left; negative when it has passed."""
        return self.at - monotonic()

    def expire(self) -> None:
        """Let it have passed."""
        self.at = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class DeadlineBox:
    """The same box, for one item. Its limits are shortened to what is left, never lengthened.

    It equals its box, and others of it: a suite may remember what it once asked a box.
    """

    box: Any
    deadline: Deadline

    def __eq__(self, other: object) -> bool:
        return self.box == (other.box if isinstance(other, DeadlineBox) else other)

    def __hash__(self) -> int:
        return hash(self.box)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.box, name)

    def close(self) -> None:
        """Leave the box open: it is others' too."""

    def run(
        self, program: Any, inputs: Iterable[bytes], limits: Any, *, alone: bool = False
    ) -> Generator[Any]:
        """Yield the box's outcomes, one per input; DeadlinePassed at the deadline.

        While more is left than one run may take, inputs go to the box as they are, so that it can
        do several in one go; then one by one, each with what is left as its wall limit.
        """
        given = iter(inputs)
        if program.runner == OFFICIAL:
            yield from self._shortened(program, given, limits, alone)
            return
        early = self._early(given, limits.wall_s)
        with closing(self.box.run(program, early, limits, alone=alone)) as outcomes:
            yield from outcomes
        for one in given:
            yield from self._shortened(program, [one], limits, alone)

    def _early(self, given: Iterator[bytes], wall_s: float) -> Generator[bytes]:
        """Yield inputs while there is time for one; what is not taken stays in `given`."""
        while self.deadline.left_s >= wall_s and (one := next(given, None)) is not None:
            yield one

    def _shortened(
        self, program: Any, inputs: Iterable[bytes], limits: Any, alone: bool
    ) -> Generator[Any]:
        left = self.deadline.left_s
        if left <= 0:
            raise DeadlinePassed("The time for this reply was over before it was graded.")
        shorter = replace(limits, wall_s=min(limits.wall_s, left))
        with closing(self.box.run(program, inputs, shorter, alone=alone)) as outcomes:
            for outcome in outcomes:
                ended = outcome.status == "time" and outcome.cpu_s < limits.cpu_s
                if ended and shorter.wall_s < limits.wall_s:
                    raise DeadlinePassed("The time for this reply was over while it was graded.")
                yield outcome


REMEMBERED = 1 << 16  # grades that are kept for equal replies, the latest used ones
BATCH = 256
"""Replies without programs that one thread is given at a time: a task for each would cost more
than grading them."""
SLICE_S = 0.25
"""Seconds after which such a thread hands in what it has: a stuck reply holds up no other."""
GRACE_S = 5.0
"""Seconds that a box has to end its program after the deadline before its thread is abandoned."""


@dataclass(slots=True, eq=False)
class _Task:
    """A reply to grade; others that ask for an equal one meanwhile wait for it."""

    at: int
    suite: Suite[Any]
    question: Question  # unsealed, as its epoch asks it
    epoch: int
    text: str
    deadline: Deadline | None = None  # None: a full time-out, from when its turn comes
    result: "GradingResult | None" = None  # None also when its grading was cancelled
    settled: bool = False
    told: anyio.Event | None = None
    """Made by the first who waits: an event for each task would cost as much as its grade."""

    key: bytes = b""
    """A digest that equal tasks share; long replies are not kept in memory."""

    def __post_init__(self) -> None:
        said = f"{self.suite.name}\0{self.question.id}\0{self.epoch}\0{self.text}"
        self.key = blake2b(said.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    @property
    def row(self) -> "GradingRow":
        """What another process needs to grade it."""
        left_s = self.deadline.left_s if self.deadline else None
        return self.suite.name, self.question.id, self.epoch, self.text, left_s

    async def waited_for(self) -> "GradingResult | None":
        """Return what comes of it, once that is known."""
        if not self.settled:
            self.told = self.told or anyio.Event()
            await self.told.wait()
        return self.result


@dataclass(frozen=True, slots=True)
class GradingResult:
    """What became of a task: `SCORED` with a value, or why there is none."""

    status: Status
    value: float = 0.0
    parsed: bool = False
    reason: str = ""
    seconds: float = 0.0
    shared: bool = False
    rule: str = ""


OUTLASTED = GradingResult(Status.TIMEOUT, reason="Grading outlasted its time.")

GradingRow = tuple[str, str, int, str, float | None]
"""A reply to grade in another process: suite, question, epoch, text, seconds left."""
RowGrader = Callable[[Sequence[GradingRow]], list[GradingResult]]
"""Grades rows in order, until a slice of time is over."""

OnDone = Callable[[int, GradingResult], None]
"""Called on the event loop with the place of a task in its list and its result."""


@dataclass(frozen=True, slots=True)
class _LoopState:
    """What belongs to one event loop: a trainer may bring its own, and so may its workers."""

    turns: anyio.CapacityLimiter
    threads: anyio.CapacityLimiter
    """As many as there are turns, so that nobody who has a turn waits for a thread."""
    under_way: dict[bytes, _Task] = field(default_factory=dict[bytes, _Task])


class Graders:
    """Grades tasks, at most `most` at once, each within `timeout_s` seconds."""

    def __init__(
        self,
        box: Any | None,
        most: int | None,
        timeout_s: float,
        elsewhere: "RowGrader | None" = None,
    ) -> None:
        """Grade programs in this box; more at once than there are cores would only wait."""
        self.abandoned = 0
        self._box, self._elsewhere = box, elsewhere
        self._most = min(most or cores(), cores())
        self._timeout_s = timeout_s
        self._known: OrderedDict[bytes, GradingResult] = OrderedDict()
        self._lock = Lock()
        self._here: RunVar[_LoopState] = RunVar("podium graders")

    async def grade(self, tasks: Sequence[_Task], on_done: OnDone) -> None:
        """Tell the verdict of every task, as it comes; whatever goes wrong is a verdict too."""
        here = self._run()
        while tasks:
            mine, others = list[_Task](), list[tuple[_Task, _Task]]()
            for task in tasks:
                if (known := self._remembered(task.key)) is not None:
                    on_done(task.at, replace(known, shared=True))
                elif (first := here.under_way.setdefault(task.key, task)) is task:
                    mine.append(task)
                else:
                    others.append((task, first))
            try:
                await self._grade_all(mine, on_done)
            finally:
                for task in mine:  # what a cancellation left: who waits does it
                    self._settle(task)
            tasks = list[_Task]()
            for task, first in others:
                if (result := await first.waited_for()) is None:
                    tasks.append(task)
                else:
                    on_done(task.at, replace(result, shared=True))

    async def _grade_all(self, tasks: Sequence[_Task], on_done: OnDone) -> None:
        """Grade programs one by one and all else in batches, which the threads share evenly."""
        boxed = [task for task in tasks if task.suite.needs_box]
        plain = [task for task in tasks if not task.suite.needs_box]
        size = min(BATCH, max(1, -(-len(plain) // self._most)))
        async with anyio.create_task_group() as group:
            for task in boxed:
                group.start_soon(self._grade_batch, [task], on_done)
            for at in range(0, len(plain), size):
                group.start_soon(self._grade_batch, plain[at : at + size], on_done)

    async def _grade_batch(self, batch: Sequence[_Task], on_done: OnDone) -> None:
        here = self._run()
        while batch:
            async with here.turns:
                results = await self._grade_slice(batch, here)
            for task, result in zip(batch, results, strict=False):
                self._settle(task, result)
                on_done(task.at, result)
            batch = batch[len(results) :]

    async def _grade_slice(self, tasks: Sequence[_Task], here: _LoopState) -> list[GradingResult]:
        """Grade tasks in order, in a thread, until a slice of time is over."""
        part = self.slice(tasks)
        work, grace = part.grade, 0.0
        if self._elsewhere:  # which keeps the time itself, unless it is stuck
            work, grace = partial(part.grade_elsewhere, self._elsewhere), GRACE_S
        try:
            with anyio.move_on_after(part.longest_s + grace) as time:
                threads = here.threads
                await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=threads)
        finally:  # a program that runs is ended by its own limits at the latest
            part.stop()
        results = [*part.done, OUTLASTED] if time.cancelled_caught else part.done
        self.abandoned += OUTLASTED in results[-1:]
        return results

    def slice(self, tasks: Sequence[_Task]) -> "_Slice":
        """Return what grades tasks in a thread."""
        return _Slice(tasks, self._box, self._timeout_s)

    def _settle(self, task: _Task, result: GradingResult | None = None) -> None:
        if task.settled:
            return
        self._run().under_way.pop(task.key, None)
        task.result, task.settled = result, True
        if task.told:
            task.told.set()
        if result is not None and result.status is Status.SCORED:
            with self._lock:
                self._known[task.key] = result
                if len(self._known) > REMEMBERED:
                    self._known.popitem(last=False)

    def _remembered(self, key: bytes) -> GradingResult | None:
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
            return known

    def _run(self) -> _LoopState:
        if self._here.get(None) is None:
            turns, threads = (anyio.CapacityLimiter(self._most) for _ in range(2))
            self._here.set(_LoopState(turns, threads))
        return self._here.get()


class _Slice:
    """Tasks that one thread grades in order, until a slice of time is over or it is stopped."""

    def __init__(self, tasks: Sequence[_Task], box: Any | None, timeout_s: float) -> None:
        self.done = list[GradingResult]()
        self._tasks, self._box, self._timeout_s = tasks, box, timeout_s
        self._deadlines, self._stopped = list[Deadline](), Event()

    @property
    def longest_s(self) -> float:
        """Seconds after which its thread is stuck: no slice takes as long."""
        first = self._tasks[0]
        own = first.deadline.left_s if first.deadline else self._timeout_s
        return max(own, 0.0) + SLICE_S + (GRACE_S if first.suite.needs_box else 0.0)

    def grade(self) -> None:
        """Grade here."""
        until = monotonic() + SLICE_S
        for task in self._tasks:
            self._deadlines.append(task.deadline or Deadline(monotonic() + self._timeout_s))
            result = _graded(task, self._box, self._deadlines[-1])
            if self._stopped.is_set():
                return
            self.done.append(result)
            if monotonic() >= until:
                return

    def grade_elsewhere(self, grade: RowGrader) -> None:
        """Let another process grade."""
        done = grade([task.row for task in self._tasks])
        if not self._stopped.is_set():
            self.done.extend(done)

    def stop(self) -> None:
        """Let the thread end soon."""
        self._stopped.set()
        for deadline in self._deadlines[-1:]:
            deadline.expire()


def _graded(task: _Task, box: Any | None, deadline: Deadline) -> GradingResult:
    suite, started = task.suite, monotonic()
    try:
        boxed = (DeadlineBox(box, deadline),) if suite.needs_box else ()
        grade = suite.grade(task.question, task.text, *boxed)
        parsed = grade.extracted is not None
        if not 0 <= grade.value <= 1:
            raise ValueError(f"a grade is from 0 to 1, not {grade.value}")
        rule = str(grade.metadata.get(READ_BY, ""))
        verdict = GradingResult(Status.SCORED, grade.value, parsed, rule=rule)
    except DeadlinePassed as passed:
        verdict = GradingResult(Status.TIMEOUT, reason=str(passed))
    except Exception as error:
        said = f": {error}" if suite.publishable else ""
        reason = f"{task.question.id} could not be graded ({type(error).__name__}{said})"
        verdict = GradingResult(Status.SCORER_ERROR, reason=reason)
    return replace(verdict, seconds=monotonic() - started)


FORMS = 1 << 13
"""Forms of questions that are kept: a group of completions asks for the same one each time."""


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
    masked_after: int = 32  # outcomes before that share means anything
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
    """Rewards completions for the questions of some suites; usable from any event loop, or several.

    `box` is where programs run, open and asked for its facts. A suite that rewards in another way
    than it scores (`Rewarding`) is taken at its word, once, here.
    """

    def __init__(
        self,
        splits: Mapping[str, SuiteSplit],
        answer: Sampler = as_reply,
        settings: RewardSettings = RewardSettings(),
        box: Any | None = None,
        elsewhere: RowGrader | None = None,
    ) -> None:
        """Keep the suites by name; UserError when one runs programs and there is no box."""
        self._suites: dict[str, Suite[Any]] = {
            name: one.suite.for_reward() if isinstance(one.suite, Rewarding) else one.suite
            for name, one in splits.items()
        }
        self._questions = {name: split.questions for name, split in splits.items()}
        self._answer = answer
        self._settings = settings
        self._counter = RewardCounter(settings.max_masked, settings.masked_after)
        self._graders = Graders(box, settings.most, settings.timeout_s, elsewhere)
        self._form = lru_cache(FORMS)(self._at_epoch)
        self._turns: RunVar[anyio.CapacityLimiter] = RunVar("podium reward")
        for name, suite in self._suites.items():
            if suite.needs_box and box is None and elsewhere is None:
                raise UserError(f"Suite {name!r} runs programs: open a box and pass it as box=.")

    def __reduce__(self) -> Any:
        raise TypeError("A Reward is at work in its process: hand over a function that makes one.")

    @property
    def counts(self) -> RewardCounts:
        """What has been rewarded so far."""
        return self._counter.counts(self._graders.abandoned)

    async def score(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Return one outcome per item, in order; what goes wrong is an outcome too."""
        made: dict[int, RewardOutcome] = {}
        await self.score_each(items, made.__setitem__)
        return [made[at] for at in range(len(items))]

    async def score_each(self, items: Sequence[RewardItem], tell: "Note") -> None:
        """Tell each item's place and outcome, as it comes; what goes wrong is as in `score`."""
        questions = [self._asked(item) for item in items]
        scope = anyio.CancelScope()

        def note(at: int, outcome: RewardOutcome) -> None:
            tell(at, outcome)
            spent = outcome.status is Status.BUDGET and not self._settings.budget_masks
            self._counter.note(outcome, latest=not spent)
            if outcome.value is None and self._counter.refusal:
                scope.cancel()

        asked = list(zip(range(len(items)), items, questions, strict=True))
        with scope:
            if self._answer is as_reply:
                await self._grade_replies(asked, note)
            else:
                async with anyio.create_task_group() as group:
                    for one in asked:
                        group.start_soon(self._in_turn, *one, note)
        self._counter.refuse()

    def grade_slice(self, rows: Sequence[GradingRow]) -> list[GradingResult]:
        """Grade what another process's reward hands over (`RowGrader`); for any thread."""
        part = self._graders.slice([self._task(*row) for row in rows])
        thread = Thread(target=part.grade, daemon=True)
        thread.start()
        thread.join(part.longest_s)
        part.stop()
        return [*part.done, OUTLASTED] if thread.is_alive() else part.done

    def _task(
        self, suite: str, question: str, epoch: int, text: str, left_s: float | None
    ) -> _Task:
        asked = self._asked(RewardItem(suite, question, text, epoch=epoch))
        deadline = None if left_s is None else Deadline(monotonic() + left_s)
        return _Task(0, self._suites[suite], asked, epoch, text, deadline)

    def _asked(self, item: RewardItem) -> Question:
        if item.suite not in self._suites:
            known = ", ".join(sorted(self._suites))
            raise UserError(f"There is no suite {item.suite!r} to reward; there are: {known}.")
        question = self._questions[item.suite].get(item.question)
        if question is None or item.epoch < 1:
            what = f"question {item.question!r}" if question is None else f"epoch {item.epoch}"
            raise UserError(f"The suite {item.suite!r} has no {what} to reward.")
        if check := getattr(self._answer, "check", None):
            check(item)
        asked = (item.suite, item.question, item.epoch)
        return question if item.epoch == 1 else self._form(*asked)

    def _at_epoch(self, suite: str, question: str, epoch: int) -> Question:
        return at_epoch(self._suites[suite], self._questions[suite][question], epoch)

    async def _grade_replies(
        self, asked: Iterable[tuple[int, RewardItem, Question]], note: "Note"
    ) -> None:
        def on_done(at: int, result: GradingResult) -> None:
            note(at, self._outcome(result, _REPLY, result.seconds, result.seconds))

        tasks = [
            _Task(at, self._suites[item.suite], question, item.epoch, item.completion)
            for at, item, question in asked
        ]
        await self._graders.grade(tasks, on_done)

    async def _in_turn(self, at: int, item: RewardItem, question: Question, note: "Note") -> None:
        if self._turns.get(None) is None:
            self._turns.set(anyio.CapacityLimiter(self._settings.most or cores()))
        async with self._turns.get():
            started = monotonic()
            most = self._settings.max_usd
            if most is not None and self._counter.usd >= most:
                over = GradingResult(Status.BUDGET, reason="The money was spent before its turn.")
                note(at, self._outcome(over, Rollout(None, over.status), 0.0))
                return
            answered = await self._answered(item, question)
            self._counter.pay(answered.usd)
            suite, until = self._suites[item.suite], Deadline(started + self._settings.timeout_s)
            if answered.text is None:  # a provider's or a policy's words may quote
                hidden = "Why is not said: it could quote the question."
                said = answered.reason if suite.publishable else hidden
                failed = GradingResult(answered.status, reason=said)
                note(at, self._outcome(failed, answered, monotonic() - started))
                return
            begun = monotonic()

            def on_done(at: int, result: GradingResult) -> None:
                ended = monotonic()
                note(at, self._outcome(result, answered, ended - started, ended - begun))

            task = _Task(at, suite, question, item.epoch, answered.text, until)
            await self._graders.grade([task], on_done)

    async def _answered(self, item: RewardItem, question: Question) -> Rollout:
        """Return the item's answer, or why there is none; what was spent on that is unknown."""
        with anyio.move_on_after(self._settings.timeout_s):
            try:
                answered = await self._answer(item, question.sealed())
                if answered.work is None:
                    return answered
                publishable = self._suites[item.suite].publishable
                work = describe_plan(answered.work, question, publishable=publishable)
                return replace(answered, work=work)
            except SpendLimit as error:
                return _failed(Status.BUDGET, str(error))
            except WorkerError as error:
                return _failed(Status.WORKER_ERROR, str(error))
            except Exception as error:
                return _failed(Status.WORKER_ERROR, f"Answering failed ({type(error).__name__}).")
        return _failed(Status.TIMEOUT, "The time for this item was over before it was answered.")

    def _outcome(
        self, result: GradingResult, answered: Rollout, seconds: float, grading_s: float = 0.0
    ) -> RewardOutcome:
        effort = Effort(answered.usd, answered.calls, answered.again)
        value = self._settings.values.of(result.status, result.value, effort)
        if value is None and result.status in VALUED:
            said = "What it cost is unknown, and so its value."
            result = GradingResult(Status.SCORER_ERROR, reason=said)
        parts = {"correct": result.value, "parsed": float(result.parsed)}
        return RewardOutcome(
            value=value,
            status=result.status,
            components=parts if result.status in VALUED else dict.fromkeys(parts),
            usage=answered.usage,
            usd=answered.usd,
            calls=answered.calls,
            latency_s=seconds,
            grading_s=grading_s,
            shared=result.shared,
            reason=result.reason,
            work=answered.work,
            rule=result.rule,
        )


Note = Callable[[int, RewardOutcome], None]

_REPLY = Rollout("")  # a completion that is the answer: nobody was asked, and nothing was paid


def _failed(status: Status, reason: str) -> Rollout:
    return Rollout(None, status, usage=None, usd=None, reason=reason)
