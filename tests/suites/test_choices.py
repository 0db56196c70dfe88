"""What multiple-choice exams share: printed options, their order over epochs, and the grade."""

from collections import Counter
from dataclasses import replace

import pytest

from podium.harness.records import Question
from podium.suites.base import LETTERS, choice_metadata, choice_text, grade_choice, option_lines
from podium.suites.gpqa_diamond import arrange_options, first_places, order_seed, rotate_options

OPTIONS = ["copper", "silver", "gold", "iron"]


def made(id: str, place: int) -> Question:
    printed = arrange_options("right", ["x", "y", "z"], place, order_seed(id, 1))
    return Question(
        id=id,
        text=choice_text("Which?", printed),
        kind="choice",
        target=LETTERS[place],
        metadata=choice_metadata(printed),
    )


def exam(size: int) -> list[Question]:
    return [made(id, place) for id, place in first_places(f"r{n}" for n in range(size)).items()]


def question(target: str | None = "B") -> Question:
    return Question("q", "?", "choice", target, metadata=choice_metadata(OPTIONS))


def test_options_stand_behind_their_letters_after_instruction_and_question() -> None:
    text = choice_text("Which conducts best?", OPTIONS, "Choose.")
    assert text == ("Choose.\n\nWhich conducts best?\n\nA) copper\nB) silver\nC) gold\nD) iron")


def test_another_number_of_options_than_four_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        option_lines(OPTIONS[:3])


def test_the_permutation_is_a_function_of_what_is_printed_alone() -> None:
    seen = choice_metadata(OPTIONS)
    assert seen == {"choices": OPTIONS, "permutation": [0, 3, 1, 2]}
    in_order = sorted(OPTIONS)
    assert [in_order[at] for at in seen["permutation"]] == OPTIONS


def test_equal_options_have_a_permutation_too() -> None:
    assert choice_metadata(["b", "a", "b", "c"])["permutation"] == [1, 0, 2, 3]


@pytest.mark.parametrize("size", [4, 5, 198, 447])
def test_in_every_epoch_each_letter_is_right_as_often_as_the_others(size: int) -> None:
    for epoch in range(1, 6):
        right = Counter(rotate_options(one, epoch).target for one in exam(size))
        assert set(right) == set(LETTERS)
        assert max(right.values()) - min(right.values()) <= 1


def test_over_four_epochs_each_letter_is_right_once_for_every_question() -> None:
    for one in exam(50):
        assert {rotate_options(one, epoch).target for epoch in range(1, 5)} == set(LETTERS)


def test_in_every_epoch_the_target_names_the_right_option() -> None:
    for one in exam(50):
        for epoch in range(1, 9):
            form = rotate_options(one, epoch)
            assert form.metadata["choices"]["ABCD".index(form.target or "")] == "right"
            assert form.text.endswith(option_lines(form.metadata["choices"]))
            assert sorted(form.metadata["choices"]) == ["right", "x", "y", "z"]


def test_no_permutation_is_constant_over_questions_or_over_epochs() -> None:
    forms = {
        (one.id, epoch): tuple(rotate_options(one, epoch).metadata["permutation"])
        for one in exam(198)
        for epoch in range(1, 5)
    }
    for epoch in range(1, 5):
        assert len({forms[id, e] for id, e in forms if e == epoch}) == 24
    for one in exam(198):
        assert len({forms[one.id, epoch] for epoch in range(1, 5)}) == 4


def test_the_wrong_options_keep_no_order_over_epochs() -> None:
    orders = Counter[tuple[str, ...]]()
    for one in exam(198):
        for epoch in range(1, 5):
            printed: list[str] = rotate_options(one, epoch).metadata["choices"]
            orders[tuple(option for option in printed if option != "right")] += 1
    assert len(orders) == 6
    assert min(orders.values()) > 198 * 4 / 6 * 0.7


def test_the_order_is_the_same_every_time_and_whatever_order_the_rows_had() -> None:
    assert exam(20) == exam(20)
    assert first_places(["b", "a", "c"]) == first_places(["c", "b", "a"])
    assert arrange_options("r", ["x", "y", "z"], 2, "s") == arrange_options(
        "r", ["z", "x", "y"], 2, "s"
    )


def test_a_letter_grades_right_or_wrong_and_says_what_was_expected() -> None:
    right, wrong = (grade_choice(question(), f"Answer: {name}") for name in "BD")
    assert (right.value, right.extracted, right.explanation) == (1.0, "B", "right")
    assert (wrong.value, wrong.extracted, wrong.explanation) == (0.0, "D", "expected B")


def test_a_reply_without_a_letter_is_wrong_and_unparsed() -> None:
    for reply in ("", "I do not know.", "Answer: Because", "A and B are both fine."):
        grade = grade_choice(question(), reply)
        assert (grade.value, grade.extracted) == (0.0, None)


def test_an_options_own_text_counts_where_a_letter_was_due_unless_two_options_share_it() -> None:
    assert grade_choice(question(), "Answer: silver").value == 1.0
    twins = replace(question(), metadata=choice_metadata(["silver", "silver", "gold", "iron"]))
    assert grade_choice(twins, "Answer: silver").extracted is None


def test_a_sealed_question_cannot_be_graded() -> None:
    with pytest.raises(ValueError, match="q is sealed"):
        grade_choice(question(None), "Answer: B")
