"""Sage as the one who makes one reply out of several numbered ones."""

import random

import pytest
from inspect_ai.model import ChatMessageSystem, ChatMessageUser

from podium.suites.practice.workers.provider import agreed_program, respond
from podium.suites.practice.workers.workers import AnswerKind, final_answer, find_worker

RIDDLE = "How old is the captain? Put your final answer in \\boxed{}."
CHOICE = 'Which one?\n\nA) red\nB) blue\nC) green\nD) black\n\nThe last line should be "Answer: X".'
TASK = "Write a program for the flurbish of a gromble. Reply with one ```python block."


def gather(question: str, *replies: str, heat: float = 0.0) -> str:
    """Return what sage makes of numbered replies."""
    listed = "\n".join(f"{at}. {reply}" for at, reply in enumerate(replies, start=1))
    chat = [
        ChatMessageSystem(content=f"Make one reply of these.\n\n{listed}"),
        ChatMessageUser(content=question),
    ]
    return respond(find_worker("sage"), chat, random.Random(1), heat)


def block(code: str) -> str:
    return f"Here it is.\n```python\n{code}\n```"


@pytest.mark.parametrize(
    ("question", "asked", "replies", "wanted"),
    [
        (RIDDLE, "number", ("\\boxed{41}", "\\boxed{42}", "It is 42.", "I cannot tell."), "42"),
        (RIDDLE, "number", ("I cannot tell.", "I do not know.", "So it is 17."), "17"),
        (CHOICE, "choice", ("Answer: B", "Answer: C", "The answer is C."), "C"),
    ],
)
def test_the_majority_of_those_who_answer_is_kept_in_the_form_asked_for(
    question: str, asked: AnswerKind, replies: tuple[str, ...], wanted: str
) -> None:
    reply = gather(question, *replies)
    assert final_answer(reply, asked) == wanted
    assert f"\\boxed{{{wanted}}}" in reply or f"Answer: {wanted}" in reply


def test_what_can_be_recomputed_is_settled_by_recomputing() -> None:
    reply = gather("What is 6 * 7? Put it in \\boxed{}.", "\\boxed{41}", "\\boxed{42}")
    assert final_answer(reply, "number") == "42"


def test_replies_whose_sums_are_wrong_count_less() -> None:
    wrong = "6 * 7 = 45, so \\boxed{45}"
    assert final_answer(gather(RIDDLE, wrong, wrong, "\\boxed{42}"), "number") == "42"


def test_the_program_that_most_agree_on_is_taken_whatever_its_layout() -> None:
    odd, one, same = "print(0)", "x = int(input())\nprint(x+1)", "x=int(input())  # n\nprint(x + 1)"
    reply = gather(TASK, block(odd), block(one), block(same))
    assert final_answer(reply, "program") == one


def test_without_agreement_the_first_complete_program_is_taken() -> None:
    cut, first, last = "for x in (1, 2", "print(1)", "print(2)"
    reply = gather(TASK, "I cannot give an answer.", block(cut), block(first), block(last))
    assert final_answer(reply, "program") == first


def test_an_own_program_breaks_a_tie_and_stands_in_for_none() -> None:
    assert agreed_program([block("print(1)"), block("print(2)")], "print(2)") == "print(2)"
    assert agreed_program(["nothing"], "print(3)") == "print(3)"
    assert agreed_program([block("print(1)")], "print(3)") == "print(1)"
