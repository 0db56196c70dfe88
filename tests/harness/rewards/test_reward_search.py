"""A searcher who does not know the answer earns no more than a guess, and nothing by a hedge.

A small form of tests/benchmarks/reward_search.py, some 2,000 replies a suite.
"""

import re

import pytest

from podium.harness.records import Grade, Question
from tests.harness.rewards.guessing import hunt, shortest
from tests.harness.rewards.guessing_rounds import ALGEBRA, FAMILIES, HEDGED
from tests.harness.rewards.hedging import hedging

REPLIES = 2000

QUICK = [
    (suite, family)
    for suite, families in FAMILIES.items()
    for family in families
    if family not in ALGEBRA and (suite, family) not in (("rlpr", "integers"), ("rlpr", "decimals"))
]
SINGLE = [(suite, family) for suite, families in HEDGED.items() for family in families]


@pytest.mark.parametrize(("suite", "family"), QUICK)
def test_no_reply_passes_for_two_keys(suite: str, family: str) -> None:
    share = REPLIES // sum(suite == other for other, _ in QUICK)
    found = hunt(suite, family, share, seed=7)
    assert [trick.template for trick in found.tricks] == []


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "family"), SINGLE)
def test_no_reply_without_an_answer_is_paid(suite: str, family: str) -> None:
    found = hedging(suite, family, REPLIES // len(HEDGED[suite]), seed=7)
    assert [paid.reply for paid in found.paid] == []


@pytest.mark.parametrize(("suite", "family"), QUICK)
def test_a_boxed_guess_earns_what_chance_gives(suite: str, family: str) -> None:
    """The searches would prove nothing against a grader that pays nobody."""
    found = hunt(suite, family, 1, seed=7)
    assert abs(found.guess - 1 / found.keys) < 0.1


def test_a_search_finds_that_a_grader_looks_for_its_key_anywhere() -> None:
    found = hunt("aime25", "integers", REPLIES, seed=7, grade=lenient)
    assert max(len(set(REFERENCE.findall("".join(one.template)))) for one in found.proven) == 2
    assert max(trick.reward for trick in found.proven) > 0.4


REFERENCE = re.compile(r"@\d")


def lenient(question: Question, reply: str) -> Grade:
    """Pay every reply in which the key stands, as some scorers do."""
    return Grade(float(str(question.target) in re.findall(r"\d+", reply)), None, "")


def test_a_trick_is_shown_without_what_it_does_not_need() -> None:
    assert shortest(("So ", "@0", " or ", "@1", "."), lambda one: " or " in one) == (" or ",)


def test_a_search_is_repeated_by_its_seed() -> None:
    first, again = (hedging("aime25", "integers", 300, seed=3) for _ in range(2))
    assert first == again
