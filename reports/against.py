"""Compare two runs: which facts differ between them, and how each system's results differ."""

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
    """One property, such as the pool or a version, that differs between two compared runs."""

    name: str
    here: str
    against: str
    systems: tuple[str, ...]
    """The systems with this change, each with its suite, e.g. `aime25 moa-lite`."""


@dataclass(frozen=True, slots=True)
class CostChange:
    """A system's mean list dollars per query in two runs, on questions priced in both runs."""

    n: int
    here: Decimal
    against: Decimal
    interval: Bounds | None
    """95 % interval of the mean change, paired by question; None if it cannot be estimated."""

    @property
    def change(self) -> Decimal:
        """Dollars per query in the run `here` minus those in the reference run `against`."""
        return self.here - self.against


@dataclass(frozen=True, slots=True)
class ChangedVerdict:
    """A question on which a system's mean grade over epochs differs between two runs."""

    question: str
    here: float
    against: float


@dataclass(frozen=True, slots=True)
class SystemDifference:
    """One system in two runs, compared on the questions that were graded in both runs."""

    suite: str
    split: str
    system: str
    args: str
    difference: Difference
    """Accuracy in `here` minus that in `against`; `n_better` counts questions better in `here`."""
    unpaired: int
    """Number of questions that were graded in only one of the two runs."""
    cost: CostChange | None
    """Dollars per query in both runs; None if no question has a price in both."""
    changed: tuple[ChangedVerdict, ...]

    @property
    def name(self) -> str:
        """Suite and system, e.g. `aime25 moa-lite`."""
        return f"{self.suite} {self.system}"

    @property
    def tied(self) -> int:
        """Number of questions on which both runs have the same mean grade."""
        return self.difference.n_paired - self.difference.n_better - self.difference.n_worse


@dataclass(frozen=True, slots=True)
class RunDifference:
    """The comparison of the run `here` with the reference run `against`."""

    here: str
    against: str
    changes: tuple[RunChange, ...]
    systems: tuple[SystemDifference, ...]
    only_here: tuple[str, ...]
    """Systems that only the run `here` has, e.g. `aime25 moa-lite`."""
    only_against: tuple[str, ...]


def difference_of_runs(here: Sequence[Path], against: Path) -> RunDifference:
    """Compare the logs below `here` with those below `against`; UserError if a log is in both."""
    here_runs, against_runs = (_evaluated(load_runs(dirs)[0]) for dirs in (here, [against]))
    if both := _logs(here_runs) & _logs(against_runs):
        raise UserError(f"{min(both)} is on both sides of --against. Name two different runs.")
    return compare_runs(here_runs, against_runs, (", ".join(map(_place, here)), _place(against)))


def compare_runs(
    here: Sequence[SystemRun], against: Sequence[SystemRun], names: tuple[str, str]
) -> RunDifference:
    """Compare each system in two runs with itself; UserError if no question was graded in both."""
    if not {run.facts.suite for run in here} & {run.facts.suite for run in against}:
        sat = (", ".join(sorted({run.facts.suite for run in runs})) for runs in (here, against))
        raise UserError(
            "No suite is in both runs: {} here, {} there. Name runs of the same suite.".format(*sat)
        )
    pairs = _matched(here, against)
    rows = [row for pair in pairs if (row := _compared(*pair))]
    if not rows:
        raise UserError(
            f"No system was graded on the same question in both {names[0]} and {names[1]}. "
            "Name runs that share a system and questions."
        )
    family = intervals.holm_adjusted([row.difference for row in rows])
    systems = [replace(row, difference=new) for row, new in zip(rows, family, strict=True) if new]
    alone = [_alone(runs, [pair[i] for pair in pairs]) for i, runs in enumerate((here, against))]
    return RunDifference(*names, _changes(pairs), tuple(systems), *alone)


def _place(folder: Path) -> str:
    """Return a directory's name for reports: of an absolute path, only the last component."""
    return folder.name if folder.is_absolute() else folder.as_posix()


def _evaluated(system_runs: Sequence[SystemRun]) -> list[SystemRun]:
    return [run for run in system_runs if run.facts.purpose == "eval"]


def _logs(system_runs: Sequence[SystemRun]) -> set[Path]:
    return {path.resolve() for run in system_runs for path in run.paths}


