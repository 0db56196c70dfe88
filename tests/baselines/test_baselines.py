"""Hand-written systems, run through a real pool over the scripted provider."""

from collections import Counter
from collections.abc import Callable
from random import Random

import anyio
import pytest
from inspect_ai import Task
from inspect_ai import eval as evaluate  # pyright: ignore[reportUnknownVariableType]
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import match
from inspect_ai.solver import Solver

from podium import baselines
from podium.baselines import _registry
from podium.baselines._registry import moa_lite, self_consistency
from podium.baselines.controls import random_steps, random_worker_system, random_workflow_system
from podium.baselines.frameworks import (
    EXECUTE,
    PLAN,
    VERIFY,
    cast,
    planner_executor_verifier_system,
)
from podium.baselines.mixture import AGGREGATE_AND_SYNTHESIZE, moa_system
from podium.baselines.single import best_single, choose, single, single_system
from podium.baselines.voting import self_consistency_system, vote
from podium.harness.errors import UserError
from podium.harness.pool import Pool
from podium.harness.records import Answer, Kind, Question
from podium.harness.system import System
from podium.harness.workflow import Workflow, check
from tests.providers.scripted import Heard, script, scripted_pool

SUM = Question(id="sum-1", text="What is 2 + 2?", kind="integer", target="4")


def ask(system: System, pool: Pool, question: Question = SUM) -> Answer:
    """Let a system answer one sealed question."""
    return anyio.run(system, question.sealed(), pool)


def unsteady(right: str, wrong: str, p: float) -> Callable[[Heard], str]:
    """Return a worker that is right with probability p in each repetition, by seed."""

    def reply(heard: Heard) -> str:
        lucky = Random(f"{heard.seed}/{heard.last}/{heard.epoch}/{heard.occurrence}").random() < p
        return f"ANSWER: {right if lucky else wrong}"

    return reply


# --- single -----------------------------------------------------------------------------------


def test_a_single_worker_is_sent_the_question_and_nothing_else() -> None:
    rig = scripted_pool(abacus="ANSWER: 4", sage="ANSWER: 5")
    answer = ask(single_system("abacus"), rig.pool)
    assert (answer.text, answer.depth, len(answer.replies)) == ("ANSWER: 4", 1, 1)
    assert [heard.turns for heard in rig.heard] == [[("user", SUM.text)]]


def test_an_unknown_worker_is_refused_before_anything_is_asked() -> None:
    rig = scripted_pool(abacus="4")
    with pytest.raises(UserError, match=r"no worker 'nobody'; its workers are: abacus"):
        ask(single_system("nobody"), rig.pool)
    assert rig.heard == []


def test_the_best_single_is_the_most_accurate_and_ties_go_to_pool_order() -> None:
    assert choose({"abacus": 0.4, "sage": 0.6, "scribe": 0.6}) == "sage"
    with pytest.raises(UserError, match="train split"):
        choose({})


def test_a_best_single_says_what_it_was_chosen_on() -> None:
    assert best_single("abacus", chosen_on="hindsight", n=30)
    with pytest.raises(UserError, match="not 'eval'"):
        best_single("abacus", chosen_on="eval", n=30)


# --- self-consistency -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "replies", "chosen"),
    [
        pytest.param("integer", ["ANSWER: 1", "ANSWER: 2", r"\boxed{2}"], 1, id="same-number"),
        pytest.param("integer", ["no idea", "hm", "ANSWER: 3"], 2, id="no-answer-does-not-vote"),
        pytest.param("integer", ["ANSWER: 1", "ANSWER: 2"], 0, id="tie-goes-to-first"),
        pytest.param("integer", ["no idea", "none"], 0, id="nobody-answered"),
        pytest.param("choice", ["ANSWER: A", "ANSWER: B", "ANSWER: B"], 1, id="letters"),
        pytest.param(
            "program",
            ["```python\nprint(1)\n```", "x\n```python\nprint(2)\n```", "```python\nprint(2)\n```"],
            1,
            id="programs-by-text",
        ),
    ],
)
def test_the_vote_goes_to_the_first_reply_with_the_most_frequent_answer(
    kind: Kind, replies: list[str], chosen: int
) -> None:
    assert vote(kind, replies) == replies[chosen]


