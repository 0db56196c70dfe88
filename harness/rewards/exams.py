"""Which questions may teach: an exam whose role is to train, and what it shares with others.

A question is the same in two suites when its bare text is, whatever the case, the punctuation and
the instruction around it. What is bare is handed in, since only a suite knows its instruction
(suites/bare.py). Not here: whether a paraphrase is the same question; nobody looks for that.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import UserError
from harness.records import Question
from harness.suite import Split, Suite
from harness.task import pick

_PARTS = re.compile(
    r"[^\W_]+|-(?=\s*[\d\\({|])|[^\w\s.,;:!?'\"()\[\]{}$*`\u2018-\u201f\u2010-\u2015-]"
)
"""A word or a number, a minus before a term, or a sign that is no punctuation."""


@dataclass(frozen=True, slots=True)
class Exam:
    """A suite and those of its questions that are asked."""

    suite: Suite[Any]
    questions: Mapping[str, Question]
    """By id, in the order in which the suite loads them."""


@dataclass(frozen=True, slots=True)
class Shared:
    """One question that teaches and is asked in an exam."""

    suite: str
    question: str
    exam: str
    asked: str
    """The question's id in the exam."""


def exam_of(suite: Suite[Any], split: Split = "eval", limit: int | None = None) -> Exam:
    """Return the first questions of a split; UserError names what does not exist."""
    return Exam(suite, {question.id: question for question in pick(suite, split, limit)})


def training_exam(suite: Suite[Any], split: Split = "train", limit: int | None = None) -> Exam:
    """Return questions that may teach; UserError for the split `eval`, and for one there is not."""
    if split == "eval":
        has = "train" in suite.splits
        way = "take its train split" if has else "it has no train split, so name another suite"
        raise UserError(
            f"Split 'eval' of suite {suite.name!r} teaches nothing, it is an exam: {way}."
        )
    return exam_of(suite, split, limit)


def whole_text(question: Question) -> str:
    """Return a question's text as it is asked."""
    return question.text


Bare = Callable[[Question], str]
"""Returns what a question asks, without its suite's instruction."""


def question_digest(text: str) -> str:
    r"""Return 64 hex digits that are the same for texts which differ in form only.

    Form is case, white space, punctuation and width of characters (NFKC); signs that carry meaning
    (`+`, `<`, `^`, `\`) and the order of words count.

    >>> question_digest("What is  1+1 ?") == question_digest("what is 1+1")
    True
    >>> question_digest("What is 1+1?") == question_digest("What is 1-1?")
    False
    """
    return hashlib.sha256(normal_text(text).encode("utf-8", "surrogatepass")).hexdigest()


def normal_text(text: str) -> str:
    """Return the words and the meaningful signs of a text, one space between them."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(_PARTS.findall(folded))


def overlaps(
    training: Iterable[Exam], exams: Iterable[Exam], bare: Bare = whole_text
) -> list[Shared]:
    """Return the questions that teach and are asked, in the order of the exams that teach."""
    asked: dict[str, list[tuple[str, str]]] = {}
    for exam in exams:
        for question in exam.questions.values():
            for key in _is(question, bare):
                asked.setdefault(key, []).append((exam.suite.name, question.id))
    return [
        Shared(exam.suite.name, question.id, name, id)
        for exam in training
        for question in exam.questions.values()
        for key in _resembles(question, bare)
        for name, id in asked.get(key, ())
    ]


def asked_digest(question: Question, bare: Bare = whole_text) -> str:
    """Return the digest that a question is known by: of a choice, its options count.

    Two choices with one stem and other options are two questions ("Which of these is true?").
    """
    return _is(question, bare)[0].rpartition(" ")[2]


def _is(question: Question, bare: Bare) -> tuple[str, ...]:
    """Return what a question is known by: a choice by its options too, and as an open question."""
    stem = bare(question)
    if question.kind != "choice":
        return (f"open {question_digest(stem)}",)
    return (
        f"choice {question_digest(_with_options(question, stem))}",
        f"stem {question_digest(stem)}",
    )


def _resembles(question: Question, bare: Bare) -> tuple[str, ...]:
    """Return what another question is known by if it is this one.

    Two choices with one stem and other options are two questions ("Which of these is true?"); a
    choice and an open question with one stem are the same.
    """
    stem = bare(question)
    if question.kind != "choice":
        return (f"open {question_digest(stem)}", f"stem {question_digest(stem)}")
    return (
        f"choice {question_digest(_with_options(question, stem))}",
        f"open {question_digest(stem)}",
    )


def _with_options(question: Question, stem: str) -> str:
    options = question.metadata.get("choices", ())
    return "\n".join((stem, *sorted(normal_text(str(option)) for option in options)))


def without_shared(training: Exam, exams: Iterable[Exam], bare: Bare = whole_text) -> Exam:
    """Return what may teach: an exam without the questions that other exams ask."""
    shared = {found.question for found in overlaps([training], exams, bare)}
    left = {id: asked for id, asked in training.questions.items() if id not in shared}
    return Exam(training.suite, left)


def refuse_overlap(
    training: Iterable[Exam], exams: Iterable[Exam], bare: Bare = whole_text
) -> None:
    """Raise UserError, which names the first, when questions that teach are asked in an exam."""
    shared = overlaps(training, exams, bare)
    if shared:
        first = shared[0]
        raise UserError(
            f"{len(shared)} questions would teach and be asked, first {first.question} of "
            f"{first.suite!r}, which is {first.asked} of {first.exam!r}: name other suites."
        )
