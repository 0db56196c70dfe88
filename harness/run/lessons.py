"""What systems learn from: train questions, single workers tried on them, and rounds of tries."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from inspect_ai.log import EvalLog

from podium.harness.errors import UserError, WorkerError, no_such
from podium.harness.learning import (
    Artifact,
    Matrix,
    Round,
    TrainingBudget,
    TrialResult,
    matrix_of_logs,
)
from podium.harness.ledger.logs import Json, naming, open_log
from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import SystemRun
from podium.harness.records import PODIUM, Question
from podium.harness.rewards.splits import load_split, overlaps
from podium.harness.run.catalogue import SINGLE, Suites
from podium.harness.run.earlier_lessons import Answers, answered, earlier_answers
from podium.harness.run.evaluate import EvalPurpose, Job, mean_score, planned_system, run_entries
from podium.harness.run.experiment import SELECTION, Entry, open_experiment
from podium.harness.suite import Split, Suite, prompt_of
from podium.harness.workflow import MAX_STEPS

TRAIN: Split = "train"


@dataclass(frozen=True, slots=True)
class TrainingQuestions:
    """What teaches for one suite."""

    suites: tuple[Suite[Any], ...]
    questions: Mapping[str, tuple[Question, ...]]
    """Suite -> its questions that no eval split of the run asks, in the suite's order."""

    def in_turn(self) -> tuple[tuple[str, Question], ...]:
        """Return suites and sealed questions, one of each in turn, so that a few are of all."""
        named = ([(name, one) for one in all_] for name, all_ in self.questions.items())
        turns = zip_longest(*named)
        return tuple((pair[0], pair[1].sealed()) for turn in turns for pair in turn if pair)


def training_suites(job: Job, suite: Suite[Any]) -> Suites:
    """Return the suites that teach for a suite; UserError for a `--train-on` that cannot teach."""
    experiment, known = job.experiment, job.catalogue.suites
    for name in experiment.train_on:
        if name not in known:
            raise no_such("suite", name, sorted(known), more=" (named by --train-on)")
        if TRAIN not in known[name].splits:
            raise UserError(f"--train-on: suite {name!r} has no train split to learn from.")
    named = [known[name] for name in experiment.train_on or (suite.name,)]
    found = [one for one in named if TRAIN in one.splits]
    if experiment.split == TRAIN and suite.name in {one.name for one in found}:
        return []  # what is learnt on the eval split itself is learnt in hindsight
    return found


def must_learn(job: Job, system: str) -> bool:
    """Say whether a system cannot run without a train split."""
    manifest = job.catalogue.card(system)
    return manifest.learns or "train" in manifest.needs


def refuse_untaught(job: Job, system: str) -> None:
    """Raise UserError where a system has nothing to learn from on some suite."""
    for suite in job.suites:
        if not training_suites(job, suite) and must_learn(job, system):
            other = "other " if suite.name in job.experiment.train_on else ""
            near = f", such as {suite.card.teacher}" if suite.card.teacher else ""
            raise UserError(
                f"{system} must learn before it can sit {suite.name!r}, and there is no train "
                f"split of it apart from the eval split: name {other}suites to learn from with "
                f"--train-on SUITE{near}."
            )


def calls_to_learn(job: Job) -> int:
    """Return the worker calls that each system of a run may spend on learning."""
    return job.experiment.train_calls or job.request.selection_limit * len(job.spec.names)


def questions_per_worker(job: Job, suites: int) -> int:
    """Return how many questions of each train split, of so many, every worker is asked alone."""
    return calls_to_learn(job) // len(job.spec.names) // suites


def refuse_too_few(job: Job) -> None:
    """Raise UserError for a budget that does not ask every worker once."""
    calls, workers = job.experiment.train_calls, len(job.spec.names)
    least = workers * max(len(job.experiment.train_on), 1)
    if calls is not None and calls < least:
        raise UserError(
            f"--train-calls {calls} does not ask each of {workers} workers once on every suite "
            f"that teaches: make it at least {least}."
        )


