"""A RouterArena prediction file, audited as podium's own runs are: are its dollars real?

Their evaluator multiplies the token counts that a row states by the price of a model that it names,
and asks nobody whether they are true. What shows in the file itself is found here, by rule and row.
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
"""Rows of their splits: sub_10, full and robustness."""
INPUT, OUTPUT, TOTAL = "input_tokens", "output_tokens", "total_tokens"
SPENT = ((INPUT, OUTPUT), ("prompt_tokens", "completion_tokens"))
"""How calls beside the answer's own may state their tokens."""
RATES = ("input_token_price_per_million", "output_token_price_per_million")
REASONING = "reasoning_token_price_per_million"
RETIRED = {"grok-4-1-fast-reasoning": "grok-4.3", "x-ai/grok-4.1-fast": "grok-4.3"}
"""Names that answer as another, dearer model since their own was retired (their issue 166)."""
DATED = re.compile(r"([-@][\d-]*)?")
"""What a provider may say behind a name of its own that stands for a dated one."""
OFF = Decimal("0.005")
"""Share by which a cost may differ from tokens times price: rounding, no more."""
MOST = 10**12  # tokens of a row: more is no count
NAMED = 8  # rows of a fault that are named
RULES = {
    "rows": "every row names its question, prompt and model, none stands twice, a split is whole",
    "usage": "every answer states its tokens, whole and in the keys that are billed",
    "right": "every row that is marked right has an answer",
    "plausible": "answers have as many output tokens as their texts need",
    "constant": "token counts differ as prompts do",
    "estimated": "input tokens were counted, not made of the prompt's length",
    "price": "every model has a price of its own",
    "served": "the model that answered is the one whose price is paid",
    "uncharged": "every call that the row names is in its tokens",
    "cost": "a row's cost is its tokens times the price",
}


@dataclass(frozen=True, slots=True)
class PredictionFault:
    """What breaks one rule in some rows of a file; their numbers count from 1."""

    rule: str
    rows: tuple[int, ...]
    said: str

    def __str__(self) -> str:
        """Say it in a sentence that names the first rows."""
        if not self.rows:
            return f"{self.rule}: {self.said}"
        shown = ", ".join(f"{one:,}" for one in self.rows[:NAMED])
        more = f" and {len(self.rows) - NAMED:,} more" if len(self.rows) > NAMED else ""
        return f"{self.rule}: {self.said} (row {shown}{more})"


@dataclass(frozen=True, slots=True)
class PredictionAudit:
    """What a prediction file breaks, and what could not be checked in it."""

    router: str
    rows: int
    answered: int
    usd: Decimal | None
    """Tokens times price of all that has both; None where no row has."""
    stated: Decimal | None
    """The costs that the rows state."""
    faults: tuple[PredictionFault, ...]
    gaps: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Say whether no rule is broken."""
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
        """Input, output and what the total has beyond them: reasoning. None where one is none."""
        sent, came = (_whole(self.usage.get(name)) for name in (INPUT, OUTPUT))
        total = _whole(self.usage.get(TOTAL))
        if sent is None or came is None:
            return None
        return sent, came, max(0, (total or 0) - sent - came)


@dataclass(slots=True)
class _File:
    rows: list[_Row]
    costs: Mapping[str, Json]
    models: frozenset[str]
    found: list[PredictionFault] = field(default_factory=list[PredictionFault])

    def fault(self, rule: str, rows: Iterable[_Row | int], said: str) -> None:
        numbers = tuple(one if isinstance(one, int) else one.number for one in rows)
        if numbers:
            self.found.append(PredictionFault(rule, numbers, said))

    @property
    def answered(self) -> list[_Row]:
        return [one for one in self.rows if one.answer.get("success") and one.tokens]


def audit_predictions(path: Path, costs: Path | None = None) -> PredictionAudit:
    """Audit a file of RouterArena's predictions."""
    raw = _read(path)
    if not isinstance(raw, list) or not raw:
        raise UserError(f"{path} holds no array of rows: name a file of their predictions folder.")
    rows, prices = cast(list[object], raw), _read_costs(path, costs)
    file = _File([], prices, _configured(path))
    for number, row in enumerate(rows, 1):
        if isinstance(row, dict):
            file.rows.append(_row(number, cast(Json, row)))
        else:
            file.fault("rows", [number], "it is no object")
    for check in (_rows, _usage, _right, _plausible, _constant, _estimated):
        check(file)
    for check in (_price, _served, _uncharged, _cost):
        check(file)
    order = [*RULES]
    return PredictionAudit(
        router=path.stem,
        rows=len(rows),
        answered=len(file.answered),
        usd=_sum(_by_tokens(file, one) for one in file.answered) if prices else None,
        stated=_sum(_amount(one.row.get("cost")) for one in file.rows),
        faults=tuple(sorted(file.found, key=lambda one: order.index(one.rule))),
        gaps=tuple(_gaps(file)),
    )


