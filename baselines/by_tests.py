"""Systems that check programs on the question's public tests: best of n, retry, escalation."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import anyio

from podium.baselines.common import register
from podium.baselines.single import at_least_one, calls_by, known
from podium.harness.errors import UserError
from podium.harness.execute import Session, first_failure
from podium.harness.pool import Pool
from podium.harness.records import Answer, Grade, Question
from podium.harness.system import Calls, System, SystemCard
from podium.harness.workflow import Sampling, Step

SAMPLES = 5
TRIES, WARMEST = 5, 0.5  # maximum tries, and the last try's temperature (arXiv 2407.01502)

SOURCE = "Kapoor et al. 2024, AI Agents That Matter, arXiv 2407.01502"
_PUBLIC = (
    "tries are checked on the tests that the question shows, as the paper says (simple.py in its "
    "repository checks on the hidden ones)"
)
"""A deviation from the paper that three cards share. `simple.py` is in
github.com/benediktstroebl/agent-eval, LLMDebugger/programming, commit 9fc2698."""

BEST_OF_N_TESTS = SystemCard(
    name="best-of-n-tests",
    solver="podium/best_of_n_tests",
    summary="One worker answers n times; the program that passes the most public tests wins.",
    source="podium (common practice: sample, then run the tests that the question shows)",
    calls=Calls("n, with n = 5 by default", calls_by("n", SAMPLES)),
    k="n",
    traits=frozenset({"best worker"}),
    needs=frozenset({"public tests"}),
    deviations=(
        "samples at the worker's own temperature",
        "a tie goes to the program that appeared first; a reply without one comes last",
    ),
    spent="the best program so far, by public tests",
)
RETRY = SystemCard(
    name="retry",
    solver="podium/retry",
    summary="Asks one worker again, at temperature 0, until its program passes public tests.",
    source=SOURCE,
    calls=Calls("1 to 5", lambda n, args: (1, int(args.get("tries") or TRIES))),
    k="tries",
    traits=frozenset({"best worker"}),
    needs=frozenset({"public tests"}),
    deviations=(
        _PUBLIC,
        "a worker that repeats itself exactly at temperature 0 gains nothing by it",
        "the last program stands when none passes",
    ),
)
WARMING = replace(
    RETRY,
    name="warming",
    solver="podium/warming",
    summary="Like `retry`, but the temperature rises from 0 to 0.5.",
    deviations=(
        _PUBLIC,
        "rises in equal steps (the authors: gradually)",
        "workers that take no temperature are asked again as they are",
        "the last program stands when none passes",
    ),
)
ESCALATION = SystemCard(
    name="escalation",
    solver="podium/escalation",
    summary="Asks workers, cheapest first, until a program passes public tests.",
    source=SOURCE,
    calls=Calls("1 to n", lambda n, args: (1, len(_named(args.get("order"))) or n)),
    needs=frozenset({"public tests"}),
    deviations=(
        _PUBLIC,
        "cheapest first by input plus output rate in the pool's price book, in pool order where a "
        "worker has no price there or the pool has no file, unless an order is given",
        "all workers of the pool take part, each once and at its own temperature (the authors: "
        "four models)",
        "the last program stands when none passes",
    ),
)


def is_tested(session: Session) -> bool:
    """Return whether the question shows public tests that can be run to rank its replies."""
    return session.question.kind == "program" and session.pool.public_tests is not None


async def until_passed(session: Session, steps: Iterable[Step]) -> Answer:
    """Ask `steps` in order until a reply passes every public test; answer with the last reply."""
    text, passed, trials = "", False, 0
    for step in steps:
        text = (await session.ask(step)).text
        passed = (await session.pool.try_on_public_tests(session.question, text)).value >= 1
        trials += 1
        if passed:
            break
    return session.answer(text, {"trials": trials, "passed_public_tests": passed})


async def public_results(session: Session, texts: Sequence[str]) -> list[Grade]:
    """Return each reply's grade on the question's public tests; replies are tested in parallel."""
    grades: dict[int, Grade] = {}

    async def one(index: int) -> None:
        grades[index] = await session.pool.try_on_public_tests(session.question, texts[index])

    try:
        async with anyio.create_task_group() as tasks:
            for index in range(len(texts)):
                tasks.start_soon(one, index)
    except* Exception as group:
        raise first_failure(group) from None
    return [grades[index] for index in range(len(texts))]


def best_of(grades: Sequence[Grade]) -> int:
    """Return the index of the highest grade; on a tie, the first grade with an extracted answer.

    >>> best_of([Grade(0.0, None), Grade(0.0, "print(1)"), Grade(0.0, "print(2)")])
    1
    """
    ranks = [(grade.value, grade.extracted is not None) for grade in grades]
    return ranks.index(max(ranks))


def refuse_untested(pool: Pool, name: str) -> None:
    """Raise UserError, before system `name` calls a worker, if there are no public tests to run."""
    if pool.public_tests is None:
        raise UserError(
            f"{name} has no public tests to run. Use a suite whose questions show tests, and a "
            "sandbox (--box)."
        )


def temperatures(tries: int, warmest: float) -> tuple[float, ...]:
    """Return the temperature of each of `tries` requests: equal steps from 0 to `warmest`.

    >>> temperatures(5, 0.5), temperatures(1, 0.5)
    ((0.0, 0.125, 0.25, 0.375, 0.5), (0.0,))
    """
    return tuple(warmest * number / max(1, tries - 1) for number in range(tries))


def cheapest_first(pool: Pool) -> tuple[str, ...]:
    """Return workers by input plus output price, lowest first; pool order if a price is unknown."""
    if pool.spec is None:
        return pool.workers
    prices = pool.spec.book().prices
    slots = {slot.name: prices.get(slot.price_ref) for slot in pool.spec.slots}
    rates = {name: price.input + price.output for name, price in slots.items() if price}
    if not set(pool.workers) <= rates.keys():
        return pool.workers
    return tuple(sorted(pool.workers, key=lambda name: rates[name]))


def _named(order: object) -> tuple[str, ...]:
    return tuple(name.strip() for name in str(order or "").split(",") if name.strip())


@register
def best_of_n_tests_system(worker: str | None = None, n: int = SAMPLES) -> System:
    """Return the system that asks a worker for `n` programs and keeps the best by public tests."""
    at_least_one("best-of-n-tests", "n", n)

    async def answer(question: Question, pool: Pool) -> Answer:
        refuse_untested(pool, BEST_OF_N_TESTS.name)
        name = known(pool, worker)
        session = Session(question, pool)
        texts = [reply.text for reply in await session.ask_all([Step(name)] * n, partly=True)]
        grades = await public_results(session, texts)
        best = best_of(grades)
        passed = grades[best].value >= 1
        return session.answer(texts[best], {"trials": len(texts), "passed_public_tests": passed})

    return answer


def _retry(worker: str | None, tries: int, warmest: float, name: str) -> System:
    at_least_one(name, "tries", tries)

    async def answer(question: Question, pool: Pool) -> Answer:
        refuse_untested(pool, name)
        whom = known(pool, worker)
        steps = (Step(whom, sampling=Sampling(heat)) for heat in temperatures(tries, warmest))
        return await until_passed(Session(question, pool), steps)

    return answer


@register
def retry_system(worker: str | None = None, tries: int = TRIES) -> System:
    """Return the system that asks one worker, at temperature 0, until public tests pass.

    The system stops after `tries` requests.
    """
    return _retry(worker, tries, 0.0, RETRY.name)


@register
def warming_system(worker: str | None = None, tries: int = TRIES) -> System:
    """Return the system that asks one worker until tests pass, its temperature rising to 0.5."""
    return _retry(worker, tries, WARMEST, WARMING.name)


@register
def escalation_system(order: str | None = None) -> System:
    """Return the system that asks workers in `order` (None: cheapest first) until tests pass."""
    orders: dict[tuple[str, ...], tuple[str, ...]] = {}  # cached: reads a price book once per pool

    async def answer(question: Question, pool: Pool) -> Answer:
        refuse_untested(pool, ESCALATION.name)
        if pool.workers not in orders:
            workers = tuple(known(pool, name) for name in _named(order))
            orders[pool.workers] = workers or cheapest_first(pool)
        steps = (Step(name) for name in orders[pool.workers])
        return await until_passed(Session(question, pool), steps)

    return answer