def questions_for(job: Job, suite: Suite[Any]) -> TrainingQuestions | None:
    """Return what teaches for a suite, without what the run asks (by id, else by text)."""
    taught = training_suites(job, suite)
    if not taught:
        return None
    names = job.experiment.suite_versions.keys() & job.catalogue.suites.keys()
    suites = [job.catalogue.suites[name] for name in sorted({*names, suite.name})]
    split = job.experiment.split
    asked = [load_split(one, split if split in one.splits else "eval") for one in suites]
    left: dict[str, tuple[Question, ...]] = {}
    for teacher in taught:
        whole = load_split(teacher, TRAIN)
        gone = {one.question for one in overlaps([whole], asked, job.controls.bare)}
        gone |= {id for one in asked if one.suite.name == teacher.name for id in one.questions}
        left[teacher.name] = tuple(q for id, q in whole.questions.items() if id not in gone)
        if not left[teacher.name]:
            raise UserError(
                f"Every train question of {teacher.name!r} is asked by a suite of this run: name "
                "other suites with --train-on."
            )
    return TrainingQuestions(tuple(taught), left)


@dataclass(frozen=True, slots=True)
class SingleScores:
    """What single workers did on the train questions of one suite."""

    best: Mapping[str, Any]  # the arguments of `best_single`
    matrix: Matrix  # workers in pool order
    lessons: TrainingQuestions
    whole: Matrix  # the same of all suites that were asked about at once


def choose_on_train(job: Job, suites: Suites) -> dict[str, SingleScores]:
    """Return what single workers did, by suite, where train questions may teach."""
    found = {suite.name: questions_for(job, suite) for suite in suites}
    teachable = {name: one for name, one in found.items() if one is not None}
    if not teachable:
        return {}
    earlier = earlier_answers(job)
    only: dict[str, tuple[str, ...]] = {}
    for one in teachable.values():
        for name, questions in asked_alone(job, one, earlier).items():
            only[name] = tuple(question.id for question in questions)
    asked = {teacher.name: teacher for one in teachable.values() for teacher in one.suites}
    log_dir = job.request.log_dir / SELECTION
    rows = [
        row
        for suite in asked.values()
        for row in left_to_ask(job, suite, only[suite.name], earlier)
    ]
    how = EvalPurpose(SELECTION, "choosing the best single worker", only)
    failed = "the best single worker could not be chosen"
    limit = max(map(len, only.values()))
    if rows:
        used = [asked[name] for name in dict.fromkeys(row.suite for row in rows)]
        _ask(job, log_dir, used, rows, how, failed, limit=limit)
    whole = _asked_in(matrix_of_logs([log_dir]), asked, only, job.spec.names)
    return {name: _taught(job, one, only, whole) for name, one in teachable.items()}


def asked_alone(
    job: Job, taught: TrainingQuestions, earlier: Answers
) -> dict[str, tuple[Question, ...]]:
    """Return what every worker is asked, by suite: what those taken over answered, if any are."""
    each = questions_per_worker(job, len(taught.suites))
    asked: dict[str, tuple[Question, ...]] = {}
    for name, questions in taught.questions.items():
        workers = answered(earlier, name).values()
        known = tuple(one for one in questions if all(one.id in ids for ids in workers))
        asked[name] = (known or questions)[:each]
    return asked


def left_to_ask(job: Job, suite: Suite[Any], ids: Sequence[str], earlier: Answers) -> list[Entry]:
    """Return the entries of the workers whose answers are not taken over."""
    known = answered(earlier, suite.name)
    rows = zip(job.spec.names, single_entries(job, suite), strict=True)
    return [row for worker, row in rows if not {*ids} <= known.get(worker, frozenset())]


def _asked_in(
    whole: Matrix, suites: Iterable[str], only: Mapping[str, Sequence[str]], names: Sequence[str]
) -> Matrix:
    """Return what a matrix of several suites holds of the questions of some."""
    ids = {f"{suite}/{id}" for suite in suites for id in only[suite]}
    return whole.where(lambda asked: asked.id in ids).with_workers(names)


