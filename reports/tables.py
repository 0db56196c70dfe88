"""Rows of the comparison: one per system, exam and pool (`Row` itself is reports/row.py)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.logs import RunFacts
from harness.records import GRADER
from harness.sittings import Sitting
from harness.totals import SystemTotals, system_totals
from reports.intervals import Difference, accuracy, accuracy_interval, adjusted, difference
from reports.joint import arrays_of, columns_of
from reports.majority import majority_columns
from reports.money import money_columns
from reports.notes import arguments_of, notes_of
from reports.pass_at import PassAt, pass_at
from reports.reference import (
    Group,
    graded_values,
    group_of,
    reference_of,
    refuse_mixed_versions,
    rule_of,
)
from reports.row import COLUMNS, Row, block_of
from reports.systems import manifest_columns
from reports.two_verdicts import rule_columns, two_verdicts
from reports.wanted import (
    EVERYTHING,
    NAMED,
    Wanted,
    cut,
    first_epochs,
    refuse_mixed_epochs,
    refuse_too_many_tries,
    refuse_unknown,
)

__all__ = ["COLUMNS", "Row", "block_of", "build_rows", "pair_rows"]


Pair = tuple[Row, Sitting]
"""A row and what it is made from."""


def build_rows(sittings: Sequence[Sitting], wanted: Wanted = EVERYTHING) -> tuple[Row, ...]:
    """Return the rows of a report, sorted as tables show them; raises as `pair_rows` does."""
    return tuple(row for block in pair_rows(sittings, wanted) for row, _ in block)


def pair_rows(
    sittings: Sequence[Sitting], wanted: Wanted = EVERYTHING
) -> tuple[tuple[Pair, ...], ...]:
    """Return the rows of a report with what each is made from, block by block.

    UserError when rows are no comparison: a suite in two versions or data revisions, epochs that
    differ within a block, a reference that is not there.
    """
    exams = [sitting for sitting in sittings if sitting.facts.purpose == "eval"]
    refuse_mixed_versions(exams)
    refuse_unknown(wanted.vs, exams)
    refuse_too_many_tries(wanted.maj, exams)
    kept = [first_epochs(sitting, wanted.epochs) for sitting in exams]
    refuse_mixed_epochs(kept)
    groups: dict[Group, list[tuple[Sitting, int]]] = {}
    for sitting, whole in zip(kept, exams, strict=True):
        groups.setdefault(group_of(sitting), []).append((sitting, whole.epochs))
    blocks = [_block(group, wanted) for group in groups.values()]
    return tuple(sorted(blocks, key=lambda block: _order(block[0][0])))


def _block(group: Sequence[tuple[Sitting, int]], wanted: Wanted) -> tuple[Pair, ...]:
    """Return the rows of one block, sorted; beside each sitting stand its epochs in all."""
    sittings = [sitting for sitting, _ in group]
    rows = [cut(row, epochs) for row, (_, epochs) in zip(
        _compared(sittings, wanted), group, strict=True)]  # fmt: skip
    return tuple(sorted(zip(rows, sittings, strict=True), key=lambda pair: _order(pair[0])))


def _compared(group: Sequence[Sitting], wanted: Wanted) -> list[Row]:
    reference = reference_of(group, wanted.vs)
    place = next((at for at, sitting in enumerate(group) if sitting is reference), None)
    columns = columns_of(arrays_of(group), place)
    rows = [
        replace(_row(sitting), **own, **majority_columns(sitting, wanted.maj))
        for sitting, own in zip(group, columns, strict=True)
    ]
    if reference is None:
        return rows
    rule = NAMED if wanted.vs else rule_of(reference.facts.system)
    values = graded_values(reference)
    found = [
        None if sitting is reference else difference(graded_values(sitting), values)
        for sitting in group
    ]
    return [
        replace(row, reference=reference.facts.system, reference_rule=rule, verdict="reference")
        if sitting is reference
        else against(row, one, (reference.facts.system, rule))
        for row, sitting, one in zip(rows, group, adjusted(found), strict=True)
    ]


def against(row: Row, found: Difference | None, reference: tuple[str, str]) -> Row:
    """Return a row with its columns on a reference (its name and rule); as it is without any."""
    if found is None:
        return row
    return replace(
        row,
        paired_diff=found.mean,
        paired_low=found.interval.low if found.interval else None,
        paired_high=found.interval.high if found.interval else None,
        verdict=found.verdict,
        reference=reference[0],
        reference_rule=reference[1],
        min_detectable=found.detectable,
        p_value=found.p_value,
        p_holm=found.p_holm,
        test=found.test,
        n_paired=found.questions,
        n_better=found.pairs.b,
        n_worse=found.pairs.c,
        correlation=found.pairs.correlation,
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
        **manifest_columns(sitting),
        **_plan_columns(totals),
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
        conductor_s=totals.conductor_s,
        tokens_reasoning=totals.tokens_reasoning,
    )


def _plan_columns(totals: SystemTotals) -> dict[str, Any]:
    """Return how many plans of a model could not be carried out, and mostly why."""
    if not totals.n_planned:
        return {}
    faults = totals.plan_faults
    found = sum(faults.values())
    return {
        "n_invalid_plans": found,
        "invalid_plan_pct": 100 * found / totals.n_graded,
        "invalid_plan_reason": min(faults, key=lambda name: (-faults[name], name), default=""),
    }


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