def _named(system_run: SystemRun) -> str:
    return f"{system_run.facts.suite} {system_run.facts.system}"


Matched = tuple[SystemRun, SystemRun]


def _matched(here: Sequence[SystemRun], against: Sequence[SystemRun]) -> list[Matched]:
    """Pair each run of a system in `here` with the most similar run of this system in `against`."""
    candidates, pairs = list(against), list[Matched]()
    for run in sorted(here, key=lambda run: (_named(run), _arguments(run))):
        if match := counterpart(run, candidates):
            pairs.append((run, match))
            candidates.remove(match)
    return pairs


def counterpart(system_run: SystemRun, runs: Sequence[SystemRun]) -> SystemRun | None:
    """Return the most similar of `runs` on the same suite and system; None if there is none."""
    same = [candidate for candidate in runs if _sat(candidate) == _sat(system_run)]
    return max(same, key=lambda candidate: _shared(system_run, candidate), default=None)


def _sat(system_run: SystemRun) -> tuple[str, str, str]:
    facts = system_run.facts
    return facts.suite, facts.split, facts.system


def _shared(here: SystemRun, against: SystemRun) -> tuple[bool, int]:
    mine, theirs = _facts_of(here), _facts_of(against)
    return mine[ARGUMENTS] == theirs[ARGUMENTS], sum(mine[name] == theirs[name] for name in mine)


def _alone(system_runs: Sequence[SystemRun], paired: Sequence[SystemRun]) -> tuple[str, ...]:
    paired_ids = {id(run) for run in paired}
    return tuple(sorted(_named(run) for run in system_runs if id(run) not in paired_ids))


def _compared(here: SystemRun, against: SystemRun) -> SystemDifference | None:
    ours, theirs = (grades_of(run.attempts) for run in (here, against))
    difference = intervals.difference(ours, theirs)
    if difference is None:
        return None
    means, means_before = question_means(ours), question_means(theirs)
    both = sorted(means.keys() & means_before.keys())
    return SystemDifference(
        *_sat(here),
        args=_arguments(here),
        difference=difference,
        unpaired=len(means.keys() ^ means_before.keys()),
        cost=_cost_change(_costs(here), _costs(against), both),
        changed=tuple(
            ChangedVerdict(question, means[question], means_before[question])
            for question in both
            if abs(means[question] - means_before[question]) > TIE
        ),
    )


Costs = Mapping[str, Decimal]


def _costs(system_run: SystemRun) -> Costs:
    """Return question -> mean dollars over graded epochs, if all these epochs have a price."""
    by_question: dict[str, list[Decimal | None]] = {}
    for attempt in system_run.attempts:
        if attempt.graded:
            by_question.setdefault(attempt.question, []).append(attempt.totals.usd)
    priced = {name: [usd for usd in each if usd is not None] for name, each in by_question.items()}
    complete = {name: each for name, each in priced.items() if len(each) == len(by_question[name])}
    return {name: sum(each, Decimal(0)) / len(each) for name, each in complete.items()}


def _cost_change(ours: Costs, theirs: Costs, questions: Sequence[str]) -> CostChange | None:
    both = [name for name in questions if name in ours and name in theirs]
    if not both:
        return None
    here, against = (sum((usd[name] for name in both), Decimal(0)) for usd in (ours, theirs))
    spread = stats.t_interval([float(ours[name] - theirs[name]) for name in both])
    return CostChange(len(both), here / len(both), against / len(both), spread)


ARGUMENTS = "arguments"
UNSTATED = "not stated"


def _facts_of(system_run: SystemRun) -> Mapping[str, str]:
    """Return a run's properties (name -> value) in which two runs of a system may differ."""
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
        manifest = read_manifest(folder / MANIFEST)
    except UserError:  # missing, or broken: `podium manifest verify` reports how
        return None
    return manifest.podium, manifest.inspect


def _versions(log: Path) -> tuple[str, str]:
    """Return the podium and Inspect versions that a log's run manifest states, else `UNSTATED`."""
    above = log.resolve().parents[: UP + 1]
    return next(filter(None, map(_beside, above)), (UNSTATED, UNSTATED))


