"""Which single worker is the best: chosen on train questions, or in hindsight and labelled so.

Every worker is asked the same train questions alone. The calls are logged below
`LOG_DIR/selection`, billed apart from every table row, and made once: the best single worker is
chosen by them, and routers learn from the same matrix. Not here: what may teach
(harness/learning/teaching.py), and learning by trying (harness/learning/tuning.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from inspect_ai.log import EvalLog

from harness.compose import BEST_SINGLE, SINGLE, entry
from harness.errors import WorkerError
from harness.eval_set import mean_score
from harness.experiment import Entry, Experiment, open_experiment
from harness.job import Job, Sat, run_entries
from harness.learning.matrix import Matrix
from harness.learning.matrix_logs import matrix_of_logs
from harness.learning.teaching import (
    TRAIN,
    Lessons,
    calls_to_learn,
    lessons,
    questions_each,
    teachers,
)
from harness.records import PODIUM
from harness.suite import Split, Suite, prompt_of
from harness.task import pick

SELECTION = "selection"


@dataclass(frozen=True, slots=True)
class Taught:
    """What single workers did on the train questions of one exam."""

    best: Mapping[str, Any]
    """The arguments of `best_single`."""
    matrix: Matrix
    """Workers in pool order."""
    lessons: Lessons

    @property
    def of(self) -> str:
        """Name the suites that taught."""
        return ", ".join(suite.name for suite in self.lessons.suites)


def choose_on_train(
    job: Job, suites: Sequence[Suite[Any]], experiment: Experiment
) -> dict[str, Taught]:
    """Return what single workers did, by exam, for exams that have train questions.

    None for an experiment *on* the train split: a choice on the exam itself is one in hindsight.
    """
    found = {suite.name: lessons_of(job, suite, experiment) for suite in suites}
    teachable = {name: one for name, one in found.items() if one is not None}
    if not teachable:
        return {}
    only: dict[str, tuple[str, ...]] = {}
    for one in teachable.values():
        only |= one.first(each_of(job, experiment, one))
    asked = {teacher.name: teacher for one in teachable.values() for teacher in one.suites}
    log_dir = job.request.log_dir / SELECTION
    rows = tuple(row for suite in asked.values() for row in single_entries(job, suite))
    plan = learning_experiment(experiment, list(asked.values()), rows)
    plan = replace(plan, limit=max(map(len, only.values())))
    how = Sat(SELECTION, "choosing the best single worker", only)
    outcome = run_entries(job, open_experiment(log_dir, plan), log_dir, how)
    if not outcome.finished:
        reasons = "; ".join(outcome.trouble)
        raise WorkerError(f"the best single worker could not be chosen: {reasons}")
    whole = matrix_of_logs([log_dir])
    return {name: _taught(job, one, only, whole) for name, one in teachable.items()}


def lessons_of(job: Job, suite: Suite[Any], experiment: Experiment) -> Lessons | None:
    """Return what teaches for an exam; None when there is nothing."""
    taught = teachers(suite, experiment, job.catalogue)
    if not taught:
        return None
    names = experiment.suite_versions.keys() & job.catalogue.suites.keys()
    exams = [job.catalogue.suites[name] for name in sorted({*names, suite.name})]
    return lessons(taught, exams, experiment, job.controls.bare)


def each_of(job: Job, experiment: Experiment, one: Lessons) -> int:
    """Return how many questions of each train split every worker is asked alone."""
    workers = len(job.spec.names)
    calls = calls_to_learn(experiment, job.request.selection_limit, workers)
    return questions_each(calls, workers, len(one.suites))


def learning_experiment(
    experiment: Experiment, suites: Sequence[Suite[Any]], rows: Sequence[Entry]
) -> Experiment:
    """Return the experiment that sits train splits once, beside the exam's."""
    return replace(
        experiment,
        split=TRAIN,
        limit=None,
        epochs={suite.name: 1 for suite in suites},
        prompts={suite.name: prompt_of(suite) for suite in suites},
        entries=tuple(rows),
        suite_versions={suite.name: suite.version for suite in suites},
        data_revisions={suite.name: suite.data_revision for suite in suites},
    )


def _taught(job: Job, one: Lessons, only: Mapping[str, Sequence[str]], whole: Matrix) -> Taught:
    ids = {f"{suite.name}/{id}" for suite in one.suites for id in only[suite.name]}
    found = _in_order(whole.where(lambda asked: asked.id in ids), job.spec.names)
    known = {
        name: float(mean)
        for name, mean in zip(job.spec.names, found.mean_scores(), strict=True)
        if not np.isnan(mean)
    }
    best = {"worker": job.controls.choose(known), "chosen_on": TRAIN, "n": len(found.questions)}
    return Taught(best, found, one)


def _in_order(matrix: Matrix, workers: Sequence[str]) -> Matrix:
    at = [matrix.workers.index(name) for name in workers]
    return replace(
        matrix,
        workers=tuple(workers),
        scores=matrix.scores[:, at],
        usd=matrix.usd[:, at],
        tokens_out=matrix.tokens_out[:, at],
    )


def choose_in_hindsight(
    job: Job, suite: Suite[Any], experiment: Experiment, logs: Sequence[EvalLog]
) -> Entry:
    """Return best-single as chosen on the exam itself: labelled, and never the reference row."""
    args = {
        "worker": job.controls.choose(accuracies(job, suite, logs)),
        "chosen_on": "hindsight",
        "n": len(pick(suite, cast(Split, experiment.split), experiment.limit)),
    }
    made = entry(suite.name, BEST_SINGLE, job.catalogue, args)
    notes = (*made.notes, "chosen in hindsight, on the questions it is judged on")
    return replace(made, notes=notes, reference_allowed=False)


def single_entries(job: Job, suite: Suite[Any]) -> list[Entry]:
    """Return one entry per worker, in pool order."""
    return [
        entry(suite.name, f"{SINGLE}:{name}", job.catalogue, {"worker": name})
        for name in job.spec.names
    ]


def accuracies(job: Job, suite: Suite[Any], logs: Sequence[EvalLog]) -> dict[str, float]:
    """Return the mean grade of each worker that sat a suite alone, in pool order."""
    alone: dict[str, float | None] = {}
    for log in logs:
        facts: dict[str, Any] = (log.eval.metadata or {})[PODIUM]
        if facts["suite"] == suite.name and facts["system"].startswith(f"{SINGLE}:"):
            alone[facts["args"]["worker"]] = mean_score(log)
    found = {name: alone.get(name) for name in job.spec.names}
    return {name: accuracy for name, accuracy in found.items() if accuracy is not None}
