"""Learning by trying: the rounds of a `Manifest.explorer`, as Inspect samples with a budget.

A round is an experiment of its own below `LOG_DIR/tuning/EXAM/SYSTEM/ROUND`: logged, priced,
journaled at the root of the run, billed apart from every table row. A finished round is read from
its logs, an interrupted one goes on, so the same command learns the same. What is tried is each
baseline's own; what may teach is harness/learning/teaching.py.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from harness.compose import entry, manifest_key
from harness.errors import UserError, WorkerError
from harness.estimate.plans import counted_all
from harness.experiment import Entry, Experiment, open_experiment
from harness.job import Job, Sat, run_entries
from harness.learning.exploring import Curriculum, Round, Tried
from harness.learning.learned import Learned
from harness.learning.teaching import Lessons, calls_to_learn
from harness.ledger.raw_log import Json, naming, open_log
from harness.place import Place, standing_at
from harness.records import PODIUM, Question
from harness.selection import SELECTION, learning_experiment
from harness.sittings import Sitting, read_sittings
from harness.solver import system_of
from harness.suite import Suite
from harness.workflow import MAX_STEPS

TUNING = "tuning"
MOST_ROUNDS = 1000
"""An explorer that never has enough is wrong; nobody waits for so many."""


@dataclass(frozen=True, slots=True)
class Training:
    """One system that learns for one exam."""

    job: Job
    experiment: Experiment
    exam: Suite[Any]
    system: str
    lessons: Lessons

    @property
    def folder(self) -> Path:
        """Where its rounds lie."""
        names = (file_name(self.exam.name), file_name(self.system))
        return self.job.request.log_dir.joinpath(TUNING, *names)

    @property
    def spent(self) -> int:
        """Worker calls of the tries that have been made so far."""
        if not any(self.folder.glob("*/*.eval")):
            return 0
        return sum(sum(one.calls for one in read_tries(made)) for made in self.folder.iterdir())

    @property
    def given(self) -> Curriculum:
        """What there is to learn from, and with how much."""
        asked = self.lessons.in_turn()
        workers = tuple(self.job.spec.names)
        limit = self.job.request.selection_limit
        return Curriculum(
            questions=tuple(question for _, question in asked),
            workers=workers,
            calls=calls_to_learn(self.experiment, limit, len(workers)),
            seed=self.experiment.seed,
            suites=tuple(suite.name for suite in self.lessons.suites),
            publishable=all(suite.publishable for suite in self.lessons.suites),
        )


def file_name(system: str) -> str:
    """Return a name as part of a path.

    >>> file_name("single:a b"), file_name("trinity@3")
    ('single_a_b', 'trinity_3')
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "_", system)


def learn_by_trying(training: Training) -> tuple[Learned, int]:
    """Return what a system has learnt by its rounds, and how many worker calls they took.

    No round is begun that could pass the budget: it is cut to the questions that fit. WorkerError
    when a try stays without a reply; what has been answered is kept.
    """
    manifest = training.job.catalogue.systems[manifest_key(training.system)]
    assert manifest.explorer is not None, "only systems with an explorer are trained so"
    explorer, given = manifest.explorer(), training.given
    done: list[Sequence[Tried]] = []
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


def _cut(training: Training, given: Curriculum, wanted: Round, left: int) -> Round | None:
    """Return a round of as many questions as the calls that are left allow; None when of none."""
    asked = given.questions[wanted.first : wanted.first + wanted.questions]
    each = _calls_per_question(training, wanted, asked)
    fits = 0
    for calls in each:
        if calls > left:
            break
        left -= calls
        fits += 1
    return replace(wanted, questions=fits) if fits else None


def _calls_per_question(
    training: Training, wanted: Round, asked: Sequence[Question]
) -> Sequence[int]:
    """Return the worker calls of each question of a round, by its plans; else the most they are."""
    if wanted.most_calls is not None:
        return [wanted.most_calls * wanted.epochs] * len(asked)
    job = training.job
    pairs = [(one, epoch) for one in asked for epoch in range(1, wanted.epochs + 1)]
    try:
        with standing_at(Place(job.request.log_dir, job.spec)):
            args = {**wanted.args, "pool": job.spec.name}
            system = system_of(lambda: job.catalogue.solver(wanted.solver, args))
        counts = [len(calls) for calls in counted_all(system, pairs, job.spec.names, job.spec)]
    except UserError:
        raise
    except Exception:  # its plans depend on replies
        return [MAX_STEPS * wanted.epochs] * len(asked)
    return [sum(counts[at : at + wanted.epochs]) for at in range(0, len(counts), wanted.epochs)]


def _run(training: Training, number: int, round_: Round) -> Sequence[Tried]:
    """Make the tries of one round, or read them where they have been made."""
    job, folder = training.job, training.folder / str(number)
    only = _questions(training.lessons, round_)
    used = [suite for suite in training.lessons.suites if suite.name in only]
    part = f"for {training.exam.name}, round {number}"
    rows = [_entry(training, suite, round_, part) for suite in used]
    plan = learning_experiment(training.experiment, used, rows)
    plan = replace(plan, epochs={suite.name: round_.epochs for suite in used})
    title = f"training {training.system}, round {number}"
    outcome = run_entries(job, open_experiment(folder, plan), folder, Sat(SELECTION, title, only))
    if not outcome.finished:
        reasons = "; ".join(outcome.trouble)
        raise WorkerError(f"{training.system} could not be trained: {reasons}")
    return read_tries(folder)


def _entry(training: Training, suite: Suite[Any], round_: Round, part: str) -> Entry:
    made = entry(suite.name, training.system, training.job.catalogue, round_.args)
    return replace(made, solver=round_.solver, part=part)


def _questions(lessons: Lessons, round_: Round) -> Mapping[str, Sequence[str]]:
    """Return suite -> ids of the questions of a round."""
    found: dict[str, list[str]] = {}
    for name, question in lessons.in_turn()[round_.first : round_.first + round_.questions]:
        found.setdefault(name, []).append(question.id)
    return found


def read_tries(folder: Path) -> tuple[Tried, ...]:
    """Return the tries of one round, sorted by question and epoch."""
    sittings, _ = read_sittings([folder], recursive=False)
    found = [one for sitting in sittings for one in _tries(sitting)]
    return tuple(sorted(found, key=lambda one: (one.question, one.epoch)))


def _tries(sitting: Sitting) -> list[Tried]:
    shapes = _shapes(sitting.paths[0])
    found: list[Tried] = []
    for attempt in sitting.attempts:
        shape = shapes.get((attempt.question, attempt.epoch), {})
        totals = attempt.totals
        found.append(
            Tried(
                question=attempt.question,
                epoch=attempt.epoch,
                value=attempt.value,
                calls=attempt.steps if attempt.steps is not None else totals.calls,
                usd=None if totals.usd is None else float(totals.usd),
                plan=str(shape.get("plan") or ""),
                noted=cast(Mapping[str, Any], shape.get("noted") or {}),
            )
        )
    return found


def _shapes(path: Path) -> dict[tuple[str, int], Json]:
    """Return what each sample's system wrote down of its work."""
    with open_log(path) as log, naming(path):
        return {(str(one["id"]), int(one["epoch"])): _shape(one) for one in log.samples()}


def _shape(sample: Json) -> Json:
    metadata: Json = sample.get("metadata") or {}
    return cast(Json, metadata.get(PODIUM) or {})
