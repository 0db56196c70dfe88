"""The one object that talks to models: named workers, each an Inspect model in its own role.

Inside an eval they are Inspect's model roles, whose tokens, config and spans its log carries.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial, wraps
from time import monotonic
from typing import Any, cast

from anyio.lowlevel import RunVar
from inspect_ai.model import (
    CachePolicy,
    ChatMessage,
    GenerateConfig,
    Model,
    ModelOutput,
    get_model,
    model_roles,
)
from inspect_ai.model._generate_config import active_generate_config
from inspect_ai.util import LimitExceededError, span
from inspect_ai.util._store import suspend_store_events  # has no public name

from podium.harness.api_keys import guard_keys
from podium.harness.batches import keep_batches
from podium.harness.budget import Spend
from podium.harness.cassette import open_cassette
from podium.harness.context import PublicTests, current, run_context
from podium.harness.context_length import read_refusal
from podium.harness.envelope import Envelope, EqualBudget, within
from podium.harness.errors import PodiumError, UserError, WorkerError
from podium.harness.ledger.hooks import WRAPPERS, last_event
from podium.harness.ledger.recorder import (
    CallInFlight,
    ReplyDraw,
    as_if_bought,
    call_in_flight,
    next_draw,
    read_back,
    record_call,
)
from podium.harness.pool_config import (
    REHEARSING,
    REPLAYING,
    PoolSpec,
    WorkerSpec,
    read_pool,
    refuse_other_conductor,
)
from podium.harness.prices import EMBEDDED
from podium.harness.records import CONDUCTOR, GRADER, WRONG, Answer, Grade, Question, Reply
from podium.harness.request import Offered, Request, SampleIndex, recorded_settings
from podium.harness.text import first_line, make_storable, storable
from podium.harness.upstream_failure import dialect_fix, failure_in, name_failures, obey_waits
from podium.harness.workflow import Sampling


@dataclass(slots=True)
class Pool:
    """Workers by name. `spec` is None for a pool made of whatever roles the user named."""

    models: Mapping[str, Model]
    spec: PoolSpec | None = None
    epoch: int = 1
    spend: Spend | None = None
    envelope: Envelope | None = None
    """What the question may use; None without an equal budget."""
    so_far: Callable[[], Answer] | None = None
    """The best answer that its system has by now; None before the first reply."""
    public_tests: PublicTests | None = None
    """Runs a program on a question's public tests; None where the suite has none."""
    kept: dict[str, Any] = field(default_factory=dict[str, Any])
    """What a system keeps from one turn of a sample to the next."""
    _asked: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    _said: dict[tuple[str, str], ChatMessage] = field(
        default_factory=dict[tuple[str, str], ChatMessage]
    )

    @classmethod
    def named(cls, name: str, seed: int = 0) -> "Pool":
        """Return the workers of a pool file, to be asked outside an eval, without a journal."""
        spec = read_pool(name)
        return cls(pool_models(spec, seed), spec)

    @property
    def workers(self) -> tuple[str, ...]:
        """Worker names in pool order; conductor and grader are roles, variants others' settings."""
        others = (CONDUCTOR, GRADER, *self.variants)
        return tuple(name for name in self.models if name not in others)

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the workers' variants, `atlas@low`: they are asked only by name."""
        return tuple(slot.name for slot in self.spec.variants) if self.spec else ()

    def card(self, worker: str) -> str:
        """Return a worker's role card, empty when the pool has no file."""
        return self.spec.worker(worker).card if self.spec else ""

    async def ask(
        self,
        worker: str,
        messages: Sequence[ChatMessage],
        step: str,
        sampling: Sampling | None = None,
    ) -> Reply:
        """Put one request to one worker inside a span named `step`."""
        config = self.prescribed(worker, sampling)
        turns = [self._first_said(turn) for turn in messages]
        return await self._reply(*self._numbered(worker, turns, step, Offered(config=config)))

    async def act(
        self,
        worker: str,
        messages: Sequence[ChatMessage],
        step: str,
        sampling: Sampling | None = None,
        advice: str = "",
    ) -> Reply:
        """Put a plan's last request to its worker; `advice` is what it says beside the question.

        Where a conversation is answered that worker is sent it with its tools, and the advice.
        """
        return await self.ask(worker, messages, step, sampling)

    def prescribed(self, worker: str, sampling: Sampling | None) -> GenerateConfig:
        """Return how a step has a worker sample, beside the worker's own settings."""
        return _prescribed(self._model(worker), sampling)

    def has_planned(self, steps: int) -> None:
        """Hear how many steps a workflow that is begun has: for pools whose progress is shown."""

    async def relay(
        self, worker: str, messages: Sequence[ChatMessage], step: str, offered: Offered
    ) -> tuple[ModelOutput, Reply]:
        """Put a request of other people's code, who get the output too: it may hold tool calls."""
        return await self._put(*self._numbered(worker, messages, step, offered))

    def _numbered(
        self, worker: str, messages: Sequence[ChatMessage], step: str, offered: Offered
    ) -> tuple[Request, SampleIndex]:
        """Return a request; what the pool file does not name has its model's price."""
        model, slots = self._model(worker), self.spec.slots if self.spec else ()
        price = next((slot.price_ref for slot in slots if slot.name == worker), str(model))
        request = Request(worker, model, _sendable(messages), price, step, offered)
        key = (worker, request.sha256)
        self._asked[key] += 1
        return request, SampleIndex(self.epoch, self._asked[key] - 1)

    async def _reply(self, request: Request, number: SampleIndex) -> Reply:
        """Return the reply to a numbered request; a pool that keeps replies may know it already."""
        return (await self._put(request, number))[1]

    async def _put(self, request: Request, number: SampleIndex) -> tuple[ModelOutput, Reply]:
        worker, ended_s = request.role, None
        # A model in this process costs no call and no dollar: its seconds are shown apart.
        envelope = None if str(request.model).startswith(EMBEDDED) else self.envelope
        try:
            if envelope is None:
                asked, output = await self._asked_once(request, number)
            else:
                price = self.spend.book.price(request.price_ref) if self.spend else None
                async with within(envelope, request, price) as call:
                    asked, output = await self._asked_once(request, number)
                    call.replied(envelope.budget, asked.usage, asked.requests_lost)
                ended_s = call.begins_s + (asked.reply_s or 0.0)
                envelope.arrived(ended_s)
            if output.empty:
                raise WorkerError(f"{worker} ({request.model}) gave no reply: it sent no choices")
        except (PodiumError, LimitExceededError):
            raise
        except Exception as error:
            told = f"{storable(_reason(error))}{dialect_fix(request.model, error)}"
            said = f"{worker} ({request.model}) gave no reply: {told}"
            raise WorkerError(said) from error
        reply = Reply(
            worker, output.completion, asked.usage, asked.usd, asked.too_long, ended_s=ended_s
        )
        return output, reply

    async def _asked_once(
        self, request: Request, number: SampleIndex
    ) -> tuple[CallInFlight, ModelOutput]:
        """Return what a request came to, in a span of its step."""
        async with step_span(request.step or request.role):
            with run_context(sample=number):
                return await ask_once(request, self.spend, partial(_generate, request, number))

    async def try_on_public_tests(self, question: Question, reply: str) -> Grade:
        """Return how a program does on the public tests; UserError where there are none to run."""
        if self.public_tests is None:
            raise UserError("This suite shows no public tests, and a system asked for them.")
        return await self.public_tests(question.sealed(), reply)

    def _first_said(self, turn: ChatMessage) -> ChatMessage:
        """Return the turn that said this first: Inspect logs a message that comes again once."""
        if isinstance(turn.content, str) and turn.role in ("system", "user"):
            return self._said.setdefault((turn.role, turn.content), turn)
        return turn

    def _model(self, worker: str) -> Model:
        if worker not in self.models:
            known = ", ".join(self.workers)
            raise UserError(f"This pool has no worker {worker!r}; its workers are: {known}.")
        return self.models[worker]


