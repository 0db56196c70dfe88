"""Audits a RouterArena prediction file: do its token counts, answers and dollars fit together?

RouterArena's evaluator multiplies the token counts of a row by the price of the row's model, and
does not check the counts. This module checks what the file itself shows, by rule and row.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any, cast

from podium.harness.errors import UserError
from podium.harness.files import DOCUMENT, decimal_of, json_with_nan, read_limited, refuse_absent
from podium.harness.prices.cost import MTOK
from podium.harness.text import storable
from podium.reports.audit.record_checks import ENOUGH, SAME, too_few_tokens

SCHEMA = "podium-predictions-1"
Json = Mapping[str, Any]
SIZES = (809, 8400, 420)
"""Numbers of rows of RouterArena's splits: sub_10, full and robustness."""
INPUT, OUTPUT, TOTAL = "input_tokens", "output_tokens", "total_tokens"
SPENT = ((INPUT, OUTPUT), ("prompt_tokens", "completion_tokens"))
"""Keys under which a row states input and output tokens of its calls."""
RATES = ("input_token_price_per_million", "output_token_price_per_million")
REASONING = "reasoning_token_price_per_million"
RETIRED = {"grok-4-1-fast-reasoning": "grok-4.3", "x-ai/grok-4.1-fast": "grok-4.3"}
"""Retired model -> dearer model that now answers under that name (RouterArena's issue 166)."""
DATED = re.compile(r"([-@][\d-]*)?")
"""The suffix that a provider may append to a model's name: the date of the model's version."""
OFF = Decimal("0.005")
"""Largest relative difference between stated cost and tokens times price due to rounding."""
MOST = 10**12  # maximum tokens of a row: a larger number is invalid
NAMED = 8  # maximum row numbers that a fault lists
RULES = {
    "rows": "every row names its question, prompt and model, no row is repeated, a split is "
    "complete",
    "usage": "every answer states its tokens, as whole numbers and in the keys that are billed",
    "right": "every row that is marked right has an answer",
    "plausible": "answers have as many output tokens as their texts need",
    "constant": "token counts vary with the prompts",
    "estimated": "input tokens were counted, not computed from the prompt's length",
    "price": "every model has a price of its own",
    "served": "the model that answered is the one whose price is paid",
    "uncharged": "every call that the row names is in its tokens",
    "cost": "a row's cost is its tokens times the price",
}


@dataclass(frozen=True, slots=True)
class PredictionFault:
    """A broken rule and the numbers of the rows that break it, from 1."""

    rule: str
    rows: tuple[int, ...]
    said: str

    def __str__(self) -> str:
        """Return the rule, the fault, and the numbers of the first `NAMED` rows with the fault."""
        if not self.rows:
            return f"{self.rule}: {self.said}"
        numbers = ", ".join(f"{number:,}" for number in self.rows[:NAMED])
        remainder = f" and {len(self.rows) - NAMED:,} more" if len(self.rows) > NAMED else ""
        return f"{self.rule}: {self.said} (row {numbers}{remainder})"


