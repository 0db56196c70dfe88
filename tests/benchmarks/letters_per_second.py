"""Letters read per second and core, from replies of one to three kilobytes.

    python tests/benchmarks/letters_per_second.py [--replies 20000]

The replies differ in where their answer stands; one kind has none, so that every rule is tried.
CPU time of this process, on one core.
"""

import argparse
import time

from suites.mmlu import MMLU, questions

SENTENCE = (
    "We consider the forces on the block. Therefore the tension is greater than the weight, and "
    "option B cannot be right because of friction.\n"
)
REPLIES = {
    "answer line": SENTENCE * 14 + "Answer: C",
    "bold answer line": SENTENCE * 21 + "\n\n**Answer: (C)**",
    "box": SENTENCE * 14 + r"\boxed{C}",
    "prose": SENTENCE * 14 + "So the correct answer is **C**.",
    "thinking": f"<think>{SENTENCE * 14}</think>\n\nAnswer: $C$",
    "pleasantry": SENTENCE * 7 + "Answer: C\n\nHope this helps!",
    "no answer": SENTENCE * 20,
}


def main() -> None:
    """Print the rate of each kind of reply, and of all in equal parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replies", type=int, default=20_000)
    each = parser.parse_args().replies // len(REPLIES)
    row = {"question": "?", "subject": "s", "choices": ["1", "2", "3", "4"], "answer": 2}
    (question,) = questions([row])
    total = 0.0
    for name, reply in REPLIES.items():
        started = time.process_time()
        for _ in range(each):
            MMLU.grade(question, reply)
        seconds = time.process_time() - started
        total += seconds
        print(f"{name:18} {len(reply):5} characters {each / seconds:9,.0f} grades/s")
    print(f"{'all':18} {'':5}            {each * len(REPLIES) / total:9,.0f} grades/s")


if __name__ == "__main__":
    main()
