"""Rows computed from other rows' calls, scores by part of a suite, and summaries of row blocks.

The row `self-consistency(maj@k of single:W)` is a vote over worker W's epochs. The row
`oracle-router*` knows the answers: it is a bound, not a method. Derived rows are marked and change
no other row's verdict.
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
"""Columns that a derived row copies from the row that it is computed from."""
SPENT = ("usd_per_query", "tokens_in", "tokens_out", "worker_tokens_out", "tokens_reasoning")


def derived_rows(block: Sequence[Pair], options: ReportOptions) -> list[TableRow]:
    """Return the derived rows of a block of rows, compared with the block's reference."""
    singles = [
        pair for pair in block if pair[0].system.startswith(SINGLE) and not pair[0].uses_targets
    ]
    votes = [vote for row, system_run in singles if (vote := _vote(row, system_run, options.maj))]
    routed = oracle_router([pair for pair in singles if "@" not in pair[0].system])  # no variants
    pairs = (*votes, *([routed] if routed else []))
    return [_held(block, row, values, options.equivalence) for row, values in pairs]


def _held(block: Sequence[Pair], row: TableRow, values: Values, margin: float | None) -> TableRow:
    """Return a derived row compared with the reference; Holm's p covers it and the block's rows."""
    reference = next((pair for pair in block if pair[0].verdict == "reference"), None)
    if reference is None:
        return row
    p_values = [(peer.p_value, peer.p_equivalence) for peer, _ in block if peer.p_value is not None]
    difference = intervals.difference(values, intervals.grades_of(reference[1].attempts), margin)
    if difference is None:
        return row
    peers = (replace(difference, p_value=differ, p_equivalence=equal) for differ, equal in p_values)
    family: list[Difference | None] = [difference, *peers]
    return with_difference(
        row, intervals.holm_adjusted(family)[0], (reference[0].system, reference[0].reference_rule)
    )


def _vote(row: TableRow, system_run: SystemRun, k: int | None) -> tuple[TableRow, Values] | None:
    """Return row and grades of a majority vote over k tries of a worker; None without a vote.

    The row costs as much as k tries.
    """
    majority = intervals.majority(system_run, k)
    if majority is None:
        return None
    tries, values = majority
    kind = {attempt.kind for attempt in system_run.attempts}
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
    """Return the derived row and the grades of a router that knows each question's best worker.

    Only questions graded for all workers count. None without such a question or a second worker.
    """
    if len(singles) < 2:
        return None
    block = block_arrays([system_run for _, system_run in singles])
    graded = np.asarray(~np.isnan(block.scores).any(axis=1), dtype=np.bool_)
    if not graded.any():
        return None
    unpriced = np.isnan(block.usd).all(axis=0).any()
    costs = np.nan_to_num(block.tokens if unpriced else block.usd, nan=np.inf)[graded]
    scores = block.scores[graded]
    best = scores.max(axis=1, keepdims=True)
    chosen = np.where(scores == best, costs, np.inf).argmin(axis=1)
    grades = _taken(scores, chosen)
    names = [name for name, keep in zip(block.questions, graded.tolist(), strict=True) if keep]
    values = {name: [score] for name, score in zip(names, grades.tolist(), strict=True)}
    usd, tokens = _taken(block.usd[graded], chosen), _taken(block.tokens[graded], chosen)
    nobody = int((grades == 0).sum())
    questions = "1 question" if nobody == 1 else f"{nobody} questions"
    unit = "output tokens" if unpriced else "dollars"
    return _derived_row(
        singles[0][0],
        values,
        system=ORACLE_ROUTER,
        knowledge_cutoff="; ".join(filter(None, (row.knowledge_cutoff for row, _ in singles))),
        derived=f"from {len(singles)} single workers: {ROUTED} (in {unit})",
        notes=f"uses targets; derived, no call of its own; no worker is right on {questions}, "
        "which are priced at the cheapest worker",
        usd_per_query=None if np.isnan(usd).any() else Decimal(str(round(float(usd.mean()), 12))),
        tokens_out=None if np.isnan(tokens).any() else float(tokens.mean()),
        **dict.fromkeys(("calls", "steps", "depth"), 1.0),
        uses_targets=True,
    ), values


