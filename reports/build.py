"""Rows of the comparison, from runs: one per system, suite and pool, with money and footnotes."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from harness.ledger.runs import RunFacts
from harness.ledger.totals import SystemRun, SystemTotals, in_table, system_totals, total
from harness.prices import Book, book_from_json
from harness.prices.cost import gpu_cost
from harness.records import GRADER, Usage
from harness.text import format_range
from reports.blocks import (
    DEFAULT_OPTIONS,
    NAMED_RULE,
    SINGLE,
    Group,
    ReportOptions,
    first_epochs,
    graded_values,
    group_of,
    reference_of,
    refuse_mixed_epochs,
    refuse_mixed_versions,
    refuse_too_many_tries,
    refuse_unknown,
    rule_of,
    without_whole_sums,
)
from reports.intervals import (
    Difference,
    accuracy,
    accuracy_interval,
    block_arrays,
    block_columns,
    difference,
    holm_adjusted,
)
from reports.render import UNKNOWN, usd
from reports.row import COLUMNS, TableRow, block_of
from reports.tries import (
    PassAtK,
    majority_columns,
    official_agreement,
    official_columns,
    pass_at_ks,
)

# § Rows of the comparison: one per system, exam and pool (`Row` itself is reports/row.py).


__all__ = ["COLUMNS", "TableRow", "block_of", "build_rows", "pair_rows"]


Pair = tuple[TableRow, SystemRun]
"""A row and what it is made from."""


def build_rows(
    sittings: Sequence[SystemRun], wanted: ReportOptions = DEFAULT_OPTIONS
) -> tuple[TableRow, ...]:
    """Return the rows of a report, sorted as tables show them; raises as `pair_rows` does."""
    return tuple(row for block in pair_rows(sittings, wanted) for row, _ in block)


def pair_rows(
    sittings: Sequence[SystemRun], wanted: ReportOptions = DEFAULT_OPTIONS
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
    groups: dict[Group, list[tuple[SystemRun, int]]] = {}
    for sitting, whole in zip(kept, exams, strict=True):
        groups.setdefault(group_of(sitting), []).append((sitting, whole.epochs))
    blocks = [_block(group, wanted) for group in groups.values()]
    return tuple(sorted(blocks, key=lambda block: _order(block[0][0])))


def _block(group: Sequence[tuple[SystemRun, int]], wanted: ReportOptions) -> tuple[Pair, ...]:
    """Return the rows of one block, sorted; beside each sitting stand its epochs in all."""
    sittings = [sitting for sitting, _ in group]
    rows = [without_whole_sums(row, epochs) for row, (_, epochs) in zip(
        _compared(sittings, wanted), group, strict=True)]  # fmt: skip
    return tuple(sorted(zip(rows, sittings, strict=True), key=lambda pair: _order(pair[0])))


def _compared(group: Sequence[SystemRun], wanted: ReportOptions) -> list[TableRow]:
    reference = reference_of(group, wanted.vs)
    place = next((at for at, sitting in enumerate(group) if sitting is reference), None)
    columns = block_columns(block_arrays(group), place)
    rows = [
        replace(_row(sitting), **own, **majority_columns(sitting, wanted.maj))
        for sitting, own in zip(group, columns, strict=True)
    ]
    if reference is None:
        return rows
    rule = NAMED_RULE if wanted.vs else rule_of(reference.facts.system)
    values = graded_values(reference)
    found = [
        None if sitting is reference else difference(graded_values(sitting), values)
        for sitting in group
    ]
    return [
        replace(row, reference=reference.facts.system, reference_rule=rule, verdict="reference")
        if sitting is reference
        else with_difference(row, one, (reference.facts.system, rule))
        for row, sitting, one in zip(rows, group, holm_adjusted(found), strict=True)
    ]


def with_difference(
    row: TableRow, found: Difference | None, reference: tuple[str, str]
) -> TableRow:
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


def _row(sitting: SystemRun) -> TableRow:
    """Return the row of one system, not compared with any other yet."""
    totals = system_totals(sitting)
    values = graded_values(sitting)
    interval = accuracy_interval(values)
    rules, passed = official_agreement(sitting.attempts), pass_at_ks(values)
    return replace(
        _described(sitting, totals),
        **_box(sitting.facts),
        **official_columns(rules),
        **money_columns(sitting, totals),
        **manifest_columns(sitting),
        **_plan_columns(totals),
        n_fragile=sum(attempt.fragile for attempt in sitting.attempts if attempt.graded),
        pass_at_5=_pass_at(passed, 5),
        pass_at_10=_pass_at(passed, 10),
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


def _pass_at(passed: Sequence[PassAtK], k: int) -> float | None:
    return next((one.value for one in passed if one.k == k), None)


def _described(sitting: SystemRun, totals: SystemTotals) -> TableRow:
    """Return a row's identity and counts, its figures unknown."""
    facts = sitting.facts
    called = sorted({kind.role for kind in sitting.spend} & facts.workers.keys())
    solving = [role for role in called if role != GRADER]
    return TableRow(
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


def _identity(sitting: SystemRun, role: str) -> dict[str, object]:
    worker = sitting.facts.workers[role]
    return {"model": worker.model, **worker.settings}


def _order(row: TableRow) -> tuple[object, ...]:
    """Sort by block, then the most accurate first."""
    accuracy = -1.0 if row.accuracy is None else row.accuracy
    suite, split, label, *rest = block_of(row)
    rank = ("live", "recorded", "rehearsal").index(label)
    return (suite, split, rank, *rest, -accuracy, row.system, row.args)


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False) if value else ""


