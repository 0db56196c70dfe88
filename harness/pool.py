"""The pool: the object through which a system calls models, each a worker with a name.

Inside an eval, workers are Inspect's model roles, so Inspect's log has their tokens and config.
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
    """The models that a system may call, by name; `spec` is None for models of `--model-role`."""

    models: Mapping[str, Model]
    spec: PoolSpec | None = None
    epoch: int = 1
    spend: Spend | None = None
    envelope: Envelope | None = None
    """The question's budget, equal for all systems; None if the run has no equal budget."""
    so_far: Callable[[], Answer] | None = None
    """Returns the best answer that the system has so far; None before the first reply."""
    public_tests: PublicTests | None = None
    """Grades a program by a question's public tests; None if the suite has none."""
    kept: dict[str, Any] = field(default_factory=dict[str, Any])
    """State that a system keeps between the turns of a sample."""
    _asked: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    _said: dict[tuple[str, str], ChatMessage] = field(
        default_factory=dict[tuple[str, str], ChatMessage]
    )

    @classmethod
    def named(cls, name: str, seed: int = 0) -> "Pool":
        """Return the pool of a pool file, for calls outside an eval, without a journal."""
        spec = read_pool(name)
        return cls(pool_models(spec, seed), spec)

    @property
    def workers(self) -> tuple[str, ...]:
        """Names of the workers in pool order, without conductor, grader and variants."""
        roles = (CONDUCTOR, GRADER, *self.variants)
        return tuple(name for name in self.models if name not in roles)

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the workers' variants, e.g. `atlas@low`; `workers` does not include them."""
        return tuple(slot.name for slot in self.spec.variants) if self.spec else ()

    def card(self, worker: str) -> str:
        """Return the card (description) of a worker; empty if the pool has no file."""
        return self.spec.worker(worker).card if self.spec else ""

    async def ask(
        self,
        worker: str,
        messages: Sequence[ChatMessage],
        step: str,
        sampling: Sampling | None = None,
    ) -> Reply:
        """Send one request to one worker and return the reply; the log shows it under `step`."""
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
        """Send a plan's last request to its worker and return the reply.

        `advice` is the request without the question. In a task with several turns, the worker gets
        the conversation with its tools, and `advice`.
        """
        return await self.ask(worker, messages, step, sampling)

    def prescribed(self, worker: str, sampling: Sampling | None) -> GenerateConfig:
        """Return the settings that a step's `sampling` adds to the worker's own settings."""
        return _prescribed(self._model(worker), sampling)

    def has_planned(self, steps: int) -> None:
        """Do nothing; a pool that shows progress overrides this, to store the number of steps."""

    async def relay(
        self, worker: str, messages: Sequence[ChatMessage], step: str, offered: Offered
    ) -> tuple[ModelOutput, Reply]:
        """Send a request of a framework or task; return (output with tool calls, reply)."""
        return await self._put(*self._numbered(worker, messages, step, offered))

    def _numbered(
        self, worker: str, messages: Sequence[ChatMessage], step: str, offered: Offered
    ) -> tuple[Request, SampleIndex]:
        """Return a request and its sample index: the epoch, and how often it was sent before."""
        model, slots = self._model(worker), self.spec.slots if self.spec else ()
        price = next((slot.price_ref for slot in slots if slot.name == worker), str(model))
        request = Request(worker, model, _sendable(messages), price, step, offered)
        key = (worker, request.sha256)
        self._asked[key] += 1
        return request, SampleIndex(self.epoch, self._asked[key] - 1)

    async def _reply(self, request: Request, number: SampleIndex) -> Reply:
        """Send a request, with its `number` among equal requests of a sample; return the reply."""
        return (await self._put(request, number))[1]

    async def _put(self, request: Request, number: SampleIndex) -> tuple[ModelOutput, Reply]:
        worker, ended_s = request.role, None
        # An embedded model uses no calls and no dollars of a budget: its seconds are shown apart.
        envelope = None if str(request.model).startswith(EMBEDDED) else self.envelope
        try:
            if envelope is None:
                call, output = await self._asked_once(request, number)
            else:
                price = self.spend.book.price(request.price_ref) if self.spend else None
                async with within(envelope, request, price) as envelope_call:
                    call, output = await self._asked_once(request, number)
                    envelope_call.replied(envelope.budget, call.usage, call.requests_lost)
                ended_s = envelope_call.begins_s + (call.reply_s or 0.0)
                envelope.arrived(ended_s)
            if output.empty:
                raise WorkerError(f"{worker} ({request.model}) gave no reply: it sent no choices")
        except (PodiumError, LimitExceededError):
            raise
        except Exception as error:
            reason = f"{storable(_reason(error))}{dialect_fix(request.model, error)}"
            message = f"{worker} ({request.model}) gave no reply: {reason}"
            raise WorkerError(message) from error
        reply = Reply(
            worker, output.completion, call.usage, call.usd, call.too_long, ended_s=ended_s
        )
        return output, reply

    async def _asked_once(
        self, request: Request, number: SampleIndex
    ) -> tuple[CallInFlight, ModelOutput]:
        """Make one call for a request, within a workflow step; return the call and its output."""
        async with step_span(request.step or request.role):
            with run_context(sample=number):
                return await ask_once(request, self.spend, partial(_generate, request, number))

    async def try_on_public_tests(self, question: Question, reply: str) -> Grade:
        """Return the grade of a program by the public tests; UserError if the suite has none."""
        if self.public_tests is None:
            raise UserError(
                f"The system needs public tests, but question {question.id!r} has none that can "
                "run. Use a suite whose questions show tests, and a sandbox (--box)."
            )
        return await self.public_tests(question.sealed(), reply)

    def _first_said(self, turn: ChatMessage) -> ChatMessage:
        """Return the first message object with this role and text: Inspect logs it only once."""
        if isinstance(turn.content, str) and turn.role in ("system", "user"):
            return self._said.setdefault((turn.role, turn.content), turn)
        return turn

    def _model(self, worker: str) -> Model:
        if worker not in self.models:
            names = ", ".join(self.workers)
            raise UserError(f"This pool has no worker {worker!r}; its workers are: {names}.")
        return self.models[worker]