def predictions_text(found: PredictionAudit) -> str:
    """Return what an audit of predictions says, a line per fault."""
    lines = [f"{found.router}: {found.rows:,} rows, {found.answered:,} with an answer and tokens."]
    if found.usd is not None and found.answered:
        each = 1000 * found.usd / found.answered
        lines.append(f"Tokens times price: USD {found.usd:.4f}, {each:.4f} per 1,000 answers.")
    if found.stated is not None:
        lines.append(f"The rows' own costs: USD {found.stated:.4f}.")
    lines += [f"  {'FAILS' if one else 'ok   '} {rule}" for rule, one in _broken(found).items()]
    lines += [f"- {one}" for one in found.faults]
    lines += [f"- not checked: {one}" for one in found.gaps]
    return "\n".join(lines)


def _broken(found: PredictionAudit) -> dict[str, bool]:
    broken = {one.rule for one in found.faults}
    return {f"{rule}: {said}": rule in broken for rule, said in RULES.items()}


def _read(path: Path) -> object:
    refuse_absent(path)
    try:
        return json_with_nan(read_limited(path, DOCUMENT))
    except ValueError as error:  # NaN is read: it is a finding of a row
        raise UserError(f"{path} is no JSON file that can be read: {error}.") from error


def _read_costs(path: Path, costs: Path | None) -> dict[str, Json]:
    home = path.absolute().parent.parent.parent / "model_cost"
    place = costs or next(
        filter(Path.is_file, (home / "model_cost.json", home / "cost.json")), None
    )
    if place is None:
        return {}
    raw = _read(place)
    told = cast(dict[str, object], raw) if isinstance(raw, dict) else {}
    if not told or not all(isinstance(one, dict) for one in told.values()):
        raise UserError(f"{place} holds no prices by model: name their model_cost.json (--costs).")
    return cast(dict[str, Json], told)


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
    told: Json = cast(Json, answer) if isinstance(answer, dict) else {}
    usage = told.get("token_usage")
    return _Row(number, row, told, cast(Json, usage) if isinstance(usage, dict) else {})


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
    known = [one for one in amounts if one is not None]
    return sum(known, Decimal(0)) if known else None


def _rows(file: _File) -> None:
    for name, what in (("index", "global index"), ("prompt", "prompt"), ("model", "prediction")):
        file.fault("rows", (one for one in file.rows if not getattr(one, name)), f"no {what}")
    first: dict[tuple[str, str], int] = {}
    again: list[_Row] = []
    for one in file.rows:
        # Further answers to a question are there to tell the best choice: one for each model.
        extra = one.model if one.row.get("for_optimality") else ""
        if one.index and first.setdefault((one.index, extra), one.number) != one.number:
            again.append(one)
    file.fault("rows", again, "its question stands in an earlier row")
    regular = sum(not one.row.get("for_optimality") for one in file.rows)
    if regular not in SIZES:
        said = f"{regular:,} questions, and no split has as many (809, 8,400 or 420)"
        file.found.append(PredictionFault("rows", (), said))
    strange = [one for one in file.rows if file.models and one.model not in file.models]
    file.fault("rows", strange, "its model is none of the router's config")


def _usage(file: _File) -> None:
    asked = [one for one in file.rows if one.answer.get("success")]
    untold = [one for one in asked if one.tokens is None]
    other = (one for one in untold if "prompt_tokens" in one.usage)
    said = "its tokens stand under prompt_tokens, which their evaluator reads as none"
    file.fault("usage", other, said)
    bad = (one for one in untold if "prompt_tokens" not in one.usage)
    file.fault("usage", bad, "input or output tokens are missing, or no whole number from 0 on")
    free = [one for one in asked if one.tokens and not one.tokens[1] and _answer(one)]
    file.fault("usage", free, "an answer of no output token")
    short = [
        one
        for one in asked
        if one.tokens and TOTAL in one.usage and (_whole(one.usage[TOTAL]) or 0) < sum(one.tokens)
    ]
    file.fault("usage", short, "the total is less than input and output together")


def _answer(one: _Row) -> str:
    return _text(one.answer.get("generated_answer")).strip()


def _right(file: _File) -> None:
    empty = (one for one in file.rows if _is_right(one.row) and not _answer(one))
    file.fault("right", empty, "it is marked right, and has no answer")


