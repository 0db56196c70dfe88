"""A server's telemetry: Prometheus metrics, a log line per request, and OpenTelemetry spans."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from podium.harness.errors import UserError
from podium.harness.ledger.call import shortest
from podium.harness.records import CONDUCTOR
from podium.serving.exchange import Served, tokens_of

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800)
"""Histogram bounds, in seconds: from stub workers (10 ms) to slow conductors (30 min)."""
OTHER = "other"
"""The label of an unknown system, so that client input cannot add a series to the metrics."""


class SpanSink(Protocol):
    """Receives each finished request, to make OpenTelemetry spans of its calls."""

    def record(self, served: Served) -> None:
        """Make the spans of a finished request; does not block or raise."""
        ...

    def close(self) -> None:
        """Send the remaining spans; returns within a timeout."""
        ...


def spans_to(url: str, note: Callable[[str], object]) -> SpanSink:
    """Return the sender of spans; UserError if `url` is invalid or the extra `otlp` is missing."""
    try:
        address = urlsplit(url)
        good = address.scheme in ("http", "https") and address.hostname and address.port != 0
        bare = address.path in ("", "/") and not address.query
    except ValueError:  # invalid address or port
        good = bare = False
    if not good:
        raise UserError("--otlp needs the URL of a collector, such as http://localhost:4318.")
    try:
        from podium.serving.spans import SpanExport
    except ImportError as error:
        sentence = "--otlp needs an extra. Run `pip install '.[otlp]'`, or leave --otlp out."
        raise UserError(sentence) from error
    # A collector's address is usually given without a path.
    return SpanExport(url.rstrip("/") + "/v1/traces" if bare else url, note)


class Telemetry:
    """The telemetry of one server: metrics, log and spans."""

    def __init__(
        self,
        systems: Sequence[str],
        write: Callable[[str], object],
        otlp: str | None = None,
    ) -> None:
        """Set the metrics of `systems` to zero; UserError if `otlp` is not a collector's URL."""
        self._systems, self._write = frozenset(systems), write
        self._spans = spans_to(otlp, self._warn) if otlp is not None else None
        self._metrics = _Metrics(systems)

    def begun(self, system: str) -> None:
        """Count a request to `system` as in flight, until `ended` is called."""
        self._metrics.in_flight.labels(self._label(system)).inc()

    def ended(self, served: Served) -> None:
        """Count a finished request, and send it to the log and to the spans' collector."""
        system = self._label(served.system)
        self._metrics.in_flight.labels(system).dec()
        self._metrics.count(system, served)
        self._log(log_line(served))
        if self._spans:
            self._spans.record(served)

    def journal_failed(self) -> None:
        """Count a request that could not be written to the journal."""
        self._metrics.journal_failures.inc()

    def render(self) -> tuple[bytes, str]:
        """Return the body of the endpoint `/metrics`, and its content type."""
        return generate_latest(self._metrics.registry), CONTENT_TYPE_PLAIN_0_0_4

    def close(self) -> None:
        """Send the remaining spans; returns within a timeout."""
        if self._spans:
            self._spans.close()

    def _warn(self, sentence: str) -> None:
        self._log(json.dumps({"time": _instant(datetime.now(UTC)), "warning": sentence}))

    def _log(self, line: str) -> None:
        try:
            self._write(line)
        except (OSError, ValueError):  # stderr is closed; requests must not fail for that
            self._metrics.log_failures.inc()

    def _label(self, system: str) -> str:
        return system if system in self._systems else OTHER


class _Metrics:
    """The metrics of one server, in a registry of their own, so that two servers do not clash."""

    def __init__(self, systems: Sequence[str]) -> None:
        def made(kind: Any, name: str, text: str, *labels: str, **options: Any) -> Any:
            return kind(f"podium_{name}", text, labels, registry=self.registry, **options)

        self.registry = CollectorRegistry()
        self.requests = made(
            Counter, "requests", "Finished requests.", "system", "dialect", "status"
        )
        self.in_flight = made(Gauge, "requests_in_flight", "Requests in flight.", "system")
        self.calls = made(Counter, "calls", "Calls to models.", "system", "role", "outcome")
        self.tokens = made(Counter, "tokens", "Tokens, if they are known.", "system", "direction")
        self.dollars = made(
            Counter, "dollars", "US dollars of requests whose price is known.", "system"
        )
        self.unpriced = made(
            Counter, "unpriced_requests", "Requests without a known price.", "system"
        )
        self.seconds = made(
            Histogram,
            "request_seconds",
            "Seconds from the first byte of a request to its end.",
            "system",
            buckets=BUCKETS,
        )
        self.journal_failures = made(
            Counter, "journal_failures", "Requests that the journal could not record."
        )
        self.log_failures = made(Counter, "log_failures", "Lost lines of the log.")
        for system in systems:
            self._zero(system)

    def _zero(self, system: str) -> None:
        """Set a system's metrics to zero: Prometheus needs a first value to compute a rate."""
        for series in (self.in_flight, self.dollars, self.unpriced, self.seconds):
            series.labels(system)
        for dialect in ("chat", "responses", "messages"):
            self.requests.labels(system, dialect, "200")
        for role in ("worker", "conductor"):
            for outcome in ("ok", "failed"):
                self.calls.labels(system, role, outcome)
        for direction in tokens_of(None):
            self.tokens.labels(system, direction)

    def count(self, system: str, served: Served) -> None:
        self.requests.labels(system, served.dialect, str(served.status)).inc()
        self.seconds.labels(system).observe(served.seconds)
        last_rows = {row.call: row for row in served.calls}  # retries of a call count once
        for row in last_rows.values():
            role = "conductor" if row.role == CONDUCTOR else "worker"
            self.calls.labels(system, role, "failed" if row.error else "ok").inc()
        for direction, count in tokens_of(served.bill).items():
            self.tokens.labels(system, direction).inc(count or 0)
        usd = served.bill.usd if served.bill else None
        if usd is None:
            self.unpriced.labels(system).inc()
        else:
            self.dollars.labels(system).inc(float(usd))


def log_line(served: Served) -> str:
    """Return a finished request as a line of JSON, in ASCII so that no name can break the line."""
    bill = served.bill
    return json.dumps(
        {
            "time": _instant(served.started),
            "trace": served.trace,
            "system": served.system,
            "dialect": served.dialect,
            "status": served.status,
            "error": served.error,
            "stream": served.stream,
            "seconds": round(served.seconds, 6),
            "calls": bill.calls if bill else len({row.call for row in served.calls}),
            "tokens": bill.total_tokens if bill else None,
            "usd": shortest(bill.usd) if bill else None,
            "key": served.key,
        }
    )


def _instant(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")
