"""Workers are total and quick: no chat makes one raise."""

import random
import time

import pytest
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

from podium.suites.practice.workers.provider import respond
from podium.suites.practice.workers.workers import WORKERS
from tests.suites.practice_workers.asking import QUESTIONS, ask

SCRAPS = (
    *[item["text"] for items in QUESTIONS.values() for item in items],
    *[
        "999999999^999999999",
        "((((",
        "10!",
        "!",
        "mod",
        "0",
        "{replies}",
        "\\boxed{",
        "```python",
        "A)",
        "B)",
        "#",
        "#1",
        "#99",
        "1/0",
        "0^0",
        "-1",
    ],
    "divided by 0",
    "remainder",
    "the sum of",
    "How many primes below 10^9?",
    "\\frac{1}{0}",
    "((((((((((1",
    "the atomic number of",
    "half-life of 0 days after 5 days",
    "log(0)",
    "class Solution:\n    def f(self, x):",
    "USER QUESTION: x AVAILABLE LANGUAGE MODELS: Model 0: y\nat most 0 steps",
    "base 1",
    "binom(9999,5000)",
    "2" * 5000,
    "é漢字🙂",
    "\x00\t",
    "x ≡ 3 (mod 0)",
    "1, 2, ..., 3",
    "between 9 and 1",
    "first line contains",
    "1." * 50,
)


def chats(number: int) -> list[list[ChatMessage]]:
    """Return chats made of scraps, with any roles in any order."""
    rng = random.Random("robust")
    roles = (ChatMessageUser, ChatMessageAssistant, ChatMessageSystem)
    made: list[list[ChatMessage]] = []
    for _ in range(number):
        turns = [
            " ".join(rng.choices(SCRAPS, k=rng.randint(0, 5))) for _ in range(rng.randint(0, 4))
        ]
        turns += ["".join(rng.choices("0123456789+-*/^()! #.,abcABC\n\\{}", k=rng.randint(0, 200)))]
        made.append([rng.choice(roles)(content=turn) for turn in turns])
    return made


@pytest.mark.parametrize("worker", ["abacus", "guesser"])
def test_a_number_without_prime_factors_is_out_of_reach(worker: str) -> None:
    assert "cannot give an answer" in ask(worker, "What is the largest prime factor of 1?")


@pytest.mark.slow
def test_two_thousand_garbage_chats_make_no_worker_raise() -> None:
    workers = list(WORKERS.values())
    slowest = 0.0
    started = time.process_time()
    for at, chat in enumerate(chats(2000)):
        before = time.process_time()
        assert isinstance(respond(workers[at % len(workers)], chat, random.Random(at), 1.0), str)
        slowest = max(slowest, time.process_time() - before)
    assert slowest < 20  # a collection of garbage takes a second of a long test run
    assert (time.process_time() - started) / 2000 < 0.2
