"""Rewards completions (items), one outcome each, by the function that grades evaluations."""

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

from podium.harness.budget import usd_limit
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
"""Name of the runner that gives a program all its inputs in one process, with common limits."""


class DeadlinePassed(PodiumError):
    """Raised if the time for grading an item is over; the item's programs were ended."""


@dataclass(slots=True)
class Deadline:
    """A deadline on the monotonic clock, in seconds; any thread may expire it early."""

    at: float

    @property
    def left_s(self) -> float:
        """Seconds until the deadline; negative once it has passed."""
        return self.at - monotonic()

    def expire(self) -> None:
        """Move the deadline into the past."""
        self.at = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class DeadlineBox:
    """A sandbox for one item: cuts the wall-clock limit of each program to the item's time left.

    It equals the sandbox that it wraps, because a suite may cache results per sandbox.
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
        """Do nothing: other items use the wrapped sandbox, too."""

    def run(
        self, program: Any, inputs: Iterable[bytes], limits: Any, *, alone: bool = False
    ) -> Generator[Any]:
        """Run a program and yield its outcome per input; DeadlinePassed at the item's deadline.

        While more time is left than one run may take, inputs go to the sandbox unchanged, so it
        can batch them. Later inputs go one by one, with the time left as their wall-clock limit.
        """
        pending = iter(inputs)
        if program.runner == OFFICIAL:
            yield from self._shortened(program, pending, limits, alone)
            return
        early = self._early(pending, limits.wall_s)
        with closing(self.box.run(program, early, limits, alone=alone)) as outcomes:
            yield from outcomes
        for data in pending:
            yield from self._shortened(program, [data], limits, alone)

    def _early(self, pending: Iterator[bytes], wall_s: float) -> Generator[bytes]:
        """Yield inputs while the time left allows a whole run; later inputs stay in `pending`."""
        while self.deadline.left_s >= wall_s and (data := next(pending, None)) is not None:
            yield data

    def _shortened(
        self, program: Any, inputs: Iterable[bytes], limits: Any, alone: bool
    ) -> Generator[Any]:
        left_s = self.deadline.left_s
        if left_s <= 0:
            raise DeadlinePassed("The deadline for this reply passed before it was graded.")
        shorter = replace(limits, wall_s=min(limits.wall_s, left_s))
        with closing(self.box.run(program, inputs, shorter, alone=alone)) as outcomes:
            for outcome in outcomes:
                timed_out = outcome.status == "time" and outcome.cpu_s < limits.cpu_s
                if timed_out and shorter.wall_s < limits.wall_s:
                    raise DeadlinePassed("The deadline for this reply passed while it was graded.")
                yield outcome


REMEMBERED = 1 << 16  # maximum grades cached for equal replies (LRU)
BATCH = 256
"""Maximum replies that a thread grades per call, programs excluded: single calls cost more."""
SLICE_S = 0.25
"""Seconds after which a thread returns its grades so far: a stuck reply delays no other reply."""
GRACE_S = 5.0
"""Seconds after a deadline for the sandbox to end its program; then its thread is abandoned."""


@dataclass(slots=True, eq=False)
class _Task:
    """A reply to grade; later tasks with an equal reply wait for the result of this task."""

    at: int
    suite: Suite[Any]
    question: Question  # with its target, in the form for its epoch
    epoch: int
    text: str
    deadline: Deadline | None = None  # None: the full timeout, from when grading starts
    result: "GradingResult | None" = None  # None also when its grading was cancelled
    settled: bool = False
    told: anyio.Event | None = None
    """Event that announces the result; the first task that waits creates it, as few tasks wait."""

    key: bytes = b""
    """Digest of question, epoch and reply, equal for equal tasks; caches need no texts."""

    def __post_init__(self) -> None:
        key_text = f"{self.suite.name}\0{self.question.id}\0{self.epoch}\0{self.text}"
        self.key = blake2b(key_text.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    @property
    def row(self) -> "GradingRow":
        """The values that another process needs to grade the reply."""
        left_s = self.deadline.left_s if self.deadline else None
        return self.suite.name, self.question.id, self.epoch, self.text, left_s

    async def waited_for(self) -> "GradingResult | None":
        """Wait for this task's result and return it; None if its grading was cancelled."""
        if not self.settled:
            self.told = self.told or anyio.Event()
            await self.told.wait()
        return self.result


@dataclass(frozen=True, slots=True)
class GradingResult:
    """The result of grading one reply: `SCORED` with a grade, or the reason why it has none."""

    status: Status
    value: float = 0.0
    parsed: bool = False
    reason: str = ""
    seconds: float = 0.0
    shared: bool = False
    rule: str = ""


OUTLASTED = GradingResult(Status.TIMEOUT, reason="Grading took longer than its time limit.")

