"""Inspect's tasks as graders of single replies and as rewards: their own solver and scorer."""

import json
from pathlib import Path

import anyio
import pytest

from podium.cli import main
from podium.cli.functions import grade, run
from podium.harness.errors import UserError
from podium.harness.ledger.system_runs import load_runs
from podium.harness.rewards.outcome import RewardItem, Status
from podium.harness.rewards.reward import Reward
from podium.harness.rewards.splits import load_split, load_training_split, overlaps
from podium.harness.run.catalogue import find_grader
from podium.harness.task_suite import TaskSuite
from podium.suites import strip_instruction
from tests import ROOT
from tests.harness.rewards.service import get, post, started
from tests.harness.test_inspect_tasks import pool
from tests.providers.script import ok
from tests.providers.server import serve

TASKS = ROOT / "tests" / "harness" / "foreign_tasks.py"
REPLIES = {"right": "Think.\nANSWER: B", "wrong": "ANSWER: A", "none": "Red, I think."}


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_is_graded_as_in_a_run_of_the_task(name: str, tmp_path: Path) -> None:
    reply, where = REPLIES[name], f"{TASKS}@choosing"
    with serve(lambda _: ok(reply)) as server:
        made = pool(tmp_path, server)
        assert run(where, "single:a", pool=made, log_dir=tmp_path / "run", yes=True).finished
    (done,), _ = load_runs([tmp_path / "run"])
    (played,) = done.attempts
    assert grade(where, {"a": reply})["a"].value == played.value == float(name == "right")


def test_a_task_rewards_and_asks_what_its_solver_adds() -> None:
    split = load_training_split(find_grader({}, f"{TASKS}@adding"))
    text = split.questions["1"].text
    assert "You add." in text
    assert "1 + 1?\nEnd in the sum." in text
    name, said = split.suite.name, {"So.\nANSWER: 2": 1.0, "2": 0.0, "ANSWER: 3": 0.0, "": 0.0}
    reward = Reward({name: split})
    outcomes = anyio.run(reward.score, [RewardItem(name, "1", reply) for reply in said])
    assert [one.value for one in outcomes] == [*said.values()]
    assert {one.status for one in outcomes} == {Status.SCORED}


def test_a_reply_is_graded_by_a_task_with_arguments(tmp_path: Path) -> None:
    replies, out = tmp_path / "replies.jsonl", tmp_path / "out.jsonl"
    replies.write_text('{"question_id": "4", "reply": "ANSWER: 5"}\n')
    asked = ["grade", "--suite", f"{TASKS}@adding", "--replies", str(replies), "--out", str(out)]
    assert main(asked) == 2  # the task has three questions by default
    assert main([*asked, "-T", "n=5"]) == 0
    assert json.loads(out.read_text().splitlines()[-1])["value"] == 1.0
    assert grade(f"{TASKS}@adding", {"4": "ANSWER: 5"}, task_args={"n": 5})["4"].value == 1.0


@pytest.mark.parametrize("command", ["run", "reward serve", "grade"])
def test_an_argument_without_a_task_is_refused(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = {"run": ["--log-dir", str(tmp_path / "run")], "grade": ["--replies", __file__]}
    more["grade"] += ["--out", str(tmp_path / "out.jsonl")]
    asked = [*command.split(), "--suite", "practice-integer", *more.get(command, ())]
    assert main([*asked, "-T", "n=2"]) == 2
    assert (
        "-T n is an argument of an Inspect task, and no --suite is one" in capsys.readouterr().err
    )
    assert [*tmp_path.iterdir()] == []


def test_what_a_task_teaches_is_known_again_in_its_exam() -> None:
    task = TaskSuite(f"{TASKS.name}@adding", path=f"{TASKS}@adding")
    taught, exam = load_training_split(task.for_training()), load_split(task)
    assert taught.questions["1"].text != exam.questions["1"].text
    shared = overlaps([taught], [exam], strip_instruction)
    assert {one.question for one in shared} == {*taught.questions} == {"0", "1", "2"}


@pytest.mark.slow
def test_a_reward_service_serves_a_task() -> None:
    name = f"{TASKS.name}@adding"
    with started("--suite", f"{TASKS}@adding", "-T", "n=2") as service:
        listed = get(f"{service.url}/questions?suite={name}")[1]
        items = [
            {"suite": name, "question": "0", "completion": text}
            for text in ("ANSWER: 1", "ANSWER: 2")
        ]
        status, scored = post(f"{service.url}/score", {"items": items})
    assert status == 200
    assert listed["questions"] == ["0", "1"]
    assert [one["value"] for one in scored["outcomes"]] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("looking", "It gives tools to its model"),
        ("boxed", "It uses an Inspect sandbox"),
        ("twice_asked", "It calls its model more than once."),
        ("talking", "calls a model of its own"),
        ("parallel", "calls a model of its own"),
        ("judged", "calls a model of its own"),
        ("judged_in_words", "returns the text 'rather good'"),
    ],
)
def test_a_task_that_only_a_run_can_play_is_refused_in_a_sentence(
    task: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECT_EVAL_MODEL", "mockllm/model")  # which nobody may ask
    with pytest.raises(UserError, match=r"cannot grade a single reply") as refused:
        grade(f"{TASKS}@{task}", {"a": "7"})
    assert words in str(refused.value)
    assert main(["reward", "serve", "--suite", f"{TASKS}@{task}"]) == 2


def test_a_scorer_that_every_value_satisfies_teaches_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["reward", "serve", "--suite", f"{TASKS}@guessing"]) == 2
    assert "rewards the attack 'every value" in capsys.readouterr().err


def test_a_task_that_nobody_has_installed_grades_nothing(tmp_path: Path) -> None:
    replies = tmp_path / "replies.jsonl"
    replies.write_text('{"question_id": "0", "reply": "7"}\n')
    assert main(["grade", "--suite", "nowhere/task", "--replies", str(replies)]) == 2
    assert main(["reward", "serve", "--suite", "nowhere/task"]) == 2
