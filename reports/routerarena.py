"""Write runs as prediction files of the RouterArena leaderboard, with config and prices.

RouterArena's evaluator supports one model per question, and multiplies a row's tokens by its price.
Our rows have the tokens of all calls for the question, those of a conductor included, and name the
cheapest called model at whose price these tokens cost at least what the calls cost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from podium.harness.errors import UserError
from podium.harness.ledger.call import Call
from podium.harness.ledger.details import QueryDetail, in_full, run_queries
from podium.harness.ledger.totals import last_attempts
from podium.harness.prices import book_from_json
from podium.harness.prices.cost import MTOK, Price
from podium.harness.text import safe_name
from podium.reports import render
from podium.reports.audit.routerarena_audit import RATES
from podium.reports.finished import Finished, finished_runs

INFERENCE = "router_inference"


@dataclass(frozen=True, slots=True)
class Submission:
    """One system's entry on the RouterArena leaderboard."""

    router: str
    rows: int
    usd: Decimal
    """Dollars of the system's calls at list price."""
    charged: Decimal
    """Dollars that RouterArena's evaluator will compute as the system's cost."""
    understated: int
    """Number of rows whose cost the evaluator, which knows no price tiers, underestimates."""

    def __str__(self) -> str:
        """Return a summary of the entry: rows, dollars, and RouterArena's figure for dollars."""
        summary = f"{self.router}: {self.rows:,} rows, USD {self.usd:.6f}; there {self.charged:.6f}"
        note = f" ({self.understated:,} rows cost more than it charges)" if self.understated else ""
        return f"{summary}{note}"


def write_routerarena(
    dirs: Sequence[Path], out: Path, theirs: Mapping[str, str]
) -> tuple[Submission, ...]:
    """Write each system run below `dirs` as a RouterArena router, into the new folder `out`.

    `theirs`: our model name -> RouterArena's, if that is not our name without the provider.
    UserError, before anything is written, for runs of several suites or of private questions, for
    questions asked more than once or not yet, and for calls without a price or token counts.
    """
    render.refuse_existing(out)
    runs = finished_runs(dirs)
    _refuse(runs)
    _refuse_strange(runs, theirs)
    submissions: list[Submission] = []
    contents: dict[str, render.Content] = {}
    prices: dict[str, Any] = {}
    for run in runs:
        submission, files = _submission(run, theirs, prices)
        if any(submission.router == earlier.router for earlier in submissions):
            raise UserError(
                f"{submission.router} occurs twice, with different arguments. Name the directory "
                "of only one."
            )
        submissions.append(submission)
        contents |= files
    contents["model_cost/model_cost.json"] = render.as_json(dict(sorted(prices.items())))
    render.write_files(out, contents)
    return tuple(submissions)


def _refuse(runs: Sequence[Finished]) -> None:
    suites = sorted({row.suite for row, _, _ in runs})
    if len(suites) > 1:
        raise UserError(
            f"There are runs of several suites ({', '.join(suites)}), and a RouterArena file has "
            "one set of questions. Name the directory of one suite."
        )
    for row, system_run, _ in runs:
        if not system_run.facts.publishable or system_run.facts.redacted:
            raise UserError(
                f"{row.suite} is private, and a RouterArena row holds question and "
                "answer. Export another suite."
            )
        if row.epochs > 1:
            raise UserError(
                f"{row.system} was asked each question {row.epochs} times, and a RouterArena row "
                "is one answer. Run it with --epochs 1."
            )
        if row.n_unpriced:
            raise UserError(
                f"{row.n_unpriced} calls of {row.system} have no price and would cost 0 in the "
                "file. Run it with a pool whose price book has their prices."
            )


def _refuse_strange(runs: Sequence[Finished], theirs: Mapping[str, str]) -> None:
    models = {worker.model for _, run, _ in runs for worker in run.facts.workers.values()}
    names = {*models, *map(_bare, models)}
    if strange := sorted(theirs.keys() - names):
        listed = ", ".join(sorted(map(_bare, models)))
        raise UserError(
            f"--model names {strange[0]}, which these runs did not call. Name one of: {listed}."
        )


Files = dict[str, render.Content]


