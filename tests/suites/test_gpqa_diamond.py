"""The GPQA-Diamond suite. Tests on the real rows assert letters, ids and counts, never a text."""

import csv
import gzip
import hashlib
import shutil
import stat
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest
from inspect_ai import eval
from inspect_ai.model import get_model

from podium.harness.errors import UserError
from podium.harness.records import Question
from podium.suites.data import data_folder, local_bytes, sources
from podium.suites.gpqa_diamond import (
    ARCHIVE,
    CSV,
    GpqaDiamond,
    decrypt_archive,
    gpqa_diamond,
    official_rows,
)
from tests.providers.scripted import Heard, script

FOLDER = data_folder() / "gpqa"
HERE = (data_folder() / sources()[ARCHIVE].file).is_file()
pytestmark = pytest.mark.skipif(
    not HERE, reason="gpqa/gpqa_official_dataset.zip is absent; name its folder in PODIUM_DATA"
)

SHORT = {
    "suzgunmirac/dynamic-cheatsheet": 1,
    "gtxygyzb/Saturn-code": 1,
    "echohive42/testing-deepseek...": 2,
}
"""Sources without a row for so many of the 198 ids, and with another id twice as often."""


@pytest.fixture
def private(tmp_path: Path) -> Generator[Path]:
    """A folder that only its owner enters, gone after the test: logs hold question texts."""
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    yield folder
    shutil.rmtree(folder)


def forms(epoch: int) -> list[Question]:
    suite = GpqaDiamond()
    return [suite.at_epoch(question, epoch) for question in suite.load()]


def verdicts() -> list[dict[str, str]]:
    path = FOLDER / "gpqa_diamond_verdicts_redacted.csv.gz"
    if not path.is_file():
        pytest.skip(f"{path.name} is absent")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def refusal(data: Path) -> str:
    with pytest.raises(UserError) as refused:
        GpqaDiamond(data=data).load()
    assert refused.value.__cause__ is None
    return str(refused.value)


def private_copy(folder: Path, name: str, content: bytes) -> Path:
    """Write a file that only its owner may read, below a data folder that only its owner enters."""
    path = folder / sources()[name].file
    path.parent.mkdir(mode=0o700)
    path.touch(mode=0o600)
    path.write_bytes(content)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return path


def test_there_are_198_questions_in_three_sciences() -> None:
    loaded = GpqaDiamond().load()
    assert len({question.id for question in loaded}) == len(loaded) == 198
    sciences = Counter(question.topic.partition("/")[0] for question in loaded)
    assert sciences == {"Chemistry": 93, "Physics": 86, "Biology": 19}
    assert {question.kind for question in loaded} == {"choice"}


@pytest.mark.parametrize("epoch", [1, 2, 3, 4])
def test_each_letter_is_right_49_or_50_times_in_an_epoch(epoch: int) -> None:
    letters = Counter(form.target for form in forms(epoch))
    assert sorted(letters.values()) == [49, 49, 50, 50]


def test_over_four_epochs_every_question_shows_each_letter_as_the_right_one() -> None:
    shown = defaultdict[str, set[str | None]](set)
    for epoch in range(1, 5):
        for form in forms(epoch):
            shown[form.id].add(form.target)
    assert all(letters == set("ABCD") for letters in shown.values())


def test_the_right_place_is_the_rank_of_the_ids_digest_plus_the_epoch_modulo_four() -> None:
    digests = {one.id: hashlib.sha256(one.id.encode()).hexdigest() for one in forms(1)}
    ranks = {id: rank for rank, id in enumerate(sorted(digests, key=lambda id: digests[id]))}
    for epoch in range(1, 5):
        places = {form.id: "ABCD".index(form.target or "") for form in forms(epoch)}
        assert all(places[id] == (rank + epoch) % 4 for id, rank in ranks.items())


def test_every_permutation_occurs_in_every_epoch_and_none_is_constant_for_a_question() -> None:
    seen = defaultdict[str, set[tuple[int, ...]]](set)
    for epoch in range(1, 5):
        asked = forms(epoch)
        assert len({tuple(form.metadata["permutation"]) for form in asked}) == 24
        for form in asked:
            seen[form.id].add(tuple(form.metadata["permutation"]))
    assert {len(orders) for orders in seen.values()} == {4}


def test_a_question_shows_its_four_options_once_and_nothing_else() -> None:
    for form in (*forms(1), *forms(3)):
        assert set(form.metadata) == {"choices", "permutation"}
        ends = form.text.endswith(f"D) {form.metadata['choices'][3]}")
        assert ends