@asynccontextmanager
async def step_span(step: str) -> AsyncGenerator[None]:
    """Let what is logged within be a step's."""
    # Inspect would copy a sample's whole store before and after, for changes that no call makes: a
    # third of a second for each call in tau2's airline, which keeps its data base there.
    with suspend_store_events():
        async with span(step, type="workflow_step"):
            yield


async def ask_once(
    request: Request, spend: Spend | None, generate: Callable[[], Awaitable[ModelOutput]]
) -> tuple[CallInFlight, ModelOutput]:
    """Return the output for a request: `generate`d, unless this very draw was paid for before."""
    draw, begun = next_draw(request), monotonic()
    if draw is None:
        return await _ask(request, spend, generate, None)
    async with draw.turn():
        bought = draw.bought(request, monotonic() - begun)
        if bought is None:
            return await _ask(request, spend, generate, draw)
    async with as_if_bought(request, spend if bought.shared_from else None):
        return read_back(request, bought, spend), bought.event.output


async def _ask(
    request: Request,
    spend: Spend | None,
    generate: Callable[[], Awaitable[ModelOutput]],
    draw: ReplyDraw | None,
) -> tuple[CallInFlight, ModelOutput]:
    """Return the output that is generated for a request, recorded and paid for."""
    async with record_call(request, spend) as asked:
        asked.draw = draw
        output = asked.output = await generate()
        if not asked.kept:  # of a model that is not ours, or read from Inspect's cache
            make_storable(output)
            event = last_event(asked.span)
            call = event.call if event else None
            if failure := failure_in(output, call):
                raise failure
            asked.keep(output, call.response if call else None)
    return asked, output


