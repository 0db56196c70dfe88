"""Rows of the comparison: one per system, exam and pool, with columns that only ever grow.

The order of `Row`'s fields is the order of the CSV columns; new ones are appended, never inserted.
An unknown figure is None (an empty cell), never 0.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal

from harness.logs import RunFacts
from harness.pool_file import Label
from harness.records import GRADER
from harness.sittings import Sitting
from harness.suite import OFFICIAL, Prompt
from harness.totals import SystemTotals, system_totals
from reports.intervals import accuracy, accuracy_interval, difference
from reports.money import money_columns
from reports.notes import arguments_of, notes_of
from reports.pass_at import PassAt, pass_at
from reports.reference import (
    Group,
    graded_values,
    group_of,
    reference_of,
    refuse_mixed_versions,
)
from reports.two_verdicts import rule_columns, two_verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table. Figures per query are means over graded (question, epoch) pairs."""

    suite: str
    suite_version: str
    label: Label
    system: str
    n_asked: int
    """(question, epoch) pairs."""
    n_graded: int
    epochs: int
    accuracy: float | None = None
    """Mean over questions of their mean grade: avg@k for k epochs."""
    ci_low: float | None = None
    ci_high: float | None = None
    usd_per_query: Decimal | None = None
    """Would-be: at the price book in the log, as if nothing had been cached."""
    usd_paid_per_query: Decimal | None = None
    """Live only, failed attempts included; per pair begun. None when it is a range."""
    tokens_in: float | None = None
    tokens_out: float | None = None
    worker_tokens_out: float | None = None
    conductor_tokens: float | None = None
    calls: float | None = None
    steps: float | None = None
    depth: float | None = None
    latency_s: float | None = None
    pool: str
    data_revision: str
    price_book: str
    box: str | None
    tokens_reasoning: float | None = None
    n_unparsed: int
    paired_diff: float | None = None
    """Accuracy less the reference system's, on the questions both were graded on."""
    paired_low: float | None = None
    paired_high: float | None = None
    verdict: str = ""
    """`better`, `worse`, `inconclusive`, `reference`, or empty where there is none to compare."""
    reference: str = ""
    min_detectable: float | None = None
    split: str
    dates: str
    knowledge_cutoff: str
    config: str
    """JSON: model and generation config of every worker that was called, a grader included."""
    args: str
    """JSON: the system's arguments."""
    seed: int
    time_scale: float
    uses_targets: bool
    notes: str
    reference_allowed: bool
    """False for a choice in hindsight."""
    pool_sha256: str
    price_book_sha256: str
    box_python: str | None = None
    """Version of the Python that ran the graded programs."""
    box_image: str | None = None
    box_image_id: str | None = None
    box_packages: str | None = None
    """Third-party packages that a program could import; empty when there were none."""
    official_accuracy: float | None = None
    """Accuracy by the published evaluator's verdicts, where the suite gives them."""
    n_official_differ: int | None = None
    """Graded pairs on which the two verdicts differ, and how many of them carry an erratum."""
    n_official_errata: int | None = None
    n_fragile: int = 0
    """Verdicts close to the time limit."""
    pass_at_5: float | None = None
    pass_at_10: float | None = None
    prompt: Prompt = OFFICIAL
    """How the questions were put."""
    order: int | None = None
    """Place in which the run began its systems: later ones find earlier ones' cached prefixes."""
    usd_paid_low: Decimal | None = None
    """What is known of what was paid, and the most it can be; calls that never ended may be
    billed."""
    usd_paid_high: Decimal | None = None
    n_unknown_billed: int = 0
    n_unpriced: int = 0
    """Calls that had a reply and have no price."""
    usd_gpu_per_query: Decimal | None = None
    """The same work on own hardware, of workers whose price says so; beside, never added."""
    usd_scoring_per_query: Decimal | None = None
    """List price of graders that are models; in no other column."""
    price_book_date: str = ""
    price_evidence: str = ""
    """For each worker that was called: `dated` or `carried-back`."""


COLUMNS = tuple(field.name for field in fields(Row))
"""The CSV header. Stable: append only."""


def block_of(row: Row) -> tuple[str, str, Label, Prompt, str, str, int, str, str]:
    """Return what the rows of one block share; tables and plots show a block at a time.

    Suite version and data revision need no place here: `refuse_mixed_versions` lets one through.
    """
    exam = (row.suite, row.split, row.label, row.prompt)
    return (*exam, row.pool, row.pool_sha256, row.seed, row.price_book, row.price_book_sha256)


def build_rows(sittings: Sequence[Sitting]) -> tuple[Row, ...]:
    """Return the rows of a report, sorted as tables show them; raises as `pair_rows` does."""
    return tuple(row for row, _ in pair_rows(sittings))


