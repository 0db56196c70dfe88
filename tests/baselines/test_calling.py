"""Routers that call before they trust: Smoothie and a model as router, on scripted workers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from podium.baselines._registry import smoothie_global
from podium.baselines.routers.router_systems import named_worker, router_llm_system, routing_prompt
from podium.baselines.voting import (
    SmoothieExplorer,
    answer_distances,
    most_trusted,
    smoothie_system,
    triplet_errors,
)
from podium.harness.errors import UserError
from podium.harness.extract import normalised
from podium.harness.learning import TrainingBudget, read_artifact, write_artifact
from podium.harness.records import Question
from tests.baselines.tries import ask, explored
from tests.providers.scripted import scripted_pool

SUM = Question(id="sum-1", text="What is 2 + 2?", kind="integer", target="4")
FOUR, SAME = "The sum is 4. ANSWER: 4", "Adding gives 4. ANSWER: 4"
ODD = "Elephants are grey and live in Africa."
CANNOT = "I do not know how to write this program."
PROGRAM = "```python\nprint(4)\n```"


def task(calls: int, *workers: str) -> TrainingBudget:
    questions = tuple(Question(f"q-{at}", f"What is {at} + 1?", "integer") for at in range(12))
    return TrainingBudget(questions, workers, calls, seed=3, suites=("toy",))


# --- Smoothie ---------------------------------------------------------------------------------


def test_the_triplet_estimator_finds_the_errors_that_made_the_distances() -> None:
    random, n = np.random.default_rng(0), 40_000
    sizes = np.array([0.5, 2.0, 1.0, 3.0])
    truth = random.normal(size=(n, 8))
    said = truth[:, None] + random.normal(size=(n, 4, 8)) * np.sqrt(sizes / 8)[None, :, None]
    squares = ((said[:, :, None] - said[:, None, :]) ** 2).sum(-1).mean(0)
    assert triplet_errors(squares) == pytest.approx(sizes, rel=0.03)
    assert most_trusted(squares, ["1", "2", "3", "4"]) == 0


def test_replies_that_say_the_same_are_nearer_than_one_that_does_not() -> None:
    squares = answer_distances(
        [normalised("integer", one) for one in ("ANSWER: 4", "ANSWER: 5", FOUR)]
    )
    assert squares[0, 2] < min(squares[0, 1], squares[1, 2])
    assert np.all(np.diag(squares) == 0)


def test_replies_without_an_answer_agree_with_nobody_though_their_words_are_the_same() -> None:
    replies = [CANNOT, PROGRAM, CANNOT, f"Here it is.\n{PROGRAM}", CANNOT]
    said = [normalised("program", reply) for reply in replies]
    squares = answer_distances(said)
    assert squares[1, 3] == 0
    assert squares[0, 2] == squares[0, 1] == squares[2, 4] == 2
    assert most_trusted(squares, said) == 1
    assert most_trusted(answer_distances([None, None, "4", "5"]), [None, None, "4", "5"]) == 2
    assert most_trusted(answer_distances([None, None, None]), [None, None, None]) == 0


def test_smoothie_asks_everybody_and_answers_with_the_reply_nearest_to_all_others() -> None:
    rig = scripted_pool(odd=ODD, abacus=FOUR, sage=SAME)
    answer = ask(smoothie_system(), rig.pool, SUM)
    assert answer.text in (FOUR, SAME)
    assert (sorted(rig.asked), len(answer.replies), answer.depth) == (
        ["abacus", "odd", "sage"],
        3,
        1,
    )
    assert answer.noted["trusted"] in ("abacus", "sage")


def test_smoothie_refuses_two_workers_before_asking_them() -> None:
    rig = scripted_pool(abacus=FOUR, sage=SAME)
    with pytest.raises(UserError, match="at least 3 workers, and this pool has 2"):
        ask(smoothie_system(), rig.pool, SUM)
    assert rig.heard == []


def test_smoothie_global_trusts_the_worker_that_agreed_on_the_train_split(tmp_path: Path) -> None:
    rig = scripted_pool(odd=ODD, abacus=FOUR, sage=SAME)
    explorer, given = SmoothieExplorer(), task(20, "odd", "abacus", "sage")
    done = explored(explorer, given, {q.id: "4" for q in given.questions}, rig.again)
    assert [len(tried) for tried in done] == [6]  # 18 calls of 20
    learned = explorer.learnt(given, done)
    assert (learned.about.calls, len(learned.about.questions)) == (18, 6)
    write_artifact(learned, tmp_path / "smoothie.npz")
    again = read_artifact(str(tmp_path / "smoothie.npz"), "smoothie-global", learned.sha256)
    turned = scripted_pool(odd="ANSWER: 4", abacus="ANSWER: 4", sage="A very different reply.")
    answer = ask(smoothie_system(again), turned.pool, SUM)
    assert answer.text != ODD
    assert answer.noted["trusted"] != "odd"
    assert len(answer.replies) == 3


def test_a_question_that_taught_is_refused_before_anybody_is_asked() -> None:
    rig = scripted_pool(odd=ODD, abacus=FOUR, sage=SAME)
    explorer, given = SmoothieExplorer(), task(20, "odd", "abacus", "sage")
    learned = explorer.learnt(
        given, explored(explorer, given, {q.id: "4" for q in given.questions}, rig.again)
    )
    before = len(rig.heard)
    with pytest.raises(UserError, match="smoothie-global was trained on again"):
        ask(smoothie_system(learned), rig.pool, replace(given.questions[0], id="again"))
    assert len(rig.heard) == before


def test_an_untrained_smoothie_global_is_refused_when_it_is_made() -> None:
    with pytest.raises(UserError, match="smoothie-global is not trained"):
        smoothie_global()


def test_a_budget_below_one_question_is_refused_with_what_it_takes() -> None:
    with pytest.raises(UserError, match=r"at least 3 worker calls .* but has 2 .*--train-calls"):
        SmoothieExplorer().next_round(task(2, "a", "b", "c"), [])


# --- a model as router ------------------------------------------------------------------------


def test_the_conductor_names_who_answers_and_its_call_is_no_step() -> None:
    rig = scripted_pool(conductor="The second.\nmodel_id = [1]", abacus="5", sage=FOUR)
    answer = ask(router_llm_system(), rig.pool, SUM)
    assert (answer.text, len(answer.replies)) == (FOUR, 1)
    assert rig.asked == ["conductor", "sage"]
    assert answer.noted == {"route": 1, "fallback": False}
    assert SUM.text in rig.heard[0].last
    assert rig.heard[1].turns == [("user", SUM.text)]


@pytest.mark.parametrize("said", ["", "model_id = [7]", "model_id = [0, 1]", "I like 1.", "-1"])
def test_a_reply_that_names_nobody_goes_to_the_first_worker_and_is_noted(said: str) -> None:
    rig = scripted_pool(conductor=said, abacus=FOUR, sage="5")
    answer = ask(router_llm_system(), rig.pool, SUM)
    assert (answer.text, answer.noted["fallback"]) == (FOUR, True)


def test_the_last_of_several_names_counts() -> None:
    assert named_worker("model_id = [0]\nNo:\n  model_id = [2]", 3) == 2


def test_a_question_with_braces_is_shown_as_it_is() -> None:
    assert "Compute {models} and {x}." in routing_prompt(
        "Compute {models} and {x}.", ["good at sums"]
    )
    assert "Model 0: good at sums" in routing_prompt("Compute {x}.", ["good at sums"])


def test_a_pool_without_a_conductor_is_refused_before_anything_is_asked() -> None:
    rig = scripted_pool(abacus=FOUR)
    with pytest.raises(UserError, match="no conductor to route with"):
        ask(router_llm_system(), rig.pool, SUM)
    assert rig.heard == []
