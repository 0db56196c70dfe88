"""Sums of calls, from rows made by hand: known values are added, unknown ones are counted."""

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.harness.errors import UserError
from podium.harness.ledger.call import LENGTH_REFUSED, Call, Scope
from podium.harness.ledger.totals import (
    CallKind,
    CallSum,
    Paid,
    SpentSoFar,
    SystemRun,
    add_up,
    in_table,
    is_uncounted,
    last_attempts,
    mean_if_known,
    query_totals,
    spent_by,
    sums_by,
    system_totals,
    total,
    usage_of,
)
from podium.harness.records import CONDUCTOR, Usage
from tests.harness.ledger.ledger_rows import killed, refused, row
from tests.reports.made_runs import made_run

ON_GPU = row(gpu_s=Decimal(3), usd_gpu=Decimal("0.02"))
FUGU = row(orchestration_in=7, orchestration_out=2, total_reported=29, reasoning=None)
UNPRICED = row(usd=None, usd_list=None, usd_high=None)
STORED = row(output=None, cache="read", billable="no", usd=Decimal(0))
ROWS = (row(), ON_GPU, FUGU, UNPRICED, STORED, killed(), killed(usd_high=None), refused())


def test_sums_of_calls_of_every_kind() -> None:
    assert add_up(ROWS) == CallSum(
        calls=8,
        failed=3,
        untold=3,  # STORED and both killed calls; the refused one used no tokens
        unthought=4,  # the same and FUGU
        input=40,
        cache_read=16,
        cache_write=4,
        output=20,
        reasoning=6,
        orchestration=9,
        usd=3 * Decimal("0.000063"),
        unbilled=3,
        usd_list=4 * Decimal("0.000065"),
        unlisted=3,
        high=4 * Decimal("0.000063") + Decimal("0.01"),
        unbounded=2,
        unpriced=1,
        unknown=2,
        on_gpu=1,
        gpu_s=Decimal(3),
        usd_gpu=Decimal("0.02"),
    )


def test_one_unknown_dollar_amount_makes_an_answered_call_unpriced() -> None:
    assert add_up([row(usd=None)]).unpriced == add_up([row(usd_list=None)]).unpriced == 1
    assert add_up([row(total_reported=21)]).contradictory == 1
    assert add_up([row(gpu_s=Decimal(1))]).usd_gpu == 0


def test_unknown_columns_of_an_answered_call_add_nothing() -> None:
    sums = add_up([row(input_uncached=None, cache_read=None, cache_write=None, reasoning=None)])
    assert (sums.input, sums.cache_read, sums.cache_write, sums.output) == (0, 0, 0, 5)
    assert (sums.tokens_in, sums.tokens_out, sums.tokens_reasoning) == (0, 5, None)
    fugu = row(orchestration_in=None, orchestration_out=3)
    assert add_up([fugu]).orchestration == 3
    assert add_up([replace(fugu, orchestration_in=4, orchestration_out=None)]).orchestration == 4


@given(st.lists(st.sampled_from(ROWS), max_size=8), st.integers(0, 8))
def test_sums_of_parts_add_up_to_the_sum_of_the_whole(rows: list[Call], cut: int) -> None:
    assert total([add_up(rows[:cut]), add_up(rows[cut:])]) == add_up(rows)
    assert total(sums_by(rows, lambda call: call.billable).values()) == add_up(rows)


def test_a_sum_with_an_unknown_part_is_unknown() -> None:
    known, unknown = add_up([row(), FUGU]), add_up([row(), UNPRICED, killed()])
    assert (known.tokens_in, known.tokens_out, known.tokens_reasoning) == (30, 10, None)
    assert (known.billed, known.listed) == (Decimal("0.000126"), Decimal("0.00013"))
    assert known.paid == Paid(known.usd, known.usd)
    assert known.paid.exact == Decimal("0.000126")
    assert (unknown.tokens_in, unknown.tokens_out, unknown.tokens_reasoning) == (None,) * 3
    assert (unknown.billed, unknown.listed) == (None, None)
    assert unknown.paid == Paid(row().usd or Decimal(0), None, unknown=1, unpriced=1)
    assert unknown.paid.exact is None
    assert add_up([UNPRICED, UNPRICED, killed()]).paid.unpriced == 2
    assert add_up([row(), killed()]).paid.high == Decimal("0.010063")
    assert add_up([row()]).tokens_reasoning == 2


@pytest.mark.parametrize(
    ("call", "uncounted"),
    [
        pytest.param(row(), False, id="answered"),
        pytest.param(killed(), True, id="killed"),
        pytest.param(refused(), False, id="refused"),
        pytest.param(row(output=None), True, id="answered-without-usage"),
        pytest.param(STORED, True, id="reply-from-a-cache-without-usage"),
        pytest.param(replace(STORED, stop=LENGTH_REFUSED), False, id="refusal-from-a-cache"),
        pytest.param(replace(STORED, stop="max_tokens"), True, id="cut-off-reply-from-a-cache"),
        pytest.param(replace(STORED, output=5), False, id="reply-from-a-cache"),
    ],
)
def test_refused_calls_used_no_tokens(call: Call, uncounted: bool) -> None:
    assert is_uncounted(call) is uncounted
    assert add_up([call]).untold == uncounted


