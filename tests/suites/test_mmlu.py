"""The MMLU suite: its pinned questions, its grader, its task, and recorded replies to its like."""

import gzip
import json
import string
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval
from inspect_ai.model import get_model

from podium.harness.errors import UserError
from podium.harness.extract import extract_choice, letter_of_option
from podium.harness.records import Question
from podium.suites.base import CHOICE_INSTRUCTION
from podium.suites.data import check_rows, data_folder, fetch_rows, hub_rows, sources
from podium.suites.mmlu import AUXILIARY, Mmlu, mmlu, mmlu_questions
from tests.providers.scripted import Heard, script

HERE = (data_folder() / sources()["mmlu"].file).is_file()
needs_data = pytest.mark.skipif(
    not HERE, reason="mmlu/mmlu_llamafactory.zip is absent; name its folder in PODIUM_DATA"
)

ROW = {"question": "1+1?", "subject": "arithmetic", "choices": ["1", "2", "3", "4"], "answer": 1}


def made(**changes: Any) -> Question:
    return mmlu_questions([{**ROW, **changes}])[0]


@needs_data
def test_there_are_14042_questions_on_57_subjects_and_1531_to_validate_with() -> None:
    loaded = Mmlu().load()
    assert (len(loaded), len({item.topic for item in loaded})) == (14042, 57)
    assert len({item.id for item in loaded}) == 14042
    assert len(Mmlu().load("validation")) == 1531
    assert (loaded[0].id, loaded[-1].id) == ("mmlu-abstract_algebra-1", "mmlu-world_religions-171")


@needs_data
def test_letters_are_those_published() -> None:
    targets = [item.target for item in Mmlu().load()]
    assert [targets.count(name) for name in "ABCD"] == [3222, 3462, 3582, 3776]


@needs_data
def test_fourteen_thousand_questions_load_within_a_second() -> None:
    started = time.process_time()
    Mmlu().load()
    assert time.process_time() - started < 20


def test_a_question_is_the_official_prompt_with_the_options_as_published() -> None:
    asked = made()
    assert asked.text == f"{CHOICE_INSTRUCTION}\n\n1+1?\n\nA) 1\nB) 2\nC) 3\nD) 4"
    assert (asked.id, asked.kind, asked.target, asked.topic) == (
        "mmlu-arithmetic-1",
        "choice",
        "B",
        "arithmetic",
    )
    assert asked.sealed().target is None


def test_the_hub_s_schema_makes_the_same_questions_numbered_within_their_subject(
    tmp_path: Path,
) -> None:
    rows = [{**ROW, "subject": subject, "question": f"{n}?"} for n, subject in enumerate("aabab")]
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    loaded = mmlu_questions(hub_rows(str(tmp_path), None, None, "test"))
    assert [item.id for item in loaded] == [
        "mmlu-a-1",
        "mmlu-a-2",
        "mmlu-b-1",
        "mmlu-a-3",
        "mmlu-b-2",
    ]
    assert {item.target for item in loaded} == {"B"}


def test_auxiliary_rows_have_no_subject_and_are_numbered_through(tmp_path: Path) -> None:
    rows = [{**ROW, "subject": "", "question": f"{n}?"} for n in range(3)]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    loaded = mmlu_questions(hub_rows(str(tmp_path), None, None, "train"), AUXILIARY)
    assert [item.id for item in loaded] == ["mmlu-aux-1", "mmlu-aux-2", "mmlu-aux-3"]
    assert {item.topic for item in loaded} == {AUXILIARY}


def test_the_auxiliary_split_is_the_hub_s_and_says_which_file_would_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match=r"cais/mmlu cannot be loaded .*auxiliary_train\.jsonl"):
        Mmlu(tmp_path).load("train")


def test_another_archive_is_refused_by_its_digest(tmp_path: Path) -> None:
    path = tmp_path / sources()["mmlu"].file
    path.parent.mkdir()
    path.write_bytes(b"PK")
    with pytest.raises(UserError, match="not the pinned file"):
        Mmlu(tmp_path).load()


def test_a_changed_schema_is_refused_by_the_column() -> None:
    source = sources()["mmlu"].model_copy(update={"rows": 1})
    with pytest.raises(UserError, match="has no column 'choices'"):
        check_rows([{"question": "?", "subject": "", "answer": 0}], source, "cais/mmlu")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"choices": ["1", "2"]}, "MMLU, row 1 must have exactly four choices"),
        ({"answer": "B"}, "its `answer` 'B' is not a number from 0 to 3"),
        ({"answer": 4}, "its `answer` '4' is not a number from 0 to 3"),
    ],
)
def test_a_malformed_row_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        made(**changes)


