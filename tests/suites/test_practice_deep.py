"""practice-deep: answers by another route, and which workers a question needs, in which order."""

import random
import re
from collections import Counter
from collections.abc import Sequence
from math import comb

import pytest
from inspect_ai.model import ChatMessage

from podium.harness.errors import UserError
from podium.harness.execute import messages
from podium.harness.pool_config import read_pool
from podium.harness.records import Question, Reply
from podium.harness.workflow import Step
from podium.suites import SUITES
from podium.suites.practice.deep import SHAPES, SUITE
from podium.suites.practice.workers.facts import elements as known_elements
from podium.suites.practice.workers.facts import lookup, name_of, planets
from podium.suites.practice.workers.provider import respond
from podium.suites.practice.workers.workers import final_answer, find_worker

DOERS = {
    "E": "chemist", "L": "chemist", "P": "astronomer",
    "F": "divider", "C": "counter", "D": "converter", "K": "clerk",
}  # fmt: skip
VALIDATION = SUITE.load("validation")[: 2 * len(SHAPES)]


def sequence(shape: str) -> list[str]:
    """Return the workers of a shape's parts, neighbours of one worker as one step."""
    doers = [DOERS[skill] for skill in shape.upper()]
    return [one for at, one in enumerate(doers) if at == 0 or doers[at - 1] != one]


def answered(question: Question, workers: Sequence[str]) -> str | None:
    """Return what workers come to who each read all before them and do not slip."""
    done: list[tuple[Step, Reply]] = []
    for worker in workers:
        chat: list[ChatMessage] = messages(question, Step(worker), done)
        text = respond(find_worker(worker), chat, random.Random(1), 0.0)
        done.append((Step(worker), Reply(worker, text, None)))
    return final_answer(done[-1][1].text, "number")


def test_every_question_is_answered_by_the_workers_of_its_parts_in_their_order() -> None:
    wrong = [q.id for q in VALIDATION if answered(q, sequence(q.topic)) != q.target]
    assert wrong == []


def test_a_question_is_answered_by_nobody_when_one_of_its_workers_is_left_out() -> None:
    for question in VALIDATION[: len(SHAPES)]:
        workers = sequence(question.topic)
        for left_out in range(len(workers) if len(workers) > 1 else 0):
            rest = workers[:left_out] + workers[left_out + 1 :]
            assert answered(question, rest) != question.target, (question.text, rest)


def test_only_the_cheap_one_answers_questions_alone_and_few() -> None:
    able = [name for name in read_pool("rehearsal-deep").names if name != "guesser"]
    alone = Counter(
        worker for q in VALIDATION for worker in able if answered(q, [worker]) == q.target
    )
    assert set(alone) == {"clerk"}
    assert alone["clerk"] < 0.15 * len(VALIDATION)


def test_shapes_ask_for_more_than_thirty_sequences_of_workers() -> None:
    assert len({tuple(sequence(shape)) for shape in SHAPES}) >= 31
    counts = Counter(question.topic for question in SUITE.load("eval"))
    assert min(counts.values()) >= 8


def test_there_is_no_unseen_exam_of_it() -> None:
    with pytest.raises(UserError, match="practice-deep"):
        _ = SUITES["practice-deep@unseen"]


def fact(words: str) -> int | None:
    """Return a fact from the workers' tables, which share nothing with the generator."""
    whose = words.rsplit(" of ", 1)[-1]
    at = re.fullmatch(r"the element with atomic number (\d+)", whose)
    name = name_of(known_elements(), "number", at[1]) if at else whose
    if planet := re.match(r"the position of (\w+) in order", words):
        return int(planets()[planet[1].lower()]["order"])
    if "letters" in words:
        return len(str(name))
    attribute = "period" if "period" in words else "number"
    told = re.match(r"the (?:atomic number|number of protons|period)", words)
    return int(lookup(str(name), attribute) or 0) if told else None


def in_base(n: int, base: int) -> str:
    digits = ""
    while n:
        n, digit = divmod(n, base)
        digits = f"{digit}{digits}"
    return digits


def computed(words: str) -> int:
    """Return a part's value, by counting where the generator has a formula."""
    a, b, c = ([int(n) for n in re.findall(r"\d+", words)] + [0, 0])[:3]
    divisors = [d for d in range(1, a + 1) if a % d == 0]
    ways: dict[str, int] = {
        r"number of positive divisors": len(divisors),
        r"sum of all positive divisors": sum(divisors),
        r"largest prime factor": max(
            (d for d in divisors if d > 1 and all(d % e for e in range(2, d))), default=0
        ),
        r"greatest common": max((d for d in divisors if b and b % d == 0), default=0),
        r"least common": next((m for m in range(a, a * b + 1, a) if m % b == 0), 0) if b else 0,
        r"binomial": comb(a, b),
        r"committee|subsets": comb(b, a),
        r"digit": sum(map(int, in_base(a, b))) if b > 1 else 0,
        r"base": int(in_base(a, b)) if 1 < b < 10 else 0,
        r"remainder": a * b % c if c else 0,
        r"sum of": a + b,
        r"product": a * b,
        r"\*": a * b + c,
    }
    return next(value for sign, value in ways.items() if re.search(sign, words))


def test_answers_agree_with_another_reading_of_the_text() -> None:
    for question in SUITE.load("train")[:140]:
        text = question.text.split("\n\n")[0]
        while found := re.match(r"Let ([a-z]) be ([^.]+)\.\s*", text):
            known = fact(found[2])
            value = computed(found[2]) if known is None else known
            text = re.sub(rf"(?<![\w']){found[1]}(?![\w'(])", str(value), text[found.end() :])
        assert str(computed(text)) == question.target, question.text
