"""Makes the rows of a comparison from system runs: all columns, dollars and footnotes."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from decimal import Decimal
from pathlib import PurePath
from statistics import mean
from typing import Any

from podium.harness.ledger.runs import PLAIN, RunFacts, WorkerFacts
from podium.harness.ledger.totals import (
    QuestionResult,
    SystemRun,
    SystemTotals,
    in_table,
    system_totals,
    total,
)
from podium.harness.plan_habits import PlanHabits, plan_habits
from podium.harness.prices import Book, book_from_json
from podium.harness.prices.cost import gpu_cost
from podium.harness.records import ENVIRONMENT, GRADER, Usage
from podium.harness.text import format_range, pluralise
from podium.reports import blocks, intervals
from podium.reports.blocks import BEST_SINGLE, SINGLE, ReportOptions
from podium.reports.costs import block_arrays, block_columns, regrets
from podium.reports.intervals import Difference, difference, grades_of
from podium.reports.render import usd
from podium.reports.row import COLUMNS, IMPOSSIBLE, TableRow, block_of

Pair = tuple[TableRow, SystemRun]  # a row and the system run that it is made from

OF_FACTS = [name for name in COLUMNS if name in RunFacts.model_fields]
OF_TOTALS = [name for name in COLUMNS if name in {field.name for field in fields(SystemTotals)}]
"""`OF_FACTS`, `OF_TOTALS`: columns with the name of a field of `RunFacts` or `SystemTotals`."""
RULES = {BEST_SINGLE: "chosen on the train split"}
FIRST = "first single worker in the pool's order"
ARGUMENTS = 80
"""Maximum characters of a system's arguments in a footnote; table.csv has longer ones."""


def pair_rows(system_runs: Sequence[SystemRun], options: ReportOptions) -> list[list[Pair]]:
    """Return a report's rows, each with its system run, in sorted blocks of comparable rows."""
    pairs = [_block(group, options) for group in blocks.comparable_groups(system_runs, options)]
    return sorted(pairs, key=lambda block: _order(block[0][0]))


def _block(group: Sequence[tuple[SystemRun, int]], options: ReportOptions) -> list[Pair]:
    system_runs = [system_run for system_run, _ in group]
    reference = blocks.reference_of(system_runs, options.vs)
    place = next((index for index, run in enumerate(system_runs) if run is reference), None)
    arrays = block_arrays(system_runs)
    columns = zip(block_columns(arrays, place), regrets(arrays), strict=True)
    rows = [
        blocks.without_whole_sums(TableRow(**_columns(run, options.maj), **costs, **regret), epochs)
        for (run, epochs), (costs, regret) in zip(group, columns, strict=True)
    ]
    if reference and place is not None:
        name, values = rows[place].system, [grades_of(run.attempts) for run in system_runs]
        rule = "named by --vs" if options.vs else RULES.get(name, FIRST)
        deltas = [difference(grades, values[place], options.equivalence) for grades in values]
        deltas[place] = None
        tests = zip(rows, intervals.holm_adjusted(deltas), strict=True)
        rows = [with_difference(row, delta, (name, rule)) for row, delta in tests]
        rows[place] = replace(rows[place], reference=name, reference_rule=rule, verdict="reference")
    return sorted(zip(rows, system_runs, strict=True), key=lambda pair: _order(pair[0]))


def with_difference(
    row: TableRow, delta: Difference | None, reference: tuple[str, str]
) -> TableRow:
    """Return a row with the columns of `delta`, its difference from a reference; None: unchanged.

    `reference`: the name of the reference, and the rule that chose it.
    """
    if delta is None:
        return row
    return replace(row, reference=reference[0], reference_rule=reference[1], **asdict(delta))


