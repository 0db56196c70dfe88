"""Makes entries, one per system and suite: chooses workers, trains systems, matches costs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain
from typing import Any

from inspect_ai.log import EvalLog

from podium.harness.errors import UserError, reasons_of
from podium.harness.learning import write_artifact
from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import SystemRun, SystemTotals, system_totals
from podium.harness.pool_config import with_conductor
from podium.harness.records import EMPTY
from podium.harness.rewards.splits import asked_digest, question_digest
from podium.harness.run import lessons
from podium.harness.run.catalogue import BEST_SINGLE, ORACLE, SINGLE, conductor_override, split_k
from podium.harness.run.evaluate import Job, RunOutcome, planned_system
from podium.harness.run.experiment import Entry, open_experiment, task_name
from podium.harness.run.forecast import counted_all
from podium.harness.run.lessons import FitTask, SingleScores
from podium.harness.run.preflight import match_target
from podium.harness.run.system_options import chosen_options, named_arguments
from podium.harness.suite import Suite

AGGREGATOR = "aggregator"
"""Argument of mixtures: the worker that merges replies (the best single worker, if chosen)."""
CARDS = "cards"
"""Argument that sets whether a model that chooses workers reads the workers' role cards."""
LEARNED = "learned"  # folder of artefacts, below the log directory
AnsweredRuns = Mapping[str, tuple[SystemRun, SystemTotals]]  # system -> its run on one suite


def with_entries(job: Job) -> Job:
    """Return the job with an entry for each requested system and suite; keep stored entries."""
    new = [(suite, job.missing(suite)) for suite in job.suites]
    undecided = [suite for suite, systems in new if any(is_chosen(job, name) for name in systems)]
    taught = lessons.choose_on_train(job, undecided)
    for suite, systems in new:
        rows = (_entries(job, suite, name, taught.get(suite.name)) for name in systems)
        job = with_new(job, [*chain.from_iterable(rows)])
    return job


def with_new(job: Job, rows: Sequence[Entry]) -> Job:
    """Add entries to the job's experiment, write the experiment, and return the job with it."""
    plan = replace(job.experiment, entries=tuple(rows))
    return replace(job, experiment=open_experiment(job.request.log_dir, plan))


def why_unlearnable(job: Job) -> Iterator[str]:
    """Yield why systems cannot learn from the available questions; makes no call."""
    for suite in job.suites:
        new = job.missing(suite)
        if not any(is_chosen(job, name) or lessons.must_learn(job, name) for name in new):
            continue
        try:
            teaches = lessons.questions_for(job, suite)
        except UserError as error:
            yield str(error)
            continue
        if teaches is not None:
            for name in new:
                yield from reasons_of(refuse_untriable, FitTask(job, suite, name, teaches))


def why_taught(job: Job) -> Iterator[str]:
    """If the run's split is `eval`, yield an error per system trained on the split's questions."""
    if job.experiment.split != "eval":
        return
    pairs = ((split_k(name)[1], job.catalogue.card(name).methods) for name in job.systems)
    tested = [(x, methods) for x, methods in pairs if methods.replaces("suite_refusal")]
    for suite in job.suites if tested else ():
        try:
            questions = job.questions(suite)
        except UserError as error:
            yield str(error)
            continue
        digests = [asked_digest(question, job.controls.bare) for question in questions]
        refusals = (methods.suite_refusal(x, suite.name, digests) for x, methods in tested)
        yield from filter(None, refusals)


def refuse_other_cards(job: Job) -> None:
    """Raise UserError if stored entries and the request differ in whether role cards are shown."""
    visibility = job.request.worker_cards
    for row in job.experiment.entries if visibility else ():
        has = "shown" if row.args.get(CARDS, True) else "hidden"
        if CARDS in job.catalogue.parameters(row.solver) and has != visibility:
            raise UserError(
                f"{job.request.log_dir} holds {row.system} with worker cards {has}, not "
                f"{visibility}: name another --log-dir."
            )


