"""What a trained conductor must reach, held against all other systems on the same suites.

    python -m tests.benchmarks.targets DIR ...      # targets.md and targets.json in DIR/report

The targets are fixed before the eval split is opened. All of several comparisons must hold for one
target to be reached, so that no single one needs a stricter level (Berger 1982, Technometrics
24(4)). A best worker or system is the best in hindsight, on the very questions: nobody is favoured
by a bad choice.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Literal

import numpy as np

from podium.harness.errors import UserError
from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import SystemRun, system_totals
from podium.harness.text import pluralise
from podium.reports import render
from podium.reports.blocks import SINGLE, group_of, refuse_mixed_versions
from podium.reports.intervals import grades_of, question_means
from podium.reports.markdown import MARK
from podium.reports.render import UNKNOWN, count, interval, percent, points, usd_about
from podium.reports.stats import Bounds, Floats
from tests.reports.crossed import CrossedMean, crossed_mean, crossed_resamples, percentile

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

    def of(self, kind: SystemKind) -> list[ScoredSystem]:
        """Return the systems of a kind."""
        return [one for one in self.systems if one.kind == kind]

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
    for one in sorted(evaluated, key=_by_seed):
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


def _by_seed(system_run: SystemRun) -> tuple[str, int]:
    seed = seed_of(system := system_run.facts.system)
    return (_family(system), int(seed) if seed.isdigit() else 0)


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
    graded = [[one for one in system_run.attempts if one.graded] for system_run in system_runs]
    calls = [render.whole_mean([one.totals.worker_calls for one in each]) for each in graded]
    both = [
        None if one.tokens_in is None or one.tokens_out is None else one.tokens_in + one.tokens_out
        for one in totals
    ]
    means = ([one.usd for one in totals], calls, [one.worker_tokens_out for one in totals], both)
    return SystemCosts(*map(render.whole_mean, means))


MARGIN = 0.02  # not inferior: less than this below
SHARE = 0.8  # of the way from the best single worker to the oracle
GAP = 0.1  # where that way is at least so long
CALLS = 0.4  # of the reference mixture's worker calls
TEMPLATE, MIXTURE, ORACLE = "template-router", "moa-lite", "oracle"


@dataclass(frozen=True, slots=True)
class SeededDifference:
    """A trained system less another one, on the questions that both were graded on."""

    other: str
    kind: SystemKind
    found: CrossedMean
    bootstrap: Bounds | None
    suites: Mapping[str, CrossedMean]
    questions: int


@dataclass(frozen=True, slots=True)
class OracleGap:
    """How much of the way from the best single worker to the oracle was gone."""

    suite: str
    best: str
    best_mean: float
    oracle_mean: float
    share: float | None  # None where there is no way to go
    interval: Bounds | None


@dataclass(frozen=True, slots=True)
class Target:
    """One demand, and what was found."""

    name: str
    wanted: str
    found: str
    reached: bool | None  # None where the logs cannot say
    short: str = ""  # by how much it was missed, and by whom


@dataclass(frozen=True, slots=True)
class TargetResult:
    """A trained system against all others."""

    who: ScoredSystem
    mean: CrossedMean
    bootstrap: Bounds | None
    suites: Mapping[str, CrossedMean]
    against: tuple[SeededDifference, ...]
    reach: tuple[OracleGap, ...]
    targets: tuple[Target, ...]


def target_results(found: ScoredSystems) -> tuple[TargetResult, ...]:
    """Return every trained system, held against all others."""
    return tuple(_target_result(found, one) for one in found.of("trained"))


def _target_result(found: ScoredSystems, who: ScoredSystem) -> TargetResult:
    # One suite's scores are (members, questions).
    strata = {suite: np.stack(list(who.scores[suite].values()), axis=1) for suite in found.suites}
    others = [one for one in found.systems if one is not who]
    against = tuple(system_difference(found.suites, who, other) for other in others)
    reach = _oracle_gaps(found, who)
    targets = (
        _superior("every single worker", "single", against),
        _superior("every untrained ensemble", "ensemble", against),
        _superior("every one-step router", "router", against),
        _not_inferior(next((one for one in against if one.other == TEMPLATE), None)),
        *(_share(one) for one in reach if one.oracle_mean - one.best_mean >= GAP),
        _calls(who, found.named(MIXTURE)),
        _undominated(who, others),
    )
    return TargetResult(who, *_over_suites(strata), against, reach, targets)


def _over_suites(
    strata: Mapping[str, Floats],
) -> tuple[CrossedMean, Bounds | None, Mapping[str, CrossedMean]]:
    every = list(strata.values())
    suites = {suite: crossed_mean([one]) for suite, one in strata.items()}
    return crossed_mean(every), percentile(crossed_resamples(every)), suites


def system_difference(
    suites: Sequence[str], who: ScoredSystem, other: ScoredSystem
) -> SeededDifference:
    """Return a trained system less another one, of which the members' mean counts."""
    deltas: dict[str, Floats] = {}
    for suite in suites:
        ours, theirs = who.scores[suite], other.scores[suite]
        both = [one for one in ours if one in theirs]
        deltas[suite] = np.stack([ours[one] - theirs[one].mean() for one in both], axis=1)
    questions = sum(one.shape[1] for one in deltas.values())
    return SeededDifference(other.name, other.kind, *_over_suites(deltas), questions)


