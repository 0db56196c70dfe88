"""From suites and systems to the entries of an experiment: chosen, learnt, matched.

Choices that cost calls are made once: entries that an experiment has are kept as they are. Two
kinds can only be chosen once others have answered: the best single worker where no train split is,
in hindsight and labelled so; and the best single worker with as many samples as a conductor costs.
Costs are no labels, so matching them on the questions themselves gives nothing away.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from inspect_ai.log import EvalLog

from harness.errors import UserError
from harness.inspect_adapters import pick
from harness.learning.fit import Artifact, write_artifact
from harness.ledger.totals import SystemRun, SystemTotals, load_runs, system_totals
from harness.records import EMPTY
from harness.rewards.splits import asked_digest, question_digest
from harness.run.catalogue import (
    BEST_SINGLE,
    ORACLE,
    SINGLE,
    make_entry,
    manifest_key,
    runs_on_best,
    split_k,
)
from harness.run.evaluate import Job, RunOutcome
from harness.run.experiment import Entry, Experiment, open_experiment, task_name
from harness.run.lessons import (
    FitTask,
    SingleScores,
    choose_in_hindsight,
    choose_on_train,
    file_name,
    fit_by_rounds,
    must_learn,
    questions_for,
    single_entries,
    worker_accuracies,
)
from harness.run.systems import match_target
from harness.suite import Suite

AGGREGATOR = "aggregator"
"""The argument of mixtures that takes the best single worker where a run chooses one."""
CARDS = "cards"
"""The argument of systems whose model chooses workers: whether it reads their role cards."""
LEARNED = "learned"
"""Folder of artefacts, below the log directory."""


def with_entries(
    job: Job, suites: Sequence[Suite[Any]], systems: Sequence[str], experiment: Experiment
) -> Experiment:
    """Return the experiment with the requested entries; choices it already has are kept."""
    stored = {row.name for row in experiment.entries}
    new = {
        suite.name: [one for one in systems if task_name(suite.name, one) not in stored]
        for suite in suites
    }
    undecided = [suite for suite in suites if any(is_chosen(job, one) for one in new[suite.name])]
    taught = choose_on_train(job, undecided, experiment)
    for suite in suites:
        made: list[Entry] = []
        for system in new[suite.name]:
            made.extend(_entries(job, suite, system, taught.get(suite.name), experiment))
        plan = replace(experiment, entries=tuple(made))
        experiment = open_experiment(job.request.log_dir, plan)
    return experiment


def why_unlearnable(
    job: Job, suites: Sequence[Suite[Any]], systems: Sequence[str], experiment: Experiment
) -> Iterator[str]:
    """Yield, before anything is asked, why systems cannot learn from what there is.

    Every train question is asked in an exam, or a budget is too small to learn by trying.
    """
    stored = {row.name for row in experiment.entries}
    for suite in suites:
        new = [one for one in systems if task_name(suite.name, one) not in stored]
        if not any(is_chosen(job, one) or must_learn(one, job.catalogue) for one in new):
            continue
        try:
            lessons = questions_for(job, suite, experiment)
        except UserError as error:
            yield str(error)
            continue
        if lessons is not None:
            tries = (FitTask(job, experiment, suite, one, lessons) for one in new)
            yield from filter(None, map(_untriable, tries))


def refuse_taught(
    job: Job, suites: Sequence[Suite[Any]], systems: Sequence[str], experiment: Experiment
) -> None:
    """Raise UserError for a system that was taught the exam it is to sit."""
    for reason in why_taught(job, suites, systems, experiment):
        raise UserError(reason)


def why_taught(
    job: Job, suites: Sequence[Suite[Any]], systems: Sequence[str], experiment: Experiment
) -> Iterator[str]:
    """Yield who was taught the exam that it is to sit.

    Train questions may be sat again by whom they taught: such a run is no result.
    """
    if experiment.split != "eval":
        return
    tested = {
        name: manifest.unfit
        for name in systems
        if (manifest := job.catalogue.systems[manifest_key(name)]).unfit is not None
    }
    for suite in suites if tested else ():
        try:
            questions = pick(suite, "eval", experiment.limit)
        except UserError as error:
            yield str(error)
            continue
        digests = [asked_digest(one, job.controls.bare) for one in questions]
        for name, taught in tested.items():
            if reason := taught(split_k(name)[1], suite.name, digests):
                yield reason


def refuse_other_cards(job: Job, experiment: Experiment) -> None:
    """Raise UserError where an experiment's rows show role cards otherwise than is asked now."""
    wanted = job.request.worker_cards
    for row in experiment.entries if wanted else ():
        if CARDS in job.catalogue.parameters(row.solver):
            has = "shown" if row.args.get(CARDS, True) else "hidden"
            if has != wanted:
                raise UserError(
                    f"{job.request.log_dir} holds {row.system} with worker cards {has}, not "
                    f"{wanted}: name another --log-dir."
                )


