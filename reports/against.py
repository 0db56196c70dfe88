"""Two runs held against each other: what changed between them, and what that did to each system."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from functools import cache
from pathlib import Path

from podium.harness.errors import UserError
from podium.harness.ledger.call import plain
from podium.harness.ledger.manifest import FILE as MANIFEST
from podium.harness.ledger.manifest import read_manifest
from podium.harness.ledger.runs import UP
from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import SystemRun
from podium.harness.text import pluralise
from podium.reports import intervals, render, stats
from podium.reports.blocks import pinned_name
from podium.reports.columns import label, narrow_label
from podium.reports.intervals import Difference, grades_of, question_means
from podium.reports.render import UNKNOWN, Columns, points, usd
from podium.reports.stats import TIE, Bounds


@dataclass(frozen=True, slots=True)
class RunChange:
    """One thing that is not the same in both runs."""

    name: str
    here: str
    against: str
    systems: tuple[str, ...]
    """Of those in both, whom it concerns, e.g. `aime25 moa-lite`."""


@dataclass(frozen=True, slots=True)
class CostChange:
    """Would-be US dollars a query, on questions whose every call has a price in both runs."""

    n: int
    here: Decimal
    against: Decimal
    interval: Bounds | None
    """Of the change, paired; None without spread."""

    @property
    def change(self) -> Decimal:
        """Dollars a query that this run costs more."""
        return self.here - self.against


@dataclass(frozen=True, slots=True)
class ChangedVerdict:
    """A question on which a system did not do as before; mean grades over epochs."""

    question: str
    here: float
    against: float


@dataclass(frozen=True, slots=True)
class SystemDifference:
    """One system in two runs, on the questions that both graded it on."""

    suite: str
    split: str
    system: str
    args: str
    difference: Difference
    """This run less the other: `n_better` are won, `n_worse` are lost; p is adjusted (Holm)."""
    unpaired: int
    """Questions that were graded in one of the runs only."""
    cost: CostChange | None
    """None where no question has a price in both."""
    changed: tuple[ChangedVerdict, ...]

    @property
    def name(self) -> str:
        """Whose it is, e.g. `aime25 moa-lite`."""
        return f"{self.suite} {self.system}"

    @property
    def tied(self) -> int:
        """Questions on which both did alike."""
        return self.difference.n_paired - self.difference.n_better - self.difference.n_worse


@dataclass(frozen=True, slots=True)
class RunDifference:
    """Two runs compared; `here` is the one that is held against the other."""

    here: str
    against: str
    changes: tuple[RunChange, ...]
    systems: tuple[SystemDifference, ...]
    only_here: tuple[str, ...]
    """Systems of the one run alone, e.g. `aime25 moa-lite`."""
    only_against: tuple[str, ...]


def difference_of_runs(here: Sequence[Path], against: Path) -> RunDifference:
    """Compare the logs below some directories with those below another."""
    one, other = (_evaluated(load_runs(dirs)[0]) for dirs in (here, [against]))
    if both := _logs(one) & _logs(other):
        raise UserError(f"{min(both)} is on both sides of --against: name two runs.")
    return compare_runs(one, other, (", ".join(map(_place, here)), _place(against)))


def compare_runs(
    here: Sequence[SystemRun], against: Sequence[SystemRun], names: tuple[str, str]
) -> RunDifference:
    """Compare the systems of two runs, each with itself; UserError where nothing is in both."""
    if not {one.facts.suite for one in here} & {one.facts.suite for one in against}:
        sat = (", ".join(sorted({one.facts.suite for one in runs})) for runs in (here, against))
        raise UserError("No suite is in both runs: {} here, {} there.".format(*sat))
    pairs = _matched(here, against)
    found = [one for pair in pairs if (one := _compared(*pair))]
    if not found:
        raise UserError(f"No system was graded on the same question in {names[0]} and {names[1]}.")
    family = intervals.holm_adjusted([one.difference for one in found])
    told = [replace(one, difference=new) for one, new in zip(found, family, strict=True) if new]
    alone = [_alone(runs, [pair[at] for pair in pairs]) for at, runs in enumerate((here, against))]
    return RunDifference(*names, _changes(pairs), tuple(told), *alone)


def _place(folder: Path) -> str:
    """Return what a directory is called; an absolute path is nobody's business."""
    return folder.name if folder.is_absolute() else folder.as_posix()


def _evaluated(system_runs: Sequence[SystemRun]) -> list[SystemRun]:
    return [one for one in system_runs if one.facts.purpose == "eval"]


