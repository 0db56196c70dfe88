"""Small exams for tests of rewards, and ways to make items and score them.

`Graded` is a suite whose grader is a function of the test: it can fail, wait or count.
"""

import asyncio
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import uvicorn

from podium.harness.errors import UserError
from podium.harness.listener import bound_socket, listen, uvicorn_config
from podium.harness.records import Grade, Question
from podium.harness.rewards.outcome import RewardItem, RewardOutcome, RewardScorer
from podium.harness.rewards.reward import Reward
from podium.harness.rewards.server import RewardService, reward_app
from podium.harness.rewards.splits import SuiteSplit
from podium.harness.suite import ModelGraded, Split, Suite
from podium.sandbox import Box, Limits, Program, SandboxError
from podium.suites import SUITES
from podium.suites.rlpr import RLPR_RULES, rlpr_questions
from tests.suites.test_rlpr import row as rlpr_row
from tests.suites.toy_card import CARD

QUICK = Limits(cpu_s=0.5, wall_s=20.0)
"""A program's own limits in these tests: it may wait long, and compute for half a second."""


def same(question: Question, reply: str) -> Grade:
    """Right when the reply is the target; a reply of `?` has no answer in it."""
    return Grade(float(reply == question.target), None if reply == "?" else reply)


@dataclass
class Graded:
    """A suite of ten questions, `q0` ... `q9`, whose targets are `0` ... `9`."""

    judge: Callable[[Question, str], Grade] = same
    name: str = "graded"
    publishable: bool = True
    needs_box: bool = False
    image: str = ""
    version: str = "1-A"
    data_revision: str = "test"
    dates: str = "generated"
    splits: tuple[Split, ...] = ("train",)
    card: Any = CARD
    calls: list[str] = field(default_factory=list[str])

    def load(self, split: Split = "train") -> Sequence[Question]:
        return [Question(f"q{n}", f"Say {n}.", "text", str(n)) for n in range(10)]

    def read_problems(self, path: Path) -> Sequence[Question]:
        raise NotImplementedError

    def grade(self, question: Question, reply: str, box: Any | None = None) -> Grade:
        self.calls.append(f"{question.id} {reply}")
        return self.judge(question, reply)


@dataclass
class Ran(Graded):
    """A suite that runs the reply as a program: right when it prints the target."""

    name: str = "ran"
    needs_box: bool = True
    limits: Limits = QUICK

    def grade(self, question: Question, reply: str, box: Any | None = None) -> Grade:
        assert box is not None
        with closing(box.run(Program(reply), [b""], self.limits)) as outcomes:
            said = next(outcomes)
        right = said.status == "exited" and said.stdout.decode().strip() == question.target
        return Grade(float(right), reply, said.status)


def exam_of(suite: Suite[Any], asked: Iterable[Question] | None = None) -> SuiteSplit:
    """Return the exam of a suite's first split, or of some questions of it."""
    chosen = suite.load(suite.splits[0]) if asked is None else asked
    return SuiteSplit(suite, {question.id: question for question in chosen})


def exams(*suites: Suite[Any]) -> dict[str, SuiteSplit]:
    return {suite.name: exam_of(suite) for suite in suites}


def loaded(name: str, most: int = 4) -> tuple[Suite[Any], list[Question]]:
    """Return a suite and a few questions that rules can grade; skip where its data is absent."""
    suite, why = SUITES[name], ""
    for split in suite.splits:
        try:
            found = suite.load(split)
        except UserError as error:
            why = str(error)[:200]
            continue
        if isinstance(suite, ModelGraded):
            found = [one for one in found if not suite.needs_judge(one)]
        return suite, list(found[:: max(1, len(found) // most)])[:most]
    pytest.skip(f"{name}: {why}")


def needs_image(suite: Suite[Any], box: Box) -> None:
    """Skip a test where a box lacks the image that a suite's programs need."""
    try:
        box.facts(suite.image)
    except SandboxError as error:
        pytest.skip(str(error))


def made_up_rlpr() -> tuple[Suite[Any], list[Question]]:
    """Return questions in RLPR's columns with references of several kinds, none of the data's."""
    references = ("42", "B", "copper sulfate", r"\frac{3}{4}", "12.5 m/s", "x^2 + 1")
    rows = [rlpr_row(f"Question number {n}?", said) for n, said in enumerate(references)]
    made = rlpr_questions(rows, "made up")
    return RLPR_RULES, [one for one in made if not RLPR_RULES.needs_judge(one)]


@contextmanager
def served(reward: Reward, asked: Mapping[str, SuiteSplit]) -> Generator[str]:
    """Serve a reward in a thread of this process; yield its URL."""
    with bound_socket("127.0.0.1", 0) as taken:
        url = listen(taken)
        server = uvicorn.Server(uvicorn_config(reward_app(RewardService(reward, asked))))
        thread = Thread(target=server.run, kwargs={"sockets": [taken]})
        thread.start()
        try:
            yield url
        finally:
            server.should_exit = True
            thread.join()


def items(*said: tuple[str, str], suite: str = "graded") -> list[RewardItem]:
    """Return an item for each (question, completion)."""
    return [RewardItem(suite, question, completion) for question, completion in said]


def score(scores: RewardScorer, asked: Sequence[RewardItem]) -> list[RewardOutcome]:
    """Score in an event loop of its own."""
    return asyncio.run(scores.score(asked))


def values(scores: RewardScorer, asked: Sequence[RewardItem]) -> list[float | None]:
    return [outcome.value for outcome in score(scores, asked)]


def alive(pids: Path) -> list[int]:
    """Return which of the processes still live that wrote their ids into a file."""
    written = [int(line) for line in pids.read_text().split()]
    return [pid for pid in written if Path(f"/proc/{pid}").exists()]
