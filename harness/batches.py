"""Providers' batch APIs (at a lower price): Inspect's batch mode, made resumable.

Inspect (0.3.285) keeps the ids of its batches in memory alone, waits forever for a row without a
result, fails a whole batch if one row is refused, and resends expired rows without end. Here the
batch's id is stored with each request, so that a resumed run waits for that batch.
"""

import sys
from contextlib import suppress
from typing import Any, cast

from inspect_ai.model import Model
from inspect_ai.model._generate_config import normalized_batch_config
from inspect_ai.model._providers.util.batch import (  # pyright: ignore[reportMissingTypeStubs]
    Batch,
    BatchCheckResult,
    Batcher,
    BatchRequest,
)
from inspect_ai.model._providers.util.batch_log import (  # pyright: ignore[reportMissingTypeStubs]
    log_batch,
    set_batch_log_callback,
    set_batch_status_callback,
)
from inspect_ai.model._retry import batch_admin_retry_config

from podium.harness.context import run_context
from podium.harness.ledger.draws import ReplyDraw
from podium.harness.ledger.recorder import CallInFlight, call_in_flight
from podium.harness.text import say

UNBILLED = 410
"""The HTTP status that podium gives a batch row that was neither run nor billed."""
NOT_RUN = {"APITimeoutError": "expired", "APIConnectionError": "was cancelled"}
"""Inspect's error class for an Anthropic batch row that was not run -> what happened to the row."""


class NotRun(Exception):
    """A batch ended without a reply to a request; the next run sends the request again."""

    def __init__(self, sentence: str, status_code: int | None = UNBILLED) -> None:
        """Store the reason and the HTTP status; None: the request may have been billed."""
        billed = "the request may have been billed" if status_code is None else "nothing was billed"
        super().__init__(f"{sentence}; {billed}")
        self.status_code = status_code


