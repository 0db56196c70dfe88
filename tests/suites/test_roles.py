"""No question both teaches and examines, but those that shared_questions.toml declares."""

import gzip
import json
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from podium.harness.errors import UserError
from podium.harness.records import Question
from podium.harness.rewards.splits import (
    SuiteSplit,
    load_split,
    load_training_split,
    overlaps,
    question_digest,
    refuse_overlap,
    without_overlap,
)
from podium.harness.suite import Split
from podium.suites import INSTRUCTIONS, SUITES, strip_instruction
from podium.suites.data import data_folder
from podium.suites.livecodebench import LIVECODEBENCH_TRAIN, SYSTEM, LiveCodeBench, user_prompt
from podium.suites.mmlu import Mmlu, mmlu_questions
from tests.suites.livecodebench_rows import MEMBERS, PROBLEMS, all_rows, needs_data, pinned

DECLARED: dict[str, Any] = tomllib.loads(
    (Path(__file__).parent / "shared_questions.toml").read_text(encoding="utf-8")
)
NUMBERS = SUITES["practice-integer"]


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@cache
def here(split: Split) -> tuple[SuiteSplit, ...]:
    """Return that split of every suite whose data is here, contests by their statements."""
    found = list[SuiteSplit]()
    for suite in SUITES.values():
        if split in suite.splits:
            try:
                found.append(load_split(suite, split))
            except UserError:  # its data is absent
                continue
    if (data_folder() / PROBLEMS).is_file():
        members = json.loads((data_folder() / MEMBERS).read_text())
        new = set(members["v6"]) - set(members["v5"])
        if split == "train":
            found.append(SuiteSplit(LIVECODEBENCH_TRAIN, contests(members["v1"])))
        if split == "eval":
            found = [exam for exam in found if exam.suite.name != "livecodebench"]
            found.append(SuiteSplit(SUITES["livecodebench"], contests(new)))
    return tuple(found)


def contests(ids: Iterable[str]) -> dict[str, Question]:
    """Return the questions of LiveCodeBench problems by their statements, without tests."""
    wanted = set(ids)
    with gzip.open(data_folder() / PROBLEMS, "rt", encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if row["question_id"] in wanted]
    texts = {row["question_id"]: (row["question_content"], row["starter_code"]) for row in rows}
    return {
        id: Question(id, f"{SYSTEM}\n\n{user_prompt(*text)}", "program")
        for id, text in texts.items()
    }


def exam(*asked: Question) -> SuiteSplit:
    return SuiteSplit(NUMBERS, {question.id: question for question in asked})


def open_question(text: str, id: str = "a") -> Question:
    return Question(id, text, "integer", "1")


# --- what is the same question ----------------------------------------------------------------


def test_case_punctuation_and_width_make_no_other_question() -> None:
    one = "What is the  product of 3+4 and x^2?\nExplain."
    same = "\u201cWHAT is the product, of \uff13+4 and $x^2$\u201d: explain!"
    assert question_digest(one) == question_digest(same)


@pytest.mark.parametrize("other", ["3-4", "4+3", "3+5", "3<4", "34"])
def test_a_sign_a_number_or_their_order_makes_another_question(other: str) -> None:
    assert question_digest("What is 3+4?") != question_digest(f"What is {other}?")


def test_a_planted_duplicate_is_found_whatever_its_form_and_instruction() -> None:
    taught = open_question("The sum of 3 and x is 10; find x.", "planted")
    asked = open_question(f"the SUM of 3 and x is 10 - find x!\n\n{INSTRUCTIONS[1]}", "exam")
    (found,) = overlaps([exam(taught)], [exam(asked)], strip_instruction)
    assert (found.question, found.asked) == ("planted", "exam")
    assert overlaps([exam(taught)], [exam(asked)]) == []


def choice(stem: str, *options: str, id: str) -> Question:
    row = {"question": stem, "choices": [*options], "answer": 0, "subject": "s", "id": id}
    return mmlu_questions([row])[0]


def test_options_belong_to_a_choice_in_any_order_and_an_open_question_is_its_stem() -> None:
    one = choice("Which is true?", "1", "2", "3", "4", id="one")
    turned = choice("Which is true?", "4", "2", "3", "1", id="turned")
    another = choice("Which is true?", "5", "2", "3", "1", id="another")
    assert [
        found.asked for found in overlaps([exam(one)], [exam(turned, another)], strip_instruction)
    ] == ["turned"]
    stem = open_question("Which is true", "stem")
    assert len(overlaps([exam(stem)], [exam(one, another)], strip_instruction)) == 2
    assert len(overlaps([exam(one)], [exam(stem)], strip_instruction)) == 1


@pytest.mark.parametrize("split", ["train", "validation", "eval"])
def test_no_instruction_is_left_around_a_question(split: Split) -> None:
    """A line that half of a suite's questions begin or end with would be an instruction."""
    for sat in here(split):
        texts = [
            strip_instruction(question).strip().splitlines() for question in sat.questions.values()
        ]
        for at in (0, -1):
            lines = [text[at] for text in texts]
            most = max(lines.count(line) for line in set(lines[:50]))
            code = sat.suite.needs_box
            assert code or most < max(3, len(lines) / 2), (sat.suite.name, at)


# --- roles ------------------------------------------------------------------------------------


