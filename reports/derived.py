"""All that a report shows beside its rows: rows that cost no call, parts of a suite, whole blocks.

`self-consistency(maj@k of single:W)` votes over one worker's epochs; `oracle-router*` knows the
answers: a bound, and no method. Derived rows are marked, and change no other row's verdict.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from typing import Any

import numpy as np

from podium.harness.knowledge_cutoff import cutoff_lines
from podium.harness.ledger.system_runs import GROUPINGS
from podium.harness.ledger.totals import QuestionResult, SystemRun
from podium.harness.parallel import without_collector
from podium.harness.records import SHARED
from podium.reports import costs, intervals
from podium.reports.across import AcrossRow, across_rows
from podium.reports.blocks import DEFAULTS, SINGLE, ReportOptions, avg_at
from podium.reports.comparison_rows import Pair, pair_rows, with_difference
from podium.reports.costs import BlockArrays, CostOfPass, block_arrays
from podium.reports.headline import headline
from podium.reports.intervals import Difference, Values
from podium.reports.learning_cost import LearningCost, learning_costs
from podium.reports.power import saturation
from podium.reports.render import points
from podium.reports.row import TableRow
from podium.reports.stats import Cochran, Floats, cochran_q, detectable

ORACLE_ROUTER = "oracle-router*"
ROUTED = (
    "each question to the single worker with the highest mean grade; of equal ones the cheapest, "
    "also where nobody is right"
)
KEPT = (
    "suite", "suite_version", "label", "pool", "data_revision", "price_book",
    "box", "split", "dates", "seed", "time_scale", "prompt", "pool_sha256", "price_book_sha256",
    "equal",
    "price_book_date", "auditable", "box_python", "box_image", "box_image_id", "box_packages",
    "knowledge_cutoff", "uses_targets",
)  # fmt: skip
"""What a derived row shares with the row that it is made from."""
SPENT = ("usd_per_query", "tokens_in", "tokens_out", "worker_tokens_out", "tokens_reasoning")


def derived_rows(block: Sequence[Pair], wanted: ReportOptions) -> list[TableRow]:
    """Return the derived rows of one block, held against its reference as the others are."""
    singles = [
        pair for pair in block if pair[0].system.startswith(SINGLE) and not pair[0].uses_targets
    ]
    made = [one for row, system_run in singles if (one := _vote(row, system_run, wanted.maj))]
    routed = oracle_router([pair for pair in singles if "@" not in pair[0].system])  # no variants
    found = (*made, *([routed] if routed else []))
    return [_held(block, row, values, wanted.equivalence) for row, values in found]


def _held(block: Sequence[Pair], row: TableRow, values: Values, margin: float | None) -> TableRow:
    """Compare a derived row; its p-value is adjusted as one more comparison beside the others."""
    reference = next((pair for pair in block if pair[0].verdict == "reference"), None)
    if reference is None:
        return row
    others = [(one.p_value, one.p_equivalence) for one, _ in block if one.p_value is not None]
    found = intervals.difference(values, intervals.grades_of(reference[1].attempts), margin)
    if found is None:
        return row
    rest = (replace(found, p_value=differ, p_equivalence=equal) for differ, equal in others)
    family: list[Difference | None] = [found, *rest]
    return with_difference(
        row, intervals.holm_adjusted(family)[0], (reference[0].system, reference[0].reference_rule)
    )


def _vote(row: TableRow, system_run: SystemRun, k: int | None) -> tuple[TableRow, Values] | None:
    """Return a worker's majority of k tries: k calls of it at k times its cost."""
    found = intervals.majority(system_run, k)
    if found is None:
        return None
    tries, values = found
    kind = {one.kind for one in system_run.attempts}
    weak = "; programs vote by identical text" if "program" in kind else ""
    return _derived_row(
        row,
        values,
        system=f"self-consistency(maj@{tries} of {row.system})",
        derived=f"from {row.epochs} epochs of {row.system}: every {tries} of them, ties shared",
        notes=f"derived, no call of its own{weak}",
        **{
            name: None if (value := getattr(row, name)) is None else tries * value for name in SPENT
        },
        **dict.fromkeys(("calls", "steps"), float(tries)),
        depth=1.0,
        maj_k=tries,
        maj_accuracy=intervals.accuracy(values),
    ), values


