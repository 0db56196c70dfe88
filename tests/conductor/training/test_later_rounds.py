"""Later rounds of a recursive training, without torch: who is asked again, and for what."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from podium.cli.list_commands import controls, whole_catalogue
from podium.conductor.grpo_reward import reward_values
from podium.conductor.training.config import TrainingConfig, read_config
from podium.conductor.training.job import (
    TrainingJob,
    TrainingRewards,
    find_job,
    make_rewards,
)
from podium.conductor.training.rounds import (
    Write,
    first_id,
    later_places,
    with_later_rounds,
)
from podium.conductor.training.training_rows import TrainingRow
from podium.harness.errors import TooManyMasked, UserError
from podium.harness.rewards.outcome import RewardItem
from podium.harness.rewards.trainers import run_in_loop
from tests.providers.scripted import Heard, script

SMALL = (
    'suites.names=["practice-integer"]', "suites.weights={}", "suites.train=8",
    "validation.questions=3", "model.path=anywhere",
)  # fmt: skip
PLAN = 'model_id = [1]\nsubtasks = ["Answer the question."]\naccess_list = [[]]'
KEEP = "model_id = []\nsubtasks = []\naccess_list = []"

SAID: list[str] = []


def config(*settings: str) -> TrainingConfig:
    return read_config("practice-cpu-recursive", (*SMALL, *settings))


@pytest.fixture
def training(tmp_path: Path) -> TrainingJob:
    return find_job(config(), tmp_path, whole_catalogue(), controls().bare)


def writing(*odd: TrainingRow) -> Write:
    """Return a model that plans for every row but some, for which it writes no plan."""

    def write(rows: Sequence[TrainingRow]) -> list[str]:
        return ["no plan" if row in odd else PLAN for row in rows]

    return write


def made(
    training: TrainingJob, *odd: TrainingRow
) -> tuple[TrainingRewards, list[TrainingRow], list[TrainingRow]]:
    held = make_rewards(training, None, training.out)
    rows = (training.rows(8), training.validation_rows())
    write = writing(*odd)
    return held, *with_later_rounds(training, held.answerer, rows, write, SAID.append)


def test_half_of_the_rows_and_every_validation_row_are_asked_again(training: TrainingJob) -> None:
    _, rows, held_out = made(training)
    assert [bool(row.first) for row in rows].count(True) == 4
    assert [row.question for row in rows] == [row.question for row in training.rows(8)]
    assert [bool(row.first) for row in held_out] == [False] * 3 + [True] * 3


def test_a_later_round_shows_the_first_plan_and_its_answer(training: TrainingJob) -> None:
    _, rows, _ = made(training)
    later = next(row for row in rows if row.first)
    (turn,) = training.prompts.messages(later)
    assert f"Earlier plan:\n{PLAN}\n\nEarlier answer:\n" in turn["content"]
    assert turn["content"].endswith("Plan:")
    assert later.first == first_id(later)
    assert training.question(later).text not in later.first


def test_a_row_without_a_first_plan_stays_a_first_round(training: TrainingJob) -> None:
    _, _, held_out = made(training, training.validation_rows()[0])
    assert [bool(row.first) for row in held_out] == [False] * 3 + [True] * 2


def test_a_first_round_is_worth_a_quarter_and_keeping_its_answer_the_whole(
    training: TrainingJob,
) -> None:
    held, rows, _ = made(training)
    later = next(row for row in rows if row.first)

    def worth(text: str, first: str) -> float | None:
        item = RewardItem(later.suite, later.question, text, 1, 0, later.workers, first)
        (outcome,) = run_in_loop(held.training.score([item]))
        return outcome.value

    once, kept = worth(PLAN, ""), worth(KEEP, later.first)
    assert kept in (0.5, 1.0)
    assert once == 0.25 * kept
    assert worth("no plan", later.first) == 0
    assert training.read_plan(RewardItem(later.suite, "q", KEEP, first=later.first)) is None


def test_the_same_rows_are_chosen_again_and_others_with_another_seed() -> None:
    assert later_places(100, 0.5, 0) == later_places(100, 0.5, 0) != later_places(100, 0.5, 1)
    assert len(later_places(100, 0.3, 0)) == 30


def test_a_config_stands_on_its_base_and_changes_what_it_names() -> None:
    base, cost = read_config("practice-cpu"), read_config("practice-cpu-cost-aware")
    assert cost.reward.name == "cost-aware"
    assert cost.reward.deduplicate is base.reward.deduplicate
    assert (cost.grpo, cost.model, cost.form) == (base.grpo, base.model, base.form)
    reward_values(cost.reward, cost.discount)
    again = config()
    assert again.model.from_scratch is None
    assert again.grpo == {**base.grpo, **again.grpo}
    assert again.grpo["scale_rewards"] == "batch"


def test_a_base_that_is_not_shipped_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('base = "nothing"\n')
    with pytest.raises(UserError, match="its base 'nothing' is not a shipped config"):
        read_config(str(path))


def test_a_discount_that_would_cancel_is_refused() -> None:
    with pytest.raises(UserError, match="scale_rewards=batch"):
        config("grpo.scale_rewards=group")


POOL = """
label = "live"
prices = "{prices}"
[[workers]]
name = "idle"
model = "scripted/flaky"
[[workers]]
name = "busy"
model = "scripted/flaky"
"""
PRICES = """
date = "2026-01-01"
source = "made up for a test"
[usd_per_mtok."scripted/flaky"]
input = "1"
output = "1"
"""


def flaky(folder: Path, down: list[str]) -> TrainingJob:
    """Return a training whose worker fails as long as `down` names a question's first words."""

    def reply(heard: Heard) -> str:
        if any(words in heard.last for words in down):
            raise RuntimeError("the provider is down")
        return "7"

    script("flaky", reply)
    (folder / "prices.toml").write_text(PRICES)
    (folder / "pool.toml").write_text(POOL.format(prices=folder / "prices.toml"))
    wanted = config(f"pool.name={folder / 'pool.toml'}", "reward.max_masked=0.5")
    return find_job(wanted, folder / "run", whole_catalogue(), controls().bare)


def test_rows_whose_first_plan_met_an_outage_stay_what_they_were_when_resumed(
    tmp_path: Path,
) -> None:
    down: list[str] = []
    training = flaky(tmp_path, down)
    down.append(training.question(training.validation_rows()[0]).text[:60])
    _, rows, held_out = made(training)
    assert [bool(row.first) for row in held_out].count(True) == 2
    down.clear()
    again = flaky(tmp_path, down)
    _, resumed, resumed_held_out = made(again)
    assert (resumed, resumed_held_out) == (rows, held_out)
    assert again.earlier == training.earlier
    assert SAID[-1].startswith("6 of 7 first plans were executed, so that later rounds can train")
    assert "; 1 failed because of a worker" in SAID[-1]


def test_an_outage_of_too_many_workers_ends_before_anything_is_learnt_and_can_be_resumed(
    tmp_path: Path,
) -> None:
    down = [""]
    with pytest.raises(TooManyMasked, match=r"Of \d first plans \d failed because of a worker"):
        made(flaky(tmp_path, down))
    down.clear()
    _, rows, held_out = made(flaky(tmp_path, down))
    assert [bool(row.first) for row in held_out].count(True) == 3
    assert [bool(row.first) for row in rows].count(True) == 4
