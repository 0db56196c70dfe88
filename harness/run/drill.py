"""The drill: sends a short test question to each worker of a live pool, before any run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import anyio
from inspect_ai.model import ChatMessageUser

from podium.harness.errors import UserError, WorkerError
from podium.harness.ledger.call import Attempted, billable_failure, upper_bound
from podium.harness.ledger.hooks import kind_and_status
from podium.harness.pool import Pool, slot_model
from podium.harness.pool_config import PoolSpec, WorkerSpec
from podium.harness.prices import Book
from podium.harness.prices.book import ended_day
from podium.harness.prices.cost import cost
from podium.harness.records import Reply
from podium.harness.request import NOTHING, service_tier
from podium.harness.run.preflight import slot_problems
from podium.harness.shutdown import cancellable, graceful_shutdown
from podium.harness.text import pluralise

PROMPT = "Say OK."
TOKENS = 16  # max_tokens: the lowest that every provider accepts (OpenAI's responses API)
PATIENCE_S = 60.0
REASONING = ("reasoning_effort", "reasoning_tokens", "reasoning_enabled", "effort")
"""Settings of a worker's reasoning, in its config or its provider's arguments."""

GONE = ("not found", "not_found", "does not exist", "not a valid model", "unknown model", "retired")
THINKS = ("reason", "effort", "think")
"""Words in providers' error messages: `GONE`: unknown model; `THINKS`: bad reasoning settings."""

SETTINGS = "rejects its settings. Change them in the pool file."
MEANINGS: Mapping[int | None, str] = {
    400: SETTINGS,
    401: "rejects the API key. Set a valid key.",
    402: "has no credit left. Buy credit, or set another key.",
    403: "rejects this key or this region. Ask the provider which of the two.",
    422: SETTINGS,
    429: "is over its rate limit or quota. Wait, or raise the limit.",
}


@dataclass(frozen=True, slots=True)
class Drilled:
    """The result of the test call to one worker."""

    name: str
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    usd: Decimal | None
    """Cost of the test call, in dollars; None if unknown."""
    at_most: Decimal | None
    """Maximum cost of the test call, in dollars; None if there is no known maximum."""


def fit_for_drill(spec: PoolSpec, book: Book) -> list[WorkerSpec]:
    """Return the models of a live pool that can be called and priced; UserError if none can."""
    if spec.label != "live":
        raise UserError(
            f"--drill sends requests to real providers, but pool {spec.name!r} is labelled "
            f"{spec.label!r}. Name a live pool, or leave --drill out."
        )
    slots = [slot for slot in spec.slots if not slot_problems(slot, spec, book)]
    if not slots:
        raise UserError(
            f"No worker of pool {spec.name!r} can be asked yet. Fix the problems that podium "
            "doctor lists without --drill, then try again."
        )
    return slots


def drill_price(slots: Sequence[WorkerSpec], book: Book) -> str:
    """Return a sentence with the maximum cost of a drill (a test call of each model)."""
    bounds = {slot.name: _at_most(slot, book) for slot in slots}
    free = [name for name, bound in bounds.items() if bound is None]
    total = sum((bound for bound in bounds.values() if bound is not None), Decimal(0))
    text = f"A drill sends one question to {pluralise(len(slots), 'model')}: at most ${total:.6f}"
    open_ = f", without {', '.join(free)}, whose calls have no maximum cost" if free else ""
    return f"{text} by book {book.name!r}{open_}; HTTP retries by a provider's client cost extra."


def drill(
    spec: PoolSpec, book: Book, slots: Sequence[WorkerSpec], patience_s: float = PATIENCE_S
) -> list[Drilled]:
    """Send a test question to every model, in parallel; return the results in the models' order."""
    drilled: dict[str, Drilled] = {}

    async def each() -> None:
        models = {slot.name: slot_model(_shortened(slot)) for slot in slots}
        pool = Pool(models, spec)
        async with anyio.create_task_group() as tasks:
            for slot in slots:
                tasks.start_soon(one, pool, slot)

    async def one(pool: Pool, slot: WorkerSpec) -> None:
        drilled[slot.name] = await _drilled(pool, slot, book, patience_s)

    with graceful_shutdown(), cancellable():
        anyio.run(each)
    return [drilled[slot.name] for slot in slots]


def drill_total(drilled: Sequence[Drilled]) -> str:
    """Return a sentence with the cost of a drill, that is, of the test calls that were made."""
    spent = sum((row.usd for row in drilled if row.usd is not None), Decimal(0))
    sentence = f"Drill: {pluralise(len(drilled), 'model')} asked once, ${spent:.6f} spent"
    open_ = [row for row in drilled if row.usd is None]
    some = (f"{row.name} (at most ${row.at_most:.6f})" for row in open_ if row.at_most is not None)
    none = (f"{row.name} (no known maximum)" for row in open_ if row.at_most is None)
    unknown = [*some, *none]
    return f"{sentence}; unknown cost: {', '.join(unknown)}." if unknown else f"{sentence}."