def test_self_consistency_draws_k_different_replies_and_counts_all_of_them() -> None:
    said = ["ANSWER: 5", "ANSWER: 4", "ANSWER: 6", "ANSWER: 4", "ANSWER: 4"]
    rig = scripted_pool(abacus=lambda heard: said[heard.occurrence], sage="ANSWER: 9")
    answer = ask(self_consistency_system(), rig.pool)
    assert rig.asked == ["abacus"] * 5
    assert sorted(heard.occurrence for heard in rig.heard) == [0, 1, 2, 3, 4]
    assert (answer.text, answer.depth, len(answer.replies)) == ("ANSWER: 4", 1, 5)


def test_self_consistency_gains_over_its_single_worker() -> None:
    rig = scripted_pool(abacus=unsteady("4", "5", p=0.7))
    questions = [Question(id=f"q{n}", text=f"Question {n}?", kind="integer") for n in range(30)]
    alone, voting = single_system("abacus"), self_consistency_system("abacus", k=5)
    right = Counter[str]()
    for question in questions:
        right["alone"] += ask(alone, rig.again(), question).text == "ANSWER: 4"
        right["voting"] += ask(voting, rig.again(), question).text == "ANSWER: 4"
    assert 15 < right["alone"] < right["voting"]


def test_self_consistency_refuses_an_empty_vote() -> None:
    with pytest.raises(UserError, match="at least 1, not 0"):
        self_consistency_system("abacus", k=0)


# --- Mixture-of-Agents ------------------------------------------------------------------------


def test_the_aggregator_reads_every_proposal_in_its_system_message() -> None:
    rig = scripted_pool(
        abacus=lambda heard: "together: 4" if heard.system else "four", sage="five", scribe="six"
    )
    answer = ask(moa_system(layers=2), rig.pool)
    assert (answer.text, answer.depth, len(answer.replies)) == ("together: 4", 2, 4)
    system = AGGREGATE_AND_SYNTHESIZE.replace("{replies}", "1. four\n2. five\n3. six")
    assert rig.heard[-1].turns == [("system", system), ("user", SUM.text)]
    assert all(heard.turns == [("user", SUM.text)] for heard in rig.heard[:3])


def test_a_second_layer_of_proposers_reads_the_first_and_only_the_first() -> None:
    def speak(heard: Heard) -> str:
        return f"{heard.worker} after {heard.system.count('after')}"

    rig = scripted_pool(abacus=speak, sage=speak)
    answer = ask(moa_system(layers=3, aggregator="sage"), rig.pool)
    said = [reply.text for reply in answer.replies]
    assert said[:2] == ["abacus after 0", "sage after 0"]
    assert said[2:] == ["abacus after 2", "sage after 2", "sage after 2"]
    assert answer.depth == 3
    assert "1. abacus after 2\n2. sage after 2" in rig.heard[-1].system


def test_named_proposers_leave_the_others_out() -> None:
    rig = scripted_pool(abacus="4", sage="5", scribe="6")
    ask(moa_system(2, ["sage", "scribe"], "abacus"), rig.pool)
    assert sorted(rig.asked[:2]) == ["sage", "scribe"]
    assert rig.asked[2:] == ["abacus"]
    with pytest.raises(UserError, match="at least 2 layers"):
        moa_system(layers=1)


# --- planner, executor, verifier --------------------------------------------------------------


@pytest.mark.parametrize(
    ("workers", "named", "players"),
    [
        pytest.param("abc", (None, None, None), ("a", "b", "c"), id="pool-order"),
        pytest.param("abc", (None, "a", None), ("b", "a", "c"), id="one-named"),
        pytest.param("a", (None, None, None), ("a", "a", "a"), id="one-worker-plays-all"),
        pytest.param("ab", (None, None, None), ("a", "b", "a"), id="two-workers"),
        pytest.param(
            ("sage", "verifier", "planner"),
            (None,) * 3,
            ("planner", "sage", "verifier"),
            id="roles",
        ),
    ],
)
def test_roles_go_to_the_named_then_to_namesakes_then_to_pool_order(
    workers: tuple[str, ...], named: tuple[str | None, ...], players: tuple[str, ...]
) -> None:
    assert cast(tuple(workers), named) == players


