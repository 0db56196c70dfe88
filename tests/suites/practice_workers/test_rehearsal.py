"""The rehearsal provider through real Inspect models, pools and evals, offline."""

import asyncio
import time
from typing import Any

import pytest
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageUser, GenerateConfig, Model, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

from podium.harness.errors import UserError
from podium.harness.execute import execute
from podium.harness.pool import Pool, pool_models, slot_model
from podium.harness.pool_config import read_pool
from podium.harness.records import Question
from podium.harness.workflow import Step, Workflow
from podium.suites.practice.workers.workers import count_tokens, cut_tokens

POWER = "Find the remainder when 17^25 is divided by 41. Put your final answer in \\boxed{}."


def model(worker: str, config: GenerateConfig | None = None, **args: Any) -> Model:
    """Return a rehearsal model that shares no state with another test's."""
    return get_model(
        f"rehearsal/{worker}", config=config or GenerateConfig(), memoize=False, **args
    )


def say(of: Model, text: str = POWER) -> str:
    """Return one reply."""
    return asyncio.run(of.generate(text)).completion


def test_the_provider_serves_a_real_eval_offline(tmp_path: object) -> None:
    task = Task(
        dataset=[Sample(input=POWER, target="\\boxed{14}")], solver=generate(), scorer=includes()
    )
    log = eval(
        task, model="rehearsal/abacus", temperature=0.0, log_dir=str(tmp_path), display="none"
    )[0]
    assert log.status == "success"
    assert log.results is not None
    assert log.results.scores[0].metrics["accuracy"].value == 1.0
    assert log.stats.model_usage["rehearsal/abacus"].output_tokens > 0


def test_usage_is_always_set_and_adds_up() -> None:
    output = asyncio.run(model("abacus").generate(POWER))
    assert output.usage is not None
    assert output.usage.output_tokens == count_tokens(output.completion)
    assert output.usage.total_tokens == output.usage.input_tokens + output.usage.output_tokens


def test_the_same_key_gives_the_same_reply() -> None:
    first, second = model("swift", seed=3), model("swift", seed=3)
    assert [say(first) for _ in range(6)] == [say(second) for _ in range(6)]


def test_replicates_of_one_request_differ() -> None:
    assert len({say(worker) for worker in [model("swift", slip=0.2)] for _ in range(8)}) > 1


def test_another_seed_gives_other_replies() -> None:
    one, other = model("swift", seed=1, slip=0.2), model("swift", seed=2, slip=0.2)
    assert [say(one) for _ in range(8)] != [say(other) for _ in range(8)]


def test_a_pool_numbers_replicates_per_sample_and_epoch() -> None:
    spec = read_pool("rehearsal")
    question = Question(id="q", text=POWER, kind="integer")
    workflow = Workflow(tuple(Step("swift") for _ in range(5)))

    def replies(epoch: int) -> list[str]:
        pool = Pool(models=pool_models(spec), spec=spec, epoch=epoch)
        return [reply.text for reply in asyncio.run(execute(workflow, question, pool)).replies]

    assert sorted(replies(1)) == sorted(replies(1))
    assert sorted(replies(1)) != sorted(replies(2))


def test_a_composed_question_is_solved_through_the_pool_by_two_workers() -> None:
    spec = read_pool("rehearsal")
    text = "How many primes are smaller than the atomic number of uranium? Answer in \\boxed{}."
    plan = Workflow((Step("scholar", "State the facts."), Step("abacus", "Compute.", reads=(0,))))
    workers = [
        worker.model_copy(update={"config": GenerateConfig(temperature=0.0)})
        for worker in spec.workers
    ]
    cold = spec.model_copy(update={"workers": tuple(workers)})
    pool = Pool(models={worker.name: slot_model(worker) for worker in cold.workers}, spec=cold)
    answer = asyncio.run(execute(plan, Question(id="q", text=text, kind="integer"), pool))
    assert "\\boxed{24}" in answer.text


def test_numbered_replies_in_a_system_message_are_weighed() -> None:
    spec = read_pool("rehearsal")
    plan = Workflow(
        (Step("planner"), Step("formatter", system="Synthesise:\n{replies}", reads="all"))
    )
    pool = Pool(models=pool_models(spec), spec=spec)
    question = Question(id="q", text="What is 6 * 7? Put it in \\boxed{}.", kind="integer")
    answer = asyncio.run(execute(plan, question, pool))
    assert answer.text.split("\\boxed")[1] == answer.replies[0].text.split("\\boxed")[1]


def test_temperature_zero_makes_no_slips() -> None:
    cold = GenerateConfig(temperature=0.0)
    assert len({say(model("abacus", cold, seed=seed, slip=0.9)) for seed in range(5)}) == 1


def test_a_reply_is_cut_at_max_tokens_and_says_so() -> None:
    output = asyncio.run(model("sage", GenerateConfig(max_tokens=9)).generate(POWER))
    assert output.stop_reason == "max_tokens"
    assert output.usage is not None
    assert output.usage.output_tokens == 9


def test_latency_is_slept_times_the_time_scale() -> None:
    started = time.monotonic()
    asyncio.run(model("formatter", time_scale=0.5).generate([ChatMessageUser(content="Hello")]))
    assert time.monotonic() - started > 0.1


def test_unknown_workers_and_arguments_are_refused_with_the_known_ones() -> None:
    with pytest.raises(UserError, match="known workers: abacus"):
        model("nobody")
    with pytest.raises(UserError, match=r"argument 'slips'.*known: seed"):
        model("abacus", slips=0.1)


def test_cutting_keeps_exactly_so_many_tokens() -> None:
    text = "Interplanetary travel costs 12345 coins."
    assert [count_tokens(cut_tokens(text, n)) for n in range(count_tokens(text) + 1)] == list(
        range(count_tokens(text) + 1)
    )
