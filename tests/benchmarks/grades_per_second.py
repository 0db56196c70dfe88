r"""Text replies graded per second and core: by suite, length and where the answer stands.

    PYTHONPATH=. python tests/benchmarks/grades_per_second.py [--seconds 0.3]

Every rate is CPU time of this process, after every pattern has been compiled. Peers read the same
replies in the same run: Inspect's own patterns (`answer("letter")`, `match(numeric=True)`) and the
pattern of openai/simple-evals, which look for an answer line and nothing else.
"""

import argparse
import re
import time
from collections.abc import Callable, Mapping

from inspect_ai.scorer import AnswerPattern
from inspect_ai.scorer._common import match_str

from podium.harness.records import Kind, Question
from podium.suites import SUITES

Grade = Callable[[str], object]
SENTENCE = (
    "We consider the forces on the block. Therefore the tension is greater than the weight, and "
    "option B cannot be right because of friction. If 3 kg move, F = 30 N and x = 4 \\cdot 7.\n"
)
SIGNS = SENTENCE.replace("forces", "forces \u03bcN \u2014").replace("\\cdot", "\u00b7")
LENGTHS = {"short": 200, "usual": 2000, "long": 40_000}
"""Characters."""
ENDS = {
    "answer line": "Answer: {}",
    "bold line": "**Answer: {}**",
    "box": "$\\boxed{{{}}}$",
    "sentence": "So the answer is {}.",
    "nothing": "That is all there is to it.",
}
KEYS: dict[str, tuple[Kind, str]] = {
    "aime25": ("integer", "70"),
    "gpqa-diamond": ("choice", "C"),
    "math500": ("text", r"\frac{14}{3}"),
    "rlpr": ("text", "C"),
    "rlpr-rules": ("text", "42 m"),
}
SIMPLE_EVALS = re.compile(r"(?i)Answer[ \t]*:[ \t]*\$?([A-D])\$?")
"""openai/simple-evals at ee3b031, ANSWER_PATTERN_MULTICHOICE."""


def peers(key: str) -> Mapping[str, Grade]:
    """Return what others read of a reply."""
    return {
        "Inspect, letter": lambda reply: re.search(AnswerPattern.LETTER, reply),
        "Inspect, line": lambda reply: re.search(AnswerPattern.LINE, reply),
        "Inspect, number": lambda reply: match_str(reply, key, numeric=True),
        "simple-evals": SIMPLE_EVALS.search,
    }


def replies(sentence: str, length: int, key: str) -> list[str]:
    """Return a reply for each place of an answer."""
    working = (sentence * (length // len(sentence) + 1))[-length:]
    return [f"{working}\n\n{end.format(key)}" for end in ENDS.values()]


def rate(grade: Grade, reply: str, seconds: float) -> float:
    """Return grades per second of CPU; the reply differs each time by a space at its end."""
    done, spent = 0, 0.0
    while spent < seconds:
        some = [reply + " " * (n % 50) for n in range(20)]
        started = time.process_time()
        for one in some:
            grade(one)
        spent += time.process_time() - started
        done += len(some)
    return done / spent


def row(name: str, grade: Grade, some: list[str], seconds: float) -> str:
    """Return a line with a rate for each reply, and for all in equal parts."""
    rates = [rate(grade, reply, seconds) for reply in some]
    mean = len(rates) / sum(1 / one for one in rates)
    return f"| {name} | " + " | ".join(f"{one:,.0f}" for one in (*rates, mean)) + " |"


def main() -> None:
    """Print one table for each length, plain and with signs that are not ASCII."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.1, help="CPU time of one measurement")
    seconds = parser.parse_args().seconds
    for length, characters in LENGTHS.items():
        for sentence in (SENTENCE, SIGNS):
            signs = "plain" if sentence.isascii() else "with signs"
            print(f"\n{length} replies, {characters:,} characters, {signs}: grades/s")
            print("| | " + " | ".join([*ENDS, "all"]) + " |\n|---|" + "---|" * (len(ENDS) + 1))
            show(sentence, characters, seconds)


def show(sentence: str, characters: int, seconds: float) -> None:
    """Print the rates of our suites and of the peers on replies of one length."""
    for suite, (kind, key) in KEYS.items():
        question = Question("rate", "?", kind, key)
        some = replies(sentence, characters, key)

        def graded(reply: str, suite: str = suite, question: Question = question) -> object:
            return SUITES[suite].grade(question, reply)

        for reply in some:
            graded(reply)
        print(row(f"{suite}, {key}", graded, some, seconds), flush=True)
    for name, read in peers("70").items():
        key = "C" if name in ("Inspect, letter", "simple-evals") else "70"
        print(row(name, read, replies(sentence, characters, key), seconds), flush=True)


if __name__ == "__main__":
    main()
