"""The frameworks themselves, in environments of their own, on the ledger beside the native one.

PODIUM_FRAMEWORKS=1 runs these (`make frameworks`): they download about 1.3 GB, most of it CrewAI's.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from podium.baselines import SYSTEMS
from podium.baselines.frameworks import FRAMEWORKS
from podium.harness.ledger.call import Call
from podium.harness.records import PODIUM
from podium.reports.audit import audit
from tests.installed import build_wheel, new_environment, put
from tests.providers import serve
from tests.reports.audit.audited_run import rows_below
from tests.sandbox.boxes import BWRAP, missing

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("PODIUM_FRAMEWORKS"),
        reason="downloads 1.3 GB of frameworks; make frameworks, or PODIUM_FRAMEWORKS=1, runs it",
    ),
]

SCRIPTS = Path(__file__).parent / "frameworks"
NATIVE = "planner-executor-verifier"
IN_PROCESS = tuple(FRAMEWORKS)
ALL = (*IN_PROCESS, "crewai")
CREWAI = "crewai==1.15.30"
QUESTIONS = 2
OWN_TOOLS = ("bwrap", "--dev-bind", "/", "/", "--perms", "1777", "--tmpfs", "/var/tmp")
"""Gives a run a /var/tmp of its own, where bubblewrap is installed.

Inspect unpacks its tools for a local sandbox there, leaves them, and takes them for whole the next
time, even if the run before was killed while it unpacked them.
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """Two runs: all that share Inspect's environment, and CrewAI."""

    python: Path
    folder: Path

    def home(self, system: str) -> Path:
        """Where a system's run is."""
        return self.folder / ("alone" if system == "crewai" else "together")

    def rows(self, system: str) -> list[Call]:
        """The calls of one system."""
        return [row for row in rows_below(self.home(system)) if row.system == system]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("frameworks")
    wheel = build_wheel(folder / "dist")
    with ThreadPoolExecutor() as both:  # a core each: pip is one process, and so is a run
        wanted = both.submit(made, folder / "env", f"{wheel}[all-frameworks]")
        crew = both.submit(made, folder / "crew", CREWAI).result()
        python = wanted.result()
        settings = {"PODIUM_SANDBOX": "local", "PODIUM_CREWAI": str(crew)}
        alone = both.submit(run, python, folder / "alone", ["crewai"], settings)
        run(python, folder / "together", [NATIVE, *IN_PROCESS])
        alone.result()
    return Ran(python, folder)


def made(folder: Path, wanted: str) -> Path:
    """Make an environment in which pip finds nothing broken; return its Python."""
    python = new_environment(folder)
    put(python, wanted)
    check = [sys.executable, "-m", "pip", "--python", str(python), "check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    return python


def run(
    python: Path, home: Path, systems: list[str], settings: dict[str, str] | None = None
) -> None:
    """Run systems on the rehearsal pool, as a user does."""
    named = [word for name in systems for word in ("--system", name)]
    command = [python.with_name("podium"), "run", "--suite", "practice-integer", *named]
    # What each of them asks by itself is held against the native pipeline.
    extent = ["--pool", "rehearsal", "--limit", str(QUESTIONS), "--log-dir", home, "--fresh-draws"]
    done = subprocess.run(
        [*(OWN_TOOLS if missing(BWRAP) is None else ()), *command, *extent],
        cwd=home.parent,
        env={**os.environ, **(settings or {})},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


@pytest.mark.parametrize("system", ALL)
def test_three_calls_a_question_by_the_cast_are_recorded_and_priced(ran: Ran, system: str) -> None:
    rows = ran.rows(system)
    assert Counter(row.role for row in rows) == dict.fromkeys(
        ("planner", "sage", "verifier"), QUESTIONS
    )
    assert all(row.usd and row.usd > 0 and row.journal and row.error is None for row in rows)
    expected = SYSTEMS[system].calls.span
    assert expected is not None
    assert expected(7, {}) == (len(rows) / QUESTIONS,) * 2


@pytest.mark.parametrize("system", ALL)
def test_every_answer_is_graded_and_carries_the_workflow_that_was_run(
    ran: Ran, system: str
) -> None:
    (path,) = [path for path in ran.home(system).glob("*.eval") if f" {system}_" in path.name]
    log = read_eval_log(str(path))
    for sample in log.samples or []:
        assert "podium" in (sample.scores or {})
        workers = [step["worker"] for step in json.loads(sample.metadata[PODIUM]["plan"])]
        assert workers == ["planner", "sage", "verifier"]


@pytest.mark.parametrize("system", [IN_PROCESS[0], "crewai"])
def test_an_audit_of_their_runs_fails_nothing(ran: Ran, system: str) -> None:
    verdicts = audit(ran.home(system)).verdicts
    assert not [one for one in verdicts if one.status in ("fail", "weak")]


@pytest.mark.parametrize("system", ["langgraph", "openai-agents"])
def test_what_adds_nothing_to_a_request_costs_what_the_native_pipeline_costs(
    ran: Ran, system: str
) -> None:
    ours, theirs = ran.rows(NATIVE), ran.rows(system)
    assert sorted(row.prompt_sha256 or "" for row in ours) == sorted(
        row.prompt_sha256 or "" for row in theirs
    )


def test_a_client_that_is_not_bridged_reaches_nobody(ran: Ran, tmp_path: Path) -> None:
    with serve() as server:
        command = [ran.python, SCRIPTS / "escaping.py", server.openai, tmp_path]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
        assert not server.bill.lines
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["status"], told["scores"]) == ("error", 0)
    assert "langchain tried to reach 127.0.0.1" in told["said"]
