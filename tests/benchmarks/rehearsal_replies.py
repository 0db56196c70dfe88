"""What rehearsal workers say: one digest per suite over replies to every question of every split.

    PYTHONPATH=. python tests/benchmarks/rehearsal_replies.py [--chats 8] [--eval 300]

Each question goes to every worker alone, then into chats of one to five steps whose workers, reads
and subtasks are drawn (those of the controls, of MasRouter's and TRINITY's roles, of moa), and to
both planners as conductors. Two versions of the workers with the same digests say the same.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from inspect_ai.model import ChatMessage

from podium.baselines.controls import SUBTASKS
from podium.baselines.mas_router import PROMPTS
from podium.baselines.mixture import AGGREGATE_AND_SYNTHESIZE
from podium.baselines.oracle import FINISH, GATHER, USE
from podium.baselines.trinity import PROMPTS as ROLES
from podium.conductor.parse import PlanFormat
from podium.conductor.prompt import plan_prompt
from podium.harness.execute import messages
from podium.harness.pool_config import read_pool
from podium.harness.records import Question, Reply
from podium.harness.request import request_digest
from podium.harness.workflow import Step
from podium.suites import SUITES
from podium.suites.practice import SPLITS, PracticeSuite
from podium.suites.practice.workers.provider import respond
from podium.suites.practice.workers.workers import WORKERS

SAID = (*SUBTASKS, *PROMPTS, *ROLES.values(), GATHER, USE, FINISH, "Write the program.")
POOL = read_pool("rehearsal")
CARDS = [worker.card or "" for worker in POOL.workers]
ASKED = (*POOL.names, "polymath")
NAMES = ("practice-integer", "practice-choice", "practice-code", "practice-composed")


def questions(name: str, size: int) -> list[Question]:
    """Return the questions of a suite, once, with so many of its eval split."""
    suite = SUITES[name]
    assert isinstance(suite, PracticeSuite)
    if name.endswith("@unseen"):
        return [*suite.load("eval")]
    larger = replace(suite, sizes={**suite.sizes, "eval": size})
    return [question for split in SPLITS for question in larger.load(split)]


def asked(worker: str, chat: Sequence[ChatMessage], heat: float) -> str:
    """Return a worker's reply to a chat, with the slips that the chat's own digest draws."""
    random = Random(f"{worker}/{request_digest(chat)}")
    return respond(WORKERS[worker], chat, random, heat)


def replies(question: Question, chats: int) -> Iterator[str]:
    """Yield every reply to one question."""
    random = Random(question.id)
    for worker in ASKED:
        for heat in (0.0, 1.0):
            yield asked(worker, messages(question, Step(worker), ()), heat)
    for cards in (CARDS, [""] * len(CARDS)):
        for worker in ("planner", "sage"):
            yield asked(worker, plan_prompt(PlanFormat(), question.text, cards), 1.0)
    for _ in range(chats):
        yield from _chat(question, random)


def _chat(question: Question, random: Random) -> Iterator[str]:
    done: list[tuple[Step, Reply]] = []
    gathers = random.random() < 0.5
    for at in range(random.randint(2, 5)):
        worker = random.choice(("scholar", "abacus") if gathers and not at else ASKED)
        said = GATHER if gathers and not at else random.choice(SAID)
        system = AGGREGATE_AND_SYNTHESIZE if at and random.random() < 0.15 else None
        step = Step(worker, said, system=system)
        read = [one for one in done if random.random() < 0.8]
        text = asked(worker, messages(question, step, read), random.choice((0.0, 1.0, 1.0)))
        done.append((step, Reply(worker, text, None)))
        yield text


def main(words: Sequence[str] | None = None) -> int:
    """Print a row per suite."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chats", type=int, default=8, help="drawn chats per question")
    parser.add_argument("--eval", type=int, default=300, help="size of the eval splits")
    parser.add_argument("--suite", nargs="+", default=[*NAMES, *(f"{one}@unseen" for one in NAMES)])
    given = parser.parse_args(words)
    for name in given.suite:
        asked_now, said, total = questions(name, given.eval), hashlib.sha256(), 0
        of = hashlib.sha256(repr([(q.id, q.text, q.target) for q in asked_now]).encode())
        for question in asked_now:
            for reply in replies(question, given.chats):
                said.update(f"{len(reply)} {reply}".encode())
                total += 1
        print(name, len(asked_now), of.hexdigest()[:16], total, said.hexdigest()[:16], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
