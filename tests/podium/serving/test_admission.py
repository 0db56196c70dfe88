"""Who is let in: requests at once, models, and dollars, with the limit that refuses named."""

import logging
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio
import pytest
from inspect_ai.model import ChatMessageUser

from podium.harness.budget import Spend
from podium.harness.errors import DayLimit, QuestionLimit, SpendLimit
from podium.harness.ledger.recorder import recording_calls
from podium.harness.pool import Pool
from podium.harness.prices.cost import Price
from podium.harness.records import Usage
from podium.serving.access_keys import Caller
from podium.serving.admission import Admission, ServingLimits
from tests.harness.runs import BOOK, allowed
from tests.podium.serving.let_in import (
    ALICE,
    BOB,
    DOLLARS,
    EVENING,
    LOCAL,
    MODEL,
    Wall,
    ask,
    let_in,
    refused,
    spend_by,
    usd,
)
from tests.providers import flaky as moody


def test_more_requests_at_once_than_a_key_may_have_are_refused_for_a_second() -> None:
    admission = Admission(DOLLARS, ServingLimits(concurrency=2), Wall())
    few = replace(BOB, concurrency=1)
    with ExitStack() as open_requests:
        for caller in (ALICE, ALICE, few, LOCAL, LOCAL):
            open_requests.enter_context(admission.admit(caller, MODEL))
        for caller, most in ((ALICE, 2), (few, 1), (LOCAL, 2)):
            refusal = refused(admission, caller)
            assert (refusal.status, refusal.kind, refusal.retry_after_s) == (429, "too_many", 1)
            assert str(refusal).startswith(f"This key has {most} requests in flight")
        assert admission.in_flight == 5
    assert admission.in_flight == 0
    with admission.admit(ALICE, MODEL):
        pass


def test_a_request_that_fails_leaves_its_place_to_the_next() -> None:
    admission = Admission(DOLLARS, ServingLimits(concurrency=1), Wall())
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), admission.admit(ALICE, MODEL):
            raise ZeroDivisionError


def test_a_model_that_a_key_may_not_ask_by_any_of_its_names_is_forbidden() -> None:
    admission, caller = let_in(), replace(ALICE, models=("podium/mini",))
    refusal = refused(admission, caller, "podium/ultra", "podium/ultra-20261123-0123")
    assert (refusal.status, refusal.kind, refusal.param) == (403, "forbidden", "model")
    assert "podium/ultra." in str(refusal)
    with admission.admit(caller, "podium/moa-lite", "podium/mini"):
        pass


@pytest.mark.parametrize(
    ("limits", "caller", "said", "wait"),
    [
        ({"max_usd": 3}, ALICE, "--max-usd 3", None),
        ({"max_usd_per_day": 3}, ALICE, "--max-usd-per-day 3", 60),
        ({"max_usd_per_key": 3}, ALICE, "--max-usd-per-key 3", None),
        ({"max_usd_per_key": 3}, LOCAL, "--max-usd-per-key 3", None),
        ({"max_usd_per_key": 9}, replace(ALICE, max_usd=usd(3)), "alice.max_usd 3", None),
        ({}, replace(ALICE, max_usd_per_day=usd(3)), "alice.max_usd_per_day 3", 60),
        ({"max_usd": 3, "max_usd_per_day": 3}, ALICE, "--max-usd 3", None),
    ],
)
def test_once_the_dollars_are_gone_nobody_is_let_in_and_the_limit_is_named(
    limits: dict[str, int], caller: Caller, said: str, wait: int | None
) -> None:
    admission = let_in(limits)
    spend_by(admission, caller, 1, 2)
    refusal = refused(admission, caller)
    assert (refusal.status, refusal.kind) == (429, "out_of_budget")
    assert refusal.retry_after_s == wait
    assert str(refusal).startswith(f"$3.0000 of {said} is spent, and the next call could pass it")
    assert ("; a new day begins at 00:00 UTC." in str(refusal)) == (wait is not None)
    assert "same command" not in str(refusal)


