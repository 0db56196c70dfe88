"""One run, from request to logs: refuse, choose the controls, run the eval set, say what is left.

An experiment can be resumed, extended by systems and suites, and killed at any moment: choices that
cost calls (the best single worker, the oracle's plans) are stored with the experiment, and the eval
set asks only what has no answer yet.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from inspect_ai.log import EvalLog

from harness.compose import (
    BEST_SINGLE,
    ORACLE,
    SINGLE,
    Catalogue,
    Facts,
    Request,
    chosen_suites,
    chosen_systems,
    entry,
    refuse_unready,
    task_of,
)
from harness.errors import WorkerError
from harness.eval_set import Outcome, Settings, mean_score, run_tasks
from harness.experiment import Entry, Experiment, open_experiment, task_name
from harness.pool import pool_models
from harness.pool_file import PoolSpec, read_pool
from harness.prices import Book, read_book
from harness.records import Question
from harness.sittings import read_sittings
from harness.solver import PODIUM
from harness.suite import Split, Suite
from harness.task import pick

SUBPROCESS = "subprocess"
SELECTION = "selection"


@dataclass(frozen=True, slots=True)
class Controls:
    """The two choices that need parts of several spokes; harness/cli.py supplies them."""

    choose: Callable[[Mapping[str, float]], str]
    """Accuracy per worker, in pool order -> the best single worker."""
    make_plans: Callable[..., Mapping[str, Any]]
    """(path, questions, pool, grade) -> the oracle solver's arguments, after making its plans."""
    opened: Callable[[Path, Suite[Any], int], None]
    """Called when questions of an `eval` split are about to be asked, to write it down."""


@dataclass(frozen=True, slots=True)
class _Bench:
    """What the steps of one run share."""

    request: Request
    catalogue: Catalogue
    controls: Controls
    spec: PoolSpec
    book: Book
    box_name: str | None
    box: Any | None


def run(request: Request, catalogue: Catalogue, controls: Controls) -> Outcome:
    """Run a request to its end or to the point where it can be resumed.

    Raises UserError, before the first call, for everything that can be known to fail.
    """
    spec = read_pool(request.pool)
    book = read_book(spec.prices)
    suites = chosen_suites(request, catalogue)
    systems = chosen_systems(request, catalogue, spec)
    refuse_unready(spec, book, systems)
    box_name = _box_name(request, spec, suites)
    box = catalogue.open_box(box_name) if box_name else None
    bench = _Bench(request, catalogue, controls, spec, book, box_name, box)
    experiment = open_experiment(request.log_dir, _experiment(bench, suites, ()))
    entries = [made for suite in suites for made in _entries(bench, suite, systems, experiment)]
    experiment = open_experiment(request.log_dir, replace(experiment, entries=tuple(entries)))
    if request.split == "eval":
        for suite in suites:
            controls.opened(request.log_dir, suite, experiment.limit or len(suite.load("eval")))
    outcome = _run(bench, experiment, request.log_dir)
    late = [suite for suite in suites if _chosen_late(suite, systems, experiment)]
    if late and outcome.finished:
        chosen = tuple(_hindsight(bench, suite, outcome.logs) for suite in late)
        experiment = open_experiment(request.log_dir, replace(experiment, entries=chosen))
        outcome = _run(bench, experiment, request.log_dir)
    return outcome


def _box_name(request: Request, spec: PoolSpec, suites: Sequence[Suite[Any]]) -> str | None:
    """Return the box to grade in: the named one, or for our own rehearsal programs a subprocess."""
    if not any(suite.needs_box for suite in suites):
        return None
    return request.box or (SUBPROCESS if spec.label == "rehearsal" else None)


def _experiment(bench: _Bench, suites: Sequence[Suite[Any]], rows: tuple[Entry, ...]) -> Experiment:
    request = bench.request
    return Experiment(
        pool=request.pool,
        pool_sha256=bench.spec.sha256,
        seed=request.seed,
        split=request.split,
        box=bench.box_name,
        time_scale=request.time_scale,
        limit=request.limit,
        epochs=request.epochs,
        suite_versions={suite.name: suite.version for suite in suites},
        entries=rows,
    )


def _entries(
    bench: _Bench, suite: Suite[Any], systems: Sequence[str], experiment: Experiment
) -> list[Entry]:
    """Return a suite's entries; those whose choice is stored are taken as they are."""
    stored = {row.name: row for row in experiment.entries}
    entries: list[Entry] = []
    for system in systems:
        name = task_name(suite.name, system)
        if name in stored and system != ORACLE:  # whose plans grow with the limit
            entries.append(stored[name])
        elif system == BEST_SINGLE and "train" not in suite.splits:
            singles = [f"{SINGLE}:{worker}" for worker in bench.spec.names]
            entries.extend(_entries(bench, suite, singles, experiment))
        else:
            args = _arguments(bench, suite, system, experiment)
            entries.append(entry(suite.name, system, bench.catalogue, args))
    return entries