def _oracle_gaps(found: ScoredSystems, who: ScoredSystem) -> tuple[OracleGap, ...]:
    singles, oracle = found.of("single"), found.named(ORACLE)
    if not singles or oracle is None:
        return ()
    best = max(singles, key=lambda one: one.mean)
    gaps = [_oracle_gap("", found.suites, who, (best, oracle))]
    for suite in found.suites:
        best = max(singles, key=lambda one, at=suite: one.means[at])
        gaps.append(_oracle_gap(suite, [suite], who, (best, oracle)))
    return tuple(gaps)


def _oracle_gap(
    name: str, suites: Sequence[str], who: ScoredSystem, ends: tuple[ScoredSystem, ScoredSystem]
) -> OracleGap:
    """Return the share of the way; resamples draw seeds and questions for all three alike."""
    best, oracle = ends
    strata: tuple[list[Floats], list[Floats], list[Floats]] = ([], [], [])
    for suite in suites:
        known = [one.scores[suite] for one in (who, best, oracle)]
        both = [one for one in known[0] if all(one in each for each in known)]
        for at, own in enumerate(known):
            columns = [own[one] if at == 0 else own[one][:1] for one in both]
            strata[at].append(np.stack(columns, axis=1))
    mine, low, high = (float(np.mean([one.mean() for one in each])) for each in strata)
    if high <= low:
        return OracleGap(name, best.name, low, high, None, None)
    ours, least, most = (crossed_resamples(each) for each in strata)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = percentile((ours - least) / (most - least))
    return OracleGap(name, best.name, low, high, (mine - low) / (high - low), between)


def _superior(whom: str, kind: SystemKind, against: Sequence[SeededDifference]) -> Target:
    them = [one for one in against if one.kind == kind]
    name, wanted = f"superior to {whom}", "interval above 0"
    if not them:
        return Target(name, wanted, "none of them is in these logs", None)
    low = min(them, key=_least)
    missed = sorted((one for one in them if not _least(one) > 0), key=_least)
    short = "; ".join(f"{one.other} {_said(one.found)}" for one in missed)
    found = f"nearest of {len(them)}: {low.other} {_said(low.found)}"
    return Target(name, wanted, found, not missed, short)


def _not_inferior(one: SeededDifference | None) -> Target:
    name, wanted = f"not inferior to {TEMPLATE}", f"interval above {points(-MARGIN)}"
    if one is None:
        return Target(name, wanted, "it is not in these logs", None)
    reached = _least(one) > -MARGIN
    short = "" if reached else f"by {100 * (-MARGIN - _least(one)):.1f} points"
    return Target(name, wanted, _said(one.found), reached, short)


