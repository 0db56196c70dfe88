"""Read conductor trainings from folders: metrics per step, results on held-out questions, costs."""

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, cast

from podium.harness.errors import UserError
from podium.harness.files import read_json
from podium.harness.ledger.join import rows_of
from podium.harness.ledger.runs import has_system_runs, system_runs_below
from podium.harness.ledger.totals import CallSum, sums_by
from podium.harness.plan_habits import COLLAPSED, collapse_of, entropy
from podium.reports import stats

METRICS, MANIFEST = "metrics.jsonl", "manifest.json"
OVER = 10
"""Number of steps over which a reward is averaged: one step's mean varies with its questions."""
UNKNOWN = "unknown"
MOST = 2**53
"""Maximum step number: the largest integer that a browser represents exactly."""
COLLAPSE = "has collapsed to"
"""Text in the note on a training whose plans became identical."""
ENOUGH = 3
"""Minimum number of runs for a confidence interval over runs."""
Line = Mapping[str, Any]
"""One line of a training's metrics.jsonl, a JSON object."""


class CurvePoint(NamedTuple):
    """A metric's value at a training step; its interval's bounds are None if unknown."""

    step: int
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """A metric over the steps of one run, or its mean over the seeds of one training."""

    run: str
    points: tuple[CurvePoint, ...]
    mean: bool = False


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """One run of `podium train`: its settings, the lines of metrics.jsonl, and its costs."""

    name: str
    config: str
    seed: str
    label: str
    """Label of the workers' replies: live, recorded or rehearsal; unknown without a manifest."""
    pool: str
    book: str
    lines: tuple[Line, ...]
    bill: Mapping[str, CallSum]
    """Worker -> totals of its calls, from the ledger in the training's folder."""
    notes: tuple[str, ...]
    """A sentence for each missing file or value, and one if the plans became identical."""

    @property
    def validations(self) -> Iterator[tuple[int, Line]]:
        """Yield each step that was validated on held-out questions, with the results."""
        return _validations(self.lines)


def _validations(lines: Iterable[Line]) -> Iterator[tuple[int, Line]]:
    for line in lines:
        if validation := _table(line.get("validation")):
            yield line["step"], validation


def is_training(folder: Path) -> bool:
    """Return whether `podium train` wrote a folder."""
    return (folder / METRICS).is_file()


def read_run(folder: Path) -> list[dict[str, Any]]:
    """Return a training's lines of metrics.jsonl, sorted by step; UserError if there are none."""
    path = folder / METRICS
    if not path.is_file():
        problem = f"it has no {METRICS}; name a folder that `podium train` wrote"
        raise UserError(f"{folder} is not a training: {problem}.")
    lines: list[dict[str, Any]] = []
    for number, line in enumerate(_whole_lines(path)[0], 1):
        read = _object(line) if line.strip() else {"step": 0}
        if type(step := read.get("step")) is not int or not 0 <= step < MOST:
            raise UserError(
                f"{path} was edited: line {number} is not a training step. Restore "
                "the original file."
            )
        lines += [read] if line.strip() else []
    if not lines:
        raise UserError(
            f"{folder} has no step yet: its {METRICS} has no complete line. Wait for "
            "the first step."
        )
    return sorted(lines, key=lambda line: line["step"])


def _whole_lines(path: Path) -> tuple[list[str], bool]:
    """Return a file's complete lines, and whether its last line is incomplete (and left out)."""
    *lines, tail = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return ([*lines, tail], False) if _object(tail) else (lines, bool(tail))


def _object(line: str) -> dict[str, Any]:
    """Parse a line as a JSON object; return an empty object for any other text."""
    try:
        read: object = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return dict(_table(read))


def training_runs(folders: Sequence[Path]) -> list[TrainingRun]:
    """Read the training in each folder, with unique names; UserError for a folder without one."""
    names = [folder.resolve().name for folder in folders]
    return [
        _training_run(folder, f"{name} ({index + 1})" if names.count(name) > 1 else name)
        for index, (folder, name) in enumerate(zip(folders, names, strict=True))
    ]