def _logs(system_runs: Sequence[SystemRun]) -> set[Path]:
    return {path.resolve() for one in system_runs for path in one.paths}


def _named(system_run: SystemRun) -> str:
    return f"{system_run.facts.suite} {system_run.facts.system}"


Matched = tuple[SystemRun, SystemRun]


def _matched(here: Sequence[SystemRun], against: Sequence[SystemRun]) -> list[Matched]:
    """Return each system with itself; of several of one name those that share the most facts."""
    left, pairs = list(against), list[Matched]()
    for one in sorted(here, key=lambda one: (_named(one), _arguments(one))):
        if other := counterpart(one, left):
            pairs.append((one, other))
            left.remove(other)
    return pairs


def counterpart(one: SystemRun, runs: Sequence[SystemRun]) -> SystemRun | None:
    """Return the same system in another run, of several the most alike; None if it is not there."""
    same = [other for other in runs if _sat(other) == _sat(one)]
    return max(same, key=lambda other: _shared(one, other), default=None)


def _sat(system_run: SystemRun) -> tuple[str, str, str]:
    facts = system_run.facts
    return facts.suite, facts.split, facts.system


def _shared(one: SystemRun, other: SystemRun) -> tuple[bool, int]:
    mine, theirs = _facts_of(one), _facts_of(other)
    return mine[ARGUMENTS] == theirs[ARGUMENTS], sum(mine[name] == theirs[name] for name in mine)


def _alone(system_runs: Sequence[SystemRun], paired: Sequence[SystemRun]) -> tuple[str, ...]:
    known = {id(one) for one in paired}
    return tuple(sorted(_named(one) for one in system_runs if id(one) not in known))


def _compared(here: SystemRun, against: SystemRun) -> SystemDifference | None:
    ours, theirs = (grades_of(one.attempts) for one in (here, against))
    found = intervals.difference(ours, theirs)
    if found is None:
        return None
    means, before = question_means(ours), question_means(theirs)
    both = sorted(means.keys() & before.keys())
    return SystemDifference(
        *_sat(here),
        args=_arguments(here),
        difference=found,
        unpaired=len(means.keys() ^ before.keys()),
        cost=_cost_change(_costs(here), _costs(against), both),
        changed=tuple(
            ChangedVerdict(question, means[question], before[question])
            for question in both
            if abs(means[question] - before[question]) > TIE
        ),
    )


Costs = Mapping[str, Decimal]


def _costs(system_run: SystemRun) -> Costs:
    """Return the mean dollars of each question over its graded epochs; none that lacks a price."""
    found: dict[str, list[Decimal | None]] = {}
    for one in system_run.attempts:
        if one.graded:
            found.setdefault(one.question, []).append(one.totals.usd)
    whole = {name: [usd for usd in each if usd is not None] for name, each in found.items()}
    kept = {name: each for name, each in whole.items() if len(each) == len(found[name])}
    return {name: sum(each, Decimal(0)) / len(each) for name, each in kept.items()}


def _cost_change(ours: Costs, theirs: Costs, questions: Sequence[str]) -> CostChange | None:
    both = [one for one in questions if one in ours and one in theirs]
    if not both:
        return None
    here, against = (sum((usd[one] for one in both), Decimal(0)) for usd in (ours, theirs))
    spread = stats.t_interval([float(ours[one] - theirs[one]) for one in both])
    return CostChange(len(both), here / len(both), against / len(both), spread)


ARGUMENTS = "arguments"
UNSTATED = "not stated"