def refuse_untriable(training: FitTask) -> None:
    """Raise UserError when a system says at once that it cannot learn from what there is."""
    manifest = training.job.catalogue.systems[manifest_key(training.system)]
    if manifest.explorer is not None:
        manifest.explorer().next_round(training.given, ())


def _untriable(training: FitTask) -> str | None:
    try:
        refuse_untriable(training)
    except UserError as error:
        return str(error)
    return None


def is_deferred(system: str, job: Job) -> bool:
    """Say whether a system is matched with what another one cost on the exam."""
    return "match" in job.catalogue.systems[manifest_key(system)].needs


def is_chosen(job: Job, system: str) -> bool:
    """Say whether a system needs what single workers did on train questions."""
    manifest = job.catalogue.systems[manifest_key(system)]
    return runs_on_best(system, job.catalogue) or manifest.learn is not None


def is_given_best(job: Job, system: str) -> bool:
    """Say whether a system's arguments name the best single worker where one has been chosen."""
    takes = job.catalogue.parameters(job.catalogue.systems[manifest_key(system)].solver)
    return runs_on_best(system, job.catalogue) or AGGREGATOR in takes


def _entries(
    job: Job, suite: Suite[Any], system: str, taught: SingleScores | None, experiment: Experiment
) -> Sequence[Entry]:
    if taught is None and (system == BEST_SINGLE or is_deferred(system, job)):
        return single_entries(job, suite)  # who is best will be seen in hindsight
    best = taught.best if taught else _chosen_before(suite, experiment)
    if is_deferred(system, job):  # what one call costs is seen on the exam
        return [one for one in single_entries(job, suite) if one.args["worker"] == best["worker"]]
    args = arguments_of(job, suite, system, best, experiment.seed)
    made = make_entry(suite.name, system, job.catalogue, args)
    if job.catalogue.systems[manifest_key(system)].learns:
        return (_trained(job, suite, made, taught, experiment),)
    if taught is None:
        return (made,)
    foreign = runs_on_best(system, job.catalogue) and experiment.train_on
    return (replace(made, notes=(*made.notes, _chosen_on(taught))) if foreign else made,)


def _chosen_before(suite: Suite[Any], experiment: Experiment) -> Mapping[str, Any]:
    name = task_name(suite.name, BEST_SINGLE)
    found = (row.args for row in experiment.entries if row.name == name)
    return next((args for args in found if args["chosen_on"] == "train"), EMPTY)


def _chosen_on(taught: SingleScores) -> str:
    return f"its worker was chosen on {len(taught.matrix.questions)} train questions of {taught.of}"


def arguments_of(
    job: Job, suite: Suite[Any], system: str, best: Mapping[str, Any], seed: int
) -> Mapping[str, Any]:
    """Return the arguments of a system's solver; `best` are those of the best single worker."""
    if system.startswith(f"{SINGLE}:"):
        return {"worker": system.partition(":")[2]}
    if system == BEST_SINGLE:
        return dict(best)
    if system == ORACLE:
        return {"plans": plans_of(suite.name)}
    manifest = job.catalogue.systems[manifest_key(system)]
    takes = job.catalogue.parameters(manifest.solver)
    offered: dict[str, Any] = {"seed": seed}
    if best and runs_on_best(system, job.catalogue):
        offered["worker"] = best["worker"]
    if best:  # a mixture costs no choice of its own, and is not weakened where there is one
        offered[AGGREGATOR] = best["worker"]
    if job.request.worker_cards == "hidden":
        offered[CARDS] = False
    found = {name: value for name, value in offered.items() if name in takes}
    k = split_k(system)[1]
    if manifest.brings is not None:
        return {**found, **manifest.brings(k)}
    return {**found, manifest.k: int(k)} if k else found


def plans_of(suite: str) -> str:
    """Return where a suite's plans lie, below the log directory."""
    return f"{ORACLE}/{suite}.json"


def _trained(
    job: Job, suite: Suite[Any], made: Entry, taught: SingleScores | None, experiment: Experiment
) -> Entry:
    """Return a system's entry with what it has learnt, which is written down."""
    explores = job.catalogue.systems[manifest_key(made.system)].explorer is not None
    if explores:
        learned, how = _by_trying(job, suite, made.system, experiment)
    else:
        assert taught is not None, "what has nothing to learn from was refused"
        learned, how = _from_singles(job, made.system, taught, experiment)
    path = f"{LEARNED}/{file_name(suite.name)}/{file_name(made.system)}.npz"
    write_artifact(learned, job.request.log_dir / path)
    facts = {name: value for name, value in asdict(learned.about).items() if name != "questions"}
    lists = {"suites": list(learned.about.suites), "workers": list(learned.about.workers)}
    return replace(
        made,
        args={**made.args, "learned": path, "sha256": learned.sha256},
        notes=(*made.notes, how),
        learnt={**facts, **lists},
    )


