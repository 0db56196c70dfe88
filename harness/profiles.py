"""Profiles of single workers: counts of their results on train questions.

A profile needs no extra calls: it counts the calls that train routers and choose the best single
worker (`--train-calls`). It is valid for one pool only, because other settings make another worker.
Reports show profiles by suite; planners read them by kind of question, over all suites of a run.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import default_rng

from podium.harness.errors import UserError
from podium.harness.learning import SINGLE, Arrays, Floats, Matrix, matrix_of_logs
from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import SystemRun, mean_if_known
from podium.harness.pool_config import PoolSpec
from podium.harness.question_kinds import Labels, TrainKinds, find_kinds
from podium.harness.suite import moved_versions

EARLIER = "earlier"
"""Name of the folder with answers reused from another run (harness/run/earlier_lessons.py)."""
FEWEST = 10
"""Minimum questions to compare workers by accuracy; fewer only reveal useless workers."""


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """Results of one worker on the train questions of one suite."""

    suite: str
    worker: str
    asked: int
    """Number of the worker's graded replies."""
    right: float
    """Sum of the grades of the worker's replies, each from 0 to 1."""
    no_answer: int
    """Number of questions graded wrong because no answer was found in the reply."""
    usd: float | None
    """Mean dollars of a call, at list price; None if a call has no price."""
    tokens_out: float | None
    """Mean output tokens of a call; None if one call reported no usage."""
    seconds: float | None
    """Mean seconds of a call; None if the time of one call is unknown."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The profiles of a pool's workers, with a row per worker and suite."""

    pool: str
    label: str
    rows: tuple[ProfileRow, ...]
    """The results of each worker on each suite, sorted by suite, then in the pool's order."""

    @property
    def sha256(self) -> str:
        """SHA-256 of the profile: its pool, label and rows, as JSON."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @property
    def notes(self) -> Iterator[str]:
        """Yield warnings on workers that answered too few train questions of a suite."""
        fewest: dict[int, list[str]] = defaultdict(list)
        for row in self.rows:
            if row.asked < FEWEST:
                fewest[row.asked].append(f"{row.worker} on {row.suite}")
        for count, names in sorted(fewest.items()):
            yield (
                f"{count} questions separate good workers from useless ones, but not from each "
                f"other ({', '.join(names)}): raise --train-calls."
            )


def read_profile(folder: Path, spec: PoolSpec, versions: Mapping[str, str]) -> Profile:
    """Return the profile of workers from a run's logs; `versions` has each suite's grader version.

    Raises `UserError` if a folder has no answers of single workers to train questions, is of
    another pool, or has verdicts of an older grader.
    """
    runs = lessons_in(folder)
    _refuse_other_pool(folder, runs, spec)
    refuse_older_graders(folder, runs, versions)
    places = {name: index for index, name in enumerate(spec.names)}
    ordered = sorted(runs, key=lambda run: (run.facts.suite, places[worker_of(run)]))
    return Profile(spec.name, spec.label, tuple(_row(run) for run in ordered))


NO_LESSONS = (
    "{} has no answers of single workers to train questions. Run a system that learns, or "
    "best-single, with --train-calls."
)


def lessons_in(folder: Path) -> list[SystemRun]:
    """Return the runs of single workers on train questions below a folder; UserError if none."""
    runs = [run for run in load_runs([folder])[0] if _is_lesson(run)]
    if not runs:
        raise UserError(NO_LESSONS.format(folder))
    return runs


def _is_lesson(run: SystemRun) -> bool:
    return run.facts.purpose == "selection" and run.facts.system.startswith(SINGLE)


def refuse_older_graders(
    folder: Path, runs: Iterable[SystemRun], versions: Mapping[str, str]
) -> None:
    """Raise UserError if a suite's answers were not graded by its grader version in `versions`."""
    used = {run.facts.suite: run.facts.suite_version for run in runs}
    if moved := moved_versions(used, {name: versions.get(name, used[name]) for name in used}):
        raise UserError(f"{folder} has older verdicts: {moved}. Run podium regrade --all {folder}.")


def worker_of(run: SystemRun) -> str:
    """Return the name of the worker that answered alone in a run of `single:WORKER`."""
    return run.facts.system.removeprefix(SINGLE)


def _refuse_other_pool(folder: Path, runs: Iterable[SystemRun], spec: PoolSpec) -> None:
    measured = (run.facts for run in runs if run.paths[0].parent.name != EARLIER)
    for facts in measured:  # reused answers were checked when they were copied
        if facts.pool_sha256 != spec.sha256:
            raise UserError(
                f"{folder} was measured on pool {facts.pool!r} ({facts.pool_sha256[:8]}), not on "
                f"{spec.name!r} ({spec.sha256[:8]}). Measure this pool with podium run."
            )


