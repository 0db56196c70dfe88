"""Systems in which a model (the conductor) writes a plan that workers run, and may plan again.

Each request for a plan is a billed call of the role `conductor`, not a step. All planning rounds
are one workflow: `Answer.plan` has all steps, `Answer.noted["rounds"]` the steps per round.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal, get_args

from inspect_ai.model import ChatMessage
from inspect_ai.solver import Solver, solver

from podium.conductor import prompt
from podium.conductor.guided_decoding import plan_regex
from podium.conductor.parse import KEEP, Access, PlanFormat, join_rounds, plan_or_keep, read_plan
from podium.harness.budget import usd_limit
from podium.harness.errors import UserError, WorkerError
from podium.harness.execute import Budget, execute
from podium.harness.inspect_adapters import as_solver
from podium.harness.ledger.system_runs import PLANNING
from podium.harness.pool import Pool
from podium.harness.records import CONDUCTOR, FALLBACK, Answer, Question, Reply
from podium.harness.system import Calls, System, SystemCard, malformed
from podium.harness.workflow import MAX_STEPS, Malformed, Sampling, Workflow

ANSWER_STANDS = "a later plan could not be read, so the answer before it stands"
ReplyStyle = Literal["lists", "json"]
FURTHER = 1  # rounds after the first, as in the training of arXiv 2512.04388


@dataclass(frozen=True, slots=True)
class RoundLimits:
    """The number of planning rounds per question, and the limits of all its rounds together."""

    further: int = 1  # rounds after the first; the paper trains with one
    max_calls: int | None = None  # of workers; None: 2 * max_steps - 1, or max_steps in one round
    max_usd: Decimal | None = None
    """Limit of a question in dollars, conductor calls included, cached tokens at full price; None:
    no limit."""

    def __post_init__(self) -> None:
        if self.further < 0 or (self.max_calls is not None and self.max_calls < 1):
            raise UserError("rounds must be at least 0, and max_calls at least 1.")
        if self.max_usd is not None and not self.max_usd > 0:
            raise UserError("max_usd, the limit of all rounds together, must be more than 0.")

    def calls(self, form: PlanFormat) -> int:
        """Return the limit of worker calls per question; later plans may use what remains of it."""
        twice = 2 * form.max_steps - 1 if self.further else form.max_steps
        return twice if self.max_calls is None else self.max_calls


@dataclass(frozen=True, slots=True)
class Conductor:
    """A conductor that can be asked for a plan: its pool, its plan format, the workers shown."""

    form: PlanFormat
    pool: Pool
    workers: tuple[str, ...]  # in the order of their numbers in the prompt
    retries: int = 1
    constrained: bool = False  # whether guided decoding allows only valid plans


@dataclass(frozen=True, slots=True)
class PlanReply:
    """A conductor's last attempt at a plan, as text and parsed, and the replies of all attempts."""

    said: str
    plan: Workflow | Malformed
    replies: tuple[Reply, ...]  # of all attempts; they are not steps of a workflow


async def ask_for_plan(
    conductor: Conductor, request: Sequence[ChatMessage], number: int = 1
) -> PlanReply:
    """Ask the conductor for a plan; ask again if it is invalid, at most `retries` times."""
    if CONDUCTOR not in conductor.pool.models:
        raise UserError(
            "This pool has no conductor: add a [conductor] table to the pool file, or name one "
            "with --model-role conductor=PROVIDER/MODEL."
        )
    chat, replies, sampling = list(request), list[Reply](), None
    if conductor.constrained:
        regex = plan_regex(conductor.form, len(conductor.workers), later=number > 1)
        sampling = Sampling(regex=regex)
    round = f"{PLANNING} again, round {number}" if number > 1 else PLANNING
    while True:
        label = f"{round}, retry {len(replies)}" if replies else round
        reply = await conductor.pool.ask(CONDUCTOR, chat, label, sampling)
        replies.append(reply)
        plan = read_plan(conductor.form, reply.text, conductor.workers)
        keeps = number > 1 and plan_or_keep(plan) is not plan
        if not isinstance(plan, Malformed) or keeps or len(replies) > conductor.retries:
            return PlanReply(reply.text, plan, tuple(replies))
        chat += prompt.retry_prompt(conductor.form, reply.text, plan)


def _total_usd(replies: Sequence[Reply]) -> Decimal:
    unpriced = next((reply.worker for reply in replies if reply.usd is None), None)
    if unpriced:
        raise WorkerError(
            f"{unpriced} has no price, so max_usd cannot be enforced. Give it a price in the pool "
            "file."
        )
    return sum((reply.usd for reply in replies if reply.usd), Decimal(0))