def _is_right(row: Json) -> bool:
    """Say whether a row claims any score: as their evaluator writes it, or its cached results."""
    result = row.get("evaluation_result")
    scores: Json = cast(Json, result) if isinstance(result, dict) else {}
    marks = (_mark(row.get("accuracy")), _mark(scores.get("score")))
    return any(mark is not None and mark > 0 for mark in marks)


def _mark(value: object) -> Decimal | None:
    return Decimal(value) if isinstance(value, bool) else _amount(value)


def _plausible(file: _File) -> None:
    # Too few tokens are a fault, too many are not: reasoning, which no text shows, may be in them.
    for model, rows in _by_model(file).items():
        short = [one for one in rows if too_few_tokens(*_spoken([one]))]
        if not short and len(rows) >= ENOUGH and too_few_tokens(*_spoken(rows)):
            short = rows
        tokens, chars = _spoken(short)
        said = f"{tokens:,} output tokens of {model} for {chars:,} characters of answers"
        file.fault("plausible", short, said)


def _spoken(rows: Sequence[_Row]) -> tuple[int, int]:
    """Return the output tokens that rows state, and the characters of their answers."""
    return sum(one.tokens[1] for one in rows if one.tokens), sum(len(_answer(one)) for one in rows)


def _constant(file: _File) -> None:
    for model, rows in _by_model(file).items():
        prompts = {one.prompt: one for one in rows}
        for at, name in enumerate(("input", "output")):
            counts = Counter(one.tokens[at] for one in prompts.values() if one.tokens)
            ((count, often),) = counts.most_common(1)
            if len(prompts) >= ENOUGH and often > SAME * len(prompts):
                same = [one for one in rows if one.tokens and one.tokens[at] == count]
                said = (
                    f"{often:,} of {len(prompts):,} prompts to {model} have {count} {name} tokens"
                )
                file.fault("constant", same, said)


def _by_model(file: _File) -> dict[str, list[_Row]]:
    found: dict[str, list[_Row]] = defaultdict(list)
    for one in file.answered:
        found[one.model].append(one)
    return found


GUESSES: Mapping[str, Callable[[str], int]] = {
    "the prompt's characters over 4": lambda text: len(text) // 4,
    "the prompt's bytes over 4": lambda text: len(text.encode("utf-8", "replace")) // 4,
    "the prompt's words": lambda text: len(text.split()),
    "the prompt's words times 1.3": lambda text: int(len(text.split()) * 1.3),
}
"""How tokens are guessed where nobody counts them."""


def _estimated(file: _File) -> None:
    for model, rows in _by_model(file).items():
        for said, guess in GUESSES.items():
            same = [one for one in rows if one.tokens and one.tokens[0] == guess(one.prompt)]
            if len(rows) >= ENOUGH and len(same) > SAME * len(rows):
                file.fault("estimated", same, f"input tokens to {model} are {said}")
                break


def _price_of(file: _File, model: str) -> tuple[Decimal, Decimal, Decimal] | None:
    """Return dollars per million of input, output and reasoning; of the model's own name alone."""
    # Their evaluator strips `_batch`, and maps names with a provider to those without.
    name = model.removesuffix("_batch")
    told = file.costs.get(name) or file.costs.get(name.rsplit("/", 1)[-1])
    if told is None:
        return None
    sent, came = (_amount(told.get(rate)) for rate in RATES)
    if sent is None or came is None or min(sent, came) < 0 or (sent, came) == (0, 0):
        return None
    thought = _amount(told.get(REASONING))
    return sent, came, came if thought is None else thought


def _price(file: _File) -> None:
    if not file.costs:
        return
    rows: dict[str, list[_Row]] = defaultdict(list)
    for one in file.rows:
        if one.model and _price_of(file, one.model) is None:
            rows[one.model].append(one)
    for model, own in rows.items():
        near = next((name for name in file.costs if name in model or model in name), None)
        said = f"{model} has no price: USD 0"
        if model in file.costs:
            said = f"{model} has a price of 0 or less, or none that is a number"
        elif near:
            said = f"{model} has no price, and {near}'s is taken, whose name is like it"
        file.fault("price", own, said)


def _served(file: _File) -> None:
    rows: dict[tuple[str, str], list[_Row]] = defaultdict(list)
    for one in file.answered:
        asked, told = (name.rsplit("/", 1)[-1] for name in (one.model, one.served))
        if not told.startswith(asked) or not DATED.fullmatch(told.removeprefix(asked)):
            rows[one.model, one.served].append(one)
    for (model, served), own in rows.items():
        asked, paid = _price_of(file, model), _price_of(file, served)
        if paid is None and file.costs:
            file.fault("served", own, f"{served} answered for {model}, and has no price")
        elif asked and paid and (paid[0] > asked[0] or paid[1] > asked[1]):
            times = max(paid[0] / asked[0] if asked[0] else paid[0], paid[1] / (asked[1] or 1))
            said = f"{served} answered for {model}, and costs up to {times:.2f} times as much"
            file.fault("served", own, said)