def refuse_other_options(job: Job) -> None:
    """Raise UserError if a system's stored entries have other options than the request sets."""
    rows = job.stored.entries if job.stored else ()
    for row in (row for row in rows if row.system in job.systems):
        has = job.catalogue.options(row.system)
        for name, value in options_of(job, row.system).items():
            stored = row.args.get(name, has[name].default)
            if stored != value:
                raise UserError(
                    f"{job.request.log_dir} holds {row.system} with {name}={stored!r}, not "
                    f"{value!r}. Leave -S {name} out to continue, or name another --log-dir."
                )


MOST_CALLS = 10_000
"""Maximum calls for one question that a system may make with options set by `-S`."""


def refuse_options(job: Job, system: str) -> None:
    """Raise UserError if a system's `-S` options allow too many calls, or fail on one question."""
    options, card = options_of(job, system), job.catalogue.card(system)
    if not options or not job.suites:
        return
    settings = ", ".join(f"{name}={value!r}" for name, value in options.items())
    entry = new_entry(job, job.suites[0], system, {"worker": job.spec.names[0]})
    span = card.calls.span(len(job.spec.names), entry.args) or (0, 0)
    maximum = span[1] + card.calls.most_planning(entry.args)
    if maximum > MOST_CALLS:
        raise UserError(
            f"{system} would make up to {maximum:,} calls for each question with {settings}. "
            f"At most {MOST_CALLS:,} are allowed: set a smaller value."
        )
    if card.learns:
        return  # it can be constructed only after training
    pairs = [(question.sealed(), 1) for question in job.questions(job.suites[0])[:1]]
    spec = with_conductor(job.spec, conductor_override(system, job.catalogue))
    try:
        counted_all(planned_system(job, entry.solver, entry.args, spec), pairs, spec.names, spec)
    except UserError as error:
        raise UserError(f"{system} cannot run with {settings}. {error}") from error
    except Exception:  # its plan needs replies, or a user wrote its solver
        return


def refuse_untriable(training: FitTask) -> None:
    """Raise UserError if a system cannot even begin its first training round."""
    card = training.job.catalogue.card(training.system)
    if card.explores:
        card.methods.explorer().next_round(training.given, ())


def is_deferred(system: str, job: Job) -> bool:
    """Return whether a system's budget is the measured cost of another system: it runs later."""
    return "match" in job.catalogue.card(system).needs


def is_chosen(job: Job, system: str) -> bool:
    """Return whether a system needs single workers' scores on train questions."""
    card = job.catalogue.card(system)
    return is_given_worker(job, system) or card.methods.replaces("learn")


def is_given_worker(job: Job, system: str) -> bool:
    """Return whether a system uses the best single worker, and `-S` sets no other worker."""
    best = "best worker" in job.catalogue.card(system).traits
    return best and "worker" not in options_of(job, system)


def options_of(job: Job, system: str) -> Mapping[str, Any]:
    """Return the `-S` options that the request sets for a system."""
    return chosen_options(system, job.request.system_options, job.catalogue)


def is_given_best(job: Job, system: str) -> bool:
    """Return whether a system's arguments will name the best single worker, once it is chosen."""
    takes = job.catalogue.parameters(job.catalogue.card(system).solver)
    merges = AGGREGATOR in takes and AGGREGATOR not in options_of(job, system)
    return is_given_worker(job, system) or merges


def _entries(
    job: Job, suite: Suite[Any], system: str, taught: SingleScores | None
) -> Sequence[Entry]:
    alone = lessons.single_entries(job, suite)
    if taught is None and (system == BEST_SINGLE or is_deferred(system, job)):
        return alone  # the best worker is chosen after the run
    best = taught.best if taught else EMPTY
    if taught is None:  # an earlier request may have chosen the worker
        earlier = best_single_args(job, suite)
        best = earlier if earlier and earlier["chosen_on"] == "train" else EMPTY
    if is_deferred(system, job):  # the cost of one call of its worker is measured first
        return [row for row in alone if row.args["worker"] == best["worker"]]
    entry = new_entry(job, suite, system, best)
    card = job.catalogue.card(system)
    if card.learns:
        return (_trained(job, suite, entry, taught),)
    if taught is None or not (is_given_worker(job, system) and job.experiment.train_on):
        return (entry,)
    questions = len(taught.matrix.questions)
    suites = ", ".join(teacher.name for teacher in taught.lessons.suites)
    note = f"its worker was chosen on {questions} train questions of {suites}"
    return (replace(entry, notes=(*entry.notes, note)),)


