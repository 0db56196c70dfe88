"""Programs in Inspect's own sandboxes: the same judge, the same limits, the same refusals.

One sample is one compose project, about a second to make and another to remove, so the tests share
a sandbox: its scorer runs everything that is to be looked at.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
import yaml
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import TaskState
from inspect_ai.util import sandbox

from podium.sandbox import IMAGE, Limits, Program, ProgramOutcome, SandboxError
from podium.suites.inspect_box import InspectBox, compose, sandbox_checked
from tests.sandbox.boxes import DOCKER, needs
from tests.suites.inspect_run import sat

REVERSE = "print(input()[::-1])"
QUICK = Limits(cpu_s=1.0, wall_s=3.0, memory_bytes=256 << 20, processes=24)

KILLER = """
import os, time
killed = []
while len(killed) < 2:
    for pid in [name for name in os.listdir("/proc") if name.isdigit() and name not in killed]:
        try:
            command = open(f"/proc/{pid}/cmdline").read()
            parent = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1]
            above = open(f"/proc/{parent}/cmdline").read()
        except OSError:
            continue
        if "podium.sandbox.inside" in command and above.startswith("/usr/bin/timeout"):
            time.sleep(0.5)
            os.kill(int(pid), 9)
            killed.append(pid)
    time.sleep(0.05)
"""
"""Runs as the sandbox's root and kills the judge, twice."""


@dataclass(slots=True)
class Seen:
    """What happened in a sandbox."""

    outcomes: dict[str, list[ProgramOutcome]] = field(
        default_factory=dict[str, list[ProgramOutcome]]
    )
    errors: dict[str, str] = field(default_factory=dict[str, str])
    facts: Any = None

    def run(self, name: str, source: str, *inputs: bytes, **options: Any) -> None:
        """Run a program on inputs, or on an empty one, and keep what comes of it."""
        alone = options.pop("alone", False)
        limits = options.pop("limits", QUICK)
        program = Program(source, **options)
        try:
            ended = InspectBox().run(program, inputs or (b"",), limits, alone=alone)
            self.outcomes[name] = list(ended)
        except SandboxError as error:
            self.errors[name] = str(error)

    def one(self, name: str) -> ProgramOutcome:
        """Return the outcome of a program that had one input."""
        (outcome,) = self.outcomes[name]
        return outcome


def looked_at(work: Callable[[Seen], None]) -> tuple[Seen, Scorer]:
    """Return a scorer that does the work in a thread, as suites are graded, and what it saw."""
    seen = Seen()

    @scorer(metrics=[mean()], name="looked_at")
    def looking() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            await anyio.to_thread.run_sync(work, seen)
            return Score(value=1.0)

        return score

    return seen, looking()


def do_all(seen: Seen) -> None:
    """Everything that is looked at in a sandbox with our limits."""
    seen.facts = InspectBox().facts()
    seen.run("right", REVERSE, *(b"%d\n" % n for n in range(100, 112)))
    seen.run("endless", "while True: pass")
    seen.run("stops", "import sys; sys.exit(int(input()))", b"0\n", b"3\n", b"4\n", b"0\n")
    seen.run("kills", "import os\nfor _ in range(9): os.kill(-1, 9)\nprint('alive')")
    seen.run("looks", "import os\nprint(os.getuid(), sorted(os.listdir('/tmp')))")
    seen.run("leaves", "open('/tmp/note', 'w').write('x')\nif not __import__('os').fork(): input()")
    seen.run("memory", "b = b'x' * (1 << 30)")
    seen.run("noise", "import os\nfor _ in range(40): os.write(1, os.urandom(1 << 17))", b"", b"")
    seen.run("official", "x = int(input())\nprint(x * 2)", b"4\n", b"5\n", runner="official")
    call = "class Solution:\n    def twice(self, x): return [2 * x]"
    seen.run("call", call, b"[3]", b"[4]", runner="call", entry="twice", alone=True)
    anyio.from_thread.run(die_twice, seen)
    anyio.from_thread.run(end_sandbox)
    seen.run("gone", REVERSE, b"abc\n")


async def die_twice(seen: Seen) -> None:
    """Run a program while something kills its judge."""
    async with anyio.create_task_group() as group:
        group.start_soon(sandbox().exec, ["python3", "-c", KILLER])
        slow = Limits(cpu_s=1.0, wall_s=4.0)
        await anyio.to_thread.run_sync(
            lambda: seen.run("killed", "import time; time.sleep(2)", b"", b"", limits=slow)
        )


