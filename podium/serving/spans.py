"""OpenTelemetry spans of a server's requests, sent to a collector (`--otlp URL`)."""

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from importlib.metadata import version
from typing import Any

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from podium.harness.ledger.call import Call, attributes, shortest
from podium.serving.exchange import Served, tokens_of

FLUSH_S = 5.0
"""Seconds that `close` waits for the collector; also the timeout of one batch of spans."""
LONGEST = 1024
"""Maximum characters of a span's attribute."""
DIGESTS = frozenset({"podium.prompt_sha256", "podium.output_sha256", "podium.raw_usage"})
"""Span attributes that are not sent: a digest can reveal a short prompt; a raw usage is a
provider's text."""


class SpanExport:
    """Makes OpenTelemetry spans of finished requests and sends them to a collector."""

    def __init__(self, endpoint: str, note: Callable[[str], object]) -> None:
        """Start the exporter; `note` prints one warning if the collector does not accept spans."""
        # The library warns of each lost batch; this class warns once.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL + 1)
        self._watched = _Watched(OTLPSpanExporter(endpoint=endpoint, timeout=FLUSH_S), note)
        self._batches = BatchSpanProcessor(self._watched, schedule_delay_millis=1000)
        about = {"service.name": "podium", "service.version": version("podium")}
        provider = TracerProvider(
            resource=Resource.create(about),
            shutdown_on_exit=False,  # `close` does it, with a timeout
            span_limits=SpanLimits(max_span_attribute_length=LONGEST),
        )
        provider.add_span_processor(self._batches)
        self._tracer = provider.get_tracer("podium")
        self._parent = TraceContextTextMapPropagator()

    def record(self, served: Served) -> None:
        """Make a request's spans: children of the client's span, if the HTTP headers name one."""
        headers = {name: served.headers.get(name, "") for name in ("traceparent", "tracestate")}
        span = self._tracer.start_span(
            f"invoke_workflow {served.system}",
            context=self._parent.extract(headers, context=Context()),
            kind=SpanKind.SERVER,
            attributes=request_attributes(served),
            start_time=_ns(served.started),
        )
        if served.error:
            span.set_status(StatusCode.ERROR, served.error)
        within = set_span_in_context(span, Context())
        for row in served.calls:
            self._call(row, within, served.started)
        span.end(_ns(served.started + timedelta(seconds=served.seconds)))

    def _call(self, row: Call, within: Any, fallback: datetime) -> None:
        tags = {name: v for name, v in attributes(row.as_json()).items() if name not in DIGESTS}
        began = _moment(row.started, fallback)
        span = self._tracer.start_span(
            f"chat {tags['gen_ai.request.model']}",
            context=within,
            kind=SpanKind.CLIENT,
            attributes=tags,
            start_time=_ns(began),
        )
        if row.error:
            span.set_status(StatusCode.ERROR, row.error)
        span.end(_ns(began + timedelta(seconds=row.latency_s or 0)))

    def close(self) -> None:
        """Send the remaining spans; wait `FLUSH_S` seconds at most."""
        # In a thread: the library would wait thirty seconds for a hanging collector.
        thread = threading.Thread(target=self._batches.shutdown, daemon=True)
        thread.start()
        thread.join(FLUSH_S)
        if thread.is_alive():
            self._watched.lose()


class _Watched(SpanExporter):
    """An exporter of spans that warns once if a batch is lost."""

    def __init__(self, exporter: SpanExporter, note: Callable[[str], object]) -> None:
        self._exporter, self._note, self._noted = exporter, note, False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        if result is not SpanExportResult.SUCCESS:
            self.lose()
        return result

    def lose(self) -> None:
        if not self._noted:
            self._noted = True
            self._note(
                "The collector of --otlp does not accept spans; they are lost (printed once)."
            )

    def shutdown(self) -> None:
        self._exporter.shutdown()


def _moment(text: str, fallback: datetime) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:  # the journal has no time
        return fallback


def _ns(moment: datetime) -> int:
    return round(moment.timestamp() * 1e9)


def request_attributes(served: Served) -> dict[str, Any]:
    """Return the attributes of a request's span whose values are known.

    Names are those of `podium.harness.ledger.call`.
    """
    tokens = tokens_of(served.bill)
    usd: Decimal | None = served.bill.usd if served.bill else None
    values = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": served.system,
        "gen_ai.request.model": served.model,
        "gen_ai.usage.input_tokens": tokens["input"],
        "gen_ai.usage.output_tokens": tokens["output"],
        "http.response.status_code": served.status,
        "error.type": served.error,
        "podium.trace": served.trace,
        "podium.dialect": served.dialect,
        "podium.stream": served.stream,
        "podium.calls": served.bill.calls if served.bill else None,
        "podium.orchestration_in": tokens["orchestration_input"],
        "podium.orchestration_out": tokens["orchestration_output"],
        "podium.usd": shortest(usd),
    }
    return {name: value for name, value in values.items() if value is not None}
