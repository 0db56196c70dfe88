"""Dollars that a provider states are kept beside the price book's, and a difference is told."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from podium.cli import main
from podium.harness.usage import stated_usd, usd_amount
from podium.reports.audit import audit
from tests.harness.faulty_run import Left
from tests.harness.upstream_run import ask_questions, ask_worker, broken, changed
from tests.providers import CLIENTS_WARN, Act

pytestmark = CLIENTS_WARN

OPENROUTER = "openrouter/meta/llama"
BOOKED = 0.00015
"""90 tokens at $1 a million, and 30 at $2."""


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        pytest.param({"cost": 0.0012}, "0.0012", id="OpenRouter"),
        pytest.param({"cost": 1.2e-07}, "0.00000012", id="an exponent"),
        pytest.param({"cost": 0}, "0", id="free"),
        pytest.param({"cost": "0.5"}, "0.5", id="text"),
        pytest.param(
            {"cost": {"total_cost": 0.006, "request_cost": 0.005}}, "0.006", id="Perplexity"
        ),
        pytest.param({"estimated_cost": 2.5e-05}, "0.000025", id="DeepInfra"),
        pytest.param({"cost_in_usd_ticks": 37756000}, "0.0037756", id="xAI"),
        pytest.param(
            {"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.2}},
            "0.21",
            id="own key",
        ),
        pytest.param(
            {"cost": 0.95, "cost_details": {"upstream_inference_cost": 19}}, "19.95", id="older"
        ),
        pytest.param(
            {"cost": 0.2, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.2}},
            "0.2",
            id="OpenRouter's key",
        ),
        pytest.param({"cost": 0.01, "is_byok": True}, None, id="a fee alone"),
        pytest.param({"cost": -1}, None, id="negative"),
        pytest.param({"cost": True}, None, id="true"),
        pytest.param({"cost": float("nan")}, None, id="not a number"),
        pytest.param({"cost": "free"}, None, id="a word"),
        pytest.param({"cost": 1e300}, None, id="absurd"),
        pytest.param({"cost": {"total_cost": [1]}}, None, id="a list"),
        pytest.param({"prompt_tokens": 3}, None, id="none stated"),
        pytest.param(None, None, id="no usage"),
    ],
)
def test_each_providers_own_dollars_are_read(usage: dict[str, Any] | None, usd: str | None) -> None:
    stated = stated_usd(usage)
    assert stated == (None if usd is None else Decimal(usd))


def test_a_header_of_litellms_counts_where_the_body_states_nothing_and_zero_is_unknown() -> None:
    header = {"x-litellm-response-cost": "0.0004"}
    assert stated_usd({"prompt_tokens": 3}, header) == Decimal("0.0004")
    assert stated_usd({"cost": 0.1}, header) == Decimal("0.1")
    assert stated_usd(None, {"x-litellm-response-cost": "0.0"}) is None
    assert usd_amount("0.00000012") == Decimal("0.00000012")


def costing(cost: object, **usage: object) -> Act:
    def change(body: dict[str, Any]) -> object:
        body["usage"] |= {"cost": cost, **usage}
        return body

    return changed(change)


def said_of_dollars(left: Left, strict: bool = False) -> tuple[str, list[str]]:
    (verdict,) = [
        one for one in audit(left.folder, strict=strict).verdicts if one.invariant == "I5"
    ]
    return verdict.status, [reason for reason, _ in verdict.reasons]


def test_dollars_that_agree_with_the_price_book_pass_also_a_strict_audit(tmp_path: Path) -> None:
    left = ask_worker(tmp_path, OPENROUTER, [costing(BOOKED)])
    assert (left.row.usd, left.row.usd_provider) == (Decimal("0.00015"), Decimal("0.00015"))
    assert said_of_dollars(left, strict=True) == ("pass", [])


@pytest.fixture(scope="module")
def dearer(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """Two answers and a failure whose provider bills twice what the book says."""
    half = broken("error")

    def change(body: dict[str, Any]) -> object:
        assert half.change is not None
        half.change(body)
        body["usage"]["cost"] = 0.0003
        return body

    acts = [costing(0.0003), costing(0.0003), changed(change)]
    folder = tmp_path_factory.mktemp("dearer")
    return ask_questions(folder, OPENROUTER, acts, limit=3, retries=0)


def test_a_difference_is_weak_with_both_sums_and_fails_nothing(dearer: Left) -> None:
    assert dearer.failing == set()
    status, reasons = said_of_dollars(dearer)
    assert status == "weak"
    assert reasons == [
        "calls of olive: the provider states $0.0009, the price book $0.00045 (+$0.00045, +100.0%)"
    ]
    assert [row.usd_provider for row in dearer.rows] == [Decimal("0.0003")] * 3


def test_they_are_a_column_of_the_exported_ledger(dearer: Left, tmp_path: Path) -> None:
    main(["ledger", "export", str(dearer.folder), "--out", str(tmp_path)])
    (path,) = tmp_path.rglob("calls.parquet")
    table = pyarrow.parquet.read_table(path)
    assert table["usd_provider"].to_pylist() == [Decimal("0.0003")] * 3
    said = (table.schema.field("usd_provider").metadata or {})[b"description"]
    assert said.startswith(b"The cost that the provider itself reports")


def test_a_query_shows_them(dearer: Left, capsys: pytest.CaptureFixture[str]) -> None:
    main(["audit", str(dearer.folder), "--query", dearer.rows[0].question])
    assert "reported by its provider $0.0003" in capsys.readouterr().out


def test_a_key_of_ones_own_is_compared_with_what_both_bill(tmp_path: Path) -> None:
    upstream = {"is_byok": True, "cost_details": {"upstream_inference_cost": BOOKED}}
    left = ask_worker(tmp_path, OPENROUTER, [costing(0, **upstream)])
    assert said_of_dollars(left, strict=True) == ("pass", [])


def test_a_fee_alone_is_weak_and_named(tmp_path: Path) -> None:
    left = ask_worker(tmp_path, OPENROUTER, [costing(0, is_byok=True)])
    assert left.row.usd_provider is None
    status, (reason,) = said_of_dollars(left)
    assert status == "weak"
    assert reason.startswith("calls of olive with a key of your own: the provider states its fee")


def test_dollars_in_a_header_are_kept(tmp_path: Path) -> None:
    headers = {"x-litellm-response-cost": "0.0002"}
    left = ask_worker(tmp_path, "openai-api/proxy/llama", [changed(lambda body: body, headers)])
    assert left.row.usd_provider == Decimal("0.0002")
    assert said_of_dollars(left)[0] == "weak"