def _taken(values: Floats, chosen: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Floats:
    return np.take_along_axis(values, chosen[:, None], axis=1)[:, 0]


def _derived_row(row: TableRow, values: Values, **columns: Any) -> TableRow:
    accuracy = intervals.accuracy_columns(values)
    columns = {name: getattr(row, name) for name in KEPT} | accuracy | columns
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
"""Maximum number of groups of questions (e.g. subjects) in a table; data files have all groups."""
RANKS = ("easy", "medium", "hard")
"""Groups of questions that come first in tables, in this order; other groups follow by name."""


@dataclass(frozen=True, slots=True)
class GroupScore:
    """One system's score on one group of a suite's questions, or its pass@k on the suite."""

    row: TableRow
    grouping: str  # `difficulty`, `platform`, `subject` or `pass@k`
    group: str  # e.g. `hard`, `atcoder` or `pass@5`.
    n: int
    value: float
    ci_low: float | None
    ci_high: float | None


USUAL = 0.1  # assumed share of questions on which two systems differ, if none are compared


@dataclass(frozen=True, slots=True)
class Frontier:
    """The Pareto frontier of accuracy and dollars: priced systems, no oracles, no hindsight."""

    questions: int  # number of questions on which all systems were graded; only they count here
    on: tuple[str, ...]  # names of the systems on the frontier, by rising cost
    corners: tuple[tuple[float, float], ...]  # of the hull: US dollars per query and accuracy
    low: float  # US dollars per query of the cheapest system
    high: float  # US dollars per query of the dearest system
    aiq: float | None  # `costs.aiq` between `low` and `high`
    aiq_singles: float | None  # the same for single workers only
    passed: CostOfPass | None  # if each question went to its cheapest right system: a bound


DRAWS_SHARED = (
    "; draws shared: rows are paired, not independent; paid dollars depend on the set of systems, "
    "list dollars do not"
)


@dataclass(frozen=True, slots=True)
class BlockSummary:
    """One block of comparable table rows, with statistical tests and remarks on the block."""

    rows: tuple[TableRow, ...]
    questions: int
    cochran: Cochran | None
    """Cochran's Q test of systems that do not see answers; None e.g. for means over epochs."""
    frontier: Frontier | None
    declared: str = ""
    """The system that the run declared for the headline before it began; empty if none."""
    shares_draws: bool = False
    """Whether systems of the block may have shared replies of workers."""

    @property
    def headline(self) -> str:
        """The block's main result, the first sentence of a report; empty if nothing is compared."""
        return headline(self.rows, self.declared)

    @property
    def said(self) -> str:
        """The note above a table: differences it can detect, and whether systems share replies."""
        return self._detectable() + (DRAWS_SHARED if self.shares_draws else "")

    @property
    def cautions(self) -> list[str]:
        """Warnings on all rows, e.g. that models may have seen the questions in training."""
        cutoffs: dict[str, str] = {}
        for row in self.rows:
            # A cutoff's source may contain `; `: each entry begins with the name of a called role.
            roles = json.loads(row.config or "{}")
            entries = (entry.partition(": ") for entry in row.knowledge_cutoff.split("; "))
            cutoffs |= {role: cutoff for role, _, cutoff in entries if role in roles}
        plain = [row for row in self.rows if not row.uses_targets]
        best = [row.accuracy for row in plain if row.accuracy is not None]
        message = saturation(best, self.questions)
        return [*cutoff_lines(self.rows[0].dates, cutoffs), *filter(None, [message])]

    def _detectable(self) -> str:
        """Return a sentence on the differences that the block's number of questions can detect."""
        tries = f", {avg_at(self.rows)}" if avg_at(self.rows) else ""
        questions = f"{self.questions} question{'' if self.questions == 1 else 's'}{tries}"
        sizes = sorted(size for row in self.rows if (size := row.min_detectable) is not None)
        if sizes:
            ends = dict.fromkeys(points(size)[1:] for size in (sizes[0], sizes[-1]))
            by = " (by system)" if len(ends) > 1 else ""
            family = sum(row.p_holm is not None for row in self.rows)
            among = f", Holm over {family} comparisons" if family > 1 else ""
            return (
                f"{questions}: differences under {' to '.join(ends)} points{by} may not show "
                f"(80 % power{among})"
            )
        reason = "one system only" if len(self.rows) == 1 else "no reference"
        if len(self.rows) > 1 and any(row.reference for row in self.rows):
            reason = "no question was graded for the reference and for another"
        if any(row.n_paired for row in self.rows):
            return (
                f"{questions}: the smallest detectable difference is unknown, because each system "
                "equals the reference or differs by the same amount on all questions"
            )
        if not self.questions:
            return f"{questions}; {reason}: nothing is compared"
        usual = points(detectable(USUAL, self.questions))[1:]
        return (
            f"{questions}; {reason}: nothing is compared (two systems that differ on 10 % of the "
            f"questions would need a difference of {usual} points)"
        )


def block_summary(block: Sequence[Pair]) -> BlockSummary:
    """Return the summary of a block of comparable rows."""
    arrays = block_arrays([system_run for _, system_run in block])
    rows = tuple(row for row, _ in block)
    once = all(row.epochs == 1 for row in rows)
    declared = {run.facts.headline for _, run in block} - {""}
    judged = arrays.scores[:, arrays.plain & ~np.isnan(arrays.scores).all(axis=0)]
    scores = judged[~np.isnan(judged).any(axis=1)]
    return BlockSummary(
        rows=rows,
        questions=len(arrays.scores),
        cochran=cochran_q(scores) if once and len(scores) else None,
        frontier=_frontier_of(rows, arrays),
        declared=declared.pop() if len(declared) == 1 else "",
        shares_draws=len(block) > 1 and any(run.facts.draws == SHARED for _, run in block),
    )


def _frontier_of(rows: Sequence[TableRow], block: BlockArrays) -> Frontier | None:
    """Return the Pareto frontier of priced systems without hindsight; None for fewer than two."""
    there, both = costs.placeable(block)
    if there.sum() < 2 or not both.any():
        return None
    names = [row.system for row, keep in zip(rows, there.tolist(), strict=True) if keep]
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
    """All contents of a report's tables; `fields` has a summary per block of comparable rows."""

    rows: tuple[TableRow, ...]
    parts: tuple[GroupScore, ...]
    fields: tuple[BlockSummary, ...] = ()
    derived: tuple[TableRow, ...] = ()
    pairs: tuple[tuple[Pair, ...], ...] = ()
    """`rows` by block, each with the system run that the row is computed from."""
    across: tuple[AcrossRow, ...] = ()
    """A row per system over all suites; empty if no two suites share label, pool and prices."""
    learning: tuple[LearningCost, ...] = ()
    """Learning costs of systems, block by block; the reference comes first in each block."""

    def blocks(self, rows: Sequence[TableRow]) -> list[tuple[str, list[GroupScore]]]:
        """Return rows' scores by grouping of questions (e.g. `subject`): (grouping, scores)."""
        chosen = [score for score in self.parts if any(score.row is row for row in rows)]
        names = (*GROUPINGS, SUBJECT, PASS_AT)
        blocks = [(name, [score for score in chosen if score.grouping == name]) for name in names]
        return [(name, scores) for name, scores in blocks if scores]


@without_collector()
def compare(system_runs: Sequence[SystemRun], options: ReportOptions = DEFAULTS) -> Comparison:
    """Return all contents of a report's tables; UserError if the runs are not comparable."""
    blocks = pair_rows(system_runs, options)
    pairs = [pair for block in blocks for pair in block]
    chosen = [run for run in system_runs if run.facts.purpose == "selection"]
    return Comparison(
        rows=tuple(row for row, _ in pairs),
        parts=tuple(score for row, system_run in pairs for score in group_scores(row, system_run)),
        fields=tuple(map(block_summary, blocks)),
        derived=tuple(row for block in blocks for row in derived_rows(block, options)),
        pairs=tuple(map(tuple, blocks)),
        across=across_rows(pairs),
        learning=tuple(cost for block in blocks for cost in learning_costs(block, chosen)),
    )


def group_scores(row: TableRow, system_run: SystemRun) -> list[GroupScore]:
    """Return a row's scores by group of questions, and its pass@k; empty if it has neither."""
    groups: list[tuple[str, str, Values]] = []
    attempts = system_run.attempts
    several = len({attempt.topic for attempt in attempts}) > 1
    groupings = (*GROUPINGS, SUBJECT) if several else GROUPINGS
    for grouping in groupings if system_run.facts.publishable else ():
        pairs = [(group, attempt) for attempt in attempts if (group := _group(attempt, grouping))]
        pairs.sort(key=lambda pair: _rank(pair[0]))
        for name, members in groupby(pairs, key=lambda pair: pair[0]):
            groups.append((grouping, name, intervals.grades_of(attempt for _, attempt in members)))
    passed = intervals.pass_at_ks(intervals.grades_of(attempts))
    groups += [(PASS_AT, f"pass@{k}", means) for k, means in passed.items()]
    scores: list[GroupScore] = []
    for grouping, name, values in groups:
        value, bounds = intervals.accuracy(values), intervals.accuracy_interval(values)
        assert value is not None, "a group has a graded question"
        assert bounds is not None, "and so an interval"
        scores.append(GroupScore(row, grouping, name, len(values), value, *bounds))
    return scores


def _group(attempt: QuestionResult, grouping: str) -> str:
    """Return a question's group (e.g. `hard`) in a grouping (e.g. `difficulty`); empty for none.

    Empty, too, for ungraded questions, and for a subject equal to another group of the question.
    """
    if not attempt.graded:
        return ""
    if grouping != SUBJECT:
        return attempt.groups.get(grouping, "")
    return "" if attempt.topic in attempt.groups.values() else attempt.topic


def largest_groups(scores: Sequence[GroupScore], limit: int) -> tuple[list[GroupScore], str]:
    """Return the scores of the `limit` largest groups; a note on left-out groups, empty if none."""
    sizes: dict[str, int] = {}
    for score in scores:
        sizes[score.group] = max(score.n, sizes.get(score.group, 0))
    top = sorted(sizes, key=lambda group: (-sizes[group], _rank(group)))[:limit]
    note = f"the {len(top)} largest of {len(sizes)} groups; table.json has all"
    return [score for score in scores if score.group in top], note if len(top) < len(sizes) else ""


def by_group(
    scores: Sequence[GroupScore],
) -> tuple[list[str], list[tuple[TableRow, list[GroupScore | None]]]]:
    """Return groups of questions in display order, and each table row with its scores by group."""
    groups = sorted({score.group for score in scores}, key=_rank)
    rows = {id(score.row): score.row for score in scores}
    cells = {(id(score.row), score.group): score for score in scores}
    return groups, [(row, [cells.get((key, name)) for name in groups]) for key, row in rows.items()]


def _rank(group: str) -> tuple[int, int, str]:
    """Return a group's sort key: easy before hard, pass@5 before pass@10, other groups by name."""
    rank = RANKS.index(group) if group in RANKS else len(RANKS)
    return (rank, len(group) if group.startswith("pass@") else 0, group)
