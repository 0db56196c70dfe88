"""What each rehearsal worker can do, and what it cannot, on hand-written questions."""

import re
from collections import Counter

import pytest

from podium.harness.pool_config import read_pool
from podium.suites import SUITES
from podium.suites.practice.workers.workers import final_answer
from tests.suites.practice_workers.asking import QUESTIONS, accuracy, ask, is_right, prompt

COMPOSED = [prompt("composed", item) for item in QUESTIONS["composed"]]


def test_abacus_solves_numbers_when_it_does_not_slip() -> None:
    assert accuracy("abacus", "integer") >= 0.95


def test_scribe_writes_programs_that_pass_their_tests_when_it_does_not_slip() -> None:
    assert accuracy("scribe", "program") >= 0.9


def test_scholar_answers_fact_questions_and_leaves_computed_ones() -> None:
    right = [
        is_right("choice", q, ask("scholar", prompt("choice", q))) for q in QUESTIONS["choice"]
    ]
    assert all(right[:7])
    assert sum(right[7:]) < 5


@pytest.mark.parametrize("worker", ["abacus", "scholar", "planner", "formatter"])
def test_only_code_writers_write_programs(worker: str) -> None:
    assert accuracy(worker, "program") == 0.0


@pytest.mark.parametrize("worker", ["scribe", "scholar", "planner", "formatter"])
def test_others_are_weak_at_numbers(worker: str) -> None:
    assert accuracy(worker, "integer") < 0.4


def test_generalists_are_between_the_specialists_and_the_rest() -> None:
    asked = SUITES["practice-integer"].load("train")[:60]

    def share(worker: str) -> float:
        said = [
            final_answer(ask(worker, q.text, heat=1.0, draw=n), "number")
            for q in asked
            for n in (0, 1)
        ]
        return sum(text == asked[at // 2].target for at, text in enumerate(said)) / len(said)

    assert share("abacus") > share("sage") > share("swift") > share("planner")


@pytest.mark.parametrize("worker", read_pool("rehearsal").names)
def test_no_worker_of_the_pool_solves_composed_questions_alone(worker: str) -> None:
    assert accuracy(worker, "composed") <= 0.2


@pytest.mark.parametrize("at", range(len(COMPOSED)))
def test_scholar_then_abacus_solve_a_composed_question(at: int) -> None:
    facts = ask("scholar", COMPOSED[at])
    assert final_answer(facts, "number") is None
    reply = ask("abacus", COMPOSED[at], facts, "Put the facts in and compute.")
    assert is_right("composed", QUESTIONS["composed"][at], reply)


def test_scholar_then_abacus_solve_a_question_that_needs_a_formula() -> None:
    question = next(q for q in QUESTIONS["choice"] if "kinetic energy" in q["text"])
    formula = ask("scholar", prompt("choice", question))
    assert is_right(
        "choice", question, ask("abacus", prompt("choice", question), formula, "Compute.")
    )


def test_verifier_finds_a_planted_error_and_corrects_it() -> None:
    question = "What is 48 * 17 + 5? Put your final answer in \\boxed{}."
    planted = "48 * 17 = 806, so the total is \\boxed{811}."
    reply = ask("verifier", question, planted, "Check the reply above.")
    assert "48 * 17 = 806 is wrong, it is 816" in reply
    assert final_answer(reply, "number") == "821"


def test_verifier_distrusts_a_wrong_equation_in_a_question_it_cannot_solve() -> None:
    question = "A riddle about nothing in particular. Put your final answer in \\boxed{}."
    good, bad = "6 * 7 = 42, so \\boxed{42}.", "6 * 7 = 48, so \\boxed{48}."
    reply = ask("verifier", question, good, "Again.", bad, "Check.")
    assert final_answer(reply, "number") == "42"


def test_formatter_cleans_up_what_others_found_and_solves_nothing() -> None:
    question = "What is 6 * 7? Put your final answer in \\boxed{}."
    assert final_answer(ask("formatter", question, "So it is 42.", "Tidy up."), "number") == "42"
    assert final_answer(ask("formatter", question), "number") is None


def test_an_aggregator_follows_the_majority_against_its_own_slip() -> None:
    question = prompt("choice", QUESTIONS["choice"][0])
    reply = ask("abacus", question, "Answer: C", "", "Answer: C", "", "Answer: A", "Decide.")
    assert reply.endswith("Answer: C")


def test_planner_takes_a_question_apart_in_words() -> None:
    reply = ask("planner", COMPOSED[0])
    assert "Step 1: Find out what the question needs about tungsten." in reply


def test_swift_ends_in_prose_now_and_then() -> None:
    replies = [ask("swift", "What is 6 * 7?", heat=1.0, draw=draw) for draw in range(12)]
    assert {"\\boxed" in reply for reply in replies} == {True, False}


def test_voting_over_five_replicates_beats_one() -> None:
    alone = voted = total = 0
    for item in QUESTIONS["integer"]:
        for run in range(6):
            said = [
                final_answer(
                    ask("abacus", prompt("integer", item), heat=3.0, draw=5 * run + k), "number"
                )
                for k in range(5)
            ]
            alone += said[0] == item["target"]
            voted += (
                Counter(filter(None, said)).most_common(1)[0][0] == item["target"]
                if any(said)
                else 0
            )
            total += 1
    assert voted > alone + 0.05 * total


def test_a_worker_never_sees_more_than_it_says_it_reads() -> None:
    reply = ask("abacus", COMPOSED[0], "The moon is made of cheese.", "Compute.")
    assert final_answer(reply, "number") is None


def test_abacus_answers_the_options_when_the_choice_is_a_calculation() -> None:
    text = "What is 12 * 12 - 44?\n\nA) 90\nB) 100\nC) 110\nD) 188"
    assert re.search(r"Answer: B$", ask("abacus", text))
