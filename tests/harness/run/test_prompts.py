"""How questions are put, by name: through runs, logs, selection, plans, regrading and reports."""

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import list_eval_logs, read_eval_log

from podium.baselines.oracle import make_plans
from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.model_judge import regrade_dir
from podium.harness.records import Question
from podium.harness.run.experiment import FILE, read_experiment
from podium.harness.run.run_request import unknown_prompt_note
from podium.harness.suite import Prompted
from podium.suites import ACCESS_LOG, SUITES, _registry, log_eval_access
from podium.suites.aime25 import PREFIX, Aime25, aime25
from podium.suites.data import data_folder
from tests.harness.toy_run import CONTROLS, Toy, calls, toy_pool, toy_run
from tests.suites.toy_suites import PromptedToy, asked, samples

RECORDED = data_folder() / "saturn_lighteval" / "math500_1model.jsonl.gz"
needs_recordings = pytest.mark.skipif(
    not RECORDED.is_file(), reason="saturn_lighteval/ is absent; name its folder in PODIUM_DATA"
)


def prompts_of(log_dir: Path) -> dict[str, str]:
    experiment = read_experiment(log_dir)
    assert experiment is not None
    return dict(experiment.prompts)


def rows() -> list[dict[str, Any]]:
    """Return rows of AIME25's schema, problems with spaces and braces around them."""
    return [{"problem": f" What is ${{{n}}}$? ", "answer": n} for n in range(30)]


def written(tmp_path: Path) -> Path:
    path = tmp_path / "problems.jsonl"
    path.write_text("\n".join(map(json.dumps, rows())) + "\n")
    return path


def test_the_paper_s_words_come_before_a_problem_of_aime25_and_change_nothing_else(
    tmp_path: Path,
) -> None:
    official = Aime25().read_problems(written(tmp_path))
    paper = Aime25().prompted("paper").read_problems(written(tmp_path))
    assert paper[3].text == f"{PREFIX}\n\nWhat is ${{3}}$?"
    assert official[3].text != paper[3].text
    assert [replace(one, text="") for one in official] == [replace(one, text="") for one in paper]


@needs_recordings
def test_the_paper_s_words_are_those_that_lighteval_recorded() -> None:
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        recorded = [json.loads(line)["prompt"] for line in lines]
    assert all(prompt.startswith(f"{PREFIX}\n\n") for prompt in recorded)


def test_the_reply_that_the_paper_s_words_ask_for_is_understood() -> None:
    question = Question("aime25-I-1", "?", "integer", "70")
    reply = "So.\n\nTherefore, the final answer is: $\\boxed{70}$. I hope it is correct."
    assert Aime25().prompted("paper").grade(question, reply).value == 1.0


def test_an_unknown_prompt_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UserError, match="no prompt 'own'; it has: official, paper"):
        aime25(prompt="own")  # pyright: ignore[reportArgumentType] - as from a command line


def test_every_suite_with_several_prompts_is_an_inspect_task_that_takes_one() -> None:
    several = [name for name, suite in SUITES.items() if isinstance(suite, Prompted)]
    assert "aime25" in several
    for name in several:
        made = getattr(_registry, name.replace("-", "_"))
        assert "prompt" in signature(made).parameters, name


def test_suites_without_the_paper_s_words_are_named_in_one_sentence() -> None:
    both = [Toy(), PromptedToy()]
    assert unknown_prompt_note(both, None) == unknown_prompt_note(both, "official") == ""
    said = "No paper prompt is known for toy. The official one is used."
    assert unknown_prompt_note(both[:1], "paper") == said
    assert unknown_prompt_note(both[1:], "paper") == ""


def test_run_says_which_suites_have_no_paper_prompt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "run --suite practice-choice --system single:sage --limit 1 --display none --prompt"
    assert main([*words.split(), "paper", "--log-dir", str(tmp_path / "run")]) == 0
    assert "No paper prompt is known for practice-choice" in capsys.readouterr().out
    assert prompts_of(tmp_path / "run") == {"practice-choice": "official"}


