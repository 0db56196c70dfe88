"""Limits held against a local provider that gets dearer, answers in bursts, or takes too much.

    came_to = asked(tmp_path, ramp(), Limits(run=Decimal(5)))
    came_to.billed, came_to.bound, came_to.refused

Each worker's replies cost $100 per million tokens and at most 5,500 tokens, so that a call costs
up to $0.55 and a little for its prompt; the cheap ones take 500 tokens.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

import anyio
from inspect_ai.model import ChatMessageUser

from podium.conductor.grpo_reward import PlanAnswerer, PlanSettings
from podium.harness.budget import Spend
from podium.harness.errors import QuestionLimit, SpendLimit, WorkerError
from podium.harness.ledger.call import Attempted, upper_bound
from podium.harness.ledger.journal import Head
from podium.harness.ledger.recorder import recording_calls
from podium.harness.pool import Pool, pool_models
from podium.harness.pool_config import PoolSpec, read_pool
from podium.harness.prices import Book, read_book
from podium.harness.prices.cost import cost
from podium.harness.records import Usage
from podium.harness.rewards.outcome import RewardItem
from podium.harness.rewards.reward import RewardSettings
from tests.conductor.plans import SOLVE, rewarded
from tests.harness.rewards.service import train
from tests.harness.toy_run import Toy
from tests.providers import MODELS, Act, Bill, Server, serve, taking, write_pool

TOKENS = 5500
CHEAP = 500
BOOK = 'date = "2026-01-02"\nsource = "made up for tests"\n[usd_per_mtok]\n' + "".join(
    f'"{model}" = {{ input = "1", output = "100" }}\n' for model in MODELS.values()
)
HEAD = Head(task="limits", suite="", system="", label="live", book="", book_sha256="")


def ramp(cheap: int = 12, dear: int = 60) -> list[Act]:
    """Answer some calls cheaply, then take all that a request allows."""
    return [taking(CHEAP)] * cheap + [taking(TOKENS, wait_s=0.05)] * dear


def burst(calls: int = 60) -> list[Act]:
    """Take all that a request allows, every call together with the others."""
    return [taking(TOKENS, wait_s=0.05)] * calls


def lie(calls: int = 60, times: int = 3) -> list[Act]:
    """Take more than a request allows, every call together with the others."""
    return [taking(times * TOKENS, wait_s=0.05)] * calls


@dataclass(frozen=True)
class Limits:
    """What may be spent, and how much is asked at once."""

    run: Decimal | None = None
    question: Decimal | None = None
    questions: int = 60
    calls: int = 1
    """Of one question, all at once."""
    at_once: int = 32
    settings: str = f"max_tokens = {TOKENS}, max_retries = 0, max_connections = 64"
    """Of the worker."""
    client_retries: int = 0
    """What its client may try again by itself."""


@dataclass
class CameTo:
    """What the provider billed, and what became of the questions."""

    bill: Bill
    book: Book
    spend: Spend
    bound: Decimal | None
    """Of one call."""
    by_question: list[Decimal] = field(default_factory=list[Decimal])
    refused: list[str] = field(default_factory=list[str])

    @property
    def billed(self) -> Decimal:
        """Dollars on the provider's bill."""
        return sum((priced(line.usage, self.book) for line in self.bill.billed), Decimal(0))


def priced(usage: Usage, book: Book) -> Decimal:
    """Return what tokens cost at the prices of a test."""
    found = cost(usage, next(iter(book.prices.values())))
    assert found is not None
    return found


def workers(folder: Path, server: Server, limits: Limits) -> tuple[PoolSpec, Book]:
    """Return the three workers of a provider, and their prices."""
    folder.mkdir(exist_ok=True)
    path = write_pool(folder, server, limits.settings, limits.client_retries)
    (folder / "book.toml").write_text(BOOK)
    spec = read_pool(path)
    return spec, read_book(spec.prices)


def asked(folder: Path, script: Sequence[Act], limits: Limits, worker: str = "olive") -> CameTo:
    """Let questions be asked within limits; return what it came to."""
    with ExitStack() as stack:
        server = stack.enter_context(serve(script))
        stack.enter_context(recording_calls(folder / "run", "training", HEAD))
        spec, book = workers(folder, server, limits)
        spend = Spend(book, limits.run, per_question=limits.question)
        found = CameTo(server.bill, book, spend, _bound(spec, book, worker))
        anyio.run(_ask_all, found, spec, limits, worker)
    return found


def trained(folder: Path, script: Sequence[Act], limit: Decimal, processes: int = 1) -> CameTo:
    """Let each process of a training reward 30 plans of one call; return what it came to."""
    items = [RewardItem("toy", f"train-{n % 12}", SOLVE, replicate=n) for n in range(30)]
    parts: list[PlanAnswerer] = []
    refused: list[str] = []
    with serve(script) as server:
        spec, book = workers(folder, server, Limits())
        told = PlanSettings(max_usd=limit, processes=processes)
        for rank in range(processes):
            answer = PlanAnswerer(
                spec, book, replace(told, rank=rank, log_dir=folder / f"run-{rank}")
            )
            parts.append(answer)
            told_by = rewarded(answer, train(Toy()), items, RewardSettings(most=32, max_masked=1))
            refused.extend(one.reason for one in told_by if one.status.value == "budget")
        found = CameTo(server.bill, book, Spend(book, limit), _bound(spec, book, "olive"))
    found.refused = refused
    found.spend.spent = sum((one.usd for one in parts), Decimal(0))
    return found


async def _ask_all(found: CameTo, spec: PoolSpec, limits: Limits, worker: str) -> None:
    models, turns = pool_models(spec), anyio.CapacityLimiter(limits.at_once)

    async def question(number: int) -> None:
        async with turns:
            pool = Pool(models, spec, spend=found.spend.for_question())
            async with anyio.create_task_group() as tasks:
                for one in range(limits.calls):
                    tasks.start_soon(call, pool, f"Question {number}, part {one}?")
        assert pool.spend is not None
        found.by_question.append(pool.spend.spent)

    async def call(pool: Pool, text: str) -> None:
        try:
            await pool.ask(worker, [ChatMessageUser(content=text)], "asked")
        except QuestionLimit as stop:
            found.refused.append(str(stop))
        except (SpendLimit, WorkerError) as stop:
            found.refused.append(str(stop))

    async with anyio.create_task_group() as tasks:
        for number in range(limits.questions):
            tasks.start_soon(question, number)


def _bound(spec: PoolSpec, book: Book, worker: str) -> Decimal | None:
    slot = spec.worker(worker)
    size = len("Question 00, part 0?")
    price = book.prices[slot.price_ref]
    return upper_bound(
        Attempted("unknown", "none", None, "standard", size, slot.config.max_tokens), price
    )
