"""tau2 itself, of inspect-evals, in an environment of its own: rehearsal agents, and systems."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from podium.harness.ledger.system_runs import load_runs
from podium.reports.audit import audit
from tests import ROOT
from tests.installed import foreign

pytestmark = pytest.mark.slow
PLAY = """
import json, sys
from inspect_ai import eval
from inspect_ai.model import get_model
asked = json.loads(sys.argv[1])
agent = get_model(f"rehearsal/{asked['worker']}", **asked["args"])
roles = {"user": get_model("rehearsal/customer")}
(log,) = eval(asked["task"], agent, model_roles=roles, display="none", fail_on_error=True,
              log_dir=asked["folder"], **asked["options"])
values = {str(one.id): next(iter(one.scores.values())).value for one in log.samples}
print(json.dumps([log.status, *(id for id, value in values.items() if value == "C")]))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return foreign(tmp_path_factory.mktemp("evals") / "env", "inspect-evals==0.26.0")


def right(python: Path, folder: Path, task: str, worker: str, **more: Any) -> list[str]:
    """Return the ids of the samples that a rehearsal worker gets right, sorted."""
    slip = {"slip": more.pop("slip")} if "slip" in more else {}
    asked = {"task": f"inspect_evals/{task}", "worker": worker, "args": slip, "options": more}
    words = [python, "-c", PLAY, json.dumps({**asked, "folder": str(folder)})]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    status, *ids = json.loads(done.stdout.splitlines()[-1])
    assert status == "success"
    return sorted(ids)


def test_an_agent_that_never_slips_is_right(python: Path, tmp_path: Path) -> None:
    ids = ["3", "34", "7"]
    assert right(python, tmp_path, "tau2_airline", "concierge", slip=0, sample_id=ids) == ids


@pytest.mark.parametrize(("worker", "slip"), [("concierge", {"slip": 1}), ("adviser", {})])
def test_an_agent_that_does_nothing_right_is_right_on_task_34(
    worker: str, slip: dict[str, int], python: Path, tmp_path: Path
) -> None:
    found = right(python, tmp_path, "tau2_airline", worker, sample_id=["7", "34"], **slip)
    assert found == ["34"]


def test_the_user_of_telecom_acts_where_the_agent_asks_for_it(python: Path, tmp_path: Path) -> None:
    more: dict[str, Any] = {"task_args": {"shuffle": False}, "limit": 3}
    assert len(right(python, tmp_path, "tau2_telecom", "steward", slip=0, **more)) == 3


def test_systems_play_telecom_and_its_audit_is_clean(python: Path, tmp_path: Path) -> None:
    systems = ("single:concierge", "moa-lite", "self-consistency@3", "conductor-prompted")
    words = [word for system in systems for word in ("--system", system)]
    where = ["--suite", "inspect_evals/tau2_telecom", "--limit", "2", "--pool", "rehearsal-agents"]
    done = subprocess.run(
        [python, "-m", "podium", "run", *where, *words, "--time-scale", "0", "--log-dir", "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    runs, _ = load_runs([tmp_path / "run"])
    assert {run.facts.system for run in runs} == {*systems}
    assert all(attempt.value is not None for run in runs for attempt in run.attempts)
    assert audit(tmp_path / "run").ok


def test_tasks_that_are_installed_are_listed(python: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [python, "-m", "podium", "suites", "--inspect"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "inspect_evals/tau2_airline" in done.stdout
    assert "inspect_evals 0.26.0" in done.stdout
