r"""How many replies of some 2,000 characters does a text suite grade in a second of processor time?

    PYTHONPATH=. python tests/benchmarks/grade_speed.py [--seconds 1]

One core, every reply different, patterns compiled before. The working is one of seven texts of
sentences as models write them, with letters, numbers and words that the rules look for. To measure
another checkout, set PYTHONPATH to it.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from podium.harness.records import Kind, Question
from podium.suites import SUITES

SENTENCES = (
    "We consider the forces on the block first, and the tension is greater than the weight.\n",
    "Option B cannot be right because of friction; if 3 kg move, then $F = 30$ N.\n\n",
    "**Step 2:** The energy of the state is 4.5 eV, so the wavelength must be near 275 nm.\n",
    "* A. would need a second proton, which the spectrum does not show.\n",
    "Let me check this again: \\(x = 4 \\cdot 7\\), therefore the other root is not possible.\n",
    "This means that the product has two stereocentres, and only one of them changes here.\n\n",
    "In the first case, we get $\\frac{14}{3}$ from the equation above, but it is too small.\n",
)
CHARACTERS = 2000
CHOICES = ("a ketone", "an alcohol", "a carboxylic acid", "an amine")
FORMLESS = (
    "So the product is **C. a carboxylic acid**.",
    "Only C fits, so it must be C.",
    "The product is a carboxylic acid (Option C).\n\nThat follows from the spectrum.",
    "**C) a carboxylic acid**",
    "The spectrum leaves no doubt about the product.",
)
"""Ends of replies to GPQA that hold neither a box nor an answer line, nor always an answer."""


@dataclass(frozen=True, slots=True)
class ReplyKind:
    """A kind of replies to a suite."""

    suite: str
    kind: Kind
    target: str
    end: Callable[[int], str]
    """The last lines of the n-th reply."""


KINDS: Mapping[str, ReplyKind] = {
    "aime25, box": ReplyKind("aime25", "integer", "70", lambda n: rf"So $\boxed{{{n % 1000}}}$."),
    "aime25, prose": ReplyKind("aime25", "integer", "70", lambda n: f"The answer is {n % 1000}."),
    "gpqa-diamond, answer line": ReplyKind(
        "gpqa-diamond", "choice", "C", lambda n: f"Answer: {'ABCD'[n % 4]}"
    ),
    "gpqa-diamond, no form": ReplyKind(
        "gpqa-diamond", "choice", "C", lambda n: FORMLESS[n % len(FORMLESS)]
    ),
    "mmlu, answer line": ReplyKind("mmlu", "choice", "C", lambda n: f"Answer: {'ABCD'[n % 4]}"),
    "math500, box": ReplyKind("math500", "text", "70", lambda n: rf"So $\boxed{{{n % 1000}}}$."),
    "math500, algebra": ReplyKind(
        "math500",
        "text",
        r"\frac{14}{3}",
        lambda n: rf"So $\boxed{{\frac{{{n + 3}}}{{\sqrt{{{n + 7}}}}}}}$.",
    ),
}


def replies(kind: ReplyKind) -> Iterator[str]:
    """Yield replies without end, each another."""
    for n in count():
        working, part = f"Case {n}. ", n
        while len(working) < CHARACTERS:
            working += SENTENCES[part % len(SENTENCES)]
            part += 1 + n % 3
        yield f"{working}\n{kind.end(n)}"


def rate(kind: ReplyKind, seconds: float) -> float:
    """Return grades a second of processor time of this process."""
    metadata = {"choices": [*CHOICES]} if kind.kind == "choice" else {}
    question = Question("speed", "?", kind.kind, kind.target, metadata=metadata)
    texts, grade = replies(kind), SUITES[kind.suite].grade
    for _ in range(20):
        grade(question, next(texts))
    done, spent = 0, 0.0
    while spent < seconds:
        some = [next(texts) for _ in range(50)]
        started = time.process_time()
        for text in some:
            grade(question, text)
        spent += time.process_time() - started
        done += len(some)
    return done / spent


def main() -> None:
    """Print a rate for each kind."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="processor time of a kind")
    seconds = parser.parse_args().seconds
    for name, kind in KINDS.items():
        print(f"{name:26} {rate(kind, seconds):8,.0f} /s", flush=True)


if __name__ == "__main__":
    main()
