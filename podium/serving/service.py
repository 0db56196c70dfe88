"""The service that answers requests: systems, their workers, the spend meter and the journals.

A request runs as its own task. If its client disconnects, no new call is made; calls in flight are
awaited, recorded and billed.
"""

import asyncio
import re
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from inspect_ai.model import Model

from podium.harness.budget import Spend
from podium.harness.conversation import acts_in, question_of
from podium.harness.errors import QuestionLimit, SpendLimit, WorkerError
from podium.harness.ledger.call import Call
from podium.harness.ledger.hooks import facts_digest, own_transcript, text_digest
from podium.harness.ledger.journal import SampleRef
from podium.harness.ledger.recorder import recording
from podium.harness.ledger.served import rows_from
from podium.harness.prices import Book
from podium.harness.records import CONDUCTOR, Answer, Question
from podium.harness.workflow import workflow_of
from podium.serving.access_keys import Caller
from podium.serving.admission import Admission, ServingLimits
from podium.serving.exchange import (
    Refusal,
    RequestBill,
    Served,
    ServedReply,
    ServedRequest,
    StepBegun,
    bill_of,
)
from podium.serving.journals import DailyJournals, RequestJournal, keep_texts
from podium.serving.models import ServedModel, ServedModels
from podium.serving.request_pool import (
    RequestGate,
    RequestPool,
    refuse_unhonoured,
)
from podium.serving.telemetry import Telemetry

VIA = "x-podium-via"
"""HTTP header with the ids of the podium servers that a request has passed, to detect loops."""
_SERVER = re.compile(r"[0-9a-f]{16}")
MOST_SERVERS = 16
Made = Mapping[str, Mapping[str, Model]]


def servers_before(headers: Mapping[str, str]) -> list[str]:
    """Return the ids of podium servers that a request has passed; drops words that are no ids."""
    names = headers.get(VIA, "").split()[:MOST_SERVERS]
    return [name for name in names if _SERVER.fullmatch(name)]  # providers get no other words


def new_trace() -> str:
    """Return a new request's id: its UTC day, to find its journal, and 64 random bits."""
    return f"req-{datetime.now(UTC):%Y%m%d}-{secrets.token_hex(8)}"