@dataclass(slots=True)
class _ConductorRun:
    conductor: Conductor
    question: Question
    rounds: RoundLimits
    plan: Workflow = field(default_factory=lambda: Workflow(()))
    sizes: list[int] = field(default_factory=list[int])  # number of steps in each round
    spent: list[Reply] = field(default_factory=list[Reply])  # the conductor's own replies
    answer: Answer = field(default_factory=lambda: Answer(""))
    ended: str = "rounds"  # why planning ended: `rounds`, `kept`, `malformed`, or a limit's name

    async def carry_out(self, plan: Workflow) -> None:
        joined = join_rounds(self.plan, plan) if self.sizes else plan
        usd = self.rounds.max_usd
        budget = Budget(usd=None if usd is None else usd - _total_usd(self.spent))
        pool = self.conductor.pool
        self.answer = await execute(joined, self.question, pool, budget, self.answer)
        self.plan = joined
        self.sizes.append(len(plan.steps))

    def limit(self) -> str | None:
        if self.answer.stopped:
            return self.answer.stopped
        if self.steps_left() < 1:
            return "calls"
        usd = self.rounds.max_usd
        over = usd is not None and _total_usd((*self.spent, *self.answer.replies)) >= usd
        return "usd" if over else None

    def steps_left(self) -> int:
        form = self.conductor.form
        return min(form.max_steps, self.rounds.calls(form) - len(self.plan.steps))

    def noted(self) -> dict[str, Any]:
        notes: dict[str, Any] = {}
        if self.rounds.further and self.sizes:
            notes |= {"rounds": self.sizes, "ended": self.ended}
            notes |= {FALLBACK: ANSWER_STANDS} if self.ended == "malformed" else {}
        return notes


async def _run_later_rounds(work: _ConductorRun, request: Sequence[ChatMessage], text: str) -> None:
    for number in range(2, work.rounds.further + 2):
        limit = work.limit()
        if limit:
            work.ended = limit
            return
        form = replace(work.conductor.form, max_steps=work.steps_left())
        request = prompt.later_prompt(form, request, text, work.answer.text)
        planned = await ask_for_plan(replace(work.conductor, form=form), request, number)
        work.spent += planned.replies
        plan, text = plan_or_keep(planned.plan), planned.said
        if not isinstance(plan, Workflow):
            work.ended = "kept" if plan is KEEP else "malformed"
            return
        await work.carry_out(plan)


FIRST_ONLY, PAPER_FORM = RoundLimits(further=0), PlanFormat()


def conductor_system(
    form: PlanFormat = PAPER_FORM,
    *,
    retries: int = 1,
    shown: prompt.ShownWorkers = prompt.WHOLE_POOL,
    rounds: RoundLimits = FIRST_ONLY,
) -> System:
    """Return a system: the pool's conductor writes a plan for each question, and workers run it."""
    if retries < 0 or form.max_steps < 1:
        raise UserError("retries must be at least 0, and max_steps at least 1.")

    async def answer(question: Question, pool: Pool) -> Answer:
        prompt.shown_count(shown, len(pool.workers))
        if form.worker and form.worker not in pool.workers:
            names = ", ".join(pool.workers)
            raise UserError(f"This pool has no worker {form.worker!r}; its workers are: {names}.")
        conductor, chat, noted = first_request(form, shown, question, pool)
        work = _ConductorRun(replace(conductor, retries=retries), question, rounds)
        planned = await ask_for_plan(work.conductor, chat)
        work.spent += planned.replies
        plan = planned.plan
        if isinstance(plan, Malformed):
            work.answer = malformed(plan)
        else:
            await work.carry_out(plan)
            await _run_later_rounds(work, chat, planned.said)
        return replace(work.answer, noted={**work.noted(), **noted})

    return answer


def first_request(
    form: PlanFormat, view: prompt.ShownWorkers, question: Question, pool: Pool
) -> tuple[Conductor, list[ChatMessage], dict[str, Any]]:
    """Return a question's conductor, its first request, and notes on that request for the log."""
    reading = view.reading or prompt.CardReading()
    workers = prompt.shown_workers(pool.workers, question.id, view)
    workers = prompt.legible_workers(workers, [*map(pool.card, workers)], question.id, view)
    cards = {worker: pool.card(worker) for worker in workers}
    unread = [worker for worker, card in cards.items() if not reading.knows(card)]
    legible = ["" if worker in unread else card for worker, card in cards.items()]
    chat, cut = prompt.fit_prompt(form, question.text, legible, reading.fits)
    complete = view.whole and workers == pool.workers and not unread
    noted = {"shown": [] if complete else list(workers), "unread": unread, "cut": cut}
    conductor = Conductor(form, pool, workers, constrained=reading.constrained)
    return conductor, chat, {name: value for name, value in noted.items() if value}


CONDUCTOR_PROMPTED = SystemCard(
    name="conductor-prompted",
    solver="podium/conductor_prompted",
    summary="A prompted model writes a workflow for each question; the workers carry it out.",
    source="Conductor, arXiv 2512.04388 (prompted, not trained)",
    calls=Calls(
        "1-5, plus 1 or 2 of the conductor; none if its plan stays malformed",
        lambda n, args: (0, int(args.get("max_steps") or MAX_STEPS)),
        conductor=lambda args: 1 + int(args.get("retries", 1)),
    ),
    prompts=prompt.prompt_texts(PAPER_FORM),
    needs=frozenset({"conductor"}),
    deviations=(
        "the prompt has the paper's structure in our own words, with our own examples",
        "models are shown with their role cards unless cards=false (the paper hides them)",
        "one retry that shows why a plan could not be read",
        "access may name single steps, not only none and all, unless access=binary",
    ),
    acts="last step acts",
)

