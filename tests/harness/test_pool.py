"""A pool inside Inspect: replies from its cache are draws of their own, clients are made once."""

from contextvars import copy_context
from pathlib import Path

import pytest
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import CachePolicy, GenerateConfig, Model, get_model
from inspect_ai.solver import Solver, solver

from podium.harness.execute import execute
from podium.harness.inspect_adapters import as_solver
from podium.harness.pool import Pool
from podium.harness.records import Answer, Question
from podium.harness.system import System
from podium.harness.workflow import Step, Workflow
from tests.harness.tiny_run import draw, five_votes, model_events, sit
from tests.providers.scripted import script

POOL = """
label = "live"
prices = "none"
[[workers]]
name = "sage"
model = "scripted/voter"
config = { temperature = 0.7 }
"""


def votes(log_dir: Path, config: GenerateConfig) -> EvalLog:
    """Ask one worker five times with the same request."""
    script("voter", draw)
    model = get_model("scripted/voter", config=config, memoize=False)
    return sit({"sage": model, "clerk": model}, log_dir, five_votes(), epochs=2)


@pytest.mark.parametrize("policy", [True, CachePolicy(expiry="3h")], ids=["plain", "policy"])
def test_five_cached_votes_are_five_draws_in_the_second_run_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: bool | CachePolicy
) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    config = GenerateConfig(cache=policy)
    first, second = (votes(tmp_path / run, config) for run in ("1", "2"))
    said = [event.output.completion for _, event in model_events(second)]
    assert len(said) == len(set(said)) == 2 * 2 * 5
    assert {event.cache for _, event in model_events(second)} == {"read"}
    assert {event.cache for _, event in model_events(first)} == {"write"}
    assert sorted(event.output.completion for _, event in model_events(first)) == sorted(said)


def test_the_cache_of_a_whole_eval_keeps_votes_apart_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    script("voter", draw)
    model = get_model("scripted/voter", memoize=False)
    for run in ("1", "2"):
        task = Task(MemoryDataset([Sample(input="Question?")]), solver=five_votes())
        # Inspect leaves the settings of an eval behind in the caller's context.
        (log,) = copy_context().run(
            eval,
            task,
            model=None,
            model_roles={"sage": model},
            cache=True,
            log_dir=str(tmp_path / run),
            display="none",
        )
        events = [event for _, event in model_events(log)]
        assert len({event.output.completion for event in events}) == 5
        assert {event.cache for event in events} == {"write" if run == "1" else "read"}


def test_two_workers_of_one_model_do_not_share_cached_replies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))

    async def both(question: Question, pool: Pool) -> Answer:
        return await execute(Workflow((Step("sage"), Step("clerk"))), question, pool)

    script("voter", draw)
    model = get_model("scripted/voter", config=GenerateConfig(cache=True), memoize=False)
    for run in ("1", "2"):
        log = run_eval({"sage": model, "clerk": model}, tmp_path / run, both)
        modes = [event.cache for _, event in model_events(log)]
        assert modes == ["write" if run == "1" else "read"] * 6


def run_eval(
    roles: dict[str, Model], log_dir: Path, system: System, pool: str | None = None
) -> EvalLog:
    """Run three questions, each once."""

    @solver
    def asking() -> Solver:
        return as_solver(system, pool)

    samples = [Sample(id=f"q-{n}", input=f"Question {n}?") for n in range(3)]
    task = Task(MemoryDataset(samples), solver=asking())
    (log,) = eval(task, model=None, model_roles={**roles}, log_dir=str(log_dir), display="none")
    assert log.status == "success", log.error
    return log


def test_the_client_of_an_absent_role_is_made_once_for_an_eval_and_anew_for_the_next(
    tmp_path: Path,
) -> None:
    seen: list[Model] = []

    async def once(question: Question, pool: Pool) -> Answer:
        seen.append(pool.models["sage"])
        return await execute(Workflow((Step("sage"),)), question, pool)

    script("voter", draw)
    path = tmp_path / "pool.toml"
    path.write_text(POOL)
    logs = [run_eval({}, tmp_path / run, once, str(path)) for run in ("1", "2")]
    assert len(seen) == 6
    assert [seen.index(model) for model in seen] == [0, 0, 0, 3, 3, 3]
    for log in logs:
        assert [event.role for _, event in model_events(log)] == ["sage"] * 3
        assert {event.config.temperature for _, event in model_events(log)} == {0.7}
