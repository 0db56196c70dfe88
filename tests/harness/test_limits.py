"""A limit of dollars against a provider that gets dearer, answers in bursts, drops and lies."""

from contextvars import copy_context
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
from inspect_ai.model import ChatMessageUser, GenerateConfig, get_model

from podium.cli import main
from podium.harness.budget import Spend
from podium.harness.errors import SpendLimit, UserError
from podium.harness.ledger.recorder import recording_calls
from podium.harness.pool import Pool
from podium.harness.prices.cost import Price
from podium.harness.request import Offered, Request, client_retries, recorded_settings
from tests.harness.limited_runs import CHEAP, TOKENS, Limits, asked, burst, lie, ramp, trained
from tests.harness.runs import BOOK
from tests.providers import CLIENTS_WARN, dropping, serve, taking, write_pool
from tests.providers import flaky as moody

pytestmark = CLIENTS_WARN

FIVE = Decimal(5)
BOUND = Decimal("0.550276")
"""$100 / Mtok x 5,500 tokens, and 276 for the prompt."""
TOOK = 3 * Decimal("0.55") + Decimal("0.00002")
"""What a reply of `lie` costs."""


@pytest.mark.parametrize("worker", ["olive", "plum", "quince"])
def test_calls_that_get_dearer_after_twelve_cheap_ones_pass_no_limit(
    worker: str, tmp_path: Path
) -> None:
    found = asked(tmp_path, ramp(), Limits(run=FIVE), worker)
    assert found.bound == BOUND
    most = 2 if worker == "quince" else 1  # its client may try again by itself
    assert FIVE - most * BOUND < found.billed == found.spend.gone <= FIVE
    assert len(found.bill.lines) + len(found.refused) == 60


@pytest.mark.parametrize("at_once", [1, 32, 60])
def test_a_burst_passes_no_limit_at_any_concurrency(at_once: int, tmp_path: Path) -> None:
    found = asked(tmp_path, burst(), Limits(run=FIVE, at_once=at_once))
    assert found.billed == found.spend.gone == 9 * Decimal("0.55002")
    assert all("(it could cost up to $0.56)" in said for said in found.refused)


def test_a_provider_that_lies_from_its_first_reply_is_asked_one_call_at_a_time(
    tmp_path: Path,
) -> None:
    found = asked(tmp_path, lie(), Limits(run=FIVE))
    assert len(found.bill.lines) == 3
    assert found.billed == 3 * TOOK <= FIVE


def test_a_reply_above_its_bound_passes_a_limit_by_the_excess_of_the_calls_in_flight(
    tmp_path: Path,
) -> None:
    found = asked(tmp_path, [taking(CHEAP), *lie()], Limits(run=FIVE))
    in_flight = 8  # as many bounds as are left of five dollars
    assert len(found.bill.lines) == 1 + in_flight
    assert FIVE < found.billed <= FIVE + in_flight * (TOOK - BOUND)
    assert found.billed == found.spend.gone


def test_after_a_reply_above_its_bound_its_worker_is_asked_one_call_at_a_time(
    tmp_path: Path,
) -> None:
    """The second one lies; up to ten are in flight with it."""
    script = [taking(CHEAP), taking(3 * TOKENS), *[taking(CHEAP, wait_s=0.03)] * 30]
    found = asked(tmp_path, script, Limits(run=Decimal(6), questions=20))
    times = [line.at for line in found.bill.lines]
    assert len(times) == 20
    assert min(later - sooner for sooner, later in pairwise(times[11:])) >= 0.03
    assert found.billed <= Decimal(6)


def test_no_question_passes_a_limit_per_question(tmp_path: Path) -> None:
    limits = Limits(question=Decimal("2.5"), questions=20, calls=8)
    found = asked(tmp_path, ramp(20, 140), limits)
    assert len(found.by_question) == 20
    assert max(found.by_question) <= Decimal("2.5")
    assert sum(found.by_question) == found.billed
    assert all("--max-usd-per-query 2.5 (it could cost up to $0.56)" in s for s in found.refused)


@pytest.mark.parametrize("processes", [1, 2])
def test_no_training_passes_its_limit_in_any_number_of_processes(
    processes: int, tmp_path: Path
) -> None:
    found = trained(tmp_path, ramp(6), FIVE, processes)
    assert FIVE - processes * BOUND < found.billed == found.spend.spent <= FIVE
    assert found.refused


def test_a_training_whose_replies_lie_passes_its_limit_by_the_excess_in_flight(
    tmp_path: Path,
) -> None:
    found = trained(tmp_path, [taking(CHEAP), *lie()], FIVE)
    assert FIVE < found.billed <= FIVE + 8 * (TOOK - BOUND)