def _sendable(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    # A plan may spell half a character in JSON, which cannot be sent or digested.
    if all(storable(turn.text) == turn.text for turn in messages):
        return messages
    return [make_storable(turn.model_copy(deep=True)) for turn in messages]


def _reason(error: BaseException) -> str:
    """Return the first line of what went wrong; Inspect wraps what it has tried in vain."""
    if type(error).__name__ in WRAPPERS and error.__cause__ is not None:
        error = error.__cause__
    return first_line(error) or type(error).__name__


def _prescribed(model: Model, sampling: Sampling | None) -> GenerateConfig:
    if sampling is None:
        return GenerateConfig()
    limit = model.config.max_tokens if sampling.times_max_tokens != 1 else None
    held = {"structured_outputs": {"regex": sampling.regex}} if sampling.regex else {}
    return GenerateConfig(
        temperature=sampling.temperature,
        max_tokens=limit * sampling.times_max_tokens if limit else None,
        extra_body={**(model.config.extra_body or {}), **held} if held else None,
    )


async def _generate(request: Request, number: SampleIndex) -> ModelOutput:
    # Inspect's cache knows neither repetitions nor provider arguments: they go into its key. What a
    # whole eval says of caching (`inspect eval --cache`) has no public name in Inspect.
    model, messages = request.model, list(request.messages)
    offered = request.offered
    tools: dict[str, Any] = {"tools": [*offered.tools], "tool_choice": offered.tool_choice}
    tools = tools if offered.tools else {}
    whole_eval = active_generate_config().cache  # Inspect puts it before a model's own
    given = model.config.cache if whole_eval is None else whole_eval
    if not given:
        return await model.generate(messages, config=request.config, **tools)
    policy = given if isinstance(given, CachePolicy) else CachePolicy()
    scopes = {
        **policy.scopes,
        "podium_worker": request.role,
        "podium_args": repr(sorted(model.model_args.items())),
        "podium_replicate": f"{number.epoch} {number.occurrence}",
    }
    cache = policy.model_copy(update={"scopes": scopes})
    return await model.generate(messages, config=request.config, cache=cache, **tools)


def slot_model(slot: WorkerSpec, seed: int = 0, time_scale: float = 0.0) -> Model:
    """Return a slot's model, without a role: else `get_model` gave one of an earlier eval."""
    rehearses = slot.provider == REHEARSING
    return _made(slot, **({"seed": seed, "time_scale": time_scale} if rehearses else {}))


def _made(slot: WorkerSpec, **more: Any) -> Model:
    """Return a slot's model made anew: a remembered one has its old files and keys."""
    config, arguments = recorded_settings(slot.model, slot.config, slot.args)
    made = get_model(slot.model, config=config, memoize=False, **{**arguments, **more})
    return _known_before_inspect(obey_waits(name_failures(guard_keys(keep_batches(made)))))


def _known_before_inspect(model: Model) -> Model:
    """Let a model's replies be kept and say what they cost before Inspect has them; the same model.

    A process that is killed once Inspect has a reply leaves it in a log; were it in no store by
    then, it would be bought again.
    """
    ask = model.api.generate

    @wraps(ask)
    async def generate(*args: Any, **kwargs: Any) -> Any:
        asked = call_in_flight()
        if asked and not model.config.batch:  # an API's client is made anew after some errors
            sdk = getattr(model.api, "client", None)
            asked.watch_request(getattr(sdk, "_client", None))
        asking = ask(*args, **kwargs)
        may_refuse = current().overflows == WRONG
        found: Any = await (read_refusal(asking, model.name) if may_refuse else asking)
        output, call = cast("tuple[Any, Any]", found if isinstance(found, tuple) else (found, None))
        if asked and isinstance(output, ModelOutput):
            response = call.response if call else None
            with suppress(Exception):  # what cannot be priced is told when the call has ended
                asked.tell_price(output, response)
            with suppress(OSError):  # which is told then, too
                asked.keep(make_storable(output), response)
        return cast(Any, found)

    cast(Any, model.api).generate = generate
    return model


def pool_models(spec: PoolSpec, seed: int = 0, time_scale: float = 0.0) -> dict[str, Model]:
    """Return one model per slot, by role name, conductor included: Inspect's `model_roles`."""
    models = {slot.name: slot_model(slot, seed, time_scale) for slot in spec.slots}
    for slot in spec.slots:
        _refuse_mislabelled(spec, slot)
    return models


def active_pool(spec: PoolSpec | None, epoch: int = 1, override: WorkerSpec | None = None) -> Pool:
    """Return the running sample's roles, filled from `spec` and a system's own conductor."""
    roles = {
        name: role[0] if isinstance(role, list) else role
        for name, role in model_roles().items()
        if name != GRADER  # who is examined must not be able to ask the judge
    }
    models = roles
    if spec:
        slots = [one for one in spec.slots if one.name not in (GRADER, *spec.environment)]
        models = {slot.name: roles.get(slot.name) or _absent_role(spec, slot) for slot in slots}
    if CONDUCTOR in roles:
        models.setdefault(CONDUCTOR, roles[CONDUCTOR])
    if override and CONDUCTOR in roles:
        refuse_other_conductor(override, roles[CONDUCTOR])
    elif override and spec is None:
        models[CONDUCTOR] = _absent_role(None, override)
    run = current().spend
    pool = Pool(models=models, spec=spec, epoch=epoch, spend=run.for_question() if run else None)
    equal = current().equal
    pool.envelope = Envelope(equal) if isinstance(equal, EqualBudget) else None
    if not pool.workers:
        raise UserError(
            "There are no workers: name a pool (-S pool=rehearsal) or give --model-role NAME=MODEL."
        )
    return pool


def _absent_role(spec: PoolSpec | None, slot: WorkerSpec) -> Model:
    # Made once for all samples of an event loop: a client belongs to the loop it was made in.
    made = _MADE.get(None)
    if made is None:
        _MADE.set(made := dict[tuple[str, str], Model]())
    key = (spec.label if spec else "", slot.model_dump_json())
    if key not in made:
        if spec:
            _refuse_mislabelled(spec, slot)
        made[key] = _made(slot, role=slot.name)
    return made[key]


def _refuse_mislabelled(spec: PoolSpec, slot: WorkerSpec) -> None:
    cassette = slot.args.get("cassette")
    if slot.provider != REPLAYING or not cassette:
        return
    source = open_cassette(str(cassette)).header.source_label
    if (source == "rehearsal") != (spec.label == "rehearsal"):
        wanted = "rehearsal" if source == "rehearsal" else "recorded"
        raise UserError(
            f"Pool {spec.name!r} is labelled {spec.label!r}, and the replies that {slot.name!r} "
            f"replays were recorded from {source} workers: label it {wanted!r}."
        )


_MADE: RunVar[dict[tuple[str, str], Model]] = RunVar("podium_absent_roles")
"""The models of absent roles, by label and slot."""