def test_rows_of_another_file_need_ids_that_differ(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text(json.dumps(ROW) + "\n")
    with pytest.raises(UserError, match="Give each row its `id`"):
        Mmlu().read_problems(path)
    path.write_text((json.dumps({**ROW, "id": "mmlu-arithmetic-7"}) + "\n") * 2)
    with pytest.raises(UserError, match="'mmlu-arithmetic-7' twice"):
        Mmlu().read_problems(path)
    path.write_text(json.dumps({**ROW, "id": "mmlu-arithmetic-7"}) + "\n")
    assert [item.id for item in Mmlu().read_problems(path)] == ["mmlu-arithmetic-7"]


def test_a_split_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UserError, match="has no 'dev' split"):
        Mmlu().load("dev")  # pyright: ignore[reportArgumentType]


def test_an_option_s_own_text_stands_for_its_letter_when_no_other_option_has_it() -> None:
    choices = ["4.0 m", "42 m", "The 42 metres", "$4$ m"]
    assert extract_choice("Answer: 42 m.", choices) == "B"
    assert extract_choice(r"So \boxed{\text{42 m}}", choices) == "B"
    assert extract_choice("Answer: **The 42 Metres**", choices) == "C"
    assert extract_choice("Answer: 42", choices) is None
    assert extract_choice("Answer: C", choices) == "C"
    assert extract_choice("It is 42 m", choices) is None
    assert letter_of_option("4 m", ["4 m", "4 m", "5 m", "6 m"]) is None
    assert letter_of_option("", ["", "1", "2", "3"]) is None
    assert letter_of_option("c 3", ["1", "2", "3", "4"]) == "C"


LAW = (
    "prevail, because of the mistake",
    "not prevail, unless he knew it",
    "Are we alone?",
    "(A) and (B)",
)


@pytest.mark.parametrize("letter", "ABCD")
@pytest.mark.parametrize(
    "form", ["Answer: {0}) {1}", "So the correct answer is **{0}. {1}**.", "**Answer:** {0}. {1}"]
)
def test_the_words_of_an_option_behind_its_letter_are_no_hedge(letter: str, form: str) -> None:
    text = LAW["ABCD".index(letter)]
    assert extract_choice(form.format(letter, text), LAW) == letter
    other = "A" if letter != "A" else "B"
    assert extract_choice(f"{form.format(letter, text)}\nAnswer: {letter} or {other}", LAW) is None


def test_a_sealed_question_cannot_be_graded() -> None:
    with pytest.raises(ValueError, match="sealed"):
        Mmlu().grade(replace(made(), target=None), "Answer: B")


@needs_data
def test_the_task_runs_in_inspect_and_scores_by_the_letter(tmp_path: Path) -> None:
    def reply(heard: Heard) -> str:
        return "Answer: B" if "sqrt(18)" in heard.last else "I do not know."

    (log,) = eval(
        mmlu(limit=2),
        model=get_model(script("guesser", reply), memoize=False),
        log_dir=str(tmp_path),
        display="none",
    )
    assert log.status == "success"
    scores = [sample.scores["podium"] for sample in log.samples or [] if sample.scores]
    assert [(score.value, score.answer) for score in scores] == [(1.0, "B"), (0.0, None)]


def test_without_file_and_network_the_message_names_both_ways_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match=r"cais/mmlu cannot be loaded .* put the file at"):
        fetch_rows("mmlu", tmp_path)


# --- recorded replies -------------------------------------------------------------------------

RECORDED = ("claude-3-haiku-20240307", "gemini-2.0-flash-001")


def recorded() -> list[tuple[str, str, str, float]]:
    """Return (id, reply, published letter, published score) of MMLU-like replies; skip if none."""
    rows: list[tuple[str, str, str, float]] = []
    for model in RECORDED:
        path = data_folder() / f"routerarena_cached/{model}.jsonl.gz"
        if not path.is_file():
            pytest.skip(f"{path.name} is absent; name its folder in PODIUM_DATA")
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                verdict = row["evaluation_result"]
                if row["global_index"].startswith(("MMLU_", "MMLUPro_")):
                    gold = string.ascii_uppercase[int(verdict["ground_truth"])]
                    reply = str(row["generated_answer"])
                    rows.append((row["global_index"], reply, gold, verdict["score"]))
    return rows


def test_of_282_recorded_verdicts_two_differ_of_which_one_is_ours_to_give() -> None:
    """A box that holds letter and option, `C. ~(M v S)`, was not read there; the key is C.

    A box with D, whose explanation ends in "the correct answer is None of the above", says two
    things to who does not see the options.
    """
    rows = [row for row in recorded() if row[2] in "ABCD"]
    assert len(rows) == 282
    differ = [
        (name, extract_choice(reply), gold, theirs)
        for name, reply, gold, theirs in rows
        if (extract_choice(reply) == gold) != bool(theirs)
    ]
    assert sorted(differ) == [
        ("MMLU_formal_logic_116", "C", "C", 0.0),
        ("MMLU_formal_logic_16", None, "D", 1.0),
    ]


def test_a_recorded_reply_that_boxes_a_letter_beyond_d_has_no_letter_here() -> None:
    beyond = [
        (name, reply)
        for name, reply, _, _ in recorded()
        if any(f"\\boxed{{{name}}}" in reply for name in "EFGHIJ")
    ]
    assert len(beyond) > 100
    assert [name for name, reply in beyond if extract_choice(reply) is not None] == []
