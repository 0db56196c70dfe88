"""Read an invoice: which kind of export a file is, Google's billing export, names of models."""

import io
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field, ValidationError

from harness.audit import invoices
from harness.audit.invoices import (
    HOUR,
    Foreign,
    Invoice,
    InvoiceLine,
    Money,
    Name,
    OptionalMoney,
    dollars_only,
    malformed,
    moment,
)
from harness.errors import UserError
from harness.files import DOCUMENT, decimal_of, lines_of, parse_json, read_limited, rows_of_csv

# § Which model of an invoice a ledger's call is: ids differ by provider prefix, date and
# § case.
# §
# § A name is matched by what the user said, else as it was served, else without the
# § provider's prefix,
# § else without a date at its end. Two dated models of one invoice are never taken for each
# § other.


DATE = re.compile(r"(-20\d{2}-?[01]\d-?[0-3]\d|-latest|@20\d{6}|:[a-z]+)$")
"""A date at the end of a model's id (`-2024-08-06`, `-20250514`, `@20250514`), `-latest`, or a
variant of OpenRouter's (`:free`)."""


def undated(name: str) -> str:
    """Return a model's name without provider, date and case.

    >>> undated("openai/gpt-4o-2024-08-06"), undated("Gemini 2.5 Flash")
    ('gpt-4o', 'gemini-2.5-flash')
    """
    return DATE.sub("", name.rsplit("/", 1)[-1].lower().replace(" ", "-"))


class Names:
    """The models of one invoice, and the matches that were made."""

    def __init__(self, models: Collection[str], said: Mapping[str, str]) -> None:
        """Index an invoice's models; `said` is what the user says of some."""
        self.models = frozenset(models)
        self.made: dict[str, tuple[str, str]] = {}
        """Ledger's model -> the invoice's, and why."""
        self.unmatched: dict[str, str] = {}
        """Ledger's model -> why it has none."""
        self._said = said
        self._everything = self.models == frozenset([""])
        self._by_undated: dict[str, list[str]] = defaultdict(list)
        for model in sorted(self.models):
            self._by_undated[undated(model)].append(model)
        self._known: dict[tuple[str, str | None], str | None] = {}

    def match(self, model: str, served: str | None) -> str | None:
        """Return the invoice's name of a call's model; None when it has none, or several."""
        asked = (model, served)
        if asked not in self._known:
            self._known[asked] = self._match(model, served)
        return self._known[asked]

    def _match(self, model: str, served: str | None) -> str | None:
        shown = f"{model} (served as {served})" if served and served != model else model
        if self._everything:
            self.made[shown] = ("", "the export does not tell models apart")
            return ""
        for name, why in _candidates(model, served, self._said):
            if name in self.models:
                self.made[shown] = (name, why)
                return name
        close = self._by_undated.get(undated(served or model), [])
        close = close or self._by_undated.get(undated(model), [])
        if len(close) == 1:
            self.made[shown] = (close[0], "same name but for provider, date or case")
            return close[0]
        self.unmatched[shown] = (
            f"the invoice has several of that name ({', '.join(close)}): say which with "
            f"--model {model}=NAME"
            if close
            else "the invoice has no such model"
        )
        return None