async def end_sandbox() -> None:
    """Kill the container, as an engine in trouble would."""
    connection = await sandbox().connection()
    assert connection.container
    await anyio.run_process(["docker", "kill", connection.container])


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> tuple[Seen, EvalLog]:
    """What happened in Inspect's docker sandbox with our compose file."""
    needs(DOCKER)
    seen, look = looked_at(do_all)
    made = Task(dataset=[Sample("x")], setup=sandbox_checked(), scorer=look, sandbox=compose())
    log, _ = sat(made, tmp_path_factory.mktemp("logs"))
    assert log.status == "success", log.error
    return seen, log


@pytest.mark.docker
def test_a_program_runs_on_all_inputs_in_inspects_docker_sandbox(
    ours: tuple[Seen, EvalLog],
) -> None:
    outputs = [one.stdout.strip()[::-1] for one in ours[0].outcomes["right"]]
    assert outputs == [b"%d" % n for n in range(100, 112)]


@pytest.mark.docker
def test_what_a_program_does_wrong_is_an_outcome(ours: tuple[Seen, EvalLog]) -> None:
    seen, _ = ours
    assert seen.one("endless").status == "time"
    assert [one.exit_code for one in seen.outcomes["stops"]] == [0, 3, 4, 0]
    assert seen.one("memory").status == "memory"


@pytest.mark.docker
def test_a_program_is_alone_and_reaches_nobody(ours: tuple[Seen, EvalLog]) -> None:
    seen, _ = ours
    assert seen.one("kills").stdout == b"alive\n"
    user, _, files = seen.one("looks").stdout.partition(b" ")
    assert int(user) >= 20_000
    assert files == b"[]\n"
    assert seen.one("leaves").status == "exited"


@pytest.mark.docker
def test_no_output_is_cut_off(ours: tuple[Seen, EvalLog]) -> None:
    noise = ours[0].outcomes["noise"]
    assert [len(one.stdout) for one in noise] == [40 << 17, 40 << 17]


@pytest.mark.docker
def test_methods_and_the_published_evaluators_way_run_there_too(
    ours: tuple[Seen, EvalLog],
) -> None:
    seen, _ = ours
    assert [one.result for one in seen.outcomes["official"]] == [
        b'{"output": "8\\n"}',
        b'{"output": "10\\n"}',
    ]
    assert [one.result for one in seen.outcomes["call"]] == [
        b'{"returned": {"list": [6]}}',
        b'{"returned": {"list": [8]}}',
    ]


@pytest.mark.docker
def test_a_program_whose_judge_dies_twice_has_died(ours: tuple[Seen, EvalLog]) -> None:
    first, second = ours[0].outcomes["killed"]
    assert (first.status, second.status) == ("died", "exited")


@pytest.mark.docker
def test_a_sandbox_that_goes_away_is_no_verdict(ours: tuple[Seen, EvalLog]) -> None:
    assert "inspect:docker sandbox" in ours[0].errors["gone"]
    assert "gone" not in ours[0].outcomes


@pytest.mark.docker
def test_the_log_says_which_box_graded_and_stays_small(ours: tuple[Seen, EvalLog]) -> None:
    seen, log = ours
    (sample,) = log.samples or []
    assert sample.metadata["box"] == seen.facts.box == "inspect:docker"
    assert sample.metadata["box_facts"]["python"] == seen.facts.python
    assert len(log.model_dump_json()) < 400_000


@pytest.mark.docker
def test_a_plain_compose_file_serves_and_memory_is_limited_all_the_same(tmp_path: Path) -> None:
    needs(DOCKER)

    def work(seen: Seen) -> None:
        seen.run("right", REVERSE, b"abc\n")
        seen.run("memory", "b = b'x' * (1 << 30)\nwhile True: pass")

    seen, look = looked_at(work)
    plain = {
        "image": IMAGE,
        "command": "tail -f /dev/null",
        "init": True,
        "x-local": True,
    }
    path = tmp_path / "compose.yaml"
    path.write_text(yaml.safe_dump({"services": {"default": plain}}))
    made = Task(dataset=[Sample("x")], scorer=look, sandbox=("docker", str(path)))
    log, _ = sat(made, tmp_path)
    assert log.status == "success", log.error
    assert seen.one("right").stdout == b"cba\n"
    assert seen.one("memory").status == "memory"