def _share(one: OracleGap) -> Target:
    where = one.suite or "the mean over suites"
    name = f"share of oracle less {one.best} on {where}"
    between = "" if one.interval is None else f" {interval(*one.interval)}"
    share = one.share or 0.0
    gap = one.oracle_mean - one.best_mean
    found = f"{percent(share)} %{between} of {100 * gap:.1f} points"
    reached = share >= SHARE
    short = "" if reached else f"by {100 * (SHARE - share):.1f} % of that way"
    return Target(name, f"at least {percent(SHARE)} %", found, reached, short)


def _calls(who: ScoredSystem, mixture: ScoredSystem | None) -> Target:
    name, wanted = f"worker calls beside {MIXTURE}", f"at most {CALLS:g} x"
    theirs = mixture.costs.worker_calls if mixture else None
    if not theirs or who.costs.worker_calls is None:
        return Target(name, wanted, "unknown", None)
    ratio = who.costs.worker_calls / theirs
    found = f"{ratio:.2f} x ({who.costs.worker_calls:.2f} of {theirs:.2f} a question)"
    short = "" if ratio <= CALLS else f"by {ratio - CALLS:.2f} x"
    return Target(name, wanted, found, ratio <= CALLS, short)


def _undominated(who: ScoredSystem, others: Sequence[ScoredSystem]) -> Target:
    name, wanted, usd = "no baseline both cheaper and more accurate", "none", who.costs.usd
    if usd is None:
        return Target(name, wanted, "its dollars are unknown", None)
    rivals = [one for one in others if one.kind not in ("bound", "trained") and one.mean > who.mean]
    better = [one.name for one in rivals if one.costs.usd is not None and one.costs.usd < usd]
    return Target(name, wanted, ", ".join(better) or "none", not better, ", ".join(better))


def _least(one: SeededDifference) -> float:
    """Return the lower end; a difference without spread is its own."""
    return one.found.interval.low if one.found.interval else one.found.mean


def _said(found: CrossedMean) -> str:
    ends = found.interval
    return points(found.mean) + (f" {interval(*ends, signed=True)}" if ends else "")


SCHEMA = "podium-targets-1"
MARKS = {"targets.md": MARK, "targets.json": f'"{SCHEMA}"'}
VERDICT = {True: "reached", False: "missed", None: "unknown"}
HOW = """\
Every figure is a mean over suites of equal weight, and for several seeds over seeds. Intervals
(95 %) take seeds and questions as drawn: Student's t on crossed variance components; beside it
stands the two-way bootstrap, which is too short for few seeds. Singles and oracle are the best in
hindsight. A share's interval is the bootstrap's."""


def write_targets(dirs: Sequence[Path], out: Path) -> tuple[str, tuple[Path, ...]]:
    """Hold what was trained against its targets; return the text, and the files written to `out`.

    UserError for logs of several conditions, nothing trained, or foreign files in `out`.
    """
    render.refuse_foreign(out, MARKS)
    found = scored_systems(load_runs(dirs)[0])
    results = target_results(found)
    if not results:
        raise UserError(
            "Nothing that was trained sat these suites: run `conductor`, or `conductor@FOLDER` for "
            "each seed, too."
        )
    text = targets_markdown(found, results)
    contents = {"targets.md": text, "targets.json": targets_json(found, results)}
    return text, render.write_files(out, contents)


def targets_markdown(found: ScoredSystems, results: Sequence[TargetResult]) -> str:
    """Return the page: who competed, and the targets of each trained system."""
    head = (
        f"{MARK}\n# Targets\n\n{', '.join(found.suites)}; split `{found.split}`, pool "
        f"`{found.pool}` ({found.label}).\n\n{HOW}"
    )
    left = f"\nNot every suite: {', '.join(found.left_out)}." if found.left_out else ""
    parts = [head + left, _field(found), *map(_result_text, results)]
    return "\n\n".join(parts) + "\n"


