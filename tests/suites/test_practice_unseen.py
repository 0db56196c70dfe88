"""`practice-...@unseen`: words and combinations that no generated split has."""

import re
import tomllib
from dataclasses import replace
from functools import cache

import pytest

from podium.harness.errors import UserError
from podium.harness.records import Question
from podium.sandbox.cells import SubprocessBox
from podium.suites import SUITES
from podium.suites.practice import SPLITS, PracticeSuite
from podium.suites.practice.unseen import REVISION, SIZE, TOPICS, WRITTEN, paraphrases
from tests.suites.gold import gold_reply, sizes_of

NAMES = [*paraphrases()]
named = pytest.mark.parametrize("name", NAMES)

ONLY_NEW_IN_ORDER = "paraphrase-integer-9"
"""Its words are all known; no question has them like this."""
FACTS = {
    "planet": r"from the sun",
    "element": r"atomic number|protons|nucleus",
    "letters": r"letters",
}
COMPUTATIONS = {
    "divisor in common": r"greatest common divisor|\\gcd",
    "multiple in common": r"least common multiple",
    "divisors": r"positive divisors",
    "sum": r"\bsum of (the a|all)|\badd\b",
    "primes": r"prime",
    "product": r"product of|multiply",
    "digits": r"digits|digit sum",
    "remainder": r"remainder|\\bmod",
    "choosing": r"committee|subsets|binom",
    "series": r"multiples of|integers from 1",
}


def plain(name: str) -> PracticeSuite:
    suite = SUITES[name]
    assert isinstance(suite, PracticeSuite)
    return suite


@cache
def everything(name: str) -> list[Question]:
    """Return the questions of all splits; many more of the composed, whose kinds are counted."""
    suite = plain(name)
    large = replace(suite, sizes=sizes_of(suite)) if name == "practice-composed" else suite
    return [question for split in SPLITS for question in large.load(split)]


def asked(question: Question) -> str:
    """Return a question without numbers and without the answer-format instruction."""
    return re.sub(r"\d+", "#", question.text.split("\n\nPut your final answer")[0].lower())


def words(question: Question) -> set[str]:
    return set(re.findall(r"[a-z]+", asked(question)))


def combination(question: Question) -> frozenset[str]:
    """Return the facts and the computations that a composed question joins."""
    text = question.text.split("\n\n")[0]
    found = {**FACTS, **COMPUTATIONS}
    return frozenset(name for name, sign in found.items() if re.search(sign, text, re.I))


@named
def test_no_unseen_question_is_in_a_split_with_or_without_its_numbers(name: str) -> None:
    known = {asked(question) for question in everything(name)}
    assert not known & {asked(question) for question in SUITES[f"{name}@unseen"].load()}


@named
def test_every_question_but_one_that_a_person_worded_has_a_word_that_no_question_of_any_split_has(
    name: str,
) -> None:
    known = set[str]().union(*(words(question) for question in everything(name)))
    written = [one for one in SUITES[f"{name}@unseen"].load() if one.topic not in TOPICS]
    assert {one.id for one in written if words(one) <= known} <= {ONLY_NEW_IN_ORDER}


def test_no_combination_of_facts_and_computations_is_in_any_split() -> None:
    known = {combination(question) for question in everything("practice-composed")}
    asked_now = [one for one in SUITES["practice-composed@unseen"].load() if one.topic in TOPICS]
    assert len(asked_now) == SIZE - len(paraphrases()["practice-composed"])
    assert {combination(one) for one in asked_now} & known == set()


def test_a_generated_question_in_other_words_has_its_numbers_and_every_wording_is_asked() -> None:
    rows = tomllib.loads(WRITTEN.read_text())["reworded"]
    asked_now = [one for name in NAMES for one in SUITES[f"{name}@unseen"].load()]
    known = {asked(one) for name in NAMES for one in everything(name)}
    assert len(asked_now) == SIZE * len(NAMES) == 300
    for row in rows:
        parts = re.split(r"\{\d\}", row["text"])
        worded = re.compile(".+?".join(map(re.escape, parts)))
        assert [one for one in asked_now if worded.search(one.text)], row["text"]
        assert not [text for text in known if worded.search(text)], row["text"]
        assert len(parts) > re.compile(row["key"]).groups, row["text"]


@named
def test_what_teaches_is_the_plain_suites_and_only_the_exam_differs(name: str) -> None:
    suite = SUITES[f"{name}@unseen"]
    for split in ("train", "validation"):
        assert suite.load(split) == plain(name).load(split)
    assert suite.data_revision == f"{plain(name).data_revision}-{REVISION}"
    assert suite.card.sizes == {**plain(name).card.sizes, "eval": len(suite.load())}
    assert suite is SUITES[f"{name}@unseen"]
    assert f"{name}@unseen" not in list(SUITES)


@pytest.mark.slow
@named
def test_a_gold_answer_to_an_unseen_question_is_right_and_silence_wrong(name: str) -> None:
    suite = SUITES[f"{name}@unseen"]
    box = SubprocessBox() if suite.needs_box else None
    for question in suite.load():
        assert suite.grade(question, gold_reply(question), box).value == 1.0, question.id
        assert suite.grade(question, "", box).value == 0.0
    assert len({question.id for question in suite.load()}) == len(suite.load())


def test_only_practice_suites_have_an_unseen_exam() -> None:
    with pytest.raises(UserError, match="no dates"):
        _ = SUITES["aime25@unseen"]


def test_another_exam_of_a_practice_suite_is_refused_by_the_one_there_is() -> None:
    with pytest.raises(UserError, match="Use 'practice-integer' or 'practice-integer@unseen'"):
        SUITES["practice-integer@unsen"]
