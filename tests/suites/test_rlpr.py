"""RLPR: rows of the hub's schema become questions in fixed splits, and rules grade what they can.

The data itself could not be had where this was written: the rows here are made up, in its columns.
"""

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import datasets
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.harness.errors import PodiumError, UserError
from podium.harness.model_judge import JudgeError
from podium.harness.records import Question
from podium.suites import SUITES
from podium.suites.data import hub_rows, sources
from podium.suites.quantities import parse_quantity, same_quantity
from podium.suites.rlpr import (
    RLPR,
    RLPR_RULES,
    Rlpr,
    reference_kind,
    rlpr_questions,
    split_questions,
    stated_answers,
    without_system_message,
)

SYSTEM = "Think in <think> </think>, then answer in <answer> answer here </answer>."
PROSE = "It falls, because warm air rises."


def row(problem: str, answer: str, **changes: Any) -> dict[str, Any]:
    """Return a row with the columns that public code reads from the data."""
    prompt = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": problem}]
    return {
        "data_source": "WebInstruct-verified",
        "prompt": prompt,
        "ability": "Physics",
        "reward_model": {"ground_truth": answer, "style": "rule"},
        "extra_info": {"index": 0, "difficulty": "University"},
        **changes,
    }


ROWS = [row(f"What is {n} times 2?", str(2 * n)) for n in range(50)] + [
    row("What does pressure do with height?", PROSE)
]


def folder(tmp_path: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    """Write rows as the local file, and return the data folder."""
    path = tmp_path / "data" / "rlpr" / "rlpr_train.parquet"
    path.parent.mkdir(parents=True)
    datasets.Dataset.from_list(rows).to_parquet(str(path))
    return tmp_path / "data"


def questioned(answer: str, id: str = "q") -> Question:
    return Question(id=id, text="?", kind="text", target=answer)


def test_a_local_parquet_file_becomes_questions_in_three_splits(tmp_path: Path) -> None:
    suite = Rlpr(data=folder(tmp_path))
    found = {split: suite.load(split) for split in suite.splits}
    assert sum(len(part) for part in found.values()) == len(ROWS)
    assert [len(found[split]) for split in suite.splits] == [31, 10, 10]
    assert suite.load("eval") == found["eval"]
    first = found["train"][0]
    assert first.text.startswith(f"{SYSTEM}\n\nWhat ")
    assert without_system_message(first).startswith("What ")
    assert (first.kind, first.topic) == ("text", "Physics")
    assert first.id.startswith("rlpr-")


def test_a_local_file_pins_itself_by_its_digest(tmp_path: Path) -> None:
    one, other = folder(tmp_path / "1"), folder(tmp_path / "2", ROWS[:9])
    revisions = {Rlpr(data=data).data_revision for data in (one, other)}
    assert len(revisions) == 2
    assert all("rlpr_train.parquet@sha256:" in revision for revision in revisions)


def test_the_hubs_own_loader_gives_the_same_questions(tmp_path: Path) -> None:
    data = folder(tmp_path)
    loaded = hub_rows(str(data / "rlpr"), None, None, "train")
    assert rlpr_questions(loaded, "the hub") == rlpr_questions(ROWS, "here")


def test_columns_may_be_json_text_as_in_copies_of_the_data() -> None:
    packed = [
        {
            **one,
            "prompt": json.dumps(one["prompt"]),
            "reward_model": json.dumps(one["reward_model"]),
        }
        for one in ROWS
    ]
    assert rlpr_questions(packed, "packed") == rlpr_questions(ROWS, "here")


def test_json_lines_are_read_as_problems(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in ROWS))
    assert list(RLPR.read_problems(path)) == rlpr_questions(ROWS, "here")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        pytest.param({"prompt": 3}, "row 1, column prompt", id="prompt is a number"),
        pytest.param({"prompt": "{"}, "row 1, column prompt", id="prompt is no JSON"),
        pytest.param({"prompt": [{"role": "user"}]}, "column prompt.0.content", id="no content"),
        pytest.param({"prompt": []}, "no user message", id="nothing is asked"),
        pytest.param({"reward_model": {}}, "reward_model.ground_truth", id="no reference"),
        pytest.param({"reward_model": {"ground_truth": " "}}, "it is empty", id="empty reference"),
    ],
)
def test_a_row_of_another_form_is_refused_with_row_and_column(
    changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said.replace(".", r"\.")):
        rlpr_questions([{**ROWS[0], **changed}], "the file")


