"""Systems over the same suites, read from sittings: who they are, their scores and what they cost.

Seeds of one training are one contestant. Not here: what is demanded of whom (reports/targets.py).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from harness.errors import UserError
from harness.plural import counted
from harness.sittings import Sitting
from harness.totals import system_totals
from reports.intervals import question_means
from reports.reference import SINGLE, graded_values, group_of, refuse_mixed_versions
from reports.stats.arrays import Floats

Kind = Literal["trained", "single", "ensemble", "router", "bound", "other"]

ENSEMBLES = (
    "self-consistency", "moa-paper", "moa-lite", "moa-3", "self-moa", "self-reflection",
    "long-context", "best-of-n", "debate", "planner-executor-verifier",
)  # fmt: skip
"""Untrained ensembles and fixed chains, by the names of their manifests."""
ROUTER = "router-"
TRAINED = re.compile(r"conductor(-[a-z-]+)?(@.*)?")
SEEDED = re.compile(r"(?P<family>.+?)[-_/]seed-(?P<seed>\d+)(?P<rest>/.*)?")


@dataclass(frozen=True, slots=True)
class Costs:
    """Means per question over suites of equal weight; None where one is unknown."""

    usd: float | None
    worker_calls: float | None
    worker_tokens_out: float | None
    tokens: float | None
    """In and out, the conductor's own included."""


@dataclass(frozen=True)
class Contestant:
    """A system, or all seeds of one training."""

    name: str
    kind: Kind
    members: tuple[str, ...]
    """The systems that it is made of, by their names in tables."""
    scores: Mapping[str, Mapping[str, Floats]]
    """Suite -> question -> the mean grade of each member, (members,)."""
    costs: Costs
    ungraded: int
    """Questions that some member was not graded on; no comparison counts them."""

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
class Contest:
    """All that sat the same suites."""

    suites: tuple[str, ...]
    contestants: tuple[Contestant, ...]
    split: str
    pool: str
    label: str
    left_out: tuple[str, ...] = ()
    """Systems that did not sit every suite, or of which a suite has no graded question."""

    def of(self, *kinds: Kind) -> tuple[Contestant, ...]:
        """Return the contestants of some kinds."""
        return tuple(one for one in self.contestants if one.kind in kinds)

    def named(self, name: str) -> Contestant | None:
        """Return a contestant by its name."""
        return next((one for one in self.contestants if one.name == name), None)


def contest(sittings: Sequence[Sitting]) -> Contest:
    """Return the contest of some sittings; UserError where they are none, or several contests."""
    exams = [one for one in sittings if one.facts.purpose == "eval"]
    refuse_mixed_versions(exams)
    _refuse_several(exams)
    suites = tuple(sorted({one.facts.suite for one in exams}))
    groups: dict[str, dict[str, list[Sitting]]] = {}
    for one in sorted(exams, key=lambda one: _seed(one.facts.system)):
        groups.setdefault(family(one), {}).setdefault(one.facts.suite, []).append(one)
    whole = [_contestant(*one) for one in sorted(groups.items()) if _sat_all(one[1], suites)]
    graded = tuple(one for one in whole if all(one.scores.values()))
    facts = exams[0].facts
    return Contest(
        suites,
        graded,
        facts.split,
        facts.pool,
        facts.label,
        tuple(sorted(groups.keys() - {one.name for one in graded})),
    )


def _refuse_several(exams: Sequence[Sitting]) -> None:
    """Raise UserError where a suite was sat under two sets of conditions, or there are none."""
    if not exams:
        raise UserError("There is no log of an exam here; finish the run.")
    if len({group_of(one)[1:] for one in exams}) > 1:
        raise UserError(
            "Targets are for one split, pool, seed and price book, and these logs have several: "
            "name one run's directory."
        )


def _sat_all(sat: Mapping[str, Sequence[Sitting]], suites: Sequence[str]) -> bool:
    """Say whether each member sat each suite once."""
    members = {tuple(one.facts.system for one in sat.get(suite, ())) for suite in suites}
    named = members.pop()
    return not members and bool(named) and len(set(named)) == len(named)


def family(sitting: Sitting) -> str:
    """Return the contestant's name: seeds of one training, by their folders' names, share one.

    >>> _family("conductor@runs/practice-cpu-seed-1/best")
    'conductor@practice-cpu'
    """
    name, given = sitting.facts.system, sitting.facts.args
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


def _kind(one: Sitting) -> Kind:
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


def _contestant(name: str, sat: Mapping[str, Sequence[Sitting]]) -> Contestant:
    members = next(iter(sat.values()))
    scores: dict[str, Mapping[str, Floats]] = {}
    ungraded = 0
    for suite, sittings in sat.items():
        means = [question_means(graded_values(one)) for one in sittings]
        every = {one.question for sitting in sittings for one in sitting.attempts}
        common = sorted(set(means[0]).intersection(*means[1:]))
        ungraded += len(every) - len(common)
        scores[suite] = {at: np.array([one[at] for one in means]) for at in common}
    every_one = [one for sittings in sat.values() for one in sittings]
    kind, named = _kind(members[0]), tuple(one.facts.system for one in members)
    return Contestant(name, kind, named, scores, _costs(every_one), ungraded)


def _costs(sittings: Sequence[Sitting]) -> Costs:
    """Return means over suites and members; every one of them was asked the same questions."""
    totals = [system_totals(one) for one in sittings]
    calls = [_worker_calls(one) for one in sittings]
    both = [
        None if one.tokens_in is None or one.tokens_out is None else one.tokens_in + one.tokens_out
        for one in totals
    ]
    return Costs(
        _mean([None if one.usd is None else float(one.usd) for one in totals]),
        _mean(calls),
        _mean([one.worker_tokens_out for one in totals]),
        _mean(both),
    )


def _worker_calls(one: Sitting) -> float | None:
    return _mean([attempt.totals.worker_calls for attempt in one.attempts if attempt.graded])


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def asked(one: Contestant) -> str:
    """Return how many questions and seeds a contestant stands for."""
    questions = sum(len(each) for each in one.scores.values())
    return f"{counted(len(one.members), 'seed')}, {counted(questions, 'question')}"