@dataclass(frozen=True, slots=True)
class PredictionAudit:
    """The rules that a prediction file breaks, and what could not be checked in it."""

    router: str
    rows: int
    answered: int
    usd: Decimal | None
    """Dollars: tokens times price, summed over rows with both; None if no row has both."""
    stated: Decimal | None
    """Dollars: the sum of the costs that the rows state; None if no row states a cost."""
    faults: tuple[PredictionFault, ...]
    gaps: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether no rule is broken."""
        return not self.faults


@dataclass(slots=True)
class _Row:
    number: int
    row: Json
    answer: Json
    usage: Json

    @property
    def model(self) -> str:
        return _text(self.row.get("prediction"))

    @property
    def served(self) -> str:
        return _text(self.answer.get("model_used")) or self.model

    @property
    def prompt(self) -> str:
        return _text(self.row.get("prompt") or self.row.get("prompt_formatted"))

    @property
    def index(self) -> str:
        return _text(self.row.get("global index") or self.row.get("global_index"))

    @property
    def tokens(self) -> tuple[int, int, int] | None:
        """Input, output and reasoning tokens (rest of the total); None if counts are invalid."""
        sent, output = (_whole(self.usage.get(name)) for name in (INPUT, OUTPUT))
        total = _whole(self.usage.get(TOTAL))
        if sent is None or output is None:
            return None
        return sent, output, max(0, (total or 0) - sent - output)


@dataclass(slots=True)
class _File:
    rows: list[_Row]
    costs: Mapping[str, Json]
    models: frozenset[str]
    found: list[PredictionFault] = field(default_factory=list[PredictionFault])

    def fault(self, rule: str, rows: Iterable[_Row | int], message: str) -> None:
        numbers = tuple(row if isinstance(row, int) else row.number for row in rows)
        if numbers:
            self.found.append(PredictionFault(rule, numbers, message))

    @property
    def answered(self) -> list[_Row]:
        return [row for row in self.rows if row.answer.get("success") and row.tokens]


def audit_predictions(path: Path, costs: Path | None = None) -> PredictionAudit:
    """Audit a RouterArena prediction file; `costs`: prices (None: model_cost/ of its checkout)."""
    raw = _read(path)
    if not isinstance(raw, list) or not raw:
        raise UserError(
            f"{path} has no array of rows. Name a file of RouterArena's predictions folder."
        )
    rows, prices = cast(list[object], raw), _read_costs(path, costs)
    file = _File([], prices, _configured(path))
    for number, row in enumerate(rows, 1):
        if isinstance(row, dict):
            file.rows.append(_row(number, cast(Json, row)))
        else:
            file.fault("rows", [number], "it is not an object")
    for check in (_rows, _usage, _right, _plausible, _constant, _estimated):
        check(file)
    for check in (_price, _served, _uncharged, _cost):
        check(file)
    order = [*RULES]
    return PredictionAudit(
        router=path.stem,
        rows=len(rows),
        answered=len(file.answered),
        usd=_sum(_by_tokens(file, row) for row in file.answered) if prices else None,
        stated=_sum(_amount(row.row.get("cost")) for row in file.rows),
        faults=tuple(sorted(file.found, key=lambda fault: order.index(fault.rule))),
        gaps=tuple(_gaps(file)),
    )


def predictions_text(audit: PredictionAudit) -> str:
    """Return the audit of a prediction file as text: sums, a line per rule, a line per fault."""
    lines = [f"{audit.router}: {audit.rows:,} rows, {audit.answered:,} with an answer and tokens."]
    if audit.usd is not None and audit.answered:
        each = 1000 * audit.usd / audit.answered
        lines.append(f"Tokens times price: USD {audit.usd:.4f}, {each:.4f} per 1,000 answers.")
    if audit.stated is not None:
        lines.append(f"The rows' own costs: USD {audit.stated:.4f}.")
    lines += [f"  {'FAILS' if bad else 'ok   '} {rule}" for rule, bad in _broken(audit).items()]
    lines += [f"- {fault}" for fault in audit.faults]
    lines += [f"- not checked: {gap}" for gap in audit.gaps]
    return "\n".join(lines)


def _broken(audit: PredictionAudit) -> dict[str, bool]:
    broken = {fault.rule for fault in audit.faults}
    return {f"{rule}: {meaning}": rule in broken for rule, meaning in RULES.items()}


def _read(path: Path) -> object:
    refuse_absent(path)
    try:
        return json_with_nan(read_limited(path, DOCUMENT))
    except ValueError as error:  # NaN is read without an error: the rules report it
        raise UserError(
            f"{path} is not a readable JSON file: {error}. Get it from RouterArena again."
        ) from error


def _read_costs(path: Path, costs: Path | None) -> dict[str, Json]:
    home = path.absolute().parent.parent.parent / "model_cost"
    place = costs or next(
        filter(Path.is_file, (home / "model_cost.json", home / "cost.json")), None
    )
    if place is None:
        return {}
    raw = _read(place)
    prices = cast(dict[str, object], raw) if isinstance(raw, dict) else {}
    if not prices or not all(isinstance(price, dict) for price in prices.values()):
        raise UserError(
            f"{place} has no prices by model. Name RouterArena's model_cost.json (--costs)."
        )
    return cast(dict[str, Json], prices)


def _configured(path: Path) -> frozenset[str]:
    name = path.name.replace("-robustness", "")
    place = path.absolute().parent.parent / "config" / name
    raw = _read(place) if place.is_file() else None
    params = cast(Json, raw).get("pipeline_params") if isinstance(raw, dict) else None
    models = cast(Json, params).get("models") if isinstance(params, dict) else None
    return (
        frozenset(map(str, cast(list[object], models))) if isinstance(models, list) else frozenset()
    )


def _row(number: int, row: Json) -> _Row:
    answer = row.get("generated_result")
    result: Json = cast(Json, answer) if isinstance(answer, dict) else {}
    usage = result.get("token_usage")
    return _Row(number, row, result, cast(Json, usage) if isinstance(usage, dict) else {})


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MOST else None


def _amount(value: object) -> Decimal | None:
    try:
        return None if isinstance(value, bool) else decimal_of(str(value))
    except ValueError:
        return None


def _sum(amounts: Iterable[Decimal | None]) -> Decimal | None:
    numbers = [amount for amount in amounts if amount is not None]
    return sum(numbers, Decimal(0)) if numbers else None


def _rows(file: _File) -> None:
    for name, label in (("index", "global index"), ("prompt", "prompt"), ("model", "prediction")):
        file.fault("rows", (row for row in file.rows if not getattr(row, name)), f"no {label}")
    number_of: dict[tuple[str, str], int] = {}
    again: list[_Row] = []
    for row in file.rows:
        # `for_optimality` marks answers of the other models, which show the best choice.
        extra = row.model if row.row.get("for_optimality") else ""
        if row.index and number_of.setdefault((row.index, extra), row.number) != row.number:
            again.append(row)
    file.fault("rows", again, "its question is already in an earlier row")
    regular = sum(not row.row.get("for_optimality") for row in file.rows)
    if regular not in SIZES:
        message = f"{regular:,} questions, but splits have 809, 8,400 or 420"
        file.found.append(PredictionFault("rows", (), message))
    strange = [row for row in file.rows if file.models and row.model not in file.models]
    file.fault("rows", strange, "its model is not in the router's config")


def _usage(file: _File) -> None:
    successes = [row for row in file.rows if row.answer.get("success")]
    untold = [row for row in successes if row.tokens is None]
    miskeyed_rows = (row for row in untold if "prompt_tokens" in row.usage)
    message = "its tokens are under prompt_tokens, which the RouterArena evaluator reads as none"
    file.fault("usage", miskeyed_rows, message)
    bad = (row for row in untold if "prompt_tokens" not in row.usage)
    file.fault(
        "usage", bad, "input or output tokens are missing, or not a whole number of at least 0"
    )
    free = [row for row in successes if row.tokens and not row.tokens[1] and _answer(row)]
    file.fault("usage", free, "an answer without output tokens")
    short = [
        row
        for row in successes
        if row.tokens and TOTAL in row.usage and (_whole(row.usage[TOTAL]) or 0) < sum(row.tokens)
    ]
    file.fault("usage", short, "the total is less than input and output together")


def _answer(row: _Row) -> str:
    return _text(row.answer.get("generated_answer")).strip()


def _right(file: _File) -> None:
    empty = (row for row in file.rows if _is_right(row.row) and not _answer(row))
    file.fault("right", empty, "it is marked right but has no answer")


def _is_right(row: Json) -> bool:
    """Return whether a row is marked right: its accuracy or its evaluation's score is above 0."""
    result = row.get("evaluation_result")
    scores: Json = cast(Json, result) if isinstance(result, dict) else {}
    marks = (_mark(row.get("accuracy")), _mark(scores.get("score")))
    return any(mark is not None and mark > 0 for mark in marks)