def pair_rows(sittings: Sequence[Sitting]) -> tuple[tuple[Row, Sitting], ...]:
    """Return the rows of a report with what each is made from.

    UserError when a suite is there in two versions or data revisions: such rows are no comparison.
    """
    exams = [sitting for sitting in sittings if sitting.facts.purpose == "eval"]
    refuse_mixed_versions(exams)
    groups: dict[Group, list[Sitting]] = {}
    for sitting in exams:
        groups.setdefault(group_of(sitting), []).append(sitting)
    pairs = [
        pair for group in groups.values() for pair in zip(_compared(group), group, strict=True)
    ]
    return tuple(sorted(pairs, key=lambda pair: _order(pair[0])))


def _compared(group: Sequence[Sitting]) -> list[Row]:
    reference = reference_of(group)
    rows = [_row(sitting) for sitting in group]
    if reference is None:
        return rows
    return [_against(row, sitting, reference) for row, sitting in zip(rows, group, strict=True)]


def _against(row: Row, sitting: Sitting, reference: Sitting) -> Row:
    if sitting is reference:
        return replace(row, reference=row.system, verdict="reference")
    found = difference(graded_values(sitting), graded_values(reference))
    if found is None:
        return row
    return replace(
        row,
        paired_diff=found.mean,
        paired_low=found.interval.low if found.interval else None,
        paired_high=found.interval.high if found.interval else None,
        verdict=found.verdict,
        reference=reference.facts.system,
        min_detectable=found.detectable,
    )


def _row(sitting: Sitting) -> Row:
    """Return the row of one system, not compared with any other yet."""
    totals = system_totals(sitting)
    values = graded_values(sitting)
    interval = accuracy_interval(values)
    rules, passed = two_verdicts(sitting.attempts), pass_at(values)
    return replace(
        _described(sitting, totals),
        **_box(sitting.facts),
        **rule_columns(rules),
        **money_columns(sitting, totals),
        n_fragile=sum(attempt.fragile for attempt in sitting.attempts if attempt.graded),
        pass_at_5=_at(passed, 5),
        pass_at_10=_at(passed, 10),
        accuracy=accuracy(values),
        ci_low=interval.low if interval else None,
        ci_high=interval.high if interval else None,
        usd_per_query=totals.usd,
        tokens_in=totals.tokens_in,
        tokens_out=totals.tokens_out,
        worker_tokens_out=totals.worker_tokens_out,
        conductor_tokens=totals.conductor_tokens,
        calls=totals.calls,
        steps=totals.steps,
        depth=totals.depth,
        latency_s=totals.latency_s,
        tokens_reasoning=totals.tokens_reasoning,
    )


def _box(facts: RunFacts) -> dict[str, str | None]:
    on = facts.box_facts
    if on is None:
        return {}
    return {
        "box_python": on.python,
        "box_image": on.image,
        "box_image_id": on.image_id,
        "box_packages": " ".join(on.packages),
    }


def _at(passed: Sequence[PassAt], k: int) -> float | None:
    return next((one.value for one in passed if one.k == k), None)


def _described(sitting: Sitting, totals: SystemTotals) -> Row:
    """Return a row's identity and counts, its figures unknown."""
    facts = sitting.facts
    called = sorted({kind.role for kind in sitting.spend} & facts.workers.keys())
    solving = [role for role in called if role != GRADER]
    return Row(
        suite=facts.suite,
        suite_version=facts.suite_version,
        label=facts.label,
        system=facts.system,
        n_asked=totals.n_asked,
        n_graded=totals.n_graded,
        epochs=sitting.epochs,
        pool=facts.pool,
        data_revision=facts.data_revision,
        price_book=str(facts.prices["name"]),
        box=facts.box,
        n_unparsed=totals.n_unparsed,
        split=facts.split,
        dates=facts.dates,
        knowledge_cutoff=_cutoffs(facts, solving),
        config=_json({role: _identity(sitting, role) for role in called}),
        args=_json(arguments_of(facts)),
        seed=facts.seed,
        time_scale=facts.time_scale,
        uses_targets=facts.uses_targets,
        notes="; ".join(note.replace("; ", ", ") for note in notes_of(sitting, totals)),
        reference_allowed=facts.reference_allowed,
        pool_sha256=facts.pool_sha256,
        price_book_sha256=str(facts.prices["sha256"]),
        prompt=facts.prompt,
        order=facts.order,
    )


def _cutoffs(facts: RunFacts, solving: Sequence[str]) -> str:
    """Return the knowledge cutoff of each real model that took part; our own have none."""
    if facts.label == "rehearsal":
        return ""
    return "; ".join(f"{role}: {facts.workers[role].knowledge_cutoff}" for role in solving)


def _identity(sitting: Sitting, role: str) -> dict[str, object]:
    worker = sitting.facts.workers[role]
    return {"model": worker.model, **worker.settings}


def _order(row: Row) -> tuple[object, ...]:
    """Sort by block, then the most accurate first."""
    accuracy = -1.0 if row.accuracy is None else row.accuracy
    suite, split, label, *rest = block_of(row)
    rank = ("live", "recorded", "rehearsal").index(label)
    return (suite, split, rank, *rest, -accuracy, row.system, row.args)


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False) if value else ""