def oracle_router(singles: Sequence[Pair]) -> tuple[TableRow, Values] | None:
    """Return the oracle router over the questions that every single worker was graded on."""
    if len(singles) < 2:
        return None
    block = block_arrays([system_run for _, system_run in singles])
    whole = np.asarray(~np.isnan(block.scores).any(axis=1), dtype=np.bool_)
    if not whole.any():
        return None
    unpriced = np.isnan(block.usd).all(axis=0).any()
    costs = np.nan_to_num(block.tokens if unpriced else block.usd, nan=np.inf)[whole]
    scores = block.scores[whole]
    best = scores.max(axis=1, keepdims=True)
    chosen = np.where(scores == best, costs, np.inf).argmin(axis=1)
    taken = _taken(scores, chosen)
    names = [name for name, kept in zip(block.questions, whole.tolist(), strict=True) if kept]
    values = {name: [one] for name, one in zip(names, taken.tolist(), strict=True)}
    usd, tokens = _taken(block.usd[whole], chosen), _taken(block.tokens[whole], chosen)
    nobody = int((taken == 0).sum())
    asked = "1 question" if nobody == 1 else f"{nobody} questions"
    unit = "output tokens" if unpriced else "dollars"
    return _derived_row(
        singles[0][0],
        values,
        system=ORACLE_ROUTER,
        knowledge_cutoff="; ".join(filter(None, (one.knowledge_cutoff for one, _ in singles))),
        derived=f"from {len(singles)} single workers: {ROUTED} (in {unit})",
        notes=f"uses targets; derived, no call of its own; nobody right on {asked}, "
        "billed at the cheapest worker",
        usd_per_query=None if np.isnan(usd).any() else Decimal(str(round(float(usd.mean()), 12))),
        tokens_out=None if np.isnan(tokens).any() else float(tokens.mean()),
        **dict.fromkeys(("calls", "steps", "depth"), 1.0),
        uses_targets=True,
    ), values


