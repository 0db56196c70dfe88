"""Rewards per second through `Reward.score`, by what has to be done for one.

    PYTHONPATH=. python tests/benchmarks/rewards_per_second.py [--box docker]

No model is asked: the replies are made here (a paragraph of words, then the answer). Each kind is
measured with replies that are all different, and once more with the same ones, which are shared.
Rates are per second of the wall clock and per second of this process's own CPU time; the latter
bears a busy machine, but does not count the processes of math-verify or of a box.
"""

import argparse
import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

from podium.harness.errors import UserError
from podium.harness.records import Question
from podium.harness.rewards.outcome import RewardItem
from podium.harness.rewards.reward import Reward
from podium.harness.rewards.splits import SuiteSplit
from podium.harness.suite import Split, Suite
from podium.sandbox import Box, open_box
from podium.suites import SUITES
from tests.suites.gold import gold_reply

WORDS = "Let us think about this step by step, and check every part of it once more.\n" * 8

Reply = Callable[[Question, int], str]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of replies to one suite."""

    name: str
    suite: str
    split: Split
    rows: int
    reply: Reply


def integer(question: Question, n: int) -> str:
    """Every other reply is right."""
    return rf"{WORDS}So the answer is \boxed{{{question.target if n % 2 else n % 1000}}}."


def letter(question: Question, n: int) -> str:
    return f"{WORDS}Answer: {question.target if n % 2 else 'ABCD'[n % 4]}"


def same_text(question: Question, n: int) -> str:
    return rf"{WORDS}So the answer is \boxed{{{question.target}}}."


def looked_at_twice(question: Question, n: int) -> str:
    """An expression that equals nothing by its text: math-verify has to look, each time anew."""
    return rf"{WORDS}So the answer is \boxed{{\frac{{{n + 3}}}{{\sqrt{{{n + 7}}}}}}}."


def program(question: Question, n: int) -> str:
    return gold_reply(question)


KINDS = (
    Kind("an integer, exact", "aime25", "eval", 40_000, integer),
    Kind("a letter, four options", "practice-choice", "train", 40_000, letter),
    Kind("a letter, GPQA-Diamond", "gpqa-diamond", "eval", 40_000, letter),
    Kind("an expression, exact", "math500", "train", 20_000, same_text),
    Kind("an expression, by math-verify", "math500", "train", 400, looked_at_twice),
    Kind("a program and its tests", "practice-code", "train", 100, program),
)


def replies(kind: Kind, questions: Sequence[Question]) -> list[RewardItem]:
    """Return that many items whose completions all differ, by spaces at the end if by nothing."""

    def made() -> Iterator[RewardItem]:
        for n in count():
            question = questions[n % len(questions)]
            text = f"{kind.reply(question, n)} {n}" if kind.rows < 1000 else kind.reply(question, n)
            yield RewardItem(kind.suite, question.id, text + " " * (n // len(questions)))

    return list(islice(made(), kind.rows))


def measure(reward: Reward, items: Sequence[RewardItem]) -> str:
    """Return rewards per second of wall clock and of CPU time."""
    wall, cpu = time.perf_counter(), time.process_time()
    outcomes = asyncio.run(reward.score(items))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    right = sum(outcome.value or 0.0 for outcome in outcomes) / len(outcomes)
    unscored = sum(outcome.value is None for outcome in outcomes)
    return f"{len(items) / wall:9.0f} /s {len(items) / cpu:9.0f} /CPU s   right {right:.2f}" + (
        f"  unscored {unscored}" if unscored else ""
    )


@contextmanager
def boxed(suite: Suite[Any], name: str) -> Iterator[Box | None]:
    """Yield a box that has already run a program, where the suite needs one."""
    if not suite.needs_box:
        yield None
        return
    with closing(open_box(name)) as box:
        box.facts(suite.image)
        yield box


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--box", default="docker")
    box_name: str = parser.parse_args().box
    for kind in KINDS:
        suite = SUITES[kind.suite]
        try:
            questions = list(suite.load(kind.split))
        except UserError as error:
            print(f"{kind.name:32} {str(error)[:60]}")
            continue
        exam = SuiteSplit(suite, {question.id: question for question in questions})
        items = replies(kind, questions)
        with boxed(suite, box_name) as box:
            warm = Reward({suite.name: exam}, box=box)
            asyncio.run(warm.score(items[: min(64, len(items) // 4)]))
            reward = Reward({suite.name: exam}, box=box)
            where = f" ({box.name})" if box else ""
            print(f"{kind.name + where:40} anew  {measure(reward, items)}", flush=True)
            print(f"{'':40} again {measure(reward, items)}", flush=True)


if __name__ == "__main__":
    main()
