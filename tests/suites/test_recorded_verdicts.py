"""On programs of a real model, our verdicts and those that the published evaluator recorded."""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice

import pytest

from podium.sandbox import Box, open_box
from podium.suites.code_grading import ProgramTests, judge_program
from tests.sandbox.boxes import DOCKER, needs
from tests.suites.recorded_programs import Recorded, have, recorded

pytestmark = pytest.mark.docker

METHODS, TESTS = 60, 20
"""LeetCode programs in the sample, and how many of their independent tests each sits."""

SCRIPTS, SPREAD = 115, 4
"""AtCoder programs in the sample, and how far apart they lie in the file, which is by date."""

ENDLESS = ("abc341_f", "abc366_e", "abc370_g")
"""Wrong programs that use up their time on a long input; left out, as that costs seconds each."""


@dataclass(frozen=True)
class Judged:
    """One program and what both rules say of it."""

    program: Recorded
    real: bool
    official: bool


@pytest.fixture(scope="module")
def judged() -> Generator[list[Judged]]:
    """The sample, judged once for all tests of this file."""
    if reason := have():
        pytest.skip(reason)
    with closing(open_box(needs(DOCKER), 2)) as box, ThreadPoolExecutor(2) as threads:
        yield list(threads.map(lambda row: by_both(row, box), [*methods(), *scripts()]))


def test_no_program_on_record_as_right_fails_by_real_rules(judged: list[Judged]) -> None:
    assert sum(one.program.verdict for one in judged) > 100
    assert [one.program.question for one in judged if one.program.verdict and not one.real] == []


def test_real_verdicts_agree_with_the_record_where_tests_are_many(judged: list[Judged]) -> None:
    many = [one for one in judged if one.program.platform == "leetcode"]
    assert len(many) == METHODS
    assert sum(one.real == one.program.verdict for one in many) >= 0.97 * METHODS


def test_wrong_programs_are_among_those_and_are_found(judged: list[Judged]) -> None:
    wrong = [one for one in judged if not one.program.verdict]
    found = [one for one in wrong if not one.real]
    assert len(found) > len(wrong) / 2 > 15


def test_official_rules_pass_nothing_that_real_rules_fail(judged: list[Judged]) -> None:
    assert [one.program.question for one in judged if one.official and not one.real] == []


def by_both(row: Recorded, box: Box) -> Judged:
    real = judge_program(row.code, row.tests, box)
    return Judged(
        row, real.passed, judge_program(row.code, row.tests, box, rules="official").passed
    )


def methods() -> Iterator[Recorded]:
    """Yield LeetCode programs with the first of their independent tests."""
    for row in islice(recorded(independent=True), METHODS):
        yield replace(row, tests=ProgramTests(row.tests.cases[:TESTS], row.tests.method))


def scripts() -> Iterator[Recorded]:
    """Yield AtCoder programs of all years with their public and recovered tests.

    Those on record as out of time are left out like the endless ones.
    """
    atcoder = (row for row in recorded() if row.platform == "atcoder" and row.error[:2] != "-3")
    sample = islice(atcoder, 0, SCRIPTS * SPREAD, SPREAD)
    return (row for row in sample if row.question not in ENDLESS)
