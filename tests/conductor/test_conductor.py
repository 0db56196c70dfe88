"""What a conductor is told, and the prompted system over a scripted pool."""

from pathlib import Path

import anyio
import pytest
from inspect_ai import Task
from inspect_ai import eval as evaluate  # pyright: ignore[reportUnknownVariableType]
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import match

from podium import conductor
from podium.conductor import _registry
from podium.conductor.parse import PlanFormat, parse_lists
from podium.conductor.policy import conductor_prompted, conductor_system
from podium.conductor.prompt import examples, instructions, plan_prompt
from podium.harness.errors import UserError
from podium.harness.pool import Pool
from podium.harness.pool_config import PoolSpec, WorkerSpec
from podium.harness.records import Question
from podium.harness.request import request_digest
from podium.harness.workflow import Malformed, Workflow
from tests.providers.scripted import Heard, script, scripted_pool

WORKERS = ("abacus", "sage", "scribe")
SUM = Question(id="sum-1", text="What is 2 + 2?", kind="integer")
SOLVE = 'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]'
CHAIN = 'model_id = [1, 0]\nsubtasks = ["Look up.", "Compute."]\naccess_list = [[], ["all"]]'


# --- what a conductor is told -----------------------------------------------------------------


def test_the_worked_examples_are_plans_that_we_can_read() -> None:
    workers = [f"model {number}" for number in range(7)]
    plans = [parse_lists(part, workers) for part in examples(PlanFormat()).split("Example ")[1:]]
    assert [len(plan.steps) for plan in plans if isinstance(plan, Workflow)] == [1, 2, 3, 4]


def test_the_instructions_and_the_question_alone_hold_no_plan() -> None:
    assert isinstance(parse_lists(instructions(PlanFormat()), WORKERS), Malformed)


def test_the_prompt_names_question_models_and_limit() -> None:
    [turn] = plan_prompt(PlanFormat(max_steps=3), "Why?", ["does sums", ""])
    assert turn.role == "user"
    assert "at most 3 steps" in turn.text
    _, tail = turn.text.split("USER QUESTION:\n")
    assert tail == "Why?\n\nAVAILABLE LANGUAGE MODELS:\nModel 0: does sums\nModel 1"


# --- the prompted conductor -------------------------------------------------------------------


def test_a_planned_workflow_is_carried_out_by_the_workers() -> None:
    rig = scripted_pool(
        abacus=lambda heard: f"sum of {heard.turns[1][1]}", sage="2 and 2", conductor=CHAIN
    )
    answer = anyio.run(conductor_system(), SUM, rig.pool)
    assert rig.asked == ["conductor", "sage", "abacus"]
    assert (answer.text, answer.depth) == ("sum of 2 and 2", 2)
    assert [reply.worker for reply in answer.replies] == ["sage", "abacus"]
    assert rig.heard[2].turns[-1] == ("user", "Compute.")


def test_a_conductor_sees_role_cards_unless_they_are_hidden() -> None:
    cards = {"abacus": "does sums", "sage": ""}
    slots = tuple(
        WorkerSpec(name=name, model="scripted/x", card=card) for name, card in cards.items()
    )
    chief = WorkerSpec(name="conductor", model="scripted/x")
    spec = PoolSpec(name="p", label="live", prices="b", workers=slots, conductor=chief)
    rig = scripted_pool(abacus="4", sage="4", conductor=SOLVE)
    for shown in (True, False):
        pool = Pool(models=rig.pool.models, spec=spec)
        anyio.run(conductor_system(PlanFormat(cards=shown)), SUM, pool)
    with_cards, without = [heard.last for heard in rig.heard if heard.worker == "conductor"]
    assert with_cards.endswith("Model 0: does sums\nModel 1")
    assert without.endswith("Model 0\nModel 1")
    assert "abacus" not in with_cards + without


def test_a_malformed_plan_is_tried_again_with_the_reason_shown() -> None:
    def plan(heard: Heard) -> str:
        return SOLVE if len(heard.messages) > 1 else "model_id = [7]"

    rig = scripted_pool(abacus="4", conductor=plan)
    answer = anyio.run(conductor_system(), SUM, rig.pool)
    assert (answer.text, rig.asked) == ("4", ["conductor", "conductor", "abacus"])
    _, said, told = rig.heard[1].turns
    assert said == ("assistant", "model_id = [7]")
    assert "no complete list subtasks" in told[1]


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_plan_that_stays_malformed_is_an_empty_answer_that_says_why(retries: int) -> None:
    rig = scripted_pool(abacus="4", conductor="I would rather not.")
    answer = anyio.run(conductor_system(retries=retries), SUM, rig.pool)
    assert rig.asked == ["conductor"] * (retries + 1)
    assert (answer.text, answer.replies) == ("", ())
    assert answer.plan == "malformed: there is no complete list model_id = [...]"


def test_a_pool_without_a_conductor_is_refused_with_the_fix() -> None:
    rig = scripted_pool(abacus="4")
    with pytest.raises(UserError, match=r"\[conductor\] table .* --model-role conductor="):
        anyio.run(conductor_system(), SUM, rig.pool)
    with pytest.raises(UserError, match="at least 1"):
        conductor_system(PlanFormat(max_steps=0))


def test_two_attempts_are_different_requests() -> None:
    rig = scripted_pool(abacus="4", conductor="no plan")
    anyio.run(conductor_system(retries=2), SUM, rig.pool)
    assert len({request_digest(heard.messages) for heard in rig.heard}) == 3


def test_in_an_eval_conductor_calls_have_a_role_of_their_own(tmp_path: Path) -> None:
    def speak(heard: Heard) -> str:
        return CHAIN if "USER QUESTION:" in heard.last else "ANSWER: 4"

    everyone = script("speaks-for-all", speak)
    names = ("abacus", "sage", "conductor")
    roles = {name: get_model(everyone, memoize=False) for name in names}
    data = MemoryDataset([Sample(input=SUM.text, target="4")])
    task = Task(data, solver=conductor_prompted(), scorer=match())
    [log] = evaluate(task, model_roles=roles, log_dir=str(tmp_path), display="none")
    [sample] = log.samples or []
    calls = [event.role for event in sample.events if event.event == "model"]
    assert calls == ["conductor", "sage", "abacus"]
    assert {*sample.role_usage} == {*names}
    assert sample.metadata["podium"]["steps"] == 2
    spans = [event.name for event in sample.events if event.event == "span_begin"]
    assert {"conductor: plan", "step 1: sage", "step 2: abacus"} <= {*spans}


def test_the_table_of_systems_names_registered_solvers() -> None:
    solvers = {row.solver for row in conductor.SYSTEMS.values()}
    prompted = {"conductor_prompted", "conductor_recursive", "conductor_best_single"}
    assert {f"podium/{name}" for name in prompted} <= solvers
    for solver in solvers:
        assert callable(getattr(_registry, solver.removeprefix("podium/")))