def _ask(
    job: Job,
    log_dir: Path,
    suites: Suites,
    rows: Iterable[Entry],
    how: EvalPurpose,
    failed: str,
    *,
    epochs: int = 1,
    limit: int | None = None,
) -> None:
    """Ask train splits in an experiment of their own; WorkerError where one stays unanswered."""
    plan = replace(
        job.experiment,
        split=TRAIN,
        limit=limit,
        suite_limits={},
        epochs={suite.name: epochs for suite in suites},
        prompts={suite.name: prompt_of(suite) for suite in suites},
        entries=tuple(rows),
        suite_versions={suite.name: suite.version for suite in suites},
        data_revisions={suite.name: suite.data_revision for suite in suites},
    )
    outcome = run_entries(replace(job, experiment=open_experiment(log_dir, plan)), log_dir, how)
    if not outcome.finished:
        raise WorkerError(f"{failed}: {'; '.join(outcome.trouble)}")


def _taught(
    job: Job, one: TrainingQuestions, only: Mapping[str, Sequence[str]], whole: Matrix
) -> SingleScores:
    found = _asked_in(whole, (suite.name for suite in one.suites), only, job.spec.names)
    means = zip(job.spec.names, map(float, found.mean_scores()), strict=True)
    known = {name: mean for name, mean in means if not np.isnan(mean)}
    best = {"worker": job.controls.choose(known), "chosen_on": TRAIN, "n": len(found.questions)}
    return SingleScores(best, found, one, whole)


def single_entries(job: Job, suite: Suite[Any]) -> list[Entry]:
    """Return one entry per worker, in pool order."""
    return [job.entry(suite, f"{SINGLE}:{name}", {"worker": name}) for name in job.spec.names]


def worker_accuracies(job: Job, suite: Suite[Any], logs: Sequence[EvalLog]) -> dict[str, float]:
    """Return the mean grade of each worker that answered a suite alone, in pool order."""
    sums, graded = defaultdict[str, float](float), Counter[str]()
    for log in logs:
        facts: dict[str, Any] = (log.eval.metadata or {})[PODIUM]
        if facts["suite"] == suite.name and facts["system"].startswith(f"{SINGLE}:"):
            mean, samples = mean_score(log)
            worker = facts["args"]["worker"]
            graded[worker] += samples
            sums[worker] += round(mean * samples, 9)  # so that no cut decides between equals
    return {name: sums[name] / graded[name] for name in job.spec.names if graded[name]}


TUNING = "tuning"
MOST_ROUNDS = 1000  # an explorer that never has enough is wrong; nobody waits for so many


@dataclass(frozen=True, slots=True)
class FitTask:
    """One system that learns for one suite."""

    job: Job
    suite: Suite[Any]
    system: str
    lessons: TrainingQuestions

    @property
    def folder(self) -> Path:
        """Where its rounds lie."""
        names = (file_name(self.suite.name), file_name(self.system))
        return self.job.request.log_dir.joinpath(TUNING, *names)

    @property
    def spent(self) -> int:
        """Worker calls of the tries that have been made so far."""
        if not any(self.folder.glob("*/*.eval")):
            return 0
        return sum(sum(one.calls for one in read_tries(made)) for made in self.folder.iterdir())

    @property
    def given(self) -> TrainingBudget:
        """What there is to learn from, and with how much."""
        asked = self.lessons.in_turn()
        return TrainingBudget(
            questions=tuple(question for _, question in asked),
            workers=tuple(self.job.spec.names),
            calls=calls_to_learn(self.job),
            seed=self.job.experiment.seed,
            suites=tuple(suite.name for suite in self.lessons.suites),
            publishable=all(suite.publishable for suite in self.lessons.suites),
        )


