"""What learning cost: dollars a query with selection and training included, and the break-even.

For systems that learnt or were chosen: a best single worker and what runs on it, learned routers,
tuned thresholds, trained conductors. Dollars are would-be, all attempts included, at the price book
of the row. Those of train questions are in the run's own logs, below `selection/` and `tuning/`;
those of the released conductors stand in trainings.csv, made from the trainings' logs.
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
"""For so many queries a system's dollars are told."""
REFERENCE, AT_ONCE, NEVER, UNKNOWN = "reference", "at once", "never", "unknown"
TAUGHT = re.compile(r"train questions of (.+)$")
"""Ends the note of a system that learnt from other suites than its own (harness/run)."""


@dataclass(frozen=True, slots=True)
class LearningCost:
    """One row that learnt or was chosen, or the reference of its block."""

    row: TableRow
    usd: Decimal | None
    """Dollars of learning; 0 for a reference that was not chosen, None where nobody knows."""
    what: str
    """What it learnt from, or why its dollars are unknown."""
    usd_at: tuple[Decimal | None, ...]
    """Dollars a query with learning included, for each number of `QUERIES`."""
    break_even: int | None
    """Queries from which on it is cheaper in all than the reference, whose learning counts too."""
    versus: str
    """The same in words: `reference`, `at once`, `never`, `unknown`, or e.g. `1,234 queries`."""


@dataclass(frozen=True, slots=True)
class _Learnt:
    usd: Decimal | None
    what: str


def learning_costs(block: Sequence[Pair], selections: Sequence[SystemRun]) -> list[LearningCost]:
    """Return the rows of a block that learnt or were chosen, its reference first."""
    found = [(row, _learnt(system_run, selections)) for row, system_run in block]
    if not any(learnt for _, learnt in found):
        return []
    base = next((pair for pair in found if pair[0].verdict == REFERENCE), None)
    first = base and (base[0], base[1] or _Learnt(Decimal(0), "nothing: named beforehand"))
    rest = [(row, one) for row, one in found if one and not (base and row is base[0])]
    return [_cost(row, one, first) for row, one in ([first] if first else []) + rest]


def _cost(row: TableRow, learnt: _Learnt, base: tuple[TableRow, _Learnt] | None) -> LearningCost:
    each = row.usd_per_query
    known = None not in (learnt.usd, each)
    at = tuple((each or 0) + (learnt.usd or Decimal(0)) / n if known else None for n in QUERIES)
    if base and row is base[0]:
        return LearningCost(row, learnt.usd, learnt.what, at, None, REFERENCE)
    queries, said = _break_even((learnt.usd, each), base)
    return LearningCost(row, learnt.usd, learnt.what, at, queries, said)


def _break_even(
    own: tuple[Decimal | None, Decimal | None], base: tuple[TableRow, _Learnt] | None
) -> tuple[int | None, str]:
    if base is None:
        return None, "no reference"
    (spent, each), (other, each_other) = own, (base[1].usd, base[0].usd_per_query)
    if each is not None and each_other is not None and each > each_other:
        return None, NEVER
    if spent is None or each is None or other is None or each_other is None:
        return None, UNKNOWN
    if each == each_other:
        return (0, AT_ONCE) if spent < other else (None, NEVER)
    if spent <= other:
        return 0, AT_ONCE
    queries = ceil((spent - other) / (each_other - each))
    return queries, f"{queries:,} queries"


def _learnt(system_run: SystemRun, selections: Sequence[SystemRun]) -> _Learnt | None:
    """Return what a system's learning cost; None for one that did not learn."""
    facts = system_run.facts
    if facts.uses_targets or not facts.reference_allowed or facts.system.startswith(SINGLE):
        return None
    trained = _training(facts.args, str(facts.prices["sha256"]))
    if trained and "learned" not in facts.args:
        return trained
    noted = [match[1].split(", ") for note in facts.notes if (match := TAUGHT.search(note))]
    tried = _tried(system_run, selections, noted[0] if noted else [facts.suite])
    alone = [one for one in tried if one.facts.system.startswith(SINGLE)]
    if "learned" in facts.args and not noted:
        return _Learnt(None, "learnt before this run: no log here tells its dollars")
    if "learned" in facts.args:
        own = [one for one in tried if one.facts.system == facts.system]
        return _both(_summed(own or alone, "worker calls on train questions"), trained)
    if facts.args.get("chosen_on") == "train":
        return _summed(alone, "the best single worker, chosen on train questions")
    worker = facts.args.get("worker", facts.args.get("aggregator"))
    if worker is not None and worker in _best_of(alone):
        return _summed(alone, f"its worker {worker}, chosen on train questions")
    return None