@pytest.mark.parametrize("column", ["prompt", "reward_model"])
def test_a_column_that_is_gone_is_named(tmp_path: Path, column: str) -> None:
    rows = [{key: value for key, value in one.items() if key != column} for one in ROWS]
    with pytest.raises(UserError, match=f"row 1 has no column '{column}'"):
        Rlpr(data=folder(tmp_path, rows)).load("train")


def test_a_damaged_file_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "rlpr" / "rlpr_train.parquet"
    path.parent.mkdir()
    path.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(UserError, match="cannot be read as parquet"):
        Rlpr(data=tmp_path).load("train")


def test_without_hub_and_file_the_sentence_says_where_to_put_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UserError, match=r"rlpr/rlpr_train\.parquet") as refused:
        Rlpr(data=tmp_path).load("train")
    assert "openbmb/RLPR-Train-Dataset" in str(refused.value)


def test_rows_that_are_alike_are_one_question_and_two_answers_are_two() -> None:
    twice = rlpr_questions([ROWS[0], ROWS[0], row("What is 0 times 2?", "zero")], "here")
    assert len(twice) == 2
    assert len({question.id for question in twice}) == 2


def test_ids_depend_on_nothing_but_the_row() -> None:
    alone = rlpr_questions(ROWS[7:8], "here")
    assert alone[0] in rlpr_questions(list(reversed(ROWS)), "there")


def test_a_text_with_two_answers_is_never_in_two_splits() -> None:
    rows = [row(f"Question {n // 2}?", str(n)) for n in range(200)]
    made = rlpr_questions(rows, "here")
    where = {
        text: {
            split
            for split in RLPR.splits
            if any(q.text == text for q in split_questions(made, split))
        }
        for text in {question.text for question in made}
    }
    assert {len(splits) for splits in where.values()} == {1}


def test_the_papers_77700_questions_would_be_split_as_it_says() -> None:
    many = [Question(id=str(n), text=str(n), kind="text", target="1") for n in range(77_700)]
    sizes = [len(split_questions(many, split)) for split in RLPR.splits]
    assert sizes == [46_620, 15_540, 15_540]


def test_the_part_for_rules_leaves_out_what_only_a_model_can_judge(tmp_path: Path) -> None:
    data = folder(tmp_path)
    whole = [q for split in RLPR.splits for q in Rlpr(data=data).load(split)]
    rules = [q for split in RLPR.splits for q in Rlpr(data, "rlpr-rules").load(split)]
    assert [q.target for q in whole if q not in rules] == [PROSE]
    assert (RLPR_RULES.name, SUITES["rlpr-rules"]) == ("rlpr-rules", RLPR_RULES)


@pytest.mark.parametrize(
    ("reference", "kind"),
    [
        ("50400 N", "number"), ("2.74%", "number"), ("$112,480.11", "number"),
        ("3 \\times 10^8 \\text{ m/s}", "number"), ("25 °C", "number"), ("1/2", "number"),
        ("(B)", "choice"), ("N", "choice"), ("Business", "words"), ("Newton's third law", "words"),
        ("F=qvB", "expression"), ("2x", "expression"), ("O(n log n)", "expression"),
        ("C6H12O6 + 6 O2 -> 6 CO2", "expression"), ("8:30 PM", "expression"),
        ("Reject the null hypothesis", "text"), ("50 mL of water per day", "text"),
        ("mean = 5, variance = 2", "text"), (PROSE, "text"), ("9" * 300, "text"),
    ],
)  # fmt: skip
def test_what_a_reference_is_decides_who_grades_it(reference: str, kind: str) -> None:
    assert reference_kind(reference) == kind
    assert RLPR.needs_judge(questioned(reference)) is (kind == "text")


def test_prose_is_never_graded_by_a_rule_and_never_zero() -> None:
    with pytest.raises(JudgeError, match="only a model can judge q: ") as raised:
        RLPR.grade(questioned(PROSE), f"<answer>{PROSE}</answer>")
    assert isinstance(raised.value, PodiumError)
    assert PROSE not in str(raised.value)