def test_usage_of_calls_is_unknown_if_a_billable_call_reported_none() -> None:
    usage = Usage(10, 5, cache_read=4, cache_write=1, reasoning=2)
    assert usage_of([row(), refused(), row()]) == usage + usage
    assert usage_of([row(), killed()]) is None
    assert usage_of([]) == Usage(reasoning=0)


def test_a_query_keeps_workers_and_conductor_apart_and_leaves_grading_out() -> None:
    scopes: list[Scope] = ["scoring", "environment"]
    others = [row(scope=scope, output=1000) for scope in scopes]
    plan = row(role=CONDUCTOR, output=9, reasoning=9, input_uncached=20)
    totals = query_totals([row(), refused(), plan, *others], conductor_s=1.5)
    assert (totals.calls, totals.worker_calls) == (3, 1)
    assert (totals.tokens_in, totals.tokens_out, totals.tokens_reasoning) == (40, 14, 11)
    assert (totals.worker_tokens_out, totals.conductor_tokens) == (5, 34)
    assert totals.usd == 2 * Decimal("0.000065")
    assert totals.conductor_s == 1.5
    unknown = query_totals([row(), killed(role=CONDUCTOR)])
    assert (unknown.conductor_tokens, unknown.worker_tokens_out) == (None, 5)
    assert (unknown.tokens_out, unknown.usd, unknown.conductor_s) == (None, None, None)
    assert query_totals([row(role="clerk")]).conductor_tokens == 0  # before it in the alphabet


def test_the_last_attempt_of_each_call_remains_in_any_order() -> None:
    first, second, elsewhere = row(attempt=1), row(attempt=2), row(call="c2", attempt=1)
    for calls in ([first, second, elsewhere], [second, elsewhere, first]):
        assert sorted(last_attempts(calls), key=lambda call: call.call) == [second, elsewhere]
    newer = row(attempt=1, event="e2")
    assert last_attempts([first, newer]) == [first]


@pytest.mark.parametrize(
    ("values", "mean"),
    [((1, 2), 1.5), ((1, None), None), ((), None), ((0, 0), 0), ((None,), None)],
)
def test_a_mean_with_an_unknown_value_is_unknown(values: tuple[Any, ...], mean: Any) -> None:
    assert mean_if_known(values) == mean


SOLVED = CallKind(True, "sage", "scripted/sage", "solve", True, True)


def test_only_counted_calls_that_solve_are_in_a_table() -> None:
    assert in_table(SOLVED)
    assert not in_table(SOLVED._replace(counted=False))
    assert not in_table(SOLVED._replace(phase="score"))


def answered(label: str = "live", **changes: Any) -> SystemRun:
    """Return a run of four queries, of which three have a grade, and 4 solving calls."""
    grades = {"q1": [1.0], "q2": [0.0], "q3": [0.0], "q4": [None]}
    run = made_run("pair", grades, label=label)
    first, second, third, ungraded = run.attempts
    attempts = (
        replace(first, planned=True, steps=2, depth=1, overhead_s=0.25, overstated=True),
        replace(second, parsed=False, planned=True, plan_fault="cycle", overhead_s=0.5),
        replace(third, parsed=False, overhead_s=0.75, critical_path_s=2.0),
        replace(ungraded, planned=True, plan_fault="cycle", too_long=True, overstated=True),
    )
    spend = {
        SOLVED: add_up([row(), row(), killed()]),
        SOLVED._replace(counted=False): add_up([row(total_reported=21)]),
        SOLVED._replace(billable=False): add_up([row(usd=Decimal(0))]),
        SOLVED._replace(phase="score"): add_up([row(usd=Decimal(1), usd_high=Decimal(1))]),
    }
    return replace(replace(run, attempts=attempts, spend=spend), **changes)


def test_a_system_has_means_over_graded_queries_and_sums_over_all_attempts() -> None:
    totals = system_totals(answered())
    assert (totals.n_asked, totals.n_graded, totals.n_unparsed, totals.n_too_long) == (4, 3, 1, 0)
    assert (totals.n_planned, totals.plan_faults) == (2, {"cycle": 1})
    assert (totals.n_failed, totals.n_contradictory, totals.n_overstated) == (1, 1, 2)
    assert (totals.calls, totals.tokens_in, totals.tokens_out) == (1, 30, 10)
    assert (totals.worker_tokens_out, totals.conductor_tokens) == (10, 0)
    assert (totals.tokens_reasoning, totals.conductor_s) == (0, None)
    assert totals.usd == Decimal("0.001")
    assert (totals.steps, totals.depth) == (4 / 3, 1)
    assert (totals.critical_path_s, totals.overhead_s) == (1.0, 0.5)
    assert totals.n_unpriced == 0
    assert totals.paid == Paid(
        3 * Decimal("0.000063"), 3 * Decimal("0.000063") + Decimal("0.01"), 1
    )
    assert totals.usd_at_least == 3 * Decimal("0.000063")
    assert (totals.usd_paid, totals.usd_spent, totals.usd_grading) == (None, None, 1)


