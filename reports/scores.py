"""Systems over the same suites: scores by seed and question, costs, and means over both.

Seeds and questions are both draws, as where every reader reads every case: an interval over
questions alone would speak of these seeds only.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from harness.errors import UserError
from harness.ledger.totals import SystemRun, system_totals
from harness.text import pluralise
from reports.blocks import SINGLE, group_of, refuse_mixed_versions
from reports.intervals import grades_of, question_means
from reports.render import whole_mean
from reports.stats import LEVEL, RESAMPLES, SEED, Bounds, Floats, resampled_counts, t_quantile


@dataclass(frozen=True, slots=True)
class CrossedMean:
    """A mean over strata of equal weight, and how sure it is."""

    mean: float
    interval: Bounds | None
    """Seeds and questions both vary; with one seed, questions alone. None without spread."""
    seeds: int
    seed_error: float | None  # share of the standard error that comes from seeds; None for one seed
    question_error: float


def crossed_mean(strata: Sequence[Floats]) -> CrossedMean:
    """Return the mean of (seeds, questions) arrays, one per stratum, with Student's interval.

    Variances of seed means and question means are added, less their interaction, which is in both;
    degrees of freedom as in Satterthwaite (1946, Biometrics Bulletin 2(6)), for two crossed random
    factors as in Obuchowski and Rockette (1995) with Hillis's (2007) denominator: of three seeds a
    bootstrap's intervals are too short. ValueError for no stratum, a gap or no questions.
    """
    _refuse_gaps(strata)
    seeds, weight = strata[0].shape[0], 1 / len(strata)
    mean = float(np.mean([one.mean() for one in strata]))
    parts = [weight**2 * _variance(one.mean(axis=0)) / one.shape[1] for one in strata]
    of_questions = sum(parts)
    if seeds == 1:
        of_seeds, shared = 0.0, 0.0
    else:
        of_seeds = _variance(np.mean([one.mean(axis=1) for one in strata], axis=0)) / seeds
        shared = sum(weight**2 * _interaction(one) for one in strata)
    variance = max(of_seeds + of_questions - shared, of_seeds, of_questions)
    sizes = [one.shape[1] - 1 for one in strata]
    loose = sum(part**2 / max(1, size) for part, size in zip(parts, sizes, strict=True))
    loose += of_seeds**2 / max(1, seeds - 1)
    found = None
    if variance > 0:
        half = t_quantile((1 + LEVEL) / 2, variance**2 / loose) * variance**0.5
        found = Bounds(mean - half, mean + half)
    error = None if seeds == 1 else of_seeds**0.5
    return CrossedMean(mean, found, seeds, error, of_questions**0.5)


def crossed_resamples(
    strata: Sequence[Floats], resamples: int = RESAMPLES, seed: int = SEED
) -> Floats:
    """Return the mean in each resample of seeds and, within strata, of questions: (resamples,).

    Both are drawn independently: the pigeonhole bootstrap (Owen 2007, Annals of Applied Statistics
    1(2)). Strata of the same sizes see the same draws: two systems may be subtracted or divided.
    """
    _refuse_gaps(strata)
    drawn = resampled_counts(strata[0].shape[0], resamples, seed) / strata[0].shape[0]
    total = np.zeros(resamples)
    for at, one in enumerate(strata):
        questions = resampled_counts(one.shape[1], resamples, seed + 1 + at) / one.shape[1]
        total += ((drawn @ one) * questions).sum(axis=1)
    return total / len(strata)


def percentile(values: Floats) -> Bounds | None:
    """Return the interval that holds the middle of the resamples; None where one is no number."""
    if not values.size or not np.isfinite(values).all():
        return None
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Bounds(float(low), float(high))


def _variance(values: Floats) -> float:
    return float(values.var(ddof=1)) if values.size > 1 else 0.0


def _interaction(values: Floats) -> float:
    seeds, questions = values.shape
    if questions < 2:
        return 0.0
    rest = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    return float((rest**2).sum()) / ((seeds - 1) * (questions - 1)) / (seeds * questions)


def _refuse_gaps(strata: Sequence[Floats]) -> None:
    if not strata or any(not one.size or np.isnan(one).any() for one in strata):
        raise ValueError("each stratum needs a value of every seed on every question")


SystemKind = Literal["trained", "single", "ensemble", "router", "bound", "other"]

ENSEMBLES = (
    "self-consistency", "moa-paper", "moa-lite", "moa-3", "self-moa", "self-reflection",
    "long-context", "best-of-n", "debate", "planner-executor-verifier",
)  # fmt: skip
"""Untrained ensembles and fixed chains, by the names of their manifests."""
ROUTER = "router-"
TRAINED = re.compile(r"conductor(-[a-z-]+)?(@.*)?")
SEEDED = re.compile(r"(?P<family>.+?)[-_/]seed-(?P<seed>\d+)(?P<rest>/.*)?")


@dataclass(frozen=True, slots=True)
class SystemCosts:
    """Means per question over suites of equal weight; None where one is unknown."""

    usd: float | None
    worker_calls: float | None
    worker_tokens_out: float | None
    tokens: float | None


@dataclass(frozen=True)
class ScoredSystem:
    """A system, or all seeds of one training."""

    name: str
    kind: SystemKind
    members: tuple[str, ...]
    scores: Mapping[str, Mapping[str, Floats]]
    """Suite -> question -> the mean grade of each member, (members,)."""
    costs: SystemCosts
    ungraded: int  # questions that some member was not graded on; no comparison counts them

    @cached_property
    def means(self) -> Mapping[str, float]:
        """Suite -> mean over its questions and members."""
        return {name: float(np.mean(list(one.values()))) for name, one in self.scores.items()}

    @property
    def mean(self) -> float:
        """Mean over suites, each of the same weight."""
        return float(np.mean(list(self.means.values())))

    @cached_property
    def seeds(self) -> Mapping[str, Mapping[str, float]]:
        """Seed (a member's name where it has none) -> suite -> mean over its questions."""
        rows = {name: np.stack(list(one.values())) for name, one in self.scores.items()}
        return {
            seed_of(member): {name: float(one[:, at].mean()) for name, one in rows.items()}
            for at, member in enumerate(self.members)
        }


@dataclass(frozen=True, slots=True)
class ScoredSystems:
    """All that sat the same suites."""

    suites: tuple[str, ...]
    systems: tuple[ScoredSystem, ...]
    split: str
    pool: str
    label: str
    left_out: tuple[str, ...] = ()
    """Systems without every suite, or of which a suite has no graded question."""

    def of(self, *kinds: SystemKind) -> tuple[ScoredSystem, ...]:
        """Return the systems of some kinds."""
        return tuple(one for one in self.systems if one.kind in kinds)

    def named(self, name: str) -> ScoredSystem | None:
        """Return a system by its name."""
        return next((one for one in self.systems if one.name == name), None)


def scored_systems(system_runs: Sequence[SystemRun]) -> ScoredSystems:
    """Return the comparison of some system runs; UserError for none, or for several."""
    evaluated = [one for one in system_runs if one.facts.purpose == "eval"]
    refuse_mixed_versions(evaluated)
    if not evaluated:
        raise UserError("There is no log of a suite here; finish the run.")
    if len({group_of(one)[1:] for one in evaluated}) > 1:
        raise UserError(
            "Targets are for one split, pool, seed and price book, and these logs have several: "
            "name one run's directory."
        )
    suites = tuple(sorted({one.facts.suite for one in evaluated}))
    groups: dict[str, dict[str, list[SystemRun]]] = {}
    for one in sorted(evaluated, key=lambda one: _seed(one.facts.system)):
        groups.setdefault(training_family(one), {}).setdefault(one.facts.suite, []).append(one)
    whole = [_system_row(*one) for one in sorted(groups.items()) if _sat_all(one[1], suites)]
    graded = tuple(one for one in whole if all(one.scores.values()))
    facts = evaluated[0].facts
    left_out = tuple(sorted(groups.keys() - {one.name for one in graded}))
    return ScoredSystems(suites, graded, facts.split, facts.pool, facts.label, left_out)


def _sat_all(sat: Mapping[str, Sequence[SystemRun]], suites: Sequence[str]) -> bool:
    members = {tuple(one.facts.system for one in sat.get(suite, ())) for suite in suites}
    named = members.pop()
    return not members and bool(named) and len(set(named)) == len(named)


def training_family(system_run: SystemRun) -> str:
    """Return the system's name: seeds of one training, by their folders' names, share one.

    >>> _family("conductor@runs/practice-cpu-seed-1/best")
    'conductor@practice-cpu'
    """
    name, given = system_run.facts.system, system_run.facts.args
    own = {key: given[key] for key in ("shown", "order", "shown_seed") if key in given}
    said = " ".join(f"{key}={value}" for key, value in own.items())
    return f"{_family(name)} {said}".rstrip()


def _family(system: str) -> str:
    name, at, folder = system.partition("@")
    found = SEEDED.fullmatch(folder)
    if not at or not found or not TRAINED.fullmatch(system):
        return system
    rest = (found["rest"] or "").removesuffix("/best").replace("/", " ").strip()
    return f"{name}@{found['family'].rpartition('/')[2]}" + (f" ({rest})" if rest else "")


def seed_of(system: str) -> str:
    """Return the seed that a checkpoint's folder names, else the system's name.

    >>> seed_of("conductor@runs/practice-cpu-seed-1/best")
    '1'
    """
    found = SEEDED.fullmatch(system.partition("@")[2])
    return found["seed"] if found else system


def _seed(system: str) -> tuple[str, int]:
    found = SEEDED.fullmatch(system.partition("@")[2])
    return (_family(system), int(found["seed"]) if found else 0)


def _kind(one: SystemRun) -> SystemKind:
    facts = one.facts
    base = facts.system.partition("@")[0]
    if facts.uses_targets:
        return "bound"
    if "checkpoint" in facts.args and TRAINED.fullmatch(facts.system):
        return "trained"
    if base.startswith(SINGLE) or base == "best-single":
        return "single"
    if base in ENSEMBLES:
        return "ensemble"
    return "router" if base.startswith(ROUTER) and facts.calls_expected == (1, 1) else "other"


def _system_row(name: str, sat: Mapping[str, Sequence[SystemRun]]) -> ScoredSystem:
    members = next(iter(sat.values()))
    scores: dict[str, Mapping[str, Floats]] = {}
    ungraded = 0
    for suite, system_runs in sat.items():
        means = [question_means(grades_of(one.attempts)) for one in system_runs]
        every = {one.question for system_run in system_runs for one in system_run.attempts}
        common = sorted(set(means[0]).intersection(*means[1:]))
        ungraded += len(every) - len(common)
        scores[suite] = {at: np.array([one[at] for one in means]) for at in common}
    every_one = [one for system_runs in sat.values() for one in system_runs]
    kind, named = _kind(members[0]), tuple(one.facts.system for one in members)
    return ScoredSystem(name, kind, named, scores, _costs(every_one), ungraded)


def _costs(system_runs: Sequence[SystemRun]) -> SystemCosts:
    totals = [system_totals(one) for one in system_runs]
    calls = [
        whole_mean([attempt.totals.worker_calls for attempt in one.attempts if attempt.graded])
        for one in system_runs
    ]
    both = [
        None if one.tokens_in is None or one.tokens_out is None else one.tokens_in + one.tokens_out
        for one in totals
    ]
    worker_tokens = [one.worker_tokens_out for one in totals]
    return SystemCosts(*map(whole_mean, ([one.usd for one in totals], calls, worker_tokens, both)))


def sample_size(one: ScoredSystem) -> str:
    """Return how many questions and seeds a system stands for."""
    questions = sum(len(each) for each in one.scores.values())
    return f"{pluralise(len(one.members), 'seed')}, {pluralise(questions, 'question')}"