def _chosen_late(suite: Suite[Any], systems: Sequence[str], experiment: Experiment) -> bool:
    """Return whether the best single is still to be chosen, after all workers have sat the exam."""
    chosen = any(row.name == task_name(suite.name, BEST_SINGLE) for row in experiment.entries)
    return BEST_SINGLE in systems and not chosen and "train" not in suite.splits


def _arguments(
    bench: _Bench, suite: Suite[Any], system: str, experiment: Experiment
) -> dict[str, Any]:
    if system.startswith(f"{SINGLE}:"):
        return {"worker": system.partition(":")[2]}
    if system == BEST_SINGLE:
        return _select(bench, suite)
    if system == ORACLE:
        return _oracle(bench, suite, experiment)
    takes_seed = "seed" in bench.catalogue.parameters(bench.catalogue.systems[system].solver)
    return {"seed": bench.request.seed} if takes_seed else {}


def _oracle(bench: _Bench, suite: Suite[Any], experiment: Experiment) -> dict[str, Any]:
    """Make the oracle's missing plans, outside the eval: they are no spend of any system."""
    box = bench.box if suite.needs_box else None

    def grade(question: Question, reply: str) -> float:
        return suite.grade(question, reply, box).value

    questions = pick(suite, bench.request.split, experiment.limit)
    path = bench.request.log_dir / ORACLE / f"{suite.name}.json"
    return dict(bench.controls.make_plans(path, questions, bench.spec, grade))


def _select(bench: _Bench, suite: Suite[Any]) -> dict[str, Any]:
    """Choose the best single worker on the train split; its calls are logged and billed apart."""
    limit = bench.request.selection_limit
    log_dir = bench.request.log_dir / SELECTION / suite.name
    names = [f"{SINGLE}:{worker}" for worker in bench.spec.names]
    rows = tuple(
        entry(suite.name, name, bench.catalogue, {"worker": name.partition(":")[2]})
        for name in names
    )
    experiment = replace(_experiment(bench, [suite], rows), limit=limit, epochs=1, split="train")
    outcome = _run(bench, open_experiment(log_dir, experiment), log_dir, purpose=SELECTION)
    if not outcome.finished:
        raise WorkerError(
            f"best-single could not be chosen on {suite.name}: {'; '.join(outcome.trouble)}"
        )
    worker = bench.controls.choose(_accuracies(bench, suite, outcome.logs))
    return {"worker": worker, "chosen_on": "train", "n": min(limit, len(suite.load("train")))}


def _hindsight(bench: _Bench, suite: Suite[Any], logs: Sequence[EvalLog]) -> Entry:
    """Choose the best single worker on the exam itself: labelled, and never the reference row."""
    accuracies = _accuracies(bench, suite, logs)
    args = {
        "worker": bench.controls.choose(accuracies),
        "chosen_on": "hindsight",
        "n": len(suite.load(bench.request.split)[: bench.request.limit]),
    }
    made = entry(suite.name, BEST_SINGLE, bench.catalogue, args)
    notes = (*made.notes, "chosen in hindsight: this suite has no train split")
    return replace(made, notes=notes, reference_allowed=False)


def _accuracies(bench: _Bench, suite: Suite[Any], logs: Sequence[EvalLog]) -> dict[str, float]:
    """Return the mean grade of each worker that sat the exam alone, in pool order."""
    by_worker = {
        _facts(log)["args"]["worker"]: mean_score(log)
        for log in logs
        if _facts(log)["suite"] == suite.name and _facts(log)["system"].startswith(f"{SINGLE}:")
    }
    found = {name: by_worker.get(name) for name in bench.spec.names}
    return {name: accuracy for name, accuracy in found.items() if accuracy is not None}


def _facts(log: EvalLog) -> dict[str, Any]:
    return (log.eval.metadata or {})[PODIUM]


def _run(bench: _Bench, experiment: Experiment, log_dir: Path, purpose: str = "eval") -> Outcome:
    """Run all entries of an experiment, old and new: Inspect skips what is finished."""
    facts = Facts(
        spec=bench.spec,
        book=bench.book,
        split=cast(Split, experiment.split),
        purpose=purpose,
        box=bench.box,
        box_name=bench.box_name,
    )
    tasks = [task_of(row, experiment, bench.catalogue, facts) for row in experiment.entries]
    settings = Settings(
        log_dir=log_dir,
        limit=experiment.limit,
        max_usd=bench.request.max_usd,
        already_spent=_already_spent(bench.request.log_dir)
        if bench.request.max_usd
        else Decimal(0),
        display=bench.request.display,
    )
    models = pool_models(bench.spec, experiment.seed, experiment.time_scale)
    return run_tasks(tasks, models, bench.book, settings)


def _already_spent(log_dir: Path) -> Decimal:
    """Return the would-be dollars of all calls in an experiment's logs, failed ones included."""
    if not any(log_dir.rglob("*.eval")):
        return Decimal(0)
    sittings, _ = read_sittings([log_dir])
    calls = (call for sitting in sittings for call in sitting.calls if call.billable)
    return sum((call.usd for call in calls if call.usd is not None), Decimal(0))
