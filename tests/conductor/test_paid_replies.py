"""Replies of a training: paid for once, drawn anew where a draw is new, kept through kill -9."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import anyio
import pytest

from podium.conductor.grpo_reward import PlanAnswerer, PlanSettings
from podium.harness.errors import UserError, WorkerError
from podium.harness.ledger.journal import FOLDER as LEDGER
from podium.harness.ledger.system_runs import spent
from podium.harness.pool_config import read_pool
from podium.harness.prices import read_book
from podium.harness.records import Reply, Usage
from podium.harness.reply_cache import FOLDER, PaidReplies, key_of
from podium.harness.rewards.outcome import RewardItem, RewardOutcome
from podium.harness.rewards.reward import Reward, RewardSettings
from tests import ROOT
from tests.conductor.plans import BOOK, SOLVE, plan, spec_of
from tests.harness.rewards.service import train
from tests.harness.rewards.small_suites import Graded, exams
from tests.harness.toy_run import Toy, calls, toy_pool
from tests.providers.scripted import Heard, script

ITEM = RewardItem("toy", "train-0", SOLVE)
TOY = frozenset({"toy"})


def rewarded(settings: PlanSettings, *items: RewardItem) -> list[RewardOutcome]:
    """Score in a process's first and only sitting, as far as the files can tell."""
    return anyio.run(Reward(train(Toy()), PlanAnswerer(ECHO, BOOK, settings)).score, items)


ASKED: list[Heard] = []


def counted(heard: Heard) -> str:
    ASKED.append(heard)
    return f"draw {heard.epoch}"


ECHO = spec_of(ada="scripted/echo")


@pytest.fixture(autouse=True)
def asked() -> list[Heard]:
    script("echo", counted)
    ASKED.clear()
    return ASKED


# --- paid once --------------------------------------------------------------------------------


def test_a_resumed_training_pays_nothing_twice(tmp_path: Path, asked: list[Heard]) -> None:
    settings = PlanSettings(log_dir=tmp_path, kept=TOY)
    twice = plan((0, "Solve it.", []), (0, "Check it.", ["all"]))
    items = [RewardItem("toy", f"train-{n}", twice) for n in range(4)]
    first = rewarded(settings, *items)
    bill = spent(tmp_path, BOOK)
    assert len(asked) == 8
    assert bill > 0
    again = rewarded(settings, *items)
    assert len(asked) == 8
    assert spent(tmp_path, BOOK) == bill
    assert [(one.value, one.usd, one.usage) for one in again] == [
        (one.value, one.usd, one.usage) for one in first
    ]
    assert [one.work.cached for one in (*first, *again) if one.work] == [0] * 4 + [2] * 4


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(RewardItem("toy", "train-0", SOLVE, replicate=1), id="another replicate"),
        pytest.param(RewardItem("toy", "train-1", SOLVE), id="another question"),
        pytest.param(RewardItem("toy", "train-0", plan((0, "Go.", []))), id="another subtask"),
    ],
)
def test_what_differs_is_drawn_anew(other: RewardItem, tmp_path: Path, asked: list[Heard]) -> None:
    rewarded(PlanSettings(log_dir=tmp_path, kept=TOY), ITEM, other)
    assert len(asked) == 2


def test_another_seed_or_model_is_drawn_anew(tmp_path: Path, asked: list[Heard]) -> None:
    for seed in (0, 1):
        rewarded(PlanSettings(log_dir=tmp_path, kept=TOY, seed=seed), ITEM)
    assert len(asked) == 2


def test_nothing_is_kept_unless_a_training_says_so(tmp_path: Path, asked: list[Heard]) -> None:
    for _ in range(2):
        rewarded(PlanSettings(log_dir=tmp_path), ITEM)
    assert len(asked) == 2
    assert not (tmp_path / FOLDER).exists()


def test_equal_requests_in_flight_are_one_call_and_a_failed_one_is_asked_anew() -> None:
    made: list[str] = []

    async def ask() -> Reply:
        made.append("asked")
        await anyio.lowlevel.checkpoint()
        if len(made) == 1:
            raise WorkerError("down")
        return Reply("ada", "42", Usage())

    async def both() -> list[object]:
        paid, key = PaidReplies(), key_of("the same")
        waiting = [paid.reply(key, ask, lasting=True) for _ in range(3)]
        return [*await asyncio.gather(*waiting, return_exceptions=True)]

    failed, *others = asyncio.run(both())
    assert isinstance(failed, WorkerError)
    assert sorted(others, key=str) == [
        (Reply("ada", "42", Usage()), False),
        (Reply("ada", "42", Usage()), True),
    ]
    assert len(made) == 2


