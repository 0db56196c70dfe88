"""Cascades on scripted workers: what is accepted, what is billed, what is learnt."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podium.baselines._registry import cascade, cascade_automix, cascade_frugal
from podium.baselines.cascade import (
    AUTOMIX,
    CASCADE,
    FEATURES,
    FRUGAL,
    LOGISTIC,
    CascadeExplorer,
    CascadeTries,
    Scoring,
    answer_features,
    best_chain,
    cascade_system,
    score_agreement,
    try_cascade,
)
from podium.baselines.routers.optimisers import ridge_logistic, sigmoid
from podium.baselines.voting import approves
from podium.harness.errors import UserError
from podium.harness.inspect_adapters import system_of
from podium.harness.learning import TrainingBudget, TrialResult, write_artifact
from podium.harness.records import Question
from podium.harness.system import SystemCard
from tests.baselines.tries import ask, explored
from tests.providers.scripted import Heard, ReplyFunction, scripted_pool

SUM = Question(id="sum-1", text="What is 2 + 2?", kind="integer", target="4")
AGREE, VERIFIER = Scoring("agreement", 3), Scoring("verifier", 2)


def unsure(heard: Heard) -> str:
    """Give another answer every time."""
    return f"ANSWER: {heard.occurrence}"


def checked(verdict: str) -> ReplyFunction:
    """Return a worker that answers 4 and then says so much of its own answer."""

    def reply(heard: Heard) -> str:
        return f"VERDICT: {verdict}" if len(heard.messages) > 1 else "ANSWER: 4"

    return reply


def test_thresholds_of_a_fitted_scorer_are_chosen_on_questions_it_has_not_seen() -> None:
    random = np.random.default_rng(0)
    questions = tuple(Question(f"q-{at}", f"Say {at}", "integer") for at in range(60))
    tries = [
        TrialResult(
            question=one.id,
            epoch=epoch,
            value=float(random.integers(2)),  # nothing tells what is right
            calls=1,
            usd=0.01,
            plan="",
            noted={"confidence": 0.5, "features": random.normal(size=FEATURES).tolist()},
        )
        for one in questions
        for epoch in (1, 2)
    ]
    given = TrainingBudget(questions, ("abacus", "sage"), 120, seed=0, suites=("toy",))
    learned = CascadeExplorer("cascade-frugal", LOGISTIC).learnt(given, [tries])
    assert (learned.about.settings or {})["train_accuracy"] < 0.7  # fitted to noise


# --- running ----------------------------------------------------------------------------------


def test_an_answer_on_which_samples_agree_stands_and_nobody_else_is_asked() -> None:
    rig = scripted_pool(cheap="ANSWER: 4", dear="ANSWER: 5")
    answer = ask(cascade_system(AGREE, workers=["cheap", "dear"]), rig.pool, SUM)
    assert (answer.text, rig.asked) == ("ANSWER: 4", ["cheap"] * 3)
    assert answer.noted == {"stage": "cheap", "confidences": [1.0]}


def test_an_answer_without_agreement_goes_to_the_next_worker_and_all_calls_are_steps() -> None:
    rig = scripted_pool(cheap=unsure, dear="ANSWER: 5")
    answer = ask(cascade_system(AGREE, workers=["cheap", "dear"]), rig.pool, SUM)
    assert (answer.text, rig.asked) == ("ANSWER: 5", ["cheap"] * 3 + ["dear"] * 3)
    assert len(answer.replies) == 6
    assert answer.noted["confidences"] == [pytest.approx(1 / 3, abs=1e-6)]


def test_a_verifier_reads_its_own_answer_and_its_checks_are_billed() -> None:
    sure = scripted_pool(cheap=checked("CORRECT"), dear="ANSWER: 5")
    doubting = scripted_pool(cheap=checked("WRONG"), dear="ANSWER: 5")
    system = cascade_system(VERIFIER, workers=["cheap", "dear"])
    accepted, refused = ask(system, sure.pool, SUM), ask(system, doubting.pool, SUM)
    assert (accepted.text, sure.asked, accepted.depth) == ("ANSWER: 4", ["cheap"] * 3, 2)
    assert [role for role, _ in sure.heard[1].turns] == ["user", "assistant", "user"]
    assert (refused.text, doubting.asked) == ("ANSWER: 5", ["cheap"] * 3 + ["dear"])


def test_a_check_without_a_verdict_agrees_by_giving_the_same_answer() -> None:
    assert approves("integer", "ANSWER: 4", "It is 4. ANSWER: 4")
    assert not approves("integer", "ANSWER: 4", "ANSWER: 5")
    assert not approves("integer", "ANSWER: 4", "ANSWER: 4\nVERDICT: WRONG")
    assert not approves("integer", "no idea", "no idea")


def test_replies_without_an_answer_have_no_confidence() -> None:
    assert score_agreement("integer", ["no idea"] * 3)[1] == 0


def test_a_cascade_that_cannot_be_is_refused_when_it_is_made() -> None:
    with pytest.raises(UserError, match="scorer is one of agreement, verifier, logistic"):
        try_cascade(scorer="taste", samples=3)
    with pytest.raises(UserError, match="samples of at least 1"):
        cascade(samples=0)
    with pytest.raises(UserError, match="not trained needs its workers in order"):
        cascade()
    with pytest.raises(UserError, match=r"between 0 and 1, not 1\.5"):
        cascade_automix(workers=["a", "b"], threshold=1.5)
    with pytest.raises(UserError, match="cascade-frugal is not trained"):
        cascade_frugal()


@pytest.mark.parametrize(
    ("manifest", "args", "calls"),
    [
        pytest.param(CASCADE, {}, (3, 9), id="agreement"),
        pytest.param(CASCADE, {"workers": ["a", "b"]}, (3, 6), id="two named"),
        pytest.param(AUTOMIX, {"samples": 2}, (3, 7), id="two checks"),
        pytest.param(AUTOMIX, {"samples": 2, "learned": "x"}, (1, 7), id="one stage learnt"),
        pytest.param(FRUGAL, {"learned": "x"}, (1, 3), id="fitted"),
    ],
)
def test_a_manifest_says_how_many_calls_its_scorer_makes(
    manifest: SystemCard, args: dict[str, Any], calls: tuple[int, int]
) -> None:
    assert manifest.calls.expected is not None
    assert manifest.calls.span(8, args) == calls


# --- learning ---------------------------------------------------------------------------------


def test_the_best_chain_keeps_the_cheap_worker_where_it_is_sure_and_right() -> None:
    tries = CascadeTries(
        values=np.array([[1, 1], [1, 1], [0, 1], [0, 1.0]]),
        confidences=np.array([[1, 1], [0.9, 1], [0.4, 1], [0.2, 1]]),
        costs=np.array([[1, 10.0]] * 4),
        last_share=1.0,
    )
    found = best_chain(tries, (0.3, 0.6, 1.0))
    assert found == ((0, 1), (0.6,), 1.0, (1 + 1 + 11 + 11) / 4)


def half(heard: Heard) -> str:
    """Be sure and right on even questions, unsure on odd ones."""
    number = int(heard.messages[0].text.split()[2])
    return f"ANSWER: {number + 1 if number % 2 == 0 else heard.occurrence + 100}"


def right(heard: Heard) -> str:
    return f"ANSWER: {int(heard.messages[0].text.split()[2]) + 1}"


def lesson(calls: int) -> tuple[TrainingBudget, dict[str, str]]:
    questions = tuple(Question(f"q-{at}", f"What is {at} + 1?", "integer") for at in range(8))
    targets = {f"q-{at}": f": {at + 1}" for at in range(8)}
    return TrainingBudget(
        questions, ("poor", "half", "right"), calls, seed=1, suites=("toy",)
    ), targets


def test_a_cascade_is_learnt_from_tries_within_its_budget_and_runs_as_learnt(
    tmp_path: Path,
) -> None:
    task, targets = lesson(calls=60)
    rig = scripted_pool(poor="ANSWER: 77", half=half, right=right)
    explorer = CascadeExplorer("cascade-automix", Scoring("verifier", 1))
    done = explored(explorer, task, targets, rig.again)
    learned = explorer.learnt(task, done)
    assert learned.about.calls == len(rig.heard) == 48
    assert (learned.about.settings or {})["train_accuracy"] == 1.0
    write_artifact(learned, tmp_path / "cascade.npz")
    path = str(tmp_path / "cascade.npz")
    system = system_of(cascade_automix(learned=path, samples=1))
    assert (
        ask(system, rig.again(), Question("new", "What is 9 + 1?", "integer")).text == "ANSWER: 10"
    )
    with pytest.raises(UserError, match=r"trained with samples=1\. Set samples to this value"):
        cascade_automix(learned=path)
    with pytest.raises(UserError, match="trained for cascade-automix, not for cascade"):
        cascade(learned=path)


def test_the_logistic_scorer_learns_which_replies_are_right(tmp_path: Path) -> None:
    task, targets = lesson(calls=24)
    rig = scripted_pool(poor="I do not know.", half=half, right=right)
    explorer = CascadeExplorer("cascade-frugal", LOGISTIC)
    learned = explorer.learnt(task, explored(explorer, task, targets, rig.again))
    assert learned.arrays["weights"].shape == (3, FEATURES)
    assert len(rig.heard) == 24
    write_artifact(learned, tmp_path / "cascade.npz")
    path = str(tmp_path / "cascade.npz")
    system = system_of(cascade_frugal(learned=path))
    assert (
        ask(system, rig.again(), Question("new", "What is 9 + 1?", "integer")).text == "ANSWER: 10"
    )


def test_logistic_weights_stay_finite_where_all_grades_are_the_same() -> None:
    rows = np.array([answer_features(SUM, f"ANSWER: {at}") for at in range(5)])
    weights = ridge_logistic(rows, np.ones(5), np.ones(FEATURES))
    assert np.isfinite(weights).all()
    assert (sigmoid(rows @ weights) > 0.5).all()


def test_nothing_is_learnt_from_questions_that_some_worker_was_not_graded_on() -> None:
    task, _ = lesson(calls=60)
    with pytest.raises(UserError, match="no train question was graded for all workers"):
        CascadeExplorer("cascade", AGREE).learnt(task, [[]])
