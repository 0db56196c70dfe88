"""The cost of learning: dollars per query with selection and training included, and break-even.

For systems that learnt or were chosen: a best single worker and systems that use it, learned
routers, tuned thresholds, trained conductors. Dollars are computed for all attempts at the row's
price book, paid or not. Dollars on train questions come from the run's logs below `selection/` and
`tuning/`; dollars of released conductors from trainings.csv, made from their training logs.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cache
from importlib.resources import files
from math import ceil

from podium.harness.ledger.totals import SystemRun, total
from podium.harness.shards.plan import parent_of
from podium.reports.blocks import SINGLE
from podium.reports.columns import label
from podium.reports.comparison_rows import Pair
from podium.reports.intervals import accuracy, grades_of
from podium.reports.render import Columns, figures_table, tabulate, usd
from podium.reports.row import TableRow

QUERIES = (100, 1_000, 10_000)
"""The numbers of queries for which a system's dollars are shown."""
REFERENCE, AT_ONCE, NEVER, UNKNOWN = "reference", "at once", "never", "unknown"
TAUGHT = re.compile(r"train questions of (.+)$")
"""Matches a run's note (from harness/run) on the other suites that a system learnt from."""


@dataclass(frozen=True, slots=True)
class LearningCost:
    """Learning cost of a system that learnt or was chosen, or of the reference row of its block."""

    row: TableRow
    usd: Decimal | None
    """Dollars of learning; 0 for a reference that was fixed before the run, None if unknown."""
    what: str
    """What the system learnt from, or why the dollars are unknown."""
    usd_at: tuple[Decimal | None, ...]
    """Dollars per query with learning included, after each number of queries in `QUERIES`."""
    break_even: int | None
    """Number of queries from which it costs no more than the reference; None: never or unknown."""
    versus: str
    """`break_even` in words: number, `at once`, `never`, `unknown`, `reference`, `no reference`."""


@dataclass(frozen=True, slots=True)
class _Learnt:
    usd: Decimal | None
    what: str


def learning_costs(block: Sequence[Pair], selections: Sequence[SystemRun]) -> list[LearningCost]:
    """Return the learning cost of rows whose system learnt or was chosen, the reference first."""
    learners = [(row, _learnt(system_run, selections)) for row, system_run in block]
    if not any(learnt for _, learnt in learners):
        return []
    base = next((pair for pair in learners if pair[0].verdict == REFERENCE), None)
    ref = base and (base[0], base[1] or _Learnt(Decimal(0), "nothing: chosen before the run"))
    peers = [(row, learnt) for row, learnt in learners if learnt and not (base and row is base[0])]
    return [_cost(row, learnt, ref) for row, learnt in ([ref] if ref else []) + peers]


def _cost(row: TableRow, learnt: _Learnt, base: tuple[TableRow, _Learnt] | None) -> LearningCost:
    each = row.usd_per_query
    exact = None not in (learnt.usd, each)
    costs = tuple((each or 0) + (learnt.usd or Decimal(0)) / n if exact else None for n in QUERIES)
    if base and row is base[0]:
        return LearningCost(row, learnt.usd, learnt.what, costs, None, REFERENCE)
    queries, text = _break_even((learnt.usd, each), base)
    return LearningCost(row, learnt.usd, learnt.what, costs, queries, text)


def _break_even(
    costs: tuple[Decimal | None, Decimal | None], base: tuple[TableRow, _Learnt] | None
) -> tuple[int | None, str]:
    if base is None:
        return None, "no reference"
    (learning, each), (base_learning, base_each) = costs, (base[1].usd, base[0].usd_per_query)
    if each is not None and base_each is not None and each > base_each:
        return None, NEVER
    if learning is None or each is None or base_learning is None or base_each is None:
        return None, UNKNOWN
    if each == base_each:
        return (0, AT_ONCE) if learning < base_learning else (None, NEVER)
    if learning <= base_learning:
        return 0, AT_ONCE
    queries = ceil((learning - base_learning) / (base_each - each))
    return queries, f"{queries:,} queries"


def _learnt(system_run: SystemRun, selections: Sequence[SystemRun]) -> _Learnt | None:
    """Return the cost of a system's learning; None if it did not learn and was not chosen."""
    facts = system_run.facts
    if facts.uses_targets or not facts.reference_allowed or facts.system.startswith(SINGLE):
        return None
    trained = _training(facts.args, str(facts.prices["sha256"]))
    if trained and "learned" not in facts.args:
        return trained
    noted = [match[1].split(", ") for note in facts.notes if (match := TAUGHT.search(note))]
    tried = _tried(system_run, selections, noted[0] if noted else [facts.suite])
    alone = [run for run in tried if run.facts.system.startswith(SINGLE)]
    if "learned" in facts.args and not noted:
        return _Learnt(None, "learnt before this run: no log here states its dollars")
    if "learned" in facts.args:
        same = [run for run in tried if run.facts.system == facts.system]
        return _both(_summed(same or alone, "worker calls on train questions"), trained)
    if facts.args.get("chosen_on") == "train":
        return _summed(alone, "the best single worker, chosen on train questions")
    worker = facts.args.get("worker", facts.args.get("aggregator"))
    if worker is not None and worker in _best_of(alone):
        return _summed(alone, f"its worker {worker}, chosen on train questions")
    return None