def _summed(tried: Sequence[SystemRun], what: str) -> _Learnt:
    if not tried:
        return _Learnt(None, f"{what}: their logs are not here")
    calls = total(tally for one in tried for tally in one.spend.values())
    suites = ", ".join(sorted({one.facts.suite for one in tried}))
    said = f"{what} of {suites} ({calls.calls:,} calls)"
    unpriced = "" if calls.listed is not None else ", some without a price"
    return _Learnt(calls.listed, said + unpriced)


def _tried(
    system_run: SystemRun, selections: Sequence[SystemRun], suites: Sequence[str]
) -> list[SystemRun]:
    """Return what taught a system: runs on some suites, below its own log directory."""
    folder = system_run.paths[0].parent
    home = parent_of(folder) or folder
    found: list[SystemRun] = []
    for one in selections:
        path = one.paths[0]
        below = path.relative_to(home).parts if path.is_relative_to(home) else ("", "")
        taught = below[0] == "selection" or below[:2] == ("tuning", system_run.facts.suite)
        if taught and one.facts.suite in suites:
            found.append(one)
    return found


def _best_of(alone: Sequence[SystemRun]) -> set[object]:
    """Return the workers that did best on train questions; several where they did equally well."""
    grades: dict[object, dict[str, list[float]]] = {}
    for one in alone:
        own = grades_of(one.attempts).items()
        asked = {f"{one.facts.suite}/{question}": values for question, values in own}
        grades.setdefault(one.facts.args.get("worker"), {}).update(asked)
    means = {worker: accuracy(values) or 0.0 for worker, values in grades.items()}
    return {worker for worker, mean in means.items() if mean == max(means.values())}


@cache
def trainings() -> Mapping[str, Mapping[str, str]]:
    """Return what trainings cost, by the digest of the checkpoint that came of them."""
    text = files("podium.reports").joinpath("trainings.csv").read_text(encoding="utf-8")
    return {one["checkpoint_sha256"]: one for one in csv.DictReader(text.splitlines())}


def _both(learnt: _Learnt, trained: _Learnt | None) -> _Learnt:
    if trained is None:
        return learnt
    parts = (learnt.usd, trained.usd)
    usd = None if None in parts else sum((one for one in parts if one), Decimal(0))
    return _Learnt(usd, f"{learnt.what}; {trained.what}")


def _training(args: Mapping[str, object], book: str) -> _Learnt | None:
    if "checkpoint" not in args:
        return None
    known = trainings().get(str(args.get("checkpoint_sha256", args.get("sha256"))))
    if known is None:
        return _Learnt(None, f"training of {args['checkpoint']}: no log here tells its dollars")
    dollars, what = Decimal(known["usd"]), known["what"]
    if dollars and known["price_book_sha256"] != book:
        return _Learnt(None, f"{what}; priced at another price book")
    return _Learnt(dollars, what)


SAID = (
    "Would-be dollars of all that a system learnt from, every attempt, and its dollars a query "
    "where so many queries share them. *cheaper from*: the queries from which on it is cheaper in "
    "all than the reference, whose own learning counts as well. A training counts in full on each "
    "suite."
)
TABLE: Columns[LearningCost] = (
    ("system", lambda one: f"`{one.row.system}`"),
    ("learning USD", lambda one: usd(one.usd)),
    (label("usd_per_query"), lambda one: usd(one.row.usd_per_query)),
    *(
        (f"at {queries:,}", lambda one, at=place: usd(one.usd_at[at]))
        for place, queries in enumerate(QUERIES)
    ),
    ("cheaper from", lambda one: one.versus),
    ("learnt from", lambda one: one.what),
)


def learning_markdown(found: Sequence[LearningCost]) -> str:
    """Return the section of table.md; empty where nobody learnt."""
    table = figures_table(tabulate(TABLE, found))
    return f"### What learning cost\n\n{SAID}\n\n{table}" if found else ""


def learning_data(one: LearningCost, places: Mapping[int, int]) -> dict[str, object]:
    """Return a row for table.json; `row` is its place in that file's rows."""
    own = {each.name: getattr(one, each.name) for each in fields(one)}
    at = dict(zip(map(str, QUERIES), one.usd_at, strict=True))
    return {**own, "row": places[id(one.row)], "system": one.row.system, "usd_at": at}