@pytest.mark.parametrize(
    ("limits", "caller", "said", "error"),
    [
        ({"max_usd": 3}, ALICE, "of --max-usd 3 is spent", SpendLimit),
        ({"max_usd_per_day": 3}, ALICE, "of --max-usd-per-day 3 is spent", DayLimit),
        ({"max_usd_per_key": 3}, ALICE, "of --max-usd-per-key 3 is spent", SpendLimit),
        ({}, replace(ALICE, max_usd=usd(3)), "of alice.max_usd 3 is spent", SpendLimit),
        ({}, replace(ALICE, max_usd_per_day=usd(3)), "alice.max_usd_per_day 3 is", DayLimit),
        ({"max_usd_per_query": 3}, ALICE, "could pass --max-usd-per-query 3 (", QuestionLimit),
    ],
)
def test_a_call_that_could_pass_a_limit_is_not_made_and_the_limit_is_named(
    limits: dict[str, int], caller: Caller, said: str, error: type[SpendLimit]
) -> None:
    clock = Wall()
    admission = let_in(limits, clock)

    async def two_calls() -> None:
        with admission.admit(caller, MODEL) as spend:
            await ask(spend, 2, 2)
            await ask(spend, 2, 2)

    with pytest.raises(SpendLimit) as stop:
        anyio.run(two_calls)
    assert type(stop.value) is error
    assert said in str(stop.value)
    assert str(stop.value).count("(it could cost up to $2)") == 1
    assert "same command" not in str(stop.value)
    refusal = admission.refusal(stop.value)
    assert (refusal.status, refusal.kind) == (429, "out_of_budget")
    assert refusal.retry_after_s == (60 if error is DayLimit else None)
    clock.now += timedelta(minutes=5)  # its day is over: asking again helps at once
    assert admission.refusal(stop.value).retry_after_s == (1 if error is DayLimit else None)


def test_a_key_without_dollars_leaves_the_others_theirs() -> None:
    admission = let_in({"max_usd_per_key": 3})
    spend_by(admission, ALICE, 3)
    refused(admission, ALICE)
    spend_by(admission, BOB, 3)
    assert admission.spend.gone == 6


def test_a_new_day_has_new_dollars_and_a_request_in_flight_counts_where_it_was_let_in() -> None:
    clock = Wall()
    admission = let_in({"max_usd_per_day": 3, "max_usd": 7}, clock)

    async def over_midnight() -> None:
        with admission.admit(ALICE, MODEL) as late:
            await ask(late, 2, 2)
            clock.now += timedelta(minutes=2)
            with admission.admit(ALICE, MODEL) as early:
                await ask(early, 3, 3)
                with pytest.raises(DayLimit):
                    await ask(early)
                await ask(late)
                with pytest.raises(DayLimit):
                    await ask(late)

    anyio.run(over_midnight)
    refusal = refused(admission, ALICE)
    assert "--max-usd-per-day 3" in str(refusal)
    assert refusal.retry_after_s == 24 * 3600 - 60
    assert admission.spend.gone == 6


def test_a_clock_that_is_set_back_gives_no_day_its_dollars_twice() -> None:
    clock = Wall()
    admission = let_in({"max_usd_per_day": 3}, clock)
    clock.now += timedelta(minutes=2)
    spend_by(admission, ALICE, 3)
    for minutes in (-2, 2):
        clock.now += timedelta(minutes=minutes)
        refused(admission, ALICE)


def test_a_clock_in_another_zone_has_the_same_days() -> None:
    clock = Wall()
    admission = let_in({"max_usd_per_day": 3}, clock)
    spend_by(admission, ALICE, 3)
    clock.now = EVENING.astimezone(ZoneInfo("Asia/Tokyo"))
    assert refused(admission, ALICE).retry_after_s == 60


