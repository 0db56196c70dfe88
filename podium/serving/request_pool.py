"""Checks of a client request's fields, and the worker pool that makes its model calls."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import anyio
from inspect_ai.model import GenerateConfig, ModelOutput

from podium.harness.budget import Spend
from podium.harness.conversation import ConversationPool
from podium.harness.errors import SpendLimit
from podium.harness.pool import Pool
from podium.harness.records import CONDUCTOR, Reply
from podium.harness.request import Request, SampleIndex
from podium.serving.exchange import Refusal, ServedRequest, StepBegun
from podium.serving.models import ServedModel

WITH_PLANS = frozenset({"max_tokens"})
"""Sampling settings that systems with plans support: the limit applies to each worker's reply."""


def refuse_unhonoured(request: ServedRequest, model: ServedModel) -> None:
    """Raise Refusal (400), with the field's name, if the model does not support a field."""
    if not request.messages:
        raise Refusal(
            400,
            "invalid_request",
            "The request has no message to answer. Send at least one.",
            param="messages",
        )
    if model.passes_through:
        return
    fields = request.params.keys() & {"images"}
    if not (request.conversation.has_tools and model.acts):  # a system that calls tools gets all
        fields |= request.config.model_dump(exclude_none=True).keys() - WITH_PLANS
        fields |= {"tools"} if request.conversation.has_tools else set[str]()
    for name in sorted(fields):
        param = request.params.get(name, name)
        raise Refusal(
            400,
            "unsupported_parameter",
            f"{model.id} calls several models and does not support {param!r}. Leave it out, or "
            "request another model (GET /v1/models lists which support tools).",
            param=param,
        )


@dataclass(slots=True)
class RequestGate:
    """The limits of one client request, checked before each of its model calls."""

    max_calls: int
    spend: Spend
    """The request's own spend meter; once it is ended (by `close`), it admits no queued call."""
    begun: Callable[[StepBegun], None]
    calls: int = 0
    steps: int = 0
    planned: int | None = None
    closed: Refusal | None = None
    """Why no new call is made; None while calls are allowed."""

    def close(self, refusal: Refusal) -> None:
        """Allow no new calls; if called again, the first reason is kept."""
        if self.closed is None:
            self.closed = refusal
            self.spend.ended = self.spend.ended or SpendLimit(str(refusal))

    def enter(self, worker: str) -> None:
        """Count a call that is about to be made; Refusal if no call is allowed any more."""
        if self.closed is None and self.calls >= self.max_calls:
            text = f"This request has made {self.calls} calls, the maximum: raise --max-calls."
            self.close(Refusal(402, "out_of_budget", text))
        if self.closed is not None:
            raise self.closed
        self.calls += 1
        self.steps += worker != CONDUCTOR
        number = 0 if worker == CONDUCTOR else self.steps
        self.begun(StepBegun(number, self.planned, worker))


@dataclass(slots=True, kw_only=True)
class RequestPool(ConversationPool):
    """The workers for one client request; `gate`, the request's limits, must allow each call."""

    gate: RequestGate
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """HTTP headers of every model call, in addition to the worker's own."""

    def limits(self, worker: str, config: GenerateConfig) -> GenerateConfig:
        """Return a call's config with the token limit of its reply and with the HTTP headers."""
        model_config = self.models[worker].config
        headers = {**(model_config.extra_headers or {}), **self.headers} if self.headers else None
        limited = ConversationPool.limits(self, worker, config)
        return limited.merge(GenerateConfig(extra_headers=headers))

    def has_planned(self, steps: int) -> None:
        """Store the number of steps of the system's plan, for the progress that clients see."""
        self.gate.planned = steps

    async def _put(self, request: Request, number: SampleIndex) -> tuple[ModelOutput, Reply]:
        self.gate.enter(request.role)
        results: list[tuple[ModelOutput, Reply]] = []
        # A call in flight is always awaited, even if the request is cancelled: it is billed.
        with anyio.CancelScope(shield=True):
            results.append(await Pool._put(self, request, number))
        return results[0]