def _columns(system_run: SystemRun, maj: int | None) -> dict[str, Any]:
    facts, totals = system_run.facts, system_totals(system_run)
    values = grades_of(system_run.attempts)
    graded = [attempt for attempt in system_run.attempts if attempt.graded]
    calls = [attempt.totals.worker_calls for attempt in graded]
    roles = sorted({kind.role for kind in system_run.spend} & facts.workers.keys())
    passed, money = intervals.pass_at_ks(values), _money_columns(system_run, totals)
    notes = [note.replace("; ", ", ") for note in _notes(system_run, totals, money)]
    config = {
        role: {"model": (worker := facts.workers[role]).model, **worker.settings} for role in roles
    }
    return {
        **{name: getattr(facts, name) for name in OF_FACTS},
        **{name: getattr(totals, name) for name in OF_TOTALS},
        **money,
        **intervals.accuracy_columns(values),
        **_optional_columns(system_run, totals, maj),
        "deviations": "; ".join(deviation.replace("; ", ", ") for deviation in facts.deviations),
        "calls_min": min(calls, default=None),
        "calls_max": max(calls, default=None),
        "calls_expected": format_range(facts.calls_expected),
        "epochs": system_run.epochs,
        "price_book": str(facts.prices["name"]),
        "price_book_sha256": str(facts.prices["sha256"]),
        "knowledge_cutoff": "; ".join(
            f"{role}: {worker.knowledge_cutoff}" for role, worker in _market(system_run).items()
        ),
        "config": _json(config),
        "args": _json(_arguments(facts)),
        "notes": "; ".join(notes),
        "n_fragile": sum(attempt.fragile for attempt in graded),
        "pass_at_5": intervals.accuracy(passed.get(5, {})),
        "pass_at_10": intervals.accuracy(passed.get(10, {})),
        "usd_per_query": totals.usd,
        "latency_s": totals.critical_path_s,  # older name of critical_path_s, for one release
    }


def _optional_columns(
    system_run: SystemRun, totals: SystemTotals, maj: int | None
) -> dict[str, object]:
    columns: dict[str, object] = {}
    if on := system_run.facts.box_facts:
        columns |= {
            "box_python": on.python,
            "box_image": on.image,
            "box_image_id": on.image_id,
            "box_packages": " ".join(on.packages),
        }
    columns |= _turns(system_run.attempts)
    columns |= plan_columns(system_run.attempts)
    unused = [attempt.unused for attempt in system_run.attempts if attempt.unused is not None]
    columns |= {"unused": mean(unused)} if unused else {}
    columns |= intervals.official_columns(system_run.attempts)[0]
    columns |= intervals.tries_columns(grades_of(system_run.attempts), system_run.epochs, maj)
    if totals.n_planned:
        faults = totals.plan_faults
        invalid = sum(faults.values())
        columns |= {
            "n_invalid_plans": invalid,
            "invalid_plan_pct": 100 * invalid / totals.n_graded,
            "invalid_plan_reason": min(faults, key=lambda name: (-faults[name], name), default=""),
        }
    if voted := intervals.majority(system_run, maj):
        columns |= {"maj_k": voted[0], "maj_accuracy": intervals.accuracy(voted[1])}
    return columns


def habits_of(attempts: Sequence[QuestionResult]) -> PlanHabits | None:
    """Return statistics on a conductor's plans; None for a system without plans."""
    return plan_habits([attempt.plan_shape for attempt in attempts if attempt.plan_shape])


def plan_columns(attempts: Sequence[QuestionResult]) -> dict[str, object]:
    """Return a row's columns on its conductor's plans; empty for systems without plans."""
    habits = habits_of(attempts)
    if habits is None:
        return {}
    right = [result.value for result in attempts if result.plan_shape and result.value is not None]
    return {
        "valid_plan_accuracy": mean(right) if right else None,
        "one_step_pct": 100 * habits.one_step,
        "distinct_plans": habits.distinct,
        "commonest_plan_pct": 100 * habits.commonest,
        "worker_entropy": habits.worker_entropy,
    }


TURNS = "{turns:.1f} turns, {tool_calls:.1f} tool calls a sample, {n_limited} ended by a limit"


def _turns(attempts: Sequence[QuestionResult]) -> dict[str, object]:
    """Return a row's columns on multi-turn tasks; empty for other suites."""
    turned = [attempt for attempt in attempts if attempt.turns is not None and attempt.graded]
    if not turned:
        return {}
    return {
        "turns": mean(attempt.turns or 0 for attempt in turned),
        "tool_calls": mean(attempt.tool_calls or 0 for attempt in turned),
        "n_limited": sum(attempt.limit is not None for attempt in turned),
    }


def _order(row: TableRow) -> tuple[object, ...]:
    right = -1.0 if row.accuracy is None else row.accuracy
    suite, split, label, *group = block_of(row)
    rank = ("live", "recorded", "rehearsal", PLAIN).index(label)
    return (suite, split, rank, *group, -right, row.system, row.args)


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False) if value else ""