def _mark(value: object) -> Decimal | None:
    return Decimal(value) if isinstance(value, bool) else _amount(value)


def _plausible(file: _File) -> None:
    # Too few tokens are a fault, too many are not: they may include reasoning, which no text shows.
    for model, rows in _by_model(file).items():
        short = [row for row in rows if too_few_tokens(*_spoken([row]))]
        if not short and len(rows) >= ENOUGH and too_few_tokens(*_spoken(rows)):
            short = rows
        tokens, chars = _spoken(short)
        message = f"{tokens:,} output tokens of {model} for {chars:,} characters of answers"
        file.fault("plausible", short, message)


def _spoken(rows: Sequence[_Row]) -> tuple[int, int]:
    """Return the sums of output tokens that rows state and of characters of the rows' answers."""
    return sum(row.tokens[1] for row in rows if row.tokens), sum(len(_answer(row)) for row in rows)


def _constant(file: _File) -> None:
    for model, rows in _by_model(file).items():
        prompts = {row.prompt: row for row in rows}
        for column, name in enumerate(("input", "output")):
            counts = Counter(row.tokens[column] for row in prompts.values() if row.tokens)
            ((count, often),) = counts.most_common(1)
            if len(prompts) >= ENOUGH and often > SAME * len(prompts):
                same = [row for row in rows if row.tokens and row.tokens[column] == count]
                message = (
                    f"{often:,} of {len(prompts):,} prompts to {model} have {count} {name} tokens"
                )
                file.fault("constant", same, message)


