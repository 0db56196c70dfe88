"""Real logs for tests of the ledger and of reports: a small exam, sat by scripted workers.

`sit(tmp_path, "moa-lite", plan)` runs one `eval_set` as `podium run` does and returns its logs. Not
here: suites and systems of podium's own; what is tested with this helper reads logs only.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from contextvars import copy_context
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from inspect_ai import eval_set
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Solver, TaskState
from inspect_ai.solver import solver as inspect_solver

from podium.harness.budget import Allowance, Spend
from podium.harness.errors import UserError
from podium.harness.inspect_adapters import as_score, as_solver, as_task
from podium.harness.prices import Book
from podium.harness.prices.cost import Price
from podium.harness.records import Grade, Question
from podium.harness.suite import Card, Split
from podium.harness.system import System, planned
from podium.harness.workflow import Step, Workflow
from tests.providers.scripted import Heard, ReplyFunction, script
from tests.suites.toy_card import CARD

BOOK = Book(
    name="test-book",
    date="2026-01-02",
    source="made up for tests",
    prices={
        "scripted/sage": Price(Decimal("2"), Decimal("10")),
        "scripted/clerk": Price(Decimal("1"), Decimal("3")),
        "scripted/planner": Price(Decimal("0.1"), Decimal("0.2")),
    },
    sha256="0" * 64,
)


class BoxDown(Exception):
    """What a grader raises when it could not grade."""


@dataclass(frozen=True, slots=True)
class Exam:
    """Questions whose answers are their numbers; a reply `broken` breaks the grader."""

    name: str = "numbers"
    version: str = "1-A"
    data_revision: str = "generated-1"
    dates: str = "2026-01"
    splits: tuple[Split, ...] = ("eval",)
    publishable: bool = True
    needs_box: bool = False
    image: str = ""
    card: Card = CARD
    size: int = 4

    def load(self, split: Split = "eval") -> Sequence[Question]:
        """Return questions 1 to `size`."""
        return [
            Question(id=f"q{n}", text=f"Say {n}", kind="integer", target=str(n), topic="saying")
            for n in range(1, self.size + 1)
        ]

    def read_problems(self, path: Path) -> Sequence[Question]:
        """Refuse: the questions are made here."""
        raise UserError("its questions are generated: leave out --problems")

    def grade(self, question: Question, reply: str, box: object = None) -> Grade:
        """Compare the reply's last word with the target."""
        if "broken" in reply:
            raise BoxDown("the box is down")
        said = reply.split()[-1] if reply.split() else ""
        extracted = said if said.isdigit() else None
        return Grade(value=float(extracted == question.target), extracted=extracted)


@asynccontextmanager
async def allowed(
    spend: Spend, price_ref: str, most: Decimal | None = None
) -> AsyncGenerator[Allowance]:
    """Hold back what a call may cost, as the recorder does, while the test makes it."""
    allowance = Allowance(spend, price_ref, most)
    await allowance.take()
    try:
        yield allowance
    finally:
        allowance.release()


def number(heard: Heard) -> str:
    """Answer as the question asks."""
    return heard.messages[-1].text.split("\n")[0].removeprefix("Say ")


def wrong(heard: Heard) -> str:
    """Answer at length, and wrongly."""
    return "the answer must be 0"


def failing_on(question: str, reply: ReplyFunction = number) -> ReplyFunction:
    """Return a worker whose provider is down for one question."""

    def speak(heard: Heard) -> str:
        if question in heard.messages[-1].text:
            raise RuntimeError("provider down")
        return reply(heard)

    return speak


def facts(system: str, **changes: Any) -> dict[str, Any]:
    """Return what `podium run` writes into a log's metadata beside the suite's facts."""
    worker = {"card": "", "knowledge_cutoff": "unknown", "config": {"temperature": 0.2}}
    return {
        "system": system,
        "args": {},
        "pool": "test-pool",
        "pool_sha256": "1" * 64,
        "label": "live",
        "prices": BOOK.as_json(),
        "workers": {
            "sage": {**worker, "model": "scripted/sage", "price": "scripted/sage"},
            "clerk": {**worker, "model": "scripted/clerk", "price": "scripted/clerk"},
            "conductor": {**worker, "model": "scripted/planner", "price": "scripted/planner"},
        },
        "box": None,
        "seed": 0,
        "time_scale": 0.0,
        "purpose": "eval",
        "notes": [],
        "uses_targets": False,
        "reference_allowed": True,
        **changes,
    }


def steps(*workers: str) -> System:
    """Return a system that asks some workers, all reading nothing."""
    return planned(lambda question, pool: Workflow(tuple(Step(worker) for worker in workers)))


@dataclass(frozen=True, slots=True)
class Crew:
    """How the workers of one sitting behave."""

    sage: ReplyFunction = number
    clerk: ReplyFunction = number
    planner: ReplyFunction = number


def answering(system: System, name: str) -> Solver:
    """Return a system as a registered solver, as tasks of an eval set need one."""

    @inspect_solver(name="answering")
    def named(name: str) -> Solver:
        return as_solver(system)

    return named(name)


@scorer(metrics=[mean()], name="podium")
def asking_scorer(exam: Exam) -> Scorer:
    """Grade with the help of a model, as suites with a judge do."""

    async def score(state: TaskState, target: Target) -> Score:
        await get_model(role="clerk").generate(f"Is {target.text} right?")
        return as_score(exam.grade(exam.load()[0], state.output.completion))

    return score


def sit(
    log_dir: Path,
    name: str,
    system: System | None = None,
    crew: Crew = Crew(),
    *,
    exam: Exam = Exam(),
    epochs: int = 1,
    limit: int | None = None,
    solver: Solver | None = None,
    ask_grader: bool = False,
    settings: dict[str, Any] | None = None,
    **changes: Any,
) -> list[EvalLog]:
    """Let a system sit the exam in `log_dir`; the same call again resumes what failed."""
    script("sage", crew.sage)
    script("clerk", crew.clerk)
    script("planner", crew.planner)
    task = as_task(
        exam,
        epochs=epochs,
        solver=solver or answering(system or steps("sage"), name),
        name=f"{exam.name} {name}",
        metadata=facts(name, **changes),
    )
    if ask_grader:
        task.scorer = [asking_scorer(exam)]
    extra: dict[str, Any] = {"log_buffer": 1, **(settings or {})}
    roles = {"sage": "sage", "clerk": "clerk", "conductor": "planner"}
    copy_context().run(  # Inspect leaves a set's roles behind in its caller's context
        eval_set,
        [task],
        log_dir=str(log_dir),
        model=None,
        model_roles={
            role: get_model(f"scripted/{model}", memoize=False) for role, model in roles.items()
        },
        limit=limit,
        display="none",
        retry_attempts=0,
        retry_immediate=False,
        continue_on_fail=True,
        retry_cleanup=False,
        log_dir_allow_dirty=True,
        ctl_server=False,
        score_display=False,
        **extra,
    )
    return [read_eval_log(str(path)) for path in sorted(log_dir.glob("*.eval"))]