def _taken(values: Floats, chosen: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Floats:
    return np.take_along_axis(values, chosen[:, None], axis=1)[:, 0]


def _derived_row(row: TableRow, values: Values, **columns: Any) -> TableRow:
    own = intervals.accuracy_columns(values)
    columns = {name: getattr(row, name) for name in KEPT} | own | columns
    return TableRow(
        n_asked=len(values),
        n_graded=len(values),
        epochs=1,
        n_unparsed=0,
        config="",
        args="",
        reference_allowed=False,
        **columns,
    )


SUBJECT, PASS_AT = "subject", "pass@k"
MOST_GROUPS = 12
"""Of a grouping, so many are shown; files have all."""
RANKS = ("easy", "medium", "hard")
"""These come first and in this order; other groups follow by name."""


@dataclass(frozen=True, slots=True)
class GroupScore:
    """One system on one part of a suite, or by one reading of its tries."""

    row: TableRow
    grouping: str  # `difficulty`, `platform`, `subject` or `pass@k`
    group: str  # e.g. `hard`, `atcoder` or `pass@5`.
    n: int
    value: float
    ci_low: float | None
    ci_high: float | None


USUAL = 0.1  # share of questions on which two systems differ, where no pair says it


@dataclass(frozen=True, slots=True)
class Frontier:
    """Accuracy against dollars, over the systems that can be placed."""

    questions: int  # that all of them were graded on; nothing else places them
    on: tuple[str, ...]  # not dominated, by rising cost
    corners: tuple[tuple[float, float], ...]  # of the hull: US dollars per query and accuracy
    low: float
    high: float
    aiq: float | None
    aiq_singles: float | None
    passed: CostOfPass | None  # each question by the system that answers it most cheaply: a bound


DRAWS_SHARED = (
    "; draws shared: rows are paired, not independent; paid dollars depend on the set of systems, "
    "list dollars do not"
)


@dataclass(frozen=True, slots=True)
class BlockSummary:
    """The rows of one block, and what is said of them all."""

    rows: tuple[TableRow, ...]
    questions: int
    cochran: Cochran | None
    """On the questions that all were graded on; without hindsight and looks at targets."""
    frontier: Frontier | None
    declared: str = ""
    """The system of the headline, which was declared before the run; empty for none."""
    shares_draws: bool = False
    """Whether several rows may hold the same reply of a worker."""

    @property
    def headline(self) -> str:
        """The sentence above everything else; empty where nothing is compared."""
        return headline(self.rows, self.declared)

    @property
    def said(self) -> str:
        """The first thing to know of a table: what it can show, and if rows share replies."""
        return self._detectable() + (DRAWS_SHARED if self.shares_draws else "")

    @property
    def cautions(self) -> list[str]:
        """What limits all rows: questions that models may have read, and saturation."""
        cutoffs: dict[str, str] = {}
        for row in self.rows:
            # A source may hold the separator: only roles that were called begin an entry.
            called = json.loads(row.config or "{}")
            entries = (entry.partition(": ") for entry in row.knowledge_cutoff.split("; "))
            cutoffs |= {role: cutoff for role, _, cutoff in entries if role in called}
        plain = [row for row in self.rows if not row.uses_targets]
        best = [row.accuracy for row in plain if row.accuracy is not None]
        said = saturation(best, self.questions)
        return [*cutoff_lines(self.rows[0].dates, cutoffs), *filter(None, [said])]

    def _detectable(self) -> str:
        """Return what so many questions can show."""
        tries = f", {avg_at(self.rows)}" if avg_at(self.rows) else ""
        asked = f"{self.questions} question{'' if self.questions == 1 else 's'}{tries}"
        known = sorted(one for row in self.rows if (one := row.min_detectable) is not None)
        if known:
            ends = dict.fromkeys(points(one)[1:] for one in (known[0], known[-1]))
            by = " (by system)" if len(ends) > 1 else ""
            family = sum(row.p_holm is not None for row in self.rows)
            among = f", Holm over {family} comparisons" if family > 1 else ""
            return (
                f"{asked}: differences under {' to '.join(ends)} points{by} may not show "
                f"(80 % power{among})"
            )
        why = "one system only" if len(self.rows) == 1 else "no reference"
        if len(self.rows) > 1 and any(row.reference for row in self.rows):
            why = "no question was graded for the reference and for another"
        if any(row.n_paired for row in self.rows):
            return (
                f"{asked}: nobody differs from the reference, or on all questions alike, "
                "so what could be detected is unknown"
            )
        if not self.questions:
            return f"{asked}; {why}: nothing is compared"
        usual = points(detectable(USUAL, self.questions))[1:]
        return (
            f"{asked}; {why}: nothing is compared (two that differ on 10 % of them would "
            f"need {usual} points between them)"
        )


def block_summary(block: Sequence[Pair]) -> BlockSummary:
    """Return what holds for a block."""
    arrays = block_arrays([system_run for _, system_run in block])
    rows = tuple(row for row, _ in block)
    once = all(row.epochs == 1 for row in rows)
    declared = {run.facts.headline for _, run in block} - {""}
    judged = arrays.scores[:, arrays.plain & ~np.isnan(arrays.scores).all(axis=0)]
    whole = judged[~np.isnan(judged).any(axis=1)]
    return BlockSummary(
        rows=rows,
        questions=len(arrays.scores),
        cochran=cochran_q(whole) if once and len(whole) else None,
        frontier=_frontier_of(rows, arrays),
        declared=declared.pop() if len(declared) == 1 else "",
        shares_draws=len(block) > 1 and any(run.facts.draws == SHARED for _, run in block),
    )


def _frontier_of(rows: Sequence[TableRow], block: BlockArrays) -> Frontier | None:
    """Return the frontier of the plain systems with prices; None for fewer than two."""
    there, both = costs.placeable(block)
    if there.sum() < 2 or not both.any():
        return None
    names = [row.system for row, kept in zip(rows, there.tolist(), strict=True) if kept]
    usd, grades = block.usd[both][:, there], block.scores[both][:, there]
    prices, scores = usd.mean(axis=0), grades.mean(axis=0)
    singles = np.array([name.startswith(SINGLE) for name in names])
    low, high = float(prices.min()), float(prices.max())
    best = zip(prices.tolist(), names, costs.non_dominated(prices, scores).tolist(), strict=True)
    return Frontier(
        questions=int(both.sum()),
        on=tuple(name for _, name, on in sorted(best) if on),
        corners=tuple(costs.hull(prices, scores)),
        low=low,
        high=high,
        aiq=costs.aiq(prices, scores, low, high),
        aiq_singles=costs.aiq(prices[singles], scores[singles], low, high),
        passed=costs.frontier_cost_of_pass(usd, grades),
    )


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that tables show of some system runs; parts, fields and derived go block by block."""

    rows: tuple[TableRow, ...]
    parts: tuple[GroupScore, ...]
    fields: tuple[BlockSummary, ...] = ()
    derived: tuple[TableRow, ...] = ()
    pairs: tuple[tuple[Pair, ...], ...] = ()
    """The rows again, block by block, each with what it is made from."""
    across: tuple[AcrossRow, ...] = ()
    """Systems over all suites; none where no two suites share label, pool and price book."""
    learning: tuple[LearningCost, ...] = ()
    """What learning cost, block by block; the reference comes first."""

    def blocks(self, rows: Sequence[TableRow]) -> list[tuple[str, list[GroupScore]]]:
        """Return the parts of some rows, one entry for each grouping that they have."""
        chosen = [part for part in self.parts if any(part.row is row for row in rows)]
        names = (*GROUPINGS, SUBJECT, PASS_AT)
        found = [(name, [part for part in chosen if part.grouping == name]) for name in names]
        return [(name, parts) for name, parts in found if parts]


@without_collector()
def compare(system_runs: Sequence[SystemRun], wanted: ReportOptions = DEFAULTS) -> Comparison:
    """Return rows and parts; UserError when the rows are no comparison."""
    blocks = pair_rows(system_runs, wanted)
    pairs = [pair for block in blocks for pair in block]
    chosen = [one for one in system_runs if one.facts.purpose == "selection"]
    return Comparison(
        rows=tuple(row for row, _ in pairs),
        parts=tuple(part for row, system_run in pairs for part in group_scores(row, system_run)),
        fields=tuple(map(block_summary, blocks)),
        derived=tuple(row for block in blocks for row in derived_rows(block, wanted)),
        pairs=tuple(map(tuple, blocks)),
        across=across_rows(pairs),
        learning=tuple(one for block in blocks for one in learning_costs(block, chosen)),
    )


def group_scores(row: TableRow, system_run: SystemRun) -> list[GroupScore]:
    """Return the parts of one row; none where questions belong to nothing and were asked once."""
    found: list[tuple[str, str, Values]] = []
    several = len({one.topic for one in system_run.attempts}) > 1
    groupings = (*GROUPINGS, SUBJECT) if several else GROUPINGS
    for grouping in groupings if system_run.facts.publishable else ():
        named = [(group, one) for one in system_run.attempts if (group := _group(one, grouping))]
        named.sort(key=lambda pair: _rank(pair[0]))
        for name, members in groupby(named, key=lambda pair: pair[0]):
            found.append((grouping, name, intervals.grades_of(one for _, one in members)))
    passed = intervals.pass_at_ks(intervals.grades_of(system_run.attempts))
    found += [(PASS_AT, f"pass@{k}", means) for k, means in passed.items()]
    parts: list[GroupScore] = []
    for grouping, name, values in found:
        value, bounds = intervals.accuracy(values), intervals.accuracy_interval(values)
        assert value is not None, "a group has a graded question"
        assert bounds is not None, "and so an interval"
        parts.append(GroupScore(row, grouping, name, len(values), value, *bounds))
    return parts


def _group(one: QuestionResult, grouping: str) -> str:
    """Return a graded question's group; no subject where that is its difficulty by another name."""
    if not one.graded:
        return ""
    if grouping != SUBJECT:
        return one.groups.get(grouping, "")
    return "" if one.topic in one.groups.values() else one.topic


def largest_groups(parts: Sequence[GroupScore], most: int) -> tuple[list[GroupScore], str]:
    """Return the parts of the groups with most questions, and a line on those left out."""
    sizes: dict[str, int] = {}
    for part in parts:
        sizes[part.group] = max(part.n, sizes.get(part.group, 0))
    kept = sorted(sizes, key=lambda group: (-sizes[group], _rank(group)))[:most]
    said = f"the {len(kept)} largest of {len(sizes)} groups; table.json has all"
    return [part for part in parts if part.group in kept], said if len(kept) < len(sizes) else ""


def by_group(
    parts: Sequence[GroupScore],
) -> tuple[list[str], list[tuple[TableRow, list[GroupScore | None]]]]:
    """Return the groups of a grouping as they are shown, and what each row has in them."""
    groups = sorted({part.group for part in parts}, key=_rank)
    rows = {id(part.row): part.row for part in parts}
    found = {(id(part.row), part.group): part for part in parts}
    return groups, [(row, [found.get((at, one)) for one in groups]) for at, row in rows.items()]


def _rank(group: str) -> tuple[int, int, str]:
    """Sort easy before hard, and pass@5 before pass@10."""
    rank = RANKS.index(group) if group in RANKS else len(RANKS)
    return (rank, len(group) if group.startswith("pass@") else 0, group)
