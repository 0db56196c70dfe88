"""Code tasks under plain Inspect: graded in its sandbox, or refused before anything is paid for."""

import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from inspect_ai.util import ComposeConfig, SandboxEnvironmentSpec, parse_compose_yaml

from podium.harness.errors import UserError
from podium.sandbox import IMAGE, Limits, SandboxError
from podium.sandbox.cells import CellKind
from podium.sandbox.docker_box import DockerBox
from podium.suites.inspect_box import COMPOSE, InspectBox, boxed_task, compose
from podium.suites.practice.programs import SUITE, practice_code
from tests import ROOT
from tests.sandbox.boxes import DOCKER, needs
from tests.suites.gold import gold_reply
from tests.suites.inspect_run import sat, written

GOLD = gold_reply(SUITE.load("eval")[0])


def test_our_compose_file_has_the_limits_of_our_docker_box() -> None:
    service = yaml.safe_load(Path(COMPOSE).read_text())["services"]["default"]
    limits = DockerBox(1)._limits(CellKind(IMAGE, Limits().memory_bytes, Limits().processes))
    for key in ("network_mode", "read_only", "cap_drop", "cap_add", "security_opt", "pids_limit"):
        assert service[key] == limits[key], key
    for key in ("mem_limit", "memswap_limit"):
        assert service[key] == f"{limits[key] >> 20}m", key
    assert service["tmpfs"] == [f"{place}:{how}" for place, how in limits["tmpfs"].items()]
    assert service["cpus"] * 10**9 == limits["nano_cpus"]
    assert service["ulimits"] == {one["Name"]: one["Hard"] for one in limits["ulimits"]}
    assert (service["image"], service["user"]) == (IMAGE, "0:0")


def test_our_compose_file_serves_other_providers_and_other_images() -> None:
    assert compose().config == COMPOSE
    other = compose("podium-sandbox-bigcodebench").config
    expected = parse_compose_yaml(COMPOSE)
    expected.services["default"].image = "podium-sandbox-bigcodebench"
    assert other == expected
    larger = compose(limits=Limits(memory_bytes=4 << 30)).config
    assert isinstance(larger, ComposeConfig)
    assert larger.services["default"].mem_limit == f"{4096 + 192}m"


@pytest.mark.docker
def test_a_code_task_is_graded_in_inspects_docker_sandbox_by_default(tmp_path: Path) -> None:
    needs(DOCKER)
    log, _ = sat(practice_code(limit=2), tmp_path, GOLD, sandbox="docker")
    assert log.status == "success", log.error
    scores = [(sample.scores or {})["podium"] for sample in log.samples or []]
    assert [score.value for score in scores] == [1.0, 0.0], "its first problem is what GOLD solves"
    assert log.eval.sandbox is not None
    assert log.eval.sandbox.config == COMPOSE


LACKING: list[tuple[str, dict[str, Any]]] = [
    (r"may not switch users .* sandbox/compose\.yaml", {"user": "1000:1000"}),
    (r"may not signal .* sandbox/compose\.yaml", {"cap_add": ["SETUID", "SETGID"]}),
    ("512 MiB of memory, less than", {"mem_limit": "512m", "memswap_limit": "512m"}),
    (
        r"no `python3` of version 3\.11",
        {"environment": {"PATH": "/usr/sbin"}, "command": "/usr/bin/tail -f /dev/null"},
    ),
]
"""What a sandbox may lack: what is said of it, and the change to our compose file."""


@pytest.mark.docker
def test_a_sandbox_that_cannot_judge_leaves_replies_unscored(tmp_path: Path) -> None:
    needs(DOCKER)
    made = boxed_task(SUITE, None, limit=len(LACKING))
    made.setup = None
    for number, (sample, (_, changes)) in enumerate(zip(made.dataset, LACKING, strict=True)):
        folder = tmp_path / str(number)
        folder.mkdir()
        sample.sandbox = SandboxEnvironmentSpec(*written(folder, **changes))
    log, _ = sat(made, tmp_path, GOLD)
    assert log.status == "success", log.error
    for sample, (sentence, _) in zip(log.samples or [], LACKING, strict=True):
        score = (sample.scores or {})["podium"]
        assert math.isnan(score.as_float()), (sentence, sample.id, score.explanation)
        assert re.search(sentence, score.explanation or "")


@pytest.mark.docker
def test_a_sandbox_that_cannot_judge_is_refused_before_a_model_is_asked(tmp_path: Path) -> None:
    needs(DOCKER)
    log, asked = sat(practice_code(limit=1), tmp_path, sandbox=written(tmp_path, user="1000"))
    assert log.status == "error"
    assert log.error
    assert "podium's sandbox/compose.yaml" in log.error.message
    assert asked == []


@pytest.mark.docker
def test_a_sandbox_without_the_suites_packages_is_refused(tmp_path: Path) -> None:
    needs(DOCKER)
    bare = {"volumes": [{"type": "tmpfs", "target": "/opt/podium/site"}]}
    log, asked = sat(practice_code(limit=1), tmp_path, sandbox=written(tmp_path, **bare))
    assert log.error
    assert re.search(r"lacks 2 packages .* such as numpy==.* Use the image", log.error.message)
    assert asked == []


@pytest.mark.slow
def test_inspects_local_sandbox_is_refused_before_a_model_is_asked(tmp_path: Path) -> None:
    log, asked = sat(practice_code(limit=1), tmp_path, sandbox="local")
    assert log.error
    assert "local sandbox isolates nothing" in log.error.message
    assert "box=subprocess" in log.error.message
    assert asked == []


def test_outside_a_sandbox_the_box_names_the_options() -> None:
    with pytest.raises(SandboxError, match=r"--sandbox docker.*-T box=docker"):
        InspectBox().facts()


def test_a_box_of_ours_is_asked_when_the_task_is_made_and_named_in_its_header() -> None:
    said = boxed_task(SUITE, "subprocess", limit=1).metadata
    assert said
    assert said["podium"]["box"] == "subprocess"
    assert said["podium"]["box_facts"]["python"]
    with pytest.raises(UserError, match="no box 'cardboard'"):
        boxed_task(SUITE, "cardboard")


@pytest.mark.slow
def test_what_is_refused_is_a_sentence_on_inspects_command_line(tmp_path: Path) -> None:
    words = ["suites/practice/programs.py", "-T", "box='[cardboard]'", "--model", "mockllm/model"]
    tool = [str(Path(sys.executable).with_name("inspect")), "eval", "--log-dir", str(tmp_path)]
    done = subprocess.run([*tool, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "There is no box '[cardboard]'" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
