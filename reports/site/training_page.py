"""The training page: curves of trainings over their steps, and tables with the same figures.

Every text from a training's folder, names included, is escaped, never HTML.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from podium.reports.plot import COLOURS
from podium.reports.render import (
    UNKNOWN,
    Columns,
    count,
    interval,
    percent,
    tabulate,
    usd,
    usd_about,
)
from podium.reports.site.pages import data_script
from podium.reports.training_runs import (
    OVER,
    CurvePoint,
    Line,
    TrainingRun,
    alike,
    asked_shares,
    number,
    panels_of,
    right_curve,
    shares,
    spent_curve,
)

MOST = 200
"""Approximate maximum of rows, equally spaced, in the table of a run's steps."""
Stepped = tuple[TrainingRun, int, Line]
"""A run, a step, and the figures that the run logged for that step."""


def training_context(runs: Sequence[TrainingRun]) -> dict[str, Any]:
    """Return the template variables of training.html."""
    validations = [(run, step, line) for run in runs for step, line in run.validations]
    stepped = [(run, row["step"], row) for run in runs for row in _thinned(run) if "reward" in row]
    return {
        "over": OVER,
        "labels": sorted({run.label for run in runs}),
        "notes": [note for run in runs for note in run.notes],
        "runs": tabulate(RUNS, runs),
        "held": tabulate(HELD, validations),
        "asked": _asked(validations),
        "bill": list(_bill(runs)),
        "steps": tabulate(STEPS, stepped),
        "shown": len(stepped),
        "of": sum("reward" in line for run in runs for line in run.lines),
    }


def training_data(runs: Sequence[TrainingRun]) -> str:
    """Return the data file from which the training page draws its curves."""
    data = {
        "runs": [run.name for run in runs],
        "colours": COLOURS,
        "panels": [asdict(panel) for panel in panels_of(runs)],
        "asked": [
            {"training": training, "step": step, "worker": name, "share": share}
            for training, some in alike(runs).items()
            for step, step_shares in asked_shares(some)
            for name, share in step_shares.items()
        ],
    }
    return data_script("training", json.dumps(data, ensure_ascii=False).encode(errors="replace"))


def _last(points: Sequence[CurvePoint]) -> CurvePoint | None:
    return points[-1] if points else None


def _right(point: CurvePoint | None) -> str:
    return f"{percent(point.value)} {interval(point.low, point.high)}" if point else UNKNOWN


def _spent(run: TrainingRun) -> str:
    """Return a training's total dollars as text; unknown if the cost of a step is unknown."""
    spent = _last(spent_curve(run))
    return usd_about(spent.value if spent and spent.step == run.lines[-1]["step"] else None)


def _best(run: TrainingRun) -> str:
    # Of equally good steps a training keeps the earliest.
    best = max(right_curve(run), key=lambda point: (point.value, -point.step), default=None)
    return f"{_right(best)} at step {best.step}" if best else UNKNOWN


RUNS: Columns[TrainingRun] = (
    ("training", lambda run: run.name),
    ("config", lambda run: run.config),
    ("seed", lambda run: run.seed),
    ("label", lambda run: run.label),
    ("pool", lambda run: run.pool),
    ("prices", lambda run: run.book),
    ("last step", lambda run: f"{run.lines[-1]['step']:,}"),
    ("right at first, %", lambda run: _right(next(iter(right_curve(run)), None))),
    ("right at last, %", lambda run: _right(_last(right_curve(run)))),
    ("most right, %", _best),
    ("USD", _spent),
)


def _held_out(entry: Stepped) -> str:
    run, step, _ = entry
    return _right(next((point for point in right_curve(run) if point.step == step), None))


PLANS: Columns[Stepped] = (
    ("training", lambda entry: entry[0].name),
    ("step", lambda entry: f"{entry[1]:,}"),
    ("reward", lambda entry: count(number(entry[2], "reward"), 3)),
    ("plans read, %", lambda entry: percent(number(entry[2], "parsed"))),
    ("steps of a plan", lambda entry: count(number(entry[2], "steps"), 2)),
    ("calls a plan", lambda entry: count(number(entry[2], "calls"), 2)),
    ("USD", lambda entry: usd_about(number(entry[2], "usd"))),
)
HELD: Columns[Stepped] = (
    *PLANS[:2],
    ("questions", lambda entry: count(number(entry[2], "questions"))),
    ("right, %, 95 % interval", _held_out),
    *PLANS[2:],
)
STEPS: Columns[Stepped] = (
    *PLANS,
    ("tokens a plan", lambda entry: count(number(entry[2], "tokens"), 1)),
)


def _thinned(run: TrainingRun) -> Sequence[Line]:
    apart = -(-len(run.lines) // MOST)
    return [line for n, line in enumerate(run.lines, 1) if n % apart == 0 or n == len(run.lines)]


def _asked(validations: Sequence[Stepped]) -> list[Sequence[str]]:
    """Return a table of each worker's share of plan steps on held-out questions, in percent."""
    workers = sorted({name for *_, line in validations for name in shares(line)})
    rows = [
        [run.name, f"{step:,}", *(percent(shares(line).get(name, 0.0)) for name in workers)]
        for run, step, line in validations
        if shares(line)
    ]
    return [["training", "step", *workers], *rows] if rows else []


def _bill(runs: Sequence[TrainingRun]) -> Iterator[Sequence[str]]:
    """Yield a table of workers' calls and dollars, header first; nothing if no run has a ledger."""
    heads = ("training", "worker", "calls", "failed", "tokens in", "tokens out", "USD at list")
    if any(run.bill for run in runs):
        yield heads
    for run in runs:
        for role, total in run.bill.items():
            tokens = (count(total.tokens_in), count(total.tokens_out))
            calls = (f"{total.calls:,}", f"{total.failed:,}")
            yield (run.name, role, *calls, *tokens, usd(total.listed))
