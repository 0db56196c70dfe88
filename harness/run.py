"""One run, from request to logs: refuse, choose the controls, run the eval set, say what is left.

An experiment can be resumed, extended by systems and suites, and killed at any moment: choices that
cost calls (the best single worker, the oracle's plans) are stored with it, and the eval set asks
only what has no answer yet.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from harness.compose import (
    BEST_SINGLE,
    ORACLE,
    SINGLE,
    Catalogue,
    Request,
    chosen_suites,
    chosen_systems,
    entry,
    refuse_empty,
    refuse_unready,
)
from harness.eval_set import Outcome
from harness.experiment import Entry, Experiment, open_experiment, task_name
from harness.job import Controls, Job, run_entries
from harness.pool_file import read_pool
from harness.prices import read_book
from harness.records import Question
from harness.regrade import regrade_dir
from harness.selection import choose_in_hindsight, choose_on_train, single_entries
from harness.suite import Suite
from harness.task import pick

SUBPROCESS = "subprocess"
ON_BEST = ("self-consistency", BEST_SINGLE)
"""Systems that run on the best single worker of the train split, where there is one."""


def run(request: Request, catalogue: Catalogue, controls: Controls) -> Outcome:
    """Run a request to its end or to the point where it can be resumed.

    Raises UserError, before the first call, for everything that can be known to fail.
    """
    spec = read_pool(request.pool)
    book = read_book(spec.prices)
    suites = chosen_suites(request, catalogue)
    systems = chosen_systems(request, catalogue, spec)
    refuse_unready(spec, book, systems, request.epochs)
    refuse_empty(suites, request)
    blank = _experiment(request, spec.sha256, suites)
    box_name = _box_name(request, spec.label, suites)
    box = catalogue.open_box(box_name) if box_name else None
    experiment = open_experiment(request.log_dir, replace(blank, box=box_name))
    if experiment.box != box_name:  # suites of an earlier run grade in a box
        box = catalogue.open_box(cast(str, experiment.box))
    grown = replace(request, limit=experiment.limit, epochs=experiment.epochs)
    job = Job(grown, catalogue, controls, spec, book, experiment.box, box)
    experiment = _with_entries(job, suites, systems, experiment)
    if request.split == "eval":
        for suite in suites:
            controls.opened(request.log_dir, suite, len(pick(suite, "eval", experiment.limit)))
    if any(request.log_dir.glob("*.eval")):
        regrade_dir(request.log_dir, catalogue.suites, job.box)  # what we failed to grade last time
    outcome = run_entries(job, experiment, request.log_dir)
    late = [suite for suite in suites if _is_chosen_late(suite, systems, experiment)]
    if late and outcome.finished:
        chosen = tuple(choose_in_hindsight(job, suite, outcome.logs) for suite in late)
        experiment = open_experiment(request.log_dir, replace(experiment, entries=chosen))
        outcome = run_entries(job, experiment, request.log_dir)
    return outcome


def _experiment(request: Request, pool_sha256: str, suites: Sequence[Suite[Any]]) -> Experiment:
    return Experiment(
        pool=request.pool,
        pool_sha256=pool_sha256,
        seed=request.seed,
        split=request.split,
        box=None,
        time_scale=request.time_scale,
        limit=request.limit,
        epochs=request.epochs,
        suite_versions={suite.name: suite.version for suite in suites},
        entries=(),
    )


def _box_name(request: Request, label: str, suites: Sequence[Suite[Any]]) -> str | None:
    """Return the box to grade in: the named one, or for our own rehearsal programs a subprocess."""
    if not any(suite.needs_box for suite in suites):
        return request.box
    return request.box or (SUBPROCESS if label == "rehearsal" else None)


def _with_entries(
    job: Job, suites: Sequence[Suite[Any]], systems: Sequence[str], experiment: Experiment
) -> Experiment:
    """Return the experiment with the requested entries; choices it already has are kept."""
    stored = {row.name for row in experiment.entries}
    undecided = [
        suite
        for suite in suites
        if any(name in systems and task_name(suite.name, name) not in stored for name in ON_BEST)
    ]
    best = choose_on_train(job, undecided, experiment)
    made: list[Entry] = []
    for suite in suites:
        for system in systems:
            if task_name(suite.name, system) in stored and system != ORACLE:
                continue
            if system == BEST_SINGLE and suite.name not in best:
                made.extend(single_entries(job, suite))  # who is best will be seen in hindsight
                continue
            args = _arguments(job, suite, system, best.get(suite.name, {}))
            made.append(entry(suite.name, system, job.catalogue, args))
    return open_experiment(job.request.log_dir, replace(experiment, entries=tuple(made)))


def _is_chosen_late(suite: Suite[Any], systems: Sequence[str], experiment: Experiment) -> bool:
    chosen = {row.name for row in experiment.entries}
    return BEST_SINGLE in systems and task_name(suite.name, BEST_SINGLE) not in chosen


def _arguments(
    job: Job, suite: Suite[Any], system: str, best: Mapping[str, Any]
) -> Mapping[str, Any]:
    if system.startswith(f"{SINGLE}:"):
        return {"worker": system.partition(":")[2]}
    if system == BEST_SINGLE:
        return best
    if system == ORACLE:
        return _oracle(job, suite)
    takes = job.catalogue.parameters(job.catalogue.systems[system].solver)
    offered = {"seed": job.request.seed}
    if system in ON_BEST and best:
        offered["worker"] = best["worker"]
    return {name: value for name, value in offered.items() if name in takes}


def _oracle(job: Job, suite: Suite[Any]) -> Mapping[str, Any]:
    """Make the oracle's missing plans, outside the eval: they are no spend of any system."""

    def grade(question: Question, reply: str) -> float:
        return suite.grade(question, reply, job.box_for(suite)).value

    questions = pick(suite, job.request.split, job.request.limit)
    path = job.request.log_dir / ORACLE / f"{suite.name}.json"
    return job.controls.make_plans(path, questions, job.spec, grade)