@asynccontextmanager
async def step_span(step: str) -> AsyncGenerator[None]:
    """Log all events in the `with` block as part of the workflow step `step`."""
    # Inspect would copy a sample's whole store before and after, for changes that no call makes:
    # 0.3 s for each call in the airline tasks of tau2, which keep their database in the store.
    with suspend_store_events():
        async with span(step, type="workflow_step"):
            yield


async def ask_once(
    request: Request, spend: Spend | None, generate: Callable[[], Awaitable[ModelOutput]]
) -> tuple[CallInFlight, ModelOutput]:
    """Return (call, output) of a request: the stored reply if it was paid for, else a new one."""
    draw, start = next_draw(request), monotonic()
    if draw is None:
        return await _ask(request, spend, generate, None)
    async with draw.turn():
        bought = draw.bought(request, monotonic() - start)
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
    """Generate the output for a request, record the call and count its cost."""
    async with record_call(request, spend) as in_flight:
        in_flight.draw = draw
        output = in_flight.output = await generate()
        if not in_flight.kept:  # podium did not make the model, or Inspect's cache replied
            make_storable(output)
            event = last_event(in_flight.span)
            call = event.call if event else None
            if failure := failure_in(output, call):
                raise failure
            in_flight.keep(output, call.response if call else None)
    return in_flight, output