class KeptBatches(Batcher[Any, Any]):
    """A mixin that makes Inspect's batchers resumable; list it first among the base classes."""

    def __init__(self, *args: Any) -> None:
        """Pass the arguments to Inspect's batcher."""
        super().__init__(*args)
        self._calls: dict[int, CallInFlight] = {}  # by `id()` of the request
        self._reasons: dict[str, str] = {}  # batch id -> why it has no results

    async def generate_for_request(self, request: dict[str, Any]) -> Any:
        """Return the reply to a request; the request counts as sent once its batch is submitted."""
        if call := call_in_flight():
            call.sent = False
            self._calls[id(request)] = call
        try:
            return await super().generate_for_request(request)
        finally:
            self._calls.pop(id(request), None)

    async def _batch_worker(self) -> None:
        with run_context(in_flight=None):  # else it would inherit the call that started it
            await super()._batch_worker()

    async def _process_intake_queue(self) -> bool:
        queue, self._intake_queue = self._intake_queue, []
        for row in queue:
            draw = self._draw(row)
            if draw is None or (batch := draw.batch) is None:
                self._intake_queue.append(row)
                continue
            name, row.custom_id = batch
            if name not in self._inflight_batches:
                log_batch(f"Waiting for batch {name}, which an earlier run submitted")
            self._inflight_batches.setdefault(name, Batch(name, {})).requests[row.custom_id] = row
            self._calls[id(row.request)].sent = True
            row.submitted()
        try:
            return await super()._process_intake_queue()
        except Exception:  # the batch's calls already got the error; raised here, it ends the run
            return True

    async def _create_batch(self, batch: list[BatchRequest[Any]]) -> str:
        for call in (self._calls.get(id(row.request)) for row in batch):
            if call:
                call.sent = True
        name = await super()._create_batch(batch)  # pyright: ignore[reportAbstractUsage]
        for row in batch:
            if draw := self._draw(row):
                with suppress(OSError):  # if the id cannot be stored, the next call is refused
                    draw.keep_batch(name, row.custom_id)
        return name

    async def _check_batch(self, batch: Batch[Any]) -> BatchCheckResult[Any]:
        try:
            return await super()._check_batch(batch)  # pyright: ignore[reportAbstractUsage]
        except Exception as error:
            if getattr(error, "status_code", None) != 404:
                raise
        self._reasons[batch.id] = "is not there any more"
        await self._resolve_inflight_batch(batch, {})
        return BatchCheckResult(0, 0, batch.created_at, None)

    async def _resolve_inflight_batch(self, batch: Batch[Any], results: dict[str, Any]) -> None:
        # A resumed batch also has results of other calls; those are left out.
        outcomes = {name: self._result(batch.id, results.get(name)) for name in batch.requests}
        for name, result in outcomes.items():
            if isinstance(result, Exception) and (draw := self._draw(batch.requests[name])):
                draw.forget_batch()
        await super()._resolve_inflight_batch(batch, outcomes)

    def _result(self, batch: str, result: Any) -> Any:
        """Return a row's reply, or an error by which Inspect decides whether to retry the row."""
        reason = self._reasons.get(batch)
        if result is None:
            return NotRun(f"batch {batch} {reason or 'ended without a result for it'}", None)
        if isinstance(result, RuntimeError):  # the whole batch was refused
            return NotRun(f"batch {batch} {reason or result}")
        if event := NOT_RUN.get(type(result).__name__):
            return NotRun(f"this request {event} in batch {batch}")
        # Inspect gives each of Anthropic's errors status 500, and would retry without end.
        if isinstance(result, Exception) and (status := getattr(type(result), "status_code", None)):
            vars(result)["status_code"] = status
        return result

    def _draw(self, row: BatchRequest[Any]) -> ReplyDraw | None:
        call = self._calls.get(id(row.request))
        return call.draw if call else None

    def _parse_jsonl_line(self, line_data: dict[str, Any]) -> tuple[str, Any]:
        """Return (custom_id, result) of a row of OpenAI's results; an exception if it failed."""
        base: Any = super()
        response: dict[str, Any] = line_data.get("response") or {}
        error: dict[str, Any] | None = line_data.get("error")
        if error:
            return line_data["custom_id"], NotRun(f"{error.get('message')} ({error.get('code')})")
        if (status := response.get("status_code", 200)) == 200:
            return base._parse_jsonl_line(line_data)
        from openai._types import (
            Response,  # pyright: ignore[reportPrivateImportUsage] - of the HTTP library it uses
        )

        client: Any = vars(self)["_openai_client"]
        request = client._client.build_request("POST", client.base_url)
        reply = Response(status, json=response.get("body"), request=request)
        return line_data["custom_id"], client._make_status_error_from_response(reply)

    def _adapt_batch_info(self, input: Any) -> Any:
        """Return OpenAI's batch, marked `failed` if it ended without files that Inspect awaits."""
        is_final = input.status in ("failed", "expired", "cancelled")
        if not is_final or input.output_file_id or input.error_file_id:
            return input
        errors = (input.errors.data if input.errors else None) or ()
        messages = "; ".join(str(error.message) for error in errors)
        self._reasons[input.id] = f"has {input.status}{messages and f' ({messages})'}"
        return input.model_copy(update={"status": "failed"})


def keep_batches(model: Model) -> Model:
    """Make a model's batches resumable, if its settings use the batch API; return the model."""
    config, api = model.config, cast("Any", model.api)
    if not config.batch:
        return model
    set_batch_log_callback(lambda text: say(f"podium: {text}", file=sys.stderr))
    set_batch_status_callback(lambda status: None)
    retries = batch_admin_retry_config(api.model_name, config, api.should_retry, str(model))
    fields = cast("dict[str, Any]", vars(api))
    common = fields.get("client"), normalized_batch_config(config.batch), retries
    if str(model).startswith("openai/"):
        from inspect_ai.model._providers._openai_batch import (  # pyright: ignore[reportMissingTypeStubs]
            OpenAIBatcher,
        )
        from openai.types.chat import ChatCompletion
        from openai.types.responses import Response

        batcher: Any = type("KeptOpenAIBatches", (KeptBatches, OpenAIBatcher), {})
        fields["_completions_batcher"] = batcher(*common, ChatCompletion, "/v1/chat/completions")
        fields["_responses_batcher"] = batcher(*common, Response, "/v1/responses")
    elif str(model).startswith("anthropic/"):
        from inspect_ai.model._providers._anthropic_batch import (  # pyright: ignore[reportMissingTypeStubs]
            AnthropicBatcher,
        )

        batcher = type("KeptAnthropicBatches", (KeptBatches, AnthropicBatcher), {})
        fields["_batcher"] = batcher(*common)
    return model
