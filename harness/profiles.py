"""What single workers showed on train questions: a profile of each, in counts, by suite.

Routers and the best single worker are chosen from the same calls (`--train-calls`); nothing is
asked for a profile. It is measured for one pool: other settings are another worker.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from podium.harness.errors import UserError
from podium.harness.learning import SINGLE
from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import SystemRun, mean_if_known
from podium.harness.pool_config import PoolSpec
from podium.harness.suite import moved_versions

FEWEST = 10
"""Questions from which on an accuracy says more than whether a worker can do it at all."""


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One worker on the train questions of one suite."""

    suite: str
    worker: str
    asked: int
    """Questions with a verdict."""
    right: float
    """Sum of their grades, 0 to 1 each."""
    no_answer: int
    """Graded wrong because no answer was found in the reply."""
    usd: float | None
    """Mean list dollars of a call; None if a call has no price."""
    tokens_out: float | None
    """Mean output tokens of a call; None if a call told none."""
    seconds: float | None
    """Mean seconds of a call; None if a call's are unknown."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a pool's workers showed."""

    pool: str
    label: str
    rows: tuple[ProfileRow, ...]
    """By suite, then in the pool's order."""

    @property
    def sha256(self) -> str:
        """Digest of all rows."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @property
    def notes(self) -> Iterator[str]:
        """Yield what so few calls can tell."""
        fewest: dict[int, list[str]] = defaultdict(list)
        for row in self.rows:
            if row.asked < FEWEST:
                fewest[row.asked].append(f"{row.worker} on {row.suite}")
        for asked, names in sorted(fewest.items()):
            yield (
                f"{asked} questions tell good workers from useless ones, not from each other "
                f"({', '.join(names)}): raise --train-calls."
            )


def read_profile(folder: Path, spec: PoolSpec, versions: Mapping[str, str]) -> Profile:
    """Return the profile that a run's logs hold; `versions` are those of today's graders, by suite.

    Raises `UserError` for a folder without answers of single workers to train questions, for one of
    another pool, and for verdicts of an older grader.
    """
    runs = [run for run in load_runs([folder])[0] if _is_lesson(run)]
    if not runs:
        raise UserError(
            f"{folder} has no answers of single workers to train questions. Run a system that "
            "learns, or best-single, with --train-calls."
        )
    _refuse_other_pool(folder, runs, spec)
    known = {run.facts.suite: run.facts.suite_version for run in runs}
    if moved := moved_versions(known, {name: versions.get(name, known[name]) for name in known}):
        raise UserError(f"{folder} has older verdicts: {moved}. Run podium regrade --all.")
    places = {name: at for at, name in enumerate(spec.names)}
    ordered = sorted(runs, key=lambda run: (run.facts.suite, places[_worker(run)]))
    return Profile(spec.name, spec.label, tuple(_row(run) for run in ordered))


def _is_lesson(run: SystemRun) -> bool:
    return run.facts.purpose == "selection" and run.facts.system.startswith(SINGLE)


def _worker(run: SystemRun) -> str:
    return run.facts.system.removeprefix(SINGLE)


def _refuse_other_pool(folder: Path, runs: Iterable[SystemRun], spec: PoolSpec) -> None:
    for facts in (run.facts for run in runs):
        if facts.pool_sha256 != spec.sha256:
            raise UserError(
                f"{folder} was measured on pool {facts.pool!r} ({facts.pool_sha256[:8]}), not on "
                f"{spec.name!r} ({spec.sha256[:8]}). Measure this pool with podium run."
            )


def _row(run: SystemRun) -> ProfileRow:
    graded = [one for one in run.attempts if one.value is not None]
    usd = mean_if_known([one.totals.usd for one in graded])
    return ProfileRow(
        suite=run.facts.suite,
        worker=_worker(run),
        asked=len(graded),
        right=sum(one.value or 0.0 for one in graded),
        no_answer=sum(not one.parsed for one in graded),
        usd=None if usd is None else float(usd),
        tokens_out=mean_if_known([one.totals.tokens_out for one in graded]),
        seconds=mean_if_known([one.critical_path_s for one in graded]),
    )
