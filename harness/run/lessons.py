"""Data for systems that learn: train questions, single workers' answers, and training rounds."""

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
    """The train questions from which systems learn for one suite."""

    suites: tuple[Suite[Any], ...]
    questions: Mapping[str, tuple[Question, ...]]
    """Suite -> its train questions that no eval split of the run contains, in the suite's order."""

    def in_turn(self) -> tuple[tuple[str, Question], ...]:
        """Return (suite, question without target) pairs, one of each suite in turn."""
        columns = ([(name, question) for question in all_] for name, all_ in self.questions.items())
        turns = zip_longest(*columns)
        return tuple((pair[0], pair[1].sealed()) for turn in turns for pair in turn if pair)


def training_suites(job: Job, suite: Suite[Any]) -> Suites:
    """Return the suites to learn from for `suite`; UserError for a wrong `--train-on` suite."""
    experiment, suites = job.experiment, job.catalogue.suites
    for name in experiment.train_on:
        if name not in suites:
            raise no_such("suite", name, sorted(suites), more=" (named by --train-on)")
        if TRAIN not in suites[name].splits:
            raise UserError(f"--train-on: suite {name!r} has no train split. Name another suite.")
    teachers = [suites[name] for name in experiment.train_on or (suite.name,)]
    usable = [teacher for teacher in teachers if TRAIN in teacher.splits]
    if experiment.split == TRAIN and suite.name in {teacher.name for teacher in usable}:
        return []  # learning on the evaluated split itself would be learning in hindsight
    return usable


def must_learn(job: Job, system: str) -> bool:
    """Return whether a system cannot run without a train split."""
    manifest = job.catalogue.card(system)
    return manifest.learns or "train" in manifest.needs


def refuse_untaught(job: Job, system: str) -> None:
    """Raise UserError if a system must be trained, but a suite has no train questions for it."""
    for suite in job.suites:
        if not training_suites(job, suite) and must_learn(job, system):
            word = "other " if suite.name in job.experiment.train_on else ""
            near = f", such as {suite.card.teacher}" if suite.card.teacher else ""
            raise UserError(
                f"{system} must be trained before it runs on {suite.name!r}, but that suite has no "
                f"train split separate from its eval split. Name {word}suites to learn from with "
                f"--train-on SUITE{near}."
            )


def calls_to_learn(job: Job) -> int:
    """Return the maximum worker calls that each system of a run uses for learning."""
    return job.experiment.train_calls or job.request.selection_limit * len(job.spec.names)


def questions_per_worker(job: Job, suites: int) -> int:
    """Return how many train questions each worker answers alone, on each of `suites` suites."""
    return calls_to_learn(job) // len(job.spec.names) // suites


def refuse_too_few(job: Job) -> None:
    """Raise UserError if the training budget is less than one call per worker and suite."""
    calls, workers = job.experiment.train_calls, len(job.spec.names)
    least = workers * max(len(job.experiment.train_on), 1)
    if calls is not None and calls < least:
        raise UserError(
            f"--train-calls {calls} is too low: each of {workers} workers needs one call on every "
            f"suite that is learnt from. Set at least {least}."
        )


def questions_for(job: Job, suite: Suite[Any]) -> TrainingQuestions | None:
    """Return train questions for a suite that the run does not ask; None if no suite has any."""
    taught = training_suites(job, suite)
    if not taught:
        return None
    names = job.experiment.suite_versions.keys() & job.catalogue.suites.keys()
    suites = [job.catalogue.suites[name] for name in sorted({*names, suite.name})]
    split = job.experiment.split
    splits = [load_split(peer, split if split in peer.splits else "eval") for peer in suites]
    trains = [load_split(teacher, TRAIN) for teacher in taught]
    shared = overlaps(trains, splits, job.controls.bare)
    asked = {(overlap.suite, overlap.question) for overlap in shared}
    asked |= {(each.suite.name, id) for each in splits for id in each.questions}
    usable: dict[str, tuple[Question, ...]] = {}
    for train in trains:
        teacher, questions = train.suite, train.questions.items()
        usable[teacher.name] = tuple(q for id, q in questions if (teacher.name, id) not in asked)
        if not usable[teacher.name]:
            raise UserError(
                f"Every train question of {teacher.name!r} is also a question of this run. Name "
                "other suites with --train-on."
            )
    return TrainingQuestions(tuple(taught), usable)


@dataclass(frozen=True, slots=True)
class SingleScores:
    """Scores of single workers on the train questions of one suite."""

    best: Mapping[str, Any]  # arguments of the solver `best_single`
    matrix: Matrix  # scores of (question, worker), in pool order
    lessons: TrainingQuestions
    whole: Matrix  # as `matrix`, over all suites asked together