def test_the_verifier_reads_the_plan_and_the_work() -> None:
    rig = scripted_pool(planner="1. Add.", sage="It is 4.", verifier="ANSWER: 4")
    answer = ask(planner_executor_verifier_system(), rig.pool)
    assert (answer.text, answer.depth, rig.asked) == (
        "ANSWER: 4",
        3,
        ["planner", "sage", "verifier"],
    )
    assert rig.heard[-1].turns == [
        ("user", f"{SUM.text}\n\n{PLAN}"),
        ("assistant", "1. Add."),
        ("user", EXECUTE),
        ("assistant", "It is 4."),
        ("user", VERIFY),
    ]


# --- random controls --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [random_worker_system, random_workflow_system], ids=["worker", "workflow"]
)
def test_a_random_system_repeats_itself_under_a_seed_and_varies_with_the_question(
    make: Callable[[int], System],
) -> None:
    rig = scripted_pool(abacus="1", sage="2", scribe="3")
    questions = [Question(id=f"q{n}", text=f"Question {n}?", kind="text") for n in range(15)]

    def plans(seed: int, epoch: int = 1) -> list[str | None]:
        return [ask(make(seed), rig.again(epoch), question).plan for question in questions]

    drawn = plans(7)
    assert drawn == plans(7)
    assert len({*drawn}) >= 3
    assert drawn != plans(8)
    assert drawn != plans(7, epoch=2)


def test_random_workers_are_drawn_uniformly() -> None:
    rig = scripted_pool(abacus="1", sage="2", scribe="3")
    for number in range(300):
        ask(random_worker_system(3), rig.again(), Question(f"q{number}", "Q?", "text"))
    assert all(70 <= count <= 130 for count in Counter(rig.asked).values())


def test_random_workflows_are_valid_and_have_every_length() -> None:
    workers = ("abacus", "sage", "scribe")
    drawn = [random_steps(Random(n), workers, 5) for n in range(400)]
    assert all(isinstance(check(workflow, workers), Workflow) for workflow in drawn)
    assert {len(workflow.steps) for workflow in drawn} == {1, 2, 3, 4, 5}
    assert any(workflow.depths()[-1] > 1 for workflow in drawn)


# --- as Inspect sees them ---------------------------------------------------------------------


def test_every_system_names_a_solver_that_is_registered() -> None:
    for name, manifest in baselines.SYSTEMS.items():
        package, _, solver = manifest.solver.partition("/")
        assert (name, package) == (manifest.name, "podium")
        assert callable(getattr(_registry, solver))
    assert {name for name, one in baselines.SYSTEMS.items() if "sees targets" in one.traits} == {
        "oracle"
    }


def test_recorded_pools_serve_exactly_the_systems_that_make_single_requests() -> None:
    served = {name for name, manifest in baselines.SYSTEMS.items() if "recorded" in manifest.traits}
    routers = {name for name in served if baselines.SYSTEMS[name].group == "routers"}
    assert served - routers == {"single:<worker>", "best-single", "random-worker", "oracle"}
    assert all(baselines.SYSTEMS[name].calls.words == "1" for name in routers)


@pytest.mark.parametrize(
    ("make", "calls"),
    [
        pytest.param(lambda: single("abacus"), 1, id="single"),
        pytest.param(lambda: best_single("sage", chosen_on="train", n=3), 1, id="best-single"),
        pytest.param(lambda: self_consistency(k=3), 3, id="self-consistency"),
        pytest.param(lambda: moa_lite(), 3, id="moa-lite"),
    ],
)
def test_a_solver_answers_in_an_eval_over_model_roles(
    make: Callable[[], Solver], calls: int, tmp_path: object
) -> None:
    steady = script("steady", lambda heard: "ANSWER: 4")
    roles = {name: get_model(steady, role=name, memoize=False) for name in ("abacus", "sage")}
    task = Task(MemoryDataset([Sample(input=SUM.text, target="4")]), solver=make(), scorer=match())
    [log] = evaluate(task, model_roles=roles, log_dir=str(tmp_path), display="none")
    assert log.status == "success"
    [sample] = log.samples or []
    assert sample.output.completion == "ANSWER: 4"
    assert sum(event.event == "model" for event in sample.events) == calls