@dataclass(slots=True)
class PendingRequest:
    """A request that is being answered; the endpoint waits for its steps and its reply."""

    trace: str
    request: ServedRequest
    model: ServedModel
    caller: Caller
    gate: RequestGate
    question: Question
    headers: Mapping[str, str]
    """The client's HTTP headers, among them `VIA` and those of the client's OpenTelemetry span."""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    began: float = field(default_factory=monotonic)
    step: StepBegun | None = None
    """The latest workflow step that has begun and has not been streamed yet."""
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a step has begun or the request has ended."""
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client has disconnected or the deadline has passed."""
    bill: RequestBill | None = None
    """The cost of the request's calls; None until the request has ended."""
    task: "asyncio.Task[ServedReply] | None" = None

    @property
    def sample(self) -> SampleRef:
        """Return the reference by which the journal identifies this request."""
        return SampleRef(self.trace, 1, self.trace)

    def begin_step(self, step: StepBegun) -> None:
        """Store a workflow step that begins, for the next heartbeat of the stream."""
        self.step = step
        self.moved.set()

    def hang_up(self, refusal: Refusal) -> None:
        """Allow no new calls and wait no longer for the reply; calls in flight still finish."""
        self.gate.close(refusal)
        self.moved.set()
        self.left.set()

    async def beats(self, every_s: float) -> AsyncGenerator[StepBegun | None]:
        """Until the request ends, yield each step that begins, or None after `every_s` seconds."""
        assert self.task is not None, "made by ModelService.begin"
        while not (self.task.done() or self.left.is_set()):
            with suppress(TimeoutError):
                await asyncio.wait_for(self.moved.wait(), every_s)
            self.moved.clear()
            if not (self.task.done() or self.left.is_set()):
                step, self.step = self.step, None
                yield step

    async def reply(self) -> ServedReply:
        """Return the reply; Refusal if the request failed, was refused, or was given up."""
        assert self.task is not None, "made by ModelService.begin"
        waiter = asyncio.create_task(self.left.wait())
        try:
            await asyncio.wait((self.task, waiter), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
        if not self.task.done():
            raise self.gate.closed or client_gone()
        return self.task.result()


@dataclass(slots=True)
class ModelService:
    """The state that all endpoints of a server share, and the methods that answer requests."""

    models: ServedModels
    made: Made
    """System -> role -> model client; the clients are made in the server's event loop."""
    admission: Admission
    journals: DailyJournals
    telemetry: Telemetry
    limits: ServingLimits
    book: Book
    log_dir: Path
    name: str
    """This server's id in the header `VIA`, which shows that a request has returned to it."""
    keep_texts: bool = False
    stopping: bool = False
    in_flight: "set[asyncio.Task[ServedReply]]" = field(
        default_factory=set["asyncio.Task[ServedReply]"]
    )

    def refuse_stopping(self) -> None:
        """Raise Refusal (503) if the server is stopping."""
        if self.stopping:
            raise stopping()

    def begin(
        self, trace: str, request: ServedRequest, caller: Caller, headers: Mapping[str, str]
    ) -> PendingRequest:
        """Start the task that answers a request; Refusal, before any call, if not admitted."""
        self.refuse_stopping()
        model = self.models.find(request.model)
        refuse_unhonoured(request, model)
        admitted = ExitStack()
        names = model.id, request.model, model.dated
        spend = admitted.enter_context(self.admission.admit(caller, *names))
        gate = RequestGate(self.limits.max_calls, spend, lambda step: pending.begin_step(step))
        question = question_of(trace, request.conversation)
        pending = PendingRequest(trace, request, model, caller, gate, question, headers)
        pending.task = asyncio.create_task(self._answered(pending, spend, admitted), name=trace)
        self.in_flight.add(pending.task)
        pending.task.add_done_callback(self._ended)
        pending.task.add_done_callback(lambda _: pending.moved.set())
        self.telemetry.begun(model.name)
        return pending

    def answering(self, model_id: str) -> list[Model]:
        """Return the workers that may get a conversation unchanged; none if the system plans."""
        model = self.models.find(model_id)
        workers = self.made[model.name] if model.passes_through else dict[str, Model]()
        only = model.args.get("worker")
        return [m for name, m in workers.items() if name != CONDUCTOR and only in (None, name)]

    def _ended(self, task: "asyncio.Task[ServedReply]") -> None:
        self.in_flight.discard(task)
        if not task.cancelled():
            task.exception()  # mark the error as retrieved: the endpoint may have stopped waiting

    async def drain(self, grace_s: float) -> None:
        """Refuse new requests; wait up to `grace_s` for requests in flight, then cancel them."""
        self.stopping = True
        if self.in_flight:
            _, pending = await asyncio.wait(self.in_flight, timeout=grace_s)
            for task in pending:
                task.cancel()
            if pending:
                await asyncio.wait(pending)

    async def close(self) -> None:
        """Close the journals, the telemetry and the clients of model providers, in this order."""
        self.journals.close()
        self.telemetry.close()
        clients = {id(m): m for workers in self.made.values() for m in workers.values()}
        for model in clients.values():
            with suppress(Exception):  # they are not used any more
                await model.api.aclose()

    def _headers(self, pending: PendingRequest) -> dict[str, str]:
        """Return the header `VIA` for calls to live workers; no header for simulated workers."""
        if pending.model.spec.label != "live":
            return {}
        return {VIA: " ".join((*servers_before(pending.headers), self.name))}

    async def _answered(
        self, pending: PendingRequest, spend: Spend, admitted: ExitStack
    ) -> ServedReply:
        refusal, result, rows = None, None, list[Call]()
        with admitted:
            try:
                with self.journals.request(pending.model.name) as journal:
                    try:
                        result = await self._asked(pending, spend, journal)
                        refusal = pending.gate.closed if pending.left.is_set() else None
                    except Exception as error:
                        refusal = pending.gate.closed or self._refusal(error)
                    except asyncio.CancelledError:
                        refusal = stopping()
                    rows = rows_from(journal.journal().lines, asdict(journal.head), self.book)
                    pending.bill = bill_of(rows)
                    self._write_down(pending, journal, result and result[0], refusal)
            except OSError:
                self.telemetry.journal_failed()
                refusal = journal_lost()
        self.telemetry.ended(_served(pending, refusal, rows))
        if refusal is not None or result is None or pending.bill is None:
            raise refusal or journal_lost()
        return _reply(pending, *result, pending.bill)

    async def _asked(
        self, pending: PendingRequest, spend: Spend, journal: RequestJournal
    ) -> tuple[Answer, RequestPool]:
        """Return the system's answer and the pool it used; no new call after the deadline."""
        model, request = pending.model, pending.request
        journal.journal().write("request", _opening(pending))
        pool = RequestPool(
            self.made[model.name],
            model.spec,
            spend=spend,
            gate=pending.gate,
            conversation=request.conversation,
            text=pending.question.text,
            acts=acts_in(request.conversation, model.card.acts),
            headers=self._headers(pending),
        )
        late = asyncio.get_running_loop().call_later(
            self.limits.deadline_s, pending.hang_up, _too_late(self.limits.deadline_s)
        )
        try:
            with own_transcript(), recording(journal, "serving", pending.sample):
                return await model.system(pending.question, pool), pool
        finally:
            late.cancel()

    def _refusal(self, error: Exception) -> Refusal:
        """Return the refusal for an exception; it does not quote the provider's text."""
        if isinstance(error, Refusal):
            return error
        if isinstance(error, QuestionLimit):
            return Refusal(402, "out_of_budget", str(error))
        if isinstance(error, SpendLimit):
            return self.admission.refusal(error)
        if isinstance(error, WorkerError):
            sentence = "A worker call failed; the trace (x-podium-trace) shows which one, and why."
            return Refusal(502, "worker_failed", sentence)
        kind = type(error).__name__
        return Refusal(500, "failed", f"The system failed ({kind}). Send the request again.")

    def _write_down(
        self,
        pending: PendingRequest,
        journal: RequestJournal,
        answer: Answer | None,
        refusal: Refusal | None,
    ) -> None:
        lines = journal.journal()
        lines.write("answer", _closing(pending, answer, refusal))
        if self.keep_texts:
            plan, text = (answer.plan, answer.text) if answer else (None, None)
            texts = {"input": pending.question.text, "plan": plan, "answer": text}
            keep_texts(lines, pending.trace, texts)


def client_gone() -> Refusal:
    """Return the refusal (499) of a request whose client has disconnected."""
    return Refusal(499, "cancelled", "The client disconnected; no new call was made.")


def stopping() -> Refusal:
    """Return the refusal (503) of a request that the stopping server does not answer."""
    return Refusal(
        503, "stopping", "This server is stopping. Send the request again later.", retry_after_s=5
    )


def journal_lost() -> Refusal:
    """Return the refusal (500) of a request that cannot be written to the journal."""
    sentence = "This server cannot write its journal. Check the disk of its --log-dir."
    return Refusal(500, "failed", sentence)


def _too_late(deadline_s: float) -> Refusal:
    return Refusal(
        504, "deadline", f"No answer after {deadline_s:g} s. Raise the --deadline of the server."
    )


def _reply(
    pending: PendingRequest, answer: Answer, pool: RequestPool, bill: RequestBill
) -> ServedReply:
    output = pool.output_of(answer)
    return ServedReply(
        trace=pending.trace,
        model=pending.request.model,
        created=int(pending.started.timestamp()),
        text=output.completion,
        tool_calls=output.message.tool_calls or (),
        stop=output.stop_reason,
        bill=bill,
    )


def _opening(pending: PendingRequest) -> dict[str, Any]:
    return {
        "sample": asdict(pending.sample),
        "input_sha256": text_digest(pending.question.text),
        "model": pending.request.model,
        "resolved": pending.model.dated,
        "dialect": pending.request.dialect,
        "stream": pending.request.stream,
        "key": pending.caller.name or None,
    }


def _closing(
    pending: PendingRequest, answer: Answer | None, refusal: Refusal | None
) -> dict[str, Any]:
    steps = len(answer.replies) if answer else None
    depth, stopped, plan = (answer.depth, answer.stopped, answer.plan) if answer else (None,) * 3
    workflow = workflow_of(plan) if plan else None
    return {
        "sample": asdict(pending.sample),
        "answer_sha256": text_digest(answer.text) if answer else None,
        "shape_sha256": facts_digest(depth, steps, stopped, plan),
        "status": refusal.status if refusal else 200,
        "error": refusal.kind if refusal else None,
        "depth": depth,
        "steps": steps,
        "stopped": stopped,
        "plan": workflow.without_texts().as_json() if workflow else None,
        "latency_s": round(monotonic() - pending.began, 6),
    }


def _served(pending: PendingRequest, refusal: Refusal | None, rows: list[Call]) -> Served:
    seconds = monotonic() - pending.began
    return Served(
        trace=pending.trace,
        system=pending.model.name,
        dialect=pending.request.dialect,
        model=pending.request.model,
        status=refusal.status if refusal else 200,
        error=refusal.kind if refusal else None,
        stream=pending.request.stream,
        seconds=seconds,
        started=pending.started,
        bill=pending.bill,
        calls=rows,
        key=pending.caller.name or None,
        headers=pending.headers,
    )
