"""The table of rules by which replies are read: its words, its rows and their examples."""

import re

import pytest

from podium.harness.extract import CLOSING, read_choice, read_expressions, read_integer
from podium.harness.rewards.outcome import RewardOutcome, Status
from podium.harness.rewards.trainers import batch_metrics
from podium.harness.rules import (
    DECIDING,
    STAGES,
    RuleExample,
    expanded,
    list_example,
    rule_examples,
    rule_table,
    rules,
    word_lists,
)

MOST_LINES = 4
LETTERS = "ABCDEFGHIJKLMNOP"


def read(example: RuleExample) -> str | None:
    if example.suite == "aime25":
        number = read_integer(example.reply).value
        return None if number is None else str(number)
    if example.suite in ("gpqa-diamond", "mmlu"):
        return read_choice(example.reply, example.choices).value
    if example.letter:
        return read_choice(example.reply, letters=LETTERS).value
    return ", ".join(read_expressions(example.reply).value or ()) or None


@pytest.mark.parametrize("name", rules())
def test_replies_read_as_the_examples_of_a_rule_say(name: str) -> None:
    wrong = [
        (example.reply, example.reads, read(example))
        for example in rule_examples()
        if example.rule == name and read(example) != example.reads
    ]
    assert wrong == []


@pytest.mark.parametrize("name", rules())
def test_a_rule_has_three_examples_and_three_counter_examples_with_sources(name: str) -> None:
    mine = [example for example in rule_examples() if example.rule == name]
    assert [sum(one.decides is decides for one in mine) for decides in (True, False)] == [3, 3]
    assert all(one.source for one in mine)


def test_every_example_is_of_a_rule_and_every_rule_of_a_stage() -> None:
    assert {example.rule for example in rule_examples()} <= set(rules())
    assert {rule.stage for rule in rules().values()} == set(STAGES)
    assert set(DECIDING) <= set(rules())


@pytest.mark.parametrize("name", rules())
def test_no_rule_is_longer_than_four_lines(name: str) -> None:
    assert 1 <= len(rules()[name].pattern) <= MOST_LINES


@pytest.mark.parametrize("name", word_lists())
def test_a_list_of_words_has_an_example_that_holds_one(name: str) -> None:
    assert re.search(expanded(f"{{{name}}}"), list_example(name), re.I)


def outranking(name: str) -> set[str]:
    """Return the rules that outrank a rule."""
    return set(re.findall("`(.*?)`", rules()[name].outranked_by))


def test_what_outranks_a_rule_is_a_rule_and_later_closing_rules_name_the_earlier() -> None:
    assert {other for name in rules() for other in outranking(name)} <= set(rules())
    order = ["only", *CLOSING, "option-line", "concluded-letter", "option-text"]
    for place, name in enumerate(order):
        assert outranking(name) & set(order) == set(order[:place]), name


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        ("\\boxed{7}\nAnswer: 8", "label-line"),
        ("Answer: 7\n\n\\boxed{8}", "conflict"),
        ("Answer: the sum of both of the parts\n\\boxed{8}", "box"),
        ("The answer is \\boxed{8}.", "box"),
        ("The answer is 7. So 8 is the answer.", "value-before"),
        ("Therefore the total is 7.\n\n**8**", "apart"),
        ("Answer: 8\n\nTherefore the total is 7.", "label-line"),
    ],
)
def test_of_two_statements_the_outranking_rule_decides(reply: str, rule: str) -> None:
    assert read_integer(reply).rule == rule


def test_the_table_names_rule_pattern_and_examples() -> None:
    rows, text = rule_table()
    assert [row["name"] for row in rows] == [*rules()]
    assert "label-line (find)" in text
    assert "outranked by" in text


def test_a_reading_says_what_each_stage_made_of_each_statement() -> None:
    reading = read_integer("I first thought \\boxed{204}. The answer is 180.")
    assert (reading.value, reading.rule) == (180, "label")
    assert [step[:3] for step in reading.steps] == [
        ("rank", "label", "180"),
        ("drop", "not-boxed", "204"),
    ]


def test_trainers_count_replies_by_the_rule_that_decided() -> None:
    outcomes = [RewardOutcome(1.0, Status.SCORED, rule=rule) for rule in ("box", "box", "none", "")]
    metrics = batch_metrics(outcomes)
    assert (metrics["rule/box"], metrics["rule/tag"], metrics["rule/no-answer"]) == (2.0, 0.0, 1.0)
    assert set(metrics) == set(batch_metrics([]))