def _by_trying(
    job: Job, suite: Suite[Any], system: str, experiment: Experiment
) -> tuple[Artifact, str]:
    teaches = questions_for(job, suite, experiment)
    assert teaches is not None, "what has nothing to learn from was refused"
    learned, calls = fit_by_rounds(FitTask(job, experiment, suite, system, teaches))
    names = tuple(one.name for one in teaches.suites)
    digests = learned.about.questions or tuple(
        question_digest(job.controls.bare(one)) for _, one in teaches.in_turn()
    )
    about = replace(learned.about, calls=calls, suites=names, questions=digests)
    how = f"trained by {calls:,} worker calls on train questions of {', '.join(names)}"
    return replace(learned, about=about), how


def _from_singles(
    job: Job, system: str, taught: SingleScores, experiment: Experiment
) -> tuple[Artifact, str]:
    manifest = job.catalogue.systems[manifest_key(system)]
    assert manifest.learn is not None, "a system that learns does so in one of two ways"
    questions, workers = taught.matrix.scores.shape
    learned = manifest.learn(taught.matrix, experiment.seed)
    names = tuple(one.name for one in taught.lessons.suites)
    about = replace(learned.about, calls=questions * workers, suites=names)
    how = f"trained on {questions} x {workers} worker calls on train questions of {taught.of}"
    return replace(learned, about=about), how


def deferred_entries(
    job: Job,
    suites: Sequence[Suite[Any]],
    systems: Sequence[str],
    experiment: Experiment,
    outcome: RunOutcome,
) -> tuple[Entry, ...]:
    """Return the entries that are chosen by how others did on the exam, where they are missing."""
    stored = {row.name for row in experiment.entries}
    made: list[Entry] = []
    for suite in suites:
        missing = [one for one in systems if task_name(suite.name, one) not in stored]
        if BEST_SINGLE in missing:
            made.append(choose_in_hindsight(job, suite, experiment, outcome.logs))
        late = [one for one in missing if is_deferred(one, job)]
        if late:
            best = _best(job, suite, experiment, outcome.logs)
            sat = _sat(job.request.log_dir, suite)
            made.extend(_matched(job, suite, one, best, sat) for one in late)
    return tuple(made)


def has_deferred(
    job: Job, suites: Sequence[Suite[Any]], systems: Sequence[str], experiment: Experiment
) -> bool:
    """Say whether something is chosen late."""
    stored = {row.name for row in experiment.entries}
    return any(
        task_name(suite.name, one) not in stored and (one == BEST_SINGLE or is_deferred(one, job))
        for suite in suites
        for one in systems
    )


def _best(
    job: Job, suite: Suite[Any], experiment: Experiment, logs: Sequence[EvalLog]
) -> tuple[str, bool]:
    for row in experiment.entries:
        if row.name == task_name(suite.name, BEST_SINGLE):
            return str(row.args["worker"]), row.args["chosen_on"] == "hindsight"
    taught = choose_on_train(job, [suite], experiment)
    if suite.name in taught:
        return str(taught[suite.name].best["worker"]), False
    return job.controls.choose(worker_accuracies(job, suite, logs)), True


def _sat(log_dir: Path, suite: Suite[Any]) -> Mapping[str, tuple[SystemRun, SystemTotals]]:
    sittings, _ = load_runs([log_dir], recursive=False)
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
    sat: Mapping[str, tuple[SystemRun, SystemTotals]],
) -> Entry:
    worker, hindsight = best
    whom = match_target(job.request.match, list(sat))
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
    made = make_entry(suite.name, system, job.catalogue, {**args, **seed})
    notes = (*made.notes, _match_note(whom, unit, k, worker))
    if hindsight:
        notes = (*notes, "its worker was chosen in hindsight, on the questions it is judged on")
    return replace(made, notes=notes, reference_allowed=not hindsight)


def _match_note(whom: str, unit: str, k: float, worker: str) -> str:
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
    worker: str, sat: Mapping[str, tuple[SystemRun, SystemTotals]], unit: str
) -> float | None:
    """Return what one canonical call of a worker takes on this exam: by a row that made only it."""
    for name in (BEST_SINGLE, f"{SINGLE}:{worker}"):
        found = sat.get(name)
        if found and found[0].facts.args.get("worker") == worker:
            return _cost(found[1], unit)
    return None
