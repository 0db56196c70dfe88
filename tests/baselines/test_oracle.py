"""The oracle: its plan set, its search over a scripted pool, its file."""

from pathlib import Path
from random import Random

import anyio
import pytest

from podium.baselines.oracle import (
    FIRST_SEED,
    GATHER,
    USE,
    PlanChoice,
    best_expected,
    best_realised,
    enumerate_plans,
    oracle,
    oracle_system,
    read_plans,
    single_plans,
    write_plans,
)
from podium.harness.errors import UserError, WorkerError
from podium.harness.pool import Pool
from podium.harness.records import Question
from podium.harness.workflow import Step, Workflow, check
from tests.providers.scripted import Heard, ReplyFunction, scripted_pool

SUM = Question(id="sum-1", text="What is 2 + 2?", kind="integer", target="4")


def grade(question: Question, reply: str) -> float:
    """Grade by the target, which the workers have not seen."""
    return float(reply == question.target)


class Rehearsal:
    """Pools by seed, and every request that was made of any of them."""

    def __init__(self, **replies: ReplyFunction | str) -> None:
        self.replies = replies
        self.heard: list[Heard] = []

    def pool(self, seed: int) -> Pool:
        """Return the pool whose workers draw by this seed."""
        rig = scripted_pool(
            seed=seed, **{name: self._heard(reply) for name, reply in self.replies.items()}
        )
        return rig.pool

    def _heard(self, reply: ReplyFunction | str) -> ReplyFunction:
        def answer(heard: Heard) -> str:
            self.heard.append(heard)
            return reply if isinstance(reply, str) else reply(heard)

        return answer

    def find(self, draws: int = 8, patience: int = 1) -> PlanChoice:
        """Return the oracle's choice for SUM over the enumerated plans of these workers."""

        async def search() -> PlanChoice:
            plans = enumerate_plans(tuple(self.replies))
            return await best_expected(
                plans, SUM, pool_factory=self.pool, grade=grade, draws=draws, patience=patience
            )

        return anyio.run(search)


def lucky(p: float) -> ReplyFunction:
    """Return a worker that says 4 with probability p, by seed, worker and request."""

    def reply(heard: Heard) -> str:
        key = f"{heard.seed}/{heard.worker}/{heard.turns}"
        return "4" if Random(key).random() < p else "5"

    return reply


# --- the plan set -----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
def test_every_enumerated_plan_is_valid_distinct_and_no_shorter_than_the_one_before(n: int) -> None:
    workers = "abcdefgh"[:n]
    plans = enumerate_plans(workers)
    assert all(isinstance(check(plan, workers), Workflow) for plan in plans)
    assert len(set(plans)) == len(plans)
    assert plans[:n] == single_plans(workers)
    lengths = [len(plan.steps) for plan in plans]
    assert lengths == sorted(lengths)
    fan_ins = n if n >= 4 else 0
    assert len(plans) == n + 2 * n * (n - 1) + n * (n - 1) * (n - 2) + fan_ins


def test_the_plan_set_has_chains_that_read_and_fans_that_join() -> None:
    plans = enumerate_plans("abcde")
    assert Workflow((Step("b", GATHER), Step("a", USE, reads=(0,)))) in plans
    assert max(len(plan.steps) for plan in plans) == 5
    assert {plan.depths()[-1] for plan in plans} == {1, 2, 3}


# --- the search -------------------------------------------------------------------------------


def test_the_search_ends_at_the_first_plan_that_is_always_right() -> None:
    rig = Rehearsal(abacus="5", sage="4", scribe="4")
    choice = rig.find(draws=3)
    assert choice == PlanChoice(Workflow((Step("sage"),)), estimate=1.0, draws=3)
    assert [heard.worker for heard in rig.heard] == ["abacus"] + ["sage"] * 6


def test_a_composed_question_needs_the_plan_in_which_one_worker_reads_another() -> None:
    def compute(heard: Heard) -> str:
        return "4" if ("assistant", "fact: both are 2") in heard.turns else "no fact, no sum"

    choice = Rehearsal(abacus=compute, scholar="fact: both are 2").find()
    assert [step.worker for step in choice.plan.steps] == ["scholar", "abacus"]
    assert choice.estimate == 1.0


def test_the_estimate_is_an_expectation_and_not_the_luck_of_the_draws_that_chose() -> None:
    estimates = [
        Rehearsal(**{f"w{n}-{trial}": lucky(0.5) for n in range(4)}).find(draws=2).estimate
        for trial in range(30)
    ]
    assert 0.3 < sum(estimates) / len(estimates) < 0.7


def test_no_draw_uses_a_seed_that_an_evaluation_would() -> None:
    rig = Rehearsal(abacus=lucky(0.5), sage=lucky(0.5))
    rig.find(draws=2)
    assert {heard.seed for heard in rig.heard} <= {FIRST_SEED + n for n in range(4)}


def test_within_a_draw_no_request_is_made_twice() -> None:
    rig = Rehearsal(a="5", b="5", c="5", d="5")
    rig.find(draws=1)
    chosen_on = [heard for heard in rig.heard if heard.seed == FIRST_SEED]
    requests = [(heard.worker, tuple(heard.turns), heard.occurrence) for heard in chosen_on]
    assert len(set(requests)) == len(requests)