@pytest.mark.parametrize("prompt", ["official", "paper", None])
def test_the_prompt_is_what_models_hear_and_what_log_and_experiment_say(
    tmp_path: Path, prompt: str | None
) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    assert toy_run(log_dir, PromptedToy(), prompt=prompt, limit=2).finished
    heard = {asked(sample) for sample in samples(log_dir)}
    end = ", as the paper asks?" if prompt == "paper" else "?"
    assert heard == {f"Question eval-{n} is what{end}" for n in range(2)}
    (log,) = list_eval_logs(str(log_dir))
    header = read_eval_log(log, header_only=True).eval.metadata or {}
    assert header["podium"]["prompt"] == (prompt or "official")
    assert prompts_of(log_dir) == {"toy": prompt or "official"}


@pytest.mark.parametrize(("first", "second"), [("official", "paper"), ("paper", "official")])
def test_an_experiment_keeps_its_prompt(tmp_path: Path, first: str, second: str) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, PromptedToy(), prompt=first, limit=2)
    assert toy_run(log_dir, PromptedToy()).finished
    assert len(calls(log_dir)) == 2
    with pytest.raises(UserError) as refusal:
        toy_run(log_dir, PromptedToy(), prompt=second)
    assert f"its prompt of toy is '{first}', not '{second}'" in str(refusal.value)
    assert prompts_of(log_dir) == {"toy": first}


def test_an_experiment_from_before_there_were_prompts_is_official(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, PromptedToy(), limit=2)
    older = json.loads((log_dir / FILE).read_bytes())
    del older["prompts"]
    (log_dir / FILE).write_text(json.dumps(older))
    with pytest.raises(UserError, match="its prompt of toy is 'official', not 'paper'"):
        toy_run(log_dir, PromptedToy(), prompt="paper")
    assert toy_run(log_dir, PromptedToy()).finished
    assert len(calls(log_dir)) == 2


def test_the_best_single_worker_is_chosen_in_the_same_words(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, PromptedToy(), systems=("best-single",), prompt="paper", limit=1)
    heard = [asked(sample) for sample in samples(log_dir / "selection")]
    assert len(heard) == 12
    assert all(text.endswith("as the paper asks?") for text in heard)
    assert prompts_of(log_dir / "selection") == {"toy": "paper"}


def test_the_oracle_plans_for_the_same_words_and_the_diary_names_them(tmp_path: Path) -> None:
    planned: list[Question] = []
    opened: list[str] = []

    def plan(path: Path, questions: Sequence[Question], *more: Any) -> None:
        planned.extend(questions)
        make_plans(path, questions, *more)

    def note(log_dir: Path, suite: Any, n: int) -> None:
        log_eval_access(log_dir, suite, n)
        opened.append(json.loads((log_dir / ACCESS_LOG).read_text())["prompt"])

    assert toy_run(
        tmp_path / "run",
        PromptedToy(),
        controls=replace(CONTROLS, make_plans=plan, opened=note),
        pool="rehearsal",
        systems=("oracle",),
        prompt="paper",
        limit=1,
    ).finished
    assert [one.text for one in planned] == ["Question eval-0 is what, as the paper asks?"]
    assert opened == ["paper"]


def test_grading_again_uses_the_words_of_the_log(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, PromptedToy(), prompt="paper", limit=1)
    regrade_dir(log_dir, {"toy": PromptedToy()}, None, everything=True)
    (sample,) = samples(log_dir)
    assert (sample.scores or {})["podium"].explanation == "asked: paper"


def test_the_access_log_says_how_questions_were_put(tmp_path: Path) -> None:
    log_eval_access(tmp_path, Aime25().prompted("paper"), 3)
    assert json.loads((tmp_path / ACCESS_LOG).read_text())["prompt"] == "paper"


def test_recorded_replies_answer_the_paper_s_words_and_the_report_says_so(
    tmp_path: Path, recorded_aime25: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = f"run --suite aime25 --pool {recorded_aime25} --system single:saturn-7b --limit 3"
    runs = str(tmp_path / "runs")
    for prompt in ("official", "paper"):
        place = ["--prompt", prompt, "--display", "none", "--log-dir", f"{runs}/{prompt}"]
        assert main([*words.split(), *place]) == 0
    capsys.readouterr()
    assert main(["report", runs]) == 0
    said = capsys.readouterr().out
    assert said.count("aime25, version ") == 2
    assert "(eval), paper prompt, recorded, pool recorded-aime25" in said
