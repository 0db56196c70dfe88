"""Do our grades agree with recorded ones, and with math-verify on the whole reply?

    python tests/benchmarks/agree_with_math_verify.py [math500|aime25] [--speed]

The replies are real: R1-Distill-7B on MATH-500 and four models on AIME25, with the verdict that
lighteval recorded (saturn_lighteval in the data folder). `math-verify` is the library as lighteval
calls it, on the whole reply, in a process of its own with its own time limits. Every reply on
which the three do not agree is listed with both answers. `--speed` measures rows per second.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from podium.harness.records import Grade, Question
from podium.harness.suite import Suite
from podium.suites.aime25 import AIME25
from podium.suites.data import local_rows
from podium.suites.latex import normalise_answer
from podium.suites.math500 import MATH500_ALL
from podium.suites.math_equality import compare, parse_shape
from podium.suites.math_verify_pool import math_verify_all

THEIRS = """
import json, sys
from math_verify import ExprExtractionConfig as Plain, LatexExtractionConfig as Latex, parse, verify
for line in sys.stdin:
    asked = json.loads(line)
    gold = parse(asked["gold"], extraction_config=[Latex(), Plain()])
    said = parse(asked["reply"], extraction_config=[Plain(), Latex()])
    print(json.dumps({"right": bool(verify(gold, said)), "said": str(said[-1:])}), flush=True)
"""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A real reply with the verdict that was recorded for it."""

    question: Question
    model: str
    reply: str
    gold: str
    """What lighteval was given as the truth: the solution (MATH-500) or the number (AIME25)."""
    right: bool
    said: str
    """The answer that lighteval recorded."""


def recorded(name: str) -> tuple[Suite[Any], list[Recorded]]:
    """Return a suite and its recorded replies."""
    suite: Suite[Any] = MATH500_ALL if name == "math500" else AIME25
    by_id = {question.id: question for question in suite.load()}
    by_text = {question.text.partition("\n\n")[2]: question for question in by_id.values()}
    return suite, [
        Recorded(
            question=by_id.get(row["problem_id"])
            or by_text[row["prompt"].partition("\n\n")[2].strip()],
            model=row["model"],
            reply=row["output"],
            gold=f"${row['gold']}$" if name == "aime25" else row["gold"],
            right=row["metric"] == 1.0,
            said=str((row["extracted_pred"] or [""])[-1]),
        )
        for row in local_rows(f"recorded-{name}")
    ]


def disagreements(suite: Suite[Any], rows: Sequence[Recorded]) -> dict[tuple[str, str], Grade]:
    """Return our grade by (model, question id) where it is not the recorded verdict."""
    grades = ((row, suite.grade(row.question, row.reply)) for row in rows)
    return {
        (row.model, row.question.id): grade
        for row, grade in grades
        if (grade.value == 1.0) != row.right
    }


def of_math_verify(rows: Sequence[Recorded]) -> list[dict[str, Any]]:
    """Return math-verify's verdicts on the whole replies."""
    asked = "".join(json.dumps({"gold": row.gold, "reply": row.reply}) + "\n" for row in rows)
    done = subprocess.run(
        [sys.executable, "-c", THEIRS], input=asked, text=True, capture_output=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def print_agreement(name: str) -> None:
    """Print how often the three agree, and every reply on which they do not."""
    suite, rows = recorded(name)
    ours = [suite.grade(row.question, row.reply) for row in rows]
    started = time.monotonic()
    theirs = of_math_verify(rows)
    print(f"{name}: {len(rows)} replies; math-verify on them whole: {_since(started)} s")
    mine = [grade.value == 1.0 for grade in ours]
    print("| | right | as recorded | as math-verify |\n|---|---|---|---|")
    for label, verdicts in (
        ("ours", mine),
        ("recorded", [row.right for row in rows]),
        ("math-verify", [each["right"] for each in theirs]),
    ):
        recorded_same = sum(a == row.right for a, row in zip(verdicts, rows, strict=True))
        theirs_same = sum(a == b["right"] for a, b in zip(verdicts, theirs, strict=True))
        print(f"| {label} | {sum(verdicts)} | {recorded_same} | {theirs_same} |")
    for row, grade, each in zip(rows, ours, theirs, strict=True):
        if len({grade.value == 1.0, row.right, each["right"]}) > 1:
            print(
                f"{row.model} {row.question.id}: target {row.question.target}; ours {grade.value} "
                f"({grade.extracted}), recorded {row.right} ({row.said}), "
                f"math-verify {each['right']} ({each['said']})"
            )


def print_speed(name: str) -> None:
    """Print replies per second of one core, and of the second look alone."""
    suite, rows = recorded(name)
    looked = [(row, suite.grade(row.question, row.reply)) for row in rows]
    exact = [row for row, grade in looked if grade.metadata.get("look") == "exact"]
    length = sum(len(row.reply) for row in exact) // len(exact)
    short = [(row.question, row.reply[-2000:]) for row in exact]
    whole = [(row.question, row.reply) for row in exact]
    for label, items in ((f"mean {length} characters", whole), ("last 2,000", short)):
        print(f"{name}, first look, {label}: {_rate(items, suite.grade):,.0f}/s")
    pairs = [(row.question.target or "", grade.extracted or "") for row, grade in looked]
    asked = [(t, a) for t, a in pairs if t and a]
    math_verify_all((("1", "2", 6),))
    for label in ("cold", "cached"):
        rate = _rate([(((t, a, 6),),) for t, a in asked], math_verify_all, 1, time.perf_counter)
        print(f"{name}, second look, {label}: {rate:,.0f}/s")
    print(f"{name}, comparing alone: {_rate(asked, compare):,.0f}/s")


def _rate(
    items: Sequence[tuple[Any, ...]],
    call: Callable[..., Any],
    repeats: int = 3,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Return calls per second of this process's CPU, or of `clock`; nothing is cached before."""
    best = float("inf")
    for _ in range(repeats):
        parse_shape.cache_clear()
        normalise_answer.cache_clear()
        started = clock()
        for item in items:
            call(*item)
        best = min(best, clock() - started)
    return len(items) / best


def _since(started: float) -> str:
    return f"{time.monotonic() - started:.1f}"


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["math500", "aime25"])
    parser.add_argument("--speed", action="store_true")
    given = parser.parse_args()
    for name in given.names:
        (print_speed if given.speed else print_agreement)(name)


if __name__ == "__main__":
    main()
