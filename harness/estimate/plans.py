"""What a system would ask, found without asking: its plan is run over a pool that only counts.

A hand-written plan is a pure function of the question and the workers' names, so a pool whose
replies are empty places shows every request it makes: which worker, how many bytes, which replies
it reads. A plan that a model writes cannot be known; then only bounds can (`worst_case`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import anyio
from inspect_ai.model import ChatMessage, Model

from harness.errors import PodiumError
from harness.pool import Pool
from harness.pool_file import PoolSpec
from harness.records import CONDUCTOR, Grade, Question, Reply
from harness.system import System
from harness.workflow import Sampling

OPEN, CLOSE = "\ue000", "\ue001"
"""Around the number of a reply that is not there yet: private characters, in no question."""


@dataclass(frozen=True, slots=True)
class CountedCall:
    """A request that would be made."""

    worker: str
    prompt_bytes: int
    """UTF-8 bytes of its texts, replies that it reads not included."""
    reads: tuple[int, ...] = ()
    """The calls whose replies are in it, by their number from 0; one twice if it is there twice."""
    times_max_tokens: int = 1
    """How many of its worker's token limits the reply may have (`Sampling`)."""


class Unplannable(PodiumError):
    """What a system does depends on what a model says; holds the request to that model."""

    def __init__(self, first: CountedCall) -> None:
        """Keep the first request to the conductor."""
        super().__init__("a model writes this system's plans")
        self.first = first


@dataclass(slots=True)
class CountingPool(Pool):
    """A pool that calls nobody and keeps every request."""

    counted: list[CountedCall] = field(default_factory=list[CountedCall])

    async def ask(
        self,
        worker: str,
        messages: Sequence[ChatMessage],
        step: str,
        sampling: Sampling | None = None,
    ) -> Reply:
        """Count one request; its reply is a place for what is not known.

        Raises `Unplannable` when a conductor is asked, UserError for a worker the pool lacks.
        """
        if worker != CONDUCTOR:
            self._known(worker)
        call = _counted(worker, "\n".join(message.text for message in messages))
        if worker == CONDUCTOR:
            raise Unplannable(call)
        times = sampling.times_max_tokens if sampling else 1
        self.counted.append(replace(call, times_max_tokens=times))
        return Reply(worker, f"{OPEN}{len(self.counted) - 1}{CLOSE}", None)

    def _known(self, worker: str) -> None:
        self._model(worker)


async def _failing_trial(question: Question, reply: str) -> Grade:
    """Return that no public test passes: who asks until they do, asks the most it may."""
    return Grade(0.0, None)


def _counted(worker: str, text: str) -> CountedCall:
    reads: list[int] = []
    own = 0
    for number, piece in enumerate(text.split(OPEN)):
        place, closed, rest = piece.partition(CLOSE) if number else ("", "", piece)
        if closed:
            reads.append(int(place))
        own += len(rest.encode(errors="surrogatepass"))
    return CountedCall(worker, own, tuple(reads))


def counted_calls(
    system: System, question: Question, workers: Iterable[str], spec: PoolSpec | None = None
) -> tuple[CountedCall, ...]:
    """Return the calls that a system makes for one question at its first epoch.

    Raises `Unplannable` where a model writes the plan.
    """
    ((found,),) = (counted_all(system, [(question, 1)], tuple(workers), spec),)
    return found


def counted_all(
    system: System,
    pairs: Sequence[tuple[Question, int]],
    workers: Sequence[str],
    spec: PoolSpec | None = None,
) -> list[tuple[CountedCall, ...]]:
    """Return the calls of each (sealed question, epoch); raises what `counted_calls` raises."""
    models = dict.fromkeys(workers, cast(Model, None))
    if spec and spec.conductor:
        models[CONDUCTOR] = cast(Model, None)

    async def each() -> list[tuple[CountedCall, ...]]:
        made: list[tuple[CountedCall, ...]] = []
        for question, epoch in pairs:
            pool = CountingPool(
                models=cast(Any, models), spec=spec, epoch=epoch, trial=_failing_trial
            )
            await system(question, pool)
            made.append(tuple(pool.counted))
        return made

    return anyio.run(each)


def worst_case(
    worker: str, first: CountedCall, question: Question, *, planning: int = 2, steps: int = 5
) -> tuple[CountedCall, ...]:
    """Return the most that a written plan can ask of one worker, its conductor's calls included.

    Steps that read everything before them; a subtask is part of what the conductor wrote. The
    retry has the first request, its reply, and a reason about as long as the first request. Of
    `planning` calls of the conductor those after two belong to later rounds, which see the first
    one's plan and last reply.
    """
    calls = [first]
    if planning > 1:
        calls.append(CountedCall(CONDUCTOR, 2 * first.prompt_bytes, (0,)))
    written = len(calls) - 1
    size = len(question.text.encode())
    for index in range(steps):
        before = tuple(range(written + 1, written + 1 + index))
        calls.append(CountedCall(worker, size, (written, *before)))
    seen = (*range(written + 1), len(calls) - 1)
    for later in range(len(calls), len(calls) + planning - 2):
        calls.append(CountedCall(CONDUCTOR, 3 * first.prompt_bytes, seen))
        seen = (*seen, later)
    return tuple(calls)