def test_a_program_is_run_once_however_it_is_wrapped() -> None:
    question = Question(id="p", text="Print 1.", kind="program", target="tests")
    graded: list[str] = []

    def judge(question: Question, reply: str) -> float:
        graded.append(reply)
        return 0.0

    code = "```python\nprint(1)\n```"
    rig = Rehearsal(a=code, b=f"Here it is.\n{code}", c="```python\nprint(2)\n```")

    async def search() -> PlanChoice:
        plans = enumerate_plans(("a", "b", "c"))
        return await best_expected(plans, question, pool_factory=rig.pool, grade=judge)

    assert anyio.run(search).estimate == 0.0
    assert graded == [code, "```python\nprint(2)\n```"]


def test_a_plan_that_is_wrong_at_first_is_set_aside_unless_patience_says_otherwise() -> None:
    def late(heard: Heard) -> str:
        return "5" if heard.seed == FIRST_SEED else "4"

    hasty, patient = Rehearsal(late=late), Rehearsal(late=late)
    assert hasty.find(draws=4).plan == patient.find(draws=4, patience=4).plan
    assert (len(hasty.heard), len(patient.heard)) == (1 + 4, 4 + 4)


def test_once_a_single_worker_is_good_longer_plans_are_not_tried() -> None:
    def mostly(heard: Heard) -> str:
        return "5" if heard.seed == FIRST_SEED + 3 else "4"

    rig = Rehearsal(abacus=mostly, sage="5")
    assert rig.find(draws=4).plan == Workflow((Step("abacus"),))
    assert {len(heard.messages) for heard in rig.heard} == {1}


def test_a_better_worker_replaces_a_good_one_tried_earlier() -> None:
    def mostly(heard: Heard) -> str:
        return "5" if heard.seed == FIRST_SEED + 3 else "4"

    choice = Rehearsal(abacus=mostly, sage="4").find(draws=4)
    assert choice == PlanChoice(Workflow((Step("sage"),)), 1.0, 4)


def test_a_question_nobody_can_answer_has_an_estimate_of_zero() -> None:
    assert Rehearsal(abacus="5", sage="6").find().estimate == 0.0


def test_a_worker_that_gives_no_reply_stops_the_search() -> None:
    def down(heard: Heard) -> str:
        raise ConnectionError("server is gone")

    with pytest.raises(WorkerError, match="server is gone"):
        Rehearsal(abacus=down).find()


def test_the_search_never_shows_a_worker_the_target() -> None:
    question = Question(id="q", text="Secret?", kind="text", target="xyzzy")
    rig = Rehearsal(abacus=lambda heard: str(heard.turns), sage="no")

    async def search() -> PlanChoice:
        plans = enumerate_plans(("abacus", "sage"))
        return await best_expected(plans, question, pool_factory=rig.pool, grade=grade, draws=1)

    anyio.run(search)
    assert rig.heard
    assert not any("xyzzy" in str(heard.turns) for heard in rig.heard)


def test_on_one_recorded_reply_the_oracle_is_marked_as_realised() -> None:
    rig = scripted_pool(abacus="5", sage="4")

    async def search() -> PlanChoice:
        return await best_realised(single_plans(rig.pool.workers), SUM, pool=rig.pool, grade=grade)

    choice = anyio.run(search)
    assert choice == PlanChoice(Workflow((Step("sage"),)), 1.0, draws=1, how="realised")
    assert rig.asked == ["abacus", "sage"]


# --- the file and the system ------------------------------------------------------------------

CHOICES = {
    "sum-1": PlanChoice(Workflow((Step("scholar", GATHER), Step("abacus", USE, (0,)))), 0.75, 4),
    "sum-2": PlanChoice(
        Workflow((Step("abacus", reads="all", system="é {replies}"),)), 1.0, 1, "realised"
    ),
}


def test_written_plans_read_back_the_same(tmp_path: Path) -> None:
    write_plans(tmp_path / "plans.json", CHOICES)
    assert read_plans(tmp_path / "plans.json") == CHOICES
    assert [path.name for path in tmp_path.iterdir()] == ["plans.json"]


@pytest.mark.parametrize(
    ("stored", "damaged"),
    [
        pytest.param("}", "", id="truncated"),
        pytest.param('"steps"', '"stages"', id="field-missing"),
        pytest.param('"schema": 1', '"schema": 2', id="other-schema"),
        pytest.param("0.75", '"high"', id="not-a-number"),
    ],
)
def test_damaged_plans_are_refused_in_one_sentence(
    stored: str, damaged: str, tmp_path: Path
) -> None:
    path = tmp_path / "plans.json"
    write_plans(path, CHOICES)
    whole = path.read_text()
    assert stored in whole
    path.write_text(whole.replace(stored, damaged))
    with pytest.raises(UserError, match=r"plans\.json are damaged"):
        read_plans(path)


def test_missing_plans_are_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no oracle plans"):
        oracle(plans=str(tmp_path / "none.json"))


def test_the_oracle_runs_the_plan_of_each_question() -> None:
    rig = scripted_pool(abacus="4", scholar="2 and 2")
    answer = anyio.run(oracle_system(CHOICES), SUM.sealed(), rig.pool)
    assert (answer.text, rig.asked) == ("4", ["scholar", "abacus"])


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        pytest.param(SUM, "belong to another pool", id="other-pool"),
        pytest.param(Question("new", "?", "text"), "no plan for question 'new'", id="no-plan"),
    ],
)
def test_plans_that_do_not_fit_are_refused(question: Question, reason: str) -> None:
    rig = scripted_pool(abacus="4")
    with pytest.raises(UserError, match=reason):
        anyio.run(oracle_system(CHOICES), question, rig.pool)
    assert rig.heard == []
