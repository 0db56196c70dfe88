"""Entries that can only be chosen once others have sat the exam.

The best single worker where no train split is: chosen in hindsight, and labelled so. The best
single worker with as many samples as a conductor costs: costs are no labels, so matching them on
the exam itself gives nothing away.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspect_ai.log import EvalLog

from harness.compose import BEST_SINGLE, SINGLE, entry, manifest_key
from harness.entries import is_late
from harness.errors import UserError
from harness.eval_set import Outcome
from harness.experiment import Entry, Experiment, task_name
from harness.field import matched_with
from harness.job import Job
from harness.selection import accuracies, choose_in_hindsight, choose_on_train
from harness.sittings import Sitting, read_sittings
from harness.suite import Suite
from harness.totals import SystemTotals, system_totals


def late_entries(
    job: Job,
    suites: Sequence[Suite[Any]],
    systems: Sequence[str],
    experiment: Experiment,
    outcome: Outcome,
) -> tuple[Entry, ...]:
    """Return the entries that are chosen by how others did on the exam, where they are missing."""
    stored = {row.name for row in experiment.entries}
    made: list[Entry] = []
    for suite in suites:
        missing = [one for one in systems if task_name(suite.name, one) not in stored]
        if BEST_SINGLE in missing:
            made.append(choose_in_hindsight(job, suite, experiment, outcome.logs))
        late = [one for one in missing if is_late(one, job)]
        if late:
            best = _best(job, suite, experiment, outcome.logs)
            sat = _sat(job.request.log_dir, suite)
            made.extend(_matched(job, suite, one, best, sat) for one in late)
    return tuple(made)


def waits(
    job: Job, suites: Sequence[Suite[Any]], systems: Sequence[str], experiment: Experiment
) -> bool:
    """Say whether something is chosen late."""
    stored = {row.name for row in experiment.entries}
    return any(
        task_name(suite.name, one) not in stored and (one == BEST_SINGLE or is_late(one, job))
        for suite in suites
        for one in systems
    )


def _best(
    job: Job, suite: Suite[Any], experiment: Experiment, logs: Sequence[EvalLog]
) -> tuple[str, bool]:
    """Return the best single worker, and whether it was chosen in hindsight."""
    for row in experiment.entries:
        if row.name == task_name(suite.name, BEST_SINGLE):
            return str(row.args["worker"]), row.args["chosen_on"] == "hindsight"
    taught = choose_on_train(job, [suite], experiment)
    if suite.name in taught:
        return str(taught[suite.name].best["worker"]), False
    return job.controls.choose(accuracies(job, suite, logs)), True


def _sat(log_dir: Path, suite: Suite[Any]) -> Mapping[str, tuple[Sitting, SystemTotals]]:
    """Return the systems that have sat an exam, by name, with what they cost."""
    sittings, _ = read_sittings([log_dir], recursive=False)
    return {
        one.facts.system: (one, system_totals(one))
        for one in sittings
        if one.facts.suite == suite.name
    }


def _matched(
    job: Job,
    suite: Suite[Any],
    system: str,
    best: tuple[str, bool],
    sat: Mapping[str, tuple[Sitting, SystemTotals]],
) -> Entry:
    worker, hindsight = best
    whom = matched_with(job.request.match, list(sat))
    if whom is None:
        raise UserError(f"{system}: nobody it could be matched with has sat {suite.name!r}.")
    unit = system.rpartition("-")[2]
    one = _of_one_call(worker, sat, unit)
    theirs = _cost(sat[whom][1], unit)
    if not one or theirs is None:
        raise UserError(
            f"{system}: what {whom} or {worker} took in {unit} is unknown, so nothing can be "
            "matched; give every worker a price."
        )
    k = theirs / one
    args = {"worker": worker, "k": round(max(k, 1.0), 4), "matched_with": whom}
    takes = job.catalogue.parameters(job.catalogue.systems[manifest_key(system)].solver)
    seed = {"seed": sat[whom][0].facts.seed} if "seed" in takes else {}
    made = entry(suite.name, system, job.catalogue, {**args, **seed})
    notes = (*made.notes, _said(whom, unit, k, worker))
    if hindsight:
        notes = (*notes, "its worker was chosen in hindsight, on the questions it is judged on")
    return replace(made, notes=notes, reference_allowed=not hindsight)


def _said(whom: str, unit: str, k: float, worker: str) -> str:
    what = "list dollars" if unit == "usd" else "tokens, in and out,"
    said = f"{whom} takes {k:.2f} times the {what} of one call of {worker} on this exam"
    return said if k >= 1 else f"{said}: it is cheaper than one call, so one call stands against it"


def _cost(totals: SystemTotals, unit: str) -> float | None:
    """Return the mean of a query: list dollars, or tokens in and out."""
    if unit == "usd":
        return None if totals.usd is None else float(totals.usd)
    if totals.tokens_in is None or totals.tokens_out is None:
        return None
    return totals.tokens_in + totals.tokens_out


def _of_one_call(
    worker: str, sat: Mapping[str, tuple[Sitting, SystemTotals]], unit: str
) -> float | None:
    """Return what one canonical call of a worker takes on this exam: by a row that made only it."""
    for name in (BEST_SINGLE, f"{SINGLE}:{worker}"):
        found = sat.get(name)
        if found and found[0].facts.args.get("worker") == worker:
            return _cost(found[1], unit)
    return None