def systems_table(rows: Sequence[TableRow]) -> list[tuple[str, ...]]:
    """Return a table, header first: each system's source, prompts, deviations from the source."""
    heads = ("system", "source", "prompts (sha256)", "deviations")
    lines = {
        (f"`{row.system}`", row.source, row.prompt_sha256[:12] or "none", row.deviations or "none")
        for row in rows
        if row.source
    }
    return [heads, *sorted(lines)]


def _money_columns(system_run: SystemRun, totals: SystemTotals) -> dict[str, Any]:
    book, scored = book_from_json(system_run.facts.prices), system_run.spend.items()
    scoring = total(tally for kind, tally in scored if kind.phase == "score").listed
    around = [tally for kind, tally in scored if kind.phase == ENVIRONMENT]
    environment = total(around).listed if around else None
    paid, n_pairs = totals.paid, len(system_run.attempts)
    return {
        "usd_paid_per_query": totals.usd_paid,
        "usd_paid_low": _per_pair(paid.low, n_pairs),
        "usd_paid_high": _per_pair(paid.high, n_pairs),
        "n_unknown_billed": paid.unknown,
        "usd_gpu_per_query": _per_pair(_gpu(system_run, book), totals.n_graded),
        "usd_scoring_per_query": _per_pair(scoring, totals.n_graded),
        "usd_environment_per_query": _per_pair(environment, totals.n_graded),
        "price_book_date": book.date,
        "price_evidence": "; ".join(
            f"{role}: {book.evidence(worker.price)}" for role, worker in _market(system_run).items()
        ),
        "auditable": not _not_auditable(system_run),
    }


def _per_pair(value: Decimal | None, pairs: int) -> Decimal | None:
    return value / pairs if value is not None and pairs else None


def _gpu(system_run: SystemRun, book: Book) -> Decimal | None:
    """Return dollars of the user's GPUs, by output tokens; None if tokens or prices are unknown."""
    dollars: Decimal | None = None
    for kind, tally in system_run.spend.items():
        worker = system_run.facts.workers.get(kind.role)
        price = book.price(worker.price) if worker else None
        if price is None or price.gpu is None or not in_table(kind):
            continue
        if tally.untold:
            return None
        dollars = (dollars or Decimal(0)) + gpu_cost(Usage(output=tally.output), price.gpu)
    return dollars


def _market(system_run: SystemRun) -> dict[str, WorkerFacts]:
    """Return the called workers that are real models, without graders; empty in a rehearsal."""
    facts, roles = system_run.facts, {kind.role for kind in system_run.spend} - {GRADER}
    names = sorted(roles & facts.workers.keys()) if facts.label != "rehearsal" else ()
    return {name: facts.workers[name] for name in names}


def _not_auditable(system_run: SystemRun) -> dict[str, str]:
    """Return called worker -> why its dollars cannot be audited."""
    roles = {kind.role for kind in system_run.spend if in_table(kind)}
    workers = ((role, system_run.facts.workers.get(role)) for role in sorted(roles))
    return {role: facts.not_auditable for role, facts in workers if facts and facts.not_auditable}


def _notes(system_run: SystemRun, totals: SystemTotals, money: Mapping[str, Any]) -> list[str]:
    """Return a row's footnotes: its limitations, a sentence each."""
    notes = ["uses targets"] if system_run.facts.uses_targets else []
    notes += system_run.facts.notes
    chosen = ", ".join(f"{name}={value}" for name, value in _arguments(system_run.facts).items())
    if 0 < len(chosen) <= ARGUMENTS and not system_run.facts.system.startswith(SINGLE):
        notes.append(f"{system_run.facts.system}: {chosen}")
    if unscored := sorted({result.question for result in system_run.attempts if not result.graded}):
        names = ", ".join(unscored[:10]) + (", ..." if len(unscored) > 10 else "")
        reason = min(result.reason for result in system_run.attempts if result.reason)
        notes.append(f"with an unscored epoch: {names} ({reason[:120]})")
    if missing := totals.n_asked - len(system_run.attempts):
        notes.append(
            f"interrupted: {missing} of {totals.n_asked} (question, epoch) pairs are not asked yet"
        )
    notes += _notes_on_verdicts(system_run)
    if totals.n_unpriced:
        notes.append(f"{totals.n_unpriced} calls have no price")
    notes += _notes_on_counts(totals)
    if (habits := habits_of(system_run.attempts)) and habits.collapse:
        notes.append(f"its {habits.plans} plans have collapsed to {habits.collapse}")
    notes += _notes_on_money(system_run, totals, money)
    if totals.n_failed:
        exact = system_run.facts.label != "live" or totals.usd_spent is not None
        least = f", which may have been billed: paid at least USD {usd(totals.usd_at_least)}"
        notes.append(f"{totals.n_failed} calls failed{'' if exact else least}")
    return notes


