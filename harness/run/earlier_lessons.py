"""Reuses, in a new run, the answers of single workers to train questions in an earlier run.

A worker with the same settings, prices and grader is not called again (`podium run --profile DIR`):
logs and journals are copied, so that a run's directory has all data that its systems learnt from.
If a pool has a new worker, only this worker is called.
"""

import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from podium.harness.errors import UserError
from podium.harness.ledger.journal import folder_of
from podium.harness.ledger.runs import WorkerFacts
from podium.harness.ledger.totals import SystemRun
from podium.harness.prices.book import price_json
from podium.harness.profiles import (
    EARLIER,
    NO_LESSONS,
    lessons_in,
    refuse_older_graders,
    worker_of,
)
from podium.harness.run.catalogue import SINGLE
from podium.harness.run.evaluate import Job, worker_facts
from podium.harness.run.experiment import SELECTION, task_name
from podium.harness.suite import prompt_of

Answers = Mapping[tuple[str, str], Sequence[SystemRun]]
"""(suite, worker) -> the earlier runs in which the worker answered the suite's train questions."""


def earlier_answers(job: Job) -> Answers:
    """Return the answers to reuse: those copied before, else those of `--profile`'s run, if any.

    Raises UserError if that run has none, or if this run has asked its own train questions.
    """
    there = job.request.log_dir / SELECTION / EARLIER
    if there.is_dir():
        return _by_worker(job, lessons_in(there))
    if job.request.profile is None:
        return {}
    if (job.request.log_dir / SELECTION).is_dir():
        raise UserError(
            f"{job.request.log_dir} has already asked its own train questions. --profile works "
            "only in a run's first command: leave it out, or name a new --log-dir."
        )
    folder = job.request.profile
    if not (folder / SELECTION).is_dir():
        raise UserError(NO_LESSONS.format(f"--profile {folder}"))
    runs = lessons_in(folder / SELECTION)
    suites = job.catalogue.suites
    names = {run.facts.suite for run in runs} & suites.keys()
    refuse_older_graders(folder, runs, {name: suites[name].version for name in names})
    if answers := _by_worker(job, runs):
        return answers
    workers = ", ".join(sorted({worker_of(run) for run in runs}))
    raise UserError(
        f"--profile {folder}: no worker of pool {job.spec.name!r} was asked there with the same "
        f"settings, prices and prompts (asked there: {workers}). Leave --profile out to ask anew."
    )


def take_over(job: Job) -> None:
    """Copy the logs and journals of reused answers into the run's directory, unless it has them."""
    there = job.request.log_dir / SELECTION / EARLIER
    if job.request.profile is None or there.is_dir():
        return
    answers = earlier_answers(job)
    for suite, worker in answers:
        task = task_name(suite, f"{SINGLE}:{worker}", SELECTION)
        old, new = (folder_of(path, task) for path in (job.request.profile, job.request.log_dir))
        if old.is_dir():
            shutil.copytree(old, new, dirs_exist_ok=True)
    partial = job.request.log_dir / f"{EARLIER}.part"
    partial.mkdir(exist_ok=True)
    for path in {path for runs in answers.values() for run in runs for path in run.paths}:
        shutil.copy2(path, partial)
    there.parent.mkdir(exist_ok=True)
    partial.rename(there)  # atomic


def answered(answers: Answers, suite: str) -> Mapping[str, frozenset[str]]:
    """Return worker -> ids of a suite's questions that the worker's reused answers cover."""
    return {
        worker: frozenset(attempt.question for run in runs for attempt in run.attempts)
        for (name, worker), runs in answers.items()
        if name == suite
    }


def _by_worker(job: Job, runs: Sequence[SystemRun]) -> Answers:
    """Return the earlier runs of workers whose settings, prices and prompts have not changed."""
    answers: dict[tuple[str, str], list[SystemRun]] = {}
    for run in runs:
        if _is_alike(job, run):
            answers.setdefault((run.facts.suite, worker_of(run)), []).append(run)
    return answers


def _is_alike(job: Job, run: SystemRun) -> bool:
    facts, suite = run.facts, job.catalogue.suites.get(run.facts.suite)
    slot = next((slot for slot in job.spec.slots if slot.name == worker_of(run)), None)
    if slot is None or suite is None:
        return False
    worker = facts.workers[slot.name]
    then: Any = facts.prices.get("usd_per_mtok", {})
    price = job.book.prices.get(slot.price_ref)
    return (
        _identity(worker.model_dump()) == _identity(worker_facts(slot))
        and then.get(worker.price) == (price and price_json(price))
        and (facts.prompt, facts.data_revision) == (prompt_of(suite), suite.data_revision)
    )


def _identity(facts: Mapping[str, Any]) -> dict[str, Any]:
    return WorkerFacts.model_validate(facts).model_dump(exclude={"card", "knowledge_cutoff"})
