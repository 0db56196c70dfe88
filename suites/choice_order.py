"""In which order a question shows its options: over four epochs each letter is right once.

A model that favours a letter gains nothing by it: in every epoch each letter is right for a quarter
of the exam, and over four epochs for a quarter of every question. Not here: the text of options.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

from harness.records import Question
from suites.choices import LETTERS, choice_metadata, option_lines


def first_places(ids: Iterable[str]) -> dict[str, int]:
    """Return where each question's right option stands in epoch 1, from 0.

    It is (rank of the id's sha256 among all ids, from 0, + 1) modulo 4, so the letters are as even
    as the number of questions allows.
    """
    ranked = sorted(ids, key=lambda id: hashlib.sha256(id.encode()).digest())
    return {id: (rank + 1) % len(LETTERS) for rank, id in enumerate(ranked)}


def arranged(right: str, wrong: Sequence[str], place: int, seed: str) -> list[str]:
    """Return the options with the right one at its place, the others in an order drawn from `seed`.

    The order in which `wrong` is given makes no difference.
    """
    printed = Random(seed).sample(sorted(wrong), len(wrong))
    printed.insert(place, right)
    return printed


def order_seed(id: str, epoch: int) -> str:
    """Return what the order of a question's wrong options is drawn from in an epoch, from 1."""
    return f"{id}/{epoch}"


def later_order(question: Question, epoch: int) -> Question:
    """Return an epoch-1 question as another epoch asks it; the right option moves on by a letter.

    The question ends with its options as `option_lines` prints them, and names them in
    `metadata["choices"]`. ValueError when it is sealed or does not.
    """
    if question.target is None:
        raise ValueError(f"{question.id} is sealed: nobody can say where its right option moves")
    first: list[str] = list(question.metadata["choices"])
    lines = option_lines(first)
    if not question.text.endswith(lines):
        raise ValueError(f"{question.id} does not end with its options")
    at = LETTERS.index(question.target)
    place = (at + epoch - 1) % len(LETTERS)
    wrong = first[:at] + first[at + 1 :]
    printed = arranged(first[at], wrong, place, order_seed(question.id, epoch))
    return replace(
        question,
        text=question.text.removesuffix(lines) + option_lines(printed),
        target=LETTERS[place],
        metadata={**question.metadata, **choice_metadata(printed)},
    )
