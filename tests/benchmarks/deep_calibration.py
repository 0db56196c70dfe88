"""Does planning pay on practice-deep? Oracles, fixed plans, templates, rules, a mined router.

    PYTHONPATH=. python tests/benchmarks/deep_calibration.py [--split eval] [--draws 4]
    PYTHONPATH=. python tests/benchmarks/deep_calibration.py --plans oracle.jsonl

Every plan is run on the pool rehearsal-deep. An oracle knows targets: per question it takes the
shortest sequence of workers that is right without slips (all of up to five steps are searched, a
step that says nothing new is not gone on from), and is judged on fresh draws with slips, as all
others are. `fixed` is the sequence that is right on most train questions; `mined` sends a question
to one of the oracle's sequences on train questions, by logistic regression on its words.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from statistics import fmean, stdev
from typing import Any

import numpy as np

from podium.baselines.oracle import enumerate_plans
from podium.baselines.routers import TfIdf
from podium.baselines.routers.optimisers import ridge_logistic
from podium.baselines.rules_planner import plan_parts, read_parts
from podium.harness.execute import messages
from podium.harness.pool_config import read_pool
from podium.harness.records import Question, Reply
from podium.harness.request import request_digest
from podium.harness.suite import Suite
from podium.harness.workflow import MAX_STEPS, Step, Workflow
from podium.suites import SUITES
from podium.suites.practice.workers.provider import respond
from podium.suites.practice.workers.workers import find_worker

SUITE = SUITES["practice-deep"]
POOL = read_pool("rehearsal-deep")
ABLE = [name for name in POOL.names if find_worker(name).slip < 0.5]
"""Who guesses is right only without slips, so no plan with it is searched."""
Sequenced = tuple[str, ...]
Grades = list[float]
_SAID = re.compile(r"^.* is (?:-?\d+|\\boxed\{-?\d+\})\W*$", re.MULTILINE)


@cache
def said(worker: str, digest: str, draw: int, chat: "Chat") -> str:
    """Return a worker's reply; draw 0 is without slips."""
    random = Random(f"{worker}/{digest}/{draw}")
    return respond(find_worker(worker), chat.turns, random, float(draw > 0))


class Chat:
    """Messages that a cache may hold: their digest is a key beside them."""

    def __init__(self, question: Question, step: Step, read: list[tuple[Step, Reply]]) -> None:
        """Keep what a step is sent."""
        self.turns = messages(question, step, read)

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def replies(question: Question, plan: Workflow, draw: int) -> list[str]:
    """Return the replies of a plan's steps, one after another."""
    done: list[tuple[Step, Reply]] = []
    for at, step in enumerate(plan.steps):
        chat = Chat(question, step, [done[read] for read in plan.reads(at)])
        text = said(step.worker, request_digest(chat.turns), draw, chat)
        done.append((step, Reply(step.worker, text, None)))
    return [reply.text for _, reply in done]


def right(
    question: Question, plan: Workflow, draws: Iterable[int], suite: Suite[Any] = SUITE
) -> float:
    """Return how often a plan is right on a question of a suite."""
    return fmean(suite.grade(question, replies(question, plan, at)[-1]).value for at in draws)


def chain(workers: Sequenced) -> Workflow:
    """Return the plan in which each worker reads all before it."""
    return Workflow(
        tuple(Step(worker, reads="all" if at else ()) for at, worker in enumerate(workers))
    )


def solving(question: Question) -> list[Sequenced]:
    """Return the sequences that are right without slips and have no step that adds nothing."""
    found: list[Sequenced] = []
    for length in range(1, MAX_STEPS + 1):
        level = list(_longer(question, length))
        found += [one for one in level if right(question, chain(one), (0,))]
    return found


def _longer(question: Question, length: int, begun: Sequenced = ()) -> Iterator[Sequenced]:
    texts = replies(question, chain(begun), 0)
    known = set(_SAID.findall("\n".join(texts)))
    if begun and not set(_SAID.findall(texts[-1])) - set(_SAID.findall("\n".join(texts[:-1]))):
        return
    if len(begun) == length:
        yield begun
    elif not any("boxed" in line for line in known):
        for worker in ABLE:
            yield from _longer(question, length, (*begun, worker))


def inside(short: Sequenced, long: Sequenced) -> bool:
    """Return whether a sequence is done in the course of another."""
    rest = iter(long)
    return all(worker in rest for worker in short)


def fixed(best: Sequence[list[Sequenced]]) -> Sequenced:
    """Return the sequence of five that holds a right one of most questions."""
    able = sorted({worker for ways in best for way in ways for worker in way})
    kinds = Counter(tuple(sorted(set(ways))) for ways in best)
    return max(
        product(able, repeat=MAX_STEPS),
        key=lambda plan: sum(n for ways, n in kinds.items() if any(inside(w, plan) for w in ways)),
    )


