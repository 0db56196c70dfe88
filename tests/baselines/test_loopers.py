"""Fusion and the loopers behind `vllm-sr/auto`, on scripted workers: whom they ask, and what."""

import json
from pathlib import Path

import pytest

from podium.baselines.loopers import (
    ANALYSIS,
    EVALUATING,
    FINAL,
    NO_ANALYSIS,
    OPUS,
    REFERENCES,
    UNCOMPARED,
    UNRATED,
    comparison,
    confidence_system,
    fusion_system,
    ratings_system,
    remom_system,
    stated_confidence,
)
from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.pool_config import read_pool
from podium.harness.records import FALLBACK, Answer, Question
from podium.harness.run.forecast import counted_all
from tests.baselines.tries import ask
from tests.providers.scripted import Heard, scripted_pool

SUM = Question(id="sum-1", text="What is {responses} + 2?", kind="integer", target="4")
COMPARED = '```json\n{"consensus": ["4"], "blind_spots": [], "notes": "none"}\n```'


def judge(heard: Heard) -> str:
    """Answer as a panel's member, as its judge or as its writer, by what is asked."""
    if "Fusion analysis judge" in heard.last:
        return COMPARED
    return "ANSWER: 4" if "Fusion calling model" in heard.last else "mine: ANSWER: 5"


def plan_of(answer: Answer) -> list[tuple[str, list[int]]]:
    """Return whom a plan asks, and what each one reads."""
    return [(step["worker"], step["reads"]) for step in json.loads(answer.plan or "")]


# --- fusion -----------------------------------------------------------------------------------


def test_a_panel_answers_one_judges_and_writes_with_the_comparison_in_hand() -> None:
    rig = scripted_pool(abacus=judge, sage="ANSWER: 4", scribe="ANSWER: 4")
    answer = ask(fusion_system(), rig.pool, SUM)
    assert (answer.text, answer.depth, answer.waves) == ("ANSWER: 4", 3, (3, 1, 1))
    assert plan_of(answer)[3:] == [("abacus", [0, 1, 2]), ("abacus", [0, 1, 2, 3])]
    judged, written = rig.heard[-2:]
    panel = "Response 1 (abacus):\nmine: ANSWER: 5\n\nResponse 2 (sage):\nANSWER: 4"
    for heard, template in ((judged, ANALYSIS), (written, FINAL)):
        assert [role for role, _ in heard.turns] == ["user"]
        assert heard.last.startswith(f"{SUM.text}\n\n{template.partition('{')[0]}")
        assert f"Original prompt:\n{SUM.text}\n" in heard.last  # a placeholder in it stays as it is
        assert panel in heard.last
    assert '"consensus": [\n    "4"\n  ]' in written.last
    assert not {"notes", "blind_spots"} & set(written.last.split('"'))
    assert FALLBACK not in answer.noted


def test_an_unreadable_comparison_leaves_the_panel_alone_to_be_merged_and_is_counted() -> None:
    rig = scripted_pool(abacus="They differ.", sage="ANSWER: 4")
    answer = ask(fusion_system(aggregator="abacus"), rig.pool, SUM)
    assert NO_ANALYSIS in rig.heard[-1].last
    assert answer.noted == {FALLBACK: UNCOMPARED}


@pytest.mark.parametrize(
    "said",
    [
        "",
        "}{",
        "[1]",
        '{"consensus": [1]}',
        '{"consensus": {"a": "b"}}',
        '{"consensus": NaN}',
        "{" * 100_000 + "}",
        '{"a":' * 100_000 + "1" + "}" * 100_000,
    ],
    ids=["nothing", "backwards", "list", "number", "object", "nan", "braces", "deep"],
)
def test_what_is_no_comparison_is_none(said: str) -> None:
    assert comparison(said) is None


def test_a_panel_is_who_is_named_and_never_more_than_eight() -> None:
    many = {f"worker{at}": judge for at in range(10)}
    assert len(ask(fusion_system(), scripted_pool(seed=0, **many).pool, SUM).replies) == 10
    rig = scripted_pool(seed=0, **many)
    ask(fusion_system(panel=["worker9", "worker3"], aggregator="worker5"), rig.pool, SUM)
    assert sorted(rig.asked[:2]) == ["worker3", "worker9"]
    assert rig.asked[2:] == ["worker5", "worker5"]
    with pytest.raises(UserError, match="no worker 'nobody'"):
        ask(fusion_system(panel="nobody"), rig.pool, SUM)


REFUSED = {
    "unknown": ("fusion@best", "fusion has no preset 'best'; it has general-high, general-budget."),
    "absent": ("fusion@general-high", f"fusion@general-high needs workers of {OPUS}, ~openai"),
    "empty": ("fusion@", "the part after @ must be a preset"),
}