def _changes(pairs: Sequence[Matched]) -> tuple[RunChange, ...]:
    """Return each changed property once, with all affected systems, in the order of `_facts_of`."""
    by_change: dict[tuple[str, str, str], list[str]] = {}
    facts = [(_named(here), _facts_of(here), _facts_of(against)) for here, against in pairs]
    for name in _facts_of(pairs[0][0]) if pairs else ():
        for system, mine, theirs in facts:
            if mine[name] != theirs[name]:
                by_change.setdefault((name, mine[name], theirs[name]), []).append(system)
    return tuple(RunChange(*change, tuple(systems)) for change, systems in by_change.items())


SCHEMA = "podium-against-1"
FILE = "against.json"
NAMED = 20
"""Maximum number of questions or systems that the terminal lists; against.json has all."""
FIGURES: Columns[SystemDifference] = (
    ("system", lambda row: row.name),
    ("won", lambda row: str(row.difference.n_better)),
    ("lost", lambda row: str(row.difference.n_worse)),
    ("tied", lambda row: str(row.tied)),
    (narrow_label("paired_diff"), lambda row: points(row.difference.paired_diff)),
    (label("ci_low"), lambda row: _interval(row.difference)),
    (label("verdict"), lambda row: row.difference.verdict),
    (label("usd_per_query"), lambda row: usd(row.cost.here if row.cost else None)),
    ("other run", lambda row: usd(row.cost.against if row.cost else None)),
    ("change", lambda row: _relative(row.cost)),
)
LEFT_OUT = ("other run", "tied", label("usd_per_query"), label("ci_low"))
"""Columns that are dropped, in this order, if the terminal is too narrow."""


def write_against(dirs: Sequence[Path], against: Path, out: Path) -> tuple[str, tuple[Path, ...]]:
    """Write against.json on two runs into `out`; return text for a terminal, and file paths."""
    render.refuse_foreign(out, {FILE: f'"{SCHEMA}"'})
    runs = difference_of_runs(dirs, against)
    data = json.dumps({"schema": SCHEMA, **asdict(runs)}, indent=1, default=plain)
    return difference_text(runs), render.write_files(out, {FILE: f"{data}\n"})


def difference_text(runs: RunDifference) -> str:
    """Return the comparison of two runs as text for a terminal."""
    lines, gone = render.fitted(render.tabulate(FIGURES, runs.systems), LEFT_OUT)
    sentences = [
        f"{runs.here} against {runs.against}: each system with itself, question by question",
        *(_change_text(change, len(runs.systems)) for change in runs.changes),
    ]
    if not runs.changes:
        sentences.append("the logs state no difference between them")
    apart = ((runs.here, runs.only_here), (runs.against, runs.only_against))
    below = [f"only in {run}: {_some(names)}" for run, names in apart if names]
    below += [
        f"{system.name}: {pluralise(system.unpaired, 'question')} graded in one run only"
        for system in runs.systems
        if system.unpaired
    ]
    below += _moved(runs)
    body = [[line for text in rows for line in render.wrapped(text)] for rows in (sentences, below)]
    return "\n".join((*body[0], "", *lines, *render.left_out(gone), *body[1]))


def _some(names: Sequence[str]) -> str:
    suffix = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + suffix


def _change_text(change: RunChange, systems: int) -> str:
    whose = "" if len(change.systems) == systems else f" ({_some(change.systems)})"
    return f"{change.name}: {change.here} here, {change.against} there{whose}"


def _interval(difference: Difference) -> str:
    return render.interval(difference.paired_low, difference.paired_high, signed=True)


def _relative(cost: CostChange | None) -> str:
    if cost is None or not cost.against:
        return UNKNOWN
    return f"{100 * cost.change / cost.against:+.1f} %"


def _moved(runs: RunDifference) -> list[str]:
    """Return a sentence per system on questions won or lost, at most `NAMED` questions in all."""
    sentences, room = list[str](), NAMED
    for system in runs.systems:
        moved = [f"{q.question} {'won' if q.here > q.against else 'lost'}" for q in system.changed]
        if moved[:room]:
            sentences.append(f"{system.name}: {', '.join(moved[:room])}")
        room = max(room - len(moved), 0)
    n_more = sum(len(system.changed) for system in runs.systems) - NAMED
    return [*sentences, f"and {n_more:,} more in {FILE}"] if n_more > 0 else sentences
