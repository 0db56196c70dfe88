"""A model as conductor: ask it for a plan, run it, and perhaps ask again.

The one place where a conductor meets a pool: prompted, trained and recursive systems are calls of
`conductor_system`. Conductor calls are calls of the role `conductor`: they are billed, retries
included, and never count as steps. A plan that stays malformed is the model's failure, so it is
graded, and wrong. Not here: what is said and how it is read (prompt.py, reading.py, recursion.py),
and the prompted systems by name (prompted.py).
"""

from dataclasses import replace

from conductor.adaptive import WHOLE, CardReading, Shown, checked, legible_workers, shown_workers
from conductor.asking import Seat, ask_for_plan
from conductor.form import Form
from conductor.prompt import request, shortened
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
    form, reading = form or Form(), shown.reading or CardReading()
    if retries < 0 or form.max_steps < 1:
        raise UserError("A conductor needs retries of at least 0 and max_steps of at least 1.")

    async def answer(question: Question, pool: Pool) -> Answer:
        _refuse_impossible(form, shown, pool)
        workers = _whom(pool, question, shown)
        cards = [pool.card(worker) for worker in workers]
        cut = shortened(form, question.text, cards, reading.fits) if reading.fits else None
        chat = cut.chat if cut else request(form, question.text, cards)
        seat = Seat(form, pool, workers, retries, constrained=reading.constrained)
        work = Work(seat, question, rounds)
        planned = await ask_for_plan(work.seat, chat)
        work.heard(planned)
        plan = planned.reading.plan
        if isinstance(plan, Malformed):
            work.answer = malformed(plan)
        else:
            await work.carry_out(plan)
            await further_rounds(work, chat, planned.said)
        whole = shown.whole and workers == pool.workers
        noted = ({} if whole else {"shown": list(workers)}) | (cut.noted if cut else {})
        return replace(work.answer, noted={**work.noted(), **noted})

    return answer


def _whom(pool: Pool, question: Question, shown: Shown) -> tuple[str, ...]:
    workers = shown_workers(pool.workers, question.id, shown)
    if shown.reading is None:
        return workers
    cards = [pool.card(worker) for worker in workers]
    return legible_workers(workers, cards, question.id, shown)


def _refuse_impossible(form: Form, shown: Shown, pool: Pool) -> None:
    """Raise UserError, before the conductor is asked, for workers that the pool lacks."""
    checked(shown, len(pool.workers))
    if form.worker and form.worker not in pool.workers:
        known = ", ".join(pool.workers)
        raise UserError(f"This pool has no worker {form.worker!r}; its workers are: {known}.")


def by_one(plan: Workflow, worker: str) -> Workflow:
    """Return a plan whose every step one worker does."""
    return Workflow(tuple(replace(step, worker=worker) for step in plan.steps))
