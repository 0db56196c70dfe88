"""Kinds of question: found without labels, kept without words."""

from collections import Counter

import numpy as np

from podium.harness.question_kinds import FORMS, MOST_KINDS, find_kinds
from podium.harness.records import Kind, Question
from podium.harness.rewards.splits import load_split
from podium.suites import SUITES


def split_of(name: str, split: str, count: int) -> list[Question]:
    return [*load_split(SUITES[name], split).questions.values()][:count]  # pyright: ignore[reportArgumentType]


def asked(kind: Kind, *texts: str) -> list[Question]:
    return [Question(text, text, kind) for text in texts]


def test_questions_fall_to_kinds_of_their_own_suite() -> None:
    names = ("practice-integer", "practice-composed", "practice-choice", "practice-code")
    taught = [(name, one) for name in names for one in split_of(name, "train", 50)]
    kinds = find_kinds([one for _, one in taught], [name for name, _ in taught], seed=0)
    home = kinds.of([one for _, one in taught])
    owner = {
        at: Counter(name for (name, _), kind in zip(taught, home, strict=True) if kind == at)
        for at in range(len(kinds))
    }
    for name in names:
        later = kinds.of(split_of(name, "eval", 60))
        own = [owner[kind].most_common(1)[0][0] == name for kind in later.tolist() if owner[kind]]
        assert np.mean(own) > 0.85, name


def test_a_choice_is_never_of_a_kind_of_values_while_there_are_choices() -> None:
    texts = [f"What is the square of {n}?" for n in range(30)]
    taught = asked("integer", *texts) + asked("choice", "Which planet is the largest?")
    kinds = find_kinds(taught, ["s"] * 31, seed=1)
    assert FORMS[kinds.forms[kinds.of(asked("choice", texts[0]))[0]]] == "choice"
    only = find_kinds(asked("integer", *texts), ["s"] * 30, seed=1)
    assert (
        only.of(asked("choice", texts[0])).tolist() == only.of(asked("integer", texts[0])).tolist()
    )


def test_few_questions_are_one_kind_and_many_are_a_few() -> None:
    assert len(find_kinds(asked("text", "a b", "c d"), ["s", "s"], 0)) == 1
    taught = split_of("practice-integer", "train", 200)
    assert len(find_kinds(taught, ["s"] * 200, 0)) == MOST_KINDS


def test_no_word_of_a_question_is_kept_and_the_same_seed_finds_the_same() -> None:
    taught = asked("text", *(f"zyzzyva number {n} quokka" for n in range(40)))
    first, again = (find_kinds(taught, ["s"] * 40, 5) for _ in range(2))
    assert all((first.arrays()[name] == again.arrays()[name]).all() for name in first.arrays())
    assert all(values.dtype.kind in "fi" for values in first.arrays().values())


def test_a_question_without_text_has_a_kind() -> None:
    taught = asked("text", "one two three", "", "four five")
    assert find_kinds(taught, ["s"] * 3, 0).of(asked("text", "")).shape == (1,)
