"""The practice suites: gold answers, disjoint splits, spread letters, and nothing given away."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podium.harness.errors import UserError
from podium.harness.suite import Suite
from podium.sandbox import Box
from podium.sandbox.cells import SubprocessBox
from podium.suites import log_eval_access
from podium.suites.aime25 import AIME25
from podium.suites.code_grading import read_tests
from podium.suites.practice import SPLITS, PracticeSuite
from podium.suites.practice.choice import SUITE as CHOICE
from podium.suites.practice.choice import practice_choice
from podium.suites.practice.composed import SUITE as COMPOSED
from podium.suites.practice.composed import practice_composed
from podium.suites.practice.deep import SUITE as DEEP
from podium.suites.practice.deep import practice_deep
from podium.suites.practice.integer import SUITE as INTEGER
from podium.suites.practice.integer import practice_integer
from podium.suites.practice.programs import SUITE as CODE
from podium.suites.practice.programs import practice_code
from tests.suites.gold import THOUSANDS, gold_reply, sizes_of

PRACTICE = (INTEGER, CHOICE, CODE, COMPOSED, DEEP)
named = pytest.mark.parametrize("suite", PRACTICE, ids=lambda suite: suite.name)


def normalised(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


@pytest.mark.parametrize("suite", [*PRACTICE, AIME25], ids=lambda suite: suite.name)
def test_gold_answers_grade_right_and_empty_replies_wrong(suite: Suite[Box]) -> None:
    try:
        questions = suite.load("eval")[:24]
    except UserError as error:
        pytest.skip(f"no data for {suite.name}: {error}")
    box = SubprocessBox() if suite.needs_box else None
    for question in questions:
        assert suite.grade(question, gold_reply(question), box).value == 1.0, question.id
        for reply in ("", "I do not know.", "```", "\\boxed{", "Answer:"):
            grade = suite.grade(question, reply, box)
            assert (grade.value, grade.extracted) == (0.0, None), (question.id, reply)


@pytest.mark.slow
@named
def test_no_question_is_in_two_splits(suite: PracticeSuite) -> None:
    texts = {
        split: {normalised(q.text) for q in replace(suite, sizes=sizes_of(suite)).load(split)}
        for split in SPLITS
    }
    assert sum(map(len, texts.values())) > 900
    for one, other in (("train", "validation"), ("train", "eval"), ("validation", "eval")):
        assert not texts[one] & texts[other]


@named
def test_a_split_does_not_depend_on_the_seed(suite: PracticeSuite) -> None:
    train = {normalised(q.text) for q in replace(suite, seed=1).load("train")}
    exam = {normalised(q.text) for q in replace(suite, seed=2).load("eval")}
    assert not train & exam


@named
def test_questions_are_the_same_every_time_and_a_smaller_split_is_a_prefix(
    suite: PracticeSuite,
) -> None:
    whole = suite.load("validation")
    small = replace(suite, sizes={"validation": 10}).load("validation")
    assert list(small) == list(suite.load("validation"))[:10] == list(whole)[:10]
    assert whole != replace(suite, seed=7).load("validation")


@named
def test_default_splits_have_their_sizes_and_distinct_ids(suite: PracticeSuite) -> None:
    questions = [question for split in SPLITS for question in suite.load(split)]
    assert [len(suite.load(split)) for split in SPLITS] == [suite.sizes[split] for split in SPLITS]
    assert suite.card.sizes == suite.sizes
    assert len({question.id for question in questions}) == len(questions)
    assert len({normalised(question.text) for question in questions}) == len(questions)
    assert {question.topic for question in questions} == set(suite.topics)


@named
def test_an_unknown_split_and_an_impossible_size_are_refused(suite: PracticeSuite) -> None:
    with pytest.raises(UserError, match="has no 'exam' split; it has: train, validation, eval"):
        suite.load("exam")  # pyright: ignore[reportArgumentType]  (a user's typing mistake)


def test_more_questions_than_exist_are_refused() -> None:
    few = replace(CHOICE, topics={"planets": CHOICE.topics["planets"]}, sizes={"eval": 5000})
    with pytest.raises(UserError, match="different questions exist"):
        few.load("eval")


@pytest.mark.parametrize("suite", [INTEGER, COMPOSED, DEEP], ids=lambda suite: suite.name)
def test_integer_answers_lie_in_range_and_are_spread(suite: PracticeSuite) -> None:
    answers = [int(q.target or "-1") for q in replace(suite, sizes=THOUSANDS).load("train")]
    assert all(0 <= answer <= 999 for answer in answers)
    assert Counter(answers).most_common(1)[0][1] < 0.06 * len(answers), "no guess is a strategy"


def test_letters_are_spread() -> None:
    questions = replace(CHOICE, sizes=THOUSANDS).load("train")
    counts = Counter(question.target for question in questions)
    assert set(counts) == set("ABCD")
    assert all(0.2 < count / len(questions) < 0.3 for count in counts.values())


def test_choices_differ_and_the_permutation_gives_nothing_away() -> None:
    positions: Counter[int] = Counter()
    for question in replace(CHOICE, sizes=THOUSANDS).load("train"):
        printed = question.metadata["choices"]
        assert len(set(printed)) == 4
        permutation = question.metadata["permutation"]
        assert [sorted(printed)[at] for at in permutation] == printed
        positions[permutation["ABCD".index(question.target or "")]] += 1
    assert max(positions.values()) < 0.4 * positions.total(), "no place of origin is the right one"


def test_a_sealed_code_question_shows_no_hidden_test() -> None:
    for question in CODE.load("eval"):
        shown = question.sealed()
        tests = read_tests(question.target or "")
        public = shown.metadata["public_tests"]
        assert [vars_of(case) for case in tests.cases[:2]] == public
        hidden = [case for case in tests.cases[2:] if vars_of(case) not in public]
        assert len({case.output for case in tests.cases[2:]}) > 1, "no constant program passes"
        assert all(case.input not in shown.text for case in hidden if len(case.input) > 12)
        assert shown.target is None


def vars_of(case: Any) -> dict[str, str]:
    return {"input": case.input, "output": case.output}


def test_a_code_suite_without_a_box_names_the_option() -> None:
    question = CODE.load("eval")[0]
    with pytest.raises(ValueError, match="--box"):
        CODE.grade(question, gold_reply(question))


def test_a_wrong_program_grades_wrong_with_the_test_that_failed() -> None:
    question = CODE.load("eval")[0]
    grade = CODE.grade(question, "```python\nprint(12345)\n```", SubprocessBox())
    assert grade.value == 0.0
    assert grade.extracted == "print(12345)"
    assert "of 6" in grade.explanation


def test_inspect_finds_the_questions_of_every_practice_task() -> None:
    for make in (practice_integer, practice_choice, practice_composed, practice_deep):
        assert len(make(split="validation", limit=3).dataset) == 3
    assert len(practice_code(split="validation", limit=3, box="subprocess").dataset) == 3


def test_under_inspect_programs_run_in_its_docker_sandbox_unless_a_box_is_named() -> None:
    asked = practice_code(split="validation", limit=3).sandbox
    assert asked
    assert (asked.type, str(asked.config).endswith("sandbox/compose.yaml")) == ("docker", True)
    assert practice_code(split="validation", limit=3, box="subprocess").sandbox is None


# The diary of opened exams.


def test_openings_are_appended(tmp_path: Path) -> None:
    log_eval_access(tmp_path, INTEGER, 60)
    log_eval_access(tmp_path / ".", CHOICE, 12, reason="release 0.1")
    first, second = map(json.loads, (tmp_path / "openings.jsonl").read_text().splitlines())
    assert (first["suite"], first["split"], first["n"]) == ("practice-integer", "eval", 60)
    assert first["data_revision"] == INTEGER.data_revision
    assert first["opened"].endswith("+00:00")
    assert (second["suite"], second["n"], second["reason"]) == (
        "practice-choice",
        12,
        "release 0.1",
    )
