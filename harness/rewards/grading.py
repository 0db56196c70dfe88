"""Grade many replies, each once: in threads, within a time, with the work of equal ones shared."""

from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from threading import Lock
from time import monotonic
from typing import Any

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from harness.errors import PodiumError
from harness.parallel import cores
from harness.records import Question
from harness.rewards.outcome import Status
from harness.suite import Suite

# § A box that keeps to a deadline: no run outlasts it, and after it none begins.
# §
# § A program that runs into its own limit has failed, and that is graded. One that is ended
# § here was
# § not given its time, so nothing is said about it: `DeadlinePassed` is raised instead of an
# § outcome.
# § Not here: which deadline an item has (core.py). The box is any `sandbox.Box`; the hub
# § imports none.


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
        """Let it have passed: nobody waits for the result any more."""
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

    @property
    def name(self) -> str:
        """The box's own name."""
        return self.box.name

    def facts(self, image: str) -> Any:
        """Say what the box says of an image."""
        return self.box.facts(image)

    def close(self) -> None:
        """Leave the box open: it is others' too."""

    def run(
        self, program: Any, inputs: Iterable[bytes], limits: Any, *, alone: bool = False
    ) -> Generator[Any]:
        """Yield the box's outcomes, one per input, until the deadline.

        Raises DeadlinePassed at it, and what the box raises. While more is left than one run may
        take, inputs go to the box as they are, so that it can do several in one go; then one by
        one, each with what is left as its wall limit.
        """
        given = iter(inputs)
        if program.runner != OFFICIAL:
            early = _while(lambda: self.deadline.left_s >= limits.wall_s, given)
            with closing(self.box.run(program, early, limits, alone=alone)) as outcomes:
                yield from outcomes
        for batch in [given] if program.runner == OFFICIAL else ([one] for one in given):
            yield from self._shortened(program, batch, limits, alone)

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


def _while(there_is_time: Callable[[], bool], given: Iterator[bytes]) -> Generator[bytes]:
    """Yield inputs as long as there is time; what is not taken stays in `given`."""
    while there_is_time():
        try:
            one = next(given)
        except StopIteration:
            return
        yield one


# § Grade many replies, each once: in threads, within a time, with the work of equal ones
# § shared.
# §
# § The grade itself is the suite's own function, the one that scores an evaluation. Not here:
# § who
# § answered (core.py) and what a grade is worth as a reward (core.py).


REMEMBERED = 1 << 16
"""Grades that are kept for equal replies, the latest used ones."""

BATCH = 256
"""Replies without programs that one thread is given at a time: a task for each would cost more
than grading them."""

SLICE_S = 0.25
"""Seconds after which such a thread hands in what it has: a stuck reply holds up no other."""

GRACE_S = 5.0
"""Seconds that a box has to end its program after the deadline before its thread is abandoned."""


@dataclass(frozen=True, slots=True)
class GradingTask:
    """A reply to grade; two are equal when all but the deadline is."""

    suite: Suite[Any]
    question: Question
    """Unsealed, as its epoch asks it."""
    epoch: int
    text: str
    deadline: Deadline | None = None
    """None: a full time-out, from when its turn comes."""

    @property
    def key(self) -> bytes:
        """A digest that equal sheets share; long replies are not kept in memory."""
        said = f"{self.suite.name}\0{self.question.id}\0{self.epoch}\0{self.text}"
        return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class GradingResult:
    """What became of a sheet: `SCORED` with a value, or why there is none."""

    status: Status
    value: float = 0.0
    parsed: bool = False
    reason: str = ""
    seconds: float = 0.0
    shared: bool = False


OnDone = Callable[[int, GradingResult], None]
"""Called on the event loop with the place of a sheet in its list and its verdict."""