def best_single_args(job: Job, suite: Suite[Any]) -> Mapping[str, Any] | None:
    """Return the arguments of a suite's stored best-single entry; None if there is none."""
    name = task_name(suite.name, BEST_SINGLE)
    return next((row.args for row in job.experiment.entries if row.name == name), None)


def new_entry(job: Job, suite: Suite[Any], system: str, best: Mapping[str, Any]) -> Entry:
    """Return a system's entry on a suite; `best` has the arguments of the best single worker."""
    return job.entry(suite, system, _arguments(job, suite, system, best))


def _arguments(
    job: Job, suite: Suite[Any], system: str, best: Mapping[str, Any]
) -> Mapping[str, Any]:
    if system.startswith(f"{SINGLE}:"):
        return {"worker": system.partition(":")[2]}
    if system == BEST_SINGLE:
        return dict(best)
    if system == ORACLE:
        return {"plans": plans_of(suite.name)}
    manifest = job.catalogue.card(system)
    takes = job.catalogue.parameters(manifest.solver)
    offered: dict[str, Any] = {"seed": job.experiment.seed}
    if best:  # for a mixture alone no best worker is chosen, but a chosen one is used
        names = ("worker", AGGREGATOR) if "best worker" in manifest.traits else (AGGREGATOR,)
        offered |= dict.fromkeys(names, best["worker"])
    if job.request.worker_cards == "hidden":
        offered[CARDS] = False
    arguments = {name: value for name, value in offered.items() if name in takes}
    return {**arguments, **named_arguments(system, manifest), **options_of(job, system)}


def plans_of(suite: str) -> str:
    """Return the path of the oracle's plans for a suite, relative to the log directory."""
    return f"{ORACLE}/{suite}.json"


def _trained(job: Job, suite: Suite[Any], entry: Entry, taught: SingleScores | None) -> Entry:
    card = job.catalogue.card(entry.system)
    if card.explores:
        teaches = lessons.questions_for(job, suite)
        assert teaches is not None, "what has nothing to learn from was refused"
        learned, calls = lessons.fit_by_rounds(FitTask(job, suite, entry.system, teaches))
        texts = (job.controls.bare(question) for _, question in teaches.in_turn())
        digests = learned.about.questions or tuple(map(question_digest, texts))
        method = f"trained by {calls:,} worker calls"
    else:
        assert taught is not None, "what has nothing to learn from was refused"
        matrix = taught.whole if "whole run" in card.traits else taught.matrix
        questions, workers = matrix.scores.shape
        learned, teaches = card.methods.learn(matrix, job.experiment.seed), taught.lessons
        digests, calls = learned.about.questions, questions * workers
        method = f"trained on {questions} x {workers} worker calls"
    names = tuple(teacher.name for teacher in teaches.suites)
    if taught is not None and "whole run" in card.traits:
        names = tuple(sorted({q.id.partition("/")[0] for q in taught.whole.questions}))
    about = replace(learned.about, calls=calls, suites=names, questions=digests)
    learned = replace(learned, about=about)
    path = f"{LEARNED}/{lessons.file_name(suite.name)}/{lessons.file_name(entry.system)}.npz"
    write_artifact(learned, job.request.log_dir / path)
    facts = {name: value for name, value in asdict(about).items() if name != "questions"}
    lists = {"suites": list(about.suites), "workers": list(about.workers)}
    return replace(
        entry,
        args={**entry.args, "learned": path, "sha256": learned.sha256},
        notes=(*entry.notes, f"{method} on train questions of {', '.join(names)}"),
        learnt={**facts, **lists},
    )