def _field(found: ScoredSystems) -> str:
    heads = ("system", *found.suites, "mean", "worker calls", "worker tokens out", "all tokens",
             "USD/query", "of")  # fmt: skip
    lines = [
        (
            f"`{one.name}`" + ("\\*" if one.kind == "bound" else ""),
            *(percent(one.means.get(suite)) for suite in found.suites),
            percent(one.mean),
            count(one.costs.worker_calls, 2),
            count(one.costs.worker_tokens_out),
            count(one.costs.tokens),
            usd_about(one.costs.usd),
            _sample_size(one),
        )
        for one in sorted(found.systems, key=lambda one: -one.mean)
    ]
    return render.markdown_table([heads, *lines], left=len(heads))


def _result_text(result: TargetResult) -> str:
    who = result.who
    said = f"## `{who.name}`\n\n{_sample_size(who)}: {_sure(result.mean)}"
    if result.bootstrap:
        said += f", bootstrap {interval(*result.bootstrap)}"
    if result.mean.seed_error is not None:
        said += f"; standard error from seeds {100 * result.mean.seed_error:.1f} points"
    if who.ungraded:
        said += f"; {pluralise(who.ungraded, 'question')} without a grade of every seed"
    suites = ", ".join(f"{name} {_sure(one)}" for name, one in result.suites.items())
    parts = [f"{said}.", f"By suite: {suites}."]
    tables = list[list[Sequence[str]]]()
    if len(who.members) > 1:  # a line for each seed, so that no choice among them is hidden
        tables.append([("seed", *result.suites, "mean")])
        for seed, means in who.seeds.items():
            each = (percent(means[suite]) for suite in result.suites)
            tables[-1].append((seed, *each, percent(round(fmean(means.values()), 9))))
    tables.append([("target", "wanted", "found", "verdict", "missed by")])
    for one in result.targets:
        tables[-1].append((one.name, one.wanted, one.found, VERDICT[one.reached], one.short))
    tables.append([("less", "kind", "difference", "bootstrap", "questions")])
    for one in sorted(result.against, key=lambda one: one.found.mean):
        between = interval(*one.bootstrap, signed=True) if one.bootstrap else UNKNOWN
        line = (f"`{one.other}`", one.kind, _said(one.found), between, f"{one.questions}")
        tables[-1].append(line)
    return "\n\n".join([*parts, *(render.markdown_table(one, left=len(one[0])) for one in tables)])


def _sample_size(one: ScoredSystem) -> str:
    """Return how many questions and seeds a system stands for."""
    questions = sum(len(each) for each in one.scores.values())
    return f"{pluralise(len(one.members), 'seed')}, {pluralise(questions, 'question')}"


def _sure(found: CrossedMean) -> str:
    ends = f" {interval(*found.interval)}" if found.interval else ""
    return percent(found.mean) + ends


def targets_json(found: ScoredSystems, results: Sequence[TargetResult]) -> str:
    """Return the same as data."""
    field = [
        {
            "name": one.name,
            "kind": one.kind,
            "members": one.members,
            "mean": one.mean,
            "suites": dict(one.means),
            "ungraded": one.ungraded,
            **asdict(one.costs),
        }
        for one in found.systems
    ]
    every = [
        {
            "name": one.who.name,
            "mean": asdict(one.mean),
            "bootstrap": one.bootstrap,
            "suites": {name: asdict(each) for name, each in one.suites.items()},
            "seeds": one.who.seeds,
            "targets": [asdict(target) for target in one.targets],
            "reach": [asdict(each) for each in one.reach],
            "against": [asdict(each) for each in one.against],
        }
        for one in results
    ]
    about = {"schema": SCHEMA, "split": found.split, "pool": found.pool, "suites": found.suites}
    return render.as_json({**about, "left_out": found.left_out, "field": field, "trained": every})


def main(words: Sequence[str] | None = None) -> None:
    """Write the targets of the runs that are named, and print them."""
    ask = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    ask.add_argument("dirs", metavar="DIR", nargs="+", type=Path)
    ask.add_argument("--out", type=Path)
    asked = ask.parse_args(words)
    text, paths = write_targets(asked.dirs, asked.out or render.report_folder(asked.dirs[0]))
    print(text)
    print(f"Written: {', '.join(map(str, paths))}")


if __name__ == "__main__":
    main()