@dataclass(slots=True)
class _InFlight:
    """A sheet that is being graded."""

    verdict: GradingResult | None = None
    """None also when its grading was cancelled."""
    settled: bool = False
    told: anyio.Event | None = None
    """Made by the first one who waits: an event for each sheet would cost as much as its grade."""

    async def wait(self) -> GradingResult | None:
        """Return the verdict, as soon as the work on it is over."""
        if not self.settled:
            self.told = self.told or anyio.Event()
            await self.told.wait()
        return self.verdict

    def settle(self, verdict: GradingResult | None) -> None:
        """Say that the work is over."""
        self.verdict, self.settled = verdict, True
        if self.told:
            self.told.set()


@dataclass(frozen=True, slots=True)
class _Claim:
    at: int
    key: bytes
    sheet: GradingTask
    slot: _InFlight


@dataclass(frozen=True, slots=True)
class _LoopState:
    """What belongs to one event loop: a trainer may bring its own, and so may its workers."""

    turns: anyio.CapacityLimiter
    threads: anyio.CapacityLimiter
    """As many as there are turns, so that nobody who has a turn waits for a thread."""
    under_way: dict[bytes, _InFlight] = field(default_factory=dict[bytes, _InFlight])


class Graders:
    """Grades sheets, at most `most` at once, each within `timeout_s` seconds."""

    def __init__(self, box: Any | None, most: int | None, timeout_s: float) -> None:
        """Grade programs in this box; more at once than there are cores would only wait."""
        self.abandoned = 0
        self._box = box
        self._most = min(most or cores(), cores())
        self._timeout_s = timeout_s
        self._known: OrderedDict[bytes, GradingResult] = OrderedDict()
        self._lock = Lock()
        self._here: RunVar[_LoopState] = RunVar("podium graders")

    async def grade(self, sheets: Sequence[GradingTask], tell: OnDone) -> None:
        """Tell the verdict of every sheet, as it comes; whatever goes wrong is a verdict too."""
        left = list(enumerate(sheets))
        while left:
            mine, others = self._claimed(left, tell)
            try:
                await self._grade_claims(mine, tell)
            finally:
                for claim in mine:  # those that a cancellation left: whoever waits does them
                    self._settle(claim, None)
            left = list[tuple[int, GradingTask]]()
            for at, sheet, slot in others:
                verdict = await slot.wait()
                if verdict is None:
                    left.append((at, sheet))
                else:
                    tell(at, replace(verdict, shared=True))

    def _claimed(
        self, left: Sequence[tuple[int, GradingTask]], tell: OnDone
    ) -> tuple[list[_Claim], list[tuple[int, GradingTask, _InFlight]]]:
        """Tell what is known; return what is ours to grade, and what others are grading."""
        under_way = self._run().under_way
        mine: list[_Claim] = []
        others: list[tuple[int, GradingTask, _InFlight]] = []
        for at, sheet in left:
            key = sheet.key
            known = self._remembered(key)
            if known is not None:
                tell(at, replace(known, shared=True))
            elif key in under_way:
                others.append((at, sheet, under_way[key]))
            else:
                mine.append(_Claim(at, key, sheet, under_way.setdefault(key, _InFlight())))
        return mine, others

    async def _grade_claims(self, claims: Sequence[_Claim], tell: OnDone) -> None:
        """Grade programs one by one and all else in batches, which the threads share evenly."""
        boxed = [claim for claim in claims if claim.sheet.suite.needs_box]
        plain = [claim for claim in claims if not claim.sheet.suite.needs_box]
        size = min(BATCH, max(1, -(-len(plain) // self._most)))
        batches = [[claim] for claim in boxed]
        batches += [plain[at : at + size] for at in range(0, len(plain), size)]
        async with anyio.create_task_group() as tasks:
            for batch in batches:
                tasks.start_soon(self._grade_batch, batch, tell)

    async def _grade_batch(self, batch: Sequence[_Claim], tell: OnDone) -> None:
        here = self._run()
        done = 0
        while done < len(batch):
            async with here.turns:
                verdicts = await self._slice([claim.sheet for claim in batch[done:]], here)
            for claim, verdict in zip(batch[done:], verdicts, strict=False):
                self._settle(claim, verdict)
                tell(claim.at, verdict)
            done += len(verdicts)

    async def _slice(self, sheets: Sequence[GradingTask], here: _LoopState) -> list[GradingResult]:
        """Return the verdicts of the first sheets, at least of one."""
        work = _GradingThread(sheets, self._box, self._timeout_s)
        try:
            with anyio.move_on_after(work.most_s) as time:
                await anyio.to_thread.run_sync(
                    work.grade, abandon_on_cancel=True, limiter=here.threads
                )
        finally:
            work.stop()
        if not time.cancelled_caught:
            return work.done
        self.abandoned += 1
        return [*work.done, GradingResult(Status.TIMEOUT, reason="Grading outlasted its time.")]

    def _settle(self, claim: _Claim, verdict: GradingResult | None) -> None:
        if claim.slot.settled:
            return
        self._run().under_way.pop(claim.key, None)
        claim.slot.settle(verdict)
        if verdict is not None and verdict.status is Status.SCORED:
            with self._lock:
                self._known[claim.key] = verdict
                if len(self._known) > REMEMBERED:
                    self._known.popitem(last=False)

    def _remembered(self, key: bytes) -> GradingResult | None:
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
            return known

    def _run(self) -> _LoopState:
        here = self._here.get(None)
        if here is None:
            turns, threads = (anyio.CapacityLimiter(self._most) for _ in range(2))
            here = _LoopState(turns, threads)
            self._here.set(here)
        return here


class _GradingThread:
    """A thread's share: sheets to grade in order until a slice of time is over."""

    def __init__(self, sheets: Sequence[GradingTask], box: Any | None, timeout_s: float) -> None:
        self.done: list[GradingResult] = []
        self._sheets = sheets
        self._box = box
        self._timeout_s = timeout_s
        self._deadline = Deadline(0.0)
        self._stopped = False

    @property
    def most_s(self) -> float:
        """Seconds after which nothing more is waited for."""
        first = self._sheets[0]
        own = first.deadline.left_s if first.deadline else self._timeout_s
        return max(own, 0.0) + SLICE_S + (GRACE_S if first.suite.needs_box else 0.0)

    def stop(self) -> None:
        """Begin nothing more; a program that runs is ended by its own limits at the latest."""
        self._stopped = True
        self._deadline.expire()

    def grade(self) -> None:
        """Grade; runs in a thread."""
        until = monotonic() + SLICE_S
        for sheet in self._sheets:
            self._deadline = sheet.deadline or Deadline(monotonic() + self._timeout_s)
            verdict = _verdict(sheet, self._box, self._deadline)
            if self._stopped:
                return
            self.done.append(verdict)
            if monotonic() >= until:
                return


def public_reason(suite: Suite[Any], reason: str) -> str:
    """Return a reason that may be passed on: a provider's or a policy's words may quote."""
    return reason if suite.publishable else "Why is not said: it could quote the question."


def _verdict(sheet: GradingTask, box: Any | None, deadline: Deadline) -> GradingResult:
    """Return the suite's grade, or why there is none; never a question's text."""
    suite, started = sheet.suite, monotonic()
    try:
        if suite.needs_box:
            grade = suite.grade(sheet.question, sheet.text, DeadlineBox(box, deadline))
        else:
            grade = suite.grade(sheet.question, sheet.text)
        parsed = grade.extracted is not None
        if not 0 <= grade.value <= 1:
            raise ValueError(f"a grade is from 0 to 1, not {grade.value}")
    except DeadlinePassed as passed:
        return GradingResult(Status.TIMEOUT, reason=str(passed), seconds=monotonic() - started)
    except Exception as error:
        said = f": {error}" if suite.publishable else ""
        reason = f"{sheet.question.id} could not be graded ({type(error).__name__}{said})"
        return GradingResult(Status.SCORER_ERROR, reason=reason, seconds=monotonic() - started)
    return GradingResult(Status.SCORED, grade.value, parsed, seconds=monotonic() - started)
