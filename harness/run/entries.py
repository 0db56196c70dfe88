"""From suites and systems to the entries of an experiment: chosen, learnt, matched, once each."""

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
"""The argument of mixtures that takes the best single worker where a run chooses one."""
CARDS = "cards"
"""The argument of systems whose model chooses workers: whether it reads their role cards."""
LEARNED = "learned"  # folder of artefacts, below the log directory
AnsweredRuns = Mapping[str, tuple[SystemRun, SystemTotals]]  # by system, of one suite


def with_entries(job: Job) -> Job:
    """Return the job with all requested entries; choices that its experiment has are kept."""
    new = [(suite, job.missing(suite)) for suite in job.suites]
    undecided = [suite for suite, systems in new if any(is_chosen(job, one) for one in systems)]
    taught = lessons.choose_on_train(job, undecided)
    for suite, systems in new:
        made = (_entries(job, suite, one, taught.get(suite.name)) for one in systems)
        job = with_new(job, [*chain.from_iterable(made)])
    return job


def with_new(job: Job, rows: Sequence[Entry]) -> Job:
    """Return the job with new entries in its experiment, which is written down."""
    plan = replace(job.experiment, entries=tuple(rows))
    return replace(job, experiment=open_experiment(job.request.log_dir, plan))


def why_unlearnable(job: Job) -> Iterator[str]:
    """Yield, before anything is asked, why systems cannot learn from what there is."""
    for suite in job.suites:
        new = job.missing(suite)
        if not any(is_chosen(job, one) or lessons.must_learn(job, one) for one in new):
            continue
        try:
            teaches = lessons.questions_for(job, suite)
        except UserError as error:
            yield str(error)
            continue
        if teaches is not None:
            for one in new:
                yield from reasons_of(refuse_untriable, FitTask(job, suite, one, teaches))


def why_taught(job: Job) -> Iterator[str]:
    """Yield who was taught the eval split that it is to answer; other splits are no results."""
    if job.experiment.split != "eval":
        return
    named = ((split_k(name)[1], job.catalogue.card(name).methods) for name in job.systems)
    tested = [(x, methods) for x, methods in named if methods.replaces("suite_refusal")]
    for suite in job.suites if tested else ():
        try:
            questions = job.questions(suite)
        except UserError as error:
            yield str(error)
            continue
        digests = [asked_digest(one, job.controls.bare) for one in questions]
        refusals = (methods.suite_refusal(x, suite.name, digests) for x, methods in tested)
        yield from filter(None, refusals)


def refuse_other_cards(job: Job) -> None:
    """Raise UserError where an experiment's rows show role cards otherwise than is asked now."""
    wanted = job.request.worker_cards
    for row in job.experiment.entries if wanted else ():
        has = "shown" if row.args.get(CARDS, True) else "hidden"
        if CARDS in job.catalogue.parameters(row.solver) and has != wanted:
            raise UserError(
                f"{job.request.log_dir} holds {row.system} with worker cards {has}, not "
                f"{wanted}: name another --log-dir."
            )


def refuse_other_options(job: Job) -> None:
    """Raise UserError if an experiment's rows have other options than are asked for now."""
    rows = job.stored.entries if job.stored else ()
    for row in (row for row in rows if row.system in job.systems):
        has = job.catalogue.options(row.system)
        for name, wanted in options_of(job, row.system).items():
            stored = row.args.get(name, has[name].default)
            if stored != wanted:
                raise UserError(
                    f"{job.request.log_dir} holds {row.system} with {name}={stored!r}, not "
                    f"{wanted!r}: leave -S {name} out to go on with it, or name another --log-dir."
                )


MOST_CALLS = 10_000
"""Calls of one question up to which options may raise what a system makes."""


def refuse_options(job: Job, system: str) -> None:
    """Raise UserError if a system with options cannot be made, or cannot plan a question."""
    options, card = options_of(job, system), job.catalogue.card(system)
    if not options or not job.suites:
        return
    shown = ", ".join(f"{name}={value!r}" for name, value in options.items())
    made = new_entry(job, job.suites[0], system, {"worker": job.spec.names[0]})
    span = card.calls.span(len(job.spec.names), made.args) or (0, 0)
    most = span[1] + card.calls.most_planning(made.args)
    if most > MOST_CALLS:
        raise UserError(
            f"{system} would make up to {most:,} calls for each question with {shown}. "
            f"At most {MOST_CALLS:,} are allowed: set a smaller value."
        )
    if card.learns:
        return  # it is made once it has learnt
    asked = [(question.sealed(), 1) for question in job.questions(job.suites[0])[:1]]
    spec = with_conductor(job.spec, conductor_override(system, job.catalogue))
    try:
        counted_all(planned_system(job, made.solver, made.args, spec), asked, spec.names, spec)
    except UserError as error:
        raise UserError(f"{system} cannot run with {shown}. {error}") from error
    except Exception:  # its plan needs replies, or its solver is not of our making
        return