def test_a_training_whose_part_is_less_than_a_call_can_cost_is_refused(tmp_path: Path) -> None:
    said = r"'olive' can cost \$0.5503, more than the \$0.5000 allowed for each of 10 processes"
    with pytest.raises(UserError, match=said):
        trained(tmp_path, ramp(), FIVE, processes=10)


def test_a_limit_below_one_bound_asks_nobody(tmp_path: Path) -> None:
    found = asked(tmp_path, ramp(), Limits(run=Decimal("0.5"), questions=3))
    assert found.bill.lines == []
    assert found.refused[0].startswith(
        "$0.0000 of --max-usd 0.5 is spent, and the next call could pass it (it could cost up to "
        "$0.56); to continue, run the same command"
    )


def test_a_worker_without_max_tokens_is_asked_one_call_at_a_time(tmp_path: Path) -> None:
    limits = Limits(run=FIVE, questions=8, settings="max_retries = 0, max_connections = 64")
    found = asked(tmp_path, [taking(CHEAP, wait_s=0.02)] * 8, limits)
    times = [line.at for line in found.bill.lines]
    assert found.bound is None
    assert min(later - sooner for sooner, later in pairwise(times)) >= 0.02
    assert len(times) == 8


MOODY = replace(BOOK, prices={"moody/sage": Price(Decimal(0), Decimal(1_000_000) / 777)})
"""A moody worker's reply may have 777 tokens: a request costs up to a dollar."""


async def ask_moody(spend: Spend, *texts: str, connections: int = 10) -> list[str]:
    models = {"sage": moody.model(max_connections=connections, max_retries=9)}
    refused: list[str] = []

    async def one(text: str) -> None:
        pool = Pool(models, spend=spend.for_question())
        try:
            await pool.ask("sage", [ChatMessageUser(content=text)], text)
        except SpendLimit as stop:
            refused.append(str(stop))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for text in texts:
                tasks.start_soon(one, text)
    return refused


@pytest.mark.parametrize("journal", [True, False], ids=["journal", "no journal"])
def test_an_attempt_without_an_answer_counts_at_once_and_the_next_needs_an_allowance(
    journal: bool, tmp_path: Path
) -> None:
    moody.SENT.clear()
    spend = Spend(MOODY, limit=Decimal("2.5"))
    if journal:
        with recording_calls(tmp_path, "training", moody.HEAD):
            (said,) = anyio.run(ask_moody, spend, "q1: drop drop drop answer")
    else:
        (said,) = anyio.run(ask_moody, spend, "q1: drop drop drop answer")
    assert moody.SENT == ["sage drop"] * 2
    assert round(spend.gone, 6) == 2
    assert "could pass it (it could cost up to $1)" in said


def test_an_attempt_that_was_refused_counts_nothing(tmp_path: Path) -> None:
    moody.SENT.clear()
    spend = Spend(MOODY, limit=Decimal("1.01"))
    assert anyio.run(ask_moody, spend, "q1: 429 500 429 answer") == []
    assert len(moody.SENT) == 4
    assert spend.gone == 3 * MOODY.prices["moody/sage"].output / 1_000_000


@pytest.mark.parametrize("connections", [1, 3])
def test_retries_and_new_calls_that_wait_for_one_another_come_to_an_end(connections: int) -> None:
    """Whoever holds an allowance has a connection, so nobody waits for a waiting call."""
    moody.SENT.clear()
    spend = Spend(MOODY, limit=Decimal("7.1"))
    texts = [f"q{n}: drop answer" for n in range(6)]
    assert anyio.run(lambda: ask_moody(spend, *texts, connections=connections)) == []
    assert 6 < spend.gone < Decimal("6.1")


def test_the_tries_of_a_providers_own_client_are_held_back_and_counted(tmp_path: Path) -> None:
    script = [dropping(), dropping(), taking(CHEAP)]
    limits = Limits(run=Decimal("1.6"), questions=1, client_retries=2)
    assert asked(tmp_path / "small", script, limits).bill.lines == []
    found = asked(tmp_path / "large", script, replace(limits, run=Decimal("1.7")))
    assert len(found.bill.lines) == 3
    assert found.spend.gone == 2 * Decimal("0.550275") + Decimal("0.05002")


