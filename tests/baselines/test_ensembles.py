"""One question, several calls: mixtures, self-reflection, long context, best of n and debate."""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from inspect_ai import Task
from inspect_ai import eval as evaluate  # pyright: ignore[reportUnknownVariableType]
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.event import ModelEvent
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import Solver

from podium.baselines._registry import long_context, moa_lite, self_consistency
from podium.baselines.mixture import (
    AGGREGATE_AND_SYNTHESIZE,
    moa_paper_system,
    moa_system,
    self_moa_system,
)
from podium.baselines.single import REVIEW, self_reflection_system
from podium.baselines.voting import (
    AGAIN,
    CANDIDATES,
    CHOOSE,
    OTHERS,
    UNREADABLE,
    best_of_n_system,
    choice_number,
    debate_system,
    pick_candidate,
    self_consistency_system,
)
from podium.harness.errors import UserError
from podium.harness.pool import Pool
from podium.harness.records import FALLBACK, Answer, Question
from podium.harness.system import System
from tests.providers.scripted import Heard, script, scripted_pool

SUM = Question(id="sum-1", text="What is 2 + 2?", kind="integer", target="4")


def ask(system: System, pool: Pool, question: Question = SUM) -> Answer:
    """Let a system answer one sealed question."""
    return anyio.run(system, question.sealed(), pool)


def numbered(heard: Heard) -> str:
    """Say how often this very request was put before."""
    return f"ANSWER: {heard.occurrence}"


# --- mixtures ---------------------------------------------------------------------------------


def test_the_papers_mixture_draws_its_aggregator_for_each_question_and_epoch() -> None:
    rig = scripted_pool(abacus="1", sage="2", scribe="3")
    questions = [Question(id=f"q{n}", text=f"Question {n}?", kind="text") for n in range(30)]

    def aggregators(seed: int, epoch: int = 1) -> list[str]:
        answers = [ask(moa_paper_system(seed), rig.again(epoch), one) for one in questions]
        assert {len(answer.replies) for answer in answers} == {4}
        return [answer.replies[-1].worker for answer in answers]

    drawn = aggregators(7)
    assert drawn == aggregators(7)
    assert drawn != aggregators(8)
    assert drawn != aggregators(7, epoch=2)
    assert all(count >= 5 for count in Counter(drawn).values())


def test_self_moa_shows_a_worker_its_own_samples() -> None:
    rig = scripted_pool(abacus=numbered, sage="ANSWER: 9")
    answer = ask(self_moa_system(k=3), rig.pool)
    assert rig.asked == ["abacus"] * 4
    said = "1. ANSWER: 0\n2. ANSWER: 1\n3. ANSWER: 2"
    assert rig.heard[-1].system == AGGREGATE_AND_SYNTHESIZE.replace("{replies}", said)
    assert (answer.depth, len(answer.replies)) == (2, 4)


def configs(solver: Solver, tmp_path: Path, config: GenerateConfig) -> list[GenerateConfig]:
    """Return the settings of every call of an eval of one question over two workers."""
    steady = script("steady", lambda heard: "ANSWER: 4")
    roles = {
        name: get_model(steady, role=name, config=config, memoize=False)
        for name in ("abacus", "sage")
    }
    task = Task(MemoryDataset([Sample(input=SUM.text, target="4")]), solver=solver, scorer=match())
    [log] = evaluate(task, model_roles=roles, log_dir=str(tmp_path), display="none")
    [sample] = log.samples or []
    return [event.config for event in sample.events if isinstance(event, ModelEvent)]


def test_a_mixture_samples_as_its_authors_do_and_keeps_each_workers_token_limit(
    tmp_path: Path,
) -> None:
    found = configs(moa_lite(), tmp_path, GenerateConfig(temperature=0.1, max_tokens=100))
    assert [(one.temperature, one.max_tokens) for one in found] == [(0.7, 100)] * 3


def test_a_vote_samples_at_the_workers_own_temperature_unless_one_is_given(tmp_path: Path) -> None:
    own = GenerateConfig(temperature=0.1)
    assert {one.temperature for one in configs(self_consistency(k=2), tmp_path, own)} == {0.1}
    warm = self_consistency(k=2, temperature=0.7)
    assert {one.temperature for one in configs(warm, tmp_path, own)} == {0.7}


def test_long_context_gives_five_times_the_tokens_where_there_is_a_limit(tmp_path: Path) -> None:
    limited, free = GenerateConfig(max_tokens=100), GenerateConfig()
    assert [one.max_tokens for one in configs(long_context(), tmp_path, limited)] == [500]
    assert [one.max_tokens for one in configs(long_context(), tmp_path, free)] == [None]


# --- self-reflection --------------------------------------------------------------------------


def test_self_reflection_is_one_conversation_that_holds_every_attempt() -> None:
    rig = scripted_pool(abacus=lambda heard: f"attempt {math.ceil(len(heard.messages) / 2)}")
    answer = ask(self_reflection_system(k=3), rig.pool)
    assert rig.heard[-1].turns == [
        ("user", SUM.text),
        ("assistant", "attempt 1"),
        ("user", REVIEW),
        ("assistant", "attempt 2"),
        ("user", REVIEW),
    ]
    assert (answer.text, answer.depth, len(answer.replies)) == ("attempt 3", 3, 3)


def test_self_reflection_with_one_prompt_is_the_worker_alone() -> None:
    rig = scripted_pool(abacus="ANSWER: 4")
    ask(self_reflection_system(k=1), rig.pool)
    assert [heard.turns for heard in rig.heard] == [[("user", SUM.text)]]


# --- best of n --------------------------------------------------------------------------------