def _training_run(folder: Path, name: str) -> TrainingRun:
    lines = read_run(folder)
    manifest, notes = _manifest(folder), list[str]()
    if not manifest:
        problem = f"{name} has no readable {MANIFEST}: its seed and label are unknown"
        notes.append(f"{problem}. Copy the whole training folder.")
    if _whole_lines(folder / METRICS)[1]:
        notes.append(f"The last line of {name} is incomplete and is left out.")
    bill: dict[str, CallSum] = {}
    if has_system_runs(folder):
        rows = (row for files in system_runs_below(folder) for row in rows_of(files))
        bill = sums_by(rows, lambda row: row.role)
    else:
        notes.append(f"{name} has no ledger here: its worker calls are unknown.")
    if collapsed := collapse([*_validations(lines)]):
        notes.append(f"{name} {COLLAPSE} {collapsed[1]}, from step {collapsed[0]} on.")
    return TrainingRun(
        name=name,
        config=_said(manifest, "config", "name"),
        seed=_said(manifest, "seed"),
        label=_said(manifest, "pool", "label"),
        pool=_said(manifest, "pool", "name"),
        book=_said(manifest, "prices", "name"),
        lines=tuple(lines),
        bill=dict(sorted(bill.items())),
        notes=tuple(notes),
    )


def _manifest(folder: Path) -> Line:
    try:
        return _table(read_json(folder / MANIFEST))
    except (OSError, ValueError, RecursionError):
        return {}


def _table(value: object) -> Line:
    """Return a value if it is a JSON object, else an empty object."""
    return cast(Line, value) if isinstance(value, dict) else {}


def _said(table: Line, *path: str) -> str:
    *tables, key = path
    for name in tables:
        table = _table(table.get(name))
    return str(table[key]) if isinstance(table.get(key), str | int) else UNKNOWN


def number(line: Line, name: str) -> float | None:
    """Return the number called `name` in a metrics line; None if it is missing or not finite."""
    value = line.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < sys.float_info.max else None  # excludes NaN, too


def shares(line: Line) -> dict[str, float]:
    """Return each worker's share of all plan steps, from a line of metrics.jsonl."""
    workers = _table(line.get("workers"))
    return {name: share for name in workers if (share := number(workers, name)) is not None}


def curve_points(lines: Sequence[Line], figure: str) -> tuple[list[int], list[float]]:
    """Return a metric's steps and values; `validation` is the share right on held-out questions."""
    figures = [(line["step"], _value(line, figure)) for line in lines]
    points = [(step, value) for step, value in figures if value is not None]
    return [step for step, _ in points], [value for _, value in points]


def _value(line: Line, figure: str) -> float | None:
    if figure != "validation":
        return number(line, figure)
    return number(_table(line.get(figure)), "correct")


def right_curve(run: TrainingRun) -> tuple[CurvePoint, ...]:
    """Return the share right on held-out questions at each step, with Wilson's 95 % interval."""
    # Each question is asked once, with greedy decoding, so it is its own cluster.
    points: list[CurvePoint] = []
    for step, validation in run.validations:
        right, questions = number(validation, "correct"), number(validation, "questions")
        if right is None:
            continue
        graded = round((questions or 0) * (1 - (number(validation, "masked") or 0)))
        bounds = stats.wilson(right, graded) if graded and 0 <= right <= 1 else (None, None)
        points.append(CurvePoint(step, right, *bounds))
    return tuple(points)


def reward_curve(run: TrainingRun) -> tuple[CurvePoint, ...]:
    """Return, at each step, the mean reward of the last `OVER` steps, with Student's t interval."""
    steps, values = curve_points(run.lines, "reward")
    points: list[CurvePoint] = []
    for end, step in enumerate(steps, 1):
        window = values[max(0, end - OVER) : end]
        bounds = (len(window) == OVER and stats.t_interval(window)) or (None, None)
        points.append(CurvePoint(step, sum(window) / len(window), *bounds))
    return tuple(points)


def _of_steps(name: str) -> Callable[[TrainingRun], tuple[CurvePoint, ...]]:
    return lambda run: tuple(
        CurvePoint(line["step"], value)
        for line in run.lines
        if (value := number(line, name)) is not None
    )


def spent_curve(run: TrainingRun) -> tuple[CurvePoint, ...]:
    """Return a training's dollars up to each step, validations included, until a cost is unknown.

    Step 0 has the cost of calls before the first update.
    """
    spent, points = Decimal(0), list[CurvePoint]()
    for line in run.lines:
        updated = "reward" in line or "usd" in line
        groups = ([line] if updated else [], [_table(line.get("validation"))])
        for record in filter(None, chain(*groups)):
            usd = number(record, "usd")
            if usd is None:
                return tuple(points)
            spent += Decimal(repr(usd))
        points.append(CurvePoint(line["step"], float(spent)))
    return tuple(points)


