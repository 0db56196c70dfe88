"""The planner as a conductor, and other workers who were never asked to be one."""

import json
import re

from tests.suites.practice_workers.asking import QUESTIONS, ask

CARDS = {
    0: "writes Python programs",
    1: "knows facts about elements and planets",
    2: "arithmetic and number theory",
    3: "checks replies and finds errors",
}
TEMPLATE = """You lead several models. Write a plan of at most {most} steps.

USER QUESTION:
{question}

AVAILABLE LANGUAGE MODELS:
{models}
"""


def plan(question: str, cards: dict[int, str], most: int = 5, worker: str = "planner") -> str:
    """Return what a worker answers to a conductor's prompt."""
    models = "\n".join(f"Model {n}: {card}" if card else f"Model {n}" for n, card in cards.items())
    return ask(worker, TEMPLATE.format(most=most, question=question, models=models))


def lists(reply: str) -> tuple[list[int], list[str], list[list[object]]]:
    """Return the three lists of a reply, each on a line of its own."""
    found = [
        json.loads(match[1])
        for name in ("model_id", "subtasks", "access_list")
        if (match := re.search(rf"^{name} = (\[.*\])$", reply, re.MULTILINE))
    ]
    return found[0], found[1], found[2]


def test_a_composed_question_goes_to_the_one_who_knows_and_then_to_the_one_who_computes() -> None:
    models, subtasks, access = lists(plan(QUESTIONS["composed"][0]["text"], CARDS))
    assert models == [1, 2]
    assert access == [[], ["all"]]
    assert len(subtasks) == 2


def test_a_program_goes_to_the_one_who_writes_programs() -> None:
    assert lists(plan(QUESTIONS["program"][0]["text"], CARDS))[0] == [0]


def test_a_computation_is_checked_by_somebody_else() -> None:
    assert lists(plan(QUESTIONS["integer"][1]["text"], CARDS))[0] == [2, 3]


def test_with_hidden_identities_the_plan_spreads_over_the_models() -> None:
    models, subtasks, access = lists(
        plan(QUESTIONS["composed"][0]["text"], dict.fromkeys(range(4), ""))
    )
    assert len(set(models)) == len(models) == len(subtasks) == len(access)


def test_the_limit_on_steps_is_kept() -> None:
    assert len(lists(plan(QUESTIONS["composed"][0]["text"], CARDS, most=1))[0]) == 1


def test_sage_tries_and_others_answer_off_format() -> None:
    assert "model_id" in plan("What is 6 * 7?", CARDS, worker="sage")
    assert "model_id" not in plan("What is 6 * 7?", CARDS, worker="swift")