@pytest.mark.parametrize(("system", "why"), REFUSED.values(), ids=REFUSED)
def test_a_preset_that_is_none_or_not_in_the_pool_is_refused_before_a_call(
    system: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--suite", "practice-integer", "--system", system, "--log-dir", str(tmp_path / "run")]
    assert main(["run", *words, "--pool", "rehearsal", "--display", "none"]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


PRESETS = {
    "high": ("general-high", ["opus", "gpt", "gemini-pro"]),
    "budget": ("general-budget", ["gemini-flash", "kimi", "deepseek"]),
}


@pytest.mark.parametrize(("preset", "panel"), PRESETS.values(), ids=PRESETS)
def test_a_preset_is_openrouters_panel_and_opus_ends_it(preset: str, panel: list[str]) -> None:
    spec = read_pool("openrouter-fusion")
    system = fusion_system(preset)
    (counted,) = counted_all(system, [(SUM.sealed(), 1)], spec.names, spec)
    assert [call.worker for call in counted] == [*panel, "opus", "opus"]


# --- remom ------------------------------------------------------------------------------------


def test_each_round_reads_the_last_one_alone_and_one_call_ends_it() -> None:
    rig = scripted_pool(abacus="A", sage="B")
    answer = ask(remom_system(breadth="3,2", aggregator="sage"), rig.pool, SUM)
    assert (answer.text, answer.depth, answer.waves) == ("B", 3, (3, 2, 1))
    assert plan_of(answer) == [
        *[(worker, []) for worker in ("abacus", "sage", "abacus")],
        *[(worker, [0, 1, 2]) for worker in ("abacus", "sage")],
        ("sage", [3, 4]),
    ]
    last = rig.heard[-1]
    assert last.system == REFERENCES
    assert last.last.startswith(f"{SUM.text}\n\nReference Responses:\n\nReference 1 (")
    assert "(abacus):\nA" in last.last
    assert "(sage):\nB" in last.last
    assert last.last.count("Reference ") == 3
    assert last.last.endswith("please provide your own comprehensive solution.")


def test_references_are_shuffled_by_question_and_epoch_and_a_resumed_run_repeats_it() -> None:
    rig = scripted_pool(seed=0, **{f"worker{at}": f"I say {at}." for at in range(6)})

    def order(epoch: int, seed: int = 0) -> str:
        ask(remom_system(breadth=6, seed=seed), rig.again(epoch), SUM)
        return rig.heard[-1].last

    assert order(1) == order(1)
    assert len({order(1), order(2), order(1, seed=1)}) == 3


@pytest.mark.parametrize("breadth", [0, "", "three", "2,,1", [2, -1], "100"])
def test_a_breadth_that_is_no_number_of_calls_is_refused(breadth: object) -> None:
    with pytest.raises(UserError, match="breadth is 1 to 99 calls"):
        remom_system(breadth=breadth)  # type: ignore[arg-type] - what a command line may say


# --- confidence -------------------------------------------------------------------------------


def sure(confidence: object, said: str = "ANSWER: 4") -> object:
    """Return a worker that answers, and rates its answer so."""

    def speak(heard: Heard) -> str:
        return f'Well. {{"confidence": {confidence}}}' if heard.system == EVALUATING else said

    return speak


def confident(**workers: object) -> tuple[Answer, list[str]]:
    rig = scripted_pool(**workers)  # type: ignore[arg-type] - functions of `sure`
    return ask(confidence_system(), rig.pool, SUM), rig.asked


def test_the_first_that_is_sure_of_its_own_answer_stands_and_nobody_else_is_asked() -> None:
    answer, asked = confident(abacus=sure(0.4), sage=sure(0.7, "ANSWER: 7"), scribe=sure(1))
    assert answer.text == "ANSWER: 7"
    assert asked == ["abacus", "abacus", "sage", "sage"]
    assert answer.noted == {"confidences": [0.4, 0.7]}
    assert plan_of(answer) == [("abacus", []), ("abacus", [0]), ("sage", []), ("sage", [2])]


def test_where_nobody_is_sure_the_last_that_rated_itself_stands() -> None:
    answer, asked = confident(abacus=sure(0.1, "A"), sage=sure(0.6, "B"), scribe=sure("x", "C"))
    assert (answer.text, len(asked)) == ("B", 6)
    assert answer.noted == {"confidences": [0.1, 0.6, None]}


def test_where_no_rating_can_be_read_the_last_answer_stands_and_it_is_counted() -> None:
    answer, _ = confident(abacus=sure("x", "A"), sage=sure("null", "B"))
    assert (answer.text, answer.noted[FALLBACK]) == ("B", UNRATED)


def test_a_rating_beyond_its_scale_is_brought_back_and_nonsense_is_none() -> None:
    assert [stated_confidence(f'{{"confidence": {one}}}') for one in ("7", "-2", "1e400")] == [
        1,
        0,
        1,
    ]
    assert stated_confidence('{"reason": "it did not say"}') == 0
    for said in ("", "{", '{"confidence": "0.9"}', '{"confidence": true}', '{"confidence": NaN}'):
        assert stated_confidence(said) is None


def test_a_threshold_that_is_no_share_is_refused() -> None:
    with pytest.raises(UserError, match="between 0 and 1, not 7"):
        confidence_system(threshold=7)


# --- ratings ----------------------------------------------------------------------------------


def test_ratings_pay_for_every_worker_and_answer_with_the_first() -> None:
    rig = scripted_pool(abacus="A", sage="B", scribe="C")
    answer = ask(ratings_system(), rig.pool, SUM)
    assert (answer.text, len(answer.replies), answer.depth) == ("A", 3, 1)
    assert sorted(rig.asked) == ["abacus", "sage", "scribe"]
