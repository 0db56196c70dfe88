"""The adapters as the real libraries call them, each in an environment of its own.

PODIUM_TRAINERS=1 runs these (`make trainers`): they download 1.7 GB. The rewards come from a
service in this process, as where a trainer's pins are not ours; podium is a folder on the path.
"""

import json
import os
import subprocess
import sysconfig
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from podium.harness.records import Grade, Question
from podium.harness.rewards.outcome import Status
from podium.harness.rewards.reward import Reward, RewardSettings
from podium.harness.rewards.splits import load_training_split
from podium.harness.rewards.taskset import write_taskset
from podium.suites import SUITES
from tests import ROOT
from tests.harness.rewards.small_suites import Graded, exams, items, same, score, served
from tests.installed import installing, new_environment, put
from tests.providers.script import ok
from tests.providers.server import serve

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("PODIUM_TRAINERS"),
        reason="downloads 1.7 GB of trainers; make trainers, or PODIUM_TRAINERS=1, runs it",
    ),
]

SCRIPTS = Path(__file__).parent / "trainers"

WANTED = [1.0, 0.0, None, 0.0]
"""What the four replies of every script come to: right, wrong, not graded, no answer."""


@dataclass(frozen=True, slots=True)
class Trainers:
    """An environment and the service that it asks."""

    python: Path
    url: str

    def run(self, script: str, *words: str | Path) -> Any:
        """Run a script and return the JSON of its last line."""
        done = subprocess.run(
            [self.python, SCRIPTS / script, self.url, *words],
            env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def service() -> Generator[str]:
    """A reward service whose grader fails on one reply."""

    def judge(question: Question, reply: str) -> Grade:
        if reply == "broken":
            raise OSError("the disk is full")
        return same(question, reply)

    asked = exams(Graded(judge))
    reward = Reward(asked, settings=RewardSettings(max_masked=1.0))
    with served(reward, asked) as url:
        yield url


@pytest.fixture(scope="module")
def torched(tmp_path_factory: pytest.TempPathFactory, service: str) -> Trainers:
    """TRL and, without what it trains with, verl; torch in its build for CPUs."""
    python = made(tmp_path_factory.mktemp("torched") / "env", "torch==2.13.0+cpu")
    put(python, "trl==1.16.0", "peft", "tensorboard")
    put(python, "trackio==0.43.0", "wandb==0.31.0", "mlflow-skinny==3.17.2")
    put(python, "--no-deps", "verl==0.9.1")
    needed = "ray omegaconf hydra-core codetiming tensordict pyvers cloudpickle aiohttp orjson"
    put(python, *needed.split())
    return Trainers(python, service)


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory, service: str) -> Trainers:
    """The verifiers package and, without what it trains with, OpenRLHF."""
    python = made(tmp_path_factory.mktemp("light") / "env", "verifiers==0.4.0")
    put(python, "--no-deps", "openrlhf==0.11.2")
    return Trainers(python, service)


def made(folder: Path, *words: str) -> Path:
    """Make an environment; skip where the package index does not have these."""
    python = new_environment(folder)
    done = installing(python, *words)
    if done.returncode:
        pytest.skip(f"no {' '.join(words)} to install: {done.stderr.splitlines()[-1]}")
    return python


def test_trl_makes_the_same_of_texts_and_of_chats_and_leaves_out_what_has_no_value(
    torched: Trainers, tmp_path: Path
) -> None:
    said = torched.run("trl_step.py", tmp_path)
    assert said["plain"] == WANTED
    assert said["chat"] == WANTED
    logged: dict[str, float] = said["logged"]
    for key in (*(status.value for status in Status), "masked", "usd"):
        assert f"podium/{key}" in logged
    assert logged["podium/scorer_error"] == pytest.approx(1 / 6)
    assert logged["step"] == 1


def test_verl_loads_the_file_and_fails_or_counts_0_as_it_was_told(torched: Trainers) -> None:
    raised = torched.run("verl_manager.py", "raise")
    assert raised[2] == "NoValue"
    zeros = torched.run("verl_manager.py", "zero")
    assert [one["reward_score"] for one in zeros] == [1.0, 0.0, 0.0, 0.0]
    assert [one["reward_extra_info"]["unscored"] for one in zeros] == [0.0, 0.0, 1.0, 0.0]
    keys = [list(one["reward_extra_info"]) for one in zeros]
    assert keys == [["score", "acc", "unscored", "status", "usd"]] * 4


