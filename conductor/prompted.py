"""The systems in which any Inspect model conducts: prompted, and not trained for it.

Each is `conductor_system` (policy.py) with a form made of solver arguments, so that
`inspect eval ... --solver conductor/conductor_prompted -S cards=false` asks in another form.
Not here: asking and running, and the trained conductor.
"""

from decimal import Decimal, InvalidOperation
from typing import Any, Literal, get_args

from inspect_ai.solver import Solver, solver

from conductor.adaptive import shown_of
from conductor.form import Access, Form
from conductor.policy import conductor_system
from conductor.prompt import prompts
from conductor.recursion import ACCESS, ACCESS_OFF, AGAIN, Rounds
from harness.errors import UserError
from harness.inspect_adapters import as_solver
from harness.system import SystemCard
from harness.workflow import MAX_STEPS

Reply = Literal["lists", "json"]

CONDUCTOR_PROMPTED = SystemCard(
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
        "access may name single steps, not only none and all, unless access=binary",
    ),
)

CONDUCTOR_BEST_SINGLE = SystemCard(
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

FURTHER = 1
"""Rounds after the first, as in the paper's training."""

CONDUCTOR_RECURSIVE = SystemCard(
    name="conductor-recursive",
    solver="conductor/conductor_recursive",
    summary="The conductor sees what its plan came to, and keeps the answer or plans once more.",
    source="Conductor, arXiv 2512.04388, section 3.2 (recursive, prompted, not trained)",
    calls="1-9 over both rounds, plus 2-4 of the conductor; none where its plan stays malformed",
    expected=lambda n, args: (0, _most_calls(args)),
    prompts=(*CONDUCTOR_PROMPTED.prompts, AGAIN, ACCESS, ACCESS_OFF),
    needs=frozenset({"conductor"}),
    conductor_calls=4,
    deviations=(
        *CONDUCTOR_PROMPTED.deviations,
        "at most one call less than twice those of the longest plan; the paper gives no bound",
        "a later plan that cannot be read leaves the answer before it",
    ),
)


def _most_calls(args: Any) -> int:
    most = args.get("max_calls")
    form = Form(max_steps=int(args.get("max_steps") or MAX_STEPS))
    further = args.get("rounds")
    rounds = Rounds(FURTHER if further is None else int(further), int(most) if most else None)
    return min(rounds.calls(form), form.max_steps * (rounds.further + 1))


@solver
def conductor_prompted(
    pool: str | None = None,
    cards: bool = True,
    retries: int = 1,
    max_steps: int = MAX_STEPS,
    examples: bool = True,
    reply: Reply = "lists",
    lenient: bool = False,
    subtasks: bool = True,
    access: Access = "fine",
    shown: int | str = "all",
    order: str = "pool",
    shown_seed: int = 0,
) -> Solver:
    """Let the `conductor` role plan each question; `cards` shows what each worker is good at.

    `shown` (all, random or a number), `order` (pool or random) and `shown_seed` say whom it is
    shown; the others are those of `Form`.
    """
    form = Form(
        cards=cards,
        examples=examples,
        reply=_one_of("reply", reply, Reply),
        lenient=lenient,
        subtasks=subtasks,
        access=_one_of("access", access, Access),
        max_steps=max_steps,
    )
    whom = shown_of(shown, order, shown_seed)
    return as_solver(conductor_system(form, retries=retries, shown=whom), pool)


@solver
def conductor_best_single(
    worker: str,
    pool: str | None = None,
    cards: bool = True,
    retries: int = 1,
    max_steps: int = MAX_STEPS,
) -> Solver:
    """Let the `conductor` role plan each question, and `worker` do all of the plan."""
    form = Form(cards=cards, max_steps=max_steps, worker=worker)
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
    reply: Reply = "lists",
    lenient: bool = False,
    access: Access = "fine",
) -> Solver:
    """Let the `conductor` role plan, and plan again when it has seen the answer.

    `rounds` counts those after the first. `max_calls` (of workers) and `max_usd` (the conductor's
    own calls included) hold for all rounds of a question together.
    """
    form = Form(
        cards=cards,
        examples=examples,
        reply=_one_of("reply", reply, Reply),
        lenient=lenient,
        access=_one_of("access", access, Access),
        max_steps=max_steps,
    )
    bounds = Rounds(rounds, max_calls, _dollars(max_usd))
    return as_solver(conductor_system(form, retries=retries, rounds=bounds), pool)


def _one_of(name: str, value: Any, choice: Any) -> Any:
    """Return an argument as it is; UserError where it is none of its choices."""
    allowed = get_args(choice)
    if value not in allowed:
        raise UserError(f"{name} is {' or '.join(allowed)}, not {value!r}.")
    return value


def _dollars(amount: str | float | None) -> Decimal | None:
    try:
        found = None if amount is None else Decimal(str(amount))
    except InvalidOperation:
        found = Decimal("NaN")
    if found is not None and not found.is_finite():
        raise UserError(f"max_usd is an amount in US dollars, not {amount!r}.")
    return found
