"""Ledger rows: of logs alone, or made by hand for tests of what is added up and exported."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from podium.harness.ledger.answers import AnswerRecord, LogHeader
from podium.harness.ledger.call import Call
from podium.harness.ledger.join import rows_of
from podium.harness.ledger.runs import RunFiles

ROW = Call(
    task="numbers pair",
    suite="numbers",
    system="pair",
    label="live",
    question="q1",
    epoch=1,
    sample="s1",
    call="c1",
    attempt=1,
    event="e1",
    log="one.eval",
    journal="one.jsonl",
    scope="inference",
    role="sage",
    step="step 1: sage",
    counted=True,
    model="scripted/sage",
    served_model="sage-2",
    price_ref="scripted/sage",
    service="standard",
    request_id="req-1",
    http_status=None,
    error=None,
    stop="stop",
    cache="none",
    billable="yes",
    usage_source="provider",
    input_uncached=10,
    cache_read=4,
    cache_write=1,
    cache_write_1h=0,
    output=5,
    reasoning=2,
    orchestration_in=0,
    orchestration_in_cached=0,
    orchestration_out=0,
    total_reported=20,
    prompt_bytes=60,
    max_tokens=100,
    started="2026-01-01T00:00:00.000+00:00",
    latency_s=2.0,
    usd_input=Decimal("0.00001"),
    usd_cache_read=Decimal("0.000001"),
    usd_cache_write=Decimal("0.000002"),
    usd_output=Decimal("0.00005"),
    usd_orchestration=Decimal(0),
    usd_request=Decimal(0),
    usd=Decimal("0.000063"),
    usd_list=Decimal("0.000065"),
    usd_low=Decimal("0.000063"),
    usd_high=Decimal("0.000063"),
    tier="base",
    evidence="dated",
    gpu_s=None,
    usd_gpu=None,
    prompt_sha256="a" * 64,
    output_sha256="b" * 64,
    raw_usage=None,
)


def row(**changes: Any) -> Call:
    """Return the row with some columns changed."""
    return replace(ROW, **changes)


TOKENS = (
    "input_uncached",
    "cache_read",
    "cache_write",
    "cache_write_1h",
    "output",
    "reasoning",
    "orchestration_in",
    "orchestration_in_cached",
    "orchestration_out",
    "total_reported",
)
DOLLARS = tuple(name for name in ROW.as_json() if name.startswith("usd"))


def killed(**changes: Any) -> Call:
    """Return the row of a call that was in flight when its process died."""
    unknown: dict[str, Any] = dict.fromkeys((*TOKENS, *DOLLARS, "event", "latency_s"))
    bounds = {"usd_low": Decimal(0), "usd_high": Decimal("0.01")}
    said = {"error": "killed", "billable": "unknown", "usage_source": "missing"}
    return row(**{**unknown, **bounds, **said, **changes})


def refused(**changes: Any) -> Call:
    """Return the row of an attempt that a provider refused: nothing generated, nothing billed."""
    nothing: dict[str, Any] = dict.fromkeys(TOKENS)
    free = {name: Decimal(0) for name in ("usd", "usd_list", "usd_low", "usd_high")}
    said = {"error": "RateLimitError", "http_status": 429, "billable": "no"}
    return row(**{**nothing, **free, **said, "usage_source": "missing", **changes})


def answer(**changes: Any) -> AnswerRecord:
    """Return what a log says of the question of `ROW`."""
    header = LogHeader("numbers pair", "numbers", "pair", "live", shown=True)
    found = AnswerRecord(
        header=header,
        question="q1",
        epoch=1,
        sample="s1",
        score=1.0,
        reason="right",
        parsed=True,
        answer="1",
        target="1",
        steps=2,
        depth=1,
        stopped=None,
        plan='[{"worker": "sage", "reads": []}, {"worker": "clerk", "reads": []}]',
        plan_sha256="c" * 64,
        latency_s=3.5,
        critical_path_s=3.0,
    )
    return replace(found, **changes)


def rows_in(*logs: Path) -> list[Call]:
    """Return the rows of one sitting's logs, newest first, as if no journal had been written."""
    return list(rows_of(RunFiles("", "", logs, ())))