def _summed(tried: Sequence[SystemRun], source: str) -> _Learnt:
    if not tried:
        return _Learnt(None, f"{source}: logs not found")
    calls = total(tally for run in tried for tally in run.spend.values())
    suites = ", ".join(sorted({run.facts.suite for run in tried}))
    text = f"{source} of {suites} ({calls.calls:,} calls)"
    unpriced = "" if calls.listed is not None else ", some without a price"
    return _Learnt(calls.listed, text + unpriced)


def _tried(
    system_run: SystemRun, selections: Sequence[SystemRun], suites: Sequence[str]
) -> list[SystemRun]:
    """Return the runs on `suites` that a system learnt from, all below its own log directory."""
    folder = system_run.paths[0].parent
    home = parent_of(folder) or folder
    runs: list[SystemRun] = []
    for run in selections:
        path = run.paths[0]
        below = path.relative_to(home).parts if path.is_relative_to(home) else ("", "")
        taught = below[0] == "selection" or below[:2] == ("tuning", system_run.facts.suite)
        if taught and run.facts.suite in suites:
            runs.append(run)
    return runs


def _best_of(alone: Sequence[SystemRun]) -> set[object]:
    """Return the workers with the highest accuracy on train questions; several if they tie."""
    grades: dict[object, dict[str, list[float]]] = {}
    for run in alone:
        by_question = grades_of(run.attempts).items()
        results = {f"{run.facts.suite}/{question}": values for question, values in by_question}
        grades.setdefault(run.facts.args.get("worker"), {}).update(results)
    means = {worker: accuracy(values) or 0.0 for worker, values in grades.items()}
    return {worker for worker, mean in means.items() if mean == max(means.values())}


@cache
def trainings() -> Mapping[str, Mapping[str, str]]:
    """Return sha256 of a checkpoint -> the line of trainings.csv on its training's cost."""
    text = files("podium.reports").joinpath("trainings.csv").read_text(encoding="utf-8")
    return {row["checkpoint_sha256"]: row for row in csv.DictReader(text.splitlines())}


def _both(learnt: _Learnt, trained: _Learnt | None) -> _Learnt:
    if trained is None:
        return learnt
    dollars = (learnt.usd, trained.usd)
    usd = None if None in dollars else sum((amount for amount in dollars if amount), Decimal(0))
    return _Learnt(usd, f"{learnt.what}; {trained.what}")


def _training(args: Mapping[str, object], book: str) -> _Learnt | None:
    if "checkpoint" not in args:
        return None
    training = trainings().get(str(args.get("checkpoint_sha256", args.get("sha256"))))
    if training is None:
        return _Learnt(None, f"training of {args['checkpoint']}: no log here states its dollars")
    dollars, source = Decimal(training["usd"]), training["what"]
    if dollars and training["price_book_sha256"] != book:
        return _Learnt(None, f"{source}; priced at another price book")
    return _Learnt(dollars, source)


SAID = (
    "Would-be dollars of all calls that a system learnt from, every attempt included, and its "
    "dollars per query if that number of queries shares them. *cheaper from*: the number of "
    "queries from which its total is below the reference's, whose own learning counts as well. A "
    "training counts in full on each suite."
)
TABLE: Columns[LearningCost] = (
    ("system", lambda cost: f"`{cost.row.system}`"),
    ("learning USD", lambda cost: usd(cost.usd)),
    (label("usd_per_query"), lambda cost: usd(cost.row.usd_per_query)),
    *(
        (f"at {queries:,}", lambda cost, index=place: usd(cost.usd_at[index]))
        for place, queries in enumerate(QUERIES)
    ),
    ("cheaper from", lambda cost: cost.versus),
    ("learnt from", lambda cost: cost.what),
)


def learning_markdown(costs: Sequence[LearningCost]) -> str:
    """Return the section of table.md on learning costs; empty if no system learnt."""
    table = figures_table(tabulate(TABLE, costs))
    return f"### What learning cost\n\n{SAID}\n\n{table}" if costs else ""


def learning_data(cost: LearningCost, places: Mapping[int, int]) -> dict[str, object]:
    """Return a learning cost for table.json; `places`: id of a row -> its index in that file."""
    columns = {each.name: getattr(cost, each.name) for each in fields(cost)}
    usd_at = dict(zip(map(str, QUERIES), cost.usd_at, strict=True))
    return {**columns, "row": places[id(cost.row)], "system": cost.row.system, "usd_at": usd_at}
