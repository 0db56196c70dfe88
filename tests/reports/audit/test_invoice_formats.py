"""Every export is told by its content, read as its provider means it, or refused in a sentence."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

import tests.reports.audit.invoice_exports as exports
from podium.harness.errors import UserError
from podium.reports.audit.invoice_columns import HELD_AGAINST
from podium.reports.audit.invoice_total import Names
from podium.reports.audit.invoices import LONGEST_LINE, kind_of, model_of, read_invoice
from podium.reports.audit.reconcile import InvoiceOptions, reconcile, reconciliation_text
from tests.reports.audit.invoice_rows import one_more, row, rows_for

FORMATS = list(exports.EXPORTS)


def read(path: Path) -> list[object]:
    return list(read_invoice(path).lines())


@pytest.mark.parametrize("format", FORMATS)
def test_an_export_is_told_by_its_content_and_agrees_with_the_rows_it_bills(
    format: str, tmp_path: Path
) -> None:
    rows = rows_for(format)
    invoice = read_invoice(exports.write(rows, format, tmp_path / "export"))
    found = reconcile(rows, invoice)
    assert invoice.format == format
    assert found.faults == ()
    assert found.rows


@pytest.mark.parametrize("format", FORMATS)
def test_a_format_says_what_it_was_held_against_and_knows_the_columns_of_its_exports(
    format: str, tmp_path: Path
) -> None:
    rows = rows_for(format)
    found = reconcile(rows, read_invoice(exports.write(rows, format, tmp_path / "export")))
    assert found.unknown_columns == ()
    assert f"format: {format}, {HELD_AGAINST[format]}" in reconciliation_text(found)


def test_a_column_that_no_reader_knows_is_named(tmp_path: Path) -> None:
    rows = rows_for("anthropic-usage")
    path = exports.write(rows, "anthropic-usage", tmp_path / "export")
    nested = '"ephemeral_24h_input_tokens": 7, "ephemeral_1h_input_tokens"'
    path.write_text(path.read_text().replace('"ephemeral_1h_input_tokens"', nested))
    found = reconcile(rows, read_invoice(path))
    assert found.unknown_columns == ("cache_creation.ephemeral_24h_input_tokens",)
    own = exports.write(rows_for("csv"), "csv", tmp_path / "own.csv")
    head, *lines = own.read_text().splitlines()
    extra = ",".join(f"extra{at:02}" for at in range(21))
    own.write_text("\n".join([f"{head},{extra}", *(line + "," * 21 for line in lines)]))
    found = reconcile(rows_for("csv"), read_invoice(own))
    assert found.unknown_columns[::20] == ("extra00", "and 1 more")
    assert "unknown column, not read: extra00" in reconciliation_text(found)


@pytest.mark.parametrize("format", [one for one in FORMATS if "costs" not in one])
def test_one_token_more_than_billed_is_a_fault(format: str, tmp_path: Path) -> None:
    rows = rows_for(format)
    path = exports.write(rows, format, tmp_path / "export")
    found = reconcile([one_more(rows[0]), *rows[1:]], read_invoice(path))
    assert any("output tokens" in fault.said for fault in found.faults)
    assert not found.ok


@pytest.mark.parametrize("format", ["openai-costs", "anthropic-costs"])
def test_a_cent_more_than_the_ledger_is_a_fault(format: str, tmp_path: Path) -> None:
    rows = rows_for(format)
    dearer = [replace(rows[0], usd=Decimal("0.01025")), *rows[1:]]
    found = reconcile(rows, read_invoice(exports.write(dearer, format, tmp_path / "export")))
    assert [fault.kind for fault in found.faults] == ["difference"]
    assert "dollars: the invoice has 0.011" in found.faults[0].said


@pytest.mark.parametrize("cent", ["0.01", "-0.01"])
def test_a_cent_more_or_less_in_a_google_export_is_a_fault(cent: str, tmp_path: Path) -> None:
    """Its amounts of 0 are no amounts that were rounded to whole dollars or cents."""
    rows = [replace(one, usd=Decimal("1.00025")) for one in rows_for("google-billing")]
    billed = [replace(rows[0], usd=Decimal("1.00025") + Decimal(cent)), *rows[1:]]
    path = exports.write(billed, "google-billing", tmp_path / "export")
    assert [one.kind for one in reconcile(rows, read_invoice(path)).faults] == ["difference"]


def test_a_flat_google_csv_says_what_nested_rows_say(tmp_path: Path) -> None:
    rows = rows_for("google-billing")
    flat, lines = tmp_path / "flat", tmp_path / "lines"
    flat.write_text(exports.google_csv(rows))
    lines.write_text(exports.google_jsonl(rows))
    assert read(flat) == read(lines)


def test_columns_with_underscores_are_the_same_columns(tmp_path: Path) -> None:
    text = exports.google_csv(rows_for("google-billing"))
    head, _, rest = text.partition("\n")
    path = tmp_path / "flat.csv"
    path.write_text(head.replace(".", "_") + "\n" + rest)
    assert reconcile(rows_for("google-billing"), read_invoice(path)).ok


def test_pages_may_stand_one_per_line_or_in_a_list(tmp_path: Path) -> None:
    rows = rows_for("openai-usage")
    pages = [exports.openai_usage(rows[:3]), exports.openai_usage(rows[3:])]
    (tmp_path / "lines").write_text("\n".join(pages))
    (tmp_path / "list").write_text(f"[{','.join(pages)}]")
    (tmp_path / "pretty").write_text(json.dumps(json.loads(exports.openai_usage(rows)), indent=2))
    for name in ("lines", "list", "pretty"):
        assert reconcile(rows, read_invoice(tmp_path / name)).ok


def test_a_page_that_says_there_is_more_is_not_the_whole_export(tmp_path: Path) -> None:
    page = json.loads(exports.openai_usage(rows_for("openai-usage")))
    path = tmp_path / "page.json"
    path.write_text(json.dumps({**page, "has_more": True, "next_page": "AAAA"}))
    with pytest.raises(UserError, match="not the whole export"):
        read_invoice(path)


def test_openai_counts_cached_tokens_as_input_and_anthropic_does_not(tmp_path: Path) -> None:
    rows = [row(input_uncached=92, cache_read=8)]
    line = next(read_invoice(exports.write(rows, "openai-usage", tmp_path / "o")).lines())
    assert (line.input_uncached, line.cache_read) == (92, 8)
    line = next(read_invoice(exports.write(rows, "anthropic-usage", tmp_path / "a")).lines())
    assert (line.input_uncached, line.cache_read) == (92, 8)


def test_anthropic_bills_in_cents_and_json_numbers_never_become_floats(tmp_path: Path) -> None:
    rows = [row(usd=Decimal("1.237891"))]
    line = next(read_invoice(exports.write(rows, "anthropic-costs", tmp_path / "a")).lines())
    assert line.usd == Decimal("1.237891")
    text = exports.openai_costs(rows).replace("1.237891", "0.1234567890123456789")
    (tmp_path / "o").write_text(text)
    line = next(read_invoice(tmp_path / "o").lines())
    assert line.usd == Decimal("0.1234567890123456789")


@pytest.mark.parametrize(
    ("sku", "model", "kind"),
    [
        pytest.param(
            "Generate content output token count gemini 2.5 flash short input text",
            "gemini-2.5-flash",
            "output",
            id="output-of-short-input",
        ),
        pytest.param(
            "Generate content cached input token count gemini 3.5 flash text",
            "gemini-3.5-flash",
            "cache_read",
            id="cached",
        ),
        pytest.param(
            "Generate_content text input token count for gemini 3 pro short",
            "gemini-3-pro",
            "input_uncached",
            id="underscore",
        ),
        pytest.param("Grounding with Google Search on Gemini 3", "", None, id="search"),
    ],
)
def test_a_google_sku_names_its_model_and_its_kind_of_token(
    sku: str, model: str, kind: str | None
) -> None:
    assert (model_of(sku), kind_of(sku)) == (model, kind)


GOOD = exports.openai_usage(rows_for("openai-usage"))
CSV = "model,time,input_tokens,output_tokens,usd,currency,api_key\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "is not a supported export", id="empty"),
        pytest.param("hello\nworld\n", "is not a supported export", id="text"),
        pytest.param('{"a": 1}', "is not a supported export", id="other-json"),
        pytest.param('{"data": 5}', "its data is not a list", id="no-list"),
        pytest.param('{"data": [', "not valid JSON", id="broken-json"),
        pytest.param('{"data": [{"results": []}]}', "bills nothing", id="nothing"),
        pytest.param(
            GOOD.replace('"output_tokens": 49', '"output_tokens": -1', 1), "bucket 1", id="negative"
        ),
        pytest.param(
            GOOD.replace('"output_tokens"', '"outputs"'), "field output_tokens", id="missing"
        ),
        pytest.param(
            GOOD.replace('"input_cached_tokens": 8', '"input_cached_tokens": 8000'),
            "more cached tokens",
            id="more-cached-than-input",
        ),
        pytest.param(
            GOOD.replace('"start_time": 1', '"start_time": 9999999999999'), "Unix", id="time"
        ),
        pytest.param(CSV + "m,2026-02-01,1,2,0.1,EUR,k\n", "bills in EUR", id="euro"),
        pytest.param(CSV + "m,yesterday,1,2,0.1,USD,k\n", "line 2", id="bad-time"),
        pytest.param(CSV + "m,2026-02-01,1.5,2,0.1,USD,k\n", "field input_tokens", id="half"),
        pytest.param(CSV + "m,2026-02-01,1,2,much,USD,k\n", "field usd", id="word"),
        pytest.param(CSV + "m,2026-02-01,1,2,NaN,USD,k\n", "field usd", id="nan"),
        pytest.param(CSV + "m,2026-02-01,1\n", "3 fields, but the header has 7", id="short"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_one_sentence(
    text: str, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "export"
    path.write_text(text)
    with pytest.raises(UserError, match=reason) as refusal:
        reconcile([], read_invoice(path))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "before", ["", CSV, '["', '{"data": []}\n{"'], ids=["head", "csv", "list", "page"]
)
def test_a_line_without_an_end_is_refused_before_it_is_read_whole(
    before: str, tmp_path: Path
) -> None:
    path = tmp_path / "export"
    path.write_text(before + "x" * LONGEST_LINE)
    with pytest.raises(UserError, match="a line is longer than 64 MiB"):
        reconcile([], read_invoice(path))


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "export"
    path.write_bytes(b"PK\x03\x04\xff\xfe\x00")
    with pytest.raises(UserError, match="is not a supported export"):
        read_invoice(path)


def test_a_currency_other_than_dollars_is_refused_in_every_format(tmp_path: Path) -> None:
    for format, old in (
        ("openai-costs", '"currency": "usd"'),
        ("anthropic-costs", '"currency": "USD"'),
        ("google-billing", '"currency": "USD"'),
    ):
        text = exports.EXPORTS[format](rows_for(format))
        path = tmp_path / format
        path.write_text(text.replace(old, '"currency": "CHF"'))
        with pytest.raises(UserError, match="bills in CHF, and only US dollars are compared"):
            reconcile([], read_invoice(path), InvoiceOptions(whole_account=True))


@pytest.mark.parametrize(
    ("ledger", "served", "invoice", "match"),
    [
        pytest.param("openai/gpt-5", None, {"gpt-5"}, "gpt-5", id="prefix"),
        pytest.param("openai/gpt-4o", None, {"gpt-4o-2024-08-06"}, "gpt-4o-2024-08-06", id="dated"),
        pytest.param(
            "openai/gpt-4o",
            "gpt-4o-2024-05-13",
            {"gpt-4o-2024-08-06", "gpt-4o-2024-05-13"},
            "gpt-4o-2024-05-13",
            id="served",
        ),
        pytest.param(
            "openai/gpt-4o", None, {"gpt-4o-2024-08-06", "gpt-4o-2024-05-13"}, None, id="ambiguous"
        ),
        pytest.param(
            "openrouter/openai/gpt-4.1", None, {"openai/gpt-4.1"}, "openai/gpt-4.1", id="router"
        ),
        pytest.param("openai/gpt-5", None, {"gpt-5-mini"}, None, id="another-model"),
        pytest.param("local/mine", None, {"theirs"}, "theirs", id="said"),
    ],
)
def test_models_are_matched_by_name_and_never_by_guess(
    ledger: str, served: str | None, invoice: set[str], match: str | None
) -> None:
    names = Names(invoice, {"local/mine": "theirs"})
    assert names.match(ledger, served) == match
    assert bool(names.made) == (match is not None)
    assert bool(names.unmatched) == (match is None)