def deferred_entries(job: Job, outcome: RunOutcome) -> list[Entry]:
    """Return the missing entries of best-single and of systems that match another system's cost."""
    rows: list[Entry] = []
    for suite in job.suites:
        missing = job.missing(suite)
        if BEST_SINGLE in missing:
            best = job.controls.choose(lessons.worker_accuracies(job, suite, outcome.logs))
            size = len(job.questions(suite))
            args = {"worker": best, "chosen_on": "hindsight", "n": size}
            rows.append(_late(job.entry(suite, BEST_SINGLE, args)))
        late = [name for name in missing if is_deferred(name, job)]
        if late:
            best = _best(job, suite, outcome.logs)
            runs, _ = load_runs([job.request.log_dir], recursive=False)
            here = (run for run in runs if run.facts.suite == suite.name)
            answered = {run.facts.system: (run, system_totals(run)) for run in here}
            rows.extend(_matched(job, suite, name, best, answered) for name in late)
    return rows


def _late(entry: Entry, prefix: str = "") -> Entry:
    """Return an entry marked as chosen in hindsight, so that it is never the reference row."""
    late = f"{prefix}chosen in hindsight, on the questions it is judged on"
    return replace(entry, notes=(*entry.notes, late), reference_allowed=False)


def _best(job: Job, suite: Suite[Any], logs: Sequence[EvalLog]) -> tuple[str, bool]:
    """Return a suite's best single worker, and whether that worker was chosen in hindsight."""
    if earlier := best_single_args(job, suite):
        return str(earlier["worker"]), earlier["chosen_on"] == "hindsight"
    taught = lessons.choose_on_train(job, [suite])
    if suite.name in taught:
        return str(taught[suite.name].best["worker"]), False
    return job.controls.choose(lessons.worker_accuracies(job, suite, logs)), True


def _matched(
    job: Job, suite: Suite[Any], system: str, best: tuple[str, bool], answered: AnsweredRuns
) -> Entry:
    worker, hindsight = best
    whom = match_target(job.request.match, list(answered))
    if whom is None:
        raise UserError(
            f"{system} spends as much as {job.request.match or 'the conductor of the run'}, which "
            f"has not run on {suite.name!r}. Add that system with --system, or name another with "
            "--match."
        )
    unit = system.rpartition("-")[2]
    per_call = _of_one_call(worker, answered, unit)
    theirs = _cost(answered[whom][1], unit)
    if not per_call or theirs is None:
        raise UserError(
            f"{system}: the cost of {whom} or of {worker} in {unit} is unknown, so it cannot be "
            "matched. Give every worker a price, or leave the system out."
        )
    k = theirs / per_call
    args = {"worker": worker, "k": round(max(k, 1.0), 4), "matched_with": whom}
    takes = job.catalogue.parameters(job.catalogue.card(system).solver)
    seed = {"seed": answered[whom][0].facts.seed} if "seed" in takes else {}
    entry = job.entry(suite, system, {**args, **seed})
    quantity = "list dollars" if unit == "usd" else "tokens, in and out,"
    note = f"{whom} takes {k:.2f} times the {quantity} of one call of {worker} on this suite"
    if k < 1:
        note = f"{note}: it is cheaper than one call, so one call stands against it"
    entry = replace(entry, notes=(*entry.notes, note))
    return _late(entry, prefix="its worker was ") if hindsight else entry


def _cost(totals: SystemTotals, unit: str) -> float | None:
    """Return a query's mean cost in `unit` (`usd`: list dollars, else tokens); None if unknown."""
    if unit == "usd":
        return None if totals.usd is None else float(totals.usd)
    if totals.tokens_in is None or totals.tokens_out is None:
        return None
    return totals.tokens_in + totals.tokens_out


def _of_one_call(worker: str, answered: AnsweredRuns, unit: str) -> float | None:
    """Return a worker's mean cost per call, from its run as a single model; None if unknown."""
    for name in (BEST_SINGLE, f"{SINGLE}:{worker}"):
        pair = answered.get(name)
        if pair and pair[0].facts.args.get("worker") == worker:
            return _cost(pair[1], unit)
    return None
