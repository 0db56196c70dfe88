"""What deserves nothing gets nothing: in every suite, in the boxes that programs run in."""

import asyncio
from contextlib import closing
from typing import Any

import pytest

from podium.harness.errors import UserError
from podium.harness.extract import extract_program
from podium.harness.records import Grade, Question
from podium.harness.rewards.outcome import PAPER
from podium.harness.rewards.reward import Reward, RewardSettings
from podium.harness.rewards.splits import attacks, refuse_gullible
from podium.harness.suite import Split, Suite
from podium.sandbox import Box, Program
from podium.suites import SUITES
from tests.harness.rewards.small_suites import (
    Graded,
    Ran,
    exam_of,
    loaded,
    made_up_rlpr,
    needs_image,
    same,
)
from tests.suites.livecodebench_rows import exam as livecodebench
from tests.suites.livecodebench_rows import row


def refuse(suite: Suite[Any], questions: list[Question], box: Box | None = None) -> None:
    exam = exam_of(suite, questions)
    reward = Reward({suite.name: exam}, box=box)
    asyncio.run(refuse_gullible(reward, exam))


@pytest.mark.parametrize("name", [name for name, suite in SUITES.items() if not suite.needs_box])
def test_no_suite_of_texts_rewards_what_deserves_nothing(name: str) -> None:
    refuse(*loaded(name))


def test_nor_do_the_rules_of_rlpr() -> None:
    refuse(*made_up_rlpr())


@pytest.mark.docker
@pytest.mark.parametrize(
    "name",
    [name for name, suite in SUITES.items() if suite.needs_box and name != "livecodebench"],
)
def test_no_suite_of_programs_rewards_what_deserves_nothing(name: str, docker_box: Box) -> None:
    suite, questions = loaded(name, 2)
    needs_image(suite, docker_box)
    refuse(suite, questions, docker_box)


def test_nor_does_livecodebench_on_a_row_of_ours(subprocess_box: Box, tmp_path: Any) -> None:
    suite = livecodebench(tmp_path, row())
    refuse(suite, list(suite.load()), subprocess_box)


class Naive(Ran):
    """A suite that believes its program's process, which is what the attacks are for."""

    name = "naive"
    proof = ""
    """What must be printed after the check; empty where exit code 0 is enough."""

    def load(self, split: Split = "train") -> list[Question]:
        return [Question("q0", "Write number() to return 7.", "program", "7")]

    def grade(self, question: Question, reply: str, box: Any | None = None) -> Grade:
        program = extract_program(reply)
        if program is None or box is None:
            return Grade(0.0, None)
        check = f"{program}\nassert number() == {question.target}\nprint({self.proof!r})"
        with closing(box.run(Program(check), [b""], self.limits)) as outcomes:
            said = next(outcomes)
        passed = said.exit_code == 0 and self.proof in said.stdout.decode()
        return Grade(float(passed), program)


class LessNaive(Naive):
    proof = "checked"


@pytest.mark.parametrize(("suite", "attack"), [(Naive(), "exit 0"), (LessNaive(), "equal to")])
def test_a_grader_that_believes_a_program_is_found(
    suite: Naive, attack: str, subprocess_box: Box
) -> None:
    with pytest.raises(UserError, match=f"rewards the attack '{attack}"):
        refuse(suite, suite.load(), subprocess_box)


def always(question: Question, reply: str) -> Grade:
    return Grade(1.0, reply)


def test_a_grader_that_is_always_content_is_found() -> None:
    with pytest.raises(UserError, match="'graded' rewards the attack 'empty' on q0 with 1"):
        refuse(Graded(always), list(Graded().load()))


def test_a_grader_that_finds_the_target_anywhere_is_found() -> None:
    def anywhere(question: Question, reply: str) -> Grade:
        return Grade(float((question.target or "") in reply), reply)

    with pytest.raises(UserError, match="echo the question"):
        refuse(Graded(anywhere), list(Graded().load()))


def test_a_grader_that_cannot_grade_an_attack_is_refused() -> None:
    def fragile(question: Question, reply: str) -> Grade:
        if not reply:
            raise ValueError("empty")
        return same(question, reply)

    with pytest.raises(UserError, match="It is unknown whether suite"):
        refuse(Graded(fragile), list(Graded().load()))


def test_what_a_wrong_answer_is_worth_does_not_hide_an_attack() -> None:
    exam = exam_of(Graded())
    calm = RewardSettings(values=PAPER)
    asyncio.run(refuse_gullible(Reward({"graded": exam}, settings=calm), exam))


def test_attacks_on_a_choice_never_are_the_right_letter_alone() -> None:
    question = Question("q", "Which?", "choice", "B", metadata={"choices": ["w", "x", "y", "z"]})
    alone = {f"Answer: {question.target}", rf"\boxed{{{question.target}}}"}
    assert alone.isdisjoint(attacks(question).values())
