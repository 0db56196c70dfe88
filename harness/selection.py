"""Which single worker is the best: chosen on the train split, or in hindsight and labelled so.

The choice costs calls. They are logged below `LOG_DIR/selection`, billed apart from every table
row, and made once: a resumed run takes the choice from the experiment.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from inspect_ai.log import EvalLog

from harness.compose import BEST_SINGLE, SINGLE, entry
from harness.errors import WorkerError
from harness.eval_set import mean_score
from harness.experiment import Entry, Experiment, open_experiment
from harness.job import Job, run_entries
from harness.records import PODIUM
from harness.suite import Split, Suite, prompt_of
from harness.task import pick

SELECTION = "selection"


def choose_on_train(
    job: Job, suites: Sequence[Suite[Any]], experiment: Experiment
) -> dict[str, dict[str, Any]]:
    """Return `best_single` arguments per suite name, for suites that have a train split.

    None for an experiment *on* the train split: a choice on the exam itself is one in hindsight.
    """
    exam = experiment.split
    teachable = [suite for suite in suites if "train" in suite.splits and exam != "train"]
    if not teachable:
        return {}
    limit = job.request.selection_limit
    rows = tuple(row for suite in teachable for row in single_entries(job, suite))
    plan = replace(
        experiment,
        split="train",
        limit=limit,
        epochs={suite.name: 1 for suite in teachable},
        prompts={suite.name: prompt_of(suite) for suite in teachable},
        entries=rows,
        suite_versions={suite.name: suite.version for suite in teachable},
        data_revisions={suite.name: suite.data_revision for suite in teachable},
    )
    log_dir = job.request.log_dir / SELECTION
    outcome = run_entries(job, open_experiment(log_dir, plan), log_dir, purpose=SELECTION)
    if not outcome.finished:
        reasons = "; ".join(outcome.trouble)
        raise WorkerError(f"the best single worker could not be chosen: {reasons}")
    return {
        suite.name: {
            "worker": job.controls.choose(accuracies(job, suite, outcome.logs)),
            "chosen_on": "train",
            "n": min(limit, len(suite.load("train"))),
        }
        for suite in teachable
    }


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