def test_an_exam_teaches_nothing() -> None:
    with pytest.raises(
        UserError,
        match=r"'eval' of suite 'practice-integer' is for evaluation, not for "
        r"training.*train",
    ):
        load_training_split(NUMBERS, "eval")
    with pytest.raises(
        UserError,
        match=r"'aime25' is for evaluation, not for training.*name "
        r"another suite",
    ):
        load_training_split(SUITES["aime25"], "eval")
    with pytest.raises(UserError, match="'aime25' has no 'train' split"):
        load_training_split(SUITES["aime25"])


def test_what_teaches_is_addressed_by_id_and_may_be_cut() -> None:
    sat = load_training_split(NUMBERS, limit=3)
    assert list(sat.questions) == [question.id for question in NUMBERS.load("train")[:3]]
    assert sat.questions["practice-integer-train-0001"].target is not None


def test_an_overlap_is_refused_in_one_sentence_with_its_first_pair_and_the_count() -> None:
    shared = exam(
        open_question("1+1?", "t1"), open_question("2+2?", "t2"), open_question("3?", "t3")
    )
    asked = exam(open_question("1+1", "e1"), open_question("2+2", "e2"))
    with pytest.raises(
        UserError, match=r"^2 questions .* first t1 of .*, which equals e1 of [^.]*\.$"
    ):
        refuse_overlap([shared], [asked])
    left = without_overlap(shared, [asked])
    assert list(left.questions) == ["t3"]
    refuse_overlap([left], [asked])


def test_v1_teaches_under_a_name_of_its_own_and_is_an_exam_under_another(tmp_path: Path) -> None:
    suite = SUITES["livecodebench-train"]
    assert isinstance(suite, LiveCodeBench)
    assert (suite.name, suite.splits, suite.release.tag) == (
        "livecodebench-train",
        ("train",),
        "release_v1",
    )
    assert suite.card.sizes == {"train": 400}
    assert SUITES["livecodebench-v1"].splits == ("eval",)
    with pytest.raises(UserError, match="has no 'eval' split; it has: train"):
        suite.load("eval")
    with pytest.raises(UserError, match="is for evaluation, not for training"):
        load_training_split(suite, "eval")
    assert SUITES["livecodebench-train@2023-05-01.."].name == "livecodebench-train@2023-05-01.."


@needs_data
def test_v1_loads_as_what_teaches(tmp_path: Path) -> None:
    rows = [all_rows()[name] for name in ("1873_A", "abc301_a")]
    files = {"livecodebench-1": rows}
    suite = LiveCodeBench(
        LIVECODEBENCH_TRAIN.release,
        data=tmp_path,
        pinned=pinned(tmp_path, files),
        splits=("train",),
    )
    assert list(load_training_split(suite).questions) == ["1873_A", "abc301_a"]


# --- the data ---------------------------------------------------------------------------------


def test_no_question_that_teaches_is_asked_in_an_exam_but_those_declared() -> None:
    found = overlaps(here("train"), here("eval"), strip_instruction)
    whole = [tuple(pair) for pair in DECLARED["whole"]]
    pairs = {(one.question, one.asked) for one in found if (one.suite, one.evaluated) not in whole}
    named = {exam.suite.name for exam in (*here("train"), *here("eval"))}
    if {"math500", "mmlu", "mbpp"} <= named:
        assert pairs == {tuple(pair) for pair in DECLARED["train"]}
    else:
        assert pairs <= {tuple(pair) for pair in DECLARED["train"]}


@pytest.mark.slow
def test_what_is_declared_can_be_left_out_of_what_teaches() -> None:
    ids = {question for question, _ in DECLARED["train"]}
    for taught in here("train"):
        if ids & taught.questions.keys():
            others = [exam for exam in here("eval") if exam.suite.name in ("mmlu", "mbpp")]
            left = without_overlap(taught, others, strip_instruction)
            assert taught.questions.keys() - left.questions.keys() <= ids
            refuse_overlap([left], others, strip_instruction)


@needs_data
def test_the_175_new_problems_are_none_of_v1() -> None:
    members = json.loads((data_folder() / MEMBERS).read_text())
    v1, new = members["v1"], set(members["v6"]) - set(members["v5"])
    assert (len(v1), len(new)) == (400, 175)
    titles = {id: row["question_title"].casefold() for id, row in all_rows().items()}
    assert {titles[id] for id in v1} & {titles[id] for id in new} == set()
    taught, asked = (
        SuiteSplit(LIVECODEBENCH_TRAIN, contests(v1)),
        SuiteSplit(SUITES["livecodebench"], contests(new)),
    )
    assert overlaps([taught], [asked], strip_instruction) == []
    whole = SuiteSplit(SUITES["livecodebench-v6"], contests(members["v6"]))
    assert len(overlaps([taught], [whole], strip_instruction)) == 400


@pytest.mark.slow
def test_mmlu_repeats_itself_as_often_as_declared() -> None:
    try:
        val, test = load_split(Mmlu(), "validation"), load_split(Mmlu())
    except UserError as error:
        pytest.skip(str(error))
    assert (
        len({one.question for one in overlaps([val], [test], strip_instruction)})
        == DECLARED["mmlu_validation_in_test"]
    )
    again = overlaps([test], [test], strip_instruction)
    firsts: dict[str, str] = {}
    for one in again:
        firsts.setdefault(one.question, one.asked)
    assert (
        sum(question != first for question, first in firsts.items())
        == DECLARED["mmlu_test_repeats"]
    )