# § What systems say of themselves beside what they did: sources, deviations, calls.
# §
# § The figures of the comparison itself are reports/build.py; whether each single answer
# § keeps the
# § promise is the audit's I7.


def manifest_columns(sitting: SystemRun) -> dict[str, Any]:
    """Return a row's columns on its manifest, and the worker calls that were counted."""
    facts = sitting.facts
    calls = [one.totals.worker_calls for one in sitting.attempts if one.graded]
    return {
        "deviations": "; ".join(one.replace("; ", ", ") for one in facts.deviations),
        "source": facts.source,
        "calls_min": min(calls, default=None),
        "calls_max": max(calls, default=None),
        "calls_expected": format_range(facts.calls_expected),
        "prompt_sha256": facts.prompt_sha256,
    }


def calls_table(rows: Sequence[TableRow]) -> list[tuple[str, ...]]:
    """Return worker calls a question against manifests, a line per row, heads first."""
    heads = ("system", "by its manifest", "fewest", "most", "mean of all calls")
    return [heads, *(_calls(row) for row in rows)]


def _calls(row: TableRow) -> tuple[str, ...]:
    mean = UNKNOWN if row.calls is None else f"{row.calls:.2f}"
    found = (row.calls_min, row.calls_max)
    fewest, most = (UNKNOWN if one is None else str(one) for one in found)
    return (f"`{row.system}` ({row.label})", row.calls_expected or UNKNOWN, fewest, most, mean)


def systems_table(rows: Sequence[TableRow]) -> list[tuple[str, ...]]:
    """Return where each system is from and where it deviates, a line per system, heads first."""
    heads = ("system", "source", "prompts (sha256)", "deviations")
    lines = {
        (f"`{row.system}`", row.source, row.prompt_sha256[:12] or "none", row.deviations or "none")
        for row in rows
        if row.source
    }
    return [heads, *sorted(lines)]


# § What a row says about money beside its headline: a range of what was paid, prices and
# § hardware.
# §
# § The headline is the list price with nothing cached (harness/ledger/totals.py). What is unknown
# § stays
# § unknown here: a sum that lacks a call is never shown as a smaller sum.


ZERO = Decimal(0)