def _row(run: SystemRun) -> ProfileRow:
    graded = [attempt for attempt in run.attempts if attempt.value is not None]
    usd = mean_if_known([attempt.totals.usd for attempt in graded])
    return ProfileRow(
        suite=run.facts.suite,
        worker=worker_of(run),
        asked=len(graded),
        right=sum(attempt.value or 0.0 for attempt in graded),
        no_answer=sum(not attempt.parsed for attempt in graded),
        usd=None if usd is None else float(usd),
        tokens_out=mean_if_known([attempt.totals.tokens_out for attempt in graded]),
        seconds=mean_if_known([attempt.critical_path_s for attempt in graded]),
    )


def measured_in(folder: Path, workers: Sequence[str], seed: int = 0) -> "ProfileTable":
    """Return the workers' profiles by kind of question, over all suites with logs in `folder`."""
    taught = matrix_of_logs([folder]).where(lambda question: question.split == "train")
    return measure_table(taught.with_workers(workers), seed)


MEANS = ("usd", "tokens_out", "seconds")
COUNTS = ("asked", "right", "no_answer")


@dataclass(frozen=True, slots=True)
class ProfileTable:
    """Workers' results by kind (cluster) of train question: arrays of shape (kinds, workers)."""

    kinds: TrainKinds
    asked: Floats  # graded replies
    right: Floats  # sum of their grades
    no_answer: Floats  # replies in which no answer was found
    usd: Floats  # mean list dollars of a call; NaN if unknown, as in all means
    tokens_out: Floats
    seconds: Floats

    @property
    def mean(self) -> Floats:
        """Workers' accuracies by kind, with a uniform prior: (right + 1) / (asked + 2)."""
        return (self.right + 1) / (self.asked + 2)

    @property
    def spread(self) -> Floats:
        """Standard deviation of the workers' accuracies by kind (of a Beta distribution)."""
        return np.sqrt(self.mean * (1 - self.mean) / (self.asked + 3))

    def of_workers(self, order: Sequence[int]) -> "ProfileTable":
        """Return the profiles of the workers with the indices `order`, in that order."""
        return replace(self, **{name: getattr(self, name)[:, order] for name in (*COUNTS, *MEANS)})

    def shuffled(self, seed: int) -> "ProfileTable":
        """Return the profiles permuted, as a control, so that no worker keeps its own profile."""
        order = default_rng(seed).permutation(self.asked.shape[1])
        source = np.empty_like(order)
        source[order] = np.roll(order, 1)
        return self.of_workers(source.tolist())

    def arrays(self) -> Arrays:
        """Return the arrays to store with a trained system; they contain no words of questions."""
        numbers = {name: getattr(self, name) for name in (*COUNTS, *MEANS)}
        return {**self.kinds.arrays(), **numbers}


def table_of_arrays(arrays: Arrays) -> ProfileTable:
    """Return the profiles in a trained system's arrays; KeyError if they have none."""
    kinds = TrainKinds(arrays["centres"], arrays["forms"], arrays["lengths"])
    return ProfileTable(kinds, **{name: arrays[name] for name in (*COUNTS, *MEANS)})


def measure_table(matrix: Matrix, seed: int) -> ProfileTable:
    """Return the profiles from single workers' scores, by kinds found in the train questions."""
    # Ids of logs name the suite; other ids do not, and would make each question a suite.
    suites = ["/".join(question.id.split("/", 1)[:-1]) for question in matrix.questions]
    kinds = find_kinds(matrix.questions, suites, seed)
    unknown = np.full(matrix.scores.shape, np.nan)
    columns = {"usd": matrix.usd, "tokens_out": matrix.tokens_out, "seconds": matrix.seconds}
    means = {name: unknown if values is None else values for name, values in columns.items()}
    missing = unknown if matrix.no_answer is None else matrix.no_answer
    labels = kinds.of(matrix.questions)
    return count_by_kind(kinds, labels, matrix.scores, missing, means)


def count_by_kind(
    kinds: TrainKinds,
    labels: Labels,
    scores: Floats,
    no_answer: Floats,
    means: Mapping[str, Floats],
) -> ProfileTable:
    """Return the profiles from (questions, workers) arrays; `labels` has each question's kind."""
    belongs = (np.arange(len(kinds))[:, None] == labels[None]).astype(np.float64)
    graded = ~np.isnan(scores)

    def sums(values: Floats, mask: Any) -> Floats:
        return belongs @ np.where(mask, values, 0.0)

    def mean(values: Floats) -> Floats:
        counts = belongs @ (~np.isnan(values)).astype(np.float64)
        total, empty = sums(values, ~np.isnan(values)), np.full(counts.shape, np.nan)
        return np.divide(total, counts, out=empty, where=counts > 0)

    return ProfileTable(
        kinds,
        asked=belongs @ graded.astype(np.float64),
        right=sums(scores, graded),
        no_answer=sums(no_answer, graded & ~np.isnan(no_answer)),
        **{name: mean(means[name]) for name in MEANS},
    )
