"""A model as conductor: ask it for a plan, run it, and perhaps ask again.

The one place where a conductor meets a pool: prompted, trained and recursive systems are calls of
`conductor_system`. Conductor calls are calls of the role `conductor`: they are billed, retries
included, and never count as steps. A plan that stays malformed is the model's failure, so it is
graded, and wrong. Not here: what is said and how it is read (prompt.py, reading.py, recursion.py),
and the prompted systems by name (prompted.py).
"""

from dataclasses import dataclass, replace
from typing import Any

from inspect_ai.model import ChatMessage

from conductor.adaptive import WHOLE, CardReading, Shown, checked, legible_workers, shown_workers
from conductor.asking import Seat, ask_for_plan
from conductor.form import Form
from conductor.prompt import shortened
from conductor.recursion import Rounds
from conductor.rounds import Work, further_rounds
from harness.errors import UserError
from harness.pool import Pool
from harness.records import Answer, Question
from harness.system import System, malformed
from harness.workflow import Malformed, Workflow

FIRST_ONLY = Rounds(further=0)


def conductor_system(
    form: Form | None = None,
    *,
    retries: int = 1,
    shown: Shown = WHOLE,
    rounds: Rounds = FIRST_ONLY,
) -> System:
    """Return the system in which the pool's conductor plans, asked and read as the form says.

    It is shown the workers that `shown` draws for each question, and asked again as `rounds` say.
    """
    form = form or Form()
    if retries < 0 or form.max_steps < 1:
        raise UserError("A conductor needs retries of at least 0 and max_steps of at least 1.")

    async def answer(question: Question, pool: Pool) -> Answer:
        _refuse_impossible(form, shown, pool)
        asked = first_request(form, shown, question, pool)
        work = Work(replace(asked.seat, retries=retries), question, rounds)
        planned = await ask_for_plan(work.seat, asked.chat)
        work.heard(planned)
        plan = planned.reading.plan
        if isinstance(plan, Malformed):
            work.answer = malformed(plan)
        else:
            await work.carry_out(plan)
            await further_rounds(work, asked.chat, planned.said)
        return replace(work.answer, noted={**work.noted(), **asked.noted})

    return answer


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a conductor is asked first, and about whom."""

    seat: Seat
    chat: list[ChatMessage]
    noted: dict[str, Any]
    """What a log shall say of it, where that is not all: the workers that were `shown`, those whose
    cards it does not read, and what was cut."""


def first_request(form: Form, shown: Shown, question: Question, pool: Pool) -> PlanRequest:
    """Return what the pool's conductor is asked first about a question."""
    reading = shown.reading or CardReading()
    workers = shown_workers(pool.workers, question.id, shown)
    workers = legible_workers(workers, [*map(pool.card, workers)], question.id, shown)
    cards = {worker: pool.card(worker) for worker in workers}
    unread = [worker for worker, card in cards.items() if not reading.knows(card)]
    legible = ["" if worker in unread else card for worker, card in cards.items()]
    asked = shortened(form, question.text, legible, reading.fits)
    whole = shown.whole and workers == pool.workers and not unread
    noted = {"shown": [] if whole else list(workers), "unread": unread, **asked.noted}
    seat = Seat(form, pool, workers, constrained=reading.constrained)
    return PlanRequest(seat, asked.chat, {name: held for name, held in noted.items() if held})


def _refuse_impossible(form: Form, shown: Shown, pool: Pool) -> None:
    """Raise UserError, before the conductor is asked, for workers that the pool lacks."""
    checked(shown, len(pool.workers))
    if form.worker and form.worker not in pool.workers:
        known = ", ".join(pool.workers)
        raise UserError(f"This pool has no worker {form.worker!r}; its workers are: {known}.")


def by_one(plan: Workflow, worker: str) -> Workflow:
    """Return a plan whose every step one worker does."""
    return Workflow(tuple(replace(step, worker=worker) for step in plan.steps))