@pytest.mark.parametrize(
    ("model", "args", "retries"),
    [
        ("openai/gpt-5-mini", {}, 2),
        ("anthropic/claude-sonnet-5", {"max_retries": 5}, 5),
        ("together/some", {}, 2),
        ("google/gemini-2.5-pro", {}, 1),
        ("scripted/sage", {"reply": str}, 0),
    ],
)
def test_how_often_a_client_may_try_again_is_read_from_it(
    model: str, args: dict[str, Any], retries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOGETHER_API_KEY", "test")
    given: dict[str, Any] = {} if model.startswith("scripted") else {"api_key": "test"}
    assert client_retries(get_model(model, memoize=False, **given, **args)) == retries
    quiet = recorded_settings("openai/gpt-5-mini", GenerateConfig(), {})[1]
    assert client_retries(get_model("openai/gpt-5-mini", memoize=False, api_key="x", **quiet)) == 0


@pytest.mark.parametrize(
    ("model", "config", "most"),
    [
        ("openai/gpt-5-mini", {}, None),
        ("openai/gpt-5-mini", {"max_tokens": 90, "num_choices": 3}, 270),
        ("openai/gpt-5-mini", {"max_tokens": 90, "extra_body": {"max_output_tokens": 500}}, 500),
        ("anthropic/claude-sonnet-4-0", {}, 32000),
        ("anthropic/claude-sonnet-4-0", {"reasoning_tokens": 8000}, 40000),
        ("anthropic/claude-sonnet-4-0", {"max_tokens": 9000, "reasoning_tokens": 8000}, 9000),
        ("google/gemini-2.5-pro", {"max_tokens": 900, "reasoning_tokens": 800}, 900),
    ],
)
def test_the_limit_of_a_reply_is_what_is_sent(
    model: str, config: dict[str, object], most: int | None
) -> None:
    """However it is set: by the worker, or by the step over the worker's own."""
    settings = GenerateConfig.model_validate(config)
    own = get_model(model, config=settings, api_key="test", memoize=False)
    bare = get_model(model, api_key="test", memoize=False)
    assert Request("w", own, [], model).max_tokens == most
    assert Request("w", bare, [], model, offered=Offered(config=settings)).max_tokens == most


def test_what_settings_add_to_a_prompt_is_part_of_it() -> None:
    config = GenerateConfig(system_message="Be brief, señor.")
    model = get_model("openai/gpt-5-mini", config=config, api_key="test", memoize=False)
    assert Request("w", model, [ChatMessageUser(content="Hi")], "p").prompt_bytes == 17 + 2


def pool_file(folder: Path, *workers: str) -> str:
    head = 'label = "live"\nprices = "book.toml"\n'
    (folder / "book.toml").write_text(
        'date = "2026-01-02"\nsource = "made up"\n[usd_per_mtok]\n'
        '"openai/bounded" = { input = "1", output = "1" }\n'
        '"openai/free" = { input = "0", output = "0" }\n'
        '"openai/spends" = { input = "1", output = "1", orchestration_in = "1" }\n'
    )
    tables = (
        f'[[workers]]\nname = "{name}"\nmodel = "openai/{name}"\n{config}\n'
        'knowledge_cutoff = "unknown"\nargs = { api_key = "x", base_url = "http://127.0.0.1:9" }\n'
        for name, _, config in (one.partition(" ") for one in workers)
    )
    (folder / "pool.toml").write_text(head + "".join(tables))
    return str(folder / "pool.toml")


@pytest.mark.slow
def test_doctor_says_of_each_worker_that_is_asked_one_call_at_a_time_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = "config = { max_tokens = 9 }"
    path = pool_file(tmp_path, f"bounded {few}", "free ", f"spends {few}")
    main(["doctor", "--pool", path, "--max-usd", "9"])
    said = [one for one in capsys.readouterr().out.splitlines() if "at a time" in one]
    assert said == [
        "- note: under --max-usd 'spends' is asked one call at a time: it uses tokens of its "
        "own that have no limit."
    ]
    main(["doctor", "--pool", pool_file(tmp_path, "bounded "), "--max-usd", "9"])
    assert (
        "- note: under --max-usd 'bounded' is asked one call at a time: it has no max_tokens. Set "
        "one in its config to allow parallel calls." in capsys.readouterr().out
    )


def test_a_run_with_a_limit_says_once_who_is_asked_one_call_at_a_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve([taking(CHEAP)] * 3) as server:
        path = write_pool(tmp_path, server, "max_retries = 0")
        words = ["run", "--suite", "practice-integer", "--system", "single:olive", "--pool", path]
        words += ["--limit", "2", "--log-dir", str(tmp_path / "run")]
        assert copy_context().run(main, [*words, "--max-usd", "9"]) == 0
    said = [one for one in capsys.readouterr().err.splitlines() if "one call at a time" in one]
    assert [one.split()[4] for one in said] == ["'olive'"]
    assert len(server.bill.lines) == 2