CONDUCTOR_BEST_SINGLE = SystemCard(
    name="conductor-best-single",
    solver="podium/conductor_best_single",
    summary="The conductor's plan, with every step sent to the best single worker.",
    source="Conductor, arXiv 2512.04388, Table 10 (control)",
    calls=CONDUCTOR_PROMPTED.calls,
    group="controls",
    prompts=CONDUCTOR_PROMPTED.prompts,
    needs=frozenset({"conductor", "train"}),
    traits=frozenset({"best worker"}),
    deviations=(
        *CONDUCTOR_PROMPTED.deviations,
        "the conductor does not know that one worker does all of it; its calls are billed",
    ),
    acts="last step acts",
)

CONDUCTOR_RECURSIVE = SystemCard(
    name="conductor-recursive",
    solver="podium/conductor_recursive",
    summary="The conductor sees its plan's result, and keeps the answer or writes one more plan.",
    source="Conductor, arXiv 2512.04388, section 3.2 (recursive, prompted, not trained)",
    calls=Calls(
        "1-9 over both rounds, plus 2-4 of the conductor; none if its plan stays malformed",
        lambda n, args: (0, _most_calls(args)),
        conductor=lambda args: (1 + args.get("retries", 1)) * (1 + args.get("rounds", FURTHER)),
    ),
    prompts=(*CONDUCTOR_PROMPTED.prompts, *prompt.LATER_TEXTS),
    needs=frozenset({"conductor"}),
    deviations=(
        *CONDUCTOR_PROMPTED.deviations,
        "at most one call less than twice those of the longest plan; the paper gives no bound",
        "a later plan that cannot be read leaves the answer before it",
    ),
    acts="last step acts",
)


def _most_calls(args: Any) -> int:
    cap = args.get("max_calls")
    form = PlanFormat(max_steps=int(args.get("max_steps") or MAX_STEPS))
    further = args.get("rounds")
    rounds = RoundLimits(FURTHER if further is None else int(further), int(cap) if cap else None)
    first = max(rounds.calls(form), form.max_steps)  # a first plan runs whole, whatever `max_calls`
    return min(first, form.max_steps * (rounds.further + 1))


@solver
def conductor_prompted(
    pool: str | None = None,
    cards: bool = True,
    retries: int = 1,
    max_steps: int = MAX_STEPS,
    examples: bool = True,
    reply: ReplyStyle = "lists",
    subtasks: bool = True,
    access: Access = "fine",
    shown: int | str = "all",
    order: str = "pool",
    shown_seed: int = 0,
) -> Solver:
    """Let the model of role `conductor` plan each question; `cards`: describe the workers to it."""
    form = PlanFormat(
        cards=cards,
        examples=examples,
        reply=_one_of("reply", reply, ReplyStyle),
        subtasks=subtasks,
        access=_one_of("access", access, Access),
        max_steps=max_steps,
    )
    whom = prompt.parse_shown(shown, order, shown_seed)
    return as_solver(conductor_system(form, retries=retries, shown=whom), pool)


@solver
def conductor_best_single(
    worker: str,
    pool: str | None = None,
    cards: bool = True,
    retries: int = 1,
    max_steps: int = MAX_STEPS,
) -> Solver:
    """Let the model of role `conductor` plan each question, but let one worker do every step."""
    form = PlanFormat(cards=cards, max_steps=max_steps, worker=worker)
    return as_solver(conductor_system(form, retries=retries), pool)


@solver
def conductor_recursive(
    pool: str | None = None,
    cards: bool = True,
    retries: int = 1,
    max_steps: int = MAX_STEPS,
    rounds: int = FURTHER,
    max_calls: int | None = None,
    max_usd: str | float | None = None,
    examples: bool = True,
    reply: ReplyStyle = "lists",
    access: Access = "fine",
) -> Solver:
    """Let the model of role `conductor` plan, and plan again after it has seen the answer.

    `rounds`: number of planning rounds after the first. `max_calls` (worker calls) and `max_usd`
    (dollars, conductor calls included) limit all rounds of a question together. If the first plan
    alone has more than `max_calls` steps, it is run in full, and no later plan follows.
    """
    form = PlanFormat(
        cards=cards,
        examples=examples,
        reply=_one_of("reply", reply, ReplyStyle),
        access=_one_of("access", access, Access),
        max_steps=max_steps,
    )
    bounds = RoundLimits(rounds, max_calls, usd_limit("max_usd", max_usd))
    return as_solver(conductor_system(form, retries=retries, rounds=bounds), pool)


def _one_of(name: str, value: Any, choice: Any) -> Any:
    allowed = get_args(choice)
    if value not in allowed:
        raise UserError(f"{name} must be {' or '.join(allowed)}, not {value!r}.")
    return value