def _shortened(slot: WorkerSpec) -> WorkerSpec:
    """Return a model's settings for the test call: a short reply, one attempt and no cache."""
    changes = {"max_tokens": _tokens(slot), "max_retries": 0, "cache": None, "cache_prompt": None}
    return slot.model_copy(update={"config": slot.config.model_copy(update=changes)})


def _tokens(slot: WorkerSpec) -> int:
    return TOKENS + (slot.config.reasoning_tokens or 0)


def _at_most(slot: WorkerSpec, book: Book) -> Decimal | None:
    service = service_tier(slot.config, slot.args)
    size = len(PROMPT.encode())
    attempted = Attempted("unknown", "none", None, service, size, _tokens(slot))
    return upper_bound(attempted, book.price(slot.price_ref))


async def _drilled(pool: Pool, slot: WorkerSpec, book: Book, patience_s: float) -> Drilled:
    at_most = _at_most(slot, book)
    name = f"Worker {slot.name!r} ({slot.model})"
    try:
        with anyio.fail_after(patience_s):
            output, reply = await pool.relay(
                slot.name, [ChatMessageUser(content=PROMPT)], "drill", NOTHING
            )
    except TimeoutError:
        text = f"{name} did not answer in {patience_s:g} seconds. Try again, or name another model."
        return Drilled(slot.name, (text,), (), None, at_most)
    except WorkerError as error:
        _, status = kind_and_status(error.__cause__ or error)
        text = f"{name} {_refusal(slot, status, str(error))}"
        usd = Decimal(0) if billable_failure(status) == "no" else None
        return Drilled(slot.name, (text,), (), usd, at_most)
    usd = None
    price = book.price(slot.price_ref)
    if reply.usage is not None and price is not None:
        usd = cost(reply.usage, price, service_tier(slot.config, slot.args))
    problems, notes = _usage_findings(slot, reply)
    if output.model and output.model not in slot.model:
        notes.append(f"{slot.name} was answered by {output.model}.")
    return Drilled(slot.name, tuple(f"{name} {p}" for p in problems), tuple(notes), usd, at_most)


def _refusal(slot: WorkerSpec, status: int | None, error: str) -> str:
    """Return the likely cause of a failed test call, the fix, and the start of the error."""
    message = error.partition(" gave no reply: ")[2] or error
    return f"{_meaning(slot, status, message.lower())} ({' '.join(message.split())[:300]})"


def _meaning(slot: WorkerSpec, status: int | None, message: str) -> str:
    refused, thinks = status in (400, 422), _reasoning(slot)
    if "does not answer /responses" in message:
        return "has a server without /responses. Set its model to openai-api/NAME/MODEL."
    if status == 404 or (refused and any(word in message for word in GONE)):
        end_day = ended_day(slot.price_ref)
        when = f"ended on {end_day}" if end_day else "is unknown to its provider, or ended"
        return f"cannot be asked: its id {when}; name another model."
    if refused and thinks and any(word in message for word in THINKS):
        return f"rejects its reasoning settings ({thinks}). Change them in the pool file."
    if status is not None and status >= 500:
        return f"fails with status {status}. Try again later."
    return MEANINGS.get(status, "failed. Read the provider's message.")


def _reasoning(slot: WorkerSpec) -> str:
    """Return a model's reasoning settings as they are written in the pool file."""
    settings: Mapping[str, Any] = {**slot.config.model_dump(exclude_none=True), **slot.args}
    return ", ".join(f"{name} = {settings[name]}" for name in REASONING if name in settings)


def _usage_findings(slot: WorkerSpec, reply: Reply) -> tuple[list[str], list[str]]:
    usage, thinks = reply.usage, _reasoning(slot)
    if usage is None:
        problem = "reports no readable token usage, so its calls would have no cost in dollars."
        return [f"{problem} Name another model or server."], []
    notes: list[str] = []
    if usage.total_reported is not None and usage.total_reported != usage.parts_total:
        notes.append(
            f"{slot.name} reports a total of {usage.total_reported} tokens, but the parts add up "
            f"to {usage.parts_total}. `podium audit` will report the difference."
        )
    if thinks and slot.config.reasoning_effort != "none" and usage.reasoning is None:
        notes.append(f"{slot.name} does not report its reasoning tokens ({thinks}).")
    return [], notes