def _submission(
    finished: Finished, theirs: Mapping[str, str], prices: dict[str, Any]
) -> tuple[Submission, Files]:
    """Return a system's submission and files, and add the prices of its models to `prices`."""
    row, system_run, texts = finished
    router, book = safe_name(row.system), book_from_json(system_run.facts.prices)
    rows: list[dict[str, Any]] = []
    usd, charged, understated = Decimal(0), Decimal(0), 0
    for detail in in_full(run_queries(texts.files)):
        calls = _calls(detail)
        rates: dict[str, Price] = {}
        for call in calls:
            rates[_named(call, theirs)] = price = _price(book.price(call.price_ref), call)
            _put_price(prices, _named(call, theirs), price)
        model, there = _charged(detail, calls, rates)
        rows.append(_row(detail, calls, model, theirs))
        cost = detail.row.usd_list or Decimal(0)
        usd, charged, understated = usd + cost, charged + there, understated + (there < cost)
    models = sorted({call["model"] for row in rows for call in row["calls"]})
    config = {"pipeline_params": {"router_name": router, "models": models}}
    files: Files = {
        f"{INFERENCE}/config/{router}.json": render.as_json(config),
        f"{INFERENCE}/predictions/{router}.json": _array(rows),
    }
    return Submission(router, len(rows), usd, charged, understated), files


def _array(rows: Sequence[Mapping[str, Any]]) -> str:
    return "[\n" + ",\n".join(render.as_json(row).rstrip() for row in rows) + "\n]\n"


def _calls(detail: QueryDetail) -> list[Call]:
    """Return the last attempt of each call for an answer; UserError without token counts."""
    stepped = [row for step in (*detail.conductor, *detail.steps) for row in step.rows]
    calls = last_attempts(stepped)
    if not calls or any(call.input_total is None or call.output is None for call in calls):
        raise UserError(
            f"This run cannot be exported: question {detail.row.question} by {detail.row.system} "
            "has no call, or a call without token counts (`podium audit` lists it)."
        )
    return calls


def _named(call: Call, theirs: Mapping[str, str]) -> str:
    """Return RouterArena's name of a call's model: from `theirs`, else ours without provider."""
    bare = _bare(call.model)
    return theirs.get(call.model) or theirs.get(bare) or bare


def _bare(model: str) -> str:
    return model.partition("/")[2] or model


def _price(price: Price | None, call: Call) -> Price:
    if price is None:
        raise UserError(
            f"{call.price_ref} has no price in the run's price book. Run the system "
            "with a pool whose price book has one."
        )
    return price


def _put_price(prices: dict[str, Any], name: str, price: Price) -> None:
    rates = {rate: float(usd) for rate, usd in zip(RATES, (price.input, price.output), strict=True)}
    if prices.setdefault(name, rates) != rates:
        raise UserError(
            f"Two models with different prices would both be named {name} in the file. Give them "
            "different names with --model OURS=THEIRS."
        )


def _charged(
    detail: QueryDetail, calls: Sequence[Call], rates: Mapping[str, Price]
) -> tuple[str, Decimal]:
    """Return the model that a row names, and the row's cost at that model's price.

    The row names the cheapest called model at whose price the row costs at least its list cost,
    else the dearest.
    """
    n_in, n_out = _tokens(calls)
    there = {name: (n_in * rate.input + n_out * rate.output) / MTOK for name, rate in rates.items()}
    cost = detail.row.usd_list or Decimal(0)
    enough = {name: usd for name, usd in there.items() if usd >= cost}
    if enough:
        return min(enough.items(), key=lambda item: (item[1], item[0]))
    return max(there.items(), key=lambda item: (item[1], item[0]))


def _tokens(calls: Sequence[Call]) -> tuple[int, int]:
    return sum(call.input_total or 0 for call in calls), sum(call.output or 0 for call in calls)


def _row(
    detail: QueryDetail, calls: Sequence[Call], model: str, theirs: Mapping[str, str]
) -> dict[str, Any]:
    tokens_in, tokens_out = _tokens(calls)
    reply = detail.texts.reply or ""
    answering = [call for call in calls if _named(call, theirs) == model][-1]
    own_names = (None, "", answering.model, _bare(answering.model))
    served = model if answering.served_model in own_names else str(answering.served_model)
    return {
        "global index": detail.row.question,
        "prompt": detail.texts.input or "",
        "prediction": model,
        "generated_result": {
            "generated_answer": reply,
            "success": bool(reply.strip()),
            "token_usage": {
                "input_tokens": tokens_in,
                "output_tokens": tokens_out,
                "total_tokens": tokens_in + tokens_out,
            },
            "provider": answering.model.partition("/")[0],
            "model_used": theirs.get(served, served),
            "error": None if reply.strip() else detail.row.reason or "no answer",
        },
        "cost": None,
        "accuracy": None,
        "for_optimality": False,
        "calls": [
            {
                "role": call.role,
                "model": _named(call, theirs),
                "input_tokens": call.input_total,
                "output_tokens": call.output,
            }
            for call in calls
        ],
    }
