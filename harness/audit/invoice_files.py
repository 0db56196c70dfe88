"""Read an invoice: which kind of export a file is, its lines, and which model is which.

JSON exports are read whole (they are aggregates); CSV and JSON lines are streamed.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from harness.audit.invoices import CSV, GOOGLE, Invoice, bucketed, google_row
from harness.errors import UserError
from harness.files import DOCUMENT, decimal_of, lines_of, parse_json, read_limited, rows_of_csv

FORMATS = (
    "OpenAI usage (JSON, CSV) or costs, Anthropic usage or cost report, Google Cloud billing rows "
    "(JSON lines, CSV), OpenRouter activity CSV, or a CSV with model, time, input_tokens, "
    "output_tokens"
)


def read_invoice(path: Path) -> Invoice:
    """Return an export with its format; UserError for no such file, or one page of several."""
    # Lines that are malformed are refused when they are read.
    try:
        with path.open(encoding="utf-8-sig") as file:
            first = _first_line(lines_of(file))
        names = next((row for _, row in rows_of_csv(iter([first]))), list[str]())
    except ValueError as error:
        raise _unknown(path) from error
    if first.startswith(("{", "[")):
        return _json_invoice(path)
    columns = {name.strip() for name in names}
    for needed, format in CSV:
        if columns.issuperset(needed.split()):
            return Invoice(path, *format, _csv)
    raise _unknown(path)


def _first_line(file: Iterator[str]) -> str:
    return next((line.strip() for line in file if line.strip()), "")


def _csv(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
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
        return Invoice(path, "google-billing", GOOGLE, google_row, _values)
    _refuse_one_page(path)
    format = bucketed(_first_result(path))
    if format is None:
        raise _unknown(path)
    return Invoice(path, *format, lambda path: enumerate(_buckets(path), 1), "bucket")


def _values(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield a file's JSON values: those of a list, else one, else one per line, with its number."""
    with path.open(encoding="utf-8-sig") as file:
        head = _first_line(lines_of(file))
    try:
        if head.startswith("[") or not _is_json(head):
            whole = _parsed(_decoded(path), path, 1)
            yield from enumerate(cast(list[Any], whole) if isinstance(whole, list) else [whole], 1)
            return
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(lines_of(file), 1):
                if line.strip():
                    yield number, _parsed(line, path, number)
    except ValueError as error:
        raise UserError(f"{path} cannot be read: {error}; export it again.") from error


def _decoded(path: Path) -> str:
    try:
        return read_limited(path, DOCUMENT).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no text in UTF-8; export it again.") from error


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
    for number, value in _values(path):
        data: Any = cast(dict[str, Any], value).get("data") if isinstance(value, dict) else None
        if data is None:
            yield value
        elif isinstance(data, list):
            yield from cast(list[Any], data)
        else:
            raise UserError(f"{path}, page {number}: its data is no list; export it again.")


def _refuse_one_page(path: Path) -> None:
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
        known = cast(dict[str, Any], bucket) if isinstance(bucket, dict) else {}
        results: Any = known.get("results")
        if not isinstance(results, list):
            raise _unknown(path)
        for result in cast(list[Any], results):
            if isinstance(result, dict):
                return cast(Mapping[str, Any], result)
    raise UserError(f"{path} bills nothing: its buckets are empty; export the days of the run.")


def _unknown(path: Path) -> UserError:
    return UserError(f"{path} is no export that is known here: {FORMATS}.")


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
        if self.models == frozenset([""]):
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
        several = f"the invoice has several of that name ({', '.join(close)}): say which with "
        several += f"--model {model}=NAME"
        self.unmatched[shown] = several if close else "the invoice has no such model"
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
    yield model, "same name"
    parts = model.split("/")
    for at in range(1, len(parts)):
        yield "/".join(parts[at:]), "same name without provider"