def money_columns(sitting: SystemRun, totals: SystemTotals) -> dict[str, Any]:
    """Return the columns of a row that are about money."""
    book = book_from_json(sitting.facts.prices)
    paid, begun = totals.paid, len(sitting.attempts)
    return {
        "usd_paid_per_query": totals.usd_paid,
        "usd_paid_low": _per_pair(paid.low, begun),
        "usd_paid_high": _per_pair(paid.high, begun),
        "n_unknown_billed": paid.unknown,
        "n_unpriced": totals.n_unpriced,
        "usd_gpu_per_query": _per_pair(_gpu(sitting, book), totals.n_graded),
        "usd_scoring_per_query": _per_pair(_scoring(sitting), totals.n_graded),
        "price_book_date": book.date,
        "price_evidence": _evidence(sitting, book),
        "auditable": not not_auditable(sitting),
    }


def _per_pair(value: Decimal | None, pairs: int) -> Decimal | None:
    return value / pairs if value is not None and pairs else None


def _gpu(sitting: SystemRun, book: Book) -> Decimal | None:
    """Return dollars of own hardware; None when no price says what that costs.

    They go by output tokens, so they can be had from sums.
    """
    found: Decimal | None = None
    for kind, tally in sitting.spend.items():
        worker = sitting.facts.workers.get(kind.role)
        price = book.price(worker.price) if worker else None
        if price is None or price.gpu is None or not in_table(kind):
            continue
        if tally.untold:
            return None
        found = (found or ZERO) + gpu_cost(Usage(output=tally.output), price.gpu)
    return found


def _scoring(sitting: SystemRun) -> Decimal | None:
    """Return what graders that are models cost at list price, of all attempts."""
    return total(tally for kind, tally in sitting.spend.items() if kind.phase == "score").listed


def _evidence(sitting: SystemRun, book: Book) -> str:
    """Return how each price that was used is known; our own practice workers have no market."""
    if sitting.facts.label == "rehearsal":
        return ""
    called = sorted({kind.role for kind in sitting.spend} & sitting.facts.workers.keys())
    said: list[str] = []
    for role in called:
        if role != GRADER:
            said.append(f"{role}: {book.evidence(sitting.facts.workers[role].price)}")
    return "; ".join(said)


def not_auditable(sitting: SystemRun) -> dict[str, str]:
    """Return the workers that were called and whose dollars nothing tells, each with the reason."""
    called = {kind.role for kind in sitting.spend if in_table(kind)}
    found = ((role, sitting.facts.workers.get(role)) for role in sorted(called))
    return {role: worker.not_auditable for role, worker in found if worker and worker.not_auditable}


def notes_on_money(sitting: SystemRun, totals: SystemTotals) -> list[str]:
    """Return footnotes: prices that are not of their book's day, hardware, graders, open ends."""
    book = book_from_json(sitting.facts.prices)
    notes = [f"not auditable: {role} ({why})" for role, why in not_auditable(sitting).items()]
    carried = [one for one in _evidence(sitting, book).split("; ") if one.endswith("carried-back")]
    if carried:
        who = ", ".join(one.partition(":")[0] for one in carried)
        notes.append(
            f"prices carried back to {book.date} (a later price, assumed to have held): {who}"
        )
    if (seconds := totals.conductor_s) is not None and sitting.facts.label == "live":
        notes.append(f"its conductor ran on the machine that asked, {seconds:.3f} s per query")
    if (gpu := _per_pair(_gpu(sitting, book), totals.n_graded)) is not None:
        notes.append(f"on own hardware USD {usd(gpu)} per query, where a price says so")
    if scoring := _per_pair(_scoring(sitting), totals.n_graded):
        notes.append(f"grading by models, in no column: USD {usd(scoring)} per query at list price")
    if unknown := totals.paid.unknown:
        notes.append(f"calls that were sent and never ended: {unknown}, billed or not is unknown")
    return notes


def usd_cell(value: Decimal | None, unpriced: int, auditable: bool = True) -> str:
    """Return dollars per query; what lacks a price is no number, and says how many calls do."""
    if value is None and not auditable:
        return "not auditable"
    return f"—({unpriced} unpriced)" if value is None and unpriced else usd(value)


