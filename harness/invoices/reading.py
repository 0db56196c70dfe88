"""Which export a file is, told from its content, and its lines.

JSON exports are read whole (they are aggregates), as one page, a list of pages, or one page or
bucket per line; CSV and JSON lines are streamed. Floats in JSON become Decimal before anything else
sees them.
"""

import io
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from harness.errors import UserError
from harness.file_limits import DOCUMENT, read_limited
from harness.invoices import anthropic_usage, csv_rows, google_billing, openai_usage
from harness.invoices.lines import Invoice, InvoiceLine
from harness.parsing import decimal_of, lines_of, parse_json, rows_of_csv

FORMATS = (
    "OpenAI usage (JSON, CSV) or costs, Anthropic usage or cost report, Google Cloud billing rows "
    "(JSON lines, CSV), OpenRouter activity CSV, or a CSV with model, time, input_tokens, "
    "output_tokens"
)
Rows = Iterator[tuple[int, Mapping[str, str]]]

OPENAI = ("openai", "openai-api")
ANTHROPIC = ("anthropic",)
GOOGLE = ("google", "vertex")


def read_invoice(path: Path) -> Invoice:
    """Return an export with its format; UserError for a file that is none, or one page of several.

    Lines that are malformed are refused when they are read.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            first = _first_line(lines_of(file))
        names = next((row for _, row in rows_of_csv(iter([first]))), list[str]())
    except ValueError as error:
        raise _unknown(path) from error
    return _json_invoice(path) if first.startswith(("{", "[")) else _csv_invoice(path, names)


def _first_line(file: Iterator[str]) -> str:
    return next((line.strip() for line in file if line.strip()), "")


def _csv_invoice(path: Path, names: list[str]) -> Invoice:
    columns = {name.strip() for name in names}
    read: Callable[[Rows, Path], Iterator[InvoiceLine]]
    if {"generation_id", "model_permaslug", "cost_total"} <= columns:
        format, providers, read = "openrouter-csv", ("openrouter",), csv_rows.openrouter_lines
    elif {"start_time", "end_time"} <= columns:
        format, providers, read = "openai-usage-csv", OPENAI, openai_usage.csv_lines
    elif {"usage_start_time", "cost"} <= columns:
        format, providers, read = "google-billing", GOOGLE, google_billing.row_lines
    elif set(csv_rows.OURS) <= columns:
        format, providers, read = "csv", (), csv_rows.own_lines
    else:
        raise _unknown(path)
    return Invoice(path, format, providers, lambda: read(_csv(path), path))


def _csv(path: Path) -> Rows:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = ((number, row) for number, row in rows_of_csv(lines_of(file)) if row)
            names = [name.strip() for name in next(rows, (0, list[str]()))[1]]
            for number, row in rows:
                if len(row) != len(names):
                    raise UserError(
                        f"{path}, line {number}: {len(row)} fields where the header has "
                        f"{len(names)}; export it again."
                    )
                yield number, dict(zip(names, row, strict=True))
    except ValueError as error:
        raise UserError(f"{path} cannot be read as CSV: {error}; export it again.") from error


def _json_invoice(path: Path) -> Invoice:
    first = next(iter(_values(path)), (1, None))[1]
    if isinstance(first, dict) and "usage_start_time" in first:
        return Invoice(
            path, "google-billing", GOOGLE, lambda: google_billing.row_lines(_values(path), path)
        )
    refuse_one_page(path)
    result = _first_result(path)
    for format, providers, fits, read in _BUCKETED:
        if fits(result):
            return Invoice(path, format, providers, partial(_bucketed, path, read))
    raise _unknown(path)


def _bucketed(
    path: Path, read: Callable[[Iterator[Any], Path], Iterator[InvoiceLine]]
) -> Iterator[InvoiceLine]:
    return read(_buckets(path), path)


_BUCKETED: tuple[
    tuple[
        str,
        tuple[str, ...],
        Callable[[Mapping[str, Any]], bool],
        Callable[[Iterator[Any], Path], Iterator[InvoiceLine]],
    ],
    ...,
] = (
    (
        "openai-costs",
        OPENAI,
        lambda result: (
            result.get("object") == openai_usage.COSTS or isinstance(result.get("amount"), dict)
        ),
        openai_usage.cost_lines,
    ),
    (
        "openai-usage",
        OPENAI,
        lambda result: result.get("object") == openai_usage.USAGE or "input_tokens" in result,
        openai_usage.usage_lines,
    ),
    (
        "anthropic-usage",
        ANTHROPIC,
        lambda result: "uncached_input_tokens" in result,
        anthropic_usage.usage_lines,
    ),
    ("anthropic-costs", ANTHROPIC, lambda result: "amount" in result, anthropic_usage.cost_lines),
)


def _values(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield a file's JSON values: those of a list, else one, else one per line, with its number."""
    text: str | None = None
    with path.open(encoding="utf-8-sig") as file:
        head = _first_line(lines_of(file))
        if not _is_json(head) or head.startswith("["):
            text = _decoded(read_limited(path, DOCUMENT), path)
    if text is not None:
        whole = _parsed(text, path, 1)
        values = cast(list[Any], whole) if isinstance(whole, list) else [whole]
        yield from enumerate(values, 1)
        return
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(_decodable(file, path), 1):
            if line.strip():
                yield number, _parsed(line, path, number)


def _decoded(content: bytes, path: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no text in UTF-8; export it again.") from error


def _decodable(file: io.TextIOWrapper, path: Path) -> Iterator[str]:
    try:
        yield from lines_of(file)
    except ValueError as error:
        raise UserError(f"{path} cannot be read: {error}; export it again.") from error


def _is_json(line: str) -> bool:
    try:
        parse_json(line, decimal_of)
    except ValueError:
        return False
    return True


def _parsed(text: str, path: Path, number: int) -> Any:
    try:
        return parse_json(text, decimal_of)
    except ValueError as error:
        raise UserError(f"{path}, line {number}: no JSON ({error}); export it again.") from error


def _buckets(path: Path) -> Iterator[Any]:
    """Yield the buckets of all pages; a value without `data` is a bucket itself."""
    for number, value in _values(path):
        data: Any = cast(dict[str, Any], value).get("data") if isinstance(value, dict) else None
        if data is None:
            yield value
        elif isinstance(data, list):
            yield from cast(list[Any], data)
        else:
            raise UserError(f"{path}, page {number}: its data is no list; export it again.")


def refuse_one_page(path: Path) -> None:
    """Raise UserError when the last page says that there is another."""
    last: Any = None
    for _, last in _values(path):  # noqa: B007 - the last one is wanted
        pass
    if isinstance(last, dict) and cast(dict[str, Any], last).get("has_more"):
        raise UserError(
            f"{path} is not the whole export (its last page says has_more): follow next_page, and "
            "put all pages into one file, one per line."
        )


def _first_result(path: Path) -> Mapping[str, Any]:
    for bucket in _buckets(path):
        results: Any = cast(dict[str, Any], bucket).get("results") if _is_dict(bucket) else None
        if not isinstance(results, list):
            raise _unknown(path)
        for result in cast(list[Any], results):
            if _is_dict(result):
                return cast(Mapping[str, Any], result)
    raise UserError(f"{path} bills nothing: its buckets are empty; export the days of the run.")


def _is_dict(value: object) -> bool:
    return isinstance(value, dict)


def _unknown(path: Path) -> UserError:
    return UserError(f"{path} is no export that is known here: {FORMATS}.")
