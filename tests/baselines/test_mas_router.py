"""MasRouter's space of designs, drawn and learnt, on scripted workers."""

from pathlib import Path
from random import Random

import pytest

from podium.baselines._registry import router_mas
from podium.baselines.mas_router import (
    ALONE,
    COT,
    CRITIC,
    DECIDE,
    MAS_SAMPLE,
    MODES,
    MOST,
    MOST_CALLS,
    REVISE,
    ROLES,
    Design,
    MasExplorer,
    Mode,
    describe_design,
    design_workflow,
    draw_design,
    mas_router_system,
    mas_sample_system,
)
from podium.harness.errors import UserError
from podium.harness.learning import TrainingBudget, read_artifact, write_artifact
from podium.harness.records import Question
from podium.harness.workflow import Workflow, check
from tests.baselines.tries import ask, explored
from tests.providers.scripted import Heard, scripted_pool

WORKERS = ("a", "b", "c")


def made(mode: Mode, count: int) -> Workflow:
    return design_workflow(Design(mode, tuple((at % 3, 0) for at in range(count))), WORKERS)


def test_each_mode_has_its_own_shape() -> None:
    assert [len(made(mode, 1 if mode in ALONE else 3).steps) for mode in MODES] == [
        1,
        1,
        3,
        3,
        7,
        3,
    ]
    assert made("cot", 1).steps[0].subtask == COT
    assert [step.reads for step in made("chain", 3).steps] == [(), (0,), (1,)]
    assert [step.reads for step in made("full", 3).steps] == [(), "all", "all"]
    debate = made("debate", 2)
    assert (debate.depths(), debate.steps[-1].subtask) == ((1, 1, 2, 2, 3), DECIDE)
    said = [step.subtask for step in made("reflection", 4).steps]
    assert said == ["", CRITIC, REVISE, REVISE]


def test_every_drawn_design_can_be_run_within_its_most_calls() -> None:
    random, modes, roles = Random(0), set[str](), set[int]()
    for _ in range(500):
        design = draw_design(random, 3)
        plan = design_workflow(design, WORKERS)
        assert check(plan, WORKERS, max_steps=MOST_CALLS) == plan
        assert len(design.members) <= MOST
        assert len(describe_design(design, 3)) == len(MODES) + 1 + 2 * 3
        modes.add(design.mode)
        roles |= {role for _, role in design.members}
    assert modes == set(MODES)
    assert roles == set(range(len(ROLES)))
    assert MAS_SAMPLE.calls.expected is not None
    assert MAS_SAMPLE.calls.span(3, {}) == (1, 13)


def test_a_sampled_design_repeats_itself_by_seed_question_and_epoch() -> None:
    rig = scripted_pool(a="1", b="2", c="3")
    asked = [Question(f"q-{at}", "What is 1 + 1?", "integer") for at in range(10)]
    plans = [ask(mas_sample_system(1), rig.again(), one).plan for one in asked]
    assert plans == [ask(mas_sample_system(1), rig.again(), one).plan for one in asked]
    assert plans != [ask(mas_sample_system(1), rig.again(2), one).plan for one in asked]
    assert len(set(plans)) > 5


def test_the_learnt_router_gives_the_last_word_to_who_is_right(tmp_path: Path) -> None:
    questions = tuple(Question(f"q-{at}", f"What is {at} + 1?", "integer") for at in range(12))
    task = TrainingBudget(questions, WORKERS, 400, seed=2, suites=("toy",))
    rig = scripted_pool(a="wrong", b="right", c="wrong")
    explorer = MasExplorer()
    done = explored(
        explorer, task, dict.fromkeys((one.id for one in questions), "right"), rig.again
    )
    learned = explorer.learnt(task, done)
    assert 300 < learned.about.calls == len(rig.heard) <= 400
    write_artifact(learned, tmp_path / "mas.npz")
    system = mas_router_system(read_artifact(str(tmp_path / "mas.npz"), "router-mas"))
    fresh = [Question(f"new-{at}", f"What is {at} + 2?", "integer") for at in range(20)]
    assert all(ask(system, rig.again(), one).text == "right" for one in fresh)


def test_bad_input_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(UserError, match="router-mas is not trained"):
        router_mas()
    question = Question("q", "What is 1 + 1?", "integer")
    with pytest.raises(UserError, match=r"at least 13 worker calls .*--train-calls"):
        MasExplorer().next_round(TrainingBudget((question,), WORKERS, 5, 0, ("toy",)), [])


def test_who_is_asked_sees_the_question_first_and_its_role_last() -> None:
    rig = scripted_pool(a="1", b="2", c="3")
    for at in range(8):
        ask(mas_sample_system(4), rig.again(), Question(f"q-{at}", "What is 1 + 1?", "integer"))

    def opens(heard: Heard) -> bool:
        return heard.messages[0].text.startswith("What is 1 + 1?")

    assert all(opens(heard) for heard in rig.heard)