def test_verifiers_records_an_error_on_the_trace_of_what_has_no_value(light: Trainers) -> None:
    traces = light.run("verifiers_task.py")
    assert [trace["reward"] for trace in traces] == WANTED
    assert [trace["ok"] for trace in traces] == [True, True, False, True]
    assert traces[2]["errors"] == ["TaskError"]


def test_verifiers_evaluates_the_package_and_gives_the_rewards_that_we_give(
    light: Trainers, tmp_path: Path
) -> None:
    package, suite = tmp_path / "podium-practice", SUITES["practice-integer"]
    write_taskset(package, ["practice-integer"], ["practice-integer"])
    put(light.python, "uv", "hatchling")  # its harness begins programs with uv
    put(light.python, "--no-deps", "--no-build-isolation", str(package))
    split = load_training_split(suite, "train", limit=3)
    texts = [rf"It is \boxed{{{one.target}}}." for one in split.questions.values()]
    texts[1:] = [r"It is \boxed{1000}.", "I do not know."]
    said = {
        f"local: {one.text}": [ok(text)]
        for one, text in zip(split.questions.values(), texts, strict=True)
    }
    reward = Reward({suite.name: split})
    with served(reward, {suite.name: split}) as url, serve(said) as model:
        traces = evaluated(light, tmp_path, url, model.openai)
    ours = score(reward, items(*zip(split.questions, texts, strict=True), suite=suite.name))
    wanted = {
        f"{suite.name}/{id}": one.value for id, one in zip(split.questions, ours, strict=True)
    }
    assert sorted(wanted.values(), key=str) == [0.0, 0.0, 1.0]
    assert {one["task"]["data"]["id"]: rewards_of(one) for one in traces} == wanted


def evaluated(light: Trainers, folder: Path, url: str, model: str) -> list[Any]:
    """Run verifiers' own command on the package; return its traces."""
    command = [light.python.with_name("vf-eval"), "podium-practice", "-m", "local"]
    command += ["--env.taskset.task.url", url, "--client.base-url", model]
    command += ["--client.api-key-var", "LOCAL_KEY", "--env.agent.harness.id", "null"]
    command += ["--env.agent.runtime.type", "subprocess", "--no-push", "--no-rich"]
    path = f"{light.python.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [*command, "-o", folder / "out"],
        env={
            **os.environ,
            "HOME": str(folder),
            "LOCAL_KEY": "x",
            "PATH": path,
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    (found,) = (folder / "out").glob("*/traces.jsonl")
    rows = map(json.loads, found.read_text().splitlines())
    return [trace for row in rows for trace in row.get("traces", [row])]


def rewards_of(trace: Any) -> float:
    assert trace["ok"], trace["errors"]
    return trace["rewards"]["podium"]["score"]


def test_openrlhf_finds_the_reply_in_its_query_and_is_told_as_it_asked(light: Trainers) -> None:
    raised = light.run("openrlhf_agent.py", "raise")
    assert [one["reward"] for one in raised] == WANTED
    zeros = light.run("openrlhf_agent.py", "zero")
    assert [one["reward"] for one in zeros] == [1.0, 0.0, 0.0, 0.0]
    assert [one["extra_logs"] for one in zeros] == [{"unscored": x} for x in (0.0, 0.0, 1.0, 0.0)]


def test_conductors_are_trained_where_there_is_torch(torched: Trainers, tmp_path: Path) -> None:
    ours = sysconfig.get_path("purelib")
    later = f"import sys\nsys.path += {[ours, str(ROOT)]!r}\n"
    (tmp_path / "sitecustomize.py").write_text(later)
    folder = ROOT / "tests" / "conductor" / "training"
    files = [one for one in sorted(folder.glob("test_*.py")) if "torch" in one.read_text()]
    assert files  # the others have no need of it, and ran where there is none
    done = subprocess.run(
        [
            torched.python,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            *files,
        ],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=2400,  # it takes 15 minutes
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout
