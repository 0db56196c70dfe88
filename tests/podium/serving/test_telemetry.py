"""What an operator sees of a server: metrics, log lines and spans; never what anybody wrote."""

import gzip
import json
import sys
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from prometheus_client.parser import text_string_to_metric_families

from podium.harness.errors import UserError
from podium.harness.records import Usage
from podium.serving.exchange import RequestBill, Served
from podium.serving.telemetry import OTHER, Telemetry, log_line, spans_to
from tests.harness.ledger.ledger_rows import killed, refused, row

TRACE = "req-20261123-00112233445566aa"
CANARY = "the-canary-of-a-prompt"
HOSTILE = 'a"} 1\npodium_requests_total{system="x\\\x1b[31m\u2028'
BILL = RequestBill(
    visible=Usage(input=10, output=5, cache_read=4, cache_write=1),
    orchestration=Usage(input=100, output=40),
    calls=2,
    usd=Decimal("0.000126"),
)
SERVED = Served(
    trace=TRACE,
    system="moa-lite",
    dialect="chat",
    model="podium/moa-lite",
    status=200,
    error=None,
    stream=True,
    seconds=2.5,
    started=datetime(2026, 1, 1, tzinfo=UTC),
    bill=BILL,
    calls=(row(call="c1"), row(call="c2")),
    key="alice",
)


LABELS = ("system", "dialect", "status", "role", "outcome", "direction", "le")


def samples(telemetry: Telemetry) -> Mapping[tuple[str, ...], float]:
    """Return the series of /metrics as Prometheus reads them: name and labels."""
    body, kind = telemetry.render()
    assert kind.startswith("text/plain; version=0.0.4")
    return {
        (one.name, *(one.labels[name] for name in LABELS if name in one.labels)): one.value
        for family in text_string_to_metric_families(body.decode())
        for one in family.samples
    }


def test_a_system_that_nobody_asked_shows_zeros() -> None:
    found = samples(Telemetry(["moa-lite", "single:sage"], print))
    for system in ("moa-lite", "single:sage"):
        for series in (
            ("podium_requests_total", system, "chat", "200"),
            ("podium_requests_in_flight", system),
            ("podium_calls_total", system, "worker", "failed"),
            ("podium_tokens_total", system, "orchestration_output"),
            ("podium_dollars_total", system),
            ("podium_unpriced_requests_total", system),
            ("podium_request_seconds_count", system),
        ):
            assert found[series] == 0
    assert found[("podium_journal_failures_total",)] == 0


def test_a_finished_request_is_counted_by_system_with_its_bill() -> None:
    telemetry = Telemetry(["moa-lite"], [].append)
    telemetry.begun("moa-lite")
    telemetry.begun("moa-lite")
    assert samples(telemetry)["podium_requests_in_flight", "moa-lite"] == 2
    telemetry.ended(SERVED)
    telemetry.journal_failed()
    found = samples(telemetry)
    assert found["podium_requests_in_flight", "moa-lite"] == 1
    assert found["podium_requests_total", "moa-lite", "chat", "200"] == 1
    assert found["podium_calls_total", "moa-lite", "worker", "ok"] == 2
    tokens = {name: found["podium_tokens_total", "moa-lite", name] for name in DIRECTIONS}
    assert tokens == DIRECTIONS
    assert found["podium_dollars_total", "moa-lite"] == pytest.approx(0.000126)
    assert found["podium_request_seconds_bucket", "moa-lite", "2.5"] == 1
    assert found["podium_request_seconds_bucket", "moa-lite", "1.0"] == 0
    assert found[("podium_journal_failures_total",)] == 1


DIRECTIONS = {
    "input": 15,
    "output": 5,
    "orchestration_input": 100,
    "orchestration_output": 40,
}


def test_tokens_and_dollars_that_nobody_knows_are_not_counted_as_zero_dollars() -> None:
    telemetry = Telemetry(["moa-lite"], [].append)
    telemetry.begun("moa-lite")
    unknown = replace(BILL, visible=None, orchestration=None, usd=None)
    telemetry.ended(replace(SERVED, bill=unknown, status=502, error="worker_failed"))
    found = samples(telemetry)
    assert found["podium_unpriced_requests_total", "moa-lite"] == 1
    assert found["podium_requests_total", "moa-lite", "chat", "502"] == 1
    assert found["podium_tokens_total", "moa-lite", "input"] == 0


def test_a_call_that_was_tried_again_is_one_call_as_its_last_attempt_ended() -> None:
    telemetry = Telemetry(["moa-lite"], [].append)
    calls = (
        refused(attempt=1),
        row(attempt=2),
        killed(call="c2"),
        row(call="c3", role="conductor"),
    )
    telemetry.begun("moa-lite")
    telemetry.ended(replace(SERVED, calls=calls))
    found = samples(telemetry)
    assert found["podium_calls_total", "moa-lite", "worker", "ok"] == 1
    assert found["podium_calls_total", "moa-lite", "worker", "failed"] == 1
    assert found["podium_calls_total", "moa-lite", "conductor", "ok"] == 1


def test_two_services_in_one_process_count_apart() -> None:
    one, other = (Telemetry(["moa-lite"], [].append) for _ in range(2))
    one.begun("moa-lite")
    assert samples(one)["podium_requests_in_flight", "moa-lite"] == 1
    assert samples(other)["podium_requests_in_flight", "moa-lite"] == 0


def test_a_hostile_name_breaks_no_metric_and_no_log_line() -> None:
    lines: list[str] = []
    telemetry = Telemetry([HOSTILE], lines.append)
    telemetry.begun(HOSTILE)
    telemetry.ended(replace(SERVED, system=HOSTILE, model=HOSTILE, key=HOSTILE))
    assert samples(telemetry)["podium_requests_total", HOSTILE, "chat", "200"] == 1
    assert not any(
        name[0] == "podium_requests_total" and "x" in name for name in samples(telemetry)
    )
    (line,) = lines
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["system"] == HOSTILE


def test_a_system_that_is_none_of_ours_makes_no_series_of_its_own() -> None:
    telemetry = Telemetry(["moa-lite"], [].append)
    for number in range(3):
        telemetry.begun(f"{CANARY} {number}")
        telemetry.ended(replace(SERVED, system=f"{CANARY} {number}"))
    assert samples(telemetry)["podium_requests_total", OTHER, "chat", "200"] == 3
    assert CANARY.encode() not in telemetry.render()[0]


def test_a_log_line_has_the_same_fields_in_the_same_order_with_or_without_a_bill() -> None:
    whole, bare = (json.loads(log_line(one)) for one in (SERVED, replace(SERVED, bill=None)))
    assert list(whole) == list(bare)
    assert whole == {
        "time": "2026-01-01T00:00:00.000+00:00",
        "trace": TRACE,
        "system": "moa-lite",
        "dialect": "chat",
        "status": 200,
        "error": None,
        "stream": True,
        "seconds": 2.5,
        "calls": 2,
        "tokens": 160,
        "usd": "0.000126",
        "key": "alice",
    }
    assert (bare["tokens"], bare["usd"], bare["calls"]) == (None, None, 2)


def test_a_log_that_nobody_reads_any_more_fails_no_request() -> None:
    def broken(line: str) -> None:
        raise BrokenPipeError

    telemetry = Telemetry(["moa-lite"], broken)
    telemetry.begun("moa-lite")
    telemetry.ended(SERVED)
    assert samples(telemetry)[("podium_log_failures_total",)] == 1


@dataclass(slots=True)
class Collector:
    """An OTLP collector that keeps what it is sent."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list[bytes])
    paths: list[str] = field(default_factory=list[str])

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for body in self.bodies
            for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        ]


@contextmanager
def collector(status: int = 200, hangs_s: float = 0) -> Generator[Collector]:
    found, ended = Collector(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            found.bodies.append(
                gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body
            )
            found.paths.append(self.path)
            ended.wait(hangs_s)
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield found
        finally:
            ended.set()
            server.shutdown()
            thread.join()


def told(span: Span) -> dict[str, Any]:
    return {
        one.key: getattr(one.value, one.value.WhichOneof("value") or "") for one in span.attributes
    }


def traced(served: Served, found: Collector, notes: list[str]) -> None:
    telemetry = Telemetry(["moa-lite"], notes.append, found.url)
    telemetry.begun("moa-lite")
    telemetry.ended(served)
    telemetry.close()
    notes[:] = [one for one in notes if "warning" in json.loads(one)]


def test_a_request_is_a_span_with_its_calls_below_it() -> None:
    notes: list[str] = []
    with collector() as found:
        traced(replace(SERVED, calls=(row(call="c1"), killed(call="c2"))), found, notes)
        assert found.paths == ["/v1/traces"]
        (whole,) = (one for one in found.spans if not one.parent_span_id)
        calls = [one for one in found.spans if one.parent_span_id == whole.span_id]
    assert whole.name == "invoke_workflow moa-lite"
    assert whole.end_time_unix_nano - whole.start_time_unix_nano == 2_500_000_000
    said = told(whole)
    assert said["gen_ai.request.model"] == "podium/moa-lite"
    assert said["gen_ai.usage.input_tokens"] == 15
    assert said["podium.orchestration_in"] == 100
    assert (said["podium.trace"], said["podium.usd"]) == (TRACE, "0.000126")
    assert [one.name for one in calls] == ["chat sage", "chat sage"]
    good, lost = calls
    assert good.end_time_unix_nano - good.start_time_unix_nano == 2_000_000_000
    assert told(good)["podium.usd"] == "0.000063"
    assert told(good)["gen_ai.agent.name"] == "sage"
    assert told(lost)["error.type"] == "killed"
    assert "podium.usd" not in told(lost)
    assert notes == []


def test_a_span_goes_below_that_of_the_client() -> None:
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    with collector() as found:
        for header in (f"00-{trace}-{parent}-01", "no traceparent\r\nat all"):
            traced(replace(SERVED, calls=(), headers={"traceparent": header}), found, [])
        named, bare = found.spans
    assert (named.trace_id.hex(), named.parent_span_id.hex()) == (trace, parent)
    assert bare.parent_span_id == b""


def test_what_was_written_and_whose_key_it_is_stand_in_no_span() -> None:
    foreign = f'{{"echo": "{CANARY}"}}'
    headers = {"authorization": f"Bearer {CANARY}", "x-else": CANARY}
    lines: list[str] = []
    with collector() as found:
        telemetry = Telemetry(["moa-lite"], lines.append, found.url)
        telemetry.begun("moa-lite")
        served = replace(SERVED, calls=(row(raw_usage=foreign),), headers=headers, key="the-key")
        telemetry.ended(served)
        telemetry.close()
        sent = b"".join(found.bodies)
    assert sent
    for secret in (CANARY.encode(), b"the-key", b"sha256"):
        assert secret not in sent
        assert secret not in telemetry.render()[0]
    assert CANARY not in lines[0]


def test_a_hostile_model_makes_one_span_of_a_bounded_size() -> None:
    with collector() as found:
        traced(replace(SERVED, calls=(), model=HOSTILE + "x" * 100_000), found, [])
        (span,) = found.spans
    assert told(span)["gen_ai.request.model"].startswith(HOSTILE)
    assert len(found.bodies[0]) < 5000


@pytest.mark.parametrize("status", [404, 500])
def test_a_collector_that_takes_nothing_is_said_once(status: int) -> None:
    notes: list[str] = []
    with collector(status) as found:
        spans = spans_to(found.url, notes.append)
        for _ in range(1200):  # more than two batches
            spans.record(replace(SERVED, calls=()))
        spans.close()
    assert len(notes) == 1
    assert "they are lost" in notes[0]


@pytest.mark.slow
def test_a_collector_that_hangs_delays_no_request_and_an_end_only_within_its_bound() -> None:
    notes: list[str] = []
    with collector(hangs_s=60) as found:
        spans = spans_to(found.url, notes.append)
        began = time.monotonic()
        for _ in range(600):
            spans.record(replace(SERVED, calls=()))
        assert time.monotonic() - began < 2
        spans.close()
        assert time.monotonic() - began < 9
    assert len(notes) == 1


@pytest.mark.slow
def test_the_log_says_in_its_own_form_that_the_collector_is_down() -> None:
    notes: list[str] = []
    with collector(503) as found:
        traced(SERVED, found, notes)
    (line,) = notes
    assert list(json.loads(line)) == ["time", "warning"]


@pytest.mark.parametrize("url", ["", "localhost:4318", "ftp://host", "http://", "http://h:port"])
def test_a_url_that_is_none_is_refused_with_one_that_is(url: str) -> None:
    with pytest.raises(
        UserError, match=r"--otlp needs the URL of a collector, such as http://localhost"
    ):
        spans_to(url, print)


def test_without_the_extra_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "podium.serving.spans", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)  # as where it is not there
    with pytest.raises(UserError, match=r"pip install '\.\[otlp\]'"):
        spans_to("http://localhost:4318", print)
