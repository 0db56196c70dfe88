"""The prompted conductor: ask a model for a plan, retry once if it cannot be read, run the plan.

Conductor calls are calls of the role `conductor`: they are billed, retries included, and never
count as steps. A plan that stays malformed is the model's failure, so it is graded, and wrong. Not
here: training (the trained system is `conductor`) and further rounds.
"""

from dataclasses import replace

from inspect_ai.model import ChatMessage
from inspect_ai.solver import Solver, solver

from conductor.form import Form
from conductor.prompt import prompts, request, retry_request
from conductor.reading import read
from harness.errors import UserError
from harness.execute import execute
from harness.pool import Pool
from harness.records import CONDUCTOR, Answer, Question
from harness.solver import as_solver
from harness.system import Manifest, System, malformed
from harness.workflow import MAX_STEPS, Malformed, Workflow

CONDUCTOR_PROMPTED = Manifest(
    name="conductor-prompted",
    solver="conductor/conductor_prompted",
    summary="A prompted model writes a workflow for each question; the workers carry it out.",
    source="Conductor, arXiv 2512.04388 (prompted, not trained)",
    calls="1-5, plus 1 or 2 of the conductor; none where its plan stays malformed",
    expected=lambda n, args: (0, int(args.get("max_steps") or MAX_STEPS)),
    prompts=prompts(Form()),
    needs=frozenset({"conductor"}),
    deviations=(
        "the prompt has the paper's structure in our own words, with our own examples",
        "models are shown with their role cards unless cards=false (the paper hides them)",
        "one retry that shows why a plan could not be read",
        "access may name single steps, not only none and all",
    ),
)

CONDUCTOR_BEST_SINGLE = Manifest(
    name="conductor-best-single",
    solver="conductor/conductor_best_single",
    summary="The conductor's plan, with every step sent to the best single worker.",
    source="Conductor, arXiv 2512.04388, Table 10 (control)",
    calls=CONDUCTOR_PROMPTED.calls,
    group="controls",
    expected=CONDUCTOR_PROMPTED.expected,
    prompts=CONDUCTOR_PROMPTED.prompts,
    needs=frozenset({"conductor", "train"}),
    on_best=True,
    deviations=(
        *CONDUCTOR_PROMPTED.deviations,
        "the conductor does not know that one worker does all of it; its calls are billed",
    ),
)


def conductor_system(
    *,
    cards: bool = True,
    retries: int = 1,
    max_steps: int = MAX_STEPS,
    worker: str | None = None,
) -> System:
    """Return the system in which the pool's conductor plans, in at most `max_steps` steps.

    With `worker`, that one does every step, whoever the plan names.
    """
    if retries < 0 or max_steps < 1:
        raise UserError("A conductor needs retries of at least 0 and max_steps of at least 1.")

    form = Form(cards=cards, max_steps=max_steps, worker=worker or "")

    async def answer(question: Question, pool: Pool) -> Answer:
        shown = [pool.card(worker) if cards else "" for worker in pool.workers]
        chat = request(form, question.text, shown)
        plan = await ask_for_plan(form, chat, pool, retries)
        if isinstance(plan, Malformed):
            return malformed(plan)
        return await execute(plan, question, pool)

    return answer


def by_one(plan: Workflow, worker: str) -> Workflow:
    """Return a plan whose every step one worker does."""
    return Workflow(tuple(replace(step, worker=worker) for step in plan.steps))


async def ask_for_plan(
    form: Form, request: list[ChatMessage], pool: Pool, retries: int
) -> Workflow | Malformed:
    """Return the conductor's plan, or why its last attempt could not be read."""
    if CONDUCTOR not in pool.models:
        raise UserError(
            "This pool has no conductor: add a [conductor] table to the pool file, or name one "
            "with --model-role conductor=PROVIDER/MODEL."
        )
    chat, retried = list(request), 0
    while True:
        step = f"{CONDUCTOR}: plan, retry {retried}" if retried else f"{CONDUCTOR}: plan"
        reply = await pool.ask(CONDUCTOR, chat, step=step)
        plan = read(form, reply.text, pool.workers)
        if isinstance(plan, Workflow) or retried == retries:
            return plan
        chat += retry_request(form, reply.text, plan)
        retried += 1


@solver
def conductor_prompted(
    pool: str | None = None,
    cards: bool = True,
    retries: int = 1,
    max_steps: int = MAX_STEPS,
) -> Solver:
    """Let the `conductor` role plan each question; `cards` shows what each worker is good at."""
    system = conductor_system(cards=cards, retries=retries, max_steps=max_steps)
    return as_solver(system, pool)


@solver
def conductor_best_single(
    worker: str,
    pool: str | None = None,
    cards: bool = True,
    retries: int = 1,
    max_steps: int = MAX_STEPS,
) -> Solver:
    """Let the `conductor` role plan each question, and `worker` do all of the plan."""
    system = conductor_system(cards=cards, retries=retries, max_steps=max_steps, worker=worker)
    return as_solver(system, pool)