GradingRow = tuple[str, str, int, str, float | None]
"""A reply to grade in another process: suite, question, epoch, text, seconds left."""
RowGrader = Callable[[Sequence[GradingRow]], list[GradingResult]]
"""Function that grades rows in order until a slice of time is over; returns results so far."""

OnDone = Callable[[int, GradingResult], None]
"""Function called in the event loop when a task is graded, with the task's index and result."""


@dataclass(frozen=True, slots=True)
class _LoopState:
    """The graders' state in one event loop; a trainer and its own threads may each have a loop."""

    turns: anyio.CapacityLimiter
    threads: anyio.CapacityLimiter
    """Limits threads to as many as `turns` allows: a task with a turn never waits for a thread."""
    under_way: dict[bytes, _Task] = field(default_factory=dict[bytes, _Task])


class Graders:
    """Grades tasks (replies), at most `limit` in parallel, each within `timeout_s` seconds."""

    def __init__(
        self,
        box: Any | None,
        limit: int | None,
        timeout_s: float,
        elsewhere: "RowGrader | None" = None,
    ) -> None:
        """Take the sandbox, the limits and any grader elsewhere; at most one task runs per core."""
        self.abandoned = 0
        self._box, self._elsewhere = box, elsewhere
        self._most = min(limit or cores(), cores())
        self._timeout_s = timeout_s
        self._known: OrderedDict[bytes, GradingResult] = OrderedDict()
        self._lock = Lock()
        self._here: RunVar[_LoopState] = RunVar("podium graders")

    async def grade(self, tasks: Sequence[_Task], on_done: OnDone) -> None:
        """Grade tasks; call `on_done` with each result as it completes, a failure included."""
        here = self._run()
        while tasks:
            mine, waiting = list[_Task](), list[tuple[_Task, _Task]]()
            for task in tasks:
                if (cached := self._remembered(task.key)) is not None:
                    on_done(task.at, replace(cached, shared=True))
                elif (leader := here.under_way.setdefault(task.key, task)) is task:
                    mine.append(task)
                else:
                    waiting.append((task, leader))
            try:
                await self._grade_all(mine, on_done)
            finally:
                for task in mine:  # if it was cancelled, a task that waits for it grades the reply
                    self._settle(task)
            tasks = list[_Task]()
            for task, leader in waiting:
                if (result := await leader.waited_for()) is None:
                    tasks.append(task)
                else:
                    on_done(task.at, replace(result, shared=True))

    async def _grade_all(self, tasks: Sequence[_Task], on_done: OnDone) -> None:
        """Grade each program in a batch of its own, and other replies in batches of equal size."""
        boxed = [task for task in tasks if task.suite.needs_box]
        plain = [task for task in tasks if not task.suite.needs_box]
        size = min(BATCH, max(1, -(-len(plain) // self._most)))
        async with anyio.create_task_group() as group:
            for task in boxed:
                group.start_soon(self._grade_batch, [task], on_done)
            for start in range(0, len(plain), size):
                group.start_soon(self._grade_batch, plain[start : start + size], on_done)

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
        """Grade tasks in order, in a thread, for a slice of time; return the results until then."""
        chunk = self.slice(tasks)
        work, grace = chunk.grade, 0.0
        if self._elsewhere:  # the other process enforces the time, unless it is stuck
            work, grace = partial(chunk.grade_elsewhere, self._elsewhere), GRACE_S
        try:
            with anyio.move_on_after(chunk.longest_s + grace) as time:
                threads = here.threads
                await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=threads)
        finally:  # a running program ends at its own limits at the latest
            chunk.stop()
        results = [*chunk.done, OUTLASTED] if time.cancelled_caught else chunk.done
        self.abandoned += OUTLASTED in results[-1:]
        return results

    def slice(self, tasks: Sequence[_Task]) -> "_Slice":
        """Return an object that grades tasks in order until a slice of time is over."""
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
            result = self._known.get(key)
            if result is not None:
                self._known.move_to_end(key)
            return result

    def _run(self) -> _LoopState:
        if self._here.get(None) is None:
            turns, threads = (anyio.CapacityLimiter(self._most) for _ in range(2))
            self._here.set(_LoopState(turns, threads))
        return self._here.get()


class _Slice:
    """Tasks that one thread grades in order, until a slice of time is over or `stop` is called."""

    def __init__(self, tasks: Sequence[_Task], box: Any | None, timeout_s: float) -> None:
        self.done = list[GradingResult]()
        self._tasks, self._box, self._timeout_s = tasks, box, timeout_s
        self._deadlines, self._stopped = list[Deadline](), Event()

    @property
    def longest_s(self) -> float:
        """Seconds after which the thread counts as stuck: no slice should take that long."""
        task = self._tasks[0]
        limit_s = task.deadline.left_s if task.deadline else self._timeout_s
        return max(limit_s, 0.0) + SLICE_S + (GRACE_S if task.suite.needs_box else 0.0)

    def grade(self) -> None:
        """Grade the tasks in this process, until the slice of time is over or `stop` is called."""
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
        """Grade the tasks by `grade`, a function that sends replies to another process."""
        results = grade([task.row for task in self._tasks])
        if not self._stopped.is_set():
            self.done.extend(results)

    def stop(self) -> None:
        """Tell the slice's thread to end, and expire the deadline of its current task."""
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
            raise ValueError(f"a grade must be from 0 to 1, not {grade.value}")
        rule = str(grade.metadata.get(READ_BY, ""))
        verdict = GradingResult(Status.SCORED, grade.value, parsed, rule=rule)
    except DeadlinePassed as passed:
        verdict = GradingResult(Status.TIMEOUT, reason=str(passed))
    except Exception as error:
        detail = f": {error}" if suite.publishable else ""
        reason = f"{task.question.id} could not be graded ({type(error).__name__}{detail})"
        verdict = GradingResult(Status.SCORER_ERROR, reason=reason)
    return replace(verdict, seconds=monotonic() - started)


FORMS = 1 << 13
"""Maximum cached questions of epochs above 1, for suites that ask each epoch in another form."""


@dataclass(frozen=True, slots=True)
class RewardSettings:
    """Settings of a `Reward`: its limits, and the rule that sets the values of outcomes."""

    most: int | None = None
    """Maximum parallel items per event loop; None: number of cores, which always caps grading."""
    timeout_s: float = 120.0
    """Maximum seconds per item, from when its work starts; then its programs are ended."""
    max_usd: Decimal | None = None
    """Limit on the list price of all answers, in dollars; once reached, new items get no value."""
    max_masked: float = 0.3
    """Maximum share of outcomes without a value; beyond it `score` raises TooManyMasked."""
    masked_after: int = 32  # outcomes before that share is checked
    values: RewardRule = PLAIN
    budget_masks: bool = True
    """Whether items refused at `max_usd` count for `max_masked`; False if training ends there."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_usd", usd_limit("max_usd", self.max_usd))
        if self.most is not None and self.most < 1:
            raise UserError(
                f"`most`, the number of items scored at once, must be at least 1, not {self.most}."
            )
        if not 0 <= self.max_masked <= 1:
            raise UserError(f"max_masked must be a share from 0 to 1, not {self.max_masked}.")
        if not self.timeout_s > 0:
            raise UserError(f"timeout_s must be more than 0 seconds, not {self.timeout_s}.")


class Reward:
    """Rewards completions for the questions of some suites; usable from several event loops.

    `box`, the sandbox for programs, must be open, and its `facts` must have been called. A
    suite whose grades include a second verdict (`Rewarding`) is replaced by one without it.
    """

    def __init__(
        self,
        splits: Mapping[str, SuiteSplit],
        answer: Sampler = as_reply,
        settings: RewardSettings = RewardSettings(),
        box: Any | None = None,
        elsewhere: RowGrader | None = None,
    ) -> None:
        """Take each suite's questions; UserError if a suite runs programs, but has no sandbox."""
        self._suites: dict[str, Suite[Any]] = {
            name: split.suite.for_reward() if isinstance(split.suite, Rewarding) else split.suite
            for name, split in splits.items()
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
                fix = "open one with `open_box` (podium) and pass it as box="
                raise UserError(f"Suite {name!r} runs programs in a sandbox: {fix}.")

    def __reduce__(self) -> Any:
        raise TypeError(
            "A Reward cannot be sent to another process: pass a function that makes one."
        )

    @property
    def counts(self) -> RewardCounts:
        """Counts of the outcomes so far."""
        return self._counter.counts(self._graders.abandoned)

    async def score(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Return one outcome per item, in order, even for failures; UserError for unknown items."""
        outcomes: dict[int, RewardOutcome] = {}
        await self.score_each(items, outcomes.__setitem__)
        return [outcomes[index] for index in range(len(items))]

    async def score_each(self, items: Sequence[RewardItem], tell: "Note") -> None:
        """Call `tell` with each item's index and outcome once it is done; raise as `score` does."""
        questions = [self._asked(item) for item in items]
        scope = anyio.CancelScope()

        def note(index: int, outcome: RewardOutcome) -> None:
            tell(index, outcome)
            spent = outcome.status is Status.BUDGET and not self._settings.budget_masks
            self._counter.note(outcome, latest=not spent)
            if outcome.value is None and self._counter.refusal:
                scope.cancel()

        jobs = list(zip(range(len(items)), items, questions, strict=True))
        with scope:
            if self._answer is as_reply:
                await self._grade_replies(jobs, note)
            else:
                async with anyio.create_task_group() as group:
                    for job in jobs:
                        group.start_soon(self._in_turn, *job, note)
        self._counter.refuse()

    def grade_slice(self, rows: Sequence[GradingRow]) -> list[GradingResult]:
        """Grade replies (rows) that another process sends (`RowGrader`); callable in any thread."""
        chunk = self._graders.slice([self._task(*row) for row in rows])
        thread = Thread(target=chunk.grade, daemon=True)
        thread.start()
        thread.join(chunk.longest_s)
        chunk.stop()
        return [*chunk.done, OUTLASTED] if thread.is_alive() else chunk.done

    def _task(
        self, suite: str, question: str, epoch: int, text: str, left_s: float | None
    ) -> _Task:
        form = self._asked(RewardItem(suite, question, text, epoch=epoch))
        deadline = None if left_s is None else Deadline(monotonic() + left_s)
        return _Task(0, self._suites[suite], form, epoch, text, deadline)

    def _asked(self, item: RewardItem) -> Question:
        if item.suite not in self._suites:
            names = ", ".join(sorted(self._suites))
            raise UserError(f"There is no suite {item.suite!r} in this reward; it has: {names}.")
        question = self._questions[item.suite].get(item.question)
        if question is None or item.epoch < 1:
            subject = f"question {item.question!r}" if question is None else f"epoch {item.epoch}"
            raise UserError(f"The suite {item.suite!r} has no {subject}. Correct the item.")
        if check := getattr(self._answer, "check", None):
            check(item)
        key = (item.suite, item.question, item.epoch)
        return question if item.epoch == 1 else self._form(*key)

    def _at_epoch(self, suite: str, question: str, epoch: int) -> Question:
        return at_epoch(self._suites[suite], self._questions[suite][question], epoch)

    async def _grade_replies(
        self, jobs: Iterable[tuple[int, RewardItem, Question]], note: "Note"
    ) -> None:
        def on_done(index: int, result: GradingResult) -> None:
            note(index, self._outcome(result, _REPLY, result.seconds, result.seconds))

        tasks = [
            _Task(index, self._suites[item.suite], question, item.epoch, item.completion)
            for index, item, question in jobs
        ]
        await self._graders.grade(tasks, on_done)

    async def _in_turn(
        self, index: int, item: RewardItem, question: Question, note: "Note"
    ) -> None:
        if self._turns.get(None) is None:
            self._turns.set(anyio.CapacityLimiter(self._settings.most or cores()))
        async with self._turns.get():
            started = monotonic()
            limit = self._settings.max_usd
            if limit is not None and self._counter.usd >= limit:
                over = GradingResult(
                    Status.BUDGET, reason="The limit was spent before this item started."
                )
                note(index, self._outcome(over, Rollout(None, over.status), 0.0))
                return
            answered = await self._answered(item, question)
            self._counter.pay(answered.usd)
            suite, until = self._suites[item.suite], Deadline(started + self._settings.timeout_s)
            if answered.text is None:  # messages of a provider or policy may quote questions
                hidden = "The reason is withheld because it could quote the question."
                reason = answered.reason if suite.publishable else hidden
                failed = GradingResult(answered.status, reason=reason)
                note(index, self._outcome(failed, answered, monotonic() - started))
                return
            grading_started = monotonic()

            def on_done(index: int, result: GradingResult) -> None:
                now = monotonic()
                note(index, self._outcome(result, answered, now - started, now - grading_started))

            task = _Task(index, suite, question, item.epoch, answered.text, until)
            await self._graders.grade([task], on_done)

    async def _answered(self, item: RewardItem, question: Question) -> Rollout:
        """Return the answer to an item; a failure or timeout becomes an answer without a text."""
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
        return _failed(Status.TIMEOUT, "The deadline for this item passed before it was answered.")

    def _outcome(
        self, result: GradingResult, answered: Rollout, seconds: float, grading_s: float = 0.0
    ) -> RewardOutcome:
        effort = Effort(answered.usd, answered.calls, answered.again)
        value = self._settings.values.of(result.status, result.value, effort)
        if value is None and result.status in VALUED:
            reason = "Its cost is unknown, and so is its value."
            result = GradingResult(Status.SCORER_ERROR, reason=reason)
        components = {"correct": result.value, "parsed": float(result.parsed)}
        return RewardOutcome(
            value=value,
            status=result.status,
            components=components if result.status in VALUED else dict.fromkeys(components),
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

_REPLY = Rollout("")  # a completion that is the answer itself: no calls and no cost


def _failed(status: Status, reason: str) -> Rollout:
    return Rollout(None, status, usage=None, usd=None, reason=reason)