def _by_model(file: _File) -> dict[str, list[_Row]]:
    by_model: dict[str, list[_Row]] = defaultdict(list)
    for row in file.answered:
        by_model[row.model].append(row)
    return by_model


GUESSES: Mapping[str, Callable[[str], int]] = {
    "the prompt's characters over 4": lambda text: len(text) // 4,
    "the prompt's bytes over 4": lambda text: len(text.encode("utf-8", "replace")) // 4,
    "the prompt's words": lambda text: len(text.split()),
    "the prompt's words times 1.3": lambda text: int(len(text.split()) * 1.3),
}
"""Description of a usual guess -> function that guesses a prompt's tokens in this way."""


def _estimated(file: _File) -> None:
    for model, rows in _by_model(file).items():
        for formula, guess in GUESSES.items():
            same = [row for row in rows if row.tokens and row.tokens[0] == guess(row.prompt)]
            if len(rows) >= ENOUGH and len(same) > SAME * len(rows):
                file.fault("estimated", same, f"input tokens to {model} are {formula}")
                break


def _price_of(file: _File, model: str) -> tuple[Decimal, Decimal, Decimal] | None:
    """Return a model's USD per million input, output and reasoning tokens; None if unpriced."""
    # RouterArena's evaluator strips `_batch`, and removes the provider from names that have it.
    name = model.removesuffix("_batch")
    prices = file.costs.get(name) or file.costs.get(name.rsplit("/", 1)[-1])
    if prices is None:
        return None
    sent, output = (_amount(prices.get(rate)) for rate in RATES)
    if sent is None or output is None or min(sent, output) < 0 or (sent, output) == (0, 0):
        return None
    thought = _amount(prices.get(REASONING))
    return sent, output, output if thought is None else thought


def _price(file: _File) -> None:
    if not file.costs:
        return
    rows: dict[str, list[_Row]] = defaultdict(list)
    for row in file.rows:
        if row.model and _price_of(file, row.model) is None:
            rows[row.model].append(row)
    for model, model_rows in rows.items():
        near = next((name for name in file.costs if name in model or model in name), None)
        message = f"{model} has no price: USD 0"
        if model in file.costs:
            message = f"{model} has a price that is 0 or less or not a number"
        elif near:
            message = f"{model} has no price; the price of {near}, a similar name, is used"
        file.fault("price", model_rows, message)


def _served(file: _File) -> None:
    rows: dict[tuple[str, str], list[_Row]] = defaultdict(list)
    for row in file.answered:
        name, served_name = (name.rsplit("/", 1)[-1] for name in (row.model, row.served))
        if not served_name.startswith(name) or not DATED.fullmatch(served_name.removeprefix(name)):
            rows[row.model, row.served].append(row)
    for (model, served), pair_rows in rows.items():
        price, paid = _price_of(file, model), _price_of(file, served)
        if paid is None and file.costs:
            file.fault("served", pair_rows, f"{served} answered for {model} but has no price")
        elif price and paid and (paid[0] > price[0] or paid[1] > price[1]):
            times = max(paid[0] / price[0] if price[0] else paid[0], paid[1] / (price[1] or 1))
            message = f"{served} answered for {model}, and costs up to {times:.2f} times as much"
            file.fault("served", pair_rows, message)