def test_an_empty_reply_is_wrong_whoever_grades() -> None:
    for reference in ("5", "B", "Business", "x+1", PROSE):
        grade = RLPR.grade(questioned(reference), " \n")
        assert (grade.value, grade.extracted) == (0.0, None)


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("B", 1.0), ("option B", 1.0), ("(B) i.e. the second", 1.0), ("B) A square", 1.0),
        ("(B) or (C)", 0.0), ("B, C", 0.0), ("B) C) D)", 0.0), ("A. B. C. D.", 0.0),
    ],
)  # fmt: skip
def test_a_letter_counts_alone_and_not_as_the_first_of_several(answer: str, value: float) -> None:
    assert RLPR.grade(questioned("(B)"), f"<answer>{answer}</answer>").value == value


@pytest.mark.parametrize("form", ["<answer>{}</answer>", "\\boxed{{{}}}", "Answer: {}"])
def test_every_reference_that_rules_grade_is_right_as_it_stands(form: str) -> None:
    gold = [
        *("50400 N", "2.74%", "-3", "1/2", "B", "Business", "F=qvB", "O(n log n)", "25 °C"),
        *("x^2+1", "(1, 2)", "8:30 PM", "$-\\infty$", "no solution", "1.5e-7 m", "6:1"),
    ]
    wrong = [one for one in gold if RLPR.grade(questioned(one), form.format(one)).value != 1.0]
    assert wrong == []


LONG = " It is explained below at length." * 130
"""More characters than the end of a reply in which labels are looked for."""


@pytest.mark.parametrize(
    ("gold", "reply", "value"),
    [
        ("2", "<answer>The answer is 2</answer>", 1.0),
        ("2", "<answer>Answer: $2$</answer>", 1.0),
        ("Business", "<answer>The answer is Business</answer>", 1.0),
        ("2", f"<answer>2</answer>{LONG}", 1.0),
        ("2", f"<answer>The final answer is 2</answer>{LONG}", 1.0),
        ("2", f"<answer>2</answer>{LONG} Wait, that is wrong.", 0.0),
        ("2", f"<answer>2</answer>{LONG} <answer>3</answer>", 0.0),
        ("2", f"<answer>2</answer> <answer>3</answer>{LONG}", 0.0),
        ("2", f"<think><answer>2</answer>{LONG}</think> I give up.", 0.0),
        ("2", "<answer>2?</answer>", 0.0),
        ("Business", "<answer>Business?</answer>", 0.0),
        ("Business", "<answer>**Business?**</answer>", 0.0),
        ("B", "<answer>B?</answer>", 0.0),
    ],
)
def test_a_tag_may_hold_a_label_and_stand_far_above_and_asks_nothing(
    gold: str, reply: str, value: float
) -> None:
    assert RLPR.grade(questioned(gold), reply).value == value


def test_a_grade_says_by_which_rule() -> None:
    grade = RLPR.grade(questioned("5 m"), "<answer>5 m</answer>")
    assert (grade.metadata["rule"], grade.extracted) == ("number", "5 m")


def test_a_sealed_question_cannot_be_graded() -> None:
    with pytest.raises(ValueError, match="sealed"):
        RLPR.grade(questioned("5").sealed(), "5")


@given(st.text(max_size=400) | st.text("<>/answer{}\\boxed=,.0123456789 %^$eE-()", max_size=400))
@settings(max_examples=300, deadline=None)
def test_no_text_breaks_what_reads_replies_and_references(text: str) -> None:
    stated_answers(text)
    reference_kind(text)
    found = parse_quantity(text)
    assert found is None or same_quantity(found, found)


def test_reading_100_kilobytes_of_anything_is_quick() -> None:
    for noise in (
        "<answer>",
        "\\boxed{",
        "answer is ",
        "answer:\n",
        "9",
        "= is be ",
        "((((",
        "a b ",
    ):
        text = noise * (100_000 // len(noise))
        started = time.process_time()
        RLPR.grade(questioned("5 m"), text)
        reference_kind(text)
        assert time.process_time() - started < 2.0, noise


def test_the_pin_says_what_nobody_could_check() -> None:
    source = sources()["rlpr"]
    assert (source.sha256, source.rows) == ("", None)
    assert len(source.revision or "") == 40
    assert "could not be loaded" in RLPR.card.about


def test_topics_and_sources_are_kept_for_breakdowns() -> None:
    made = rlpr_questions([*ROWS, row("Why?", "1", ability="History")], "here")
    assert Counter(question.topic for question in made) == {"Physics": 51, "History": 1}
    assert made[0].metadata["data_source"] == "WebInstruct-verified"