def test_a_wrong_reply_with_a_plan_fault_or_too_long_a_request_had_an_answer_to_read() -> None:
    run = answered()
    wrong = replace(run.attempts[2], parsed=False)
    for change in ({"plan_fault": "cycle"}, {"too_long": True}):
        attempts = (replace(wrong, **change),)
        assert system_totals(replace(run, attempts=attempts)).n_unparsed == 0
    attempts = (replace(wrong, too_long=True),)
    assert system_totals(replace(run, attempts=attempts)).n_too_long == 1


def test_paid_dollars_come_from_journals_unless_a_journal_is_missing() -> None:
    journals = {"inference": Paid(Decimal(2), Decimal(2)), "scoring": Paid()}
    totals = system_totals(answered(paid=journals))
    assert (totals.usd_spent, totals.usd_paid) == (2, Decimal("0.5"))
    assert (totals.usd_grading, totals.paid) == (None, journals["inference"])
    logs = add_up([row(usd=Decimal(3), usd_high=Decimal(3))])
    for spent, exact in ((Decimal(3), Decimal(3)), (Decimal("2.9"), None)):
        paid = {"inference": Paid(spent, spent, unknown=5, unpriced=6)}
        totals = system_totals(answered(paid=paid, spend={SOLVED: logs}))
        assert totals.usd_spent == exact
        assert (totals.paid.low, totals.paid.unknown, totals.paid.unpriced) == (3, 5, 6)
    assert system_totals(answered(paid={}, spend={SOLVED: CallSum()})).usd_spent == 0


@pytest.mark.parametrize("label", ["recorded", "rehearsal"])
def test_replays_cost_nothing_and_recorded_ones_have_no_duration(label: str) -> None:
    totals = system_totals(answered(label, paid={"inference": Paid(Decimal(2), Decimal(2))}))
    assert (totals.usd_spent, totals.usd_paid, totals.usd_grading) == (0, 0, 0)
    assert (totals.critical_path_s is None) == (totals.overhead_s is None) == (label == "recorded")


def test_a_result_is_neither_fragile_nor_an_erratum_unless_it_is_said() -> None:
    run = made_run("pair", {"q1": [1.0]})
    assert run.logs == ("numbers pair.eval",)
    assert not any(attempt.fragile or attempt.erratum for attempt in run.attempts)


def test_a_run_without_queries_has_no_means() -> None:
    totals = system_totals(answered(attempts=(), paid={}, spend={}))
    assert (totals.n_graded, totals.usd, totals.calls, totals.usd_paid) == (0, None, None, None)
    assert totals.usd_spent == 0


def cents(amount: str, **changes: Any) -> Call:
    return row(usd=Decimal(amount), **changes)


def test_a_limit_counts_what_may_have_been_billed() -> None:
    calls = [
        cents("0.01"),
        cents("0.03"),
        cents("0.02"),
        killed(usd_high=None),  # as much as the dearest call of the same price: 0.03
        killed(usd_high=None),
        killed(usd_high=Decimal("0.5")),
        killed(usd_high=None, price_ref="acme/new"),
        refused(),
        cents("0.07", billable="no", price_ref="acme/new"),
    ]
    spent = spent_by(calls)
    assert spent.usd == Decimal("0.06") + 2 * Decimal("0.03") + Decimal("0.5")
    assert spent.unbounded == Counter({"acme/new": 1})
    assert spent.dearest == {"scripted/sage": Decimal("0.03")}
    assert spent_by([]) == SpentSoFar()


def test_the_dearest_call_of_the_whole_run_bounds_the_calls_of_a_part() -> None:
    overall = SpentSoFar(Decimal(9), dearest={"scripted/sage": Decimal("0.4")})
    spent = spent_by([cents("0.1"), killed(usd_high=None)], overall)
    assert spent.usd == Decimal("0.5")
    assert spent.dearest == {"scripted/sage": Decimal("0.4")}
    assert overall.dearest == {"scripted/sage": Decimal("0.4")}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, r"Calls of 'sage' in one\.jsonl have no price, so --max-usd cannot be enforced"),
        ({"journal": None}, r"Calls of 'sage' in one\.eval have no price"),
    ],
)
def test_a_call_without_a_price_cannot_be_limited(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        spent_by([row(usd=None, **changes)])
    with pytest.raises(UserError, match=message):
        spent_by([row(usd=None, usd_high=None, **changes)])
    with pytest.raises(UserError, match="so --max-usd-per-query cannot"):
        spent_by([row(usd=None)], limit="--max-usd-per-query")