def test_a_limit_that_is_changed_in_a_keys_table_holds_from_the_next_request_on() -> None:
    admission = let_in()
    spend_by(admission, ALICE, 3)
    refused(admission, replace(ALICE, max_usd=usd(3)))
    spend_by(admission, replace(ALICE, max_usd=usd(4)), 1)
    refused(admission, replace(ALICE, max_usd=usd(4)))
    spend_by(admission, ALICE, 1)


def test_a_limit_that_is_set_while_calls_are_in_flight_counts_them() -> None:
    admission, limited = let_in(), replace(ALICE, max_usd=usd(3))

    async def beside() -> None:
        with admission.admit(ALICE, MODEL) as first:
            async with allowed(first, "bob", usd(2)) as allowance, anyio.create_task_group() as all:
                with admission.admit(limited, MODEL) as second:
                    all.start_soon(too_much, second)
                    await anyio.wait_all_tasks_blocked()
                    assert asked == []  # it waits: two dollars of three are held
                    allowance.paid(first.price("bob", Usage(input=2)))
                    allowance.release()
        assert asked == ["refused"]

    async def too_much(spend: Spend) -> None:
        with pytest.raises(SpendLimit, match=r"of alice\.max_usd 3 is spent"):
            await ask(spend, 2, 2)
        asked.append("refused")

    asked: list[str] = []
    anyio.run(beside)


def test_after_a_call_without_a_price_no_limited_request_is_let_in() -> None:
    admission = let_in({"max_usd_per_day": 100})
    spend_by(admission, ALICE, None)
    refusal = refused(admission, BOB)
    assert (refusal.kind, refusal.retry_after_s) == ("out_of_budget", None)
    assert str(refusal).endswith(
        "so --max-usd-per-day cannot be enforced: complete the price book or leave "
        "--max-usd-per-day out."
    )
    free = let_in()
    spend_by(free, ALICE, None, 1)


def test_a_reply_above_its_bound_is_told_once_where_a_key_alone_has_a_limit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    admission = let_in({"max_usd_per_key": 9})

    async def lies() -> None:
        for _ in range(2):
            with admission.admit(ALICE, MODEL) as spend:
                await ask(spend, cost=2, most=1)

    with caplog.at_level(logging.WARNING):
        anyio.run(lies)
    assert [one.getMessage().split(" cost")[0] for one in caplog.records] == ["A reply of ada"]


def test_days_that_are_over_are_let_go() -> None:
    clock = Wall()
    admission = let_in(clock=clock)
    for _ in range(50):
        spend_by(admission, ALICE, 1)
        clock.now += timedelta(days=1)
    counted = Counter(scope.day is None for scope in admission._meters)
    assert counted == {True: 2, False: 2}


MOODY = replace(BOOK, prices={"moody/sage": Price(Decimal(0), Decimal(1_000_000) / 777)})
"""A moody worker's reply may have 777 tokens: a request costs up to a dollar."""


def test_a_call_that_is_lost_counts_in_every_meter_and_a_days_limit_stops_the_next(
    tmp_path: Path,
) -> None:
    """As a pool makes calls: past the journal, Inspect and the tries that it makes by itself."""
    moody.SENT.clear()
    admission = Admission(MOODY, ServingLimits(max_usd_per_day=Decimal("2.5")), Wall())

    async def ask_moody() -> None:
        with admission.admit(ALICE, MODEL) as spend:
            meters.extend(spend.meters)
            pool = Pool({"sage": moody.model(max_retries=9)}, spend=spend)
            text = "q1: drop drop drop answer"
            await pool.ask("sage", [ChatMessageUser(content=text)], text)

    meters: list[Spend] = []
    with (
        recording_calls(tmp_path, "serving", moody.HEAD),
        pytest.raises(DayLimit, match=r"of --max-usd-per-day 2\.5 is spent.* up to \$1\)"),
    ):
        anyio.run(ask_moody)
    assert moody.SENT == ["sage drop"] * 2
    assert [round(meter.gone, 6) for meter in meters] == [2] * 5
