"""TRINITY's loop and its head, random and evolved, on scripted workers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from podium.baselines._registry import trinity
from podium.baselines.trinity import (
    FEATURES,
    PROMPTS,
    RANDOM_TRINITY,
    Coordinator,
    Role,
    TrinityExplorer,
    Turn,
    evolve,
    head_coordinator,
    head_size,
    is_accepted,
    mean_grades,
    population_size,
    random_trinity_system,
    trinity_system,
    turn_features,
    turns_system,
)
from podium.harness.errors import UserError
from podium.harness.learning import TrainingBudget, TrialResult, read_artifact, write_artifact
from podium.harness.pool import Pool
from podium.harness.records import Answer, Question
from tests.baselines.tries import ask, explored
from tests.providers.scripted import Heard, scripted_pool

SUM = Question(id="sum-1", text="What is 2 + 2?", kind="integer", target="4")
THINK, WORK, CHECK = "thinker", "worker", "verifier"


def led(*moves: tuple[int, Role], **replies: str) -> tuple[Answer, list[Heard]]:
    """Run the loop along given moves."""
    rig = scripted_pool(seed=0, **replies)

    def policy_of(question: Question, pool: Pool) -> Coordinator:
        def choose(question: Question, turns: Sequence[Turn]) -> tuple[int, Role]:
            return moves[len(turns)]

        return choose

    return ask(turns_system(policy_of, len(moves)), rig.pool, SUM), rig.heard


# --- the loop ---------------------------------------------------------------------------------


def test_the_loop_ends_at_the_first_accept_and_answers_with_the_latest_work() -> None:
    answer, heard = led(
        (0, THINK), (1, WORK), (2, CHECK), (1, WORK), a="Add.", b="ANSWER: 4", c="VERDICT: ACCEPT"
    )
    assert (answer.text, len(heard), answer.depth) == ("ANSWER: 4", 3, 3)
    assert answer.noted == {"roles": [THINK, WORK, CHECK], "accepted": True}


def test_every_turn_sees_all_earlier_turns_and_its_own_role() -> None:
    _, heard = led((0, THINK), (1, WORK), (0, CHECK), a="Add. VERDICT: REVISE", b="ANSWER: 4")
    assert [role for role, _ in heard[2].turns] == ["user", "assistant"] * 2 + ["user"]
    told = zip(heard, PROMPTS.values(), strict=True)
    assert all(one.last.endswith(said) for one, said in told)
    assert heard[2].messages[0].text.startswith(SUM.text)


def test_without_an_accept_the_loop_ends_at_its_last_turn() -> None:
    answer, heard = led((0, WORK), (1, CHECK), (0, THINK), a="ANSWER: 4", b="VERDICT: REVISE")
    assert (answer.text, len(heard), answer.noted["accepted"]) == ("ANSWER: 4", 3, False)


def test_where_nobody_was_the_worker_the_last_reply_is_the_answer() -> None:
    answer, _ = led((0, THINK), (1, CHECK), a="Add.", b="ANSWER: 4 VERDICT: ACCEPT")
    assert answer.text == "ANSWER: 4 VERDICT: ACCEPT"


def test_a_verdict_counts_for_work_only_and_agreement_stands_for_a_verdict() -> None:
    work: Turn = ("worker", "ANSWER: 4")
    same: Turn = ("verifier", "It is so. ANSWER: 4")
    other: Turn = ("verifier", "ANSWER: 5")
    assert not is_accepted("integer", [("verifier", "VERDICT: ACCEPT")])
    assert is_accepted("integer", [work, same])
    assert not is_accepted("integer", [work, other])
    assert not is_accepted("integer", [work, ("verifier", "ANSWER: 4 VERDICT: REVISE")])
    assert not is_accepted("integer", [work, same, ("thinker", "Hm.")])
    assert not is_accepted("integer", [])


def test_random_trinity_repeats_itself_by_seed_and_epoch_and_keeps_to_its_manifest() -> None:
    rig = scripted_pool(a="ANSWER: 4", b="ANSWER: 5", c="VERDICT: ACCEPT")
    roles: list[str] = []
    for at in range(40):
        question = Question(f"q-{at}", f"What is {at} + 1?", "integer")
        answers = [ask(random_trinity_system(3), rig.again(), question) for _ in range(2)]
        assert answers[0].plan == answers[1].plan
        span = RANDOM_TRINITY.calls.span(3, {})
        assert span is not None
        least, most = span
        assert least <= len(answers[0].replies) <= most
        roles += answers[0].noted["roles"]
    assert set(roles) == {THINK, WORK, CHECK}
    with pytest.raises(UserError, match="turns of at least 1"):
        random_trinity_system(turns=0)


# --- the head ---------------------------------------------------------------------------------


def test_a_head_of_zeros_takes_the_first_worker_and_role() -> None:
    policy = head_coordinator(np.zeros(head_size(4)), range(4))
    assert policy(SUM, []) == (0, "thinker")


def test_a_head_can_tell_turns_apart() -> None:
    first, second = turn_features(SUM, []), turn_features(SUM, [("worker", "ANSWER: 4")])
    assert len(first) == len(second) == FEATURES
    assert not np.array_equal(first, second)


# --- evolving ---------------------------------------------------------------------------------


def test_a_generation_follows_from_the_seed_and_the_fitness_before_it() -> None:
    dims = 12
    assert population_size(dims) == 12
    first, start = evolve(dims, 7, [])
    again, _ = evolve(dims, 7, [])
    other, _ = evolve(dims, 8, [])
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not start.any()
    rewarded = [float(one[0] > 0) for one in first]
    _, mean = evolve(dims, 7, [rewarded])
    assert mean[0] > 0


def test_a_candidate_without_grades_gets_the_usual_one() -> None:
    tries = [TrialResult("q", 1, 1.0, 2, None, ""), TrialResult("q", 2, None, 2, None, "")]
    tries += [TrialResult("r", 1, 0.0, 2, None, ""), TrialResult("r", 3, 1.0, 2, None, "")]
    assert mean_grades(tries, 4) == [0.5, 0.666667, 1.0, 0.666667]
    assert mean_grades([], 2) == [0.0, 0.0]


def lesson(calls: int) -> tuple[TrainingBudget, dict[str, str]]:
    questions = tuple(Question(f"q-{at}", f"What is {at} + 1?", "integer") for at in range(9))
    return TrainingBudget(questions, ("bad", "good"), calls, 5, ("toy",)), dict.fromkeys(
        (one.id for one in questions), "ANSWER: right"
    )


@pytest.mark.slow
def test_trinity_learns_within_its_budget_whom_to_ask_and_runs_as_learnt(tmp_path: Path) -> None:
    task, targets = lesson(calls=1300)
    rig = scripted_pool(bad="ANSWER: 77", good="ANSWER: right")
    explorer = TrinityExplorer()
    done = explored(explorer, task, targets, rig.again)
    learned = explorer.learnt(task, done)
    assert 0 < learned.about.calls == len(rig.heard) <= task.calls
    assert len(done) >= 3
    assert {one.question for one in done[0]} != {one.question for one in done[1]}
    write_artifact(learned, tmp_path / "trinity.npz")
    system = trinity_system(read_artifact(str(tmp_path / "trinity.npz"), "trinity"))
    new = [replace(one, text=f"{one.text} Say it.") for one in task.questions]  # none that taught
    right = [ask(system, rig.again(), one).text == "ANSWER: right" for one in new]
    assert sum(right) >= 8
    turned = scripted_pool(good="ANSWER: right", bad="ANSWER: 77")
    assert ask(system, turned.pool, new[0]).text == "ANSWER: right"


def test_an_untrained_trinity_and_a_budget_below_a_generation_are_refused() -> None:
    with pytest.raises(UserError, match="trinity is not trained"):
        trinity()
    with pytest.raises(UserError, match=r"trinity needs at least \d+ worker calls .*--train-calls"):
        TrinityExplorer().next_round(lesson(calls=30)[0], [])