def refuse_untriable(training: FitTask) -> None:
    """Raise UserError when a system says at once that it cannot learn from what there is."""
    card = training.job.catalogue.card(training.system)
    if card.explores:
        card.methods.explorer().next_round(training.given, ())


def is_deferred(system: str, job: Job) -> bool:
    """Say whether a system is matched with what another one cost on the suite."""
    return "match" in job.catalogue.card(system).needs


def is_chosen(job: Job, system: str) -> bool:
    """Say whether a system needs what single workers did on train questions."""
    card = job.catalogue.card(system)
    return is_given_worker(job, system) or card.methods.replaces("learn")


def is_given_worker(job: Job, system: str) -> bool:
    """Say whether a system's worker is the best single one, and not one that `-S` names."""
    best = "best worker" in job.catalogue.card(system).traits
    return best and "worker" not in options_of(job, system)


def options_of(job: Job, system: str) -> Mapping[str, Any]:
    """Return the options that the request sets for a system."""
    return chosen_options(system, job.request.system_options, job.catalogue)


def is_given_best(job: Job, system: str) -> bool:
    """Say whether a system's arguments name the best single worker where one has been chosen."""
    takes = job.catalogue.parameters(job.catalogue.card(system).solver)
    merges = AGGREGATOR in takes and AGGREGATOR not in options_of(job, system)
    return is_given_worker(job, system) or merges


def _entries(
    job: Job, suite: Suite[Any], system: str, taught: SingleScores | None
) -> Sequence[Entry]:
    alone = lessons.single_entries(job, suite)
    if taught is None and (system == BEST_SINGLE or is_deferred(system, job)):
        return alone  # who is best will be seen in hindsight
    best = taught.best if taught else EMPTY
    if taught is None:  # an earlier request may have chosen
        earlier = best_single_args(job, suite)
        best = earlier if earlier and earlier["chosen_on"] == "train" else EMPTY
    if is_deferred(system, job):  # what one call costs is seen on the suite
        return [one for one in alone if one.args["worker"] == best["worker"]]
    made = new_entry(job, suite, system, best)
    card = job.catalogue.card(system)
    if card.learns:
        return (_trained(job, suite, made, taught),)
    if taught is None or not (is_given_worker(job, system) and job.experiment.train_on):
        return (made,)
    questions = len(taught.matrix.questions)
    suites = ", ".join(one.name for one in taught.lessons.suites)
    note = f"its worker was chosen on {questions} train questions of {suites}"
    return (replace(made, notes=(*made.notes, note)),)


def best_single_args(job: Job, suite: Suite[Any]) -> Mapping[str, Any] | None:
    """Return the arguments of a suite's best-single, where its experiment has one."""
    name = task_name(suite.name, BEST_SINGLE)
    return next((row.args for row in job.experiment.entries if row.name == name), None)


def new_entry(job: Job, suite: Suite[Any], system: str, best: Mapping[str, Any]) -> Entry:
    """Return the entry of a system; `best` are the arguments of the best single worker."""
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
    if best:  # a mixture costs no choice of its own, and is not weakened where there is one
        names = ("worker", AGGREGATOR) if "best worker" in manifest.traits else (AGGREGATOR,)
        offered |= dict.fromkeys(names, best["worker"])
    if job.request.worker_cards == "hidden":
        offered[CARDS] = False
    found = {name: value for name, value in offered.items() if name in takes}
    return {**found, **named_arguments(system, manifest), **options_of(job, system)}


def plans_of(suite: str) -> str:
    """Return where a suite's plans lie, below the log directory."""
    return f"{ORACLE}/{suite}.json"