def _facts_of(system_run: SystemRun) -> Mapping[str, str]:
    """Return what two runs of a system may differ in, by name."""
    facts = system_run.facts
    podium, inspect = _versions(system_run.paths[0])
    return {
        "suite version": facts.suite_version,
        "data revision": facts.data_revision,
        "label": facts.label,
        "prompt of the suite": facts.prompt,
        "an answer whose request is too long": facts.overflows,
        "pool": pinned_name(facts.pool, facts.pool_sha256),
        "price book": pinned_name(str(facts.prices["name"]), str(facts.prices["sha256"])),
        "box": facts.box or "none",
        "podium version": podium,
        "Inspect version": inspect,
        "seed": str(facts.seed),
        "epochs": str(system_run.epochs),
        "questions": str(system_run.asked // system_run.epochs),
        ARGUMENTS: _arguments(system_run),
        "prompts of the system (sha256)": facts.prompt_sha256[:12] or "none",
    }


def _arguments(system_run: SystemRun) -> str:
    return json.dumps(dict(system_run.facts.args), sort_keys=True, ensure_ascii=False)


@cache
def _beside(folder: Path) -> tuple[str, str] | None:
    try:
        found = read_manifest(folder / MANIFEST)
    except UserError:  # there is none, or `podium manifest verify` says what is wrong with it
        return None
    return found.podium, found.inspect


def _versions(log: Path) -> tuple[str, str]:
    """Return the versions of podium and of Inspect that wrote a log, by its run's manifest."""
    above = log.resolve().parents[: UP + 1]
    return next(filter(None, map(_beside, above)), (UNSTATED, UNSTATED))


def _changes(pairs: Sequence[Matched]) -> tuple[RunChange, ...]:
    """Return each change once, with all systems that it concerns, in the order of the facts."""
    found: dict[tuple[str, str, str], list[str]] = {}
    facts = [(_named(one), _facts_of(one), _facts_of(other)) for one, other in pairs]
    for name in _facts_of(pairs[0][0]) if pairs else ():
        for system, mine, theirs in facts:
            if mine[name] != theirs[name]:
                found.setdefault((name, mine[name], theirs[name]), []).append(system)
    return tuple(RunChange(*what, tuple(systems)) for what, systems in found.items())


SCHEMA = "podium-against-1"
FILE = "against.json"
NAMED = 20
"""Questions, or systems, that are named in a terminal; the file has all."""
FIGURES: Columns[SystemDifference] = (
    ("system", lambda one: one.name),
    ("won", lambda one: str(one.difference.n_better)),
    ("lost", lambda one: str(one.difference.n_worse)),
    ("tied", lambda one: str(one.tied)),
    (narrow_label("paired_diff"), lambda one: points(one.difference.paired_diff)),
    (label("ci_low"), lambda one: _interval(one.difference)),
    (label("verdict"), lambda one: one.difference.verdict),
    (label("usd_per_query"), lambda one: usd(one.cost.here if one.cost else None)),
    ("other run", lambda one: usd(one.cost.against if one.cost else None)),
    ("change", lambda one: _relative(one.cost)),
)
LEFT_OUT = ("other run", "tied", label("usd_per_query"), label("ci_low"))
"""In this order columns give way where a terminal is too narrow."""


def write_against(dirs: Sequence[Path], against: Path, out: Path) -> tuple[str, tuple[Path, ...]]:
    """Compare two runs into `out`; return the tables for a terminal, and the files."""
    render.refuse_foreign(out, {FILE: f'"{SCHEMA}"'})
    found = difference_of_runs(dirs, against)
    data = json.dumps({"schema": SCHEMA, **asdict(found)}, indent=1, default=plain)
    return difference_text(found), render.write_files(out, {FILE: f"{data}\n"})


def difference_text(found: RunDifference) -> str:
    """Return two runs compared, for a terminal."""
    lines, gone = render.fitted(render.tabulate(FIGURES, found.systems), LEFT_OUT)
    sentences = [
        f"{found.here} against {found.against}: each system with itself, question by question",
        *(_change_text(one, len(found.systems)) for one in found.changes),
    ]
    if not found.changes:
        sentences.append("nothing that the logs state differs between them")
    apart = ((found.here, found.only_here), (found.against, found.only_against))
    below = [f"only in {run}: {_some(names)}" for run, names in apart if names]
    below += [
        f"{one.name}: {pluralise(one.unpaired, 'question')} graded in one run only"
        for one in found.systems
        if one.unpaired
    ]
    below += _moved(found)
    told = [[line for one in some for line in render.wrapped(one)] for some in (sentences, below)]
    return "\n".join((*told[0], "", *lines, *render.left_out(gone), *told[1]))


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _change_text(one: RunChange, systems: int) -> str:
    whose = "" if len(one.systems) == systems else f" ({_some(one.systems)})"
    return f"{one.name}: {one.here} here, {one.against} there{whose}"


def _interval(found: Difference) -> str:
    return render.interval(found.paired_low, found.paired_high, signed=True)


def _relative(cost: CostChange | None) -> str:
    if cost is None or not cost.against:
        return UNKNOWN
    return f"{100 * cost.change / cost.against:+.1f} %"


def _moved(found: RunDifference) -> list[str]:
    """Return the first questions whose verdict changed, a sentence for each system."""
    said, room = list[str](), NAMED
    for one in found.systems:
        moved = [f"{q.question} {'won' if q.here > q.against else 'lost'}" for q in one.changed]
        if moved[:room]:
            said.append(f"{one.name}: {', '.join(moved[:room])}")
        room = max(room - len(moved), 0)
    more = sum(len(one.changed) for one in found.systems) - NAMED
    return [*said, f"and {more:,} more in {FILE}"] if more > 0 else said