def _candidates(
    model: str, served: str | None, said: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    for name in (model, served):
        if name and name in said:
            yield said[name], "as the user says"
    if served:
        yield served, "as served"
        yield served.rsplit("/", 1)[-1], "as served, without provider"
    rest = model
    yield rest, "same name"
    while "/" in rest:
        rest = rest.partition("/")[2]
        yield rest, "same name without provider"


# § Google Cloud's billing export: rows of BigQuery's standard usage table, as JSON lines or
# § CSV.
# §
# § Fields are those of "Structure of Standard data export" (cloud.google.com/billing/docs):
# § `service`,
# § `sku`, `project`, `usage` and `cost`; a CSV has them as `sku.description` or
# § `sku_description`. One
# § row is one SKU, e.g. "Generate content output token count gemini 2.5 flash short input
# § text": the
# § model and the kind of token are read from that name, "output" before "input", since a name
# § may hold
# § both. Rows other than `regular` (tax, adjustment, rounding_error) and credits are listed.


TOKEN_UNITS = frozenset({"count", "token", "tokens", ""})
MODEL = re.compile(
    r"gemini[ -](\d+(?:\.\d+)?)[ -](flash|pro|ultra|nano)(?:[ -](lite))?", re.IGNORECASE
)
GROUPS = ("service", "sku", "project", "usage")


def _moment(value: object) -> object:
    return moment(value) if isinstance(value, str) and value else value


class _Described(Foreign):
    description: Name


class _Project(Foreign):
    id: Name


class _Used(Foreign):
    amount: OptionalMoney
    unit: Name


class _Credit(Foreign):
    name: Name
    amount: Money


class _Row(Foreign):
    service: _Described = _Described(description=None)
    sku: _Described
    project: _Project = _Project(id=None)
    usage: _Used = _Used(amount=None, unit=None)
    usage_start_time: Annotated[datetime, BeforeValidator(_moment)]
    usage_end_time: Annotated[datetime | None, BeforeValidator(_moment)] = None
    cost: Money
    currency: Name
    cost_type: Name
    credits: list[_Credit] = Field(default_factory=list[_Credit])


def row_lines(rows: Iterator[tuple[int, Any]], path: Path) -> Iterator[InvoiceLine]:
    """Yield the lines of billing rows, nested (JSON) or flat (CSV)."""
    for number, raw in rows:
        try:
            row = _Row.model_validate(nested(raw))
            dollars_only(row.currency, path)
            yield from _lines(row)
        except (ValidationError, ValueError) as error:
            raise malformed(path, f"line {number}", error) from error


def nested(raw: Any) -> Any:
    """Return a flat row as the export nests it: `sku.description` and `sku_description` alike."""
    if not isinstance(raw, dict):
        return raw
    flat = cast(Mapping[str, Any], raw)
    found: dict[str, Any] = {}
    for name, value in flat.items():
        group, dot, field = name.partition(".")
        if not dot and name not in ("usage_start_time", "usage_end_time"):
            group, dot, field = name.partition("_")
        if dot and group in GROUPS:
            found.setdefault(group, {})[field] = value
        elif name != "credits" or isinstance(value, list):
            found[name] = value
    return found


def _lines(row: _Row) -> Iterator[InvoiceLine]:
    sku = row.sku.description or ""
    end = row.usage_end_time or row.usage_start_time + HOUR
    line = InvoiceLine(
        start=row.usage_start_time,
        end=end,
        model=model_of(sku),
        project=row.project.id,
        usd=row.cost,
        item=sku,
        credit=row.cost < 0 or (row.cost_type or "regular") != "regular",
        **({} if row.cost < 0 else _tokens(row, sku)),
    )
    yield line
    for credit in row.credits:
        yield InvoiceLine(
            start=line.start,
            end=end,
            model=line.model,
            project=line.project,
            usd=credit.amount,
            item=credit.name or "credit",
            credit=True,
        )


def _tokens(row: _Row, sku: str) -> dict[str, Any]:
    amount = row.usage.amount
    kind = kind_of(sku)
    if amount is None or kind is None or (row.usage.unit or "").lower() not in TOKEN_UNITS:
        return {}
    if amount < 0 or amount != amount.to_integral_value():
        raise ValueError(f"{amount} is no count of tokens")
    return {
        "input_uncached": 0,
        "cache_read": 0,
        "output": 0,
        kind: int(decimal_of(str(amount))),
    }


def kind_of(sku: str) -> str | None:
    """Return which tokens a SKU bills, as fields here are named; None when it bills no tokens.

    >>> kind_of("Generate content output token count gemini 2.5 flash short input text")
    'output'
    """
    name = sku.lower()
    if "token" not in name:
        return None
    for word, kind in (("cach", "cache_read"), ("output", "output"), ("input", "input_uncached")):
        if word in name:
            return kind
    return None


def model_of(sku: str) -> str:
    """Return a SKU's model as the API names it; empty when it names none.

    >>> model_of("Generate content input token count gemini 2.5 flash lite long input text")
    'gemini-2.5-flash-lite'
    """
    found = MODEL.search(sku)
    return "-".join(["gemini", *(part.lower() for part in found.groups() if part)]) if found else ""


# § Which export a file is, told from its content, and its lines.
# §
# § JSON exports are read whole (they are aggregates), as one page, a list of pages, or one
# § page or
# § bucket per line; CSV and JSON lines are streamed. Floats in JSON become Decimal before
# § anything else
# § sees them.


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
        format, providers, read = "openrouter-csv", ("openrouter",), invoices.openrouter_lines
    elif {"start_time", "end_time"} <= columns:
        format, providers, read = "openai-usage-csv", OPENAI, invoices.csv_lines
    elif {"usage_start_time", "cost"} <= columns:
        format, providers, read = "google-billing", GOOGLE, row_lines
    elif set(invoices.OURS) <= columns:
        format, providers, read = "csv", (), invoices.own_lines
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
        return Invoice(path, "google-billing", GOOGLE, lambda: row_lines(_values(path), path))
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
            result.get("object") == invoices.COSTS or isinstance(result.get("amount"), dict)
        ),
        invoices.openai_cost_lines,
    ),
    (
        "openai-usage",
        OPENAI,
        lambda result: result.get("object") == invoices.USAGE or "input_tokens" in result,
        invoices.openai_usage_lines,
    ),
    (
        "anthropic-usage",
        ANTHROPIC,
        lambda result: "uncached_input_tokens" in result,
        invoices.anthropic_usage_lines,
    ),
    (
        "anthropic-costs",
        ANTHROPIC,
        lambda result: "amount" in result,
        invoices.anthropic_cost_lines,
    ),
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
