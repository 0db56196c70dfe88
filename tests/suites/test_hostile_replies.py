"""No reply of a megabyte takes a grader two seconds, whatever it is made of and put into.

Pieces are what makes patterns and counting quadratic. CPU time, so a busy machine changes little;
math-verify is not asked about anything as long.
"""

import os
import time
from collections.abc import Iterator

import pytest

from podium.harness.records import Kind, Question
from podium.suites import SUITES

pytestmark = pytest.mark.slow

MOST_S = 2.0
"""CPU seconds of a grade. A slow machine may take longer, if a quarter of it takes a quarter."""
MOST_TIMES = 7
SIZE = 1_000_000
"""Characters."""

PIECES = {
    "open braces": "{",
    "braces": "{}",
    "open boxes": r"\boxed{",
    "empty boxes": r"\boxed{} ",
    "boxes": r"\boxed{7}, ",
    "boxes and words": r"\boxed{7} or ",
    "boxes without braces": r"\boxed 7 ",
    "fractions": r"\frac{1}{",
    "texts": r"\text{ ",
    "left": r"\left(",
    "answer is": "answer is ",
    "the answer is a letter": "The answer is (A). ",
    "the answer is a number": "the answer is 7, ",
    "answer is not": "the answer is not ",
    "answer lines": "Answer:\n",
    "answer lines with letters": "Answer: A\n",
    "answer, one line": "Answer: ",
    "bold answers": "**Answer:** ",
    "open letters": "(A",
    "letters": "A, ",
    "options": "A) 7\n",
    "option or": "option A or ",
    "letters and numbers": "(B) 7 and ",
    "spaces": " ",
    "spaces and a stop": " " * 999 + ".",
    "tabs": "\t",
    "lines": "\n",
    "returns": "\r\n",
    "backslashes": "\\",
    "dollars": "$",
    "formulas": "$7$ ",
    "formulas and words": "$7$ and ",
    "open formulas": r"\(",
    "displays": r"\[7\] ",
    "opened tags": "<answer>",
    "closed tags": "</answer>",
    "tags": "<answer>7</answer>",
    "opened thoughts": "<think>",
    "closed thoughts": "</think>",
    "thoughts": "<think>7</think>",
    "end of turn": "<|im_end|>",
    "less than": "<",
    "digits": "7",
    "digits with commas": "7,777,",
    "points": "7.",
    "stars": "*",
    "starred": "**7** ",
    "low lines": "_",
    "ticks": "`",
    "hashes": "#",
    "fences": "```\n",
    "equals": "=",
    "sums": "x=7+",
    "equal sums": "1+1=",
    "powers": "^",
    "so it is": "so it is 7, ",
    "therefore": "Therefore, ",
    "sentences": "Thus it is 7. ",
    "wait": "Wait, ",
    "not": "not ",
    "or": "7 or ",
    "if": "if A is right, ",
    "units": "7 m/s^2 ",
    "quotes": "'",
    "marks of direction": "\u200f",
    "full-width letters": "\uff21",
    "full-width colons": "Answer\uff1a",
    "Chinese answers": "\u7b54\u6848\u662f",
    "accents": "a\u0301",
    "emoji": "\U0001f600 ",
    "nulls": "\x00",
    "half characters": "\ud800",
}
OPTIONS = {"choices": ["7", "8", "42 m", "None of these"]}
PUT = {
    "alone": "{}",
    "in a box": "\\boxed{{{}}}",
    "on an answer line": "Answer: {}",
    "in tags": "<answer>{}</answer>",
    "in a sentence": "The answer is {}.",
    "before an answer": "{}\n\nAnswer: 7",
    "in a thought": "<think>{}</think>",
    "in dollars": "So ${}$",
}
KEYS: dict[str, tuple[Kind, str]] = {
    "aime25": ("integer", "7"),
    "gpqa-diamond": ("choice", "A"),
    "math500": ("text", "(7, 8)"),
    "rlpr": ("text", "7 m"),
    "rlpr-rules": ("text", "B"),
}
PLACES_EACH = int(os.environ.get("PODIUM_FUZZ_PLACES", "1"))
"""Places that each piece is put into, by turns; with eight each is put into all."""


@pytest.mark.parametrize(("turn", "piece"), [*enumerate(PIECES.values())], ids=PIECES.keys())
def test_a_hostile_reply_of_a_megabyte_is_graded_in_two_seconds(turn: int, piece: str) -> None:
    filling = piece * (SIZE // len(piece))
    places = [*PUT][turn % len(PUT) :] + [*PUT][: turn % len(PUT)]
    assert [one for place in places[:PLACES_EACH] for one in slow(place, filling)] == []


def slow(place: str, filling: str) -> Iterator[tuple[str, str, float]]:
    """Yield the suite, the place and the seconds of each grade that takes too long."""
    reply = PUT[place].format(filling)
    for suite, (kind, key) in KEYS.items():
        question = Question("hostile", "?", kind, key, metadata=OPTIONS)
        seconds = graded(suite, question, reply)
        if seconds > MOST_S:
            quarter = graded(suite, question, PUT[place].format(filling[: SIZE // 4]))
            if seconds > MOST_TIMES * quarter:
                yield suite, place, round(seconds, 2)


def graded(suite: str, question: Question, reply: str) -> float:
    """Return the seconds of CPU that a grade takes in this process."""
    started = time.process_time()
    grade = SUITES[suite].grade(question, reply)
    assert grade.value in (0.0, 1.0)
    return time.process_time() - started