def choose_on_train(job: Job, suites: Suites) -> dict[str, SingleScores]:
    """Return suite -> single workers' scores on train questions; ask for missing answers first."""
    by_suite = {suite.name: questions_for(job, suite) for suite in suites}
    teachable = {name: lesson for name, lesson in by_suite.items() if lesson is not None}
    if not teachable:
        return {}
    earlier = earlier_answers(job)
    only: dict[str, tuple[str, ...]] = {}
    for lesson in teachable.values():
        for name, questions in asked_alone(job, lesson, earlier).items():
            only[name] = tuple(question.id for question in questions)
    teachers = {teacher.name: teacher for lesson in teachable.values() for teacher in lesson.suites}
    log_dir = job.request.log_dir / SELECTION
    rows = [
        row
        for suite in teachers.values()
        for row in left_to_ask(job, suite, only[suite.name], earlier)
    ]
    purpose = EvalPurpose(SELECTION, "choosing the best single worker", only)
    failed = "the best single worker could not be chosen"
    limit = max(map(len, only.values()))
    if rows:
        used = [teachers[name] for name in dict.fromkeys(row.suite for row in rows)]
        _ask(job, log_dir, used, rows, purpose, failed, limit=limit)
    joint = _asked_in(matrix_of_logs([log_dir]), teachers, only, job.spec.names)
    return {name: _taught(job, lesson, only, joint) for name, lesson in teachable.items()}


def asked_alone(
    job: Job, taught: TrainingQuestions, earlier: Answers
) -> dict[str, tuple[Question, ...]]:
    """Return suite -> train questions for all workers, if possible those with reusable answers."""
    each = questions_per_worker(job, len(taught.suites))
    by_suite: dict[str, tuple[Question, ...]] = {}
    for name, questions in taught.questions.items():
        workers = answered(earlier, name).values()
        reusable = tuple(q for q in questions if all(q.id in ids for ids in workers))
        by_suite[name] = (reusable or questions)[:each]
    return by_suite


def left_to_ask(job: Job, suite: Suite[Any], ids: Sequence[str], earlier: Answers) -> list[Entry]:
    """Return an entry per worker whose reused answers do not cover the questions `ids`."""
    by_worker = answered(earlier, suite.name)
    rows = zip(job.spec.names, single_entries(job, suite), strict=True)
    return [row for worker, row in rows if not {*ids} <= by_worker.get(worker, frozenset())]


def _asked_in(
    matrix: Matrix, suites: Iterable[str], only: Mapping[str, Sequence[str]], names: Sequence[str]
) -> Matrix:
    """Return the part of a score matrix for the workers `names` and the chosen questions."""
    ids = {f"{suite}/{id}" for suite in suites for id in only[suite]}
    return matrix.where(lambda question: question.id in ids).with_workers(names)


def _ask(
    job: Job,
    log_dir: Path,
    suites: Suites,
    rows: Iterable[Entry],
    purpose: EvalPurpose,
    failed: str,
    *,
    epochs: int = 1,
    limit: int | None = None,
) -> None:
    """Ask train questions in an experiment in `log_dir`; WorkerError if one stays unanswered."""
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
    outcome = run_entries(replace(job, experiment=open_experiment(log_dir, plan)), log_dir, purpose)
    if not outcome.finished:
        reasons = "; ".join(outcome.trouble)
        raise WorkerError(
            f"{failed}: {reasons}. The same command asks only the remaining questions."
        )


def _taught(
    job: Job, lesson: TrainingQuestions, only: Mapping[str, Sequence[str]], joint: Matrix
) -> SingleScores:
    matrix = _asked_in(joint, (suite.name for suite in lesson.suites), only, job.spec.names)
    means = zip(job.spec.names, map(float, matrix.mean_scores()), strict=True)
    scores = {name: mean for name, mean in means if not np.isnan(mean)}
    best = {"worker": job.controls.choose(scores), "chosen_on": TRAIN, "n": len(matrix.questions)}
    return SingleScores(best, matrix, lesson, joint)


def single_entries(job: Job, suite: Suite[Any]) -> list[Entry]:
    """Return an entry for each worker that answers a suite alone, in pool order."""
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
            sums[worker] += round(mean * samples, 9)  # so that ties hold for any split into logs
    return {name: sums[name] / graded[name] for name in job.spec.names if graded[name]}


TUNING = "tuning"
MOST_ROUNDS = 1000  # maximum rounds of a training; more are a bug


