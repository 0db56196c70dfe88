"""Best of n, retry, warming and escalation: what they ask, when they stop, where they refuse."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from inspect_ai.log import list_eval_logs, read_eval_log

from podium.baselines import SYSTEMS
from podium.baselines._registry import retry
from podium.baselines.by_tests import (
    best_of_n_tests_system,
    cheapest_first,
    escalation_system,
    retry_system,
    temperatures,
    warming_system,
)
from podium.harness.boxes import Boxes
from podium.harness.errors import UserError, WorkerError
from podium.harness.pool import Pool
from podium.harness.pool_config import PoolSpec, WorkerSpec, read_pool
from podium.harness.records import PODIUM, Answer, Grade, Question
from podium.harness.run.forecast import counted_all
from podium.harness.system import System
from podium.suites.practice.programs import SUITE, practice_code
from tests.baselines.shown_suite import CODE, ShownToy, by_text
from tests.harness.toy_run import toy_pool, toy_run
from tests.providers.scripted import Heard, ScriptedPool, scripted_pool
from tests.sandbox.boxes import DOCKER, needs
from tests.suites.gold import gold_reply
from tests.suites.inspect_run import sat

PROGRAMS = ("a", "b", "c", "d", "e", "f")


def in_turn(*texts: str) -> ScriptedPool:
    """Return a pool whose one worker says one text after another."""
    left: Iterator[str] = iter(texts)
    return scripted_pool(scribe=lambda heard: next(left))


def answered(system: System, rig: ScriptedPool, **shares: float) -> Answer:
    """Let a system answer; `shares` says what part of the public tests each text passes."""
    rig.pool.public_tests, _ = by_text(shares)
    return anyio.run(system, CODE, rig.pool)


def heats(answer: Answer) -> list[float | None]:
    """Return the temperature that each step of an answer prescribed."""
    steps = json.loads(answer.plan or "")
    return [step.get("sampling", {}).get("temperature") for step in steps]


def test_retry_stops_at_the_first_program_that_passes_every_public_test() -> None:
    rig = in_turn(*PROGRAMS)
    answer = answered(retry_system(), rig, a=0.0, b=0.5, c=1.0, d=1.0)
    assert (answer.text, len(rig.heard), len(answer.replies)) == ("c", 3, 3)
    assert answer.noted == {"trials": 3, "passed_public_tests": True}


def test_retry_asks_five_times_at_most_and_the_last_program_stands() -> None:
    rig = in_turn(*PROGRAMS)
    answer = answered(retry_system(), rig, b=0.5)
    assert (answer.text, len(rig.heard)) == ("e", 5)
    assert answer.noted == {"trials": 5, "passed_public_tests": False}
    assert heats(answer) == [0, 0, 0, 0, 0]


def test_every_try_is_the_canonical_request_and_none_reads_another() -> None:
    rig = in_turn(*PROGRAMS)
    answer = answered(retry_system(), rig)
    assert {str(heard.turns) for heard in rig.heard} == {str([("user", CODE.text)])}
    assert [heard.occurrence for heard in rig.heard] == [0, 1, 2, 3, 4]
    assert answer.depth == 1


def test_warming_rises_from_0_to_a_half() -> None:
    rig = in_turn(*PROGRAMS)
    answer = answered(warming_system(), rig)
    assert heats(answer) == [0, 0.125, 0.25, 0.375, 0.5]
    assert temperatures(2, 0.5) == (0, 0.5)


def test_best_of_n_keeps_the_program_that_passes_most_and_the_first_of_equals() -> None:
    mixed = answered(best_of_n_tests_system(n=4), in_turn(*PROGRAMS), a=0.0, b=0.5, c=0.75, d=0.75)
    assert (mixed.text, mixed.noted["trials"], mixed.depth) == ("c", 4, 1)
    none = answered(best_of_n_tests_system(n=3), in_turn(*PROGRAMS))
    assert (none.text, none.noted["passed_public_tests"]) == ("a", False)


def test_escalation_goes_on_to_dearer_workers_until_one_passes() -> None:
    rig = scripted_pool(ada="a", bob="b", cleo="c")
    answer = answered(escalation_system("bob, cleo,ada"), rig, c=1.0)
    assert (answer.text, rig.asked) == ("c", ["bob", "cleo"])
    rig = scripted_pool(ada="a", bob="b")
    assert answered(escalation_system(), rig).text == "b"
    assert rig.asked == ["ada", "bob"], "a pool without a file goes in its own order"


def test_escalation_begins_with_the_cheapest_of_the_price_book() -> None:
    spec = read_pool("rehearsal")
    found = [
        call.worker for call in counted_all(escalation_system(), [(CODE, 1)], spec.names, spec)[0]
    ]
    assert found[0] == "formatter"
    assert found[-1] == "sage"
    assert sorted(found) == sorted(spec.names)


def test_a_worker_without_a_price_leaves_the_pool_in_its_order() -> None:
    workers = tuple(
        WorkerSpec(name=name, model=f"rehearsal/{model}")
        for name, model in (("dear", "sage"), ("new", "nobody"), ("cheap", "formatter"))
    )
    spec = PoolSpec(name="p", label="rehearsal", prices="rehearsal", workers=workers)
    models: Any = dict.fromkeys(spec.names)
    assert cheapest_first(Pool(models, spec)) == spec.names
    priced = spec.model_copy(update={"workers": (workers[0], workers[2])})
    models = dict.fromkeys(priced.names)
    assert cheapest_first(Pool(models, priced)) == ("cheap", "dear")


@pytest.mark.parametrize(
    "system",
    [
        pytest.param(best_of_n_tests_system(), id="best-of-n-tests"),
        pytest.param(retry_system(), id="retry"),
        pytest.param(escalation_system(), id="escalation"),
    ],
)
def test_without_public_tests_nobody_is_asked(system: System) -> None:
    rig = in_turn(*PROGRAMS)
    with pytest.raises(UserError, match=r"has no public tests to run\. Use a suite whose"):
        anyio.run(system, CODE, rig.pool)
    assert rig.heard == []


def test_a_trial_that_fails_is_raised_once_and_by_its_own_name() -> None:
    rig = in_turn(*PROGRAMS)

    async def broken(question: Question, reply: str) -> Grade:
        raise WorkerError(f"the box is down at {reply}")

    rig.pool.public_tests = broken
    with pytest.raises(WorkerError, match="the box is down"):
        anyio.run(best_of_n_tests_system(n=3), CODE, rig.pool)


def test_senseless_numbers_are_refused() -> None:
    with pytest.raises(UserError, match="n"):
        best_of_n_tests_system(n=0)
    with pytest.raises(UserError, match="tries"):
        retry_system(tries=0)
    rig = in_turn(*PROGRAMS)
    rig.pool.public_tests, _ = by_text({})
    with pytest.raises(UserError, match="no worker 'nobody'"):
        anyio.run(escalation_system("scribe,nobody"), CODE, rig.pool)
    assert rig.heard == []


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("best-of-n-tests", best_of_n_tests_system()),
        ("retry", retry_system()),
        ("warming", warming_system()),
        ("escalation", escalation_system()),
    ],
)
def test_a_dry_run_counts_the_most_calls_that_the_manifest_allows(
    name: str, system: System
) -> None:
    manifest, workers = SYSTEMS[name], ("ada", "bob", "cleo")
    span = manifest.calls.span(3, {})
    assert span is not None
    assert len(counted_all(system, [(CODE, 1)], workers)[0]) == span[1]
    assert manifest.needs == {"public tests"}


# --- in runs ----------------------------------------------------------------------------------


def shown_boxes() -> Boxes:
    """Return boxes that are nothing but opened: the exam needs no more."""
    facts = SimpleNamespace(python="3.11.2", image=None, image_id=None, packages=())
    opened = SimpleNamespace(close=lambda: None)
    return Boxes(lambda *_: opened, lambda *_: facts, lambda: "")


def noted(log_dir: Path, system: str) -> list[dict[str, Any]]:
    """Return what a system noted of each of its answers."""
    logs = [read_eval_log(one) for one in list_eval_logs(str(log_dir), recursive=False)]
    made = [log for log in logs if (log.eval.metadata or {})[PODIUM]["system"] == system]
    return [one.metadata[PODIUM]["noted"] for log in made for one in log.samples or []]


def test_trials_and_grading_share_the_places_of_a_run_and_cost_nothing(tmp_path: Path) -> None:
    home, exam = tmp_path / "run", ShownToy()
    toy_pool(home)
    systems = ("escalation", "retry")
    outcome = toy_run(
        home, exam, shown_boxes(), suites=("shown",), systems=systems, limit=4, max_sandboxes=1
    )
    assert outcome.finished
    assert exam.most == 1, "one program at a time, whatever asks for it"
    assert [one["trials"] for one in noted(home, "escalation")] == [2] * 4  # 42, then 7
    assert [one["trials"] for one in noted(home, "retry")] == [5] * 4
    assert exam.trials == 4 * 2 + 4 * 5


def test_inspect_eval_offers_trials_where_a_box_is_named(tmp_path: Path) -> None:
    made = practice_code(limit=1, box="subprocess")
    log, asked = sat(made, tmp_path, "no program", solver=retry(), model_roles=roles())
    assert log.status == "success", log.error
    (sample,) = log.samples or []
    assert sample.metadata[PODIUM]["noted"] == {"trials": 5, "passed_public_tests": False}
    assert asked == [], "only the worker is asked"


@pytest.mark.docker
def test_inspect_eval_tries_programs_in_inspects_own_sandbox_too(tmp_path: Path) -> None:
    needs(DOCKER)
    gold = gold_reply(SUITE.load("eval")[0])
    pool: Any = dict(scripted_pool(scribe=gold).pool.models)
    log, _ = sat(
        practice_code(limit=1), tmp_path, sandbox="docker", solver=retry(), model_roles=pool
    )
    assert log.status == "success", log.error
    (sample,) = log.samples or []
    assert sample.metadata[PODIUM]["noted"] == {"trials": 1, "passed_public_tests": True}


def roles() -> Any:
    """Return one scripted worker as Inspect's model roles."""
    number = count()

    def say(heard: Heard) -> str:
        return f"```python\nprint({next(number)})\n```"

    return dict(scripted_pool(scribe=say).pool.models)