def mined(
    train: Sequence[tuple[Question, Sequenced]], asked: Sequence[Question]
) -> list[Sequenced]:
    """Return the sequence that a router learnt on train questions names for each other one."""
    plans = sorted({plan for _, plan in train})
    reading = TfIdf().fit([question.text for question, _ in train])
    rows = TfIdf().embed(reading, [question.text for question, _ in train])
    known = np.hstack([np.ones((len(rows), 1)), rows])
    pull = np.full(known.shape[1], 0.05)
    weights = [
        ridge_logistic(known, np.array([float(one == plan) for _, one in train]), pull)
        for plan in plans
    ]
    new = TfIdf().embed(reading, [question.text for question in asked])
    scores = np.hstack([np.ones((len(new), 1)), new]) @ np.array(weights).T
    return [plans[int(at)] for at in scores.argmax(axis=1)]


def listed_best(question: Question, ways: list[Sequenced], listed: Sequence[Workflow]) -> Workflow:
    """Return the first listed plan that is right without slips, of those that hold a right one."""
    workers = ((plan, tuple(step.worker for step in plan.steps)) for plan in listed)
    fit = (plan for plan, names in workers if any(inside(way, names) for way in ways))
    return next((plan for plan in fit if right(question, plan, (0,))), listed[0])


def ruled(question: Question) -> Workflow:
    """Return what rules-planner plans."""
    cards = [(worker.name, worker.card or "") for worker in POOL.workers]
    return plan_parts(read_parts(question.text, cards))


def row(name: str, grades: Grades) -> float:
    """Print a mean with its 95 % interval over questions, and return it."""
    mean, half = fmean(grades), 1.96 * stdev(grades) / len(grades) ** 0.5
    print(
        f"{name:34} {100 * mean:5.1f} [{100 * (mean - half):.1f},{100 * (mean + half):.1f}]",
        flush=True,
    )
    return mean


def varied(asked: Sequence[Question], ways: Mapping[str, list[Sequenced]]) -> None:
    """Print how many sequences are best somewhere, and how much each is above the commonest."""
    first = [ways[question.id][0] for question in asked if ways[question.id]]
    counts = Counter(first)
    common = counts.most_common(1)[0][0]
    gains = {
        plan: sum(
            any(inside(way, plan) for way in ways[one.id])
            and not any(inside(way, common) for way in ways[one.id])
            for one in asked
        )
        for plan in counts
    }
    print(f"distinct shortest sequences {len(counts)}")
    print(f"  the commonest: {common}, of {counts[common]} questions")
    print(f"  shortest on 8 questions or more: {sum(n >= 8 for n in counts.values())}")
    print(
        f"  right where the commonest is not, on 8 or more: {sum(n >= 8 for n in gains.values())}"
    )
    print(f"  by length: {dict(sorted(Counter(map(len, first)).items()))}")


def write_plans(asked: Sequence[Question], path: Path) -> int:
    """Write a plan for each question: what a supervised planner imitates ([warm_start] plans)."""
    with path.open("x", encoding="utf-8") as out:
        for one in asked:
            for plan in solving(one)[:1]:
                out.write(json.dumps({"question": one.id, "workers": plan}) + "\n")
    return 0


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", default="eval", choices=("train", "validation", "eval"))
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--train", type=int, default=600, help="train questions of fixed and mined")
    parser.add_argument("--plans", type=Path, help="write the oracle's plans on --train, and stop")
    given = parser.parse_args(words)
    if given.plans:
        return write_plans(SUITE.load("train")[: given.train], given.plans)
    asked, train = SUITE.load(given.split)[: given.limit], SUITE.load("train")[: given.train]
    fresh = range(1, given.draws + 1)
    ways = {one.id: solving(one) for one in (*asked, *train)}
    best = [chain((*ways[one.id], (ABLE[0],))[0]) for one in asked]
    oracle = row("oracle", [right(one, plan, fresh) for one, plan in zip(asked, best, strict=True)])
    plan = fixed([ways[one.id] for one in train])
    shares = {f"fixed: {' '.join(plan)}": [right(one, chain(plan), fresh) for one in asked]}
    plan = fixed([ways[one.id] for one in asked])
    shares[f"fixed, in hindsight: {' '.join(plan)}"] = [
        right(one, chain(plan), fresh) for one in asked
    ]
    listed = [
        plan
        for plan in enumerate_plans(POOL.names)
        if {one.worker for one in plan.steps} <= {*ABLE}
    ]
    one_of = [listed_best(one, ways[one.id], listed) for one in asked]
    shares["best of the 464 templates, by question"] = [
        right(one, p, fresh) for one, p in zip(asked, one_of, strict=True)
    ]
    known = [(one, ways[one.id][0]) for one in train if ways[one.id]]
    shares["mined router"] = [
        right(one, chain(p), fresh) for one, p in zip(asked, mined(known, asked), strict=True)
    ]
    shares["rules-planner"] = [right(one, ruled(one), fresh) for one in asked]
    for worker in POOL.names:
        shares[f"{worker} alone"] = [right(one, chain((worker,)), fresh) for one in asked]
    for name, grades in shares.items():
        print(f"    {row(name, grades) / oracle:.0%} of the oracle")
    varied(asked, ways)
    return 0


if __name__ == "__main__":
    sys.exit(main())