def entropy_curve(run: TrainingRun) -> tuple[CurvePoint, ...]:
    """Return by step the entropy, in bits, of workers' shares of plan steps; old logs lack it."""
    step_shares = ((line["step"], shares(line)) for line in run.lines)
    return tuple(CurvePoint(step, entropy(table.values())) for step, table in step_shares if table)


def collapse(validations: Sequence[tuple[int, Line]]) -> tuple[int, str] | None:
    """Return the step from which all validation plans are alike, and in which way; None if none.

    Older lines lack `one_step`: there, a mean of at most `ALONE` steps counts as one-step plans.
    """
    collapse_point: tuple[int, str] | None = None
    for step, line in reversed(validations):
        steps = number(line, "steps")
        one_step = number(line, "one_step") or float(steps is not None and steps <= ALONE)
        if not (habit := collapse_of(shares(line), one_step, number(line, "distinct"))):
            break
        collapse_point = step, habit
    return collapse_point


ALONE = 2 - COLLAPSED
"""If plans have at most this many steps on average, nearly all plans have one step."""


@dataclass(frozen=True, slots=True)
class CurvePanel:
    """One panel of a plot: a metric of trainings over their steps."""

    title: str
    unit: str
    curves: tuple[Curve, ...]


SHARE = "share"
PANELS: Sequence[tuple[str, str, Callable[[TrainingRun], tuple[CurvePoint, ...]]]] = (
    ("right on held-out questions (greedy; 95 % interval)", SHARE, right_curve),
    (f"reward (mean of {OVER} steps, 95 % interval)", SHARE, reward_curve),
    ("plans that could be read", SHARE, _of_steps("parsed")),
    ("right given a plan that could be read", SHARE, _of_steps("given_valid")),
    ("entropy of the workers that plans ask", "bits", entropy_curve),
    ("steps of a plan", "steps", _of_steps("steps")),
    ("calls of workers a plan", "calls", _of_steps("calls")),
    ("tokens that the conductor writes a plan", "tokens", _of_steps("tokens")),
    ("dollars so far", "USD", spent_curve),
)


def panels_of(runs: Sequence[TrainingRun]) -> list[CurvePanel]:
    """Return a panel per metric, with a curve per run and, for several seeds, their mean."""
    return [CurvePanel(title, unit, tuple(_curves(runs, make))) for title, unit, make in PANELS]


def _curves(
    runs: Sequence[TrainingRun], curve_of: Callable[[TrainingRun], tuple[CurvePoint, ...]]
) -> Iterator[Curve]:
    points_by_run = {run.name: curve_of(run) for run in runs}
    yield from (Curve(name, points) for name, points in points_by_run.items())
    for training, some in alike(runs).items():
        if len(some) > 1:
            mean = _mean([points_by_run[run.name] for run in some])
            yield Curve(f"{training}: mean of {len(some)} runs", mean, mean=True)


def alike(runs: Sequence[TrainingRun]) -> dict[str, list[TrainingRun]]:
    """Return configuration name (if unknown, the run's name) -> its runs, e.g. of several seeds."""
    runs_by_training: dict[str, list[TrainingRun]] = defaultdict(list)
    for run in runs:
        runs_by_training[run.config if run.config != UNKNOWN else run.name].append(run)
    return dict(runs_by_training)


def _mean(curves: Sequence[Sequence[CurvePoint]]) -> tuple[CurvePoint, ...]:
    """Return the mean curve of runs at steps that all runs have, with Student's t interval."""
    values: dict[int, list[float]] = defaultdict(list)
    for curve in curves:
        for point in curve:
            values[point.step].append(point.value)
    many = len(curves) >= ENOUGH
    return tuple(
        CurvePoint(
            step, sum(group) / len(group), *((many and stats.t_interval(group)) or (None, None))
        )
        for step, group in sorted(values.items())
        if len(group) == len(curves)
    )


def asked_shares(runs: Sequence[TrainingRun]) -> list[tuple[int, dict[str, float]]]:
    """Return (step, worker -> mean share of plan steps) for the steps that all runs validated."""
    shares_by_step: dict[int, list[dict[str, float]]] = defaultdict(list)
    for run in runs:
        for step, validation in run.validations:
            if worker_shares := shares(validation):
                shares_by_step[step].append(worker_shares)
    return [
        (step, {name: sum(row.get(name, 0.0) for row in some) / len(some) for name in _names(some)})
        for step, some in sorted(shares_by_step.items())
        if len(some) == len(runs)
    ]


def _names(tables: Sequence[Mapping[str, float]]) -> list[str]:
    return sorted({name for table in tables for name in table})