def _uncharged(file: _File) -> None:
    rows = [
        one
        for one in file.answered
        if one.tokens and sum(one.tokens) < sum(map(sum, _named(one.row, one.usage)))
    ]
    file.fault("uncharged", rows, "the calls that it names have more tokens than it is charged for")
    untold = (one for one in file.answered if any(_miscounted(one.row, one.usage)))
    file.fault("uncharged", untold, "a call that it names has tokens that are no whole number")


def _named(value: object, own: Json) -> Iterator[tuple[int, int]]:
    """Yield input and output tokens of every call that a row names, but for its answer's own."""
    if isinstance(value, list):
        for one in cast(list[object], value):
            yield from _named(one, own)
    if not isinstance(value, dict) or value is own:
        return
    told = cast(Json, value)
    for names in SPENT:
        sent, came = (_whole(told.get(name)) for name in names)
        if sent is not None and came is not None:
            yield sent, came
            return
    for one in told.values():
        yield from _named(one, own)


def _miscounted(value: object, own: Json) -> Iterator[bool]:
    """Say of every call that a row names whether a count of its tokens is none."""
    if isinstance(value, list):
        for one in cast(list[object], value):
            yield from _miscounted(one, own)
    if isinstance(value, dict) and value is not own:
        told = cast(Json, value)
        yield any(name in told and _whole(told[name]) is None for name in chain(*SPENT))
        for one in told.values():
            yield from _miscounted(one, own)


def _by_tokens(file: _File, one: _Row) -> Decimal | None:
    """Return tokens times price, of the model that answered where it has one, as theirs does."""
    price = _price_of(file, one.served) or _price_of(file, one.model)
    if price is None or one.tokens is None:
        return None
    return sum((n * rate for n, rate in zip(one.tokens, price, strict=True)), Decimal(0)) / MTOK


def _cost(file: _File) -> None:
    untold = (
        one
        for one in file.answered
        if one.row.get("cost") is not None and _amount(one.row["cost"]) is None
    )
    file.fault("cost", untold, "its cost is no number")
    wrong: list[tuple[_Row, Decimal, Decimal]] = []
    for one in file.answered:
        stated, reckoned = _amount(one.row.get("cost")), _by_tokens(file, one)
        if stated is not None and reckoned is not None and abs(stated - reckoned) > OFF * reckoned:
            wrong.append((one, stated, reckoned))
    if wrong:
        stated = sum((one for _, one, _ in wrong), Decimal(0))
        reckoned = sum((one for _, _, one in wrong), Decimal(0))
        said = f"they state USD {stated:.6f}, and their tokens cost {reckoned:.6f} at these prices"
        file.fault("cost", (one for one, _, _ in wrong), said)


def _gaps(file: _File) -> Iterator[str]:
    if not file.costs:
        yield "prices and costs: there is no model_cost.json beside it (--costs FILE names one)"
    if unasked := sum(not one.answer.get("success") for one in file.rows):
        yield f"tokens of {unasked:,} rows that have no answer, only where they are routed"
    named = {one.row.get("for_optimality") for one in file.rows}
    if True in named:
        yield "whether further answers, which are there for optimality, belong to a choice"
    for model, successor in RETIRED.items():
        rows = [
            one for one in file.answered if one.model == model and "model_used" not in one.answer
        ]
        if rows:
            yield (
                f"who answered {len(rows):,} calls of {model}: elsewhere {successor} has answered "
                "to that name since it was retired, and no row states model_used"
            )


def predictions_json(found: Sequence[PredictionAudit]) -> bytes:
    """Return audits of predictions as JSON, for other programs."""
    rows = [
        {
            "router": one.router,
            "rows": one.rows,
            "answered": one.answered,
            "usd_by_tokens": None if one.usd is None else str(one.usd),
            "usd_stated": None if one.stated is None else str(one.stated),
            "faults": [
                {"rule": fault.rule, "said": fault.said, "rows": list(fault.rows)}
                for fault in one.faults
            ],
            "gaps": list(one.gaps),
        }
        for one in found
    ]
    whole = {"schema": SCHEMA, "files": rows}
    return (storable(json.dumps(whole, indent=1, ensure_ascii=False)) + "\n").encode()