@dataclass(frozen=True, slots=True)
class FitTask:
    """The training of one system for one suite."""

    job: Job
    suite: Suite[Any]
    system: str
    lessons: TrainingQuestions

    @property
    def folder(self) -> Path:
        """The directory of the training's rounds."""
        names = (file_name(self.suite.name), file_name(self.system))
        return self.job.request.log_dir.joinpath(TUNING, *names)

    @property
    def spent(self) -> int:
        """Worker calls of all training attempts so far."""
        if not any(self.folder.glob("*/*.eval")):
            return 0
        return sum(trial.calls for path in self.folder.iterdir() for trial in read_tries(path))

    @property
    def given(self) -> TrainingBudget:
        """The questions, workers and maximum calls of the training."""
        pairs = self.lessons.in_turn()
        return TrainingBudget(
            questions=tuple(question for _, question in pairs),
            workers=tuple(self.job.spec.names),
            calls=calls_to_learn(self.job),
            seed=self.job.experiment.seed,
            suites=tuple(suite.name for suite in self.lessons.suites),
            publishable=all(suite.publishable for suite in self.lessons.suites),
        )


def file_name(system: str) -> str:
    """Return a name with only characters that are safe in a path.

    >>> file_name("single:a b"), file_name("trinity@3")
    ('single_a_b', 'trinity_3')
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "_", system)


def fit_by_rounds(training: FitTask) -> tuple[Artifact, int]:
    """Train a system round by round; return what it learnt (an artefact) and its worker calls."""
    card, budget = training.job.catalogue.card(training.system), training.given
    explorer = card.methods.explorer()
    rounds: list[Sequence[TrialResult]] = []
    spent = 0
    for number in range(1, MOST_ROUNDS + 1):
        round_ = explorer.next_round(budget, rounds)
        fitting = _cut(training, budget, round_, budget.calls - spent) if round_ else None
        if fitting is None:
            return explorer.learnt(budget, rounds), spent
        tried = _run(training, number, fitting)
        spent += sum(trial.calls for trial in tried)
        rounds.append(tried)
    raise AssertionError(f"{training.system} wants more than {MOST_ROUNDS} rounds")


def _cut(training: FitTask, budget: TrainingBudget, round_: Round, remaining: int) -> Round | None:
    """Return a training round, cut to the questions that remaining calls allow; None if zero."""
    questions = budget.questions[round_.first : round_.first + round_.questions]
    sums = accumulate(_calls_per_question(training, round_, questions))
    fits = sum(spent <= remaining for spent in sums)
    return replace(round_, questions=fits) if fits else None


def _calls_per_question(task: FitTask, round_: Round, questions: Sequence[Question]) -> list[int]:
    """Return each question's worker calls in a training round; if unknown, their maximum."""
    if round_.most_calls is not None:
        return [round_.most_calls * round_.epochs] * len(questions)
    from podium.harness.run.forecast import counted_all  # only training rounds need this

    job = task.job
    pairs = [(question, epoch) for question in questions for epoch in range(1, round_.epochs + 1)]
    try:
        system = planned_system(job, round_.solver, round_.args, job.spec)
        counts = [len(calls) for calls in counted_all(system, pairs, job.spec.names, job.spec)]
    except UserError:
        raise
    except Exception:  # its plans depend on replies
        return [MAX_STEPS * round_.epochs] * len(questions)
    size = round_.epochs
    return [sum(counts[start : start + size]) for start in range(0, len(counts), size)]


def _run(training: FitTask, number: int, round_: Round) -> Sequence[TrialResult]:
    """Ask the questions of a training round that are not yet answered; return all its results."""
    job, folder = training.job, training.folder / str(number)
    only: dict[str, list[str]] = {}
    questions = training.lessons.in_turn()[round_.first : round_.first + round_.questions]
    for name, question in questions:
        only.setdefault(name, []).append(question.id)
    used = [suite for suite in training.lessons.suites if suite.name in only]
    label = f"for {training.suite.name}, round {number}"
    drafts = (job.entry(suite, training.system, round_.args) for suite in used)
    rows = (replace(row, solver=round_.solver, part=label) for row in drafts)
    purpose = EvalPurpose(SELECTION, f"training {training.system}, round {number}", only)
    failed = f"{training.system} could not be trained"
    _ask(job, folder, used, rows, purpose, failed, epochs=round_.epochs)
    return read_tries(folder)


def read_tries(folder: Path) -> tuple[TrialResult, ...]:
    """Read the results of a training round from its directory, sorted by question and epoch."""
    runs, _ = load_runs([folder], recursive=False)
    trials = [trial for run in runs for trial in _tries(run)]
    return tuple(sorted(trials, key=lambda trial: (trial.question, trial.epoch)))


def _tries(run: SystemRun) -> Iterator[TrialResult]:
    shapes: dict[tuple[str, int], Json] = {}
    with open_log(run.paths[0]) as log, naming(run.paths[0]):
        for sample in log.samples():
            metadata: Json = sample.get("metadata") or {}
            shapes[str(sample["id"]), int(sample["epoch"])] = metadata.get(PODIUM) or {}
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
