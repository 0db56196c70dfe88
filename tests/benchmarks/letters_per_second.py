"""Letters and integers read per second and core, from replies of one to three kilobytes.

    python tests/benchmarks/letters_per_second.py [--replies 20000]

The replies differ in where their answer stands; some have none, so that every rule is tried.
CPU time of this process, on one core.
"""

import argparse
import time
from collections.abc import Callable, Mapping

from harness.records import Grade, Question
from suites.aime25 import AIME25
from suites.mmlu import MMLU, questions

SENTENCE = (
    "We consider the forces on the block. Therefore the tension is greater than the weight, and "
    "option B cannot be right because of friction.\n"
)
UNSURE = (
    "If the answer is to be found, then the answer is not yet clear; perhaps the answer is what we "
    "seek.\n"
)
SIGNS = SENTENCE.replace("forces", "forces \u03bcN \u2014").replace("greater than", "\u2265")
SUMS = "The mass is 3 kg, so F = 30 N and x = 4 \\cdot 7; the sum is larger than 3.\n"
INTEGERS = {
    "integer line": SUMS * 25 + "ANSWER: 70",
    "integer box": SUMS * 25 + r"\boxed{70}",
    "integer in prose": SUMS * 25 + "So the answer is 70.",
    "no integer": SUMS * 25,
    "no integer, words": SENTENCE * 20,
    "no integer, signs": SIGNS * 20,
}
REPLIES = {
    "answer line": SENTENCE * 14 + "Answer: C",
    "bold answer line": SENTENCE * 21 + "\n\n**Answer: (C)**",
    "box": SENTENCE * 14 + r"\boxed{C}",
    "prose": SENTENCE * 14 + "So the correct answer is **C**.",
    "thinking": f"<think>{SENTENCE * 14}</think>\n\nAnswer: $C$",
    "pleasantry": SENTENCE * 7 + "Answer: C\n\nHope this helps!",
    "no answer": SENTENCE * 20,
    "no answer, unsure": UNSURE * 25,
    "signs": SIGNS * 20 + "Answer: C",
    "signs, prose": SIGNS * 20 + "So the correct answer is **C**.",
    "signs, no answer": SIGNS * 20,
}


def main() -> None:
    """Print the rate of each kind of reply, and of all in equal parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replies", type=int, default=20_000)
    each = parser.parse_args().replies // len(REPLIES)
    row = {"question": "?", "subject": "s", "choices": ["1", "2", "3", "4"], "answer": 2}
    (question,) = questions([row])
    show(lambda reply: MMLU.grade(question, reply), REPLIES, each)
    number = Question("n", "?", "integer", "70")
    show(lambda reply: AIME25.grade(number, reply), INTEGERS, each)


def show(grade: Callable[[str], Grade], replies: Mapping[str, str], each: int) -> None:
    """Print the rates of these replies, each graded so many times."""
    total = 0.0
    for name, reply in replies.items():
        started = time.process_time()
        for _ in range(each):
            grade(reply)
        seconds = time.process_time() - started
        total += seconds
        print(f"{name:18} {len(reply):5} characters {each / seconds:9,.0f} grades/s")
    print(f"{'all':18} {'':5}            {each * len(replies) / total:9,.0f} grades/s")


if __name__ == "__main__":
    main()