def paid_cell(
    low: Decimal | None, high: Decimal | None, unpriced: int, auditable: bool = True
) -> str:
    """Return what was paid: one number, a range, or a number from which on it is.

    >>> paid_cell(Decimal("0.0123"), Decimal("0.015"), 0)
    '0.0123–0.0150'
    """
    if low is None or (high is None and unpriced):
        return usd_cell(None, unpriced, auditable)
    if high is None:
        return f"{usd(low)}–?"
    return usd(low) if low == high else f"{usd(low)}–{usd(high)}"


# § Footnotes: what limits a row, or must be known to read it, each in a few words.


ARGUMENTS = 80
"""Arguments are shown up to this length; an oracle's list of plans stands in the CSV alone."""


def notes_of(sitting: SystemRun, totals: SystemTotals) -> list[str]:
    """Return what limits a row, a sentence each: its footnotes."""
    notes = ["uses targets"] if sitting.facts.uses_targets else []
    notes += sitting.facts.notes
    chosen = ", ".join(f"{name}={value}" for name, value in arguments_of(sitting.facts).items())
    if 0 < len(chosen) <= ARGUMENTS and not sitting.facts.system.startswith(SINGLE):
        notes.append(f"{sitting.facts.system}: {chosen}")
    unscored = sorted({attempt.question for attempt in sitting.attempts if not attempt.graded})
    if unscored:
        shown = ", ".join(unscored[:10]) + (", ..." if len(unscored) > 10 else "")
        reasons = sorted({attempt.reason for attempt in sitting.attempts if attempt.reason})
        notes.append(f"with an unscored epoch: {shown} ({reasons[0][:120]})")
    missing = totals.n_asked - len(sitting.attempts)
    if missing:
        notes.append(f"interrupted: {missing} of {totals.n_asked} not asked yet")
    notes += _on_verdicts(sitting)
    notes += _fallbacks(sitting)
    if totals.n_unpriced:
        notes.append(f"{totals.n_unpriced} calls have no price")
    notes += notes_on_money(sitting, totals)
    if totals.n_failed:
        notes.append(_failures(totals, sitting.facts))
    return notes


def arguments_of(facts: RunFacts) -> dict[str, object]:
    """Return a system's arguments; of a file its name, because a table travels and paths do not."""
    return {name: _without_folder(value) for name, value in facts.args.items()}


def _without_folder(value: object) -> object:
    """Return a path's last part; `openai/gpt-4.1` is a model's name, and stays."""
    if not isinstance(value, str):
        return value
    path = PurePath(value)
    is_file = path.suffix[1:].isalpha()
    return path.name if path.is_absolute() or is_file else value


def _failures(totals: SystemTotals, facts: RunFacts) -> str:
    said = f"{totals.n_failed} calls failed"
    if facts.label != "live" or totals.usd_spent is not None:
        return said
    return f"{said}, billed or not is unknown: paid at least USD {usd(totals.usd_at_least)}"


def _fallbacks(sitting: SystemRun) -> list[str]:
    """Return how often a system had to fall back, as it noted itself."""
    found = Counter(one.fallback for one in sitting.attempts if one.graded and one.fallback)
    whole = sum(attempt.graded for attempt in sitting.attempts)
    return [f"{count} of {whole} answers: {said}" for said, count in sorted(found.items())]


def _on_verdicts(sitting: SystemRun) -> list[str]:
    """Return where the published evaluator says otherwise, and which verdicts hang on time."""
    rules = official_agreement(sitting.attempts)
    notes = [rules.sentence] if rules and rules.differ else []
    fragile = sum(attempt.fragile for attempt in sitting.attempts if attempt.graded)
    if fragile:
        verdicts = "1 verdict is" if fragile == 1 else f"{fragile} verdicts are"
        notes.append(f"{verdicts} within 20 % of the time limit")
    return notes