def _uncharged(file: _File) -> None:
    rows = [
        row
        for row in file.answered
        if row.tokens and sum(row.tokens) < sum(map(sum, _named(row.row, row.usage)))
    ]
    file.fault("uncharged", rows, "the calls that it lists have more tokens than it is charged for")
    untold = (row for row in file.answered if any(_miscounted(row.row, row.usage)))
    file.fault("uncharged", untold, "a call that it lists has tokens that are not a whole number")


def _named(value: object, answer_usage: Json) -> Iterator[tuple[int, int]]:
    """Yield (input, output) tokens of each call that a row lists, except the answering call."""
    if isinstance(value, list):
        for item in cast(list[object], value):
            yield from _named(item, answer_usage)
    if not isinstance(value, dict) or value is answer_usage:
        return
    usage = cast(Json, value)
    for names in SPENT:
        sent, output = (_whole(usage.get(name)) for name in names)
        if sent is not None and output is not None:
            yield sent, output
            return
    for item in usage.values():
        yield from _named(item, answer_usage)


def _miscounted(value: object, answer_usage: Json) -> Iterator[bool]:
    """Yield whether a token count is invalid, for each call in a row except the answering call."""
    if isinstance(value, list):
        for item in cast(list[object], value):
            yield from _miscounted(item, answer_usage)
    if isinstance(value, dict) and value is not answer_usage:
        usage = cast(Json, value)
        yield any(name in usage and _whole(usage[name]) is None for name in chain(*SPENT))
        for item in usage.values():
            yield from _miscounted(item, answer_usage)


def _by_tokens(file: _File, row: _Row) -> Decimal | None:
    """Return a row's dollars: its tokens times the price of the model that answered.

    If that model has no price, use the price of the model that the router chose. None if tokens or
    both prices are unknown.
    """
    price = _price_of(file, row.served) or _price_of(file, row.model)
    if price is None or row.tokens is None:
        return None
    return sum((n * rate for n, rate in zip(row.tokens, price, strict=True)), Decimal(0)) / MTOK


def _cost(file: _File) -> None:
    untold = (
        row
        for row in file.answered
        if row.row.get("cost") is not None and _amount(row.row["cost"]) is None
    )
    file.fault("cost", untold, "its cost is not a number")
    wrong: list[tuple[_Row, Decimal, Decimal]] = []
    for row in file.answered:
        stated, reckoned = _amount(row.row.get("cost")), _by_tokens(file, row)
        if stated is not None and reckoned is not None and abs(stated - reckoned) > OFF * reckoned:
            wrong.append((row, stated, reckoned))
    if wrong:
        stated = sum((usd for _, usd, _ in wrong), Decimal(0))
        reckoned = sum((usd for _, _, usd in wrong), Decimal(0))
        text = f"they state USD {stated:.6f}, but their tokens cost {reckoned:.6f} at these prices"
        file.fault("cost", (row for row, _, _ in wrong), text)


def _gaps(file: _File) -> Iterator[str]:
    if not file.costs:
        yield "prices and costs: there is no model_cost.json beside it (give one with --costs FILE)"
    if unasked := sum(not row.answer.get("success") for row in file.rows):
        yield f"tokens of {unasked:,} rows that have only a routing decision and no answer"
    kinds = {row.row.get("for_optimality") for row in file.rows}
    if True in kinds:
        yield "whether additional answers, which are for optimality, belong to a choice"
    for model, successor in RETIRED.items():
        rows = [
            row for row in file.answered if row.model == model and "model_used" not in row.answer
        ]
        if rows:
            yield (
                f"which model answered {len(rows):,} calls of {model}: it is retired, {successor} "
                "has answered under that name elsewhere, and no row states model_used"
            )


def predictions_json(audits: Sequence[PredictionAudit]) -> bytes:
    """Return the audits of prediction files as JSON, for use in programs."""
    rows = [
        {
            "router": audit.router,
            "rows": audit.rows,
            "answered": audit.answered,
            "usd_by_tokens": None if audit.usd is None else str(audit.usd),
            "usd_stated": None if audit.stated is None else str(audit.stated),
            "faults": [
                {"rule": fault.rule, "said": fault.said, "rows": list(fault.rows)}
                for fault in audit.faults
            ],
            "gaps": list(audit.gaps),
        }
        for audit in audits
    ]
    document = {"schema": SCHEMA, "files": rows}
    return (storable(json.dumps(document, indent=1, ensure_ascii=False)) + "\n").encode()