def test_the_papers_prompt_strips_47_questions_and_changes_no_word_and_no_letter() -> None:
    official = GpqaDiamond().load()
    paper = GpqaDiamond().prompted("paper").load()
    differ = [one.text != other.text for one, other in zip(official, paper, strict=True)]
    assert sum(differ) == 47
    words = [
        one.text.split() == other.text.split() for one, other in zip(official, paper, strict=True)
    ]
    assert all(words)
    assert [one.target for one in official] == [other.target for other in paper]


def test_every_target_grades_right_in_every_epoch_and_an_empty_reply_wrong() -> None:
    suite = GpqaDiamond()
    for epoch in range(1, 5):
        for form in forms(epoch):
            assert suite.grade(form, f"Answer: {form.target}").value == 1.0
            empty = suite.grade(form, "")
            assert (empty.value, empty.extracted) == (0.0, None)


def test_recorded_verdicts_are_about_our_ids() -> None:
    ours = {question.id for question in GpqaDiamond().load()}
    recorded = defaultdict[str, set[str]](set)
    for row in verdicts():
        recorded[row["source"]].add(row["record_id"])
    missing = {source: len(ours - ids) for source, ids in recorded.items() if ours != ids}
    assert missing == SHORT
    assert all(ids <= ours for ids in recorded.values())


def test_recorded_scores_of_inspect_evals_are_about_our_ids() -> None:
    path = FOLDER / "gpqa_diamond_scores_evalconfidence.csv"
    if not path.is_file():
        pytest.skip(f"{path.name} is absent")
    with path.open(encoding="utf-8", newline="") as lines:
        ids = {row["item_id"] for row in csv.DictReader(lines)}
    assert ids == {question.id for question in GpqaDiamond().load()}


def test_where_both_letters_were_recorded_our_verdict_on_them_is_the_recorded_one() -> None:
    suite = GpqaDiamond()
    told = [row for row in verdicts() if row["gold_letter"] and row["pred_letter"]]
    agree = Counter[str]()
    for row in told:
        asked = Question(row["record_id"], "", "choice", row["gold_letter"])
        value = suite.grade(asked, f"Answer: {row['pred_letter']}").value
        agree["same" if value == float(row["correct"]) else "other"] += 1
    assert agree == {"same": len(told)}
    assert len(told) == 7696


def test_two_real_questions_in_four_epochs_are_scored_by_the_moved_letter(private: Path) -> None:
    (log,) = eval(
        gpqa_diamond(limit=2),
        model=get_model(script("stubborn", lambda heard: "Answer: A"), memoize=False),
        log_dir=str(private),
        display="none",
    )
    assert log.status == "success"
    scores = [sample.scores["podium"] for sample in log.samples or [] if sample.scores]
    assert [score.answer for score in scores] == ["A"] * 8
    assert Counter(score.value for score in scores) == {1.0: 2, 0.0: 6}
    assert (log.eval.metadata or {})["podium"]["publishable"] is False


def test_the_task_asks_four_times_unless_told_and_says_which_prompt_it_uses() -> None:
    usual, told = gpqa_diamond(limit=1), gpqa_diamond(limit=1, epochs=1, prompt="paper")
    assert (usual.epochs, told.epochs) == (4, 1)
    prompts = [(task.metadata or {})["podium"]["prompt"] for task in (usual, told)]
    assert prompts == ["official", "paper"]


def test_a_worker_is_sent_each_order_of_a_real_question_once(private: Path) -> None:
    sent = list[int]()

    def listen(heard: Heard) -> str:
        sent.append(hash(heard.last))
        return ""

    (log,) = eval(
        gpqa_diamond(limit=1),
        model=get_model(script("listener", listen), memoize=False),
        log_dir=str(private),
        display="none",
    )
    assert log.status == "success"
    expected = {hash(form.text) for epoch in range(1, 5) for form in forms(epoch)[:1]}
    assert set(sent) == expected
    assert len(sent) == 4


def test_the_plain_csv_is_the_same_exam_with_the_same_revision(tmp_path: Path) -> None:
    with_archive = [(one.id, one.target) for one in GpqaDiamond().load()]
    path = private_copy(tmp_path, CSV, decrypt_archive(local_bytes(ARCHIVE)))
    suite = GpqaDiamond(data=tmp_path)
    found = [(one.id, one.target) for one in suite.load()]
    revision = suite.data_revision
    path.unlink()
    assert found == with_archive
    assert revision == GpqaDiamond().data_revision == "gpqa_diamond.csv@sha256:41d1213cd7a4"


def test_an_archive_with_one_changed_byte_is_refused(tmp_path: Path) -> None:
    content = bytearray(local_bytes(ARCHIVE))
    content[1_000_000] ^= 1
    path = private_copy(tmp_path, ARCHIVE, bytes(content))
    assert refusal(tmp_path).startswith(f"{path} is not the pinned file: its sha256 is ")


def test_the_rows_are_decrypted_and_parsed_once_a_process() -> None:
    assert official_rows() is official_rows()
