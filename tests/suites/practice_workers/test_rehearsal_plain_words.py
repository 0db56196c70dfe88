"""What rehearsal workers read when a person asks in everyday words and shows no samples."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from podium.suites.practice.workers.program_writer import learnt_words
from podium.suites.practice.workers.workers import final_answer
from tests.suites.practice_workers.asking import ask, is_right, prompt
from tests.suites.practice_workers.test_rehearsal_programs import passes, text_of

Item = dict[str, Any]


def _items(name: str) -> list[Item]:
    path = Path(__file__).with_name(name)
    return [
        item for items in tomllib.loads(path.read_text(encoding="utf-8")).values() for item in items
    ]


QUESTIONS = _items("plain_questions.toml")
PROBLEMS = _items("plain_programs.toml")


@cache
def answered(worker: str) -> float:
    """Return the share of everyday questions that a worker answers."""
    right = [is_right("integer", item, ask(worker, prompt("integer", item))) for item in QUESTIONS]
    return sum(right) / len(right)


@cache
def written(worker: str) -> float:
    """Return the share of everyday problems that a worker writes a right program for."""
    programs = [final_answer(ask(worker, text_of(item)), "program") for item in PROBLEMS]
    return sum(map(passes, PROBLEMS, programs)) / len(PROBLEMS)


def test_abacus_reads_most_everyday_questions_sage_fewer_swift_fewest() -> None:
    assert answered("abacus") >= 0.6
    assert answered("abacus") > answered("sage") > answered("swift")


@pytest.mark.slow
def test_scribe_writes_most_everyday_programs_sage_fewer_swift_fewest() -> None:
    assert written("scribe") >= 0.6
    assert written("scribe") > written("sage") > written("swift")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("it says how many numbers follow, then the numbers.", "n followed by n"),
        ("it reads a count and then that many integers.", "n followed by n integers"),
        ("it tells what they add up to.", "the sum of the numbers"),
        ("it counts a, e, i, o and u.", "vowels"),
    ],
)
def test_everyday_words_become_learnt_ones(said: str, meant: str) -> None:
    assert meant in learnt_words(said)
    assert "how many" not in learnt_words(said)