def _sendable(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    # A plan's JSON may contain a lone surrogate, which cannot be sent or digested.
    if all(storable(turn.text) == turn.text for turn in messages):
        return messages
    return [make_storable(turn.model_copy(deep=True)) for turn in messages]


def _reason(error: BaseException) -> str:
    """Return the first line of an error, or of the error that Inspect wrapped after its retries."""
    if type(error).__name__ in WRAPPERS and error.__cause__ is not None:
        error = error.__cause__
    return first_line(error) or type(error).__name__


def _prescribed(model: Model, sampling: Sampling | None) -> GenerateConfig:
    if sampling is None:
        return GenerateConfig()
    limit = model.config.max_tokens if sampling.times_max_tokens != 1 else None
    body = {"structured_outputs": {"regex": sampling.regex}} if sampling.regex else {}
    return GenerateConfig(
        temperature=sampling.temperature,
        max_tokens=limit * sampling.times_max_tokens if limit else None,
        extra_body={**(model.config.extra_body or {}), **body} if body else None,
    )


async def _generate(request: Request, number: SampleIndex) -> ModelOutput:
    # Inspect's cache knows neither repetitions nor provider arguments: they go into its key. The
    # eval's cache setting (`inspect eval --cache`) has no public name in Inspect.
    model, messages = request.model, list(request.messages)
    offered = request.offered
    tools: dict[str, Any] = {"tools": [*offered.tools], "tool_choice": offered.tool_choice}
    tools = tools if offered.tools else {}
    whole_eval = active_generate_config().cache  # it has precedence over a model's own
    setting = model.config.cache if whole_eval is None else whole_eval
    if not setting:
        return await model.generate(messages, config=request.config, **tools)
    policy = setting if isinstance(setting, CachePolicy) else CachePolicy()
    scopes = {
        **policy.scopes,
        "podium_worker": request.role,
        "podium_args": repr(sorted(model.model_args.items())),
        "podium_replicate": f"{number.epoch} {number.occurrence}",
    }
    cache = policy.model_copy(update={"scopes": scopes})
    return await model.generate(messages, config=request.config, cache=cache, **tools)


def slot_model(slot: WorkerSpec, seed: int = 0, time_scale: float = 0.0) -> Model:
    """Return a new Inspect model for a worker entry of a pool file, not bound to a model role."""
    rehearses = slot.provider == REHEARSING
    return _made(slot, **({"seed": seed, "time_scale": time_scale} if rehearses else {}))


def _made(slot: WorkerSpec, **overrides: Any) -> Model:
    """Return a new model for a pool entry: a memoized model may use old files and API keys."""
    config, arguments = recorded_settings(slot.model, slot.config, slot.args)
    model = get_model(slot.model, config=config, memoize=False, **{**arguments, **overrides})
    return _known_before_inspect(obey_waits(name_failures(guard_keys(keep_batches(model)))))


def _known_before_inspect(model: Model) -> Model:
    """Make a model store each reply and count its cost before Inspect gets it; return the model.

    Otherwise a run that is killed in between would pay for the reply again when it is resumed.
    """
    ask = model.api.generate

    @wraps(ask)
    async def generate(*args: Any, **kwargs: Any) -> Any:
        in_flight = call_in_flight()
        if in_flight and not model.config.batch:  # Inspect replaces clients after some errors
            sdk = getattr(model.api, "client", None)
            in_flight.watch_request(getattr(sdk, "_client", None))
        asking = ask(*args, **kwargs)
        may_refuse = current().overflows == WRONG
        reply: Any = await (read_refusal(asking, model.name) if may_refuse else asking)
        output, call = cast("tuple[Any, Any]", reply if isinstance(reply, tuple) else (reply, None))
        if in_flight and isinstance(output, ModelOutput):
            response = call.response if call else None
            with suppress(Exception):  # a price that fails is reported at the call's end
                in_flight.tell_price(output, response)
            with suppress(OSError):  # also reported at the call's end
                in_flight.keep(make_storable(output), response)
        return cast(Any, reply)

    cast(Any, model.api).generate = generate
    return model


def pool_models(spec: PoolSpec, seed: int = 0, time_scale: float = 0.0) -> dict[str, Model]:
    """Return {name: model} for a pool's workers, variants and roles, as Inspect's `model_roles`."""
    models = {slot.name: slot_model(slot, seed, time_scale) for slot in spec.slots}
    for slot in spec.slots:
        _refuse_mislabelled(spec, slot)
    return models


def active_pool(spec: PoolSpec | None, epoch: int = 1, override: WorkerSpec | None = None) -> Pool:
    """Return a sample's pool: Inspect's model roles, other models of `spec`, and `override`.

    `override` is the system's own conductor.
    """
    roles = {
        name: role[0] if isinstance(role, list) else role
        for name, role in model_roles().items()
        if name != GRADER  # an evaluated system must not be able to call the judge
    }
    models = roles
    if spec:
        slots = [slot for slot in spec.slots if slot.name not in (GRADER, *spec.environment)]
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
    # One model for all samples of an event loop: a client belongs to the loop it was made in.
    models = _MADE.get(None)
    if models is None:
        _MADE.set(models := dict[tuple[str, str], Model]())
    key = (spec.label if spec else "", slot.model_dump_json())
    if key not in models:
        if spec:
            _refuse_mislabelled(spec, slot)
        models[key] = _made(slot, role=slot.name)
    return models[key]


def _refuse_mislabelled(spec: PoolSpec, slot: WorkerSpec) -> None:
    cassette = slot.args.get("cassette")
    if slot.provider != REPLAYING or not cassette:
        return
    source = open_cassette(str(cassette)).header.source_label
    if (source == "rehearsal") != (spec.label == "rehearsal"):
        label = "rehearsal" if source == "rehearsal" else "recorded"
        raise UserError(
            f"Pool {spec.name!r} is labelled {spec.label!r}, and the replies that {slot.name!r} "
            f"replays were recorded from {source} workers: label it {label!r}."
        )


_MADE: RunVar[dict[tuple[str, str], Model]] = RunVar("podium_absent_roles")
"""(pool's label, pool entry as JSON) -> model, for pool entries that are not among Inspect's model
roles."""