def file_name(system: str) -> str:
    """Return a name as part of a path.

    >>> file_name("single:a b"), file_name("trinity@3")
    ('single_a_b', 'trinity_3')
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "_", system)


def fit_by_rounds(training: FitTask) -> tuple[Artifact, int]:
    """Return what a system has learnt by its rounds, and how many worker calls they took."""
    card, given = training.job.catalogue.card(training.system), training.given
    explorer = card.methods.explorer()
    done: list[Sequence[TrialResult]] = []
    spent = 0
    for number in range(1, MOST_ROUNDS + 1):
        wanted = explorer.next_round(given, done)
        fitting = _cut(training, given, wanted, given.calls - spent) if wanted else None
        if fitting is None:
            return explorer.learnt(given, done), spent
        tried = _run(training, number, fitting)
        spent += sum(one.calls for one in tried)
        done.append(tried)
    raise AssertionError(f"{training.system} wants more than {MOST_ROUNDS} rounds")


def _cut(training: FitTask, given: TrainingBudget, wanted: Round, left: int) -> Round | None:
    """Return a round of as many questions as the calls that are left allow; None when of none."""
    asked = given.questions[wanted.first : wanted.first + wanted.questions]
    sums = accumulate(_calls_per_question(training, wanted, asked))
    fits = sum(spent <= left for spent in sums)
    return replace(wanted, questions=fits) if fits else None


def _calls_per_question(training: FitTask, wanted: Round, asked: Sequence[Question]) -> list[int]:
    """Return the worker calls of each question of a round, by its plans; else the most they are."""
    if wanted.most_calls is not None:
        return [wanted.most_calls * wanted.epochs] * len(asked)
    from podium.harness.run.forecast import counted_all  # which only learning by tries needs here

    job = training.job
    pairs = [(one, epoch) for one in asked for epoch in range(1, wanted.epochs + 1)]
    try:
        system = planned_system(job, wanted.solver, wanted.args, job.spec)
        counts = [len(calls) for calls in counted_all(system, pairs, job.spec.names, job.spec)]
    except UserError:
        raise
    except Exception:  # its plans depend on replies
        return [MAX_STEPS * wanted.epochs] * len(asked)
    return [sum(counts[at : at + wanted.epochs]) for at in range(0, len(counts), wanted.epochs)]


def _run(training: FitTask, number: int, round_: Round) -> Sequence[TrialResult]:
    """Make the tries of a round, or read them where they have been made."""
    job, folder = training.job, training.folder / str(number)
    only: dict[str, list[str]] = {}
    asked = training.lessons.in_turn()[round_.first : round_.first + round_.questions]
    for name, question in asked:
        only.setdefault(name, []).append(question.id)
    used = [suite for suite in training.lessons.suites if suite.name in only]
    part = f"for {training.suite.name}, round {number}"
    made = (job.entry(suite, training.system, round_.args) for suite in used)
    rows = (replace(row, solver=round_.solver, part=part) for row in made)
    how = EvalPurpose(SELECTION, f"training {training.system}, round {number}", only)
    failed = f"{training.system} could not be trained"
    _ask(job, folder, used, rows, how, failed, epochs=round_.epochs)
    return read_tries(folder)


def read_tries(folder: Path) -> tuple[TrialResult, ...]:
    """Return the tries of one round, sorted by question and epoch."""
    runs, _ = load_runs([folder], recursive=False)
    found = [one for run in runs for one in _tries(run)]
    return tuple(sorted(found, key=lambda one: (one.question, one.epoch)))


def _tries(run: SystemRun) -> Iterator[TrialResult]:
    shapes: dict[tuple[str, int], Json] = {}
    with open_log(run.paths[0]) as log, naming(run.paths[0]):
        for one in log.samples():
            metadata: Json = one.get("metadata") or {}
            shapes[str(one["id"]), int(one["epoch"])] = metadata.get(PODIUM) or {}
    for attempt in run.attempts:
        shape: Json = shapes.get((attempt.question, attempt.epoch), {})
        totals = attempt.totals
        yield TrialResult(
            question=attempt.question,
            epoch=attempt.epoch,
            value=attempt.value,
            calls=attempt.steps if attempt.steps is not None else totals.calls,
            usd=None if totals.usd is None else float(totals.usd),
            plan=str(shape.get("plan") or ""),
            noted=shape.get("noted") or {},
        )
