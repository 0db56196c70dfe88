"""What tries say of templates, and which one is then chosen for a question."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from podium.baselines.controls import compute_matched_system, sample_count
from podium.baselines.template_router import (
    TemplateExplorer,
    enumerate_templates,
    expected_scores,
    template_system,
)
from podium.conductor.parse import PlanFormat, restrict_plan
from podium.harness.errors import UserError
from podium.harness.learning import Artifact, Round, TrainingBudget, TrialResult
from podium.harness.records import Question
from podium.harness.run.forecast import counted_all
from podium.harness.system import System
from podium.harness.workflow import Step, Workflow

CREW = ("ada", "bob", "cyd", "dot")
RIVERS = tuple(
    Question(f"river-{n}", f"How long is the river {n} in the valley?", "integer")
    for n in range(30)
)
PRIMES = tuple(
    Question(f"prime-{n}", f"Count primes and divisors below {n}", "integer") for n in range(30)
)
TASK = TrainingBudget((*RIVERS, *PRIMES), CREW, 600, 0, ("toy",))


def learn(
    right: dict[str, str], task: TrainingBudget = TASK
) -> tuple[list[list[TrialResult]], list[Round]]:
    """Explore an exam whose questions of a kind are answered by one worker alone, always."""
    explorer, done, rounds = TemplateExplorer(), list[list[TrialResult]](), list[Round]()
    plans = enumerate_templates(task.workers).plans
    while made := explorer.next_round(task, done):
        rounds.append(made)
        done.append(
            [
                TrialResult(
                    question=name,
                    epoch=epoch,
                    value=float(plans[at].steps[-1].worker == right[name.partition("-")[0]]),
                    calls=len(plans[at].steps),
                    usd=0.0,
                    plan=plans[at].as_json(),
                )
                for name, indices in made.args["tries"].items()
                for epoch, at in enumerate(indices, 1)
            ]
        )
    return done, rounds


@dataclass(frozen=True, slots=True)
class Taught:
    """What was tried, and what it taught."""

    done: list[list[TrialResult]]
    rounds: list[Round]

    def learnt(self) -> Artifact:
        return TemplateExplorer().learnt(TASK, self.done)


@pytest.fixture(scope="module")
def taught() -> Taught:
    return Taught(*learn({"river": "ada", "prime": "bob"}))


@pytest.fixture(scope="module")
def system(taught: Taught) -> System:
    return template_system(taught.learnt())


def test_eight_workers_make_464_templates_and_each_has_one_shape() -> None:
    known = enumerate_templates(tuple("abcdefgh"))
    assert len(known.plans) == 464
    assert np.bincount(known.shapes).tolist() == [8, 56, 56, 336, 8]
    assert known.calls[known.shapes == 4].tolist() == [5] * 8


def test_a_template_nobody_tried_is_expected_to_do_what_its_workers_do_elsewhere() -> None:
    known = enumerate_templates(CREW)
    ends_in_ada = [plan.steps[-1].worker == "ada" for plan in known.plans]
    tried = np.flatnonzero(known.shapes == 2)
    value = np.array([float(ends_in_ada[at]) for at in tried])
    found, _ = expected_scores(known, (tried, np.zeros(len(tried), dtype=np.int64), value), 1)
    triples = np.flatnonzero(known.shapes == 1)
    good = [at for at in triples if known.plans[at].steps[1].worker == "ada"]
    bad = [at for at in triples if known.plans[at].steps[1].worker != "ada"]
    assert found[good].min() > found[bad].max()


def test_each_kind_of_question_gets_the_template_that_suits_it(system: System) -> None:
    new = Question("x", "How long is the river 99 in the valley?", "integer")
    other = Question("y", "Count primes and divisors", "integer")
    river, prime = (counted_all(system, [(one, 1)], CREW)[0][-1] for one in (new, other))
    assert (river.worker, prime.worker) == ("ada", "bob")


def test_rounds_stay_within_the_budget_and_use_most_of_it(taught: Taught) -> None:
    spent = sum(one.calls for tries in taught.done for one in tries)
    assert 500 <= spent <= 600
    assert len(taught.rounds) == 6
    for made in taught.rounds:
        asked = TASK.questions[made.first : made.first + made.questions]
        assert set(made.args["tries"]) == {one.id for one in asked}
        assert all(len(tries) == made.epochs for tries in made.args["tries"].values())


def test_the_same_tries_teach_the_same_bytes(taught: Taught) -> None:
    assert taught.learnt().sha256 == taught.learnt().sha256
    assert learn({"river": "ada", "prime": "bob"})[0] == taught.done


def test_a_budget_without_a_single_try_teaches_nothing() -> None:
    with pytest.raises(UserError, match=r"too few for one try\. Raise --train-calls"):
        TemplateExplorer().learnt(TASK, [])


def test_an_exam_that_must_not_be_published_teaches_it_nothing() -> None:
    with pytest.raises(UserError, match="words of questions that must not be published"):
        TemplateExplorer().next_round(replace(TASK, publishable=False), [])


def test_a_question_that_taught_is_refused(system: System) -> None:
    with pytest.raises(UserError, match="template-router was trained on river-0"):
        counted_all(system, [(RIVERS[0], 1)], CREW)[0]


def test_another_pool_is_refused(system: System) -> None:
    with pytest.raises(UserError, match="that this pool lacks"):
        counted_all(system, [(RIVERS[0], 1)], ("ada", "bob"))[0]


def test_a_fractional_k_is_met_on_average_and_the_same_each_time() -> None:
    drawn = [sample_count(2.25, 7, f"q{n}", 1) for n in range(4000)]
    assert set(drawn) == {2, 3}
    assert abs(sum(drawn) / len(drawn) - 2.25) < 0.03
    assert drawn == [sample_count(2.25, 7, f"q{n}", 1) for n in range(4000)]
    found = counted_all(compute_matched_system("ada", 3.0), [(RIVERS[0], 1)], CREW)[0]
    assert [call.worker for call in found] == ["ada"] * 3
    with pytest.raises(UserError, match="between 1 and"):
        compute_matched_system("ada", 0.5)


def test_a_plan_done_by_one_worker_keeps_its_subtasks_and_what_they_read() -> None:
    plan = Workflow((Step("ada", "look up"), Step("bob", "compute", reads=(0,))))
    made = restrict_plan(PlanFormat(worker="cyd"), plan)
    assert isinstance(made, Workflow)
    assert [(step.worker, step.subtask, step.reads) for step in made.steps] == [
        ("cyd", "look up", ()),
        ("cyd", "compute", (0,)),
    ]