def _trained(job: Job, suite: Suite[Any], made: Entry, taught: SingleScores | None) -> Entry:
    card = job.catalogue.card(made.system)
    if card.explores:
        teaches = lessons.questions_for(job, suite)
        assert teaches is not None, "what has nothing to learn from was refused"
        learned, calls = lessons.fit_by_rounds(FitTask(job, suite, made.system, teaches))
        asked = (job.controls.bare(one) for _, one in teaches.in_turn())
        digests = learned.about.questions or tuple(map(question_digest, asked))
        how = f"trained by {calls:,} worker calls"
    else:
        assert taught is not None, "what has nothing to learn from was refused"
        matrix = taught.whole if "whole run" in card.traits else taught.matrix
        questions, workers = matrix.scores.shape
        learned, teaches = card.methods.learn(matrix, job.experiment.seed), taught.lessons
        digests, calls = learned.about.questions, questions * workers
        how = f"trained on {questions} x {workers} worker calls"
    names = tuple(one.name for one in teaches.suites)
    if taught is not None and "whole run" in card.traits:
        names = tuple(sorted({one.id.partition("/")[0] for one in taught.whole.questions}))
    about = replace(learned.about, calls=calls, suites=names, questions=digests)
    learned = replace(learned, about=about)
    path = f"{LEARNED}/{lessons.file_name(suite.name)}/{lessons.file_name(made.system)}.npz"
    write_artifact(learned, job.request.log_dir / path)
    facts = {name: value for name, value in asdict(about).items() if name != "questions"}
    lists = {"suites": list(about.suites), "workers": list(about.workers)}
    return replace(
        made,
        args={**made.args, "learned": path, "sha256": learned.sha256},
        notes=(*made.notes, f"{how} on train questions of {', '.join(names)}"),
        learnt={**facts, **lists},
    )


def deferred_entries(job: Job, outcome: RunOutcome) -> list[Entry]:
    """Return the entries that are chosen by how others did, where they are missing."""
    made: list[Entry] = []
    for suite in job.suites:
        missing = job.missing(suite)
        if BEST_SINGLE in missing:
            best = job.controls.choose(lessons.worker_accuracies(job, suite, outcome.logs))
            size = len(job.questions(suite))
            args = {"worker": best, "chosen_on": "hindsight", "n": size}
            made.append(_late(job.entry(suite, BEST_SINGLE, args)))
        late = [one for one in missing if is_deferred(one, job)]
        if late:
            best = _best(job, suite, outcome.logs)
            runs, _ = load_runs([job.request.log_dir], recursive=False)
            here = (one for one in runs if one.facts.suite == suite.name)
            answered = {one.facts.system: (one, system_totals(one)) for one in here}
            made.extend(_matched(job, suite, one, best, answered) for one in late)
    return made


def _late(made: Entry, who: str = "") -> Entry:
    """Return what was chosen in hindsight, labelled, and never the reference row."""
    late = f"{who}chosen in hindsight, on the questions it is judged on"
    return replace(made, notes=(*made.notes, late), reference_allowed=False)


def _best(job: Job, suite: Suite[Any], logs: Sequence[EvalLog]) -> tuple[str, bool]:
    """Return the best single worker, and whether it was chosen in hindsight."""
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
        raise UserError(f"{system}: nobody it could be matched with has sat {suite.name!r}.")
    unit = system.rpartition("-")[2]
    one = _of_one_call(worker, answered, unit)
    theirs = _cost(answered[whom][1], unit)
    if not one or theirs is None:
        raise UserError(
            f"{system}: what {whom} or {worker} took in {unit} is unknown, so nothing can be "
            "matched; give every worker a price."
        )
    k = theirs / one
    args = {"worker": worker, "k": round(max(k, 1.0), 4), "matched_with": whom}
    takes = job.catalogue.parameters(job.catalogue.card(system).solver)
    seed = {"seed": answered[whom][0].facts.seed} if "seed" in takes else {}
    made = job.entry(suite, system, {**args, **seed})
    what = "list dollars" if unit == "usd" else "tokens, in and out,"
    note = f"{whom} takes {k:.2f} times the {what} of one call of {worker} on this suite"
    if k < 1:
        note = f"{note}: it is cheaper than one call, so one call stands against it"
    made = replace(made, notes=(*made.notes, note))
    return _late(made, who="its worker was ") if hindsight else made


def _cost(totals: SystemTotals, unit: str) -> float | None:
    """Return the mean of a query: list dollars, or tokens in and out."""
    if unit == "usd":
        return None if totals.usd is None else float(totals.usd)
    if totals.tokens_in is None or totals.tokens_out is None:
        return None
    return totals.tokens_in + totals.tokens_out


def _of_one_call(worker: str, answered: AnsweredRuns, unit: str) -> float | None:
    """Return what one canonical call of a worker takes on a suite: by a row that made only it."""
    for name in (BEST_SINGLE, f"{SINGLE}:{worker}"):
        found = answered.get(name)
        if found and found[0].facts.args.get("worker") == worker:
            return _cost(found[1], unit)
    return None
