"""Real replies of four models to AIME25: our grades against the verdicts recorded with them.

The verdicts are lighteval's `extractive_match` (math-verify over the whole reply, thinking
included). Where the two differ, the pair is listed here with the reason.
"""

from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval
from inspect_ai.model import ChatMessageUser, get_model

import podium.suites._registry  # noqa: F401 - as in every process in which podium is installed
from podium.harness.cassette import open_cassette
from podium.harness.errors import CassetteMiss, UserError
from podium.harness.pool import Pool, pool_models
from podium.harness.pool_config import read_pool
from podium.harness.prices import read_book
from podium.harness.records import Usage
from podium.harness.usage import usage_from
from podium.suites.aime25 import RECORDED, SATURN_WORKERS, Aime25, aime25, saturn_cassette
from podium.suites.data import data_folder, local_file, local_rows, sources

DATA = data_folder()
FILES = ("aime25", RECORDED)
HERE = all(local_file(sources()[name]).is_file() for name in FILES)
pytestmark = pytest.mark.skipif(
    not HERE,
    reason="saturn_lighteval/ or aime25_problems/ is absent; name their folder in PODIUM_DATA",
)

DISAGREEMENTS = {
    # Recorded right, we abstain: after </think> the reply explains its method and never states a
    # number; 610 stands in the thinking alone, in prose that goes on ("Wait, but I'm not sure").
    ("r1-distill-7b", "aime25-II-8"): (1.0, None),
}
"""(worker, problem) -> (recorded verdict, what we find)."""

RIGHT = {"r1-distill-1.5b": 5, "r1-distill-7b": 13, "saturn-1.5b": 8, "saturn-7b": 12}
"""Recorded verdicts: right replies of 30."""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Import into a fresh cache, so that no test depends on what a machine has cached."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PODIUM_DATA", str(DATA.resolve()))


def rows() -> list[dict[str, Any]]:
    return local_rows(RECORDED)


def test_our_grades_are_the_recorded_verdicts_but_for_the_listed_pairs() -> None:
    suite = Aime25()
    questions = {question.id: question for question in suite.load()}
    found: dict[tuple[str, str], tuple[float, str | None]] = {}
    for row in rows():
        grade = suite.grade(questions[row["problem_id"]], row["output"])
        if grade.value != row["metric"]:
            pair = (SATURN_WORKERS[row["model"]], row["problem_id"])
            found[pair] = (row["metric"], grade.extracted)
    assert found == DISAGREEMENTS


def test_the_recorded_targets_are_ours() -> None:
    targets = {question.id: question.target for question in Aime25().load()}
    assert all(targets[row["problem_id"]] == str(int(row["gold"])) for row in rows())


def test_no_reply_that_was_recorded_wrong_is_graded_right() -> None:
    suite = Aime25()
    questions = {question.id: question for question in suite.load()}
    wrong = [row for row in rows() if row["metric"] == 0.0]
    assert len(wrong) == 120 - sum(RIGHT.values())
    assert not any(suite.grade(questions[row["problem_id"]], row["output"]).value for row in wrong)


def test_the_cassette_holds_every_reply_with_its_tokens_and_without_a_prompt() -> None:
    tape = open_cassette("saturn-aime25")
    assert len(tape.rows) == 120 * len(Aime25().prompts)
    assert set(tape.workers) == set(SATURN_WORKERS.values())
    kept = {(row.worker, row.question): row for row in tape.rows.values()}
    for row in rows():
        reply = kept[SATURN_WORKERS[row["model"]], row["problem_id"]]
        assert reply.text == row["output"]
        assert reply.usage
        assert reply.usage.reasoning is None, "the source counts thinking as output"
        assert (reply.usage.input, reply.usage.output) == (row["in_tokens"], row["out_tokens"])
        assert (reply.prompt_recorded, reply.epoch, reply.occurrence) == (False, 1, 0)


def test_a_second_import_reads_the_first() -> None:
    path = saturn_cassette()
    written = path.stat().st_mtime_ns
    assert saturn_cassette() == path
    assert path.stat().st_mtime_ns == written


def test_without_the_data_the_pool_is_refused_with_the_file_and_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODIUM_DATA", str(tmp_path / "nothing"))
    with pytest.raises(UserError, match=r"aime25_4models\.jsonl\. .* put it there, .* PODIUM_DATA"):
        pool_models(read_pool("recorded-aime25"))


@pytest.mark.anyio
async def test_only_the_canonical_request_is_answered_and_only_once_an_epoch() -> None:
    models = pool_models(read_pool("recorded-aime25"))
    question = Aime25().load()[0]
    canonical = [ChatMessageUser(content=question.text)]
    pool = Pool(models)
    reply = await pool.ask("saturn-7b", canonical, "step 1: saturn-7b")
    assert Aime25().grade(question, reply.text).value == 1.0
    for other in (canonical, [ChatMessageUser(content=question.text + " Think.")]):
        with pytest.raises(CassetteMiss, match="no reply of saturn-7b"):
            await pool.ask("saturn-7b", other, "step 1: saturn-7b")
    with pytest.raises(CassetteMiss, match="epoch 2"):
        await Pool(models, epoch=2).ask("saturn-7b", canonical, "step 1: saturn-7b")


def test_the_pool_is_labelled_recorded_and_has_no_invented_price() -> None:
    spec = read_pool("recorded-aime25")
    assert (spec.label, set(spec.names)) == ("recorded", set(SATURN_WORKERS.values()))
    assert not read_book(spec.prices).prices


@pytest.mark.anyio
async def test_a_reply_is_given_to_either_prompt_of_the_suite_once() -> None:
    pool = Pool(pool_models(read_pool("recorded-aime25")))
    replies: set[str] = set()
    for prompt in Aime25().prompts:
        question = Aime25().prompted(prompt).load()[0]
        asked = [ChatMessageUser(content=question.text)]
        replies.add((await pool.ask("saturn-7b", asked, "step 1: saturn-7b")).text)
    assert len(replies) == 1


@pytest.mark.slow
@pytest.mark.parametrize("worker", RIGHT, ids=list(RIGHT))
def test_a_replayed_eval_gives_the_recorded_accuracy_and_tokens(
    worker: str, tmp_path: Path
) -> None:
    model = get_model(f"recorded/{worker}", cassette="saturn-aime25", memoize=False)
    (log,) = eval(aime25(), model=model, log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    samples = log.samples or []
    right = sum((sample.scores or {})["podium"].as_float() for sample in samples)
    abstained = sum(pair[0] == worker for pair in DISAGREEMENTS)
    assert right == RIGHT[worker] - abstained
    tokens = sum((usage_from(sample.output.usage) or Usage() for sample in samples), Usage())
    recorded = [row for row in rows() if SATURN_WORKERS[row["model"]] == worker]
    assert tokens.output == sum(row["out_tokens"] for row in recorded)
    assert tokens.reasoning is None
    assert tokens.input == sum(row["in_tokens"] for row in recorded)