def test_replies_to_questions_that_may_not_be_published_are_in_no_file(
    tmp_path: Path, asked: list[Heard]
) -> None:
    script("echo", lambda heard: f"You asked: {heard.messages[0].text} CANARY")
    suite = Graded(publishable=False)
    settings = PlanSettings(log_dir=tmp_path, kept=frozenset())
    item = RewardItem(suite.name, "q1", SOLVE)
    reward = Reward(exams(suite), PlanAnswerer(ECHO, BOOK, settings))
    (outcome,) = anyio.run(reward.score, [item])
    assert outcome.work
    assert outcome.work.plan == ""
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"intent" in written
    assert not any(word in written for word in (b"CANARY", b"Say 1", b"Solve it"))


def test_a_second_training_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / FOLDER / "rank-0.sqlite"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("CREATE TABLE held (by TEXT)")
        with pytest.raises(UserError, match="another process has it open"):
            rewarded(PlanSettings(log_dir=tmp_path, kept=TOY), ITEM)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "rank-0.sqlite").write_bytes(b"no database, and longer than a header" * 9)
    with pytest.raises(UserError, match="move it away"):
        rewarded(PlanSettings(log_dir=tmp_path, kept=TOY), ITEM)


# --- kill -9 ----------------------------------------------------------------------------------

SYSTEM_RUN = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import anyio
from tests.conductor.plans import plan
from tests.harness.rewards.service import train
from tests.harness.toy_run import Toy
from podium.conductor.grpo_reward import PlanAnswerer, PlanSettings
from podium.harness.pool_config import read_pool
from podium.harness.prices import read_book
from podium.harness.rewards.reward import Reward, RewardSettings
from podium.harness.rewards.outcome import RewardItem

spec = read_pool(sys.argv[3])
settings = PlanSettings(log_dir=Path(sys.argv[2]), kept=frozenset({"toy"}))
answer = PlanAnswerer(spec, read_book(spec.prices), settings)
reward = Reward(train(Toy()), answer, RewardSettings(most=1))
solve = plan((0, "Solve it.", []))

async def score():
    for n in range(6):
        print((await reward.score([RewardItem("toy", f"train-{n}", solve)]))[0].value, flush=True)

anyio.run(score)
"""


@pytest.mark.slow
def test_replies_that_came_before_kill_9_are_not_asked_for_again(tmp_path: Path) -> None:
    pool = toy_pool(tmp_path / "run")
    said = [sys.executable, "-c", SYSTEM_RUN, str(ROOT)]
    command = [*said, str(tmp_path / "run"), str(pool)]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert first.stdout
    before = [first.stdout.readline().strip() for _ in range(3)]
    os.kill(first.pid, signal.SIGSTOP)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    paid = len(calls(tmp_path / "run", "end"))
    begun = len(calls(tmp_path / "run"))
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    values = again.stdout.split()
    assert values[:3] == before == ["1.0"] * 3
    assert len(values) == 6
    in_flight = begun - paid + 1  # one may have replied and not been written yet
    assert len(calls(tmp_path / "run")) - begun <= 6 - paid + in_flight
    spec = read_pool(str(pool))
    assert spent(tmp_path / "run", read_book(spec.prices)) >= Decimal("0.06")


# --- the limit of dollars ---------------------------------------------------------------------


def test_a_limit_holds_over_all_sittings_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "run"
    spec = read_pool(str(toy_pool(log)))
    book = read_book(spec.prices)
    items = [RewardItem("toy", f"train-{n}", SOLVE) for n in range(6)]

    def system_run(usd: str) -> tuple[list[float | None], str]:
        answer = PlanAnswerer(spec, book, PlanSettings(max_usd=Decimal(usd), log_dir=log, kept=TOY))
        reward = Reward(train(Toy()), answer, RewardSettings(most=1, budget_masks=False))
        return [one.value for one in anyio.run(reward.score, items)], answer.stopped

    values, stopped = system_run("0.02")
    assert values == [1.0, 1.0, None, None, None, None]
    assert stopped.startswith("$0.0200 of --max-usd 0.02 is spent")
    again, why = system_run("0.02")
    assert again == values, "what was paid for is there, and no more"
    assert why.startswith("$0.0200 of --max-usd 0.02 is spent")
    assert len(calls(log)) == 2
    values, stopped = system_run("0.1")
    assert (values, stopped) == ([1.0] * 6, "")
    assert len(calls(log)) == 6
    assert spent(log, book) == Decimal("0.06")
    assert len(list(log.glob(f"{LEDGER}/*/*.jsonl"))) == 2, "a sitting that calls nobody has none"


# --- pace -------------------------------------------------------------------------------------


def test_a_limit_that_asks_nobody_is_refused() -> None:
    with pytest.raises(UserError, match="limit of calls per minute must be above 0"):
        PlanSettings(per_minute=0)