def judging(verdict: str) -> Callable[[Heard], str]:
    """Return a worker that answers by number, and as a judge says `verdict`."""
    return lambda heard: verdict if heard.system else numbered(heard)


def test_a_judge_reads_numbered_candidates_and_the_question_and_picks_one() -> None:
    rig = scripted_pool(abacus=judging("The second is right.\nCHOICE: 2"))
    answer = ask(best_of_n_system(n=3), rig.pool)
    said = "1. ANSWER: 0\n2. ANSWER: 1\n3. ANSWER: 2"
    assert rig.heard[-1].turns == [
        ("system", CANDIDATES.replace("{replies}", said)),
        ("user", f"{SUM.text}\n\n{CHOOSE}"),
    ]
    assert (answer.text, len(answer.replies), dict(answer.noted)) == ("ANSWER: 1", 4, {})


@pytest.mark.parametrize("verdict", ["ANSWER: 4", "CHOICE: 4", "CHOICE: 0", "CHOICE: none", ""])
def test_a_choice_that_cannot_be_read_leaves_the_first_candidate_and_says_so(verdict: str) -> None:
    rig = scripted_pool(abacus=numbered, sage=verdict)
    answer = ask(best_of_n_system(n=3, judge="sage"), rig.pool)
    assert (answer.text, dict(answer.noted)) == ("ANSWER: 0", {FALLBACK: UNREADABLE})


def test_a_judge_that_answers_instead_picks_the_first_candidate_with_its_answer() -> None:
    rig = scripted_pool(abacus=numbered, sage="I work it out myself.\nANSWER: 2")
    answer = ask(best_of_n_system(n=3, judge="sage"), rig.pool)
    assert (answer.text, dict(answer.noted)) == ("ANSWER: 2", {})
    assert (
        pick_candidate("program", "```python\nprint(2)\n```", ["none", "```\nprint(2)\n```"]) == 1
    )
    assert pick_candidate("integer", "Both are wrong.", ["I cannot tell.", "ANSWER: 7"]) is None
    assert pick_candidate("integer", "CHOICE: 9\nANSWER: 7", ["ANSWER: 5", "ANSWER: 7"]) is None


@pytest.mark.parametrize(
    ("reply", "index"),
    [
        pytest.param("CHOICE: 1", 0, id="plain"),
        pytest.param("**Choice:** 3", 2, id="bold"),
        pytest.param("CHOICE: <2>", 1, id="brackets"),
        pytest.param("CHOICE: 1\nOn reflection:\nCHOICE: 3", 2, id="the-last-one"),
        pytest.param("CHOICE: 99999999999", None, id="huge"),
        pytest.param("my choice would be the first", None, id="words"),
    ],
)
def test_a_choice_is_the_last_number_behind_the_word(reply: str, index: int | None) -> None:
    assert choice_number(reply, 3) == index


# --- debate -----------------------------------------------------------------------------------


def test_debaters_read_each_other_and_not_themselves_and_the_last_round_votes() -> None:
    def speak(heard: Heard) -> str:
        return f"ANSWER: {heard.occurrence}" if len(heard.messages) == 1 else "ANSWER: 7"

    rig = scripted_pool(abacus=speak)
    answer = ask(debate_system(), rig.pool)
    assert (answer.text, answer.depth, len(answer.replies)) == ("ANSWER: 7", 2, 6)
    shown = f"{OTHERS}\n\nAgent 1:\nANSWER: 0\n\nAgent 2:\nANSWER: 2\n\n{AGAIN}"
    second = [("user", SUM.text), ("assistant", "ANSWER: 1"), ("user", shown)]
    assert second in [heard.turns for heard in rig.heard[3:]]


def test_a_third_round_goes_on_in_each_debaters_own_conversation() -> None:
    rig = scripted_pool(abacus="ANSWER: 1")
    answer = ask(debate_system(agents=2, rounds=3), rig.pool)
    assert (answer.depth, len(answer.replies)) == (3, 6)
    roles = [role for role, _ in rig.heard[-1].turns]
    assert roles == ["user", "assistant", "user", "assistant", "user"]


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [
        pytest.param(lambda: self_consistency_system(k=0), "k of at least 1, not 0", id="vote"),
        pytest.param(lambda: self_moa_system(k=0), "k of at least 1", id="self-moa"),
        pytest.param(lambda: self_reflection_system(k=-1), "k of at least 1, not -1", id="reflect"),
        pytest.param(lambda: long_context(times=0), "times of at least 1", id="long-context"),
        pytest.param(lambda: best_of_n_system(n=0), "n of at least 1", id="best-of-n"),
        pytest.param(lambda: debate_system(agents=0), "agents of at least 1", id="agents"),
        pytest.param(lambda: debate_system(rounds=0), "rounds of at least 1", id="rounds"),
        pytest.param(lambda: moa_system(layers=1), "at least 2 layers, not 1", id="layers"),
    ],
)
def test_numbers_that_ask_nobody_are_refused_when_the_system_is_made(
    make: Callable[[], object], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        make()


@pytest.mark.parametrize(
    "system",
    [
        pytest.param(moa_system(aggregator="nobody"), id="aggregator"),
        pytest.param(moa_system(proposers=["abacus", "nobody"]), id="proposer"),
        pytest.param(best_of_n_system(judge="nobody"), id="judge"),
        pytest.param(debate_system("nobody"), id="debater"),
        pytest.param(self_moa_system("nobody"), id="self-moa"),
    ],
)
def test_a_worker_the_pool_lacks_is_refused_before_anybody_is_asked(system: System) -> None:
    rig = scripted_pool(abacus="4", sage="5")
    with pytest.raises(UserError, match=r"no worker 'nobody'; its workers are: abacus, sage"):
        ask(system, rig.pool)
    assert rig.heard == []
