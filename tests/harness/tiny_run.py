"""A tiny run of two scripted workers on two questions, whose log looks like one of `podium run`."""

from decimal import Decimal
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog
from inspect_ai.model import Model, get_model
from inspect_ai.solver import Solver, solver

from podium.harness.execute import execute
from podium.harness.inspect_adapters import as_solver
from podium.harness.pool import Pool
from podium.harness.prices import Book
from podium.harness.prices.cost import Price
from podium.harness.records import Answer, Question
from podium.harness.workflow import Step, Workflow
from tests.providers.scripted import Heard, script

LONG = "A long question, so that the log keeps it as an attachment. " * 40
SAGE = {
    "model": "scripted/sage",
    "price": "acme/sage",
    "card": 'wise, "slow"',
    "knowledge_cutoff": "2024-06 (card)",
    "config": {"temperature": 0.5},
}
RATES = {"acme/sage": Price(input=Decimal("1.25"), output=Decimal(10))}
BOOK = Book(name="acme", date="2026-01-01", source="a test", prices=RATES, sha256="0" * 64)
QUESTIONS = {"q-1": "What is 1 + 1?", "q-2": LONG}


def draw(heard: Heard) -> str:
    """Say something else for every worker, question, epoch and repetition."""
    return f"{heard.worker} {len(heard.last)} {heard.epoch} {heard.occurrence}"


def plan() -> Workflow:
    """Ask one worker twice with the same request, then another who reads both."""
    return Workflow((Step("sage"), Step("sage"), Step("clerk", "Compare.", reads="all")))


@solver
def compare() -> Solver:
    async def answer(question: Question, pool: Pool) -> Answer:
        return await execute(plan(), question, pool)

    return as_solver(answer)


@solver
def five_votes() -> Solver:
    async def answer(question: Question, pool: Pool) -> Answer:
        return await execute(Workflow(tuple(Step("sage") for _ in range(5))), question, pool)

    return as_solver(answer)


def sit(models: dict[str, Model], log_dir: Path, solving: Solver, epochs: int = 2) -> EvalLog:
    """Run a tiny eval whose header says about its workers what `podium run` says."""
    samples = [Sample(id=name, input=text, target="2") for name, text in QUESTIONS.items()]
    task = Task(
        dataset=MemoryDataset(samples, name="tiny"),
        solver=solving,
        epochs=epochs,
        metadata={"podium": {"workers": {"sage": SAGE}, "prices": BOOK.as_json()}},
    )
    (log,) = eval(
        task,
        model=None,
        model_roles={**models},
        log_dir=str(log_dir),
        display="none",
    )
    assert log.status == "success", log.error
    return log


def live() -> dict[str, Model]:
    return {name: get_model(script(name, draw), memoize=False) for name in ("sage", "clerk")}


def model_events(log: EvalLog) -> list[tuple[str, ModelEvent]]:
    """Return the calls of a log in the order of samples and calls."""
    samples = sorted(log.samples or [], key=lambda sample: (str(sample.id), sample.epoch))
    return [
        (f"{sample.id} {sample.epoch}", event)
        for sample in samples
        for event in sample.events
        if isinstance(event, ModelEvent)
    ]


def calls(log: EvalLog) -> list[tuple[object, ...]]:
    """Return what each call said and cost."""
    rows: list[tuple[object, ...]] = []
    for sample, event in model_events(log):
        usage = event.output.usage
        tokens = usage and (usage.input_tokens, usage.output_tokens, usage.total_tokens)
        rows.append((sample, event.role, event.output.completion, tokens, event.output.stop_reason))
    return rows