def _notes_on_verdicts(system_run: SystemRun) -> list[str]:
    graded = [attempt for attempt in system_run.attempts if attempt.graded]
    notes = intervals.official_columns(graded)[1]
    if fragile := sum(attempt.fragile for attempt in graded):
        verdicts = "1 verdict is" if fragile == 1 else f"{fragile} verdicts are"
        notes.append(f"{verdicts} within 20 % of the time limit")
    counts = Counter(attempt.fallback for attempt in graded if attempt.fallback)
    return notes + [f"{n} of {len(graded)} answers: {text}" for text, n in sorted(counts.items())]


def _notes_on_counts(totals: SystemTotals) -> list[str]:
    calls, samples = totals.n_contradictory, totals.n_overstated
    counts = {
        f"token counts in {pluralise(calls, 'call')} (a sum above or below its parts)": calls,
        f"totals of Inspect in {pluralise(samples, 'sample')} (above their calls)": samples,
    }
    return [f"{IMPOSSIBLE}{text}: see `podium audit`" for text, count in counts.items() if count]


def _notes_on_money(
    system_run: SystemRun, totals: SystemTotals, money: Mapping[str, Any]
) -> list[str]:
    notes = [f"not auditable: {role} ({text})" for role, text in _not_auditable(system_run).items()]
    older = [text for text in money["price_evidence"].split("; ") if text.endswith("carried-back")]
    if older:
        roles, day = ", ".join(text.partition(":")[0] for text in older), money["price_book_date"]
        notes.append(
            f"prices carried back to {day} (a later price, assumed to be valid then): {roles}"
        )
    if (seconds := totals.conductor_s) is not None and system_run.facts.label == "live":
        notes.append(f"its conductor ran on the machine of the run, {seconds:.3f} s per query")
    if (gpu := money["usd_gpu_per_query"]) is not None:
        notes.append(f"on own hardware USD {usd(gpu)} per query, for workers with such a price")
    if scoring := money["usd_scoring_per_query"]:
        notes.append(f"grading by models, in no column: USD {usd(scoring)} per query at list price")
    if turned := _turns(system_run.attempts):
        notes.append(TURNS.format(**turned))
    if environment := money["usd_environment_per_query"]:
        notes.append(f"the task's own models, in no column: USD {usd(environment)} per query")
    if unknown := totals.paid.unknown:
        notes.append(f"calls that were sent and never ended: {unknown}, which may have been billed")
    return notes


def _arguments(facts: RunFacts) -> dict[str, object]:
    """Return a system's arguments, paths cut to file names because folders differ by machine."""
    arguments: dict[str, object] = dict(facts.args)
    for name, value in facts.args.items():
        path = PurePath(value if isinstance(value, str) else "")
        if path.is_absolute() or path.suffix[1:].isalpha():  # `openai/gpt-4.1` is no path
            arguments[name] = path.name
    return arguments


def usd_cell(value: Decimal | None, unpriced: int, auditable: bool = True) -> str:
    """Return a table cell with dollars per query or, if unknown, the number of unpriced calls."""
    if value is None and not auditable:
        return "not auditable"
    return f"—({unpriced} unpriced)" if value is None and unpriced else usd(value)


def paid_cell(
    low: Decimal | None, high: Decimal | None, unpriced: int, auditable: bool = True
) -> str:
    """Return a table cell with the paid dollars: a number, a range, or a lower bound.

    >>> paid_cell(Decimal("0.0123"), Decimal("0.015"), 0)
    '0.0123–0.0150'
    """
    if low is None or (high is None and unpriced):
        return usd_cell(None, unpriced, auditable)
    if high is None:
        return f"{usd(low)}–?"
    return usd(low) if low == high else f"{usd(low)}–{usd(high)}"
